"""The largest eigenvalues of a small matrix that is held whole: a start from products in float32, one certificate.

If the eigenvalues fall fast, a few products with a block of columns take less time than LAPACK's reduction to
tridiagonal form. The block is multiplied by a Chebyshev polynomial of the matrix that is small on all eigenvalues below
those of the block. The certificate of the block needs no knowledge of its origin (``certificate``): it uses residuals
in float64, and a bound on the complement from the norm of the matrix, or else from a factorisation.
"""

from __future__ import annotations

import logging
from functools import cache
from math import acosh, ceil, frexp, inf, log, sqrt

import numpy as np
from scipy.linalg import blas, lapack

from ..base.rounding import UNIT, UNIT32, rounding_factor
from ..products.rates import RATE
from .certificate import NO_BOUND, Bound, Eigenpairs, MatrixInfo, RitzBlock, product_error, ritz_certificate
from .complement import frobenius_bound, is_below

_logger = logging.getLogger("fastkpca")

MAX_WHOLE_ROWS = 700
"""Rows up to which a matrix is held whole: of larger ones its half, by tiles, takes less time (speed/small.py)."""
GUARD_COLUMNS = 6
"""Columns of the block beyond those that are wanted, at least."""
FLOAT32_RESIDUAL = sqrt(MAX_WHOLE_ROWS) * UNIT32
"""Residual over the largest eigenvalue that products in float32 mostly reach, and seldom undercut: the error of a sum
of n terms grows as sqrt(n)."""
MAX_PRODUCTS = 64
"""Maximal products of the matrix with the block; mostly a tenth to a half of them suffice."""
MIN_COLUMN_RATIO = sqrt(UNIT)
"""Length of a column over that of the longest, from which on they are made orthonormal again."""


_Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Ritz values, descending, their vectors, and the images of these under the matrix."""


def may_be_enough(n: int, c: int) -> bool:
    """True if products with a matrix of this order may give c eigenvalues faster than LAPACK."""
    return n <= MAX_WHOLE_ROWS and 11 * _block_size(c) <= n


def seconds_of_small(n: int, c: int) -> float:
    """Predicted seconds: of half of the products, of a factorisation, in float32, which is twice as fast, and of
    calls."""
    products = MAX_PRODUCTS / 2.0 * float(n) ** 2 * _block_size(c) / RATE.products
    return products + float(n) ** 3 / (3.0 * RATE.factorisations) + RATE.look


def _most_products(n: int, c: int) -> int:
    """No more than three times the flops of LAPACK's reduction, 4/3 n^3: as products in float32 these take as long."""
    return min(MAX_PRODUCTS, 2 * n // _block_size(c))


def _block_size(c: int) -> int:
    return 8 * -(-(c + GUARD_COLUMNS) // 8)  # a multiple of the vectors of float32


def pairs_of_small(
    K: np.ndarray, means: np.ndarray | None, c: int, tol: float, entry_error: float, norm: float
) -> Eigenpairs | None:
    """The c largest eigenvalues in intervals at most tol wide, over the largest one; None where they fall too slowly.

    Parameters
    ----------
    K : ndarray (n, n)
        Symmetric, positive semidefinite up to rounding.
    means : ndarray (n,) or None
        Means of its rows: the eigenvalues are those of the centred matrix; None: of K itself.
    c, tol : int, float
    entry_error : float
        Bound on |K_ij - its exact value|.
    norm : float
        |K|_F, from squares that were added up row by row: of a sum of all at once ``_norm_bound`` knows too little.
    """
    n, block = len(K), _block_size(c)
    whole = _norm_bound(norm, means, n)
    # of the images: that of their sums, three times because of the means, and that of the entries
    rounding = 3.0 * product_error(n, block, norm, entry_error, passes=1)
    if not (norm > 0.0 and 2.0 * rounding <= tol * whole):
        return None
    unit = 2.0 ** frexp(norm)[1]
    single = _rounded(K, means, unit)
    pairs, products = _search(K, means, single, unit, c, tol)
    if pairs is None:
        return None
    theta, V, images = pairs
    R = images - V * theta
    ritz = RitzBlock(V.T @ images, V.T @ V, R.T @ R, n, rounding)
    matrix = MatrixInfo(norm=whole + n * entry_error)
    outside, info = frobenius_bound(ritz, matrix), {"matrix_passes": products}
    residual = sqrt(float(ritz.residual_gram.diagonal()[:c].sum()))
    if not _suffices(outside.mu, theta[c - 1], residual, tol * theta[0]):
        wanted = 0.5 * float(theta[c - 1] + max(theta[-1], 0.0))
        # rounding of K, of two means and of their two differences: each is relative to K, however small the result
        entries = 8.0 * UNIT32 * norm / unit
        outside = _factorised_bound(single, V, images, theta, wanted / unit, 1.0 / unit, entries)
        outside, info["factorisations"] = Bound(outside.mu * unit + rounding, outside.form), 1
    certificate = ritz_certificate(ritz, c, matrix, outside)
    if not certificate.width <= tol * theta[0]:
        return None
    _logger.info("    eigenpairs by %d products with the matrix", products)
    return Eigenpairs(theta[:c], V[:, :c], certificate, images[:, :c], info=info)


def _norm_bound(norm: float, means: np.ndarray | None, n: int) -> float:
    """Upper bound on the Frobenius norm of the centred matrix: |K|^2 - 2 n |m|^2 + n^2 g^2 for means m of mean g."""
    square = norm**2
    if means is not None:
        square -= 2.0 * n * float(means @ means) - float(means.sum()) ** 2
    return sqrt(max(square, 0.0) + 4.0 * rounding_factor(n * n) * UNIT * norm**2)


def _suffices(mu: float, last: float, residual: float, width: float) -> bool:
    """True if a bound mu on what is outside makes intervals so narrow: twice their predicted width."""
    return bool(mu < last and 2.0 * residual**2 <= width * (last - mu))


# the block ---------------------------------------------------------------------------------------------------


def _rounded(K: np.ndarray, means: np.ndarray | None, unit: float) -> np.ndarray:
    """The centred matrix over ``unit``, in float32."""
    halves = np.zeros(len(K)) if means is None else (means - 0.5 * float(means.sum()) / len(K)) / unit
    halves, B = halves.astype(np.float32), np.empty(K.shape, dtype=np.float32)
    # without a second matrix in float64, whose memory would go and come each time
    np.multiply(K, 1.0 / unit, out=B, casting="same_kind")
    B -= halves
    B -= halves[:, None]
    return B


def _search(
    K: np.ndarray, means: np.ndarray | None, B: np.ndarray, unit: float, c: int, tol: float
) -> tuple[_Pairs | None, int]:
    """(Ritz pairs with residuals that suffice for tol; None where there are none, products); B as of `_rounded`.

    Ritz pairs are those of float32, with B, until these should be good enough, then those of float64, with K.
    """
    Y = B @ _draws()[: len(B) * _block_size(c)].reshape(len(B), -1)
    done, exactly, most = 1, False, _most_products(len(B), c)
    while done < most:
        pairs = _ritz_pairs(K, Y, means is not None) if exactly else _ritz_pairs(B, Y, centred=False)
        done += 1
        if pairs is None:
            break
        theta, V, images = pairs
        R = images - V * theta.astype(V.dtype)
        size, first, gap = float(np.linalg.norm(R[:, :c])), float(theta[0]), float(theta[c - 1]) - _beyond(theta)
        if not gap > 0.0:
            break
        # intervals are about 2 |R|^2 / (gap / 2) wide
        wanted = sqrt((0.25 if exactly else 0.1) * tol * first * gap)
        if exactly and tol < sqrt(UNIT):  # vectors err by |R| / gap: of so small a tol by no more than this either
            wanted = min(wanted, sqrt(UNIT) * gap)
        if exactly and size <= wanted:
            return pairs, done
        # scores as good as float32 gives them, for a product or two more; and what it does not give, float64 corrects
        goal = wanted if exactly else FLOAT32_RESIDUAL * first
        needed = _degree(theta, c, min(size / goal, 1.0 / FLOAT32_RESIDUAL))
        if not done + needed <= most:
            break
        degree = min(max(1, ceil(needed)), _most(theta))
        scale = unit if exactly else 1.0
        Y = _filtered(B, V, theta / scale, R / scale, degree)
        done += degree - 1
        exactly = exactly or needed < degree + 1  # what one product more would do is left to float64
    return None, done


@cache
def _draws() -> np.ndarray:
    """Numbers for the first block of any search: to draw them takes as long as a product."""
    draws = np.random.default_rng(0).random(MAX_WHOLE_ROWS * MAX_WHOLE_ROWS // 11, dtype=np.float32) - np.float32(0.5)
    draws.flags.writeable = False
    return draws


def _ritz_pairs(A: np.ndarray, Y: np.ndarray, centred: bool) -> _Pairs | None:
    """Ritz pairs of A on the span of Y, in the type of A; None where its columns are dependent.

    ``centred``: columns and images are to be orthogonal to ones, in float64.
    """
    Q = _orthonormal(Y, centred)
    if Q is not None and A.dtype == np.float64:  # twice: up to rounding
        Q = _orthonormal(Q, centred)
    if Q is None:
        return None
    Q = Q.astype(A.dtype, copy=False)
    W = A @ Q
    if centred:
        _centre(W)
    theta, S = _eigen((Q.T @ W).astype(np.float64, copy=False))
    S = S.astype(A.dtype, copy=False)
    return theta, Q @ S, W @ S


def _centre(X: np.ndarray) -> None:
    """Subtract the column means; by a product, as numpy's sums of few columns take as long as ten products."""
    X -= np.full(len(X), 1.0 / len(X)) @ X


def _eigen(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, descending, and vectors; NaN where LAPACK does not converge."""
    values, vectors, failed = lapack.dsyevd(T)
    return (values * np.nan if failed else values)[::-1], vectors[:, ::-1]


def _orthonormal(Y: np.ndarray, centred: bool = False) -> np.ndarray | None:
    """Columns of the same span, by Cholesky's factor of their inner products; None where they are dependent."""
    Y = Y.astype(np.float64)
    if centred:
        _centre(Y)
    R, failed = lapack.dpotrf(Y.T @ Y)
    return None if failed else blas.dtrsm(1.0, R, Y, side=1)


def _degree(theta: np.ndarray, c: int, gain: float) -> float:
    """Degree of the filter that divides the residuals of the first c vectors by ``gain``."""
    growth = acosh(max(2.0 * float(theta[c - 1]) / _beyond(theta) - 1.0, 1.0))
    return log(max(2.0 * gain, 1.0)) / growth if growth > 0.0 else inf


def _most(theta: np.ndarray) -> int:
    """The largest degree by which columns come to differ in length by at most ``MIN_COLUMN_RATIO``; at least 1."""
    return max(1, int(log(2.0 / MIN_COLUMN_RATIO) / acosh(2.0 * float(theta[0]) / _beyond(theta) - 1.0)))


def _beyond(theta: np.ndarray) -> float:
    """Upper end b of the interval [0, b] on which the filter is small: the smallest Ritz value of the block, or the
    level of rounding in float32."""
    return max(float(theta[-1]), 10.0 * FLOAT32_RESIDUAL * float(theta[0]))


def _filtered(B: np.ndarray, V: np.ndarray, theta: np.ndarray, R: np.ndarray, degree: int) -> np.ndarray:
    """T_k(2 B / b - I) V for the Chebyshev polynomial T_k, which stays below 1 on the eigenvalues up to b.

    V are Ritz vectors, theta their values and R the residuals. With T_k V = V D_k + E_k, D_k = T_k(2 theta / b - 1),

        E_(k+1) = 2 (2 B / b - I) E_k + (4 / b) R D_k - E_(k-1),   E_1 = 2 R / b, E_0 = 0:

    Only the small E_k are products in float32, so that the result keeps the accuracy of float64.
    """
    b = _beyond(theta)
    x = 2.0 * theta / b - 1.0
    R = (R * (2.0 / b)).astype(np.float32)
    before, now = np.ones_like(x), x
    E_before: np.ndarray | np.float32 = np.float32(0.0)
    E = R
    for _ in range(degree - 1):
        image = B @ E
        image *= np.float32(4.0 / b)
        image -= 2.0 * E + E_before
        image += R * (2.0 * now).astype(np.float32)
        E_before, E = E, image
        before, now = now, 2.0 * x * now - before
    return V * now + E


# the proof ---------------------------------------------------------------------------------------------------


def _factorised_bound(
    B: np.ndarray,
    V: np.ndarray,
    images: np.ndarray,
    theta: np.ndarray,
    wanted: float,
    scale: float,
    entries: float,
) -> Bound:
    """``wanted``, where P A P <= wanted I is proved by a Cholesky factorisation in float32; else none.

    B is ``scale`` times the matrix A of the Ritz vectors V and their images Y = A V, up to ``entries`` in norm, and
    P = I - V V'. In this scale, with Z = Y - V diag(theta) / 2,

        P A P = A - V Z' - Z V'.

    The sums in float32 err by u times the sizes of their terms. Overwrites B.
    """
    m = V.shape[1]
    Z = (images - V * (0.5 * theta)) * scale
    size = float(np.linalg.norm(B)) + 2.0 * sqrt(m) * float(np.linalg.norm(Z))
    single = [np.asfortranarray(x, dtype=np.float32) for x in (V, Z)]
    S = blas.ssyr2k(1.0, *single, beta=-1.0, c=B.T, overwrite_c=1).T  # the lower triangle, row by row
    error = 2.0 * rounding_factor(2 * m + 1) * UNIT32 * size + entries
    return Bound(wanted, "cholesky") if is_below(S, wanted, error) else NO_BOUND

"""The largest eigenvalues of a small matrix that is held whole, from products in float32, with a proof in float64.

Where the eigenvalues fall fast, a few products with a block of columns take less time than LAPACK's reduction to
tridiagonal form: the first powers of the matrix, then a Chebyshev polynomial of it that is small on all eigenvalues
below those of the block. The block is judged as one of any other origin is (``certificate``): by residuals in float64,
and by a bound on all that is outside of it, which the norm of the matrix gives, or else a factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import acosh, ceil, frexp, inf, log, sqrt

import numpy as np
from scipy.linalg import blas, lapack

from ..base.rounding import UNIT, UNIT32, factorisation_error, rounding_factor
from ..products.factorisation import is_positive_definite
from ..products.vectors import centre_single, row_sums
from .beyond import frobenius_bound
from .certificate import NO_BOUND, Bound, Certificate, MatrixInfo, RitzBlock, product_error, ritz_certificate

__all__ = ["LEAST_SHARE", "PowerPairs", "falls_fast", "may_be_enough", "pairs_by_powers"]

FEWEST_ROWS, SMALL = 176, 700
"""Rows from which on LAPACK takes longer than this, and up to which a matrix is held whole for it: of larger ones its
half, by tiles, takes less time."""
SPREAD = 1.5
"""Times the columns of the block, the number of eigenvalues that may share the trace."""

GUARDS, MULTIPLE = 6, 8
"""Columns of the block beyond those that are wanted, at least; and what their number is a multiple of."""
LEAST_TOL = 1e-10
"""Below this, the rounding of norms and products is wider."""
LEAST_SINGLE_TOL = 1e-9
"""Below this, the vectors that float32 finds are not good enough: they are corrected."""
LEAST_SHARE = 1e-5
"""Of the largest eigenvalue: a smaller one is lost in the rounding of float32."""
RESIDUAL = 1e-6
"""Of the largest eigenvalue: float32 mostly makes residuals so small, and hardly smaller."""
CORRECTED_RESIDUAL, MOST_GAIN, MOST_CORRECTIONS = 1e-11, 1e6, 3
"""The same of corrected vectors; what one correction, which is made in float32, gains; and how many there are."""
MOST_PRODUCTS, MOST_CORRECTING = 24, 48
"""Products with the block, of the search, and of all corrections."""
FACTOR, CORRECTED_FACTOR = 1e9, 1e13
"""By which columns may come to differ in length before they are made orthonormal again; the latter in float64."""


@dataclass(frozen=True)
class PowerPairs:
    """``values`` (c,), descending, ``vectors`` (n, c) and their ``images`` under the matrix; ``products`` of it with a
    block, factorisations."""

    values: np.ndarray
    vectors: np.ndarray
    images: np.ndarray
    certificate: Certificate
    products: int
    factorisations: int


_Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Ritz values, descending, their vectors, and the images of these under the matrix."""


def may_be_enough(n: int, c: int, tol: float) -> bool:
    """Whether powers of a matrix of this order may give c eigenvalues to this tolerance, and fast."""
    return FEWEST_ROWS <= n <= SMALL and 11 * _block_size(c) <= n and tol >= LEAST_TOL


def falls_fast(c: int, sharing: float) -> bool:
    """Whether the spectrum falls fast enough where so many eigenvalues share the trace: its square over |A|_F^2."""
    return sharing <= SPREAD * _block_size(c)


def _block_size(c: int) -> int:
    return -(-(c + GUARDS) // MULTIPLE) * MULTIPLE


def pairs_by_powers(
    K: np.ndarray, means: np.ndarray | None, c: int, tol: float, entry_error: float, norm: float | None = None
) -> PowerPairs | None:
    """The c largest eigenvalues in intervals at most tol wide, over the largest one; None where they fall too slowly.

    Parameters
    ----------
    K : ndarray (n, n)
        Symmetric, positive semidefinite up to rounding.
    means : ndarray (n,) or None
        Of its rows: the eigenvalues are those of the centred matrix; None: of K itself.
    c, tol : int, float
        For which `may_be_enough`.
    entry_error : float
        Bound on |K_ij - its exact value|.
    norm : float, optional
        |K|_F, from squares that were added up row by row: of a sum of all at once ``_norm_bound`` knows too little.
    """
    n, block = len(K), _block_size(c)
    norm = sqrt(row_sums(K)[1]) if norm is None else norm
    whole = _norm_bound(norm, means, n)
    # of the images: that of their sums, three times because of the means, and that of the entries
    rounding = 3.0 * product_error(n, block, norm, entry_error, passes=1)
    if not (norm > 0.0 and 2.0 * rounding <= tol * whole):
        return None
    trace = float(K.trace()) - (0.0 if means is None else float(means.sum()))
    if not falls_fast(c, (trace / whole) ** 2):
        return None
    unit = 2.0 ** frexp(norm)[1]
    single = _rounded(K, means, unit)
    found, products = _search(single, c, block, tol)
    pairs = None if found is None else _ritz_pairs(K, means, found)
    if pairs is not None:
        pairs, corrections = _corrected(K, means, single, unit, pairs, c, tol)
        products += corrections
    if pairs is None:
        return None
    theta, V, images = pairs
    R = images - V * theta
    ritz = RitzBlock(V.T @ images, V.T @ V, R.T @ R, n, rounding)
    matrix = MatrixInfo(norm=whole + n * entry_error)
    outside, factorisations = frobenius_bound(ritz, matrix), 0
    residual = sqrt(float(ritz.residual_gram.diagonal()[:c].sum()))
    if not _suffices(outside.mu, theta[c - 1], residual, tol * theta[0]):
        wanted = 0.5 * float(theta[c - 1] + max(theta[-1], 0.0))
        # of K, of two means and of their two differences, which are as large as K, whatever is left
        entries = 8.0 * UNIT32 * norm / unit
        outside, factorisations = _factorised_bound(single, V, images, theta, wanted / unit, 1.0 / unit, entries), 1
        outside = Bound(outside.mu * unit + rounding, outside.form)
    certificate = ritz_certificate(ritz, c, matrix, outside)
    if not certificate.width <= tol * theta[0]:
        return None
    return PowerPairs(theta[:c], V[:, :c], images[:, :c], certificate, products + 1, factorisations)


def _ritz_pairs(K: np.ndarray, means: np.ndarray | None, Y: np.ndarray) -> _Pairs | None:
    """Those of the span of Y; None where its columns are dependent."""
    # twice: a basis that is orthonormal, and orthogonal to ones, up to rounding
    once = _orthonormal(Y, means is not None)
    Q = None if once is None else _orthonormal(once, means is not None)
    if Q is None:
        return None
    W = K @ Q
    if means is not None:
        _centre(W)
    theta, S = _eigen(Q.T @ W)
    return theta, Q @ S, W @ S


def _corrected(
    K: np.ndarray, means: np.ndarray | None, B: np.ndarray, unit: float, pairs: _Pairs, c: int, tol: float
) -> tuple[_Pairs | None, int]:
    """(Ritz pairs with residuals that suffice for tol, where that can be had, products); B as of `_rounded`.

    The search trusts Ritz values that are too small yet, so what it leaves may be a few times too large.
    """
    products = 0
    for _ in range(MOST_CORRECTIONS):
        theta, V, images = pairs
        R = images - V * theta
        gap, first = float(theta[c - 1]) - _beyond(theta), float(theta[0])
        if not gap > 0.0:
            break
        # intervals are about 2 |R|^2 / (gap / 2) wide
        wanted = CORRECTED_RESIDUAL * first if tol < LEAST_SINGLE_TOL else 0.5 * sqrt(tol * first * gap)
        gain = float(np.linalg.norm(R[:, :c])) / wanted
        if not gain > 1.0:
            break
        degree = min(ceil(_degree(theta, c, min(gain, MOST_GAIN))), _most(theta, CORRECTED_FACTOR))
        if products + degree > MOST_CORRECTING:
            return None, products
        better = _ritz_pairs(K, means, _filtered(B, V, theta / unit, R / unit, degree))
        products += degree
        if better is None:
            return None, products
        pairs = better
    return pairs, products


def _rounded(K: np.ndarray, means: np.ndarray | None, unit: float) -> np.ndarray:
    """The centred matrix over ``unit``, in float32."""
    halves = np.zeros(len(K)) if means is None else (means - 0.5 * float(means.sum()) / len(K)) / unit
    return centre_single(K, 1.0 / unit, halves.astype(np.float32))


def _centre(X: np.ndarray) -> None:
    """Of few columns numpy's sums take as long as ten products with a vector."""
    X -= np.full(len(X), 1.0 / len(X)) @ X


def _norm_bound(norm: float, means: np.ndarray | None, n: int) -> float:
    """Upper bound on the Frobenius norm of the centred matrix: |K|^2 - 2 n |m|^2 + n^2 g^2 for means m of mean g."""
    square = norm**2
    if means is not None:
        square -= 2.0 * n * float(means @ means) - float(means.sum()) ** 2
    return sqrt(max(square, 0.0) + 4.0 * rounding_factor(n * n) * UNIT * norm**2)


def _suffices(mu: float, last: float, residual: float, width: float) -> bool:
    """Whether a bound mu on what is outside makes intervals so narrow: twice their predicted width."""
    return bool(mu < last and 2.0 * residual**2 <= width * (last - mu))


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


@cache
def _draws() -> np.ndarray:
    """Numbers for the first block of any search: to draw them takes as long as a product."""
    draws = np.random.default_rng(0).random(SMALL * SMALL // 11, dtype=np.float32) - np.float32(0.5)
    draws.flags.writeable = False
    return draws


def _search(B: np.ndarray, c: int, block: int, tol: float) -> tuple[np.ndarray | None, int]:
    """(a block that should be good enough for its Ritz pairs, products so far); None where there is none."""
    Y = B @ _draws()[: len(B) * block].reshape(len(B), block)
    done = 1
    while done < MOST_PRODUCTS:
        Q = _orthonormal(Y)
        if Q is None:
            break
        Q = Q.astype(np.float32)
        Y = B @ Q
        theta, S = _eigen((Q.T @ Y).astype(np.float64))
        S32 = S.astype(np.float32)
        V = Q @ S32
        R = Y @ S32 - V * theta.astype(np.float32)
        needed, degree = _degrees(theta, R, c, tol, MOST_PRODUCTS - done)
        if not done + needed <= MOST_PRODUCTS:
            break
        done += degree
        Y = _filtered(B, V, theta, R, degree)
        if needed <= degree:
            return Y, done
    return None, done


def _degrees(theta: np.ndarray, R: np.ndarray, c: int, tol: float, left: int) -> tuple[float, int]:
    """(degree of the filter that tol still needs, the one to take now: at most ``left``).

    ``theta`` are the Ritz values of the block, ``R`` its residuals. Vectors that are corrected afterwards need what one
    correction can start from; others go on to ``RESIDUAL`` where products are left for it.
    """
    first, last, beyond = float(theta[0]), float(theta[c - 1]), _beyond(theta)
    if not last > beyond:
        return inf, 1
    size, corrected = float(np.linalg.norm(R[:, :c])), tol < LEAST_SINGLE_TOL
    wanted = CORRECTED_RESIDUAL * MOST_GAIN * first if corrected else sqrt(0.1 * tol * first * (last - beyond))
    needed = _degree(theta, c, size / wanted)
    if not corrected and (more := _degree(theta, c, size / (RESIDUAL * first))) <= left:
        needed = max(needed, more)  # scores as good as float32 gives them, for a product or two more
    return needed, min(max(1, ceil(needed)), _most(theta, FACTOR), left)


def _degree(theta: np.ndarray, c: int, gain: float) -> float:
    """Of the filter that makes the residuals of the first c this much smaller."""
    return log(max(2.0 * gain, 1.0)) / acosh(2.0 * float(theta[c - 1]) / _beyond(theta) - 1.0)


def _most(theta: np.ndarray, factor: float) -> int:
    """The largest degree by which columns come to differ in length by no more than this factor; at least 1."""
    return max(1, int(log(2.0 * factor) / acosh(2.0 * float(theta[0]) / _beyond(theta) - 1.0)))


def _beyond(theta: np.ndarray) -> float:
    """Where the eigenvalues that a filter keeps small end: at the smallest Ritz value of the block."""
    return max(float(theta[-1]), LEAST_SHARE * float(theta[0]))


def _filtered(B: np.ndarray, V: np.ndarray, theta: np.ndarray, R: np.ndarray, degree: int) -> np.ndarray:
    """T_k(2 B / b - I) V for the Chebyshev polynomial T_k, which stays below 1 on the eigenvalues up to b.

    V are Ritz vectors, theta their values and R the residuals. With T_k V = V D_k + E_k, D_k = T_k(2 theta / b - 1),

        E_(k+1) = 2 (2 B / b - I) E_k + (4 / b) R D_k - E_(k-1),   E_1 = 2 R / b, E_0 = 0:

    products in float32 of what is small beside V, so that V may have the accuracy of float64.
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

    Success proves it up to the backward error of the factorisation; the sums in float32 err by u times the sizes of
    their terms. Overwrites B.
    """
    n, m = V.shape
    Z = (images - V * (0.5 * theta)) * scale
    size = float(np.linalg.norm(B)) + 2.0 * sqrt(m) * float(np.linalg.norm(Z))
    single = [np.asfortranarray(x, dtype=np.float32) for x in (V, Z)]
    S = blas.ssyr2k(1.0, *single, beta=-1.0, c=B.T, overwrite_c=1).T  # the lower triangle, row by row
    below = factorisation_error(n, UNIT32) * (wanted + float(np.abs(S.diagonal()).max()))
    below += 2.0 * rounding_factor(2 * m + 1) * UNIT32 * size + entries
    if not wanted > below:
        return NO_BOUND
    S.flat[:: n + 1] += np.float32(wanted - below)
    return Bound(wanted, "cholesky") if is_positive_definite(S) else NO_BOUND

"""The largest eigenvalues of a small matrix that is held whole, from powers of it in float32, with a proof in float64.

Where the eigenvalues fall fast, a few products with a block of columns take less time than LAPACK's reduction to
tridiagonal form. The block is judged as one of any other origin is (``certificate``): by residuals in float64, and by a
bound on all that is outside of it, which the norm of the matrix gives, or else a factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, frexp, inf, log, sqrt

import numpy as np
from scipy.linalg import blas, lapack

from ..base.rounding import UNIT, UNIT32, factorisation_error, rounding_factor
from ..products.factorisation import is_positive_definite
from .beyond import frobenius_bound
from .certificate import NO_BOUND, Bound, Certificate, MatrixInfo, RitzBlock, ritz_certificate

__all__ = ["LEAST_SHARE", "PowerPairs", "falls_fast", "may_be_enough", "pairs_by_powers"]

FEWEST_ROWS, SMALL = 176, 700
"""Rows from which on LAPACK takes longer than this, and up to which a matrix is held whole for it: of larger ones its
half, by tiles, takes less time."""
SPREAD = 1.5
"""Times the columns of the block, the number of eigenvalues that may share the trace."""

GUARDS, MULTIPLE = 6, 8
"""Columns of the block beyond those that are wanted, at least; and what their number is a multiple of."""
LEAST_TOL = 1e-9
"""Below this, the vectors that float32 finds are not good enough."""
LEAST_SHARE = 1e-5
"""Of the largest eigenvalue: a smaller one is lost in the rounding of float32."""
RESIDUAL = 1e-6
"""Of the largest eigenvalue: float32 mostly makes residuals so small, and hardly smaller."""
MOST_POWERS = 24
FACTOR = 1e4
"""By which columns may come to differ in length before they are made orthonormal again."""


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


def may_be_enough(n: int, c: int, tol: float) -> bool:
    """Whether powers of a matrix of this order may give c eigenvalues to this tolerance, and fast."""
    return FEWEST_ROWS <= n <= SMALL and 11 * _block_size(c) <= n and tol >= LEAST_TOL


def falls_fast(c: int, sharing: float) -> bool:
    """Whether the spectrum falls fast enough where so many eigenvalues share the trace: its square over |A|_F^2."""
    return sharing <= SPREAD * _block_size(c)


def _block_size(c: int) -> int:
    return -(-(c + GUARDS) // MULTIPLE) * MULTIPLE


def pairs_by_powers(
    K: np.ndarray, means: np.ndarray | None, c: int, tol: float, entry_error: float
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
    """
    n, block, norm = len(K), _block_size(c), float(np.linalg.norm(K))
    if not norm > 0.0:
        return None
    whole = _norm_bound(norm, means, n)
    trace = float(K.trace()) - (0.0 if means is None else float(means.sum()))
    if not falls_fast(c, (trace / whole) ** 2):
        return None
    unit = 2.0 ** frexp(norm)[1]
    single = _rounded(K, means, unit)
    found, products = _search(single, c, block, tol)
    # once more: a basis that is orthonormal, and orthogonal to ones, up to rounding
    once = None if found is None else _orthonormal(found, means is not None)
    Q = None if once is None else _orthonormal(once, means is not None)
    if Q is None:
        return None
    W = _centred(K @ Q, means)
    theta, S = _eigen(Q.T @ W)
    V, images = Q @ S, W @ S
    R = images - V * theta
    # of the images: that of their sums, three times because of the means, and that of the entries
    rounding = 3.0 * sqrt(block) * (rounding_factor(n) * UNIT * norm + n * entry_error)
    ritz = RitzBlock(V.T @ images, V.T @ V, R.T @ R, n, rounding)
    matrix = MatrixInfo(norm=whole + n * entry_error)
    outside, factorisations = frobenius_bound(ritz, matrix), 0
    residual = float(np.linalg.norm(R[:, :c]))
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


def _rounded(K: np.ndarray, means: np.ndarray | None, unit: float) -> np.ndarray:
    """The centred matrix over ``unit``, in float32."""
    if 1e-30 < unit < 1e30:
        B = K.astype(np.float32)
        B *= np.float32(1.0 / unit)
    else:
        B = (K / unit).astype(np.float32)
    if means is not None:
        halves = ((means - 0.5 * float(means.mean())) / unit).astype(np.float32)
        B -= halves
        B -= halves[:, None]
    return B


def _centred(X: np.ndarray, means: np.ndarray | None) -> np.ndarray:
    if means is not None:
        X -= X.mean(axis=0)
    return X


def _norm_bound(norm: float, means: np.ndarray | None, n: int) -> float:
    """Upper bound on the Frobenius norm of the centred matrix: |K|^2 - 2 n |m|^2 + n^2 g^2 for means m of mean g."""
    square = norm**2
    if means is not None:
        square -= 2.0 * n * float(means @ means) - (n * float(means.mean())) ** 2
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
        Y -= Y.mean(axis=0)
    R, failed = lapack.dpotrf(Y.T @ Y)
    return None if failed else blas.dtrsm(1.0, R, Y, side=1)


def _search(B: np.ndarray, c: int, block: int, tol: float) -> tuple[np.ndarray | None, int]:
    """(a block that should be good enough after one more product, products so far); None where there is none."""
    Y = np.random.default_rng(0).random((len(B), block), dtype=np.float32)
    Y -= np.float32(0.5)
    done, powers = 0, 4
    while done + powers <= MOST_POWERS:
        for _ in range(powers - 1):
            Y = B @ Y
        Q = _orthonormal(Y)
        if Q is None:
            break
        Q = Q.astype(np.float32)
        Y = B @ Q
        done += powers
        needed, more, apart = _outlook(Q, Y, c, tol)
        if done + more > MOST_POWERS + 1.0:
            more = needed
        if more <= 1.0:
            return Y, done
        if not done + more <= MOST_POWERS + 1.0:
            break
        powers = max(1, min(ceil(more) - 1, int(log(FACTOR) / log(apart))))
    return None, done


def _outlook(Q: np.ndarray, image: np.ndarray, c: int, tol: float) -> tuple[float, float, float]:
    """(products that tol still needs, those to ``RESIDUAL``, factor by which each lets columns differ).

    The last product is that in float64.
    """
    theta, S = _eigen((Q.T @ image).astype(np.float64))
    first, last, beyond = float(theta[0]), float(theta[c - 1]), float(theta[-1])
    beyond = max(beyond, LEAST_SHARE * first)
    if not last > max(LEAST_SHARE * first, beyond):
        return inf, inf, inf
    S = S[:, :c].astype(np.float32)
    R = image @ S - Q @ (S * theta[:c].astype(np.float32))
    residual = sqrt(float(np.vdot(R, R)))
    wanted = sqrt(0.1 * tol * first * (last - beyond))
    needed, more = (log(max(residual / x, 1e-9)) / log(last / beyond) for x in (wanted, RESIDUAL * first))
    return needed, max(needed, more), first / beyond


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

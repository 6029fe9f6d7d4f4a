"""Arrays of many rows and few columns: products, projections and orthonormal columns, a panel of rows at a time.

Panels depend on shapes alone, and what they bring is added along a fixed tree: the bits are the same at any number of
threads.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from . import parallel
from .rounding import UNIT

PANEL_ROWS = 8192
"""Rows of a task, where there are many."""
UNDERFLOW_NORM = float(np.sqrt(np.finfo(np.float64).tiny)) / UNIT
"""Norm of a column whose products with others may underflow."""
VANISHED_NORM = 1e-6
"""Norm of what a projection leaves of a unit column below which it is replaced: much of it may be rounding."""


def _panels(n: int, columns: int) -> list[slice]:
    """Rows of the tasks of a product with n x ``columns`` multiplications, by these numbers alone."""
    return parallel.shares(n, n * columns, most=max(4, -(-n // PANEL_ROWS)))


def times(A: np.ndarray, B: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """A B, column-major where A is: saves a copy where that is needed."""
    panels = _panels(len(A), B.size)
    if len(panels) == 1:
        return (B.T @ A.T).T
    out = np.empty((len(A), B.shape[1]), order="F")

    def task(i: int) -> None:
        np.matmul(B.T, A[panels[i]].T, out=out[panels[i]].T)

    parallel.each(task, len(panels), n_threads=n_threads)
    return out


def inner(A: np.ndarray, B: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """A' B, the panels' products added along a fixed tree."""
    panels = _panels(len(A), A.shape[1] * B.shape[1])
    if len(panels) == 1:
        return A.T @ B
    return parallel.tree_reduce(lambda i: A[panels[i]].T @ B[panels[i]], len(panels), np.add, n_threads=n_threads)


def subtract(X: np.ndarray, Q: np.ndarray, coordinates: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """X - Q coordinates, in place, a panel of rows at a time."""
    panels = _panels(len(X), coordinates.size)

    def task(i: int) -> None:
        rows = panels[i]
        X[rows] -= (coordinates.T @ Q[rows].T).T

    parallel.each(task, len(panels), n_threads=n_threads)
    return X


def without_means(X: np.ndarray, n_threads: int = 1, *, out: np.ndarray | None = None) -> np.ndarray:
    """X less the mean of each column, float64: a new array, column-major, or ``out``."""
    n, columns = X.shape
    panels = _panels(n, parallel.FLOPS_PER_NUMBER * columns)
    result = np.empty((n, columns), order="F") if out is None else out
    if len(panels) == 1:
        return np.subtract(X, X.mean(axis=0, dtype=np.float64), out=result)
    sums = parallel.tree_reduce(
        lambda i: X[panels[i]].sum(axis=0, dtype=np.float64), len(panels), np.add, n_threads=n_threads
    )
    mean = sums / n

    def task(i: int) -> None:
        np.subtract(X[panels[i]], mean, out=result[panels[i]])

    parallel.each(task, len(panels), n_threads=n_threads)
    return result


def without_span(X: np.ndarray, Q: np.ndarray, n_threads: int = 1, *, centred: bool = False) -> np.ndarray:
    """X without its part along Q, orthonormal columns (and along ones where ``centred``), in place."""
    if centred:
        without_means(X, n_threads, out=X)
    return subtract(X, Q, inner(Q, X, n_threads), n_threads) if Q.shape[1] else X


def orthonormal(
    X: np.ndarray,
    Q: np.ndarray,
    rng: np.random.Generator,
    *,
    centred: bool = False,
    noise: float = 0.0,
    projected: bool = False,
    n_threads: int = 1,
) -> np.ndarray:
    """An orthonormal basis of X's part outside the span of Q; random directions where X is rank deficient.

    Parameters
    ----------
    X : ndarray (n, b)
    Q : ndarray (n, m)
        Orthonormal columns.
    rng : numpy.random.Generator
        For the random directions.
    centred : bool
        The basis is to be orthogonal to the vector of ones, too.
    noise : float
        Norm below which a column of X (after projection) is rounding and is replaced.
    projected : bool
        X is orthogonal to Q already, up to rounding.
    n_threads : int

    Returns
    -------
    ndarray (n, b)
        Of fewer columns where the space outside of Q has no more.
    """
    n, given = len(X), X
    b = min(X.shape[1], n - int(centred) - Q.shape[1])
    if not projected:
        X = without_span(np.array(X, order="F"), Q, n_threads, centred=centred)
    squares = inner(X, X, n_threads)
    left = np.sqrt(squares.diagonal())
    kept = left > noise
    if not kept.all():
        X, squares = X[:, kept], squares[np.ix_(kept, kept)]
    if X.shape[1] == b:
        # well-conditioned blocks, the rule: Cholesky QR, twice with a projection between ("twice is enough", Kahan)
        once, spread = _cholesky_qr(X, squares, n_threads)
        if once is not None:
            # where a projection has left less than half of a column, that may lie along Q by rounding
            if not projected and spread >= 1.0 - 0.1 / b and (left >= 0.5 * norms(given)).all():
                return once
            X = without_span(once, Q, n_threads, centred=centred)
            squares = inner(X, X, n_threads)
            # a unit column that shrinks again was in the span: it is the rounding of the first projection
            remaining = squares.diagonal() >= 0.25
            twice, _ = _cholesky_qr(X, squares, n_threads)
            if twice is not None and remaining.all():
                return twice
            X = X[:, remaining]
    if X.shape[1]:
        X = X / np.maximum(norms(X), 1e-300)
        X, r, _ = scipy.linalg.qr(X, mode="economic", pivoting=True, check_finite=False)
        X = X[:, np.abs(np.diag(r)) > 1e-10][:, :b]
    if X.shape[1] < b:
        X = np.hstack([X, rng.standard_normal((n, b - X.shape[1])) / np.sqrt(n)])
    rounds = 3
    while rounds:
        X = without_span(np.array(X, order="F"), Q, n_threads, centred=centred)
        vanished = norms(X) < VANISHED_NORM
        X[:, vanished] = rng.standard_normal((n, np.count_nonzero(vanished))) / np.sqrt(n)
        rounds = 3 if vanished.any() else rounds - 1
        X = scipy.linalg.qr(X, mode="economic", check_finite=False)[0]
    return np.asfortranarray(X)


def norms(X: np.ndarray) -> np.ndarray:
    """Euclidean norms of the columns."""
    return np.sqrt(np.einsum("ij,ij->j", X, X))


def _cholesky_qr(X: np.ndarray, squares: np.ndarray, n_threads: int) -> tuple[np.ndarray | None, float]:
    """(Orthonormal basis of well-conditioned columns with X'X ``squares``, the spread of their factor), BLAS 3 only;
    None where they are not, or their squares underflow.

    The spread is the least diagonal entry of the factor of the columns made unit vectors, over the largest. Where it is
    at least 1 - s, the squares of the other entries of a column of the factor add up to 2 s at most.
    """
    sizes = np.sqrt(squares.diagonal())
    if not sizes.min() > UNDERFLOW_NORM:
        return None, 0.0
    R, failed = lapack.dpotrf(squares / sizes / sizes[:, None])
    diagonal = R.diagonal()
    spread = 0.0 if failed else float(diagonal.min() / diagonal.max())
    if not spread >= 1e-5:
        return None, spread
    return times(X, lapack.dtrtri(R)[0] / sizes[:, None], n_threads), spread

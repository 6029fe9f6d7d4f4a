"""Reduction of a large symmetric matrix to tridiagonal form by several threads, with the same bits for any number.

LAPACK's own (dsytrd) reads the whole matrix for every column, so that memory limits it, and BLAS's threads hardly help.
The algorithm is the same: G. H. Golub, C. F. Van Loan, Matrix Computations, 4th edition, section 8.3; the columns of a
panel are reduced one by one, and change the matrix behind them together (Dongarra, Hammarling, Sorensen 1989).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from .._core import tridiagonal
from . import parallel

__all__ = ["REST", "reduce"]

PANEL = 64
"""Columns that change the matrix behind them together."""
REST = 2048
"""Rows and columns at the end that LAPACK reduces: they nearly stay in cache."""
PARTS = 4
STRIP = 128


def reduce(A: np.ndarray, n_threads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Diagonal (n,), what is beside it (n - 1,), and factors (n - 1,) of the reflections.

    These stand in the upper triangle then, those of each column in its row, as dsytrd leaves them in A'.

    Parameters
    ----------
    A : ndarray (n, n)
        C order; the lower triangle is neither read nor written.
    n_threads : int
    """
    n = len(A)
    d, e, factors = np.empty(n), np.empty(n - 1), np.empty(n - 1)
    left, right = np.empty((2, 2 * PANEL, n))  # V over W, and W over V
    start = 0
    while n - start > REST + PANEL:
        for p in range(PANEL):
            j = start + p
            d[j], e[j], factors[j] = _reduce_column(A, j, left[:PANEL], left[PANEL:], p, n_threads)
            right[p, j + 1 :], right[PANEL + p, j + 1 :] = left[PANEL + p, j + 1 :], left[p, j + 1 :]
        start += PANEL
        _subtract(A, start, left, right, n_threads)
    tridiagonal.reduce_from(A, start, d, e, factors)
    return d, e, factors


def _reduce_column(
    A: np.ndarray, j: int, V: np.ndarray, W: np.ndarray, p: int, n_threads: int
) -> tuple[float, float, float]:
    """Reflect column j, of which V'W + W'V is still to be subtracted; row p of V and W is new, from entry j + 1 on."""
    column = A[j, j:]
    column -= V[:p, j] @ W[:p, j:]
    column -= W[:p, j] @ V[:p, j:]
    beside, _, factor = lapack.dlarfg(len(column) - 1, column[1], column[2:], overwrite_x=1)
    column[1] = beside
    v, w = V[p, j + 1 :], W[p, j + 1 :]
    v[:] = column[1:]
    v[0] = 1.0
    w[:] = _product(A[j + 1 :, j + 1 :], v, n_threads)
    before_v, before_w = V[:p, j + 1 :], W[:p, j + 1 :]
    w -= (before_w @ v) @ before_v
    w -= (before_v @ v) @ before_w
    w *= factor
    w -= (0.5 * factor * (w @ v)) * v
    return column[0], beside, factor


def _product(A: np.ndarray, x: np.ndarray, n_threads: int) -> np.ndarray:
    """A x, from the upper triangle of A, which is cut into parts of about equal size."""
    m = len(A)
    cuts = [int(m * (1.0 - np.sqrt(1.0 - i / PARTS))) // 8 * 8 for i in range(PARTS)] + [m]
    sums = np.zeros((PARTS, m))

    def task(i: int) -> None:
        tridiagonal.add_product(A, cuts[i], cuts[i + 1], x, sums[i])

    for _ in parallel.run(task, PARTS, n_threads=n_threads):
        pass
    return np.asarray(sums.sum(axis=0))


def _subtract(A: np.ndarray, start: int, left: np.ndarray, right: np.ndarray, n_threads: int) -> None:
    """The upper triangle of A from row and column ``start`` on, less left' right."""
    starts = range(start, len(A), STRIP)

    def task(i: int) -> None:
        rows = slice(starts[i], min(len(A), starts[i] + STRIP))
        A[rows, rows] -= np.triu(left[:, rows].T @ right[:, rows])
        tridiagonal.subtract_product(A[rows, rows.stop :], left[:, rows], right[:, rows.stop :])

    for _ in parallel.run(task, len(starts), n_threads=n_threads):
        pass

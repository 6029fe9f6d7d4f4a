"""Whether a large symmetric matrix is positive definite: Cholesky in float32, by own loops where they are wider."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from .._core import tiles
from ..base import parallel

__all__ = ["is_positive_definite", "room_for_triangle"]

COLUMNS = 128
"""Of a step: a multiple of the rows of a panel."""
ROWS = 384
"""Of a task."""
LEAST = 1024
"""Order from which on the steps pay."""


def room_for_triangle(n: int) -> np.ndarray:
    """An array (n, n), not set, for a matrix to factor: row by row for own loops, column by column for LAPACK, for
    which the transpose of a band of rows of its lower triangle is copied as it lies in memory."""
    return np.empty((n, n), dtype=np.float32, order="C" if _in_steps(n) else "F")


def _in_steps(n: int) -> bool:
    return tiles.panel_rows() > 0 and n >= LEAST


def is_positive_definite(S: np.ndarray, n_threads: int = 1) -> bool:
    """Whether S = L L' succeeds; S (n, n) float32, of which the lower triangle is read, and overwritten by L.

    Left-looking: a step takes what the columns before it give off the next ones, factors the square on the diagonal and
    solves for the rows below. The errors are those of sums of n terms at most (``rounding.factorisation_error``).
    """
    n, panel = len(S), tiles.panel_rows()
    if not _in_steps(n):
        return _factorise(S)
    for first in range(0, n, COLUMNS):
        last = min(n, first + COLUMNS)
        panels = None
        if last - first == COLUMNS and first:
            turned = S[first:last, :first].reshape(-1, panel, first).transpose(0, 2, 1)
            panels = np.ascontiguousarray(turned)
            tiles.subtract_products(S, first, last, first, panels)
        elif first:
            S[first:last, first:last] -= S[first:last, :first] @ S[first:last, :first].T
        if not _factorise(S[first:last, first:last]):
            return False
        _solve_below(S, first, last, panels, n_threads)
    return True


def _factorise(S: np.ndarray) -> bool:
    by_columns = S.flags.f_contiguous
    # row by row S is its transpose to LAPACK: the lower triangle is the upper one there
    A = S if by_columns else S.T
    factor, failed = lapack.spotrf(A, lower=by_columns, clean=0, overwrite_a=A.flags.f_contiguous)
    if not np.shares_memory(factor, A):
        A[...] = factor
    return failed == 0 and bool(np.isfinite(factor.diagonal()).all())


def _solve_below(S: np.ndarray, first: int, last: int, panels: np.ndarray | None, n_threads: int) -> None:
    """The rows below: what the columns before give is taken off, and L of the square divides the rest."""
    U = np.asfortranarray(S[first:last, first:last].T)

    def task(number: int) -> None:
        start = last + number * ROWS
        rows = slice(start, min(len(S), start + ROWS))
        if panels is not None:
            tiles.subtract_products(S, rows.start, rows.stop, first, panels)
        # U' X = (these rows)'
        S[rows, first:last] = blas.strsm(1.0, U, S[rows, first:last].T, trans_a=1).T

    parallel.each(task, -(-(len(S) - last) // ROWS), n_threads=n_threads)

"""The largest eigenvalues of a matrix in memory, and their vectors, from LAPACK."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from ..base import parallel

__all__ = ["largest_eigenpairs", "takes_all"]

QUICK = 1000
"""Order of a matrix below which LAPACK takes a tenth of a second at most, so that it needs no thread of its own."""


def takes_all(n: int, c: int) -> bool:
    """Whether ``largest_eigenpairs`` computes all n: bisection and inverse iteration for more than a third of them take
    longer (twice as long for two thirds)."""
    return 3 * c > n


def largest_eigenpairs(A: np.ndarray, c: int | None) -> tuple[np.ndarray, np.ndarray]:
    """LAPACK's c largest eigenvalues of a symmetric matrix, descending, and their vectors as columns.

    Parameters
    ----------
    A : ndarray (n, n)
        Both triangles are read, and overwritten.
    c : int or None
        None: all of them.
    """
    n = len(A)
    A = A.T if A.flags.c_contiguous else A  # the same matrix, in the order in which LAPACK needs no copy

    def eigh(A: np.ndarray, **options: Any) -> Any:
        call = partial(scipy.linalg.eigh, A, **options, overwrite_a=True, check_finite=False)
        return call() if n < QUICK else parallel.interruptible(parallel.with_all_threads(call))

    if c is not None and not takes_all(n, c):
        diagonal = A.diagonal().copy()
        try:
            values, vectors = eigh(A, subset_by_index=[n - c, n - 1], driver="evr")
        except np.linalg.LinAlgError:
            values = np.empty(0)
        if len(values) == c:
            return values[::-1], vectors[:, ::-1]
        # asked for a few of many equal eigenvalues (a matrix near the identity), bisection returns fewer, or none;
        # the upper triangle is as it was
        A[np.diag_indices(n)] = diagonal
    values, vectors = eigh(A, lower=False)
    kept = slice(None, -(n if c is None else min(c, n)) - 1, -1)
    return values[kept], vectors[:, kept]

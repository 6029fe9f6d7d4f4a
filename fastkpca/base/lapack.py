"""The largest eigenvalues of a matrix in memory, and their vectors, from LAPACK."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from . import parallel

QUICK = 500
"""Order of a matrix whose eigenproblem takes 50 ms at most, by LAPACK on one thread: it needs no thread of its own, and
many such can be solved. Divide and conquer is then the fastest for all pairs, and its workspace is small."""


def takes_all(n: int, c: int) -> bool:
    """True if ``largest_eigenpairs`` computes all n: bisection for each of so many takes as long."""
    return (6 if n <= QUICK else 2) * c > n


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

    def eigh(**options: Any) -> tuple[np.ndarray, np.ndarray]:
        call = partial(scipy.linalg.eigh, A, overwrite_a=True, check_finite=False, **options)
        return call() if n <= QUICK else parallel.interruptible(parallel.with_all_threads(call))

    if c is not None and not takes_all(n, c):
        diagonal = A.diagonal().copy()
        values, vectors = eigh(driver="evr", subset_by_index=(n - c, n - 1))
        if len(values) == c:
            return values[::-1], vectors[:, ::-1]
        A[np.diag_indices(n)] = diagonal  # bisection finds fewer where all are equal; the upper triangle is as it was
    # scipy 1.11 gives evd too little memory for order 1
    values, vectors = eigh(driver="evd" if 1 < n <= QUICK else "evr", lower=False)
    kept = slice(None, -(n if c is None else min(c, n)) - 1, -1)
    return values[kept], vectors[:, kept]

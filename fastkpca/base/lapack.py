"""The largest eigenvalues of a matrix in memory, and their vectors, from LAPACK."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dnrm2

from . import parallel

QUICK = 500
"""Order of a matrix whose eigenproblem takes 50 ms at most, by LAPACK on one thread: it needs no thread of its own, and
many such can be solved. Divide and conquer is then the fastest for all pairs, and its workspace is small."""

NEARLY_EQUAL = 0.75
"""Fraction of |A|_F^2 in n s^2, for the mean s of the diagonal, from which on the eigenvalues of A - s I are computed:
their size is at most half of that of A. Bisection finds none among eigenvalues that are equal but for their last
digits (of kernel matrices near the identity), and all pairs take 3 times as long (``special_cases.py equal``)."""


def takes_all(n: int, c: int) -> bool:
    """True if ``largest_eigenpairs`` computes all n eigenpairs: bisection for c of them would take as long."""
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
        shift = _common_value(A, diagonal) or 0.0
        A[np.diag_indices(n)] -= shift
        values, vectors = eigh(driver="evr", subset_by_index=(n - c, n - 1))
        if len(values) == c:
            return values[::-1] + shift, vectors[:, ::-1]
        A[np.diag_indices(n)] = diagonal  # bisection finds fewer where all are equal; the upper triangle is as it was
    # scipy 1.11 gives evd too little memory for order 1
    values, vectors = eigh(driver="evd" if 1 < n <= QUICK else "evr", lower=False)
    kept = slice(None, -(n if c is None else min(c, n)) - 1, -1)
    return values[kept], vectors[:, kept]


def _common_value(A: np.ndarray, diagonal: np.ndarray) -> float | None:
    """Mean of the eigenvalues of A where they are nearly equal; else None."""
    n = len(A)
    mean = float((diagonal / n).sum())
    norm = dnrm2(A.ravel(order="K"))  # scaled: no overflow
    return mean if abs(mean) * np.sqrt(n) > np.sqrt(NEARLY_EQUAL) * norm else None

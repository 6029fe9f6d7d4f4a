"""The largest eigenvalues of a matrix in memory, and their vectors, from LAPACK."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from . import parallel

__all__ = ["largest_eigenpairs", "takes_all"]

QUICK = 1000
"""Order of a matrix below which LAPACK takes a tenth of a second at most, so that it needs no thread of its own."""


def takes_all(n: int, c: int) -> bool:
    """Whether ``largest_eigenpairs`` computes all n: to bisect for more than a quarter of them takes as long."""
    return 4 * c > n


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

    def eigh(**options: Any) -> Any:
        call = partial(scipy.linalg.eigh, A, **options, overwrite_a=True, check_finite=False)
        return call() if n < QUICK else parallel.interruptible(parallel.with_all_threads(call))

    if c is not None and not takes_all(n, c):
        diagonal = A.diagonal().copy()
        with suppress(np.linalg.LinAlgError):
            values, vectors = eigh(lower=True, driver="evx", subset_by_index=(n - c, n - 1))
            if len(values) == c:  # of equal ones, bisection may lose some
                return values[::-1], vectors[:, ::-1]
        A[np.diag_indices(n)] = diagonal  # the upper triangle is as it was
    values, vectors = eigh(lower=False)
    kept = slice(None, -(n if c is None else min(c, n)) - 1, -1)
    return values[kept], vectors[:, kept]

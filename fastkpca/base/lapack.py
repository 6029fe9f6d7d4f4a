"""The largest eigenvalues of a matrix in memory, and their vectors, from LAPACK."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from . import parallel

QUICK = 500
"""Order of a matrix whose eigenproblem takes 50 ms at most, by LAPACK on one thread: it needs no thread of its own, and
many such can be solved."""
REDUCED = 16
"""Columns that LAPACK reduces to tridiagonal form before the others hear of it, in place of its own 32: less time for
50 to 2500 rows, on one thread (``small.py``)."""


def takes_all(n: int, c: int) -> bool:
    """True if ``largest_eigenpairs`` computes all n: inverse iteration for more than half of them takes as long."""
    return 2 * c > n


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

    def done(call: Callable[[], Any]) -> Any:
        return call() if n <= QUICK else parallel.interruptible(parallel.with_all_threads(call))

    def eigh(A: np.ndarray, **options: Any) -> Any:
        return done(partial(scipy.linalg.eigh, A, **options, overwrite_a=True, check_finite=False))

    if c is not None and not takes_all(n, c):
        diagonal = A.diagonal().copy()
        try:
            values, vectors = done(partial(_by_inverse_iteration, A, c))
            return values[::-1], vectors[:, ::-1]
        except np.linalg.LinAlgError:  # the upper triangle is as it was
            A[np.diag_indices(n)] = diagonal
    values, vectors = eigh(A, lower=False)
    kept = slice(None, -(n if c is None else min(c, n)) - 1, -1)
    return values[kept], vectors[:, kept]


def _by_inverse_iteration(A: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    """The c largest, ascending: all eigenvalues by the QL iteration, then so many vectors.

    Overwrites the lower part. LAPACK's own driver for a few eigenvalues bisects for each: it is as fast for a tenth of
    them, and takes twice as long for half.
    """
    n = len(A)
    reflectors, d, e, tau, _ = lapack.dsytrd(A, lower=1, lwork=REDUCED * n, overwrite_a=1)
    # inverse iteration alone of all these does not scale: of numbers from 1e150 on, and of zeros, it makes NaN
    size = max(np.abs(d).max(), np.abs(e).max())
    if not 0.0 < size < np.inf:
        raise np.linalg.LinAlgError("inverse iteration does not know a matrix of zeros, or one that overflows")
    exponent = -int(np.frexp(size)[1])
    d, e = np.ldexp(d, exponent), np.ldexp(e, exponent)
    values, failed = lapack.dsterf(d, e)
    if failed:
        raise np.linalg.LinAlgError("the QL iteration did not converge")
    values = values[n - c :]
    vectors, failed = lapack.dstein(d, e, values, np.ones(n, dtype=np.intc), np.full(n, n, dtype=np.intc))
    if failed:
        raise np.linalg.LinAlgError("inverse iteration did not converge")
    # the reflections leave the first row as it is, and start one row below the diagonal; LAPACK skips the view's last
    below = reflectors.ravel(order="K")[1 : n * (n - 1) + 1].reshape(n, n - 1, order="F")
    strip = min(c, parallel.tile_rows(n))  # with two copies of them
    for j in range(0, c, strip):
        vectors[1:, j : j + strip] = lapack.dormqr("L", "N", below, tau, vectors[1:, j : j + strip], 64 * strip)[0]
    return np.ldexp(values, -exponent), vectors

# cython: language_level=3
"""A symmetric matrix that is held whole: its sums, its centred copy in float32, its eigenvalues, signs of vectors."""

import numpy as np

from libc.math cimport fabs
from scipy.linalg.cython_lapack cimport dsyevd


cdef extern from "symmetric_loops.h" nogil:
    double fk_row_sums(Py_ssize_t, const double *, double *)
    void fk_centre_single(Py_ssize_t, const double *, double, const float *, float *)


cdef Py_ssize_t order_of(const double[:, ::1] K) except -1:
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"a matrix of {K.shape[0]} rows and {K.shape[1]} columns; a square one is needed")
    return K.shape[0]


def row_sums(const double[:, ::1] K):
    """(sums of the rows, sum of all squares); squares are added up row by row, in sixteen sums each."""
    cdef Py_ssize_t n = order_of(K)
    cdef double squares = 0.0
    sums_array = np.empty(n)
    cdef double[::1] sums = sums_array
    if n:
        with nogil:
            squares = fk_row_sums(n, &K[0, 0], &sums[0])
    return sums_array, squares


def centre_single(const double[:, ::1] K, double scale, const float[::1] h):
    """scale K - h 1' - 1 h' in float32, (n, n): the product in float64, then rounded, and each difference again."""
    cdef Py_ssize_t n = order_of(K)
    if h.shape[0] != n:
        raise ValueError(f"{h.shape[0]} numbers for a matrix of {n} rows")
    B_array = np.empty((n, n), dtype=np.float32)
    cdef float[:, ::1] B = B_array
    if n:
        with nogil:
            fk_centre_single(n, &K[0, 0], scale, &h[0], &B[0, 0])
    return B_array


def eigenvalues(A):
    """All of a symmetric matrix (n, n), ascending, by LAPACK.

    Other threads run meanwhile: numpy keeps them waiting for fewer than 500 eigenvalues, scipy always.
    """
    cdef double[::1, :] copy = np.array(A, dtype=np.float64, order="F")
    values_array = np.empty(len(copy))
    cdef double[::1] values = values_array
    cdef int n = <int>len(copy), integers = 1, length = 1 + n * (2 + 64), info = 0, integer = 0
    if n == 0:
        return values_array
    cdef double[::1] work = np.empty(length)
    with nogil:
        dsyevd(b"N", b"L", &n, &copy[0, 0], &n, &values[0], &work[0], &length, &integer, &integers, &info)
    if info != 0:
        raise np.linalg.LinAlgError("the QL iteration did not converge")
    return values_array


def signs(const double[:, :] V):
    """(k,): those that make the largest |number| of each column of V (n, k) positive; of near-ties, the first counts.

    1 for a column of zeros, and for one that is not finite.
    """
    cdef Py_ssize_t i, j
    cdef double largest
    signs_array = np.ones(V.shape[1])
    cdef double[::1] sign = signs_array
    with nogil:
        for j in range(V.shape[1]):
            largest = 0.0
            for i in range(V.shape[0]):
                largest = max(largest, fabs(V[i, j]))
            for i in range(V.shape[0]):
                if fabs(V[i, j]) >= (1.0 - 1e-6) * largest:
                    if V[i, j] < 0.0:
                        sign[j] = -1.0
                    break
    return signs_array

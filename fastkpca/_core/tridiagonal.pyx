# cython: language_level=3
"""Steps that reduce a symmetric matrix to tridiagonal form, and the largest eigenvalues of such a matrix, by bisection.

Several eigenvalues are bisected side by side. The pivots of T - x I (Sturm's sequence) say how many eigenvalues lie below x. Each takes a division that waits for the
one before; those for other x do not, and fill the time. A count is that of a matrix whose entries differ by a few units
of roundoff (W. Kahan, 1966).
"""

import numpy as np

from libc.math cimport fabs
from scipy.linalg.cython_blas cimport dgemm
from scipy.linalg.cython_lapack cimport dsytrd


cdef extern from "product_ops.h" nogil:
    ctypedef struct fk_product_ops:
        const char *name
        void (*symmetric)(Py_ssize_t, const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double *,
                          double *) noexcept nogil

    const fk_product_ops *fk_product_select(const char *name)


cdef const fk_product_ops *ops = fk_product_select(NULL)


cdef enum:
    LANES = 12  # eigenvalues side by side
    HALVINGS = 54  # of an interval around all eigenvalues: to the unit roundoff of the largest

cdef double LEAST_SQUARE = 1e-290  # a pivot that is zero then makes the next one infinite, and none is NaN


cdef void halve(
    const double[::1] d, const double[::1] squares, const double *wanted, double *low, double *high
) noexcept nogil:
    """Halve each [low, high]: more than ``wanted`` eigenvalues lie below its upper end, no more below its lower one."""
    cdef double middle[LANES]
    cdef double pivot[LANES]
    cdef double below[LANES]
    cdef Py_ssize_t i, j
    for j in range(LANES):
        middle[j] = 0.5 * (low[j] + high[j])
        pivot[j] = 1.0
        below[j] = 0.0
    for i in range(d.shape[0]):
        for j in range(LANES):
            pivot[j] = d[i] - middle[j] - squares[i] / pivot[j]
            below[j] += 1.0 if pivot[j] < 0.0 else 0.0
    for j in range(LANES):
        if below[j] > wanted[j]:
            high[j] = middle[j]
        else:
            low[j] = middle[j]


def largest_eigenvalues(const double[::1] d, const double[::1] e, Py_ssize_t c):
    """The c largest, ascending, off by a few units of roundoff of the largest |entry|, which should be about 1.

    ``d`` (n,) is the diagonal, ``e`` (n - 1,) what is beside it.
    """
    cdef Py_ssize_t n = d.shape[0], block, first, j
    values_array = np.empty(c)
    cdef double[::1] values = values_array, squares = np.zeros(n)
    cdef double low[LANES]
    cdef double high[LANES]
    cdef double wanted[LANES]
    beside = np.zeros(n + 1)
    beside[1:n] = e
    np.maximum(np.square(beside[:n]), LEAST_SQUARE, out=np.asarray(squares))
    reach = np.abs(beside[:n]) + np.abs(beside[1:])  # Gershgorin's circles
    cdef double least = (d - reach).min(), largest = (d + reach).max(), room = 1e-15 * max(fabs(least), fabs(largest))
    with nogil:
        for block in range((c + LANES - 1) // LANES):
            first = block * LANES
            for j in range(LANES):
                wanted[j] = n - c + min(first + j, c - 1)
                low[j], high[j] = least - room, largest + room
            for _ in range(HALVINGS):
                halve(d, squares, wanted, low, high)
            for j in range(min(<Py_ssize_t>LANES, c - first)):
                values[first + j] = 0.5 * (low[j] + high[j])
    return values_array


def add_product(const double[:, :] A, Py_ssize_t start, Py_ssize_t stop, const double[::1] x, double[::1] out):
    """out += what rows [start, stop) of the upper triangle of a symmetric A (n, n) give to A x.

    ``A`` may be a corner of a larger array in C order.
    """
    cdef Py_ssize_t n = A.shape[0]
    if not 0 <= start <= stop <= n == A.shape[1] == x.shape[0] == out.shape[0] or A.strides[1] != sizeof(double):
        raise ValueError("A is no square corner of an array in C order, or x and out have other lengths")
    with nogil:
        ops.symmetric(n, &A[0, 0], A.strides[0] // <Py_ssize_t>sizeof(double), start, stop, &x[0], &out[0])


def reduce_from(double[:, ::1] A, Py_ssize_t start, double[::1] d, double[::1] e, double[::1] factors):
    """LAPACK's dsytrd of the rows and columns of A' from ``start`` on, in place; the rest of A is left alone."""
    cdef int n = <int>(A.shape[0] - start), stride = <int>A.shape[1], size = 64 * n, failed = 0
    if not (n > 1 and A.shape[1] == A.shape[0] == d.shape[0] == e.shape[0] + 1 == factors.shape[0] + 1 < 2**30 // 64):
        raise ValueError("A is not square, or d, e and factors have other lengths")
    cdef double[::1] work = np.empty(size)
    with nogil:
        dsytrd(b"L", &n, &A[start, start], &stride, &d[start], &e[start], &factors[start], &work[0], &size, &failed)


def subtract_product(double[:, :] A, const double[:, :] left, const double[:, :] right):
    """A (m, n) -= left' right, in place, for left (k, m) and right (k, n); each a part of an array in C order."""
    cdef int m = <int>A.shape[0], n = <int>A.shape[1], k = <int>left.shape[0]
    cdef int of_A = <int>(A.strides[0] // 8), of_left = <int>(left.strides[0] // 8)
    cdef int of_right = <int>(right.strides[0] // 8)
    cdef double minus = -1.0, unit = 1.0
    if not (left.shape[1] == m and right.shape[1] == n and right.shape[0] == k):
        raise ValueError("left and right do not have the shapes of this product")
    if not A.strides[1] == left.strides[1] == right.strides[1] == sizeof(double):
        raise ValueError("A, left and right are parts of arrays in C order")
    if m == 0 or n == 0 or k == 0:
        return
    with nogil:
        dgemm(b"N", b"T", &n, &m, &k, &minus, <double *>&right[0, 0], &of_right, <double *>&left[0, 0], &of_left, &unit,
              &A[0, 0], &of_A)

# cython: language_level=3
"""The largest eigenvalues of a symmetric tridiagonal matrix, by bisection, several side by side.

The pivots of T - x I (Sturm's sequence) say how many eigenvalues lie below x. Each takes a division that waits for the
one before; those for other x do not, and fill the time. A count is that of a matrix whose entries differ by a few units
of roundoff (W. Kahan, 1966).
"""

import numpy as np

from libc.math cimport fabs

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

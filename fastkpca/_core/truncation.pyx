# cython: language_level=3
"""Error bounds of the truncated Gaussian expansion, and the order p chosen from them.

Lengths are in units of sigma and measured from the centre; the expansion keeps the terms m < p of
k(x, y) = exp(-|x|^2/2) exp(-|y|^2/2) sum_m (x.y)^m / m!. With P(p, t) the regularised lower incomplete gamma function
(the probability that a Poisson variable of mean t is at least p):

- pairwise: |error| <= exp(-(a-b)^2/2) P(p, a b), a = |x|, b = |y|, attained when x and y are parallel;
- on a ball of radius R: P(p, R^2), attained for x = y on the rim;
- over data: the error is positive semidefinite, its trace is sum_i P(p, |x_i|^2).

SciPy's gammainc is nan at (0, 0) and errs by up to 4e-13 of the value: p = 0 is treated apart, and every bound is
raised by 1e-11 of itself.
"""

from scipy.special.cython_special cimport gammainc

import numpy as np

cdef double SAFETY = 1.0 + 1e-11
cdef double LEAST = 5e-324  # a positive bound that underflows is not zero


cdef double poisson_tail(Py_ssize_t p, double t) noexcept nogil:
    cdef double value
    if p <= 0:
        return 1.0
    if t <= 0.0:
        return 0.0
    value = SAFETY * gammainc(<double>p, t)
    return min(max(value, LEAST), 1.0)


def ball_bound(double radius, Py_ssize_t p):
    """Largest error over pairs in a ball of this radius: P(p, R^2), exactly."""
    return poisson_tail(p, radius * radius)


def residual(const double[::1] squares, Py_ssize_t p):
    """P(p, |x_i|^2) for each squared norm: the diagonal of what the truncation leaves out."""
    out_array = np.empty(squares.shape[0])
    cdef double[::1] out = out_array
    cdef Py_ssize_t i
    with nogil:
        for i in range(squares.shape[0]):
            out[i] = poisson_tail(p, squares[i])
    return out_array


cdef double mean_residual(const double[::1] squares, Py_ssize_t p) noexcept nogil:
    cdef double s = 0.0
    cdef Py_ssize_t i
    for i in range(squares.shape[0]):
        s += poisson_tail(p, squares[i])
    return s / squares.shape[0]


def order_for_ball(double radius, double tol, Py_ssize_t most):
    """Smallest p <= most with P(p, R^2) <= tol, or -1."""
    return order_for_trace(np.array([radius * radius]), tol, most)[0]


def order_for_trace(const double[::1] squares, double tol, Py_ssize_t most, Py_ssize_t least=0):
    """(p, mean_i P(p, |x_i|^2)) of the smallest p <= most where this is at most tol; (-1, that of most) where none is.

    No smaller p than ``least`` is looked at: where that will do it is found at once.
    """
    cdef Py_ssize_t low = least, high = least if least > 0 else most, middle, step = 1
    cdef double left, of_middle
    if squares.shape[0] == 0:
        return least, 0.0
    with nogil:
        left = mean_residual(squares, high)
        while left > tol and high < most:
            low = high + 1
            high = min(high + step, most)
            step *= 2
            left = mean_residual(squares, high)
        if left > tol:
            low = high = -1
        while low < high:  # P falls with p
            middle = (low + high) // 2
            of_middle = mean_residual(squares, middle)
            if of_middle <= tol:
                high, left = middle, of_middle
            else:
                low = middle + 1
    return high, left


def small_ball(const double[:, ::1] rows, Py_ssize_t steps):
    """Centre of a small ball around these rows: ``steps`` towards the farthest row, each by 1 / (number + 1).

    After M. Badoiu and K. Clarkson, 2003.
    """
    centre_array = np.array(rows, dtype=np.float64).mean(axis=0)
    cdef double[::1] centre = centre_array
    cdef Py_ssize_t i, j, step, farthest = 0
    cdef double square, largest, difference
    with nogil:
        for step in range(1, steps + 1):
            largest = -1.0
            for i in range(rows.shape[0]):
                square = 0.0
                for j in range(rows.shape[1]):
                    difference = rows[i, j] - centre[j]
                    square += difference * difference
                if square > largest:
                    largest, farthest = square, i
            for j in range(rows.shape[1]):
                centre[j] += (rows[farthest, j] - centre[j]) / (step + 1)
    return centre_array

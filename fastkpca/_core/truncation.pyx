# cython: language_level=3
"""Error bounds of the truncated Gaussian expansion, and the order p chosen from them.

Lengths are in units of sigma and measured from the centre; the expansion keeps the terms m < p of
k(x, y) = exp(-|x|^2/2) exp(-|y|^2/2) sum_m (x.y)^m / m!. With P(p, t) the regularised lower incomplete gamma function
(the probability that a Poisson variable of mean t is at least p):

- pairwise: |error| <= exp(-(a-b)^2/2) P(p, a b), a = |x|, b = |y|, attained when x and y are parallel;
- on a ball of radius R: P(p, R^2), attained for x = y on the rim;
- over data: the error is positive semidefinite, its trace is sum_i P(p, |x_i|^2).

SciPy's gammainc is nan at (0, 0) and errs by up to 4e-13 of the value: p = 0 is treated apart, and every bound is
raised by 1e-11 of itself. For t <= p / 2, where a bound is of use, P(p, t) = exp(-t) t^p / p! (1 + t / (p + 1) (1 + t /
(p + 2) (1 + ...))) takes a third of its time: all terms are positive, so it errs by (3 p + 3 K + 10) u for K of them,
7e-13 for p = 2000, and what follows them is below u.
"""

from scipy.special.cython_special cimport gammainc

import numpy as np

cdef enum:
    LANES = 16  # rows side by side: each step of the series is a vector operation
    MOST_TERMS = 64

cdef double SAFETY = 1.0 + 1e-11
cdef double LEAST = 2.3e-308  # a positive bound that underflows is no smaller than what it bounds
cdef double LEAST_ACCURATE = 1e-290  # below it t^p / p! may have lost digits
cdef double LARGEST_ARGUMENT = 600.0  # exp(-t) and t^j / j! stay in the range
cdef double[::1] RECIPROCALS = 1.0 / np.maximum(np.arange(2000 + MOST_TERMS + 1.0), 1.0)


cdef double poisson_tail(Py_ssize_t p, double t) noexcept nogil:
    cdef double value
    if p <= 0:
        return 1.0
    if t <= 0.0:
        return 0.0
    value = SAFETY * gammainc(<double>p, t)
    return min(max(value, LEAST), 1.0)


cdef Py_ssize_t terms_of(Py_ssize_t p) noexcept nogil:
    """Terms of the series, for t <= p / 2, beyond which less than u is left; 0 where there is no table for them."""
    cdef Py_ssize_t k = 0
    cdef double term = 1.0
    if p < 1 or p + MOST_TERMS >= RECIPROCALS.shape[0]:
        return 0
    while term > 5e-17 and k < MOST_TERMS:
        k += 1
        term *= 0.5 * p / (p + k)
    return k


cdef double sum_of_tails(
    const double[::1] squares, const double[::1] exponentials, Py_ssize_t p, double *out
) noexcept nogil:
    """The sum of P(p, t_i) over all t = squares, whose exp(-t) are given; each into ``out`` unless that is NULL."""
    cdef Py_ssize_t block, i, j, k, count, n = squares.shape[0], terms = terms_of(p)
    cdef double t[LANES]
    cdef double power[LANES]
    cdef double series[LANES]
    cdef double largest = min(0.5 * p, LARGEST_ARGUMENT), total = 0.0, value
    for block in range((n + LANES - 1) // LANES):
        i = block * LANES
        count = min(<Py_ssize_t>LANES, n - i)
        for j in range(LANES):
            t[j] = squares[i + j] if j < count else 0.0
            power[j] = exponentials[i + j] if j < count else 0.0
            series[j] = 1.0
        for k in range(terms, 0, -1):
            for j in range(LANES):
                series[j] = 1.0 + t[j] * RECIPROCALS[p + k] * series[j]
        for k in range(1, p + 1 if terms > 0 else 1):
            for j in range(LANES):
                power[j] *= t[j] * RECIPROCALS[k]
        for j in range(count):
            value = SAFETY * power[j] * series[j]
            if terms == 0 or not t[j] <= largest or not value >= LEAST_ACCURATE:
                value = poisson_tail(p, t[j])
            total += value
            if out != NULL:
                out[i + j] = value
    return total


def _exponentials_of(squares):
    """exp(-t) for each square that the series takes; another number, not zero, for each that it does not."""
    return np.exp(np.maximum(-squares, -LARGEST_ARGUMENT))


def ball_bound(double radius, Py_ssize_t p):
    """Largest error over pairs in a ball of this radius: P(p, R^2), exactly."""
    return poisson_tail(p, radius * radius)


def residual(const double[::1] squares, Py_ssize_t p):
    """P(p, |x_i|^2) for each squared norm: the diagonal of the residual of the truncation."""
    out_array = np.empty(squares.shape[0])
    cdef double[::1] out = out_array
    cdef const double[::1] exponentials = _exponentials_of(np.asarray(squares))
    if squares.shape[0]:
        with nogil:
            sum_of_tails(squares, exponentials, p, &out[0])
    return out_array


def order_for_ball(double radius, double tol, Py_ssize_t most):
    """Smallest p <= most with P(p, R^2) <= tol, or -1."""
    return order_for_trace(np.array([radius * radius]), tol, most)[0]


def order_for_trace(const double[::1] squares, double tol, Py_ssize_t most, Py_ssize_t least=0):
    """(p, mean_i P(p, |x_i|^2)) of the smallest p <= most where this is at most tol; (-1, that of most) where none is.

    p starts at ``least``: where that is enough it is found at once.
    """
    cdef Py_ssize_t low = least, high = least if least > 0 else most, middle, step = 1
    cdef double left, of_middle, n = squares.shape[0]
    if squares.shape[0] == 0:
        return least, 0.0
    cdef const double[::1] exponentials = _exponentials_of(np.asarray(squares))
    with nogil:
        left = sum_of_tails(squares, exponentials, high, NULL) / n
        while left > tol and high < most:
            low = high + 1
            high = min(high + step, most)
            step *= 2
            left = sum_of_tails(squares, exponentials, high, NULL) / n
        if left > tol:
            low = high = -1
        while low < high:  # P falls with p
            middle = (low + high) // 2
            of_middle = sum_of_tails(squares, exponentials, middle, NULL) / n
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

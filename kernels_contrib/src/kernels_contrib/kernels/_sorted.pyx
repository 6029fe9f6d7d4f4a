# cython: language_level=3
"""Sums of exponentials times polynomials over sorted points on a line, by one sweep.

With t the distance, sum_j u_j sum_m C_m t_ij^m / m! exp(-t_ij) over the points to one side follows from the moments
Z_l = sum_j u_j (-s_j)^l / l! exp(s_j) about an anchor (s_j = position after the anchor), which move to the next anchor
at distance D as Z_m = exp(-D) sum_l D^(m-l) / (m-l)! Z_l: decays only. Points within a window share an anchor and their
moments are added in doubled precision; so errors do not add up along a window, and from window to window they decay.
"""

from libc.math cimport exp
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np


cdef enum:
    MOST = 16

TERMS = MOST
"""Moments that a sweep has room for."""


def windows(const double[::1] points, double width):
    """First points of the windows of a sorted array: each at least ``width`` after the one before it."""
    cdef Py_ssize_t i, n = points.shape[0], count = 0
    anchors = np.empty(n)
    number = np.empty(n, dtype=np.int64)
    cdef double[::1] a = anchors
    cdef int64_t[::1] w = number
    for i in range(n):
        if count == 0 or points[i] - a[count - 1] > width:
            a[count] = points[i]
            count += 1
        w[i] = count - 1
    return anchors[:count].copy(), number


cdef void move(double *Z, double *low, double D, int p, Py_ssize_t k) noexcept nogil:
    """The moments about an anchor D further on; the doubled precision is folded in."""
    cdef double power[MOST]
    cdef double decay = exp(-D), z
    cdef int m, order
    cdef Py_ssize_t c
    if decay == 0.0:
        memset(Z, 0, (p + 1) * k * sizeof(double))
        memset(low, 0, (p + 1) * k * sizeof(double))
        return
    power[0] = decay
    for m in range(1, p + 1):
        power[m] = power[m - 1] * D / m
    for m in range(p, -1, -1):  # from the highest: those below are still the old ones
        for c in range(k):
            z = 0.0
            for order in range(m + 1):
                z = z + power[m - order] * (Z[order * k + c] + low[order * k + c])
            Z[m * k + c] = z
            low[m * k + c] = 0.0


def sweep(
    const double[::1] C, double scale, const double[::1] anchors,
    const double[::1] xs, const double[::1] x_at, const double[::1] x_decay, const int64_t[::1] x_window,
    const double[::1] ys, const double[::1] y_at, const double[::1] y_grow, const int64_t[::1] y_window,
    bint backward, const double[:, ::1] U, double[:, ::1] V,
):
    """V = the sums over sources at or before each target (backward: after it).

    Targets and sources are sorted; ``at`` are their positions after their window's anchor (backward: before its end) in
    units of the length, ``decay`` = exp(-at) and ``grow`` = exp(at).
    """
    cdef int p = <int> C.shape[0] - 1
    cdef int order, m
    cdef Py_ssize_t n = xs.shape[0], ns = ys.shape[0], k = U.shape[1], q, i, j, step, c
    cdef int64_t window = -1, target
    cdef double tau, s, value, x, total, b, D
    cdef double weight[MOST]
    cdef double *Z
    cdef double *low
    if p >= MOST:
        raise ValueError(f"a polynomial of degree {p}; at most {MOST - 1}")
    if n == 0 or k == 0:
        return
    Z = <double *> malloc(2 * (p + 1) * k * sizeof(double))
    if Z == NULL:
        raise MemoryError("no memory for the moments of a sweep")
    low = Z + (p + 1) * k
    memset(Z, 0, 2 * (p + 1) * k * sizeof(double))
    j = ns - 1 if backward else 0
    step = -1 if backward else 1
    with nogil:
        for q in range(n):
            i = n - 1 - q if backward else q
            while (j >= 0 and ys[j] > xs[i]) if backward else (j < ns and ys[j] <= xs[i]):
                target = y_window[j]
                if target != window:
                    if window >= 0:
                        D = anchors[target] - anchors[window]
                        move(Z, low, scale * (D if D > 0.0 else -D), p, k)
                    window = target
                s = -y_at[j]
                value = y_grow[j]
                for order in range(p + 1):
                    for c in range(k):
                        x = value * U[j, c]
                        total = Z[order * k + c] + x  # two-sum (Knuth)
                        b = total - Z[order * k + c]
                        low[order * k + c] += (Z[order * k + c] - (total - b)) + (x - b)
                        Z[order * k + c] = total
                    value = value * s / (order + 1)
                j += step
            target = x_window[i]
            if target != window:
                if window >= 0:
                    D = anchors[target] - anchors[window]
                    move(Z, low, scale * (D if D > 0.0 else -D), p, k)
                window = target
            tau = x_at[i]
            for order in range(p + 1):
                value = C[p]
                for m in range(p - 1, order - 1, -1):
                    value = value * tau / (m - order + 1) + C[m]
                weight[order] = value * x_decay[i]
            for c in range(k):
                value = 0.0
                for order in range(p + 1):
                    value = value + weight[order] * (Z[order * k + c] + low[order * k + c])
                V[i, c] = value
    free(Z)

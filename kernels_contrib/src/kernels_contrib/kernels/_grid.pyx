# cython: language_level=3
"""Spreading numbers onto a regular grid, and reading them back, by Lagrange interpolation on q^d corners."""

from libc.stdint cimport int64_t


cdef enum:
    MOST = 16


cdef inline void lagrange(double x, Py_ssize_t q, const double *scale, double *out) noexcept nogil:
    """l_j(x) for nodes j - (q / 2 - 1): products of the distances before and after j, times scale_j."""
    cdef Py_ssize_t j
    cdef double left = 1.0, right = 1.0, first = q // 2 - 1.0
    for j in range(q):
        out[j] = left * scale[j]
        left = left * (x - (j - first))
    for j in range(q - 1, -1, -1):
        out[j] = out[j] * right
        right = right * (x - (j - first))


cdef void strides_of(tuple points, Py_ssize_t d, Py_ssize_t *strides):
    """Of three axes, the missing ones first."""
    strides[0], strides[1] = 0, 0
    if d >= 2:
        strides[1] = points[d - 1]
    if d == 3:
        strides[0] = strides[1] * <Py_ssize_t> points[1]


def spread(double[::1] grid, tuple points, const double[::1] scale, const int64_t[::1] corner,
           const double[:, ::1] within, const double[::1] u):
    """grid += the stencils of u; corner is the number of the first corner of each, within its place in the cell."""
    cdef Py_ssize_t n = u.shape[0], d = within.shape[1], q = scale.shape[0], i, a, b, c
    cdef Py_ssize_t first = q if d == 3 else 1, second = q if d >= 2 else 1
    cdef Py_ssize_t strides[2]
    cdef double stencil[3][MOST]
    cdef double x, y
    cdef double *row
    if q > MOST:
        raise ValueError(f"{q} points; at most {MOST}")
    strides_of(points, d, strides)
    stencil[0][0], stencil[1][0] = 1.0, 1.0
    with nogil:
        for i in range(n):
            for a in range(d):
                lagrange(within[i, a], q, &scale[0], stencil[3 - d + a])
            for a in range(first):
                x = u[i] * stencil[0][a]
                for b in range(second):
                    y = x * stencil[1][b]
                    row = &grid[corner[i] + a * strides[0] + b * strides[1]]
                    for c in range(q):
                        row[c] += y * stencil[2][c]


def gather(const double[::1] grid, tuple points, const double[::1] scale, const int64_t[::1] corner,
           const double[:, ::1] within, double[::1] v):
    """v = the grid's values through the stencils; as ``spread``."""
    cdef Py_ssize_t n = v.shape[0], d = within.shape[1], q = scale.shape[0], i, a, b, c
    cdef Py_ssize_t first = q if d == 3 else 1, second = q if d >= 2 else 1
    cdef Py_ssize_t strides[2]
    cdef double stencil[3][MOST]
    cdef double sums[MOST]
    cdef double y, total
    cdef const double *row
    if q > MOST:
        raise ValueError(f"{q} points; at most {MOST}")
    strides_of(points, d, strides)
    stencil[0][0], stencil[1][0] = 1.0, 1.0
    with nogil:
        for i in range(n):
            for a in range(d):
                lagrange(within[i, a], q, &scale[0], stencil[3 - d + a])
            for c in range(q):
                sums[c] = 0.0
            for a in range(first):
                for b in range(second):
                    y = stencil[0][a] * stencil[1][b]
                    row = &grid[corner[i] + a * strides[0] + b * strides[1]]
                    for c in range(q):  # element by element: no sum whose order the compiler must keep
                        sums[c] = sums[c] + y * row[c]
            total = 0.0
            for c in range(q):
                total = total + sums[c] * stencil[2][c]
            v[i] = total

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


cdef inline void stencil_at(const double *within, Py_ssize_t d, Py_ssize_t q, const double *scale,
                            double (*stencil)[MOST]) noexcept nogil:
    """Weights along three axes; those of the missing ones, which come first, are not touched."""
    cdef Py_ssize_t a
    for a in range(d):
        lagrange(within[a], q, scale, stencil[3 - d + a])


cdef int set_up(tuple points, Py_ssize_t d, Py_ssize_t q, Py_ssize_t *strides, double (*stencil)[MOST]) except -1:
    """Strides of three axes, the missing ones first, whose weight is 1."""
    if q > MOST:
        raise ValueError(f"{q} points; at most {MOST}")
    stencil[0][0], stencil[1][0] = 1.0, 1.0
    strides[0], strides[1] = 0, 0
    if d >= 2:
        strides[1] = points[d - 1]
    if d == 3:
        strides[0] = strides[1] * <Py_ssize_t> points[1]
    return 0


def spread(double[::1] grid, tuple points, const double[::1] scale, const int64_t[::1] corner,
           const double[:, ::1] within, const double[::1] u):
    """grid += the stencils of u; corner is the number of the first corner of each, within its place in the cell."""
    cdef Py_ssize_t n = u.shape[0], d = within.shape[1], q = scale.shape[0], i, a, b, c
    cdef Py_ssize_t first = q if d == 3 else 1, second = q if d >= 2 else 1
    cdef Py_ssize_t strides[2]
    cdef double stencil[3][MOST]
    cdef double x, y
    cdef double *row
    set_up(points, d, q, strides, stencil)
    with nogil:
        for i in range(n):
            stencil_at(&within[i, 0], d, q, &scale[0], stencil)
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
    set_up(points, d, q, strides, stencil)
    with nogil:
        for i in range(n):
            stencil_at(&within[i, 0], d, q, &scale[0], stencil)
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

# cython: language_level=3
"""Centred second moments of feature tiles, and their merging (Chan, Golub, LeVeque 1983).

Tiles are feature-major, (D, n). Means are (2, D), unevaluated sums of a high and a low part. The scatter matrix is
(D, D), C order, lower triangle only. Sums of products go straight into the accumulator (product_ops.c, or dsyrk with
beta = 1 where that is as fast); the GIL is released for the whole of it.
"""

import numpy as np

from scipy.linalg.cython_blas cimport dsyr, dsyrk


cdef extern from "product_ops.h" nogil:
    enum:
        FK_POINTS

    ctypedef struct fk_product_ops:
        const char *name
        int beats_blas
        void (*add_square)(Py_ssize_t, const double *, Py_ssize_t, Py_ssize_t, double *) noexcept nogil

    const fk_product_ops *fk_product_select(const char *name)


cdef enum:
    LONG = 256  # points: of fewer, what a sum in registers takes at its end counts

cdef const fk_product_ops *ops = fk_product_select(NULL)


cdef int as_int(Py_ssize_t n) except? -1:
    # cython_blas takes C int: one shim for every call from this module
    if n > 2147483647:
        raise OverflowError(f"a BLAS dimension of {n} exceeds 2**31 - 1; use smaller tiles")
    return <int>n


cdef double merge_means(double count, double[:, ::1] mean, double extra, const double[:, ::1] extra_mean,
                        double[::1] delta) noexcept nogil:
    """mean += share * (extra_mean - mean), and that difference in ``delta``; returns the weight of delta delta'."""
    cdef Py_ssize_t j
    cdef double share = extra / (count + extra), total
    if count == 0.0:  # a difference from zero would round the two parts together
        for j in range(mean.shape[1]):
            mean[0, j] = extra_mean[0, j]
            mean[1, j] = extra_mean[1, j]
        return 0.0
    for j in range(mean.shape[1]):
        # means are unevaluated sums high + low: rounded to one number, a mean of 1e6 spreads would cost 1e-10
        delta[j] = (extra_mean[0, j] - mean[0, j]) + (extra_mean[1, j] - mean[1, j])
        mean[1, j] += share * delta[j]
        total = mean[0, j] + mean[1, j]
        mean[1, j] -= total - mean[0, j]
        mean[0, j] = total
    return count * share


def update(double[:, ::1] tile, weights, double count, double[:, ::1] mean, double[:, ::1] scatter):
    """Add a tile (D, n) to (count, mean, scatter) in place; the tile is overwritten. Returns the new count."""
    cdef int D = as_int(tile.shape[0]), n = as_int(tile.shape[1]), one = 1, rest_of_n
    cdef Py_ssize_t i, j, whole
    cdef double total, s, rest, coefficient, unit = 1.0
    cdef bint weighted = weights is not None
    cdef const double[::1] w
    cdef double[::1] root
    cdef double[:, ::1] tile_mean = np.zeros((2, D))
    cdef double[::1] delta = np.empty(D)
    if n == 0:
        return count
    if weighted:
        w = np.ascontiguousarray(weights, dtype=np.float64)
        if w.shape[0] != n:
            raise ValueError(f"{w.shape[0]} weights for a tile of {n} rows")
        root = np.sqrt(w)
        total = np.sum(w)
        if total == 0.0:
            return count
    else:
        total = n
    if D == 0:
        return count + total
    with nogil:
        for j in range(D):
            s = row_sum(&tile[j, 0], &w[0] if weighted else NULL, n) / total
            for i in range(n):
                tile[j, i] -= s
            # the sum above rounds by n u |s|, which would pass into every merge: take the mean of what is left too
            rest = row_sum(&tile[j, 0], &w[0] if weighted else NULL, n) / total
            tile_mean[0, j] = s
            tile_mean[1, j] = rest
            if weighted:
                for i in range(n):
                    tile[j, i] = (tile[j, i] - rest) * root[i]
            elif rest != 0.0:
                for i in range(n):
                    tile[j, i] -= rest
        # row-major lower = column-major upper; the tile is, column-major, n x D
        whole = n - n % FK_POINTS if ops.beats_blas and n >= LONG else 0
        if whole:
            ops.add_square(whole, &tile[0, 0], n, D, &scatter[0, 0])
        rest_of_n = <int>(n - whole)
        if rest_of_n:
            dsyrk(b"U", b"T", &D, &rest_of_n, &unit, &tile[0, 0] + whole, &n, &unit, &scatter[0, 0], &D)
        coefficient = merge_means(count, mean, total, tile_mean, delta)
        if coefficient != 0.0:
            dsyr(b"U", &D, &coefficient, &delta[0], &one, &scatter[0, 0], &D)
    return count + total


cdef double row_sum(const double *row, const double *w, Py_ssize_t n) noexcept nogil:
    # eight running sums: the compiler may not reorder one, and eight also lose less to rounding
    cdef double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0
    cdef Py_ssize_t i = 0
    if w is NULL:
        while i + 8 <= n:
            s0 += row[i]
            s1 += row[i + 1]
            s2 += row[i + 2]
            s3 += row[i + 3]
            s4 += row[i + 4]
            s5 += row[i + 5]
            s6 += row[i + 6]
            s7 += row[i + 7]
            i += 8
        while i < n:
            s0 += row[i]
            i += 1
    else:
        while i < n:
            s0 += w[i] * row[i]
            i += 1
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


def merge(double count, double[:, ::1] mean, double[:, ::1] scatter,
          double extra, const double[:, ::1] extra_mean, const double[:, ::1] extra_scatter):
    """Add (extra, extra_mean, extra_scatter) to (count, mean, scatter) in place. Returns the new count."""
    cdef int D = as_int(mean.shape[1]), one = 1
    cdef Py_ssize_t i, j
    cdef double coefficient
    cdef double[::1] delta = np.empty(D)
    if extra == 0.0 or D == 0:
        return count + extra
    with nogil:
        for i in range(D):
            for j in range(i + 1):
                scatter[i, j] += extra_scatter[i, j]
        coefficient = merge_means(count, mean, extra, extra_mean, delta)
        if coefficient != 0.0:
            dsyr(b"U", &D, &coefficient, &delta[0], &one, &scatter[0, 0], &D)
    return count + extra

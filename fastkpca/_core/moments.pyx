# cython: language_level=3
"""Centred second moments of feature tiles, and their merging (Chan, Golub, LeVeque 1983).

Tiles are feature-major, (D, n). Means are (2, D), unevaluated sums of a high and a low part. The scatter matrix is
(D, D), C order, lower triangle only. Sums of products go straight into the accumulator (product_ops.c, or dsyrk with
beta = 1 where that is as fast); the GIL is released for the whole of it.
"""

import numpy as np

from .arrays import contiguous

from scipy.linalg.cython_blas cimport dsyr, dsyrk


cdef extern from "product_ops.h" nogil:
    enum:
        FK_POINTS

    ctypedef struct fk_product_ops:
        Py_ssize_t few_squares
        void (*add_square)(Py_ssize_t, const double *, Py_ssize_t, Py_ssize_t, double *) noexcept nogil
        void (*centre)(Py_ssize_t, const double *, double *, double *) noexcept nogil

    const fk_product_ops *fk_product_ops_select(const char *name)


cdef enum:
    LINE = 8  # numbers in a line of the cache
    LONG = 256  # points: of fewer, what a sum in registers takes at its end counts

cdef const fk_product_ops *ops = fk_product_ops_select(b"")


cdef int as_int(Py_ssize_t n) except? -1:
    # cython_blas takes C int: one shim for every call from this module
    if n > 2147483647:
        raise OverflowError(f"a BLAS dimension of {n} exceeds 2**31 - 1; use smaller tiles")
    return <int>n


cdef void merge_into(double count, double[:, ::1] mean, double[:, ::1] scatter,
                     double extra, const double[:, ::1] extra_mean, double[::1] delta) noexcept nogil:
    """Merge the mean of ``extra`` more rows, whose own scatter has been added, into (count, mean, scatter)."""
    cdef int D = <int>mean.shape[1], one = 1
    cdef double coefficient = merge_means(count, mean, extra, extra_mean, delta)
    if coefficient != 0.0:
        dsyr(b"U", &D, &coefficient, &delta[0], &one, &scatter[0, 0], &D)


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


def update(const double[:, ::1] tile, weights, double count, double[:, ::1] mean, double[:, ::1] scatter):
    """Add a tile (D, n) to (count, mean, scatter) in place. Returns the new count."""
    cdef int D = as_int(tile.shape[0]), n = as_int(tile.shape[1]), rest_of_n
    cdef Py_ssize_t i, j, whole
    cdef double total, s, rest, unit = 1.0
    cdef bint weighted = weights is not None
    cdef const double[::1] w
    cdef double[::1] root
    cdef double[:, ::1] tile_mean = np.zeros((2, D))
    cdef double[::1] delta = np.empty(D)
    cdef double[::1] store
    cdef double *centred
    cdef double *row
    cdef double[2] means
    cdef int length = as_int((tile.shape[1] + LINE - 1) // LINE * LINE)
    if n == 0:
        return count
    if weighted:
        w = contiguous(weights, np.float64)
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
    # every feature begins at a line of the cache: where vectors lie across two, the sums take a third longer
    store = np.empty(tile.shape[0] * length + LINE)
    centred = &store[0]
    centred += (-(<size_t>centred // sizeof(double))) % LINE
    with nogil:
        for j in range(D):
            row = centred + j * length
            if not weighted:
                ops.centre(n, &tile[j, 0], row, means)
                tile_mean[0, j] = means[0]
                tile_mean[1, j] = means[1]
                continue
            s = weighted_sum(&tile[j, 0], &w[0], n) / total
            for i in range(n):
                row[i] = tile[j, i] - s
            # once more, as without weights
            rest = weighted_sum(row, &w[0], n) / total
            tile_mean[0, j] = s
            tile_mean[1, j] = rest
            for i in range(n):
                row[i] = (row[i] - rest) * root[i]
        # row-major lower = column-major upper; what is centred is, column-major, n x D
        whole = n - n % FK_POINTS if D <= ops.few_squares and n >= LONG else 0
        if whole:
            ops.add_square(whole, centred, length, D, &scatter[0, 0])
        rest_of_n = <int>(n - whole)
        if rest_of_n:
            dsyrk(b"U", b"T", &D, &rest_of_n, &unit, centred + whole, &length, &unit, &scatter[0, 0], &D)
        merge_into(count, mean, scatter, total, tile_mean, delta)
    return count + total


cdef double weighted_sum(const double *row, const double *w, Py_ssize_t n) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(n):
        total += w[i] * row[i]
    return total


def merge(double count, double[:, ::1] mean, double[:, ::1] scatter,
          double extra, const double[:, ::1] extra_mean, const double[:, ::1] extra_scatter):
    """Add (extra, extra_mean, extra_scatter) to (count, mean, scatter) in place. Returns the new count."""
    cdef int D = as_int(mean.shape[1])
    cdef Py_ssize_t i, j
    cdef double[::1] delta = np.empty(D)
    if extra == 0.0 or D == 0:
        return count + extra
    with nogil:
        for i in range(D):
            for j in range(i + 1):
                scatter[i, j] += extra_scatter[i, j]
        merge_into(count, mean, scatter, extra, extra_mean, delta)
    return count + extra

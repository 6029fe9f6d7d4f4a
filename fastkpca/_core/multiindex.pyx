# cython: language_level=3
"""The compress operator: graded multi-index tables, and truncated expansions evaluated along tiles of points.

comp(x^k)_alpha = sqrt(k! / alpha!) x^alpha for |alpha| = k, so that comp(x^k).comp(y^k) = (x.y)^k with
C(d+k-1, k) entries instead of d^k (Raykar & Ankur 2003, section 7).

In graded order, and within a degree ordered by the last coordinate that occurs, every monomial is an earlier one times
one coordinate, and its candidates for parents are a prefix of the degree before. The table (parent, coordinate, ratio)
is built once; each monomial then costs one multiplication a point and one vector operation a tile.
"""

import numpy as np

from libc.math cimport exp
from scipy.linalg.cython_blas cimport dgemm, sgemm

ctypedef fused real:
    float
    double

cdef enum:
    CHUNK = 128  # points at a time: the rows a monomial is made from stay in cache (measured: 64 to 256 are alike)
    MOST_WAITING = 4
    MOST_KEPT = 1 << 18  # numbers


cdef extern from "product_ops.h" nogil:
    enum:
        FK_POINTS
        FK_TOGETHER

    ctypedef struct fk_product_ops:
        const char *name
        Py_ssize_t few
        void (*add)(Py_ssize_t, const double *, Py_ssize_t, Py_ssize_t, const Py_ssize_t *, Py_ssize_t,
                    const Py_ssize_t *, double *) noexcept nogil
        void (*add_square)(Py_ssize_t, const double *, Py_ssize_t, Py_ssize_t, double *) noexcept nogil
        void (*apply)(Py_ssize_t, const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double *,
                      double *) noexcept nogil
        void (*multiply)(Py_ssize_t, const double *, const double *, double, double *) noexcept nogil

    const fk_product_ops *fk_select "fk_product_ops_select"(const char *name)


cdef const fk_product_ops *ops = NULL

include "instruction_set.pxi"


# Work arrays of earlier calls: new memory comes page by page from the system, which takes as long as the sums over a
# tile. A list's pop and append are one step each, also of several threads.
cdef list waiting = []


cdef taken(Py_ssize_t size):
    """A work array of at least ``size`` numbers."""
    try:
        work = waiting.pop()
    except IndexError:
        return np.empty(size)
    return work if len(work) >= size else np.empty(size)


cdef given_back(work):
    """Keep a work array: the one that was allocated, since a view of it would be wrapped once more at each call."""
    if len(work) <= MOST_KEPT and len(waiting) < MOST_WAITING:
        waiting.append(work)


def table(Py_ssize_t d, Py_ssize_t degree):
    """Multi-indices of d coordinates up to ``degree``, graded.

    Returns
    -------
    parent, coordinate : ndarray (D,), int32
        alpha_j = alpha_parent[j] + e_coordinate[j]; entry 0 (alpha = 0) has both 0.
    exponent : ndarray (D,), int32
        The exponent of that coordinate in alpha_j; 0 for entry 0.
    start : ndarray (degree + 2,), int64
        Degree k stands at start[k]:start[k + 1]; D = start[-1] = C(d + degree, degree).
    """
    from math import comb
    cdef Py_ssize_t D = comb(d + degree, degree)
    parent_array = np.zeros(D, dtype=np.int32)
    coordinate_array = np.zeros(D, dtype=np.int32)
    exponent_array = np.zeros(D, dtype=np.int32)
    start_array = np.array([0] + [comb(d + k, k) for k in range(degree + 1)], dtype=np.int64)
    cdef int[::1] parent = parent_array, coordinate = coordinate_array, exponent = exponent_array
    cdef Py_ssize_t[::1] start = start_array.astype(np.intp)
    cdef Py_ssize_t k, c, j, q
    with nogil:
        for k in range(1, degree + 1):
            j = start[k]
            for c in range(d):
                q = start[k - 1]
                while q < start[k] and (q == 0 or coordinate[q] <= c):
                    parent[j] = <int>q
                    coordinate[j] = <int>c
                    exponent[j] = 1 + (exponent[q] if q > 0 and coordinate[q] == c else 0)
                    j += 1
                    q += 1
    return parent_array, coordinate_array, exponent_array, start_array


cdef void expand(const real *X, Py_ssize_t n, Py_ssize_t d, const int *parent, const int *coordinate,
                 const double *factor, Py_ssize_t D, bint gaussian, real *out, Py_ssize_t stride) noexcept nogil:
    """Rows of ``out`` (D, stride): weighted monomials of n points; factor[0] (times the Gaussian) starts them."""
    cdef Py_ssize_t i, j, c
    cdef double s
    cdef real f
    cdef real *columns
    cdef real *row
    cdef const real *source
    cdef const real *x
    columns = out + D * stride  # the caller leaves room for d * n: coordinates, one row each
    for c in range(d):
        for i in range(n):
            columns[c * n + i] = X[i * d + c]
    for i in range(n):
        s = 0.0
        if gaussian:
            for c in range(d):
                s += <double>X[i * d + c] * X[i * d + c]
            s = exp(-0.5 * s)
        else:
            s = 1.0
        out[i] = <real>(s * factor[0])
    for j in range(1, D):
        row = out + j * stride
        source = out + parent[j] * stride
        x = columns + coordinate[j] * n
        f = <real>factor[j]
        if real is double:
            ops.multiply(n, source, x, f, row)
        else:
            for i in range(n):
                row[i] = source[i] * (x[i] * f)


cdef class Expansion:
    """phi(x)_j = factor-weighted monomials, times exp(-|x|^2 / 2) where ``gaussian``; rows before ``skip`` are dropped.

    ``factor[j]`` is the ratio of entry j to (its parent times its coordinate), so weights need no pass of their own.
    Immutable; every method may run in several threads at once, without the GIL.
    """
    cdef readonly Py_ssize_t d, n_features, skip
    cdef readonly bint gaussian
    cdef int[::1] parent, coordinate
    cdef double[::1] factor

    def __init__(self, Py_ssize_t d, parent, coordinate, factor, Py_ssize_t skip=0, bint gaussian=False):
        self.d = d
        self.parent = np.array(parent, dtype=np.int32)
        self.coordinate = np.array(coordinate, dtype=np.int32)
        self.factor = np.array(factor, dtype=np.float64)
        self.skip = skip
        self.gaussian = gaussian
        self.n_features = self.parent.shape[0] - skip

    def features(self, const real[:, ::1] X):
        """phi of a tile (n, d), feature-major: (n_features, n), a new array."""
        cdef Py_ssize_t n = X.shape[0], D = self.parent.shape[0], d = self.d, b, i, j, m, q
        cdef real[::1] room
        cdef real *scratch
        dtype = np.float32 if real is float else np.float64
        out_array = np.empty((self.n_features, n), dtype=dtype)
        cdef real[:, ::1] out = out_array
        if n == 0 or self.n_features == 0:
            return out_array
        room = np.empty((D + d) * CHUNK, dtype=dtype)
        scratch = &room[0]
        with nogil:
            for b in range((n + CHUNK - 1) // CHUNK):
                i = b * CHUNK
                m = min(<Py_ssize_t>CHUNK, n - i)
                expand(&X[i, 0], m, d, &self.parent[0], &self.coordinate[0], &self.factor[0], D, self.gaussian,
                       scratch, m)
                for j in range(self.n_features):
                    for q in range(m):
                        out[j, i + q] = scratch[(j + self.skip) * m + q]
        return out_array

    def accumulate(self, const real[:, ::1] X, const real[:, ::1] U):
        """A = Phi' U for a tile and a block of vectors (n, k): (n_features, k). One BLAS 3 product a chunk."""
        cdef Py_ssize_t n = X.shape[0], D = self.parent.shape[0], d = self.d, b, i
        cdef int k = <int>U.shape[1], F = <int>self.n_features, m
        cdef real one = 1
        cdef real[::1] room
        cdef real *scratch
        dtype = np.float32 if real is float else np.float64
        A_array = np.zeros((self.n_features, U.shape[1]), dtype=dtype)
        cdef real[:, ::1] A = A_array
        if U.shape[0] != n:
            raise ValueError(f"U has {U.shape[0]} rows for a tile of {n}")
        if n == 0 or F == 0 or k == 0:
            return A_array
        room = np.empty((D + d) * CHUNK, dtype=dtype)
        scratch = &room[0]
        with nogil:
            for b in range((n + CHUNK - 1) // CHUNK):
                i = b * CHUNK
                m = <int>min(<Py_ssize_t>CHUNK, n - i)
                expand(&X[i, 0], m, d, &self.parent[0], &self.coordinate[0], &self.factor[0], D, self.gaussian,
                       scratch, m)
                if real is double:
                    dgemm(b"N", b"N", &k, &F, &m, &one, <double *>&U[i, 0], &k, scratch + self.skip * m, &m, &one,
                          &A[0, 0], &k)
                else:
                    sgemm(b"N", b"N", &k, &F, &m, &one, <float *>&U[i, 0], &k, scratch + self.skip * m, &m, &one,
                          &A[0, 0], &k)
        return A_array

    def evaluate(self, const real[:, ::1] X, const real[:, ::1] A):
        """V = Phi A for a tile and coefficients (n_features, k): (n, k)."""
        cdef Py_ssize_t n = X.shape[0], D = self.parent.shape[0], d = self.d, b, i
        cdef int k = <int>A.shape[1], F = <int>self.n_features, m, stride
        cdef real one = 1, zero = 0
        cdef double[::1] numbers
        cdef real *scratch
        dtype = np.float32 if real is float else np.float64
        V_array = np.empty((n, A.shape[1]), dtype=dtype)
        cdef real[:, ::1] V = V_array
        if A.shape[0] != self.n_features:
            raise ValueError(f"A has {A.shape[0]} rows for {self.n_features} features")
        if n == 0 or F == 0 or k == 0:
            V_array[:] = 0.0
            return V_array
        work = taken((D + d) * CHUNK)
        numbers = work
        scratch = <real *>&numbers[0]
        with nogil:
            for b in range((n + CHUNK - 1) // CHUNK):
                i = b * CHUNK
                m = <int>min(<Py_ssize_t>CHUNK, n - i)
                stride = (m + FK_TOGETHER - 1) // FK_TOGETHER * FK_TOGETHER
                expand(&X[i, 0], m, d, &self.parent[0], &self.coordinate[0], &self.factor[0], D, self.gaussian,
                       scratch, stride)
                if real is double:
                    if k <= ops.few:
                        ops.apply(m, scratch + self.skip * stride, stride, F, k, &A[0, 0], &V[i, 0])
                    else:
                        dgemm(b"N", b"T", &k, &m, &F, &one, <double *>&A[0, 0], &k, scratch + self.skip * stride,
                              &stride, &zero, &V[i, 0], &k)
                else:
                    sgemm(b"N", b"T", &k, &m, &F, &one, <float *>&A[0, 0], &k, scratch + self.skip * stride, &stride,
                          &zero, &V[i, 0], &k)
        given_back(work)
        return V_array


cdef enum:
    TILE = 2 * CHUNK  # points of one product
    LARGE_TILE = 4 * CHUNK
    FEW = 160  # features, of which so many points stay in the second level of cache


def ranges(Py_ssize_t m, Py_ssize_t p):
    """The matrix products of ``ProductSums`` for monomials of degree p in m coordinates.

    Those of neighbouring largest coordinates are joined where one larger product is cheaper: BLAS works in blocks of
    4 x 8, and packs both its factors.

    Returns
    -------
    products : ndarray (k, 5), int64
        First row, rows, first column, columns, and where the result begins in the sums.
    of_largest : ndarray (m,), int64
        The product for a largest coordinate.
    """
    from math import comb
    D = comb(m + p - 1, p)
    ends = [comb(i + p - 1, p) for i in range(m + 1)]  # monomials whose largest coordinate is below i
    least, begin = [0.0] + [float("inf")] * m, [0] * (m + 1)
    for j in range(1, m + 1):
        for i in range(j):
            rows, columns = ends[j] - ends[i], ends[m - i]
            cost = least[i] + (rows + 3) // 4 * 4 * ((columns + 7) // 8 * 8) + 10 * (rows + columns)
            if cost < least[j]:
                least[j], begin[j] = cost, i
    products, of_largest, j = [], np.zeros(m, dtype=np.intp), m
    while j:
        i = begin[j]
        products.insert(0, [ends[i], ends[j] - ends[i], D - ends[m - i], ends[m - i], 0])
        of_largest[j:] += 1  # each product but the first begins where another one ends
        j = i
    products = np.array(products, dtype=np.intp)
    products[1:, 4] = np.cumsum(products[:, 1] * products[:, 3])[:-1]
    return products, of_largest


cdef Py_ssize_t rank_of(const int *s, Py_ssize_t p, const Py_ssize_t *before, Py_ssize_t stride) noexcept nogil:
    # in the order by the largest element: multisets of j + 1 elements, all of them below s[j], come before
    cdef Py_ssize_t j, rank = 0
    for j in range(p):
        rank += before[j * stride + s[j]]
    return rank


cdef class ProductSums:
    """Sums over points of the products of all pairs of monomial features.

    phi_alpha phi_beta is x^(alpha + beta), but for a constant and a function of the point: of the D (D + 1) / 2
    products one for each monomial of twice the degree is enough, a third to a fifth of them. With 1 as one more
    coordinate each feature is a product of p sorted coordinates. A product of 2p of them is that of its first p and its
    last p: of two features, the largest coordinate of one at most the smallest of the other. For each largest
    coordinate these are a matrix product of two ranges of features, one in the order by the largest coordinate, one in
    that by the smallest.

    Immutable; every method may run in several threads at once, without the GIL.
    """
    cdef readonly Py_ssize_t n_features, n_sums, degree
    cdef Py_ssize_t[::1] by_largest, by_smallest  # numbers of the features in both orders
    cdef Py_ssize_t[::1] all  # numbers from 0 to D
    cdef Py_ssize_t[:, ::1] products
    cdef int[::1] place  # of the sum for a pair: row-major lower triangle
    cdef double[::1] weight

    def __init__(self, sequences, weight):
        """
        Parameters
        ----------
        sequences : ndarray (D, p), int32
            The coordinates of each feature, sorted, from 0 to m - 1: all C(m + p - 1, p) of them, in any order.
        weight : ndarray (D,)
            Each feature is this times a function of the point times the product of its coordinates.
        """
        from math import comb
        cdef const int[:, ::1] s = np.ascontiguousarray(sequences, dtype=np.int32)
        cdef Py_ssize_t D = s.shape[0], p = s.shape[1], m = 1 + np.max(sequences), i, j, a, b, q, g, row, column
        self.n_features, self.degree = D, p
        self.weight = np.array(weight, dtype=np.float64)
        self.all = np.arange(D + 1, dtype=np.intp)
        self.by_largest = np.lexsort(np.asarray(s).T).astype(np.intp)
        self.by_smallest = np.lexsort(np.asarray(s)[:, ::-1].T).astype(np.intp)
        cdef const Py_ssize_t[:, ::1] before = np.array(
            [[comb(x + j, j + 1) for x in range(m)] for j in range(p)], dtype=np.intp)
        products, numbers = ranges(m, p)
        cdef const Py_ssize_t[::1] of_largest = numbers
        self.products = products
        self.n_sums = int(products[-1, 4] + products[-1, 1] * products[-1, 3])
        self.place = np.empty(D * (D + 1) // 2, dtype=np.int32)
        cdef int[::1] merged = np.empty(2 * p, dtype=np.int32), mirrored = np.empty(p, dtype=np.int32)
        with nogil:
            for i in range(D):
                for j in range(i + 1):
                    a = b = 0
                    for q in range(2 * p):
                        if b == p or (a < p and s[i, a] <= s[j, b]):
                            merged[q] = s[i, a]
                            a += 1
                        else:
                            merged[q] = s[j, b]
                            b += 1
                    for q in range(p):
                        mirrored[q] = <int>(m - 1 - merged[2 * p - 1 - q])
                    row = rank_of(&merged[0], p, &before[0, 0], m)
                    column = D - 1 - rank_of(&mirrored[0], p, &before[0, 0], m)
                    g = of_largest[merged[p - 1]]
                    self.place[i * (i + 1) // 2 + j] = <int>(
                        self.products[g, 4] + (row - self.products[g, 0]) * self.products[g, 3]
                        + column - self.products[g, 2])

    def add(self, Expansion e, const double[:, ::1] X, double[::1] sums, double[::1] totals):
        """Add the products of features of a tile (n, d) to ``sums`` (n_sums,), the features to ``totals`` (D,).

        Returns (points, times): most points summed by themselves, and the number of additions to the sums.
        """
        cdef Py_ssize_t n = X.shape[0], D = self.n_features, d = e.d, skip = e.skip, b, c, g, i, j, k, padded
        cdef Py_ssize_t tile = TILE if D + skip > FEW else LARGE_TILE
        if e.n_features != D or X.shape[1] != d or sums.shape[0] != self.n_sums or totals.shape[0] != D:
            raise ValueError("the tile, or the sums, are not of these features")
        tile = min(tile, (max(n, 1) + FK_POINTS - 1) // FK_POINTS * FK_POINTS)
        work = taken((D + skip + 1) * tile + d * CHUNK + FK_POINTS)
        cdef double[::1] numbers = work
        cdef double *scratch = &numbers[0]
        scratch += (FK_POINTS - (<size_t>scratch // sizeof(double)) % FK_POINTS) % FK_POINTS  # whole lines of cache
        cdef double *features = scratch + skip * tile
        with nogil:
            for b in range((n + tile - 1) // tile):
                k = min(tile, n - b * tile)
                for c in range((k + CHUNK - 1) // CHUNK):
                    i = min(<Py_ssize_t>CHUNK, k - c * CHUNK)
                    expand(&X[b * tile + c * CHUNK, 0], i, d, &e.parent[0], &e.coordinate[0], &e.factor[0], D + skip,
                           e.gaussian, scratch + c * CHUNK, tile)
                padded = (k + FK_POINTS - 1) // FK_POINTS * FK_POINTS
                for j in range(D):
                    for i in range(k, padded):
                        features[j * tile + i] = 0.0
                for i in range(padded):
                    features[D * tile + i] = 1.0
                for g in range(self.products.shape[0]):
                    ops.add(padded, features, tile, self.products[g, 1], &self.by_largest[self.products[g, 0]],
                            self.products[g, 3], &self.by_smallest[self.products[g, 2]], &sums[self.products[g, 4]])
                ops.add(padded, features, tile, D, &self.all[0], 1, &self.all[D], &totals[0])
        given_back(work)
        return min(tile, n), (n + tile - 1) // tile

    def trace(self, const double[::1] sums) -> float:
        """Trace of the matrix of all products."""
        cdef double[::1] scaled = self.without_weights(sums)
        cdef double total = 0.0
        cdef Py_ssize_t i
        for i in range(self.n_features):
            total += self.weight[i] * self.weight[i] * scaled[self.place[i * (i + 1) // 2 + i]]
        return total

    def second_moment(self, const double[::1] sums, const double[::1] root):
        """The matrix of all products (D, D) minus root root'; symmetric, a new array."""
        cdef double[::1] scaled = self.without_weights(sums)
        cdef Py_ssize_t D = self.n_features, i, j
        cdef double[:, ::1] C = np.empty((D, D))
        with nogil:
            for i in range(D):
                for j in range(i + 1):
                    C[i, j] = (self.weight[i] * self.weight[j] * scaled[self.place[i * (i + 1) // 2 + j]]
                               - root[i] * root[j])
                    C[j, i] = C[i, j]
        return np.asarray(C)

    cdef double[::1] without_weights(self, const double[::1] sums):
        """The sums over the weights of the two features that they are of."""
        cdef double[::1] scaled = np.empty(self.n_sums)
        cdef Py_ssize_t g, i, j, q
        cdef double w
        if sums.shape[0] != self.n_sums:
            raise ValueError("the sums are not of these features")
        with nogil:
            for g in range(self.products.shape[0]):
                q = self.products[g, 4]
                for i in range(self.products[g, 0], self.products[g, 0] + self.products[g, 1]):
                    w = self.weight[self.by_largest[i]]
                    for j in range(self.products[g, 2], self.products[g, 2] + self.products[g, 3]):
                        scaled[q] = sums[q] / (w * self.weight[self.by_smallest[j]])
                        q += 1
        return scaled

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
        """V = Phi A for a tile and coefficients (n_features, k): (n, k). One BLAS 3 product a chunk."""
        cdef Py_ssize_t n = X.shape[0], D = self.parent.shape[0], d = self.d, b, i
        cdef int k = <int>A.shape[1], F = <int>self.n_features, m
        cdef real one = 1, zero = 0
        cdef real[::1] room
        cdef real *scratch
        dtype = np.float32 if real is float else np.float64
        V_array = np.zeros((n, A.shape[1]), dtype=dtype)
        cdef real[:, ::1] V = V_array
        if A.shape[0] != self.n_features:
            raise ValueError(f"A has {A.shape[0]} rows for {self.n_features} features")
        if n == 0 or F == 0 or k == 0:
            return V_array
        room = np.empty((D + d) * CHUNK, dtype=dtype)
        scratch = &room[0]
        with nogil:
            for b in range((n + CHUNK - 1) // CHUNK):
                i = b * CHUNK
                m = <int>min(<Py_ssize_t>CHUNK, n - i)
                expand(&X[i, 0], m, d, &self.parent[0], &self.coordinate[0], &self.factor[0], D, self.gaussian,
                       scratch, m)
                if real is double:
                    dgemm(b"N", b"T", &k, &m, &F, &one, <double *>&A[0, 0], &k, scratch + self.skip * m, &m, &zero,
                          &V[i, 0], &k)
                else:
                    sgemm(b"N", b"T", &k, &m, &F, &one, <float *>&A[0, 0], &k, scratch + self.skip * m, &m, &zero,
                          &V[i, 0], &k)
        return V_array

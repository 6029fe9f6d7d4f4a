# cython: language_level=3
"""Distances over tiles, and radial profiles over arrays; the loops are C in radial.c.

Arrays in, arrays out. The GIL is released while they run.
"""

import numpy as np

from libc.stdint cimport int64_t


cdef extern from "radial.h" nogil:
    enum:
        KC_TERMS

    ctypedef struct kc_profile:
        double c
        double linear
        double square
        double largest
        const double *table
        int64_t first
        int64_t pieces
        int shift
        double lowest

    void kc_profile_array(const kc_profile *p, Py_ssize_t n, double *r)
    void kc_distances(int squares, int city_block, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                      const double *Yt, double *out)
    void kc_mend_products(int same, int squares, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                          const double *Y, const double *xx, const double *yy, double *out)


TERMS = KC_TERMS
DIRECT = 16
"""Distances by differences up to this many coordinates; beyond, by products that are mended where they cancel."""
FARTHEST = 1e150


cdef class Profile:
    """A radial kernel as a function of t = scale * r: by its table, or (1 + linear t + square t^2) exp(-t)."""

    cdef kc_profile p
    cdef double[:, ::1] table

    def __init__(self, double scale, double linear=0.0, double square=0.0, *, double largest=1000.0, table=None,
                 double lowest=0.0, object pieces_an_octave=4):
        self.p.c, self.p.linear, self.p.square = scale, linear, square
        self.p.largest, self.p.lowest = largest, lowest
        self.p.table = NULL
        if table is not None:
            self.table = np.ascontiguousarray(table, dtype=np.float64)
            if self.table.shape[1] != KC_TERMS:
                raise ValueError(f"a table has {self.table.shape[1]} terms a piece; {KC_TERMS} are needed")
            self.p.table = &self.table[0, 0]
            self.p.pieces = self.table.shape[0]
            self.p.shift = 53 - pieces_an_octave.bit_length()
            self.p.first = int(np.float64(lowest).view(np.int64)) >> self.p.shift

    def __call__(self, r):
        """k at distances r (not negative), a new array of float64."""
        values = np.array(r, dtype=np.float64, order="C", ndmin=1)
        self.apply(values)
        return values.reshape(np.shape(r))

    def apply(self, values):
        """Distances to kernel values, in place; C-contiguous float64."""
        cdef double[::1] v = values.reshape(-1)
        cdef Py_ssize_t n = v.shape[0]
        if n:
            with nogil:
                kc_profile_array(&self.p, n, &v[0])


def distances(X, Y, *, bint squares=False, bint city_block=False):
    """|x_i - y_j| (or squares, or L1 distances) for two tiles, (n, m), float64; exactly symmetric for X with itself."""
    A = np.require(X, np.float64, ["C", "A"])
    B = A if Y is X else np.require(Y, np.float64, ["C", "A"])
    cdef Py_ssize_t n = A.shape[0], m = B.shape[0], d = A.shape[1]
    if B.shape[1] != d:
        raise ValueError(f"rows of {d} and of {B.shape[1]} numbers have no distance")
    if n == 0 or m == 0 or d == 0:
        return np.zeros((n, m))
    cdef bint same = A is B
    cdef const double[:, ::1] x = A, y
    cdef const double[::1] xx, yy
    cdef double[:, ::1] out
    # (squares of far rows overflow, and infinities have no difference)
    if d <= DIRECT or city_block or max(np.abs(A).max(), np.abs(B).max()) > FARTHEST:
        result = np.empty((n, m))
        out, y = result, np.ascontiguousarray(B.T)
        with nogil:
            kc_distances(squares, city_block, n, m, d, &x[0, 0], &y[0, 0], &out[0, 0])
        return result
    # about the mean of one tile: products of coordinates far from zero would cancel
    center = B.mean(axis=0)
    A0 = A - center
    B0 = A0 if same else B - center
    result = A0 @ B0.T
    norms = np.einsum("ij,ij->i", A0, A0)
    x, y, out = A, B, result
    xx = norms
    yy = norms if same else np.einsum("ij,ij->i", B0, B0)
    with nogil:
        kc_mend_products(same, squares, n, m, d, &x[0, 0], &y[0, 0], &xx[0], &yy[0], &out[0, 0])
    return result

# cython: language_level=3
"""Distances over tiles, radial profiles over arrays, and sums over near pairs; the loops are C in radial.c.

Arrays in, arrays out. The GIL is released while they run.
"""

import numpy as np

from libc.stdint cimport int64_t


cdef extern from "radial.h" nogil:
    enum:
        KC_TERMS
        KC_WIDE_TERMS
        KC_EXP
        KC_THREE_HALVES
        KC_FIVE_HALVES
        KC_TABLE
        KC_POWER

    ctypedef struct kc_profile:
        int kind
        double c
        double c_high
        double c_low
        double c_rest
        double order
        double largest
        const double *table
        int64_t first
        int64_t pieces
        int shift
        double lowest

    ctypedef struct kc_wide:
        Py_ssize_t pieces
        double per_unit
        const double *table

    ctypedef struct kc_near:
        Py_ssize_t d
        Py_ssize_t k
        const double *targets
        const double *sources
        Py_ssize_t m
        const int64_t *start
        int64_t cells[3]
        double low[3]
        double per_cell[3]
        int64_t reach
        double cut
        const kc_profile *profile
        kc_wide wide
        const double *U

    void kc_profile_array(const kc_profile *p, Py_ssize_t n, double *r)
    void kc_distances(int squares, int city_block, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                      const double *Yt, double *out)
    void kc_mend_products(int same, int squares, Py_ssize_t n, Py_ssize_t m, Py_ssize_t d, const double *X,
                          const double *Y, const double *xx, const double *yy, double *out)
    int kc_near_sum(const kc_near *p, Py_ssize_t begin, Py_ssize_t end, double *V)


TERMS = KC_TERMS
WIDE_TERMS = KC_WIDE_TERMS
DIRECT = 16
"""Distances by differences up to this many coordinates; beyond, by products that are mended where they cancel."""
FARTHEST = 1e150
KINDS = {
    "exp": KC_EXP, "three halves": KC_THREE_HALVES, "five halves": KC_FIVE_HALVES, "table": KC_TABLE,
    "power": KC_POWER,
}


cdef class Profile:
    """A radial kernel as a function of distance: ``kind`` of t = scale * r, scale an exact sum of three doubles."""

    cdef kc_profile p
    cdef double[:, ::1] table

    def __init__(self, str kind, tuple scale, *, double order=0.0, double largest=1000.0, table=None,
                 double lowest=0.0, object pieces_an_octave=4):
        cdef double high, rest
        self.p.kind = KINDS[kind]
        self.p.c, rest = scale
        # 26 bits of c, so that products with the upper 26 bits of r are exact
        high = float(np.int64(int(np.float64(self.p.c).view(np.int64)) & ~((1 << 27) - 1)).view(np.float64))
        self.p.c_high, self.p.c_low, self.p.c_rest = high, self.p.c - high, rest
        self.p.order, self.p.largest, self.p.lowest = order, largest, lowest
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
    A = np.ascontiguousarray(X, dtype=np.float64)
    B = A if Y is X else np.ascontiguousarray(Y, dtype=np.float64)
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


cdef class NearPairs:
    """Rows sorted into cells, and sums over the pairs within a distance.

    Parameters
    ----------
    profile : Profile
    wide : ndarray (pieces, WIDE_TERMS) or None
        What is subtracted from the profile, piecewise in the squared distance.
    sources : ndarray (m, d)
        d at most 3.
    cut : float
        Largest distance.
    most_cells : int
    """

    cdef Profile profile
    cdef kc_near near
    cdef object low, per_cell, cells, order, keep
    cdef Py_ssize_t d

    def __init__(self, Profile profile, wide, sources, double cut, Py_ssize_t most_cells):
        cdef Py_ssize_t a
        cdef const double[:, ::1] columns, pieces
        cdef const int64_t[::1] start
        self.profile = profile
        self.d = sources.shape[1]
        self.near.profile = &profile.p
        self.near.d, self.near.m = self.d, sources.shape[0]
        self.near.cut = cut * cut
        low = sources.min(axis=0)
        extent = sources.max(axis=0) - low
        # cells of half the cut (a little more, for rounding), or of all of it where that would be too many
        for share in (0.5, 1.0, 2.0, 4.0, 8.0, np.inf):
            size = share * cut * (1.0 + 1e-9)
            counts = np.floor(np.minimum(extent / size, 1e9)) + 1.0
            if counts.prod() <= most_cells:
                break
        self.near.reach = 2 if share < 1.0 else 1
        self.low, self.per_cell, self.cells = low, np.full(self.d, 1.0 / size), counts.astype(np.int64)
        for a in range(3):
            self.near.cells[a], self.near.low[a], self.near.per_cell[a] = 1, 0.0, 0.0
        for a in range(self.d):
            self.near.cells[3 - self.d + a] = self.cells[a]
            self.near.low[3 - self.d + a] = low[a]
            self.near.per_cell[3 - self.d + a] = 1.0 / size
        number = self.cell_numbers(sources)
        self.order = np.argsort(number, kind="stable")
        total = int(self.cells.prod())
        starts = np.zeros(total + 1, dtype=np.int64)
        np.cumsum(np.bincount(number, minlength=total), out=starts[1:])
        sorted_columns = np.ascontiguousarray(sources[self.order].T)
        columns, start = sorted_columns, starts
        self.near.sources, self.near.start = &columns[0, 0], &start[0]
        self.near.wide.table = NULL
        self.near.wide.pieces, self.near.wide.per_unit = 0, 0.0
        if wide is not None:
            pieces = wide
            self.near.wide.table = &pieces[0, 0]
            self.near.wide.pieces = pieces.shape[0]
            self.near.wide.per_unit = pieces.shape[0] / (cut * cut)
        self.keep = (sorted_columns, starts, wide)

    @property
    def source_order(self):
        return self.order

    def cell_numbers(self, points):
        """The cell of each point; those outside belong to the nearest."""
        at = np.floor(np.clip((points - self.low) * self.per_cell, 0.0, self.cells - 1.0)).astype(np.int64)
        number = at[:, 0]
        for a in range(1, self.d):
            number = number * self.cells[a] + at[:, a]
        return number

    def add(self, targets, U, V, Py_ssize_t begin, Py_ssize_t end):
        """V[begin:end] += sum over near sources; targets (n, d), U (m, k) in ``source_order``, V (n, k)."""
        cdef const double[:, ::1] x = targets, u = U
        cdef double[:, ::1] v = V
        cdef kc_near near = self.near
        cdef int failed = 0
        if begin >= end:
            return
        near.targets, near.U, near.k = &x[0, 0], &u[0, 0], u.shape[1]
        with nogil:
            failed = kc_near_sum(&near, begin, end, &v[0, 0])
        if failed:
            raise MemoryError("no memory for a batch of near pairs")

# cython: language_level=3
"""Chebyshev nodes in a regular grid of boxes: points sorted by box, values spread onto the nodes and read off them.

Axis c of a grid is cut into counts[c] equal boxes, each with orders[c] Chebyshev nodes of the first kind, ascending.
Row i of the interpolation matrix L holds the tensor product of the Lagrange values of point i at the nodes of its own
box; ``spread`` is L' U and ``interpolate`` is L A. A nodal array has shape (k, counts[0] orders[0], ...,
counts[-1] orders[-1]): every node belongs to one box, so boxes can be worked on side by side.

The loops over a box's nodes are in C (``box_ops.c``), compiled once for each instruction set and chosen
when this module is imported. The GIL is released for the whole of a call.
"""

from functools import lru_cache

import numpy as np

from libc.math cimport fabs, floor
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset


cdef extern from "compiler.h" nogil:
    void FK_PREFETCH(const void *)

cdef extern from "box_ops.h" nogil:
    enum:
        FK_MOST_AXES
        FK_MOST_NODES
        FK_GROUP

    ctypedef struct fk_box:
        Py_ssize_t d
        Py_ssize_t[6] q
        const double *nodes[6]
        const double *weights[6]
        Py_ssize_t outer
        Py_ssize_t padded
        const double *turned
        const double *last

    ctypedef struct fk_box_ops:
        const char *name
        void (*spread[3])(const fk_box *, Py_ssize_t, const double *, Py_ssize_t, const int64_t *, const double *,
                          Py_ssize_t, double *, double *) noexcept nogil
        void (*interpolate[3])(const fk_box *, Py_ssize_t, const double *, Py_ssize_t, const int64_t *, double *,
                               Py_ssize_t, double *, const double *) noexcept nogil

    const fk_box_ops *fk_select "fk_box_ops_select"(const char *name)


MOST_AXES, MOST_NODES = FK_MOST_AXES, FK_MOST_NODES

cdef const fk_box_ops *ops = NULL

include "instruction_set.pxi"


def chebyshev_nodes(int order):
    """Roots of the Chebyshev polynomial of this degree, ascending, exactly symmetric about 0."""
    half = np.sin(np.pi / 2 * (2 * np.arange(order) + 1 - order) / order)
    return (half - half[::-1]) / 2


@lru_cache(maxsize=FK_MOST_NODES)
def _lagrange(int order):
    """The nodes z of an axis, and 1 / prod_(j != k) (z_k - z_j)."""
    nodes = chebyshev_nodes(order)
    # weights belong to the nodes as rounded: longdouble, so that they are off by one rounding
    gaps = np.subtract.outer(nodes.astype(np.longdouble), nodes.astype(np.longdouble))
    np.fill_diagonal(gaps, 1)
    return nodes, (1 / gaps.prod(axis=1)).astype(np.float64)


@lru_cache(maxsize=FK_MOST_NODES)
def _lagrange_in_turn(int order, int padded):
    """For the last axis: the nodes, row t turned by t + 1, and the weights; both with zeros up to ``padded``."""
    nodes, weights = _lagrange(order)
    turned, ends = np.zeros((max(1, order - 1), padded)), np.zeros(padded)
    turned[:, :order] = nodes[(np.arange(order) + np.arange(1, max(2, order))[:, None]) % order]
    ends[:order] = weights
    return turned, ends


cdef enum:
    TOGETHER = 512  # a multiple of FK_GROUP


cdef void spread_box(const fk_box *box, Py_ssize_t kind, Py_ssize_t count, const double *position, Py_ssize_t n,
                     const int64_t *order, const double *U, Py_ssize_t k, double *work, double *block,
                     Py_ssize_t size) noexcept nogil:
    """Sums of the points of one box at its nodes; many points in parts, each summed by itself.

    Equal points with equal values err in the same direction at every step, so one long sum errs by as many units as
    it has terms, not by their root. ``work`` holds FK_GROUP * outer + size numbers.
    """
    cdef Py_ssize_t i, at = TOGETHER
    cdef double *part = work + FK_GROUP * box.outer
    ops.spread[kind](box, min(count, <Py_ssize_t>TOGETHER), position, n, order, U, k, work, block)
    while at < count:
        memset(part, 0, size * sizeof(double))
        ops.spread[kind](box, min(count - at, <Py_ssize_t>TOGETHER), position + at, n, order + at, U, k, work, part)
        for i in range(size):
            block[i] += part[i]
        at += TOGETHER


cdef double *room_for(Py_ssize_t size, Py_ssize_t beside) except NULL:
    """Memory for the nodal values of a box and for further numbers; to be freed."""
    cdef double *block = <double *>malloc((size + beside) * sizeof(double))
    if block is NULL:
        raise MemoryError(f"no memory for the {size} nodal values of a box")
    return block


cdef class Points:
    """Points sorted by box: what ``Grid.sort`` returns.

    Attributes
    ----------
    order : ndarray (n,), int64
        Row numbers, box by box.
    position : ndarray (d, n)
        In that order, in the coordinates of the own box, [-1, 1].
    box : ndarray (number of occupied boxes,), int64
        Numbers of the occupied boxes, ascending (the last axis runs fastest).
    start : ndarray (len(box) + 1,), int64
        Where each begins.
    reach : float
        Largest entry of |position|: above 1 by more than rounding where points lie outside the grid.
    """

    cdef readonly object order, position, box, start
    cdef readonly double reach

    def __init__(self, order, position, box, start, reach):
        self.order, self.position, self.box, self.start, self.reach = order, position, box, start, reach

    def __len__(self):
        return len(self.order)


cdef class Grid:
    """A regular grid of boxes with Chebyshev nodes.

    Parameters
    ----------
    low, side : sequence of d floats
        Lower corner of the first box, and the boxes' sides (positive).
    counts, orders : sequence of d ints
        Boxes along each axis, and nodes along each axis of a box (at most MOST_NODES).
    """

    cdef readonly tuple counts, orders, shape
    cdef readonly object low, side
    cdef readonly Py_ssize_t block_size
    cdef object _kept
    cdef fk_box box
    cdef Py_ssize_t kind
    cdef Py_ssize_t[6] n
    cdef Py_ssize_t[6] stride
    cdef double[6] lows
    cdef double[6] sides

    def __init__(self, low, side, counts, orders):
        cdef Py_ssize_t c, d = len(counts), step
        cdef const double[::1] z, w, last
        cdef const double[:, ::1] turned
        if not 1 <= d <= FK_MOST_AXES:
            raise ValueError(f"{d} axes; a grid has 1 to {FK_MOST_AXES}")
        self.low = np.array(low, dtype=np.float64)
        self.side = np.array(side, dtype=np.float64)
        self.counts = tuple(int(x) for x in counts)
        self.orders = tuple(int(x) for x in orders)
        if not len(self.low) == len(self.side) == len(self.orders) == d:
            raise ValueError("low, side, counts and orders must have one entry for each axis")
        if not (min(self.counts) >= 1 and 1 <= min(self.orders) and max(self.orders) <= FK_MOST_NODES):
            raise ValueError(f"counts {self.counts}, orders {self.orders}: at least 1, orders at most {FK_MOST_NODES}")
        if not (np.isfinite(self.low).all() and np.isfinite(self.side).all() and (self.side > 0).all()):
            raise ValueError(f"low {self.low}, side {self.side}: finite, sides positive")
        self.shape = tuple(n * q for n, q in zip(self.counts, self.orders, strict=True))
        self._kept = []
        self.box.d = d
        self.box.outer = 1
        for c in range(d):
            q = self.orders[c]
            nodes, weights = _lagrange(q)
            self._kept += [nodes, weights]
            z, w = nodes, weights
            self.box.q[c] = q
            self.box.nodes[c] = &z[0]
            self.box.weights[c] = &w[0]
            self.n[c] = self.counts[c]
            self.lows[c] = self.low[c]
            self.sides[c] = self.side[c]
            if c < d - 1:
                self.box.outer *= q
        self.kind = 0 if q <= 4 else 1 if q <= 8 else 2
        self.box.padded = 4 << self.kind
        table, ends = _lagrange_in_turn(q, self.box.padded)
        self._kept += [table, ends]
        turned, last = table, ends
        self.box.turned = &turned[0, 0]
        self.box.last = &last[0]
        step = 1
        for c in range(d - 1, -1, -1):
            self.stride[c] = step
            step *= self.shape[c]
        self.block_size = self.box.outer * self.box.q[d - 1]

    def nodes(self, int axis):
        """Coordinates of the nodes along an axis, ascending: shape (shape[axis],)."""
        reference = (1.0 + _lagrange(self.orders[axis])[0]) / 2
        return self.low[axis] + self.side[axis] * np.add.outer(np.arange(self.counts[axis]), reference).ravel()

    def sort(self, const double[:, ::1] X):
        """Points (rows of X) sorted by box: a Points. What lies outside the grid by rounding goes to its last box.

        The order of the rows within a box is theirs in X.
        """
        cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i, c, b, total = 1, at, occupied = 0
        cdef double t, whole, reach = 0.0
        cdef int64_t before, count
        if d != self.box.d:
            raise ValueError(f"rows of {d} numbers for a grid of {self.box.d} axes")
        for c in range(d):
            total *= self.n[c]
        order_, position_ = np.empty(n, dtype=np.int64), np.empty((d, n))
        number_, first_ = np.empty(n, dtype=np.int64), np.zeros(total + 1, dtype=np.int64)
        local_ = np.empty((n, d))
        cdef int64_t[::1] order = order_, number = number_, first = first_
        cdef double[:, ::1] position = position_, local = local_
        cdef double[6] inverse
        for c in range(d):
            inverse[c] = 1.0 / self.sides[c]
        with nogil:
            for i in range(n):
                b = 0
                for c in range(d):
                    t = (X[i, c] - self.lows[c]) * inverse[c]
                    whole = floor(t)
                    if not whole >= 0.0:
                        whole = 0.0
                    elif whole > self.n[c] - 1:
                        whole = self.n[c] - 1
                    t = 2.0 * (t - whole) - 1.0
                    local[i, c] = t
                    if fabs(t) > reach:
                        reach = fabs(t)
                    b = b * self.n[c] + <Py_ssize_t>whole
                number[i] = b
                first[b + 1] += 1
            for b in range(total):
                if first[b + 1]:
                    occupied += 1
        box_, start_ = np.empty(occupied, dtype=np.int64), np.empty(occupied + 1, dtype=np.int64)
        cdef int64_t[::1] box = box_, start = start_
        with nogil:
            before = 0
            at = 0
            for b in range(total):  # counts become first places
                count = first[b + 1]
                first[b] = before
                if count:
                    box[at] = b
                    start[at] = before
                    at += 1
                before += count
            start[occupied] = n
            for i in range(n):
                at = first[number[i]]
                first[number[i]] = at + 1
                order[at] = i
                for c in range(d):
                    position[c, at] = local[i, c]
        return Points(order_, position_, box_, start_, reach)

    cdef void copy(self, bint inwards, int64_t number, Py_ssize_t k, Py_ssize_t whole, double *block,
                   double *grid) noexcept nogil:
        # between a block (k, outer, padded) and its place in the nodal array, ``whole`` entries a column
        cdef Py_ssize_t d = self.box.d, c, j, t, _row, q = self.box.q[d - 1]
        cdef Py_ssize_t padded = self.box.padded
        cdef Py_ssize_t base = 0, offset
        cdef Py_ssize_t[6] digit
        cdef Py_ssize_t ahead = self.stride[d - 3] if d > 2 else 4 * self.stride[0]
        cdef double *source = block
        cdef double *target
        for c in range(d - 1, -1, -1):
            base += (number % self.n[c]) * self.box.q[c] * self.stride[c]
            number //= self.n[c]
            digit[c] = 0
        for j in range(k):  # a column after the other: rows of one lie near each other
            offset = base + j * whole
            for _row in range(self.box.outer):
                target = grid + offset
                # rows of a box lie apart, as no processor foresees
                FK_PREFETCH(target + ahead)
                FK_PREFETCH(target + ahead + q - 1)
                if inwards:
                    for t in range(q):
                        source[t] = target[t]
                    for t in range(q, padded):
                        source[t] = 0.0
                else:
                    for t in range(q):
                        target[t] = source[t]
                source += padded
                c = d - 2
                while c >= 0:
                    digit[c] += 1
                    offset += self.stride[c]
                    if digit[c] < self.box.q[c]:
                        break
                    offset -= digit[c] * self.stride[c]
                    digit[c] = 0
                    c -= 1

    cdef Py_ssize_t layer(self) noexcept:
        """Boxes that share an interval of the first axis."""
        cdef Py_ssize_t c, boxes = 1
        for c in range(1, self.box.d):
            boxes *= self.n[c]
        return boxes

    cdef Py_ssize_t held(self, Points points, Py_ssize_t k, Py_ssize_t entries, Py_ssize_t first, Py_ssize_t last,
                         Py_ssize_t begin) except -1:
        """Entries of a column where ``entries`` in all hold the boxes of these points, from layer ``begin`` on."""
        cdef Py_ssize_t size = self.stride[0] * self.box.q[0], layers = entries // max(1, k * size)
        boxes = points.box[np.searchsorted(points.start, [first, last - 1], side="right") - 1] // self.layer()
        if entries != k * layers * size or boxes[0] < begin or boxes[1] >= begin + layers:
            raise ValueError(f"a nodal array of {entries} entries, {k} columns, does not hold the boxes of the points")
        return layers * size

    def spread(self, Points points, const double[:, ::1] U, double[::1] flat, Py_ssize_t first, Py_ssize_t last,
               Py_ssize_t begin=0):
        """Nodal sums of the points first to last (in sorted order): L' U for each column of U.

        Parameters
        ----------
        points : Points
        U : ndarray (n, k)
            Rows as in what was sorted.
        flat : ndarray (k * product of shape,)
            The nodal array (k, *shape), flat and zero. Boxes whose points are all within first..last are written.
        first, last : int
        begin : int
            ``flat`` may hold fewer boxes of the first axis, from this one on.

        Returns
        -------
        list of (number of a box, ndarray (k, outer, padded))
            What the first and the last box got, where they have points beyond first..last too: for ``add``.
        """
        cdef Py_ssize_t k = U.shape[1], n = points.position.shape[1], at, lo, hi, size, b_first, whole, before
        cdef Py_ssize_t kind = self.kind
        cdef const int64_t[::1] order = points.order, box = points.box, start = points.start
        cdef const double[:, ::1] position = points.position
        cdef double *block
        cdef double *work
        cdef double[:, :, ::1] edge
        edges = []
        size = k * self.box.outer * self.box.padded
        if U.shape[0] != n or not 0 <= first <= last <= n:
            raise ValueError(f"points {first} to {last} of {n}, {U.shape[0]} rows of U")
        if first == last or k == 0:
            return edges
        whole, before = self.held(points, k, flat.shape[0], first, last, begin), begin * self.layer()
        b_first = np.searchsorted(points.start, first, side="right") - 1
        # the two boxes at the ends, where they are shared with other calls
        at = b_first
        while at < box.shape[0] and start[at] < last:
            lo, hi = max(start[at], first), min(start[at + 1], last)
            if lo > start[at] or hi < start[at + 1]:
                part = np.zeros((k, self.box.outer, self.box.padded))
                edge = part
                buffer = np.empty(FK_GROUP * self.box.outer + size)
                self.one(kind, hi - lo, &position[0, lo], n, &order[lo], &U[0, 0], k, buffer, &edge[0, 0, 0])
                edges.append((box[at], part))
            if at == b_first:  # to the last one
                at = max(at + 1, np.searchsorted(points.start, last, side="left") - 1)
            else:
                at += 1
        block = room_for(size, size + FK_GROUP * self.box.outer + 8)
        with nogil:
            work = block + size
            at = b_first
            while at < box.shape[0] and start[at] < last:
                if start[at] >= first and start[at + 1] <= last:
                    memset(block, 0, size * sizeof(double))
                    spread_box(&self.box, kind, start[at + 1] - start[at], &position[0, start[at]], n,
                               &order[start[at]], &U[0, 0], k, work, block, size)
                    self.copy(False, box[at] - before, k, whole, block, &flat[0])
                at += 1
            free(block)
        return edges

    cdef int one(self, Py_ssize_t kind, Py_ssize_t count, const double *position, Py_ssize_t n, const int64_t *order,
                 const double *U, Py_ssize_t k, buffer, double *block) except -1:
        cdef double[::1] work = buffer
        with nogil:
            spread_box(&self.box, kind, count, position, n, order, U, k, &work[0], block,
                       k * self.box.outer * self.box.padded)
        return 0

    def add(self, list edges, double[::1] flat):
        """Add what ``spread`` returned to the nodal array, in the order of the list."""
        cdef double[:, :, ::1] part
        cdef Py_ssize_t i, size
        cdef double *block
        cdef int64_t number
        for number, given in edges:
            part = given
            size = part.shape[0] * part.shape[1] * part.shape[2]
            block = room_for(size, 0)
            self.copy(True, number, part.shape[0], flat.shape[0] // part.shape[0], block, &flat[0])
            for i in range(size):
                block[i] += (&part[0, 0, 0])[i]
            self.copy(False, number, part.shape[0], flat.shape[0] // part.shape[0], block, &flat[0])
            free(block)

    def interpolate(self, Points points, const double[::1] flat, double[:, ::1] V, Py_ssize_t first, Py_ssize_t last,
                    Py_ssize_t begin=0):
        """Values at the points first to last (in sorted order): their rows of L A, written to those of V (n, k).

        ``flat`` is the nodal array A (k, *shape), flat; or the boxes of the first axis from ``begin`` on of it.
        """
        cdef Py_ssize_t k = V.shape[1], n = points.position.shape[1], at, lo, hi, size, b_first, whole, before
        cdef Py_ssize_t kind = self.kind
        cdef const int64_t[::1] order = points.order, box = points.box, start = points.start
        cdef const double[:, ::1] position = points.position
        cdef double *block
        cdef double *work
        size = k * self.box.outer * self.box.padded
        if V.shape[0] != n or not 0 <= first <= last <= n:
            raise ValueError(f"points {first} to {last} of {n}, {V.shape[0]} rows of V")
        if first == last or k == 0:
            return
        whole, before = self.held(points, k, flat.shape[0], first, last, begin), begin * self.layer()
        b_first = np.searchsorted(points.start, first, side="right") - 1
        block = room_for(size, FK_GROUP * self.box.outer + 8)
        with nogil:
            work = block + size
            at = b_first
            while at < box.shape[0] and start[at] < last:
                lo, hi = max(start[at], first), min(start[at + 1], last)
                self.copy(True, box[at] - before, k, whole, block, <double *>&flat[0])
                ops.interpolate[kind](&self.box, hi - lo, &position[0, lo], n, &order[lo], &V[0, 0], k, work, block)
                at += 1
            free(block)

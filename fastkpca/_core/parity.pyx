# cython: language_level=3
"""Products along one axis of an array with a matrix whose columns are even or odd in its rows.

Rows are values at points x, columns functions of x; each point has its mirror image -x among the rows, so half of them
say it all. The loops are C beside this file (``parity_ops.c``), compiled once for each instruction set and chosen when
this module is imported. The GIL is released for the whole of a product.
"""

from math import prod

import numpy as np

from libc.stdlib cimport free, malloc


cdef extern from "parity_ops.h" nogil:
    ctypedef struct fk_parity:
        Py_ssize_t n
        Py_ssize_t fixed
        Py_ssize_t half
        Py_ssize_t n_even
        Py_ssize_t n_odd
        const double *even
        const double *odd

    ctypedef struct fk_lines:
        double *values
        Py_ssize_t batch
        Py_ssize_t row

    ctypedef struct fk_parity_ops:
        const char *name
        Py_ssize_t wide
        void (*expand)(const fk_parity *, Py_ssize_t, Py_ssize_t, fk_lines, fk_lines, double *) noexcept nogil
        void (*fold)(const fk_parity *, Py_ssize_t, Py_ssize_t, fk_lines, fk_lines, double *) noexcept nogil
        void (*weigh)(const fk_parity *, Py_ssize_t, const double *, const double *, double *, double *) noexcept nogil

    Py_ssize_t fk_parity_work(const fk_parity *)
    const fk_parity_ops *fk_parity_select(const char *name)


cdef const fk_parity_ops *ops = NULL


def use_instruction_set(name=None):
    """Choose the loops by name (baseline, avx2, avx512), or the best for None; returns the name chosen.

    For tests and benchmarks. Raises ValueError where this processor or this build has none of that name.
    """
    global ops, INSTRUCTION_SET
    cdef bytes text = b"" if name is None else name.encode()
    cdef const fk_parity_ops *chosen = fk_parity_select(NULL if name is None else <const char *>text)
    if chosen is NULL:
        raise ValueError(f"no loops for instruction set {name!r} on this processor")
    ops = chosen
    INSTRUCTION_SET = chosen.name.decode()
    return INSTRUCTION_SET


INSTRUCTION_SET = ""
use_instruction_set()


cdef class ParityMatrix:
    """A matrix A (n, n_even + n_odd), even columns first.

    Parameters
    ----------
    even, odd : ndarray (half, n_even), (half, n_odd)
        The first rows. Row i has its image at row n - 1 - i; with ``periodic`` at n - i, and row 0 at itself. Rows that
        are their own image are zero in ``odd``.
    n : int
        Rows; half is (n + 1) // 2, with ``periodic`` n // 2 + 1.
    periodic : bool
    """

    cdef fk_parity matrix
    cdef readonly object even, odd

    def __init__(self, even, odd, Py_ssize_t n, bint periodic=False):
        cdef const double[:, ::1] evens, odds
        self.even, self.odd = np.ascontiguousarray(even, dtype=np.float64), np.ascontiguousarray(odd, dtype=np.float64)
        evens, odds = self.even, self.odd
        self.matrix.n, self.matrix.fixed = n, not periodic
        self.matrix.half = n // 2 + 1 if periodic else (n + 1) // 2
        if not evens.shape[0] == odds.shape[0] == self.matrix.half or n < 1:
            raise ValueError(f"{evens.shape[0]} and {odds.shape[0]} rows; {self.matrix.half} are needed")
        self.matrix.n_even, self.matrix.n_odd = evens.shape[1], odds.shape[1]
        self.matrix.even = &evens[0, 0] if evens.shape[1] else NULL
        self.matrix.odd = &odds[0, 0] if odds.shape[1] else NULL

    def __reduce__(self):
        return ParityMatrix, (self.even, self.odd, self.matrix.n, not self.matrix.fixed)

    @property
    def shape(self):
        return self.matrix.n, self.matrix.n_even + self.matrix.n_odd

    def expand(self, values, Py_ssize_t axis, out=None):
        """A times each line of ``values`` along an axis; ``out`` is an array of the result's shape to write it to."""
        return self.along(values, axis, self.shape[1], self.shape[0], False, out)

    def fold(self, values, Py_ssize_t axis, out=None):
        """A' times each line."""
        return self.along(values, axis, self.shape[0], self.shape[1], True, out)

    def weigh(self, const double[:, ::1] values, const double[:, ::1] weights):
        """A' (weights * (A values)), (n_even + n_odd, inner): the values between the two products need no memory."""
        cdef Py_ssize_t columns = self.shape[1], inner = values.shape[1]
        if values.shape[0] != columns or weights.shape[0] != self.matrix.n or weights.shape[1] != inner:
            raise ValueError(f"{values.shape[0]} rows, {weights.shape[0]} rows of weights for a matrix {self.shape}")
        if inner < ops.wide or columns == 0:
            return self.fold(np.asarray(weights) * self.expand(np.asarray(values), 0), 0)
        cdef double[:, ::1] out = np.empty((columns, inner))
        cdef double *work = self.room()
        with nogil:
            ops.weigh(&self.matrix, inner, &values[0, 0], &weights[0, 0], &out[0, 0], work)
            free(work)
        return np.asarray(out)

    cdef double *room(self) except NULL:
        cdef double *work = <double *>malloc(fk_parity_work(&self.matrix) * sizeof(double))
        if work is NULL:
            raise MemoryError(f"no memory for products with a matrix {self.shape}")
        return work

    cdef along(self, values, Py_ssize_t axis, Py_ssize_t before, Py_ssize_t after, bint folds, out):
        shape = values.shape
        batch, inner = prod(shape[:axis]), prod(shape[axis + 1:])
        if out is None:
            out = np.empty((*shape[:axis], after, *shape[axis + 1:]))
        cdef const double[:, :, :] source = values.reshape(batch, before, inner)
        cdef double[:, :, ::1] target = out.reshape(batch, after, inner)
        cdef fk_lines lines_in, lines_out
        cdef double *work
        if source.size == 0 or target.size == 0:
            out[...] = 0.0
            return out
        if source.shape[2] > 1 and source.strides[2] != sizeof(double):
            raise ValueError("the axes after the one that is multiplied must be without gaps")
        lines_in.values = <double *>&source[0, 0, 0]
        lines_in.batch, lines_in.row = source.strides[0] // sizeof(double), source.strides[1] // sizeof(double)
        lines_out.values = &target[0, 0, 0]
        lines_out.batch, lines_out.row = after * target.shape[2], target.shape[2]
        work = self.room()
        with nogil:
            if folds:
                ops.fold(&self.matrix, source.shape[0], source.shape[2], lines_in, lines_out, work)
            else:
                ops.expand(&self.matrix, source.shape[0], source.shape[2], lines_in, lines_out, work)
            free(work)
        return out

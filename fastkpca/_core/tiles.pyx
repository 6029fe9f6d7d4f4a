# cython: language_level=3
"""Exact tiles of the four built-in kernels, and the products with them, in float64 or float32.

The loops are in C: ``tile_ops.c`` (vector loops, compiled once for each instruction set and chosen
when this module is imported; ``INSTRUCTION_SET`` says which) and ``tile_pair.c`` (the walk over tiles that stay in
cache). Here arrays become pointers, and the GIL is released for the whole of a call.

Gaussian distances are differences along the tile in few dimensions. In many they are |x|^2 + |y|^2 - 2 x.y, about the
joint mean of the two sets of rows. If the first two terms would cost the exponent more than 1e-13 (float32: 1e-5), the
tile is recentred, and if that is not enough differences are taken. ``block(X, X)`` is symmetric bit for bit. Inner
products of many coordinates are BLAS's.
"""

import numpy as np

from .arrays import contiguous

from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemm, dsyrk, sgemm, ssyrk


cdef extern from "tile_ops.h" nogil:
    enum:
        FK_PAD

    ctypedef struct fk_ops:
        const char *name

    const fk_ops *fk_select "fk_ops_select"(const char *name)


cdef extern from "tile_pair.h" nogil:
    enum:
        FK_LINEAR
        FK_POLYNOMIAL
        FK_GAUSSIAN
        FK_TANH
        FK_DIRECT

    const double FK_EXPONENT_ERROR_d
    const double FK_EXPONENT_ERROR_s

    ctypedef struct fk_kernel:
        int kind
        int degree
        double scale
        double offset
        double sigma

    ctypedef void (*fk_gemm_d)(char *, char *, int *, int *, int *, double *, double *, int *, double *, int *,
                               double *, double *, int *) noexcept nogil
    ctypedef void (*fk_gemm_s)(char *, char *, int *, int *, int *, float *, float *, int *, float *, int *,
                               float *, float *, int *) noexcept nogil
    ctypedef void (*fk_syrk_d)(char *, char *, int *, int *, double *, double *, int *, double *, double *,
                               int *) noexcept nogil
    ctypedef void (*fk_syrk_s)(char *, char *, int *, int *, float *, float *, int *, float *, float *,
                               int *) noexcept nogil

    ctypedef struct fk_pair:
        Py_ssize_t n
        Py_ssize_t m
        Py_ssize_t d
        const double *X
        const double *Y
        int same
        void *block
        Py_ssize_t k
        const double *Ux
        const double *Uy
        double *Vx
        double *Vy
        const double *rx
        const double *ry
        double g
        double *sums
        void *kept
        int known
        float *rounded
        double shift

    Py_ssize_t fk_kept_entries(Py_ssize_t n, Py_ssize_t m, int same)
    void fk_kept_block(Py_ssize_t n, Py_ssize_t m, int same, const double *kept, double *K) noexcept
    int fk_walk_d(const fk_ops *ops, const fk_kernel *kernel, fk_gemm_d gemm, fk_syrk_d syrk, const fk_pair *pair)
    int fk_walk_s(const fk_ops *ops, const fk_kernel *kernel, fk_gemm_s gemm, fk_syrk_s syrk, const fk_pair *pair)


cdef const fk_ops *ops = NULL

include "instruction_set.pxi"

# Limits that Gaussian.entry_error depends on: distances by differences up to this many coordinates; above, the bound on
# (|x|^2 + |y|^2) / (2 sigma^2) times the unit roundoff that a tile by products keeps to.
DIRECT = FK_DIRECT
LINE = FK_PAD * sizeof(float)
EXPONENT_ERROR = FK_EXPONENT_ERROR_d
EXPONENT_ERROR_SINGLE = FK_EXPONENT_ERROR_s


cdef int as_kernel(object kind, object parameters, fk_kernel *kernel) except -1:
    kernel.degree = 1
    kernel.scale = 1.0
    kernel.offset = 0.0
    kernel.sigma = 1.0
    if kind == "gaussian":
        kernel.kind = FK_GAUSSIAN
        kernel.sigma = parameters["sigma"]
        if not kernel.sigma > 0.0:
            raise ValueError(f"sigma is {kernel.sigma}; it must be positive")
        if not 1e-140 < kernel.sigma < 1e140:
            raise ValueError(f"sigma is {kernel.sigma}; its square leaves the range of float64: rescale the data")
    elif kind == "polynomial":
        kernel.kind = FK_POLYNOMIAL
        kernel.scale = parameters["scale"]
        kernel.offset = parameters["offset"]
        kernel.degree = parameters["degree"]
        if kernel.degree < 1:
            raise ValueError(f"degree is {kernel.degree}; it must be at least 1")
    elif kind == "tanh":
        kernel.kind = FK_TANH
        kernel.scale = parameters["scale"]
        kernel.offset = parameters["offset"]
    elif kind == "linear":
        kernel.kind = FK_LINEAR
    else:
        raise ValueError(f"no compiled tile is called {kind!r}; there are linear, polynomial, gaussian and tanh")
    return 0


cdef const double *first_of(const double[:, ::1] array) noexcept:
    return &array[0, 0] if array.shape[0] > 0 and array.shape[1] > 0 else NULL


cdef int walk(const fk_kernel *kernel, fk_pair *pair, bint single) except -1:
    cdef int failed
    if pair.d > 2147483647:
        raise OverflowError(f"a BLAS dimension of {pair.d} exceeds 2**31 - 1")
    with nogil:
        if single:
            failed = fk_walk_s(ops, kernel, sgemm, ssyrk, pair)
        else:
            failed = fk_walk_d(ops, kernel, dgemm, dsyrk, pair)
    if failed:
        raise MemoryError(f"no memory for the tiles of {pair.n} by {pair.m} rows")
    return 0


cdef tuple rows_of(X, Y):
    """(X, Y) as C-contiguous float64, Y the same object as X where the two are equal."""
    A = contiguous(X, np.float64)
    if Y is None or Y is X:
        return A, A
    B = contiguous(Y, np.float64)
    if A.shape == B.shape and np.array_equal(A, B):
        return A, A
    return A, B


def block(kind, parameters, X, Y):
    """k(X, Y), shape (len(X), len(Y)), a new array: float32 where X is float32, else float64.

    ``kind`` and its parameters: "gaussian" (sigma), "polynomial" (scale, offset, degree), "tanh" (scale, offset),
    "linear" (none). Overflow gives inf or NaN, which the caller must check.
    """
    cdef fk_kernel kernel
    cdef fk_pair pair
    as_kernel(kind, parameters, &kernel)
    cdef bint single = X.dtype == np.float32
    A, B = rows_of(X, Y)
    cdef const double[:, ::1] x = A, y = B
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"rows of {x.shape[1]} and of {y.shape[1]} numbers")
    out = np.empty((x.shape[0], y.shape[0]), dtype=np.float32 if single else np.float64)
    cdef char[::1] raw
    if out.size == 0:
        return out
    raw = out.reshape(-1).view(np.int8)
    memset(&pair, 0, sizeof(pair))
    pair.n, pair.m, pair.d = x.shape[0], y.shape[0], x.shape[1]
    pair.X, pair.Y = first_of(x), first_of(y)
    pair.same = A is B
    pair.block = &raw[0]
    walk(&kernel, &pair, single)
    return out


def kept_entries(Py_ssize_t n, Py_ssize_t m, bint same):
    """Length of the array in which ``product`` keeps the tiles of n by m rows, or of n with themselves.

    Rounded to float32 it is the array of tiles in float32.
    """
    return fk_kept_entries(n, n if same else m, same)


def kept_block(const double[::1] kept, Py_ssize_t n, Py_ssize_t m, bint same):
    """k(X, Y), (n, m), from the tiles ``product`` has kept of n by m rows, or of n with themselves, as a new array."""
    if kept.shape[0] != kept_entries(n, m, same):
        raise ValueError(f"{kept.shape[0]} values are not the tiles of {n} by {m} rows")
    out = np.empty((n, n if same else m))
    cdef double[:, ::1] K = out
    if out.size:
        with nogil:
            fk_kept_block(n, K.shape[1], same, &kept[0], &K[0, 0])
    return out


def product(kind, parameters, const double[:, ::1] X, Y, Ux, Uy, bint single=False, rx=None, ry=None, double g=0.0,
            kept=None, bint known=False, float[::1] rounded=None, double shift=0.0):
    """Products with K = k(X, Y), and sums over it, in one pass over its tiles.

    Parameters
    ----------
    X, Y : ndarray (n, d), (m, d), float64; Y None is X itself, each pair of tiles then serves both triangles
    Ux : ndarray (n, k) or None
        For K' Ux.
    Uy : ndarray (m, k) or None
        For K Uy. With Y None only ``Ux`` is given, and K Ux returned.
    single : bool
        Tiles in float32, sums over tiles in float64 all the same.
    rx, ry : ndarray (n,), (m,) or None
    g : float
        Ask for the sums below about these means.
    kept : ndarray, optional
        (``kept_entries``,), of the type computed in: the tiles are written there.
    known : bool
        They are there already, from an earlier call with the same rows, and are only multiplied.
    rounded : ndarray, optional
        As long as ``kept``: the same tiles less ``shift`` are written there in float32.

    Returns
    -------
    K Uy, K' Ux, (sum_ij (K_ij - rx_i - ry_j + g)^2, sum_ij K_ij^2); None for what was not asked for
    """
    cdef fk_kernel kernel
    cdef fk_pair pair
    cdef const double[:, ::1] y = X if Y is None else Y
    cdef const double[:, ::1] ux, uy
    cdef double[:, ::1] vx, vy
    cdef const double[::1] means_x, means_y
    cdef double[2] sums
    cdef bint same = Y is None
    as_kernel(kind, parameters, &kernel)
    if same:
        Uy = Ux
    if y.shape[1] != X.shape[1]:
        raise ValueError(f"rows of {X.shape[1]} and of {y.shape[1]} numbers")
    left = right = None
    memset(&pair, 0, sizeof(pair))
    pair.n, pair.m, pair.d = X.shape[0], y.shape[0], X.shape[1]
    pair.X, pair.Y = first_of(X), first_of(y)
    pair.same = same
    pair.g = g
    sums[0] = sums[1] = 0.0
    pair.sums = &sums[0]
    if Ux is not None:
        ux = Ux
        if ux.shape[0] != pair.n:
            raise ValueError(f"{ux.shape[0]} rows of Ux for {pair.n} rows of X")
        pair.k = ux.shape[1]
        pair.Ux = first_of(ux)
    if Uy is not None:
        uy = Uy
        if uy.shape[0] != pair.m or (Ux is not None and uy.shape[1] != pair.k):
            raise ValueError(f"Uy of shape {(uy.shape[0], uy.shape[1])} for {pair.m} rows of Y and {pair.k} columns")
        pair.k = uy.shape[1]
        pair.Uy = first_of(uy)
        left = np.zeros((pair.n, pair.k))
        vx = left
        if left.size:
            pair.Vx = &vx[0, 0]
    if Ux is not None and not same:
        right = np.zeros((pair.m, pair.k))
        vy = right
        if right.size:
            pair.Vy = &vy[0, 0]
    if rx is not None:
        means_x = rx
        means_y = rx if same else ry
        if means_x.shape[0] != pair.n or means_y.shape[0] != pair.m:
            raise ValueError(f"{means_x.shape[0]} and {means_y.shape[0]} means for {pair.n} and {pair.m} rows")
        if pair.n and pair.m:
            pair.rx, pair.ry = &means_x[0], &means_y[0]
    cdef char[::1] raw
    if kept is not None:
        if kept.itemsize != (4 if single else 8) or kept.size < fk_kept_entries(pair.n, pair.m, same):
            raise ValueError(f"no room for the tiles of {pair.n} by {pair.m} rows in {kept.size} of {kept.dtype}")
        if kept.size:
            raw = kept.view(np.int8)
            pair.kept = &raw[0]
            pair.known = known
            if rounded is not None:
                if rounded.shape[0] < kept.size:
                    raise ValueError(f"no room for {kept.size} rounded values in {rounded.shape[0]}")
                pair.rounded, pair.shift = &rounded[0], shift
    walk(&kernel, &pair, single)
    return left, right, (None if rx is None else (sums[0], sums[1]))

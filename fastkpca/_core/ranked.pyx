# cython: language_level=3
"""Ranked multi-indices of the Gaussian: one-dimensional tables, the search for the heaviest, evaluation along a trie.

h_k(x) = exp(-x^2/2) x^k / sqrt(k!), so that exp(-(x-y)^2/2) = sum_k h_k(x) h_k(y) and h_k(x)^2 is the Poisson
probability of k at rate x^2. Multi-indices are kept in lexicographic order, which is the depth-first order of their
prefix trie: the products for the prefix that an index shares with its predecessor are still on the stack.
"""

import numpy as np

from libc.math cimport exp, fabs, lgamma, log, rint, sqrt
from libc.stdlib cimport free, malloc
from scipy.linalg.cython_blas cimport dgemv

cdef enum:
    CHUNK = 128  # points at a time: tables and stack stay in the second cache

ctypedef fused real:
    float
    double


cdef double deviance(double k, double rate) noexcept nogil:
    # k log(k / rate) + rate - k without cancellation (Loader 2000, "Fast and accurate computation of binomial
    # probabilities", function bd0)
    cdef double v, s, before, term
    cdef int j
    if fabs(k - rate) < 0.1 * (k + rate):
        v = (k - rate) / (k + rate)
        s = (k - rate) * v
        term = 2.0 * k * v
        v *= v
        for j in range(1, 1000):
            term *= v
            before = s
            s += term / (2 * j + 1)
            if s == before:
                break
        return s
    return k * log(k / rate) + rate - k


cdef double modulus(double k, double rate) noexcept nogil:
    # |h_k(sqrt(rate))|: root of the Poisson probability, by Stirling's formula with its error (Loader 2000)
    cdef double inverse, stirling
    if k < 16.0:
        return exp(0.5 * (k * log(rate) - rate - lgamma(k + 1.0)))
    inverse = 1.0 / (k * k)
    stirling = (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - inverse / 1188) * inverse) * inverse) * inverse) / k
    return exp(-0.5 * (stirling + deviance(k, rate))) / sqrt(sqrt(6.283185307179586477 * k))


cdef void fill(const double *x, Py_ssize_t n, Py_ssize_t order, const double *root, double *previous,
               real *table, Py_ssize_t stride) noexcept nogil:
    # rows 0..order of table: h_k at n points
    cdef Py_ssize_t i, k, mode
    cdef double h, inverse, rate
    for i in range(n):
        previous[i] = exp(-0.5 * x[i] * x[i])
        table[i] = <real>previous[i]
    for k in range(1, order + 1):
        inverse = 1.0 / root[k]
        for i in range(n):
            previous[i] *= x[i] * inverse
            table[k * stride + i] = <real>previous[i]
    if order == 0:
        return
    for i in range(n):
        rate = x[i] * x[i]
        if rate <= 64.0:
            continue
        if not rate < 4.0 * order + 4000.0:  # all below 1e-308
            for k in range(order + 1):
                table[k * stride + i] = 0
            continue
        # far out: start at the largest term, where nothing underflows, and go both ways
        mode = order if rate >= order else <Py_ssize_t>rint(rate)
        h = modulus(<double>mode, rate)
        if x[i] < 0.0 and mode % 2 == 1:
            h = -h
        table[mode * stride + i] = <real>h
        inverse = h
        for k in range(mode, 0, -1):
            inverse *= root[k] / x[i]
            table[(k - 1) * stride + i] = <real>inverse
        for k in range(mode + 1, order + 1):
            h *= x[i] / root[k]
            table[k * stride + i] = <real>h


def one_dimensional(const double[::1] x, Py_ssize_t order):
    """h_0(x), ..., h_order(x): shape (order + 1, n)."""
    cdef Py_ssize_t n = x.shape[0]
    result = np.empty((order + 1, n))
    cdef double[:, ::1] table = result
    cdef double[::1] root = np.sqrt(np.arange(order + 1.0))
    cdef double[::1] previous = np.empty(n)
    if n:
        with nogil:
            fill(&x[0], n, order, &root[0], &previous[0], &table[0, 0], n)
    return result


def search(const double[:, ::1] mass, const Py_ssize_t[::1] first, double threshold, Py_ssize_t max_leaves,
           double max_work):
    """All multi-indices whose mean mass is at least ``threshold``, in lexicographic order.

    ``mass`` (m, n) holds, for coordinate i, the rows first[i]..first[i + 1] of candidate orders: the mass of one order
    at each of n points. The mass of a prefix bounds that of every index that begins with it. Returns (numbers of the
    candidates (leaves, d), masses), or None where there are more leaves or multiplications than allowed.
    """
    cdef int n = <int>mass.shape[1], one = 1, c
    cdef Py_ssize_t d = first.shape[0] - 1, depth = 0, i, j, leaves = 0, capacity = 1024
    cdef double unit = 1.0, zero = 0.0, work = 0.0
    cdef Py_ssize_t widest = max(first[i + 1] - first[i] for i in range(d))
    cdef bint full = False
    indices = np.empty((capacity, d), dtype=np.intc)
    weights = np.empty(capacity)
    cdef int[:, ::1] out = indices
    cdef double[::1] heavy = weights
    cdef double[:, ::1] stack = np.empty((d, n))
    cdef double[:, ::1] sums = np.empty((d, max(1, widest)))
    cdef Py_ssize_t[::1] at = np.zeros(d, dtype=np.intp)
    stack[0, :] = 1.0 / n
    for i in range(d):
        if first[i + 1] == first[i]:  # no order of this coordinate is heavy enough
            return indices[:0], weights[:0]
    c = <int>(first[1] - first[0])
    dgemv(b"T", &n, &c, &unit, <double *>&mass[0, 0], &n, &stack[0, 0], &one, &zero, &sums[0, 0], &one)
    while depth >= 0:
        with nogil:
            while depth >= 0 and leaves + 1 < capacity:
                j = at[depth]
                if j == first[depth + 1] - first[depth]:
                    depth -= 1
                    continue
                at[depth] = j + 1
                if sums[depth, j] < threshold:
                    continue
                if work > max_work or leaves > max_leaves:
                    full = True
                    break
                if depth == d - 1:
                    for i in range(d):
                        out[leaves, i] = <int>(at[i] - 1)
                    heavy[leaves] = sums[depth, j]
                    leaves += 1
                    continue
                j += first[depth]
                for i in range(n):
                    stack[depth + 1, i] = stack[depth, i] * mass[j, i]
                depth += 1
                at[depth] = 0
                c = <int>(first[depth + 1] - first[depth])
                work += n * (1.0 + c)
                dgemv(b"T", &n, &c, &unit, <double *>&mass[first[depth], 0], &n, &stack[depth, 0], &one, &zero,
                      &sums[depth, 0], &one)
        if full:
            return None
        if depth >= 0:
            capacity *= 2
            indices = np.concatenate([indices, np.empty_like(indices)])
            weights = np.concatenate([weights, np.empty_like(weights)])
            out = indices
            heavy = weights
    return indices[:leaves], weights[:leaves]


def evaluate(const double[:, ::1] z, const double[::1] base, const int[:, ::1] indices, const int[::1] shared,
             const Py_ssize_t[::1] orders, real[:, ::1] tile):
    """tile[j, i] = base[i] prod_c h_(indices[j, c])(z[c, i]): features (D, n) of n points z (d, n).

    ``shared[j]``: how many leading entries index j has in common with index j - 1; ``orders``: the largest entry of
    each coordinate.
    """
    cdef Py_ssize_t D = indices.shape[0], d = indices.shape[1], n = tile.shape[1], start, m, i, j, c, rows = 0
    cdef Py_ssize_t top = 0
    cdef Py_ssize_t[::1] offset = np.empty(d + 1, dtype=np.intp)
    cdef real *tables
    cdef real *stack
    cdef real *above
    cdef real *below
    cdef const real *factor
    cdef double previous[CHUNK]
    for c in range(d):
        offset[c] = rows
        rows += orders[c] + 1
        top = max(top, orders[c])
    cdef double[::1] root = np.sqrt(np.arange(top + 1.0))
    if D == 0 or n == 0:
        return
    tables = <real *>malloc((rows + d + 1) * CHUNK * sizeof(real))
    if tables is NULL:
        raise MemoryError("no memory for the one-dimensional tables")
    stack = tables + rows * CHUNK
    with nogil:
        start = 0
        while start < n:
            m = min(n - start, <Py_ssize_t>CHUNK)
            for c in range(d):
                fill(&z[c, start], m, orders[c], &root[0], previous, tables + offset[c] * CHUNK, CHUNK)
            for i in range(m):
                stack[i] = <real>base[start + i]
            if d == 0:
                for i in range(m):
                    tile[0, start + i] = stack[i]
            for j in range(D):
                for c in range(shared[j], d):
                    factor = tables + (offset[c] + indices[j, c]) * CHUNK
                    below = stack + c * CHUNK
                    above = &tile[j, start] if c == d - 1 else stack + (c + 1) * CHUNK
                    for i in range(m):
                        above[i] = below[i] * factor[i]
            start += m
    free(tables)


def squared_norms(const real[:, ::1] tile):
    """|phi|^2 of each of n points, (n,), float64, from features (D, n).

    Summed in stretches of 64 features: the rounding error is at most (66 + D / 64) u |phi|^2.
    """
    cdef Py_ssize_t D = tile.shape[0], n = tile.shape[1], i, j, stop, start = 0, block
    result = np.zeros(n)
    cdef double[::1] total = result
    cdef double part[CHUNK]
    cdef Py_ssize_t m
    with nogil:
        while start < n:
            m = min(n - start, <Py_ssize_t>CHUNK)
            block = 0
            while block < D:
                stop = min(D, block + 64)
                for i in range(m):
                    part[i] = 0.0
                for j in range(block, stop):
                    for i in range(m):
                        part[i] += <double>tile[j, start + i] * <double>tile[j, start + i]
                for i in range(m):
                    total[start + i] += part[i]
                block = stop
            start += m
    return result

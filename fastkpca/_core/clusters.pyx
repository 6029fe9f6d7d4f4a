# cython: language_level=3
"""Clusters of rows and what to do with each pair of them: a bisection tree, and the cheapest treatment that holds.

The Gaussian between a cluster with centre c and radius a and another with centre z and radius b, lengths in units of
sigma, y = c + t, x = z + s:

    k(x, y) = k(x, c) k(y, z) / k(z, c) exp(s.t),    exp(s.t) = sum_m (s.t)^m / m!  cut after m < p.

With R = a b, D = |z - c|, delta a lower bound on |x - y|, and |x - y| >= |s - t| - D >= 2 sqrt(-s.t) - D where
s.t < 0, the error of the pair is at most

    s.t >= 0:  exp(-delta^2 / 2) P(p, R)                 (P: Poisson tail, truncation.pyx; increasing in s.t)
    s.t <  0:  exp(R - m^2 / 2) R^p / p!,    m = max(delta, 2 sqrt(R) - D)

the second for p >= R: T^p exp(T - (2 sqrt(T) - D)_+^2 / 2) has its maximum over T = -s.t at sqrt(T) =
(D + sqrt(D^2 + 4 p)) / 2 >= sqrt(p), so up to T = R it increases, and so does its minimum with
T^p exp(T - delta^2 / 2). About two centres the order depends on a b alone, not on the distance as about one centre;
the error is the same in both directions, so that a product with one set of rows is symmetric.

Every intermediate term of a pair is at most A = exp(2 R - max(delta, 2 sqrt(R) - D)^2 / 2) in size (|s||t| - s.t
<= 2 R), which is what its rounding is measured by.
"""

import numpy as np

from libc.math cimport INFINITY, exp, sqrt
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm
from scipy.special.cython_special cimport gammainc


cdef extern from "tile_ops.h" nogil:
    ctypedef struct fk_ops_d:
        void (*gauss_direct)(Py_ssize_t ni, Py_ssize_t nj, Py_ssize_t d, const double *X, Py_ssize_t ldx,
                             const double *Yt, Py_ssize_t ldy, double c, double *K, Py_ssize_t ldk) noexcept nogil

    ctypedef struct fk_ops:
        fk_ops_d d

    const fk_ops *fk_select(const char *name)
    enum:
        FK_PAD


cdef extern from "cluster_loops.h" nogil:
    void fk_monomial(Py_ssize_t n, const double *a, const double *b, double w, double *out)
    void fk_weigh(Py_ssize_t n, const double *a, const double *b, Py_ssize_t stride, double *out)
    void fk_add_products(Py_ssize_t n, const double *a, const double *b, double *out)


cdef const fk_ops *ops = fk_select(NULL)

cdef enum:
    BINS = 64
    DEPTH = 64        # beyond it rows are halved by number: bounded whatever the data
    LOOK = 4          # splits that may go by without gain before an expansion is taken as it is

cdef double ROUNDOFF = 1.1102230246251565e-16
cdef double AMPLIFIED = 1e3  # A at most: whatever tol is, both directions and both orders of a product agree to 1e-12
cdef double REACH = 30.0  # |z - c| + radius: exp(-REACH^2 / 2) is far from underflow, exp(REACH^2 / 2) from overflow


# ---- the tree ----

cdef double square_distance(const double *x, const double *y, Py_ssize_t d) noexcept nogil:
    cdef double total = 0.0, t
    cdef Py_ssize_t f
    for f in range(d):
        t = x[f] - y[f]
        total += t * t
    return total


cdef void measure(const double *rows, Py_ssize_t n, Py_ssize_t d, double *low, double *high, double *centre,
                  double *radius, double *scratch) noexcept nogil:
    """Box, and the better of two balls: about the mean and about the middle of the box."""
    cdef Py_ssize_t i, f
    cdef double mean_square = 0.0, middle_square = 0.0, x
    cdef double *middle = scratch
    for f in range(d):
        low[f] = high[f] = rows[f]
        centre[f] = 0.0
    for i in range(n):
        for f in range(d):
            x = rows[i * d + f]
            low[f] = min(low[f], x)
            high[f] = max(high[f], x)
            centre[f] += x
    for f in range(d):
        middle[f] = low[f] + 0.5 * (high[f] - low[f])
        # of equal rows exactly the row, whatever the sum rounded to
        centre[f] = min(max(centre[f] / n, low[f]), high[f])
    for i in range(n):
        mean_square = max(mean_square, square_distance(rows + i * d, centre, d))
        middle_square = max(middle_square, square_distance(rows + i * d, middle, d))
    if middle_square < mean_square:
        mean_square = middle_square
        memcpy(centre, middle, d * sizeof(double))
    radius[0] = sqrt(mean_square) * (1.0 + (d + 8) * ROUNDOFF)


cdef void exchange(double *rows, Py_ssize_t *order, Py_ssize_t d, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    cdef Py_ssize_t f, o = order[i]
    cdef double x
    order[i] = order[j]
    order[j] = o
    for f in range(d):
        x = rows[i * d + f]
        rows[i * d + f] = rows[j * d + f]
        rows[j * d + f] = x


cdef Py_ssize_t divide(double *rows, Py_ssize_t *order, Py_ssize_t n, Py_ssize_t d, const double *low,
                       const double *high, bint halve) noexcept nogil:
    """Reorder n rows into two parts along the longest side of their box; returns where the second begins.

    The cut is where the two parts' sum of squares about their means is least, by a histogram (Otsu 1979): between
    clusters where there are any, in the middle of uniform rows, and a far row goes by itself.
    """
    cdef Py_ssize_t axis = 0, f, i, j, b
    cdef double widest = -1.0, scale, cut, best = -1.0, below = 0.0, total = 0.0, between, x
    cdef double[BINS] sums
    cdef Py_ssize_t[BINS] counts
    cdef Py_ssize_t seen = 0
    for f in range(d):
        if high[f] - low[f] > widest:
            widest = high[f] - low[f]
            axis = f
    if not 1e-290 < widest < 1e290:  # equal rows, or beyond what the histogram's arithmetic holds
        return 0
    if halve:
        return n // 2
    scale = BINS / widest
    for b in range(BINS):
        sums[b] = 0.0
        counts[b] = 0
    for i in range(n):
        x = rows[i * d + axis] - low[axis]
        b = min(<Py_ssize_t>(x * scale), <Py_ssize_t>BINS - 1)
        sums[b] += x
        counts[b] += 1
        total += x
    cut = -1.0
    for b in range(BINS - 1):
        seen += counts[b]
        below += sums[b]
        if seen == 0 or seen == n:
            continue
        between = below / seen - (total - below) / (n - seen)
        between = between * between * seen * (n - seen)
        # an empty bin after this one: as good, and the first is taken
        if between > best:
            best = between
            cut = b + 1
    i, j = 0, n - 1
    while i <= j:
        if min(<Py_ssize_t>((rows[i * d + axis] - low[axis]) * scale), <Py_ssize_t>BINS - 1) < cut:
            i += 1
        else:
            exchange(rows, order, d, i, j)
            j -= 1
    return i


def bisect(const double[:, ::1] rows, Py_ssize_t leaf):
    """Rows reordered so that every node of a bisection tree is a slice, down to at most ``leaf`` rows (or equal ones).

    Returns
    -------
    rows : ndarray (n, d)
    order : ndarray (n,), intp
        rows[i] is the given row order[i].
    start, stop, left : ndarray (m,), intp
        Node i holds rows start:stop; its parts are nodes left[i] and left[i] + 1, -1 for a leaf. Node 0 is the root.
    centre, low, high : ndarray (m, d)
    radius : ndarray (m,)
        No row of the node is farther from its centre, rounding included.
    """
    cdef Py_ssize_t n = rows.shape[0], d = rows.shape[1], room = 64, used = 1, i, first, last, cut
    out_array = np.array(rows, dtype=np.float64, order="C")
    order_array = np.arange(n, dtype=np.intp)
    cdef double[:, ::1] out = out_array
    cdef Py_ssize_t[::1] order = order_array
    if n == 0 or d == 0:
        raise ValueError(f"no clusters of {n} rows of {d} numbers")
    while room < 4 * n // leaf + 64:
        room *= 2
    integers = np.zeros((4, room), dtype=np.intp)  # start, stop, left, depth
    reals = np.zeros((room, 3 * d + 1))  # centre, low, high, radius
    cdef Py_ssize_t[:, ::1] node = integers
    cdef double[:, ::1] shape = reals
    scratch_array = np.zeros(d)
    cdef double[::1] scratch = scratch_array
    node[0, 0], node[1, 0], node[2, 0], node[3, 0] = 0, n, -1, 0
    i = 0
    while i < used:
        if used + 2 > room:
            integers = np.concatenate([integers, np.zeros_like(integers)], axis=1)
            reals = np.concatenate([reals, np.zeros_like(reals)], axis=0)
            node, shape, room = integers, reals, 2 * room
        with nogil:
            first, last = node[0, i], node[1, i]
            measure(&out[first, 0], last - first, d, &shape[i, d], &shape[i, 2 * d], &shape[i, 0], &shape[i, 3 * d],
                    &scratch[0])
            node[2, i] = -1
            if last - first > leaf:
                cut = divide(&out[first, 0], &order[first], last - first, d, &shape[i, d], &shape[i, 2 * d],
                             node[3, i] >= DEPTH)
                if 0 < cut < last - first:
                    node[2, i] = used
                    node[0, used], node[1, used], node[3, used] = first, first + cut, node[3, i] + 1
                    node[0, used + 1], node[1, used + 1], node[3, used + 1] = first + cut, last, node[3, i] + 1
                    used += 2
        i += 1
    start, stop, left = (np.ascontiguousarray(x[:used]) for x in integers[:3])
    centre, low, high = (np.ascontiguousarray(reals[:used, k * d:(k + 1) * d]) for k in range(3))
    return out_array, order_array, start, stop, left, centre, low, high, np.ascontiguousarray(reals[:used, 3 * d])


# ---- the treatment of a pair ----

cdef double falling_tail(Py_ssize_t p, double R) noexcept nogil:
    """P(p, R), cheaply and from above where R is far below p."""
    cdef Py_ssize_t m
    cdef double term = exp(-R)
    if R <= 0.0:
        return 0.0
    if R > 0.5 * p:
        return min(1.0, (1.0 + 1e-11) * gammainc(<double>p, R))
    for m in range(1, p + 1):
        term *= R / m
    return (1.0 + 1e-11) * term / (1.0 - R / (p + 1.0))


cdef double truncation_error(Py_ssize_t p, double R, double D, double delta) noexcept nogil:
    cdef double near = max(delta, 2.0 * sqrt(R) - D), power = exp(R - 0.5 * near * near)
    cdef Py_ssize_t m
    if R <= 0.0:
        return 0.0
    if R > p:
        return INFINITY
    for m in range(1, p + 1):
        power *= R / m
    return max((1.0 + 1e-11) * power, exp(-0.5 * delta * delta) * falling_tail(p, R))


cdef double rounding_error(Py_ssize_t p, double terms, double rows, double a, double b, double D, double delta,
                           Py_ssize_t d) noexcept nogil:
    """Of an expansion's pair: the three kernel values (by differences), the monomials, the sums over terms and rows."""
    cdef double R = a * b, near = max(delta, 2.0 * sqrt(R) - D), size = exp(2.0 * R - 0.5 * near * near)
    cdef double exponents = 0.5 * ((D + a) * (D + a) + (D + b) * (D + b) + D * D)
    cdef double count = (d + 6) * exponents + 24.0 + 12.0 * p + 4.0 * d * R + terms + rows
    return size * count * ROUNDOFF * (1.0 + 1e-9)


def expansion_error(Py_ssize_t p, double a, double b, double D, double delta):
    """Bound on the truncation error of a pair of clusters of radii a and b at distance D, no pair within delta."""
    return truncation_error(p, a * b, D, delta)


cdef struct Side:
    const Py_ssize_t *start
    const Py_ssize_t *stop
    const Py_ssize_t *left
    const double *centre
    const double *low
    const double *high
    const double *radius


cdef struct Plan:
    Side x
    Side y
    bint same
    Py_ssize_t d
    double sigma, tol
    double dropped          # bound on |s.t - (s.t as expanded)|
    double scale_x, scale_y  # rows that one given row stands for
    Py_ssize_t orders
    const double *terms     # terms[p] for p <= orders
    double pair_cost, call_cost, row_cost, term_cost, monomial_cost
    Py_ssize_t *list        # x node, y node, order (0: exact), one after the other
    Py_ssize_t length, room, most
    double worst            # largest error of a skipped pair, or of an expanded one, that was considered good
    bint failed


cdef struct Choice:
    double cost, error
    Py_ssize_t order        # 0: exact, -1: nothing to do


cdef Choice choose(const Plan *plan, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """The cheapest treatment of a pair of nodes as a whole."""
    cdef Choice choice
    cdef Py_ssize_t d = plan.d, f, p
    cdef double a = plan.x.radius[i] / plan.sigma, b = plan.y.radius[j] / plan.sigma
    cdef double D = sqrt(square_distance(plan.x.centre + i * d, plan.y.centre + j * d, d)) / plan.sigma
    cdef double slack = 4.0 * (d + 8) * ROUNDOFF * (D + a + b), delta = max(0.0, D - a - b - slack)
    cdef double box = 0.0, gap, far, R, near, power, error, cost, grow, directions = 1.0
    cdef double n = plan.scale_x * (plan.x.stop[i] - plan.x.start[i])
    cdef double m = plan.scale_y * (plan.y.stop[j] - plan.y.start[j])
    if i != j or not plan.same:
        for f in range(d):
            gap = max(plan.x.low[i * d + f] - plan.y.high[j * d + f], plan.y.low[j * d + f] - plan.x.high[i * d + f])
            if gap > 0.0:
                box += gap * gap
        delta = max(delta, sqrt(box) / plan.sigma * (1.0 - 4.0 * (d + 8) * ROUNDOFF))
    far = exp(-0.5 * delta * delta) * (1.0 + 1e-13)
    choice.order, choice.error, choice.cost = -1, far, 0.0
    if far <= plan.tol:
        return choice
    choice.order, choice.error = 0, 0.0
    choice.cost = plan.call_cost + plan.pair_cost * n * m
    if plan.same:
        if i == j:
            choice.cost -= 0.5 * plan.pair_cost * n * m
        else:
            directions = 2.0
    if D + max(a, b) > REACH:
        return choice
    R = a * b
    D += slack
    grow = exp(plan.dropped)
    near = max(delta, 2.0 * sqrt(R) - D)
    if exp(2.0 * R - 0.5 * near * near) > AMPLIFIED:
        return choice
    power = exp(R - 0.5 * near * near)
    for p in range(1, plan.orders + 1):
        power *= R / p
        # a cluster's monomials serve all its partners: about as many as clusters of that size there are
        cost = directions * (plan.call_cost + (n + m) * (plan.row_cost + plan.term_cost * plan.terms[p])
                             + plan.monomial_cost * plan.terms[p] * n * m)
        if cost >= choice.cost:
            break
        if p < R or power > plan.tol:
            continue
        error = grow * truncation_error(p, R, D, delta) + far * (grow - 1.0)
        error += rounding_error(p, plan.terms[p], max(n, m), a, b, D, delta, d)
        if error <= plan.tol:
            choice.order, choice.cost, choice.error = p, cost, error
            break
    return choice


cdef void append(Plan *plan, Py_ssize_t i, Py_ssize_t j, const Choice *choice) noexcept nogil:
    cdef void *more
    if plan.length >= plan.most:
        plan.failed = True
        return
    if plan.length == plan.room:
        more = realloc(plan.list, 2 * plan.room * 3 * sizeof(Py_ssize_t))
        if more is NULL:
            plan.failed = True
            return
        plan.list = <Py_ssize_t *>more
        plan.room *= 2
    plan.list[3 * plan.length] = i
    plan.list[3 * plan.length + 1] = j
    plan.list[3 * plan.length + 2] = choice.order
    plan.length += 1
    plan.worst = max(plan.worst, choice.error)


cdef double solve(Plan *plan, Py_ssize_t i, Py_ssize_t j, double budget, double share, int misses) noexcept nogil:
    """Append the cheapest treatments found of the pair and return their cost; ``budget`` or more: nothing is used.

    A pair is split while that may gain: always where it would be exact, and LOOK splits beyond an expansion that its
    share of the cost above did not improve.
    """
    cdef Choice choice = choose(plan, i, j)
    cdef Py_ssize_t mark = plan.length, first, second
    cdef double limit = min(choice.cost, budget), total = 0.0
    cdef bint both = plan.same and i == j
    first, second = plan.x.left[i], plan.y.left[j]
    if choice.order < 0:
        plan.worst = max(plan.worst, choice.error)
        return 0.0
    misses = misses + 1 if choice.cost >= share else 0
    if plan.failed:
        return choice.cost
    if (first >= 0 or second >= 0) and (choice.order == 0 or misses < LOOK):
        if choice.order == 0:
            misses = 0
        if both:
            share = choice.cost / 3.0
            total = solve(plan, first, first, limit, share, misses)
            if total < limit:
                total += solve(plan, first, first + 1, limit - total, share, misses)
            if total < limit:
                total += solve(plan, first + 1, first + 1, limit - total, share, misses)
        else:
            share = choice.cost / 2.0
            if second < 0 or (first >= 0 and plan.x.radius[i] >= plan.y.radius[j]):
                total = solve(plan, first, j, limit, share, misses)
                if total < limit:
                    total += solve(plan, first + 1, j, limit - total, share, misses)
            else:
                total = solve(plan, i, second, limit, share, misses)
                if total < limit:
                    total += solve(plan, i, second + 1, limit - total, share, misses)
        if total < limit:
            return total
        plan.length = mark
    if choice.cost < budget:
        append(plan, i, j, &choice)
    return choice.cost


cdef class Tree:
    """The nodes of ``bisect``, ready for ``treatments``."""
    cdef readonly object start, stop, left, centre, low, high, radius
    cdef Side side

    def __init__(self, start, stop, left, centre, low, high, radius):
        cdef const Py_ssize_t[::1] first = start, last = stop, child = left
        cdef const double[:, ::1] middle = centre, least = low, most = high
        cdef const double[::1] r = radius
        self.start, self.stop, self.left = start, stop, left
        self.centre, self.low, self.high, self.radius = centre, low, high, radius
        self.side.start, self.side.stop, self.side.left = &first[0], &last[0], &child[0]
        self.side.centre, self.side.low, self.side.high = &middle[0, 0], &least[0, 0], &most[0, 0]
        self.side.radius = &r[0]


def treatments(Tree x, Tree y, double sigma, double tol, const double[::1] terms, double[::1] costs, *,
               double dropped=0.0, double scale_x=1.0, double scale_y=1.0, Py_ssize_t most=1 << 24, roots=None):
    """What to do with every pair of rows: a list of pairs of nodes, each pair of rows in at most one of them.

    A pair of rows in none of them has a kernel value of at most tol.

    Parameters
    ----------
    x, y : Tree
        The same object: the list has one entry for both directions of a pair of nodes.
    terms : ndarray (P + 1,)
        Terms of an expansion of order p.
    costs : ndarray (5,)
        Of an exact value, of a call, of each row of an expansion: fixed, and for each term; of a monomial.
    dropped : float
        Bound on the part of s.t that is not expanded, for every pair.
    scale_x, scale_y : float
        Rows that each row stands for (planning from a sample).
    most : int
        Entries at most.
    roots : sequence of int, optional
        Only these nodes of x (then x and y are taken for different sets).

    Returns
    -------
    list : ndarray (m, 3), intp
        Node of x, node of y, order of the expansion, 0 for exact values; None where more than ``most`` would be needed.
    cost : float
    worst : float
        No treatment errs by more.
    """
    cdef Plan plan
    cdef Py_ssize_t i
    cdef double cost = 0.0
    cdef Py_ssize_t[:, ::1] out
    plan.x, plan.y = x.side, y.side
    plan.same = x is y and roots is None
    plan.d = x.centre.shape[1]
    plan.sigma, plan.tol, plan.dropped = sigma, tol, dropped
    plan.scale_x, plan.scale_y = scale_x, scale_y
    plan.orders = terms.shape[0] - 1
    plan.terms = &terms[0]
    plan.pair_cost, plan.call_cost, plan.row_cost, plan.term_cost = costs[0], costs[1], costs[2], costs[3]
    plan.monomial_cost = costs[4] * (1.0 / (scale_x * x.stop[0]) + 1.0 / (scale_y * y.stop[0]))
    plan.room, plan.length, plan.most, plan.worst, plan.failed = 1024, 0, most, 0.0, False
    plan.list = <Py_ssize_t *>malloc(plan.room * 3 * sizeof(Py_ssize_t))
    if plan.list is NULL:
        raise MemoryError("no memory for the list of pairs of clusters")
    try:
        for i in ([0] if roots is None else roots):
            with nogil:
                cost += solve(&plan, i, 0, INFINITY, INFINITY, 0)
        if plan.failed:
            return None, INFINITY, INFINITY
        result = np.empty((plan.length, 3), dtype=np.intp)
        if plan.length:
            out = result
            memcpy(&out[0, 0], plan.list, plan.length * 3 * sizeof(Py_ssize_t))
    finally:
        free(plan.list)
    return result, cost, plan.worst


# ---- expansions of one cluster with all its partners ----

# Rows of a cluster in hand: monomials about its centre, and room for kernel values.
cdef struct Strip:
    Py_ssize_t d, q, n, most        # most: columns of every array, a multiple of FK_PAD
    double *raw                     # (d, most), feature-major, the last row repeated
    double *own                     # (q, most), about the centre in units of sigma (rotated)
    double *phi                     # (D, most)
    double *K                       # (PARTNERS, most)
    double *H                       # (PARTNERS, most)


cdef enum:
    ROWS = 256       # of a strip: with a few hundred terms it stays in the second-level cache
    PARTNERS = 128   # at a time
    FEW = 8          # below which BLAS gains nothing from fewer terms


cdef double *cut_room(char **arena, size_t count) noexcept nogil:
    cdef double *first = <double *>arena[0]
    arena[0] += (count * sizeof(double) + 63) // 64 * 64
    return first


cdef void *make_strip(Strip *strip, Py_ssize_t n, Py_ssize_t d, Py_ssize_t q, Py_ssize_t terms) noexcept nogil:
    cdef Py_ssize_t most = min(<Py_ssize_t>ROWS, (n + FK_PAD - 1) // FK_PAD * FK_PAD)
    cdef size_t size = (d + q + terms + 2 * PARTNERS) * most * sizeof(double) + 8 * 64
    cdef void *memory = malloc(size)
    cdef char *arena
    if memory is NULL:
        return NULL
    arena = <char *>memory + (64 - <size_t>memory % 64)
    strip.d, strip.q, strip.most = d, q, most
    strip.raw = cut_room(&arena, d * most)
    strip.own = cut_room(&arena, q * most)
    strip.phi = cut_room(&arena, terms * most)
    strip.K = cut_room(&arena, PARTNERS * most)
    strip.H = cut_room(&arena, PARTNERS * most)
    return memory


cdef void fill_strip(Strip *strip, const double *rows, const double *centre, const double *axes, double sigma,
                     Py_ssize_t n, const int *parent, const int *coordinate, const double *factor,
                     Py_ssize_t terms) noexcept nogil:
    cdef Py_ssize_t i, j, f, g, most = strip.most, d = strip.d, q = strip.q
    cdef double scale = 1.0 / sigma, x, w
    cdef double *row
    cdef const double *source
    strip.n = n
    for f in range(d):
        row = strip.raw + f * most
        for i in range(n):
            row[i] = rows[i * d + f]
        for i in range(n, most):
            row[i] = row[n - 1]
    if axes is NULL:
        for f in range(d):
            for i in range(n):
                strip.own[f * most + i] = (strip.raw[f * most + i] - centre[f]) * scale
    else:
        for g in range(q):
            row = strip.own + g * most
            for i in range(n):
                row[i] = 0.0
            for f in range(d):
                x, w = centre[f], axes[f * q + g] * scale
                source = strip.raw + f * most
                for i in range(n):
                    row[i] += (source[i] - x) * w
    for i in range(n):
        strip.phi[i] = 1.0
    for j in range(1, terms):
        fk_monomial(n, strip.phi + parent[j] * most, strip.own + coordinate[j] * most, factor[j], strip.phi + j * most)


cdef void values(const Strip *strip, const double *partners, Py_ssize_t m, Py_ssize_t n, double sigma) noexcept nogil:
    """strip.K = k(partner, row), by differences: (m, n)."""
    ops.d.gauss_direct(m, (n + FK_PAD - 1) // FK_PAD * FK_PAD, strip.d, partners, strip.d, strip.raw, strip.most,
                       -0.5 / (sigma * sigma), strip.K, strip.most)


cdef Py_ssize_t block_end(const Py_ssize_t *terms, Py_ssize_t first, Py_ssize_t m) noexcept nogil:
    """Partners that are multiplied together, with the terms of the first: a few at least, then those of nearly as many.
    """
    cdef Py_ssize_t last = first + 1
    while last < m and last - first < PARTNERS and (last - first < FEW or 5 * terms[last] >= 4 * terms[first]):
        last += 1
    return last


cdef class Expansions:
    """exp(s.t) cut after total degree, and the Gaussian's three values around it, for clusters with many partners.

    Immutable; every method may run in several threads at once.

    Parameters
    ----------
    d : int
        Coordinates of the rows.
    axes : ndarray (d, q) or None
        The coordinates that are expanded in.
    sigma : float
    parent, coordinate, exponent : ndarray (D,)
        ``multiindex.table`` of q coordinates; the terms of a lower order are its first.
    """
    cdef readonly Py_ssize_t d, q
    cdef double sigma
    cdef double[:, ::1] axes
    cdef int[::1] parent, coordinate
    cdef double[::1] factor

    def __init__(self, Py_ssize_t d, axes, double sigma, parent, coordinate, exponent):
        self.d, self.sigma = d, sigma
        self.q = d if axes is None else axes.shape[1]
        self.axes = None if axes is None else np.array(axes, dtype=np.float64, order="C")
        self.parent = np.array(parent, dtype=np.int32)
        self.coordinate = np.array(coordinate, dtype=np.int32)
        factor = np.ones(len(parent))
        factor[1:] = 1.0 / np.sqrt(exponent[1:])
        self.factor = factor

    cdef Py_ssize_t fill(self, Strip *strip, const double[:, ::1] rows, Py_ssize_t i, const double[::1] centre,
                         const double *axes, Py_ssize_t terms) noexcept nogil:
        """As many rows from number i on as the strip has room for; returns how many."""
        cdef Py_ssize_t count = min(rows.shape[0] - i, <Py_ssize_t>ROWS)
        fill_strip(strip, &rows[i, 0], &centre[0], axes, self.sigma, count, &self.parent[0], &self.coordinate[0],
                   &self.factor[0], terms)
        return count

    def accumulate(self, const double[:, ::1] rows, const double[::1] centre, const double[:, ::1] partners,
                   const Py_ssize_t[::1] terms, const double[::1] weight, const double[:, ::1] U, double[::1] G,
                   const Py_ssize_t[::1] offset):
        """G[offset : offset + terms * k] = weight sum_j phi(y_j - centre) k(y_j, partner) U_j for every partner.

        Column after column; ``terms`` doesn't increase from one partner to the next.
        """
        cdef Py_ssize_t n = rows.shape[0], m = partners.shape[0], k = U.shape[1], d = self.d, b, i, j, e, c
        cdef Py_ssize_t first, last, count, most
        cdef int width, height, depth, ldk
        cdef double one = 1.0, w
        cdef double *sums
        cdef double *at
        cdef double *place
        cdef const double *axes = NULL if self.axes is None else &self.axes[0, 0]
        cdef Strip strip
        cdef void *memory
        cdef bint failed = False
        cdef size_t total = 0
        if n == 0 or m == 0 or k == 0:
            return
        first = 0
        while first < m:
            last = block_end(&terms[0], first, m)
            total += (last - first) * terms[first] * k
            first = last
        with nogil:
            memory = make_strip(&strip, n, d, self.q, terms[0])
            sums = <double *>calloc(total, sizeof(double))
            failed = memory is NULL or sums is NULL
            if not failed:
                most = strip.most
                for b in range((n + ROWS - 1) // ROWS):
                    i = b * ROWS
                    count = self.fill(&strip, rows, i, centre, axes, terms[0])
                    at = sums
                    first = 0
                    while first < m:
                        last = block_end(&terms[0], first, m)
                        values(&strip, &partners[first, 0], last - first, count, self.sigma)
                        for c in range(k):
                            for e in range(last - first):
                                fk_weigh(count, strip.K + e * most, &U[i, c], k, strip.H + e * most)
                            width, height, depth, ldk = <int>terms[first], <int>(last - first), <int>count, <int>most
                            # row-major (block, terms) += H (block, rows) phi' (rows, terms)
                            dgemm(b"T", b"N", &width, &height, &depth, &one, strip.phi, &ldk, strip.H, &ldk, &one,
                                  at, &width)
                            at += (last - first) * terms[first]
                        first = last
                at = sums
                first = 0
                while first < m:
                    last = block_end(&terms[0], first, m)
                    for c in range(k):
                        for e in range(first, last):
                            place, w = &G[offset[e] + c * terms[e]], weight[e]
                            for j in range(terms[e]):
                                place[j] = at[j] * w
                            at += terms[first]
                    first = last
            free(sums)
            free(memory)
        if failed:
            raise MemoryError(f"no memory for {total} coefficients of an expansion")

    def evaluate(self, const double[:, ::1] rows, const double[::1] centre, const double[:, ::1] partners,
                 const Py_ssize_t[::1] terms, const double[::1] G, const Py_ssize_t[::1] offset, Py_ssize_t k):
        """V_i = sum_partners k(x_i, partner) phi(x_i - centre).G[offset : offset + terms * k]: (n, k)."""
        cdef Py_ssize_t n = rows.shape[0], m = partners.shape[0], d = self.d, b, i, j, e, c
        cdef Py_ssize_t first, last, count, most
        cdef int width, height, depth, ldk
        cdef double one = 1.0, zero = 0.0
        cdef const double *axes = NULL if self.axes is None else &self.axes[0, 0]
        cdef double *coefficients
        cdef Strip strip
        cdef void *memory
        cdef bint failed = False
        V_array = np.zeros((n, k))
        cdef double[:, ::1] V = V_array
        cdef double[ROWS] total
        if n == 0 or m == 0 or k == 0:
            return V_array
        with nogil:
            memory = make_strip(&strip, n, d, self.q, terms[0])
            coefficients = <double *>malloc(PARTNERS * terms[0] * sizeof(double))
            failed = memory is NULL or coefficients is NULL
            if not failed:
                most = strip.most
                for b in range((n + ROWS - 1) // ROWS):
                    i = b * ROWS
                    count = self.fill(&strip, rows, i, centre, axes, terms[0])
                    first = 0
                    while first < m:
                        last = block_end(&terms[0], first, m)
                        values(&strip, &partners[first, 0], last - first, count, self.sigma)
                        for c in range(k):
                            for e in range(first, last):
                                memcpy(coefficients + (e - first) * terms[first], &G[offset[e] + c * terms[e]],
                                       terms[e] * sizeof(double))
                                memset(coefficients + (e - first) * terms[first] + terms[e], 0,
                                       (terms[first] - terms[e]) * sizeof(double))
                            width, height, depth, ldk = <int>count, <int>(last - first), <int>terms[first], <int>most
                            # row-major H (block, rows) = coefficients (block, terms) phi (terms, rows)
                            dgemm(b"N", b"N", &width, &height, &depth, &one, strip.phi, &ldk, coefficients, &depth,
                                  &zero, strip.H, &ldk)
                            for j in range(count):
                                total[j] = 0.0
                            for e in range(last - first):
                                fk_add_products(count, strip.K + e * most, strip.H + e * most, total)
                            for j in range(count):
                                V[i + j, c] += total[j]
                        first = last
            free(coefficients)
            free(memory)
        if failed:
            raise MemoryError(f"no memory for an expansion of {terms[0]} terms")
        return V_array


# ---- runs of rows ----

def gather(const double[:, ::1] rows, const Py_ssize_t[::1] start, const Py_ssize_t[::1] stop):
    """The rows start:stop of every run, one run after the other."""
    cdef Py_ssize_t r, n = 0, width = rows.shape[1]
    for r in range(start.shape[0]):
        n += stop[r] - start[r]
    out_array = np.empty((n, width))
    cdef double[:, ::1] out = out_array
    if width == 0:
        return out_array
    n = 0
    with nogil:
        for r in range(start.shape[0]):
            if stop[r] > start[r]:
                memcpy(&out[n, 0], &rows[start[r], 0], (stop[r] - start[r]) * width * sizeof(double))
            n += stop[r] - start[r]
    return out_array


def add(double[:, ::1] V, const double[:, ::1] part, const Py_ssize_t[::1] start, const Py_ssize_t[::1] stop):
    """V[start:stop] += the rows of ``part``, run after run."""
    cdef Py_ssize_t r, i, c, n = 0
    with nogil:
        for r in range(start.shape[0]):
            for i in range(start[r], stop[r]):
                for c in range(V.shape[1]):
                    V[i, c] += part[n, c]
                n += 1

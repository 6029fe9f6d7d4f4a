"""Gaussian products by clusters: far pairs skipped, near pairs exact, the rest by expansions about two centres.

Rows are cut into a bisection tree (``_core.clusters``), and every pair of its nodes gets the cheapest of three
treatments whose error, rounding included, is at most tol at every pair of rows in it: nothing where the kernel is below
tol at the smallest distance, exact tiles, or an expansion about both centres,

    k(x, y) = k(x, c) k(y, z) / k(z, c) exp((x - z).(y - c)),    the last factor as a truncated series.

Its order depends on the product of the two radii and not on the distance, so it stays low; what it asks of BLAS is one
product for each cluster with all its partners, on either side:

    G_zc = sum_j phi(y_j - c) k(y_j, z) u_j / k(z, c)        for all z at once: (z by j) times (j by terms)
    v_i += sum_c k(x_i, c) phi(x_i - z).G_zc                 for all c at once: (c by terms) times (terms by i)

All treatments are the same in both directions: with one set of rows the product is symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb, exp, expm1, factorial, sqrt
from typing import Any

import numpy as np

from .._core import clusters as _clusters
from .._core import multiindex, tiles
from ..base import parallel
from ..base.protocol import Cost, Offer, Summary, Summation
from ..base.rounding import UNIT, rounding_factor
from ..rows.view import Rows
from .rates import RATE
from .vectors import columns_of

__all__ = ["ClusterSummation", "cluster_offer", "reachable"]

LEAF, SAMPLE_LEAF = 128, 8  # rows of the smallest clusters; of a sample's, at least
LOOK, LEAST_LOOK = 1 << 18, 512  # numbers of a sample that are clustered to predict a cost; rows at least
FEW = 128  # wide rows whose distances tell whether clusters are worth that look
LARGEST_TERMS = 4096  # of an expansion
COEFFICIENTS = 1 << 22  # numbers G held at once: 32 MB
LEAST_TASK = 1 << 20  # kernel values of an exact task where its cluster has partners for them
STRIP = 2048  # rows, and partners, in an exact task: as the exact summation's bands


def reachable(d: int) -> float:
    """Smallest tol for rows of d numbers: the largest rounding error of a kernel value in an exact tile."""
    error = 2.0 * (d + 10) * UNIT
    return error + (_exponent_error(d) if d > tiles.DIRECT else 0.0)


def _exponent_error(d: int) -> float:
    """Absolute error of the exponent of a tile of kernel values beyond the relative one (Gaussian.entry_error)."""
    return 2.0 * rounding_factor(d) * tiles.EXPONENT_ERROR if d > tiles.DIRECT else 0.0


def costs(d: int) -> np.ndarray:
    """Seconds for an exact kernel value (used both ways), a call, a row of an expansion, its terms, and a monomial.

    Measured on one thread; only their ratios decide.
    """
    value = 0.27e-9 + 0.021e-9 * d if d <= tiles.DIRECT else 0.7e-9 + 0.027e-9 * d
    return np.array([value, 1.5e-6, 0.8e-9 + 0.03e-9 * d, 0.13e-9, 0.4e-9])


def _terms(d: int) -> np.ndarray:
    """C(p - 1 + d, d), the terms of order p = 0, 1, ..., as far as they are worth a thought."""
    sizes = [0.0]
    while len(sizes) <= 128 and comb(len(sizes) - 1 + d, d) <= LARGEST_TERMS:
        sizes.append(float(comb(len(sizes) - 1 + d, d)))
    return np.array(sizes)


class _Side:
    """One set of rows: reordered, its tree, and where the parts of every product go."""

    def __init__(self, X: np.ndarray, leaf: int, *, sample_of: float = 1.0):
        self.rows, self.order, start, stop, left, centre, low, high, radius = _clusters.bisect(X, leaf)
        if sample_of > 1.0:
            # the range of s uniform numbers is (s - 1) / (s + 1) of what they were drawn from
            few = (stop - start).astype(np.float64)
            wider = np.where(few > 1, (few + 1.0) / np.maximum(few - 1.0, 1.0), 1.0)
            many = few * sample_of
            wider *= (many - 1.0) / (many + 1.0)
            low, high = ((low + high + sign * wider[:, None] * (high - low)) / 2 for sign in (-1.0, 1.0))
            radius = radius * wider
        self.start, self.stop, self.centre = start, stop, centre
        self.tree = _clusters.Tree(start, stop, left, centre, low, high, radius)

    def slice(self, node: int) -> slice:
        return slice(self.start[node], self.stop[node])


@dataclass(frozen=True)
class _Far:
    """Expansions in one direction, ordered by target and falling order: what a product walks over."""

    source: np.ndarray
    target: np.ndarray
    terms: np.ndarray
    inverse: np.ndarray
    """1 / k(z, c)."""

    def part(self, which: slice | np.ndarray) -> _Far:
        columns = (self.source, self.target, self.terms, self.inverse)
        return _Far(*(np.ascontiguousarray(column[which]) for column in columns))


def _few_centred(sides: list[_Side], mean: np.ndarray, sigma: float) -> np.ndarray | None:
    """Some rows about ``mean``, over sigma; None where all coordinates are needed whatever they are."""
    d = len(mean)
    some = [side.rows[:: max(1, len(side.rows) // 1024)] for side in sides]
    # fewer rows than coordinates lie in a plane whatever the others do: they tell nothing
    if d == 1 or sum(map(len, some)) < d:
        return None
    few = np.concatenate([(rows - mean) / sigma for rows in some])
    return few if float(np.abs(few).max()) < 1e100 else None  # squares would leave the range of float64


def _axes_room(tol: float) -> float:
    """Root mean square of what the axes may leave of rows.

    What is left about a centre is within twice the largest such size: squared at most a hundredth of tol.
    """
    return sqrt(0.01 * tol) / 2.0


def _fewest_axes(sides: list[_Side], sigma: float, tol: float) -> int:
    """As many axes as ``_principal`` takes, or fewer: from the eigenvalues of a Gram matrix, without any vectors."""
    d = sides[0].rows.shape[1]
    few = _few_centred(sides, sides[0].rows.mean(axis=0), sigma)
    if few is None:
        return d
    return _axes_of(few, tol)


def _axes_of(few: np.ndarray, tol: float) -> int:
    """As many axes as leave of these rows (over sigma) what ``_axes_room`` allows."""
    rows, d = few.shape
    squares = np.maximum(np.linalg.eigvalsh(few.T @ few if rows >= d else few @ few.T)[::-1], 0.0)
    rounding = 8.0 * (d + rows) * d * UNIT * float(squares.sum())
    rest = np.append(np.cumsum(squares[::-1])[::-1], 0.0) - rounding
    return max(1, int(np.argmax(rest <= _axes_room(tol) ** 2 * rows)))


def _error_is_larger(R: float, farthest: float, tol: float, axes: Callable[[], int]) -> bool:
    """Whether pairs of clusters are neither skipped nor expanded, R the product of their radii or less.

    ``farthest``: half the square of the largest distance of rows; lengths in units of sigma. An expansion of order p
    errs by (R^p / p!) exp(R - near^2 / 2) or more; ``near`` is at most 2 sqrt(R) or the distance of two rows. For R up
    to p that grows with R.
    """
    room = 2.0 * tol
    if exp(-farthest) <= room:
        return False
    size = exp(min(-R, R - farthest))
    if size * R <= room:
        return False
    return all(R > p or size * R**p / factorial(p) > room for p in range(1, len(_terms(axes()))))


def _few_tell_no(data: Summary, sample: np.ndarray, sigma: float, tol: float) -> bool:
    """Whether some of these wide rows show, before any tree, that hardly a pair of clusters is far or small enough.

    A cluster of a row and others has half the distance to the nearest one as its radius, or more. Pairs that none of
    these rows meets are too few for what an offer has to save.
    """
    if len(_terms(sample.shape[1])) > 4 or len(sample) < 2 * FEW or not data.radius < 1e3 * sigma:
        return False
    index = np.linspace(0, len(sample) - 1, FEW).astype(np.intp)
    scaled = (sample - sample.mean(axis=0)) / sigma
    few, lengths = scaled[index], np.einsum("ij,ij->i", scaled, scaled)
    squares = lengths[index, None] + lengths - 2.0 * (few @ scaled.T)
    farthest = float(squares.max()) / 2.0
    squares[np.arange(FEW), index] = np.inf
    R = max(0.0, float(squares.min())) / 4.0
    return _error_is_larger(R, farthest, tol, lambda: _axes_of(few - few.mean(axis=0), tol))


def _leaves_only_exact(sides: list[_Side], sigma: float, tol: float) -> bool:
    """Whether no pair of clusters is far enough to be skipped, or small enough for an expansion."""
    x, y = sides[0].tree, sides[-1].tree
    farthest = 0.5 * float(np.sum(((np.maximum(x.high[0], y.high[0]) - np.minimum(x.low[0], y.low[0])) / sigma) ** 2))
    R = float(x.radius.min() / sigma) * float(y.radius.min() / sigma)
    return _error_is_larger(R, farthest, tol, lambda: _fewest_axes(sides, sigma, tol))


def _principal(sides: list[_Side], sigma: float, tol: float) -> tuple[np.ndarray | None, float]:
    """(axes (d, q) that the expansions are taken in, bound on what s.t loses by it); (None, 0) for all of them.

    Rows near a line or a plane need monomials along it only.
    """
    d = sides[0].rows.shape[1]
    mean = sides[0].rows.mean(axis=0)
    few = _few_centred(sides, mean, sigma)
    if few is None or _fewest_axes(sides, sigma, tol) == d:
        return None, 0.0
    _, values, axes = np.linalg.svd(few, full_matrices=False)
    rest = np.sqrt(np.append(np.cumsum(values[::-1] ** 2)[::-1], 0.0) / len(few))
    q = max(1, int(np.argmax(rest <= _axes_room(tol))))
    if q >= d:
        return None, 0.0
    Q = np.ascontiguousarray(axes[:q].T)
    largest, step = 0.0, parallel.tile_rows(d)
    # a centre may be the middle of a box, so outside of the rows' convex hull
    for points in (x for side in sides for x in (side.rows, side.centre)):
        for part in (points[i : i + step] for i in range(0, len(points), step)):
            T = (part - mean) / sigma
            left = T - (T @ Q) @ Q.T
            # the projection's own rounding counts as left over
            size = float(np.sqrt(np.einsum("ij,ij->i", left, left).max()))
            largest = max(largest, size + 4 * d * UNIT * float(np.abs(T).max()))
    bound = (2.0 * largest) ** 2
    return (Q, bound) if bound < 1.0 and expm1(bound) <= 0.1 * tol else (None, 0.0)


class ClusterSummation(Summation):
    """K U and K' U for the Gaussian, within tol of every kernel value.

    Parameters
    ----------
    rows_x : Rows (N, d)
        Targets.
    rows_y : Rows (M, d), optional
        Sources; None: the same rows.
    sigma, tol : float
    leaf : int
        Rows of the smallest clusters.
    memory_limit : float, optional
        Bytes; clusters are made larger until the plan fits.
    n_threads : int
        Products have the same bits at any number.

    Attributes
    ----------
    error_bound : float
        At most tol; 0 where every pair is exact.
    symmetric : bool
        With one set of rows every treatment is its own transpose.

    Raises
    ------
    ValueError
        tol is below ``reachable(d)``, or sigma is not positive.
    MemoryError
        The reordered rows alone don't fit within memory_limit.
    """

    def __init__(
        self,
        rows_x: Rows,
        rows_y: Rows | None = None,
        *,
        sigma: float,
        tol: float,
        leaf: int = LEAF,
        memory_limit: float | None = None,
        n_threads: int = 1,
    ):
        d = rows_x.n_features
        if not tol >= reachable(d):
            raise ValueError(f"tol is {tol:g}; products by clusters of rows of {d} numbers reach {reachable(d):.2g}")
        if not sigma > 0:
            raise ValueError(f"sigma is {sigma}; it must be positive")
        self.sigma, self.tol, self.n_threads = float(sigma), float(tol), n_threads
        self.symmetric = rows_y is None
        self.shape = (len(rows_x), len(rows_x if rows_y is None else rows_y))
        held = 8.0 * (d + 4) * (len(rows_x) + (0 if rows_y is None else len(rows_y)))
        scratch = 8.0 * COEFFICIENTS + 16.0 * LARGEST_TERMS * STRIP
        most = 1 << 23
        if memory_limit is not None:
            if 2 * held + scratch > memory_limit:
                raise MemoryError(
                    f"products by clusters of {self.shape[0]} and {self.shape[1]} rows of {d} numbers hold "
                    f"{(2 * held + scratch) / 1e6:.0f} MB; memory_limit is {memory_limit / 1e6:.0f} MB"
                )
            most = max(1024, min(most, int((memory_limit - held - scratch) / 200)))
        while True:
            self._x = _Side(rows_x.all(), leaf)
            self._y = self._x if rows_y is None else _Side(rows_y.all(), leaf)
            sides = [self._x] if rows_y is None else [self._x, self._y]
            self._axes, dropped = _principal(sides, self.sigma, self.tol)
            self._q = d if self._axes is None else self._axes.shape[1]
            pairs, self.predicted, worst = _clusters.treatments(
                self._x.tree, self._y.tree, self.sigma, 0.999 * self.tol, _terms(self._q), costs(d),
                dropped=dropped, most=most,
            )  # fmt: skip
            if pairs is not None:
                break
            leaf *= 4  # fewer, larger clusters
        self.error_bound = float(worst)
        self.pairs = pairs
        self._plan(pairs)

    # ---- the plan: lists in the order in which products walk over them ----

    def _plan(self, pairs: np.ndarray) -> None:
        far = pairs[pairs[:, 2] > 0]
        target, source, order = far.T
        if self.symmetric:
            other = target != source
            target, source, order = (
                np.concatenate([a, b[other]]) for a, b in ((target, source), (source, target), (order, order))
            )
        gap = (self._x.centre[target] - self._y.centre[source]) / self.sigma
        inverse = np.exp(0.5 * np.einsum("ij,ij->i", gap, gap))
        terms = _terms(self._q).astype(np.intp)[order]
        self._forward = _ordered(_Far(source, target, terms, inverse))
        self._backward = None if self.symmetric else _ordered(_Far(target, source, terms, inverse))
        highest = int(order.max(initial=1))
        parent, coordinate, exponent, _ = multiindex.table(self._q, highest - 1)
        self._expansions = _clusters.Expansions(
            self._x.rows.shape[1], self._axes, self.sigma, parent, coordinate, exponent
        )
        self._near = _grouped(pairs[pairs[:, 2] == 0], self._x, self._y, self.symmetric)

    # ---- products ----

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (shape[0], k)."""
        return self._multiply(U, self._y, self._x, self._forward, transposed=False)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        """K' U, shape (shape[1], k)."""
        if self.symmetric:
            return self.matmat(U)
        assert self._backward is not None
        return self._multiply(U, self._x, self._y, self._backward, transposed=True)

    def _multiply(self, U: np.ndarray, sources: _Side, targets: _Side, far: _Far, *, transposed: bool) -> np.ndarray:
        U = columns_of(U, len(sources.rows))
        product = np.empty((len(targets.rows), U.shape[1]))
        V = np.zeros_like(product)
        if U.shape[1]:
            self._add_near(V, U[sources.order], transposed)
            self._add_far(V, U[sources.order], sources, targets, far)
        product[targets.order] = V
        return product

    def _add_near(self, V: np.ndarray, U: np.ndarray, transposed: bool) -> None:
        kernel, x, y = {"sigma": self.sigma}, self._x.rows, self._y.rows

        def task(number: int) -> tuple[np.ndarray | None, np.ndarray | None]:
            near = self._near[number]
            X = x[near.rows]
            if near.start is None:
                return tiles.product("gaussian", kernel, X, None, U[near.rows], None)[0], None
            Y = _clusters.gather(y, near.start, near.stop)
            Ux = U[near.rows] if self.symmetric or transposed else None
            Uy = None if transposed else _clusters.gather(U, near.start, near.stop)
            return tiles.product("gaussian", kernel, X, Y, Ux, Uy)[:2]

        parts = parallel.run(task, len(self._near), n_threads=self.n_threads, stage="near pairs")
        for near, (left, right) in zip(self._near, parts):
            if left is not None:
                V[near.rows] += left
            if right is not None:
                _clusters.add(V, right, near.start, near.stop)

    def _add_far(self, V: np.ndarray, U: np.ndarray, sources: _Side, targets: _Side, far: _Far) -> None:
        for batch in _batches(far.target, far.terms * U.shape[1]):
            self._add_batch(V, U, sources, targets, far.part(batch))

    def _add_batch(self, V: np.ndarray, U: np.ndarray, sources: _Side, targets: _Side, far: _Far) -> None:
        """Coefficients of all expansions of some targets, source by source; then their values, target by target."""
        k = U.shape[1]
        ends = np.cumsum(far.terms * k)
        offset, G = ends - far.terms * k, np.empty(ends[-1])
        by_source = np.lexsort((-far.terms, far.source))
        source_runs, target_runs = _runs(far.source[by_source]), _runs(far.target)

        def accumulate(number: int) -> None:
            mine = by_source[source_runs[number]]
            node = int(far.source[mine[0]])
            rows = sources.slice(node)
            self._expansions.accumulate(
                sources.rows[rows], sources.centre[node], targets.centre[far.target[mine]], far.terms[mine],
                far.inverse[mine], U[rows], G, offset[mine],
            )  # fmt: skip

        def evaluate(number: int) -> tuple[slice, np.ndarray]:
            mine = target_runs[number]
            node = int(far.target[mine.start])
            rows = targets.slice(node)
            return rows, self._expansions.evaluate(
                targets.rows[rows], targets.centre[node], sources.centre[far.source[mine]], far.terms[mine],
                G, offset[mine], k,
            )  # fmt: skip

        parallel.each(accumulate, len(source_runs), n_threads=self.n_threads, stage="expansions")
        for rows, part in parallel.run(evaluate, len(target_runs), n_threads=self.n_threads, stage="expansions"):
            V[rows] += part


def _ordered(far: _Far) -> _Far:
    return far.part(np.lexsort((far.source, -far.terms, far.target)))


def _runs(values: np.ndarray) -> list[slice]:
    """Where a list keeps one value."""
    if not len(values):
        return []
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])).tolist()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(values)])]


def _batches(target: np.ndarray, size: np.ndarray) -> Iterator[slice]:
    """Whole targets whose coefficients fit within COEFFICIENTS (one target at least)."""
    if not len(target):
        return
    bounds = np.flatnonzero(np.append(True, target[1:] != target[:-1]))
    totals = np.concatenate([[0], np.cumsum(size)])
    ends = np.append(bounds[1:], len(target))
    first = 0
    while first < len(bounds):
        start = bounds[first]
        last = int(np.searchsorted(totals[ends], totals[start] + COEFFICIENTS, side="right")) - 1
        last = max(last, first)
        yield slice(int(start), int(ends[last]))
        first = last + 1


@dataclass(frozen=True)
class _Near:
    """Exact tiles of some rows of x with runs of rows of y, or (None) with themselves."""

    rows: slice
    start: Any = None  # both ndarray, or neither
    stop: Any = None


def _grouped(pairs: np.ndarray, x: _Side, y: _Side, same: bool) -> list[_Near]:
    """Exact pairs, all partners of a node together, in pieces of bounded size."""
    tasks: list[_Near] = []
    pairs = pairs[np.lexsort((y.start[pairs[:, 1]], pairs[:, 0]))]
    for mine in _runs(pairs[:, 0]):
        node, partners = int(pairs[mine.start, 0]), pairs[mine, 1]
        with_itself = same and bool((partners == node).any())
        if with_itself:
            partners = partners[partners != node]
        start, stop = _joined(y.start[partners], y.stop[partners])
        first, last = int(x.start[node]), int(x.stop[node])
        for i in range(first, last, STRIP):
            rows = slice(i, min(last, i + STRIP))
            if with_itself:
                tasks.append(_Near(rows))
            rest = np.array([rows.stop] if with_itself and rows.stop < last else [], dtype=np.intp)
            begin, end = np.concatenate([start, rest]), np.concatenate([stop, np.full(len(rest), last)])
            most = max(STRIP, LEAST_TASK // (rows.stop - rows.start))
            tasks.extend(_Near(rows, *piece) for piece in _pieces(begin, end, most))
    return tasks


def _pieces(start: np.ndarray, stop: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Runs cut into pieces of at most ``most`` rows each."""
    if not len(start):
        return
    offset = np.concatenate([[0], np.cumsum(stop - start)])
    for low in range(0, int(offset[-1]), most):
        high = min(low + most, int(offset[-1]))
        mine = slice(int(np.searchsorted(offset, low, side="right")) - 1, int(np.searchsorted(offset, high)))
        a, b = start[mine].copy(), stop[mine].copy()
        a[0] += low - offset[mine.start]
        b[-1] -= offset[mine.stop] - high
        yield a, b


# ---- predicted cost ----


def cluster_offer(
    data_x: Summary, data_y: Summary, sigma: float, tol: float, *, memory_limit: float | None = None
) -> Offer | None:
    """The offer of products by clusters, its cost predicted from the samples: a part of their clusters is planned.

    Parameters
    ----------
    data_x, data_y : Summary
        Targets and sources; the same object: one set of rows.
    sigma, tol : float
    memory_limit : float, optional
        Bytes.

    Returns
    -------
    Offer or None
        None where tol is below ``reachable``, where the rows don't fit, or where no pair would be cheaper than exact.
    """
    d, same = data_x.n_features, data_y is data_x
    n, m = data_x.n_samples, data_y.n_samples
    if not tol >= reachable(d):
        return None
    memory = 8.0 * (2 * d + 4) * (n + (0 if same else m))
    if memory_limit is not None and memory > memory_limit:
        return None
    samples = [_some_rows(data.sample) for data in (data_x, data_y)[: 2 - same]]
    if same and _few_tell_no(data_x, samples[0], sigma, tol):
        return None
    scale_x, scale_y = n / len(samples[0]), m / len(samples[-1])
    sides = [
        _Side(sample, max(SAMPLE_LEAF, int(LEAF / scale)), sample_of=scale)
        for sample, scale in zip(samples, (scale_x, scale_y))
    ]
    if _leaves_only_exact(sides, sigma, tol):
        return None
    x, y = sides[0], sides[-1]
    axes, dropped = _principal(sides, sigma, tol)
    q = d if axes is None else axes.shape[1]
    price, terms = costs(d), _terms(q)
    price[0] *= 0.5 if same else 1.0  # a kernel value serves both directions, and only one is looked at here
    roots, share = _part_of(x)
    pairs, _, worst = _clusters.treatments(
        x.tree, y.tree, sigma, 0.999 * tol, terms, price,
        dropped=dropped, scale_x=scale_x, scale_y=scale_y, roots=roots,
    )  # fmt: skip
    assert pairs is not None
    first, further = _seconds(pairs, x, y, terms, price, scale_x, scale_y)
    first, further, listed = first / share, further / share, len(pairs) / share * (0.5 if same else 1.0)
    if first >= 0.95 * price[0] * n * m:
        return None
    setup = sum(_tree_seconds(z.n_samples, d) for z in (data_x, data_y)[: 2 - same]) + 3e-6 * listed
    memory += _memory_of_pairs(terms[pairs[:, 2]] * (pairs[:, 2] > 0), d, listed, share)

    def build(X: Rows, Y: Rows | None = None) -> Summation:
        return ClusterSummation(X, Y, sigma=sigma, tol=tol, memory_limit=memory_limit)

    cost = Cost(
        row_flops=RATE.features * first / n,
        column_flops=RATE.features * further / n,
        setup_flops=RATE.features * setup,
        memory=memory,
        residual=float(worst),
    )
    return Offer("clusters", cost, build)


def _memory_of_pairs(terms: np.ndarray, d: int, listed: float, share: float) -> float:
    """The plan, and what it is sorted by; coefficients of as many pairs as are held at once; monomials of two tasks.

    ``terms``: of each of the pairs that were looked at, a ``share`` of the ``listed`` ones.
    """
    coefficients = 8.0 * float(terms.sum()) / share * 8  # columns at once, at least
    memory = (250.0 + 48.0 * d) * listed + min(8.0 * COEFFICIENTS, coefficients)
    return memory + 32.0 * STRIP * float(terms.max(initial=1.0))


def _some_rows(sample: np.ndarray) -> np.ndarray:
    """So few of wide rows that the look takes little time and memory beside the sample itself."""
    most = max(LEAST_LOOK, LOOK // sample.shape[1])
    if len(sample) <= most:
        return sample
    return sample[np.linspace(0, len(sample) - 1, most).astype(np.intp)]


def _part_of(side: _Side) -> tuple[list[int], float]:
    """Some nodes spread over a sample's tree, and the share of its rows that they hold."""
    size = side.stop - side.start
    most = max(1, len(side.rows) // 32)
    nodes = [0]
    while large := [i for i in nodes if size[i] > most and side.tree.left[i] >= 0]:
        nodes = [i for i in nodes if i not in set(large)] + [side.tree.left[i] + k for i in large for k in (0, 1)]
    nodes = sorted((int(i) for i in nodes), key=lambda i: int(side.start[i]))
    if len(nodes) > 8:
        nodes = nodes[len(nodes) // 16 :: len(nodes) // 8]
    return nodes, float(size[nodes].sum() / len(side.rows))


def _seconds(
    pairs: np.ndarray, x: _Side, y: _Side, terms: np.ndarray, price: np.ndarray, scale_x: float, scale_y: float
) -> tuple[float, float]:
    """A product with one column by a list of treatments, and each further column."""
    n = scale_x * (x.stop - x.start)[pairs[:, 0]]
    m = scale_y * (y.stop - y.start)[pairs[:, 1]]
    near = pairs[:, 2] == 0
    D = terms[pairs[:, 2]]
    exact = float(np.sum((n * m)[near]))
    rows, products = float(np.sum((n + m)[~near])), float(np.sum(((n + m) * D)[~near]))
    # monomials are formed once for each cluster and side, as many as its nearest partner asks for
    highest = np.zeros(len(x.start))
    np.maximum.at(highest, pairs[:, 0], D)
    both = 1.0 + scale_y * len(y.rows) / (scale_x * len(x.rows))
    monomials = both * scale_x * float(np.sum((x.stop - x.start) * highest))
    first = price[0] * exact + price[1] * len(pairs) + price[2] * rows + 0.06e-9 * products + price[4] * monomials
    return first, 0.15 * price[0] * exact + 0.6e-9 * rows + 0.06e-9 * products


def _tree_seconds(n: int, d: int) -> float:
    return 1e-9 * n * (8.0 + 2.0 * d) * max(1.0, np.log2(n / LEAF))


def _joined(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs in ascending order, those that touch made one."""
    if not len(start):
        return start, stop
    apart = start[1:] != stop[:-1]
    return start[np.append(True, apart)], stop[np.append(apart, True)]

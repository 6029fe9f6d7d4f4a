"""Gaussian products by clusters: far pairs of rows skipped, near pairs exact.

Rows are cut into the leaves of a k-d tree (scipy's), each with the box of its rows. A pair of leaves is skipped where
the kernel is at most tol at the distance of their boxes; the values of all other pairs are computed, in compiled tiles.
Both directions are treated alike: with one set of rows the product is symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, isqrt, log, sqrt

import numpy as np
import scipy  # scipy.spatial is loaded where it is used first

from .._core import tiles
from ..base import parallel
from ..base.protocol import Cost, Offer, Summary, Summation
from ..base.rounding import UNIT
from ..rows.summary import spread_rows
from ..rows.view import Rows
from .exact import MAX_TASK_FLOPS
from .near import PROBE_ROWS
from .rates import RATE, entry_rate
from .vectors import columns_of

LEAF_ROWS, MAX_LEAVES = 128, 4096
"""Rows of a leaf where rows are many, and leaves, about, from which on a leaf has more: their pairs have to stay in
memory. Of 2e4 to 1e5 uniform and clustered rows in 2 to 10 coordinates, leaves of 64 rows took .8 to 1.6 times as long
as these."""
MAX_PAIR_FRACTION = 0.55
"""Share of the pairs that an offer computes, at most: in eight coordinates and more, where boxes are wide, those of a
sample show a quarter too few."""


def _leaf(n: int) -> int:
    """Rows of a leaf of n rows."""
    return max(min(LEAF_ROWS, isqrt(n)), n // MAX_LEAVES)


class _Leaves:
    """One set of rows in the order of the leaves, and the boxes of these.

    ``sample_of``: how many rows each stands for; boxes of a sample are as much smaller than those of all rows.
    """

    def __init__(self, X: np.ndarray, leaf: int, sample_of: float = 1.0):
        tree = scipy.spatial.cKDTree(X, leafsize=leaf, balanced_tree=False)
        first: list[int] = []
        nodes = [tree.tree]
        while nodes:
            node = nodes.pop()
            if node.split_dim < 0:
                first.extend(range(node.start_idx, node.end_idx, leaf))  # of equal rows there may be any number
            else:
                nodes += node.greater, node.lesser
        self.order, self.start = tree.indices, np.array(first, dtype=np.intp)
        self.size = np.diff(self.start, append=len(X))
        self.rows = np.ascontiguousarray(X[self.order])
        low, high = (f.reduceat(self.rows, self.start).T for f in (np.minimum, np.maximum))  # (d, leaves)
        # the range of s uniform numbers is (s - 1) / (s + 1) of what they were drawn from
        some, many = self.size + 1e-9, self.size * sample_of
        more = 0.5 * ((some + 1.0) * (many - 1.0) / (np.maximum(some - 1.0, 0.5) * (many + 1.0)) - 1.0).clip(0.0)
        self.low, self.high = low - more * (high - low), high + more * (high - low)

    def near(self, low: np.ndarray, high: np.ndarray, reach: float, leaves: np.ndarray | slice) -> np.ndarray:
        """True for ``leaves`` with boxes within ``reach`` of other boxes, (d, b) corners: (b, number of leaves)."""
        square = np.zeros((low.shape[1], self.low[0, leaves].size))
        with np.errstate(over="ignore"):
            for a, b, own_low, own_high in zip(low, high, self.low[:, leaves], self.high[:, leaves]):
                gap = np.maximum(np.subtract.outer(a, own_high), own_low - b[:, None])
                square += np.square(np.maximum(gap, 0.0) / reach)
        return square <= 1.0 + 8.0 * (len(low) + 8) * UNIT

    def places(self, leaves: np.ndarray) -> np.ndarray:
        """Numbers of the rows of some leaves."""
        sizes = self.size[leaves]
        return np.repeat(self.start[leaves] + sizes - np.cumsum(sizes), sizes) + np.arange(sizes.sum())


def _reach(sigma: float, tol: float) -> float:
    """The distance from which on the kernel is at most tol."""
    return sigma * sqrt(-2.0 * log(tol)) * (1.0 + 8.0 * UNIT)


class ClusterSummation(Summation):
    """K U and K' U for the Gaussian, within tol of every kernel value.

    Parameters
    ----------
    rows_x : Rows (N, d)
        Targets.
    rows_y : Rows (M, d), optional
        Sources; None: the same rows.
    sigma, tol : float
        tol less than 1.
    leaf : int, optional
        Rows of a leaf; by default by the number of rows.
    n_threads : int
        Products have the same bits at any number.

    Attributes
    ----------
    error_bound : float
        tol, without the rounding of exact tiles; 0 where every pair is exact.
    """

    def __init__(
        self,
        rows_x: Rows,
        rows_y: Rows | None = None,
        *,
        sigma: float,
        tol: float,
        leaf: int | None = None,
        n_threads: int = 1,
    ):
        self.sigma, self.n_threads = float(sigma), n_threads
        self.symmetric = rows_y is None
        self.shape = (len(rows_x), len(rows_x if rows_y is None else rows_y))
        self._x = x = _Leaves(rows_x.all(), leaf or _leaf(len(rows_x)))
        self._y = y = x if rows_y is None else _Leaves(rows_y.all(), leaf or _leaf(len(rows_y)))
        near = self._near(_reach(sigma, tol))
        pairs = float(sum(size * y.size[others].sum() for size, others in zip(x.size, near)))
        pairs = 2.0 * pairs - float(x.size @ x.size) if x is y else pairs
        self.error_bound = tol if pairs < float(self.shape[0]) * self.shape[1] else 0.0
        self._tasks = list(self._planned(near))

    def _near(self, reach: float) -> list[np.ndarray]:
        """Near leaves of y for each leaf of x; of one set of rows from that leaf on."""
        x, y, near = self._x, self._y, []
        together = isqrt(len(x.start))  # their joint box excludes most leaves before the pairwise test
        for first in range(0, len(x.start), together):
            low, high = (corner[:, first : first + together] for corner in (x.low, x.high))
            begin = first if x is y else 0
            joint = low.min(axis=1, keepdims=True), high.max(axis=1, keepdims=True)
            some = begin + np.flatnonzero(y.near(*joint, reach, slice(begin, None)))
            for leaf, which in enumerate(y.near(low, high, reach, some), first):
                others = some[which]
                near.append(others[others >= leaf] if x is y else others)
        return near

    def _planned(self, near: list[np.ndarray]) -> Iterator[tuple[slice, np.ndarray, int]]:
        """(rows of a leaf of x, leaves of y, of these the rows that are the same ones, which come first)."""
        x, y = self._x, self._y
        for start, count, others in zip(x.start, x.size, near):
            own = count if self.symmetric else 0
            # a call of the compiled loops is not interrupted
            pieces = np.cumsum(y.size[others]) * count * x.rows.shape[1] // MAX_TASK_FLOPS
            for part in np.split(others, np.flatnonzero(np.diff(pieces)) + 1):
                yield slice(start, start + count), part, own
                own = 0

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (shape[0], k)."""
        return self._multiply(U, transposed=False)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        """K' U, shape (shape[1], k)."""
        return self._multiply(U, transposed=not self.symmetric)

    def _multiply(self, U: np.ndarray, *, transposed: bool) -> np.ndarray:
        x, y = self._x, self._y
        sources, targets = (x, y) if transposed else (y, x)
        U = columns_of(U, len(sources.rows))[sources.order]
        V = np.zeros((len(targets.rows), U.shape[1]))

        def task(number: int) -> tuple[slice, np.ndarray | None, np.ndarray, np.ndarray | None]:
            rows, leaves, own = self._tasks[number]
            places = y.places(leaves)
            Ux, Uy = U[rows] if self.symmetric or transposed else None, None if transposed else U.take(places, axis=0)
            Y = y.rows.take(places, axis=0)
            left, right, _ = tiles.product("gaussian", {"sigma": self.sigma}, x.rows[rows], Y, Ux, Uy)
            if right is not None:
                right[:own] = 0.0  # among themselves, both directions are in the other part
            return rows, left, places, right

        count = len(self._tasks) if U.shape[1] else 0
        for rows, left, places, right in parallel.run(task, count, n_threads=self.n_threads, stage="near pairs"):
            if left is not None:
                V[rows] += left
            if right is not None:
                V[places] += right
        product = np.empty_like(V)
        product[targets.order] = V
        return product


def cluster_offer(data_x: Summary, data_y: Summary, sigma: float, tol: float) -> Offer | None:
    """The offer of products by clusters, its cost predicted from the samples.

    Parameters
    ----------
    data_x, data_y : Summary
        Targets and sources; the same object: one set of rows.
    sigma, tol : float

    Returns
    -------
    Offer or None
        None where hardly a pair of rows would be skipped.
    """
    d, n, m = data_x.n_features, data_x.n_samples, data_y.n_samples
    same, reach = data_y is data_x, _reach(sigma, min(tol, 1.0 - UNIT))
    few = (spread_rows(data.sample, PROBE_ROWS) for data in (data_x, data_y))
    distances = scipy.spatial.distance.cdist(*few)
    if not tol < 1.0 or float(np.mean(distances <= reach)) > MAX_PAIR_FRACTION:
        return None
    sides = [
        _Leaves(data.sample, max(2, ceil(_leaf(rows) * len(data.sample) / rows)), rows / len(data.sample))
        for data, rows in ((data_x, n), (data_y, m))[: 2 - same]
    ]
    x, y = sides[0], sides[-1]
    some = np.linspace(0, len(x.start) - 1, min(PROBE_ROWS, len(x.start))).astype(np.intp)
    near = y.near(x.low[:, some], x.high[:, some], reach, slice(None))
    share = float(x.size[some] @ near @ y.size) / float(x.size[some].sum() * len(y.rows))
    if share > MAX_PAIR_FRACTION:
        return None
    values, rows = n * m * (0.5 if same else 1.0) / entry_rate(d), n + (0 if same else m)
    first = RATE.leaf_value * share * values + RATE.leaf * n / _leaf(n)
    leaves = float(n // _leaf(n) + 1) * (m // _leaf(m) + 1)
    setup = RATE.sorted_row * rows + RATE.leaf_pair * share * leaves
    cost = Cost(
        row_flops=RATE.features * first / n,
        column_flops=RATE.features * 2.0 * share * m / RATE.products,
        setup_flops=RATE.features * setup,
        memory=16.0 * (d + 4) * rows + 60.0 * share * leaves,
        residual=tol,
    )
    return Offer("clusters", cost, lambda X, Y=None: ClusterSummation(X, Y, sigma=sigma, tol=tol))

"""Gaussian products by clusters: far pairs of rows skipped, near pairs exact.

Rows are cut into the leaves of a k-d tree (scipy's), each with the box of its rows. A pair of leaves is skipped where
the kernel is at most tol at the distance of their boxes; the values of all other pairs are computed, in compiled tiles.
Both directions are treated alike: with one set of rows the product is symmetric.
"""

from __future__ import annotations

from math import ceil, isqrt, log, sqrt

import numpy as np
import scipy  # scipy.spatial is loaded where it is used first

from .._core import tiles
from ..base import parallel
from ..base.protocol import Cost, Offer, Summary, Summation
from ..base.rounding import UNIT
from ..rows.view import Rows
from .rates import CLUSTERS, RATE, entry_rate
from .vectors import columns_of

__all__ = ["ClusterSummation", "cluster_offer"]

LEAF, MOST_LEAVES = 64, 4096
"""Rows of a leaf where rows are many, and leaves, about, from which on a leaf has more: their pairs have to stay in
memory. Of 2e4 to 1e5 uniform and clustered rows in 2 to 10 coordinates, leaves of 128 rows took 1 to 1.4 times as long
as these."""
TOGETHER, WASTE = 8, 1.2
"""Neighbouring leaves whose common box is looked at before their own; and how many times as many values as they need
these may compute in order to be one task."""
STRIP = 2048, 1 << 16
"""Rows of a leaf, and of its partners, in one call of the compiled loops: a quarter of a second."""
WORTH = 0.55
"""Share of the pairs that an offer computes, at most: in eight coordinates and more, where boxes are wide, those of a
sample show a quarter too few."""
FEW = 64
"""Rows whose distances to a sample's tell whether leaves are worth a look, and leaves whose pairs tell the share."""


def _leaf(n: int) -> int:
    """Rows of a leaf of n rows."""
    return max(min(LEAF, isqrt(n)), n // MOST_LEAVES)


class _Leaves:
    """One set of rows in the order of the leaves, and the boxes of 1, 8, 64, ... of these together.

    ``sample_of``: how many rows each stands for; boxes of a sample are as much smaller than those of all rows.
    """

    def __init__(self, X: np.ndarray, leaf: int, sample_of: float = 1.0):
        tree = scipy.spatial.cKDTree(X, leafsize=leaf, balanced_tree=False)
        first: list[int] = []
        nodes = [tree.tree]
        while nodes:
            node = nodes.pop()
            if node.split_dim < 0:
                first.extend(range(node.start_idx, node.end_idx, STRIP[0]))  # of equal rows there may be any number
            else:
                nodes += node.greater, node.lesser
        self.order, self.start = tree.indices, np.array(first, dtype=np.intp)
        self.size = np.diff(self.start, append=len(X))
        self.rows = np.ascontiguousarray(X[self.order])
        low, high = (f.reduceat(self.rows, self.start).T.copy() for f in (np.minimum, np.maximum))  # (d, leaves)
        # the range of s uniform numbers is (s - 1) / (s + 1) of what they were drawn from
        some, many = self.size + 1e-9, self.size * sample_of
        more = 0.5 * ((some + 1.0) * (many - 1.0) / (np.maximum(some - 1.0, 0.5) * (many + 1.0)) - 1.0).clip(0.0)
        self.boxes = [(low - more * (high - low), high + more * (high - low))]
        while (count := self.boxes[-1][0].shape[1]) > 1:
            every = np.arange(0, count, TOGETHER)
            low, high = self.boxes[-1]
            self.boxes.append((np.minimum.reduceat(low, every, axis=1), np.maximum.reduceat(high, every, axis=1)))


def _near_pairs(x: _Leaves, y: _Leaves, reach: float, some: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of leaves whose boxes are within ``reach``, in order; of one set of leaves those with i <= j.

    ``some``: of these leaves of x, with all of y.
    """
    top = max(len(x.boxes), len(y.boxes)) - 1 if some is None else 0
    i, j = np.zeros((2, 1), dtype=np.intp)
    if some is not None:
        i, j = np.repeat(some, len(y.start)), np.tile(np.arange(len(y.start)), len(some))
    for level in range(top, -1, -1):
        (low_x, high_x), (low_y, high_y) = (z.boxes[min(level, len(z.boxes) - 1)] for z in (x, y))
        if level < top:
            part = np.arange(TOGETHER)
            i, j = np.broadcast_arrays(TOGETHER * i[:, None, None] + part[:, None], TOGETHER * j[:, None, None] + part)
            i, j = i.ravel(), j.ravel()
            there = (i < low_x.shape[1]) & (j < low_y.shape[1])
            if x is y:
                there &= i <= j
            i, j = i[there], j[there]
        square = np.zeros(len(i))
        with np.errstate(over="ignore"):
            for low, high, other_low, other_high in zip(low_x, high_x, low_y, high_y):
                gap = np.maximum(low.take(i) - other_high.take(j), other_low.take(j) - high.take(i))
                square += np.square(np.maximum(gap, 0.0) / reach)
        near = square <= 1.0 + 8.0 * (len(low_x) + 8) * UNIT
        i, j = i[near], j[near]
    order = np.lexsort((j, i))
    return i[order], j[order]


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
        tol, beside the rounding of exact tiles; 0 where every pair is exact.
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
        i, j = _near_pairs(x, y, _reach(sigma, tol))
        pairs = float(x.size[i] @ y.size[j] * (2 if x is y else 1) - (x.size @ x.size if x is y else 0))
        self.error_bound = tol if pairs < float(self.shape[0]) * self.shape[1] else 0.0
        self._plan(i, j)

    def _plan(self, i: np.ndarray, j: np.ndarray) -> None:
        """Tasks: some leaves of x, of one or of neighbours together, with runs of rows of y, the task's own first."""
        x, y = self._x, self._y
        group, firsts = i // TOGETHER, np.arange(0, len(x.size), TOGETHER)
        all_of, partner = np.divmod(np.unique(group * len(y.size) + j), len(y.size))
        rows = np.add.reduceat(x.size, firsts)
        together = rows * np.bincount(all_of, y.size[partner], len(firsts))
        apart = np.bincount(group, x.size[i] * y.size[j].astype(float), len(firsts))
        joint = (together <= WASTE * apart) & (rows <= STRIP[0])
        alone, shared = ~joint[group], joint[all_of]
        first = np.concatenate([i[alone], firsts[all_of[shared]]])
        last = np.concatenate([i[alone], np.minimum(firsts[all_of[shared]] + TOGETHER, len(x.size)) - 1])
        other = np.concatenate([j[alone], partner[shared]])
        order = np.lexsort((other, first))
        first, last, other = first[order], last[order], other[order]
        ends = np.cumsum(y.size[other])
        heads = np.flatnonzero(np.diff(first, prepend=-1))
        before = np.repeat((ends - y.size[other])[heads], np.diff(heads, append=len(first)))
        piece = (ends - before - 1) // STRIP[1]
        task = np.diff(first, prepend=-1).astype(bool) | np.diff(piece, prepend=-1).astype(bool)
        run = np.flatnonzero(task | (np.diff(other, prepend=-2) != 1))
        end = other[np.append(run[1:], len(other)) - 1] if len(run) else run
        self._runs = list(map(slice, y.start[other[run]].tolist(), (y.start[end] + y.size[end]).tolist()))
        task = np.flatnonzero(task)
        bounds = np.searchsorted(run, np.append(task, len(other))).tolist()
        starts, stops = x.start[first[task]], x.start[last[task]] + x.size[last[task]]
        own = np.where(piece[task] == 0, stops - starts, 0) if self.symmetric else np.zeros(len(task), dtype=np.intp)
        self._tasks = list(zip(starts.tolist(), stops.tolist(), own.tolist(), bounds[:-1], bounds[1:]))

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

        def task(number: int) -> tuple[slice, np.ndarray | None, list[slice], np.ndarray | None]:
            start, stop, own, first, last = self._tasks[number]
            rows, runs, kernel = slice(start, stop), self._runs[first:last], {"sigma": self.sigma}
            Y, Ux = np.concatenate([y.rows[run] for run in runs]), U[rows] if self.symmetric or transposed else None
            Uy = None if transposed else np.concatenate([U[run] for run in runs])
            left, right, _ = tiles.product("gaussian", kernel, x.rows[rows], Y, Ux, Uy)
            if right is not None:
                right[:own] = 0.0  # among themselves, both directions are in the other part
            return rows, left, runs, right

        count = len(self._tasks) if U.shape[1] else 0
        for rows, left, runs, right in parallel.run(task, count, n_threads=self.n_threads, stage="near pairs"):
            if left is not None:
                V[rows] += left
            if right is not None:
                parts = np.split(right, np.cumsum([run.stop - run.start for run in runs[:-1]]))
                for run, part in zip(runs, parts, strict=True):
                    V[run] += part
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
    few = data_x.sample[:: max(1, len(data_x.sample) // FEW)]
    distances = scipy.spatial.distance.cdist(few, data_y.sample[:: max(1, len(data_y.sample) // 512)])
    if not tol < 1.0 or float(np.mean(distances <= reach)) > 0.9:
        return None
    sides = [
        _Leaves(data.sample, max(2, ceil(_leaf(rows) * len(data.sample) / rows)), rows / len(data.sample))
        for data, rows in ((data_x, n), (data_y, m))[: 2 - same]
    ]
    x, y = sides[0], sides[-1]
    some = np.linspace(0, len(x.start) - 1, min(FEW, len(x.start))).astype(np.intp)
    i, j = _near_pairs(x, y, reach, some)
    share = float(x.size[i] @ y.size[j]) / float(x.size[some].sum() * len(y.rows))
    if share > WORTH:
        return None
    values, rows = n * m * (0.5 if same else 1.0) / entry_rate(d), n + (0 if same else m)
    first = CLUSTERS.values * share * values + CLUSTERS.leaf * n / _leaf(n)
    leaves = float(n // _leaf(n) + 1) * (m // _leaf(m) + 1)
    setup = CLUSTERS.row * rows + CLUSTERS.pair * share * leaves
    cost = Cost(
        row_flops=RATE.features * first / n,
        column_flops=RATE.features * 2.0 * share * m / RATE.products,
        setup_flops=RATE.features * setup,
        memory=16.0 * (d + 4) * rows + 60.0 * share * leaves,
        residual=tol,
    )
    return Offer("clusters", cost, lambda X, Y=None: ClusterSummation(X, Y, sigma=sigma, tol=tol))

"""Rows that fill their box badly: islands that don't interact, each with a grid in its own axes, or exact tiles.

Cells of a side r at which exp(-r^2 / 2) <= tol are joined where they touch. Rows of two islands are farther apart than
r, so that leaving out their kernel value errs by at most tol; within an island its own method's bound holds. A row is
in one island only: the bound of an entry is the larger of the two, not their sum. The approximated kernel matrix of
one set of rows is block diagonal, and positive semidefinite as its blocks are.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import scipy  # scipy.spatial is loaded where it is used first
import scipy.sparse as sp

from .._core import tiles
from ..base.protocol import Kernel, Summation
from ..base.rounding import UNIT
from ..rows.view import Rows
from .exact import ExactSummation
from .grid_plan import GridPlan, plan_grid
from .vectors import columns_of

__all__ = ["Piece", "PiecewiseSummation", "cut_off", "exact_cost", "labels", "plan_pieces"]

_MOST_CELLS = 20000
_MOST_ISLANDS = 2000
_LEAST_ROWS = 16  # of an island that is worth a plan of its own
_FARTHEST = 1e12  # cells along an axis
_SLACK = 1e-3  # of a cell, for their rounding


class _Gaussian(Kernel):
    """The Gaussian as far as exact tiles need it: sigma and the name of the compiled tile."""

    parameters = {"sigma": None}
    sigma: float

    def compiled_tile(self) -> tuple[str, dict]:
        return "gaussian", {"sigma": self.sigma}


def exact_cost(targets: float, sources: float, d: int, same: bool) -> float:
    """Predicted nanoseconds of exact tiles for one column."""
    return 3e4 + targets * sources * (0.14 + 0.015 * d) * (1.0 if same else 1.8)


def cut_off(tol: float) -> float:
    """Distance, in units of sigma, from which on the kernel is at most tol."""
    return sqrt(2.0 * log(1.0 / tol)) * (1.0 + 1e-9)


def labels(Z: np.ndarray, side: float) -> tuple[int, np.ndarray] | None:
    """(number of islands, island of each row), cells of this side; None where there are too many cells to look at."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    side = side * (1.0 + _SLACK)
    if not np.isfinite((high - low) / side).all() or float(((high - low) / side).max()) > _FARTHEST:
        return None
    cell = np.floor((Z - low) / side)
    width = cell.max(axis=0) + 1.0
    number = np.zeros(len(Z), dtype=np.int64)
    if np.prod(width) < 2.0**62:
        for c in range(Z.shape[1]):
            number = number * np.int64(width[c]) + cell[:, c].astype(np.int64)
        _, first, number = np.unique(number, return_index=True, return_inverse=True)
    else:
        for c in range(Z.shape[1]):  # numbers compressed after each axis: no overflow
            values, inverse = np.unique(cell[:, c], return_inverse=True)
            _, first, number = np.unique(number * len(values) + inverse, return_index=True, return_inverse=True)
    if len(first) > _MOST_CELLS:
        return None
    cells = cell[first]
    pairs = scipy.spatial.cKDTree(cells).query_pairs(1.5, p=np.inf, output_type="ndarray")
    pairs = pairs.astype(np.int32)  # scipy 1.11 fails on 64-bit indices with a warning alone
    graph = sp.coo_array((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(len(cells),) * 2)
    count, of_cell = sp.csgraph.connected_components(graph, directed=False)
    return int(count), of_cell[number]


@dataclass(frozen=True)
class Piece:
    """One island: which rows, and how their products are computed (``plan`` None: exact tiles).

    ``center`` and ``axes`` (None: the given ones) turn rows into what the plan is about: (rows - center) axes.
    """

    index_x: np.ndarray
    index_y: np.ndarray
    center: np.ndarray
    axes: np.ndarray | None
    plan: GridPlan | None
    point: float
    more: float
    once: float


def _box(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    parts = [x for x in parts if len(x)]
    return np.min([x.min(axis=0) for x in parts], axis=0), np.max([x.max(axis=0) for x in parts], axis=0)


def _plan_piece(
    x: np.ndarray, y: np.ndarray | None, sigma: float, points: float, tol: float, most_nodes: float, margin: float
) -> tuple[np.ndarray, np.ndarray | None, GridPlan | None]:
    """(center, axes, plan): the cheaper of the given axes and the principal ones."""
    parts = [x] if y is None else [x, y]
    low, high = _box(parts)
    center = (low + high) / 2.0
    parts = [part - center for part in parts]
    low, high = _box(parts)
    grow = margin * (high - low)
    plan = plan_grid(low - grow, high + grow, sigma, points, tol, most_nodes)
    together = np.concatenate(parts)
    d = x.shape[1]
    if (
        d == 1
        or len(together) < 2
        or (plan is not None and plan.cost(points) < 3e7 and plan.once_nodes < points * plan.point)
    ):
        return center, None, plan
    _, axes = np.linalg.eigh(np.cov(together.T))
    turned = [part @ axes for part in parts]
    low, high = _box(turned)
    grow = margin * (high - low)
    # turning moves a row by a few units of its distance from the centre, and the axes are orthogonal to a few units
    reach = float(np.abs(together).max()) * sqrt(d) / sigma
    moved = UNIT * (0.61 * 2.0 * (d + 3.0) * reach + 8.0 * d)
    other = plan_grid(low - grow, high + grow, sigma, points, tol, most_nodes, moved) if moved < tol / 4.0 else None
    if other is not None and (plan is None or other.cost(points) < 0.8 * plan.cost(points)):
        return center, axes, other
    return center, None, plan


def plan_pieces(
    X: np.ndarray,
    Y: np.ndarray | None,
    sigma: float,
    tol: float,
    most_nodes: float,
    *,
    scale: tuple[float, float] = (1.0, 1.0),
) -> list[Piece] | None:
    """The pieces of a problem; None where it falls into too many of them.

    ``scale``: how many rows each row of X and Y stands for, where they are samples; boxes then get a margin.
    """
    d, n = X.shape[1], len(X)
    rows = X if Y is None else np.concatenate([X, Y])
    labelled = None
    for coarser in (1.0, 4.0, 16.0, 64.0):  # larger cells are as safe, and fewer
        labelled = labelled or labels(rows, coarser * cut_off(tol) * sigma)
    count, label = labelled if labelled is not None else (1, np.zeros(n + (0 if Y is None else len(Y)), dtype=np.int64))
    if count > _MOST_ISLANDS:
        return None
    sampled = scale != (1.0, 1.0)
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(count + 1))
    pieces = []
    for i in range(count):
        members = order[bounds[i] : bounds[i + 1]]
        index_x = members[members < n]
        index_y = index_x if Y is None else members[members >= n] - n
        if not (len(index_x) and len(index_y)):
            continue
        x, y = X[index_x], None if Y is None else Y[index_y]
        targets, sources = len(index_x) * scale[0], len(index_y) * scale[1]
        exact = exact_cost(targets, sources, d, Y is None)
        center, axes, plan = np.zeros(d), None, None
        if exact > 5e5 and targets + sources > _LEAST_ROWS:
            center, axes, plan = _plan_piece(x, y, sigma, targets + sources, tol, most_nodes, 0.05 if sampled else 0.0)
        if plan is not None and plan.cost(targets + sources) < exact:
            points = targets + sources
            pieces.append(
                Piece(index_x, index_y, center, axes, plan, plan.point * points, plan.more * points, plan.once)
            )
        else:
            pieces.append(Piece(index_x, index_y, np.zeros(d), None, None, exact, 0.15 * exact, 3e4))
    return pieces


class _TileSummation(Summation):
    """Exact products of a few rows: one call."""

    def __init__(self, sigma: float, X: np.ndarray, Y: np.ndarray | None):
        self.parameters, self.X, self.Y = {"sigma": sigma}, X, Y
        self.shape = (len(X), len(X if Y is None else Y))
        self.n_threads = 1

    def matmat(self, U: np.ndarray) -> np.ndarray:
        if self.Y is None:
            return tiles.product("gaussian", self.parameters, self.X, None, U, None)[0]
        return tiles.product("gaussian", self.parameters, self.X, self.Y, None, U)[0]

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        if self.Y is None:
            return self.matmat(U)
        return tiles.product("gaussian", self.parameters, self.X, self.Y, U, None)[1]


def exact_part(sigma: float, X: np.ndarray, Y: np.ndarray | None) -> Summation:
    """Exact products among the rows of one island."""
    if len(X) * len(X if Y is None else Y) <= 1 << 20:
        return _TileSummation(sigma, X, Y)
    return ExactSummation(_Gaussian(sigma=sigma), Rows(X), None if Y is None else Rows(Y))


class PiecewiseSummation(Summation):
    """Products island by island.

    Parameters
    ----------
    shape : tuple of 2 ints
    parts : list of (index_x, index_y, Summation)
        No row is in two of them.
    error_bound : float
    symmetric : bool
    """

    def __init__(
        self,
        shape: tuple[int, int],
        parts: list[tuple[np.ndarray, np.ndarray, Summation]],
        error_bound: float,
        symmetric: bool,
    ):
        self.shape, self.parts, self.error_bound, self.symmetric = shape, parts, error_bound, symmetric
        self.n_threads = 1

    @property
    def n_threads(self) -> int:
        return self._n_threads

    @n_threads.setter
    def n_threads(self, value: int) -> None:
        self._n_threads = value
        for _, _, summation in self.parts:
            summation.n_threads = value

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (shape[0], k)."""
        return self._multiply(U, transposed=False)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        """K' U, shape (shape[1], k)."""
        return self._multiply(U, transposed=True)

    def _multiply(self, U: np.ndarray, *, transposed: bool) -> np.ndarray:
        n, m = reversed(self.shape) if transposed else self.shape
        U = columns_of(U, m)
        out = np.zeros((n, U.shape[1]))
        for index_x, index_y, summation in self.parts:
            if transposed:
                out[index_y] = summation.rmatmat(U[index_x])
            else:
                out[index_x] = summation.matmat(U[index_y])
        return out

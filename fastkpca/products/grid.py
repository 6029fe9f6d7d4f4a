"""Gaussian products on a grid of Chebyshev nodes: spread, translate, interpolate.

K^ = L_x (T_1 x ... x T_d) L_y'. Row i of L holds the Lagrange values of point i at the nodes of its own box. T_c holds
the Gaussian between the nodes of axis c: it is block Toeplitz, and zero between boxes that are far apart. K^ is linear,
its transpose is the same product with x and y exchanged, and for one set of rows it is symmetric. Errors and costs:
``grid_plan``.
"""

from __future__ import annotations

from math import prod

import numpy as np

from .._core.boxes import MOST_AXES, Grid, Points
from ..base import parallel
from ..base.protocol import Cost, Offer, Summary, Summation
from ..base.room import DEFAULT_MEMORY
from ..rows.view import Rows
from .expansion import TwoSidedSummation, joint_box
from .grid_plan import GridPlan, boxes_together, plan_grid
from .rates import RATE
from .vectors import columns_of


def _run_length(n: int) -> int:
    """Points of a task, from n alone; tasks are small enough for threads to end at about the same time."""
    return parallel.even_rows(n, max(2048, min(32768, -(-n // 16))))


def spread(grid: Grid, points: Points, U: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """L' U as a nodal array of shape (k, *grid.shape).

    Parameters
    ----------
    grid : Grid
    points : Points
        From ``grid.sort(X)``.
    U : ndarray (n, k), C-contiguous float64
        Rows as those of X.
    """
    n, k = U.shape
    nodal = np.zeros((k, *grid.shape))
    flat, run = nodal.reshape(-1), _run_length(n)

    def task(i: int) -> list:
        return grid.spread(points, U, flat, i * run, min(n, (i + 1) * run))

    for edges in parallel.run(task, -(-n // run), n_threads=n_threads):
        grid.add(edges, flat)
    return nodal


def interpolate(grid: Grid, points: Points, nodal: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """L A for a nodal array A of shape (k, *grid.shape), C-contiguous: shape (n, k)."""
    n, k = len(points), len(nodal)
    V = np.empty((n, k))
    flat, run = nodal.reshape(-1), _run_length(n)

    def task(i: int) -> None:
        grid.interpolate(points, flat, V, i * run, min(n, (i + 1) * run))

    parallel.each(task, -(-n // run), n_threads=n_threads)
    return V


def _translate(A: np.ndarray, band: np.ndarray, plan: GridPlan, axis: int, n_threads: int) -> np.ndarray:
    """The Gaussian applied along an axis of an array of nodal values; ``band`` from `_bands`."""
    q, reach, count = plan.orders[axis], plan.reaches[axis], plan.counts[axis]
    together, before, after = len(band) // q, prod(A.shape[: axis + 1]), prod(A.shape[axis + 2 :])
    flat, result = A.reshape(before, count * q, after), np.empty((before, count * q, after))
    # tasks by shape alone
    parts = parallel.columns(before, flat.size * 2.0 * len(band[0]) * together / count, most=before)

    def task(i: int) -> None:
        first, part = i // len(parts) * together, parts[i % len(parts)]
        last = min(first + together, count)
        low, high = max(first - reach, 0), min(last + reach, count)
        matrix = band[: (last - first) * q, (low - first + reach) * q : (high - first + reach) * q]
        values, own = flat[part, low * q : high * q], slice(first * q, last * q)
        if after == 1:
            np.matmul(values[:, :, 0], matrix.T, out=result[part, own, 0])
        else:
            np.matmul(matrix, values, out=result[part, own])

    parallel.each(task, -(-count // together) * len(parts), n_threads=n_threads)
    return result.reshape(A.shape)


def _bands(plan: GridPlan, sigma: float) -> list[np.ndarray]:
    """Gaussian, for each axis, between the nodes of `boxes_together` neighbouring boxes and the nodes of all boxes in
    reach of any of them. The larger matrices take less time, because BLAS is faster with more rows."""
    bands = []
    for side, reach, count, q in zip(plan.side, plan.reaches, plan.counts, plan.orders):
        together = boxes_together(reach, count)
        # relative to the first box: far from the origin nothing is lost
        nodes = Grid([0.0], [side / sigma], [2 * reach + together], [q]).nodes(0)
        own = nodes[reach * q : (reach + together) * q]
        bands.append(np.exp(-0.5 * np.square(own[:, None] - nodes)))
    return bands


class GridSummation(TwoSidedSummation):
    """Products with the Gaussian kernel matrix on one grid of boxes.

    Parameters
    ----------
    sigma : float
    plan : GridPlan
        Its box holds every row.
    rows_x, rows_y : Rows
        Targets and sources; rows_y None: the same rows.
    memory_limit : float
        Bytes for nodal arrays; columns are taken as many at a time as it allows.
    n_threads : int
        Products have the same bits at any number.

    Raises
    ------
    ValueError
        A row lies outside the plan's box; or U has the wrong shape, or holds NaN or infinity (from products).
    """

    def __init__(
        self,
        sigma: float,
        plan: GridPlan,
        rows_x: Rows,
        rows_y: Rows | None = None,
        *,
        memory_limit: float = DEFAULT_MEMORY,
        n_threads: int = 1,
    ):
        self.plan = plan
        self.error_bound = plan.error_bound
        self.n_threads = n_threads
        self.grid = Grid(plan.low, plan.side, plan.counts, plan.orders)
        self._set_sides(rows_x, rows_y)
        self._bands = _bands(plan, sigma)
        self._columns = int(max(1, memory_limit // (16 * plan.nodes)))

    def _prepared(self, rows: Rows) -> Points:
        points = self.grid.sort(rows.all())
        if points.reach > 1.0 + 1e-8:
            raise ValueError(
                f"rows lie outside the box {list(self.plan.low)} to "
                f"{[a + n * b for a, n, b in zip(self.plan.low, self.plan.counts, self.plan.side, strict=True)]} that "
                "this grid was planned for; plan it on the summary of these rows"
            )
        return points

    def _multiply(self, U: np.ndarray, targets: Points, sources: Points) -> np.ndarray:
        U = columns_of(U, len(sources))
        k, step = U.shape[1], self._columns
        out = np.empty((len(targets), k))
        for j in range(0, k, step):
            out[:, j : j + step] = self._product(np.ascontiguousarray(U[:, j : j + step]), targets, sources)
        return out

    def _product(self, U: np.ndarray, targets: Points, sources: Points) -> np.ndarray:
        nodal = spread(self.grid, sources, U, self.n_threads)
        for axis, band in enumerate(self._bands):
            nodal = _translate(nodal, band, self.plan, axis, self.n_threads)
        return interpolate(self.grid, targets, nodal, self.n_threads)


def grid_offer(
    data_x: Summary, data_y: Summary, sigma: float, tol: float, *, memory_limit: float = DEFAULT_MEMORY
) -> Offer | None:
    """The offer of a grid whose error is at most tol on every entry; None where there is none, or memory forbids it."""
    d, n_x, n_y = data_x.n_features, data_x.n_samples, data_y.n_samples
    if not (1 <= d <= MOST_AXES and tol < 1.0 and min(n_x, n_y) > 0):
        return None
    points = float(n_x + n_y)
    # where rows fill little of their box most nodes are empty: at a hundred for each row exact tiles cost less
    most_nodes = min(memory_limit / 24.0, max(1e6, 100.0 * points))
    low, high = joint_box(data_x, data_y)
    plan = plan_grid(low, high, sigma, points, tol, most_nodes)
    if plan is None:
        return None
    flops = 1e-9 * RATE.features  # in a nanosecond
    cost = Cost(
        row_flops=flops * plan.point * points / n_x,
        column_flops=flops * (plan.more * points + plan.once_nodes) / n_x,
        setup_flops=flops * plan.once,
        memory=8.0 * (2.0 * d + 6.0) * (n_x if data_x is data_y else n_x + n_y),
        residual=plan.error_bound,
        column_memory=16.0 * plan.nodes,
    )

    def build(X: Rows, Y: Rows | None = None) -> Summation:
        return GridSummation(sigma, plan, X, Y, memory_limit=memory_limit)

    return Offer("grid", cost, build)

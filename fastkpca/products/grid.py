"""Gaussian products on a grid of Chebyshev nodes: spread, translate, interpolate.

K^ = L_x (T_1 x ... x T_d) L_y': row i of L holds the Lagrange values of point i at the nodes of its own box, and T_c
the Gaussian between the nodes of axis c, or F F' with a cosine and a sine of each frequency of its Fourier series
where that is the smaller work. K^ is linear, its transpose is the same product the other way round, and for one set of
rows it is symmetric and positive semidefinite. Errors and costs: ``grid_plan``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from .._core.boxes import Grid, Points
from ..base import parallel
from ..base.protocol import Cost, Offer, Summary, Summation
from ..rows.view import Rows
from .grid_plan import LARGEST_DIMENSION, GridPlan, plan_grid, series_weights
from .islands import Piece, PiecewiseSummation, exact_cost, exact_part, plan_pieces
from .nodal import interpolate, spread
from .two_sided import TwoSidedSummation, joint_box
from .vectors import columns_of

__all__ = ["GridSummation", "grid_offer", "piecewise"]

MEMORY = 1 << 30
"""Bytes of nodal arrays, unless the caller says otherwise."""
_COLUMNS_TOGETHER = 16
_FLOPS_OF_A_TASK = 1e7
_WORTH_TWO_TASKS = 4e6
_SMALL = 2e6  # nanoseconds of nodes below which no better grid is looked for
_LARGE = 5e7  # nanoseconds of the whole from which on one is looked for in any case
_LOOK = 150.0  # nanoseconds to find the island of a row


def _multiply_axis(A: np.ndarray, matrix: np.ndarray, axis: int, out: np.ndarray, n_threads: int) -> np.ndarray:
    """The matrix (new, old) applied along an axis of an array, written to the flat ``out``; tasks by shape alone."""
    before, old, after = prod(A.shape[:axis]), A.shape[axis], prod(A.shape[axis + 1 :])
    new = len(matrix)
    shape = (*A.shape[:axis], new, *A.shape[axis + 1 :])
    A = A.reshape(before, old, after)
    out = out[: before * new * after]
    result = out.reshape(before, new, after)
    flops = 2.0 * before * old * new * after
    wanted = 2 * -(-int(flops) // int(2 * _FLOPS_OF_A_TASK)) if flops > _WORTH_TWO_TASKS else 1  # even: equal shares
    step, pieces = -(-before // wanted), 1
    if after == 1:
        turned = np.ascontiguousarray(matrix.T)

        def task(i: int) -> None:
            part = slice(i * step, (i + 1) * step)
            np.matmul(A[part, :, 0], turned, out=result[part, :, 0])

    elif before >= wanted:

        def task(i: int) -> None:
            part = slice(i * step, (i + 1) * step)
            np.matmul(matrix, A[part], out=result[part])

    else:
        width = -(-after // -(-wanted // before))
        pieces = -(-after // width)

        def task(i: int) -> None:
            b, j = divmod(i, pieces)
            part = slice(j * width, (j + 1) * width)
            np.matmul(matrix, A[b, :, part], out=result[b, :, part])

    parallel.each(task, -(-before // step) * pieces, n_threads=n_threads)
    return out.reshape(shape)


def _factors(grid: Grid, plan: GridPlan, sigma: float) -> list[tuple[np.ndarray, bool]]:
    """For each axis (T, False), the Gaussian between its nodes, or (F', True) with T = F F'."""
    factors = []
    for c, series in enumerate(plan.series):
        nodes = grid.nodes(c) / sigma
        if series is None:
            gaps = nodes[:, None] - nodes
            factors.append((np.exp(-0.5 * gaps * gaps), False))
            continue
        frequency, weight = series_weights(*series)
        angle = frequency[:, None] * (nodes - nodes[len(nodes) // 2])
        root = np.sqrt(weight)[:, None]
        factors.append((np.concatenate([root * np.cos(angle), root[1:] * np.sin(angle[1:])]), True))
    return factors


def _steps(shape: tuple[int, ...], factors: list[tuple[np.ndarray, bool]]) -> list[tuple[np.ndarray, int, int]]:
    """(matrix, axis, nodal values after it) of one translation of one column: into the smaller spaces, and back."""
    sizes = list(shape)
    steps = []

    def step(matrix: np.ndarray, axis: int) -> None:
        sizes[axis] = len(matrix)
        steps.append((matrix, axis, prod(sizes)))

    low_rank = [c for c, (_, factored) in enumerate(factors) if factored]
    for c in reversed(low_rank):
        step(factors[c][0], c)
    for c, (matrix, factored) in enumerate(factors):
        if not factored:
            step(matrix, c)
    for c in low_rank:
        step(np.ascontiguousarray(factors[c][0].T), c)
    return steps


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
    keep : bool
        Hold the nodal arrays of one product for the next.

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
        memory_limit: float = MEMORY,
        n_threads: int = 1,
        keep: bool = True,
    ):
        self.plan = plan
        self.keep = keep
        self.error_bound = plan.error_bound
        self.n_threads = n_threads
        self.grid = Grid(plan.low, plan.side, plan.counts, plan.orders)
        self._set_sides(rows_x, rows_y)
        # nodes relative to the first box: far from the origin nothing is lost
        factors = _factors(Grid(np.zeros(len(plan.low)), plan.side, plan.counts, plan.orders), plan, sigma)
        self._steps = _steps(self.grid.shape, factors)
        # the steps go to and fro between two arrays: one for every second result, the first one nodal values too
        self._room = max([plan.nodes, *(x[2] for x in self._steps[1::2])]), max(x[2] for x in self._steps[0::2])
        self._spare: list[tuple[np.ndarray, np.ndarray]] = []
        self._columns = int(max(1, min(_COLUMNS_TOGETHER, memory_limit // (8 * sum(self._room)))))

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
        if k == 0:
            return np.zeros((len(targets), 0))
        if k <= step:
            return self._product(U, targets, sources)
        out = np.empty((len(targets), k))
        for j in range(0, k, step):
            out[:, j : j + step] = self._product(np.ascontiguousarray(U[:, j : j + step]), targets, sources)
        return out

    def _product(self, U: np.ndarray, targets: Points, sources: Points) -> np.ndarray:
        k = U.shape[1]
        # kept for the next product, unless another thread has taken it
        try:
            here, there = self._spare.pop()
        except IndexError:
            here = there = np.empty(0)
        if here.size < k * self._room[0]:
            here, there = (np.empty(k * n) for n in self._room)
        buffers = here, there
        nodal = spread(self.grid, sources, U, self.n_threads, out=here[: k * self.plan.nodes])
        for matrix, axis, _ in self._steps:
            here, there = there, here
            nodal = _multiply_axis(nodal, matrix, axis + 1, here, self.n_threads)
        V = interpolate(self.grid, targets, nodal, self.n_threads)
        if self.keep and not self._spare:
            self._spare.append(buffers)
        return V


@dataclass(frozen=True)
class _Prediction:
    """What products would cost, in nanoseconds: the set-up, the first column, and each further one.

    ``plan`` is the one grid; None: island by island. ``nodes`` are those of the largest grid, and ``copied`` the bytes
    of the islands' rows.
    """

    plan: GridPlan | None
    setup: float
    first: float
    further: float
    error_bound: float
    nodes: int
    copied: float = 0.0

    @property
    def total(self) -> float:
        return self.setup + self.first


def _one_grid(plan: GridPlan, points: float) -> _Prediction:
    further = plan.more * points + plan.once_nodes
    return _Prediction(plan, plan.once, plan.point * points, further, plan.error_bound, plan.nodes)


def _by_islands(pieces: list[Piece], tol: float, points: float, d: int) -> _Prediction:
    """No pieces: no row has a source near it, and every product is zero."""
    return _Prediction(
        None,
        setup=sum(x.once for x in pieces) + _LOOK * points,
        first=sum(x.point for x in pieces),
        further=sum(x.more for x in pieces),
        error_bound=tol,
        nodes=max([x.plan.nodes for x in pieces if x.plan is not None], default=0),
        copied=8.0 * d * points,
    )


def _predict(data_x: Summary, data_y: Summary, sigma: float, tol: float, memory_limit: float) -> _Prediction | None:
    """The cheaper of one grid and islands, which are looked for where the nodes and not the rows are most of it."""
    low, high = joint_box(data_x, data_y)
    d, same = len(low), data_x is data_y
    n_x, n_y = data_x.n_samples, data_y.n_samples
    points, most_nodes = float(n_x + n_y), memory_limit / 24.0
    plan = plan_grid(low, high, sigma, points, tol, most_nodes)
    whole = None if plan is None else _one_grid(plan, points)
    if plan is not None and whole is not None and plan.once_nodes <= whole.first + _SMALL and whole.total <= _LARGE:
        return whole
    pieces = plan_pieces(
        data_x.sample,
        None if same else data_y.sample,
        sigma,
        tol,
        most_nodes,
        scale=(n_x / len(data_x.sample), n_y / len(data_y.sample)),
    )
    if pieces is None:
        return whole
    islands = _by_islands(pieces, tol, points, d)
    otherwise = exact_cost(n_x, n_y, d, same) if whole is None else whole.total
    return islands if islands.total < 0.7 * otherwise else whole


def grid_offer(
    data_x: Summary, data_y: Summary, sigma: float, tol: float, *, memory_limit: float = MEMORY
) -> Offer | None:
    """The offer of grids whose error is at most tol on every entry; None where there is none, or memory forbids it.

    One grid over the box of all rows; where most of its cost would be the nodes and not the rows, the samples are
    looked at for islands and for better axes (``islands``), and the cheaper one is offered.
    """
    d, n_x, n_y = data_x.n_features, data_x.n_samples, data_y.n_samples
    if not (1 <= d <= LARGEST_DIMENSION and tol < 1.0 and min(n_x, n_y) > 0):
        return None
    predicted = _predict(data_x, data_y, sigma, tol, memory_limit)
    if predicted is None:
        return None
    sorted_rows = 8.0 * (2.0 * d + 6.0) * (n_x if data_x is data_y else n_x + n_y)
    cost = Cost(
        row_flops=5.0 * predicted.first / n_x,
        column_flops=5.0 * predicted.further / n_x,
        setup_flops=5.0 * predicted.setup,
        memory=sorted_rows + predicted.copied,
        residual=predicted.error_bound,
        column_memory=16.0 * predicted.nodes,
    )

    def build(X: Rows, Y: Rows | None = None) -> Summation:
        if predicted.plan is not None:
            return GridSummation(sigma, predicted.plan, X, Y, memory_limit=memory_limit)
        return piecewise(sigma, tol, X, Y, memory_limit=memory_limit)

    return Offer("grid", cost, build)


def piecewise(
    sigma: float, tol: float, rows_x: Rows, rows_y: Rows | None = None, *, memory_limit: float = MEMORY
) -> Summation:
    """Products island by island, each with a grid in its own axes or exact tiles, whichever is predicted to be faster.

    Where the rows fall into too many islands, exact tiles for all of them.
    """
    X, Y = rows_x.all(), None if rows_y is None else rows_y.all()
    pieces = plan_pieces(X, Y, sigma, tol, memory_limit / 24.0)
    if pieces is None:
        return exact_part(sigma, X, Y)
    parts, bound = [], 0.0
    for piece in pieces:
        x, y = X[piece.index_x], None if Y is None else Y[piece.index_y]
        if piece.plan is None:
            parts.append((piece.index_x, piece.index_y, exact_part(sigma, x, y)))
            continue
        x, y = (None if z is None else z - piece.center for z in (x, y))
        if piece.axes is not None:
            x, y = (None if z is None else z @ piece.axes for z in (x, y))
        made = GridSummation(
            sigma,
            piece.plan,
            Rows(x),
            None if y is None else Rows(y),
            memory_limit=memory_limit,
            keep=len(pieces) == 1,  # islands take turns: memory for the largest of them
        )
        parts.append((piece.index_x, piece.index_y, made))
        bound = max(bound, made.error_bound)
    if (
        len(pieces) > 1
        or sum(len(x.index_x) for x in pieces) < len(X)
        or (Y is not None and sum(len(x.index_y) for x in pieces) < len(Y))
    ):
        bound = max(bound, tol)  # between islands
    return PiecewiseSummation((len(X), len(X if Y is None else Y)), parts, bound, Y is None)

"""Products in one to three dimensions: near pairs exactly, the smooth remainder on a regular grid (as Ewald's sums are
split).

A kernel that is a mixture of Gaussians (``mixture``) is split in two by their widths:

    k(r) = wide(r) + (k(r) - wide(r)),   wide(r) = sum over the wide ones of w_i exp(-r^2 / (2 s_i)).

- ``wide`` is smooth. Vectors are spread onto the corners of a grid by Lagrange interpolation on q points, multiplied by
  wide(differences of corners) through one zero-padded FFT, and interpolated back. The q-th derivative of
  exp(-x^2 / (2 s)) along a coordinate is at most (q - 1)!! s^(-q/2) (its Fourier transform is positive, so zero is
  where it is largest), which bounds the error of each of the 2 d interpolations; earlier ones enlarge it by at most
  their Lebesgue constants.
- k - wide is a sparse matrix of the pairs up to a distance beyond which it is negligible: it is the narrow Gaussians'
  sum, up to the quadrature's error.

The splitting length, the order q and the step follow from a cost model; an error bound is a sum of the above and of
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from fastkpca.base import parallel
from fastkpca.base.rounding import UNIT
from fastkpca.kernels import Cost, Offer, Summary, Summation
from fastkpca.methods import Rows

from ..limits import HELD_BYTES
from .mixture import Mixture
from .parameters import evenly

ORDERS = (4, 6, 8, 10, 12, 14)
"""Nodes of a box on each axis that a plan may choose."""
SAMPLE_ROWS = 256
"""Rows, spread evenly over the sample, whose pairs are counted for the plan."""
RUN_COLUMNS = 32
"""Columns of a run of products, over which the time to make the matrix of near pairs is shared."""
PAIR_DTYPE = np.dtype([("i", np.intp), ("j", np.intp), ("v", np.float64)])
"""A near pair as the k-d tree gives it."""

# In the flops of a ``Cost``, on one thread, by benchmarks/speed/matern.py
PER_NEW_PAIR = 1200.0
PER_WEIGHT = 6.0  # of a sparse matrix: a near pair, or a row's weight at a point of the grid
PER_GRID_POINT = 35.0
PER_NEW_ROW = 200.0
PER_NEW_WEIGHT = 50.0
PER_EXPONENTIAL = 15.0  # of a wide Gaussian along an axis of the grid


class Plan(NamedTuple):
    """The split of a kernel on given boxes, which ``SplitSummation`` computes."""

    mixture: Mixture
    wide: int
    cut: float
    order: int
    step: float
    low: np.ndarray
    points: tuple[int, ...]
    padded: tuple[int, ...]
    error: float
    pairs: float
    flops: float


def _lagrange(within: np.ndarray, q: int) -> np.ndarray:
    """l_j, last axis, at places within the middle interval (0 to 1) of q consecutive whole numbers as nodes: products
    of the distances to the nodes before and after the j-th."""
    f = math.factorial
    scales = [(-1.0) ** (q - 1 - j) / (f(j) * f(q - 1 - j)) for j in range(q)]
    away = within[..., None] - (np.arange(q) - (q // 2 - 1.0))
    before, after = np.ones((2, *away.shape))
    np.cumprod(away[..., :-1], axis=-1, out=before[..., 1:])
    np.cumprod(away[..., :0:-1], axis=-1, out=after[..., -2::-1])
    return before * after * scales


def _lebesgue(q: int) -> float:
    """Largest sum of |l_j| on the middle interval of q equispaced points; 1 % above what 401 points find."""
    return 1.01 * float(np.abs(_lagrange(np.linspace(0.0, 1.0, 401), q)).sum(axis=1).max())


LEBESGUE = {q: _lebesgue(q) for q in ORDERS}


@cache
def _interpolation_error(q: int, d: int) -> float:
    """The factor of step^q sum_i w_i s_i^(-q/2): one interpolation, then all 2 d of them."""
    half = math.prod(j / 2.0 for j in range(1, q, 2)) ** 2  # largest |product of distances to the nodes|
    one = half / math.factorial(q) * math.prod(range(1, q, 2))
    return one * sum(LEBESGUE[q] ** c for c in range(2 * d))


class _Split(NamedTuple):
    """One place to split at: how many Gaussians are wide, and how far the near part then reaches."""

    wide: int
    cut: float
    dropped: float


def _splits(mixture: Mixture, tol: float) -> list[_Split]:
    """Every splitting length, and the distance beyond which the remainder is at most a fraction of tol in sum."""
    if not 0.35 * tol > mixture.error:
        return []
    weights, widths = mixture.weights, mixture.widths
    narrow = np.triu(np.broadcast_to(weights, (len(weights) + 1, len(weights))))  # row p: all but the p widest
    budgets = np.append(0.95, np.full(len(weights), 0.35)) * tol - mixture.error
    sums = narrow.sum(axis=1)
    last = int(np.argmax(sums <= budgets))
    narrow, budgets = narrow[:last], budgets[:last]

    def rest(distances: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("pi,pi->p", narrow, np.exp(-(distances[:, None] ** 2) / (2.0 * widths))))

    low, high = np.zeros(last), np.sqrt(2.0 * widths[:last] * (745.0 + np.log(np.maximum(1.0, 1.0 / budgets))))
    for _ in range(30):
        middle = 0.5 * (low + high)
        negligible = rest(middle) <= budgets
        low, high = np.where(negligible, low, middle), np.where(negligible, middle, high)
    # and rounding of the others: t exp(-t) <= 1 / e bounds that of exponents; a sum of positive terms
    missed = rest(high) + (16.0 + len(weights)) * UNIT
    near = [_Split(p, float(cut), float(part)) for p, (cut, part) in enumerate(zip(high, missed))]
    return [*near, _Split(last, 0.0, float(sums[last]))]


def make_plan(mixture: Mixture, data_x: Summary, data_y: Summary, tol: float, exact: float) -> Plan | None:
    """The cheapest split whose error is at most tol; None where none takes fewer than ``exact`` flops."""
    low = np.minimum(data_x.box[0], data_y.box[0])
    extent = np.maximum(data_x.box[1], data_y.box[1]) - low
    terms = float(len(mixture.weights)) ** 2
    # thirty bisections of exponentials, of ten flops each, are to take no longer than exact tiles
    if not np.isfinite(extent).all() or 300.0 * terms > exact or 8.0 * terms > HELD_BYTES:
        return None
    some_x, some_y = (evenly(data.sample, SAMPLE_ROWS) for data in (data_x, data_y))
    squares = np.sort(cdist(some_x, some_y, "sqeuclidean").ravel())
    if data_x is data_y:  # a row is near itself, but that is one pair of n
        squares = squares[len(some_x) :]
    boxes = _Boxes(low, extent, data_x.n_samples, data_y.n_samples, data_x is data_y, squares)
    best: Plan | None = None
    least = exact
    for split in _splits(mixture, tol):
        pairs = boxes.near_pairs(split.cut)
        making, near = PER_NEW_PAIR / RUN_COLUMNS * pairs, PER_WEIGHT * pairs
        if split.wide == 0 and making + near < least:
            best = Plan(mixture, 0, split.cut, 0, 1.0, low, (), (), mixture.error + split.dropped, pairs, near)
            least = making + near
        with np.errstate(over="ignore"):  # of widths far below the extent
            for order in ORDERS if split.wide and making + near < least else ():
                grid = _grid_plan(mixture, split, boxes, order, tol, least - making - near)
                if grid is not None:
                    least = making + near + grid.flops
                    best = grid._replace(pairs=pairs, flops=near + grid.flops)
    return best


class _Boxes(NamedTuple):
    """Boxes and numbers of the rows: n targets, m sources (or the same), sorted square distances of some of them."""

    low: np.ndarray
    extent: np.ndarray
    n: int
    m: int
    symmetric: bool
    squares: np.ndarray

    def near_pairs(self, cut: float) -> float:
        """Number of pairs within ``cut``, estimated from the sample."""
        if cut == 0.0:
            return 0.0
        share = (float(np.searchsorted(self.squares, cut**2)) + 1.0) / len(self.squares)
        return min(self.n * (self.m * share + 1.0), float(self.n) * self.m)


def _grid_plan(mixture: Mixture, split: _Split, boxes: _Boxes, q: int, tol: float, most: float) -> Plan | None:
    """The plan with interpolation on q points, with the flops of the grid alone; None where it takes ``most`` of them,
    or its error exceeds tol."""
    w, s = mixture.weights[: split.wide], mixture.widths[: split.wide]
    d = len(boxes.low)
    factor = _interpolation_error(q, d) * float(w @ s ** (-0.5 * q))
    if not 0.0 < factor < math.inf:
        return None
    step = (0.6 * tol / factor) ** (1.0 / q)
    counts = np.floor(boxes.extent / step) + 1.0 + q
    weights, rows = float(q) ** d, boxes.n if boxes.symmetric else boxes.n + boxes.m
    # four arrays of the padded grid; weights, and the numbers of their points
    if not max(32.0 * counts.prod() * 2.0**d, 12.0 * weights * rows) <= HELD_BYTES:
        return None
    points = tuple(int(c) for c in counts)
    padded = tuple(2 * fft.next_fast_len(c, real=True) for c in points)
    size = math.prod(padded)
    flops = PER_GRID_POINT * size * math.log2(size + 2.0) / 10.0
    flops += PER_WEIGHT * (boxes.n + boxes.m) * weights
    if 32.0 * size > HELD_BYTES or not flops < most:
        return None
    # rounding: |K_grid|_2 |spread u|_2 times 6 u log2 of the size for the transforms; sums onto the grid
    lebesgue = LEBESGUE[q] ** (2 * d)
    rounding = lebesgue * UNIT * (6.0 * math.log2(size + 2.0) * math.sqrt(size) + 16.0 * q * d + len(w))
    # and of positions on the grid, where exp(-x^2 / (2 s)) has slopes of at most 0.61 / sqrt(s)
    rounding += 6.0 * UNIT * float(boxes.extent.sum()) * float(w @ s**-0.5)
    error = mixture.error + split.dropped + factor * step**q + rounding
    if error > tol:
        return None
    return Plan(mixture, split.wide, split.cut, q, step, boxes.low, points, padded, error, 0.0, flops)


class SplitSummation(Summation):
    """K U by near pairs and a grid.

    Parameters
    ----------
    profile : callable
        k of an array of distances.
    plan : Plan
    X, Y : Rows
        Targets and sources, of one to three coordinates, within the boxes that the plan was made for; Y None: the same.
    """

    def __init__(self, profile: Callable[[np.ndarray], np.ndarray], plan: Plan, X: Rows, Y: Rows | None = None):
        self.symmetric = Y is None
        self.error_bound = plan.error
        self.plan = plan
        x = X.all()
        y = x if Y is None else Y.all()
        self.shape = (len(x), len(y))
        if plan.cut > 0.0:
            self._near = self._near_matrix(profile, x, y)
        if plan.points:
            self._transform = self._kernel_transform()
            self._grid_x = self._interpolation(x)
            self._grid_y = self._grid_x if Y is None else self._interpolation(y)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, transposed=False)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, transposed=not self.symmetric)

    def _multiply(self, U: np.ndarray, *, transposed: bool) -> np.ndarray:
        n = self.shape[1] if transposed else self.shape[0]
        parts = parallel.columns(U.shape[1], float(U.size) * max(1, self.plan.order) ** len(self.plan.low))

        def task(i: int) -> np.ndarray:
            u = np.ascontiguousarray(U[:, parts[i]])
            v = np.zeros((n, u.shape[1]))
            if self.plan.points:
                targets, sources = (self._grid_y, self._grid_x) if transposed else (self._grid_x, self._grid_y)
                grids = sources.T @ u
                for c, grid in enumerate(grids.T):
                    grids[:, c] = self._convolve(grid.reshape(self.plan.points)).ravel()
                v += targets @ grids
            if self.plan.cut > 0.0:
                v += (self._near.T if transposed else self._near) @ u
            return v

        V = np.empty((n, U.shape[1]))
        for part, v in zip(parts, parallel.run(task, len(parts), n_threads=self.n_threads)):
            V[:, part] = v
        return V

    def _near_matrix(self, profile: Callable[[np.ndarray], np.ndarray], x: np.ndarray, y: np.ndarray) -> Any:
        """k - wide of the pairs within the cut, a sparse array."""
        plan, tree = self.plan, cKDTree(x)
        other = tree if y is x else cKDTree(y)
        pairs = tree.sparse_distance_matrix(other, plan.cut, output_type="ndarray")
        w, s, wide = plan.mixture.weights, plan.mixture.widths, plan.wide
        # by the fewer Gaussians: of small alpha few are narrow, of small nu few are wide
        few, sign = (slice(0, wide), -1.0) if 2 * wide < len(w) else (slice(wide, None), 1.0)
        values = profile(pairs["v"]) if sign < 0.0 else np.zeros(len(pairs))
        squares = pairs["v"] ** 2
        with np.errstate(over="ignore"):  # of distances far beyond a width
            for weight, width in zip(w[few], s[few]):
                values += sign * weight * np.exp(squares * (-0.5 / width))
        return sparse.csr_array((values, (pairs["i"].astype(np.int32), pairs["j"].astype(np.int32))), shape=self.shape)

    # the grid

    def _kernel_transform(self) -> np.ndarray:
        """Transform of wide(differences of corners), wrapped around: real, because the kernel is even.

        Even along each axis, so a cosine transform of one half (an octant, in three dimensions) holds all of it.
        """
        plan = self.plan
        weights, widths = plan.mixture.weights[: plan.wide], plan.mixture.widths[: plan.wide]
        factors: list[Any] = [weights, [0]]
        for axis, size in enumerate(plan.padded, 1):
            distance = np.arange(size // 2 + 1) * plan.step
            factors += [np.exp(-(distance**2) / (2.0 * widths[:, None])), [0, axis]]
        values = np.einsum(*factors, list(range(1, len(plan.padded) + 1)), optimize=True)
        values = fft.dctn(values, type=1, overwrite_x=True)
        for axis, size in enumerate(plan.padded[:-1]):
            values = values.take(np.minimum(np.arange(size), size - np.arange(size)), axis=axis)
        return np.ascontiguousarray(values)

    def _interpolation(self, points: np.ndarray) -> sparse.csr_array:
        """The weights of the corners of each point's stencil, a row for each point."""
        counts, nodes = np.array(self.plan.points, dtype=np.int32), np.arange(self.plan.order, dtype=np.int32)
        at = (points - self.plan.low) / self.plan.step
        cell = np.clip(np.floor(at), 0.0, counts - len(nodes)).astype(np.int32)
        along, corners = _lagrange(at - cell, len(nodes)), cell[..., None] + nodes
        weights, numbers = along[:, 0], corners[:, 0]
        for a in range(1, len(counts)):
            weights = (weights[:, :, None] * along[:, a, None]).reshape(len(points), -1)
            numbers = (numbers[:, :, None] * counts[a] + corners[:, a, None]).reshape(len(points), -1)
        starts = np.arange(0, weights.size + 1, weights.shape[1], dtype=np.int32)
        return sparse.csr_array((weights.ravel(), numbers.ravel(), starts), shape=(len(points), int(counts.prod())))

    def _convolve(self, grid: np.ndarray) -> np.ndarray:
        """Zero-padded, axis by axis: what is known to be zero, or is not asked for, is not transformed."""
        points, padded = self.plan.points, self.plan.padded
        d = grid.ndim
        F = fft.rfft(grid, n=padded[-1], axis=d - 1)
        for axis in range(d - 2, -1, -1):
            F = fft.fft(F, n=padded[axis], axis=axis, overwrite_x=True)
        F *= self._transform
        for axis in range(d - 1):
            F = fft.ifft(F, axis=axis, overwrite_x=True)
            F = F[(slice(None),) * axis + (slice(0, points[axis]),)]
        return fft.irfft(F, n=padded[-1], axis=d - 1)[..., : points[-1]]


def split_offers(
    profile: Callable[[np.ndarray], np.ndarray],
    mixture: Callable[[float], Mixture],
    data_x: Summary,
    data_y: Summary,
    tol: float | None,
) -> Iterator[Offer]:
    """The split product, where rows have at most three coordinates and it is not far more expensive than exact
    tiles.
    """
    d, n, m = data_x.n_features, data_x.n_samples, data_y.n_samples
    if tol is None or d > 3:
        return
    exact = float(n) * m * (d + 12)
    # more expensive ones are offered too: a product asked for by name need not be the fastest
    plan = make_plan(mixture(0.02 * tol), data_x, data_y, tol, 20.0 * exact)
    if plan is None:
        return

    size = math.prod(plan.padded) if plan.padded else 0
    weights, rows = float(plan.order) ** d, n if data_x is data_y else n + m
    setup = PER_NEW_PAIR * plan.pairs + (PER_NEW_ROW + PER_NEW_WEIGHT * weights) * rows
    setup += PER_EXPONENTIAL * plan.wide * sum(plan.padded) + 3.0 * PER_GRID_POINT * size
    cost = Cost(
        row_flops=plan.flops / n,
        column_flops=plan.flops / n,
        setup_flops=setup,
        # pairs: a list that doubles, and the array of it; later the values and the matrix
        memory=4.0 * PAIR_DTYPE.itemsize * plan.pairs + 8.0 * (4.0 * size + (12.0 + 3.0 * weights) * (n + m)),
        residual=plan.error,
    )
    yield Offer("split", cost, partial(SplitSummation, profile, plan))

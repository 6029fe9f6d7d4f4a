"""Products in one to three dimensions: near pairs exactly, the rest on a regular grid (as Ewald's sums are split).

A kernel that is a mixture of Gaussians (``mixture``) is split in two by their widths:

    k(r) = wide(r) + (k(r) - wide(r)),   wide(r) = sum over the wide ones of w_i exp(-r^2 / (2 s_i)).

- ``wide`` is smooth. Vectors are spread onto the corners of a grid by Lagrange interpolation on q points, multiplied by
  wide(differences of corners) through one zero-padded FFT, and interpolated back. The q-th derivative of
  exp(-x^2 / (2 s)) along a coordinate is at most (q - 1)!! s^(-q/2) (its Fourier transform is positive, so zero is
  where it is largest), which bounds the error of each of the 2 d interpolations; earlier ones enlarge it by at most
  their Lebesgue constants.
- k - wide is evaluated pair by pair (rows sorted into cells) up to a distance beyond which it is negligible: there it
  is at most the narrow Gaussians' sum and the quadrature's error. Nothing is lost where rows coincide.

Where to split, the order q and the step follow from a cost model; an error bound is a sum of the above and of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import fft, sparse
from scipy.spatial.distance import cdist

from fastkpca.base import parallel
from fastkpca.base.rounding import UNIT
from fastkpca.kernels import Cost, Offer, Summary, Summation
from fastkpca.methods import Rows

from ._radial import WIDE_TERMS, NearPairs, Profile
from .mixture import Mixture
from .parameters import evenly

__all__ = ["SplitSummation", "split_offers"]

ORDERS = (4, 6, 8, 10, 12, 14)
"""Nodes of a box on each axis that a plan may choose."""
MOST_POINTS = 1 << 24
"""Of the padded grid: 128 MB for each of the arrays that hold it; four times as many weights of rows on it."""
SAMPLE = 512
"""Rows, spread evenly over the sample, whose pairs are counted for the plan."""
NEAR_ROWS = 1024
"""Rows of a task of near pairs."""

# In the flops of a ``Cost``, on one thread, by benchmarks/speed/matern.py
PER_CANDIDATE = 6.5
PER_NEAR_PAIR = 30.0
PER_NEAR_COLUMN = 5.0
PER_GRID_POINT = 22.0
PER_SPREAD = 4.0
LEAST_FLOPS = 25e6
"""Of an exact product for which a plan is looked for: looking takes as long."""


class Plan(NamedTuple):
    """How a kernel is split on given boxes; what ``SplitSummation`` carries out."""

    weights: np.ndarray
    widths: np.ndarray
    cut: float
    order: int
    step: float
    low: np.ndarray
    points: tuple[int, ...]
    padded: tuple[int, ...]
    error: float
    flops: float
    column_flops: float


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


def _places(mixture: Mixture, tol: float) -> list[_Split]:
    """Every place to split at, and the distance beyond which the rest is at most a share of tol in sum."""
    if not 0.35 * tol > mixture.error:
        return []
    weights, widths = mixture.weights, mixture.widths
    places = []
    for wide in range(len(weights) + 1):
        w, s = weights[wide:], widths[wide:]
        budget = (0.35 if wide else 0.95) * tol - mixture.error
        if w.sum() <= budget:
            places.append(_Split(wide, 0.0, float(w.sum())))
            break
        low, high = 0.0, math.sqrt(2.0 * float(s.max()) * (745.0 + math.log(max(1.0, 1.0 / budget))))
        for _ in range(50):
            middle = 0.5 * (low + high)
            negligible = float(w @ np.exp(-(middle**2) / (2.0 * s))) <= budget
            low, high = (low, middle) if negligible else (middle, high)
        places.append(_Split(wide, high, float(w @ np.exp(-(high**2) / (2.0 * s)))))
    return places


def make_plan(mixture: Mixture, data_x: Summary, data_y: Summary, tol: float, exact: float) -> Plan | None:
    """The cheapest split whose error is at most tol; None where none takes fewer than ``exact`` flops."""
    low = np.minimum(data_x.box[0], data_y.box[0])
    extent = np.maximum(data_x.box[1], data_y.box[1]) - low
    if not np.isfinite(extent).all():
        return None
    some_x, some_y = (evenly(data.sample, SAMPLE) for data in (data_x, data_y))
    squares = np.sort(cdist(some_x, some_y, "sqeuclidean").ravel())
    boxes = _Boxes(low, extent, data_x.n_samples, data_y.n_samples, squares)
    best: Plan | None = None
    least = exact
    for place in _places(mixture, tol):
        near, near_column = boxes.near_flops(place.cut)
        if place.wide == 0 and near < least:
            w, s = mixture.weights[:0], mixture.widths[:0]
            best = Plan(w, s, place.cut, 0, 1.0, low, (), (), mixture.error + place.dropped, near, near_column)
            least = near
        for order in ORDERS if place.wide else ():
            grid = _grid_plan(mixture, place, boxes, order, tol) if near < least else None
            if grid is not None and near + grid.flops < least:
                least = near + grid.flops
                best = grid._replace(flops=least, column_flops=near_column + grid.flops)
    return best


class _Boxes(NamedTuple):
    """Where the rows lie, and how many: n targets, m sources, sorted square distances between some of them."""

    low: np.ndarray
    extent: np.ndarray
    n: int
    m: int
    squares: np.ndarray

    def near_flops(self, cut: float) -> tuple[float, float]:
        """Flops of the pairs within ``cut`` with one column, and of one more column."""
        if cut == 0.0:
            return 0.0, 0.0
        n, m, d = self.n, self.m, len(self.low)
        pairs = n * (m * (float(np.searchsorted(self.squares, cut**2)) + 1.0) / len(self.squares) + 1.0)
        pairs = min(pairs, float(n) * m)
        candidates = min({1: 1.5, 2: 2.3, 3: 4.2}[d] * pairs, float(n) * m)
        column = PER_NEAR_COLUMN * pairs + 100.0 * (n + m)
        return PER_CANDIDATE * candidates + PER_NEAR_PAIR * pairs + 5.0**d * 20.0 * n + column, column


def _grid_plan(mixture: Mixture, place: _Split, boxes: _Boxes, q: int, tol: float) -> Plan | None:
    """The plan with interpolation on q points, with the flops of the grid alone; None where its error exceeds tol."""
    w, s = mixture.weights[: place.wide], mixture.widths[: place.wide]
    d = len(boxes.low)
    with np.errstate(over="ignore"):
        factor = _interpolation_error(q, d) * float(w @ s ** (-0.5 * q))
    if not 0.0 < factor < math.inf:
        return None
    step = (0.6 * tol / factor) ** (1.0 / q)
    with np.errstate(over="ignore"):
        counts = np.floor(boxes.extent / step) + 1.0 + q
    if not counts.prod() * 2.0**d < 2.0 * MOST_POINTS:
        return None
    points = tuple(int(c) for c in counts)
    padded = tuple(2 * fft.next_fast_len(c, real=True) for c in points)
    size = math.prod(padded)
    if size > MOST_POINTS or float(boxes.n + boxes.m) * q**d > 4.0 * MOST_POINTS:
        return None
    flops = PER_GRID_POINT * size * math.log2(size + 2.0) / 10.0
    flops += PER_SPREAD * (boxes.n + boxes.m) * (q**d + 10.0 * q)
    # rounding: |K_grid|_2 |spread u|_2 times 6 u log2 of the size for the transforms; sums onto the grid
    lebesgue = LEBESGUE[q] ** (2 * d)
    rounding = lebesgue * UNIT * (6.0 * math.log2(size + 2.0) * math.sqrt(size) + 16.0 * q * d + len(w))
    # and of positions on the grid, where exp(-x^2 / (2 s)) has slopes of at most 0.61 / sqrt(s)
    rounding += 6.0 * UNIT * float(boxes.extent.sum()) * float(w @ s**-0.5)
    error = mixture.error + place.dropped + factor * step**q + rounding
    if place.cut > 0.0:
        error += _wide_error(w, s, place.cut) + 32.0 * UNIT
    if error > tol:
        return None
    return Plan(w, s, place.cut, q, step, boxes.low, points, padded, error, flops, flops)


PIECES = 512
"""Of the squared distance below the cut, each with its own polynomial."""


def _wide_error(w: np.ndarray, s: np.ndarray, cut: float) -> float:
    """Bound on the error of the piecewise polynomials in r^2: Chebyshev interpolation, and rounding."""
    half = cut * cut / PIECES / 2.0
    terms = WIDE_TERMS
    derivative = float(w @ (0.5 / s) ** terms)
    return derivative * half**terms / (math.factorial(terms) * 2.0 ** (terms - 1)) + 64.0 * UNIT


def _wide_table(w: np.ndarray, s: np.ndarray, cut: float) -> np.ndarray:
    terms = WIDE_TERMS
    nodes = np.cos((np.arange(terms) + 0.5) * np.pi / terms)
    squares = (np.arange(PIECES)[:, None] + 0.5 * (nodes + 1.0)) * (cut * cut / PIECES)
    values = np.zeros_like(squares)
    for weight, width in zip(w, s):
        values += weight * np.exp(-squares / (2.0 * width))
    coefficients = np.linalg.solve(np.vander(nodes, terms, increasing=True), values.T).T
    return np.ascontiguousarray(coefficients)


class SplitSummation(Summation):
    """K U by near pairs and a grid.

    Parameters
    ----------
    profile : Profile
    plan : Plan
    X, Y : Rows
        Targets and sources, of one to three coordinates, within the boxes that the plan was made for; Y None: the same.
    """

    def __init__(self, profile: Profile, plan: Plan, X: Rows, Y: Rows | None = None, *, n_threads: int = 1):
        self.symmetric = Y is None
        self.n_threads = n_threads
        self.shape = (len(X), len(X if Y is None else Y))
        self.error_bound = plan.error
        self.plan = plan
        self._profile = profile
        self._wide = None
        self._near: dict[bool, tuple[NearPairs, np.ndarray, np.ndarray]] = {}
        self._x = X.all()
        self._y = self._x if Y is None else Y.all()
        if plan.cut > 0.0 and len(plan.weights):
            self._wide = _wide_table(plan.weights, plan.widths, plan.cut)
        if plan.points:
            self._transform = self._kernel_transform()
            self._grid_x = self._interpolation(self._x)
            self._grid_y = self._grid_x if Y is None else self._interpolation(self._y)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, transposed=False)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._multiply(U, transposed=not self.symmetric)

    def _multiply(self, U: np.ndarray, *, transposed: bool) -> np.ndarray:
        U = np.ascontiguousarray(U, dtype=np.float64)
        sources, targets = (self._x, self._y) if transposed else (self._y, self._x)
        if U.ndim != 2 or len(U) != len(sources):
            raise ValueError(f"U has shape {U.shape}; ({len(sources)}, k) is needed")
        V = np.zeros((len(targets), U.shape[1]))
        if self.plan.points:
            between = (self._grid_x, self._grid_y) if transposed else (self._grid_y, self._grid_x)
            self._add_grid(*between, U, V)
        if self.plan.cut > 0.0:
            self._add_near(targets, sources, transposed, U, V)
        if not np.isfinite(V).all():
            raise ValueError("the product is not finite: U contains NaN, infinity or numbers near the largest")
        return V

    # near pairs

    def _add_near(self, targets: np.ndarray, sources: np.ndarray, transposed: bool, U: np.ndarray, V: np.ndarray):
        if transposed not in self._near:
            # the table ends at the cut: pairs beyond it, by rounding, take the last piece
            pairs = NearPairs(self._profile, self._wide, sources, self.plan.cut, 4 * len(sources) + 64)
            order = np.argsort(pairs.cell_numbers(targets), kind="stable")
            self._near[transposed] = pairs, order, np.ascontiguousarray(targets[order])
        pairs, order, points = self._near[transposed]
        columns = np.ascontiguousarray(U[pairs.source_order])
        sums = np.zeros_like(V)

        def task(i: int) -> None:
            pairs.add(points, columns, sums, i * NEAR_ROWS, min(len(points), (i + 1) * NEAR_ROWS))

        parallel.each(task, -(-len(points) // NEAR_ROWS), n_threads=self.n_threads)
        V[order] += sums

    # the grid

    def _kernel_transform(self) -> np.ndarray:
        """Transform of wide(differences of corners), wrapped around: real, because the kernel is even.

        Even along each axis, so a cosine transform of one half (an octant, in three dimensions) holds all of it.
        """
        plan = self.plan
        d = len(plan.points)
        axes = []
        for size in plan.padded:
            distance = np.arange(size // 2 + 1) * plan.step
            axes.append(np.exp(-(distance**2) / (2.0 * plan.widths[:, None])))
        axes[0] = plan.weights[:, None] * axes[0]
        if d == 1:
            values = axes[0].sum(axis=0)
        elif d == 2:
            values = axes[0].T @ axes[1]
        else:
            rest = (axes[1][:, :, None] * axes[2][:, None, :]).reshape(len(plan.weights), -1)
            values = (axes[0].T @ rest).reshape([len(axis[0]) for axis in axes])
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

    def _add_grid(self, sources: sparse.csr_array, targets: sparse.csr_array, U: np.ndarray, V: np.ndarray) -> None:
        def task(c: int) -> np.ndarray:
            grid = (sources.T @ U[:, c]).reshape(self.plan.points)
            return np.asarray(targets @ self._convolve(grid).ravel())

        for c, v in enumerate(parallel.run(task, U.shape[1], n_threads=self.n_threads)):
            V[:, c] += v

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
    profile: Callable[[], Profile],
    mixture: Callable[[float], Mixture],
    data_x: Summary,
    data_y: Summary,
    tol: float | None,
) -> list[Offer]:
    """The split product, where rows have at most three coordinates and it is not far dearer than exact tiles."""
    d, n, m = data_x.n_features, data_x.n_samples, data_y.n_samples
    if tol is None or d > 3:
        return []
    exact = float(n) * m * (d + 12)
    if exact < LEAST_FLOPS:
        return []
    # dearer ones are offered too: a product asked for by name need not be the fastest
    plan = make_plan(mixture(0.02 * tol), data_x, data_y, tol, 20.0 * exact)
    if plan is None:
        return []

    def build(X: Rows, Y: Rows | None = None) -> Summation:
        return SplitSummation(profile(), plan, X, Y)

    size = math.prod(plan.padded) if plan.padded else 0
    weights = float(plan.order) ** d
    cost = Cost(
        row_flops=plan.flops / n,
        column_flops=plan.column_flops / n,
        setup_flops=(1500.0 + 50.0 * weights) * (n + m) + 3.0 * PER_GRID_POINT * size,
        memory=8.0 * (4.0 * size + (12.0 + 3.0 * weights) * (n + m)),
        residual=plan.error,
    )
    return [Offer("split", cost, build)]

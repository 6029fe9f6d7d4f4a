"""The Gaussian kernel exp(-|x-y|^2 / (2 sigma^2)), its median heuristic, and its truncated expansion."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np
import scipy  # scipy.spatial is loaded where it is used first

from .._core import tiles, truncation
from ..base.protocol import LARGEST, Cost, FeatureMap, Offer, Summary, Summation
from ..base.rounding import UNIT, rounding_factor, unit_roundoff
from ..errors import KernelParameterError
from ..maps.fourier import FourierMap, fourier_offers
from ..maps.monomial import FARTHEST as LARGEST_RADIUS
from ..maps.monomial import MOST_ORDER, TaylorMap, taylor_size
from ..maps.monomial_moments import product_flops
from ..maps.stored import map_of_kernel
from ..products.clusters import cluster_offer
from ..products.expansion import ExpansionSummation, joint_box
from ..products.grid import grid_offer
from ..products.near import near_offer
from ..rows.summary import spread_rows
from ..rows.view import Rows
from .kernel import CompiledKernel, Kernel
from .parameters import length, positive_number, resolved

FEW_ROWS = 512
"""Rows of the sample, for the median distance and for the choice of a centre."""
BALL_STEPS = 64
"""Steps of the search for a small ball: its radius is then within an eighth of the smallest one."""


def median_distance(sample: np.ndarray) -> float:
    """Median of |x_i - x_j|, i < j, over at most 512 rows spread evenly over the (seeded, random) sample.

    If more than half of the pairs coincide, it is the median of the distances that are not zero.

    Raises
    ------
    KernelParameterError
        All rows are equal, so no length scale exists.
    """
    squares = scipy.spatial.distance.pdist(spread_rows(sample, FEW_ROWS), "sqeuclidean")
    median = _median(squares) if squares.size else 0.0
    if median == 0.0 and squares.any():
        median = _median(squares[squares > 0])
    if not median > 0.0:
        what = "all rows of X are equal" if len(sample) > 1 else "X has 1 sample"
        raise KernelParameterError(
            f"{what}, so the median heuristic finds no length scale; check X, or give the parameter"
        )
    return sqrt(median)


def _median(values: np.ndarray) -> float:
    """numpy's selects two places, and a third for NaN, one after the other, at several times the cost."""
    middle = len(values) // 2
    values = np.partition(values, middle)
    high = float(values[middle])
    return high if len(values) % 2 else (float(values[:middle].max()) + high) / 2.0


def _sigma_of_gamma(gamma: object) -> float:
    return sqrt(0.5 / positive_number("gaussian", "gamma", gamma))


class Gaussian(CompiledKernel):
    r"""Gaussian kernel exp(-|x - y|^2 / (2 sigma^2)).

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|^2}{2 \sigma^2}\right)

    Parameters
    ----------
    sigma : float or array_like (d,), optional
        Positive. ``gamma`` = 1 / (2 sigma^2) is another spelling. Default: the median heuristic, the median distance
        of at most 512 seeded rows divided by sqrt(2). One number for each column (automatic relevance determination)
        makes a ``ColumnKernel`` with all products and bounds, in which each column has its own sigma:
        exp(-sum_j (x_j - y_j)^2 / (2 sigma_j^2)).
    """

    api_version = 1
    stored_maps = (TaylorMap, FourierMap)
    positive_semidefinite = True
    translation = "kernel"
    nonnegative = True
    parameters = {"sigma": None}
    width_parameter = "sigma"
    aliases = {"gamma": ("sigma", _sigma_of_gamma)}

    sigma: float | None

    def check(self) -> None:
        if self.sigma is not None:
            self.__dict__["sigma"] = length(self, "sigma", self.sigma)

    def resolve(self, data: Summary) -> Kernel:
        if self.sigma is not None:
            return self
        return Gaussian(sigma=median_distance(data.sample) / sqrt(2.0))

    @property
    def _sigma(self) -> float:
        return resolved(self, "sigma", self.sigma)

    def compiled_tile(self) -> tuple[str, dict]:
        return "gaussian", {"sigma": self._sigma}

    def gradient_weights(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray) -> np.ndarray:
        return K / self._sigma**2

    def fixed_point_width(self) -> float:
        return self._sigma

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        """Bound on |computed - k|, k of the rows as they were given; R is the radius about the shift, u the roundoff.

        - Differences: relative rounding of the exponent t, t exp(-t) <= 1/e, and a few ulp of exp: 2 (d + 10) u.
        - Displaced points: subtracting the shift rounds every coordinate, so a row moves by at most u R, and a distance
          by 2 u R; |d/dt exp(-t^2 / 2)| <= 0.61. Where tiles are centred once more (products, float32), about a centre
          at most R away, another 2 u 2 R. For clusters far apart this is the larger part.
        - Distances by products: |x|^2, |y|^2 and 2 x.y over 2 sigma^2 are sums of d terms. Each errs by at most
          (min(d, 5 sqrt(d)) + 8) u times the sum of its terms' absolute values (Higham and Mary 2019, as
          ``rounding_factor``). Together these sums are at most 2 S, S = (|x|^2 + |y|^2) / (2 sigma^2), and S is at most
          (2 R / sigma)^2. The tiles take differences where u S would exceed ``tiles.EXPONENT_ERROR``.
        """
        d, single = data.n_features, np.dtype(dtype) == np.float32
        unit = unit_roundoff(dtype)
        reach = data.radius / self._sigma
        by_products = d > tiles.DIRECT
        displaced = 0.61 * unit * reach * (6.0 if by_products or single else 2.0)
        error = 2.0 * (d + 10) * unit + displaced + float(np.finfo(dtype).tiny)
        if by_products:
            exponent_error = tiles.EXPONENT_ERROR_SINGLE if single else tiles.EXPONENT_ERROR
            error += 2.0 * rounding_factor(d) * min(exponent_error, 4.0 * unit * reach * reach)
        return min(error, 1.0)  # values lie between 0 and 1, the computed ones too

    def value_bound(self, data: Summary) -> float:
        return 1.0

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Iterator[Offer]:
        if data.radius <= LARGEST * self._sigma and tol > 0.0:
            yield from self._total_degree(data, tol, max_features)
            yield from fourier_offers(data, self._sigma, tol)

    def _total_degree(self, data: Summary, tol: float, max_features: int) -> list[Offer]:
        """All monomials below an order, about the candidate for a centre that needs the lowest one."""
        sigma, d = self._sigma, data.n_features
        if max_features <= d:
            return []
        few = spread_rows(data.sample, FEW_ROWS)
        best: tuple[int, np.ndarray] | None = None
        largest_order = _largest_order(d, max_features)
        for center in _centers(data, few):
            squares = _squares(few, center, sigma)
            if squares.max() > LARGEST_RADIUS**2:
                continue
            most = largest_order if best is None else best[0] - 1
            order, left_out = truncation.order_for_trace(squares, 0.9 * tol, most)
            if order >= 0:
                best = order, center
            elif best is None and left_out > 1e3 * tol:
                break  # the candidates that follow move the centre a little; they don't gain this much
        if best is None:
            return []
        least, center = best
        squares = _squares(data.sample, center, sigma)
        # the farthest row alone has that residual: this test takes no time
        farthest, _ = truncation.order_for_trace(squares.max(keepdims=True), 0.9 * tol * len(squares), largest_order)
        if farthest < 0:
            return []
        least = max(least, farthest)
        order, left_out = truncation.order_for_trace(squares, 0.9 * tol, largest_order, least)
        if order < 0 or squares.max() > LARGEST_RADIUS**2:
            return []
        D = taylor_size(d, order)
        cost = Cost(
            D,
            row_flops=2.0 * D + 20.0,
            setup_flops=50.0 * D,
            memory=100.0 * D,
            residual=left_out,
            quick_flops=product_flops(d, order - 1, True),
        )
        return [Offer("monomial", cost, lambda sample: TaylorMap(d, sigma, order, center))]

    def coarse(self, data: Summary, tol: float) -> Offer | None:
        # of many columns a k-d tree leaves nothing out
        few = 2 * data.n_features <= tiles.DIRECT and data.radius <= LARGEST * self._sigma
        return near_offer(data, self._sigma, tol) if few else None

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Iterator[Offer]:
        if tol is None or max(data_x.radius, data_y.radius) > LARGEST * self._sigma:
            return
        # the last takes milliseconds to plan: whoever has seen a cheap one stops before
        for make in (grid_offer, self._one_centre, cluster_offer):
            offer = make(data_x, data_y, self._sigma, tol)
            if offer is not None:
                yield offer

    @staticmethod
    def _one_centre(data_x: Summary, data_y: Summary, sigma: float, tol: float) -> Offer | None:
        """All monomials below an order about one centre, for every pair that the boxes allow."""
        d = data_x.n_features
        low, high = joint_box(data_x, data_y)
        center = (low + high) / 2
        # the boxes enclose every row, so their farthest corners do: the bound is for all pairs, seen or not
        corner = np.maximum(np.abs(data_x.box - center), np.abs(data_y.box - center)).max(axis=0)
        radius = min(
            float(np.sqrt(np.sum(corner**2))),
            max(x.radius + float(np.linalg.norm(center)) for x in (data_x, data_y)),
        )
        if radius / sigma > LARGEST_RADIUS:
            return None
        order = truncation.order_for_ball(radius / sigma, 0.99 * tol, _largest_order(d, 1 << 16))
        if order < 0:
            return None
        D = taylor_size(d, order)
        bound = float(truncation.ball_bound(radius / sigma, order)) + (6 * order + 3 * d + D + 20) * UNIT

        def build(X: Rows, Y: Rows | None = None) -> Summation:
            return ExpansionSummation(TaylorMap(d, sigma, order, center), X, Y, error_bound=bound)

        n_y = data_y.n_samples / max(1, data_x.n_samples)
        cost = Cost(D, row_flops=(3.0 * D + 90.0) * (1 + n_y), setup_flops=50.0 * D, memory=8.0 * D, residual=bound)
        return Offer("expansion", cost, build) if bound <= tol else None

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        return map_of_kernel(self, header, arrays, lambda made: made.is_of_gaussian(self._sigma))


def _largest_order(d: int, max_features: int) -> int:
    """Largest order whose expansion has at most max_features terms."""
    if d == 1:
        return min(max_features, MOST_ORDER)
    order = 0
    while order < MOST_ORDER and taylor_size(d, order + 1) <= max_features:
        order += 1
    return order


def _centers(data: Summary, few: np.ndarray) -> Iterator[np.ndarray]:
    """Candidates for the centre: the mean, the middle of the box, and that of a small ball around these rows."""
    yield data.mean
    yield data.box.mean(axis=0)
    if data.n_features == 1:
        return  # the box is the ball
    yield truncation.small_ball(np.ascontiguousarray(few, dtype=np.float64), BALL_STEPS)


def _squares(rows: np.ndarray, center: np.ndarray, sigma: float) -> np.ndarray:
    """|x - center|^2 in units of sigma."""
    scaled = (rows - center) / sigma
    return np.einsum("ij,ij->i", scaled, scaled)

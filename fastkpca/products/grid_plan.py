"""Boxes and orders for the Gaussian on a grid of Chebyshev nodes, the bound on its error, and what it would cost.

Lengths are in units of sigma, g(t) = exp(-t^2 / 2), one axis at a time.

**Interpolation.** g is an average of exp(i w t) over standard normal w. With I the interpolation at q Chebyshev nodes
of each box and D(w) = sup_x |exp(i w x) - I exp(i w x)|,

    |exp(i w (x - y)) - I_x I_y exp(i w (x - y))| <= 2 D(w) + D(w)^2.

On a box of side b, exp(i w x) = sum_m c_m(x) with |c_m| = 2 |J_m(w b / 2)| |T_m|, T_q is interpolated by 0 and
T_(q + j) by -T_(q - j), so D(w) <= 2 |J_q| + 4 sum_(m > q) |J_m|, and |J_m(2 z)| <= z^m / m!. The absolute moments of
the normal distribution make the mean of that a series of (b / (4 sqrt 2))^m / Gamma(m / 2 + 1), whose first term is
attained for even q.

**Translation.** Between the nodes of an axis stands either g itself (``series`` None) or its Fourier series of period
P, sum_m w_m cos(2 pi m t / P), w_m > 0, cut off after m = m_0. Then what is interpolated is the series: the mean above
is a finite sum over its frequencies, and g minus the series is bounded by the neighbouring periods and the weights cut
off. Both matrices are positive semidefinite, so the whole of the approximated kernel matrix is.

**d axes.** |prod g_c - prod (g_c + e_c)| <= prod (1 + |e_c|) - 1, for |g_c| <= 1; attained where all the e_c are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, erfc, expm1, log1p, pi, prod, sqrt

import numpy as np
from scipy.special import gammaln

from .._core.boxes import MOST_AXES, MOST_NODES, chebyshev_nodes
from ..base.rounding import UNIT

__all__ = ["GridPlan", "axis_error", "plan_grid", "rounding", "series_weights"]

_SLACK = 1.0 + 1e-9
"""Factor on a bound, for its own rounding, and for that of the nodes that it is about."""
_SERIES_SHARE = 0.05
"""Of an axis's tolerance, for what a Fourier series leaves out, and as much for the neighbouring periods."""
_ORDERS = np.arange(1, MOST_NODES + 1)
_LARGEST_SIDE = 6.0
"""Of a box, in units of sigma."""
_TERMS = np.arange(2 * MOST_NODES + 60)
"""Of the series over m: what is left out is below 1e-25 for every side up to the largest."""


@dataclass(frozen=True)
class GridPlan:
    """A grid of boxes for one problem.

    Attributes
    ----------
    low, side : tuple of d floats
        In the data's units.
    counts, orders : tuple of d ints
    series : tuple of d (period in units of sigma, m_0), or None where g itself stands between the nodes
    error_bound : float
        On every entry of the kernel matrix, rounding included.
    point, more, once, once_nodes : float
        Predicted nanoseconds for one point and one column (there or back), for each further column, and for the rest.
    nodes : int
    """

    low: tuple[float, ...]
    side: tuple[float, ...]
    counts: tuple[int, ...]
    orders: tuple[int, ...]
    series: tuple[tuple[float, int] | None, ...]
    error_bound: float
    point: float
    more: float
    once: float
    once_nodes: float

    @property
    def nodes(self) -> int:
        return prod(n * q for n, q in zip(self.counts, self.orders, strict=True))


def rounding(extent: np.ndarray) -> float:
    """Bound on the rounding of an entry, for a box of these sides in units of sigma.

    Sums of n products of the interpolation and translation matrices, their entries off by a few units each: the
    factor min(n, 5 sqrt(n)) + 8 of Higham and Mary 2019, here with n at most 8 L + 120 an axis, which holds for every
    plan made here. Errors of the values at the nodes of an axis meet sum_k l_k(x)^2 <= 2 (Fejer 1932) on either side.
    A coordinate moves by a few units of the box's side, and |g'| <= 0.61.
    """
    d = len(extent)
    terms = float(np.sum(8.0 * extent + 120.0))
    return UNIT * (2.0**d * (5.0 * sqrt(terms) + 8.0) + 8.0 * float(np.sum(extent)))


def _mean_errors(order: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Bound on |g - I_x I_y g| for each pair of an order and a side."""
    with np.errstate(divide="ignore"):
        logs = np.log(side / (4.0 * sqrt(2.0)))[:, None] * _TERMS
    terms = np.exp(logs - gammaln(_TERMS / 2 + 1))
    after = _TERMS - order[:, None]
    once = np.where(after == 0, 2.0 * terms, np.where(after > 0, 4.0 * terms, 0.0)).sum(1)
    twice = terms * 2.0**_TERMS
    squares = 16.0 * np.where(_TERMS >= 2 * order[:, None], twice, 0.0).sum(1)
    return (2.0 * once + squares) * _SLACK


@lru_cache(maxsize=256)
def _sides(error: float) -> np.ndarray:
    """The largest side of a box for each of _ORDERS whose error is at most this."""
    # from the first term; the error goes as side^order where it is small, and as side^(2 order) where it is not
    side = 4.0 * sqrt(2.0) * (error / 4.0 * np.exp(gammaln(_ORDERS / 2 + 1))) ** (1.0 / _ORDERS)
    side = np.minimum(_LARGEST_SIDE, side)
    for _ in range(8):
        side = np.minimum(_LARGEST_SIDE, side * (error / _mean_errors(_ORDERS, side)) ** (1.0 / (1.5 * _ORDERS)))
    side *= 0.999
    while True:
        high = _mean_errors(_ORDERS, side) > error
        if not high.any():
            break
        side = np.where(high, side * 0.98, side)
    side.flags.writeable = False
    return side


@lru_cache(maxsize=64)
def _lebesgue(order: int) -> float:
    """Bound on sum_k |l_k(x)| over [-1, 1]: at the ends for these nodes (Ehlich and Zeller 1966)."""
    z = chebyshev_nodes(order)
    gaps = z[:, None] - z
    np.fill_diagonal(gaps, 1.0)
    ratio = (1.0 - z) / gaps
    np.fill_diagonal(ratio, 1.0)
    return float(np.abs(ratio.prod(axis=1)).sum()) * _SLACK


def series_weights(period: float, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies w_m = 2 pi m / period, m = 0..last, and the weights of cos(w_m t) in the periodic Gaussian."""
    frequency = 2.0 * pi / period * np.arange(last + 1)
    weight = 2.0 * sqrt(2.0 * pi) / period * np.exp(-0.5 * frequency**2)
    weight[0] /= 2.0
    return frequency, weight


def _series(extent: float, error: float) -> tuple[float, int]:
    """(period, m_0) of a series for |t| <= extent, aliasing and truncation each within their share of the error."""
    period = extent + sqrt(2.0 * np.log(1.1 / (_SERIES_SHARE * error)))
    # sum over m > m_0 of w_m <= integral from m_0: erfc(2 pi m_0 / (period sqrt 2))
    low, high = 0.0, 40.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if erfc(middle / sqrt(2.0)) > _SERIES_SHARE * error else (low, middle)
    return period, ceil(high * period / (2.0 * pi))


def axis_error(extent: float, side: float, order: int, series: tuple[float, int] | None) -> float:
    """Bound on |g(x - y) - approximation| for x and y in an interval of this length, cut into boxes of this side."""
    if series is None:
        return float(_mean_errors(np.array([order]), np.array([side]))[0])
    period, last = series
    frequency, weight = series_weights(period, last)
    x = frequency * side / 4.0
    with np.errstate(divide="ignore", over="ignore"):
        first = np.exp(order * np.log(x) - gammaln(order + 1.0))
        # sum over m > q of x^m / m!, by a geometric series
        rest = np.where(x < order + 2.0, first * x / (order + 1.0) / (1.0 - np.minimum(x / (order + 2.0), 0.999)), 1e3)
    one = np.minimum(2.0 * first + 4.0 * rest, 1.0 + _lebesgue(order))
    interpolation = float(np.sum(weight * (2.0 * one + one * one)))
    n = np.arange(1, 50)
    aliasing = float(np.sum(np.exp(-0.5 * (n * period - extent) ** 2) + np.exp(-0.5 * (n * period + extent) ** 2)))
    truncation = erfc(2.0 * pi * last / (period * sqrt(2.0)))
    return (interpolation + aliasing + truncation) * _SLACK


def _factored(series: tuple[float, int], nodes: int) -> bool:
    """Whether an axis goes through its Fourier series: it costs two smaller products, but shrinks the others'."""
    return 2 * series[1] + 1 < 0.7 * nodes


def _ranks(shape: list[int], series: list[tuple[float, int]]) -> list[int]:
    """Columns of the factor of each axis; 0 for a matrix between all its nodes."""
    return [2 * x[1] + 1 if _factored(x, m) else 0 for x, m in zip(series, shape, strict=True)]


def _entries(shape: list[int], ranks: list[int]) -> int:
    """Of all translation matrices."""
    return sum(m * (r or m) for m, r in zip(shape, ranks, strict=True))


def _translation(shape: list[int], ranks: list[int]) -> float:
    """Flops of one translation; rank 0 stands for a matrix between all the nodes of an axis."""
    flops, sizes = 0.0, list(shape)
    for c in reversed(range(len(shape))):
        rest = prod(sizes[:c] + sizes[c + 1 :])
        if ranks[c]:
            flops += 4.0 * rest * sizes[c] * ranks[c]  # there and back
            sizes[c] = ranks[c]
        else:
            flops += 2.0 * rest * sizes[c] ** 2
    return flops


def _cheapest_boxes(
    fewest: np.ndarray, series: list[tuple[float, int]], points: float, most_nodes: float
) -> tuple[list[int], list[int]] | None:
    """(counts, orders) by axis of the cheapest grid; ``fewest`` (d, orders) are the boxes that each order needs."""
    best: tuple[float, list[int], list[int]] | None = None
    for i in range(len(_ORDERS)):
        counts = [max(1, ceil(n)) for n in fewest[:, i]]
        # fewer nodes where the boxes came out smaller
        orders = [int(_ORDERS[np.argmax(row <= n)]) for row, n in zip(fewest, counts)]
        for last in {orders[-1], *(p for p in (4, 8, 16) if abs(p - orders[-1]) <= 4)}:
            counts[-1] = max(1, ceil(fewest[-1, last - 1]))
            orders[-1] = last
            shape = [n * q for n, q in zip(counts, orders, strict=True)]
            if prod(shape) + _entries(shape, _ranks(shape, series)) > most_nodes:
                continue
            point, _, once, _ = _predict(counts, orders, series, points)
            cost = point * points + once
            if best is None or cost < best[0]:
                best = cost, list(counts), list(orders)
    return None if best is None else best[1:]


def plan_grid(
    low: np.ndarray, high: np.ndarray, sigma: float, points: float, tol: float, most_nodes: float
) -> GridPlan | None:
    """The cheapest grid over the box low..high whose error is at most ``tol``; None where there is none.

    Parameters
    ----------
    low, high : ndarray (d,)
        Box of sources and targets.
    sigma : float
    points : float
        Sources and targets together.
    tol : float
    most_nodes : float
        Nodes that a grid may have.
    """
    d = len(low)
    extent = np.maximum((high - low) / sigma, UNIT)
    if not (d <= MOST_AXES and np.isfinite(extent).all()):
        return None
    floor = rounding(extent)
    share = expm1(log1p(tol - floor) / d) if tol > floor else 0.0
    if share <= floor / 2:
        return None
    sides = _sides((0.98 - 2.0 * _SERIES_SHARE) * share)
    fewest = extent[:, None] / sides  # (d, orders)
    if prod(fewest.min(axis=1).clip(1.0) * 2.0) > most_nodes:
        return None
    series = [_series(float(x), share) for x in extent]
    boxes = _cheapest_boxes(fewest, series, points, most_nodes)
    if boxes is None:
        return None
    counts, orders = boxes
    side = [float(x) / n for x, n in zip(extent, counts, strict=True)]
    chosen = [x if _factored(x, n * q) else None for x, n, q in zip(series, counts, orders, strict=True)]
    errors = [axis_error(float(extent[c]), side[c], orders[c], chosen[c]) for c in range(d)]
    for c in range(d):
        while errors[c] > share and orders[c] < MOST_NODES:  # the sum over frequencies exceeds the mean it stands for
            orders[c] += 1
            errors[c] = axis_error(float(extent[c]), side[c], orders[c], chosen[c])
    bound = expm1(sum(log1p(e) for e in errors)) + floor
    if bound > tol:
        return None
    width = [x * sigma for x in side]
    predicted = _predict(counts, orders, series, points)
    return GridPlan(
        tuple(map(float, low)), tuple(map(float, width)), tuple(counts), tuple(orders), tuple(chosen), bound, *predicted
    )


def _predict(
    counts: list[int], orders: list[int], series: list[tuple[float, int]], points: float
) -> tuple[float, float, float, float]:
    """(``point``, ``more``, ``once``, ``once_nodes``) of a plan.

    Nanoseconds measured on one thread, on the loops of _core/box_ops.c with 8-entry vectors and scipy's dgemm.
    """
    d = len(counts)
    shape = [n * q for n, q in zip(counts, orders, strict=True)]
    ranks = _ranks(shape, series)
    vectors = prod(orders[:-1]) * (0.5 if orders[-1] <= 4 else 1.0 if orders[-1] <= 8 else 2.0)
    # boxes of fewer points than a group of four pay for four
    per_box = points / max(1.0, prod(counts))
    values = 0.36 * vectors * (1.0 if per_box > 16 else min(4.0, 1.0 + 3.0 / max(1.0, per_box)))
    nodes = 0.035 * _translation(shape, ranks) + 4.0 * prod(shape) + 8.0 * _entries(shape, ranks)
    # rows are sorted once
    return 4.0 + 2.0 * d + values, 2.0 + values, 3e5 + 14.0 * points + nodes, nodes

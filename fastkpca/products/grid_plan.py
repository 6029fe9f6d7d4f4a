"""Boxes and orders for the Gaussian on a grid of Chebyshev nodes, the bound on its error, and what it would cost.

Lengths are in units of sigma, g(t) = exp(-t^2 / 2), one axis at a time.

**Interpolation.** g is an average of exp(i w t) over standard normal w. With I the interpolation at q Chebyshev nodes
of each box and D(w) = sup_x |exp(i w x) - I exp(i w x)|,

    |exp(i w (x - y)) - I_x I_y exp(i w (x - y))| <= 2 D(w) + D(w)^2.

On a box of side b, exp(i w x) = sum_m c_m(x) with |c_m| = 2 |J_m(w b / 2)| |T_m|. T_q is interpolated by 0 and
T_(q + j) by -T_(q - j), so that D(w) <= 2 |J_q| + 4 sum_(m > q) |J_m|. For J_m we use |J_m(2 z)| <= z^m / m!. The
absolute moments of the normal distribution make the mean of that a series of (b / (4 sqrt 2))^m / Gamma(m / 2 + 1),
whose first term is attained for even q.

**Translation.** Between the nodes of an axis stands g itself, up to a distance beyond which it is below an eighth of
a hundredth of the axis's error: interpolation on both sides makes at most eight times that of what is left out (the
Lebesgue constant of 16 nodes is 2.8).

**d axes.** |prod g_c - prod (g_c + e_c)| <= prod (1 + |e_c|) - 1, for |g_c| <= 1; attained where all the e_c are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, expm1, log, log1p, prod, sqrt

import numpy as np
from scipy.special import gammaln

from .._core.boxes import MOST_AXES, MOST_NODES
from ..base.rounding import UNIT

_SLACK = 1.0 + 1e-9
"""Factor on a bound, for its own rounding, and for that of the nodes that it is about."""
_ORDERS = np.arange(1, MOST_NODES + 1)
_LARGEST_SIDE = 6.0
"""Largest side of a box, in units of sigma."""
_TERMS = np.arange(2 * MOST_NODES + 60)
"""Terms of the series over m: the remainder is below 1e-25 for every side up to the largest."""


@dataclass(frozen=True)
class GridPlan:
    """A grid of boxes for one problem.

    Attributes
    ----------
    low, side : tuple of d floats
        In the data's units.
    counts, orders : tuple of d ints
    reaches : tuple of d ints
        Boxes on either side whose nodes are translated to those of one.
    error_bound : float
        Bound on the error of every entry of the kernel matrix, rounding included.
    point, more, once, once_nodes : float
        Predicted nanoseconds: of a point with one column, to spread or to interpolate; of a point with each further
        column; of sorting the rows and one translation; of the translation of each further column.
    nodes : int
    """

    low: tuple[float, ...]
    side: tuple[float, ...]
    counts: tuple[int, ...]
    orders: tuple[int, ...]
    reaches: tuple[int, ...]
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


def _reach(extent: float, count: int, left_out: float) -> int:
    """Boxes in reach on either side of one, for an axis cut into ``count``; all farther ones err by at most
    ``left_out``."""
    return min(count - 1, ceil(sqrt(2.0 * log(8.0 / left_out)) * count / extent))


def boxes_together(reach: int, count: int) -> int:
    """Neighbouring boxes of an axis whose nodes are translated to at once."""
    return max(1, min(reach, count))


def _cheapest_boxes(
    extent: np.ndarray, fewest: np.ndarray, points: float, most_nodes: float, left_out: float
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
            if prod(counts) * prod(orders) > most_nodes:
                continue
            point, _, once, _ = _predict(extent, counts, orders, points, left_out)
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
    left_out = 0.01 * share
    fewest = extent[:, None] / _sides(share - left_out)  # (d, orders)
    if prod(fewest.min(axis=1).clip(1.0) * 2.0) > most_nodes:
        return None
    boxes = _cheapest_boxes(extent, fewest, points, most_nodes, left_out)
    if boxes is None:
        return None
    counts, orders = boxes
    side = extent / counts
    bound = expm1(sum(log1p(axis_error(x, q) + left_out) for x, q in zip(side, orders, strict=True))) + floor
    reaches = tuple(_reach(x, n, left_out) for x, n in zip(extent, counts))
    predicted = _predict(extent, counts, orders, points, left_out)
    return GridPlan(
        tuple(map(float, low)), tuple(side * sigma), tuple(counts), tuple(orders), reaches, bound, *predicted
    )


def axis_error(side: float, order: int) -> float:
    """Bound on |g(x - y) - its interpolation| for x and y in boxes of this side."""
    return float(_mean_errors(np.array([order]), np.array([side]))[0])


def _predict(
    extent: np.ndarray, counts: list[int], orders: list[int], points: float, left_out: float
) -> tuple[float, float, float, float]:
    """(``point``, ``more``, ``once``, ``once_nodes``) of a plan.

    Nanoseconds measured on one thread, on the loops of _core/box_ops.c with 8-entry vectors and scipy's dgemm.
    """
    d, nodes = len(counts), float(prod(counts) * prod(orders))
    reaches = [_reach(x, n, left_out) for x, n in zip(extent, counts)]
    widths = [(2 * reach + boxes_together(reach, n)) * q for reach, n, q in zip(reaches, counts, orders)]
    vectors = prod(orders[:-1]) * (0.5 if orders[-1] <= 4 else 1.0 if orders[-1] <= 8 else 2.0)
    # boxes of fewer points than a group of four pay for four
    per_box = points / max(1.0, prod(counts))
    values = 0.36 * vectors * (1.0 if per_box > 16 else min(4.0, 1.0 + 3.0 / max(1.0, per_box)))
    translation = nodes * (4.0 + 0.07 * sum(widths)) + 3e3 * sum(counts)
    # rows are sorted once
    return 4.0 + 2.0 * d + values, 2.0 + values, 3e5 + 14.0 * points + translation, translation

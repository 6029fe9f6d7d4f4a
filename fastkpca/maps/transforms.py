"""Sums of waves at scattered points, and their adjoint: the transforms of Fourier features.

The waves of an axis are cos(m x) for 0 <= m <= M, then sin(m x) for 1 <= m <= M; one of all axes is a product of one of
each. For points p in [-pi, pi]^d, d = 1, 2, 3:

    type 1:  t_a  = sum_i u_i wave_a(p_i)          for all waves, shape (columns, 2 M_1 + 1, 2 M_2 + 1, ...)
    type 2:  f_i  = sum_a c_a wave_a(p_i)

Points are spread onto Chebyshev nodes of a grid of boxes (``_core.boxes``) that covers them, and waves are needed at
nodes only, axis by axis. Their interpolation errs by at most 2 (M r / 2)^q / q! for q nodes in a box of side 2 r
(Lagrange's remainder). The less of the period the points fill, the fewer nodes that takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, gamma, isqrt, pi, prod, sqrt
from typing import NamedTuple

import numpy as np
import scipy  # scipy.special is loaded where it is used first

from .._core.boxes import MOST_NODES, Grid, Points
from ..base.caching import cached_property
from ..base.parallel import tile_rows
from ..base.rounding import UNIT

CACHED_VALUES = 1 << 22
"""Nodal values that are held at a time."""


def error_bound(half: tuple[int, ...], eps: float) -> float:
    """Bound on the errors of transforms with nodes for the ``mean_modes`` of weights w_m >= 0.

    Type 1: the root mean square, with these weights, of the errors of sum_i u_i exp(-i m.p_i), over sum |u|. Type 2:
    |error of f_i| over |c|_2 (sum w)^(1/2), for coefficients c_a w_a^(1/2). The error of interpolation is ``eps``. The
    phases m p, |p| <= pi known to a few u, add 4 pi u M_c for each coordinate, and the Lagrange values add 30 q u
    Lebesgue^d. The rounding of the sums over i or a is not included.
    """
    lagrange = 30.0 * MOST_NODES * float(ORDERS.lebesgue[-1]) ** len(half)
    return eps + (4.0 * np.pi * sum(half) + 64.0 + lagrange) * UNIT


def waves_at(p: np.ndarray, m: int) -> np.ndarray:
    """cos(0 p) to cos(m p), then sin(p) to sin(m p): (n, 2 m + 1)."""
    step = 1 + isqrt(m)  # one product each, of a multiple of step and of a smaller number
    waves = np.empty((len(p), 2 * m + 1))
    rows = tile_rows(m, least=1)
    for start in range(0, len(p), rows):
        some = slice(start, start + rows)
        small = np.exp(1j * np.outer(p[some], np.arange(step)))
        large = np.exp(1j * np.outer(step * p[some], np.arange(m // step + 1.0)))
        products = (large[:, :, None] * small[:, None, :]).reshape(len(small), step * large.shape[1])
        waves[some, : m + 1], waves[some, m + 1 :] = products.real[:, : m + 1], products.imag[:, 1 : m + 1]
    return waves


def along(A: np.ndarray, values: np.ndarray, axis: int) -> np.ndarray:
    """A times each line of ``values`` along an axis."""
    before, after = values.shape[:axis], values.shape[axis + 1 :]
    out = np.empty((*before, len(A), *after))
    if prod(after) == 1:  # one product for all lines
        np.matmul(values.reshape(-1, A.shape[1]), A.T, out=out.reshape(-1, len(A)))
    else:
        np.matmul(A, values.reshape(prod(before), A.shape[1], -1), out=out.reshape(prod(before), len(A), -1))
    return out


class _Boxes(NamedTuple):
    """A grid of boxes with Chebyshev nodes for points whose phases fill an interval along each axis."""

    order: int
    """Nodes of a box along an axis."""
    counts: tuple[int, ...]
    """Boxes by axis."""
    cost: float
    """Cost of either transform, in flops of which 5e9 take a second; GEMM does more."""

    def held_bytes(self, half: tuple[int, ...], k: int) -> float:
        """Bytes of the waves at the nodes, and of k columns there where these are stored."""
        shape = [self.order * c for c in self.counts]
        held = self.counts if len(half) == 1 else shape
        waves = sum(points * (2.0 * m + 1.0) for points, m in zip(held, half))
        return 8.0 * (waves + min(k * prod(shape), CACHED_VALUES))


class _Orders(NamedTuple):
    """Numbers of nodes of a box along an axis, of which the cheapest is taken, and what follows from each."""

    q: np.ndarray
    padded: np.ndarray
    """2^ceil(log2 q), the size that the loops work on."""
    factorial: np.ndarray
    lebesgue: np.ndarray
    """Lebesgue's constant, at most."""
    gaussian_mean: np.ndarray
    """(mean of m^(2 q))^(1 / (2 q)) where m weighs exp(-m^2)."""

    @classmethod
    def up_to(cls, most: int) -> _Orders:
        q = np.arange(4.0, most + 1.0, 2.0)
        padded = 2.0 ** np.ceil(np.log2(q))
        factorials = np.array([float(factorial(int(order))) for order in q])
        means = np.array([(gamma(order + 0.5) / sqrt(pi)) ** (0.5 / order) for order in q])
        return cls(q, padded, factorials, 2.0 / pi * np.log(q) + 1.0, means)


ORDERS = _Orders.up_to(MOST_NODES)


def _boxes_cost(half: tuple[int, ...], counts: np.ndarray, n: int, k: int) -> np.ndarray:
    """For each of the ``ORDERS``, with its counts (d, orders)."""
    d, nodes = len(half), counts * ORDERS.q
    waves = [2 * m + 1 for m in half]
    # one axis after the other from waves to nodes, or back
    products: np.ndarray = sum(2.0 * prod(waves[: c + 1]) * prod(nodes[c:]) for c in range(d))
    entries = ORDERS.q ** (d - 1)
    column = 0.05 * products + 5.0 * prod(nodes) + 18.0 * prod(waves) + n * (0.1 * entries * ORDERS.padded + 11.0)
    held = counts if d == 1 else nodes
    return 1e6 + 10.0 * (np.array(waves) @ held) + k * column + n * (entries + 36.0 * d)


def cheapest_boxes(
    half: tuple[int, ...], eps: float, reach: Sequence[float], n: int, k: int, modes: np.ndarray
) -> _Boxes:
    """The boxes for n points that fill ``reach`` to both sides of a middle, and k real columns.

    M^q is a mean of m^q (``modes``: its q-th root for each axis and each of the ``ORDERS``), which weights make less.
    Interpolation axis by axis multiplies errors by Lebesgue constants, at most (2 / pi) log q + 1 each.
    """
    share = 0.5 / len(half)
    largest = 2.0 * (share * eps * ORDERS.factorial / ORDERS.lebesgue ** (len(half) - 1)) ** (1.0 / ORDERS.q)
    counts = np.maximum(1.0, np.ceil(np.array(reach)[:, None] * modes / largest))
    costs = _boxes_cost(half, counts, n, k)
    best = int(costs.argmin())
    return _Boxes(int(ORDERS.q[best]), tuple(map(int, counts[:, best])), float(costs[best]))


def mean_modes(lines: Sequence[np.ndarray]) -> np.ndarray:
    """(sum_m w_m m^(2 q) / sum_m w_m)^(1 / (2 q)) by axis, for each q of the ``ORDERS``.

    ``lines``: the sums of the weights by axis, of its modes 0 to M; those of -m count with m. The q-th derivatives of
    a type 2 are at most sum_m |s_m| |m|^q, of s_m = w_m^(1/2) c_m at most this mean's q-th power times
    |c|_2 (sum w)^(1/2) (Cauchy).
    """
    return np.stack([_mean_modes(line[None] / line.sum(), 2.0) for line in lines])


def modes_of(coefficients: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(sum_a |c_a| m^q / size)^(1 / q) of the columns c (k, 2 M_1 + 1, ...), the largest, as ``mean_modes`` has them:
    the q-th derivatives of a type 2 are no larger, and its error is relative to the ``sizes``."""
    result = []
    for c in range(1, coefficients.ndim):
        line = np.abs(coefficients).sum(axis=tuple(e for e in range(1, coefficients.ndim) if e != c))
        cosines, sines = np.split(line, [line.shape[1] // 2 + 1], axis=1)
        cosines[:, 1:] += sines
        result.append(_mean_modes(cosines / np.maximum(sizes, 1e-300)[:, None], 1.0))
    return np.stack(result)


def _mean_modes(lines: np.ndarray, power: float) -> np.ndarray:
    """(sum_m w_m m^(power q))^(1 / (power q)) for each q of the ``ORDERS``, of the line w where it is the largest."""
    m = lines.shape[1] - 1
    powers = (np.arange(m + 1.0) / max(m, 1)) ** (power * ORDERS.q[:, None])
    return m * np.asarray((lines @ powers.T).max(axis=0)) ** (1.0 / (power * ORDERS.q))


def gaussian_mean_modes(rates: np.ndarray, half: tuple[int, ...]) -> np.ndarray:
    """The same (axes, orders) for w_m = exp(-rate m^2), nearly: of an integral over |m| <= M."""
    reached = scipy.special.gammainc(ORDERS.q + 0.5, (rates * np.square(half))[:, None])
    return ORDERS.gaussian_mean * reached ** (0.5 / ORDERS.q) / np.sqrt(rates)[:, None]


class Nodes:
    """Boxes over the ``ends`` (2, d) of an interval by axis, and the waves with m_c <= M_c at their nodes.

    The cheapest for n points in there and k columns; ``modes`` as in ``cost``.
    """

    def __init__(self, half: tuple[int, ...], eps: float, ends: np.ndarray, n: int, k: int, modes: np.ndarray):
        slack = 1e-9 + 1e-12 * (ends[1] - ends[0])
        low, sides = ends[0] - slack, ends[1] - ends[0] + 2.0 * slack
        boxes = cheapest_boxes(half, eps, list(0.5 * sides), n, k, modes)
        self.half = half
        self.grid = Grid(low, sides / boxes.counts, boxes.counts, (boxes.order,) * len(half))

    @cached_property
    def waves(self) -> list[np.ndarray]:
        return [waves_at(self.grid.nodes(c), m) for c, m in enumerate(self.half)]

    @cached_property
    def _of_line(self) -> tuple[np.ndarray, np.ndarray]:
        """(waves at the places of the boxes, exp(i m x) at the nodes x of the first, (M + 1, q)) of an axis.

        Node x of a box at b lies at b + x: a factor for either is a q-th of the numbers.
        """
        m = self.half[0]
        first = np.exp(1j * np.outer(np.arange(m + 1.0), self.grid.nodes(0)[: self.grid.orders[0]]))
        return waves_at(self.grid.side[0] * np.arange(self.grid.counts[0]), m), first

    def sums_of(self, nodal: np.ndarray) -> np.ndarray:
        """(k, 2 M_1 + 1, ...) for values (k, nodes, ...) at the nodes of the first axis."""
        if nodal.ndim > 2:
            return along(self.waves[0].T, nodal, 1)
        (boxes, first), m = self._of_line, self.half[0]
        sums = boxes.T @ nodal.reshape(len(nodal), -1, self.grid.orders[0])
        waves = sums[:, : m + 1].astype(np.complex128)
        waves.imag[:, 1:] = sums[:, m + 1 :]
        waves = (waves * first).sum(axis=2)
        return np.concatenate([waves.real, waves.imag[:, 1:]], axis=1)

    def values_of(self, coefficients: np.ndarray) -> np.ndarray:
        """(k, nodes, ...) for coefficients (k, 2 M_1 + 1, ...) of the waves of the first axis: its transpose."""
        if coefficients.ndim > 2:
            return along(self.waves[0], coefficients, 1)
        (boxes, first), m = self._of_line, self.half[0]
        waves = coefficients[:, : m + 1].astype(np.complex128)
        waves.imag[:, 1:] = -coefficients[:, m + 1 :]
        waves = waves[:, :, None] * first
        values = boxes @ np.concatenate([waves.real, -waves.imag[:, 1:]], axis=1)
        return np.asarray(values.reshape(len(values), -1))


def _layers(grid: Grid, points: Points, k: int) -> Iterator[tuple[int, slice, int, int]]:
    """(first box, its nodes and those of the next ones, their first point, the point after their last) for stretches of
    the first axis on which k columns of nodal values stay in the cache."""
    order, boxes = grid.orders[0], prod(grid.counts[1:])
    step = tile_rows(k * order * prod(grid.shape[1:]), least=1)
    for begin in range(0, grid.counts[0], step):
        end = min(begin + step, grid.counts[0])
        first, last = points.start[np.searchsorted(points.box, [begin * boxes, end * boxes])]
        if first < last:
            yield begin, slice(begin * order, end * order), int(first), int(last)


def type1(P: np.ndarray, U: np.ndarray, nodes: Nodes) -> np.ndarray:
    """Sums (k, 2 M_1 + 1, ...) for the columns of U (n, k) at the points P (d, n).

    The contribution of a point does not depend on the others, but for rounding: sums of parts add up to the total.
    """
    k, grid = U.shape[1], nodes.grid
    points = grid.sort(np.ascontiguousarray(P.T))
    total = np.zeros((k, grid.shape[0], *[2 * m + 1 for m in nodes.half[1:]]))
    for begin, place, first, last in _layers(grid, points, 1):
        shape = (place.stop - place.start, *grid.shape[1:])
        for j in range(k):
            nodal = np.zeros(prod(shape))
            grid.spread(points, np.ascontiguousarray(U[:, j : j + 1]), nodal, first, last, begin)
            part = nodal.reshape(shape)
            for c in range(1, len(shape)):
                part = along(nodes.waves[c].T, part, c)
            total[j, place] = part
    return nodes.sums_of(total)


class Type2:
    """Values (n, k) at points P (d, n) for coefficients (k, 2 M_1 + 1, ...), one call after the other."""

    def __init__(self, coefficients: np.ndarray, nodes: Nodes):
        self.coefficients, self.nodes = coefficients, nodes

    @cached_property
    def factors(self) -> np.ndarray:
        """Sums of the waves along all axes but the first, at its nodes."""
        return self.nodes.values_of(self.coefficients)

    @cached_property
    def nodal(self) -> np.ndarray | None:
        """Values at all nodes where these are few."""
        few = len(self.coefficients) * prod(self.nodes.grid.shape) <= CACHED_VALUES
        return _nodal_values(self.factors, self.nodes) if few else None

    def __call__(self, P: np.ndarray) -> np.ndarray:
        nodes, grid, factors = self.nodes, self.nodes.grid, self.factors
        points = grid.sort(np.ascontiguousarray(P.T))
        result = np.empty((P.shape[1], len(factors)))
        if self.nodal is not None:
            grid.interpolate(points, self.nodal, result, 0, len(points))
            return result
        # columns share the Lagrange values of a point
        together = max(1, CACHED_VALUES // (grid.orders[0] * prod(grid.shape[1:])))
        for start in range(0, len(factors), together):
            columns = slice(start, start + together)
            values = np.empty((len(result), len(factors[columns])))
            for begin, place, first, last in _layers(grid, points, values.shape[1]):
                grid.interpolate(points, _nodal_values(factors[columns, place], nodes), values, first, last, begin)
            result[:, columns] = values
        return result


def _nodal_values(factors: np.ndarray, nodes: Nodes) -> np.ndarray:
    """Values, flat, from the factors of the waves at some nodes of the first axis."""
    for axis in range(len(nodes.half), 1, -1):
        factors = along(nodes.waves[axis - 1], factors, axis)
    return factors.ravel()

"""What narrows the intervals of a feature map the soonest: more draws, rows of what it leaves out, or more pivots.

What a map leaves out, R, has a trace that is known, and a largest eigenvalue of which a sample tells ``share`` of the
trace. From these follow the width of the intervals and the price in seconds of each `Step`: of the first order, by
``draws`` that bound |R| (``solve.sampled``), or of the second, by ``rows`` of R V as well (``solve.second_order``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..maps.choosing import candidates_for
from ..maps.draws import DRAWS
from ..products.rates import RATE, eigen_seconds, pass_seconds, pivots_cost, value_seconds
from ..solve.sampled import FEWEST, bound_flops, upper_share
from ..solve.second_order import expected_error, expected_width, expected_width_of_pass
from .narrowing import MORE_VECTORS
from .problem import Problem

__all__ = ["Prices", "State", "Step", "best_within", "cheapest", "cheapest_map", "prices_of"]

COUNTS = np.unique(np.geomspace(256, 65536, 25).astype(np.intp))
"""Rows of R V that are looked at."""
SPARE_VECTORS = 2, 5, 10, MORE_VECTORS
"""Vectors beyond those that are wanted: more of them take longer, and bound better what lies beyond
(``benchmarks/speed/loose.py``)."""
DRAW_COUNTS = FEWEST, 2 * FEWEST, 4 * FEWEST, 6 * FEWEST, 8 * FEWEST
"""Draws to bound |R|."""
GROWING = 1.25, 1.5, 2.0, 3.0
"""Times the pivots that there are."""
TRACE_FALLS, SHARE_FALLS = 0.5, 0.8
"""Powers of the number of pivots by which the trace of what they leave falls, and the share of its largest eigenvalue:
on images and tables, hardly less on any (``benchmarks/speed/loose.py``)."""
MOVED = 0.3
"""About v'Rv over |R|, before a sample has told (``benchmarks/speed/loose.py``)."""
AIM = 0.85
"""Of the width that is wanted: what a step is expected to reach is met that often."""


class Step(NamedTuple):
    """What to do next, and what comes of it.

    Attributes
    ----------
    seconds : float
    width : float
        Of the widest interval.
    draws, rows : int
        To bound |R|, and of R V; as many as there are: a pass over the kernel values.
    features : int
        Of the map.
    vectors : int
        That are multiplied by R; 0 without rows.
    """

    seconds: float
    width: float
    draws: int
    rows: int
    features: int
    vectors: int = 0


class Prices(NamedTuple):
    """Seconds, on n rows: of a kernel value, of a column of a product with such a value, and more."""

    n: int
    value: float
    column: float
    pass_value: float
    pass_column: float

    def rows(self, count: np.ndarray, k: int) -> np.ndarray:
        """Of so many rows of R V."""
        return np.asarray(count * (float(self.n) * (self.value + k * self.column)))

    def whole(self, k: int) -> float:
        """Of a pass over the kernel values."""
        return self.pass_value + k * self.pass_column

    def some_or_all(self, count: int, k: int) -> float:
        """Of rows of R V, or of a pass."""
        return self.whole(k) if count >= self.n else float(self.rows(np.array(count), k))

    def bound(self, draws: int, features: int) -> float:
        """Of a bound on |R|."""
        return float(bound_flops(draws, features)) / RATE.squares + float(draws) ** 2 * self.value / 2.0

    def map(self, features: float, k: int) -> float:
        """Of pivots, a pass with them, and one for their vectors."""
        candidates = min(DRAWS, candidates_for(int(features), self.n))
        cost = pivots_cost(features, RATE.features * self.value, 1.0, candidates=candidates)
        each = features * (self.value + 2.0 * k / RATE.multiplications) + float(features) ** 2 / RATE.squares
        formed = (cost.setup_flops + self.n * cost.row_flops) / RATE.features
        return formed + self.n * each + eigen_seconds(features, k)


@dataclass(frozen=True)
class State:
    """What is known of a map, or expected of one.

    Attributes
    ----------
    features : int
    theta : ndarray (k,)
        Its leading eigenvalues; ``beyond`` is the next one.
    trace, share, moved : float
        Of R: its trace, about its largest eigenvalue over that, and about the largest v'Rv.
    c : int
        Eigenvalues wanted; 0: rows of R V are not to be had.
    most_draws : int
        0: neither draws nor some of the rows, as only certain bounds will do.
    failure : float
        Of a bound.
    known : float
        A bound on |R| that is known already.
    """

    features: int
    theta: np.ndarray
    beyond: float
    trace: float
    share: float
    moved: float
    c: int
    most_draws: int
    failure: float
    known: float = np.inf

    def with_features(self, count: float) -> State:
        """With more pivots."""
        fall = self.features / count
        trace, share = self.trace * fall**TRACE_FALLS, self.share * fall**SHARE_FALLS
        moved = self.moved * fall ** (TRACE_FALLS + SHARE_FALLS)
        return replace(self, features=int(count), trace=trace, share=share, moved=moved, known=np.inf)

    def norm(self, draws: np.ndarray) -> np.ndarray:
        """About the bounds on |R| that so many draws give; 0: what is known."""
        some = np.maximum(draws, 1)
        # of a flat spectrum a sample's largest eigenvalue is larger (Marchenko and Pastur)
        seen = np.minimum((np.sqrt(self.share) + np.sqrt(1.0 / some)) ** 2, 1.0)
        found = self.trace * upper_share(seen, some, self.failure)
        return np.where(draws > 0, np.minimum(found, self.known), min(self.known, self.trace))

    def steps(self, prices: Prices, before: float = 0.0) -> Steps:
        """Draws, and rows, that this map may take, after so many seconds."""
        draws = np.array([0, *(x for x in DRAW_COUNTS if x <= self.most_draws)])
        norm, n = self.norm(draws)[:, None], prices.n
        seconds = before + np.array([prices.bound(int(s), self.features) if s else 0.0 for s in draws])[:, None]
        counts = COUNTS[(COUNTS < n) & (self.most_draws > 0)]
        widths, later, vectors = [norm], [np.zeros(1)], [0]
        largest, theta, after = self.share * self.trace, self.theta[: self.c], np.append(self.theta, self.beyond)
        spare = SPARE_VECTORS if self.c and self.trace > 0.0 else ()
        several = sorted({min(self.c + x, len(self.theta)) for x in spare})
        sizes = size, _, _ = np.minimum(self.moved, norm), largest, norm
        error = expected_error(counts, n, self.c, self.trace, sizes, self.failure) if several else norm
        for k in several:
            beyond = float(after[k])
            widths.append(expected_width_of_pass(theta, beyond, norm, size, largest))
            widths.append(expected_width(theta, beyond, norm, size, error))
            later += [np.full(1, prices.whole(k)), prices.rows(counts, k)]
            vectors += [k] * (1 + len(counts))
        rows = np.append(0, np.tile(np.append(n, counts), len(several)))
        seconds = seconds + np.concatenate(later)
        return Steps(seconds, np.hstack(widths), draws, rows, self.features, np.array(vectors))


class Steps(NamedTuple):
    """`Step` s: seconds and widths (b, s) of so many draws (b,), and rows and vectors (s,)."""

    seconds: np.ndarray
    width: np.ndarray
    draws: np.ndarray
    rows: np.ndarray
    features: int
    vectors: np.ndarray

    def cheapest(self, width: float, *, with_rows: bool = False) -> Step | None:
        """To intervals of this width."""
        allowed = (self.width <= width) & (self.rows > 0 if with_rows else True)
        seconds = np.where(allowed, self.seconds, np.inf)
        i, j = np.unravel_index(np.argmin(seconds), seconds.shape)
        if not seconds[i, j] < np.inf:
            return None
        draws, rows, vectors = int(self.draws[i]), int(self.rows[j]), int(self.vectors[j])
        return Step(float(seconds[i, j]), float(self.width[i, j]), draws, rows, self.features, vectors)


def prices_of(problem: Problem) -> Prices:
    kernel, n, d = problem.kernel, problem.data.n_samples, problem.data.n_features
    one, none = (pass_seconds(kernel, n, n, d, columns, square=True) for columns in (1, 0))
    return Prices(n, value_seconds(kernel, d), 2.0 / RATE.products, none, one - none)


def cheapest(state: State, prices: Prices, width: float, most_features: int) -> Step | None:
    """The cheapest step to intervals of this width, with this map or with more pivots; None where none gets there."""
    found, k = [state.steps(prices).cheapest(AIM * width)], len(state.theta)
    for times in GROWING:
        count = min(int(times * state.features), most_features)
        if count > state.features:
            steps = state.with_features(count).steps(prices, prices.map(count, k))
            found.append(steps.cheapest(AIM * width))
    return min((x for x in found if x is not None), default=None)


def best_within(state: State, prices: Prices, seconds: float) -> Step | None:
    """The step with this map to the narrowest intervals at this price; where several get there, the cheapest."""
    steps = state.steps(prices)
    least = float(np.where(steps.seconds <= seconds, steps.width, np.inf).min())
    return steps.cheapest(1.05 * least)


def cheapest_map(states: list[State], prices: Prices, width: float) -> Step | None:
    """The cheapest way to intervals of second order of this width by one of these maps, in the order of their prices,
    with its passes."""
    found: list[Step] = []
    for state in states:
        before = prices.map(state.features, len(state.theta))
        if all(before < x.seconds for x in found):
            step = state.steps(prices, before).cheapest(AIM * width, with_rows=True)
            found += [] if step is None else [step]
    return min(found, default=None)

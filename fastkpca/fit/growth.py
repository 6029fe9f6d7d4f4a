"""The fastest refinement of the intervals of a feature map: more pivots, more draws, or rows of its residual.

The residual R of a map has a known trace, and a largest eigenvalue that a sample estimates as ``share`` of the trace.
From these follow the width of the intervals and the seconds of each `Refinement`: of the first order, by ``draws``
that bound |R| (``solve.sampled``), or of the second, by ``rows`` of R V as well (``solve.second_order``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.protocol import Cost
from ..maps.choosing import candidates_for
from ..maps.draws import DRAWS_PER_PASS
from ..products.rates import RATE, eigen_seconds, pass_seconds, pivots_cost, value_seconds
from ..solve.sampled import MIN_DRAWS, bound_flops, upper_share
from ..solve.second_order import expected_error, expected_width, expected_width_of_pass
from .problem import Problem

COUNTS = np.unique(np.geomspace(256, 65536, 25).astype(np.intp))
"""Numbers of rows of R V that are tried."""
MOVED = 0.3
"""Estimate of v'Rv over |R|, before a sample exists (``benchmarks/speed/loose.py``)."""
SPECTRA = 100
"""Approximate number of eigenvalue problems of order k that are solved for each interval from rows
(``solve.second_order``).
"""
AIM = 0.85
"""Fraction of the wanted width that a step has to predict, so that it mostly reaches it."""


class Refinement(NamedTuple):
    """A step that tightens the intervals of a map, or a map and such a step, and its predicted result.

    Attributes
    ----------
    features : int
        Number of features of the map.
    draws, rows : int
        Number of sampled rows to bound |R|, and of rows of R V; n rows are a pass over the kernel values.
    seconds : float
    width : float
        Predicted width of the widest interval.
    """

    features: int
    draws: int
    rows: int = 0
    seconds: float = 0.0
    width: float = np.inf

    def name(self, n_samples: int) -> str:
        """Text of the step for the plan."""
        rows = "a pass over the kernel values" if self.rows >= n_samples else f"{self.rows} rows of the residual"
        steps = [f"bound from {self.draws} sampled rows"] if self.draws else []
        return ", ".join([*steps, *([rows] if self.rows else [])])


class RefinementCosts:
    """Predicted seconds of refinements, and of the maps before them."""

    def __init__(self, problem: Problem):
        kernel, n, d = problem.kernel, problem.data.n_samples, problem.data.n_features
        self.n, self.value = n, value_seconds(kernel, d)
        self._pass_seconds = [pass_seconds(kernel, n, n, d, k, square=True) for k in (0, 1)]

    def rows(self, count: np.ndarray, k: int, c: int) -> np.ndarray:
        """Predicted seconds to sample m rows of R V and to compute the k x k matrices of the bounds on c
        eigenvalues.
        """
        column = 2.0 / RATE.products  # of a product with one kernel value
        proving = SPECTRA * eigen_seconds(k, 0) + 4.0 * k * k * column * count
        return np.asarray(count * (float(self.n) * (self.value + k * column)) + (c + 1) * proving)

    def whole(self, k: int) -> float:
        """Predicted seconds of a pass over the kernel values."""
        values, one_column = self._pass_seconds
        return values + k * (one_column - values)

    def some_or_all(self, count: int, k: int, c: int) -> float:
        """Predicted seconds of rows of R V, or of a pass."""
        return self.whole(k) if count >= self.n else float(self.rows(np.array(count), k, c))

    def bound(self, draws: int, features: int) -> float:
        """Predicted seconds of a bound on |R|."""
        return float(bound_flops(draws, features)) / RATE.squares + float(draws) ** 2 * self.value / 2.0

    def map(self, features: float, k: int) -> float:
        """Predicted seconds of pivots, a pass with them, and one for their vectors."""
        return self.choosing(features) + self.passing(features, k)

    def choosing(self, features: float) -> float:
        """Predicted seconds to choose pivots."""
        return self._pivots(features).setup_flops / RATE.features

    def passing(self, features: float, k: int) -> float:
        """Predicted seconds of a pass with pivots, and one for their vectors."""
        each = features * (self.value + 2.0 * k / RATE.multiplications) + float(features) ** 2 / RATE.squares
        formed = self._pivots(features).row_flops / RATE.features
        return self.n * (formed + each) + eigen_seconds(features, k)

    def _pivots(self, features: float) -> Cost:
        candidates = min(DRAWS_PER_PASS, candidates_for(int(features), self.n))
        return pivots_cost(features, RATE.features * self.value, 1.0, candidates=candidates)

    def pivots_within(self, seconds: float, k: int, most: int) -> int:
        """The most pivots, up to ``most``, whose `map` takes no longer."""
        if self.map(most, k) <= seconds:
            return most
        return bisect_right(range(1, most + 1), seconds, key=lambda m: self.map(m, k))


@dataclass(frozen=True)
class State:
    """Known or predicted quantities of a map.

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
    full_pass_done : bool
        There was a pass over the kernel values already.
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
    full_pass_done: bool = False

    def norm(self, draws: np.ndarray) -> np.ndarray:
        """Predicted bounds on |R| from numbers of draws; 0: the known bound."""
        some = np.maximum(draws, 1)
        # of a flat spectrum a sample's largest eigenvalue is larger (Marchenko and Pastur)
        seen = np.minimum((np.sqrt(self.share) + np.sqrt(1.0 / some)) ** 2, 1.0)
        found = self.trace * upper_share(seen, some, self.failure)
        return np.where(draws > 0, np.minimum(found, self.known), min(self.known, self.trace))

    def cheapest(self, costs: RefinementCosts, width: float, before: float = 0.0) -> Refinement | None:
        """The cheapest step to intervals of this width; ``before``: seconds spent. None where no step reaches it."""
        seconds, widths, draws, rows = self._refinements(costs)
        cost = np.where(widths <= AIM * width, seconds, np.inf)
        i, j = np.unravel_index(np.argmin(cost), cost.shape)
        if not cost[i, j] < np.inf:
            return None
        return Refinement(self.features, int(draws[i]), int(rows[j]), before + float(cost[i, j]), float(widths[i, j]))

    def best_within(self, costs: RefinementCosts, most_seconds: float) -> Refinement | None:
        """To the narrowest intervals at this cost; where several get about there, the cheapest."""
        seconds, widths, draws, rows = self._refinements(costs)
        widths = np.where(seconds <= most_seconds, widths, np.inf)
        if not widths.min() < np.inf:
            return None
        cost = np.where(widths <= 1.05 * widths.min(), seconds, np.inf)
        i, j = np.unravel_index(np.argmin(cost), cost.shape)
        return Refinement(self.features, int(draws[i]), int(rows[j]), float(cost[i, j]), float(widths[i, j]))

    def _refinements(self, costs: RefinementCosts) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Predicted seconds and widths (b, s) of numbers of draws (b,) and of rows (s,) that this map may take."""
        draws = np.arange(0, self.most_draws + 1, MIN_DRAWS)
        norm, n = self.norm(draws)[:, None], costs.n
        seconds = np.array([costs.bound(int(s), self.features) if s else 0.0 for s in draws])[:, None]
        counts = COUNTS[(COUNTS < n) & (self.most_draws > 0)]
        widths, later, rows = [norm], [np.zeros(1)], [np.zeros(1, dtype=np.intp)]
        if self.c and self.trace > 0.0:
            largest, theta = self.share * self.trace, self.theta[: self.c]
            sizes = size, _, _ = np.minimum(self.moved, norm), largest, norm
            error = expected_error(counts, n, self.c, self.trace, sizes, self.failure)
            widths.append(expected_width_of_pass(theta, self.beyond, norm, size, largest))
            widths.append(expected_width(theta, self.beyond, norm, size, error))
            k = len(self.theta)
            later += [np.full(1, 0.0 if self.full_pass_done else costs.whole(k)), costs.rows(counts, k, self.c)]
            rows += [np.full(1, n), counts]
        seconds, width = seconds + np.concatenate(later), np.hstack(widths)
        # zero draws bring nothing new: without rows, and after a pass with any number of rows
        width[0, : None if self.full_pass_done else 1] = np.inf
        return seconds, width, draws, np.concatenate(rows)


def cheapest_map(
    states: Iterable[State], costs: RefinementCosts, width: float, most_seconds: float
) -> Refinement | None:
    """The cheapest of maps that are yet to be made, the largest first, and of what makes their intervals that narrow.

    None where all take ``most_seconds`` or more, or get nowhere.
    """
    best = None
    for state in states:
        before = costs.map(state.features, len(state.theta))
        if before >= most_seconds:
            continue
        step = state.cheapest(costs, width, before)
        if step is None:
            break  # fewer features leave more
        if step.seconds < most_seconds:
            best, most_seconds = step, step.seconds
    return best

"""Feature maps that a problem may take: what the kernel offers, and maps of pivots, with their costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..base.protocol import BLAS_FLOPS, Cost, FeatureMap, Kernel, Offer, Summary
from ..maps.choosing import SAMPLE_ROWS, candidates_for, pivot_map
from ..maps.draws import DRAWS_PER_PASS
from ..maps.pivots import pivots_rounding
from ..maps.probe import RankProbe
from ..products.rates import RATE, pivots_cost, value_seconds
from ..rows.summary import spread_rows
from ..rows.view import Rows
from ..solve.sampled import bound_flops, draws_worth
from .growth import MOVED, Refinement, RefinementCosts, State, cheapest_map
from .narrowing import MORE_VECTORS, takes_pass
from .probe import SpectrumProbe
from .problem import Problem
from .product_choice import WORTH_ASKING

MAX_FEATURES = 8192
"""Features of a map whose second moment is formed, at most."""
MAPS = 20
"""Numbers of pivots that are tried for bounds from draws, and for intervals of second order."""


@dataclass(frozen=True)
class PivotOffer(Offer):
    """``rows``: expected number of sampled rows of the residual; ``probe``: the residual of other numbers of pivots."""

    rows: int = 0
    probe: RankProbe | None = None


def offers_of_maps(
    kernel: Kernel,
    data: Summary,
    rows: Rows,
    probe: SpectrumProbe,
    residual: float,
    largest: int,
    name: str = "auto",
    *,
    most: int | None = None,
    count: Refinement | None = None,
    seconds: Callable[[Offer], float] | None = None,
    n_threads: int = 1,
) -> list[Offer]:
    """Feature maps of the kernel, and pivoted Cholesky, which works for any positive semidefinite kernel.

    ``residual``: largest residual trace over trace. ``most``: largest number of pivots; ``count``: the exact number,
    where the residual trace does not set it. ``seconds``: cost of a map below which the kernel is not asked for others.
    """
    most = largest if most is None else most
    pivots: list[PivotOffer] = []
    if probe.pivots is not None and name in ("auto", "pivots"):
        cost = _pivots_cost(kernel, data, probe, residual, count)
        # a map with more features than pivots needs pays only where forming them is cheaper: up to twice as many
        largest = min(largest, 2 * cost.n_features + 1000)
        if cost.n_features <= most:
            most = most if count is None else count.features
            made = pivot_offer(kernel, data, rows, cost, residual, most, n_threads, counted=count)
            pivots = [replace(made, probe=probe.pivots)]
    offers: list[Offer] = []
    if name != "pivots" and 0.0 < residual < 1.0:
        for offer in kernel.feature_maps(data, residual, largest):
            offers += [offer] if name in ("auto", offer.name) else []
            if seconds is not None and seconds(offer) < WORTH_ASKING:
                break
    return offers + pivots


def of_at_most(offers: list[Offer], max_features: int | None) -> list[Offer]:
    """The offers of at most ``max_features`` features, where that is given: a map with a fast transform is offered at
    any size."""
    return [x for x in offers if max_features is None or x.cost.n_features <= max_features]


def offers_within(
    kernel: Kernel, data: Summary, rows: Rows, residual: float, count: int, name: str, n_threads: int
) -> list[Offer]:
    """Maps of at most m features without a residual; else m pivots, or fewer where their residual is at most
    ``residual`` of the trace. Neither needs a probe."""
    if name == "auto":
        exact = [x for x in kernel.feature_maps(data, 0.0, count) if x.cost.residual == 0.0]
        exact = [x for x in exact if x.cost.n_features <= count]
        if exact:
            return exact
    counted = budgeted(data.n_samples, min(count, data.n_samples))
    cost = counted_cost(data, counted, RATE.features * value_seconds(kernel, data.n_features))
    return [pivot_offer(kernel, data, rows, cost, residual, counted.features, n_threads, counted=counted)]


def _pivots_cost(
    kernel: Kernel, data: Summary, probe: SpectrumProbe, residual: float, count: Refinement | None
) -> Cost:
    flops = RATE.features * value_seconds(kernel, data.n_features)
    if count is not None:
        return counted_cost(data, count, flops)
    assert probe.pivots is not None
    rank = min(probe.pivots.rank(residual), float(data.n_samples))
    cost = pivots_cost(rank, flops, residual, candidates=SAMPLE_ROWS)
    error = kernel.entry_error(data, np.dtype(np.float64)) or 0.0
    return replace(cost, rounding=pivots_rounding(cost.n_features, error / max(probe.mean, 1e-300)))


def pivot_count(problem: Problem, probe: SpectrumProbe, residual: float, most_seconds: float) -> Refinement | None:
    """A given number of pivots, where a sample of the rows bounds their residual, or where the user gave that number.

    The former is tried up to ``most_seconds``, the predicted seconds of another route.
    """
    target, pivots, n = problem.target, probe.pivots, problem.data.n_samples
    if not target.tol_is_required:
        return None if target.max_features is None else budgeted(n, target.max_features)
    count = _cheapest_count(problem, probe, residual, most_seconds if target.free else np.inf)
    if target.max_features is None or pivots is None:
        return count
    enough = pivots.rank(residual) if count is None else count.features
    return count if enough <= target.max_features else budgeted(n, target.max_features)


def budgeted(n: int, rank: int) -> Refinement:
    """A given number of pivots, and the draws whose cost is small compared with a pass over n rows."""
    return Refinement(rank, draws_worth(n, rank))


def _cheapest_count(problem: Problem, probe: SpectrumProbe, residual: float, most_seconds: float) -> Refinement | None:
    """Pivots, and the draws or rows with which their intervals meet tol: more pivots need fewer of these.

    None where that is no cheaper than pivots that leave a trace of ``residual``, which is certain, or where nothing is
    known.
    """
    target, pivots, n = problem.target, probe.pivots, problem.data.n_samples
    takes_rows = takes_pass(problem) and not problem.keeps_moments  # models that add up have bounds of the first order
    if not (takes_rows or target.may_use_sampled_bound):
        return None
    if pivots is None or not pivots.held_out or not probe.share(1) > 0.0:
        return None
    costs, c = RefinementCosts(problem), (target.n_components or 0) if takes_rows else 0
    k, (shares, beyond) = c + MORE_VECTORS, probe.spectrum
    theta = np.append(shares, np.full(k + 1, beyond))[: k + 1]
    most, failure = (DRAWS_PER_PASS if target.may_use_sampled_bound else 0), target.failure_of("samples") / 4.0 or 0.5
    ranks = np.unique(np.geomspace(k + 1, max(min(n / 2.0, MAX_FEATURES), k + 1), MAPS).astype(np.intp))
    left, largest = pivots.held_out_residual(ranks), pivots.largest_share(ranks, np.array(np.inf))
    fields = (x[::-1].tolist() for x in (ranks, left, largest))
    states = (State(m, theta[:k], float(theta[k]), t, x, MOVED * t * x, c, most, failure) for m, t, x in zip(*fields))
    enough = int(min(pivots.rank(residual), n))
    return cheapest_map(states, costs, target.tol * probe.first, min(costs.map(enough, k), most_seconds))


def counted_cost(data: Summary, count: Refinement, kernel_flops: float) -> Cost:
    """Cost of m pivots, and of a bound on their residual."""
    rank, draws = count.features, count.draws
    cost = pivots_cost(rank, kernel_flops, 1.0, candidates=min(len(data.sample), candidates_for(rank, data.n_samples)))
    bound = BLAS_FLOPS * float(bound_flops(draws, rank))
    return replace(cost, setup_flops=cost.setup_flops + bound, memory=8.0 * draws**2)


def pivot_offer(
    kernel: Kernel,
    data: Summary,
    rows: Rows,
    cost: Cost,
    residual: float,
    largest: int,
    n_threads: int = 1,
    *,
    counted: Refinement | None = None,
) -> PivotOffer:
    """``counted``: the number of pivots is exact, at any residual trace, which then need not be estimated."""

    def build(sample: np.ndarray, most: int = largest) -> FeatureMap:
        # judged on rows that are not pivots: several of these for each pivot
        # (a row of weight zero may lie where the bounds of the others don't hold: the sample has none)
        more = 4 * cost.n_features > len(sample) and rows.weights is None
        if counted is not None and not more:
            sample = spread_rows(sample, candidates_for(cost.n_features, data.n_samples))
        return pivot_map(
            kernel,
            rows if more else sample,
            tol=0.9 * residual,  # its own rounding comes on top
            max_features=min(most, largest),
            rng=np.random.default_rng(0),
            n_samples=data.n_samples,
            sample_rows=max(4 * cost.n_features, len(sample)),
            entry_error=kernel.entry_error(data, np.dtype(np.float64)),
            n_threads=n_threads,
        )

    return PivotOffer("pivots", cost, build, 0 if counted is None else counted.rows)


def small_offers(kernel: Kernel, data: Summary, rows: Rows, residual: float, largest: int) -> list[Offer]:
    """Pivots without a probe, for few rows of one coordinate: methods on projections ask for these hundreds of times.

    On a line the spectrum of a translation-invariant kernel falls fast, no other map has fewer features, and choosing
    the pivots among all rows costs less than a probe of some of them.
    """
    if data.n_features > 1 or data.n_samples > len(data.sample) or kernel.translation != "kernel":
        return []
    return [pivot_offer(kernel, data, rows, Cost(data.n_samples), residual, largest)]

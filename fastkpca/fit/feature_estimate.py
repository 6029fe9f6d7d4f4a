"""Estimates of the features route: the feature maps for a problem, with their predicted steps and memory.

Predictions are counts (flops, kernel values, bytes) over the rates of ``products.rates``. Quantities that no probe has
measured yet are taken for the best: predicted costs are then lower bounds.
"""

from __future__ import annotations

from ..base.protocol import Cost, Offer
from ..base.spelling import with_suggestion
from ..maps.toeplitz import MAX_DENSE_MODES
from ..model.plan import Candidate, RunSettings, Step, readable_size, total_seconds
from ..products.rates import RATE, ROW_ENTRIES, eigen_seconds, moment_seconds
from ..solve.costs import MOST_COLUMNS, check_seconds, step_seconds
from ..solve.moments import narrow_block
from . import footprint
from .convergence import expected_runs
from .growth import RefinementCosts
from .narrowing import MORE_VECTORS, vectors_bytes
from .offers import MAX_FEATURES, PivotOffer, of_at_most, offers_of_maps, offers_within, pivot_count
from .probe import NO_PROBE, SpectrumProbe, components_expected, components_held
from .problem import Problem

SMALL_MAP = 2048
"""Features that a map may have where the rows are fewer."""
LEAST_RESIDUAL = 1e-9
"""Residual trace over trace below which more pivots cost more than they gain, at any budget: down to 1e-11, say,
took 1.5 times as long for smooth kernels."""


def estimate(problem: Problem, probe: SpectrumProbe, most_seconds: float) -> list[Candidate]:
    """The feature maps for ``tol``, none of which costs more than ``most_seconds``, those of another route."""
    kernel, target = problem.kernel, problem.target
    if kernel.without_maps:
        return []
    if problem.given_map is not None:
        return [candidate_of(problem, problem.given_map, components_held(problem))]
    if not target.tol_is_required and target.features in ("auto", "pivots"):
        return _budgeted(problem)
    name = target.features
    offers = [x for x in kernel.feature_maps(problem.data, 0.0, MAX_FEATURES) if x.cost.residual == 0.0]
    offers = of_at_most([x for x in offers if name in ("auto", x.name)], target.max_features)
    if target.free:
        offers = [x for x in offers if total_seconds(_steps(problem, x, probe)) <= most_seconds]
    hold = components_held(problem, probe)
    # where nothing was asked for, what does not fit is a candidate with an obstacle
    largest = MAX_FEATURES if target.free else _largest_map(problem, hold, pivots=False)
    pivots = 0 if probe.pivots is None else _largest_map(problem, hold, pivots=True)
    offers = [x for x in offers if x.cost.moment_flops is not None or x.cost.n_features <= largest]
    # nothing could follow a map that misses tol, where the method was given
    if probe.level and not (offers and target.forced) and (probe.share(1) > 0.0 or target.method == "features"):
        known = {x.name for x in offers}
        offers += [x for x in _truncated(problem, probe, largest, pivots, most_seconds) if x.name not in known]
    if not offers:
        return [_no_map(problem, largest)] if target.method == "features" and probe.level else []
    return [candidate_of(problem, x, hold, probe, pivots) for x in offers]


def _budgeted(problem: Problem) -> list[Candidate]:
    """Maps of a given number of features, at any interval width."""
    target, threads, hold = problem.target, problem.budget.n_threads, components_held(problem)
    assert target.max_features is not None
    offers = offers_within(
        problem.kernel, problem.data, problem.rows, LEAST_RESIDUAL, target.max_features, target.features, threads
    )
    pivots = _largest_map(problem, hold, pivots=True)
    return [candidate_of(problem, x, hold, pivots=pivots) for x in offers]


def _truncated(problem: Problem, probe: SpectrumProbe, largest: int, pivots: int, most_seconds: float) -> list[Offer]:
    target, data, kernel = problem.target, problem.data, problem.kernel
    residual = _residual_allowed(target.tol, probe.share(1), probe.first)
    pivots = min(pivots, largest)
    while True:
        offers = offers_of_maps(
            kernel,
            data,
            problem.rows,
            probe,
            residual,
            largest,
            target.features,
            most=pivots,
            count=pivot_count(problem, probe, residual, most_seconds),
            seconds=(lambda x: total_seconds(_steps(problem, x, probe))) if target.free else None,
            n_threads=problem.budget.n_threads,
        )
        if problem.keeps_moments and target.features == "auto":
            # moments that are no matrix belong to the box of these rows: what will be merged or updated takes any rows
            offers = [x for x in offers if x.cost.moment_flops is None] or offers
        offers = of_at_most(offers, target.max_features)
        fit = [x for x in offers if not _too_many(x, data.n_samples, target.features)]
        if fit or target.method != "features" or residual >= 1.0:
            return offers
        # asked for: the best that fits, and the interval says how good that is
        residual = min(max(10.0 * residual, 1e-15), 1.0)


def _residual_allowed(tol: float, share: float, first: float) -> float:
    """Residual trace over trace that a map may have: ``share`` is lambda_1 / tr K of a few rows, ``first`` that of all.

    The residual of a map and the errors of its transforms may take half of tol; the other half allows for an
    overestimated fraction.
    """
    return min(0.5 * tol * min(share, first), 1.0)


def _no_map(problem: Problem, largest: int) -> Candidate:
    name = problem.target.features
    if name == "auto":
        text = f"no map reaches tol={problem.target.tol:g} within {largest} features"
        return Candidate("features", "any", 0.0, 0.0, obstacle=text)
    # some maps are offered for a loose tolerance only, others (fourier) for one below 1
    most = max(largest, MAX_FEATURES)
    offers = [x for tol in (1.0, 0.1) for x in problem.kernel.feature_maps(problem.data, tol, most)]
    known = sorted({"pivots", *(x.name for x in offers)})
    if name not in known:
        names = ", ".join(map(repr, known))
        text = f"features={name!r}: {problem.kernel!r} has no map of this name on these rows; it has {names}"
        raise ValueError(with_suggestion(text, name, known))
    return Candidate("features", name, 0.0, 0.0, obstacle=f"needs more than {largest} features")


def _too_many(offer: Offer, n: int, forced: str) -> str:
    """Obstacle of a map whose D x D moment is larger than the number of rows warrants; "" where there is none."""
    D = offer.cost.n_features
    if offer.cost.moment_flops is not None or D <= max(n, SMALL_MAP):
        return ""
    without = "" if forced == "auto" else f"leave features={forced!r} out, and "
    return f"has {D} features, and {n} rows have {n - 1} components at most: {without}method='dense' takes the matrix"


def candidate_of(
    problem: Problem, offer: Offer, hold: int, probe: SpectrumProbe = NO_PROBE, pivots: int = 0
) -> Candidate:
    """A map with its predicted cost, and memory for c components; ``pivots``: the number of pivots that fit."""
    D, limit, each = offer.cost.n_features, problem.budget.memory, _score_bytes(problem)

    def needed(scores: float) -> float:
        return footprint.map_bytes(
            problem.data,
            problem.rows,
            D,
            hold,
            map_memory=offer.cost.memory,
            dense=offer.cost.moment_flops is None,
            pivots=offer.name == "pivots",
            scores=scores,
        )

    steps, memory = _steps(problem, offer, probe), needed(each)
    rows = offer.rows if isinstance(offer, PivotOffer) else 0
    if rows:
        memory += vectors_bytes(problem.data.n_samples, hold + MORE_VECTORS)
        name = "pass over kernel values" if rows >= problem.data.n_samples else f"{rows} rows of the residual"
        steps.append(Step(name, RefinementCosts(problem).some_or_all(rows, hold + MORE_VECTORS, hold)))
    obstacle = footprint.too_much(memory, limit)
    if obstacle and needed(0.0) <= limit:
        held = readable_size(each * min(hold, D))
        obstacle += f", of which scores are {held}: return_scores=False, or out=, does without"
    obstacle = _too_many(offer, problem.data.n_samples, problem.target.features) or obstacle
    fewest = min(problem.target.n_components or 1, problem.rank)
    if isinstance(offer, PivotOffer) and pivots < fewest and not obstacle:
        obstacle = f"{readable_size(limit)} have room for {pivots} pivots, and c asks for {fewest} at least"
    settings, misses = RunSettings(features=pivots, rows=rows), _misses_by_rounding(offer)
    seconds = total_seconds(steps)
    return Candidate("features", offer.name, seconds, memory, D, obstacle, tuple(steps), offer, settings, misses)


def _misses_by_rounding(offer: Offer) -> bool:
    """True if the rounding of its transforms and products alone exceeds its permitted residual."""
    return offer.cost.rounding > offer.cost.residual > 0.0


def _largest_map(problem: Problem, hold: int, *, pivots: bool) -> int:
    """Number of features of a map that fit into memory; with the scores, where it may get more ``pivots``."""
    scores = _score_bytes(problem) if pivots else 0.0
    most = min(MAX_FEATURES, problem.target.max_features or MAX_FEATURES)
    most = min(most, problem.data.n_samples) if pivots else most
    return footprint.largest_map(
        problem.data, problem.rows, hold, problem.budget.memory, most, pivots=pivots, scores=scores
    )


def _score_bytes(problem: Problem) -> float:
    """Bytes of the scores of one component, where they are kept in memory."""
    return float(problem.dtype.itemsize) * problem.data.n_samples if problem.keeps_scores else 0.0


def _steps(problem: Problem, offer: Offer, probe: SpectrumProbe) -> list[Step]:
    """Steps of a run with the map: the map, a pass over the rows, eigenpairs, scores."""
    n, d, cost = problem.data.n_samples, problem.data.n_features, offer.cost
    k, D = components_expected(problem, probe), cost.n_features
    form, reading = cost.row_flops / RATE.features, 4 * (d + ROW_ENTRIES) / RATE.rows
    moment = moment_seconds(cost, quick=problem.takes_quick_moments)
    if cost.moment_flops is not None:
        scores, eigen = k * form, _iterated_seconds(problem, cost, probe)
    else:
        scores, eigen = form + 2.0 * D * k / RATE.multiplications, eigen_seconds(D, k)
    return [
        Step(f"map of {D} {'pivots' if offer.name == 'pivots' else 'features'}", cost.setup_flops / RATE.features),
        Step("pass over the rows", n * (moment + reading) + RATE.fit),
        Step(f"{k} eigenpairs of the second moment", eigen),
        Step("scores", n * scores),
    ]


def _iterated_seconds(problem: Problem, cost: Cost, probe: SpectrumProbe) -> float:
    """Predicted seconds of the eigenvectors of a second moment that is stored as an operator."""
    size, k = int(cost.moment_size or cost.n_features), components_expected(problem, probe)
    if size <= MAX_DENSE_MODES:  # is formed
        return size * cost.product_flops / RATE.features + eigen_seconds(size, k)
    block = narrow_block(size)
    most = max(MOST_COLUMNS, k + 4 * block) // block  # no more fit into memory
    target, trace = problem.target, problem.kernel.positive_semidefinite
    expected = expected_runs(probe, k, block, most, target.tol, target.failure_probability, trace=trace, norm=True)
    passes = max(min(x.search + (0.0 if x.proved else x.exploring) for x in expected), k / block + 2.0)
    passes = min(passes, float(most))
    columns = min(passes * block, size)
    algebra = passes * (step_seconds(size, 0.5 * columns, block) + check_seconds(0.7 * columns))
    return passes * (block * cost.product_flops / RATE.features) + algebra

"""The plan: every candidate for a problem with its predicted steps and cost; the cheapest known one is chosen.

1. `_candidates`: ``estimate`` of each route (``dense``, ``feature_estimate``, ``krylov``) predicts seconds and bytes.
2. A probe of a few rows (``probe``) replaces what is unknown, and the estimates are made anew. Probes go on while all
   of them cost little compared with the cheapest known candidate, and may change the choice (`_undecided`).
3. `_choose`: the cheapest of known cost that fits into the memory limit.
4. `advice_if_slow`: what an easier task would take, where the choice takes long.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import numpy as np

from ..base import process_memory
from ..errors import NoRouteError, SlowRouteWarning, warn_caller
from ..model.plan import Candidate, Plan, readable_seconds, readable_size
from ..solve.complement import failure_of_attempt
from ..solve.sampled import draws_worth, upper_share
from . import dense, feature_estimate, footprint, krylov
from .probe import COST_FACTOR, FIRST_WITH_PIVOTS, NO_PROBE, SpectrumProbe, probe_cost, probed
from .problem import Problem
from .target import Target

SLOW_SECONDS, EASIER_FRACTION = 10.0, 0.2
"""Predicted seconds from which on an easier task is tried, and the share of them for which it is worth a warning."""
PROBE_FRACTION = 0.1
"""Largest cost of all probes, as a fraction of the lowest predicted cost so far (problems of ``random_set.py``: half
of it, or all where a lower bound was far below, changed 6 of 660 choices; five of these took 1.4 times as long in all).
"""
DUPLICATES_FRACTION = 0.01
"""Fraction of the lowest cost so far up to which a probe is taken even if no known map can change the choice: rows of
which many are the same have few pivots, and a smaller probe has not seen them all."""
FEW_COMPONENTS = 10
"""Components of the easier task where all are asked for."""
FEW_FEATURES, FEW_FEATURES_LEVEL = 300, 3
"""Features of an easier task, and the probe (of ``SIZES``) with about that number of pivots, which estimates the
width.
"""


def make_plan(problem: Problem) -> Plan:
    """The candidates, and the one to begin with.

    Raises
    ------
    ValueError
        No route fits; the text names the obstacle of each.
    MemoryError
        The same, where what the process may still take is the limit.
    """
    lapack = dense.estimate(problem)
    try:
        candidates = _candidates(problem, lapack)
        return _plan(problem, candidates, lapack)
    except NoRouteError as error:
        if not problem.budget.capped:
            raise
        raise MemoryError(f"{error}; {process_memory.describe_limit()}") from None


def _candidates(problem: Problem, lapack: Candidate) -> list[Candidate]:
    """Candidates of all routes that may be taken, after as many probes as are worth their cost."""
    kernel, data, target, budget = problem.kernel, problem.data, problem.target, problem.budget
    held_out = target.is_loose and target.tol_is_required
    probe, spent = NO_PROBE, 0.0
    while True:
        candidates = _estimates(problem, probe, lapack)
        seconds, memory = probe_cost(kernel, data, probe.level, held_out=held_out)
        spent += seconds
        best = _best_seconds(x for x in candidates if not x.is_lower_bound)
        cheap = spent < np.inf and spent <= PROBE_FRACTION * best
        anyway = seconds <= DUPLICATES_FRACTION * best and not kernel.without_maps
        # a probe changes nothing where LAPACK, a map, or its number of features was given
        given = target.method == "dense" or problem.given_map is not None
        given = given or (not target.tol_is_required and bool(candidates))
        helps = not given and (anyway or _undecided(candidates, probe))
        if not (helps and cheap and memory <= budget.memory):
            return candidates
        probe = probed(kernel, data, probe.level, held_out=held_out, n_threads=budget.n_threads)


def _estimates(problem: Problem, probe: SpectrumProbe, lapack: Candidate) -> list[Candidate]:
    """Candidates by what is known so far; without a probe block Krylov is estimated only where nothing else fits."""
    method = problem.target.method
    candidates = [lapack] if method in ("auto", "dense") else []
    if method in ("auto", "features"):
        candidates += feature_estimate.estimate(problem, probe, _best_seconds(candidates))
    others = _best_seconds(candidates)
    if method in ("auto", "krylov") and (probe.level or others == np.inf):
        candidates += krylov.estimate(problem, probe, others)
    return _with_lower_bounds(candidates, probe)


def _best_seconds(candidates: Iterable[Candidate]) -> float:
    return min((x.seconds for x in candidates if not x.obstacle), default=np.inf)


def _undecided(candidates: list[Candidate], probe: SpectrumProbe) -> bool:
    """True if a probe may change the choice: it predicts the pivots anew, and the first one may have missed a gap."""
    possible = [x for x in candidates if not x.obstacle]
    best = _best_seconds(x for x in possible if not x.is_lower_bound)
    near = any(x.name == "pivots" and x.seconds <= COST_FACTOR * best for x in possible)
    return near or probe.level <= FIRST_WITH_PIVOTS or best == np.inf


def _with_lower_bounds(candidates: list[Candidate], probe: SpectrumProbe) -> list[Candidate]:
    """Candidates, with a mark for those whose cost is a lower bound.

    The cost of block Krylov is a lower bound before the first probe, and that of pivots before a probe has chosen some.
    The cost of a map counts as known even so on two conditions. ``COST_FACTOR`` times it would still be the lowest. And
    the mean residual of a row of the probe by the others is at most ``COST_FACTOR`` times that of the map.
    """
    unknown = {"krylov": probe.level == 0, "pivots": probe.level <= FIRST_WITH_PIVOTS}
    bounds = [unknown.get(x.method, False) or unknown.get(x.name, False) for x in candidates]
    best = _best_seconds(x for x, is_bound in zip(candidates, bounds) if not is_bound)

    def is_sure(x: Candidate) -> bool:
        cheap = x.offer is not None and COST_FACTOR * x.seconds <= best
        return cheap and probe.residual_of_rows <= COST_FACTOR * x.offer.cost.residual

    return [replace(x, is_lower_bound=True) if y and not is_sure(x) else x for x, y in zip(candidates, bounds)]


def with_every_offer(problem: Problem, plan: Plan) -> Plan:
    """The plan, with the candidates whose cost was not computed before because others were cheaper."""
    target, kernel, data = problem.target, problem.kernel, problem.data
    if problem.given_map is not None or probe_cost(kernel, data, 0)[1] > problem.budget.memory:
        return plan
    probe = probed(kernel, data, 0, n_threads=problem.budget.n_threads)
    further: list[Candidate] = []
    with suppress(ValueError, MemoryError):
        if target.method in ("auto", "features"):
            alone = replace(problem, target=replace(target, method="features"))
            further += feature_estimate.estimate(alone, probe, np.inf)
        if target.method in ("auto", "krylov"):
            further += krylov.estimate(problem, probe, np.inf, every=target.products == "auto")
    known = {(x.method, x.name) for x in plan.candidates}
    further = [x for x in _with_lower_bounds(further, probe) if (x.method, x.name) not in known]
    return replace(plan, candidates=(*plan.candidates, *further))


def _plan(problem: Problem, candidates: list[Candidate], lapack: Candidate) -> Plan:
    rows = problem.rows
    best, reason = _choose(candidates, problem)
    if problem.given_map is not None:
        own = problem.target.given_landmarks
        reason = "the landmarks" if own else "the feature map of the model given as like"
        return Plan(best.method, best.name, reason, (best,))
    if rows.sequential and best.method != "features":
        size = readable_size(float(problem.data.n_samples * problem.data.n_features * rows.dtype.itemsize))
        reason = f"{reason}; loads all rows ({size}), which come in order only"
    # LAPACK finds narrow intervals where a flat spectrum keeps block Krylov from them
    limit = f" and memory_limit='{np.ceil(lapack.memory / 1e6):.0f}MB'" if lapack.obstacle else ""
    otherwise = f"method='dense'{limit} (LAPACK, some {lapack.seconds:.2g} seconds) reaches what rounding allows"
    return Plan(best.method, best.name, reason, tuple(candidates), "" if best.method == "dense" else otherwise)


def _choose(candidates: list[Candidate], problem: Problem) -> tuple[Candidate, str]:
    """The cheapest candidate, of those whose cost is known if there are any, and the reason in words."""
    target, n = problem.target, problem.data.n_samples
    method, without_maps = target.method, problem.kernel.without_maps
    possible = [x for x in candidates if not x.obstacle]
    if not possible and not candidates:
        raise ValueError(
            f"method={method!r} is not possible: the kernel {without_maps}, so it has no feature map; "
            "take method='auto'"
        )
    if not possible:
        reasons = "; ".join(f"{x.label}: {x.obstacle}" for x in candidates)
        asked = {"features": target.features, "products": target.products, "method": method}
        named = next((f"{argument}={name!r}" for argument, name in asked.items() if name != "auto"), "")
        what = f"{named} is not possible" if named else "no route fits"
        limits = "memory_limit or tol" if target.max_features is None else "max_features, memory_limit or tol"
        raise NoRouteError(
            f"{what} for {n} rows and c={target.c!r} ({reasons}); raise {limits}, ask for fewer components, "
            "or take another method"
        )
    # a map whose rounding misses tol is followed by another candidate
    after = min((x.seconds for x in possible if x.method != "features"), default=0.0)
    known = [x for x in possible if not x.is_lower_bound]
    best = min(known or possible, key=lambda x: x.seconds + (after if x.misses else 0.0))
    others = [x for x in possible if x is not best]
    if method != "auto" and not others:
        reason = "asked for"
    elif not others:
        reason = "no other route that fits is known to take less"
    else:
        second = min(others, key=lambda x: x.seconds)
        seconds, other = (readable_seconds(x.seconds, 2) for x in (best, second))
        other = f"at least {other}" if second.is_lower_bound else other
        reason = f"predicted {seconds} s, against {other} s for {second.label}"
    return best, reason


def threads_within(problem: Problem, plan: Plan) -> int:
    """Number of threads that fit into the memory not used by the chosen route."""
    chosen = plan.chosen
    forms_moments = chosen.method == "features" and chosen.offer.cost.moment_flops is None
    left = problem.budget.memory - chosen.memory
    D = chosen.n_features if forms_moments else 0
    return footprint.threads_within(problem.budget.n_threads, left, problem.data, D)


def warn_if_slow(problem: Problem, plan: Plan) -> None:
    advice = advice_if_slow(problem, plan)
    if advice:
        warn_caller(f"{advice}; fastkpca.plan shows the routes", SlowRouteWarning)


def advice_if_slow(problem: Problem, plan: Plan) -> str:
    """Advice for a plan that takes long; "" if there is none. It names a few components in place of all, a looser tol,
    or a number of features, if a plan with these takes a small fraction of the time."""
    target, rows, seconds = problem.target, problem.rows, plan.chosen.seconds
    if not SLOW_SECONDS <= seconds < np.inf or rows.sequential or rows.distributed:
        return ""
    few, looser = [], []
    if target.c is None and FEW_COMPONENTS < rows.n_samples:
        text = f"for the first {FEW_COMPONENTS} components alone: ask for as many as you need"
        few.append((replace(target, c=FEW_COMPONENTS), text))
    for tol in (x for x in (1e-4, 1e-2) if x > target.tol and target.tol_is_required):
        text = f"with tol={tol:g}, where each eigenvalue's interval is {tol:g} times the largest one wide"
        looser.append((replace(target, tol=tol), text))
    said = [text for x in (few, looser, _with_features(problem)) if (text := _first_shorter(problem, x, seconds))]
    if not said:
        return ""
    return f"this will take about {readable_seconds(seconds, 2)} s, and about {', or about '.join(said)}"


def _first_shorter(problem: Problem, easier: list[tuple[Target, str]], seconds: float) -> str:
    """The first of the targets that takes a small share of these seconds, with its own; empty where none does."""
    for other, text in easier:
        with suppress(ValueError, MemoryError):
            after = make_plan(replace(problem, target=other, randomness=deepcopy(problem.randomness))).chosen.seconds
            if after <= EASIER_FRACTION * seconds:
                return f"{readable_seconds(after, 2)} s {text}"
    return ""


def _with_features(problem: Problem) -> list[tuple[Target, str]]:
    """A given number of pivots at any width of their intervals, which a probe of the sample predicts."""
    target, data, kernel, m = problem.target, problem.data, problem.kernel, FEW_FEATURES
    free = target.free and target.tol_is_required and target.n_components is not None and not problem.given_map
    if not free or kernel.without_maps or not (target.n_components or 0) < m < data.n_samples:
        return []
    other = replace(target, max_features=m, tol_is_required=False, method="features")
    level = FEW_FEATURES_LEVEL
    if probe_cost(kernel, data, level, held_out=True)[1] > problem.budget.memory:
        return []
    probe = probed(kernel, data, level, held_out=True, n_threads=problem.budget.n_threads)
    if probe.pivots is None or not probe.pivots.held_out or not probe.share(1) > 0.0:
        return []
    rank, draws = np.array([float(m)]), np.array([draws_worth(data.n_samples, m)])
    width = float(probe.pivots.held_out_residual(rank)[0]) / probe.first
    if other.may_use_sampled_bound:
        seen = probe.pivots.largest_share(rank, draws)
        width *= float(np.minimum(upper_share(seen, draws, failure_of_attempt(other.failure_of("samples"), 0)), 1.0)[0])
    expected = f"where the widest interval is expected to be about {width:.1g} times the largest eigenvalue wide"
    return [(other, f"with max_features={m}, {expected}")]

"""The plan: every candidate for a problem with its predicted cost, the cheapest first; and the number of probes.

Costs are predicted from known quantities (``candidates``). A further probe of a few rows is taken while all probes
cost less than a twentieth of the lowest cost so far, or twice that where a guessed price lies far below it. It must be
able to change the choice, and to fit into the memory limit.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import numpy as np

from ..base import room
from ..errors import NoRouteError, SlowRouteWarning, warn_caller
from ..model.plan import Candidate, Plan, readable_seconds, readable_size
from ..solve.beyond import failure_of_attempt
from ..solve.sampled import draws_worth, upper_share
from . import footprint
from .candidates import (
    components_held,
    dense_candidate,
    feature_candidate,
    feature_candidates,
    krylov_candidates,
)
from .look import (
    COST_FACTOR,
    NOTHING_SEEN,
    OF_PIVOTS,
    PROBE_FRACTION,
    SpectrumProbe,
    further_bytes,
    further_seconds,
    look_further,
)
from .problem import Problem
from .target import Target

SLOW_SECONDS, EASIER_FRACTION = 10.0, 0.2
"""Predicted seconds from which on an easier task is tried, and the share of them for which it is worth a warning."""
PROBE_FACTOR = 2.0
"""Times ``PROBE_FRACTION``, where a guessed cost is below the lowest even if a probe raises it by ``COST_FACTOR``, and
the run by the same factor: such fits took up to seven times as long as needed (``random_set.py``).
"""
NEXT_TO_NOTHING = 0.01
"""Fraction of the lowest cost so far up to which a probe is taken even if no known map can change the choice: rows of
which many are the same have few pivots, and a smaller probe has not seen them all."""
FEW = 10
"""Components of the easier task where all are asked for."""
FEW_FEATURES, PROBE_LEVEL = 300, 3
"""Features of an easier task, and the probe (of ``LADDER``) with about that number of pivots, which estimates the
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
    try:
        if problem.given_map is not None:
            return _plan_for_map(problem)
        return _plan(problem, _priced(problem))
    except NoRouteError as error:
        if not problem.budget.capped:
            raise
        raise MemoryError(f"{error}; {room.describe_limit()}") from None


def _priced(problem: Problem) -> list[Candidate]:
    """The candidates."""
    target, kernel, data, look = problem.target, problem.kernel, problem.data, NOTHING_SEEN
    beside = target.is_loose and target.tol_is_required
    spent = 0.0
    lapack = [] if target.method in ("features", "krylov") else [dense_candidate(problem)]
    while True:
        candidates = lapack + _maps(problem, look, lapack)
        if look.level:  # what block Krylov takes nobody knows before
            candidates += _krylov(problem, look, candidates)
        candidates = _marked(candidates, look)
        further = further_seconds(kernel, data, look, beside=beside)
        spent += further
        best = _best_seconds([x for x in candidates if not x.guessed])
        far_below = COST_FACTOR**2 * _best_seconds([x for x in candidates if x.guessed]) <= best
        worth = spent <= PROBE_FRACTION * (PROBE_FACTOR if far_below else 1.0) * best
        nothing = further <= NEXT_TO_NOTHING * best and not kernel.without_maps
        if not (worth and spent < np.inf and (_may_change(problem, candidates, look) or nothing)):
            break
        if further_bytes(data, look, beside=beside) > problem.budget.memory:
            break
        look = look_further(kernel, data, look, beside=beside, n_threads=problem.budget.n_threads)
    found = look.level or _best_seconds(candidates) < np.inf
    return candidates if found else candidates + _marked(_krylov(problem, look, candidates), look)


def with_every_offer(problem: Problem, plan: Plan) -> Plan:
    """The plan, with the candidates whose cost was not computed before because others were cheaper."""
    target, kernel, data = problem.target, problem.kernel, problem.data
    if problem.given_map is not None or further_bytes(data, NOTHING_SEEN) > problem.budget.memory:
        return plan
    look = look_further(kernel, data, NOTHING_SEEN, n_threads=problem.budget.n_threads)
    further: list[Candidate] = []
    with suppress(ValueError, MemoryError):
        if target.method in ("auto", "features"):
            alone = replace(problem, target=replace(target, method="features"))
            further += feature_candidates(alone, look, np.inf)
        if target.method in ("auto", "krylov"):
            further += krylov_candidates(problem, look, np.inf, every=target.products == "auto")
    known = {(x.method, x.name) for x in plan.candidates}
    return replace(plan, candidates=plan.candidates + tuple(x for x in further if (x.method, x.name) not in known))


def _maps(problem: Problem, look: SpectrumProbe, lapack: list[Candidate]) -> list[Candidate]:
    asked = problem.target.method in ("auto", "features")
    return feature_candidates(problem, look, _best_seconds(lapack)) if asked else []


def _krylov(problem: Problem, look: SpectrumProbe, others: list[Candidate]) -> list[Candidate]:
    asked = problem.target.method in ("auto", "krylov")
    return krylov_candidates(problem, look, _best_seconds(others)) if asked else []


def _best_seconds(candidates: list[Candidate]) -> float:
    return min((x.seconds for x in candidates if not x.obstacle), default=np.inf)


def _may_change(problem: Problem, candidates: list[Candidate], look: SpectrumProbe) -> bool:
    """True if a probe may change the choice of the candidate.

    Not where all components were asked for. A probe changes the predicted costs of maps and of block Krylov;
    LAPACK's is known for good, and one that is guessed does not fall: it is the lowest there may be.
    """
    target = problem.target
    if target.method == "dense":
        return False
    known = target.method == "features" and any(x.offer is not None and not x.offer.cost.residual for x in candidates)
    if known or (target.method == "features" and not target.tol_is_required and bool(candidates)):
        return False
    possible = [x for x in candidates if not x.obstacle]
    best = min((x for x in possible if not x.guessed), key=lambda x: x.seconds, default=None)
    if best is None or best.name == "pivots":  # a probe estimates the number of these, too
        return True
    if look.level == 0 or (best.method == "dense" and look.level <= OF_PIVOTS):  # few rows may miss a gap
        return True
    falls = [1.0 if x.guessed or x.method == "dense" else COST_FACTOR for x in possible]
    return any(x is not best and x.seconds <= times * best.seconds for x, times in zip(possible, falls))


def _marked(candidates: list[Candidate], look: SpectrumProbe) -> list[Candidate]:
    """With a mark for those whose price is guessed: the lowest there may be.

    That is what block Krylov takes, before the first look, and how many pivots are needed, before a look at pivots.
    Such a price counts as known all the same where some rows leave little more of the others than a map may, and
    ``COST_FACTOR`` times it were still the best.
    """
    unknown = {"krylov": look.level == 0, "pivots": look.level <= OF_PIVOTS}
    guessed = [unknown.get(x.method, False) or unknown.get(x.name, False) for x in candidates]
    if not any(guessed):
        return candidates
    best = _best_seconds([x for x, y in zip(candidates, guessed) if not y])
    cheap = [x.offer is not None and COST_FACTOR * x.seconds <= best for x in candidates]
    sure = [z and look.beside <= COST_FACTOR * x.offer.cost.residual for x, z in zip(candidates, cheap)]
    return [replace(x, guessed=True) if y and not z else x for x, y, z in zip(candidates, guessed, sure)]


def _plan(problem: Problem, candidates: list[Candidate]) -> Plan:
    rows = problem.rows
    best, reason = _choose(candidates, problem)
    if rows.sequential and best.method != "features":
        size = readable_size(float(problem.data.n_samples * problem.data.n_features * rows.dtype.itemsize))
        reason = f"{reason}; loads all rows ({size}), which come in order only"
    dense = next((x for x in candidates if x.method == "dense"), None) or dense_candidate(problem)
    otherwise = _lapack_instead(dense) if best.method != "dense" else ""
    return Plan(best.method, best.name, reason, tuple(candidates), otherwise)


def _plan_for_map(problem: Problem) -> Plan:
    """The plan where the feature map is given."""
    assert problem.given_map is not None
    candidate = feature_candidate(problem, problem.given_map, components_held(problem, None))
    _choose([candidate], problem)  # refuses what is not possible
    own = problem.target.max_features is not None
    reason = "the landmarks" if own else "the feature map of the model given as like"
    return Plan(candidate.method, candidate.name, reason, (candidate,))


def _lapack_instead(dense: Candidate) -> str:
    """LAPACK finds narrow intervals where a flat spectrum keeps block Krylov from them."""
    limit = f" and memory_limit='{np.ceil(dense.memory / 1e6):.0f}MB'" if dense.obstacle else ""
    return f"method='dense'{limit} (LAPACK, some {dense.seconds:.2g} seconds) reaches what rounding allows"


def _choose(candidates: list[Candidate], problem: Problem) -> tuple[Candidate, str]:
    """The best of them, and why it is: of those with a known price, if there are any."""
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
    known = [x for x in possible if not x.guessed]
    best = min(known or possible, key=lambda x: x.seconds + (after if x.misses else 0.0))
    others = [x for x in possible if x is not best]
    if method != "auto" and not others:
        reason = "asked for"
    elif not others:
        reason = "no other route that fits is known to take less"
    else:
        second = min(others, key=lambda x: x.seconds)
        seconds, other = (readable_seconds(x.seconds, 2) for x in (best, second))
        other = f"at least {other}" if second.guessed else other
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
    """What to say where the plan takes long, and one for a few components in place of all, for a looser tol, or for a
    given number of features takes a small share of that; else ""."""
    target, rows, seconds = problem.target, problem.rows, plan.chosen.seconds
    if not SLOW_SECONDS <= seconds < np.inf or rows.sequential or rows.distributed:
        return ""
    few, looser = [], []
    if target.c is None and FEW < rows.n_samples:
        text = f"for the first {FEW} components alone: ask for as many as you need"
        few.append((replace(target, c=FEW), text))
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
    before = replace(NOTHING_SEEN, level=PROBE_LEVEL)
    if further_bytes(data, before, beside=True) > problem.budget.memory:
        return []
    look = look_further(kernel, data, before, beside=True, n_threads=problem.budget.n_threads)
    if look.probe is None or not look.probe.beside or not look.share(1) > 0.0:
        return []
    rank, draws = np.array([float(m)]), np.array([draws_worth(data.n_samples, m)])
    width = float(look.probe.residual_beside(rank)[0]) / look.first
    if other.may_use_sampled_bound:
        seen = look.probe.largest_share(rank, draws)
        width *= float(np.minimum(upper_share(seen, draws, failure_of_attempt(other.failure_of("samples"), 0)), 1.0)[0])
    expected = f"where the widest interval is expected to be about {width:.1g} times the largest eigenvalue wide"
    return [(other, f"with max_features={m}, {expected}")]

"""Predicts the time and memory of each route and chooses the cheapest. Computes only a few kernel values.

Predictions are counts (flops, kernel values, bytes) over the rates of ``products.rates``.
"""

from __future__ import annotations

import math
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..base import room
from ..base.lapack import takes_all
from ..base.near import with_near
from ..base.protocol import BLAS_FLOPS, Cost, FeatureMap, Kernel, Offer, Summary
from ..errors import NoRouteError, SlowRouteWarning, warn_caller
from ..maps.draws import DRAWS
from ..maps.pivots import candidates_for, may_be_means, pivot_map, pivots_cost, pivots_rounding
from ..model.plan import Candidate, Plan, Room, readable_seconds, readable_size
from ..products.exact import ExactSummation
from ..products.exact import kept_bytes as kept_value_bytes
from ..products.matrix import kept_bytes
from ..products.rates import OVERHEAD, RATE, eigen_seconds, entry_rate, is_compiled, value_seconds, vector_seconds
from ..rows.view import Rows
from ..solve.beyond import lanczos_steps
from ..solve.costs import (
    basis_bytes,
    default_block_size,
    factorising_seconds,
    leading_pairs_seconds,
    least_columns,
    rest_bytes,
    ritz_seconds,
    search_seconds,
)
from ..solve.outlook import EXPLORING_PASSES, NARROWEST, SHARE
from ..solve.powers import LEAST_SHARE, falls_fast
from ..solve.sampled import FEWEST, bound_flops, draws_worth, upper_share
from . import footprint
from .look import LARGER_LOOK, MANY, NOTHING_SEEN, Look, look_at, look_at_first
from .problem import Problem
from .product_choice import LEAST_COLUMNS, WORTH_ASKING, Way, products_for
from .target import Target

__all__ = [
    "MAX_FEATURES",
    "advice_if_slow",
    "budgeted",
    "make_plan",
    "offers_of_maps",
    "small_offers",
    "threads_within",
    "warn_if_slow",
]

LOOK_SECONDS = 1.4e-2
"""Below this LAPACK is taken without a look at the spectrum, which costs 3e-3 and seldom finds anything faster."""
LOOK_VALUES = 1e5
"""Kernel values that a look takes."""
NO_LOOK_SECONDS, NO_LOOK_EXACT_SECONDS = 0.1, 0.25
"""Of a route that is taken without a look, which costs 5 to 25 milliseconds; the latter of a map that leaves nothing
out."""
NO_SEARCH_SECONDS = 0.014
"""Of the moments of a map that leaves something out, the same: fewer features by a search would not repay it."""
QUICK_MORE, QUICK_WORTH = 4, 1.5
"""Times the features, and the seconds, that a map with quick moments may have all the same: they take a tenth of the
time of the others, and the rest of the fit counts beside them."""
SPREAD_COLUMNS = 64
KRYLOV_OVERHEAD, HELD_OVERHEAD = 15e-3, 2e-3  # the latter beside values that are held
PASS_OVERHEAD, FEW_PASSES = 2.5e-3, 2.5  # of each pass over a small matrix beyond so many
KRYLOV_DOUBLE = 1.5  # passes in float64; those before are a search in float32, twice as fast
MOST_PASSES = 40.0
FLATTER, FURTHER = 1.4, 2.0
"""Times the passes over a flat spectrum, of which few rows lie further apart than all; and passes for each further
block of eigenvalues, from which on those that are wanted stand out."""
# of a flat spectrum LAPACK's time is known, and a run that is left for it costs both; the latter where so many passes
# are expected that it hardly gets there
FLAT_RISK, LEFT_RISK = 1.25, 2.0
CERTAIN_SHARE, DOUBT = 0.5, 0.5
"""Share of the columns kept up to which the proof that nothing was missed is as good as certain to need no more; and
how often it needs an exploration or a factorisation beyond that, where the look, at a few rows, says that it does not.
"""
DEAR_FACTORISATION = 4.0
"""Explorations that a factorisation may cost for this doubt to count: of more rows, where it costs more, a few passes
bring the proof as a rule."""
KRYLOV_PRODUCT_SHARE = 2e-3  # of tol, for the error of approximate products: it enters twice, times sqrt(columns)

KEPT_MATRIX = 64 << 20
"""Bytes up to which the krylov route always holds K itself, of a kernel without compiled tiles."""
FEW_COLUMNS = 3
"""Columns of X up to which a map that a look finds may be far cheaper than a matrix that is held."""
SMALL = 2048
"""Rows up to which compiled kernel values are held in float64, in any number of columns."""
LEAST_HELD = 300
"""Rows below which the dense route takes no longer than block Krylov on a matrix that is held."""
POWERS_SECONDS = 5e-9
"""Of all products with a matrix that is held whole, for each of its entries."""
MOST_FOR_POWERS = {1: 0, 2: 550}
"""By columns of X, the rows up to which powers take less time than a map, which has few features there."""
ROWS_FOR_FEATURE = 4
"""Rows for each feature from which on a map of one column takes less time than a small matrix."""
FALLS, FALLS_FOR_EACH = 16.0, 1.2
"""A spectrum falls fast enough for block Krylov on a small matrix, without a look, where no more than 1 / FALLS of the
eigenvalues share the trace, and no more than 1 / FALLS_FOR_EACH over the number of components."""
GLANCE_COLUMNS = 1024
"""Columns of X from which a glance at some rows takes as long as it may save."""
HELD_COLUMNS = 33
"""Columns of X from which they always are: making them in float32 as well takes longer than the passes in float64."""
READ_RATE = 1e10  # bytes
DEAR_COLUMNS = 32
"""Columns of X from which a compiled kernel value of a search takes longer to make than to read."""
MANY_COLUMNS = 32
"""Columns of X from which truncated maps are no smaller than maps of pivots; of d columns they may have d over as many
of the features."""
WORTH_EXACTNESS = 1.3
"""Times the seconds of the best feature map that one without any truncation may take."""
MAX_FEATURES = 8192
EXTRAPOLATED = 1.4
"""Times the seconds of pivots whose number is a guess: where these are too few, a second round or a search follows."""
PIVOT_LOOK_SECONDS = 6e-5
"""Of a look and what follows from it, for each pivot that the look took."""
SAMPLED_SHARE = 0.85
"""Of tol, for what pivots are predicted to leave: where they leave more than tol there is a second pass."""
MEANS_FROM, MEANS_SHARE = 4, 0.8
"""Rows for each of the sample from which on pivots are moved to means, and about how many of these do what the probe's
pivots, which are rows, do."""
SCORES_BY_WEIGHTS = 1e-6
"""Residual trace over trace from which on weights of the kernel values give the scores of a map of pivots: what these
round grows as the root of the residual falls."""
OVERRATED = 1.3
"""Factor by which a few rows may make lambda_1 / tr K too large before the tolerance of a map allows for it."""
ROUNDING_SHARE = 0.75
"""Of the residual that ``tol`` allows a map, for the rounding of its transforms and products: where it is more, exact
products follow."""
NO_MORE = 1e-9
"""Residual trace over trace below which more pivots are not worth their cost, whatever the budget."""
MORE_THAN_ROWS = 2048
"""Features that a map may have where the rows are fewer: their D x D moment takes half a second at most."""


LONG, MUCH_SHORTER = 30.0, 0.2
"""Predicted seconds from which on a looser tol is tried, and the share of them for which it is worth a warning."""


class Passes(NamedTuple):
    """What a run of block Krylov is expected to take.

    Attributes
    ----------
    search : float
        Passes of the search.
    doubt : float
        How likely more is needed to prove that nothing was missed.
    exploring : float
        Passes that this takes by an exploration.
    gap : bool
        Whether a factorisation can prove it.
    flat : bool
        The spectrum is so flat that the run soon begins anew, from a random block.
    hardly : bool
        The search takes so many passes that the run hardly gets there.
    """

    search: float
    doubt: float
    exploring: float = EXPLORING_PASSES
    gap: bool = True
    flat: bool = False
    hardly: bool = False


class Counted(NamedTuple):
    """A number of pivots, and of rows drawn to bound what they leave."""

    rank: int
    draws: int


def make_plan(problem: Problem) -> Plan:
    """Choose among dense, features and krylov.

    Raises
    ------
    ValueError
        No route fits; the text names the obstacle of each.
    MemoryError
        The same, where what the process may still take is the limit.
    """
    try:
        return _plan_for_map(problem) if problem.given_map is not None else _plan(problem)
    except NoRouteError as error:
        if not problem.budget.capped:
            raise
        raise MemoryError(f"{error}; {room.describe_limit()}") from None


def warn_if_slow(problem: Problem, plan: Plan) -> None:
    advice = advice_if_slow(problem, plan)
    if advice:
        warn_caller(f"{advice}; fastkpca.plan shows the routes", SlowRouteWarning)


def advice_if_slow(problem: Problem, plan: Plan) -> str:
    """What to say where the plan takes long, and one for a looser tol takes a small share of that; else ""."""
    target, rows, seconds = problem.target, problem.rows, plan.chosen.seconds
    if not LONG <= seconds < np.inf or not target.tol_is_required or rows.sequential or rows.distributed:
        return ""
    for tol in (x for x in (1e-4, 1e-2) if x > target.tol):
        looser = replace(problem, target=replace(target, tol=tol), randomness=deepcopy(problem.randomness))
        with suppress(ValueError, MemoryError):
            other = make_plan(looser).chosen.seconds
            if other <= MUCH_SHORTER * seconds:
                return (
                    f"this will take about {readable_seconds(seconds)} s, and about {readable_seconds(other)} s with "
                    f"tol={tol:g}, where each eigenvalue's interval is {tol:g} times the largest one wide"
                )
    return ""


def _plan(problem: Problem) -> Plan:
    target, rows, dense = problem.target, problem.rows, _dense_candidate(problem)
    n, d = problem.data.n_samples, problem.data.n_features
    look_seconds = LOOK_SECONDS + LOOK_VALUES * value_seconds(problem.kernel, d)
    # many vectors take other routes as long
    look_seconds += 0.5 * vector_seconds(n, target.n_components or 0)
    free = not (target.forced or target.max_features or dense.obstacle or rows.sequential or rows.distributed)
    quick = free and dense.seconds <= look_seconds
    worth = is_compiled(problem.kernel) and n <= MOST_FOR_POWERS.get(d, n)
    possible = free and worth and problem.powers_are_possible
    # of few rows, or many columns, the matrix itself says soon enough whether powers of it will do
    unseen = quick and (n < LEAST_HELD or (possible and d >= GLANCE_COLUMNS))
    powers = _powers_candidate(problem, dense) if possible and not unseen else None
    on_line = _maps_on_line(problem, dense) if quick else []
    if on_line:
        candidates = on_line
    elif quick or powers is not None:
        candidates = [powers or dense, *_small_exact_maps(problem, n // 2)]
        if powers is None and not unseen and _may_be_held(problem):
            candidates += _held_krylov(problem, _krylov_candidates(problem, NOTHING_SEEN)[:1], dense.seconds)
    elif not target.tol_is_required and target.features in ("auto", "pivots"):
        candidates = _within_budget(problem)
    else:
        candidates = [dense] if target.method == "dense" else _without_look(problem, dense) or _compared(problem, dense)
    best, reason = _choose(candidates, problem)
    if quick and len(candidates) == 1:
        reason = "a look at other routes would take as long"
    if rows.sequential and best.method != "features":
        size = readable_size(float(n * d * rows.dtype.itemsize))
        reason = f"{reason}; loads all rows ({size}), which come in order only"
    return Plan(best.method, best.name, reason, tuple(candidates), _lapack_instead(dense))


def _maps_on_line(problem: Problem, dense: Candidate) -> list[Candidate]:
    """Candidates of which a map of few features is the best, for X of one column; empty where there is none."""
    n = problem.data.n_samples
    if problem.data.n_features > 1 or n < LEAST_HELD:
        return []
    candidates = _without_look(problem, dense)
    best = min((x for x in candidates if not x.obstacle), key=lambda x: x.seconds, default=dense)
    return candidates if best.method == "features" and ROWS_FOR_FEATURE * best.n_features <= n else []


def _powers_candidate(problem: Problem, dense: Candidate) -> Candidate | None:
    """The dense route where it is expected to need no LAPACK: that needs no look."""
    c, n = problem.target.n_components, problem.data.n_samples
    assert c is not None
    glance, narrow = problem.glance, problem.data.n_features <= FEW_COLUMNS
    if not falls_fast(c, glance.participating(n)) or (narrow and not glance.resolves(c, LEAST_SHARE)):
        return None
    seconds = n * n * (0.5 / entry_rate(problem.data.n_features) + POWERS_SECONDS) + OVERHEAD
    return replace(dense, name="powers", seconds=seconds)


def _small_exact_maps(problem: Problem, most: int) -> list[Candidate]:
    """Maps of at most so many features that leave nothing out: they need no look."""
    kernel, data = problem.kernel, problem.data
    offers = kernel.feature_maps(data, 0.0, most) if not kernel.without_maps else []
    hold = _components_held(problem, None)
    return [_feature_candidate(problem, offer, hold) for offer in offers if offer.cost.residual == 0.0]


def _without_look(problem: Problem, dense: Candidate) -> list[Candidate]:
    """Candidates among which a map is so cheap that a look, which may find a cheaper one, is not worth its time.

    Empty where there is none.
    """
    target, kernel, data, rows = problem.target, problem.kernel, problem.data, problem.rows
    free = target.free and target.max_features is None
    if not free or rows.distributed or not kernel.positive_semidefinite:
        return []
    # of a loose tol fewer pivots may do than the trace of what they leave lets expect: only a look can tell
    sampled, n = target.may_use_sampled_bound, data.n_samples
    loose = LOOK_SECONDS * (1.0 if n < LARGER_LOOK else 3.0 if n < MANY else 6.0)
    worth = loose if sampled else NO_LOOK_EXACT_SECONDS
    most = int(math.sqrt(worth * RATE.squares / data.n_samples))
    maps = _small_exact_maps(problem, most)
    if maps and not _is_spread(data):  # of a linear kernel the columns themselves, however many
        maps = [x for x in maps if x.n_features <= data.n_features]
    if not maps and data.n_features < MANY_COLUMNS:
        share = problem.glance.first_share()
        residual = _residual_allowed(target.tol, share, share / problem.glance.excess(n))
        hold = _components_held(problem, None)
        worth = min(worth, NO_LOOK_SECONDS)
        # of very many rows the look itself, and rounds of pivots after it, cost as much as more features
        search = worth if sampled and n >= MANY else min(worth, NO_SEARCH_SECONDS)
        most = int(math.sqrt(search * RATE.squares / n))
        for offer in kernel.feature_maps(data, residual, most) if 0.0 < residual < 1.0 else ():
            if _too_many(offer, n):
                continue
            maps.append(_feature_candidate(problem, offer, hold))
            # Fourier features take longer than that, but on a line
            if data.n_features > 1 and maps[-1].seconds <= WORTH_ASKING and not maps[-1].obstacle:
                break
        # of few columns Fourier features take no longer
        if data.n_features > FEW_COLUMNS and all(x.seconds > NO_SEARCH_SECONDS for x in maps):
            maps += _quick_map(problem, residual, search, most)
    maps = [x for x in maps if not _misses_by_rounding(x.offer)]  # a look compares them with other routes
    krylov = _krylov_candidates(problem, NOTHING_SEEN)[:1]
    others = min((x.seconds for x in [dense, *maps] if not x.obstacle), default=np.inf)
    many = data.n_features > FEW_COLUMNS and _may_be_held(problem)
    trusted = maps + (_held_krylov(problem, krylov, others) if many else [])
    candidates = [dense, *krylov, *maps]
    best = min((x for x in candidates if not x.obstacle), key=lambda x: x.seconds, default=dense)
    return candidates if best in trusted and best.seconds <= worth else []


def _quick_map(problem: Problem, residual: float, worth: float, most: int) -> list[Candidate]:
    """The map of more features than ``most`` whose quick moments make it worth about so many seconds; else none."""
    if not (problem.takes_quick_moments and 0.0 < residual < 1.0):
        return []
    offer = problem.kernel.quick_map(problem.data, residual, QUICK_MORE * most)
    if offer is None or offer.cost.n_features <= most or _too_many(offer, problem.data.n_samples):
        return []
    found = _feature_candidate(problem, offer, _components_held(problem, None))
    return [found] if found.seconds <= QUICK_WORTH * worth else []


def _may_be_held(problem: Problem) -> bool:
    """Whether block Krylov on a small matrix that is held may need no look, as far as their sizes tell."""
    target, n = problem.target, problem.data.n_samples
    if not target.free or problem.rows.distributed or not is_compiled(problem.kernel):
        return False
    return target.n_components is not None and LEAST_HELD <= n <= SMALL


def _held_krylov(problem: Problem, krylov: list[Candidate], others: float) -> list[Candidate]:
    """Those of the candidates that are held, take less than ``others`` seconds, and need no look as the spectrum falls
    fast."""
    cheaper = [x for x in krylov if x.seconds < others and x.offer.cost.memory and not x.obstacle]
    if not cheaper:
        return []
    c, n = problem.target.n_components, problem.data.n_samples
    assert c is not None
    return cheaper if problem.glance.participating(n) <= n / max(FALLS, FALLS_FOR_EACH * c) else []


def _is_spread(data: Summary) -> bool:
    """Whether the rows fill all their dimensions. If not, pivots may be far fewer than the monomials."""
    if data.n_features > SPREAD_COLUMNS or data.covariance is None:
        return False
    lengths = np.linalg.eigvalsh(data.covariance)
    return bool(lengths[0] > 1e-3 * lengths[-1])


def _within_budget(problem: Problem) -> list[Candidate]:
    """As many pivots as were asked for, or a map that leaves nothing out: neither needs a look."""
    count, kernel, data = problem.target.max_features, problem.kernel, problem.data
    assert count is not None
    exact = _small_exact_maps(problem, count) if problem.target.features == "auto" else []
    exact = [x for x in exact if x.n_features <= count]
    flops = RATE.features * value_seconds(kernel, data.n_features)
    cost = _counted_cost(data, budgeted(data.n_samples, count), flops)
    offer = _pivots(kernel, data, problem.rows, cost, NO_MORE, count, problem.budget.n_threads, counted=True)
    return exact or [_feature_candidate(problem, offer, _components_held(problem, None))]


def _compared(problem: Problem, dense: Candidate) -> list[Candidate]:
    """Every route that may be taken, after a look at the spectrum."""
    target = problem.target
    # of a kernel's own map by name, and no other route, the look at pivots would tell nothing
    pivots = target.method != "features" or target.features in ("auto", "pivots")
    sampled = target.may_use_sampled_bound and target.tol_is_required
    candidates = [] if target.forced else [dense]
    if pivots or target.n_components is None or not problem.kernel.positive_semidefinite:
        look = look_at(problem.kernel, problem.data, pivots=pivots, beside=sampled, n_threads=problem.budget.n_threads)
    else:
        look = look_at_first(problem.kernel, problem.data)
    if target.method in ("auto", "krylov"):
        candidates += _krylov_candidates(problem, look, _least_known_seconds(problem, look))
    if target.method in ("auto", "features") and not problem.kernel.without_maps:
        others = [x.seconds for x in candidates if not x.obstacle]
        candidates += _feature_candidates(problem, look, others)
    # what the look itself takes, each candidate costs
    once = 0.0 if look.probe is None else PIVOT_LOOK_SECONDS * len(look.probe.curve)
    candidates = [replace(x, seconds=_risk(x, look, problem) * x.seconds + once) for x in candidates]
    return _with_products_after(candidates)


def _with_products_after(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates, those whose rounding misses ``tol`` with the seconds of the exact route that then follows."""
    exact = [x.seconds for x in candidates if x.method != "features" and not x.obstacle]
    if not exact:
        return candidates
    missing = [x.method == "features" and not x.obstacle and _misses_by_rounding(x.offer) for x in candidates]
    after = min(exact)
    return [replace(x, seconds=x.seconds + after, misses=True) if y else x for x, y in zip(candidates, missing)]


def _residual_allowed(tol: float, share: float, first: float) -> float:
    """Residual trace over trace that a map may have: ``share`` is lambda_1 / tr K of a few rows, ``first`` that of all.

    What a map leaves out, and the errors of its transforms, may take half of tol; the rest makes up for a share that is
    a little too large.
    """
    return min(0.5 * tol * min(share, OVERRATED * first), 1.0)


def _misses_by_rounding(offer: Offer) -> bool:
    return offer.cost.rounding > ROUNDING_SHARE * offer.cost.residual


def _least_known_seconds(problem: Problem, look: Look) -> float:
    """Of the quickest map whose moments are held as an operator, which costs next to nothing to look for.

    inf where none fits, where a route or a part of it is asked for, or where few rows leave exact products alone.
    """
    target, kernel, data = problem.target, problem.kernel, problem.data
    free = target.free and target.max_features is None
    if not free or data.n_samples <= SMALL or problem.rows.distributed or not kernel.positive_semidefinite:
        return math.inf
    hold = _components_held(problem, look)
    residual = _residual_allowed(target.tol, look.share(1), look.first(data.n_samples))
    offers = [x for x in _with_own_moments(kernel, data, residual) if not _misses_by_rounding(x)]
    maps = [_feature_candidate(problem, x, hold) for x in offers]
    return min((x.seconds for x in maps if not x.obstacle), default=math.inf)


def _approximate_is_slower(problem: Problem, look: Look, seconds: float) -> bool:
    """Whether block Krylov takes so many seconds even with products that cost nothing."""
    if seconds == math.inf:
        return False
    free = _krylov_candidate(problem, look, Way("free", Cost(), ExactSummation, 0.0, 0.0))
    # a dearer product may have a shorter start
    start = 3.0 * problem.data.n_samples * free.n_features**2 / RATE.squares
    return free.seconds - start >= seconds


def _risk(candidate: Candidate, look: Look, problem: Problem) -> float:
    """Factor for what a map of pivots costs where its rank is a guess far beyond those that the look took."""
    counted = problem.target.may_use_sampled_bound or problem.target.max_features is not None
    if look.probe is None or counted or (candidate.method, candidate.name) != ("features", "pivots"):
        return 1.0
    return EXTRAPOLATED if candidate.n_features > 2 * len(look.probe.curve) else 1.0


def _plan_for_map(problem: Problem) -> Plan:
    """The plan where the feature map is given."""
    assert problem.given_map is not None
    candidate = _feature_candidate(problem, problem.given_map, _components_held(problem, None))
    _choose([candidate], problem)  # refuses what is not possible
    own = problem.target.max_features is not None
    reason = "the landmarks" if own else "the feature map of the model given as like"
    return Plan(candidate.method, candidate.name, reason, (candidate,))


def threads_within(problem: Problem, plan: Plan) -> int:
    """As many of the threads as the memory allows that the chosen route leaves."""
    chosen = plan.chosen
    forms_moments = chosen.method == "krylov" or (
        chosen.method == "features" and chosen.offer.cost.moment_flops is None
    )
    left = problem.budget.memory - chosen.memory
    D = chosen.n_features if forms_moments else 0
    return footprint.threads_within(problem.budget.n_threads, left, problem.data, D)


def _most_pivots(problem: Problem) -> int:
    """To which a map of pivots may grow within the limit."""
    return _largest_map(problem, _components_held(problem, None), _score_bytes(problem), pivots=True)[0]


def _largest_map(problem: Problem, hold: int, scores: float, *, pivots: bool) -> tuple[int, int]:
    most = MAX_FEATURES if problem.target.max_features is None else problem.target.max_features
    most = min(most, problem.data.n_samples) if pivots else most
    return footprint.largest_map(
        problem.data, problem.rows, hold, problem.budget.memory, most, pivots=pivots, scores=scores
    )


def _components_held(problem: Problem, look: Look | None) -> int:
    """Components to count memory for; of a fraction as many as a look lets expect, and some more."""
    c, wanted, n = problem.target.c, problem.target.n_components, problem.data.n_samples
    if c is None or wanted is not None:
        return n if wanted is None else wanted
    expected = 0.0
    if look is not None and len(look.shares) and look.shares.sum() > 0:
        expected = float(np.searchsorted(np.cumsum(look.shares) / look.shares.sum(), c)) + 1
    return min(n, max(50, int(1.3 * expected) + 10))


def _components_timed(problem: Problem) -> int:
    """Components to count seconds for."""
    wanted = problem.target.n_components
    return min(50, problem.data.n_samples) if wanted is None else wanted


def _dense_candidate(problem: Problem) -> Candidate:
    wanted, n = problem.target.n_components, problem.data.n_samples
    few = wanted if wanted is not None and not takes_all(n, wanted) else None
    seconds = n * n * (0.5 * value_seconds(problem.kernel, problem.data.n_features) + 1.0 / RATE.rows)
    seconds += eigen_seconds(n, few) + OVERHEAD
    memory = footprint.dense_bytes(problem.data, problem.rows, wanted)
    return Candidate("dense", "LAPACK", seconds, memory, obstacle=_too_much(memory, problem.budget.memory))


def _lapack_instead(dense: Candidate) -> str:
    """Where a flat spectrum keeps block Krylov from a narrow interval, LAPACK finds one all the same."""
    limit = f" and memory_limit='{np.ceil(dense.memory / 1e6):.0f}MB'" if dense.obstacle else ""
    return f"method='dense'{limit} (LAPACK, some {dense.seconds:.2g} seconds) reaches what rounding allows"


def _feature_candidates(problem: Problem, look: Look, others: list[float]) -> list[Candidate]:
    """The feature maps for ``tol``; ``others``: seconds of the other routes, beyond which no map is looked for."""
    kernel, data, target = problem.kernel, problem.data, problem.target
    name, hold = target.features, _components_held(problem, look)
    surely, _ = _largest_map(problem, hold, _score_bytes(problem), pivots=False)
    # scores that don't fit are an obstacle of their own
    _, largest = _largest_map(problem, hold, 0.0, pivots=False)
    pivots = _most_pivots(problem)
    residual = _residual_allowed(target.tol, look.share(1), look.first(data.n_samples))
    count = _pivot_count(problem, look, residual)
    # a moment held as an operator costs neither n D^2 nor D^3: cheap to look for, and what it costs limits the others
    held = [] if name == "pivots" else _with_own_moments(kernel, data, residual)
    held = [x for x in held if name in ("auto", x.name)]
    will_do = [x for x in held if x.cost.memory <= problem.budget.memory and not _misses_by_rounding(x)]
    others = others + [_feature_seconds(problem, x) for x in will_do]
    if others and target.method != "features" and name == "auto":
        # a map whose second moment alone costs more than another whole route is not worth looking for
        largest = min(largest, int(np.sqrt(min(others) * RATE.squares / data.n_samples)) + 1)
        pivots = min(pivots, largest)
    offers: list[Offer] = held if name != "auto" else []
    too_many: list[Offer] = []
    while not offers:
        # how many features a map has is not always known before it is made: first those that fit in any case
        for most in dict.fromkeys((min(surely, largest), largest)):
            offers = offers or offers_of_maps(
                kernel,
                data,
                problem.rows,
                look,
                residual,
                most,
                name,
                most=pivots,
                count=count,
                n_threads=problem.budget.n_threads,
            )
        too_many = [x for x in offers if _too_many(x, data.n_samples)] or too_many
        offers = [x for x in offers if not _too_many(x, data.n_samples)]
        if offers or target.method != "features" or residual >= 1.0:
            break
        # asked for: the best that fits, and the interval says how good that is
        residual = min(max(10 * residual, 1e-15), 1.0)
    if not offers and not too_many:
        return [_no_map(problem, largest)]
    candidates = [_feature_candidate(problem, offer, hold) for offer in [*offers, *too_many]]
    return [replace(x, obstacle=x.obstacle or _too_many(x.offer, data.n_samples, name)) for x in candidates]


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
        raise ValueError(with_near(text, name, known))
    return Candidate("features", name, 0.0, 0.0, obstacle=f"needs more than {largest} features")


def _too_many(offer: Offer, n: int, forced: str = "auto") -> str:
    """Why a map with a second moment of its own size is not for so few rows; empty where it is."""
    D = offer.cost.n_features
    if offer.cost.moment_flops is not None or D <= max(n, MORE_THAN_ROWS):
        return ""
    without = "" if forced == "auto" else f"leave features={forced!r} out, and "
    return f"has {D} features, and {n} rows have {n - 1} components at most: {without}method='dense' takes the matrix"


def _feature_candidate(problem: Problem, offer: Offer, hold: int) -> Candidate:
    """A map with its price, and memory for so many components."""
    D, limit, each = offer.cost.n_features, problem.budget.memory, _score_bytes(problem)
    pivots = offer.name == "pivots"

    def needed(scores: float) -> float:
        return footprint.map_bytes(
            problem.data,
            problem.rows,
            D,
            hold,
            map_memory=offer.cost.memory,
            dense=offer.cost.moment_flops is None,
            pivots=pivots,
            scores=scores,
        )

    memory = needed(each)
    kept = footprint.kept_bytes(problem.rows, D) if pivots else 0.0
    kept = kept if memory + kept <= limit else 0.0
    memory += kept
    obstacle = _too_much(memory, limit)
    if obstacle and needed(0.0) <= limit:
        held = readable_size(each * min(hold, D))
        obstacle += f", of which scores are {held}: return_scores=False, or out=, does without"
    seconds = _feature_seconds(problem, offer, kept=kept > 0.0)
    left = Room(features=_most_pivots(problem) if pivots else 0, kept=kept)
    fewest = min(problem.target.n_components or 1, problem.rank)
    if pivots and left.features < fewest and not obstacle:
        obstacle = f"{readable_size(limit)} have room for {left.features} pivots, and c asks for {fewest} at least"
    return Candidate("features", offer.name, seconds, memory, D, obstacle, offer, left)


def _score_bytes(problem: Problem) -> float:
    """Of the scores of one component, where they are kept in memory."""
    return float(problem.dtype.itemsize) * problem.data.n_samples if problem.keeps_scores else 0.0


def _feature_seconds(problem: Problem, offer: Offer, *, kept: bool = False) -> float:
    n, d, D = problem.data.n_samples, problem.data.n_features, offer.cost.n_features
    k = _components_timed(problem)
    if offer.cost.moment_flops is not None:
        seconds = n * ((offer.cost.moment_flops + k * offer.cost.row_flops) / RATE.features + 4 * d / RATE.rows)
        return seconds + max(1.0, (10 + k) / 20.0) * offer.cost.setup_flops / RATE.features + OVERHEAD
    form = again = offer.cost.row_flops / RATE.features
    if kept:
        again = 0.0
    elif offer.name == "pivots" and offer.cost.residual >= SCORES_BY_WEIGHTS:
        again = D * value_seconds(problem.kernel, d)
    quick = offer.cost.quick_flops if problem.takes_quick_moments else None
    moment = D * D / RATE.squares if quick is None else quick / RATE.products
    seconds = n * (form + again + moment + 2.0 * D * k / RATE.multiplications + 4 * d / RATE.rows)
    return seconds + offer.cost.setup_flops / RATE.features + eigen_seconds(D, k) + OVERHEAD


def offers_of_maps(
    kernel: Kernel,
    data: Summary,
    rows: Rows,
    look: Look,
    residual: float,
    largest: int,
    name: str = "auto",
    *,
    most: int | None = None,
    count: Counted | None = None,
    n_threads: int = 1,
) -> list[Offer]:
    """What the kernel offers, and pivoted Cholesky, which works for any positive semidefinite kernel.

    ``most``: pivots; ``count``: so many and no more, where that is not for the trace of what they leave to say.
    """
    most = largest if most is None else most
    if name not in ("auto", "pivots"):
        return [x for x in kernel.feature_maps(data, residual, largest) if x.name == name]
    assert look.probe is not None
    flops = RATE.features * value_seconds(kernel, data.n_features)
    if count is None:
        cost = look.probe.cost(residual, flops, data.n_samples)
        size, error = float(kernel.diagonal(data.sample).mean()), kernel.entry_error(data, np.dtype(np.float64))
        cost = replace(cost, rounding=pivots_rounding(cost.n_features, (error or 0.0) / max(size, 1e-300)))
    else:
        cost = _counted_cost(data, count, flops)
    # a map with more features than pivots needs pays only where forming them is cheaper: up to twice as many
    enough = min(largest, 2 * cost.n_features + 1000)
    offers = [] if name == "pivots" else _kernel_offers(kernel, data, residual, enough, look)
    if cost.n_features <= most:
        largest = most if count is None else count.rank
        offers.append(_pivots(kernel, data, rows, cost, residual, largest, n_threads, counted=count is not None))
    return offers


def _kernel_offers(kernel: Kernel, data: Summary, residual: float, most: int, look: Look) -> list[Offer]:
    """The kernel's own maps of at most so many features.

    Where far more pivots would be needed, a truncated map is not looked for: only one that leaves nothing out, or one
    whose second moment is held as an operator. Ranked multi-indices are a third of the pivots at best in 8 dimensions,
    and no fewer in 32.
    """
    too_many = most * max(1.0, MANY_COLUMNS / data.n_features)
    if look.probe is None or look.probe.rank(residual) <= too_many:
        return list(kernel.feature_maps(data, residual, most))
    return _with_own_moments(kernel, data, residual) + [
        x for x in kernel.feature_maps(data, 0.0, most) if x.cost.residual == 0.0
    ]


def _with_own_moments(kernel: Kernel, data: Summary, residual: float) -> list[Offer]:
    """Maps whose second moment is held as an operator: to look for one costs next to nothing."""
    return [x for x in kernel.feature_maps(data, residual, 1) if x.cost.moment_flops is not None]


def _pivot_count(problem: Problem, look: Look, residual: float) -> Counted | None:
    """So many pivots, where a sample of the rows bounds what they leave, or where that many were asked for."""
    target, n = problem.target, problem.data.n_samples
    if not target.tol_is_required:
        return None if target.max_features is None else budgeted(n, target.max_features)
    fewer = MEANS_SHARE if may_be_means(problem.kernel) and _worth_means(problem.data) else 1.0
    count = _sampled_rank(look, n, target, fewer) if target.may_use_sampled_bound else None
    if target.max_features is None or look.probe is None:
        return count
    enough = look.probe.rank(residual) if count is None else count.rank
    return count if enough <= target.max_features else budgeted(n, target.max_features)


def budgeted(n: int, rank: int) -> Counted:
    """So many pivots, and the draws that are worth their cost beside a pass over n rows."""
    return Counted(rank, draws_worth(n, rank))


def _worth_means(data: Summary) -> bool:
    """Whether the rows are so many that fewer pivots are worth looking for their places."""
    return data.n_samples >= MEANS_FROM * len(data.sample)


def _sampled_rank(look: Look, n: int, target: Target, fewer: float) -> Counted | None:
    """Pivots that leave so little that a sample of the rows proves its largest eigenvalue small enough for ``tol``.

    More pivots need fewer rows: the cheapest of both. None where that is hardly cheaper than a trace that is small
    enough, which is certain, or where nothing is known. ``fewer``: so many do the same for each of the probe's pivots.
    """
    probe = look.probe
    if probe is None or not probe.beside or not look.share(1) > 0.0:
        return None
    wanted = SAMPLED_SHARE * target.tol * look.first(n)
    ranks = np.unique(np.geomspace(4, min(n, MAX_FEATURES), 160).astype(np.intp))
    left, draws = probe.residual_beside(ranks / fewer), np.arange(FEWEST, DRAWS + 1, FEWEST)[:, None]
    # a pilot may have its share of the probability, too
    failure = target.failure_of_samples / 4.0
    enough = left * upper_share(probe.largest_share(ranks / fewer, draws), draws, failure) <= wanted
    flops = np.where(enough, bound_flops(draws, ranks) + 2.0 * n * ranks.astype(float) ** 2, np.inf)
    i, j = np.unravel_index(np.argmin(flops), flops.shape)
    certain = 2.0 * n * float(probe.rank(wanted)) ** 2
    return Counted(int(ranks[j]), int(draws[i, 0])) if flops.min() < 0.8 * certain else None


def _counted_cost(data: Summary, count: Counted, kernel_flops: float) -> Cost:
    """Of so many pivots, and of a bound on what they leave."""
    rank, draws = count
    cost = pivots_cost(rank, kernel_flops, 1.0, candidates=min(len(data.sample), candidates_for(rank, data.n_samples)))
    bound = BLAS_FLOPS * float(bound_flops(draws, rank))
    return replace(cost, setup_flops=cost.setup_flops + bound, memory=8.0 * draws**2)


def _pivots(
    kernel: Kernel,
    data: Summary,
    rows: Rows,
    cost: Cost,
    residual: float,
    largest: int,
    n_threads: int = 1,
    *,
    counted: bool = False,
) -> Offer:
    """``counted``: so many pivots, whatever the trace of what they leave, which then need not be judged."""

    def build(sample: np.ndarray) -> FeatureMap:
        # judged on rows that are not pivots: several of these for each pivot
        # (a row of weight zero may lie where the bounds of the others don't hold: the sample has none)
        more = 4 * cost.n_features > len(sample) and rows.weights is None
        if counted and not more:
            few = min(len(sample), candidates_for(cost.n_features, data.n_samples))
            sample = sample[np.linspace(0, len(sample) - 1, few).astype(np.intp)]
        return pivot_map(
            kernel,
            rows if more else sample,
            tol=0.9 * residual,  # its own rounding comes on top
            max_features=largest,
            rng=np.random.default_rng(0),
            n_samples=data.n_samples,
            sample_rows=max(4 * cost.n_features, len(sample)),
            entry_error=kernel.entry_error(data, np.dtype(np.float64)),
            means=counted and _worth_means(data),
            n_threads=n_threads,
        )

    return Offer("pivots", cost, build)


def small_offers(kernel: Kernel, data: Summary, rows: Rows, residual: float, largest: int) -> list[Offer]:
    """Pivots without a look, for few rows of one coordinate: methods on projections ask for these hundreds of times.

    On a line the spectrum of a translation-invariant kernel falls fast, no other map has fewer features, and choosing
    the pivots among all rows costs less than a look at some of them.
    """
    if data.n_features > 1 or data.n_samples > len(data.sample) or kernel.translation != "kernel":
        return []
    return [_pivots(kernel, data, rows, Cost(data.n_samples), residual, largest)]


def start_features(look: Look, data: Summary, k: int, pass_seconds: float) -> int:
    """Pivots of the map that a Krylov run starts from.

    Few, so that its pass over rows costs a fraction of one over pairs; more where these would prove that nothing of
    the size of lambda_k was left out (residual trace at most 0.4 lambda_k), at the price of a pass or two over pairs.
    """
    if look.probe is None:
        return 0
    n = data.n_samples
    few = min(1000.0, max(2.0 * k, 2.0 * np.sqrt(n)))
    if look.probe.curve[min(int(few), len(look.probe.curve) - 1)] > 0.5:
        return 0  # most of the trace would be left out: random columns start as well, and cost nothing
    enough = look.probe.rank(0.4 * look.share(k)) if look.share(k) > 0 else np.inf
    worth = np.sqrt(1.5 * pass_seconds * RATE.squares / (3.0 * n))
    return int(min(1.2 * enough if 1.2 * enough <= worth else few, n // 4, MAX_FEATURES))


def _krylov_candidates(problem: Problem, look: Look, seconds: float = math.inf) -> list[Candidate]:
    """Block Krylov on exact products, and on each approximate one that is accurate enough for ``tol``.

    Approximate ones take milliseconds to plan: they are left out where none can take less than ``seconds``, those of
    another route.
    """
    kernel, data, target = problem.kernel, problem.data, problem.target
    # of a few thousand rows of which all values are held no other product is cheaper
    exact_alone = data.n_samples <= SMALL and is_compiled(kernel) and target.products == "auto"
    exact_alone = exact_alone or _approximate_is_slower(problem, look, seconds)
    # an error of at most e in each entry moves an eigenvalue by at most n e
    share = 0.0 if exact_alone else KRYLOV_PRODUCT_SHARE * target.tol * look.share(1)
    allowed = share * float(kernel.diagonal(data.sample).mean()) if share else 0.0
    ways = products_for(
        kernel,
        data,
        data,
        allowed if allowed > 0 else None,
        square=True,
        columns=_components_timed(problem) + 10,
        name="exact" if exact_alone else target.products,
        n_threads=problem.budget.n_threads,
        reason=f": an error of e in each kernel value moves an eigenvalue by up to N e, and this is "
        f"{KRYLOV_PRODUCT_SHARE:g} of tol times the largest eigenvalue over N",
    )
    return [_krylov_candidate(problem, look, way) for way in ways]


def _krylov_candidate(problem: Problem, look: Look, way: Way) -> Candidate:
    kernel, data, limit = problem.kernel, problem.data, problem.budget.memory
    n, k, exact = data.n_samples, _components_timed(problem), way.name == "exact"
    way_in_memory = _way_in_memory(problem, way, k) if exact else None
    way = way_in_memory or way
    held = way_in_memory is not None and is_compiled(kernel)
    block = default_block_size(n, k, held=held)
    expected = _passes(look, n, k, block, problem.target, trace=kernel.positive_semidefinite, norm=exact)
    search = expected.search
    seconds = HELD_OVERHEAD if way_in_memory else KRYLOV_OVERHEAD
    if held and n <= SMALL:
        seconds += PASS_OVERHEAD * max(0.0, search - FEW_PASSES)
    seconds += _algebra_seconds(problem, way, k, block, expected)

    def needed(D: int) -> float:
        return footprint.krylov_bytes(data, problem.rows, k, D, way.least_memory)

    memory = needed(0)
    values = _values_kept(problem, memory, held=way_in_memory is not None) if exact else 0.0
    # passes over values that are kept cost less than pivots do
    cheap = held or (is_compiled(kernel) and values > 0.0)
    D = 0 if cheap else start_features(look, data, k, way.once)
    while D and needed(D) > limit:  # a start is worth having, and can be done without
        D //= 2
    memory = needed(D) if D else memory
    obstacle = _krylov_obstacle(problem, look, k) or _too_much(memory, limit)
    extra = 0.0 if held else values  # values in float64 are held in two parts, of which one serves the search
    values = values if memory + extra <= limit else 0.0
    # a pass in float32 takes half as long, and over values that it keeps the first one alone makes these
    single = 0.5 if exact and (held or not way_in_memory) else 1.0
    makes = 1.0 if values and not way_in_memory else search
    later = min(single * way.once, 2.0 * n * n * block / RATE.multiplications)
    passing = way.seconds(single * makes + KRYLOV_DOUBLE) + (search - makes) * later
    risk = 1.0 if expected.doubt < 1.0 else LEFT_RISK if expected.hardly else FLAT_RISK
    seconds = (seconds + passing) * risk + 3.0 * n * D * D / RATE.squares
    memory += min(extra, values)
    left = replace(_krylov_room(problem, way, k, memory), values=values)
    return Candidate("krylov", way.name, seconds, memory, D, obstacle, way, left)


def _krylov_obstacle(problem: Problem, look: Look, k: int) -> str:
    """Why block Krylov can't do what is asked, whatever the memory."""
    if problem.target.c is None:
        return "all components need the dense route or an exact feature map"
    if problem.target.n_components is None and look.probe is None:
        return "a fraction of the variance needs a positive semidefinite kernel, or the dense route"
    return f"finds at most {problem.rank} components" if k > problem.rank else ""


def _passes(look: Look, n: int, k: int, block: int, target: Target, *, trace: bool, norm: bool) -> Passes:
    """Those that the look predicts.

    What the search leaves is to be proved less than lambda_k: by its trace, or its norm, which exact products measure.
    """
    shares, beyond = look.spectrum(n)
    first, last, after = float(shares[0]), look.expected(k, n), look.expected(block + 1, n)
    if not last > 0.0:
        return Passes(FEW_PASSES, 0.0)  # nothing is known
    passes = _converging(look, n, k, block, target.tol)
    columns_kept = min(max(8 * k, k + 60), n - 1)
    gap = look.expected(columns_kept, n) <= (1.0 - NARROWEST) * last
    # a bound on the others may be as large as the interval of the last one
    exploring = lanczos_steps(n, block, target.failure_probability, 1.0 - after / (last + target.tol * first))
    shares = np.append(shares, np.full(max(columns_kept - len(shares), 0), beyond))
    rest = max(n - len(shares), 0)
    # mu of the first columns_kept, columns_kept - 1, ... columns: sums from the smallest do not cancel
    left = [np.append(0.0, np.cumsum(x[:0:-1]))[-columns_kept:] for x in (shares, shares**2)]
    by_trace = left[0] + beyond * rest if trace else np.full(columns_kept, np.inf)
    mu = np.minimum(by_trace, np.sqrt(left[1] + beyond**2 * rest)) if norm else by_trace
    enough = int(np.count_nonzero(mu > SHARE * last)) + 1
    proved = enough <= columns_kept
    passes *= 1.0 if proved else FLATTER
    columns_first = enough / block if proved else 0.0  # the proof takes as many columns, whatever tol is
    doubt = 1.0 if not proved else DOUBT if enough > CERTAIN_SHARE * columns_kept else 0.0
    search = min(max(passes - KRYLOV_DOUBLE, columns_first, 1.0), MOST_PASSES)
    # of few rows a run waits for a factorisation, which costs little, and forms all pairs
    flat = n > SMALL and not (proved or gap)
    exploring = min(max(exploring, EXPLORING_PASSES), MOST_PASSES)
    return Passes(min(search, FEW_PASSES) if flat else search, doubt, exploring, gap, flat, search == MOST_PASSES)


def _converging(look: Look, n: int, k: int, block: int, tol: float) -> float:
    """Passes after which the error of lambda_k is tol lambda_1.

    A block of b columns gains a factor exp(2 acosh(1 + 2 (lambda_k - lambda_(b+1)) / (lambda_(b+1) - lambda_n))) a pass
    (Chebyshev), of which a quarter counts; a random one begins with n / b times what it has of each vector. The longer
    the run, the more eigenvalues beyond the block it finds as well.
    """
    first, last, least = look.expected(1, n), look.expected(k, n), look.least(n)
    wanted = max(math.log(4.0 * n / block * last / (first * tol)), 1.0)
    shares, beyond = look.spectrum(n)
    more = np.arange(int(MOST_PASSES / FURTHER))  # further blocks
    after = np.append(shares, beyond)[np.minimum((more + 1) * block, len(shares))]
    gain = 2.0 * np.arccosh(1.0 + 2.0 * np.maximum(last - after, 1e-12 * last) / np.maximum(after - least, 1e-3 * last))
    return float(np.min(1.0 + FURTHER * more + wanted / gain))


def _algebra_seconds(problem: Problem, way: Way, k: int, block: int, expected: Passes) -> float:
    """Of Rayleigh-Ritz in the search, and on what is kept of it; then of the proof that nothing was missed.

    Where trace and norm do not tell, that is an exploration, or a factorisation of the matrix beyond the basis.
    """
    n, doubt = problem.data.n_samples, expected.doubt
    most = min(n - 1, max(640, k + 16 * block))
    sizes = [min(block * i, most) for i in range(1, math.ceil(expected.search) + 1)]
    searching = sum(search_seconds(n, size, block) for size in sizes)
    columns = min(sizes[-1], max(8 * k, k + 60)) + block
    proved = KRYLOV_DOUBLE * ritz_seconds(n, columns)
    if not doubt:
        return searching + proved
    # approximate products, of narrow kernels, begin from near values, which prove as much
    further = range(1, math.ceil(expected.exploring if way.name == "exact" else EXPLORING_PASSES) + 1)
    if expected.flat:  # the whole run is one exploration, of which the leading pairs are formed alone
        return searching + sum(way.once + leading_pairs_seconds(n, min(block * i, most), block) for i in further)
    exploring = sum(way.once + ritz_seconds(n, min(columns + block * i, most)) for i in further)
    factorising = math.inf
    if expected.gap and way.name == "exact" and rest_bytes(n, columns) <= problem.budget.memory:
        # it needs the wanted columns and those before a gap alone
        factorising = factorising_seconds(n, k + block, way.once)
    if doubt < 1.0 and factorising > DEAR_FACTORISATION * exploring:
        return searching + proved
    return searching + proved + doubt * min(exploring, factorising)


def _way_in_memory(problem: Problem, way: Way, k: int) -> Way | None:
    """Exact products with a K that is held; None where that is not worth it, or does not fit.

    Of kernels without compiled tiles, whose values come from ``block``, in Python, a small K always is. Of compiled
    tiles half of K is, where the rows are few, or where their many columns make a value dear.
    """
    kernel, n = problem.kernel, problem.data.n_samples
    d, compiled = problem.data.n_features, is_compiled(kernel)
    columns = default_block_size(n, k, held=compiled)
    size, once = 8.0 * n * n, 2.0 * n * n * columns / RATE.multiplications
    worth = size <= KEPT_MATRIX
    if compiled:
        size, worth = kept_value_bytes(n, d, 8) + 8.0 * n * d, n <= SMALL or d >= HELD_COLUMNS  # and all rows, shifted
    else:
        once += 8.0 * n * n / READ_RATE
    cost = replace(way.cost, memory=way.cost.memory + size)
    way_in_memory = replace(way, cost=cost, setup=way.setup + way.once, once=once)
    memory = footprint.krylov_bytes(problem.data, problem.rows, k, 0, way_in_memory.least_memory)
    fits = memory <= problem.budget.memory
    return way_in_memory if worth and fits else None


def _values_kept(problem: Problem, memory: float, *, held: bool) -> float:
    """Bytes of the values of a search in float32, beside so many bytes, where keeping them pays; else 0.

    ``held``: whether the values are held in float64 anyway.
    """
    n, d, compiled = problem.data.n_samples, problem.data.n_features, is_compiled(problem.kernel)
    # compiled tiles make a value of few columns of X again in less time than it takes to read
    worth = held or d >= DEAR_COLUMNS or not compiled
    size = kept_value_bytes(n, d, 4) + (0.0 if held else 8.0 * n * d) if compiled else kept_bytes(n)
    here = held or not problem.rows.distributed  # other values of distributed rows are made where these are
    fits = (held and compiled) or memory + size <= problem.budget.memory
    return size if worth and here and fits else 0.0


def _krylov_room(problem: Problem, way: Way, k: int, memory: float) -> Room:
    """What the limit leaves for the basis, and for columns that an approximate product multiplies at once."""
    n = problem.data.n_samples
    block = default_block_size(n, k)
    least = basis_bytes(n, least_columns(n, k, block), block)
    spare = max(0.0, problem.budget.memory - memory)
    columns = LEAST_COLUMNS
    if way.cost.column_memory:  # half of it, as far as a block of columns goes
        columns += int(min(max(0, 2 * block - columns), 0.5 * spare / way.cost.column_memory))
        spare -= (columns - LEAST_COLUMNS) * way.cost.column_memory
    basis = least + spare / (2.0 if problem.rows.weights is not None else 1.0)
    return Room(basis=basis, columns=columns, pass_seconds=way.once)


def _too_much(memory: float, limit: float) -> str:
    return f"needs {readable_size(memory)}, the limit is {readable_size(limit)}" if memory > limit else ""


def _exact_instead(best: Candidate, possible: list[Candidate]) -> Candidate:
    """For nearly the price of a map that leaves something out, one that does not: its scores keep all their digits."""
    exact = [x for x in possible if x.method == best.method == "features" and x.offer.cost.residual == 0.0]
    near = [x for x in exact if x.seconds <= WORTH_EXACTNESS * best.seconds]
    return min(near, key=lambda x: x.seconds, default=best)


def _choose(candidates: list[Candidate], problem: Problem) -> tuple[Candidate, str]:
    """The best of them, and why it is."""
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
        raise NoRouteError(
            f"{what} for {n} rows and c={target.c!r} ({reasons}); raise memory_limit or tol, ask for fewer components, "
            "or take another method"
        )
    best = _exact_instead(min(possible, key=lambda x: x.seconds), possible)
    others = [x for x in possible if x is not best]
    if method != "auto" and not others:
        reason = "asked for"
    elif not others:
        reason = "the only route that fits"
    else:
        second = min(others, key=lambda x: x.seconds)
        seconds, other = (readable_seconds(x.seconds, 2) for x in (best, second))
        reason = f"predicted {seconds} s, against {other} s for {second.label}"
    return best, reason

"""The features route: one pass over the rows for the moments of a feature map; scores are a second pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Moments
from ..base.rounding import EPS, UNIT32
from ..maps.draws import DRAWS, Draws
from ..maps.passes import apply, feature_moments, moments_and_draws
from ..maps.uncentred import about
from ..model.plan import Candidate
from ..products.rates import RATE
from ..solve import sampled
from ..solve.beyond import failure_of_attempt
from ..solve.certificate import Bound
from ..solve.costs import TooDearError
from ..solve.moments import kernel_trace
from .components import (
    QUICK_SHARE,
    ROUNDED,
    Axes,
    Scores,
    accurate_enough,
    accurate_for,
    components,
    largest_of,
    leading_of,
)
from .look import look_at
from .problem import Problem
from .solution import Solution
from .target import Target

__all__ = ["solve_by_features"]

OUTGROWN = 1.5
"""Times the features that were predicted."""
ROUNDS = 3
"""In which pivots are added, and a pass follows."""
TRACE_FOR_SAMPLE = 30.0
"""Trace of what is left, over its largest eigenvalue: less than that is common on real data."""


TRIES = 3
"""Bounds from samples in a round, at most."""
PILOT = 1024
"""Rows of a first, small sample, which says how many are needed."""
FEW_ROWS = 32
"""Rows that tell whether quick moments have a chance."""


@dataclass(frozen=True)
class _Pass:
    """What a pass over the rows has found.

    ``left_out`` bounds what the map leaves out of the largest eigenvalue; ``foreseen`` is about what the bound would be
    with as many draws as there are, where it took fewer; ``kept`` (D, N) are the features, where they are kept.
    """

    moments: Moments
    draws: Draws | None
    leading: Axes
    left_out: Bound
    foreseen: float = np.inf
    kept: np.ndarray | None = None

    def misses(self, target: Target) -> bool:
        """Whether the map leaves more than ``tol`` of the largest eigenvalue out."""
        return self.left_out.mu > target.tol * largest_of(self.leading[0])

    def times_too_large(self, target: Target) -> float:
        """What is left out, over what may be; inf where the map sees no variance, since none may then be left out."""
        largest = largest_of(self.leading[0])
        return min(self.left_out.mu, self.foreseen) / (target.tol * largest) if largest > 0 else np.inf

    def features_needed(self, target: Target) -> int:
        """How many will do, as far as one pass tells.

        A largest eigenvalue falls as a power of the number of pivots, by 1.4 to 2.2 on real data; of a trace less is
        known.
        """
        D = self.moments.map.n_features
        if self.left_out.form == "trace" or not largest_of(self.leading[0]) > 0:
            return 3 * D // 2
        return int(1.2 * D * self.times_too_large(target) ** (1 / 1.4)) + 1


def solve_by_features(problem: Problem, way: Candidate, instead: float = np.inf) -> Solution:
    """Components of a feature map, to which pivots are added where it misses tol.

    ``instead``: seconds of the route that would follow; inf where none would.

    Raises
    ------
    TooDearError
        That route is the cheaper one by now, or the map misses tol.
    """
    target = problem.target
    free = target.tol_is_required and not target.forced and target.c is not None and instead < np.inf
    with parallel.blas_threads():
        feature_map = way.offer.build(problem.data.sample)
        D = feature_map.n_features  # of heavy tails it may have far more than predicted
        if free and D > OUTGROWN * way.n_features and _pass_seconds(problem, D) > instead:
            raise TooDearError
        most_draws, room = _most_draws(problem, way), way.room.kept
        found = _pass(feature_map, problem, 0, most_draws, room)
        for rounds in range(1, ROUNDS + 1):
            if not found.misses(target) or not target.tol_is_required:
                break
            # a sample can miss a small far cluster; all rows know where the residual lies
            enough = found.features_needed(target)
            if free and _pass_seconds(problem, enough) > instead:
                break
            last = rounds == ROUNDS
            by_trace = last or found.left_out.form == "trace"
            more = _more_pivots(
                found, problem, way.room.features if by_trace else min(way.room.features, enough), last=last
            )
            if more is found.moments.map:
                break
            del found  # of the map before: the next takes its room
            found = _pass(more, problem, rounds, most_draws, room)
    if free and found.misses(target):
        raise TooDearError
    solution = _components(found, problem)
    if free and _rounded(found, solution):
        raise TooDearError
    return replace(solution, info=solution.info | {"radius": problem.data.radius})


def _pass_seconds(problem: Problem, D: int) -> float:
    """About: to choose so many features, to form and add them up, and to score them."""
    return 3.0 * problem.data.n_samples * float(D) ** 2 / RATE.squares


def _components(found: _Pass, problem: Problem) -> Solution:
    """Components and their certificate from the pass."""
    with parallel.blas_threads():
        return components(
            found.moments,
            found.leading,
            problem.target,
            problem.kernel,
            n_samples=problem.data.n_samples,
            rank=problem.rank,
            left_out=found.left_out,
            data=problem.data,
            scores=_scores(found, problem),
            n_threads=problem.budget.n_threads,
        )


def _rounded(found: _Pass, solution: Solution) -> bool:
    """Whether intervals miss ``tol`` by the rounding of transforms, which is more than that of products."""
    of_transforms = found.leading[2] is not None
    return (
        of_transforms and bool(solution.message) and solution.certificate.width > ROUNDED * largest_of(found.leading[0])
    )


def _scores(found: _Pass, problem: Problem) -> Scores | None:
    """How the scores of all rows are made where they are held in memory anyway, or where the features were kept."""
    feature_map, rows, budget, kept = found.moments.map, problem.rows, problem.budget, found.kept
    if kept is not None:
        return lambda axes, constant: np.asarray(kept.T @ axes - constant)
    if not problem.keeps_scores:
        return None

    def scores(axes: np.ndarray, constant: np.ndarray) -> np.ndarray:
        out = np.empty((rows.n_samples, axes.shape[1]), dtype=problem.dtype)
        options: dict[str, Any] = {"progress": budget.report, "stage": "scores"}
        return np.asarray(apply(feature_map, rows, axes, budget.n_threads, constant=constant, out=out, **options))

    return scores


def _most_draws(problem: Problem, way: Candidate) -> int:
    """Rows of a sample whose matrix, and its factor, fit into the memory that the route leaves."""
    spare = problem.budget.memory - way.memory + way.offer.cost.memory
    return min(DRAWS, int(np.sqrt(max(spare, 0.0) / 8.0)))


def _pass(
    feature_map: FeatureMap, problem: Problem, tries: int, most_draws: int, room: float, *, quick: bool = True
) -> _Pass:
    """One pass with this map, which ``tries`` others came before.

    A sample may have ``most_draws`` rows, features that are kept ``room`` bytes. ``quick`` moments are tried where they
    may do; a second pass follows where they do not.
    """
    budget, target, kept = problem.budget, problem.target, None
    if 8.0 * problem.rows.n_samples * feature_map.n_features <= room:
        kept = np.empty((feature_map.n_features, problem.rows.n_samples))
    n_draws = _draws_wanted(problem, feature_map)
    quick = quick and kept is None and _quick_may_do(feature_map, problem)
    moments, draws = _summed(feature_map, problem, n_draws, kept, quick=quick)
    left_out = Bound(moments.residual_trace, "trace")
    trace = about(moments, center=target.center).trace
    if trace <= moments.indefinite and _all_equal(problem):  # all that could be found is the map's errors
        return _Pass(moments, None, (np.zeros(1), np.zeros((feature_map.n_features, 1)), None), left_out)
    leading = leading_of(moments, target, problem.rank, budget.memory, problem.rng, budget.n_threads)
    found = _Pass(moments, draws, leading, left_out, kept=kept)
    if quick and not accurate_enough(moments, leading, target):
        return _pass(feature_map, problem, tries, most_draws, room, quick=False)
    if draws is None or not found.misses(target):
        return found
    return _with_sample(found, draws, problem, tries, most_draws)


def _draws_wanted(problem: Problem, feature_map: FeatureMap) -> int:
    target = problem.target
    if not target.may_use_sampled_bound:
        return 0
    worth = sampled.draws_worth(problem.data.n_samples, feature_map.n_features)
    return DRAWS + PILOT if target.tol_is_required else worth


def _summed(
    feature_map: FeatureMap, problem: Problem, n_draws: int, kept: np.ndarray | None, *, quick: bool
) -> tuple[Moments, Draws | None]:
    """Moments of one pass, and draws where they are wanted and rows are looked at one by one."""
    options: dict[str, Any] = {
        "n_threads": problem.budget.n_threads,
        "progress": problem.budget.report,
        "keep": kept,
        "quick": quick,
    }
    if problem.target.may_use_sampled_bound:
        return moments_and_draws(feature_map, problem.rows, problem.rng, n_draws=n_draws, **options)
    return feature_moments(feature_map, problem.rows, **options), None


def _quick_may_do(feature_map: FeatureMap, problem: Problem) -> bool:
    """Whether quick moments may be accurate enough: a few rows tell where the features hardly vary."""
    if not problem.takes_quick_moments:
        return False
    trial = feature_map.quick_moments()
    if trial is None:
        return False
    trial.update(problem.some_rows(FEW_ROWS))
    target, n = problem.target, problem.data.n_samples
    if not trial.error <= QUICK_SHARE * target.tol * trial.trace:
        return False
    if trial.error <= UNIT32 * trial.trace:
        return True
    if problem.rows.distributed:
        return False  # sums in float32 err by more, or are not offered, where a processor's vectors are narrower
    # sums in float32 err by more than some eigenvalues allow: a glance at these costs less than a second pass
    look = look_at(problem.kernel, problem.data, 0)
    assert target.n_components is not None
    first, last = (trial.trace * share for share in (look.first(n), look.expected(target.n_components, n)))
    return accurate_for(trial, first, last, target)


def _with_sample(found: _Pass, draws: Draws, problem: Problem, tries: int, most_draws: int) -> _Pass:
    """The pass with the best bound that samples give: of as many draws as ``tol`` needs, or as are worth their cost.

    Where ``tol`` needs many, a pilot comes first, of other draws: so their number does not depend on which rows they
    are. If they fall short, all there are follow. Each bound may fail, each with its own share of the probability.
    """
    target, moments = problem.target, found.moments

    def bound(draws: Draws, count: int, bounds_before: int) -> Bound:
        found = sampled.residual_bound(
            moments.map,
            problem.kernel,
            problem.rows,
            moments.residual_trace,
            draws,
            count=count,
            entry_error=problem.entry_error,
            failure=failure_of_attempt(target.failure_of_samples, bounds_before),
            n_threads=problem.budget.n_threads,
        )
        return replace(found, failure_probability=target.failure_of_samples) if found.failure_probability else found

    share = target.tol * largest_of(found.leading[0]) / moments.residual_trace
    if target.tol_is_required:
        count = sampled.draws_needed(share, failure_of_attempt(target.failure_of_samples, TRIES * tries))
    else:
        count = sampled.draws_worth(problem.data.n_samples, moments.map.n_features)
    count = min(count, most_draws)
    if count < sampled.FEWEST:
        return found
    if count <= 2 * PILOT or not target.tol_is_required:
        return replace(found, left_out=bound(draws, count, TRIES * tries))
    best = bound(draws.only(slice(DRAWS, None)), PILOT, TRIES * tries)
    counts = np.arange(PILOT, most_draws + 1, sampled.FEWEST)
    failure = failure_of_attempt(target.failure_of_samples, TRIES * tries)
    shares = _shares_foreseen(best.mu / moments.residual_trace, counts, failure)
    enough = int(counts[min(int(np.count_nonzero(1.1 * shares > share)), len(counts) - 1)])
    if shares[-1] <= 1.1 * share:
        for i, number in enumerate(dict.fromkeys((enough, int(counts[-1]))), 1):
            if best.mu > share * moments.residual_trace:
                best = min(best, bound(draws, number, TRIES * tries + i), key=lambda bound: bound.mu)
    return replace(found, left_out=best, foreseen=float(shares[-1]) * moments.residual_trace)


def _shares_foreseen(pilot: float, counts: np.ndarray, failure: float) -> np.ndarray:
    """About what bounds over the trace ``counts`` draws will give, from that of the pilot: both fail with ``failure``.

    The largest eigenvalue of a sample lies above that of all rows as Marchenko and Pastur say of a flat spectrum.
    """
    grid = np.linspace(0.0, 1.0, 2000) ** 2
    of_pilot = np.interp(pilot, sampled.upper_share(grid, PILOT, failure), grid)
    of_all = max(np.sqrt(of_pilot) - np.sqrt(1.0 / PILOT), 0.0)
    return sampled.upper_share(1.05 * (of_all + np.sqrt(1.0 / counts)) ** 2, counts, 0.25 * failure)


def _all_equal(problem: Problem) -> bool:
    """Whether the kernel's values tell the two ends of the rows' box apart by no more than their rounding.

    Asked only of maps whose features err by more than rounding. Their kernels fall with the distance along each axis,
    so no two rows differ by more than these ends.
    """
    K = problem.kernel.block(problem.data.box, problem.data.box)
    return bool(K[0, 0] - 2.0 * K[0, 1] + K[1, 1] <= 8 * EPS * K[0, 0])


def _more_pivots(found: _Pass, problem: Problem, most: int, *, last: bool) -> FeatureMap:
    """The map with pivots added, at most so many; the same map where it can't have more.

    In the ``last`` round so many that the trace alone will do: each of some far rows may keep the largest eigenvalue of
    what is left as large as it is, until all of them are pivots.
    """
    moments, feature_map = found.moments, found.moments.map
    if problem.target.given_map:
        return feature_map
    trace = kernel_trace(moments)
    # the trace that is needed, if the largest eigenvalue falls as it does (with more pivots it falls faster)
    wanted = moments.residual_trace / found.times_too_large(problem.target)
    # another round costs more than some pivots too many
    share = 0.75 if found.left_out.form == "sampled" else 0.5
    if last:
        wanted, share = problem.target.tol * largest_of(found.leading[0]), 0.5
    elif found.draws is not None and found.left_out.form == "trace":
        share = TRACE_FOR_SAMPLE  # too much was left for a sample to tell anything: so much that it will
    return feature_map.refined(
        problem.rows,
        tol=share * wanted / trace,
        max_features=min(most, 2 * feature_map.n_features + 100),
        rng=problem.rng,
        seen=None if found.draws is None else (trace, found.draws.only(slice(DRAWS))),
        n_threads=problem.budget.n_threads,
    )

"""The features route: one pass over the rows with a feature map, then refinements until ``tol``.

1. `_Run.built`: the map of the plan.
2. `_Run.one_pass`: the moments of its features in a pass over the rows, and their eigenpairs.
3. `_Run.narrowest`: bounds on |R|, R the residual of the map, from sampled rows; rows of R V, or a pass over the kernel
   values, for intervals of second order (``growth`` chooses the cheapest).
4. `_Run.more_pivots`: where that costs more than a round with more pivots, these are added; back to 2.
5. `components`: intervals and axes; scores are a last pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base.protocol import FeatureMap, Moments
from ..base.rounding import EPS
from ..maps.choosing import refined, residual_draws
from ..maps.draws import DRAWS_PER_PASS, Draws, Reservoir
from ..maps.passes import apply, feature_moments, moments_and_draws
from ..maps.pivots import PivotMap
from ..maps.uncentred import second_moment
from ..model.plan import Candidate, Step
from ..products.rates import RATE, moment_seconds
from ..solve import sampled
from ..solve.certificate import Bound
from ..solve.complement import failure_of_attempt
from ..solve.costs import BudgetExceededError, Expenses
from ..solve.moments import kernel_trace
from ..solve.sampled import ScaledSample
from ..solve.task import SolverBudget
from .components import (
    QUICK_SHARE,
    ROUNDING_WIDTH,
    Axes,
    Scores,
    accurate_enough,
    components,
    feature_sums,
    largest_of,
    leading_of,
)
from .growth import Refinement, RefinementCosts, State, cheapest_map
from .narrowing import MORE_VECTORS, Narrowed, Vectors, bounded_again, narrowed, refined_by_pass, takes_pass, vectors_of
from .offers import PivotOffer
from .probe import COST_FACTOR, SIZES
from .problem import Problem
from .solution import RunLimits, Solution
from .target import Target

OUTGROWN = 1.5
"""Multiple of the predicted number of features above which a map is checked against the budget before its pass."""
ROUNDS = 3
"""Largest number of rounds that add pivots and run another pass, and of sampled bounds in each round, `first_bound`
included (one more for given landmarks)."""
BUDGET_SHARE = 0.3
"""Fraction of the predicted seconds, where the number of features was given, for bounds on their residual
(``benchmarks/speed/loose.py``: a quarter more in all)."""


@dataclass(frozen=True)
class _Pass:
    """Result of a pass over the rows.

    ``left_out`` bounds the norm of the residual R, which is about ``share`` of its trace. ``moved`` is about the
    largest v'Rv. ``residual`` (N,) are the bounds on the diagonal of R, where they are stored. ``vectors`` and
    ``narrowed`` are known where rows were drawn for intervals of second order.
    """

    moments: Moments
    draws: Draws | None
    leading: Axes
    left_out: Bound
    share: float = 1.0
    moved: float = 0.0
    residual: np.ndarray | None = None
    vectors: Vectors | None = None
    narrowed: Narrowed | None = None

    @property
    def width(self) -> float:
        """Width of the widest interval."""
        return self.left_out.mu if self.narrowed is None else self.narrowed.found.certificate.width

    def misses(self, target: Target) -> bool:
        """True if an interval is wider than ``tol``."""
        return self.width > target.tol * largest_of(self.leading[0])

    def times_too_large(self, target: Target) -> float:
        """The residual over its limit; inf where the map has no variance, since the limit is then zero."""
        largest = largest_of(self.leading[0])
        return self.left_out.mu / (target.tol * largest) if largest > 0 else np.inf


def run(problem: Problem, candidate: Candidate, limits: RunLimits) -> Solution:
    """Components of a feature map, to which pivots are added where it misses tol.

    Raises
    ------
    BudgetExceededError
        The run would cost more than the limits say, or the map misses tol.
    """
    target = problem.target
    may_be_abandoned = target.tol_is_required and not target.forced and target.c is not None and limits.seconds < np.inf
    budget = SolverBudget(seconds=limits.seconds if may_be_abandoned else np.inf)
    route = _Run(problem, candidate, Expenses(budget, None))
    found = route.last_pass(route.built())
    missed = BudgetExceededError(seconds=route.expenses.seconds)
    if may_be_abandoned and found.misses(target):
        raise missed
    solution = components(
        found.moments,
        found.leading,
        target,
        problem.kernel,
        n_samples=problem.data.n_samples,
        rank=problem.rank,
        left_out=found.left_out,
        data=problem.data,
        scores=_scores(found, problem),
        narrowed=found.narrowed,
        n_threads=problem.budget.n_threads,
    )
    if may_be_abandoned and _rounded(found, solution, target):
        raise missed
    problem.record(*(x for x in candidate.steps if x.name == "scores"))
    return replace(solution, info=solution.info | {"radius": problem.data.radius}, reservoir=_reservoir(found, problem))


@dataclass
class _Run:
    """A run with a candidate's map; ``rounds``: rounds in which pivots were added so far."""

    problem: Problem
    candidate: Candidate
    expenses: Expenses
    rounds: int = 0

    def __post_init__(self) -> None:
        self.costs = RefinementCosts(self.problem)
        self.settings = self.candidate.settings
        self.n_vectors = (self.problem.target.n_components or 0) + MORE_VECTORS  # eigenvectors of the map

    def spend(self, name: str, seconds: float) -> None:
        """Count and record a step that has run."""
        self.expenses.seconds += seconds
        self.problem.record(Step(name, seconds))

    def built(self) -> FeatureMap:
        """The map of the plan.

        A map of pivots may need far more of them than predicted: it stops at the number that the budget allows.
        """
        offer, expected, sample = (
            self.candidate.offer,
            int(OUTGROWN * self.candidate.n_features),
            self.problem.data.sample,
        )
        if isinstance(offer, PivotOffer):
            most = max(expected, self.problem.data.n_samples)
            most = self.costs.pivots_within(self.expenses.seconds_left, self.n_vectors, most)
            feature_map: FeatureMap = offer.build(sample, max(most, expected) + 1)
            self.spend(f"map of {feature_map.n_features} pivots", self.costs.choosing(feature_map.n_features))
        else:
            feature_map = offer.build(sample)
            self.problem.record(
                Step(f"map of {feature_map.n_features} features", offer.cost.setup_flops / RATE.features)
            )
        if feature_map.n_features > expected:
            self.expenses.check(self.costs.passing(feature_map.n_features, self.n_vectors))
        return feature_map

    def last_pass(self, feature_map: FeatureMap) -> _Pass:
        """The pass of the map, or of one with more pivots, whose intervals meet tol, or cost too much to tighten."""
        target = self.problem.target
        while True:
            found = self.narrowest(self.one_pass(feature_map))
            if not (found.misses(target) and target.tol_is_required) or self.rounds == ROUNDS:
                return found
            if self.seconds_of_more(found) > self.expenses.seconds_left:
                return found
            self.rounds += 1
            # a sample can miss a small far cluster; all rows know where the residual lies
            feature_map = self.more_pivots(found)
            if feature_map is found.moments.map:
                return found
            del found  # of the map before: the next takes its memory

    @property
    def spare(self) -> float:
        """Bytes that the route leaves."""
        return self.problem.budget.memory - self.candidate.memory + self.candidate.offer.cost.memory

    @property
    def most_draws(self) -> int:
        """Rows of a sample whose matrix, and its factor, fit into the memory that the route leaves."""
        return min(DRAWS_PER_PASS, int(np.sqrt(max(self.spare, 0.0) / 8.0)))

    def one_pass(self, feature_map: FeatureMap, *, lean: bool = True) -> _Pass:
        """One pass with this map.

        A ``lean`` one tries quick moments where they may do, and draws no rows for a map whose residual trace is to be
        within ``tol``. A second pass follows where that does not do.
        """
        problem, expects_rows = self.problem, self.settings.rows > 0
        budget, target, n = problem.budget, problem.target, problem.rows.n_samples
        draws_rows = target.is_loose and not (lean and _trace_may_do(feature_map, target))
        keeps_residuals = draws_rows and feature_map.tile_rows is None
        keeps_residuals = keeps_residuals and (expects_rows or takes_pass(problem, self.spare))
        for_rows = keeps_residuals and (expects_rows or self.rounds > 0 or target.given_landmarks)
        quick = lean and not for_rows and _quick_may_do(feature_map, problem)
        residual = np.zeros(n) if keeps_residuals else None
        moments, draws = _summed(feature_map, problem, residual, draws_rows=draws_rows, quick=quick)
        cost, D, pivots = self.candidate.offer.cost, feature_map.n_features, isinstance(feature_map, PivotMap)
        seconds = self.costs.passing(D, self.n_vectors) if pivots else n * moment_seconds(cost)
        self.spend(f"pass over the rows with {D} features, eigenpairs", seconds)
        left_out = Bound(moments.residual_trace, "trace")
        trace = second_moment(moments, center=target.center).trace
        if trace <= moments.indefinite and _all_equal(problem):  # all that could be found is the map's errors
            return _Pass(moments, None, (np.zeros(1), np.zeros((D, 1)), None), left_out)
        # the same number for rows that come in order only: the same bits for every source
        may_narrow = feature_map.tile_rows is None and draws_rows and target.n_components is not None
        more = MORE_VECTORS if may_narrow else 0
        limits = {"seconds": self.expenses.seconds_left, "product_seconds": cost.product_flops / RATE.features}
        leading = leading_of(
            moments, target, problem.rank, budget.memory, problem.rng, budget.n_threads, more, **limits
        )
        found = _Pass(moments, draws, leading, left_out, residual=None if draws is None else residual)
        too_quick = quick and not accurate_enough(moments, leading, target)
        if too_quick or (target.is_loose and not draws_rows and found.misses(target)):
            return self.one_pass(feature_map, lean=False)
        return found

    def narrowest(self, found: _Pass) -> _Pass:
        """The pass with intervals that meet ``tol``, or the narrowest within the cost limit.

        Each bound from random rows may fail, each with its own share of the probability.
        """
        problem, costs, target = self.problem, self.costs, self.problem.target
        largest = largest_of(found.leading[0])
        enough = not found.misses(target) or not largest > 0
        if found.draws is None or self.most_draws < sampled.MIN_DRAWS or enough or found.left_out.mu <= 0.0:
            return found
        wanted, limit = target.tol * largest, BUDGET_SHARE * self.candidate.seconds
        if target.tol_is_required:
            limit = min(self.expenses.seconds_left, COST_FACTOR * self.seconds_of_more(found))
        if not target.may_use_sampled_bound and (found.residual is None or costs.whole(0) > limit):
            return found
        found = self.first_bound(found)
        if target.tol_is_required and found.misses(target):
            limit = min(self.expenses.seconds_left, self.worth(found, self.state(found)))
        for attempt in range(1, ROUNDS + target.given_landmarks):
            if not found.misses(target):
                break
            state = self.state(found)
            if not target.tol_is_required:
                step = state.best_within(costs, limit)
                return found if step is None else self.after(step, found, attempt)
            step = state.cheapest(costs, wanted)
            if target.given_landmarks and (step is None or attempt == ROUNDS):
                step = state.best_within(costs, np.inf) if _may_narrow(found, problem) else None
            if step is None or step.seconds > limit:
                return found
            found = self.after(step, found, attempt)
            wanted *= min(step.width / found.width, 1.0)  # it fell short of what was expected
        return found

    def seconds_of_more(self, found: _Pass) -> float:
        """Predicted seconds of the next round, with more pivots; infinite where there will be none."""
        D = found.moments.map.n_features
        may = isinstance(found.moments.map, PivotMap) and not self.problem.target.given_map
        may = may and D < self.settings.features and self.rounds < ROUNDS
        return self.costs.map(3 * D // 2, self.n_vectors) if may else np.inf

    def worth(self, found: _Pass, state: State) -> float:
        """Most seconds worth spending on this map's intervals: the cost of the cheapest larger map that meets tol, its
        own intervals included, if the residual falls as in the plan's probe; without one, `COST_FACTOR` more rounds."""
        seconds, D = self.seconds_of_more(found), state.features
        probe = self.candidate.offer.probe if isinstance(self.candidate.offer, PivotOffer) else None
        if not seconds < np.inf or probe is None or not probe.held_out:
            return COST_FACTOR * seconds
        ranks = np.minimum([_most_pivots(D), 3 * D // 2, D], self.settings.features)
        left, largest = probe.held_out_residual(ranks), probe.largest_share(ranks, np.array(np.inf))
        fields = (x[:-1].tolist() for x in (ranks, left / left[-1], largest / largest[-1]))
        states = (
            replace(
                state,
                features=m,
                trace=t * state.trace,
                share=x * state.share,
                moved=t * x * state.moved,
                known=np.inf,
                full_pass_done=False,
            )
            for m, t, x in zip(*fields)
        )
        wanted = self.problem.target.tol * largest_of(found.leading[0])
        step = cheapest_map(states, self.costs, wanted, np.inf)
        return np.inf if step is None else step.seconds

    def first_bound(self, found: _Pass) -> _Pass:
        """The pass with a bound from few draws at little cost, or from the number needed, if that is small.

        Later steps take other draws, so that their number does not depend on the rows that are drawn here.
        """
        target, tries = self.problem.target, ROUNDS * self.rounds
        if target.tol_is_required and target.may_use_sampled_bound:
            share = target.tol * largest_of(found.leading[0]) / found.moments.residual_trace
            count = sampled.draws_needed(share, failure_of_attempt(target.failure_of("samples"), tries))
            if 0 < count <= min(DRAWS_PER_PASS // 2, self.most_draws):
                return _bounded(found, count, self.problem, tries)
        return _bounded(found, sampled.MIN_DRAWS, self.problem, tries, others=True)

    def after(self, step: Refinement, found: _Pass, attempt: int) -> _Pass:
        """The pass after the step's draws, and its rows."""
        problem, tries = self.problem, ROUNDS * self.rounds + attempt
        self.spend(step.name(problem.rows.n_samples), step.seconds)
        if step.draws:
            found = _bounded(found, step.draws, problem, tries)
        if not step.rows:
            return found
        moments, (values, axes, _) = found.moments, found.leading
        failure = failure_of_attempt(problem.target.failure_of("rows"), tries)
        sums, c = feature_sums(moments, problem.data.n_samples, found.left_out), _wanted(found, problem)
        assert found.residual is not None
        known = found.vectors or vectors_of(moments, values, axes, found.residual, c, problem)
        c = min(c, known.axes.shape[1])
        before = found.narrowed
        if before is not None and before.block is not None:
            better = bounded_again(before, known, sums)
        elif step.rows >= problem.rows.n_samples:
            better = refined_by_pass(known, c, sums, problem, step.seconds)
        else:
            better = narrowed(known, c, step.rows, failure, sums, problem)
        return replace(found, vectors=known, narrowed=better if better.width < found.width else before)

    def state(self, found: _Pass) -> State:
        """State of the map, for the choice of the next step."""
        problem, target = self.problem, self.problem.target
        values, c = np.maximum(found.leading[0], 0.0), _wanted(found, problem)
        if len(values) == found.moments.map.n_features:  # the map has no more
            values = np.append(values, 0.0)
        k = min(len(values) - 1, c + MORE_VECTORS)
        exact = found.moments.error <= QUICK_SHARE / (k + 1) * target.tol * largest_of(values)
        return State(
            features=found.moments.map.n_features,
            theta=values[:k],
            beyond=float(values[k]),
            trace=found.moments.residual_trace,
            share=found.share,
            moved=found.moved,
            c=c if found.residual is not None and exact else 0,
            most_draws=self.most_draws if target.may_use_sampled_bound else 0,
            failure=failure_of_attempt(target.failure_of("samples") or 0.5, ROUNDS * self.rounds + 1),
            known=found.left_out.mu,
            full_pass_done=found.narrowed is not None and found.narrowed.block is not None,
        )

    def more_pivots(self, found: _Pass) -> FeatureMap:
        """The map with pivots added; the same map where it can't have more.

        The last round adds enough pivots for the trace of the residual to meet tol. For if some rows are far from all
        others, the largest eigenvalue of the residual may not fall until all of them are pivots.
        """
        problem, target, moments = self.problem, self.problem.target, found.moments
        feature_map = moments.map
        if target.given_map:
            return feature_map
        trace = kernel_trace(moments)
        # the trace that is needed, if the largest eigenvalue falls as it does (with more pivots it falls faster)
        wanted = moments.residual_trace / found.times_too_large(target)
        if self.rounds == ROUNDS:
            wanted = target.tol * largest_of(found.leading[0])
        most = min(self.settings.features, _most_pivots(feature_map.n_features))
        most = self.costs.pivots_within(self.expenses.seconds_left, self.n_vectors, most)
        return refined(
            feature_map,
            problem.rows,
            tol=0.5 * wanted / trace,
            max_features=most,
            rng=problem.rng,
            seen=None if found.draws is None else (trace, found.draws.only(slice(DRAWS_PER_PASS))),
            n_threads=problem.budget.n_threads,
        )


def _reservoir(found: _Pass, problem: Problem) -> Reservoir | None:
    """Rows for a model of a stream, to which pivots may be added; None where bounds are to be certain."""
    feature_map = found.moments.map
    wanted = problem.keeps_moments and isinstance(feature_map, PivotMap) and problem.target.failure_probability > 0.0
    if not wanted or problem.rows.sequential:
        return None
    draws = found.draws
    if draws is None:
        assert isinstance(feature_map, PivotMap)
        draws = residual_draws(feature_map, problem.rows, problem.rng, n_threads=problem.budget.n_threads)[1]
    return Reservoir.of(draws, problem.rows)


def _rounded(found: _Pass, solution: Solution, target: Target) -> bool:
    """True if intervals miss ``tol`` by the rounding of transforms, which is more than that of products."""
    of_transforms = found.leading[2] is not None
    return of_transforms and solution.misses(target) and solution.width > ROUNDING_WIDTH


def _scores(found: _Pass, problem: Problem) -> Scores | None:
    """Projection that makes the scores of all rows, where they are stored in memory."""
    feature_map, rows, budget = found.moments.map, problem.rows, problem.budget
    if not problem.keeps_scores:
        return None
    if found.narrowed is not None and rows.weights is None:
        known = found.narrowed.scores.astype(problem.dtype)
        return lambda axes, constant: known[:, : axes.shape[1]]

    def scores(axes: np.ndarray, constant: np.ndarray) -> np.ndarray:
        out = np.empty((rows.n_samples, axes.shape[1]), dtype=problem.dtype)
        options: dict[str, Any] = {"progress": budget.report, "stage": "scores"}
        return np.asarray(apply(feature_map, rows, axes, budget.n_threads, constant=constant, out=out, **options))

    return scores


def _trace_may_do(feature_map: FeatureMap, target: Target) -> bool:
    """True if the map was chosen for a small residual trace: neither one of pivots, nor one that was given."""
    return target.tol_is_required and not (target.given_map or isinstance(feature_map, PivotMap))


def _summed(
    feature_map: FeatureMap, problem: Problem, residual: np.ndarray | None, *, draws_rows: bool, quick: bool
) -> tuple[Moments, Draws | None]:
    """Moments of one pass, and draws where they are wanted and residuals are computed row by row."""
    options: dict[str, Any] = {
        "n_threads": problem.budget.n_threads,
        "progress": problem.budget.report,
        "quick": quick,
    }
    if draws_rows:
        options |= {"n_draws": DRAWS_PER_PASS + sampled.MIN_DRAWS, "residuals": residual}
        return moments_and_draws(feature_map, problem.rows, problem.rng, **options)
    return feature_moments(feature_map, problem.rows, **options), None


def _quick_may_do(feature_map: FeatureMap, problem: Problem) -> bool:
    """True if quick moments may be accurate enough: a few rows, 16 or 2048, tell where the features hardly vary."""
    if not problem.takes_quick_moments:
        return False
    trial = feature_map.quick_moments()
    if trial is None:
        return False
    trial.update(problem.some_rows(SIZES[0][0]))
    return trial.error <= QUICK_SHARE * problem.target.tol * trial.trace


def _most_pivots(D: int) -> int:
    """Largest number of pivots after one round from D: their places are known from the residuals."""
    return 2 * D + 100


def _may_narrow(found: _Pass, problem: Problem) -> bool:
    """True if rows of the residual can be sampled, and not all are known."""
    known = 0 if found.narrowed is None else found.narrowed.rows
    return found.residual is not None and known < problem.rows.n_samples


def _wanted(found: _Pass, problem: Problem) -> int:
    """Components that the map has of those wanted."""
    c, values = problem.target.n_components, found.leading[0]
    return min(c or 0, int(np.count_nonzero(values > EPS * len(values) * largest_of(values))))


def _bounded(found: _Pass, count: int, problem: Problem, tries: int, *, others: bool = False) -> _Pass:
    """The pass with a bound from the first ``count`` of the draws, or of ``others``; ``tries`` bounds came before."""
    moments, target, draws = found.moments, problem.target, found.draws
    assert draws is not None
    draws = draws.only(slice(DRAWS_PER_PASS, None)) if others else draws
    certain = not target.may_use_sampled_bound  # then it only says what a pass will bring
    failure = failure_of_attempt(target.failure_of("samples") or 0.5, tries)
    sample = sampled.residual_sample(
        moments.map,
        problem.kernel,
        problem.rows,
        moments.residual_trace,
        draws,
        count=count,
        entry_error=problem.entry_error,
        n_threads=problem.budget.n_threads,
    )
    if sample is None:
        return found
    bound = sampled.sampled_bound(sample.total, sample, failure)
    share = _share_of_all(bound.mu / moments.residual_trace, count, failure)
    if bound.failure_probability:
        bound = replace(bound, failure_probability=target.failure_of("samples"))
    left_out = found.left_out if certain else min(bound, found.left_out, key=lambda x: x.mu)
    moved = found.moved or (0.0 if found.residual is None else _moved(found, sample, problem))
    return replace(found, left_out=left_out, share=min(share, found.share), moved=moved)


def _moved(found: _Pass, sample: ScaledSample, problem: Problem) -> float:
    """Estimate of the largest v'Rv of the wanted vectors."""
    moments, (values, axes, _), c = found.moments, found.leading, _wanted(found, problem)
    axes = axes[:, :c] / np.sqrt(values[:c])
    V = moments.map.features(problem.rows.take(sample.index)) @ axes
    V -= second_moment(moments, center=problem.target.center).mean @ axes
    return float(sample.moved(V).diagonal().max(initial=0.0))


def _share_of_all(bound: float, count: int, failure: float) -> float:
    """Estimate of the largest eigenvalue over the trace of all rows, from a bound on it by s draws.

    The largest eigenvalue of a sample lies above that of all rows as Marchenko and Pastur say of a flat spectrum.
    """
    grid = np.linspace(0.0, 1.0, 2000) ** 2
    of_sample = np.interp(bound, sampled.upper_share(grid, count, failure), grid)
    return float(max(np.sqrt(of_sample) - np.sqrt(1.0 / count), 0.1 * np.sqrt(1.0 / count)) ** 2)


def _all_equal(problem: Problem) -> bool:
    """True if the kernel's values tell the two ends of the rows' box apart by no more than their rounding.

    Asked only of maps whose features err by more than rounding. Their kernels fall with the distance along each axis,
    so no two rows differ by more than these ends.
    """
    K = problem.kernel.block(problem.data.box, problem.data.box)
    return bool(K[0, 0] - 2.0 * K[0, 1] + K[1, 1] <= 8 * EPS * K[0, 0])

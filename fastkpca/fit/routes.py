"""The run: candidates in the order of their predicted costs, each within the cost of the next, until one meets tol."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from ..model.plan import Candidate, Plan, readable_size
from ..solve.certificate import dense_certificate
from ..solve.costs import TooDearError
from .dense import solve_dense
from .feature_route import solve_by_features
from .krylov import solve_by_krylov
from .look import COST_FACTOR
from .problem import Problem, check_range
from .solution import PositiveWeightRows, Solution

_logger = logging.getLogger("fastkpca")

NEXT_RUN = 10.0
"""Largest ratio of costs of the run that follows one that missed tol. LAPACK follows where that run misses tol too, if
its intervals, known beforehand, are narrower by this factor."""


def solve(problem: Problem, plan: Plan) -> tuple[Solution, Candidate]:
    """The first candidate that reaches ``tol``, or the last one, and its solution.

    All random bounds of a run share one failure probability: the share of an abandoned candidate is counted, as its
    failure may have led to the next one.
    """
    check_range(problem)
    first, *others = plan.ways
    # no candidate is abandoned for a map whose rounding misses tol
    left = [first, *sorted((x for x in others if not x.misses), key=_price)]
    failed = spent = 0.0
    given_up: dict[str, Any] = {}
    while True:
        way, *left = left
        # other products take as many passes, and as large a share in what may fail
        left = [x for x in left if not x.method == way.method == "krylov"]
        again = way.method == "features" and "features_tried" in given_up
        # the first map had the share of all maps in the failure probability
        asked = _without_random_bounds(problem) if again else problem
        failure = _failure(asked, plan, way)
        try:
            _logger.info("%s: %.2g s and %s predicted", way.label, way.seconds, readable_size(way.memory))
            solution = _run(asked, plan, way, left, failure, spent)
        except TooDearError as error:
            solution, passes = None, error.passes
            spent += error.seconds
        # out here nothing holds the memory of an abandoned run
        if solution is not None:
            if not (solution.misses(problem.target) and _may_follow(problem, solution, way, left)):
                break
            passes, solution = _passes(solution), None
        given_up |= {"features_tried": way.name} if way.method == "features" else {"krylov_tried": passes}
        _logger.info("%s: abandoned; %.2g s were spent, as predicted", way.label, spent)
        failed += failure
        lapack = min((x.seconds for x in left if x.method == "dense"), default=np.inf)
        left = [x for x in left if x.method == "dense" or _price(x) <= lapack - spent]
    certificate = solution.certificate.or_failing(failed)
    return replace(solution, certificate=certificate, info=solution.info | given_up), way


def _price(way: Candidate) -> float:
    """Seconds; a price that is guessed may move."""
    return way.seconds * (COST_FACTOR if way.guessed else 1.0)


def _without_random_bounds(problem: Problem) -> Problem:
    """The same, with bounds that do not fail."""
    return replace(problem, target=replace(problem.target, failure_probability=0.0))


def _run(problem: Problem, plan: Plan, way: Candidate, left: list[Candidate], failure: float, spent: float) -> Solution:
    """Solution by one candidate; ``spent``: seconds of the abandoned ones, which count in its budget."""
    if way.method == "features":
        return solve_by_features(problem, way, min(map(_price, left), default=np.inf) - spent)
    if way.method == "dense":
        return solve_dense(problem, PositiveWeightRows.of(problem.rows))
    # no run is abandoned for a candidate of unknown cost
    known = [x for x in left if not x.guessed]
    prices = [x.seconds * (COST_FACTOR if x.method == "features" else 1.0) for x in known]
    most = min(prices, default=np.inf) - spent
    return solve_by_krylov(problem, PositiveWeightRows.of(problem.rows), way, failure, most, plan.otherwise)


def _failure(problem: Problem, plan: Plan, way: Candidate) -> float:
    """Share of a candidate in the failure probability of the run."""
    target = problem.target
    if way.method == "dense":
        return 0.0
    if way.method == "features":
        of_samples = target.failure_of("samples") + target.failure_of("rows")
        return (of_samples if target.may_use_sampled_bound else 0.0) + target.failure_of("moments")
    both = any(x.method == "features" for x in plan.ways)
    return target.failure_of("products") if both else target.failure_probability


def _may_follow(problem: Problem, solution: Solution, way: Candidate, left: list[Candidate]) -> bool:
    """True if another candidate may find narrower intervals, at no more than a few times the cost.

    A map that misses tol has been abandoned before.
    """
    first, width = float(solution.eigenvalues[0]) if len(solution.eigenvalues) else 0.0, solution.certificate.width
    # a lower bound on LAPACK's rounding: the norm is no smaller than the largest eigenvalue
    ends = np.array([first, 0.0])
    least = dense_certificate(ends, 1, n=problem.data.n_samples, norm=first, entry_error=problem.entry_error).width
    gains = least <= max(problem.target.tol * first, width / NEXT_RUN)
    left = [x for x in left if gains or x.method != "dense"]
    # no time is predicted for a run that nothing is expected to prove
    spent = max(solution.seconds, way.seconds if np.isfinite(way.seconds) else 0.0)
    return way.method == "krylov" and min((x.seconds for x in left), default=np.inf) <= NEXT_RUN * spent


def _passes(solution: Solution) -> int:
    return int(solution.info.get("matrix_passes", solution.info["passes"]))

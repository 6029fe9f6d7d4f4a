"""The run: the chosen candidate, within the predicted cost of the next one, until one meets ``tol``.

1. The chosen candidate runs (`ROUTES`) within what the cheapest other one may take, less what was spent.
2. A run whose counted cost exceeds that, or that misses ``tol``, is abandoned (``BudgetExceededError``), and the
   cheapest of the others follows. Each candidate runs at most once, and LAPACK, where it fits, always ends.
3. All random bounds share one failure probability: the share of an abandoned run is counted, as its failure may have
   led to the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..model.plan import Candidate, Plan, readable_size
from ..solve.certificate import dense_certificate
from ..solve.costs import BudgetExceededError
from . import dense, feature_route, krylov
from .probe import COST_FACTOR
from .problem import Problem, check_range
from .solution import RunLimits, Solution

_logger = logging.getLogger("fastkpca")

ROUTES: dict[str, Callable[[Problem, Candidate, RunLimits], Solution]] = {
    "dense": dense.run,
    "features": feature_route.run,
    "krylov": krylov.run,
}
RUN_FACTORS = {"dense": 1.0, "features": COST_FACTOR, "krylov": 2.0}
"""Factor on the predicted cost of a candidate that bounds the run before it. In four sets of 8 to 20
problems (``random_set.py``) 90 % of fits took at most 2.0 to 3.3 times their prediction; LAPACK takes what was."""
NEXT_RUN = 10.0
"""Largest predicted cost of a next run, over the cost of the block Krylov run that missed tol. LAPACK follows only
where its intervals, predicted beforehand, meet tol or are narrower by this factor."""


def solve(problem: Problem, plan: Plan) -> tuple[Solution, Candidate]:
    """The solution of the first candidate that meets ``tol``, or of the last one, and that candidate."""
    check_range(problem)
    # no candidate is abandoned for a map whose rounding misses tol
    left = sorted((x for x in plan.others if not x.misses), key=_expected_seconds)
    has_features = any(x.method == "features" for x in (plan.chosen, *plan.others))
    candidate, failure_so_far, spent = plan.chosen, 0.0, 0.0
    abandoned: dict[str, Any] = {}
    while True:
        # other products take as many passes, and as large a share in what may fail
        left = [x for x in left if not x.method == candidate.method == "krylov"]
        again = candidate.method == "features" and "features_tried" in abandoned
        # the first map had the share of all maps in the failure probability
        current = _without_random_bounds(problem) if again else problem
        failure = current.target.failure_of_route(candidate.method, others=has_features)
        limit = min(map(_highest_seconds, left), default=np.inf) - spent
        seconds, memory = candidate.seconds, readable_size(candidate.memory)
        _logger.info("%s: %.2g s and %s predicted", candidate.label, seconds, memory)
        try:
            solution = ROUTES[candidate.method](current, candidate, RunLimits(limit, failure, plan.otherwise))
        except BudgetExceededError as error:
            solution, passes = None, error.passes
            spent += error.seconds
        # out here nothing holds the memory of an abandoned run
        if solution is not None:
            if not (solution.misses(problem.target) and _may_follow(problem, solution, candidate, left)):
                break
            spent += solution.seconds
            passes, solution = _passes(solution), None
        tried = candidate.name if candidate.method == "features" else passes
        abandoned[f"{candidate.method}_tried"] = tried
        _logger.info("%s: abandoned; %.2g s were spent so far, as counted", candidate.label, spent)
        failure_so_far += failure
        lapack = min((x.seconds for x in left if x.method == "dense"), default=np.inf)
        candidate, *left = [x for x in left if x.method == "dense" or _expected_seconds(x) <= lapack - spent]
    certificate = solution.certificate.or_failing(failure_so_far)
    return replace(solution, certificate=certificate, info=solution.info | abandoned), candidate


def _expected_seconds(candidate: Candidate) -> float:
    """Seconds that a candidate takes; a lower bound may rise."""
    return candidate.seconds * (COST_FACTOR if candidate.is_lower_bound else 1.0)


def _highest_seconds(candidate: Candidate) -> float:
    """Seconds that a candidate may take, by how far its prediction may be off (`RUN_FACTORS`)."""
    return _expected_seconds(candidate) * RUN_FACTORS[candidate.method]


def _without_random_bounds(problem: Problem) -> Problem:
    """The same, with bounds that do not fail."""
    return replace(problem, target=replace(problem.target, failure_probability=0.0))


def _may_follow(problem: Problem, solution: Solution, candidate: Candidate, left: list[Candidate]) -> bool:
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
    spent = max(solution.seconds, candidate.seconds if np.isfinite(candidate.seconds) else 0.0)
    return candidate.method == "krylov" and min((x.seconds for x in left), default=np.inf) <= NEXT_RUN * spent


def _passes(solution: Solution) -> int:
    return int(solution.info.get("matrix_passes", solution.info["passes"]))

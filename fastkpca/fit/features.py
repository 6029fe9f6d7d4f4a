"""The features route: one pass over the rows for the moments of a feature map; scores are a second pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Moments
from ..base.rounding import EPS
from ..maps.passes import feature_moments
from ..model.plan import Plan
from ..solve.moments import kernel_trace
from .components import Axes, components, largest_of, leading_of
from .krylov import solve_by_products
from .problem import Problem
from .solution import Solution

__all__ = ["solve_by_features"]


def solve_by_features(problem: Problem, plan: Plan) -> Solution:
    """Components of the feature map that the plan chose; by products where it misses too much and those are allowed."""
    target, way = problem.target, plan.chosen
    with parallel.blas_threads():
        moments, leading = _moments(way.offer.build(problem.data.sample), problem)
        rounds = 0
        while rounds < 3 and _misses(moments, leading, problem):
            # a sample can miss a small far cluster; all rows know where the residual lies
            if not target.forced and plan.krylov_is_cheaper(problem.data.n_samples, 3 * moments.map.n_features // 2):
                break
            more = _more_pivots(moments, leading, problem, way.room.features)
            if more is moments.map:
                break
            del moments, leading  # of the map before: the next takes their room
            moments, leading = _moments(more, problem)
            rounds += 1
    if _misses(moments, leading, problem) and not target.forced and target.c is not None and plan.krylov:
        found = solve_by_products(problem, plan)
        return replace(found, info=found.info | {"features_tried": plan.name})
    found = components(
        moments,
        leading,
        target,
        problem.kernel,
        n_samples=problem.data.n_samples,
        rank=problem.rank,
        sample=problem.data.sample,
    )
    return replace(found, info=found.info | {"radius": problem.data.radius})


def _moments(feature_map: FeatureMap, problem: Problem) -> tuple[Moments, Axes]:
    budget = problem.budget
    moments = feature_moments(feature_map, problem.rows, n_threads=budget.n_threads, progress=budget.report)
    if moments.trace <= moments.indefinite and _all_equal(problem):  # all that could be found is the map's errors
        return moments, (np.zeros(1), np.zeros((feature_map.n_features, 1)), None)
    return moments, leading_of(moments, problem.target, problem.rank, budget.memory)


def _all_equal(problem: Problem) -> bool:
    """Whether the kernel's values tell the two ends of the rows' box apart by no more than their rounding.

    Asked only of maps whose features err by more than rounding. Their kernels fall with the distance along each axis,
    so no two rows differ by more than these ends.
    """
    K = problem.kernel.block(problem.data.box, problem.data.box)
    return bool(K[0, 0] - 2.0 * K[0, 1] + K[1, 1] <= 8 * EPS * K[0, 0])


def _misses(moments: Moments, leading: Axes, problem: Problem) -> bool:
    """Whether the map leaves more than ``tol`` of the largest eigenvalue out."""
    return moments.residual_trace > problem.target.tol * largest_of(leading[0])


def _more_pivots(moments: Moments, leading: Axes, problem: Problem, most: int) -> FeatureMap:
    """The map with pivots added, at most so many; the same map where it can't have more."""
    feature_map = moments.map
    if problem.target.given_map:
        return feature_map
    return feature_map.refined(
        problem.rows,
        tol=0.5 * problem.target.tol * largest_of(leading[0]) / kernel_trace(moments),
        max_features=min(most, 2 * feature_map.n_features + 100),
        rng=problem.rng,
        n_threads=problem.budget.n_threads,
    )

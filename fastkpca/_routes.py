"""The routes from a prepared problem to components: dense, features, krylov. One function each, one result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg

from . import certificate, execute
from ._plan import Plan
from .certificate import Certificate
from .errors import ComponentsWarning
from .features.passes import apply, feature_moments
from .model import FeatureProjector, SampleProjector
from .moments import principal_axes
from .protocol import Kernel, Summary
from .rows import Rows
from .summation.exact import ExactSummation, gram_matrix

__all__ = ["Problem", "Solution", "solve"]


@dataclass(frozen=True)
class Problem:
    """A validated, resolved kernel PCA problem."""

    rows: Rows
    kernel: Kernel
    data: Summary
    c: int | float | None
    tol: float
    max_passes: int
    memory_limit: int | None
    n_threads: int
    rng: np.random.Generator
    dtype: np.dtype
    n_columns: int
    report: execute.Progress | None = None


@dataclass(frozen=True)
class Solution:
    """Components with their certificate; ``total`` is the interval of tr(Kc).

    ``score`` holds the scores where the route has them anyway (float64), else they are a pass of the projector.
    """

    eigenvalues: np.ndarray
    certificate: Certificate
    total: tuple[float, float]
    projector: FeatureProjector | SampleProjector
    info: dict[str, Any]
    score: np.ndarray | None = field(default=None, repr=False)


def solve(problem: Problem, plan: Plan) -> Solution:
    """Run the route that the plan chose."""
    route = {"dense": _dense, "features": _features, "krylov": _krylov}[plan.method]
    return route(problem, plan)


def _dense(problem: Problem, plan: Plan) -> Solution:
    """The centred Gram matrix, whole, and LAPACK; the reference for every other route."""
    n, kernel = problem.data.n_samples, problem.kernel
    K = gram_matrix(kernel, problem.rows, n_threads=problem.n_threads, progress=problem.report)
    trace, largest = float(np.trace(K)), float(np.abs(K).max(initial=0.0))
    means = K.mean(axis=0)
    grand = means.mean()
    for start in range(0, n, 512):  # in place: no second N x N
        K[start : start + 512] -= means
        K[start : start + 512] -= means[start : start + 512, None]
        K[start : start + 512] += grand
    total = float(np.trace(K))
    asked = problem.c
    subset = {"subset_by_index": [n - asked, n - 1], "driver": "evr"} if isinstance(asked, int) and asked < n else {}
    eigenvalues, vectors = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False, **subset)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    entry_error = kernel.entry_error(problem.data, np.dtype(np.float64))
    rounding = certificate.dense_rounding(n, largest, float(np.abs(eigenvalues).max(initial=0.0)), entry_error)
    kept = _kept(eigenvalues, rounding, total, problem)
    proof = certificate.dense_certificate(eigenvalues, kept, rounding, complete=not subset)
    eigenvalues, vectors = eigenvalues[:kept], vectors[:, :kept]
    signs = _signs(vectors[problem.data.sample_index])
    score = vectors * (signs * np.sqrt(eigenvalues))
    projector = _sample_projector(problem, score / eigenvalues, means)
    info = {"method": "dense", "passes": 1, "entries_trusted": entry_error is None, "trace": trace}
    return Solution(eigenvalues.copy(), proof, (total - rounding * n, total + rounding * n), projector, info, score)


def _features(problem: Problem, plan: Plan) -> Solution:
    """One pass over the rows for the moments of the features; scores are a second pass."""
    offer = plan.chosen.offer
    assert offer is not None
    feature_map = offer.build(problem.data.sample)
    with execute.blas_threads():
        moments = feature_moments(feature_map, problem.rows, n_threads=problem.n_threads, progress=problem.report)
        whole = not isinstance(problem.c, int)
        eigenvalues, axes = principal_axes(moments, None if whole else problem.c)
    trace = moments.trace
    uncentered = trace + moments.count * float(moments.mean @ moments.mean)
    proof = certificate.feature_certificate(
        eigenvalues,
        trace=trace,
        uncentered_trace=uncentered,
        residual_trace=moments.residual_trace,
        defect=moments.count * feature_map.defect,
        rounding=feature_map.rounding,
        n_features=feature_map.n_features,
    )
    total = (trace, trace + moments.residual_trace)
    noise = float(eigenvalues[0] - proof.eigenvalue_bounds[0, 0]) if len(eigenvalues) else 0.0
    kept = _kept(eigenvalues, noise, total[1], problem)
    eigenvalues, axes = eigenvalues[:kept].copy(), np.ascontiguousarray(axes[:, :kept])
    constant = moments.mean @ axes
    sample = feature_map.apply(problem.data.sample, axes) - constant
    axes = axes * _signs(sample)
    info = {"method": "features", "passes": 0, "n_features": feature_map.n_features, "map": plan.name}
    projector = FeatureProjector(feature_map, np.ascontiguousarray(axes), moments.mean)
    return Solution(eigenvalues, proof.first(kept), total, projector, info)


def _kept(eigenvalues: np.ndarray, floor: float, total: float, problem: Problem) -> int:
    """How many components to keep; eigenvalues at most ``floor`` are zero to rounding, or negative."""
    positive = int(np.sum(eigenvalues > floor))
    if positive == 0:
        raise ValueError(
            f"no component of {problem.kernel!r} carries variance on these {problem.data.n_samples} rows: the centred "
            "Gram matrix is zero to rounding (or negative); check that the rows of X differ, and the kernel's parameters"
        )
    asked = problem.c
    if asked is None:
        return positive
    if isinstance(asked, int):
        if positive < asked:
            why = "zero to rounding" if problem.kernel.positive_semidefinite else "zero to rounding, or negative"
            warnings.warn(
                f"{asked} components asked for, {positive} returned: the other eigenvalues are {why} "
                f"(at most {floor:.2g}), and a component without variance has no direction",
                ComponentsWarning,
                stacklevel=5,
            )
        return min(asked, positive)
    share = np.cumsum(eigenvalues[:positive]) / total
    enough = np.flatnonzero(share >= asked * (1 - 1e-12))
    if len(enough) == 0:
        warnings.warn(
            f"c={asked}: the {positive} components found explain {100 * share[-1]:.6g} % for certain, less than asked "
            "for; a smaller tol or method='dense' would keep more",
            ComponentsWarning,
            stacklevel=5,
        )
        return positive
    return int(enough[0]) + 1


def _signs(sample: np.ndarray) -> np.ndarray:
    """Signs that make the largest |score| of the sample positive; near-ties go to the first row on every route."""
    size = np.abs(sample)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return np.where(sample[first, np.arange(sample.shape[1])] < 0, -1.0, 1.0)


def _sample_projector(problem: Problem, coeff: np.ndarray, means: np.ndarray) -> SampleProjector:
    X = problem.rows.all()
    if np.shares_memory(X, problem.rows.source) if isinstance(problem.rows.source, np.ndarray) else False:
        X = X.copy()  # the model must not follow later changes of the user's array
    return SampleProjector(X, coeff.astype(problem.dtype, copy=False), means)

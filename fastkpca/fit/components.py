"""Components and their certificate from the moments of features: of one pass over the rows, or of several models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Kernel, Moments, Summary
from ..base.rounding import EPS
from ..maps.uncentred import second_moment
from ..model.feature_projector import FeatureProjector
from ..solve.certificate import Bound, Certificate, Eigenpairs, FeatureSums, feature_certificate, feature_trace
from ..solve.moments import entry_defect, kernel_trace, leading_axes
from .narrowing import Narrowed
from .solution import Solution, number_kept, signs_of
from .target import Target

SOLVER_SHARE = 0.25
"""Fraction of tol for the eigensolver of a moment held as an operator; the residual of the map has the remainder."""

ROUNDING_WIDTH = 1e-11
"""Width of an interval over the largest eigenvalue that rounding alone explains: exact products would not be better."""


Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Scores (N, c) of all rows, less a constant (c,), for these axes (D, c)."""

QUICK_SHARE, QUICK_DIGITS = 1e-2, 1e-4
"""Errors of quick moments that will do: over tol times the largest eigenvalue, and over the smallest that is kept."""

Axes = tuple[np.ndarray, np.ndarray, Eigenpairs | None]
"""Eigenvalues, axes (D, c), and for moments held as an operator the `Eigenpairs` with their certificate."""


def leading_of(
    moments: Moments,
    target: Target,
    rank: int,
    memory: float,
    rng: np.random.Generator | int = 0,
    n_threads: int = 1,
    more: int = 0,
    *,
    seconds: float = np.inf,
    product_seconds: float = 0.0,
) -> Axes:
    """Leading eigenpairs of the moments of rows that have at most ``rank`` directions, and ``more`` of these.

    BudgetExceededError where they would cost more than ``seconds``, as ``solve.moments.leading_axes`` has it.
    """
    return leading_axes(
        second_moment(moments, center=target.center),
        target.c,
        tol=SOLVER_SHARE * target.tol,
        rank=rank,
        memory_limit=memory,
        seconds=seconds,
        product_seconds=product_seconds,
        failure=target.failure_of("moments"),
        more=more,
        rng=rng,
        n_threads=n_threads,
    )


def accurate_enough(moments: Moments, leading: Axes, target: Target) -> bool:
    """True if the error of quick moments is far below ``tol``, and below each eigenvalue."""
    values, c = leading[0], target.n_components
    if not moments.error:
        return True
    if c is None or len(values) < c:
        return False
    return moments.error <= min(QUICK_SHARE * target.tol * float(values[0]), QUICK_DIGITS * float(values[c - 1]))


def components(
    moments: Moments,
    leading: Axes,
    target: Target,
    kernel: Kernel,
    *,
    n_samples: int,
    rank: int,
    left_out: Bound | None = None,
    cross_error: float = 0.0,
    data: Summary | None = None,
    scores: Scores | None = None,
    reference: np.ndarray | None = None,
    narrowed: Narrowed | None = None,
    n_threads: int = 1,
) -> Solution:
    """Components and their certificate from the moments of all rows; nothing is read but by ``scores``.

    ``left_out`` bounds the largest eigenvalue of the map's residual, where a bound below its trace is known;
    ``cross_error`` the norm of its products with features that were added later (``fit.stream``). Signs come from the
    scores of the sample of ``data``, or from the ``reference`` axes (D, k). ``scores`` makes those of all rows, where
    they are wanted now. ``narrowed``: eigenvalues and intervals of second order, if any.
    """
    feature_map, kept = moments.map, moments
    moments = second_moment(kept, center=target.center)
    eigenvalues, axes, solved = leading
    eigenvalues, axes = eigenvalues[:rank], axes[:, :rank]  # what a map's defect adds beyond is not of theirs
    floor = feature_map.rounding**2 * kernel_trace(moments) + 4 * EPS * len(eigenvalues) * largest_of(eigenvalues)
    floor += moments.error
    sums = feature_sums(moments, n_samples, left_out, cross_error)
    unseen, total = sums.left_out.mu + sums.defect_norm + cross_error, moments.trace + moments.residual_trace
    most = None if narrowed is None else narrowed.axes.shape[1]
    n_kept, fewer = number_kept(eigenvalues, floor, total, target, kernel, n_samples, unseen, most)
    certificate = feature_certificate(
        eigenvalues,
        n_kept,
        sums,
        solved=None if solved is None else solved.certificate,
        solved_residual=0.0 if solved is None else solved.residual,
    )
    eigenvalues, axes = eigenvalues[:n_kept].copy(), np.ascontiguousarray(axes[:, :n_kept])
    if narrowed is not None:
        eigenvalues, axes = narrowed.found.values[:n_kept].copy(), narrowed.axes[:, :n_kept]
        certificate = narrowed.found.certificate.first(n_kept)
    axes, score = _with_signs(axes, moments, data, scores, reference, n_threads)
    # where the intervals are certain, as after a pass, the model reports no bound that may fail
    may_fail = sums.left_out.failure_probability > certificate.failure_probability
    info = {
        "method": "features",
        "passes": 0,
        "n_features": feature_map.n_features,
        "residual_trace": moments.residual_trace,
        "residual_norm": moments.residual_trace if may_fail else sums.left_out.mu,
    }
    info |= {} if narrowed is None else {"residual_rows": narrowed.rows}
    return Solution(
        eigenvalues,
        certificate,
        feature_trace(sums),
        FeatureProjector(feature_map, np.ascontiguousarray(axes), moments.mean),
        info,
        score=score,
        fewer=fewer,
        reached=f"with {feature_map.n_features} features ",
        help=_help(certificate, eigenvalues, feature_map, target, n_samples),
        moments=kept,
        left_out=sums.left_out,
    )


def _with_signs(
    axes: np.ndarray,
    moments: Moments,
    data: Summary | None,
    scores: Scores | None,
    reference: np.ndarray | None,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray | None]:
    """The axes with their signs, and the scores of all rows where they are wanted now."""
    score, constant = None, moments.mean @ axes
    if scores is not None and data is not None:
        score = scores(axes, constant)
        signs = signs_of(score.take(data.sample_index, axis=0))
        _flip(score, signs.astype(score.dtype), n_threads)
        axes = axes * signs
    elif data is not None:
        axes = axes * signs_of(moments.map.applied(axes)(data.sample) - constant)
    if reference is not None:  # as the component of the reference that it resembles most
        axes = axes * signs_of(reference.T @ axes)
    return axes, score


def _flip(score: np.ndarray, signs: np.ndarray, n_threads: int) -> None:
    parts = parallel.shares(len(score), parallel.FLOPS_PER_NUMBER * score.size)

    def task(i: int) -> None:
        score[parts[i]] *= signs

    parallel.each(task, len(parts), n_threads=n_threads)


def feature_sums(moments: Moments, n_samples: int, left_out: Bound | None, cross_error: float = 0.0) -> FeatureSums:
    return FeatureSums(
        n=n_samples,
        trace=moments.trace,
        residual_trace=moments.residual_trace,
        kernel_trace=kernel_trace(moments),
        entry_defect=entry_defect(moments),
        rounding=moments.map.rounding,
        weight_sum=moments.count,
        residual=left_out,
        moment_error=moments.error + cross_error,
    )


def largest_of(eigenvalues: np.ndarray) -> float:
    """The largest, or zero: rows that are all equal leave none."""
    return max(float(eigenvalues[0]), 0.0) if len(eigenvalues) else 0.0


def _help(
    certificate: Certificate, eigenvalues: np.ndarray, feature_map: FeatureMap, target: Target, n_samples: int
) -> str:
    """Advice on how to get narrower intervals."""
    if target.max_features is not None:
        return "more features, or a larger tol, would do"
    if target.given_map:
        return "the map was made for other rows: make the first model with a smaller tol, of rows that span all of them"
    # of the map, with any number of features
    by_rounding = 2 * certificate.rounding > 0.8 * target.tol * eigenvalues[0]
    if by_rounding and certificate.width < ROUNDING_WIDTH * eigenvalues[0]:
        return "that is rounding in float64; a larger tol helps"
    more = "" if by_rounding or feature_map.n_features >= n_samples else ", a larger memory_limit allows more features"
    return f"method='auto' goes on with exact products where moments need not be kept{more}"

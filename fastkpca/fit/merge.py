"""Models that add up: made on shards or over time with one feature map, merged from their moments.

The centred second moment of the features of two sets of rows is the sum of theirs, and a term of rank one for the
distance of the means; counts, traces and what the map leaves out add as well. So a merged model is the one that a
single pass over all the rows would have made with that map, to rounding, and so is its certificate. Where the bound on
what the map leaves out comes from samples, the bounds of the parts add up, and so do their failure probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.checks import Randomness, check_c, check_failure_probability, check_tol
from ..base.protocol import FeatureMap, Kernel, Moments, Summary
from ..base.room import DEFAULT_MEMORY
from ..kernels import guarded
from ..maps.passes import check_moments, feature_moments, moments_and_draws
from ..model.plan import Plan
from ..model.result import KPCAModel
from ..model.rows import float_type, new_rows
from ..model.shared_map import check_mergeable, feature_projector, map_for_rows, widest_map
from ..rows.summary import summarize_for
from ..rows.view import Rows
from ..solve.certificate import Bound
from ..solve.sampled import draws_worth, residual_bound
from .components import components, largest_of, leading_of
from .target import Target


def kpca_merge(
    first: KPCAModel,
    *others: KPCAModel,
    c: int | None = None,
    tol: float = 1e-6,
    failure_probability: float | None = None,
) -> KPCAModel:
    """The model of all the rows of several models that share a feature map.

    Parameters
    ----------
    first, *others : KPCAModel
        Made with ``keep_moments=True``, all but one of them with ``like=`` that one.
    c : int, optional
        Number of components; by default as many as the model with the most.
    tol : float
        Width of an eigenvalue's interval, relative to the largest, beyond which there is a warning.
    failure_probability : float, optional
        With which bounds that this call rests on random numbers may fail: 1e-6 by default. It adds to the
        probabilities with which the bounds of the models fail.

    Returns
    -------
    KPCAModel
        Keeps its moments, so it can be merged further. It has no scores: ``kpca_project`` makes them.

    Raises
    ------
    ValueError
        A model has no moments, or they are of different feature maps.

    Notes
    -----
    Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> first = fk.kpca(X[:600], "polynomial", 3, degree=2, keep_moments=True)
    >>> second = fk.kpca(X[600:], like=first, keep_moments=True)
    >>> fk.kpca_merge(first, second).n_samples
    1000
    """
    models = check_mergeable([first, *others])
    moments = feature_projector(models[0]).map.new_moments()
    for model in models:
        assert model._moments is not None
        moments = moments.merge(model._moments)
    weighted = any(model.weight_sum is not None for model in models)
    return _solved(
        models,
        moments,
        n_samples=sum(model.n_samples for model in models),
        weight_sum=moments.count if weighted else None,
        left_out=_sum_of_bounds([_left_out(model) for model in models]),
        c=max(model.n_components for model in models) if c is None else c,
        tol=tol,
        failure=check_failure_probability(failure_probability),
    )


def kpca_update(
    model: KPCAModel,
    X: Any,
    *,
    sample_weight: Any = None,
    c: int | None = None,
    tol: float = 1e-6,
    failure_probability: float | None = None,
    n_threads: int | None = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> KPCAModel:
    """The model with more rows: one pass over these, whatever the number of those that it was made from.

    Parameters
    ----------
    model : KPCAModel
        Made with ``keep_moments=True``; it is not changed.
    X : array_like (m, d)
        More rows, one at least; anything that ``kpca`` takes.
    sample_weight : array_like (m,), optional
        Their weights.
    c : int, optional
        Number of components; by default as many as the model has.
    tol : float
    failure_probability : float, optional
        As in ``kpca_merge``.
    n_threads : int, optional
        As in ``kpca``, like ``progress``.
    progress : bool or callable

    Returns
    -------
    KPCAModel

    Raises
    ------
    ValueError
        The model has no moments; or the rows lie where the bounds of its feature map don't reach.
    """
    (model,) = check_mergeable([model])
    failure = check_failure_probability(failure_probability)
    kernel, rows, _ = new_rows(model, X, purpose="kpca_update", sample_weight=sample_weight, finite=False)
    threads = parallel.threads_for(kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        randomness = Randomness(0)
        rows, data = summarize_for(
            kernel,
            rows,
            centred=model.center,
            randomness=randomness,
            n_threads=threads,
            shift_by=model.shift,
            scale=False if model.scale is None else model.scale,
        )
        feature_map = map_for_rows(model, kernel, data)
        sampled = model._left_out is not None and model._left_out[1] > 0.0
        if sampled:
            moments, left_out = _with_sample(
                feature_map, kernel, rows, data, randomness.generator, 0.5 * failure, n_threads=threads, progress=report
            )
        else:
            moments, left_out = feature_moments(feature_map, rows, n_threads=threads, progress=report), None
    assert model._moments is not None
    total = feature_map.new_moments().merge(model._moments).merge(moments)
    radius = max(data.radius, float(model.info.get("radius", 0.0)))
    more = replace(
        model,
        projector=replace(feature_projector(model), map=feature_map),
        dtype=float_type(rows.dtype),
        info=model.info | {"radius": radius},
    )
    weighted = rows.weights is not None or model.weight_sum is not None
    return _solved(
        [model, more],
        total,
        n_samples=model.n_samples + rows.n_samples,
        weight_sum=total.count if weighted else None,
        left_out=_sum_of_bounds([_left_out(model), left_out or Bound(moments.residual_trace, "trace")]),
        c=model.n_components if c is None else c,
        tol=tol,
        failure=failure,
    )


def _with_sample(
    feature_map: FeatureMap,
    kernel: Kernel,
    rows: Rows,
    data: Summary,
    rng: np.random.Generator,
    failure: float,
    **options: Any,
) -> tuple[Moments, Bound]:
    """The moments of more rows, and a bound on what the map leaves out of them, from a sample."""
    moments, draws = moments_and_draws(feature_map, rows, rng, **options)
    trace = Bound(moments.residual_trace, "trace")
    if draws is None or not moments.residual_trace > 0.0:
        return moments, trace
    count = draws_worth(rows.n_samples, feature_map.n_features)
    error = kernel.entry_error(data, np.dtype(np.float64)) or 0.0
    bound = residual_bound(feature_map, kernel, rows, trace.mu, draws, count=count, entry_error=error, failure=failure)
    return moments, min(trace, bound, key=lambda bound: bound.mu)


def _left_out(model: KPCAModel) -> Bound:
    """On the largest eigenvalue of what the map leaves out of a model's rows."""
    assert model._moments is not None
    trace = model._moments.residual_trace
    if model._left_out is None or model._left_out[0] >= trace:
        return Bound(trace, "trace")
    return Bound(model._left_out[0], "sampled", model._left_out[1])


def _sum_of_bounds(bounds: Sequence[Bound]) -> Bound:
    """For the rows of all: with R_i = B_i B_i' what is left out of the rows of part i, and B that of all rows,
    lambda_max(B B') = lambda_max(sum B_i' B_i) <= sum lambda_max(R_i). Any of the bounds may fail."""
    failure = min(sum(bound.failure_probability for bound in bounds), 1.0)
    return Bound(sum(bound.mu for bound in bounds), "sampled" if failure else "trace", failure)


def _solved(
    models: list[KPCAModel],
    moments: Moments,
    *,
    left_out: Bound,
    n_samples: int,
    weight_sum: float | None,
    c: int | None,
    tol: float,
    failure: float,
) -> KPCAModel:
    """The model of merged moments."""
    first = models[0]
    target = Target(
        check_c(c, n_samples),
        check_tol(tol),
        "features",
        given_map=True,
        failure_probability=failure,
        center=first.center,
    )
    kernel, rank = guarded(first.kernel), n_samples - first.center
    moments.map = widest_map(models)
    check_moments(moments)
    with parallel.blas_threads():
        leading = leading_of(moments, target, rank, DEFAULT_MEMORY)
    certain = moments.residual_trace <= target.tol * largest_of(leading[0])
    solution = components(
        moments,
        leading,
        target,
        kernel,
        n_samples=n_samples,
        rank=rank,
        left_out=None if certain else left_out,
        reference=feature_projector(first).axes,
    )
    reason = f"merged from the moments of {len(models)} models"
    plan = Plan(first.plan.method, first.plan.name, reason, first.plan.candidates)
    radius = max(float(model.info.get("radius", 0.0)) for model in models)
    info = solution.info | {"radius": radius, "merged": len(models)}
    return replace(solution, info=info).model(
        plan,
        kernel,
        float(n_samples) if weight_sum is None else weight_sum,
        target=target,
        keep_moments=True,
        n_samples=n_samples,
        n_features=first.n_features,
        shift=first.shift,
        scale=first.scale,
        dtype=np.result_type(*(model.dtype for model in models)),
        weight_sum=weight_sum,
        feature_names=next((model.feature_names for model in models if model.feature_names), None),
    )

"""Models that add up: made on shards or over time with one feature map, merged from their moments.

The centred second moment of the features of two sets of rows is the sum of theirs, and a term of rank one for the
distance of the means; counts, traces and what the map leaves out add as well. So a merged model is the one that a
single pass over all the rows would have made with that map, to rounding, and so is its certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.checks import check_c, check_tol
from ..base.protocol import Moments
from ..base.room import DEFAULT_MEMORY
from ..kernels import guarded
from ..maps.passes import check_moments, feature_moments
from ..model.plan import Plan
from ..model.result import KPCAModel, check_model
from ..model.rows import float_type, new_rows
from ..model.shared_map import check_mergeable, feature_projector, map_for_rows, widest_map
from .components import components, leading_of
from .problem import summarize_for
from .target import Target

__all__ = ["kpca_merge", "kpca_update"]


def kpca_merge(first: KPCAModel, *others: KPCAModel, c: int | None = None, tol: float = 1e-6) -> KPCAModel:
    """The model of all the rows of several models that share a feature map.

    Parameters
    ----------
    first, *others : KPCAModel
        Made with ``keep_moments=True``, all but one of them with ``like=`` that one.
    c : int, optional
        Number of components; by default as many as the model with the most.
    tol : float
        Width of an eigenvalue's interval, relative to the largest, beyond which there is a warning.

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
    models = (first, *others)
    check_mergeable(models)
    moments = feature_projector(first).map.new_moments()
    for model in models:
        assert model._moments is not None
        moments = moments.merge(model._moments)
    weighted = any(model.weight_sum is not None for model in models)
    return _solved(
        models,
        moments,
        n_samples=sum(model.n_samples for model in models),
        weight_sum=moments.count if weighted else None,
        c=max(model.n_components for model in models) if c is None else c,
        tol=tol,
    )


def kpca_update(
    model: KPCAModel,
    X: Any,
    *,
    sample_weight: Any = None,
    c: int | None = None,
    tol: float = 1e-6,
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
        As in ``kpca``, like the following.
    n_threads : int, optional
    progress : bool or callable

    Returns
    -------
    KPCAModel

    Raises
    ------
    ValueError
        The model has no moments; or the rows lie where the bounds of its feature map don't reach.
    """
    model = check_model(model)
    check_mergeable([model])
    kernel, rows, _ = new_rows(model, X, purpose="kpca_update", sample_weight=sample_weight, finite=False)
    threads = parallel.threads_for(kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        rng = np.random.default_rng(0)
        rows, data = summarize_for(
            kernel,
            rows,
            centred=model.center,
            rng=rng,
            n_threads=threads,
            shift_by=model.shift,
            scale=False if model.scale is None else model.scale,
        )
        feature_map = map_for_rows(model, kernel, data)
        moments = feature_moments(feature_map, rows, n_threads=threads, progress=report)
    assert model._moments is not None
    total = feature_map.new_moments().merge(model._moments).merge(moments)
    more = replace(model, projector=replace(feature_projector(model), map=feature_map), dtype=float_type(rows.dtype))
    more.info["radius"] = max(data.radius, float(model.info.get("radius", 0.0)))
    weighted = rows.weights is not None or model.weight_sum is not None
    return _solved(
        (model, more),
        total,
        n_samples=model.n_samples + rows.n_samples,
        weight_sum=total.count if weighted else None,
        c=model.n_components if c is None else c,
        tol=tol,
    )


def _solved(
    models: tuple[KPCAModel, ...],
    moments: Moments,
    *,
    n_samples: int,
    weight_sum: float | None,
    c: int | None,
    tol: float,
) -> KPCAModel:
    """The model of merged moments."""
    first = models[0]
    target = Target(check_c(c, n_samples), check_tol(tol), "features", given_map=True, center=first.center)
    kernel, rank = guarded(first.kernel), n_samples - first.center
    moments.map = widest_map(models)
    check_moments(moments)
    with parallel.blas_threads():
        leading = leading_of(moments, target, rank, DEFAULT_MEMORY)
    solution = components(
        moments, leading, target, kernel, n_samples=n_samples, rank=rank, reference=feature_projector(first).axes
    )
    reason = f"merged from the moments of {len(models)} models"
    plan = Plan(first.plan.method, first.plan.name, reason, first.plan.candidates)
    radius = max(float(model.info.get("radius", 0.0)) for model in models)
    info = solution.info | {"radius": radius, "merged": len(models)}
    return replace(solution, info=info).model(
        plan,
        kernel,
        float(n_samples) if weight_sum is None else weight_sum,
        center=first.center,
        keep_moments=True,
        n_samples=n_samples,
        n_features=first.n_features,
        shift=first.shift,
        scale=first.scale,
        dtype=np.result_type(*(model.dtype for model in models)),
        weight_sum=weight_sum,
        feature_names=next((model.feature_names for model in models if model.feature_names), None),
    )

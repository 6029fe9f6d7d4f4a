"""Models that add up: made on shards or over time with one feature map, merged from their moments.

The centred second moment of the features of two sets of rows is the sum of theirs, and a term of rank one for the
distance of the means; counts, traces and what the map leaves out add as well. So a merged model is the one that a
single pass over all the rows would have made with that map, to rounding, and so is its certificate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.checks import check_c, check_tol
from ..base.protocol import FeatureMap, Kernel, Moments, Summary
from ..base.room import DEFAULT_MEMORY
from ..kernels import guarded
from ..maps.passes import check_moments, feature_moments
from ..model.plan import Plan
from ..model.projectors import FeatureProjector
from ..model.result import KPCAModel, check_model
from ..model.rows import new_rows
from ..model.stored import restore_map
from ..rows.summary import summarize
from .components import components, leading_of
from .target import Target

__all__ = ["kpca_merge", "kpca_update", "map_for_rows", "map_of"]

OF_THE_ROWS = {"radius", "entry_error", "margin", "predicted", "reached", "bounds"}
"""What a map's state says of the rows that it was made for, and not of the features themselves."""


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
    for i, model in enumerate(models):
        _check_mergeable(model, first, i)
    moments = _projector(first).map.new_moments()
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
    check_model(model)
    _check_mergeable(model, model, 0)
    kernel, rows, _ = new_rows(model, X, purpose="kpca_update", sample_weight=sample_weight, finite=False)
    threads = parallel.threads_for(kernel, n_threads)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        rows, data = summarize(
            rows,
            shift=kernel.translation is not None,
            rng=np.random.default_rng(0),
            n_threads=threads,
            shift_by=model.shift,
        )
        feature_map = map_for_rows(model, kernel, data)
        moments = feature_moments(feature_map, rows, n_threads=threads, progress=report)
    assert model._moments is not None
    total = feature_map.new_moments().merge(model._moments).merge(moments)
    more = replace(model, projector=replace(_projector(model), map=feature_map), dtype=_dtype(rows.dtype))
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


# One map for other rows -------------------------------------------------------------------------------------------


def map_of(model: Any) -> FeatureMap:
    """The feature map of a model that is given as ``like``; raises where it has none."""
    if not isinstance(model, KPCAModel):
        raise TypeError(f"like is a {type(model).__name__}; give a model that kpca() or load() returned")
    if not isinstance(model.projector, FeatureProjector):
        raise ValueError(
            f"like was made with method={model.plan.method!r}, which has no feature map to share; make the first model "
            "with method='features' (or keep_moments=True)"
        )
    return model.projector.map


def map_for_rows(model: KPCAModel, kernel: Kernel, data: Summary) -> FeatureMap:
    """The model's features with error bounds that hold for these rows too.

    Raises
    ------
    ValueError
        There are no such bounds.
    """
    feature_map = map_of(model)
    return feature_map.widened(kernel, data, float(model.info.get("radius", 0.0)))


def _state(feature_map: FeatureMap) -> tuple[dict, dict[str, np.ndarray]]:
    try:
        return feature_map.state()
    except NotImplementedError:
        return {}, {}


def _restored(model: KPCAModel, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
    """The model's feature map with another header."""
    n_features = map_of(model).n_features
    return restore_map(model.kernel, header, arrays, n_features=n_features, n_columns=model.n_features)


def _widest(headers: list[dict]) -> dict:
    """Of maps with equal features the bounds that hold for the rows of all."""
    wide = dict(headers[0])
    for key, join in (("radius", max), ("entry_error", max), ("margin", min)):
        if key in wide:
            wide[key] = join(header[key] for header in headers)
    if "bounds" in wide:
        wide["bounds"] = [max(bounds) for bounds in zip(*(header["bounds"] for header in headers))]
    if "parts" in wide:
        wide["parts"] = [_widest(list(parts)) for parts in zip(*(header["parts"] for header in headers))]
    return wide


# ------------------------------------------------------------------------------------------------------------------


def _projector(model: KPCAModel) -> FeatureProjector:
    assert isinstance(model.projector, FeatureProjector)
    return model.projector


def _dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _identity(feature_map: FeatureMap) -> str:
    """A digest of the features alone."""

    def plain(header: Any) -> Any:
        if isinstance(header, dict):
            return {key: plain(value) for key, value in header.items() if key not in OF_THE_ROWS}
        return [plain(x) for x in header] if isinstance(header, list) else header

    header, arrays = _state(feature_map)
    if not header:
        return f"object {id(feature_map)}"
    found = hashlib.sha256(json.dumps(plain(header), sort_keys=True, default=repr).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def _check_mergeable(model: Any, first: KPCAModel, i: int) -> None:
    which = f"model {i}"
    if not isinstance(model, KPCAModel):
        raise TypeError(f"{which} is a {type(model).__name__}; give models that kpca() or load() returned")
    if model._moments is None:
        raise ValueError(f"{which} has no moments to add up; make it with kpca(..., keep_moments=True)")
    if model is first:
        return
    help_ = "make the others with like=the first"
    if guarded(model.kernel) != guarded(first.kernel):
        raise ValueError(f"{which} is of {model.kernel!r}, model 0 of {first.kernel!r}; {help_}")
    if model.n_features != first.n_features or not np.array_equal(model.shift, first.shift):
        raise ValueError(f"{which} measures its rows from another origin (shift) than model 0; {help_}")
    if None not in (model.feature_names, first.feature_names) and model.feature_names != first.feature_names:
        raise ValueError(f"{which} is of columns of other names, or in another order, than model 0; {help_}")
    if _identity(_projector(model).map) != _identity(_projector(first).map):
        raise ValueError(f"{which} has another feature map than model 0; {help_}")


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
    states = [_state(_projector(model).map) for model in models]
    wide = _widest([header for header, _ in states])
    widest = _projector(first).map if wide == states[0][0] else _restored(first, wide, states[0][1])
    target = Target(check_c(c, n_samples), check_tol(tol), "features", given_map=True)
    kernel, rank = guarded(first.kernel), n_samples - 1
    moments.map = widest  # type: ignore[misc]
    check_moments(moments)
    with parallel.blas_threads():
        leading = leading_of(moments, target, rank, DEFAULT_MEMORY)
    solution = components(
        moments, leading, target, kernel, n_samples=n_samples, rank=rank, reference=_projector(first).axes
    )
    reason = f"merged from the moments of {len(models)} models"
    plan = Plan(first.plan.method, first.plan.name, reason, first.plan.candidates)
    radius = max(float(model.info.get("radius", 0.0)) for model in models)
    info = solution.info | {"radius": radius, "merged": len(models)}
    return replace(solution, info=info).model(
        plan,
        kernel,
        float(n_samples) if weight_sum is None else weight_sum,
        keep_moments=True,
        n_samples=n_samples,
        n_features=first.n_features,
        shift=first.shift,
        dtype=np.result_type(*(model.dtype for model in models)),
        weight_sum=weight_sum,
        feature_names=next((model.feature_names for model in models if model.feature_names), None),
    )

"""One feature map for several models: taken from a model for other rows, and compared where models are merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.protocol import FeatureMap, Kernel, Summary
from ..kernels import guarded
from ..maps.pivots import PivotMap
from .feature_projector import FeatureProjector
from .reading import restore_map
from .result import KPCAModel, check_model

OF_THE_ROWS = {"radius", "entry_error", "margin", "predicted", "reached", "bounds"}
"""The part of a map's state that describes its training rows, not its features."""


def feature_projector(model: KPCAModel) -> FeatureProjector:
    """The projector of a model that is given as ``like``.

    Raises
    ------
    TypeError, ValueError
        It is no model; or it has no feature map.
    """
    model = check_model(model, "like")
    if not isinstance(model.projector, FeatureProjector):
        raise ValueError(
            f"like was made with method={model.plan.method!r}, which has no feature map to share; make the first model "
            "with method='features' (or keep_moments=True)"
        )
    return model.projector


def map_for_rows(model: KPCAModel, kernel: Kernel, data: Summary) -> FeatureMap:
    """The model's features, with error bounds that hold for these rows too; ValueError where there are none."""
    return feature_projector(model).map.widened(kernel, data, float(model.info.get("radius", 0.0)))


def check_mergeable(models: Sequence[Any]) -> list[KPCAModel]:
    """The models, or those of estimators; TypeError or ValueError unless all have moments, and of one feature map."""
    checked = [check_model(model, f"model {i}") for i, model in enumerate(models)]
    widest = 0  # two maps that were grown apart may both begin with the features of a third
    for i, model in enumerate(checked):
        which = f"model {i}" if len(checked) > 1 else "the model"
        if model._moments is None:
            raise ValueError(f"{which} has no moments to add up; make it with kpca(..., keep_moments=True)")
        difference = _difference(checked[widest], model)
        if difference:
            raise ValueError(f"{which} {difference} model {widest}; make the others with like=the first")
        if feature_projector(model).map.n_features > feature_projector(checked[widest]).map.n_features:
            widest = i
    return checked


def _difference(first: KPCAModel, other: KPCAModel) -> str:
    """Reason why the moments of two models cannot be added; "" if they can."""
    if other is first:
        return ""
    if guarded(other.kernel) != guarded(first.kernel):
        return f"is of {other.kernel!r}, not of {first.kernel!r} as"
    if other.n_features != first.n_features or not np.array_equal(other.shift, first.shift):
        return "measures its rows from another origin (shift) than"
    ones = np.ones(first.n_features)
    scales = [ones if x.scale is None else x.scale for x in (other, first)]
    if not np.array_equal(scales[0], scales[1]):
        return "divides its columns by another scale than"
    if other.center != first.center:
        return f"was made with center={other.center}, unlike"
    if None not in (other.feature_names, first.feature_names) and other.feature_names != first.feature_names:
        return "is of columns of other names, or in another order, than"
    if not _same_features(feature_projector(other), feature_projector(first)):
        return "has another feature map than"
    return ""


def _same_features(one: FeatureProjector, other: FeatureProjector) -> bool:
    """True if two maps have equal features; the rows of their bounds may differ."""

    def of_the_features(header: Any) -> Any:
        if isinstance(header, dict):
            return {key: of_the_features(value) for key, value in header.items() if key not in OF_THE_ROWS}
        return [of_the_features(x) for x in header] if isinstance(header, list) else header

    if isinstance(one.map, PivotMap) and isinstance(other.map, PivotMap):  # one may have pivots that were added later
        k = min(one.map.n_features, other.map.n_features)
        pairs = ((one.map.pivots[:k], other.map.pivots[:k]), (one.map.factor[:k, :k], other.map.factor[:k, :k]))
        return all(np.array_equal(x, y) for x, y in pairs)
    state, others = one.map_state(), other.map_state()
    if one.map is other.map or state is None or others is None:
        return one.map is other.map
    equal = of_the_features(state[0]) == of_the_features(others[0]) and state[1].keys() == others[1].keys()
    return equal and all(np.array_equal(array, others[1][name]) for name, array in state[1].items())


def widest_map(models: Sequence[KPCAModel]) -> FeatureMap:
    """The feature map that the models share, with error bounds that hold for the rows of all of them; the one with the
    most pivots, where some were added."""
    models = sorted(models, key=lambda model: -feature_projector(model).map.n_features)
    first = models[0]
    projector = feature_projector(first)
    state = projector.map_state()
    if state is None:
        return projector.map
    header, arrays = state
    widest = _widest([header] + [feature_projector(model).map.state()[0] for model in models[1:]])
    if widest == header:
        return projector.map
    return restore_map(first.kernel, widest, arrays, n_features=projector.map.n_features, n_columns=first.n_features)


def _widest(headers: list[dict]) -> dict:
    """The header with the bounds that hold for the rows of all."""
    wide = dict(headers[0])
    for key, join in (("radius", max), ("entry_error", max), ("margin", min)):
        if key in wide:
            wide[key] = join(header[key] for header in headers)
    if "bounds" in wide:
        wide["bounds"] = [max(bounds) for bounds in zip(*(header["bounds"] for header in headers))]
    if "parts" in wide:
        wide["parts"] = [_widest(list(parts)) for parts in zip(*(header["parts"] for header in headers))]
    return wide

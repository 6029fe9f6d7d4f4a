"""The values of a model file, each checked (ModelFileError) before any memory of the size it states is taken."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ..base.protocol import FeatureMap, Kernel, Moments
from ..base.stored import Record, refusing
from ..kernels import guarded
from ..maps.stored import restored, stored_size
from .feature_projector import FeatureProjector
from .sample_projector import SampleProjector

Projector: TypeAlias = FeatureProjector | SampleProjector


def read_weights(record: Record, n: int) -> tuple[float | None, np.ndarray | None]:
    """(sum of the weights, weights): None where the model has no weights, or does not hold them."""
    weight_sum = None if record.get("weight_sum") is None else record.number("weight_sum", above=1.0)
    weights = record.array_or_none("sample_weight", (n,), least=0.0)
    if weights is None:
        return weight_sum, None
    if weight_sum is None or not abs(float(weights.sum()) - weight_sum) <= 1e-9 * weight_sum:
        raise record.refuse(f"the sum of its weights is {float(weights.sum()):.9g}, and it states {weight_sum}")
    return weight_sum, weights


def read_kind(record: Record) -> dict[str, Any]:
    kind = record.text("bound_kind", ("guaranteed", "probabilistic"))
    guaranteed = kind == "guaranteed"
    probability = record.number("failure_probability")
    if not (probability == 0.0 if guaranteed else 0.0 < probability <= 1.0):
        raise record.refuse(f"its intervals are {kind}, with a failure probability of {probability!r}")
    return {"bound_kind": kind, "failure_probability": probability}


def read_total_variance(record: Record) -> dict[str, Any]:
    high = record.number("total_variance")
    ends = record.list("total_variance_bounds", 2)
    total = Record({"low": ends[0], "high": ends[1]}, {}, "the total variance")
    if not total.number("low") <= total.number("high") == high:
        raise record.refuse("the ends of its total variance are in the wrong order")
    return {"total_variance": high, "total_variance_bounds": (total.number("low"), high)}


def read_score(record: Record, n: int, c: int, dtype: np.dtype) -> np.ndarray | None:
    score = record.array_or_none("score", (n, c))
    if score is not None and score.dtype != dtype:
        raise record.refuse(f"its scores are {score.dtype}, the model is {dtype}")
    return score


def read_projector(
    record: Record, kernel: Kernel, shape: tuple[int, int, int], weights: np.ndarray | None, *, center: bool = True
) -> Projector:
    n, d, c = shape
    if "map" not in record.header:
        X, coeff, means = record.array("X", (n, d)), record.array("coeff", (n, c)), record.array("column_means", (n,))
        if coeff.dtype != np.float64:
            raise record.refuse(f"its coefficients are {coeff.dtype}, not float64")
        # orthonormal vectors over sqrt(eigenvalue), minus their means
        norms = np.sqrt(np.einsum("ij,ij->j", coeff, coeff, dtype=np.float64) * record.arrays["eigenvalues"])
        weighted = record.get("weight_sum") is not None
        if not weighted and not norms.max() < 1.01:
            raise record.refuse("its coefficients are too large for its eigenvalues")
        if weighted and weights is None:
            raise record.refuse("the array sample_weight is missing")
        if not center and means.any():
            raise record.refuse("it is not centred, and its column means are not zero")
        return SampleProjector(X, coeff, means, weights, center)
    axes = record.array("axes", (None, c))
    mean = record.array("mean", (len(axes),))
    if not center and mean.any():
        raise record.refuse("it is not centred, and its mean is not zero")
    gram = axes.T @ axes
    if "residual_rows" in read_info(record.get("info")):  # of second order: longer, by the map's residual
        if not (np.isfinite(gram).all() and np.linalg.eigvalsh(gram)[0] > 0.5):
            raise record.refuse("its axes are not independent")
    elif not np.abs(gram - np.eye(c)).max() < 1e-6:
        raise record.refuse("its axes are not orthonormal")
    arrays = record.arrays_under("map.")
    return FeatureProjector(
        restore_map(kernel, record.get("map"), arrays, n_features=len(axes), n_columns=d), axes, mean
    )


def read_moments(record: Record, projector: Projector) -> Moments | None:
    if "moments" not in record.header:
        return None
    if not isinstance(projector, FeatureProjector):
        raise record.refuse("it has moments and no feature map")
    arrays = record.arrays_under("moments.")
    moments = Record(record.get("moments"), arrays, "the moments")
    moments.keys(("count", "residual_trace", *["error"] * ("error" in moments.header)))
    count = moments.number("count", above=0.0)
    moments.number("residual_trace", least=0.0)
    if "error" in moments.header:
        moments.number("error", least=0.0)
    if abs(count - (record.header["weight_sum"] or record.header["n_samples"])) > 1e-9 * count:
        raise moments.refuse(f"they are of {count:.9g} rows, the model of {record.header['n_samples']}")
    D = projector.map.n_features
    # compared with what is in the file, before memory of that size is taken
    if "scatter" in arrays:
        moments.array("scatter", (D, D))
    with refusing("the moments"):
        return projector.map.new_moments().restore(dict(moments.header), arrays)


def read_left_out(record: Record) -> tuple[float, float] | None:
    """None for models without moments: all that is known is a trace."""
    if record.get("left_out") is None:
        return None
    bound, failure = record.list("left_out", 2)
    pair = Record({"bound": bound, "failure": failure}, {}, "the bound on what the feature map leaves out")
    if "moments" not in record.header:
        raise record.refuse("it bounds what its feature map leaves out, and has no moments")
    return pair.number("bound", least=0.0), pair.number("failure", least=0.0, most=1.0)


def read_added(record: Record, projector: Projector) -> tuple[tuple[int, float], ...]:
    """Blocks of features that were added; none in most models."""
    blocks, least = [], 0
    for pair in record.list("added"):
        if not (isinstance(projector, FeatureProjector) and isinstance(pair, list | tuple) and len(pair) == 2):
            raise record.refuse("its features were not added in blocks with a bound each")
        own = Record({"first": pair[0], "bound": pair[1]}, {}, "the features that were added")
        first = own.whole("first", least=least, most=projector.map.n_features - 1)
        blocks.append((first, own.number("bound", least=0.0)))
        least = first + 1
    return tuple(blocks)


def restore_map(
    kernel: Kernel, header: Any, arrays: dict[str, np.ndarray], *, n_features: int, n_columns: int
) -> FeatureMap:
    """The feature map of a model file; ModelFileError unless it has D features of d columns.

    Both are compared before memory of that size is taken.
    """
    record = Record(header, arrays, "the feature map")
    size = stored_size(kernel.unguarded(), header, arrays, n_columns, n_features)
    if size is not None and size != n_features:
        raise record.refuse(f"it has {size} features, the model {n_features}")
    with refusing("the feature map"):
        feature_map = restored(guarded(kernel), dict(record.header), arrays)
        if feature_map.n_features != n_features:
            raise record.refuse(f"it has {feature_map.n_features} features, the model {n_features}")
    return feature_map


def read_info(info: Any) -> dict:
    record = Record(info, {}, "the info of the model")
    for key, value in record.header.items():
        if isinstance(value, dict) or (isinstance(value, list) and not _numbers(value)):
            raise record.refuse(f"{key[:60]} is neither a value nor a list of numbers")
    if "seconds" in record.header:
        record.number("seconds", least=0.0)
    if "lags" in record.header:
        record.whole("lags", least=0, most=1 << 20)
    return dict(record.header)


def _numbers(value: Any) -> bool:
    """Numbers, or lists of them, as in a history of (pass, width)."""
    return all(map(_numbers, value)) if isinstance(value, list) else type(value) in (int, float)

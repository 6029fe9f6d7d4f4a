"""What a file of a model says, checked before a model is made of it: types, ranges, and shapes that fit together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fastkpca import KPCAModel
from fastkpca.base.stored import Record, refusing
from fastkpca.kernels import FeatureMap, Kernel, Precomputed

from .functions import ComponentFunction, FeatureFunction, KernelFunction, SampleFunction

__all__ = ["ARRAYS", "check_values", "restored_function"]

ARRAYS: dict[str, dict[str, str]] = {
    "KLDAModel": {"counts": "C", "class_means": "Ck", "within": "kk", "quotients": "k"},
    "KBDAModel": {"quotients": "k"},
    "KICAModel": {"unmixing": "cd", "mixing": "dc", "mean": "d"},
    "PerceptronModel": {},
    "LogisticModel": {"intercept": "k"},
    "RegressionModel": {"weights": "ck", "intercept": "k", "explained_variance": "k"},
}
"""By class, the arrays of a model and their dimensions: a letter is the same length wherever it stands. C are the
classes, k the values of the function at a row."""
_NUMBERS = {"regularization": 0.0, "log_likelihood": -math.inf, "contrast": -math.inf}  # with the least
_WHOLE = ("n_samples", "n_positive")
_FLAGS = ("converged", "averaged", "single")
_TEXTS = {"penalty": ("coefficients", "norm", "components"), "multiclass": ("ovr", "joint", "two")}


def check_values(name: str, needed: list[str], values: dict[str, Any]) -> None:
    """Raise ModelFileError where ``values``, with the function restored, are not those of a model of that class."""
    own = _record(values, f"a {name}")
    present = dict.fromkeys(values)
    Record(present, {}, own.what).keys(needed)
    lengths: dict[str, int] = {}
    if "classes" in needed:
        lengths["C"] = _n_classes(own)
    if "function" in needed:
        lengths["k"] = len(values["function"].constant)
    for key, dimensions in ARRAYS[name].items():
        shape = tuple(lengths.get(letter) for letter in dimensions)
        array = own.array(key, shape, kind="iu", least=1) if key == "counts" else own.array(key, shape)
        for letter, length in zip(dimensions, array.shape):
            if lengths.setdefault(letter, length) != length or not length:
                raise own.refuse(f"the array {key} has shape {array.shape}, which does not fit the others")
    for key in needed:
        if key in _NUMBERS:
            own.number(key, least=_NUMBERS[key])
        elif key in _WHOLE:
            own.whole(key, least=1, most=1 << 62)
        elif key in _FLAGS:
            own.flag(key)
        elif key in _TEXTS:
            own.text(key, _TEXTS[key])
    if name in ("PerceptronModel", "LogisticModel") and lengths["k"] != (1 if lengths["C"] == 2 else lengths["C"]):
        raise own.refuse(f"its function has {lengths['k']} values at a row, its classes are {lengths['C']}")
    if "kernel" in needed and not isinstance(values["kernel"], Kernel):
        raise own.refuse("its kernel is none")
    if "mistakes" in needed and not (own.list("mistakes") and all(type(n) is int for n in own.list("mistakes"))):
        raise own.refuse("mistakes are not whole numbers")
    if "info" in needed:
        info = Record(own.get("info"), {}, "what the model says of its making")
        if name != "KICAModel":
            info.text("method")


def restored_function(described: Any, kernel: Any) -> KernelFunction:
    """The function that a file describes, tried on a row; raises ModelFileError."""
    own = Record(described, {}, "the function")
    own.keys(("class", "fields"))
    kind, found = own.text("class", tuple(_MADE)), own.get("fields")
    if not isinstance(found, Mapping):
        raise own.refuse("it has no fields")
    function, row = _MADE[kind](_record(found, "the function"), kernel)
    with refusing("the function"):
        finite = np.isfinite(function(row, 1)).all()
    if not finite:
        raise own.refuse("its values at a row are not finite")
    return function


def _record(values: Mapping[str, Any], what: str) -> Record:
    arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
    return Record({key: value for key, value in values.items() if key not in arrays}, arrays, what)


def _n_classes(own: Record) -> int:
    """The labels, as a list of strings or an array: at least two, each once."""
    labels = own.arrays["classes"].tolist() if "classes" in own.arrays else own.list("classes")
    strings = "classes" in own.arrays or all(isinstance(label, str) for label in labels)
    if not strings or ("classes" in own.arrays and own.arrays["classes"].ndim != 1):
        raise own.refuse("its classes are neither strings nor an array of labels")
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise own.refuse("its classes are fewer than two, or one is there twice")
    return len(labels)


def _of_features(own: Record, kernel: Any) -> tuple[FeatureFunction, np.ndarray]:
    own.keys(("map",))
    own.names(("shift", "weights", "constant"))
    if not isinstance(own.get("map"), FeatureMap):
        raise own.refuse("its map is none")
    shift, weights = own.array("shift", (None,)), own.array("weights", (own.get("map").n_features, None))
    constant = own.array("constant", (weights.shape[1],))
    return FeatureFunction(own.get("map"), shift, weights, constant), shift[None, :]


def _of_samples(own: Record, kernel: Any) -> tuple[SampleFunction, np.ndarray]:
    own.keys(())
    own.names(("X", "coefficients", "constant"))
    if not isinstance(kernel, Kernel):
        raise own.refuse("it has no kernel")
    matrix = isinstance(kernel, Precomputed)  # its rows stay with the user
    X = own.array("X", (0, 0) if matrix else (None, None))
    coefficients = own.array("coefficients", (None if matrix else len(X), None))
    constant = own.array("constant", (coefficients.shape[1],))
    if not coefficients.size:
        raise own.refuse("it has no coefficients")
    return SampleFunction(kernel, X, coefficients, constant), np.zeros((1, len(coefficients))) if matrix else X[:1]


def _of_components(own: Record, kernel: Any) -> tuple[ComponentFunction, np.ndarray]:
    own.keys(("components",))
    own.names(("weights", "constant"))
    model = own.get("components")
    if not isinstance(model, KPCAModel):
        raise own.refuse("its components are no model of kpca")
    weights = own.array("weights", (model.n_components, None))
    constant = own.array("constant", (weights.shape[1],))
    return ComponentFunction(model, weights, constant), model.shift[None, :]


_MADE: dict[str, Callable[[Record, Any], tuple[KernelFunction, np.ndarray]]] = {
    "FeatureFunction": _of_features,
    "SampleFunction": _of_samples,
    "ComponentFunction": _of_components,
}

"""Model files for the results of this package: fastkpca's format, JSON and raw arrays under one checksum, no pickle."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

import fastkpca as fk
from fastkpca import files
from fastkpca.errors import ModelFileError
from fastkpca.kernels import kernel_from_state, kernel_state
from fastkpca.model import restore_map

from ._functions import ComponentFunction, FeatureFunction, SampleFunction
from .components import RegressionModel
from .kbda import KBDAModel
from .klda import KLDAModel
from .logistic import LogisticModel
from .perceptron import PerceptronModel

__all__ = ["load", "save"]

DISTRIBUTION = "fastkpca-kernels-contrib"
MODELS = {x.__name__: x for x in (KLDAModel, KBDAModel, PerceptronModel, LogisticModel, RegressionModel)}
FUNCTIONS = {x.__name__: x for x in (FeatureFunction, SampleFunction, ComponentFunction)}
TRAINING = {"gamma", "alpha"}
"""What grows with the training rows and no prediction needs: not written, None or empty in what comes back."""


def save(model: Any, path: Any, *, overwrite: bool = False) -> None:
    """Write what a function of this package returned to a file.

    Coefficients of the training rows (``gamma``, ``alpha``) are left out where prediction does not need them.

    Parameters
    ----------
    model : object
        What ``klda``, ``kbda``, ``kica``, a perceptron, logistic regression or regression on components returned.
    path : str or Path
    overwrite : bool
        False: an existing file is left alone.

    Raises
    ------
    FileExistsError
        ``overwrite`` is False and the file is there.
    TypeError
        Not a model of this package, or its labels are neither numbers nor strings nor truth values.
    ValueError
        The kernel has no registered name under which ``load`` could find it.
    """
    if type(model).__name__ not in MODELS:
        raise TypeError(f"model is a {type(model).__name__}; give what klda(), kernel_logistic(), ... returned")
    header: dict[str, Any] = {"contrib": type(model).__name__, "values": {}}
    arrays: dict[str, np.ndarray] = {}
    for item in fields(model):
        value = getattr(model, item.name)
        if item.name in TRAINING or item.name == "components":
            continue
        if item.name == "function":
            _put_function(value, header, arrays)
        elif item.name == "kernel":
            header["kernel"] = kernel_state(value)
        elif item.name == "classes":
            if value.dtype.kind not in "fiubU":
                raise TypeError(
                    f"the labels are of type {value.dtype}; a file keeps numbers, strings, truth values: fit on those"
                )
            if value.dtype.kind == "U":
                header["labels"] = value.tolist()
            else:
                arrays["classes"] = value
        elif isinstance(value, np.ndarray):
            arrays[item.name] = value
        else:
            header["values"][item.name] = list(value) if isinstance(value, tuple) else value
    files.write(path, header, arrays, overwrite=overwrite)


def load(path: Any, *, plugins: bool | str | Collection[str] = ()) -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : str or Path
    plugins : bool, str or collection of str
        Kernels of which other distributions than this one may be imported, as for ``fastkpca.load``.

    Returns
    -------
    object
        Of the type that was saved.

    Raises
    ------
    ModelFileError
        The file is truncated, altered, of an unknown version, or none of these models; or its kernel is not allowed.
    """
    header, arrays = files.read(path)
    if not isinstance(plugins, bool):
        plugins = [*([plugins] if isinstance(plugins, str) else plugins), DISTRIBUTION]
    try:
        cls = MODELS[header["contrib"]]
        values = dict(header["values"])
        if "kernel" in header:
            values["kernel"] = kernel_from_state(header["kernel"], plugins=plugins or DISTRIBUTION)
        values["function"] = function = _get_function(header, arrays, plugins or DISTRIBUTION)
        if "labels" in header:
            values["classes"] = np.array(header["labels"])
        for item in fields(cls):
            if item.name in arrays:
                values[item.name] = arrays[item.name]
        if cls is PerceptronModel:
            values["alpha"] = np.empty((0, function.constant.shape[0]))
            values["mistakes"] = tuple(values["mistakes"])
        if cls is LogisticModel:
            values["gamma"] = None
        if cls is RegressionModel:
            values["components"] = function.components
        return cls(**values)
    except (KeyError, TypeError) as error:
        raise ModelFileError(
            f"{path} is a fastkpca file but not a model of kernels_contrib: {error!r} is missing or wrong"
        ) from error


def _put_function(function: Any, header: dict, arrays: dict) -> None:
    header["function"] = type(function).__name__
    arrays["f.constant"] = function.constant
    if isinstance(function, FeatureFunction):
        header["map"], own = function.map.state()
        arrays.update({f"map.{name}": array for name, array in own.items()})
        arrays.update({"f.shift": function.shift, "f.weights": function.weights})
    elif isinstance(function, SampleFunction):
        rows = function.X.toarray() if sp.issparse(function.X) else function.X
        arrays.update({"f.X": rows, "f.coefficients": function.coefficients})
    else:
        header["kpca"], own = function.components.state()
        arrays.update({f"kpca.{name}": array for name, array in own.items()})
        arrays["f.weights"] = function.weights


def _get_function(header: dict, arrays: dict, plugins: Any) -> Any:
    cls: Any = FUNCTIONS[header["function"]]
    if cls is ComponentFunction:
        own = {name[5:]: array for name, array in arrays.items() if name.startswith("kpca.")}
        components = fk.KPCAModel.from_state(header["kpca"], own, plugins=plugins)
        return cls(components, arrays["f.weights"], arrays["f.constant"])
    kernel = kernel_from_state(header["kernel"], plugins=plugins)
    if cls is SampleFunction:
        return cls(kernel, arrays["f.X"], arrays["f.coefficients"], arrays["f.constant"])
    own = {name[4:]: array for name, array in arrays.items() if name.startswith("map.")}
    shift, weights = arrays["f.shift"], arrays["f.weights"]
    restored = restore_map(kernel, header["map"], own, n_features=len(weights), n_columns=len(shift))
    return cls(restored, shift, weights, arrays["f.constant"])

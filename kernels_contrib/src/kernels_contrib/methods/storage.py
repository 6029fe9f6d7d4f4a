"""Model files for the results of this package, through ``fastkpca.state``: JSON and raw arrays under one checksum."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from fastkpca.errors import ModelFileError
from fastkpca.state import load_state, save_state

from .components import RegressionModel
from .kbda import KBDAModel
from .kica import KICAModel
from .klda import KLDAModel
from .logistic import LogisticModel
from .perceptron import PerceptronModel
from .stored import check_values, restored_function

__all__ = ["load", "save"]

MODELS = {x.__name__: x for x in (KLDAModel, KBDAModel, KICAModel, PerceptronModel, LogisticModel, RegressionModel)}
KIND = "kernels_contrib:"
DISTRIBUTION = "fastkpca-kernels-contrib"
LEFT_OUT = {"gamma", "alpha", "sources"}
"""What grows with the training rows and no prediction needs: not written, None or empty in what comes back."""


def save(model: Any, path: Any, *, overwrite: bool = False) -> None:
    """Write what a function of this package returned to a file.

    Values of the training rows (``gamma``, ``alpha``, ``sources``) are left out where prediction does not need them.

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
    name = type(model).__name__
    if name not in MODELS:
        raise TypeError(f"model is a {name}; give what klda(), kernel_logistic(), ... returned")
    values: dict[str, Any] = {}
    for item in fields(model):
        value = getattr(model, item.name)
        if item.name in LEFT_OUT or item.name == "components":
            continue
        if item.name == "function":
            value = _function_values(value)
        elif item.name == "classes":
            if value.dtype.kind not in "fiubU":
                raise TypeError(
                    f"the labels are of type {value.dtype}; a file keeps numbers, strings, truth values: fit on those"
                )
            value = value.tolist() if value.dtype.kind == "U" else value
        values[item.name] = value
    save_state(path, KIND + name, values, overwrite=overwrite)


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
    if plugins is not True:  # the kernels of this package, whatever else
        others = [] if plugins is False else [plugins] if isinstance(plugins, str) else plugins
        plugins = [DISTRIBUTION, *others]
    kind, values = load_state(path, plugins=plugins)
    cls = MODELS.get(kind.removeprefix(KIND)) if kind.startswith(KIND) else None
    if cls is None:
        raise ModelFileError(f"{path} holds a {kind!r}, not a model of kernels_contrib")
    name = cls.__name__
    needed = [item.name for item in fields(cls) if item.name not in LEFT_OUT and item.name != "components"]
    try:
        if "function" in needed:
            values["function"] = restored_function(values.get("function"), values.get("kernel"))
        check_values(name, needed, values)
    except ModelFileError as error:
        raise ModelFileError(f"{path} is not a whole model of kernels_contrib: {error}") from error
    if "classes" in values:
        values["classes"] = np.asarray(values["classes"])
    if cls is KICAModel:
        values["sources"] = np.empty((0, len(values["unmixing"])))
    if cls is PerceptronModel:
        values["alpha"] = np.empty((0, len(values["function"].constant)))
        values["mistakes"] = tuple(values["mistakes"])
    if cls is LogisticModel:
        values["gamma"] = None
    if cls is RegressionModel:
        values["components"] = values["function"].components
    return cls(**values)


def _function_values(function: Any) -> dict[str, Any]:
    own = {item.name: getattr(function, item.name) for item in fields(function) if item.name != "kernel"}
    if "X" in own and sp.issparse(own["X"]):
        own["X"] = own["X"].toarray()
    return {"class": type(function).__name__, "fields": own}

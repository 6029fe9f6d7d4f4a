"""Doors: public calls that compare rows with others, by the columns of both. They are found by walking the packages.

A door is a call and the name of one argument that takes rows. What else the call needs is made by the names of its
parameters: ``GIVEN`` has the values. A new call whose parameters are not all known there fails the test that walks,
which says so.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import kernels_contrib.sklearn as contrib_estimators
import numpy as np
import pandas as pd
from kernels_contrib.methods.base import FittedMethod

import fastkpca as fk
import fastkpca.sklearn as estimators
import kernels_contrib
from fastkpca import methods, plot

N = 40
RNG = np.random.default_rng(5)
ROWS = RNG.standard_normal((N, 3)) + [0.0, 0.5, 1.0]
FRAME = pd.DataFrame(ROWS, columns=["temp", "flow", "load"])
SECOND = FRAME + 0.1
VIEW = pd.DataFrame(ROWS[:, :2] ** 2, columns=["red", "blue"])

GIVEN: dict[str, Any] = {
    "y": np.arange(N) % 2,
    "t": np.sin(ROWS[:, 0]),
    "positive": np.arange(N) % 2 == 0,
    "Z": lambda model: np.zeros((len(SECOND), model.n_components)),
    "limits": lambda model: fk.kpca_limits(model, FRAME, confidence=0.9),
    "kernels": "gaussian",
    "c": lambda model: 2,
    "number": 2,
    "permutations": 19,
    "n_threads": 1,
}
"""Values of parameters that are needed, by name, or functions of the model that make them; and of a few more."""


ABSTRACT = {"KernelEstimator", "KernelTransformer"}
NO_DOORS = {"in_units_of_rows"}
"""Methods whose rows are not the user's: they are in the coordinates of the model."""


@dataclass(frozen=True)
class Door:
    """``call(rows)`` gives rows to the argument of a call that compares them with ``FRAME`` (or ``VIEW``)."""

    name: str
    call: Callable[[Any], Any]
    frame: pd.DataFrame
    of_scikit_learn: bool = False

    def __str__(self) -> str:
        return self.name


def documented(function: Any) -> dict[str, str]:
    """What the docstring says of each parameter."""
    text = inspect.getdoc(function) or ""
    text = "\n".join(re.findall(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z][\w ]*\n---|\Z)", text, re.DOTALL))
    found: dict[str, str] = {}
    for part in re.split(r"\n(?=\S)", text):
        names, _, said = part.partition(" : ")
        listed, shapes = names.replace("*", "").split(", "), re.findall(r"\(\w+, \w+\)", said.partition("\n")[0])
        if len(shapes) == len(listed) > 1:  # "X, Y : array_like (N, d), (N, e)"
            found |= {name: f"array_like {shape}" for name, shape in zip(listed, shapes)}
        else:
            found |= dict.fromkeys(listed, said)
    return found


def takes_rows(function: Any) -> dict[str, str]:
    """The parameters that take rows, and the letter that their number of columns has in the docstring."""
    said, found = documented(function), {}
    for name in inspect.signature(function).parameters:
        shape = re.search(r"array[-_]like.*\((?!c,)\w+, (d|e|n_features)\)", said.get(name, ""), re.DOTALL)
        if shape:
            found[name] = shape[1]
        elif (
            name in ("X", "landmarks", "train")
            and name not in said
            and "Rows" not in str(inspect.signature(function).parameters[name].annotation)
        ):
            found[name] = "d"
    return found


def arguments(function: Any, model: Any = None) -> dict[str, Any]:
    """What a call needs beside rows and the model."""
    parameters = inspect.signature(function).parameters.values()
    needed = [x.name for x in parameters if x.default is x.empty and x.kind not in (x.VAR_KEYWORD, x.VAR_POSITIONAL)]
    more = {"permutations", *["limits"] * (function is fk.kpca_monitor)}
    known = [x.name for x in parameters if x.name in more]
    values = {name: GIVEN[name] for name in [*needed, *known] if name in GIVEN}
    return {name: value(model) if callable(value) else value for name, value in values.items()}


def functions() -> Iterator[tuple[str, Any]]:
    """Every public function of both packages, and each method that an entry point names."""
    modules = [fk, methods, plot]
    for found in pkgutil.walk_packages(kernels_contrib.__path__, "kernels_contrib."):
        modules.append(importlib.import_module(found.name))
    seen: set[int] = set()
    for module in modules:
        for name in getattr(module, "__all__", ()):
            function = getattr(module, name)
            if inspect.isfunction(function) and id(function) not in seen:
                seen.add(id(function))
                yield f"{module.__name__}.{name}", function
    for name in (entry.name for entry in fk.list_methods()):
        function = fk.get_method(name)
        if id(function) not in seen:
            seen.add(id(function))
            yield f"method {name}", function


def of_rows(function: Any, X: Any, **more: Any) -> dict[str, Any]:
    """The first rows of a call, and where it needs second ones these too: a view where its columns have another
    letter."""
    rows, parameters = takes_rows(function), inspect.signature(function).parameters
    given = {"X": X}
    for name, letter in rows.items():
        if name != "X" and parameters[name].default is inspect.Parameter.empty:
            given[name] = VIEW if letter != rows["X"] else SECOND
    return given | more


@cache
def results() -> tuple[tuple[str, Any], ...]:
    """What every method returns that an entry point names, and models of kpca: all of ``FRAME``."""
    found: list[tuple[str, Any]] = [
        ("kpca", fk.kpca(FRAME, "gaussian", 3, sigma=2.0)),
        ("kpca of other rows", fk.kpca(FRAME**2, "gaussian", 3, sigma=2.0)),
        ("kpca features", fk.kpca(FRAME, "polynomial", 3, degree=2, method="features", keep_moments=True)),
    ]
    for name in (entry.name for entry in fk.list_methods()):
        method = fk.get_method(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = method(**of_rows(method, FRAME), **arguments(method))
        found.append((name, result))
        found += [(f"{name}.{x}", part) for x, part in vars(result).items() if isinstance(part, FittedMethod)]
    return tuple(found)


def methods_of(result: Any) -> Iterator[tuple[str, Any]]:
    for name, method in inspect.getmembers(type(result), inspect.isfunction):
        if not name.startswith("_") and "self" in inspect.signature(method).parameters:
            yield name, getattr(result, name)


def _fitted(kinds: str) -> list[tuple[str, Any]]:
    """The results of these classes."""
    return [(of, x) for of, x in results() if any(re.search(rf"\b{c.__name__}\b", kinds) for c in type(x).__mro__[:-1])]


def of_functions() -> Iterator[Door]:
    for name, function in functions():
        rows, said = takes_rows(function), documented(function)
        models = [x for x in inspect.signature(function).parameters if _fitted(said.get(x, "").partition("\n")[0])]
        fitted = _fitted(said[models[0]].partition("\n")[0]) if models else []
        for argument in rows:
            others = {k: v for k, v in of_rows(function, FRAME).items() if k in rows and k != argument}
            compared = models or any(k != argument and rows[k] == rows[argument] for k in others)
            if not compared or (argument == "X" and not models):
                continue
            doors = []
            for of, model in fitted if models and (models != ["like"] or argument == "X") else [("", None)]:
                of_model = {} if model is None else {models[0]: model}

                def call(given: Any, function=function, argument=argument, others=others, of_model=of_model) -> Any:
                    more = arguments(function, *of_model.values())
                    return function(**{**others, **more, **of_model, argument: given})

                doors.append(Door(f"{name}({argument}=){f' of {of}' * bool(of)}", call, FRAME))
            yield from _open(doors, name)


def of_results() -> Iterator[Door]:
    for of, result in results():
        names = getattr(result, "feature_names", None)
        frame = VIEW if names == tuple(VIEW) else FRAME
        for name, method in methods_of(result):
            if name in NO_DOORS:
                continue
            for argument in takes_rows(method):

                def call(given: Any, method=method, argument=argument, result=result) -> Any:
                    return method(**arguments(method, result), **{argument: given})

                yield from _open([Door(f"{of}: {type(result).__name__}.{name}({argument}=)", call, frame)], name)


def fitted(cls: Any) -> Any:
    """An estimator of this class that knows ``FRAME``."""
    wanted = {"n_components": 1, "n_clusters": 2, "kernel": "rbf", "gamma": 0.1}
    asked = {name: x for name, x in wanted.items() if name in inspect.signature(cls).parameters}
    return cls(**asked).fit(FRAME, GIVEN["y"])


def of_estimators() -> Iterator[Door]:
    for module in (estimators, contrib_estimators):
        for name in module.__all__:
            cls = getattr(module, name)
            if name in ABSTRACT or not hasattr(cls, "fit"):
                continue
            estimator = fitted(cls)
            for method_name, method in inspect.getmembers(cls, inspect.isfunction):
                if (
                    method_name.startswith(("_", "fit", "set_", "get_"))
                    or "X" not in inspect.signature(method).parameters
                ):
                    continue

                def call(given: Any, estimator=estimator, method_name=method_name) -> Any:
                    method = getattr(estimator, method_name)
                    more = {
                        k: v for k, v in {"y": GIVEN["y"], "c": 1}.items() if k in inspect.signature(method).parameters
                    }
                    return method(given, **more)

                yield from _open([Door(f"{name}.{method_name}", call, FRAME, of_scikit_learn=True)], name)


def _open(doors: list[Door], name: str) -> Iterator[Door]:
    """The doors through which the right rows go; an AssertionError where there is none."""
    errors = []
    for door in doors:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                door.call(door.frame)
        except Exception as error:
            errors.append(repr(error))
        else:
            yield door
    assert len(errors) < len(doors), (
        f"the walk cannot call {name} with the right rows ({'; '.join(errors)}); "
        "add to GIVEN in tests/support/doors.py what its parameters need, by their names"
    )


@cache
def doors() -> tuple[Door, ...]:
    return (*of_functions(), *of_results(), *of_estimators())


# How frames differ -------------------------------------------------------------------------------------------------


def refused(frame: pd.DataFrame) -> dict[str, tuple[Any, str]]:
    """Frames with other columns than this one's, and what is said."""
    first, *rest = frame.columns
    names = {"temp": ("Temp", "temp "), "red": ("Red", "red ")}[first]
    import polars
    import pyarrow

    swapped = frame[[*rest, first]]
    return {
        "another order": (swapped, "in another order"),
        "other names": (
            frame.set_axis([f"x{i}" for i in range(frame.shape[1])], axis=1),
            "lacks .* and has .* besides",
        ),
        "a column is missing": (frame[rest], f"lacks '{first}'"),
        "a column more": (frame.assign(more=1.0), "has 'more' besides"),
        "a name twice": (frame.set_axis([rest[0], *rest], axis=1), f"lacks '{first}'"),
        "another case": (frame.rename(columns={first: names[0]}), f"lacks '{first}' and has '{names[0]}' besides"),
        "a space": (frame.rename(columns={first: names[1]}), f"lacks '{first}' and has '{names[1]}' besides"),
        "polars, another order": (polars.DataFrame({x: swapped[x].to_numpy() for x in swapped}), "in another order"),
        "LazyFrame, another order": (
            polars.DataFrame({x: swapped[x].to_numpy() for x in swapped}).lazy(),
            "in another order",
        ),
        "stream, another order": (
            Stream(pyarrow.table({x: swapped[x].to_numpy() for x in swapped})),
            "in another order",
        ),
        "pyarrow, another order": (pyarrow.table({x: swapped[x].to_numpy() for x in swapped}), "in another order"),
        "records, another order": (swapped.to_records(index=False), "in another order"),
        "xarray, another order": (labelled(swapped), "in another order"),
    }


def taken(frame: pd.DataFrame) -> dict[str, Any]:
    """The same rows without names, or with the same names in other containers."""
    import polars
    import pyarrow

    columns = {x: frame[x].to_numpy() for x in frame}
    return {
        "array": frame.to_numpy(),
        "numbers for names": frame.set_axis(range(frame.shape[1]), axis=1),
        "names of two levels": frame.set_axis(pd.MultiIndex.from_product([["a"], frame.columns]), axis=1),
        "polars": polars.DataFrame(columns),
        "LazyFrame": polars.DataFrame(columns).lazy(),
        "stream": Stream(pyarrow.table(columns)),
        "pyarrow": pyarrow.table(columns),
        "records": frame.to_records(index=False),
        "xarray": labelled(frame),
    }


class Stream:
    """What gives its rows as a stream of Arrow's batches alone, each time that it is asked."""

    def __init__(self, table: Any):
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def labelled(frame: pd.DataFrame) -> Any:
    import xarray

    return xarray.DataArray(frame.to_numpy(), dims=("row", "column"), coords={"column": list(frame.columns)})

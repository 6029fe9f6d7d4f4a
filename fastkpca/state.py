"""Files of other methods' results, in the format of ``fastkpca.save``: kernels, maps and arrays under one checksum::

from fastkpca.state import load_state, save_state

save_state("my.model", "my_package:MyModel", {"kernel": model.kernel, "weights": W, "classes": ["a", "b"]})
kind, values = load_state("my.model")
model = MyModel(**values)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from .base import files
from .base.protocol import FeatureMap, Kernel
from .base.stored import Record
from .errors import ModelFileError
from .kernels import kernel_from_state, kernel_state
from .model.result import KPCAModel
from .model.stored import restore_map

__all__ = ["load_state", "save_state"]


def save_state(path: Any, kind: str, values: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write named values to a file: JSON and raw arrays under one checksum, never pickle.

    Parameters
    ----------
    path : str or Path
    kind : str
        What this is, for the reader: best with the name of the package, as in "my_package:MyModel".
    values : mapping
        By name: numpy arrays of numbers or truth values, kernels, feature maps, models of ``kpca``, None, bool, int,
        float, str, lists and tuples of these five, and mappings of all that. A feature map goes with the kernel that
        stands under the name ``"kernel"`` in ``values`` itself, and with the array ``"shift"`` beside the map: what is
        subtracted from rows before the map sees them (``features(...).shift``).
    overwrite : bool
        False: an existing file is left alone and FileExistsError raised.

    Raises
    ------
    ValueError
        A kernel has no registered name under which ``load_state`` could find it; or a map has no kernel or no shift.
    TypeError
        A value is of another type, such as an array of objects.
    FileExistsError
        The file is there, and ``overwrite`` is False.
    """
    if not isinstance(kind, str):
        raise TypeError(f"kind is {kind!r}; give a string, as in 'my_package:MyModel'")
    if not isinstance(values, Mapping):
        raise TypeError(f"values is of type {type(values).__name__}; give a mapping of names to values")
    arrays: dict[str, np.ndarray] = {}
    described = _describe_all(values, "", values.get("kernel"), arrays)
    files.write(path, {"kind": kind, "values": described}, arrays, overwrite=overwrite)


def load_state(path: Any, *, plugins: bool | str | Collection[str] = False) -> tuple[str, dict[str, Any]]:
    """Read what ``save_state`` wrote.

    Parameters
    ----------
    path : str or Path
    plugins : bool, str or collection of str, default False
        Kernels of which other distributions may be imported, as for ``fastkpca.load``.

    Returns
    -------
    kind : str
    values : dict
        As they were given; tuples come back as lists, numpy scalars as Python numbers. That they fit together is for
        the caller to see to; a map fits its shift.

    Raises
    ------
    ModelFileError
        The file is truncated, altered, of an unknown version, or not one of these; or a kernel is not allowed or not
        installed here.
    """
    header, arrays = files.read(path)
    if "kind" not in header:
        raise ModelFileError(f"{path} is a fastkpca file but not of save_state; fastkpca.load reads models of kpca")
    try:
        own = Record(header, arrays, "the file")
        own.keys(("kind", "values"))
        described = Record(own.get("values"), arrays, "what it holds")
        kernel = None
        if "kernel" in described.header:
            state = Record(described.header["kernel"], arrays, "kernel")
            kernel = kernel_from_state(state.get("kernel"), plugins=plugins) if "kernel" in state.header else None
        return own.text("kind"), _restore_all(described, "", kernel, plugins)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _describe_all(values: Mapping[str, Any], place: str, kernel: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """JSON for values; their arrays join the others under names that begin with their place."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        here = f"{place}{name}"
        if isinstance(value, np.ndarray):
            _add(arrays, here, value)
            found[name] = {"array": here}
        elif isinstance(value, Kernel):
            found[name] = {"kernel": kernel_state(value)}
        elif isinstance(value, FeatureMap):
            if not isinstance(kernel, Kernel) or not isinstance(values.get("shift"), np.ndarray):
                raise ValueError(
                    f"{here} is a feature map; add its kernel as 'kernel' in values, and its array 'shift' beside it"
                )
            found[name] = _describe_parts("map", value, here, arrays)
            # as long as the map has features: a small file cannot make a large map
            _add(arrays, f"{here}.length", np.zeros(value.n_features, dtype=np.int8))
        elif isinstance(value, KPCAModel):
            found[name] = _describe_parts("model", value, here, arrays)
        elif isinstance(value, Mapping):
            found[name] = {"values": _describe_all(value, f"{here}.", kernel, arrays)}
        else:
            found[name] = {"plain": value}
    return found


def _describe_parts(word: str, value: Any, place: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    state, own = value.state()
    for name, array in own.items():
        _add(arrays, f"{place}.{word}.{name}", array)
    return {word: state, "arrays": list(own)}


def _add(arrays: dict[str, np.ndarray], name: str, array: np.ndarray) -> None:
    if name in arrays:
        raise ValueError(f"two arrays would be called {name!r}; leave the dot out of the names of values")
    arrays[name] = array


def _restore_all(described: Record, place: str, kernel: Kernel | None, plugins: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    maps = []
    for name in described.header:
        here = f"{place}{name}"
        one = Record(described.header[name], described.arrays, here)
        if "plain" in one.header:
            values[name] = one.header["plain"]
        elif "array" in one.header:
            values[name] = _array(one, one.text("array"))
        elif "kernel" in one.header:
            values[name] = kernel_from_state(one.header["kernel"], plugins=plugins)
        elif "values" in one.header:
            values[name] = _restore_all(Record(one.header["values"], one.arrays, here), f"{here}.", kernel, plugins)
        elif "model" in one.header:
            values[name] = KPCAModel.from_state(one.header["model"], _parts(one, "model"), plugins=plugins)
        elif "map" in one.header:
            values[name] = None  # in its place; once its shift is there
            maps.append((name, one))
        else:
            raise one.refuse("this is no value")
    for name, one in maps:
        shift = values.get("shift")
        if kernel is None or not isinstance(shift, np.ndarray) or shift.ndim != 1:
            raise one.refuse("its kernel or its shift is missing")
        length = len(one.array(f"{one.what}.length", (None,), kind="i"))
        parts = _parts(one, "map")
        values[name] = restore_map(kernel, one.header["map"], parts, n_features=length, n_columns=len(shift))
    return values


def _parts(one: Record, word: str) -> dict[str, np.ndarray]:
    names = one.list("arrays")
    if not all(isinstance(name, str) for name in names):
        raise one.refuse("the names of its arrays are not strings")
    return {name: _array(one, f"{one.what}.{word}.{name}") for name in names}


def _array(one: Record, name: str) -> np.ndarray:
    if name not in one.arrays:
        raise one.refuse(f"the array {name[:60]} is missing")
    return one.arrays[name]

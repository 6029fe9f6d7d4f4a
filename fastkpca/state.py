"""Files of other methods' results, in the format of ``fastkpca.save``: kernels, maps and arrays under one checksum.

Two lines write such a file and read it::

    save_state("my.model", "my_package:MyModel", {"kernel": model.kernel, "weights": W, "classes": ["a", "b"]})
    kind, values = load_state("my.model")

and ``MyModel(**values)`` makes the model again.
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
from .model.reading import restore_map
from .model.result import KPCAModel

__all__ = ["load_state", "save_state"]


def save_state(path: Any, kind: str, values: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write named values to a file: JSON and raw arrays under one checksum, never pickle.

    Parameters
    ----------
    path : str or Path
    kind : str
        What the file holds, best with the name of the package, as in "my_package:MyModel".
    values : mapping
        By name: numpy arrays of numbers or truth values, kernels, feature maps, models of ``kpca``, None, bool, int,
        float, str, lists and tuples of these five, and mappings of all that. A feature map needs its kernel under the
        name ``"kernel"`` in the same mapping or in one around it, and the array ``"shift"`` in the mapping of the map:
        what is subtracted from rows before they are given to the map (``features(...).shift``).
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
    described = _describe_all(values, "", None, arrays)
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
        As they were given; tuples come back as lists, numpy scalars as Python numbers. A map is checked to fit its
        shift; whether other values fit together is for the caller to check.

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
        record = Record(header, arrays, "the file")
        record.keys(("kind", "values"))
        return record.text("kind"), _restore_all(Record(record.get("values"), arrays, "the values"), "", None, plugins)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _describe_all(values: Mapping[str, Any], path: str, kernel: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """JSON for values; their arrays join the others under names that begin with their place."""
    described: dict[str, Any] = {}
    kernel = values.get("kernel", kernel)
    for name, value in values.items():
        here = f"{path}{name}"
        if isinstance(value, np.ndarray):
            _add(arrays, here, value)
            described[name] = {"array": here}
        elif isinstance(value, Kernel):
            described[name] = {"kernel": kernel_state(value)}
        elif isinstance(value, FeatureMap):
            if not isinstance(kernel, Kernel) or not isinstance(values.get("shift"), np.ndarray):
                raise ValueError(
                    f"{here} is a feature map; add its kernel as 'kernel' in values, and its array 'shift' beside it"
                )
            described[name] = _describe_parts("map", value, here, arrays)
            # as long as the map has features: a small file cannot make a large map
            _add(arrays, f"{here}.length", np.zeros(value.n_features, dtype=np.int8))
        elif isinstance(value, KPCAModel):
            described[name] = _describe_parts("model", value, here, arrays)
        elif isinstance(value, Mapping):
            described[name] = {"values": _describe_all(value, f"{here}.", kernel, arrays)}
        else:
            described[name] = {"plain": value}
    return described


def _describe_parts(word: str, value: Any, path: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    header, of_value = value.state()
    for name, array in of_value.items():
        _add(arrays, f"{path}.{word}.{name}", array)
    return {word: header, "arrays": list(of_value)}


def _add(arrays: dict[str, np.ndarray], name: str, array: np.ndarray) -> None:
    if name in arrays:
        raise ValueError(f"two arrays would be called {name!r}; leave the dot out of the names of values")
    arrays[name] = array


def _restore_all(described: Record, path: str, kernel: Kernel | None, plugins: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    maps = []
    if "kernel" in described.header:  # before the maps that need it
        of_kernel = Record(described.header["kernel"], described.arrays, f"{path}kernel").header
        if "kernel" in of_kernel:
            kernel = kernel_from_state(of_kernel["kernel"], plugins=plugins)
    for name in described.header:
        here = f"{path}{name}"
        record = Record(described.header[name], described.arrays, here)
        if "plain" in record.header:
            values[name] = record.header["plain"]
        elif "array" in record.header:
            values[name] = _array(record, record.text("array"))
        elif "kernel" in record.header:
            values[name] = kernel_from_state(record.header["kernel"], plugins=plugins)
        elif "values" in record.header:
            values[name] = _restore_all(
                Record(record.header["values"], record.arrays, here), f"{here}.", kernel, plugins
            )
        elif "model" in record.header:
            values[name] = KPCAModel.from_state(record.header["model"], _parts(record, "model"), plugins=plugins)
        elif "map" in record.header:
            values[name] = None  # keeps the order; restored below, when its shift is known
            maps.append((name, record))
        else:
            raise record.refuse("it is none of the values that save_state writes")
    for name, record in maps:
        shift = values.get("shift")
        if kernel is None or not isinstance(shift, np.ndarray) or shift.ndim != 1:
            raise record.refuse("its kernel or its shift is missing")
        length = len(record.array(f"{record.what}.length", (None,), kind="i"))
        parts = _parts(record, "map")
        values[name] = restore_map(kernel, record.header["map"], parts, n_features=length, n_columns=len(shift))
    return values


def _parts(record: Record, word: str) -> dict[str, np.ndarray]:
    names = record.list("arrays")
    if not all(isinstance(name, str) for name in names):
        raise record.refuse("the names of its arrays are not strings")
    return {name: _array(record, f"{record.what}.{word}.{name}") for name in names}


def _array(record: Record, name: str) -> np.ndarray:
    if name not in record.arrays:
        raise record.refuse(f"the array {name[:60]} is missing")
    return record.arrays[name]

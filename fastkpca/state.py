"""Files of other methods' results, in the format of ``fastkpca.save``: kernels, maps and arrays under one checksum::

from fastkpca.state import load_state, save_state

save_state("my.model", "my_package:MyModel", {"kernel": model.kernel, "weights": W, "classes": ["a", "b"]})
kind, values = load_state("my.model")
model = MyModel(**values)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import files
from .errors import ModelFileError
from .kernels import guarded, kernel_from_state, kernel_state
from .model import KPCAModel, restore_map
from .protocol import FeatureMap, Kernel

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
        stands under the name ``"kernel"`` in ``values`` itself.
    overwrite : bool
        False: an existing file is left alone and FileExistsError raised.

    Raises
    ------
    ValueError
        A kernel has no registered name under which ``load_state`` could find it; or a map has no kernel beside it.
    TypeError
        A value is of another type, such as an array of objects.
    """
    if not isinstance(kind, str):
        raise TypeError(f"kind is {kind!r}; give a string, as in 'my_package:MyModel'")
    arrays: dict[str, np.ndarray] = {}
    described = {name: _describe(value, name, values, arrays) for name, value in values.items()}
    files.write(path, {"kind": kind, "values": described}, arrays, overwrite=overwrite)


def load_state(path: Any) -> tuple[str, dict[str, Any]]:
    """Read what ``save_state`` wrote.

    Returns
    -------
    (kind, values)
        As they were given; tuples come back as lists, numpy scalars as Python numbers.

    Raises
    ------
    ModelFileError
        The file is truncated, altered, of an unknown version, or not one of these.
    UnknownKernelError
        Its kernel is not installed here.
    """
    header, arrays = files.read(path)
    if set(header) != {"kind", "values"} or not isinstance(header["values"], dict):
        raise ModelFileError(f"{path} is a fastkpca file but not of save_state; fastkpca.load reads models of kpca")
    try:
        described = header["values"]
        own = described.get("kernel")
        kernel = kernel_from_state(own["kernel"]) if own is not None and "kernel" in own else None
        values = {name: _restore(value, name, kernel, arrays) for name, value in described.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path} is a fastkpca file with a part missing or wrong: {error!r}") from error
    return header["kind"], values


def _describe(value: Any, place: str, values: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """JSON for a value; its arrays join the others under names that begin with its place."""
    if isinstance(value, np.ndarray):
        _add(arrays, place, value)
        return {"array": place}
    if isinstance(value, Kernel):
        return {"kernel": kernel_state(value)}
    if isinstance(value, (FeatureMap, KPCAModel)):
        if isinstance(value, FeatureMap) and not isinstance(values.get("kernel"), Kernel):
            raise ValueError(f"{place} is a feature map; add its kernel under the name 'kernel'")
        state, own = value.state()
        for name, array in own.items():
            _add(arrays, f"{place}.{name}", array)
        return {"map" if isinstance(value, FeatureMap) else "model": state, "arrays": list(own)}
    if isinstance(value, Mapping):
        return {"values": {name: _describe(x, f"{place}.{name}", values, arrays) for name, x in value.items()}}
    return {"plain": value}


def _add(arrays: dict[str, np.ndarray], name: str, array: np.ndarray) -> None:
    if name in arrays:
        raise ValueError(f"two arrays would be called {name!r}; leave the dot out of the names of values")
    arrays[name] = array


def _restore(described: Any, place: str, kernel: Kernel | None, arrays: dict[str, np.ndarray]) -> Any:
    if "plain" in described:
        return described["plain"]
    if "array" in described:
        return arrays[described["array"]]
    if "kernel" in described:
        return kernel_from_state(described["kernel"])
    if "values" in described:
        return {name: _restore(x, f"{place}.{name}", kernel, arrays) for name, x in described["values"].items()}
    own = {name: arrays[f"{place}.{name}"] for name in described["arrays"]}
    if "model" in described:
        return KPCAModel.from_state(described["model"], own)
    if kernel is None:
        raise KeyError("kernel")
    return restore_map(guarded(kernel), described["map"], own)

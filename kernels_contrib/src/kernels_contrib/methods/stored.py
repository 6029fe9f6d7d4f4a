"""Model files by field: each field of a model's dataclass states how it is written and read::

    class MyModel(FittedMethod):
        made_by = "my_method()"
        classes: np.ndarray = field(metadata=labels())
        means: np.ndarray = field(metadata=array("Ck"))
        function: KernelFunction = field(metadata=function("k"))

A letter stands for a length: C classes, D decisions at a row (1 for two classes, else C), k values of the function, and
so on; the same letter is the same length wherever it stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from fastkpca.methods import Record

Known = dict[str, Any]
"""Lengths by letter, and the kernel, as far as they were read."""
InFile = dict[str, Any]
"""Functions that write a field (None: it is not written) and read it; the metadata of the field."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Stored:
    """Something that a file can hold."""

    def state(self) -> dict[str, Any]:
        """Its values by field, for ``fastkpca.state.save_state``."""
        written = {x.name: x.metadata["write"] for x in fields(self) if x.metadata["write"] is not None}
        return {name: write(vars(self)[name]) for name, write in written.items()}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], what: str, known: Known) -> Self:
        """The object from the values that ``state`` returned; raises ModelFileError for other values."""
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        record = Record({name: value for name, value in values.items() if name not in arrays}, arrays, what)
        written = [x.name for x in fields(cls) if x.metadata["write"] is not None]
        Record(dict.fromkeys(values), {}, what).keys(written)
        return cls(**{x.name: x.metadata["read"](record, x.name, known) for x in fields(cls)})


def in_file(read: Callable[[Record, str, Known], Any], write: Any = lambda value: value) -> InFile:
    return {"read": read, "write": write}


def agree(record: Record, name: str, known: Known, letters: str, shape: tuple[int, ...]) -> None:
    """Raise ModelFileError where a shape does not fit the lengths that are known, or has none."""
    for letter, length in zip(letters, shape):
        if known.setdefault(letter, int(letter) if letter.isdigit() else length) != length or not length:
            raise record.refuse(f"{name} has shape {shape}, which does not fit the others")


def array(letters: str, *, kind: str = "f", least: float = -math.inf, infinite: bool = False) -> InFile:
    """An array, one letter a dimension, or the length itself."""

    def read(record: Record, name: str, known: Known) -> np.ndarray:
        values = record.array(name, (None,) * len(letters), kind=kind, least=least, infinite=infinite)
        agree(record, name, known, letters, values.shape)
        return values

    return in_file(read)


def vector(least: float = -math.inf) -> InFile:
    """Numbers of which there may be none."""
    return in_file(lambda record, name, _: record.array(name, (None,), least=least))


def number(least: float = -math.inf) -> InFile:
    return in_file(lambda record, name, _: record.number(name, least=least))


def count() -> InFile:
    return in_file(lambda record, name, _: record.whole(name, least=1, most=1 << 62))


def flag() -> InFile:
    return in_file(lambda record, name, _: record.flag(name))


def text(*choices: str) -> InFile:
    return in_file(lambda record, name, _: record.text(name, choices))


def counts() -> InFile:
    """A tuple of whole numbers, at least one."""

    def read(record: Record, name: str, known: Known) -> tuple[int, ...]:
        values = record.list(name)
        if not values or any(type(n) is not int for n in values):
            raise record.refuse(f"{name} are not whole numbers")
        return tuple(values)

    return in_file(read)


def names(letter: str) -> InFile:
    """Names of the d columns, or None."""

    def read(record: Record, name: str, known: Known) -> tuple[str, ...] | None:
        values = record.strings(name)
        if values is not None:
            agree(record, name, known, letter, (len(values),))
        return values

    return in_file(read, lambda value: None if value is None else list(value))


def info(*needed: str) -> InFile:
    """Information about the fit: a mapping with these texts in it, and others."""

    def read(record: Record, name: str, known: Known) -> Any:
        values = record.get(name)
        for key in needed:
            Record(values, {}, "what the model says of its making").text(key)
        return values

    return in_file(read)


def object_of(cls: type, letter: str = "", length: Callable[[Any], int] = len) -> InFile:
    """A kernel, feature map or model of ``kpca``, then known by its field's name; and a length that it gives."""

    def read(record: Record, name: str, known: Known) -> Any:
        value = record.get(name)
        if not isinstance(value, cls):
            raise record.refuse(f"its {name} is none")
        known[name] = value
        if letter:
            known[letter] = length(value)
        return value

    return in_file(read)


def labels() -> InFile:
    """The distinct labels of the classes, at least two: an array, or in a file a list of strings."""

    def read(record: Record, name: str, known: Known) -> np.ndarray:
        values = record.arrays[name].tolist() if name in record.arrays else record.list(name)
        strings = all(isinstance(label, str) for label in values)
        if record.arrays[name].ndim != 1 if name in record.arrays else not strings:
            raise record.refuse("its classes are neither strings nor an array of labels")
        if len(values) < 2 or len(set(values)) != len(values):
            raise record.refuse("its classes are fewer than two, or one is there twice")
        known["C"], known["D"] = len(values), 1 if len(values) == 2 else len(values)
        return np.asarray(record.arrays.get(name, values))

    def write(values: np.ndarray) -> Any:
        if values.dtype.kind not in "fiubU":
            raise TypeError(
                f"the labels are of type {values.dtype}; a file keeps numbers, strings, truth values: fit on those"
            )
        return values.tolist() if values.dtype.kind == "U" else values

    return in_file(read, write)


def not_stored(letter: str | None = None, less: int = 0) -> InFile:
    """A field that grows with the training rows and that no prediction needs: None from a file, or an array of no
    rows, with the known number of columns minus ``less``.
    """
    return in_file(lambda record, name, known: None if letter is None else np.empty((0, known[letter] - less)), None)

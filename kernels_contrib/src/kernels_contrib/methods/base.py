"""The base of every fitted method: how it shows itself, and what a file holds of it.

A model is a dataclass whose fields say how each is checked when it comes from a file::

    class MyModel(FittedMethod):
        made_by = "my_method()"
        classes: np.ndarray = field(metadata=labels())
        means: np.ndarray = field(metadata=array("Ck"))
        function: KernelFunction = field(metadata=function("k"))

A letter stands for a length: C classes, D decisions at a row (1 for two classes, else C), k values of the function;
the same letter is the same length wherever it stands.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from fastkpca.base.stored import Record
from fastkpca.kernels import Kernel

from .functions import record_of, restored_function

__all__ = [
    "FittedMethod",
    "array",
    "count",
    "counts_of_mistakes",
    "flag",
    "function",
    "info",
    "kernel",
    "labels",
    "not_stored",
    "number",
    "text",
]

Lengths = dict[str, int]
Reader = Callable[[Record, str, Lengths], Any]
InFile = dict[str, Any]
"""How a field is written and read; the metadata of a dataclass's field."""


@dataclass(frozen=True, eq=False, repr=False)
class FittedMethod:
    """What a method returns."""

    made_by: ClassVar[str]
    """The function that returns it, for the texts of errors."""

    @classmethod
    def of(cls, model: Any) -> Self:
        """The model, if it is one of these."""
        if not isinstance(model, cls):
            raise TypeError(f"model is a {type(model).__name__}; give what {cls.made_by} returned")
        return model

    def facts(self) -> list[str]:
        """What ``repr`` says."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self.facts())}>"

    def state(self) -> dict[str, Any]:
        """What a file holds of it, by field."""
        return {
            field.name: field.metadata["write"](vars(self)[field.name])
            for field in dataclasses.fields(self)
            if field.metadata["write"] is not None
        }

    @classmethod
    def from_state(cls, values: dict[str, Any]) -> Self:
        """The model of these values; raises ModelFileError where they are not what ``state`` returns."""
        fields = dataclasses.fields(cls)
        record = record_of(values, f"a {cls.__name__}")
        Record(dict.fromkeys(values), {}, record.what).keys([x.name for x in fields if x.metadata["write"] is not None])
        lengths: Lengths = {}
        return cls(**{x.name: x.metadata["read"](record, x.name, lengths) for x in fields})


def _in_file(read: Reader, write: Callable[[Any], Any] | None = lambda value: value) -> InFile:
    return {"read": read, "write": write}


def _agree(record: Record, name: str, lengths: Lengths, letters: str, shape: tuple[int, ...]) -> None:
    for letter, length in zip(letters, shape):
        if lengths.setdefault(letter, length) != length or not length:
            raise record.refuse(f"{name} has shape {shape}, which does not fit the others")


def array(letters: str, *, kind: str = "f", least: float = -math.inf) -> InFile:
    """An array, one letter a dimension."""

    def read(record: Record, name: str, lengths: Lengths) -> np.ndarray:
        values = record.array(name, (None,) * len(letters), kind=kind, least=least)
        _agree(record, name, lengths, letters, values.shape)
        return values

    return _in_file(read)


def number(least: float = -math.inf) -> InFile:
    return _in_file(lambda record, name, _: record.number(name, least=least))


def count() -> InFile:
    return _in_file(lambda record, name, _: record.whole(name, least=1, most=1 << 62))


def flag() -> InFile:
    return _in_file(lambda record, name, _: record.flag(name))


def text(*choices: str) -> InFile:
    return _in_file(lambda record, name, _: record.text(name, choices))


def counts_of_mistakes() -> InFile:
    def read(record: Record, name: str, lengths: Lengths) -> tuple[int, ...]:
        values = record.list(name)
        if not values or any(type(n) is not int for n in values):
            raise record.refuse(f"{name} are not whole numbers")
        return tuple(values)

    return _in_file(read)


def info(*needed: str) -> InFile:
    """What the fit came to: a mapping with these texts in it, and others."""

    def read(record: Record, name: str, lengths: Lengths) -> Any:
        values = record.get(name)
        inner = Record(values, {}, "what the model says of its making")
        for key in needed:
            inner.text(key)
        return values

    return _in_file(read)


def kernel() -> InFile:
    def read(record: Record, name: str, lengths: Lengths) -> Kernel:
        value = record.get(name)
        if not isinstance(value, Kernel):
            raise record.refuse("its kernel is none")
        return value

    return _in_file(read)


def function(letter: str) -> InFile:
    """A ``KernelFunction`` of so many values at a row; its kernel is the field of that name."""

    def read(record: Record, name: str, lengths: Lengths) -> Any:
        value = restored_function(record.get(name), record.header.get("kernel"))
        _agree(record, name, lengths, letter, value.constant.shape)
        return value

    return _in_file(read, lambda value: value.state())


def labels() -> InFile:
    """The distinct labels of the classes, at least two: an array, or in a file a list of strings."""

    def read(record: Record, name: str, lengths: Lengths) -> np.ndarray:
        values = record.arrays[name].tolist() if name in record.arrays else record.list(name)
        if name in record.arrays and record.arrays[name].ndim != 1:
            raise record.refuse("its classes are no list of labels")
        if name not in record.arrays and not all(isinstance(label, str) for label in values):
            raise record.refuse("its classes are neither strings nor an array of labels")
        if len(values) < 2 or len(set(values)) != len(values):
            raise record.refuse("its classes are fewer than two, or one is there twice")
        lengths["C"] = len(values)
        lengths["D"] = 1 if len(values) == 2 else len(values)
        return np.asarray(record.arrays.get(name, values))

    def write(values: np.ndarray) -> Any:
        if values.dtype.kind not in "fiubU":
            raise TypeError(
                f"the labels are of type {values.dtype}; a file keeps numbers, strings, truth values: fit on those"
            )
        return values.tolist() if values.dtype.kind == "U" else values

    return _in_file(read, write)


def not_stored(letter: str | None = None) -> InFile:
    """What grows with the training rows and no prediction needs: None from a file, or an array of no rows."""

    def read(record: Record, name: str, lengths: Lengths) -> np.ndarray | None:
        return None if letter is None else np.empty((0, lengths[letter]))

    return _in_file(read, None)

"""The contents of a model file, each value checked when it is taken: a checksum shows that a file was not altered, not
that it makes sense.

A ``Record`` is a JSON object, and arrays by name. Code that restores an object takes its values from one, by type,
range and shape. A value that does not fit raises ModelFileError, which names its place. Sizes are compared before
anything is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from ..errors import ModelFileError

_BOOL_TYPES = (bool, np.bool_)  # a state that was not through a file holds numpy's numbers
_INTEGER_TYPES = (int, np.integer)
_REAL_TYPES = (int, float, np.integer, np.floating)


def _shown(value: Any) -> str:
    """A value for the text of an error: files may hold megabytes where a number belongs."""
    text = repr(value[:60]) if isinstance(value, str) else repr(value) if not isinstance(value, (list, dict)) else ""
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return text if len(text) <= 80 else text[:77] + "..."


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Any error inside becomes a ModelFileError: for code below the checks, which trusts its input."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ModelFileError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelFileError(f"{what} cannot be restored: {type(error).__name__}: {reason}") from error


class Record:
    """One object of a model file's header, and the arrays that belong to it.

    Parameters
    ----------
    header : object
        As read; must be a mapping.
    arrays : mapping of str to ndarray
    what : str
        Its place, for the texts.
    """

    def __init__(self, header: Any, arrays: Mapping[str, np.ndarray] | None = None, what: str = "the model"):
        if not isinstance(header, Mapping):
            raise ModelFileError(f"{what} is {_shown(header)} in the file; an object belongs there")
        self.header, self.arrays, self.what = header, arrays or {}, what
        self._taken: set[str] = set()
        self._taken_arrays: set[str] = set()

    def refuse(self, text: str) -> ModelFileError:
        return ModelFileError(f"{self.what}: {text}")

    def keys(self, needed: Collection[str], optional: Collection[str] = ()) -> None:
        """Exactly these keys, and perhaps the optional ones."""
        self._exactly(self.header, needed, optional)

    def names(self, needed: Collection[str], optional: Collection[str] = ()) -> None:
        """Exactly these arrays, and perhaps the optional ones."""
        self._exactly(self.arrays, needed, optional, "array ")

    def _exactly(
        self, present: Collection[str], needed: Collection[str], optional: Collection[str], kind: str = ""
    ) -> None:
        missing = [key for key in needed if key not in present]
        surplus = [key for key in present if key not in needed and key not in optional]
        if missing:
            raise self.refuse(f"{'the ' * bool(kind)}{kind}{', '.join(missing)} is missing")
        if surplus:
            raise self.refuse(f"there is no place for {'an ' * bool(kind)}{kind}{_shown(surplus[0])}")

    def get(self, key: str) -> Any:
        if key not in self.header:
            raise self.refuse(f"{key} is missing")
        self._taken.add(key)
        return self.header[key]

    def arrays_under(self, prefix: str) -> dict[str, np.ndarray]:
        """The arrays whose names begin with ``prefix``, by their names without it; unchecked."""
        self._taken_arrays.update(name for name in self.arrays if name.startswith(prefix))
        return {name[len(prefix) :]: array for name, array in self.arrays.items() if name.startswith(prefix)}

    def refuse_the_rest(self) -> None:
        """Refuse keys and arrays that were not taken."""
        self._exactly(self.header, (), self._taken)
        self._exactly(self.arrays, (), self._taken_arrays, "array ")

    def number(self, key: str, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf) -> float:
        """A finite number, at least ``least``, more than ``above``, at most ``most``."""
        value = self.get(key)
        number = math.nan
        if isinstance(value, _REAL_TYPES) and not isinstance(value, _BOOL_TYPES):
            with suppress(OverflowError):  # a whole number of hundreds of digits
                number = float(value)
        if not math.isfinite(number):
            raise self.refuse(f"{key} is {_shown(value)}; a finite number is needed")
        if not (number >= least and number > above and number <= most):
            raise self.refuse(f"{key} is {number!r}, out of its range")
        return number

    def whole(self, key: str, *, least: int, most: int) -> int:
        value = self.get(key)
        if isinstance(value, _BOOL_TYPES) or not isinstance(value, _INTEGER_TYPES) or not least <= value <= most:
            raise self.refuse(f"{key} is {_shown(value)}; a whole number from {least} to {most} is needed")
        return int(value)

    def flag(self, key: str) -> bool:
        value = self.get(key)
        if not isinstance(value, _BOOL_TYPES):
            raise self.refuse(f"{key} is {_shown(value)}; true or false is needed")
        return bool(value)

    def text(self, key: str, among: Collection[str] = ()) -> str:
        value = self.get(key)
        if not isinstance(value, str) or (among and value not in among):
            needed = f"one of {', '.join(among)}" if among else "a string"
            raise self.refuse(f"{key} is {_shown(value)}; {needed} is needed")
        return value

    def list(self, key: str, length: int | None = None) -> list:
        value = self.get(key)
        if not isinstance(value, list) or (length is not None and len(value) != length):
            raise self.refuse(
                f"{key} is {_shown(value)}; a list{f' of {length}' if length is not None else ''} is needed"
            )
        return value

    def strings(self, key: str, length: int | None = None) -> tuple[str, ...] | None:
        """A list of strings, as names of columns are; or None."""
        if self.get(key) is None:
            return None
        values = self.list(key, length)
        if not all(isinstance(value, str) for value in values):
            raise self.refuse(f"{key} are not all strings")
        return tuple(values)

    def array(
        self,
        name: str,
        shape: tuple[int | None, ...],
        *,
        kind: str = "f",
        least: float = -math.inf,
        infinite: bool = False,
    ) -> np.ndarray:
        """An array of this shape (None: any length) and kind of type, without NaN, and finite unless ``infinite``."""
        if name not in self.arrays:
            raise self.refuse(f"the array {name} is missing")
        self._taken_arrays.add(name)
        array = self.arrays[name]
        fits = array.ndim == len(shape) and all(n is None or n == m for n, m in zip(shape, array.shape))
        if not fits:
            needed = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
            raise self.refuse(f"the array {name} has shape {array.shape}; {needed} is needed")
        if array.dtype.kind not in kind or array.dtype == np.float16:
            raise self.refuse(f"the array {name} is of type {array.dtype}, which it cannot be")
        if array.size:
            # reductions only: nothing of the array's size is allocated
            low, high = array.min(), array.max()
            if array.dtype.kind == "f" and (
                np.isnan(low) or (not infinite and not (np.isfinite(low) and np.isfinite(high)))
            ):
                raise self.refuse(f"the array {name} contains NaN or infinity")
            if low < least:
                raise self.refuse(f"the array {name} goes down to {low}, below {least}")
        return array

    def array_or_none(self, name: str, shape: tuple[int | None, ...], *, least: float = -math.inf) -> np.ndarray | None:
        """The same where there is one of this name."""
        return self.array(name, shape, least=least) if name in self.arrays else None

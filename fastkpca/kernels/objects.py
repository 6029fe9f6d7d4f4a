"""Lists of objects in place of rows: the rules of kernels on the numbers of objects, and results of authors' code."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base.protocol import Kernel
from ..rows.foreign import is_missing, is_series

LISTS = "a kernel on objects is called with two lists of them, of n and m, and returns all n x m values, shape (n, m)"


def check_none_missing(objects: Any) -> None:
    for i, value in enumerate(objects):
        if is_missing(value):
            raise TypeError(f"X[{i}] is {value!r}; leave out what is missing")


def is_object_list(X: Any) -> bool:
    """True if this is a list of objects and not of rows of numbers: the first is no number, list, tuple or array."""
    if is_series(X):
        X = np.asarray(X)
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUST"
    if not isinstance(X, (list, tuple)) or not X or X[0] is None:
        return False
    return not isinstance(X[0], (numbers.Number, list, tuple)) and not hasattr(X[0], "__array__")


@contextmanager
def noted(text: str) -> Iterator[None]:
    """Adds a note to an error of the user's own code; its type does not change."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


def own_values(result: Any, shape: tuple[int, ...], dtype: np.dtype, label: str, called: str) -> np.ndarray:
    """The result of a foreign ``block`` or ``diagonal`` as a new, writeable array of the promised shape and dtype."""
    values = np.asarray(result)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{label} returned {values.dtype} values; a kernel returns real numbers, shape {shape}")
    if values.shape != shape:
        given = "one number" if values.ndim == 0 else f"an array of shape {values.shape}"
        raise ValueError(f"{label} returned {given} where shape {shape} is needed: {called}")
    overwritable = values.flags.writeable and values.flags.owndata
    return values.astype(dtype, order="C", copy=not overwritable)


class OnObjects(Kernel):
    """The rules of a kernel on the numbers of objects in a list."""

    api_version = 1
    by_number = True
    knows_diagonal = True
    parameters = {"kernel": None, "objects": ()}

    kernel: Any
    objects: list
    others: list | None = None
    """New objects, which rows stand for where the kernel is bound to project them."""

    def check(self) -> None:
        self.__dict__["objects"] = list(self.objects)

    @property
    def positive_semidefinite(self) -> bool:
        return bool(self.kernel.positive_semidefinite)

    @property
    def thread_safe(self) -> bool:
        return bool(self.kernel.thread_safe)

    def bind(self, X: Any, Y: Any = None) -> tuple[Any, Any]:
        """``bind(objects)`` for a fit, ``bind(new, train_rows)`` to project new ones."""
        if not is_object_list(X):
            raise TypeError(
                f"the model was made of a list of objects; give a list of one or more such, not {type(X).__name__} of "
                "other things"
            )
        if Y is None:
            return self.kernel.bind(X)
        check_none_missing(X)
        bound = type(self)(kernel=self.kernel, objects=self.objects)
        bound.__dict__["others"] = list(X)
        return bound, np.arange(len(X), dtype=np.float64)[:, None]

    def listed(self) -> tuple[Kernel, list]:
        return self.kernel, self.objects

    def unbound(self) -> Any:
        return self if self.others is None else type(self)(kernel=self.kernel, objects=self.objects)

    @staticmethod
    def _chosen(objects: list, X: np.ndarray) -> list:
        return [objects[i] for i in X[:, 0].astype(np.intp)]

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        rows = self.objects if self.others is None else self.others
        return self._between(self._chosen(rows, X), self._chosen(self.objects, Y), X.dtype)

    def _between(self, A: list, B: list, dtype: np.dtype) -> np.ndarray:
        label = self.kernel._label()
        with noted(f"raised by {label}, which fastkpca called with lists of {len(A)} and {len(B)} objects; {LISTS}"):
            result = self.kernel.on_lists(A, B)
        return own_values(result, (len(A), len(B)), dtype, label, LISTS)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        few = 64
        rows = self._chosen(self.objects if self.others is None else self.others, X)
        parts = [
            np.diagonal(self._between(rows[i : i + few], rows[i : i + few], np.dtype(np.float64)))
            for i in range(0, len(rows), few)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def __repr__(self) -> str:
        return f"{self.kernel!r} on {len(self.objects)} objects"

"""Kernels made of what users have at hand: a function on tiles, or any object with ``block``."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ..base.checks import check_flag
from ..base.protocol import Kernel
from ..rows.foreign import is_missing, is_series

__all__ = ["CallableKernel", "ObjectKernel", "ObjectListKernel", "on_objects"]

_TILES = (
    "a kernel is called with tiles, not with pairs of rows: X of shape (n, d) and Y of shape (m, d), "
    "and returns all n x m values, shape (n, m)"
)


_LISTS = "a kernel on objects is called with two lists of them, of n and m, and returns all n x m values, shape (n, m)"


def on_objects(kernel: Kernel, X: Any) -> tuple[Kernel, np.ndarray]:
    """A kernel that takes objects on those of the list X: (a kernel on their numbers, the numbers)."""
    if not is_object_list(X):
        raise TypeError(
            f"{kernel!r} is a kernel on objects: X must be a list of one or more of them that are no numbers, lists, "
            f"tuples or arrays themselves; found {type(X).__name__}"
        )
    _check_none_missing(X)
    return ObjectListKernel(kernel=kernel, objects=X), np.arange(len(X), dtype=np.float64)[:, None]


def _check_none_missing(objects: Any) -> None:
    for i, value in enumerate(objects):
        if is_missing(value):
            raise TypeError(f"X[{i}] is {value!r}; leave out what is missing")


def is_object_list(X: Any) -> bool:
    """Whether this is a list of objects and not of rows of numbers: the first is no number, list, tuple or array."""
    if is_series(X):
        X = np.asarray(X)
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUST"
    if not isinstance(X, (list, tuple)) or not X or X[0] is None:
        return False
    return not isinstance(X[0], (numbers.Number, list, tuple)) and not hasattr(X[0], "__array__")


def _call(function: Callable[..., Any], label: str, *tiles: np.ndarray) -> Any:
    shapes = " and ".join(str(tile.shape) for tile in tiles)
    try:
        return function(*tiles)
    except Exception as error:
        if type(error) is ValueError:  # as numpy raises it where a function of two points is given tiles
            raise ValueError(f"{label} failed on shapes {shapes}: {_TILES} ({error})") from error
        error.add_note(f"raised by {label}, which fastkpca called with shapes {shapes}; {_TILES}")
        raise


@contextmanager
def _noted(text: str) -> Iterator[None]:
    """Adds a note to an error of the user's own code; its type does not change."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


def _values(result: Any, shape: tuple[int, ...], dtype: np.dtype, label: str, called: str = _TILES) -> np.ndarray:
    """The result of a foreign ``block`` or ``diagonal`` as a new, writeable array of the promised shape and dtype."""
    values = np.asarray(result)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{label} returned {values.dtype} values; a kernel returns real numbers, shape {shape}")
    if values.shape != shape:
        given = "one number" if values.ndim == 0 else f"an array of shape {values.shape}"
        raise ValueError(f"{label} returned {given} where shape {shape} is needed: {called}")
    overwritable = values.flags.writeable and values.flags.owndata
    return values.astype(dtype, order="C", copy=not overwritable)


class _Foreign(Kernel):
    """Shared by the adapters: the properties that a Kernel class declares are declared by keyword here."""

    slot: ClassVar[str]
    """The parameter that holds the wrapped function or object."""

    @property
    def wrapped(self) -> Any:
        return getattr(self, self.slot)

    @property
    def takes_points(self) -> bool:
        return True

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        """A list of objects is bound to a kernel on their numbers; rows of numbers are left alone."""
        return on_objects(self, X) if is_object_list(X) else (self, X)

    @property
    def _function(self) -> Callable[..., Any]:
        raise NotImplementedError

    def on_lists(self, A: list, B: list) -> Any:
        return self._function(A, B)

    def declarations(self) -> dict[str, Any]:
        """Every parameter except the wrapped function or object."""
        return {name: value for name, value in self.get_parameters().items() if name != self.slot}

    def check(self) -> None:
        if self.translation not in (None, "kernel", "centered"):
            raise ValueError(f'translation is {self.translation!r}; give "kernel", "centered" or None')
        for name in ("positive_semidefinite", "thread_safe"):
            check_flag(getattr(self, name), name)


class CallableKernel(_Foreign):
    """A function ``f(X, Y)`` of two tiles, (n, d) and (m, d), that returns k(x_i, y_j) as an (n, m) array.

    Parameters
    ----------
    function : callable
    positive_semidefinite : bool, default False
        Say True where it holds: low-rank feature maps and their guarantees need it.
    translation : {None, "kernel", "centered"}
        As ``Kernel.translation``; "kernel" keeps accuracy on data far from the origin.
    thread_safe : bool, default True
    """

    function: Callable[..., Any]
    slot = "function"
    parameters = {"function": None, "positive_semidefinite": False, "translation": None, "thread_safe": True}

    def check(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function is {self.function!r}; give a callable f(X, Y) on tiles")
        super().check()

    @property
    def _function(self) -> Callable[..., Any]:
        return self.function

    def _label(self) -> str:
        name = getattr(self.function, "__qualname__", None) or type(self.function).__name__
        return f"the kernel function {name}"

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        label = self._label()
        return _values(_call(self.function, label, X, Y), (len(X), len(Y)), X.dtype, label)


class ObjectKernel(_Foreign):
    """Any object with ``block(X, Y)``, and ``diagonal(X)`` where it has one, that is not a ``Kernel``.

    ``positive_semidefinite``, ``translation`` and ``thread_safe`` are read from the object where it has them.
    """

    object: Any
    slot = "object"
    parameters = {"object": None, "positive_semidefinite": None, "translation": None, "thread_safe": None}

    def check(self) -> None:
        if not callable(getattr(self.object, "block", None)):
            raise TypeError(f"object is {self.object!r}; give an object with a method block(X, Y)")
        for name in ("positive_semidefinite", "translation", "thread_safe"):
            if getattr(self, name) is None:
                self.__dict__[name] = self._attribute(name, getattr(Kernel, name))
        super().check()

    def _attribute(self, name: str, default: Any) -> Any:
        with _noted(f"raised by {type(self.object).__name__}.{name}"):
            return getattr(self.object, name, default)

    @property
    def _function(self) -> Callable[..., Any]:
        block: Callable[..., Any] = self.object.block
        return block

    def _label(self) -> str:
        return f"{type(self.object).__name__}.block"

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        label = self._label()
        return _values(_call(self.object.block, label, X, Y), (len(X), len(Y)), X.dtype, label)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        method = self._attribute("diagonal", None)
        if method is None:
            return super().diagonal(X)
        label = f"{type(self.object).__name__}.diagonal"
        return _values(_call(method, label, X), (len(X),), X.dtype, label)


class ObjectListKernel(Kernel):
    """A kernel on objects (strings, graphs, sets), as a kernel on the numbers of these in a list.

    Made where ``kpca`` is given a list of objects and a kernel on such, a function, or an object with ``block``. The
    model keeps the objects that it was made of.

    Parameters
    ----------
    kernel : Kernel
        One that ``takes_objects``, a CallableKernel or an ObjectKernel.
    objects : sequence
        Those of the fit.
    """

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

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        """``bind(objects)`` for a fit, ``bind(new, train_rows)`` to project new ones."""
        if Y is None:
            return on_objects(self.kernel, X)
        if not is_object_list(X):
            raise TypeError(
                f"the model was made of a list of objects; give a list of one or more such, not {type(X).__name__} of "
                "other things"
            )
        _check_none_missing(X)
        bound = ObjectListKernel(kernel=self.kernel, objects=self.objects)
        bound.__dict__["others"] = list(X)
        return bound, np.arange(len(X), dtype=np.float64)[:, None]

    def listed(self) -> tuple[Kernel, list]:
        return self.kernel, self.objects

    def unbound(self) -> Kernel:
        return self if self.others is None else ObjectListKernel(kernel=self.kernel, objects=self.objects)

    @staticmethod
    def _chosen(objects: list, X: np.ndarray) -> list:
        return [objects[i] for i in X[:, 0].astype(np.intp)]

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        rows = self.objects if self.others is None else self.others
        return self._between(self._chosen(rows, X), self._chosen(self.objects, Y), X.dtype)

    def _between(self, A: list, B: list, dtype: np.dtype) -> np.ndarray:
        label = self.kernel._label()
        with _noted(f"raised by {label}, which fastkpca called with lists of {len(A)} and {len(B)} objects; {_LISTS}"):
            result = self.kernel.on_lists(A, B)
        return _values(result, (len(A), len(B)), dtype, label, _LISTS)

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

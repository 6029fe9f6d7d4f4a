"""Kernels made of what users have at hand: a function on tiles, or any object with ``block``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from ..base.checks import check_flag
from ..base.spelling import did_you_mean
from .kernel import Kernel, on_objects
from .objects import is_object_list, noted, own_values

DECLARED = ("positive_semidefinite", "translation", "thread_safe")
"""Names of declarations that a function or an object may bring."""
_TILES = (
    "a kernel is called with tiles, not with pairs of rows: X of shape (n, d) and Y of shape (m, d), "
    "and returns all n x m values, shape (n, m)"
)


class _Foreign(Kernel):
    """Shared by the adapters: the properties that a Kernel class declares are declared by keyword here."""

    slot: ClassVar[str]
    """The parameter that holds the wrapped function or object."""

    @classmethod
    def declared(cls, thing: Any, declarations: dict[str, Any]) -> Self:
        """The kernel of a function or an object, with its declarations."""
        unknown = [name for name in declarations if name not in DECLARED]
        if unknown:
            similar = did_you_mean(unknown[0], DECLARED)
            raise TypeError(
                f"{thing!r} takes no kernel parameters here (given: {', '.join(unknown)}): bind them first, as in "
                f"functools.partial(f, {unknown[0]}=...); what may be declared beside it is {', '.join(DECLARED)}"
                + (f" ({similar})" if similar else "")
            )
        return cls(**{cls.slot: thing}, **declarations)

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
        block = getattr(self.wrapped, "block", None)
        return block if callable(block) else self.wrapped  # a function may have a number of that name

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return self._called(self._function, self._label(), (len(X), len(Y)), X, Y)

    def _called(
        self, function: Callable[..., Any], label: str, shape: tuple[int, ...], *tiles: np.ndarray
    ) -> np.ndarray:
        shapes = " and ".join(str(tile.shape) for tile in tiles)
        try:
            values = function(*tiles)
        except Exception as error:
            if type(error) is ValueError:  # as numpy raises it where a function of two points is given tiles
                raise ValueError(f"{label} failed on shapes {shapes}: {_TILES} ({error})") from error
            error.add_note(f"raised by {label}, which fastkpca called with shapes {shapes}; {_TILES}")
            raise
        return own_values(values, shape, tiles[0].dtype, label, _TILES)

    def on_lists(self, A: list, B: list) -> Any:
        return self._function(A, B)

    def declarations(self) -> dict[str, Any]:
        """Every parameter except the wrapped function or object."""
        return {name: getattr(self, name) for name in DECLARED}

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

    def _label(self) -> str:
        name = getattr(self.function, "__qualname__", None) or type(self.function).__name__
        return f"the kernel function {name}"


class ObjectKernel(_Foreign):
    """Any object with ``block(X, Y)``, and ``diagonal(X)`` where it has one, that is not a ``Kernel``.

    ``positive_semidefinite``, ``translation`` and ``thread_safe`` are read from the object where it has them.
    """

    object: Any
    slot = "object"
    parameters = {"object": None, **dict.fromkeys(DECLARED)}

    def check(self) -> None:
        if not callable(getattr(self.object, "block", None)):
            raise TypeError(f"object is {self.object!r}; give an object with a method block(X, Y)")
        for name in DECLARED:
            if getattr(self, name) is None:
                self.__dict__[name] = self._attribute(name, getattr(Kernel, name))
        super().check()

    def _attribute(self, name: str, default: Any) -> Any:
        with noted(f"raised by {type(self.object).__name__}.{name}"):
            return getattr(self.object, name, default)

    def _label(self) -> str:
        return f"{type(self.object).__name__}.block"

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        method = self._attribute("diagonal", None)
        if method is None:
            return super().diagonal(X)
        return self._called(method, f"{type(self.object).__name__}.diagonal", (len(X),), X)

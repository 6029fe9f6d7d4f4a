"""Calls a plugin's methods and names the plugin in every error. ``Proxy`` is the base of the wrappers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from ..errors import KernelContractError, KernelParameterError, PluginError
from .adapters import CallableKernel, ObjectKernel


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _shapes(arguments: Sequence[Any]) -> str:
    shapes = [str(x.shape) for x in arguments if isinstance(x, np.ndarray)]
    return f" on shape{'s' * (len(shapes) > 1)} {' and '.join(shapes)}" if shapes else ""


@dataclass(frozen=True)
class Origin:
    """Whose kernel it is: ``who`` for the text of an error; ``installed``: by an entry point, of a distribution.

    Names it in whatever goes wrong in a call into it.
    """

    who: str
    installed: bool

    def call(self, owner: Any, method: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """function(*arguments, **options), which is ``method`` of ``owner``."""
        try:
            return function(*arguments, **options)
        except (KernelParameterError, PluginError, MemoryError):
            raise  # the user's to mend, named already, or nobody's fault
        except (Exception, SystemExit) as error:
            text = self.text(owner, method, arguments)
            if not self.installed:  # the user's own code: the type stays what it was
                if not isinstance(owner, (CallableKernel, ObjectKernel)):
                    error.add_note(f"raised by {text}")
                raise
            raise PluginError(
                f"{text} raised {type(error).__name__}: {error}; report this to its authors (where it fails only with "
                "several threads, n_threads=1 helps, and the kernel must say thread_safe = False)"
            ) from error

    def text(self, owner: Any, method: str, arguments: Sequence[Any]) -> str:
        return f"{self.who}: {type(owner).__name__}.{method}{_shapes(arguments)}"


class Proxy:
    """Stands in for an object from outside: a member that the subclass does not define is read from that object.

    The last base of a subclass is the protocol (``Kernel``, ``FeatureMap``, ``Summation``). Its attributes are read
    from the object, and its methods are called on the object with their failures named.
    """

    _inner: Any
    _origin: Origin

    def __init_subclass__(cls) -> None:
        members = {name: member for base in reversed(cls.__mro__[2:-1]) for name, member in vars(base).items()}
        for name, member in members.items():
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, _method(name) if isinstance(member, FunctionType) else _attribute(name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_inner", "_origin"):  # not there yet while it is unpickled
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return repr(self._inner)

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        function = getattr(self._inner, method)
        return self._origin.call(self._inner, method, function, *map(_read_only, arguments), **options)

    def _array(self, method: str, shape: tuple[int, ...], *arguments: Any) -> np.ndarray:
        """The result of a call, as an array of this shape and at least the precision of the first argument."""
        values = np.asarray(self._call(method, *arguments))
        dtype = arguments[0].dtype
        if values.dtype.kind != "f" or values.dtype.itemsize < dtype.itemsize:
            self._refuse(method, arguments, f"returned {values.dtype} values; real numbers, {dtype}, are due")
        if values.shape != shape:
            self._refuse(method, arguments, f"returned shape {values.shape}; shape {shape} is due")
        # a bound that comes in float64 is not rounded to float32
        return values.astype(dtype, copy=False) if values.ndim == 2 else values

    def _hold_finite(self, method: str, values: np.ndarray, arguments: Sequence[Any], needed: str) -> None:
        for place in np.argwhere(~np.isfinite(values))[:1]:
            where = ", ".join(f"{word} {i}" for word, i in zip(("row", "column"), place))
            self._refuse(method, arguments, f"returned {values[tuple(place)]} (first at {where}); {needed}")

    def _refuse(self, method: str, arguments: Sequence[Any], fault: str) -> NoReturn:
        raise KernelContractError(f"{self._origin.text(self._inner, method, arguments)} {fault}")


def _method(name: str) -> Callable[..., Any]:
    def method(self: Proxy, *arguments: Any, **options: Any) -> Any:
        return self._call(name, *arguments, **options)

    return method


def _attribute(name: str) -> property:
    def read(self: Proxy) -> Any:
        value = getattr(self._inner, name)
        return value.item() if isinstance(value, np.generic) else value

    return property(read)

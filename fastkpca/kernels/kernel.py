"""``Kernel``, which authors build on: the protocol, with operators; and the kernels that these make.

All of them in one file, since an operator of the one makes another. Their rules are in ``combined``, ``columns`` and
``objects``.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from .._core import tiles
from ..base import protocol
from ..errors import KernelParameterError
from .columns import OnColumns
from .combined import Product, Scaled, Sum
from .objects import OnObjects, check_none_missing, is_object_list


class Kernel(protocol.Kernel):
    __doc__ = protocol.Kernel.__doc__
    __array_ufunc__ = None  # numpy's numbers leave ``np.float64(2) * kernel`` to __rmul__

    if TYPE_CHECKING:  # of such a kernel the core makes others such

        def unguarded(self) -> Kernel: ...
        def unbound(self) -> Kernel: ...
        def resolve(self, data: protocol.Summary) -> Kernel: ...
        def numbered(self, names: tuple[str, ...]) -> Kernel: ...

    def __new__(cls, *arguments: Any, **parameters: Any) -> Self:
        for given, value in parameters.items() if cls.width_parameter else ():
            if cls.aliases.get(given, (given,))[0] == cls.width_parameter and _is_list(value):
                return cast(Self, _with_widths(cls, given, parameters))
        return super().__new__(cls)

    @property
    def takes_points(self) -> bool:
        return type(self).bind is Kernel.bind and not self.takes_objects

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        return on_objects(self, X) if self.takes_objects else (self, X)

    def __add__(self, other: Any) -> Kernel:
        """k1 + k2: its feature map is both maps, one after the other."""
        if isinstance(other, Kernel):
            return SumKernel(parts=(self, other))
        if isinstance(other, numbers.Real):
            if other == 0:  # with which sum(kernels) begins
                return self
            raise TypeError(
                f"{other!r} and a kernel cannot be added: a constant does not change the centred kernel matrix; to "
                f"scale a kernel multiply it, as in {other!r} * kernel"
            )
        return _no_kernel(other, "+")

    __radd__ = __add__

    def __mul__(self, other: Any) -> Kernel:
        """k1 * k2, or a positive number times k."""
        if isinstance(other, Kernel):
            return ProductKernel(parts=(self, other))
        if isinstance(other, numbers.Real):
            return ScaledKernel(factor=other, kernel=self)
        return _no_kernel(other, "*")

    __rmul__ = __mul__

    def _no_difference(self, *other: Any) -> Kernel:
        raise TypeError("kernels are not subtracted: the difference need not be positive semidefinite")

    __sub__ = __rsub__ = __neg__ = _no_difference

    def __pow__(self, exponent: Any) -> Kernel:
        raise TypeError("a kernel has no powers; multiply it, as in kernel * kernel")

    def __truediv__(self, divisor: Any) -> Kernel:
        raise TypeError("kernels are not divided; multiply, as in 0.5 * kernel")


def _no_kernel(other: Any, sign: str) -> Any:
    if type(other) is str:
        raise TypeError(
            f"{other!r} is not a kernel; make one of the name, as in kernel {sign} fastkpca.get_kernel({other!r})"
        )
    return NotImplemented


def _is_list(value: Any) -> bool:
    try:
        return np.ndim(value) == 1
    except ValueError:  # lists of different lengths
        return False


def _with_widths(cls: type[Kernel], given: str, parameters: dict[str, Any]) -> Kernel:
    """The kernel with a width for each column; ``given``: how the user has spelled the width."""
    name = cls.width_parameter
    assert name is not None
    widths = []
    for j, value in enumerate(np.asarray(parameters[given]).tolist()):
        try:
            widths.append(cls(**parameters | {given: value}).get_parameters()[name])
        except KernelParameterError as error:
            raise KernelParameterError(f"{error} (number {j} of {given})") from error
    if not widths or np.ma.is_masked(parameters[given]):
        found = "has masked entries" if widths else "is empty"
        raise KernelParameterError(f"{given} {found}; give one number, or one for each column")
    others = {key: value for key, value in parameters.items() if key != given}
    return ColumnKernel(kernel=cls(**others, **{name: 1.0}), widths=tuple(widths))


class CompiledKernel(Kernel):
    """The base of the kernels whose values are compiled tiles of the core."""

    tile: ClassVar[str]
    """Name of the tile."""

    def compiled_tile(self) -> tuple[str, dict[str, Any]]:
        return self.tile, self.get_parameters()

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return tiles.block(*self.compiled_tile(), X, Y)


def on_objects(kernel: Kernel, X: Any) -> tuple[Kernel, np.ndarray]:
    """A kernel that takes objects on those of the list X: (a kernel on their numbers, the numbers)."""
    if not is_object_list(X):
        raise TypeError(
            f"{kernel!r} is a kernel on objects: X must be a list of one or more of them that are no numbers, lists, "
            f"tuples or arrays themselves; found {type(X).__name__}"
        )
    check_none_missing(X)
    return ObjectListKernel(kernel=kernel, objects=X), np.arange(len(X), dtype=np.float64)[:, None]


class SumKernel(Sum, Kernel):
    """k_1(x, y) + k_2(x, y) + ...

    Parameters
    ----------
    parts : sequence of Kernel
        At least two; sums among them are taken apart.
    """


class ScaledKernel(Scaled, Kernel):
    """factor * k(x, y).

    Parameters
    ----------
    factor : float
        Positive.
    kernel : Kernel
    """


class ProductKernel(Product, Kernel):
    """k_1(x, y) k_2(x, y) ...: positive semidefinite where all parts are (Schur).

    Parameters
    ----------
    parts : sequence of Kernel
        At least two; products among them are taken apart.
    """


class ColumnKernel(OnColumns, Kernel):
    """k(x, y) of some columns of the rows, each over a width of its own; made by ``on_columns``, or by ``sigma=[...]``.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int or str, optional
        As for ``on_columns``. Default: all, in their order.
    widths : sequence of float, optional
        One for each of these columns. Default: all 1.
    """


class ObjectListKernel(OnObjects, Kernel):
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

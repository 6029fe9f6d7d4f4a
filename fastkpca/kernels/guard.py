"""Layer between the core and kernels from outside: results are checked, and errors name the plugin.

``guarded(kernel)`` is the kernel itself for fastkpca's own. For any other it is a ``Guard`` around it, which

- hands tiles on read-only, and checks the shape and type of what comes back (and a row, a column and the diagonal of
  each tile for NaN and infinity).
- turns what a plugin raises into a PluginError that says which kernel, which distribution, which call on which shapes.
- holds the values on one tile of at most 64 rows against what is declared of them: symmetry, semidefinite or not,
  translation, the bound on them, the compiled tile. Once for each public call, when the parameters are resolved.
- holds against the values on some rows what bounds rest on: each diagonal, each feature map, each product.

A fault that these rows show is an error. A kernel that passes may still be wrong on others: ``fastkpca.testing`` checks
more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import isfinite, isqrt
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from .._core.arrays import contiguous
from ..base import parallel, protocol
from ..base.plugins import DISTRIBUTION
from ..base.protocol import Cost, FeatureMap, Moments, Offer, Summary, Summation
from ..base.rounding import EPS, UNIT
from ..errors import KernelContractError, PluginError
from ..rows.view import Rows
from . import contract
from .adapters import ObjectKernel
from .kernel import Kernel
from .objects import OnObjects
from .registry import Origin, origin

UNKNOWN = float(np.finfo(np.float32).resolution)
"""Error of a kernel value, over the largest, that is allowed for where the kernel states none: it may be of float32."""

CHECKED_ROWS = 64
"""Rows whose diagonal is checked at once, by a tile of block; all rows of a short tile, an eighth of those of a long
one."""

MAP_ROWS = 16
"""Rows of each tile of features that are held against ``residual``: as many kernel values for each as features cost."""

PRODUCT_ROWS = 4
"""Rows of a product that are held against its ``error_bound``."""


def guarded(kernel: protocol.Kernel) -> Kernel:
    """The kernel for the core to use: itself where it is fastkpca's own, else behind a ``Guard``.

    A kernel of fastkpca's that is made of others says so by ``over_parts(function)``: its parts are guarded each.
    """
    if isinstance(kernel, Guard):
        return kernel
    foreign = origin(kernel)
    return cast(Kernel, kernel.over_parts(guarded)) if foreign is None else Guard(kernel, foreign)


@contextmanager
def naming(kernel: protocol.Kernel) -> Iterator[None]:
    """A note on what goes wrong inside, beyond the calls into the kernel: it may be the kernel's doing."""
    try:
        yield
    except Exception as error:
        if isinstance(kernel, Guard) and not isinstance(error, PluginError):
            error.add_note(f"while {kernel._origin.who} was in use")
        raise


def _is_bound(value: Any, limit: float = np.inf) -> bool:
    """True if the value is a finite number from 0 to ``limit``."""
    return isinstance(value, (int, float, np.number)) and bool(np.isfinite(value)) and 0.0 <= float(value) <= limit


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


class Proxy:
    """Stands in for an object from outside: a member that the subclass does not define is read from that object.

    The last base of a subclass is the protocol (``Kernel``, ``FeatureMap``, ``Summation``). Its attributes are read
    from the object, and its methods are called on the object with their failures named.
    """

    _inner: Any
    _origin: Origin

    _allowed: ClassVar[Mapping[str, tuple]] = {}
    """Values that a declaration may have."""

    def __init_subclass__(cls) -> None:
        for name in {name for base in cls.__mro__[2:-1] for name in vars(base)}:
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, property(partial(_member, name=name)))

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


def _member(self: Proxy, name: str) -> Any:
    """The attribute of the object, a declaration among the allowed ones, or its method with failures named."""
    allowed = self._allowed.get(name)
    value = self._origin.call(self._inner, name, getattr, self._inner, name) if allowed else getattr(self._inner, name)
    if callable(value) and not allowed:
        return partial(self._call, name)
    value = value.item() if isinstance(value, np.generic) else value
    if allowed and not any(type(value) is type(x) and value == x for x in allowed):
        self._refuse(name, (), f"is {value!r}; it must be one of {allowed}")
    return value


class Guard(Proxy, Kernel):
    """A kernel from outside, as the core sees it."""

    _allowed = {name: (False, True) for name, value in vars(protocol.Kernel).items() if isinstance(value, bool)} | {
        "translation": (None, "kernel", "centered")
    }

    def __init__(self, kernel: protocol.Kernel, origin: Origin, stated: float | None = None):
        self.__dict__.update(_inner=kernel, _origin=origin, _stated=stated)

    def __reduce__(self) -> tuple:
        return Guard, (self._inner, self._origin, self._stated)

    def __eq__(self, other: object) -> bool:
        return bool(self._inner == (other._inner if isinstance(other, Guard) else other))

    def __hash__(self) -> int:
        return hash(self._inner)

    def over_parts(self, function: Callable[[protocol.Kernel], protocol.Kernel]) -> Kernel:
        return self  # its declarations are about the whole, not its parts

    def unguarded(self) -> Any:
        """The kernel itself."""
        return self._inner

    def refusal(self, fault: str) -> Exception:
        return KernelContractError(f"{self._origin.text(self._inner, 'block', ())} {fault}")

    # Values and derivatives

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        K = self._array("block", (len(X), len(Y)), X, Y)
        if K.size and not _looks_finite(K):
            needed = (
                "kernel values are finite: look for a division by zero where x = y, the root of a number that rounding "
                "made negative, and for overflow (there X on a smaller scale, or other parameters, help)"
            )
            self._hold_finite("block", K, (X, Y), needed)
        return K

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        values = self._array("diagonal", (len(X),), X)
        self._hold_finite("diagonal", values, (X,), "k(x, x) is finite")
        if not _has_own_diagonal(self._inner) or not len(X):
            return values
        # without an entry_error the bounds are about the values of block, and so the diagonal is that of block
        step = 1 if self._stated is None or len(X) <= CHECKED_ROWS else min(8, len(X) // CHECKED_ROWS)
        from_block = protocol.Kernel.diagonal(self, np.ascontiguousarray(X[::step]))
        fault = contract.diagonal_is_of_block(values[::step], from_block, 2 * self.error(from_block))
        if fault is not None:
            self._refuse("diagonal", (X,), fault)
        return values if self._stated is not None else from_block

    def error(self, K: np.ndarray) -> float:
        """Error of a value of ``block`` among those of K: as the kernel states it for the rows of the fit, or such as
        it may have."""
        largest = float(np.abs(K).max(initial=0.0))
        unit = 8.0 * float(np.finfo(K.dtype).eps)
        return max(UNKNOWN, unit) * largest if self._stated is None else self._stated + unit * largest

    def _bound(self, method: str, *arguments: Any) -> float | None:
        bound = self._call(method, *arguments)
        if bound is not None and not _is_bound(bound):
            self._refuse(method, (), f"returned {bound!r}; a finite bound, or None, is due")
        return None if bound is None else float(bound)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        return self._bound("entry_error", data, dtype)

    def value_bound(self, data: Summary) -> float | None:
        return self._bound("value_bound", data)

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        # what fastkpca's own code refuses is the user's to mend
        bind = self._inner.bind
        ours = type(self._inner).bind.__module__.partition(".")[0] == DISTRIBUTION
        bound, rows = bind(X, Y) if ours else self._origin.call(self._inner, "bind", bind, X, Y)
        return self if bound is self._inner else Guard(bound, self._origin), rows

    def resolve(self, data: Summary) -> Kernel:
        resolved = self._call("resolve", data)
        if not isinstance(resolved, Kernel):
            self._refuse("resolve", (), f"returned {resolved!r}; a kernel is due")
        stated = Guard(resolved, self._origin).entry_error(data, np.dtype(np.float64))
        guard = Guard(resolved, self._origin, stated)
        guard._hold_declarations(data)
        return guard

    def _hold_declarations(self, data: Summary) -> None:
        """On a few random rows: what they show is wrong, but what they do not show may still be wrong."""
        size = isqrt(len(data.sample))  # a tile of as many values as the sample has rows: a share of an exact product
        index = np.random.default_rng(0).choice(len(data.sample), size, replace=False)
        S = np.ascontiguousarray(data.sample[index])
        K = self.block(S, S)
        largest, error = float(np.abs(K).max(initial=0.0)), self.error(K)
        faults = [contract.block_is_symmetric(K, error)]
        if self.compiled_tile() is not None:
            faults.append(contract.tile_is_of_block(self, S, K, 2 * error + UNKNOWN * largest))
        if self.positive_semidefinite:
            faults.append(contract.block_is_semidefinite(K, len(S) * (error + 4 * EPS * largest)))
        if self.translation is not None and len(S) > 1:
            shift = float(np.sqrt(np.mean(S * S))) or 1.0
            away = self.block(S + shift, S + shift)
            allowed = 2 * error + UNKNOWN * max(largest, float(np.abs(away).max()))
            faults.append(contract.shift_changes_nothing(K, away, self.translation, shift, allowed))
        for fault in filter(None, faults):
            self._refuse("block", (S, S), fault)
        self.diagonal(S)
        beyond = contract.bound_holds(K, self.value_bound(data), error)
        if beyond is not None:
            self._refuse("value_bound", (), beyond)

    # Feature maps and products

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        # tol = 0 asks for maps that leave nothing out: the author of a truncated map may divide by tol
        offers = self._offers("feature_maps", data, tol if tol > 0.0 else UNIT, max_features)
        return [self._map_offer(offer) for offer in offers if tol > 0.0 or offer.cost.residual == 0.0]

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        return [self._summation_offer(offer, tol) for offer in self._offers("summations", data_x, data_y, tol)]

    def _offers(self, method: str, *arguments: Any) -> list[Offer]:
        offered = self._call(method, *arguments)
        # a generator runs while it is listed, so that is watched too
        offers = self._origin.call(self._inner, method, list, offered) if np.iterable(offered) else [offered]
        for offer in offers:
            if not (isinstance(offer, Offer) and isinstance(offer.cost, Cost) and callable(offer.build)):
                self._refuse(method, (), f"returned {offer!r}; a sequence of Offer is due")
        return offers

    def _map_offer(self, offer: Offer) -> Offer:
        def build(sample: np.ndarray) -> FeatureMap:
            label = f"feature_maps()[{offer.name!r}].build"
            made = self._guarded_map(self._origin.call(self._inner, label, offer.build, sample), label)
            S = np.ascontiguousarray(sample[:: max(1, len(sample) // CHECKED_ROWS)])
            self.hold_map(made, S, made.features(S), made.residual(S), label)
            return made

        return replace(offer, build=build)

    def _guarded_map(self, feature_map: Any, label: str) -> FeatureMap:
        if not isinstance(feature_map, FeatureMap):
            self._refuse(label, (), f"returned {feature_map!r}; a FeatureMap is due")
        if type(feature_map).__module__.startswith("fastkpca."):
            return feature_map
        return GuardedMap(feature_map, self._origin, self)

    def hold_map(self, made: FeatureMap, X: np.ndarray, Phi: np.ndarray, residual: np.ndarray, label: str) -> None:
        """Check of the features of these rows, and of their residual, against the values of ``block``."""
        K = self.block(X, X)
        fault = contract.map_stays_below(made, Phi, residual, K, self.error(K))
        if fault:
            self._refuse(label, (X,), f"({made!r}): {fault}")

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        made = self._call("feature_map_from_state", header, arrays)
        return self._guarded_map(made, "feature_map_from_state")

    def _summation_offer(self, offer: Offer, tol: float | None) -> Offer:
        def build(X: Rows, Y: Rows | None = None) -> Summation:
            label = f"summations()[{offer.name!r}].build"
            made = self._origin.call(self._inner, label, offer.build, X, Y)
            if not isinstance(made, Summation):
                self._refuse(label, (), f"returned {made!r}; a Summation is due")
            shape = (len(X), len(X if Y is None else Y))
            if tuple(made.shape) != shape:
                self._refuse(label, (), f"has shape {made.shape}; shape {shape} is due")
            if not _is_bound(made.error_bound, np.inf if tol is None else tol):
                needed = "a finite bound is due" if tol is None else f"at most {tol:g} was asked for"
                self._refuse(label, (), f"has error_bound {made.error_bound!r}; {needed}")
            return GuardedSummation(made, self._origin, self, X, Y)

        return replace(offer, build=build)


def _has_own_diagonal(kernel: protocol.Kernel) -> bool:
    """True if ``diagonal`` is more than the values of ``block``."""
    if isinstance(kernel, ObjectKernel):
        return hasattr(kernel.wrapped, "diagonal")
    return type(kernel).diagonal not in (protocol.Kernel.diagonal, OnObjects.diagonal)


def _looks_finite(K: np.ndarray) -> bool:
    """By its first row, first column and diagonal, where a row that the kernel cannot take shows; microseconds."""
    row, column, diagonal = K[0], K[:, 0], K.diagonal()
    with np.errstate(over="ignore", invalid="ignore"):  # then each entry is checked
        return isfinite(row.dot(row) + column.dot(column) + diagonal.dot(diagonal))


class GuardedMap(Proxy, FeatureMap):
    """A feature map of a class from outside."""

    thread_safe = True  # where the map and the kernel are

    def __init__(self, feature_map: FeatureMap, origin: Origin, kernel: Guard):
        self.__dict__.update(_inner=feature_map, _origin=origin, _kernel=kernel)
        self.__dict__.update(thread_safe=bool(feature_map.thread_safe) and kernel.thread_safe)

    def features(self, X: np.ndarray) -> np.ndarray:
        return self._array("features", (len(X), self.n_features), X)

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        residual = self._array("residual", (len(X),), X, Phi)
        if not (residual >= 0).all():
            row = int(np.argmin(residual >= 0))
            fault = f"returned {residual[row]} (first at row {row}); it is never negative: an upper bound"
            self._refuse("residual", (X,), fault)
        if Phi is not None and len(X) and Phi.dtype == np.float64:
            few = slice(None, None, -(-len(X) // MAP_ROWS))
            tile = np.ascontiguousarray(X[few], dtype=np.float64)
            self._kernel.hold_map(self, tile, Phi[few], residual[few], "feature_maps")
        return residual

    def outside_error(self, X: np.ndarray) -> np.ndarray:
        return self._array("outside_error", (len(X),), X)

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        return self._array("accumulate", (self.n_features, U.shape[1]), X, U)

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self._array("apply", (len(X), C.shape[1]), X, C)

    def new_moments(self) -> Moments:
        made = self._call("new_moments")
        return Moments(self) if type(made) is Moments else made

    def widened(self, kernel: protocol.Kernel, data: Summary, radius: float) -> FeatureMap:
        # what it raises is about the user's rows
        widened = self._inner.widened(kernel, data, radius)
        return self if widened is self._inner else GuardedMap(widened, self._origin, self._kernel)


class GuardedSummation(Proxy, Summation):
    """A product from outside."""

    gives_norm = False  # norms from outside are not used

    def __init__(self, summation: Summation, origin: Origin, kernel: Guard, X: Rows, Y: Rows | None):
        self.__dict__.update(_inner=summation, _origin=origin, _kernel=kernel, _sides=(X, X if Y is None else Y))
        self.__dict__.update(_checks=Counter())

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._product("matmat", U, self.shape[0])

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._product("rmatmat", U, self.shape[1])

    def _product(self, method: str, U: np.ndarray, n: int) -> np.ndarray:
        U = contiguous(U, np.float64)
        product = self._array(method, (n, U.shape[1]), U)
        if not np.isfinite(product.sum()) and np.isfinite(U).all():
            self._hold_finite(method, product, (U,), "products with finite numbers are finite")
        count = self._checks[method] = self._checks[method] + 1
        self._checks[method, U.shape[1]] += 1
        first = count & (count - 1) == 0 or self._checks[method, U.shape[1]] == 1
        if U.size and n and (first if all(rows.in_memory for rows in self._sides) else count == 1):
            self._hold_product(method, product, U)
        return product

    def _hold_product(self, method: str, product: np.ndarray, U: np.ndarray) -> None:
        """A few rows of the product against the values of ``block``; others the next time."""
        left, right = self._sides if method == "matmat" else self._sides[::-1]
        random = np.random.default_rng(self._checks[method])
        index = np.sort(random.choice(len(product), min(len(product), PRODUCT_ROWS), replace=False))
        few, n, step = left.take(index), len(right), parallel.tile_rows(right.n_features)
        parts = (right.tile(start, min(n, start + step)) for start in range(0, n, step))
        K = np.hstack([self._kernel.block(few, part) for part in parts])
        allowed = float(self._inner.error_bound) + self._kernel.error(K)
        fault = contract.product_keeps_bound(product[index], K, U, allowed)
        if fault is not None:
            self._refuse(method, (U,), fault)

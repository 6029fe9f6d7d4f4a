"""Layer between the core and kernels from outside: results are checked, and errors name the plugin.

``guarded(kernel)`` is the kernel itself for fastkpca's own. For any other it is a ``Guard`` around it, which

- hands tiles on read-only, and checks the shape and type of what comes back (and its first row, first column and
  diagonal for NaN and infinity; of a product all entries).
- turns what a plugin raises into a PluginError that says which kernel, which distribution, which call on which shapes.
- holds the values on one tile of at most 64 rows against what is declared of them: symmetry, semidefinite or not,
  translation, the bound on them, the compiled tile. Once for each public call, when the parameters are resolved.
- holds against the values on some rows what bounds rest on: each diagonal, each feature map, each product.

A fault that these rows show is an error. A kernel that passes may still be wrong on others: ``fastkpca.testing`` checks
more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
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
from ..errors import KernelContractError
from ..rows.view import Rows
from . import contract
from .adapters import ObjectKernel
from .kernel import Kernel
from .objects import OnObjects, noted
from .registry import Origin, origin

UNSTATED_ERROR = float(np.finfo(np.float32).resolution)
"""Error of a kernel value, over the largest, that is allowed for where the kernel states none: it may be of float32."""

CHECKED_ROWS = 64
"""Rows whose diagonal is checked at once, by a tile of block; all rows of a short tile, an eighth of those of a long
one."""

MAP_ROWS = 16
"""Rows of each tile of features that are held against ``residual``: as many kernel values for each as features cost."""

PRODUCT_ROWS = 4
"""Rows of a product that are held against its ``error_bound``."""

FINITE = (
    "finite values are due: look for a division by zero where x = y, the root of a number that rounding made negative, "
    "and for overflow (there X on a smaller scale, or other parameters, help)"
)


def guarded(kernel: protocol.Kernel) -> Kernel:
    """The kernel for the core to use: itself where it is fastkpca's own, else behind a ``Guard``.

    A kernel of fastkpca's that is made of others says so by ``over_parts(function)``: its parts are guarded each.
    """
    if isinstance(kernel, Guard):
        return kernel
    foreign = origin(kernel)
    return cast(Kernel, kernel.over_parts(guarded)) if foreign is None else Guard(kernel, foreign)


def naming(kernel: protocol.Kernel) -> AbstractContextManager[None]:
    """A note on what goes wrong inside, beyond the calls into the kernel: it may be the kernel's doing."""
    return noted(f"while {kernel._origin.who} was in use") if isinstance(kernel, Guard) else nullcontext()


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

    _allowed: ClassVar[Mapping[str, tuple]] = {}
    """Values that a declaration may have."""

    def __init__(self, inner: Any, origin: Origin, **more: Any):
        self.__dict__.update(_inner=inner, _origin=origin, **more)

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
        """The result of a call, as a finite array of this shape and at least the precision of the first argument."""
        values = np.asarray(self._call(method, *arguments))
        dtype = arguments[0].dtype
        if values.dtype.kind != "f" or values.dtype.itemsize < dtype.itemsize:
            self._refuse(method, arguments, f"returned {values.dtype} values; real numbers, {dtype}, are due")
        if values.shape != shape:
            self._refuse(method, arguments, f"returned shape {values.shape}; shape {shape} is due")
        given = [x for x in arguments if x is not None]
        if values.size and not self._is_finite(values) and all(np.isfinite(x).all() for x in given):
            for index in np.argwhere(~np.isfinite(values))[:1]:
                where = ", ".join(f"{word} {i}" for word, i in zip(("row", "column"), index))
                self._refuse(method, arguments, f"returned {values[tuple(index)]} (first at {where}); {FINITE}")
        # a bound that comes in float64 is not rounded to float32
        return values.astype(dtype, copy=False) if values.ndim == 2 else values

    def _is_finite(self, values: np.ndarray) -> bool:
        """False where each entry is to be checked."""
        return _margins_are_finite(values)

    def _hold(self, method: str, arguments: Sequence[Any], fault: str | None) -> None:
        if fault is not None:
            self._refuse(method, arguments, fault)

    def _refuse(self, method: str, arguments: Sequence[Any], fault: str) -> NoReturn:
        raise KernelContractError(f"{self._origin.text(self._inner, method, arguments)} {fault}")


def _member(self: Proxy, name: str) -> Any:
    """The attribute of the object, a declaration among the allowed ones, or its method with failures named."""
    allowed = self._allowed.get(name)
    if allowed is None:
        value = getattr(self._inner, name)
        return partial(self._call, name) if callable(value) else value
    value = self._origin.call(self._inner, name, getattr, self._inner, name)
    value = value.item() if isinstance(value, np.generic) else value
    if not any(type(value) is type(x) and value == x for x in allowed):
        self._refuse(name, (), f"is {value!r}; it must be one of {allowed}")
    return value


class Guard(Proxy, Kernel):
    """A kernel from outside, as the core sees it."""

    _allowed = {name: (False, True) for name, value in vars(protocol.Kernel).items() if isinstance(value, bool)} | {
        "translation": (None, "kernel", "centered")
    }

    _stated: float | None = None
    """The ``entry_error`` of float64 tiles for the rows of the fit."""

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

    # Values

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return self._array("block", (len(X), len(Y)), X, Y)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        values = self._array("diagonal", (len(X),), X)
        if not _has_own_diagonal(self._inner) or not len(X):
            return values
        # without an entry_error the bounds are about the values of block, and so the diagonal is that of block
        step = 1 if self._stated is None or len(X) <= CHECKED_ROWS else min(8, len(X) // CHECKED_ROWS)
        from_block = protocol.Kernel.diagonal(self, np.ascontiguousarray(X[::step]))
        fault = contract.diagonal_is_of_block(values[::step], from_block, 2 * self.error(from_block))
        self._hold("diagonal", (X,), fault)
        return values if self._stated is not None else from_block

    def error(self, K: np.ndarray) -> float:
        """Error of a value of ``block`` among those of K: as the kernel states it for the rows of the fit, or such as
        it may have."""
        largest = float(np.abs(K).max(initial=0.0))
        unit = 8.0 * float(np.finfo(K.dtype).eps)
        return max(UNSTATED_ERROR, unit) * largest if self._stated is None else self._stated + unit * largest

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
        guard = Guard(resolved, self._origin)
        guard.__dict__["_stated"] = guard.entry_error(data, np.dtype(np.float64))
        guard._hold_declarations(data)
        return guard

    def _hold_declarations(self, data: Summary) -> None:
        """On a few random rows: what they show is wrong, but what they do not show may still be wrong."""
        n = len(data.sample)
        size = isqrt(n)  # a tile of as many values as the sample has rows: a share of an exact product
        S = data.sample[np.random.default_rng(0).choice(n, size, replace=False)]
        K = self.block(S, S)
        largest, error = float(np.abs(K).max()), self.error(K)
        self._hold("block", (S, S), contract.block_is_symmetric(K, error))
        if (compiled := self.compiled_tile()) is not None:
            allowed = 2 * error + UNSTATED_ERROR * largest
            self._hold("block", (S, S), contract.tile_is_of_block(compiled, S, K, allowed))
        if self.positive_semidefinite:
            fault = contract.block_is_semidefinite(K, len(S) * (error + 4 * EPS * largest))
            self._hold("block", (S, S), fault)
        if self.translation is not None and size > 1:
            shift = float(np.sqrt(np.mean(S * S))) or 1.0
            away = self.block(S + shift, S + shift)
            allowed = 2 * error + UNSTATED_ERROR * max(largest, float(np.abs(away).max()))
            self._hold("block", (S, S), contract.shift_changes_nothing(K, away, self.translation, shift, allowed))
        diagonal = self._array("diagonal", (size,), S)
        self._hold("diagonal", (S,), contract.diagonal_is_of_block(diagonal, K.diagonal(), 2 * error))
        self._hold("value_bound", (), contract.bound_holds(K, self.value_bound(data), error))

    # Feature maps and products

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        # tol = 0 asks for maps that leave nothing out: the author of a truncated map may divide by tol
        offers = self._offers("feature_maps", data, tol if tol > 0.0 else UNIT, max_features)
        return [self._map_offer(offer) for offer in offers if tol > 0.0 or offer.cost.residual == 0.0]

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        return [self._summation_offer(offer, tol) for offer in self._offers("summations", data_x, data_y, tol)]

    def _offers(self, method: str, *arguments: Any) -> list[Offer]:
        def listed() -> list[Any]:
            offered = getattr(self._inner, method)(*arguments)
            return list(offered) if np.iterable(offered) else [offered]

        # a generator runs while it is listed
        offers = self._origin.call(self._inner, method, listed)
        for offer in offers:
            if not (isinstance(offer, Offer) and isinstance(offer.cost, Cost) and callable(offer.build)):
                self._refuse(method, (), f"returned {offer!r}; a sequence of Offer is due")
        return offers

    def _map_offer(self, offer: Offer) -> Offer:
        def build(sample: np.ndarray) -> FeatureMap:
            label = f"feature_maps()[{offer.name!r}].build"
            made = self._guarded_map(label, offer.build, sample)
            S = np.ascontiguousarray(sample[:: max(1, len(sample) // CHECKED_ROWS)])
            self.hold_map(made, S, made.features(S), made.residual(S), label)
            return made

        return replace(offer, build=build)

    def _guarded_map(self, label: str, build: Callable[..., Any], *arguments: Any) -> FeatureMap:
        made = self._origin.call(self._inner, label, build, *arguments)
        if not isinstance(made, FeatureMap):
            self._refuse(label, (), f"returned {made!r}; a FeatureMap is due")
        ours = type(made).__module__.startswith("fastkpca.")
        return made if ours else GuardedMap(made, self._origin, _kernel=self)

    def hold_map(self, made: FeatureMap, X: np.ndarray, Phi: np.ndarray, residual: np.ndarray, label: str) -> None:
        """Check of the features of these rows, and of their residual, against the values of ``block``."""
        K = self.block(X, X)
        self._hold(label, (X,), contract.map_stays_below(made, Phi, residual, K, self.error(K)))

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        return self._guarded_map("feature_map_from_state", self._inner.feature_map_from_state, header, arrays)

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
            sides = X, X if Y is None else Y
            return GuardedSummation(made, self._origin, _kernel=self, _sides=sides, _checks=Counter())

        return replace(offer, build=build)


def _has_own_diagonal(kernel: protocol.Kernel) -> bool:
    """True if ``diagonal`` is more than the values of ``block``."""
    if isinstance(kernel, ObjectKernel):
        return hasattr(kernel.wrapped, "diagonal")
    return type(kernel).diagonal not in (protocol.Kernel.diagonal, OnObjects.diagonal)


@np.errstate(over="ignore", invalid="ignore")  # then each entry is checked
def _margins_are_finite(values: np.ndarray) -> bool:
    """By its first row, first column and diagonal, where a row that the kernel cannot take shows; microseconds."""
    margins = (values,) if values.ndim == 1 else (values[0], values[:, 0], values.diagonal())
    return all(isfinite(line.dot(line)) for line in margins)


class GuardedMap(Proxy, FeatureMap):
    """A feature map of a class from outside."""

    @property
    def thread_safe(self) -> bool:
        return bool(self._inner.thread_safe) and self._kernel.thread_safe

    def features(self, X: np.ndarray) -> np.ndarray:
        return self._array("features", (len(X), self.n_features), X)

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        residual = self._array("residual", (len(X),), X, Phi)
        fault = "returned {value} (at row {at[0]}); it is never negative: an upper bound"
        self._hold("residual", (X,), contract.difference(np.minimum(residual, 0.0), 0.0, 0.0, fault))
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
        return self if widened is self._inner else GuardedMap(widened, self._origin, _kernel=self._kernel)


class GuardedSummation(Proxy, Summation):
    """A product from outside."""

    gives_norm = False  # norms from outside are not used

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._product("matmat", U, self.shape[0])

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._product("rmatmat", U, self.shape[1])

    @np.errstate(over="ignore", invalid="ignore")
    def _is_finite(self, values: np.ndarray) -> bool:
        return isfinite(values.sum())

    def _product(self, method: str, U: np.ndarray, n: int) -> np.ndarray:
        U = contiguous(U, np.float64)
        product = self._array(method, (n, U.shape[1]), U)
        self._checks[method, U.shape[1]] += 1
        count = self._checks[method, U.shape[1]]
        in_memory = all(rows.in_memory for rows in self._sides)
        due = count & (count - 1) == 0 if in_memory else self._checks.total() == 1
        if due and U.size and n:
            self._hold_product(method, product, U)
        return product

    def _hold_product(self, method: str, product: np.ndarray, U: np.ndarray) -> None:
        """A few rows of the product against the values of ``block``; others the next time."""
        left, right = self._sides if method == "matmat" else self._sides[::-1]
        random = np.random.default_rng(self._checks.total())
        index = np.sort(random.choice(len(product), min(len(product), PRODUCT_ROWS), replace=False))
        few, n, step = left.take(index), len(right), parallel.tile_rows(right.n_features)
        parts = (right.tile(start, min(n, start + step)) for start in range(0, n, step))
        K = np.hstack([self._kernel.block(few, part) for part in parts])
        allowed = float(self._inner.error_bound) + self._kernel.error(K)
        self._hold(method, (U,), contract.product_keeps_bound(product[index], K, U, allowed))

"""Between the core and kernels from outside: every call is named where it fails, every claim is looked at once.

``guarded(kernel)`` is the kernel itself for fastkpca's own. For any other it is a ``Guard`` around it, which

- hands tiles on read-only, and checks the shape and type of what comes back (and a row, a column and the diagonal of
  each tile for NaN and infinity);
- turns what a plugin raises into a PluginError that says which kernel, which distribution, which call on which shapes;
- looks at the claims once for each public call, when the parameters are resolved: a tile of at most 64 x 64 values for
  symmetry, diagonal, translation and semidefiniteness, at most as many rows for a feature map, one row of exact
  values for each direction of a summation.

The looks are random samples: what they find is wrong, but what they do not find may still be (docs/kernels.md). They
read no more than 1 % of the values that an exact product needs. Kernels without ``entry_error`` are judged to 1e-6 of
their largest value, others to what they claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from inspect import signature
from math import isfinite
from typing import Any, NoReturn

import numpy as np

from ..base.protocol import Cost, FeatureMap, Kernel, Moments, Offer, Summary, Summation
from ..base.rounding import EPS
from ..errors import KernelContractError, KernelParameterError, PluginError, did_you_mean
from ..rows.view import Rows
from . import contract
from ._adapters import CallableKernel, ObjectKernel
from ._registry import Origin, get_kernel, origin

__all__ = ["Guard", "guarded", "naming"]

MOST_ROWS = 64
SHARE = 14
"""A look at m = N / 14 rows reads m^2 + 2 m/3 2m/3 + (m/3)^2 < 1.6 m^2 < 0.8 % of N^2 values, and m on the diagonal."""
MAP_SHARE = 50
UNKNOWN = 1e-6
"""Error of a kernel value, over the largest, that is allowed for where the kernel states none."""


def guarded(kernel: Kernel) -> Kernel:
    """The kernel for the core to use: itself where it is fastkpca's own, else behind a ``Guard``.

    A kernel of fastkpca's that is made of others says so by ``over_parts(function)``: its parts are guarded each.
    """
    if isinstance(kernel, Guard):
        return kernel
    found = origin(kernel)
    return kernel.over_parts(guarded) if found is None else Guard(kernel, found)


OTHER_NAMES = {
    "n_components": "c",
    "NumComponents": "c",
    "n_jobs": "n_threads",
    "random_state": "rng",
    "eigen_solver": "method",
    "max_iter": "max_passes",
    "tolerance": "tol",
    "KernelFunction": "kernel",
    "KernelScale": "sqrt(2) * sigma (Gaussian), 1 / sqrt(scale) (polynomial)",
    "PolynomialOrder": "degree ('polynomial')",
    "kernel_params": "sigma=, degree= and so on, each by itself,",
    "kpar": "sigma=, degree= and so on, each by itself,",
}
"""What scikit-learn, MATLAB and R call the arguments of our functions, and those of kernels."""


def given_kernel(kernel: Any, parameters: dict[str, Any], function: Callable[..., Any]) -> Kernel:
    """The kernel that a function of ours was given, guarded.

    What arrives as a parameter of the kernel and is none may be meant for the function: then the error says so.
    """
    try:
        return guarded(get_kernel(kernel, **parameters))
    except TypeError as error:
        own = [x.name for x in signature(function).parameters.values() if x.kind is not x.VAR_KEYWORD]
        others = {name: here for name, here in OTHER_NAMES.items() if here in own or not here.isidentifier()}
        hints = []
        for name in parameters:
            near = did_you_mean(name, [*own, *others], most=1)
            if name in others:
                hints.append(f"{name} is called {others[name]} here")
            elif near and f"no parameter {name!r}" in str(error):
                meant = near.split("'")[1]
                here = f" (called {others[meant]} here)" if meant in others else ""
                hints.append(f"or, of {function.__name__} itself, {near.rstrip('?')}{here}?")
        if not hints:
            raise
        raise TypeError(f"{error} ({'; '.join(hints)})") from error


@contextmanager
def naming(kernel: Kernel) -> Iterator[None]:
    """A note on what goes wrong inside, beyond the calls into the kernel: it may be the kernel's doing."""
    try:
        yield
    except Exception as error:
        if isinstance(kernel, Guard) and not isinstance(error, PluginError):
            error.add_note(f"while {kernel._watch.origin.who} was in use")
        raise


def _is_bound(value: Any, most: float = np.inf) -> bool:
    return isinstance(value, (int, float, np.number)) and bool(np.isfinite(value)) and 0.0 <= float(value) <= most


def _shapes(arguments: Sequence[Any]) -> str:
    found = [str(x.shape) for x in arguments if isinstance(x, np.ndarray)]
    return f" on shape{'s' * (len(found) > 1)} {' and '.join(found)}" if found else ""


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.view()
    X.flags.writeable = False
    return X


class _Watch:
    """Names the plugin in whatever goes wrong in a call into it."""

    def __init__(self, found: Origin):
        self.origin = found

    def call(self, owner: Any, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (KernelParameterError, PluginError, MemoryError):
            raise  # the user's to mend, named already, or nobody's fault
        except (Exception, SystemExit) as error:
            text = self.text(owner, method, arguments)
            if not self.origin.installed:  # the user's own code: the type stays what it was
                if not isinstance(owner, (CallableKernel, ObjectKernel)):
                    error.add_note(f"raised by {text}")
                raise
            raise PluginError(
                f"{text} raised {type(error).__name__}: {error}; report this to its authors (where it fails only with "
                "several threads, n_threads=1 helps, and the kernel must say thread_safe = False)"
            ) from error

    def text(self, owner: Any, method: str, arguments: Sequence[Any]) -> str:
        return f"{self.origin.who}: {type(owner).__name__}.{method}{_shapes(arguments)}"

    def refuse(self, owner: Any, method: str, arguments: Sequence[Any], found: str, needed: str) -> NoReturn:
        raise KernelContractError(f"{self.text(owner, method, arguments)} {found}; {needed}")

    def array(self, owner: Any, method: str, result: Any, shape: tuple[int, ...], *arguments: np.ndarray) -> np.ndarray:
        """What a call returned, as an array of this shape and at least the precision of the first argument."""
        values = np.asarray(result)
        dtype = arguments[0].dtype
        if values.dtype.kind != "f" or values.dtype.itemsize < dtype.itemsize:
            self.refuse(owner, method, arguments, f"returned {values.dtype} values", f"real numbers, {dtype}, are due")
        if values.shape != shape:
            self.refuse(owner, method, arguments, f"returned shape {values.shape}", f"shape {shape} is due")
        # a bound that comes in float64 is not rounded to float32
        return values.astype(dtype, copy=False) if values.ndim == 2 else values


class Guard(Kernel):
    """A kernel from outside, as the core sees it."""

    def __init__(self, kernel: Kernel, found: Origin):
        self.__dict__.update(_inner=kernel, _watch=_Watch(found), _look=None)

    def __reduce__(self) -> tuple:
        return Guard, (self._inner, self._watch.origin)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_inner", "_watch"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return repr(self._inner)

    def __eq__(self, other: object) -> bool:
        return bool(self._inner == (other._inner if isinstance(other, Guard) else other))

    def __hash__(self) -> int:
        return hash(self._inner)

    def get_parameters(self) -> dict[str, Any]:
        return self._inner.get_parameters()

    def unbound(self) -> Kernel:
        """The kernel itself, as a model keeps it."""
        return self._watch.call(self._inner, "unbound", self._inner.unbound)

    def over_parts(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        return self

    def map_parts(self) -> tuple[Kernel, ...]:
        return self._watch.call(self._inner, "map_parts", self._inner.map_parts)

    def unguarded(self) -> Kernel:
        """The kernel itself."""
        return self._inner

    # What it declares

    def _declared(self, name: str, allowed: tuple) -> Any:
        value = self._watch.call(self._inner, name, getattr, self._inner, name)
        if not any(type(value) is type(x) and value == x for x in allowed) and not isinstance(value, np.bool_):
            self._watch.refuse(self._inner, name, (), f"is {value!r}", f"it must be one of {allowed}")
        return value

    @property
    def positive_semidefinite(self) -> bool:
        return bool(self._declared("positive_semidefinite", (False, True)))

    @property
    def thread_safe(self) -> bool:
        return bool(self._declared("thread_safe", (False, True)))

    @property
    def translation(self) -> str | None:
        return self._declared("translation", (None, "kernel", "centered"))

    @property
    def by_number(self) -> bool:
        return bool(self._declared("by_number", (False, True)))

    @property
    def is_linear(self) -> bool:
        return bool(self._declared("is_linear", (False, True)))

    @property
    def takes_points(self) -> bool:
        return self._inner.takes_points

    # What it computes

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        inner, watch = self._inner, self._watch
        X, Y = _read_only(X), _read_only(Y)
        K = watch.array(inner, "block", watch.call(inner, "block", inner.block, X, Y), (len(X), len(Y)), X, Y)
        if K.size and not _looks_finite(K) and not np.isfinite(K).all():
            row, column = np.argwhere(~np.isfinite(K))[0]
            found = f"returned {K[row, column]} (first at row {row}, column {column} of the tile)"
            needed = (
                "kernel values are finite: look for a division by zero where x = y, the root of a number that rounding "
                "made negative, and for overflow (there X on a smaller scale, or other parameters, help)"
            )
            watch.refuse(inner, "block", (X, Y), found, needed)
        return K

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        inner, watch = self._inner, self._watch
        if type(inner).diagonal is Kernel.diagonal:
            return Kernel.diagonal(self, X)
        X = _read_only(X)
        found = watch.array(inner, "diagonal", watch.call(inner, "diagonal", inner.diagonal, X), (len(X),), X)
        if not np.isfinite(found).all():
            row = int(np.argmin(np.isfinite(found)))
            watch.refuse(inner, "diagonal", (X,), f"returned {found[row]} (first at row {row})", "k(x, x) is finite")
        return found

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        inner = self._inner
        error = self._watch.call(inner, "entry_error", inner.entry_error, data, dtype)
        if error is not None and not _is_bound(error):
            self._watch.refuse(inner, "entry_error", (), f"returned {error!r}", "a finite bound, or None, is due")
        return None if error is None else float(error)

    def value_bound(self, data: Summary) -> float | None:
        inner = self._inner
        most = self._watch.call(inner, "value_bound", inner.value_bound, data)
        if most is not None and not _is_bound(most):
            self._watch.refuse(inner, "value_bound", (), f"returned {most!r}", "a finite bound, or None, is due")
        return None if most is None else float(most)

    def compiled_tile(self) -> tuple[str, dict[str, Any]] | None:
        return self._watch.call(self._inner, "compiled_tile", self._inner.compiled_tile)

    def gradient_weights(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray) -> np.ndarray | None:
        inner, watch, tiles = self._inner, self._watch, tuple(map(_read_only, (X, Y, K)))
        weights = watch.call(inner, "gradient_weights", inner.gradient_weights, *tiles)
        return None if weights is None else watch.array(inner, "gradient_weights", weights, K.shape, *tiles)

    def fixed_point_width(self) -> float | None:
        inner = self._inner
        width = self._watch.call(inner, "fixed_point_width", inner.fixed_point_width)
        if width is not None and not (_is_bound(width) and width > 0):
            needed = "a positive number, or None, is due"
            self._watch.refuse(inner, "fixed_point_width", (), f"returned {width!r}", needed)
        return width

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        inner = self._inner
        if inner.takes_points:
            return self, X
        bound, rows = self._watch.call(inner, "bind", inner.bind, X, Y)
        return self if bound is inner else Guard(bound, self._watch.origin), rows

    def resolve(self, data: Summary) -> Kernel:
        inner = self._inner
        resolved = self._watch.call(inner, "resolve", inner.resolve, data)
        if not isinstance(resolved, Kernel):
            self._watch.refuse(inner, "resolve", (), f"returned {resolved!r}", "a kernel is due")
        guard = Guard(resolved, self._watch.origin)
        guard.__dict__["_look"] = _Look(guard, data)
        return guard

    # What it offers

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        inner = self._inner
        offers = self._watch.call(inner, "feature_maps", inner.feature_maps, data, tol, max_features)
        return [self._map_offer(offer, data) for offer in self._offers(offers, "feature_maps")]

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        inner = self._inner
        offers = self._watch.call(inner, "summations", inner.summations, data_x, data_y, tol)
        return [self._summation_offer(offer, data_x, tol) for offer in self._offers(offers, "summations")]

    def _offers(self, offers: Any, method: str) -> list[Offer]:
        try:
            offers = list(offers)
        except TypeError:
            offers = [offers]
        for offer in offers:
            if not (isinstance(offer, Offer) and isinstance(offer.cost, Cost) and callable(offer.build)):
                self._watch.refuse(self._inner, method, (), f"returned {offer!r}", "a sequence of Offer is due")
        return offers

    def _map_offer(self, offer: Offer, data: Summary) -> Offer:
        def build(*arguments: Any) -> FeatureMap:
            label = f"feature_maps()[{offer.name!r}].build"
            feature_map = self._own_map(self._watch.call(self._inner, label, offer.build, *arguments), label)
            self._known(data).at_map(feature_map)
            return feature_map

        return replace(offer, build=build)

    def _own_map(self, feature_map: Any, label: str) -> FeatureMap:
        if not isinstance(feature_map, FeatureMap):
            self._watch.refuse(self._inner, label, (), f"returned {feature_map!r}", "a FeatureMap is due")
        if type(feature_map).__module__.startswith("fastkpca."):
            return feature_map
        return _GuardedMap(feature_map, self._watch, self.thread_safe)

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        inner = self._inner
        made = self._watch.call(inner, "feature_map_from_state", inner.feature_map_from_state, header, arrays)
        return self._own_map(made, "feature_map_from_state")

    def _summation_offer(self, offer: Offer, data: Summary, tol: float | None) -> Offer:
        def build(X: Rows, Y: Rows | None = None) -> Summation:
            inner, label = self._inner, f"summations()[{offer.name!r}].build"
            made = self._watch.call(inner, label, offer.build, X, Y)
            if not isinstance(made, Summation):
                self._watch.refuse(inner, label, (), f"returned {made!r}", "a Summation is due")
            shape = (len(X), len(X if Y is None else Y))
            if tuple(made.shape) != shape:
                self._watch.refuse(inner, label, (), f"has shape {made.shape}", f"shape {shape} is due")
            most = 1e-10 if tol is None else tol  # None: rounding alone
            if not _is_bound(made.error_bound, most):
                found = f"has error_bound {made.error_bound!r}"
                self._watch.refuse(inner, label, (), found, f"at most {most:g} was asked for")
            return _GuardedSummation(made, self, X, Y, self._known(data))

        return replace(offer, build=build)

    def _known(self, data: Summary) -> _Look:
        if self._look is None:
            self.__dict__["_look"] = _Look(self, data)
        return self._look


def _looks_finite(K: np.ndarray) -> bool:
    """By its first row, first column and diagonal, where a row that the kernel cannot take shows; microseconds."""
    row, column, diagonal = K[0], K[:, 0], K.diagonal()
    with np.errstate(over="ignore", invalid="ignore"):  # then all of it is looked at
        return isfinite(row.dot(row) + column.dot(column) + diagonal.dot(diagonal))


def _forwarded(name: str) -> property:
    return property(lambda self: getattr(self._inner, name))


for _name in vars(Kernel):  # what a guard does not look at is the kernel's own all the same, not the base class's
    if not _name.startswith("_") and _name not in vars(Guard):
        setattr(Guard, _name, _forwarded(_name))


class _Look:
    """One look at what a kernel claims, on a few rows of the sample; keeps the tile for what is built later."""

    def __init__(self, guard: Guard, data: Summary):
        self.guard, self.inner = guard, guard._inner
        self.watch: _Watch = guard._watch
        size = max(2, min(MOST_ROWS, data.n_samples // SHARE, len(data.sample)))
        index = np.random.default_rng(0).choice(len(data.sample), min(size, len(data.sample)), replace=False)
        self.n_samples = data.n_samples
        self.rows = np.ascontiguousarray(data.sample[index])
        self.values = guard.block(self.rows, self.rows)
        self.largest = float(np.abs(self.values).max(initial=0.0))
        error = guard.entry_error(data, np.dtype(np.float64))
        self.error = UNKNOWN * self.largest if error is None else error + 8 * EPS * self.largest
        self.at_tile()
        self.at_translation()
        compiled = self.watch.call(
            self.inner,
            "compiled_tile",
            partial(contract.compiled_tile_is_block, self.inner, self.rows, self.values, self._loosely(self.largest)),
        )
        if compiled is not None:
            self._hold(compiled)

    def _loosely(self, largest: float) -> float:
        return self.error + 0.5 * UNKNOWN * largest

    def _hold(self, finding: contract.Finding, *arguments: np.ndarray) -> None:
        if finding.broken:
            tiles = arguments or (self.rows, self.rows)
            self.watch.refuse(self.inner, finding.method, tiles, finding.found, finding.needed)

    def at_tile(self) -> None:
        """Symmetry, within a tile and across two; diagonal; semidefiniteness."""
        K, S, guard = self.values, self.rows, self.guard
        if len(S) < 2:
            return
        h = -(-len(S) // 3)  # tiles of unequal sides: one that is transposed shows
        here, there = guard.block(S[:h], S[h:]), guard.block(S[h:], S[:h])
        if np.shares_memory(here, there):
            found = "returns the same memory in two calls"
            self.watch.refuse(self.inner, "block", (S, S), found, "each call returns a new array")
        self._hold(contract.block_is_symmetric(K, self.error))
        for part, whole in ((here, K[:h, h:]), (there, K[h:, :h])):
            self._hold(contract.value_of_two_rows_alone(part, whole, self.error), S[:h], S[h:])
        if type(self.inner).diagonal is not Kernel.diagonal:
            self._hold(contract.diagonal_is_that_of_block(guard.diagonal(S), K, self.error), S)
        if guard.positive_semidefinite:
            self._hold(contract.block_is_semidefinite(K, len(S) * (self.error + 4 * EPS * self.largest)))

    def at_translation(self) -> None:
        """For one shift, as long as the rows are."""
        kind, h = self.guard.translation, -(-len(self.rows) // 3)
        if kind is None or h < 2:
            return
        S = self.rows[:h]
        shift = float(np.sqrt(np.mean(S * S))) or 1.0
        away = self.guard.block(S + shift, S + shift)
        allowed = 2 * self._loosely(max(self.largest, float(np.abs(away).max())))
        self._hold(contract.shift_changes_nothing(self.values[:h, :h], away, kind, shift, allowed), S, S)

    def at_map(self, feature_map: FeatureMap) -> None:
        """K - Phi Phi' is semidefinite up to the defect, its diagonal at most the residual; products agree."""
        m = max(2, min(len(self.rows), self.n_samples // MAP_SHARE))
        S, K = self.rows[:m], self.values[:m, :m]
        Phi, residual = feature_map.features(S), feature_map.residual(S)
        rng = np.random.default_rng(1)
        C, U = rng.standard_normal((Phi.shape[1], 1)), rng.standard_normal((len(S), 1))
        for finding in (
            contract.features_stay_below_kernel(feature_map, Phi, K, self.error),
            contract.residual_is_an_upper_bound(feature_map, Phi, residual, K.diagonal(), self.error),
            *contract.map_products_are_of_features(feature_map, S, Phi, U, C),
        ):
            if finding.broken:
                owner = feature_map._inner if isinstance(feature_map, _GuardedMap) else feature_map
                self.watch.refuse(owner, finding.method, (S,), finding.found, finding.needed)


class _GuardedMap(FeatureMap):
    """A feature map of a class from outside."""

    def __init__(self, feature_map: FeatureMap, watch: _Watch, kernel_is_safe: bool):
        self.__dict__.update(_inner=feature_map, _watch=watch, _kernel_is_safe=kernel_is_safe)

    def __reduce__(self) -> tuple:
        return _GuardedMap, (self._inner, self._watch, self._kernel_is_safe)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_inner", "_watch"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return int(self._inner.n_features)

    @property
    def defect(self) -> float:  # type: ignore[override]
        return self._inner.defect

    @property
    def rounding(self) -> float:  # type: ignore[override]
        return self._inner.rounding

    @property
    def anywhere(self) -> bool:  # type: ignore[override]
        return bool(self._inner.anywhere)

    @property
    def tile_rows(self) -> int | None:  # type: ignore[override]
        return self._inner.tile_rows

    def _call(self, method: str, shape: tuple[int, ...], X: np.ndarray, *others: Any) -> np.ndarray:
        inner, watch = self._inner, self._watch
        X = _read_only(X)
        result = watch.call(inner, method, getattr(inner, method), X, *others)
        return watch.array(inner, method, result, shape, X, *(x for x in others if x is not None))

    def features(self, X: np.ndarray) -> np.ndarray:
        return self._call("features", (len(X), self.n_features), X)

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        residual = self._call("residual", (len(X),), X, Phi)
        if not (residual >= 0).all():
            row = int(np.argmin(residual >= 0))
            found = f"returned {residual[row]} (first at row {row})"
            self._watch.refuse(self._inner, "residual", (X,), found, "it is never negative: an upper bound")
        return residual

    @property
    def transform_eps(self) -> float:  # type: ignore[override]
        return self._inner.transform_eps

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        return bool(self._inner.thread_safe) and self._kernel_is_safe

    @property
    def landmarks(self) -> np.ndarray | None:  # type: ignore[override]
        return self._inner.landmarks

    def landmark_weights(self, B: np.ndarray) -> np.ndarray:
        return self._watch.call(self._inner, "landmark_weights", self._inner.landmark_weights, B)

    def outside_error(self, X: np.ndarray) -> np.ndarray:
        return self._call("outside_error", (len(X),), X)

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        return self._around(self._inner.widened(kernel, data, radius))

    def refined(self, rows: Rows, **options: Any) -> FeatureMap:
        return self._around(self._watch.call(self._inner, "refined", partial(self._inner.refined, **options), rows))

    def _around(self, feature_map: FeatureMap) -> FeatureMap:
        return self if feature_map is self._inner else _GuardedMap(feature_map, self._watch, self._kernel_is_safe)

    def formula(self) -> dict[str, Any] | None:
        return self._watch.call(self._inner, "formula", self._inner.formula)

    def defect_norm(self, n: float, trace: float) -> float:
        return float(self._watch.call(self._inner, "defect_norm", self._inner.defect_norm, n, trace))

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        if type(self._inner).accumulate is FeatureMap.accumulate:
            return FeatureMap.accumulate(self, X, U)
        return self._call("accumulate", (self.n_features, U.shape[1]), X, U)

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        if type(self._inner).apply is FeatureMap.apply:
            return FeatureMap.apply(self, X, C)
        return self._call("apply", (len(X), C.shape[1]), X, C)

    def new_moments(self) -> Moments:
        if type(self._inner).new_moments is FeatureMap.new_moments:
            return Moments(self)
        return self._watch.call(self._inner, "new_moments", self._inner.new_moments)

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        return self._watch.call(self._inner, "state", self._inner.state)


class _GuardedSummation(Summation):
    """A product from outside; the first one in each direction is held against one row of exact values."""

    def __init__(self, summation: Summation, guard: Guard, rows_x: Rows, rows_y: Rows | None, look: _Look):
        self.__dict__.update(
            _inner=summation,
            _guard=guard,
            _rows=(rows_x, rows_x if rows_y is None else rows_y),
            _look=look,
            _done=set(),
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    @property
    def error_bound(self) -> float:  # type: ignore[override]
        return float(self._inner.error_bound)

    @property
    def n_threads(self) -> int:
        return self._inner.n_threads

    @n_threads.setter
    def n_threads(self, value: int) -> None:
        self._inner.n_threads = value

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return bool(self._inner.symmetric)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self._inner.shape

    def matmat(self, U: np.ndarray) -> np.ndarray:
        return self._product("matmat", U, *self._rows)

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._product("rmatmat", U, *self._rows[::-1])

    def _product(self, method: str, U: np.ndarray, targets: Rows, sources: Rows) -> np.ndarray:
        inner, watch = self._inner, self._guard._watch
        U = _read_only(np.ascontiguousarray(U, dtype=np.float64))
        result = watch.call(inner, method, getattr(inner, method), U)
        product = watch.array(inner, method, result, (len(targets), U.shape[1]), U)
        if not np.isfinite(product.sum()) and not np.isfinite(product).all() and np.isfinite(U).all():
            row = int(np.argwhere(~np.isfinite(product))[0, 0])
            watch.refuse(
                inner, method, (U,), f"returned a product that is not finite (first at row {row})", "it must be"
            )
        if method not in self._done and U.size:
            self._done.add(method)
            self._check(method, U, product, targets, sources)
        return product

    def _check(self, method: str, U: np.ndarray, product: np.ndarray, targets: Rows, sources: Rows) -> None:
        n, m = len(targets), len(sources)
        index = np.random.default_rng(n).integers(n, size=1)
        X = targets.take(index)
        exact, sizes = np.zeros((len(index), U.shape[1])), np.zeros((len(index), U.shape[1]))
        for start in range(0, m, 8192):
            K = self._guard.block(X, sources.tile(start, min(m, start + 8192)))
            exact += K @ U[start : start + 8192]
            sizes += np.abs(K) @ np.abs(U[start : start + 8192])
        finding = contract.product_keeps_its_bound(
            product[index],
            exact,
            sizes,
            U,
            bound=self.error_bound,
            error=self._look.error,
            first_row=int(index[0]),
        )
        if finding.broken:
            self._guard._watch.refuse(self._inner, method, (U,), finding.found, finding.needed)

"""Between the core and kernels from outside: errors name the plugin, and each claim is checked once.

``guarded(kernel)`` is the kernel itself for fastkpca's own. For any other it is a ``Guard`` around it, which

- hands tiles on read-only, and checks the shape and type of what comes back (and a row, a column and the diagonal of
  each tile for NaN and infinity);
- turns what a plugin raises into a PluginError that says which kernel, which distribution, which call on which shapes;
- checks the claims once for each public call, when the parameters are resolved (``sampling``): a tile of at most
  64 x 64 values for symmetry, diagonal, translation and semidefiniteness, at most as many rows for a feature map, one
  row of exact values for each direction of a product.

Kernels without ``entry_error`` are held to 1e-6 of their largest value, others to what they claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from ..base.plugins import DISTRIBUTION
from ..base.protocol import Cost, FeatureMap, GradientSums, Kernel, Offer, Summary, Summation
from ..errors import PluginError
from ..rows.view import Rows
from . import contract
from .guarded_offers import GuardedMap, GuardedSummation
from .registry import origin
from .sampling import SampledClaims
from .watch import Proxy, Watch, is_bound, read_only

__all__ = ["LEAST_TOL", "Guard", "guarded", "naming"]

LEAST_TOL = 2.0**-53
"""The tolerance at which kernels from outside are asked for maps that leave nothing out."""


def guarded(kernel: Kernel) -> Kernel:
    """The kernel for the core to use: itself where it is fastkpca's own, else behind a ``Guard``.

    A kernel of fastkpca's that is made of others says so by ``over_parts(function)``: its parts are guarded each.
    """
    if isinstance(kernel, Guard):
        return kernel
    foreign = origin(kernel)
    return kernel.over_parts(guarded) if foreign is None else Guard(kernel, Watch(foreign))


@contextmanager
def naming(kernel: Kernel) -> Iterator[None]:
    """A note on what goes wrong inside, beyond the calls into the kernel: it may be the kernel's doing."""
    try:
        yield
    except Exception as error:
        if isinstance(kernel, Guard) and not isinstance(error, PluginError):
            error.add_note(f"while {kernel._watch.origin.who} was in use")
        raise


class Guard(Proxy, Kernel):
    """A kernel from outside, as the core sees it."""

    def __init__(self, kernel: Kernel, watch: Watch):
        self.__dict__.update(_inner=kernel, _watch=watch, _claims=None)

    def __reduce__(self) -> tuple:
        return Guard, (self._inner, self._watch)

    def __eq__(self, other: object) -> bool:
        return bool(self._inner == (other._inner if isinstance(other, Guard) else other))

    def __hash__(self) -> int:
        return hash(self._inner)

    def over_parts(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        return self  # whatever it is made of, its claims are about the whole

    def unguarded(self) -> Kernel:
        """The kernel itself."""
        return self._inner

    # What it computes

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        Y = read_only(Y)
        K = self._array("block", (len(X), len(Y)), X, Y)
        if K.size and not _looks_finite(K) and not np.isfinite(K).all():
            row, column = np.argwhere(~np.isfinite(K))[0]
            observed = f"returned {K[row, column]} (first at row {row}, column {column} of the tile)"
            needed = (
                "kernel values are finite: look for a division by zero where x = y, the root of a number that rounding "
                "made negative, and for overflow (there X on a smaller scale, or other parameters, help)"
            )
            self._refuse("block", (X, Y), observed, needed)
        return K

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        if self._inherits("diagonal"):
            return Kernel.diagonal(self, X)
        values = self._array("diagonal", (len(X),), X)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            self._refuse("diagonal", (X,), f"returned {values[row]} (first at row {row})", "k(x, x) is finite")
        return values

    def _bound(self, method: str, *arguments: Any) -> float | None:
        bound = self._call(method, *arguments)
        if bound is not None and not is_bound(bound):
            self._refuse(method, (), f"returned {bound!r}", "a finite bound, or None, is due")
        return None if bound is None else float(bound)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        return self._bound("entry_error", data, dtype)

    def value_bound(self, data: Summary) -> float | None:
        return self._bound("value_bound", data)

    def fixed_point_width(self) -> float | None:
        width = self._call("fixed_point_width")
        if width is not None and not (is_bound(width) and width > 0):
            self._refuse("fixed_point_width", (), f"returned {width!r}", "a positive number, or None, is due")
        return width

    def gradient_weights(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray) -> np.ndarray | None:
        tiles = tuple(map(read_only, (X, Y, K)))
        weights = self._call("gradient_weights", *tiles)
        return None if weights is None else self._watch.array(self._inner, "gradient_weights", weights, K.shape, *tiles)

    def gradient_sums(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray, steps: np.ndarray) -> GradientSums:
        if self._inherits("gradient_sums"):
            return Kernel.gradient_sums(self, X, Y, K, steps)
        tiles = tuple(map(read_only, (X, Y, K, steps)))
        sums = self._call("gradient_sums", *tiles)

        def checked(R: np.ndarray | None, A: np.ndarray) -> np.ndarray:
            shape = (len(X), A.shape[1], X.shape[1])
            return self._watch.array(self._inner, "gradient_sums", sums(R, A), shape, *tiles)

        return checked

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        # what fastkpca's own code refuses is the user's to mend
        ours = type(self._inner).bind.__module__.partition(".")[0] == DISTRIBUTION
        bound, rows = self._inner.bind(X, Y) if ours else self._call("bind", X, Y)
        return self if bound is self._inner else Guard(bound, self._watch), rows

    def resolve(self, data: Summary) -> Kernel:
        resolved = self._call("resolve", data)
        if not isinstance(resolved, Kernel):
            self._refuse("resolve", (), f"returned {resolved!r}", "a kernel is due")
        guard = Guard(resolved, self._watch)
        guard._claims_on(data)
        return guard

    def _claims_on(self, data: Summary) -> SampledClaims:
        if self._claims is None:
            self.__dict__["_claims"] = SampledClaims(self, self._watch, data)
        return self._claims

    # What it offers

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        # tol = 0 asks for maps that leave nothing out: the author of a truncated map may divide by tol
        offers = self._offers("feature_maps", data, tol if tol > 0.0 else LEAST_TOL, max_features)
        return [self._map_offer(offer, data) for offer in offers if tol > 0.0 or offer.cost.residual == 0.0]

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        offers = self._offers("summations", data_x, data_y, tol)
        return [self._summation_offer(offer, data_x, data_y, tol) for offer in offers]

    def _offers(self, method: str, *arguments: Any) -> list[Offer]:
        offered = self._call(method, *arguments)
        # a generator runs while it is listed, so that is watched too
        offers = self._watch.call(self._inner, method, list, offered) if np.iterable(offered) else [offered]
        for offer in offers:
            if not (isinstance(offer, Offer) and isinstance(offer.cost, Cost) and callable(offer.build)):
                self._refuse(method, (), f"returned {offer!r}", "a sequence of Offer is due")
        return offers

    def _map_offer(self, offer: Offer, data: Summary) -> Offer:
        def build(*arguments: Any) -> FeatureMap:
            label = f"feature_maps()[{offer.name!r}].build"
            made = self._watch.call(self._inner, label, offer.build, *arguments)
            feature_map = self._guarded_map(made, label)
            self._claims_on(data).hold_map(feature_map, owner=made)
            return feature_map

        return replace(offer, build=build)

    def _guarded_map(self, feature_map: Any, label: str) -> FeatureMap:
        if not isinstance(feature_map, FeatureMap):
            self._refuse(label, (), f"returned {feature_map!r}", "a FeatureMap is due")
        if type(feature_map).__module__.startswith("fastkpca."):
            return feature_map
        return GuardedMap(feature_map, self._watch, self.thread_safe)

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        made = self._call("feature_map_from_state", header, arrays)
        return self._guarded_map(made, "feature_map_from_state")

    def _summation_offer(self, offer: Offer, data_x: Summary, data_y: Summary, tol: float | None) -> Offer:
        def build(X: Rows, Y: Rows | None = None) -> Summation:
            label = f"summations()[{offer.name!r}].build"
            made = self._watch.call(self._inner, label, offer.build, X, Y)
            if not isinstance(made, Summation):
                self._refuse(label, (), f"returned {made!r}", "a Summation is due")
            shape = (len(X), len(X if Y is None else Y))
            if tuple(made.shape) != shape:
                self._refuse(label, (), f"has shape {made.shape}", f"shape {shape} is due")
            if tol is None:  # of values without a known bound, no error is too large to be rounding
                limit = contract.exact_product_error(self, (data_x, data_y), np.inf)
                needed = f"without a tol at most {limit:.2g} is due: the rounding of an exact product"
            else:
                limit, needed = tol, f"at most {tol:g} was asked for"
            if not is_bound(made.error_bound, limit):
                self._refuse(label, (), f"has error_bound {made.error_bound!r}", needed)
            return GuardedSummation(made, self._watch, self, self._claims_on(data_x).error, X, Y)

        return replace(offer, build=build)


# What it declares


def _declaration(name: str, allowed: tuple) -> property:
    def read(self: Guard) -> Any:
        value = self._watch.call(self._inner, name, getattr, self._inner, name)
        value = value.item() if isinstance(value, np.generic) else value
        if not any(type(value) is type(x) and value == x for x in allowed):
            self._refuse(name, (), f"is {value!r}", f"it must be one of {allowed}")
        return value

    return property(read)


DECLARATIONS = {
    **dict.fromkeys(
        (
            "positive_semidefinite",
            "thread_safe",
            "by_number",
            "takes_objects",
            "is_linear",
            "scales_rows",
            "scales_columns",
        ),
        (False, True),
    ),
    "translation": (None, "kernel", "centered"),
}
for _name, _allowed in DECLARATIONS.items():
    setattr(Guard, _name, _declaration(_name, _allowed))


def _looks_finite(K: np.ndarray) -> bool:
    """By its first row, first column and diagonal, where a row that the kernel cannot take shows; microseconds."""
    row, column, diagonal = K[0], K[:, 0], K.diagonal()
    with np.errstate(over="ignore", invalid="ignore"):  # then all of it is looked at
        return isfinite(row.dot(row) + column.dot(column) + diagonal.dot(diagonal))

"""Sums, scalings and products of kernels: what ``+`` and ``*`` make, as in ``0.5 * gaussian + linear``.

Everything follows from the parts: values and their errors, what may be shifted, feature maps
(``maps/combined.py``), products with vectors (``products/combined.py``), and the model file.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import isfinite, prod
from typing import Any, ClassVar

import numpy as np

from ..base.protocol import Cost, FeatureMap, Kernel, Offer, Summary, Summation
from ..base.rounding import UNIT, rounding_factor, unit_roundoff
from ..base.stored import Record
from ..errors import KernelParameterError, PluginError
from ..maps.combined import ScaledMap, SumMap, TensorMap, parts_of
from ..products.combined import ScaledSummation, SumSummation
from ..products.exact import ExactSummation, checked_block
from ..rows.view import Rows

__all__ = ["ProductKernel", "ScaledKernel", "SumKernel", "add", "multiply"]

COMPILED_FLOPS, BLOCK_FLOPS = 5.0, 33.0
"""Of a kernel value beside the distance, from compiled tiles and from ``block``, in the flops of ``Cost``."""
ABOVE = 1 + 1e-12
"""What the few roundings of a bound can take from it, many times over."""


def add(a: Kernel, b: Any) -> Kernel:
    """a + b; the zero with which ``sum`` begins is allowed."""
    if isinstance(b, Kernel):
        return SumKernel(parts=(a, b))
    if isinstance(b, numbers.Real):
        if b == 0:
            return a
        raise TypeError(
            f"{b!r} and a kernel cannot be added: a constant does not change the centred kernel matrix; to scale a "
            f"kernel multiply it, as in {b!r} * kernel"
        )
    return NotImplemented


def multiply(a: Kernel, b: Any) -> Kernel:
    """a * b of two kernels, or of a kernel and a positive number."""
    if isinstance(b, Kernel):
        return ProductKernel(parts=(a, b))
    if isinstance(b, numbers.Real):
        return ScaledKernel(factor=b, kernel=a)
    return NotImplemented


def _check_part(part: Any) -> None:
    if not isinstance(part, Kernel):
        raise TypeError(f"{part!r} is not a kernel; fastkpca.get_kernel() makes one of a name, a function or an object")
    if not part.takes_points:
        raise KernelParameterError(
            f"{part!r} takes something else than rows of coordinates in place of X, so it cannot be combined with "
            "other kernels; combine the matrices instead, as in kpca(0.5 * K1 + K2, 'precomputed')"
        )


def _made(cls: type[Kernel], **values: Any) -> Kernel:
    """A combination of parts that were checked when they were first put together."""
    made = cls.__new__(cls)
    made.__dict__.update(values)
    return made


def _values(kernel: Kernel, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The values of a part, in an array that may be overwritten."""
    K = checked_block(kernel, X, Y)
    own = K.dtype == X.dtype and K.flags.writeable and K.flags.owndata
    return K if own else np.array(K, dtype=X.dtype, order="C")


def _diagonal(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    values = np.asarray(kernel.diagonal(X))
    if values.shape != (len(X),):
        raise PluginError(
            f"{type(kernel).__module__}.{type(kernel).__name__}.diagonal returned shape {values.shape} for a tile of "
            f"{len(X)} rows; it must return k(x_i, x_i) of shape {(len(X),)}"
        )
    return values


def _cheapest(offers: Iterable[Offer], cost: Callable[[Offer], float]) -> Offer | None:
    return min(offers, key=cost, default=None)


def _by_size(offer: Offer) -> float:
    return offer.cost.n_features


class ScaledKernel(Kernel):
    """factor * k(x, y).

    Parameters
    ----------
    factor : float
        Positive.
    kernel : Kernel
    """

    api_version = 1
    parameters = {"factor": None, "kernel": None}

    factor: float
    kernel: Kernel

    def check(self) -> None:
        factor, kernel = self.factor, self.kernel
        _check_part(kernel)
        if isinstance(factor, (bool, np.bool_)) or not isinstance(factor, numbers.Real):
            raise KernelParameterError(f"a kernel is scaled by a positive number, not by {factor!r}")
        factor = float(factor)
        if isinstance(kernel, ScaledKernel):
            factor, kernel = factor * kernel.factor, kernel.kernel
        if not (isfinite(factor) and factor > 0):
            raise KernelParameterError(
                f"the factor of a kernel is {factor:g}; it must be positive and finite: a negative or zero multiple of "
                "a positive semidefinite kernel has no components (matrices can be subtracted, with 'precomputed')"
            )
        self.__dict__.update(factor=factor, kernel=kernel)

    @property
    def positive_semidefinite(self) -> bool:
        return bool(self.kernel.positive_semidefinite)

    @property
    def translation(self) -> str | None:
        return self.kernel.translation

    @property
    def scales_rows(self) -> bool:
        return bool(self.kernel.scales_rows)

    @property
    def thread_safe(self) -> bool:
        return bool(self.kernel.thread_safe)

    def over_parts(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        part = function(self.kernel)
        return self if part is self.kernel else _made(ScaledKernel, factor=self.factor, kernel=part)

    def map_parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def resolve(self, data: Summary) -> Kernel:
        return self.over_parts(lambda part: part.resolve(data))

    def unbound(self) -> Kernel:
        return self.over_parts(lambda part: part.unbound())

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        K = _values(self.kernel, X, Y)
        with np.errstate(over="ignore"):  # the factor may be beyond float32; what overflows is found in the product
            return np.multiply(K, self.factor, out=K, dtype=np.float64, casting="same_kind")

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return self.factor * _diagonal(self.kernel, X)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        own, most = self.kernel.entry_error(data, dtype), self.kernel.value_bound(data)
        if own is None or most is None:
            return None
        # rounding the factor to the tiles' type, and the product
        info = np.finfo(dtype)
        return self.factor * (own + float(info.eps) * 1.01 * (most + own)) * ABOVE + float(info.tiny)

    def value_bound(self, data: Summary) -> float | None:
        most = self.kernel.value_bound(data)
        return None if most is None else self.factor * most * ABOVE

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        def scaled(offer: Offer) -> Offer:
            return Offer(offer.name, offer.cost, lambda sample: ScaledMap(offer.build(sample), self.factor))

        return [scaled(offer) for offer in self.kernel.feature_maps(data, tol, max_features)]

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        def scaled(offer: Offer) -> Offer:
            cost = replace(offer.cost, residual=offer.cost.residual * self.factor)
            return Offer(offer.name, cost, lambda X, Y=None: ScaledSummation(offer.build(X, Y), self.factor))

        own = None if tol is None else tol / self.factor * (1 - 1e-12)
        offers = [scaled(offer) for offer in self.kernel.summations(data_x, data_y, own)]
        # tiles of the scaled kernel itself come from ``block``
        if self.positive_semidefinite and self.kernel.compiled_tile() is not None:
            cost = _tiles_cost(self.kernel, data_x, data_y)
            tiles = Offer("tiles", cost, lambda X, Y=None: ExactSummation(self.kernel, X, Y))
            offers.append(scaled(tiles))
        return offers

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        own = Record(header, arrays, "the feature map of a scaling")
        own.keys(("map", "parts"))
        own.text("map", ("scaled",))
        own.list("parts", 1)
        [state] = parts_of(header, arrays)
        return ScaledMap(self.kernel.feature_map_from_state(*state), self.factor)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_bracketed(self.kernel)}"


def _tiles_cost(part: Kernel, data_x: Summary, data_y: Summary) -> Cost:
    value = 0.25 * data_x.n_features + (COMPILED_FLOPS if part.compiled_tile() is not None else BLOCK_FLOPS)
    value *= 0.5 if data_x is data_y else 1.0  # each serves two entries
    return Cost(row_flops=data_y.n_samples * value, column_flops=0.25 * data_y.n_samples)


def _bracketed(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, SumKernel) else repr(kernel)


class _OfParts(Kernel):
    """Shared by sums and products: the parts, flat, in the order in which they were written."""

    api_version = 1
    parameters = {"parts": ()}
    word: ClassVar[str]
    """The name of their feature maps and products, and of their description in a model file."""

    parts: tuple[Kernel, ...]

    def check(self) -> None:
        flat: list[Kernel] = []
        for part in self.parts:
            _check_part(part)
            flat.extend(part.parts if type(part) is type(self) else [part])
        if len(flat) < 2:
            raise KernelParameterError(f"a {self.word} of kernels has at least two parts; found {len(flat)}")
        self.__dict__["parts"] = tuple(flat)

    @property
    def positive_semidefinite(self) -> bool:
        # products as well: Schur 1911
        return all(part.positive_semidefinite for part in self.parts)

    @property
    def scales_rows(self) -> bool:
        return all(part.scales_rows for part in self.parts)

    @property
    def thread_safe(self) -> bool:
        return all(part.thread_safe for part in self.parts)

    def over_parts(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        parts = tuple(map(function, self.parts))
        return self if all(new is old for new, old in zip(parts, self.parts)) else _made(type(self), parts=parts)

    def resolve(self, data: Summary) -> Kernel:
        return self.over_parts(lambda part: part.resolve(data))

    def unbound(self) -> Kernel:
        return self.over_parts(lambda part: part.unbound())

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        total = _values(self.parts[0], X, Y)
        for part in self.parts[1:]:
            self._join(total, checked_block(part, X, Y))
        return total

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        total = np.array(_diagonal(self.parts[0], X), dtype=np.float64)
        for part in self.parts[1:]:
            self._join(total, _diagonal(part, X))
        return total

    def map_parts(self) -> tuple[Kernel, ...]:
        return self.parts

    def _join(self, total: np.ndarray, values: np.ndarray) -> None:
        raise NotImplementedError

    def _errors_and_bounds(self, data: Summary, dtype: np.dtype) -> tuple[list[float], list[float]] | None:
        errors = [part.entry_error(data, dtype) for part in self.parts]
        bounds = [part.value_bound(data) for part in self.parts]
        if None in errors or None in bounds:
            return None
        return errors, bounds  # type: ignore[return-value]

    def _map_offers(self, data: Summary, tol: float, max_features: int, weights: np.ndarray) -> list[Offer] | None:
        """One offer of each part, together within tol if residual_i / trace_i counts ``weights[i]``; None: not each
        part has one. Parts with an exact map leave their share of tol to the others."""
        found = [part.feature_maps(data, tol, max_features) for part in self.parts]
        exact = [_cheapest([x for x in offers if x.cost.residual == 0.0], _by_size) for offers in found]
        loose = sum(float(weight) for weight, offer in zip(weights, exact) if offer is None)
        if loose > 0:
            share = min(1.0, tol / loose)
            if share != tol:
                found = [
                    offers if offer is not None else part.feature_maps(data, share, max_features)
                    for part, offers, offer in zip(self.parts, found, exact)
                ]
        chosen = [offer or _cheapest(offers, _by_size) for offer, offers in zip(exact, found)]
        return None if None in chosen else chosen  # type: ignore[return-value]

    def _part_maps(self, header: dict, arrays: dict[str, np.ndarray]) -> list[FeatureMap]:
        own = Record(header, arrays, "the feature map of a sum")
        own.keys(("map", "parts"))
        own.text("map", ("sum",))
        own.list("parts", len(self.parts))
        return [part.feature_map_from_state(*own) for part, own in zip(self.parts, parts_of(header, arrays))]


class SumKernel(_OfParts):
    """k_1(x, y) + k_2(x, y) + ...

    Parameters
    ----------
    parts : sequence of Kernel
        At least two; sums among them are taken apart.
    """

    word = "sum"

    @property
    def translation(self) -> str | None:
        # H (K_1 + K_2) H is the sum of centred matrices: it survives a shift where each of them does
        words = {part.translation for part in self.parts}
        return "kernel" if words == {"kernel"} else "centered" if words <= {"kernel", "centered"} else None

    def _join(self, total: np.ndarray, values: np.ndarray) -> None:
        total += values

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        known = self._errors_and_bounds(data, dtype)
        if known is None:
            return None
        errors, bounds = known
        # n - 1 additions, each rounded by u times at most the sum of all sizes
        unit = unit_roundoff(dtype)
        rounding = 1.01 * (len(errors) - 1) * unit * (sum(errors) + sum(bounds))
        return (sum(errors) + rounding) * ABOVE

    def value_bound(self, data: Summary) -> float | None:
        bounds = [part.value_bound(data) for part in self.parts]
        return None if None in bounds else sum(bounds) * ABOVE  # type: ignore[arg-type]

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        if not self.positive_semidefinite:
            return ()
        traces = np.array([float(np.mean(_diagonal(part, data.sample))) for part in self.parts])
        if not (traces.sum() > 0 and np.isfinite(traces).all()):
            return ()
        shares = traces / traces.sum()
        chosen = self._map_offers(data, tol, max_features, shares)
        if chosen is None:
            return ()
        costs = [offer.cost for offer in chosen]
        D = sum(cost.n_features for cost in costs)
        if D > max_features:
            return ()
        cost = Cost(
            D,
            row_flops=sum(cost.row_flops for cost in costs),
            setup_flops=sum(cost.setup_flops for cost in costs),
            memory=max(8.0 * D * D, sum(cost.memory for cost in costs)),
            residual=float(sum(share * cost.residual for share, cost in zip(shares, costs))),
        )
        return (Offer(self.word, cost, lambda sample: SumMap([offer.build(sample) for offer in chosen])),)

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        return SumMap(self._part_maps(header, arrays))

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        """The sum of the parts' own products, exact tiles for a part without one; compiled tiles throughout beat those
        of the sum, which come from ``block``."""
        sizes = [part.value_bound(data) for data in (data_x, data_y) for part in self.parts]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes):
            return ()
        # what each part's product loses by rounding may be more than the values of the sum tell: they may cancel
        n, n_y = len(self.parts), data_y.n_samples
        size = sum(map(max, known[:n], known[n:]))
        rounding = (rounding_factor(n_y) + n) * UNIT * size

        def flops(offer: Offer) -> float:
            return offer.cost.setup_flops + offer.cost.row_flops * data_x.n_samples

        found = [_cheapest(part.summations(data_x, data_y, None), flops) for part in self.parts]
        left = np.inf if tol is None else tol - rounding - sum(x.cost.residual for x in found if x is not None)
        if not left > 0:
            return ()
        loose = found.count(None)
        if tol is not None and loose:
            share = left / loose * (1 - 1e-12)
            found = [
                offer or _cheapest(part.summations(data_x, data_y, share), flops)
                for part, offer in zip(self.parts, found)
            ]
        if not all(found) and not self.positive_semidefinite:
            return ()  # the tiles of the sum itself also give the norm, on which such a kernel's certificate rests
        if not any(found) and any(part.compiled_tile() is None for part in self.parts):
            return ()  # the tiles of the sum itself are as good
        costs = [
            _tiles_cost(part, data_x, data_y) if offer is None else offer.cost for part, offer in zip(self.parts, found)
        ]
        cost = Cost(
            max(cost.n_features for cost in costs),
            row_flops=sum(cost.row_flops for cost in costs),
            setup_flops=sum(cost.setup_flops for cost in costs),
            memory=sum(cost.memory for cost in costs),
            residual=sum(cost.residual for cost in costs) + rounding,
            column_flops=sum(cost.row_flops if cost.column_flops is None else cost.column_flops for cost in costs),
        )

        def build(X: Rows, Y: Rows | None = None) -> Summation:
            return SumSummation(
                [
                    ExactSummation(part, X, Y) if offer is None else offer.build(X, Y)
                    for part, offer in zip(self.parts, found)
                ],
                rounding,
            )

        return (Offer(self.word, cost, build),)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


class ProductKernel(_OfParts):
    """k_1(x, y) k_2(x, y) ...: positive semidefinite where all parts are (Schur).

    Parameters
    ----------
    parts : sequence of Kernel
        At least two; products among them are taken apart.
    """

    word = "product"

    @property
    def translation(self) -> str | None:
        # a shift of x.y adds terms in x and in y, which centring takes away from x.y itself but not from its product
        return "kernel" if all(part.translation == "kernel" for part in self.parts) else None

    def _join(self, total: np.ndarray, values: np.ndarray) -> None:
        total *= values

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        known = self._errors_and_bounds(data, dtype)
        if known is None:
            return None
        unit = unit_roundoff(dtype)
        error, most = 0.0, 1.0
        for own, bound in zip(*known):  # (k + e)(k' + e') - k k', rounded once
            error = error * (bound + own) + most * own
            most *= bound
            error += unit * (most + error)
        return error * ABOVE + float(np.finfo(dtype).tiny)  # a product may underflow

    def value_bound(self, data: Summary) -> float | None:
        bounds = [part.value_bound(data) for part in self.parts]
        return None if None in bounds else prod(bounds) * ABOVE  # type: ignore[arg-type]

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        bounds = [bound for part in self.parts if (bound := part.value_bound(data)) is not None]
        if not self.positive_semidefinite or len(bounds) < len(self.parts):
            return ()
        # the relative residual of a product is at most about the sum of those of its parts, row by row
        ones = np.ones(len(self.parts))
        chosen = self._map_offers(data, tol, max_features, ones)
        if chosen is None:
            return ()
        costs = [offer.cost for offer in chosen]
        D = prod(cost.n_features for cost in costs)
        if D > max_features:
            return ()

        def made(offers: Sequence[Offer], sample: np.ndarray) -> FeatureMap:
            total, bound = offers[0].build(sample), bounds[0]
            for offer, more in zip(offers[1:], bounds[1:]):
                total = TensorMap(total, offer.build(sample), (bound, more))
                bound = bound * more * ABOVE
            return total

        def build(sample: np.ndarray) -> FeatureMap:
            # rows with a large residual of one part may be those where the others are large: judged on the sample
            found, share = made(chosen, sample), tol
            for _ in range(3):
                left, trace = float(found.residual(sample).sum()), float(self.diagonal(sample).sum())
                if left <= tol * trace or all(offer.cost.residual == 0.0 for offer in chosen):
                    break
                share *= max(1e-3, 0.5 * tol * trace / left)
                more = self._map_offers(data, share, max_features, ones)
                if more is None or prod(offer.cost.n_features for offer in more) > max_features:
                    break
                found = made(more, sample)
            return found

        cost = Cost(
            D,
            row_flops=sum(cost.row_flops for cost in costs) + 2.0 * D,
            setup_flops=sum(cost.setup_flops for cost in costs),
            memory=max(8.0 * D * D, sum(cost.memory for cost in costs)),
            residual=sum(cost.residual for cost in costs),
        )
        return (Offer(self.word, cost, build),)

    def map_parts(self) -> tuple[Kernel, ...]:
        # a product of three is the map of the first two, times the third
        return self.parts if len(self.parts) == 2 else (ProductKernel(parts=self.parts[:-1]), self.parts[-1])

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        own = Record(header, arrays, "the feature map of a product")
        own.keys(("map", "bounds", "parts"))
        own.text("map", ("tensor",))
        own.list("parts", 2)
        bounds = Record({str(i): bound for i, bound in enumerate(own.list("bounds", 2))}, {}, "the bounds of a product")
        most = (bounds.number("0", least=0.0), bounds.number("1", least=0.0))
        states = parts_of(header, arrays)
        maps = [part.feature_map_from_state(*own) for part, own in zip(self.map_parts(), states)]
        return TensorMap(maps[0], maps[1], most)

    def __repr__(self) -> str:
        return " * ".join(map(_bracketed, self.parts))

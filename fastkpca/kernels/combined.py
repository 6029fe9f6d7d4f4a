"""The rules of sums, scalings and products of kernels: what ``+`` and ``*`` make, as in ``0.5 * gaussian + linear``.

Everything follows from the parts: values and their errors, what may be shifted, feature maps
(``maps/combined.py``), products with vectors (``products/combined.py``), and the model file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import isfinite, prod
from operator import add as add_values
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..base.checks import as_float
from ..base.protocol import Cost, FeatureMap, GradientSums, Kernel, Offer, Summary, Summation
from ..base.rounding import UNIT, rounding_factor, unit_roundoff
from ..base.stored import Record
from ..errors import KernelParameterError
from ..maps.combined import ScaledMap, SumMap, TensorMap, parts_of
from ..products.combined import ScaledSummation, SumSummation
from ..products.exact import ExactSummation
from ..products.rates import RATE, is_compiled, value_seconds
from ..rows.view import Rows

BOUND_FACTOR = 1 + 1e-12
"""Relative error of a bound by its few roundings, many times over."""

Value = TypeVar("Value")


def check_part(part: Any) -> None:
    if not isinstance(part, Kernel):
        raise TypeError(f"{part!r} is not a kernel; fastkpca.get_kernel() makes one of a name, a function or an object")
    if not (part.takes_points or part.takes_objects):
        raise KernelParameterError(
            f"{part!r} takes something else than rows of coordinates in place of X, so it cannot be combined with "
            "other kernels; combine the matrices instead, as in kpca(0.5 * K1 + K2, 'precomputed')"
        )


def _values(kernel: Kernel, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The values of a part, in an array that may be overwritten."""
    K = kernel.block(X, Y)
    overwritable = K.dtype == X.dtype and K.flags.writeable and K.flags.owndata
    return K if overwritable else np.array(K, dtype=X.dtype, order="C")


def _all_known(values: Iterable[Value | None]) -> list[Value] | None:
    """The values; None where one of them is not known."""
    values = list(values)
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _cheapest(offers: Iterable[Offer], cost: Callable[[Offer], float]) -> Offer | None:
    return min(offers, key=cost, default=None)


def _exact_map(part: Kernel, data: Summary, max_features: int) -> Offer | None:
    """The smallest map that leaves nothing out, which is cheap to ask for."""
    return _cheapest((x for x in part.feature_maps(data, 0.0, max_features) if x.cost.residual == 0.0), _by_size)


def _by_size(offer: Offer) -> float:
    return offer.cost.n_features


def _map_cost(offers: Sequence[Offer], D: int, residual: float, joining: float = 0.0) -> Cost:
    """Cost of the map with D features that the maps of these offers make; ``joining``: flops to make one of a row."""
    return Cost(
        D,
        row_flops=sum(offer.cost.row_flops for offer in offers) + joining,
        setup_flops=sum(offer.cost.setup_flops for offer in offers),
        memory=max(8.0 * D * D, sum(offer.cost.memory for offer in offers)),
        residual=residual,
    )


def _of_parts(name: str, combine: Callable[[Iterable[bool]], bool]) -> Any:
    return property(lambda self: combine(getattr(part, name) for part in self.parts))


class Combination(Kernel):
    """The base of all combinations of kernels: the members that follow from the parts alone."""

    api_version = 1
    parts: tuple[Kernel, ...]
    positive_semidefinite = _of_parts("positive_semidefinite", all)  # products as well: Schur 1911
    nonnegative = _of_parts("nonnegative", all)
    scales_rows = _of_parts("scales_rows", all)
    scales_columns = _of_parts("scales_columns", all)
    thread_safe = _of_parts("thread_safe", all)
    knows_diagonal = _of_parts("knows_diagonal", all)
    takes_points = _of_parts("takes_points", all)
    takes_objects = _of_parts("takes_objects", any)
    by_number = _of_parts("by_number", any)

    @property
    def translation(self) -> str | None:
        # H (K_1 + K_2) H is the sum of centred matrices: it survives a shift where each of them does
        words = {part.translation for part in self.parts}
        return "kernel" if words == {"kernel"} else "centered" if words <= {"kernel", "centered"} else None

    def bind(self, X: Any, Y: Any = None) -> tuple[Any, Any]:
        """A list of objects goes to every part, and each becomes a kernel on their numbers."""
        bound = [part.bind(X, Y) for part in self.parts]
        are_numbers = [rows is X for _, rows in bound]
        if all(are_numbers):
            return self, X
        if any(are_numbers):
            raise TypeError(
                f"{self!r} joins kernels on objects and kernels on rows of numbers, and X can be only one of these; "
                "combine the matrices instead, as in kpca(0.5 * K1 + K2, 'precomputed')"
            )
        return self.with_parts(tuple(kernel for kernel, _ in bound)), bound[0][1]

    def listed(self) -> tuple[Kernel, list] | None:
        of_parts = _all_known(part.listed() for part in self.parts)
        if of_parts is None:
            return None
        return self.with_parts(tuple(kernel for kernel, _ in of_parts)), of_parts[0][1]

    def with_parts(self, parts: tuple[Kernel, ...]) -> Kernel:
        """This combination of other parts, which were checked when they were first put together."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__, parts=parts)
        if "kernel" in self.parameters:  # the only part
            made.__dict__["kernel"] = parts[0]
        return made

    def over_parts(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        parts = tuple(map(function, self.parts))
        return self if all(new is old for new, old in zip(parts, self.parts)) else self.with_parts(parts)

    def resolve(self, data: Summary) -> Any:
        return self.over_parts(lambda part: part.resolve(data))

    def unbound(self) -> Any:
        return self.over_parts(lambda part: part.unbound())

    def map_parts(self) -> tuple[Kernel, ...]:
        return self.parts

    def _parts_from_state(
        self, header: dict, arrays: dict[str, np.ndarray], kind: str, *more: str
    ) -> tuple[Record, list[FeatureMap]]:
        """The maps of ``map_parts`` in the description of a combined one, which has ``more`` keys."""
        record = Record(header, arrays, f"the feature map of {type(self).__name__}")
        record.keys(("map", "parts", *more))
        record.text("map", (kind,))
        kernels = self.map_parts()
        record.list("parts", len(kernels))
        states = parts_of(header, arrays)
        return record, [kernel.feature_map_from_state(*state) for kernel, state in zip(kernels, states)]


class Scaled(Combination):
    """The rules of factor * k(x, y)."""

    parameters = {"factor": None, "kernel": None}

    factor: float
    kernel: Kernel

    def check(self) -> None:
        factor, kernel = as_float(self.factor), self.kernel
        check_part(kernel)
        if factor is None:
            raise KernelParameterError(f"a kernel is scaled by a positive number, not by {self.factor!r}")
        if isinstance(kernel, Scaled):
            factor, kernel = factor * kernel.factor, kernel.kernel
        if not (isfinite(factor) and factor > 0):
            raise KernelParameterError(
                f"the factor of a kernel is {factor:g}; it must be positive and finite: a negative or zero multiple of "
                "a positive semidefinite kernel has no components (matrices can be subtracted, with 'precomputed')"
            )
        self.__dict__.update(factor=factor, kernel=kernel, parts=(kernel,))

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        K = _values(self.kernel, X, Y)
        with np.errstate(over="ignore"):  # the factor may be beyond float32; what overflows is found in the product
            return np.multiply(K, self.factor, out=K, dtype=np.float64, casting="same_kind")

    @np.errstate(over="ignore")
    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.diagonal(X)

    def gradient_sums(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray, steps: np.ndarray) -> GradientSums:
        sums = self.kernel.gradient_sums(X, Y, self.kernel.block(X, Y), steps)
        return lambda R, A: sums(R, self.factor * A)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        error, bound = self.kernel.entry_error(data, dtype), self.kernel.value_bound(data)
        if error is None or bound is None:
            return None
        # rounding the factor to the tiles' type, and the product
        info = np.finfo(dtype)
        return self.factor * (error + float(info.eps) * 1.01 * (bound + error)) * BOUND_FACTOR + float(info.tiny)

    def value_bound(self, data: Summary) -> float | None:
        bound = self.kernel.value_bound(data)
        return None if bound is None else self.factor * bound * BOUND_FACTOR

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        def scaled(offer: Offer) -> Offer:
            return Offer(offer.name, offer.cost, lambda sample: ScaledMap(offer.build(sample), self.factor))

        return [scaled(offer) for offer in self.kernel.feature_maps(data, tol, max_features)]

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        def scaled(offer: Offer) -> Offer:
            cost = replace(offer.cost, residual=offer.cost.residual * self.factor)
            return Offer(offer.name, cost, lambda X, Y=None: ScaledSummation(offer.build(X, Y), self.factor))

        part_tol = None if tol is None else tol / self.factor * (1 - 1e-12)
        return [scaled(offer) for offer in with_tiles(self.kernel, data_x, data_y, part_tol)]

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        _, [part] = self._parts_from_state(header, arrays, ScaledMap.kind)
        return ScaledMap(part, self.factor)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_bracketed(self.kernel)}"


def with_tiles(part: Kernel, data_x: Summary, data_y: Summary, tol: float | None) -> Iterator[Offer]:
    """Products of the only part of a kernel, and its compiled tiles; the kernel itself has only tiles of ``block``.

    An indefinite part has no compiled tiles here: it needs the norm, which only tiles of ``block`` give.
    """
    yield from part.summations(data_x, data_y, tol)
    if part.positive_semidefinite and part.compiled_tile() is not None:
        yield _tiles(part, data_x, data_y)


def _tiles(part: Kernel, data_x: Summary, data_y: Summary) -> Offer:
    values = RATE.features * value_seconds(part, data_x.n_features)
    values *= 0.5 if data_x is data_y else 1.0  # each serves two entries
    column = 2.0 * RATE.features / (RATE.products if is_compiled(part) else RATE.multiplications)
    cost = Cost(row_flops=data_y.n_samples * (values + column), column_flops=column * data_y.n_samples)
    return Offer("tiles", cost, lambda X, Y=None: ExactSummation(part, X, Y))


def _bracketed(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel)


class _FlatCombination(Combination):
    """Sums and products: the parts, flat, in the order in which they were written."""

    parameters = {"parts": ()}
    word: ClassVar[str]
    """The name of their feature maps and products, and of their description in a model file."""
    join_values: ClassVar[np.ufunc]
    """The operation that joins the values of two parts."""
    join_numbers: ClassVar[Any]
    """The same of bounds on values, and of numbers of features."""

    def check(self) -> None:
        flat: list[Kernel] = []
        for part in self.parts:
            check_part(part)
            flat.extend(part.parts if type(part) is type(self) else [part])
        if len(flat) < 2:
            raise KernelParameterError(f"a {self.word} of kernels has at least two parts; found {len(flat)}")
        self.__dict__["parts"] = tuple(flat)

    @np.errstate(over="ignore", invalid="ignore")  # named where the values are used
    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        total = _values(self.parts[0], X, Y)
        for part in self.parts[1:]:
            self.join_values(total, part.block(X, Y), out=total)
        return total

    @np.errstate(over="ignore", invalid="ignore")
    def diagonal(self, X: np.ndarray) -> np.ndarray:
        total = np.array(self.parts[0].diagonal(X), dtype=np.float64)
        for part in self.parts[1:]:
            self.join_values(total, part.diagonal(X), out=total)
        return total

    def value_bound(self, data: Summary) -> float | None:
        bounds = self._value_bounds(data)
        return None if bounds is None else self.join_numbers(bounds) * BOUND_FACTOR

    def _errors_and_bounds(self, data: Summary, dtype: np.dtype) -> tuple[list[float], list[float]] | None:
        errors = _all_known(part.entry_error(data, dtype) for part in self.parts)
        bounds = self._value_bounds(data)
        return None if errors is None or bounds is None else (errors, bounds)

    def _value_bounds(self, data: Summary) -> list[float] | None:
        return _all_known(part.value_bound(data) for part in self.parts)

    def _map_offers(self, data: Summary, tol: float, max_features: int, weights: np.ndarray) -> list[Offer] | None:
        """One offer of each part, together within tol if residual_i / trace_i counts ``weights[i]``; None: not each
        part has one, or they are too large. Parts with an exact map leave their share of tol to the others."""
        chosen = [_exact_map(part, data, max_features) for part in self.parts]
        if self.join_numbers([1 if x is None else x.cost.n_features for x in chosen]) > max_features:
            return None
        inexact_weight = sum(float(weight) for weight, offer in zip(weights, chosen) if offer is None)
        share = min(1.0, tol / inexact_weight) if inexact_weight > 0 else tol
        offers = _all_known(
            exact or _cheapest(part.feature_maps(data, share, max_features), _by_size)
            for part, exact in zip(self.parts, chosen)
        )
        return None if offers is None or self._features(offers) > max_features else offers

    def _features(self, offers: Sequence[Offer]) -> int:
        return self.join_numbers([offer.cost.n_features for offer in offers])


class Sum(_FlatCombination):
    """The rules of k_1(x, y) + k_2(x, y) + ..."""

    word = "sum"
    join_values, join_numbers = np.add, staticmethod(sum)

    def gradient_sums(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray, steps: np.ndarray) -> GradientSums:
        of_parts = [part.gradient_sums(X, Y, part.block(X, Y), steps) for part in self.parts]
        return lambda R, A: reduce(add_values, (sums(R, A) for sums in of_parts))

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        known = self._errors_and_bounds(data, dtype)
        if known is None:
            return None
        errors, bounds = known
        # n - 1 additions, each rounded by u times at most the sum of all sizes
        unit = unit_roundoff(dtype)
        rounding = 1.01 * (len(errors) - 1) * unit * (sum(errors) + sum(bounds))
        return (sum(errors) + rounding) * BOUND_FACTOR

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        if not self.positive_semidefinite:
            return ()
        traces = np.array([float(np.mean(part.diagonal(data.sample))) for part in self.parts])
        if not (traces.sum() > 0 and np.isfinite(traces).all()):
            return ()
        shares = traces / traces.sum()
        chosen = self._map_offers(data, tol, max_features, shares)
        if chosen is None:
            return ()
        residual = float(sum(share * offer.cost.residual for share, offer in zip(shares, chosen)))
        cost = _map_cost(chosen, self._features(chosen), residual)
        return (Offer(self.word, cost, lambda sample: SumMap([offer.build(sample) for offer in chosen])),)

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        return SumMap(self._parts_from_state(header, arrays, SumMap.kind)[1])

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Sequence[Offer]:
        """The sum of the parts' own products, exact tiles for a part without one; compiled tiles throughout beat those
        of the sum, which come from ``block``."""
        bounds_x, bounds_y = self._value_bounds(data_x), self._value_bounds(data_y)
        if bounds_x is None or bounds_y is None:
            return ()
        # the rounding of each part's product may be larger than the values of the sum suggest: the parts may cancel
        rounding = (rounding_factor(data_y.n_samples) + len(self.parts)) * UNIT * sum(map(max, bounds_x, bounds_y))
        share = None if tol is None else (tol - rounding) / len(self.parts) * (1 - 1e-12)
        if share is not None and share <= 0.0:
            return ()

        def flops(offer: Offer) -> float:
            return offer.cost.setup_flops + offer.cost.row_flops * data_x.n_samples

        own = [_cheapest(part.summations(data_x, data_y, share), flops) for part in self.parts]
        if not all(own) and not self.positive_semidefinite:
            return ()  # the tiles of the sum itself also give the norm, on which such a kernel's certificate rests
        if not any(own) and any(part.compiled_tile() is None for part in self.parts):
            return ()  # the tiles of the sum itself are as good
        offers = [offer or _tiles(part, data_x, data_y) for part, offer in zip(self.parts, own)]
        costs = [offer.cost for offer in offers]
        cost = Cost(
            max(cost.n_features for cost in costs),
            row_flops=sum(cost.row_flops for cost in costs),
            setup_flops=sum(cost.setup_flops for cost in costs),
            memory=sum(cost.memory for cost in costs),
            residual=sum(cost.residual for cost in costs) + rounding,
            column_flops=sum(cost.row_flops if cost.column_flops is None else cost.column_flops for cost in costs),
        )

        def build(X: Rows, Y: Rows | None = None) -> Summation:
            return SumSummation([offer.build(X, Y) for offer in offers], rounding)

        return (Offer(self.word, cost, build),)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


class Product(_FlatCombination):
    """The rules of k_1(x, y) k_2(x, y) ..."""

    word = "product"
    join_values, join_numbers = np.multiply, staticmethod(prod)

    @property
    def translation(self) -> str | None:
        # a shift of x.y adds terms in x and in y, which centring takes away from x.y itself but not from its product
        return "kernel" if all(part.translation == "kernel" for part in self.parts) else None

    def gradient_sums(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray, steps: np.ndarray) -> GradientSums:
        values = [part.block(X, Y) for part in self.parts]
        of_parts = [part.gradient_sums(X, Y, block, steps) for part, block in zip(self.parts, values)]

        def sums(R: np.ndarray | None, A: np.ndarray) -> np.ndarray:
            total = np.zeros((len(X), A.shape[1], X.shape[1]))
            for i, of_part in enumerate(of_parts):
                factors = values[:i] + values[i + 1 :] + ([] if R is None else [R])
                total += of_part(reduce(np.multiply, factors), A)
            return total

        return sums

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        known = self._errors_and_bounds(data, dtype)
        if known is None:
            return None
        unit = unit_roundoff(dtype)
        error, size = 0.0, 1.0
        for part_error, bound in zip(*known):  # (k + e)(k' + e') - k k', rounded once
            error = error * (bound + part_error) + size * part_error
            size *= bound
            error += unit * (size + error)
        if np.isnan(error):  # nothing is known of one part, and another is zero
            return np.inf
        return error * BOUND_FACTOR + float(np.finfo(dtype).tiny)  # a product may underflow

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        bounds = self._value_bounds(data)
        if not self.positive_semidefinite or bounds is None:
            return ()
        # the relative residual of a product is at most about the sum of those of its parts, row by row
        ones = np.ones(len(self.parts))
        chosen = self._map_offers(data, tol, max_features, ones)
        if chosen is None:
            return ()

        def tensor(offers: Sequence[Offer], sample: np.ndarray) -> FeatureMap:
            total, bound = offers[0].build(sample), bounds[0]
            for offer, part_bound in zip(offers[1:], bounds[1:]):
                total = TensorMap(total, offer.build(sample), (bound, part_bound))
                bound = bound * part_bound * BOUND_FACTOR
            return total

        def build(sample: np.ndarray) -> FeatureMap:
            # rows with a large residual of one part may be those where the others are large: judged on the sample
            feature_map, part_tol = tensor(chosen, sample), tol
            for _ in range(3):
                residual, trace = float(feature_map.residual(sample).sum()), float(self.diagonal(sample).sum())
                if residual <= tol * trace or all(offer.cost.residual == 0.0 for offer in chosen):
                    break
                part_tol *= max(1e-3, 0.5 * tol * trace / residual)
                tighter = self._map_offers(data, part_tol, max_features, ones)
                if tighter is None:
                    break
                feature_map = tensor(tighter, sample)
            return feature_map

        D = self._features(chosen)
        cost = _map_cost(chosen, D, sum(offer.cost.residual for offer in chosen), joining=2.0 * D)
        return (Offer(self.word, cost, build),)

    def map_parts(self) -> tuple[Kernel, ...]:
        # a product of three is the map of the first two, times the third
        return self.parts if len(self.parts) == 2 else (type(self)(parts=self.parts[:-1]), self.parts[-1])

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        record, [first, second] = self._parts_from_state(header, arrays, TensorMap.kind, "bounds")
        stored = {str(i): bound for i, bound in enumerate(record.list("bounds", 2))}
        bounds = Record(stored, {}, "the bounds of a product")
        return TensorMap(first, second, (bounds.number("0", least=0.0), bounds.number("1", least=0.0)))

    def __repr__(self) -> str:
        return " * ".join(map(_bracketed, self.parts))

"""Feature maps of sums, scalings and products of kernels, made of the feature maps of their parts.

With k_i = phi_i.phi_i + E_i + D_i, E_i positive semidefinite and D_i the defect:

- A sum has the features of all its parts, side by side. Residuals and defects add. Its moments are dense, so that
  tiles have the ordinary size, not that of a part.
- A scaling has sqrt(factor) phi, and factor times the residual and the defect.
- A product has phi_1 (x) phi_2. Its residual is E_1 o A_2 + A_1 o E_2 + E_1 o E_2 with A_i = Phi_i Phi_i', and
  entrywise products of semidefinite matrices are semidefinite (Schur 1911). Its diagonal is
  r_1 |phi_2|^2 + |phi_1|^2 r_2 + r_1 r_2, known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from math import prod, sqrt
from operator import add
from typing import Any, ClassVar

import numpy as np

from ..base.protocol import FeatureMap, Kernel, Moments, OperatorMoments, Summary
from ..base.rounding import UNIT, unit_roundoff
from ..base.stored import Record
from ..errors import ModelFileError
from ..rows.summary import of_columns
from ..rows.view import Columns

State = tuple[dict, dict[str, np.ndarray]]


def with_parts(header: dict, parts: Sequence[State]) -> State:
    """The state of a map made of others: their headers in a list, their arrays under the number of the part."""
    arrays = {f"{i}.{name}": array for i, (_, part) in enumerate(parts) for name, array in part.items()}
    return header | {"parts": [part for part, _ in parts]}, arrays


def parts_of(header: dict, arrays: dict[str, np.ndarray]) -> list[State]:
    """The states from which ``with_parts`` made one."""
    parts = Record(header, arrays, "the feature map").list("parts")
    arrays_of: dict[str, dict[str, np.ndarray]] = {str(i): {} for i in range(len(parts))}
    for name, array in arrays.items():
        number, _, name_in_part = name.partition(".")
        if number not in arrays_of:
            raise ModelFileError(f"the feature map has {len(parts)} parts, and an array {name[:60]!r} of none of them")
        arrays_of[number][name_in_part] = array
    return list(zip(parts, arrays_of.values()))


class _OfParts(FeatureMap):
    """The base of maps made of other maps."""

    kind: ClassVar[str]
    parts: tuple[FeatureMap, ...]

    @property
    def thread_safe(self) -> bool:
        return all(part.thread_safe for part in self.parts)

    def remade(self, parts: Sequence[FeatureMap], kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        """This combination, of parts that hold for the rows of ``data``."""
        raise NotImplementedError

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        kernels = kernel.unguarded().map_parts()
        if len(kernels) != len(self.parts):
            return super().widened(kernel, data, radius)
        parts = [part.widened(part_kernel, data, radius) for part, part_kernel in zip(self.parts, kernels)]
        return self.remade(parts, kernel, data, radius)

    @classmethod
    def joined_size(cls, sizes: Sequence[int]) -> int:
        """D of this combination of maps with these numbers of features."""
        return sum(sizes)

    def _formula(self, header: dict[str, Any]) -> dict[str, Any] | None:
        parts = [part.formula() for part in self.parts]
        return None if None in parts else header | {"parts": parts}

    def state(self) -> State:
        return with_parts({"map": self.kind}, [part.state() for part in self.parts])


class ScaledMap(_OfParts):
    """sqrt(factor) phi, of what the part is given of a row."""

    kind = "scaled"

    def __init__(self, part: FeatureMap, factor: float):
        self.part, self.factor = part, factor
        self.parts = (part,)
        self._root = sqrt(factor)
        self.n_features = part.n_features
        self.defect = factor * part.defect * (1 + 4 * UNIT)
        self.rounding = part.rounding + 4 * UNIT
        self.tile_rows, self.transform_eps = part.tile_rows, part.transform_eps
        self.chunked = part.chunked

    def features(self, X: np.ndarray) -> np.ndarray:
        Phi = self.part.features(self.rows_of_part(X))
        return Phi if self.factor == 1.0 else Phi * X.dtype.type(self._root)

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        X = self.rows_of_part(X)
        if Phi is None or self.factor == 1.0:
            return self.factor * self.part.residual(X, Phi) * (1 + 8 * UNIT)
        # dividing gives phi back up to two roundings, in which |phi|^2 may have lost a little
        Phi = Phi / Phi.dtype.type(self._root)
        lost = 10 * unit_roundoff(Phi.dtype) * np.einsum("ij,ij->i", Phi, Phi)
        return self.factor * (self.part.residual(X, Phi) + lost) * (1 + 8 * UNIT)

    def defect_norm(self, n: float, trace: float) -> float:
        return self.factor * self.part.defect_norm(n, trace / self.factor) * (1 + 8 * UNIT)

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        return self._root * self.part.accumulate(self.rows_of_part(X), U)

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self._root * self.part.apply(self.rows_of_part(X), C)

    def applied(self, C: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        of_part = self.part.applied(self._root * C)
        return lambda X: of_part(self.rows_of_part(X))

    def gradients(self, C: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        return self.part.gradients(self._root * C)

    def rows_of_part(self, X: np.ndarray) -> np.ndarray:
        """The columns of a tile that the part takes."""
        return X

    def new_moments(self) -> Moments:
        return _ScaledMoments(self, self.part.new_moments())

    def quick_moments(self) -> Moments | None:
        quick = self.part.quick_moments()
        return None if quick is None else _ScaledMoments(self, quick)

    def outside_error(self, X: np.ndarray) -> np.ndarray:
        return self.factor * self.part.outside_error(self.rows_of_part(X)) * (1 + 4 * UNIT)

    def remade(self, parts: Sequence[FeatureMap], kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        return self if parts[0] is self.part else ScaledMap(parts[0], self.factor)

    def formula(self) -> dict[str, Any] | None:
        return self._formula({"kind": "scaled", "factor": self.factor})


class ColumnMap(ScaledMap):
    """The features of a kernel on some columns of the rows, each over its width.

    Parameters
    ----------
    part : FeatureMap
    columns : Columns
    radius : float
        Bound on the norm of these columns of the rows that the part holds for.
    """

    kind = "columns"

    def __init__(self, part: FeatureMap, columns: Columns, radius: float):
        super().__init__(part, 1.0)
        self.columns, self.radius = columns, radius
        self.anywhere = part.anywhere
        self.defect, self.rounding = part.defect, part.rounding
        if columns.widths is not None:
            # dividing moves a row by at most u times its norm R, and |phi(x) - phi(y)| <= |x - y| over the width for
            # the Gaussian and its mixtures of larger widths
            self.rounding += 8 * UNIT * radius

    def rows_of_part(self, X: np.ndarray) -> np.ndarray:
        return self.columns.of(X)

    def gradients(self, C: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        of_part = self.part.gradients(C)
        return lambda X, steps: self.columns.gradient(of_part(self.columns.of(X), self.columns.of(steps)), X.shape[1])

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        [part_kernel] = kernel.unguarded().map_parts()
        data = of_columns(data, self.columns)
        part = self.part.widened(part_kernel, data, self.radius)
        same = part is self.part and data.radius <= self.radius
        return self if same else ColumnMap(part, self.columns, max(self.radius, data.radius))

    def formula(self) -> dict[str, Any] | None:
        return None

    def state(self) -> State:
        header, arrays = super().state()
        return header | {"radius": self.radius}, arrays


class OfMoments(OperatorMoments):
    """The base of moments that are read from others, with their structure."""

    _of_part: Moments

    def operator(self) -> OperatorMoments | None:
        return None if self._of_part.operator() is None else self

    @property
    def _part_operator(self) -> OperatorMoments:
        operator = self._of_part.operator()
        assert operator is not None
        return operator


class _ScaledMoments(OfMoments):
    """The moments of the part, scaled when they are read."""

    def __init__(self, feature_map: ScaledMap, of_part: Moments):
        self.map: ScaledMap = feature_map
        self._factor, self._root = feature_map.factor, feature_map._root
        self._become(of_part)

    def _become(self, of_part: Moments) -> _ScaledMoments:
        self._of_part = of_part
        self.count = of_part.count
        self.residual_trace = self._factor * of_part.residual_trace * (1 + 8 * UNIT)
        return self

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray | None:
        residual = self._of_part.update(self.map.rows_of_part(X), weights)
        self._become(self._of_part)
        return None if residual is None else self._factor * residual * (1 + 8 * UNIT)

    def merge(self, other: Moments) -> Moments:
        assert isinstance(other, _ScaledMoments)
        return self._become(self._of_part.merge(other._of_part))

    def state(self) -> State:
        return self._of_part.state()

    def restore(self, header: dict, arrays: dict[str, np.ndarray]) -> _ScaledMoments:
        return self._become(self._of_part.restore(header, arrays))

    @property
    def mean(self) -> np.ndarray:
        return self._root * self._of_part.mean

    @property
    def trace(self) -> float:
        return self._factor * self._of_part.trace

    @property
    def error(self) -> float:
        return self._factor * self._of_part.error * (1 + 8 * UNIT)

    def dense(self) -> np.ndarray | None:
        second = self._of_part.dense()
        return None if second is None else self._factor * second

    def matmat(self, C: np.ndarray, n_threads: int = 1) -> np.ndarray:
        return self._factor * self._of_part.matmat(C, n_threads)

    @property
    def norm(self) -> float:
        return self._factor * self._part_operator.norm * (1 + 8 * UNIT)

    @property
    def product_error(self) -> float:
        operator = self._part_operator
        return self._factor * (operator.product_error + 4 * UNIT * operator.norm)

    @property
    def indefinite(self) -> float:
        if not self._of_part.indefinite:
            return 0.0
        return self._factor * (self._of_part.indefinite + 4 * UNIT * self._part_operator.norm)

    def form(self) -> np.ndarray:
        return self._factor * self._part_operator.form()

    def compressed(self, n_threads: int) -> Any:
        small, factor = self._part_operator.compressed(n_threads), self._factor
        return small and small._replace(
            product=lambda U: factor * small.product(U),
            product_error=factor * (small.product_error + 4 * UNIT * self._part_operator.norm),
            error=factor * small.error * (1 + 8 * UNIT),
            left_out=factor * small.left_out * (1 + 8 * UNIT),
        )


class SumMap(_OfParts):
    """The features of all parts, side by side."""

    kind = "sum"

    def __init__(self, parts: Sequence[FeatureMap]):
        self.parts = tuple(parts)
        ends = np.cumsum([0, *(part.n_features for part in self.parts)]).tolist()
        self._slices = [slice(start, stop) for start, stop in pairwise(ends)]
        self.n_features = ends[-1]
        self.defect = sum(part.defect for part in self.parts) * (1 + len(self.parts) * UNIT)
        self.rounding = max(part.rounding for part in self.parts)
        self.transform_eps = max(part.transform_eps for part in self.parts)

    def features(self, X: np.ndarray) -> np.ndarray:
        tile = np.empty((self.n_features, len(X)), dtype=X.dtype)
        for part, columns in zip(self.parts, self._slices):
            tile[columns] = part.features(X).T
        return tile.T

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        total = np.zeros(len(X))
        for part, columns in zip(self.parts, self._slices):
            total += part.residual(X, None if Phi is None else Phi[:, columns])
        return total * (1 + 2 * len(self.parts) * UNIT)

    def defect_norm(self, n: float, trace: float) -> float:
        # no part's trace is larger than that of the sum
        return sum(part.defect_norm(n, trace) for part in self.parts) * (1 + 2 * len(self.parts) * UNIT)

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        return np.concatenate([part.accumulate(X, U) for part in self.parts])

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        return reduce(add, (part.apply(X, C[columns]) for part, columns in zip(self.parts, self._slices)))

    def gradients(self, C: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        of_parts = [part.gradients(C[columns]) for part, columns in zip(self.parts, self._slices)]
        return lambda X, steps: reduce(add, (gradients(X, steps) for gradients in of_parts))

    def outside_error(self, X: np.ndarray) -> np.ndarray:
        return reduce(add, (part.outside_error(X) for part in self.parts)) * (1 + 2 * len(self.parts) * UNIT)

    def remade(self, parts: Sequence[FeatureMap], kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        return self if all(new is old for new, old in zip(parts, self.parts)) else SumMap(parts)

    def formula(self) -> dict[str, Any] | None:
        return self._formula({"kind": "sum"})


class TensorMap(_OfParts):
    """All products of a feature of the first part with one of the second.

    Parameters
    ----------
    first, second : FeatureMap
    bounds : (float, float)
        Bounds on |k_1| and |k_2| over the rows (``Kernel.value_bound``). Only the defects of the parts need them:
        |A o D|_2 <= max_i a_ii |D|_2 for semidefinite A, and |D_1 o D_2|_2 <= |D_1|_2 |D_2|_2, a principal part of
        the Kronecker product; the same for traces.
    """

    kind = "tensor"

    def __init__(self, first: FeatureMap, second: FeatureMap, bounds: tuple[float, float]):
        self.parts = (first, second)
        self.bounds = bounds
        self.n_features = first.n_features * second.n_features
        self.defect = self._defect(first.defect, second.defect)
        self.rounding = first.rounding + second.rounding + first.rounding * second.rounding + 2 * UNIT

    def _defect(self, first: float, second: float) -> float:
        """Defect of the product, for parts with these defects."""
        # the diagonal of A_i + E_i = K_i - D_i is at most the bound on k_i and what D_i adds
        first_size, second_size = self.bounds[0] + first, self.bounds[1] + second
        return (first * second_size + first_size * second + first * second) * (1 + 8 * UNIT)

    @classmethod
    def joined_size(cls, sizes: Sequence[int]) -> int:
        return prod(sizes)

    def features(self, X: np.ndarray) -> np.ndarray:
        one, two = (part.features(X).T for part in self.parts)
        return (one[:, None, :] * two[None, :, :]).reshape(self.n_features, len(X)).T

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        X = np.asarray(X, dtype=np.float64)
        squares, residuals = [], []
        for part in self.parts:
            Phi = part.features(X)
            # an upper bound of |phi|^2 for the exact phi, whose rounding is relative to k(x, x)^(1/2)
            square = np.einsum("ij,ij->i", Phi, Phi) * (1 + (part.n_features + 4) * UNIT)
            residual = part.residual(X, Phi)
            rounded = part.rounding / (1 - min(part.rounding, 0.5)) * np.sqrt(square + residual)
            squares.append((np.sqrt(square) + rounded) ** 2 * (1 + 4 * UNIT))
            residuals.append(residual)
        # (p_1 + r_1)(p_2 + r_2) - p_1 p_2, which grows with each of the four: upper bounds make one
        first, second = residuals
        return (first * (squares[1] + second) + squares[0] * second) * (1 + 8 * UNIT)

    def defect_norm(self, n: float, trace: float) -> float:
        first, second = (part.defect_norm(n, n * bound) for part, bound in zip(self.parts, self.bounds))
        return self._defect(first, second)

    def outside_error(self, X: np.ndarray) -> np.ndarray:
        errors = [part.outside_error(X) for part in self.parts]
        if not any(error.any() for error in errors):
            return np.zeros(len(X))
        # k_1 k_2 - p_1 p_2 = k_1 (k_2 - p_2) + (k_1 - p_1) k_2 - (k_1 - p_1)(k_2 - p_2), and |k_i(x, y)| is at most
        # (k_i(x, x) k_i(y, y))^(1/2)
        sizes = []
        for part, bound, error in zip(self.parts, self.bounds, errors):
            Phi = part.features(np.asarray(X, dtype=np.float64))
            diagonal = np.einsum("ij,ij->i", Phi, Phi) * (1 + 4 * part.rounding) + part.residual(X, Phi) + part.defect
            sizes.append(np.sqrt((diagonal + error) * bound))
        return (sizes[0] * errors[1] + errors[0] * sizes[1] + errors[0] * errors[1]) * (1 + 16 * UNIT)

    def remade(self, parts: Sequence[FeatureMap], kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        bounds = [part.value_bound(data) for part in kernel.unguarded().map_parts()]
        known = [bound for bound in bounds if bound is not None and np.isfinite(bound)]
        if len(known) < len(bounds):
            return FeatureMap.widened(self, kernel, data, radius)
        first, second = parts
        wide = (max(self.bounds[0], known[0]), max(self.bounds[1], known[1]))
        same = wide == tuple(self.bounds) and first is self.parts[0] and second is self.parts[1]
        return self if same else TensorMap(first, second, wide)

    def formula(self) -> dict[str, Any] | None:
        return self._formula({"kind": "product"})

    def state(self) -> State:
        header, arrays = super().state()
        return header | {"bounds": list(self.bounds)}, arrays

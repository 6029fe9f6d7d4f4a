"""Functions of new rows that a fitted method keeps: through a feature map, training rows, or kernel components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.base.stored import Record, refusing
from fastkpca.kernels import FeatureMap, Kernel
from fastkpca.maps.passes import apply
from fastkpca.rows.columns import check_columns
from fastkpca.rows.convert import as_rows
from fastkpca.rows.values import check_finite
from fastkpca.rows.view import Rows

__all__ = [
    "ComponentFunction",
    "FeatureFunction",
    "KernelFunction",
    "SampleFunction",
    "new_rows",
    "record_of",
    "restored_function",
]


def new_rows(X: Any, n_features: int, purpose: str = "predicting") -> Rows:
    """The one way in for rows that a method was not fitted on: their type, columns and values."""
    rows = as_rows(X, purpose=purpose)
    check_columns(n_features, rows.n_features)
    check_finite(rows, purpose=purpose)
    return rows


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelFunction:
    """f(x) = values at x - constant.

    Attributes
    ----------
    constant : ndarray (k,)
    """

    constant: np.ndarray

    def __call__(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """f at rows X, (m, k)."""
        threads = parallel.resolve_threads(n_threads)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            values = self._values(X, threads)
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise ValueError(
                f"the values at row {row} of X overflow: it is too far from the training rows for this kernel; check X"
            )
        return values

    def _values(self, X: Any, n_threads: int) -> np.ndarray:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """What a file holds of it; the kernel stands beside it."""
        return {
            "class": type(self).__name__,
            "fields": {name: value for name, value in vars(self).items() if name != "kernel"},
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureFunction(KernelFunction):
    """f(x) = weights' phi(x - shift) - constant; its size does not depend on the number of training rows."""

    map: FeatureMap
    shift: np.ndarray
    weights: np.ndarray

    def _values(self, X: Any, n_threads: int) -> np.ndarray:
        # without a shift, numbers that float64 would round are refused
        rows = new_rows(X, len(self.shift)).shifted(self.shift if self.shift.any() else None)
        return apply(self.map, rows, self.weights, n_threads, constant=self.constant)

    @classmethod
    def restored(cls, record: Record, kernel: Any) -> tuple[FeatureFunction, np.ndarray]:
        record.keys(("map",))
        record.names(("shift", "weights", "constant"))
        feature_map = record.get("map")
        if not isinstance(feature_map, FeatureMap):
            raise record.refuse("its map is none")
        shift, weights = record.array("shift", (None,)), record.array("weights", (feature_map.n_features, None))
        constant = record.array("constant", (weights.shape[1],))
        return cls(map=feature_map, shift=shift, weights=weights, constant=constant), shift[None, :]


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleFunction(KernelFunction):
    """f(x) = sum_j coefficients_j k(x, x_j) - constant, over the training rows with a coefficient."""

    kernel: Kernel
    X: Any
    coefficients: np.ndarray

    def _values(self, X: Any, n_threads: int) -> np.ndarray:
        if self.kernel.by_number:  # X is the matrix between new and training rows
            return new_rows(X, len(self.coefficients)).all() @ self.coefficients - self.constant
        rows = new_rows(X, self.X.shape[1]).source
        return fk.gram(rows, self.kernel, self.X, n_threads=n_threads) @ self.coefficients - self.constant

    def state(self) -> dict[str, Any]:
        described = super().state()
        if sp.issparse(self.X):
            described["fields"]["X"] = self.X.toarray()
        return described

    @classmethod
    def restored(cls, record: Record, kernel: Any) -> tuple[SampleFunction, np.ndarray]:
        record.keys(())
        record.names(("X", "coefficients", "constant"))
        if not isinstance(kernel, Kernel):
            raise record.refuse("it has no kernel")
        X = record.array("X", (0, 0) if kernel.by_number else (None, None), kind="fiu")
        coefficients = record.array("coefficients", (None if kernel.by_number else len(X), None))
        constant = record.array("constant", (coefficients.shape[1],))
        if not coefficients.size:
            raise record.refuse("it has no coefficients")
        row = np.zeros((1, len(coefficients))) if kernel.by_number else X[:1]
        return cls(kernel=kernel, X=X, coefficients=coefficients, constant=constant), row


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentFunction(KernelFunction):
    """f(x) = weights' (projection of x onto kernel components) - constant."""

    components: fk.KPCAModel
    weights: np.ndarray

    def _values(self, X: Any, n_threads: int) -> np.ndarray:
        return fk.kpca_project(self.components, X, n_threads=n_threads) @ self.weights - self.constant

    @classmethod
    def restored(cls, record: Record, kernel: Any) -> tuple[ComponentFunction, np.ndarray]:
        record.keys(("components",))
        record.names(("weights", "constant"))
        model = record.get("components")
        if not isinstance(model, fk.KPCAModel):
            raise record.refuse("its components are no model of kpca")
        weights = record.array("weights", (model.n_components, None))
        constant = record.array("constant", (weights.shape[1],))
        return cls(components=model, weights=weights, constant=constant), model.shift[None, :]


_FUNCTIONS = {cls.__name__: cls for cls in (FeatureFunction, SampleFunction, ComponentFunction)}


def restored_function(described: Any, kernel: Any) -> KernelFunction:
    """The function that a file describes, tried on a row; raises ModelFileError."""
    record = Record(described, {}, "the function")
    record.keys(("class", "fields"))
    cls, values = _FUNCTIONS[record.text("class", tuple(_FUNCTIONS))], record.get("fields")
    if not isinstance(values, Mapping):
        raise record.refuse("it has no fields")
    function, row = cls.restored(record_of(values, "the function"), kernel)
    with refusing("the function"):
        function(row, 1)
    return function


def record_of(values: Mapping[str, Any], what: str) -> Record:
    """Values that a file holds, the arrays among them apart."""
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return Record({name: value for name, value in values.items() if name not in arrays}, arrays, what)

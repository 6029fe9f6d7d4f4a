"""Functions of new rows that a fitted method keeps: through a feature map, training rows, or kernel components."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.kernels import FeatureMap, Kernel
from fastkpca.methods import Record, Rows, apply, as_rows, check_finite, check_same_columns, refusing

from . import stored
from .stored import InFile, Known, Stored
from .threads import one_blas_thread


def new_rows(X: Any, n_features: int, names: tuple[str, ...] | None, purpose: str = "predicting") -> Rows:
    """The only entry for rows that a method was not fitted on: their type, columns, their names, and values."""
    rows = as_rows(X, purpose=purpose)
    check_same_columns(rows, n_features, names)
    check_finite(rows, purpose=purpose)
    return rows


def within_range(values_of_rows: Callable[[], np.ndarray]) -> np.ndarray:
    """Values of new rows, which must be finite."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        values = values_of_rows()
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise ValueError(f"the values at row {row} of X overflow: it is too far from the training rows; check X")
    return values


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelFunction(Stored):
    """f(x), k numbers a row; each kind is some values at x minus ``constant`` (k,)."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of the training rows."""
        raise NotImplementedError

    @one_blas_thread
    def __call__(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """f at rows X, (m, k)."""
        threads = parallel.resolve_threads(n_threads)
        return within_range(lambda: self._values(X, threads))

    def _values(self, X: Any, n_threads: int) -> np.ndarray:
        raise NotImplementedError

    def trial_row(self) -> np.ndarray:
        """A row on which a function from a file is tried."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsFunction(KernelFunction):
    """Such a function of the columns of rows, or of a precomputed matrix, in which columns are rows without names."""

    names: tuple[str, ...] | None = field(default=None, metadata=stored.names("d"))

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self.names

    def rows(self, X: Any) -> Rows:
        """New rows, checked."""
        return new_rows(X, self.trial_row().shape[1], self.names)


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureFunction(RowsFunction):
    """f(x) = weights' phi(x - shift) - constant; its size does not depend on the number of training rows."""

    map: FeatureMap = field(metadata=stored.object_of(FeatureMap, "D", lambda feature_map: feature_map.n_features))
    shift: np.ndarray = field(metadata=stored.array("d"))
    weights: np.ndarray = field(metadata=stored.array("Dk"))
    constant: np.ndarray = field(metadata=stored.array("k"))

    def _values(self, X: Any, n_threads: int) -> np.ndarray:
        # without a shift, numbers that float64 would round are refused
        rows = self.rows(X).shifted(self.shift if self.shift.any() else None)
        return apply(self.map, rows, self.weights, n_threads, constant=self.constant)

    def trial_row(self) -> np.ndarray:
        return self.shift[None, :]


def _dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sp.issparse(rows) else rows


def _read_samples(record: Record, name: str, known: Known) -> np.ndarray:
    """Training rows; none for a precomputed matrix, whose rows stay with the user."""
    if "kernel" not in known:
        raise record.refuse("it has no kernel")
    if known["kernel"].by_number:
        return record.array(name, (0, 0))
    X = record.array(name, (None, None), kind="fiu")
    stored.agree(record, name, known, "nd", X.shape)
    return X


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleFunction(RowsFunction):
    """f(x) = sum_j coefficients_j k(x - shift, x_j) - constant, over the shifted training rows with a coefficient."""

    kernel: Kernel = field(metadata=stored.in_file(lambda record, name, known: known.get(name), None))
    X: Any = field(metadata=stored.in_file(_read_samples, _dense))
    shift: np.ndarray = field(
        metadata=stored.in_file(lambda record, name, known: record.array(name, (known.get("d", 0),)))
    )
    coefficients: np.ndarray = field(metadata=stored.array("nk"))
    constant: np.ndarray = field(metadata=stored.array("k"))

    def _values(self, X: Any, n_threads: int) -> np.ndarray:
        if self.kernel.by_number:  # X is the matrix between new and training rows
            n = len(self.coefficients)
            kernel, rows = self.kernel.bind(X, range(n))
            return kernel.block(rows, np.arange(float(n))[:, None]) @ self.coefficients - self.constant
        given = self.rows(X)
        rows = given.shifted(self.shift).all() if self.shift.any() else given.source
        return fk.gram(rows, self.kernel, self.X, n_threads=n_threads) @ self.coefficients - self.constant

    def trial_row(self) -> np.ndarray:
        return np.zeros((1, len(self.coefficients))) if self.kernel.by_number else self.X[:1] + self.shift


def of_matrix(kernel: Kernel, coefficients: np.ndarray, constant: np.ndarray) -> SampleFunction:
    """f(x) = sum_j coefficients_j K_xj - constant, of a precomputed matrix, whose rows stay with the user."""
    X, shift = np.empty((0, 0)), np.zeros(0)
    return SampleFunction(kernel=kernel, X=X, shift=shift, coefficients=coefficients, constant=constant)


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentFunction(KernelFunction):
    """f(x) = weights' (projection of x onto kernel components) - constant."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self.components.feature_names

    components: fk.KPCAModel = field(metadata=stored.object_of(fk.KPCAModel, "c", lambda model: model.n_components))
    weights: np.ndarray = field(metadata=stored.array("ck"))
    constant: np.ndarray = field(metadata=stored.array("k"))

    @property
    def info(self) -> dict[str, Any]:
        components = self.components
        return {"method": "components", "components": components.n_components, "kpca": components.plan.method}

    def _values(self, X: Any, n_threads: int) -> np.ndarray:
        return fk.kpca_project(self.components, X, n_threads=n_threads) @ self.weights - self.constant

    def trial_row(self) -> np.ndarray:
        return self.components.shift[None, :]


_FUNCTIONS = {cls.__name__: cls for cls in (FeatureFunction, SampleFunction, ComponentFunction)}


def function(letter: str) -> InFile:
    """A function of d numbers a row, tried on a row when it is read; its kernel is that of the model."""

    def read(record: Record, name: str, known: Known) -> KernelFunction:
        described = Record(record.get(name), {}, "the function")
        described.keys(("class", "fields"))
        cls, values = _FUNCTIONS[described.text("class", tuple(_FUNCTIONS))], described.get("fields")
        if not isinstance(values, Mapping):
            raise described.refuse("it has no fields")
        value = cls.from_state(values, "the function", {"kernel": known["kernel"]} if "kernel" in known else {})
        with refusing("the function"):
            value(value.trial_row(), 1)
        stored.agree(record, name, known, letter, value.constant.shape)
        return value

    return stored.in_file(read, lambda value: {"class": type(value).__name__, "fields": value.state()})

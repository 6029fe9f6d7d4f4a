"""Functions of new rows that a fitted method keeps: through a feature map, training rows, or kernel components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.kernels import FeatureMap, Kernel, Precomputed

__all__ = ["ComponentFunction", "FeatureFunction", "KernelFunction", "SampleFunction", "rows_of"]


def rows_of(X: Any) -> Any:
    """X as an array or CSR matrix that can be sliced; what its values must be is checked where they are read."""
    if sp.issparse(X):
        return X.tocsr()
    if X is None:
        raise TypeError("X is None; give an array of shape (rows, columns)")
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if mask is not None and mask.any():
        row = int(np.argwhere(mask)[0][0])
        raise ValueError(f"X has masked entries (first at row {row}); drop or impute these rows")
    try:
        rows = X if isinstance(X, np.ndarray) else np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X cannot be made an array of rows of one length: {error}") from None
    if rows.ndim == 0:
        raise ValueError(f"X is {X!r}; give an array of shape (rows, columns)")
    return rows


def _tile(X: Any, start: int, stop: int, shift: np.ndarray) -> np.ndarray:
    part = X[start:stop]
    part = part.toarray() if sp.issparse(part) else part
    return np.subtract(part, shift, dtype=np.float64, order="C")


def _check(X: Any, n_features: int, fitted: str = "the model was fitted on") -> Any:
    X = rows_of(X)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; give rows and columns, shape (m, {n_features})")
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} columns, {fitted} {n_features}; give the same columns in the same order")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has the type {X.dtype}; give real numbers")
    return X


def _check_tile(tile: np.ndarray, start: int) -> None:
    finite = np.isfinite(tile)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        word = "NaN" if np.isnan(tile[row, column]) else "infinity"
        raise ValueError(f"X contains {word} (first at row {start + row}, column {column}); drop or impute these rows")


def _finite(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise ValueError(
            f"the values at row {row} of X overflow: it is too far from the training rows for this kernel; check X"
        )
    return values


@dataclass(frozen=True, eq=False)
class FeatureFunction:
    """f(x) = weights' phi(x - shift) - constant; its size does not depend on the number of training rows."""

    map: FeatureMap
    shift: np.ndarray
    weights: np.ndarray
    constant: np.ndarray

    def __call__(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        parallel.resolve_threads(n_threads)  # a wrong number is an error, though one thread does it
        X = _check(X, len(self.shift))
        result = np.empty((X.shape[0], self.weights.shape[1]))
        step = self.map.tile_rows or max(64, (1 << 20) // max(1, self.map.n_features))
        for start in range(0, X.shape[0], step):
            tile = _tile(X, start, min(X.shape[0], start + step), self.shift)
            _check_tile(tile, start)
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                result[start : start + step] = self.map.apply(tile, self.weights) - self.constant
        return _finite(result)


@dataclass(frozen=True, eq=False)
class SampleFunction:
    """f(x) = sum_j coefficients_j k(x, x_j) - constant, over the training rows with a coefficient."""

    kernel: Kernel
    X: Any
    coefficients: np.ndarray
    constant: np.ndarray

    def __call__(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        if isinstance(self.kernel, Precomputed):
            parallel.resolve_threads(n_threads)
            rows = _check(X, self.coefficients.shape[0], "and the training rows are")
            _check_tile(np.asarray(rows), 0)
            with np.errstate(over="ignore", invalid="ignore"):
                return _finite(np.asarray(rows @ self.coefficients) - self.constant)
        rows = _check(X, self.X.shape[1])
        if rows.shape[0] == 0:
            return np.empty((0, self.coefficients.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            values = fk.gram(rows, self.kernel, self.X, n_threads=n_threads) @ self.coefficients - self.constant
        return _finite(values)


@dataclass(frozen=True, eq=False)
class ComponentFunction:
    """f(x) = weights' (projection of x onto kernel components) - constant."""

    components: fk.KPCAModel
    weights: np.ndarray
    constant: np.ndarray

    def __call__(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        return fk.kpca_project(self.components, X, n_threads=n_threads) @ self.weights - self.constant


KernelFunction = FeatureFunction | SampleFunction | ComponentFunction

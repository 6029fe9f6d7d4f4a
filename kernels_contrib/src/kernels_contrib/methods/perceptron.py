"""The kernel perceptron: Rosenblatt's rule on coefficients, a coefficient counts the mistakes made on its row.

C. V. Jawahar, Kernelization, SMAI lecture 16, 2019, algorithm 3; averaged: Freund & Schapire 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import fastkpca as fk
from fastkpca.base.checks import check_count, check_flag, check_rng
from fastkpca.kernels import Kernel

from .functions import FeatureFunction, KernelFunction, SampleFunction, rows_of
from .labels import class_codes
from .products import Products, held_features, products_for

__all__ = ["PerceptronModel", "kernel_perceptron", "perceptron_decision", "perceptron_predict"]

TILE = 512


@dataclass(frozen=True, eq=False, repr=False)
class PerceptronModel:
    """A fitted perceptron.

    Attributes
    ----------
    classes : ndarray (C,)
        The distinct labels.
    alpha : ndarray (N, k)
        Coefficients of the training rows; k = 1 for two classes, else one column a class.
    mistakes : tuple of int
        Updates made in each epoch; the last is 0 where it converged.
    converged : bool
        Every training row is on the right side.
    multiclass : str
    averaged : bool
    kernel : Kernel
    function : KernelFunction
        The decision function for new rows.
    info : dict
    """

    classes: np.ndarray
    alpha: np.ndarray
    mistakes: tuple[int, ...]
    converged: bool
    multiclass: str
    averaged: bool
    kernel: Kernel
    function: KernelFunction
    info: dict[str, Any]

    def decision(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As ``perceptron_decision``."""
        return perceptron_decision(self, X, n_threads=n_threads)

    def predict(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As ``perceptron_predict``."""
        return perceptron_predict(self, X, n_threads=n_threads)

    def __repr__(self) -> str:
        state = "converged" if self.converged else f"{self.mistakes[-1]} mistakes in the last"
        return (
            f"<PerceptronModel: {self.kernel!r}, {len(self.classes)} classes, {len(self.mistakes)} epochs ({state}), "
            f"{int(np.any(self.alpha != 0, axis=1).sum())} of {len(self.alpha)} rows with a coefficient, "
            f"method={self.info['method']!r}>"
        )


def kernel_perceptron(
    X: Any,
    y: Any,
    kernel: Any = "gaussian",
    *,
    max_epochs: int = 100,
    averaged: bool = False,
    multiclass: str = "ovr",
    shuffle: bool = False,
    method: str = "auto",
    tol: float = 1e-12,
    max_features: int | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> PerceptronModel:
    """The kernel perceptron, row after row until an epoch makes no mistake.

    Parameters
    ----------
    X : array_like (N, d)
    y : array_like (N,)
        Labels of any type.
    kernel : str, Kernel, object with ``block``, or callable
    max_epochs : int
        Most passes over the rows; classes that no function of the kernel separates never end otherwise.
    averaged : bool
        Predict by the mean of the coefficients over all steps rather than the last ones.
    multiclass : {"ovr", "joint"}
        One perceptron a class against the rest, or one rule that moves the right class and the one taken for it.
    shuffle : bool
        A new order of the rows in each epoch, by ``rng``; else as they come.
    method : {"auto", "features", "gram"}
        "features" holds a vector of features rather than coefficients' sums; the rule is the same. "auto" takes them
        where they are fewer than a quarter of the rows.
    tol : float
        The part of the trace of K that features may miss.
    max_features : int, optional
        As in ``klda``, like the following.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    PerceptronModel

    Notes
    -----
    Rows are taken by tiles: one product gives the decisions of a tile, and a mistake within it corrects the rest of the
    tile through its own small kernel matrix, so that the coefficients are those of the row-by-row rule.
    """
    X = rows_of(X)
    n = X.shape[0]
    classes, codes = class_codes(y, n, purpose="kernel_perceptron")
    if multiclass not in ("ovr", "joint"):
        raise ValueError(f"multiclass is {multiclass!r}; give 'ovr' or 'joint'")
    max_epochs = check_count(max_epochs, "max_epochs")
    averaged, shuffle = check_flag(averaged, "averaged"), check_flag(shuffle, "shuffle")
    generator = check_rng(rng)
    most = max(1, n // 4) if max_features is None and method == "auto" else max_features
    products = products_for(
        X, kernel, kernel_parameters, method=method, tol=tol, max_features=most, n_threads=n_threads, rng=generator
    )
    alpha, mean_alpha, mistakes = _epochs(
        products, codes, len(classes), max_epochs, multiclass, generator if shuffle else None
    )
    used = mean_alpha if averaged else alpha
    zero = np.zeros(used.shape[1])
    function: SampleFunction | FeatureFunction
    if products.features is None:
        function = products.function(used, zero)
    else:
        function = products.feature_function(products.features.T @ used, zero)
    return PerceptronModel(
        classes,
        used,
        tuple(mistakes),
        mistakes[-1] == 0,
        multiclass if len(classes) > 2 else "two",
        averaged,
        products.kernel.unbound(),
        function,
        products.info,
    )


def _epochs(
    products: Products,
    codes: np.ndarray,
    n_classes: int,
    max_epochs: int,
    multiclass: str,
    generator: np.random.Generator | None,
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    n, k = len(codes), 1 if n_classes == 2 else n_classes
    joint = k > 1 and multiclass == "joint"
    sides = np.where(codes[:, None] == np.arange(k), 1, -1) if k > 1 else np.where(codes == 1, 1, -1)[:, None]
    alpha, moment, steps = np.zeros((n, k)), np.zeros((n, k)), 0
    rows = _Rows(products, k)
    mistakes: list[int] = []
    for _ in range(max_epochs):
        order = np.arange(n) if generator is None else generator.permutation(n)
        found = 0
        for start in range(0, n, TILE):
            index = order[start : start + TILE]
            decision = rows.decision(index)
            change = np.zeros((len(index), k))
            wrong = _wrong(decision, codes[index], sides[index], joint)
            if wrong.any():
                K = rows.block(index)
                i = 0
                while True:
                    later = np.flatnonzero(wrong[i:])
                    if len(later) == 0:
                        break
                    i += int(later[0])
                    if joint:
                        update = np.zeros(k)
                        right, others = codes[index[i]], decision[i].copy()
                        others[right] = -np.inf
                        update[right], update[int(np.argmax(others))] = 1.0, -1.0
                    else:
                        update = np.where(decision[i] * sides[index[i]] <= 0, sides[index[i]], 0).astype(float)
                    change[i] += update
                    moment[index[i]] += (steps + i) * update
                    decision[i + 1 :] += K[i + 1 :, i, None] * update
                    found += 1
                    i += 1
                    wrong[i:] = _wrong(decision[i:], codes[index[i:]], sides[index[i:]], joint)
                alpha[index] += change
                rows.add(index, change)
            steps += len(index)
        mistakes.append(found)
        if found == 0:
            break
    # the mean over all steps: an update at step t is part of the steps after it
    return alpha, alpha - moment / steps, mistakes


def _wrong(decision: np.ndarray, codes: np.ndarray, sides: np.ndarray, joint: bool) -> np.ndarray:
    if joint:
        own = decision[np.arange(len(codes)), codes]
        others = decision.copy()
        others[np.arange(len(codes)), codes] = -np.inf
        return own <= others.max(axis=1, initial=-np.inf)
    return np.any(decision * sides <= 0, axis=1)


class _Rows:
    """Decisions of tiles of rows while coefficients change: a vector of features, or all decisions kept up to date."""

    def __init__(self, products: Products, k: int):
        self.products = products
        self._held = None
        if products.features is not None:
            self._held = held_features(products.features)
            self._weights = np.zeros((products.features.shape[1], k))
        else:
            self._decisions = np.zeros((products.n_samples, k))

    def _phi(self, index: np.ndarray) -> np.ndarray:
        if self._held is not None:
            return self._held[index]
        features, X = self.products.features, self.products.X
        tile = X[index]
        tile = np.asarray(tile if isinstance(tile, np.ndarray) else tile.toarray(), dtype=np.float64)
        return features.map.features(np.ascontiguousarray(tile - features.shift))

    def decision(self, index: np.ndarray) -> np.ndarray:
        if self.products.features is not None:
            return self._phi(index) @ self._weights
        return self._decisions[index].copy()

    def block(self, index: np.ndarray) -> np.ndarray:
        if self.products.features is not None:
            Phi = self._phi(index)
            return Phi @ Phi.T
        if _bound(self.products):
            return self._columns(index, np.eye(len(index)))[index]
        products = self.products
        return fk.gram(products.X[index], products.kernel, n_threads=products.n_threads) @ np.eye(len(index))

    def add(self, index: np.ndarray, change: np.ndarray) -> None:
        used = np.any(change != 0.0, axis=1)
        if self.products.features is not None:
            self._weights += self._phi(index[used]).T @ change[used]
        else:
            self._decisions += self._columns(index[used], change[used])

    def _columns(self, index: np.ndarray, values: np.ndarray) -> np.ndarray:
        """K[:, index] @ values."""
        if _bound(self.products):
            U = np.zeros((self.products.n_samples, values.shape[1]))
            U[index] = values
            return self.products.matmat(U)
        X, kernel = self.products.X, self.products.kernel
        return fk.gram(X, kernel, X[index], n_threads=self.products.n_threads) @ values


def _bound(products: Products) -> bool:
    """Whether the kernel knows its rows by number only, as a precomputed matrix does."""
    return bool(products.kernel.by_number)


def perceptron_decision(model: PerceptronModel, X: Any, *, n_threads: int | None = None) -> np.ndarray:
    """The decision sum_j alpha_j k(x, x_j) for new rows.

    Parameters
    ----------
    model : PerceptronModel
    X : array_like (m, d)
        New rows, with the columns of the training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m,) or (m, C)
        One number a row for two classes (positive: the second), else one a class.
    """
    if not isinstance(model, PerceptronModel):
        raise TypeError(f"model is a {type(model).__name__}; give what kernel_perceptron() returned")
    values = model.function(X, n_threads)
    return values[:, 0] if values.shape[1] == 1 else values


def perceptron_predict(model: PerceptronModel, X: Any, *, n_threads: int | None = None) -> np.ndarray:
    """Labels of new rows.

    Parameters
    ----------
    model : PerceptronModel
    X : array_like (m, d)
        New rows, with the columns of the training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m,)
        Of the type of the labels.
    """
    values = perceptron_decision(model, X, n_threads=n_threads)
    if values.ndim == 1:
        return model.classes[(values > 0).astype(int)]
    return model.classes[np.argmax(values, axis=1)]

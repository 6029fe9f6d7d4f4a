"""The kernel perceptron: Rosenblatt's rule on coefficients, a coefficient counts the mistakes made on its row.

C. V. Jawahar, Kernelization, SMAI lecture 16, 2019, algorithm 3; averaged: Freund & Schapire 1999.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fastkpca.base import parallel
from fastkpca.methods import check_choice, check_count, check_flag, check_rng

from .methods import stored
from .methods.base import Classifier, KernelMethod, predict
from .methods.functions import KernelFunction, function
from .methods.labels import class_codes
from .methods.options import FitOptions
from .methods.products import Products, products_for, training_rows
from .methods.threads import one_blas_thread

__all__ = ["PerceptronModel", "kernel_perceptron", "perceptron_decision", "perceptron_predict"]

perceptron_predict = predict


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PerceptronModel(KernelMethod, Classifier):
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

    made_by = "kernel_perceptron()"

    classes: np.ndarray = field(metadata=stored.labels())
    alpha: np.ndarray = field(metadata=stored.not_stored("D"))
    mistakes: tuple[int, ...] = field(metadata=stored.counts())
    converged: bool = field(metadata=stored.flag())
    multiclass: str = field(metadata=stored.text("ovr", "joint", "two"))
    averaged: bool = field(metadata=stored.flag())
    function: KernelFunction = field(metadata=function("D"))

    def decision(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As ``perceptron_decision``."""
        return perceptron_decision(self, X, n_threads=n_threads)

    def facts(self) -> list[str]:
        state = "converged" if self.converged else f"{self.mistakes[-1]} mistakes in the last"
        return [
            f"{self.kernel!r}, {len(self.classes)} classes, {len(self.mistakes)} epochs ({state})",
            f"{int(np.any(self.alpha != 0, axis=1).sum())} of {len(self.alpha)} rows with a coefficient",
            f"method={self.info['method']!r}",
        ]


@one_blas_thread
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
        One perceptron for each class against all others, or one rule that moves the right class and the one taken for
        it.
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
    Rows are taken by tiles: one product gives the decisions of a tile, and each mistake within it corrects those that
    follow, so that the coefficients are those of the row-by-row rule.
    """
    X = training_rows(X, "kernel_perceptron")
    n = X.shape[0]
    classes, codes = class_codes(y, n, purpose="kernel_perceptron")
    check_choice(multiclass, "multiclass", ("ovr", "joint"))
    max_epochs = check_count(max_epochs, "max_epochs")
    averaged, shuffle = check_flag(averaged, "averaged"), check_flag(shuffle, "shuffle")
    generator = check_rng(rng)
    options = FitOptions(kernel, kernel_parameters, method, tol, max_features, n_threads, generator)
    if max_features is None and options.method == "auto":
        options = replace(options, max_features=max(1, n // 4))
    products = products_for(X, options)
    rule = _Rule(codes, len(classes), joint=multiclass == "joint")
    last, mean, mistakes = _epochs(products, rule, max_epochs, generator if shuffle else None)
    alpha = mean if averaged else last
    return PerceptronModel(
        classes=classes,
        alpha=alpha,
        mistakes=tuple(mistakes),
        converged=mistakes[-1] == 0,
        multiclass=multiclass if len(classes) > 2 else "two",
        averaged=averaged,
        kernel=products.kernel.unbound(),
        function=products.function_of(alpha, np.zeros(rule.n_columns)),
        info=products.info,
    )


class _Rule:
    """When a decision is wrong, and what is added to the coefficients of its row then."""

    def __init__(self, codes: np.ndarray, n_classes: int, *, joint: bool):
        self.codes = codes
        self.n_columns = 1 if n_classes == 2 else n_classes
        self.joint = joint and n_classes > 2
        self._sides = np.where(codes == 1, 1, -1)[:, None]
        if n_classes > 2:
            self._sides = np.where(codes[:, None] == np.arange(n_classes), 1, -1)

    def _rivals(self, decision: np.ndarray, index: np.ndarray) -> np.ndarray:
        rivals = decision.copy()
        rivals[np.arange(len(index)), self.codes[index]] = -np.inf
        return rivals

    def wrong(self, decision: np.ndarray, index: np.ndarray) -> np.ndarray:
        """True for wrong decisions (m, k) at the rows with these numbers."""
        if self.joint:
            right = decision[np.arange(len(index)), self.codes[index]]
            return right <= self._rivals(decision, index).max(axis=1, initial=-np.inf)
        return np.any(decision * self._sides[index] <= 0, axis=1)

    def update(self, decision: np.ndarray, row: int) -> np.ndarray:
        """Update of the coefficients (k,) of a row by a wrong decision (k,)."""
        if self.joint:
            update = np.zeros(len(decision))
            rival = int(np.argmax(self._rivals(decision[None], np.array([row]))))
            update[self.codes[row]], update[rival] = 1.0, -1.0
            return update
        return np.where(decision * self._sides[row] <= 0, self._sides[row], 0).astype(float)


def _epochs(
    products: Products, rule: _Rule, max_epochs: int, generator: np.random.Generator | None
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """(last coefficients, their mean over all steps, mistakes by epoch)."""
    n = len(rule.codes)
    alpha, moment, steps = np.zeros((n, rule.n_columns)), np.zeros((n, rule.n_columns)), 0
    decisions = _Decisions(products, rule.n_columns)
    mistakes: list[int] = []
    tile = parallel.tile_rows(n)
    for _ in range(max_epochs):
        order = np.arange(n) if generator is None else generator.permutation(n)
        mistakes.append(0)
        for start in range(0, n, tile):
            index = order[start : start + tile]
            for i, update in _mistakes(decisions, rule, index):
                alpha[index[i]] += update
                moment[index[i]] += (steps + i) * update
                mistakes[-1] += 1
            steps += len(index)
        if mistakes[-1] == 0:
            break
    # the mean over all steps: an update at step t is part of the steps after it
    return alpha, alpha - moment / steps, mistakes


def _mistakes(decisions: _Decisions, rule: _Rule, index: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(place in the tile, what is added there) of each mistake, each correcting the decisions after it."""
    decision, learn = decisions.of(index, rule)
    wrong = rule.wrong(decision, index)
    i = 0
    while wrong[i:].any():
        i += int(np.argmax(wrong[i:]))
        update = rule.update(decision[i], index[i])
        yield i, update
        decision += np.outer(learn(i, update), update)
        i += 1
        wrong[i:] = rule.wrong(decision[i:], index[i:])


class _Decisions:
    """Decisions at the rows while coefficients change: by a vector of features, or all of them kept up to date."""

    def __init__(self, products: Products, k: int):
        self._products = products
        self._held = None if products.features is None else products.held_features()
        self._values = np.zeros((products.n_samples if products.features is None else products.features.shape[1], k))

    def of(self, index: np.ndarray, rule: _Rule) -> tuple[np.ndarray, Callable[[int, np.ndarray], np.ndarray]]:
        """The decisions at these rows, and a function that adds to the coefficients of one and returns k of all with
        it."""
        if self._products.features is None:
            decision, gram = self._values[index], self._products.gram
            wrong = np.flatnonzero(rule.wrong(decision, index))  # together, at a tenth of what each alone takes
            rows = dict(zip(wrong.tolist(), gram[index[wrong]])) if len(wrong) else {}

            def learn(i: int, update: np.ndarray) -> np.ndarray:
                row = rows[i] if i in rows else gram[index[i]]
                self._values += np.outer(row, update)
                return np.asarray(row[index])

            return decision, learn
        if isinstance(self._held, np.ndarray):
            Phi = self._held[index]
        else:
            Phi = self._products.features.map.features(self._products.feature_rows(index).all())

        def learn_features(i: int, update: np.ndarray) -> np.ndarray:
            self._values += np.outer(Phi[i], update)
            return np.asarray(Phi @ Phi[i])

        return Phi @ self._values, learn_features


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
    values = PerceptronModel.of(model).function(X, n_threads)
    return values[:, 0] if values.shape[1] == 1 else values

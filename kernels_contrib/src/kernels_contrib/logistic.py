"""Penalised kernel logistic regression, two and many classes.

The model is P(Z = 1; x) = 1 / (1 + exp(-a - sum_j gamma_j k(x_j, x))), equation 4.14 of the chapter on kernel principal
component analysis named in docs/methods.md. The penalty, which the chapter leaves to the reader, is added here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import softmax

from fastkpca.errors import warn_caller
from fastkpca.methods import check_count

from .errors import AccuracyWarning
from .methods import stored
from .methods.base import Classifier, KernelMethod, predict
from .methods.functions import KernelFunction, function
from .methods.labels import class_codes
from .methods.logit import Logit, fit_logit, lift_through
from .methods.options import MAX_LOGIT_SCALE, FitOptions, accuracy, check_scale, regularization_strength, row_weights
from .methods.products import Products, for_lengths, need_semidefinite, products_for, training_rows
from .methods.threads import one_blas_thread

__all__ = ["LogisticModel", "kernel_logistic", "logistic_predict", "logistic_probability"]

logistic_predict = predict


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LogisticModel(KernelMethod, Classifier):
    """A fitted logistic regression.

    Attributes
    ----------
    classes : ndarray (C,)
        The distinct labels.
    intercept : ndarray (k,)
        a; k = 1 for two classes, else one a class (they sum to zero).
    gamma : ndarray (N, k) or None
        Coefficients of the training rows: (indicator of the class - probability) / regularization, times the weight of
        the row; None on components.
    regularization : float
    kernel : Kernel
    function : KernelFunction
        The log odds of new rows (for many classes: the logits).
    log_likelihood : float
        Log-likelihood of the training rows.
    info : dict
    """

    made_by = "kernel_logistic()"

    classes: np.ndarray = field(metadata=stored.labels())
    intercept: np.ndarray = field(metadata=stored.array("D"))
    gamma: np.ndarray | None = field(metadata=stored.not_stored())
    regularization: float = field(metadata=stored.number(least=0.0))
    function: KernelFunction = field(metadata=function("D"))
    log_likelihood: float = field(metadata=stored.number())

    def probability(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """As ``logistic_probability``."""
        return logistic_probability(self, X, n_threads=n_threads)

    def facts(self) -> list[str]:
        return [
            f"{self.kernel!r}, {len(self.classes)} classes, regularization={self.regularization:g}",
            f"log-likelihood {self.log_likelihood:.6g}, method={self.info['method']!r}",
        ]


@one_blas_thread
def kernel_logistic(
    X: Any,
    y: Any,
    kernel: Any = "gaussian",
    *,
    regularization: float = 1.0,
    tol: float = 1e-8,
    method: str = "auto",
    features_tol: float = 1e-6,
    max_features: int | None = None,
    max_iterations: int = 100,
    sample_weight: Any = None,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> LogisticModel:
    """Minimise -(log-likelihood) + (regularization / 2) |f|^2 over f(x) = sum_j gamma_j k(x_j, x) and an intercept.

    Parameters
    ----------
    X : array_like (N, d)
        Rows; or the Gram matrix (N, N) for ``kernel="precomputed"``.
    y : array_like (N,)
        Labels of any type.
    kernel : str, Kernel, object with ``block``, or callable
        Positive semidefinite.
    regularization : float
        lambda > 0; scikit-learn's C is 1 / lambda. |f|^2 = gamma' K gamma; the intercept is not penalised.
    tol : float
        Norm of the gradient, relative to that at f = 0, to stop at.
    method : {"auto", "features", "gram"}
        "auto" works with a feature map where there is one that is small enough, else with products.
    features_tol : float
        The part of the trace of K that features may miss.
    max_features : int, optional
        2048 by default.
    max_iterations : int
        Most Newton steps.
    sample_weight : array_like (N,), optional
        Weight of each row's term of the log-likelihood: a whole number counts the row that many times. Some row of each
        class needs a weight.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    LogisticModel

    Warns
    -----
    AccuracyWarning
        Newton's steps stopped short of ``tol``.
    """
    X = training_rows(X, "kernel_logistic")
    classes, codes = class_codes(y, X.shape[0], purpose="kernel_logistic")
    strength = regularization_strength(
        regularization, " (there are as many coefficients as rows), or take kernel_pc_logistic, which needs none"
    )
    tol = accuracy(tol, "tol")
    max_iterations = check_count(max_iterations, "max_iterations")
    weights = _weights(sample_weight, classes, codes)
    features_tol = accuracy(features_tol, "features_tol")
    options = FitOptions(kernel, kernel_parameters, method, features_tol, max_features, n_threads, rng)
    products = products_for(X, for_lengths(options, X.shape[0], "kernel_logistic"))
    need_semidefinite(products.kernel, "kernel_logistic")
    check_scale("logistic regression", products.mean_diagonal(), strength, MAX_LOGIT_SCALE)
    target = indicator(codes, len(classes))
    solution, function_of_rows = _fit(products, target, weights, strength, tol, max_iterations)
    warn_short(solution, tol)
    return LogisticModel(
        classes=classes,
        intercept=solution.intercept,
        gamma=weights[:, None] * (target - solution.probability) / strength,
        regularization=strength,
        kernel=products.kernel.unbound(),
        function=function_of_rows,
        log_likelihood=solution.log_likelihood,
        info=products.info | solution.info | {"products_used": solution.lifts},
    )


def _weights(sample_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """One for each row; ValueError where all rows of a class have none."""
    weights = row_weights(sample_weight, len(codes), fit=False)
    of_classes = np.bincount(codes, weights)
    if not of_classes.all():
        empty = classes.tolist()[int(np.argmin(of_classes))]
        raise ValueError(f"every row of the class {empty!r} has the weight zero; leave these rows out, or weight some")
    return weights


def _fit(
    products: Products, target: np.ndarray, weights: np.ndarray, strength: float, tol: float, max_iterations: int
) -> tuple[Logit, KernelFunction]:
    options: dict[str, Any] = {"tol": tol, "max_iterations": max_iterations, "sample_weight": weights}
    if products.features is None:
        solution = fit_logit(target, strength, lift=lambda R: (R, products.matmat(R)), **options)
        return solution, products.function(solution.weights, -solution.intercept)
    solution = fit_logit(target, strength, lift=lift_through(products.held_features()), plain=True, **options)
    return solution, products.feature_function(solution.weights, -solution.intercept)


def indicator(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """One column for two classes (the second), else one a class."""
    if n_classes == 2:
        return (codes == 1).astype(np.float64)[:, None]
    return (codes[:, None] == np.arange(n_classes)).astype(np.float64)


def warn_short(solution: Logit, tol: float) -> None:
    if solution.gradient > tol:
        warn_caller(
            f"Newton's method stopped after {solution.iterations} steps with a gradient of {solution.gradient:.2g} of "
            f"the first one, tol is {tol:.2g}; a larger regularization or max_iterations helps",
            AccuracyWarning,
        )


def logistic_probability(model: LogisticModel, X: Any, *, n_threads: int | None = None) -> np.ndarray:
    """Probability of each class for new rows.

    Parameters
    ----------
    model : LogisticModel
    X : array_like (m, d)
        New rows, with the columns of the training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m, C)
        Columns in the order of ``model.classes``.
    """
    logits = LogisticModel.of(model).function(X, n_threads)
    if logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])
    return np.asarray(softmax(logits, axis=1))

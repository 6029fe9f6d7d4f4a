"""Regression and logistic regression on kernel principal components."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fastkpca as fk
from fastkpca.methods import check_count

from .logistic import LogisticModel, indicator, warn_short
from .methods import stored
from .methods.base import Regressor
from .methods.functions import ComponentFunction, function
from .methods.labels import class_codes, real_targets
from .methods.logit import fit_logit, lift_through
from .methods.options import MAX_LOGIT_SCALE, accuracy, check_scale, regularization_strength
from .methods.products import training_rows
from .methods.threads import one_blas_thread

__all__ = ["RegressionModel", "kernel_pc_logistic", "kernel_pcr", "pcr_predict"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegressionModel(Regressor):
    """Principal component regression.

    Attributes
    ----------
    weights : ndarray (c, k)
        Weights of the scores.
    intercept : ndarray (k,)
    function : KernelFunction
    explained_variance : ndarray (k,)
        R^2 of each target on the training rows.
    single : bool
        The targets were given as one vector.
    """

    made_by = "kernel_pcr()"

    weights: np.ndarray = field(metadata=stored.array("ck"))
    intercept: np.ndarray = field(metadata=stored.array("k"))
    function: ComponentFunction = field(metadata=function("k"))
    explained_variance: np.ndarray = field(metadata=stored.array("k"))

    @property
    def components(self) -> fk.KPCAModel:
        """The kernel components."""
        return self.function.components

    def facts(self) -> list[str]:
        shares = ", ".join(f"{x:.4g}" for x in self.explained_variance)
        return [f"{self.components.n_components} components, R^2 {shares}, {self.components!r}"]


@one_blas_thread
def kernel_pcr(
    X: Any, t: Any, kernel: Any = "gaussian", c: int | float | None = 0.9, **options: Any
) -> RegressionModel:
    """Least squares on kernel principal components.

    Parameters
    ----------
    X : array_like (N, d)
    t : array_like (N,) or (N, k)
        Numbers to be explained.
    kernel : str, Kernel, object with ``block``, or callable
    c : int, float or None
        Components, as in ``kpca``.
    **options
        Of ``kpca``, and the kernel's parameters.

    Returns
    -------
    RegressionModel
    """
    n = training_rows(X, "kernel_pcr").shape[0]
    values = real_targets(t, n)
    model = fk.kpca(X, kernel, c, **options)
    score = np.asarray(model.score, dtype=np.float64)
    # squares of the largest numbers would overflow; a power of two rounds nothing
    unit = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0))[1] - 1)
    values = values / unit
    mean = values.mean(axis=0)
    weights = score.T @ (values - mean) / np.sum(score**2, axis=0)[:, None]
    residual = np.sum((values - mean - score @ weights) ** 2, axis=0)
    total = np.sum((values - mean) ** 2, axis=0)
    share = 1.0 - residual / np.where(total > 0, total, 1.0)
    weights, mean = weights * unit, mean * unit
    return RegressionModel(
        weights=weights,
        intercept=mean,
        function=ComponentFunction(components=model, weights=weights, constant=-mean),
        explained_variance=share,
        single=np.ndim(t) == 1,
    )


def pcr_predict(model: RegressionModel, X: Any, *, n_threads: int | None = None) -> np.ndarray:
    """The targets at new rows.

    Parameters
    ----------
    model : RegressionModel
    X : array_like (m, d)
        New rows, with the columns of the training rows.
    n_threads : int, optional
        Default: all processors.

    Returns
    -------
    ndarray (m,) or (m, k)
        As the targets were given.
    """
    return RegressionModel.of(model).predict(X, n_threads=n_threads)


@one_blas_thread
def kernel_pc_logistic(
    X: Any,
    y: Any,
    kernel: Any = "gaussian",
    c: int | float | None = 0.9,
    *,
    regularization: float = 0.0,
    logistic_tol: float = 1e-6,
    max_iterations: int = 100,
    **options: Any,
) -> LogisticModel:
    """Logistic regression on kernel principal components.

    Parameters
    ----------
    X : array_like (N, d)
    y : array_like (N,)
        Labels of any type.
    kernel : str, Kernel, object with ``block``, or callable
    c : int, float or None
        Components, as in ``kpca``; 0.9 keeps those that explain 90 % of the variance.
    regularization : float
        Penalty on the squared weights of components scaled to unit variance; 0: maximum likelihood, which has no end
        where the components separate the classes, and then stops with a warning.
    logistic_tol : float
        Norm of the gradient, relative to the first, to stop at.
    max_iterations : int
    **options
        Of ``kpca`` (``tol``, ``method``, ``rng``, ...), and the kernel's parameters.

    Returns
    -------
    LogisticModel
        For ``logistic_predict`` and ``logistic_probability``.
    """
    n = training_rows(X, "kernel_pc_logistic").shape[0]
    classes, codes = class_codes(y, n, purpose="kernel_pc_logistic")
    regularization = regularization_strength(regularization, zero=True)
    check_scale("logistic regression", 1.0, regularization, MAX_LOGIT_SCALE)
    logistic_tol = accuracy(logistic_tol, "logistic_tol")
    max_iterations = check_count(max_iterations, "max_iterations")
    model = fk.kpca(X, kernel, c, **options)
    unit = np.sqrt(model.latent)
    scaled = np.asarray(model.score, dtype=np.float64) / unit

    target, lift = indicator(codes, len(classes)), lift_through(scaled)
    solution = fit_logit(target, regularization, lift=lift, tol=logistic_tol, max_iterations=max_iterations, plain=True)
    warn_short(solution, logistic_tol)
    weights = solution.weights / unit[:, None]
    function = ComponentFunction(components=model, weights=weights, constant=-solution.intercept)
    return LogisticModel(
        classes=classes,
        intercept=solution.intercept,
        gamma=None,
        regularization=regularization,
        kernel=model.kernel,
        function=function,
        log_likelihood=solution.log_likelihood,
        info=function.info | solution.info,
    )

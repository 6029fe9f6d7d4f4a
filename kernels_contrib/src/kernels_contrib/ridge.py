"""Kernel ridge regression, with a bound on the error of each prediction.

f(x) = sum_j a_j k(x_j, x) with (K + mu I) a = t minimises sum (t_i - f(x_i))^2 + mu |f|^2 (Saunders, Gammerman and
Vovk, ICML 1998). With weights w, K becomes W^(1/2) K W^(1/2) and t becomes W^(1/2) t.

The residual r of the iterations is computed anew. Let k be the column of k(x, x_j). The kernel matrix of all rows and x
is semidefinite, so that k' (K + mu I)^-1 k <= k(x, x). By Cauchy and Schwarz in the metric of (K + mu I)^-1

    |error of f(x)| = |k' (K + mu I)^-1 r| <= sqrt(k(x, x) / mu) |r|,

which is smaller by the square root of the number of rows than the bound from |error of a| <= |r| / mu. For a map let
E = K - Phi Phi'. The a of the map's f has the residual E a with |E a| <= tr E |a|. The part e' a that its f(x) lacks is
at most sqrt(k(x, x) tr E) |a|.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fastkpca as fk
from fastkpca.base.rounding import EPS
from fastkpca.errors import NotConvergedError
from fastkpca.methods import Iterated, check_choice, check_count, solve_to_residual

from .errors import warn_stopped
from .methods import stored
from .methods.base import KernelMethod, Regressor
from .methods.discriminant import preconditioner
from .methods.functions import RowsFunction, SampleFunction, function
from .methods.options import METHODS, FitOptions, accuracy, check_scale, regularization_strength
from .methods.products import Products, regression_on
from .methods.threads import one_blas_thread

__all__ = ["RidgeModel", "kernel_ridge"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RidgeModel(Regressor, KernelMethod):
    """Kernel ridge regression.

    Attributes
    ----------
    kernel : Kernel
        With every parameter resolved.
    regularization : float
        mu.
    function : KernelFunction
    error_rate : ndarray (k,)
        The error of the prediction of each target is at most this times sqrt(k(x, x)), plus ``error_constant``.
    error_constant : ndarray (k,)
        For entries of the kernel that a feature map has wrong in either sense.
    single : bool
        The targets were given as one vector.
    n_samples : int
    info : dict
        Method, iterations, residual.
    """

    made_by = "kernel_ridge()"

    regularization: float = field(metadata=stored.number(least=0.0))
    function: RowsFunction = field(metadata=function("k"))
    error_rate: np.ndarray = field(metadata=stored.array("k", least=0.0, infinite=True))
    error_constant: np.ndarray = field(metadata=stored.array("k", least=0.0, infinite=True))
    n_samples: int = field(metadata=stored.count())

    def error(self, X: Any) -> np.ndarray:
        """Bounds on how far ``predict`` is from the exact solution, rounding included.

        It is the solution for the kernel's values as its tiles return them, which have to be as semidefinite as the
        kernel says.

        Parameters
        ----------
        X : array_like (m, d)
            New rows.

        Returns
        -------
        ndarray (m,) or (m, k)
            As the targets were given.

        Raises
        ------
        ValueError
            For a precomputed matrix, in which k(x, x) of a new row is not there.
        """
        if self.kernel.by_number:
            raise ValueError("an error bound needs k(x, x) of new rows, and a precomputed matrix does not hold it")
        rows = self.function.rows(X)
        scale = np.sqrt(np.maximum(self.kernel.diagonal(rows.all()), 0.0))
        bounds = scale[:, None] * self.error_rate + self.error_constant
        if isinstance(self.function, SampleFunction):
            K = fk.gram(rows.source, self.kernel, self.function.X, n_threads=1)
            bounds += K.error_bound * np.abs(self.function.coefficients).sum(axis=0)
        return self.as_given(bounds)

    def facts(self) -> list[str]:
        return [
            f"{self.kernel!r}, regularization={self.regularization:g}, {len(self.error_rate)} targets",
            f"n_samples={self.n_samples}, method={self.info['method']!r}",
            f"predictions within {self.error_rate.max():.2g} sqrt(k(x, x)) of the exact ones",
        ]


@one_blas_thread
def kernel_ridge(
    X: Any,
    t: Any,
    kernel: Any = "gaussian",
    *,
    regularization: float = 1.0,
    sample_weight: Any = None,
    tol: float = 1e-8,
    method: str = "auto",
    features_tol: float | None = None,
    max_features: int | None = None,
    max_iterations: int = 1000,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> RidgeModel:
    """Least squares over functions of a kernel, with the penalty ``regularization`` |f|^2; no intercept.

    Parameters
    ----------
    X : array_like (N, d)
        Rows; or the Gram matrix (N, N) for ``kernel="precomputed"``.
    t : array_like (N,) or (N, k)
        Numbers to be explained.
    kernel : str, Kernel, object with ``block``, or callable
        Positive semidefinite.
    regularization : float
        mu, scikit-learn's ``alpha``.
    sample_weight : array_like (N,), optional
        Weights of the squared errors.
    tol : float
        Norm of the residual of the linear system at which the iterations end, relative to that of the targets.
    method : {"auto", "features", "gram"}
        How K is multiplied by: "features" takes a feature map; "auto" one of few features that misses no more than
        ``features_tol``. A coarser preconditions in any case.
    features_tol : float, optional
        The part of the trace of K that features may miss. Default: 1e-10 for "features", and next to nothing for
        "auto", as an exact map misses. With more, as 1e-6, many rows take less time, and ``error`` is larger.
    max_features : int, optional
        2048 by default, and for "auto" no more than an eighth of the rows.
    max_iterations : int
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
    **kernel_parameters

    Returns
    -------
    RidgeModel
        ``predict`` and ``error``, the bound on its error.

    Raises
    ------
    ValueError, TypeError
        The targets are no numbers or their number is wrong; the kernel is not positive semidefinite.
    NotConvergedError
        The iterations found nothing (``fastkpca.errors``).

    Warns
    -----
    AccuracyWarning
        The iterations stopped short of ``tol``; ``error`` stays right.

    Examples
    --------
    >>> import numpy as np
    >>> from kernels_contrib.ridge import kernel_ridge
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> model = kernel_ridge(X, np.sin(X[:, 0]), sigma=1.0, regularization=0.1)
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.01), bool(model.error([[1.0]])[0] < 1e-4)
    (True, True)
    """
    mu = regularization_strength(regularization, ": there are as many coefficients as rows")
    tol, max_iterations = accuracy(tol, "tol"), check_count(max_iterations, "max_iterations")
    check_choice(method, "method", METHODS)
    if features_tol is None:
        features_tol = 1e-10 if method == "features" else 1e-14
    features_tol = accuracy(features_tol, "features_tol")
    options = FitOptions(kernel, kernel_parameters, method, features_tol, max_features, n_threads, rng)
    products, targets, weights = regression_on(X, t, sample_weight, options, "kernel_ridge")
    check_scale("kernel_ridge", products.mean_diagonal(), mu)
    root = np.sqrt(weights)[:, None]
    norms = np.linalg.norm(root * targets, axis=0)
    reached = _solve(products, root, root * targets, mu, tol * norms, max_iterations)
    coefficients = root * reached.solution
    of_residual, of_function, of_entries = _errors(products, coefficients, root)
    left = float((reached.residuals / np.where(norms > 0, norms, 1.0)).max())
    if (reached.residuals > np.maximum(tol * norms, of_residual)).any():  # more than rounding can hold it up
        warn_stopped(reached.steps, left, tol)
    of_residual += reached.residuals + 4 * EPS * (norms + mu * np.linalg.norm(reached.solution, axis=0))
    return RidgeModel(
        kernel=products.kernel.unbound(),
        regularization=mu,
        function=products.function_of(coefficients, np.zeros(targets.shape[1])),
        error_rate=of_residual / np.sqrt(mu) + of_function,
        error_constant=of_entries,
        single=np.ndim(t) == 1,
        n_samples=len(targets),
        info=products.info | {"iterations": reached.steps, "residual": left},
    )


def _solve(
    products: Products, root: np.ndarray, right: np.ndarray, mu: float, goal: np.ndarray, max_iterations: int
) -> Iterated:
    product = products.held_product()
    reached = solve_to_residual(
        lambda V: root * product(root * V) + mu * V,
        right,
        goal=goal,
        most_steps=max_iterations,
        precondition=preconditioner(products, lambda V: root * V, mu, True),
    )
    if not reached.definite:
        raise NotConvergedError(
            f"K + {mu:.2g} I is not positive definite; is the kernel semidefinite? Else a larger regularization "
            "converges sooner, max_iterations allows more steps"
        )
    return reached


def _errors(products: Products, coefficients: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, ...]:
    """Error of products with K in the norm of the residual, in f(x) over sqrt(k(x, x)), and in f(x) of any row."""
    size, total = np.linalg.norm(coefficients, axis=0), np.abs(coefficients).sum(axis=0)
    if products.features is None:
        return np.linalg.norm(root) * products.gram.error_bound * total, 0.0 * total, 0.0 * total
    features = products.features
    missed, trace = features.residual_trace, features.trace()
    # features, and their sums over the rows and over the features
    off = (features.map.rounding + sum(features.shape) * EPS) * np.sqrt(trace)
    entries = features.map.defect * total
    of_residual = root.max() * (missed + off * np.sqrt(trace)) * size + np.linalg.norm(root) * entries
    return of_residual, (np.sqrt(missed) + off) * size, entries

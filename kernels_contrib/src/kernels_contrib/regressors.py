"""Kernel ridge regression, partial least squares and canonical correlation with scikit-learn's interface.

    from kernels_contrib.sklearn import KernelCCA, KernelPLSRegression, KernelRidge

They need scikit-learn 1.6 or newer; ``kernel_ridge``, ``kernel_pls`` and ``kernel_cca`` do the same without it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from fastkpca.sklearn import KernelEstimator, KernelTransformer  # first: it says what to install

# isort: split
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import RegressorMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from fastkpca.kernels import Kernel
from fastkpca.methods import Rows, as_rows

from .cca import kernel_cca
from .pls import kernel_pls
from .ridge import kernel_ridge

PASSED_BY_NAME = ("affinity", "kernel_y", "max_features", "method", "n_neighbors", "penalty", "regularization", "tol")
PASSED = {"alpha": "regularization", "max_iter": "max_iterations"} | {name: name for name in PASSED_BY_NAME}
"""Parameters of estimators, and their names in the methods."""


@dataclass(eq=False, repr=False, kw_only=True)
class MedianWidth(KernelEstimator):
    """An estimator whose width of "rbf" is the median distance between rows where none is given.

    The fields of an estimator are its parameters: ``dataclass`` writes the ``__init__`` that scikit-learn reads.
    """

    _constraints: ClassVar[dict[str, list[Any]]] = KernelEstimator._parameter_constraints | {
        "affinity": [StrOptions({"kernel", "nearest_neighbors"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="left"), StrOptions({"scale"})],
        "kernel_y": [str, callable, HasMethods("block")],
        "max_features": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"auto", "features", "gram"})],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "penalty": [StrOptions({"coefficients", "norm"})],
        "regularization": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="neither")],
    }
    """Constraints on the parameters of these estimators; None is also valid where that is the default."""
    max_features: int | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._parameter_constraints = {
            name: constraint if getattr(cls, name) is not None else [*constraint, None]
            for name, constraint in cls._constraints.items()
            if hasattr(cls, name)
        }

    def _options(self) -> dict[str, Any]:
        """Keyword arguments of the method, from the parameters of the algorithm."""
        given = {there: getattr(self, here) for here, there in PASSED.items() if hasattr(self, here)}
        return given | {"n_threads": self._n_threads(), "rng": self._seed()}

    def _number(self, X: Any) -> float | None:
        """``gamma``, with the number that "scale" stands for in scikit-learn's support vector machines."""
        if not isinstance(self.gamma, str):
            return self.gamma
        X = X.astype(np.float64)  # squares of small integers leave their type
        variance = X.multiply(X).mean() - X.mean() ** 2 if issparse(X) else X.var()
        return 1 / (X.shape[1] * float(variance)) if variance > 0 else 1.0

    def _checked_rows(self, X: Any, y: Any) -> Any:
        """Rows of a fit, and the parameters, checked; y must be there."""
        if not get_config()["skip_parameter_validation"]:
            self._validate_params()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        return self._validated(X, reset=True)

    def _kernel_of_fit(self, X: Any) -> Kernel:
        given = {"gamma": self._number(X), "degree": self.degree, "coef0": self.coef0}
        gamma = 1 / X.shape[1] if given["gamma"] is None and self.kernel != "rbf" else given["gamma"]
        return self._kernel_of_estimator(X, given, gamma, self.kernel_params)


class Predictor(MedianWidth):
    """Such an estimator whose model says something of new rows."""

    model_: Any

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for rows: their class, their group, or numbers.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            With the columns of the training rows; for ``kernel="precomputed"`` the matrix (n_rows, n_samples) between
            these and the training rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets)
            Labels, and numbers as the targets were given; groups are counted from 0.
        """
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.predict(self._validated(X, reset=False), n_threads=self._n_threads()))


class _OfNumbers(MedianWidth):
    """Such an estimator whose targets are numbers, one column or several."""

    def _targets(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Rows and targets of a fit, and the parameters, checked."""
        X = self._checked_rows(X, y)
        y = check_array(y, ensure_2d=False, dtype="numeric", ensure_min_samples=2, input_name="y")
        check_consistent_length(X, y)
        return X, y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class KernelRidge(RegressorMixin, Predictor, _OfNumbers):
    """Kernel ridge regression by conjugate gradients, without the kernel matrix.

    Parameters
    ----------
    alpha : float, default=1.0
        ``regularization`` of ``kernels_contrib.ridge.kernel_ridge``.
    kernel : str, callable, or kernel of fastkpca, default='rbf'
        As for ``kernels_contrib.sklearn.KLDA``, like the next four; positive semidefinite.
    gamma : float or 'scale', default=None
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, default=None
    tol : float, default=1e-8
        As for ``kernel_ridge``, like the next three.
    max_iter : int, default=1000
    method : {'auto', 'features', 'gram'}, default='auto'
    max_features : int, default=None
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each step on stdout.

    Attributes
    ----------
    model_ : kernels_contrib.ridge.RidgeModel
        What ``kernel_ridge`` returned; ``model_.error(X)`` bounds the error of predictions.
    n_iter_ : int
        Steps of conjugate gradients.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernels_contrib.sklearn import KernelRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bool(KernelRidge(alpha=0.1).fit(X, y).score(X, y) > 0.5)
    True
    """

    alpha: float = 1.0
    _: KW_ONLY
    tol: float = 1e-8
    max_iter: int = 1000
    method: str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Learn numbers from rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        X, y = self._targets(X, y)
        weights = self._weights(X, sample_weight)
        self.model_ = kernel_ridge(self._named(X), y, self._kernel_of_fit(X), sample_weight=weights, **self._options())
        self.n_iter_ = max(1, self.model_.info["iterations"])
        return self


class Projector(KernelTransformer, MedianWidth):
    """Such an estimator whose model gives coordinates of rows."""

    model_: Any

    @property
    def _projection(self) -> Any:
        return self.model_

    def transform(self, X: Any) -> np.ndarray:
        """Coordinates of rows: along directions, or components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            For ``kernel="precomputed"`` the matrix (n_rows, n_samples) between these and the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self, "model_")
        X = self._validated(X, reset=False)
        coordinates = self._projection.project(X, n_threads=self._n_threads())
        return np.asarray(coordinates, dtype=np.float32 if X.dtype == np.float32 else np.float64)

    @property
    def _n_features_out(self) -> int:
        return len(self._projection.function.constant)


@dataclass(eq=False, repr=False)
class _Components(Projector, _OfNumbers):
    """An estimator of ``n_components`` functions of the rows that have to do with targets."""

    n_components: int = 2
    _: KW_ONLY
    tol: float = 1e-10


class KernelPLSRegression(RegressorMixin, Predictor, _Components):
    """Regression on components of the rows that vary together with the targets.

    Parameters
    ----------
    n_components : int, default=2
    kernel : str, callable, or kernel of fastkpca, default='rbf'
        As for ``kernels_contrib.sklearn.KLDA``, like the next four; positive semidefinite.
    gamma : float or 'scale', default=None
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, default=None
    tol : float, default=1e-10
        As for ``kernels_contrib.pls.kernel_pls``, like the next.
    max_features : int, default=None
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each step on stdout.

    Attributes
    ----------
    model_ : kernels_contrib.pls.PLSModel
    n_components_ : int
        Components that vary with the targets, at most ``n_components``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernels_contrib.sklearn import KernelPLSRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> KernelPLSRegression(3).fit(X, y).transform(X).shape
    (442, 3)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelPLSRegression:
        """Learn components of rows, and the targets from them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        X, y = self._targets(X, y)
        kernel, weights = self._kernel_of_fit(X), self._weights(X, sample_weight)
        self.model_ = kernel_pls(self._named(X), y, kernel, self.n_components, sample_weight=weights, **self._options())
        self.n_components_ = self.model_.n_components
        return self


@dataclass(eq=False, repr=False)
class KernelCCA(_Components):
    """Functions of the rows, and of their targets, that agree best: regularised kernel canonical correlation.

    Parameters
    ----------
    n_components : int, default=1
    kernel : str, callable, or kernel of fastkpca, default='rbf'
        Kernel of the rows; as for ``kernels_contrib.sklearn.KLDA``, like the next four; positive semidefinite.
    gamma : float or 'scale', default=None
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, default=None
    kernel_y : str, callable, or kernel of fastkpca, default='gaussian'
        Kernel of the targets, as for ``kernels_contrib.cca.kernel_cca``, like the next three.
    regularization : float, default=1e-2
    tol : float, default=1e-6
    max_features : int, default=2048
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each step on stdout.

    Attributes
    ----------
    model_ : kernels_contrib.cca.CCAModel
        ``model_.y.project(Y)`` are the functions of targets.
    n_components_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from kernels_contrib.sklearn import KernelCCA
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> KernelCCA().fit(X, Y).transform(X).shape
    (20, 1)
    """

    n_components: int = 1
    _: KW_ONLY
    kernel_y: Any = "gaussian"
    regularization: float = 1e-2
    tol: float = 1e-6
    max_features: int = 2048

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelCCA:
        """Learn functions of rows and targets that agree.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The other view.
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        named = as_rows(y, name="y").named if hasattr(y, "columns") else None
        X, y = self._targets(X, y)
        kernel, weights = self._kernel_of_fit(X), self._weights(X, sample_weight)
        y = Rows(y.reshape(len(y), -1), named=named)
        self.model_ = kernel_cca(self._named(X), y, kernel, self.n_components, sample_weight=weights, **self._options())
        self.n_components_ = self.n_components
        return self

    @property
    def _projection(self) -> Any:
        return self.model_.x

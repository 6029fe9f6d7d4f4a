"""The methods with scikit-learn's interface: classifiers and clustering; those of numbers are in ``regressors``.

    from kernels_contrib.sklearn import KLDA, KernelKMeans, KernelLogisticRegression, KernelRidge, SpectralClustering

They need scikit-learn 1.6 or newer; ``klda``, ``kernel_kmeans``, ``kernel_ridge``, ... do the same without it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

# first: without scikit-learn it says what to install
from .regressors import KernelCCA, KernelPLSRegression, KernelRidge, Predictor, Projector

# isort: split
from sklearn.base import ClassifierMixin, ClusterMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .clustering import kernel_kmeans
from .diffusion import N_NEIGHBORS, neighbor_graph, spectral_clustering
from .klda import klda
from .logistic import kernel_logistic

__all__ = [
    "KLDA",
    "KernelCCA",
    "KernelKMeans",
    "KernelLogisticRegression",
    "KernelPLSRegression",
    "KernelRidge",
    "SpectralClustering",
]


class _KernelClassifier(ClassifierMixin, Predictor):
    """A classifier on a kernel's function of the rows."""

    def _checked(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Rows and labels of a fit, and the parameters, checked."""
        X = self._checked_rows(X, y)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        return X, y

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            For ``kernel="precomputed"`` the matrix (n_rows, n_samples) between these and the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self, "model_")
        X = self._validated(X, reset=False)
        return np.asarray(self.model_.probability(X, n_threads=self._n_threads()))


@dataclass(eq=False, repr=False)
class KLDA(Projector, _KernelClassifier):
    """Kernel Fisher discriminant analysis: directions that separate classes, and the classes of rows.

    Parameters
    ----------
    n_components : int, default=None
        Number of directions; None: the number of classes less one.
    kernel : str, callable, or kernel of fastkpca, default='rbf'
        As for ``fastkpca.sklearn.KernelPCA``, like the next four.
    gamma : float or 'scale', default=None
        None: of "rbf" the width is the median distance between rows, as in ``klda`` and ``kernel_logistic``; of
        scikit-learn's other kernels 1 / n_features (``fastkpca.sklearn.KernelPCA`` has this for all). 'scale':
        1 / (n_features * X.var()).
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, default=None
    regularization : float, default=None
        As for ``kernels_contrib.klda.klda``, like the next four.
    penalty : {'coefficients', 'norm'}, default='coefficients'
    tol : float, default=1e-6
    method : {'auto', 'features', 'gram'}, default='auto'
    max_features : int, default=None
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each step on stdout.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : kernels_contrib.klda.KLDAModel
        What ``klda`` returned.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.

    Notes
    -----
    ``predict_proba`` takes the classes to be normally distributed along the directions, with the covariance that the
    training rows have there. These lie nearer to their class means than new rows do, the more so the smaller
    ``regularization`` is, and the probabilities are then too close to 0 and 1: ``CalibratedClassifierCV`` mends that.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernels_contrib.sklearn import KLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> discriminant = KLDA().fit(X, y)
    >>> discriminant.transform(X).shape, bool(discriminant.score(X, y) > 0.95)
    ((150, 2), True)
    """

    n_components: int | None = None
    _: KW_ONLY
    regularization: float | None = None
    penalty: str = "coefficients"
    tol: float = 1e-6
    method: str = "auto"

    def fit(self, X: Any, y: Any) -> KLDA:
        """Learn the classes of rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.

        Returns
        -------
        self
        """
        X, y = self._checked(X, y)
        self.model_ = klda(self._named(X), y, self._kernel_of_fit(X), self.n_components, **self._options())
        self.classes_ = self.model_.classes
        return self


@dataclass(eq=False, repr=False)
class KernelLogisticRegression(_KernelClassifier):
    """Penalised kernel logistic regression, two and many classes.

    Parameters
    ----------
    C : float, default=1.0
        1 / ``regularization`` of ``kernels_contrib.logistic.kernel_logistic``.
    kernel : str, callable, or kernel of fastkpca, default='rbf'
        As for ``fastkpca.sklearn.KernelPCA``, like the next four; positive semidefinite.
    gamma : float or 'scale', default=None
        None: of "rbf" the width is the median distance between rows, as in ``klda`` and ``kernel_logistic``; of
        scikit-learn's other kernels 1 / n_features (``fastkpca.sklearn.KernelPCA`` has this for all). 'scale':
        1 / (n_features * X.var()).
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, default=None
    tol : float, default=1e-6
        Norm of the gradient, relative to that at the start, to stop at.
    max_iter : int, default=100
    method : {'auto', 'features', 'gram'}, default='auto'
        As for ``kernel_logistic``, like the next.
    max_features : int, default=None
    random_state : int, RandomState instance or None, default=None
        Random numbers for the feature map.
    n_jobs : int, default=None
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each step on stdout.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : kernels_contrib.logistic.LogisticModel
        What ``kernel_logistic`` returned.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.
    n_iter_ : int
        Newton steps.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernels_contrib.sklearn import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> logistic = KernelLogisticRegression(C=10.0).fit(X, y)
    >>> logistic.predict_proba(X).shape, bool(logistic.score(X, y) > 0.95)
    ((150, 3), True)
    """

    C: float = 1.0
    _: KW_ONLY
    tol: float = 1e-6
    max_iter: int = 100
    method: str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelLogisticRegression:
        """Learn the classes of rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A whole number counts the row that many times.

        Returns
        -------
        self
        """
        X, y = self._checked(X, y)
        options = self._options() | {"regularization": 1.0 / self.C, "sample_weight": self._weights(X, sample_weight)}
        self.model_ = kernel_logistic(self._named(X), y, self._kernel_of_fit(X), **options)
        self.classes_ = self.model_.classes
        self.n_iter_ = int(self.model_.info["iterations"])
        return self


@dataclass(eq=False, repr=False)
class _KernelClusterer(ClusterMixin, Predictor):
    """Groups of rows on a kernel."""

    _method: ClassVar[Any]
    n_clusters: int | None = 8
    _: KW_ONLY
    tol: float | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find groups of rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : Ignored
        sample_weight : float or array-like of shape (n_samples,), default=None
            A whole number counts the row that many times.

        Returns
        -------
        self
        """
        X = self._checked_rows(X, ())
        kernel = self._kernel_of_fit(X)
        options = self._options() | {"sample_weight": self._weights(X, sample_weight)}
        self.model_ = type(self)._method(self._named(X), kernel, self.n_clusters, **options)
        self.labels_ = self.model_.labels
        return self


class KernelKMeans(_KernelClusterer):
    """Kernel k-means, with a certificate about every other clustering.

    Parameters
    ----------
    n_clusters : int, default=8
    kernel : str, callable, or kernel of fastkpca, default='rbf'
        As for ``KLDA``, like the next four; positive semidefinite.
    gamma : float or 'scale', default=None
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, default=None
    tol : float, default=None
        As for ``kernels_contrib.clustering.kernel_kmeans``, like the next.
    max_features : int, default=None
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each step on stdout.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    inertia_ : float
        Sum of squared distances to the means of the groups.
    model_ : kernels_contrib.clustering.KMeansModel
        What ``kernel_kmeans`` returned: ``model_.verdict`` is the certificate.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernels_contrib.sklearn import KernelKMeans
    >>> X, y = load_iris(return_X_y=True)
    >>> groups = KernelKMeans(2).fit(X)
    >>> groups.predict(X[:3]).shape, bool(groups.model_.above_least < 0.1)
    ((3,), True)
    """

    _method = staticmethod(kernel_kmeans)

    @property
    def inertia_(self) -> float:
        """Sum of squared distances to the means of the groups."""
        check_is_fitted(self, "model_")
        return float(self.model_.inertia)


@dataclass(eq=False, repr=False)
class SpectralClustering(_KernelClusterer):
    """Spectral clustering of many rows, with intervals around eigenvalues and a place for new rows.

    Parameters
    ----------
    n_clusters : int, default=8
        None: the number after which the gap between eigenvalues is the largest, up to 10.
    kernel : str, callable, or kernel of fastkpca, default='rbf'
        As for ``KLDA``, like the next four; without negative values. A matrix of similarities, for 'precomputed', may
        be indefinite.
    gamma : float or 'scale', default=None
    degree : float, default=3
    coef0 : float, default=1
    kernel_params : dict, default=None
    affinity : {'kernel', 'nearest_neighbors'}, default='kernel'
        'nearest_neighbors': the graph of scikit-learn's ``SpectralClustering`` takes the place of a kernel. ``predict``
        takes rows and finds their neighbours among the training rows, which are kept.
    n_neighbors : int, default=None
        Of 'nearest_neighbors'; None: 10.
    tol : float, default=None
        As for ``kernels_contrib.diffusion.spectral_clustering``, like the next.
    max_features : int, default=None
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each step on stdout.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    model_ : kernels_contrib.diffusion.SpectralModel
        What ``spectral_clustering`` returned.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernels_contrib.sklearn import SpectralClustering
    >>> X, y = load_iris(return_X_y=True)
    >>> groups = SpectralClustering(2, gamma=2.0).fit(X)
    >>> import numpy as np
    >>> sorted(np.bincount(groups.labels_).tolist())
    [50, 100]
    """

    _: KW_ONLY
    affinity: str = "kernel"
    n_neighbors: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        super().fit(X, y, sample_weight)
        self._train = self._validated(X, reset=False) if self.affinity == "nearest_neighbors" else None
        return self

    def predict(self, X: Any) -> np.ndarray:
        if vars(self).get("_train") is None:
            return super().predict(X)
        graph = neighbor_graph(self._validated(X, reset=False), self.n_neighbors or N_NEIGHBORS, self._train)
        return np.asarray(self.model_.predict(graph, n_threads=self._n_threads()))

    def _kernel_of_fit(self, X: Any) -> Any:
        if self.affinity == "kernel":
            return super()._kernel_of_fit(X)
        names = ("kernel", "gamma", "degree", "coef0", "kernel_params")
        given = [name for name in names if getattr(self, name) != getattr(type(self), name)]
        if given:
            raise ValueError(f"affinity={self.affinity!r} takes no kernel; leave out {', '.join(given)}")
        return "gaussian"

    _method = staticmethod(spectral_clustering)

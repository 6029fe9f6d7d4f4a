"""``KernelPCA`` with scikit-learn's interface: change one import, keep all else.

    from fastkpca.sklearn import KernelPCA      # was: from sklearn.decomposition import KernelPCA

The interface only: what scikit-learn's words mean is decided here, ``kpca`` does the work. scikit-learn's kernels, and
functions of two rows, become kernels of ours in ``kernels``; the inverse transform is the regression of
``solve.ridge``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_psd_eigenvalues, check_is_fitted

from ..base.checks import check_memory_limit
from ..base.process_memory import DEFAULT_MEMORY
from ..base.protocol import Kernel
from ..errors import (
    CertificateWarning,
    ComponentsWarning,
    NoRouteError,
    NoVarianceError,
    ScalesWarning,
    silenced,
    warn_caller,
)
from ..fit.gram import gram
from ..fit.kpca import kpca
from ..fit.merge import kpca_merge
from ..fit.stream import kpca_update
from ..kernels import guarded
from ..kernels.precomputed import dense
from ..model.monitoring.novelty import kpca_spe
from ..model.project import kpca_project
from ..model.result import KPCAModel, widest_interval
from ..model.rows import float_type, new_rows
from ..rows.convert import as_rows, check_finite
from ..rows.foreign import frame_of, is_dask, named_columns
from ..solve.ridge import solve_ridge
from ..solve.small import MAX_WHOLE_ROWS
from .base import KernelTransformer, by_blocks, prints_lines
from .kernels import is_sklearn_kernel
from .spectra import centred_spectrum, completed, n_positive, padded, rest_bound, symmetric_part, with_sklearn_signs

EXACT_TOL = 1e-10
"""Tolerance that tol=0 stands for. Rounding keeps intervals above 1e-11. A smaller tolerance would exclude feature
maps, whose components are as exact, in a tenth of the time for many rows."""
LOOSE_WIDTH = inspect.signature(kpca_merge).parameters["tol"].default
"""Width of an interval, over the largest eigenvalue, from which on tol=0 warns, and at which it aims in partial_fit:
what those who do not ask get elsewhere."""
MAX_UNSPANNED = 0.1
"""Largest residual fraction of the variance of a map of ``max_features``, in excess of that of the first call's rows,
before ``partial_fit`` warns."""
EXTRA_COMPONENTS = 5
"""Computed beyond those asked for, where tol=0 and no matrix of so few rows is held whole. The error of a component is
about the root of its eigenvalue's, and the last ones are the least converged: with these, scores agree with LAPACK's to
1e-8 instead of 5e-7, in no more passes."""
WITHOUT_MAP = ("sigmoid", "tanh", "precomputed")
"""Kernels that ``partial_fit`` is not for."""


def _can_grow(estimator: KernelPCA) -> bool:
    if isinstance(estimator.kernel, str) and estimator.kernel in WITHOUT_MAP:
        raise AttributeError(f"kernel={estimator.kernel!r} has no feature map, which partial_fit works on; use fit")
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class KernelPCA(KernelTransformer):
    """Kernel principal component analysis, as ``sklearn.decomposition.KernelPCA`` and at any number of rows.

    Parameters, attributes and methods are scikit-learn's, and so are the numbers, to the tolerance. The N x N kernel
    matrix is formed only where that is fastest; each eigenvalue comes with an interval.

    Parameters
    ----------
    n_components : int or float, default=None
        Number of components; None keeps all that are not zero. Here also a fraction between 0 and 1: the fewest that
        explain that part of the variance.
    kernel : str, callable, or kernel of fastkpca, default='linear'
        'linear', 'poly', 'rbf', 'sigmoid', 'cosine', 'precomputed', and further names of
        ``sklearn.metrics.pairwise.pairwise_kernels`` ('laplacian', 'chi2', 'additive_chi2'); a function of two rows
        that returns a number. Here also any name of ``fastkpca.list_kernels()`` and any ``fastkpca.kernels.Kernel``.
    gamma : float, default=None
        Parameter of rbf, poly, sigmoid, laplacian and chi2; None means 1 / n_features. For 'rbf' it is 1 / (2 sigma^2).
    degree : float, default=3
        Degree of poly.
    coef0 : float, default=1
        Constant term of poly and sigmoid.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel; here also the parameters of a kernel of fastkpca's by name, as in
        ``kernel="gaussian", kernel_params={"sigma": 0.5}``.
    alpha : float, default=1.0
        Ridge of the regression that learns the inverse transform.
    fit_inverse_transform : bool, default=False
        Learn the inverse transform; not for a precomputed kernel.
    eigen_solver : {'auto', 'dense', 'arpack', 'randomized'}, default='auto'
        'dense' is LAPACK; the others let the plan choose what is fastest, and ``method="krylov"`` iterates in any case.
        As in scikit-learn, 'randomized' takes the eigenvalues of largest size, and so refuses a kernel that has
        negative ones among them.
    tol : float, default=0
        Width of the interval around an eigenvalue to aim at, relative to the largest eigenvalue. 0 aims at 1e-10, with
        scores that agree with scikit-learn's to about 1e-8; 1e-6 is enough for pictures and much faster for many rows.
    max_iter : int, default=None
        Largest number of passes over the kernel values (30 if None).
    iterated_power : int or 'auto', default='auto'
        Accepted and without effect: ``tol`` decides how long to iterate.
    remove_zero_eig : bool, default=False
        Drop components without variance, so that there may be fewer than ``n_components``. They are always dropped
        where ``n_components`` is None or a fraction.
    random_state : int, RandomState instance or None, default=None
        Seed of random numbers. None is a fixed seed too: the same input gives the same output.
    copy_X : bool, default=True
        Accepted and without effect: X is never changed, and the model keeps what ``transform`` needs. Changing X after
        ``fit`` changes only ``X_fit_``.
    n_jobs : int, default=None
        Number of threads; -1 is one for each processor. None takes the number that BLAS may use. Results do not depend
        on it. A function of two rows is called from several threads only where a number is given.
    verbose : int, default=0
        Above 0, ``fit`` and ``partial_fit`` print a line for each step on stdout: those of the logger "fastkpca".
    method : {'auto', 'dense', 'features', 'krylov'}, default='auto'
        As in ``fastkpca.kpca``: the method to use, instead of ``eigen_solver``.
    memory_limit : int or str, default=None
        Bytes, or a text like "4GiB", that may be used in addition to X; None is 2 GiB.
    max_features : int, default=None
        As in ``fastkpca.kpca``: the result of at most this number of features, in one pass over the rows; between the
        number of components and that of the rows. ``tol=0`` then asks for no width of the intervals.
    failure_probability : float, default=None
        As in ``fastkpca.kpca``: how rarely intervals that rest on random numbers may fail; None is 1e-6.
    forget : float, default=1.0
        Factor by which each call of ``partial_fit`` multiplies the weights of all rows before; 0.9 halves them in
        seven.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centred kernel matrix, in decreasing order; float64. 0 for components without variance.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Eigenvectors of the centred kernel matrix, with signs as scikit-learn's: the entry that is largest in size is
        positive; with ``sample_weight`` w, those of the centred matrix with entry ij multiplied by (w_i w_j)^(1/2), and
        the score that is largest in size is positive. Computed from the scores when asked for. Where the eigenvalue is
        0, some basis of the null space.
    dual_coef_ : ndarray of shape (n_samples, n_features)
        Inverse transform matrix, where ``fit_inverse_transform``.
    X_transformed_fit_ : ndarray of shape (n_samples, n_components)
        Scores of the training rows, where ``fit_inverse_transform``.
    X_fit_ : ndarray or sparse matrix of shape (n_samples, n_features)
        The rows used to fit: a reference to X where X is such an array, never a copy of one.
    gamma_ : float
        ``gamma``, or 1 / n_features.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Each eigenvalue over the trace of the centred kernel matrix, which is the whole variance, not only the kept one.
    eigenvalue_bounds_ : ndarray of shape (n_components, 2)
        An interval around each eigenvalue that holds the true one.
    bound_kind_ : str
        "guaranteed", or "probabilistic": see ``fastkpca.KPCAModel``.
    failure_probability_ : float
        Probability that an interval does not hold; 0.0 where ``bound_kind_`` is "guaranteed".
    model_ : fastkpca.KPCAModel or None
        What ``kpca`` returned, for the components that have variance: plan, timings, ``tsquared``, and what
        ``fastkpca.save`` takes. None where no component has variance.

    Warns
    -----
    CertificateWarning
        An interval is wider than ``tol``; for ``tol=0``, wider than 1e-6 of the largest eigenvalue. With
        ``max_features`` and ``tol=0``: the features of the first ``partial_fit`` do not span the rows of a later one.
    ComponentsWarning
        The components found explain less than the fraction ``n_components``.
    SlowRouteWarning
        Before the fit: ``n_components=None``, or this ``tol``, will take long; the text says how long fewer
        components, a looser ``tol`` or ``max_features=300`` take.

    See Also
    --------
    fastkpca.kpca : The same method without scikit-learn.

    Notes
    -----
    Differences from scikit-learn: a parameter that the kernel does not have is an error unless it has its default
    value. NaN or infinity among the values of a callable kernel raise ValueError at once. A callable gets rows of
    float64. A precomputed matrix that is not symmetric after centring is replaced by its symmetric part; float32 data
    are computed in float64, and their scores are float32.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from fastkpca.sklearn import KernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> pca = KernelPCA(n_components=7, kernel="rbf", gamma=1e-3)
    >>> pca.fit_transform(X).shape
    (1797, 7)
    >>> bool((pca.eigenvalue_bounds_[:, 0] <= pca.eigenvalues_).all())
    True
    """

    n_components: int | float | None = field(default=None, kw_only=False)
    kernel: str | Callable[..., float] | Kernel | Any = "linear"
    alpha: float = 1.0
    fit_inverse_transform: bool = False
    eigen_solver: str = "auto"
    tol: float = 0
    max_iter: int | None = None
    iterated_power: int | str = "auto"
    remove_zero_eig: bool = False
    copy_X: bool = True
    method: str = "auto"
    memory_limit: int | str | None = None
    max_features: int | None = None
    failure_probability: float | None = None
    forget: float = 1.0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = KernelTransformer._parameter_constraints | {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            None,
        ],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_inverse_transform": ["boolean"],
        "eigen_solver": [StrOptions({"auto", "dense", "arpack", "randomized"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "remove_zero_eig": ["boolean"],
        "copy_X": ["boolean"],
        "method": [StrOptions({"auto", "dense", "features", "krylov"})],
        "memory_limit": [Interval(Integral, 1, None, closed="left"), str, None],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "failure_probability": [Interval(Real, 0, 0.5, closed="right"), None],
        "forget": [Interval(Real, 0, 1, closed="right")],
    }

    # Public methods

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Find the components of X.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative: a whole number counts the row that many times, zero leaves it out of the components (it still
            has a score). ``inverse_transform`` learns from all rows alike.

        Returns
        -------
        self : KernelPCA
        """
        if self.fit_inverse_transform and self._precomputed:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        return self._fit_validated(self._validated(X, reset=True), sample_weight)

    def _fit_validated(self, X: Any, sample_weight: Any = None) -> KernelPCA:
        """``fit`` of rows that another estimator has checked, whose number and names of columns are set."""
        weights = self._weights(X, sample_weight)
        self.gamma_ = 1 / X.shape[1] if self.gamma is None else self.gamma
        rows, column_means = symmetric_part(X, weights) if self._precomputed else (X, None)
        kernel = self._kernel(X)
        model, residual = self._solve(rows, kernel, weights)
        wanted = X.shape[0] if self._number is None else min(X.shape[0], self._number)
        if self._fraction is not None:
            wanted = 0 if model is None else model.n_components
        if weights is None:
            self._refuse_negative(model, rows, kernel, wanted)
        if model is not None:
            model = with_sklearn_signs(model, min(n_positive(model, X), wanted), column_means)
            residual = rest_bound(model)
        self._assign(model, residual, wanted)
        self.X_fit_ = X
        self._forget("n_samples_seen_", "X_transformed_fit_", "dual_coef_")
        if self.fit_inverse_transform:
            if sp.issparse(X):
                raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
            self._fit_inverse(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> np.ndarray:
        """Find the components of X, and return the scores of its rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        **params
            Handed on to ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        self.fit(X, **params)
        return self._scores()

    def transform(self, X: Any) -> np.ndarray:
        """Project new rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            For ``kernel="precomputed"`` the matrix (n_rows, n_samples) between new and training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self, "model_")  # more than gamma_, which a fit that was interrupted leaves behind
        X = self._validated(X, reset=False)
        fitted = self.X_fit_ if "X_fit_" in vars(self) else self.model_
        dtype = np.promote_types(float_type(X.dtype), float_type(fitted.dtype))
        if self.model_ is None:
            return np.zeros((X.shape[0], self._n_features_out), dtype=dtype)
        X = dense(X) if self._precomputed else X
        scores = kpca_project(self.model_, X, n_threads=self._n_threads())
        return padded(scores.astype(dtype, copy=False), self._n_features_out)

    @available_if(_can_grow)
    @prints_lines
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelPCA:
        """Find the components of all the rows of this and the earlier calls: one pass over these rows.

        The first call makes a feature map from its rows. Where it does not describe later rows, features are added for
        these (kernels that depend on x - y). With ``forget`` below 1 older rows count less and less. The rows
        are not kept: there are no ``X_fit_``, ``eigenvectors_`` and scores of the training rows, and no
        ``inverse_transform``. ``tol=0`` is 1e-6 here, and ``n_components=None`` keeps the number of the first rows.
        After ``fit``, this starts anew. Kernels that are not positive semidefinite ("sigmoid") have no feature map, and
        a precomputed matrix no rows: for these there is no such method.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            The first time at least two rows, and not fewer than the components.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative: a whole number counts the row that many times, zero leaves it out.

        Returns
        -------
        self : KernelPCA
            ``n_samples_seen_`` counts the rows of all calls.

        Raises
        ------
        ValueError
            With ``fit_inverse_transform``, with a ``method`` or ``eigen_solver`` that makes no features, for a kernel
            that has none, or for a first call with fewer rows than components.
        """
        first = "n_samples_seen_" not in vars(self)
        X = self._validated(X, reset=first)
        if first:
            self._refuse_partial(X)
            self.gamma_ = 1 / X.shape[1] if self.gamma is None else self.gamma
            kernel = self._kernel(X)
            if kernel.without_maps:
                raise ValueError(
                    f"partial_fit works on a feature map, and {kernel!r} {kernel.without_maps}, so it has none; use fit"
                )
        weights = self._weights(X, sample_weight)
        with self._silenced():
            if first:
                kept: dict[str, Any] = {"keep_moments": True, "return_scores": False}
                if kernel.translation == "kernel":
                    kept["features"] = "pivots"  # the map that can grow
                settings = self._settings(LOOSE_WIDTH, weights)
                model = kpca(X, kernel, self.n_components, method="features", **kept, **settings)
            else:
                assert self.model_ is not None
                model = kpca_update(
                    self.model_,
                    X,
                    c=self._number,
                    tol=self._tol(LOOSE_WIDTH),
                    failure_probability=self.failure_probability,
                    n_threads=self._n_threads(),
                    sample_weight=weights,
                    forget=self.forget,
                    grow=True if self.max_features is None else self.max_features,
                )
        self._forget("X_fit_", "X_transformed_fit_", "dual_coef_")
        self.n_samples_seen_ = model.n_samples
        self._assign(model, rest_bound(model), self._number or model.n_components)
        left_out = 1.0 - float(np.divide(*model.total_variance_bounds))
        if first:
            self._left_out_first = left_out
        # a number of features asks for no width, but a map that does not span the rows that follow is news
        spans = left_out <= self._left_out_first + MAX_UNSPANNED
        limit = LOOSE_WIDTH if self.max_features is None else np.inf if spans else 0.0
        help = "give the first call rows that span the range of all that follow, or call fit with all rows"
        self._warn_if_wide(model, limit, help)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Minus the squared distance of each row's image from the components: the larger, the more like the others.

        It is ``-kpca_spe(model_, X)``, and not a log-likelihood as that of ``sklearn.decomposition.PCA``, which does
        not exist in a space of infinite dimension.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            0 at most.
        """
        check_is_fitted(self, "model_")
        X = self._validated(X, reset=False)
        if self.model_ is None:
            raise ValueError("score_samples needs components, and the rows of fit have no variance")
        if self._precomputed:
            raise ValueError(
                "score_samples needs k(x, x) of each row, which the matrix between new and training rows does not "
                "hold; -fastkpca.kpca_spe(estimator.model_, X, diagonal=d) takes these values d"
            )
        return -kpca_spe(self.model_, X, n_threads=self._n_threads())

    @property
    def inverse_transform(self) -> Callable[[Any], Any]:
        """Rows whose scores are about X: kernel ridge regression of the training rows on their scores.

        As in scikit-learn, the mean that centring took away does not come back: for the linear kernel take
        ``sklearn.decomposition.PCA``, whose inverse has it.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)

        Returns
        -------
        ndarray of shape (n_rows, n_features), or data frame
            Of a frame, as ``set_output`` makes ``transform`` return, a frame with its index, where the columns of
            ``fit`` had names.

        Raises
        ------
        NotFittedError
            Before a ``fit`` with ``fit_inverse_transform=True``, and after ``partial_fit``. It is an AttributeError, so
            ``hasattr`` is False then.

        References
        ----------
        Bakir, Weston, Schoelkopf, Learning to find pre-images, NIPS 16 (2004).
        """
        if self._precomputed:
            raise NotFittedError(
                "a precomputed matrix holds no rows to learn inverse_transform from; fastkpca.kpca_preimage(estimator, "
                "Z, train=rows) learns it from rows that you give"
            )
        if "n_samples_seen_" in vars(self):
            raise NotFittedError(
                "partial_fit keeps no rows to learn inverse_transform from; fastkpca.kpca_preimage(estimator, Z, "
                "train=rows) learns it from rows that you give, or set fit_inverse_transform=True and call fit"
            )
        fitted_without = "model_" in vars(self) and "X_transformed_fit_" not in vars(self)
        if not self.fit_inverse_transform or fitted_without:
            raise NotFittedError(
                "inverse_transform needs what fit learns only with fit_inverse_transform=True; set it and fit again"
            )
        return self._inverse_transform

    def _inverse_transform(self, X: Any) -> Any:
        check_is_fitted(self, "X_transformed_fit_")
        given, own = named_columns(X), tuple(self.get_feature_names_out())
        if given is not None and given.names != own and sorted(given.names) == sorted(own):
            take = given.taken.format("X", "estimator.get_feature_names_out()")
            raise ValueError(f"X has the columns that transform returns in another order; take {take}")
        rows, c = as_rows(dense(X), purpose="inverse_transform"), self.X_transformed_fit_.shape[1]
        if rows.n_features != c:
            raise ValueError(
                f"X has {rows.n_features} columns, and there are {c} components; give scores, as transform returns them"
            )
        if is_dask(X):
            one = self._inverse_transform(self.X_transformed_fit_[:1])
            return by_blocks(self._inverse_transform, rows, one, alone=True)
        check_finite(rows, purpose="inverse_transform")
        K = gram(dense(X), self._inverse_kernel(), self.X_transformed_fit_, n_threads=self._n_threads())
        return frame_of(np.asarray(K @ self.dual_coef_), X, self._names)

    @property
    def eigenvectors_(self) -> np.ndarray:
        if "eigenvalues_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} has no eigenvectors_ before fit")
        if "X_fit_" not in vars(self):
            raise AttributeError("eigenvectors_ have an entry for each training row, and partial_fit keeps none")
        vectors = np.zeros((self.X_fit_.shape[0], 0))
        if self.model_ is not None:
            vectors = self.model_.score / np.sqrt(self.model_.eigenvalues).astype(self.model_.score.dtype)
            if self.model_.sample_weight is not None:
                vectors = np.sqrt(self.model_.sample_weight)[:, None] * vectors
        return completed(vectors.astype(float_type(self.X_fit_.dtype), copy=False), self._n_features_out)

    @property
    def _n_features_out(self) -> int:
        """Number of components, for the names of the output's columns."""
        return int(self.eigenvalues_.shape[0])

    # The pickle

    def __getstate__(self) -> dict[str, Any]:
        """Without the model's rows where ``X_fit_`` gives them again, to the bit: a pickle holds the rows once."""
        state = dict(super().__getstate__())
        model = state.get("model_")
        if "X_fit_" in state and model is not None and model.projector.grows_with_n and model.kernel.takes_points:
            rows, held = new_rows(model, self.X_fit_).rows, model.projector.landmarks
            if all(np.array_equal(tile, held[i : i + len(tile)]) for i, tile in rows.tiles(rows.step)):
                state["model_"] = replace(model, projector=replace(model.projector, X=held[:0]))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        model = state.get("model_")
        if model is not None and model.projector.grows_with_n and len(model.projector.landmarks) == 0:
            rows = new_rows(model, self.X_fit_).rows.all()
            self.model_ = replace(model, projector=replace(model.projector, X=rows))

    # The parameters

    def _kernel(self, X: Any) -> Kernel:
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return self._kernel_of_estimator(X, given, self.gamma_, self.kernel_params)

    @property
    def _number(self) -> int | None:
        """``n_components`` where it is a number of components; None where all are asked for, or a fraction."""
        return int(self.n_components) if isinstance(self.n_components, Integral) else None

    @property
    def _fraction(self) -> float | None:
        return None if self.n_components is None or self._number is not None else float(self.n_components)

    def _route(self) -> str:
        for name, unasked in (("max_features", None), ("method", "auto")):
            given = vars(self)[name]
            if self.eigen_solver != "auto" and given != unasked:
                raise ValueError(
                    f"{name}={given!r} and eigen_solver={self.eigen_solver!r} both name a way to go; give one of them"
                )
        return "dense" if self.eigen_solver == "dense" else self.method

    def _tol(self, least: float) -> float:
        """``tol``, or what 0 aims at."""
        return least if self.tol == 0 else float(min(self.tol, 0.5))

    def _settings(self, least: float, weights: np.ndarray | None) -> dict[str, Any]:
        """The arguments of ``kpca`` that every fit has; with ``max_features`` a tol of 0 sets no width."""
        return {
            "tol": None if self.tol == 0 and self.max_features is not None else self._tol(least),
            "max_features": self.max_features,
            "failure_probability": self.failure_probability,
            "memory_limit": self.memory_limit,
            "n_threads": self._n_threads(),
            "rng": self._seed(),
            "sample_weight": weights,
        }

    def _silenced(self, *more: type[Warning]) -> AbstractContextManager[None]:
        """Without words on components that are zero, which the attributes have as zeros, and on a width nobody gave."""
        return silenced(
            *more,
            *([ComponentsWarning] if self._fraction is None else []),
            *([CertificateWarning] if self.tol == 0 else []),
        )

    # The fit

    def _solve(self, X: Any, kernel: Kernel, weights: np.ndarray | None) -> tuple[KPCAModel | None, float]:
        """The model, or None where no component has variance; and then an upper bound on the eigenvalues."""
        n = X.shape[0]
        if n == 1:
            return None, 0.0
        number = None if self._number is None else min(n, self._number)
        route = self._route()
        if self.tol == 0 and number is not None and route != "dense" and n > MAX_WHOLE_ROWS:
            number += EXTRA_COMPONENTS if number + EXTRA_COMPONENTS < n else 0
        c = number if self._fraction is None else self._fraction
        passes = 30 if self.max_iter is None else self.max_iter
        with self._silenced(ScalesWarning):
            try:
                model = kpca(X, kernel, c, method=route, max_passes=passes, **self._settings(EXACT_TOL, weights))
            except NoVarianceError as error:
                return None, error.bound
            except NoRouteError as error:
                if c is not None:
                    raise
                raise ValueError(
                    f"n_components=None asks for every component of {n} rows: {error}. n_components=10, say, needs "
                    "neither the matrix nor all of its eigenvectors"
                ) from error
        limit = LOOSE_WIDTH if self.max_features is None else np.inf
        self._warn_if_wide(model, limit, "a larger max_iter or eigen_solver='dense' may narrow it")
        return model, 0.0

    def _warn_if_wide(self, model: KPCAModel, limit: float, help: str) -> None:
        """For tol=0, whose fits are silenced; for any other the fit itself has warned."""
        width = widest_interval(model, self._number)
        if self.tol == 0 and width > limit:
            warn_caller(
                f"the widest interval around an eigenvalue is {width:.2g} of the largest one (tol=0 asks for the best "
                f"that can be had): {help}, and tol says what is wide enough",
                CertificateWarning,
            )

    def _forget(self, *names: str) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    def _refuse_partial(self, X: Any) -> None:
        if self.fit_inverse_transform:
            raise ValueError("partial_fit keeps no rows to learn an inverse from; set fit_inverse_transform=False")
        for name, choices in (("method", ("auto", "features")), ("eigen_solver", ("auto",))):
            if vars(self)[name] not in choices:
                raise ValueError(
                    f"partial_fit works on features, and {name} is {vars(self)[name]!r}; set {name}='auto', or use fit"
                )
        if X.shape[0] < max(2, self._number or 0):
            raise ValueError(
                f"the first call of partial_fit got {X.shape[0]} sample(s) for n_components={self.n_components}; give "
                "it as many as there are components, two at least, best some thousands that span the range"
            )

    def _refuse_negative(self, model: KPCAModel | None, X: Any, kernel: Kernel, wanted: int) -> None:
        """Raise ValueError, as scikit-learn does, where eigenvalues among those wanted are negative beyond rounding."""
        n = X.shape[0]
        short = (0 if model is None else model.n_components) < wanted
        largest_in_size = self.eigen_solver == "randomized"
        if kernel.positive_semidefinite or n == 1 or not (short or largest_in_size):
            return
        lowest = None if model is None else model.info.get("most_negative_eigenvalue")
        limit = check_memory_limit(self.memory_limit) or DEFAULT_MEMORY
        if wanted == n and model is not None and lowest is not None:
            spectrum = np.array([model.eigenvalues[0], lowest])
        elif 2 * 8 * n * n <= limit:
            spectrum = centred_spectrum(kernel, X, self._n_threads())
            order = np.argsort(np.abs(spectrum) if largest_in_size else spectrum)[::-1]
            spectrum = spectrum[order][:wanted]
        else:
            return
        _check_psd_eigenvalues(spectrum.astype(float_type(X.dtype)), enable_warnings=False)

    def _assign(self, model: KPCAModel | None, residual: float, wanted: int) -> None:
        """The attributes; eigenvalues beyond those of the model lie below ``residual``, and are zero."""
        if model is not None and model.feature_names != self._names:
            model = replace(model, feature_names=self._names)
        self.model_ = model
        n_positive = 0 if model is None else model.n_components
        keeps_zeros = self._number is not None and not self.remove_zero_eig
        n_zero = wanted - n_positive if keeps_zeros else 0
        semidefinite = model is None or model.kernel.positive_semidefinite
        values, ratio = np.zeros((2, n_positive + n_zero))
        bounds = np.tile([0.0 if semidefinite else -np.inf, residual], (n_positive + n_zero, 1))
        if model is not None:
            values[:n_positive] = model.eigenvalues
            ratio[:n_positive] = model.explained / 100.0
            bounds[:n_positive] = model.eigenvalue_bounds
        self.eigenvalues_ = values
        self.eigenvalue_bounds_ = bounds
        self.explained_variance_ratio_ = ratio
        self.bound_kind_ = "guaranteed" if model is None else model.bound_kind
        self.failure_probability_ = 0.0 if model is None else model.failure_probability

    def _scores(self) -> np.ndarray:
        scores = np.zeros((self.X_fit_.shape[0], 0)) if self.model_ is None else self.model_.score
        return padded(scores.astype(float_type(self.X_fit_.dtype)), self._n_features_out)

    # The inverse transform

    def _inverse_kernel(self) -> Kernel:
        """The kernel between scores: with the same parameters, gamma = 1 / (number of columns of X) among them."""
        kernel = self._kernel(np.zeros((1, 1)))
        if not is_sklearn_kernel(self.kernel) and self.model_ is not None:
            kernel = self.model_.kernel  # what was resolved from the data
        return guarded(kernel)

    def _fit_inverse(self, X: Any) -> None:
        self.X_transformed_fit_ = self._scores()
        limit = check_memory_limit(self.memory_limit) or DEFAULT_MEMORY
        self.dual_coef_ = solve_ridge(
            self._inverse_kernel(), self.X_transformed_fit_, X, float(self.alpha), limit, self._n_threads()
        )

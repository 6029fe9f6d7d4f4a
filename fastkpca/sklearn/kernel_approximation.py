"""``Nystroem`` with scikit-learn's interface, which also says how good its features are.

    from fastkpca.sklearn import Nystroem      # was: from sklearn.kernel_approximation import Nystroem

With the landmarks P, features are N k(P, x), N = (K_PP + nu I)^(-1/2). The map of ``maps.pivots`` is L^-1 k(P, x) with
L L' = K_PP + nu I. Let L' = W S Z' be a singular value decomposition, so that N = Z S^-1 Z'. Then N k(P, x) = Z S^-1 Z'
L L^-1 k(P, x) = Z W' L^-1 k(P, x): the two differ by the orthogonal matrix Z W'. Inner products of features are the
same, and so is the residual.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..base import parallel
from ..base.checks import Randomness, check_failure_probability
from ..base.protocol import Kernel
from ..errors import warn_caller
from ..fit.gram import gram
from ..fit.kpca import kpca
from ..fit.problem import entry_error_of
from ..kernels import guarded
from ..maps.choosing import SAMPLE_ROWS, random_pivots, residual_draws
from ..maps.pivots import PivotMap
from ..model.result import KPCAModel
from ..model.rows import float_type
from ..products.operators import FeatureOperator
from ..rows.convert import as_csr, as_rows, bind_rows, landmark_rows
from ..rows.summary import summarize_for
from ..rows.values import check_weights
from ..rows.view import Rows
from ..solve.certificate import Bound
from ..solve.sampled import draws_worth, residual_bound
from .base import KernelTransformer, prints_lines
from .kernels import is_sklearn_kernel

_logger = logging.getLogger("fastkpca")

MIN_SINGULAR_VALUE = 1e-12
"""scikit-learn's least singular value of the landmarks' matrix."""


@dataclass(eq=False, repr=False, kw_only=True)
class Nystroem(KernelTransformer):
    """Features of Nystroem's method, as ``sklearn.kernel_approximation.Nystroem``, with a bound on what they miss.

    The products of the features, Phi Phi', approximate the kernel matrix K. For a positive semidefinite kernel no
    eigenvalue of K - Phi Phi' is negative, and ``fit`` bounds its trace and its largest eigenvalue.

    Parameters
    ----------
    kernel : str, callable, or kernel of fastkpca, default='rbf'
        As in ``fastkpca.sklearn.KernelPCA``.
    gamma : float, default=None
        Parameter of rbf, poly, sigmoid, laplacian and chi2; None means 1 / n_features, and 1 for chi2.
    coef0 : float, default=None
        Constant term of poly and sigmoid; None means 1.
    degree : float, default=None
        Degree of poly; None means 3.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel; here also the parameters of a kernel of fastkpca's by name.
    n_components : int, default=100
        Number of landmarks, which is that of the features; at most that of the rows. Without effect where
        ``landmarks`` are given.
    random_state : int, RandomState instance or None, default=None
        Seed of random numbers. None is a fixed seed too: the same input gives the same output.
    n_jobs : int, default=None
        Number of threads, as in ``fastkpca.sklearn.KernelPCA``. Results do not depend on it.
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each step on stdout.
    selection : {'auto', 'random_pivoting', 'uniform'}, default='auto'
        How landmarks are chosen. 'random_pivoting' draws each among the rows, with a probability in proportion to the
        residual of k(x, x) by the landmarks before it; at most 4096 rows, or twice ``n_components``, are candidates.
        'uniform' is scikit-learn's choice, and takes the same rows for the same ``random_state``. 'auto' is
        'random_pivoting' for a positive semidefinite kernel, and 'uniform' for all others.
    failure_probability : float, default=None
        With which ``residual_norm_`` may be too small, and, separately, an interval of ``kpca``; None is 1e-6. The
        larger, the smaller that bound is.
    landmarks : array-like of shape (n_components,) or (n_components, n_features), default=None
        Landmarks of your own: numbers of rows of X, or rows; the same one may come twice. ``selection`` and
        ``n_components`` have no effect then. ``Nystroem(**theirs.get_params(), landmarks=theirs.component_indices_)``
        says how good the features of scikit-learn's fitted ``theirs`` are, for the same X, and has the same features.

    Attributes
    ----------
    components_ : ndarray or sparse matrix of shape (n_components, n_features)
        The landmarks.
    component_indices_ : ndarray of shape (n_components,) or None
        Their numbers in X; None where rows were given as ``landmarks``.
    normalization_ : ndarray of shape (n_components, n_components)
        (K_PP + nu I)^(-1/2), with the kernel matrix K_PP of the landmarks, and nu of the size of its rounding.
        ``transform`` gives k(x, components_) @ normalization_.T.
    residual_trace_ : float
        Trace of K - Phi Phi' over the rows given to ``fit``; at most too large, by rounding. nan for kernels that do
        not declare themselves positive semidefinite: nothing is known there. With ``sample_weight`` w the entries of
        the matrices are times (w_i w_j)^(1/2).
    residual_norm_ : float
        Upper bound on the largest eigenvalue of K - Phi Phi'. Every eigenvalue of K is at least that of Phi Phi', and
        at most that plus this bound; so it is for the centred matrices. nan where ``residual_trace_`` is.
    failure_probability_ : float
        Probability that ``residual_norm_`` is too small: ``failure_probability``, or 0.0 where the bound is
        ``residual_trace_``, which always holds.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names of columns that are strings.

    See Also
    --------
    Nystroem.kpca : Components from these landmarks, each eigenvalue with an interval that is much narrower.
    KernelPCA : With ``max_features``, components from landmarks that it draws.
    fastkpca.features : The same features without scikit-learn.

    Notes
    -----
    Differences from scikit-learn: a parameter that the kernel does not have is an error; ``kernel="precomputed"`` may
    have fewer components than rows. ``fit`` takes one pass over all rows, for the bounds. Functions of two rows,
    precomputed matrices, 'sigmoid' and 'additive_chi2' do not declare themselves positive semidefinite: for a function
    that is, give a ``fastkpca.kernels.Kernel`` with ``positive_semidefinite = True``.

    References
    ----------
    Williams, Seeger, Using the Nystroem method to speed up kernel machines, NIPS 13 (2001). Chen, Epperly, Tropp,
    Webber, Randomly pivoted Cholesky, Comm. Pure Appl. Math. (2025), doi:10.1002/cpa.22234.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from fastkpca.sklearn import Nystroem
    >>> X = load_digits().data / 16.0
    >>> nystroem = Nystroem(gamma=0.02, n_components=200, random_state=0)
    >>> nystroem.fit_transform(X).shape
    (1797, 200)
    >>> nystroem.residual_norm_ < 0.1 * nystroem.residual_trace_ < 0.001 * len(X)
    True
    >>> nystroem.failure_probability_
    1e-06
    """

    kernel: str | Callable[..., float] | Kernel | Any = field(default="rbf", kw_only=False)
    coef0: float | None = None
    degree: float | None = None
    n_components: int = 100
    selection: str = "auto"
    failure_probability: float | None = None
    landmarks: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = KernelTransformer._parameter_constraints | {
        "coef0": [*KernelTransformer._parameter_constraints["coef0"], None],
        "degree": [Interval(Real, 1, None, closed="left"), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "selection": [StrOptions({"auto", "random_pivoting", "uniform"})],
        "failure_probability": [Interval(Real, 0, 0.5, closed="right"), None],
        "landmarks": ["array-like", "sparse matrix", None],
    }

    # Public methods

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Nystroem:
        """Choose landmarks among the rows of X, and bound what their features miss.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative: a row of weight w is drawn as a landmark, and counts in the bounds, as w equal rows would;
            zero leaves it out. (A row is a landmark once at most, so whole weights give the landmarks of
            repeated rows without those that come again.)

        Returns
        -------
        self : Nystroem

        Raises
        ------
        ValueError
            ``selection="random_pivoting"`` with a kernel that does not declare itself positive semidefinite;
            ``landmarks`` that are no rows of these columns.
        """
        self._fit(X, sample_weight)
        return self

    @prints_lines
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """``fit``, and the features of the same rows from the same pass over them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            As for ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        features = self._fit(X, sample_weight, keep=True)
        return self.transform(X) if features is None else features

    def _fit(self, X: Any, sample_weight: Any, *, keep: bool = False) -> np.ndarray | None:
        """``fit``; with ``keep`` also the features, None where there was no pass over the rows."""
        given = self._given()
        X = self._validated(X, reset=True)
        weights = check_weights(self._weights(X, sample_weight), X.shape[0], fit=False)
        state = check_random_state(0 if self.random_state is None else self.random_state)
        order = state.permutation(X.shape[0])  # first, so that uniform landmarks are scikit-learn's
        rng = np.random.default_rng(state.randint(np.iinfo(np.int32).max))
        kernel, rows, entry_error = self._bound_kernel(X, weights, given, rng)
        pivots = self._choose(X, kernel, rows, order if weights is None else _by_weight(weights, rng), entry_error, rng)
        self._n_features_out = len(pivots)
        _logger.info("nystroem: %d landmarks of %d rows", len(pivots), X.shape[0])
        self._kernel_ = kernel.unbound()
        if not kernel.positive_semidefinite:
            self._fit_indefinite(kernel, pivots)
            return None
        out = np.empty((X.shape[0], len(pivots)), dtype=float_type(X.dtype)) if keep else None
        self._fit_map(PivotMap(kernel, pivots, entry_error=entry_error), rows, entry_error, rng, out)
        return out

    def _choose(
        self, X: Any, kernel: Kernel, rows: Rows, order: np.ndarray, entry_error: float, rng: np.random.Generator
    ) -> np.ndarray:
        """The landmarks, in the coordinates of the kernel: those given, or some of the rows in a random ``order``."""
        if self.landmarks is not None:
            given, pivots = self.landmarks, landmark_rows(self.landmarks, kernel, rows)
            self.component_indices_ = np.asarray(given, dtype=np.intp) if np.ndim(given) == 1 else None
            if self.component_indices_ is not None:
                self.components_ = X[self.component_indices_]
            else:
                self.components_ = as_csr(given) if sp.issparse(given) else np.asarray(given, dtype=X.dtype)
            return pivots
        if self.selection == "random_pivoting" and not kernel.positive_semidefinite:
            raise ValueError(
                f"selection='random_pivoting' needs a positive semidefinite kernel, and {kernel!r} does not declare "
                "itself one; take selection='uniform'"
            )
        number = self._number_of(len(order))
        index = order[:number]
        if kernel.positive_semidefinite and self.selection != "uniform":
            index = _pivots(kernel, rows, order, number, entry_error, rng)
        self.component_indices_ = index
        self.components_ = X[index]
        return rows.take(index)

    def transform(self, X: Any) -> np.ndarray:
        """Features of rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            For ``kernel="precomputed"`` the matrix (n_rows, n_samples) between these and the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self, "normalization_")
        X = self._validated(X, reset=False)
        threads = parallel.threads_for(self._kernel_, self._n_threads())
        if self._map is not None and not self._precomputed:
            rows = as_rows(X).shifted(self._shift)
            features = FeatureOperator(self._kernel_, self._map, rows, threads) @ self._rotation
        elif self._precomputed:
            columns = X[:, self.component_indices_]
            features = (columns.toarray() if sp.issparse(columns) else columns) @ self.normalization_.T
        else:
            features = gram(X, self._kernel_, self.components_, n_threads=threads) @ self.normalization_.T
        return features.astype(float_type(X.dtype), copy=False)

    def kpca(self, X: Any, c: int, **options: Any) -> KPCAModel:
        """The leading eigenvalues of the kernel matrix of rows, each with an interval, and components, by ``kpca``.

        The landmarks are these ones. Sampled rows of their residual, or a pass over the kernel values, bound how far it
        moves an eigenvalue: with ``tol`` the number of rows that this takes, so that the intervals are up to 100 times
        narrower than ``residual_norm_``, and the components nearer to the true ones than those of the features.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            Those of ``fit``, or others: the intervals are those of the rows given here.
        c : int
            Number of components, at most that of the landmarks.
        **options
            Of ``fastkpca.kpca``, as ``tol=1e-2``, ``center=False`` (for the matrix as it is), ``sample_weight``,
            ``guaranteed``, ``rng``. ``random_state``, ``n_jobs`` and ``failure_probability`` are those of this object
            where nothing else is given here.

        Returns
        -------
        fastkpca.KPCAModel
            ``eigenvalues``, ``eigenvalue_bounds``, ``bound_kind``, ``failure_probability``, ``score``, and more.

        Raises
        ------
        ValueError
            A kernel that does not declare itself positive semidefinite, and what ``fastkpca.kpca`` refuses.
        """
        check_is_fitted(self, "normalization_")
        if self._map is None:
            raise ValueError(
                f"{self._kernel_!r} does not declare itself positive semidefinite, so its eigenvalues may lie anywhere "
                "beside those of the features; fastkpca.kpca without landmarks has intervals for such kernels"
            )
        if self._precomputed:
            raise ValueError(
                "a precomputed matrix holds no rows that could be landmarks; fastkpca.kpca(K, 'precomputed', c) has "
                "intervals without"
            )
        landmarks = self.components_.toarray() if sp.issparse(self.components_) else self.components_
        given: dict[str, Any] = {"failure_probability": self.failure_probability, "standardize": False}
        given |= {"rng": self._seed(), "n_threads": self._n_threads()}
        X = self._validated(X, reset=False)
        return kpca(self._named(X), self._kernel_, c, landmarks=landmarks, **(given | options))

    # The parameters

    def _given(self) -> dict[str, Any]:
        """The kernel's parameters, which scikit-learn refuses together with a function or a matrix."""
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        function = is_sklearn_kernel(self.kernel) and not isinstance(self.kernel, str)
        if (self._precomputed or function) and any(value is not None for value in given.values()):
            raise ValueError(
                "Don't pass gamma, coef0 or degree to Nystroem if using a callable or precomputed kernel; a callable "
                "has its parameters in kernel_params"
            )
        return given

    def _number_of(self, n_samples: int) -> int:
        if self.n_components > n_samples:
            warn_caller(
                f"n_components={self.n_components} > n_samples={n_samples}. This is not possible: n_components was set "
                "to n_samples, and the features are those of the whole kernel matrix",
                UserWarning,
            )
        return int(min(self.n_components, n_samples))

    def _bound_kernel(
        self, X: Any, weights: np.ndarray | None, given: dict[str, Any], rng: np.random.Generator
    ) -> tuple[Kernel, Rows, float]:
        """The kernel with all its parameters, the rows as it takes them, and the error of its values."""
        keywords = dict(self.kernel_params or {})
        if is_sklearn_kernel(self.kernel) and isinstance(self.kernel, str):  # as there, either form will do
            others = {name: keywords.pop(name, None) for name in given}
            given = {name: others[name] if x is None else x for name, x in given.items()}
        gamma = 1.0 if self.kernel == "chi2" else 1.0 / X.shape[1]
        kernel = self._kernel_of_estimator(X, given, gamma, keywords)
        kernel, points = bind_rows(guarded(kernel), self._named(X))
        threads = parallel.threads_for(kernel, self._n_threads())
        rows = as_rows(points).weighted(weights)
        rows, data = summarize_for(kernel, rows, centred=False, randomness=Randomness(rng), n_threads=threads)
        kernel = kernel.resolve(data)
        return kernel, rows, entry_error_of(kernel, data)

    # The fit

    def _fit_map(
        self,
        feature_map: PivotMap,
        rows: Rows,
        entry_error: float,
        rng: np.random.Generator,
        out: np.ndarray | None = None,
    ) -> None:
        """Features of a semidefinite kernel, into ``out`` where it is given, and the bounds on their residual."""
        kernel, n, failure = feature_map.kernel, rows.n_samples, check_failure_probability(self.failure_probability)
        threads = parallel.threads_for(kernel, self._n_threads())
        with parallel.blas_threads():
            W, scale, Zt = scipy.linalg.svd(feature_map.factor.T, check_finite=False)
            rotation = W @ Zt

            def rotated(tile: slice, Phi: np.ndarray) -> None:
                if out is not None:
                    out[tile] = Phi @ rotation

            count = draws_worth(n, feature_map.n_features)
            _, draws = residual_draws(feature_map, rows, rng, n_draws=count, each=rotated, n_threads=threads)
            trace = draws.total
            left_out = residual_bound(
                feature_map, kernel, rows, trace, draws, count=count, entry_error=entry_error, failure=failure
            )
            if not left_out.mu < trace:
                left_out = Bound(trace, "trace")
        self._map: PivotMap | None = feature_map  # None for kernels that may be indefinite
        self._shift, self._rotation = rows.shift, rotation
        self.normalization_ = (Zt.T / scale) @ Zt
        self.residual_trace_ = float(trace)
        self.residual_norm_ = float(left_out.mu)
        self.failure_probability_ = float(left_out.failure_probability)

    def _fit_indefinite(self, kernel: Kernel, P: np.ndarray) -> None:
        """As scikit-learn: of a kernel that may be indefinite, nothing can be said beyond the landmarks."""
        U, values, Vt = scipy.linalg.svd(np.asarray(kernel.block(P, P), dtype=np.float64))
        self._map = None
        self.normalization_ = (U / np.sqrt(np.maximum(values, MIN_SINGULAR_VALUE))) @ Vt
        self.residual_trace_ = self.residual_norm_ = self.failure_probability_ = float("nan")


def _pivots(
    kernel: Kernel, rows: Rows, order: np.ndarray, number: int, entry_error: float, rng: np.random.Generator
) -> np.ndarray:
    """Numbers of rows: by random pivoting among the first ones of a random ``order``, as far as those are independent
    to rounding, and then any others. An order by weight has heavy rows first: of a part of it all count alike."""
    looked_at = np.sort(order[: max(SAMPLE_ROWS, 2 * number)])
    weights = None
    if rows.weights is not None and len(looked_at) == len(order):
        weights = np.asarray(rows.weights[looked_at], dtype=np.float64)
    index = looked_at[random_pivots(kernel, rows.take(looked_at), number, rng, entry_error, weights)]
    others = order[~np.isin(order, index)]
    return np.concatenate([index, others[: number - len(index)]])


def _by_weight(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers of the rows of positive weight in a random order: that in which the rows of a set where each is repeated
    as its weight says come first (each next one is drawn in proportion to the weights of those that are left)."""
    some = np.flatnonzero(weights)
    return some[np.argsort(rng.exponential(size=len(some)) / weights[some], kind="stable")]

"""One kernel matrix for a method to work with: through a feature map where a small one exists, else through products.

K itself is never formed: ``matmat`` is Phi (Phi' U), or ``fastkpca.gram(X, kernel) @ U``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.base.rounding import UNIT, rounding_factor
from fastkpca.kernels import Kernel
from fastkpca.methods import Rows, as_rows, feature_moments, holds_more, nearest_and_rest

from ..limits import HELD_BYTES
from .functions import FeatureFunction, RowsFunction, SampleFunction, of_matrix
from .labels import real_targets
from .options import FitOptions, row_weights

MAX_FEATURES = 2048
"""Features up to which D x D matrices are taken rather than products with K."""
DRAFT_ROWS = 8192
"""Rows that a choice is made on where all of them show later what came of it: a map, the start of k-means or of a
descent, or whether exact products are quick."""
MAX_PROVED_ROWS = 8192
"""Rows up to which the kernel of a matrix proves that it is semidefinite."""
USE_PRODUCTS = "leave out method='features' and max_features for products with K"
PRODUCT_TOL = 1e-10
"""Error of a fast product, over the largest k(x, x): eigenvalues and costs are wanted to 1e-6, and sums of a column are
seldom less than a thousandth of the number of rows."""


def need_semidefinite(kernel: Kernel, purpose: str) -> None:
    """Raise ValueError for a kernel that is not known to be positive semidefinite."""
    if not kernel.positive_semidefinite:
        raise ValueError(
            f"{kernel!r} is not positive semidefinite, and {purpose} measures lengths in the space of such a kernel; "
            "take another one (a kernel of your own says that it is with positive_semidefinite = True)"
        )


def is_matrix(kernel: Any) -> bool:
    """True if a kernel, as a user gives it, is that of a matrix in place of rows."""
    if isinstance(kernel, str):
        return kernel.rpartition(":")[2] == "precomputed"
    return isinstance(kernel, Kernel) and "semidefinite" in kernel.parameters


def for_lengths(options: FitOptions, n_samples: int, purpose: str) -> FitOptions:
    """The options of a method that measures lengths: a matrix is declared semidefinite, so that the kernel checks it.

    The kernel proves that for few rows only; for more the user has to declare it.
    """
    if not is_matrix(options.kernel):
        return options
    matrix = fk.get_kernel(options.kernel, **options.parameters)
    if n_samples > MAX_PROVED_ROWS and not matrix.positive_semidefinite:
        raise ValueError(
            f"{purpose} needs a positive semidefinite matrix, and of {n_samples} rows that is not proved; declare it, "
            f"semidefinite=True, and it is checked on {MAX_PROVED_ROWS} of them (an estimator takes "
            "kernel_params={'semidefinite': True})"
        )
    return replace(options, kernel=fk.get_kernel("precomputed", semidefinite=True), parameters={})


def some_features(X: Any, kernel: Any, **options: Any) -> Any:
    """``fastkpca.features``, whose advice is that of a method."""
    try:
        return fk.features(X, kernel, **options)
    except ValueError as error:
        raise ValueError(str(error).replace("use gram()", USE_PRODUCTS)) from error


def training_rows(X: Any, purpose: str) -> Rows:
    """The rows to fit on, in memory, with the names of their columns; what their values must be is checked where they
    are read."""
    rows = as_rows(X, purpose=purpose)
    return rows if rows.in_memory else Rows(rows.source[0 : len(rows)], named=rows.named)


@dataclass(frozen=True, eq=False)
class Products:
    """K of the rows X: ``features`` (with K = Phi Phi' up to ``residual``) or ``gram`` is there, not both."""

    X: Rows
    kernel: Kernel
    features: Any = None
    gram: Any = None
    n_threads: int | None = None

    @property
    def n_samples(self) -> int:
        return (self.gram if self.features is None else self.features).shape[0]

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns of X; of a matrix they would be rows."""
        return None if self.kernel.by_number else self.X.names

    @property
    def info(self) -> dict[str, Any]:
        """Name of the products with K, for a model's ``info``."""
        if self.features is None:
            return {"method": "gram", "products": self.gram.products}
        return {"method": "features", "n_features": self.features.shape[1], "residual_trace": self.missed}

    @property
    def missed(self) -> float:
        """Trace of what the features miss of K, which is semidefinite."""
        return float(self.features.residual_trace)

    @property
    def below(self) -> float:
        """Bound on the norm and the trace of the part of K - Phi Phi' that is not semidefinite, in either sense."""
        return float(self.features.map.defect_norm(self.n_samples, self.features.trace()))

    @property
    def shift(self) -> np.ndarray | None:
        """Shift that was subtracted from the rows, of a kernel that depends on it except in the centred matrix; else
        None.
        """
        return self.gram.shift if self.features is None and self.kernel.translation == "centered" else None

    def mean_diagonal(self) -> float:
        """tr K / N."""
        return (self.gram if self.features is None else self.features).trace() / self.n_samples

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U."""
        if self.features is None:
            return self.gram @ U
        return self.features @ (self.features.T @ U)

    def feature_rows(self, index: np.ndarray) -> Rows:
        """Rows of these numbers as the feature map takes them."""
        return Rows(self.X.source[index], self.features.shift)

    def held_features(self) -> Any:
        """Phi for many products: as a matrix, formed once, where it fits; else the operator."""
        n, d = self.features.shape
        return np.asarray(self.features) if 8 * n * d <= HELD_BYTES else self.features

    def held_product(self) -> Callable[[np.ndarray], np.ndarray]:
        """U -> K U, for many products."""
        if self.features is None:
            return self.matmat
        Phi = self.held_features()
        return lambda U: Phi @ (Phi.T @ U)

    def function_of(self, coefficients: np.ndarray, constant: np.ndarray) -> RowsFunction:
        """f(x) = sum_j coefficients_j k(x, x_j) - constant, with K as it is multiplied by."""
        if self.features is None:
            return self.function(coefficients, constant)
        return self.feature_function(self.features.T @ coefficients, constant)

    def function(self, coefficients: np.ndarray, constant: np.ndarray) -> SampleFunction:
        """f(x) = sum_j coefficients_j k(x, x_j) - constant; rows whose coefficients are zero are left out."""
        kernel, shift = self.kernel.unbound(), self.shift
        if kernel.by_number:
            return of_matrix(kernel, coefficients, constant)
        used = np.flatnonzero(np.any(coefficients != 0.0, axis=1))
        if len(used) == 0:
            used = np.zeros(1, dtype=np.intp)
        coefficients = np.ascontiguousarray(coefficients[used])
        rows = self.X.source[used]
        X = _kept(rows) if shift is None or not shift.any() else Rows(rows, shift).all()
        shift = np.zeros(X.shape[1]) if shift is None else shift
        return SampleFunction(
            kernel=kernel, X=X, shift=shift, coefficients=coefficients, constant=constant, names=self.names
        )

    def feature_function(self, weights: np.ndarray, constant: np.ndarray) -> RowsFunction:
        """f(x) = weights' phi(x) - constant."""
        features = self.features
        weights = np.ascontiguousarray(weights)
        return FeatureFunction(
            map=features.map, shift=features.shift, weights=weights, constant=constant, names=self.names
        )


def _kept(rows: Any) -> Any:
    """A copy, since a model must not follow later changes of the user's array: float64 where that holds all digits."""
    if sp.issparse(rows) or (holds_more(rows.dtype) and nearest_and_rest(rows)[1].any()):
        return rows.copy()
    return np.array(rows, dtype=np.float64)


def small_features(X: Any, kernel: Any, *, max_features: int, **options: Any) -> Any:
    """``fastkpca.features`` with a map for D x D matrices: one that is large but has structure is replaced by
    pivots.
    """
    features = some_features(X, kernel, max_features=max_features, **options)
    if features.shape[1] > max_features:
        features = fk.features(X, kernel, max_features=max_features, **(options | {"features": "pivots"}))
    return features


def second_moment(moments: Any) -> np.ndarray:
    """The second moment (D, D) of features about their mean."""
    second = moments.dense()
    return moments.matmat(np.eye(len(moments.mean))) if second is None else second  # held as an operator only


def entry_error(gram: Any) -> float:
    """``error_bound``; where no bound on the kernel's values is known, about those that ``block`` returned."""
    if np.isfinite(gram.error_bound):
        return float(gram.error_bound)
    return float(rounding_factor(gram.shape[0]) * UNIT * np.abs(gram.diagonal()).max())


def quick_gram(X: Any, kernel: Any, *, tol: float = PRODUCT_TOL, **options: Any) -> Any:
    """``fastkpca.gram``: exact where the kernel has no fast product, else one whose error is ``tol`` of k(x, x)."""
    gram = fk.gram(X, kernel, **options)
    if gram.products == "exact" and gram.kernel.takes_points:
        tol = tol * float(np.abs(gram.diagonal()).max())
        if gram.error_bound < tol:
            known = {name: value for name, value in options.items() if name in ("n_threads", "rng", "center")}
            gram = fk.gram(X, gram.kernel.unbound(), tol=tol, **known)
    return gram


def products_for(X: Any, options: FitOptions) -> Products:
    """K of the rows X: through features where a map is small enough, or as ``options.method`` asks."""
    X = as_rows(X)
    given = {"n_threads": options.n_threads, "rng": options.rng, "center": options.center, **options.parameters}
    if options.method != "gram":
        most = min(MAX_FEATURES, X.shape[0]) if options.max_features is None else options.max_features
        try:
            features = small_features(X, options.kernel, tol=options.tol, max_features=most, **given)
            return Products(X, features.kernel, features=features, n_threads=options.n_threads)
        except ValueError:  # no such map; what else it may be, gram raises again
            if options.method == "features":
                raise
    gram = fk.gram(X, options.kernel, **(given | {"center": options.center and not sp.issparse(X.source)}))
    return Products(X, gram.kernel, gram=gram, n_threads=options.n_threads)


def regression_on(
    X: Any, t: Any, sample_weight: Any, options: FitOptions, purpose: str
) -> tuple[Products, np.ndarray, np.ndarray]:
    """K, the targets (N, k) and the weights (N,) of a regression, checked."""
    X = training_rows(X, purpose)
    targets, weights = real_targets(t, X.shape[0]), row_weights(sample_weight, X.shape[0])
    if options.method == "auto" and options.max_features is None:  # n pivots would cost more than products do
        options = replace(options, max_features=max(1, min(MAX_FEATURES, X.shape[0] // 8)))
    products = products_for(X, for_lengths(options, X.shape[0], purpose))
    need_semidefinite(products.kernel, purpose)
    return products, targets, weights


def class_moments(products: Products, members: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Mean (D,), scatter about it (D, D) and residual trace of each class, one after the other: one pass over the rows.

    Each class is centred by its own mean tile by tile, so that nothing cancels, however far the classes are apart.
    """
    features = products.features
    threads = parallel.threads_for(products.kernel, products.n_threads)
    for index in members:
        moments = feature_moments(features.map, products.feature_rows(index), n_threads=threads)
        yield np.array(moments.mean), second_moment(moments), moments.residual_trace

"""One kernel matrix for a method to work with: through a feature map where a small one exists, else through products.

K itself is never formed: ``matmat`` is Phi (Phi' U), or ``fastkpca.gram(X, kernel) @ U``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import fastkpca as fk
from fastkpca.base.checks import check_count
from fastkpca.kernels import Kernel, Precomputed

from .functions import FeatureFunction, SampleFunction, rows_of
from .options import accuracy

__all__ = ["Products", "class_moments", "held_features", "products_for", "small_features"]

MAX_FEATURES = 2048
"""Features up to which D x D matrices are taken rather than products with K."""
DRAFT_ROWS = 8192
"""Rows that a map is chosen on where one pass over all of them will show what it misses anyway."""
HELD = 512 << 20
"""Bytes up to which an (N, D) matrix of features is held rather than formed again for each product."""


@dataclass(frozen=True, eq=False)
class Products:
    """K of some rows: ``features`` (with K = Phi Phi' up to ``residual``) or ``gram`` is there, not both."""

    X: Any
    kernel: Kernel
    features: Any = None
    gram: Any = None
    n_threads: int | None = None

    @property
    def n_samples(self) -> int:
        return (self.gram if self.features is None else self.features).shape[0]

    @property
    def info(self) -> dict[str, Any]:
        """How K is multiplied by, for a model's ``info``."""
        if self.features is None:
            return {"method": "gram", "products": self.gram.products}
        return {
            "method": "features",
            "n_features": self.features.shape[1],
            "residual_trace": self.features.residual_trace,
        }

    def mean_diagonal(self) -> float:
        """tr K / N."""
        return (self.gram if self.features is None else self.features).trace() / self.n_samples

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U."""
        if self.features is None:
            return self.gram @ U
        return self.features @ (self.features.T @ U)

    def function(self, coefficients: np.ndarray, constant: np.ndarray) -> SampleFunction:
        """f(x) = sum_j coefficients_j k(x, x_j) - constant; rows whose coefficients are zero are left out."""
        kernel = self.kernel.unbound()
        if isinstance(kernel, Precomputed):
            return SampleFunction(kernel, np.empty((0, 0)), coefficients, constant)
        used = np.flatnonzero(np.any(coefficients != 0.0, axis=1))
        if len(used) == 0:
            used = np.zeros(1, dtype=np.intp)
        rows = self.X[used]  # a copy: the model must not follow later changes of the user's array
        rows = rows if sp.issparse(rows) else np.array(rows, dtype=np.float64)
        return SampleFunction(kernel, rows, np.ascontiguousarray(coefficients[used]), constant)

    def feature_function(self, weights: np.ndarray, constant: np.ndarray) -> FeatureFunction:
        """f(x) = weights' phi(x) - constant."""
        return FeatureFunction(self.features.map, self.features.shift, np.ascontiguousarray(weights), constant)


def held_features(features: Any) -> np.ndarray | None:
    """Phi as a matrix, where it fits."""
    n, d = features.shape
    return features @ np.eye(d) if 8 * n * d <= HELD else None


def small_features(X: Any, kernel: Any, *, max_features: int, **options: Any) -> Any:
    """``fastkpca.features`` with a map for D x D matrices: one that is large but has structure gives way to pivots."""
    features = fk.features(X, kernel, max_features=max_features, **options)
    if features.shape[1] > max_features:
        features = fk.features(X, kernel, max_features=max_features, **(options | {"features": "pivots"}))
    return features


def products_for(
    X: Any,
    kernel: Any,
    parameters: dict[str, Any],
    *,
    method: str = "auto",
    tol: float = 1e-6,
    max_features: int | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    draft: bool = False,
    tol_name: str = "tol",
) -> Products:
    """Through features where a map of at most ``max_features`` misses at most ``tol`` of the trace, else products.

    ``method`` "features" or "gram" asks for one of them; "auto" takes features where there are any. With ``draft`` the
    map of many rows may be chosen on some of them (``features`` is then about those): the caller passes over all rows
    once, sees what the map misses, and calls again without ``draft`` where that is too much. ``tol_name`` is what the
    caller calls ``tol``.
    """
    if method not in ("auto", "features", "gram"):
        raise ValueError(f"method is {method!r}; give 'auto', 'features' or 'gram'")
    X = rows_of(X)
    tol = accuracy(tol, tol_name)
    if max_features is not None:
        max_features = check_count(max_features, "max_features")
    if method != "gram":
        most = min(MAX_FEATURES, X.shape[0] if X.ndim else 1) if max_features is None else max_features
        part, aim = X, tol
        if draft and X.ndim == 2 and X.shape[0] > 2 * DRAFT_ROWS:
            kernel, parameters = fk.gram(X, kernel, products="exact", rng=rng, **parameters).kernel, {}
            if kernel.by_number:
                kernel = kernel.unbound()
            else:
                part, aim = (
                    X[np.sort(np.random.default_rng(0).choice(X.shape[0], DRAFT_ROWS, replace=False))],
                    0.85 * tol,
                )
        try:
            features = small_features(
                part, kernel, tol=aim, max_features=max(1, most), n_threads=n_threads, rng=rng, **parameters
            )
            if part is not X and not _holds_beyond(features, tol):
                features = small_features(X, kernel, tol=tol, max_features=max(1, most), n_threads=n_threads, rng=rng)
            return Products(X, features.kernel, features=features, n_threads=n_threads)
        except ValueError:  # no such map; what else it may be, gram raises again
            if method == "features":
                raise
    gram = fk.gram(X, kernel, n_threads=n_threads, rng=rng, **parameters)
    return Products(X, gram.kernel, gram=gram, n_threads=n_threads)


def _holds_beyond(features: Any, tol: float) -> bool:
    """Whether rows that the map was not chosen on will miss at most ``tol``: its pivots are rows that miss nothing."""
    n, d = features.shape
    return features.residual_trace * n <= tol * features.trace() * max(1, n - d)


def class_moments(products: Products, members: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Mean (D,), scatter about it (D, D) and residual trace of each class, one after the other: one pass over the rows.

    Each class is centred by its own mean tile by tile, so that nothing cancels, however far the classes are apart.
    """
    features, X = products.features, products.X
    step = features.map.tile_rows or max(64, (1 << 20) // max(1, features.shape[1]))
    for index in members:
        moments = features.map.new_moments()
        for start in range(0, len(index), step):
            tile = X[index[start : start + step]]
            tile = tile.toarray() if sp.issparse(tile) else tile
            moments.update(np.subtract(tile, features.shift, dtype=np.float64, order="C"))
        scatter = moments.dense()
        if scatter is None:  # held as an operator only
            scatter = moments.matmat(np.eye(features.shape[1]))
        yield np.array(moments.mean), scatter, moments.residual_trace

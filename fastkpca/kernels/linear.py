"""The linear kernel x.y: kernel PCA with it is ordinary PCA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.protocol import Cost, FeatureMap, Offer, Summary
from ..maps.monomial import PolynomialMap
from ..maps.stored import map_of_kernel
from .kernel import CompiledKernel


class Linear(CompiledKernel):
    """Linear kernel k(x, y) = x.y."""

    api_version = 1
    tile = "linear"
    stored_maps = (PolynomialMap,)
    positive_semidefinite = True
    translation = "centered"
    is_linear = True

    def gradient_weights(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray) -> np.ndarray:
        return np.ones_like(K)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", X, X)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        info = np.finfo(dtype)  # a product of two coordinates may be below the smallest number
        return (data.n_features + 2) * (float(info.eps) * data.largest_inner + float(info.tiny))

    def value_bound(self, data: Summary) -> float:
        return data.largest_inner * (1 + 1e-12)

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        d = data.n_features
        if d > max_features:
            return ()
        return (Offer("monomial", Cost(d, row_flops=d, memory=100.0 * d), lambda sample: PolynomialMap(d, 1)),)

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        def is_linear(made: PolynomialMap) -> bool:
            return (made.degree, made.scale, made.offset) == (1, 1.0, 0.0)

        return map_of_kernel(self, header, arrays, is_linear)

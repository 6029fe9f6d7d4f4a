"""The cosine kernel: the inner product of rows scaled to length one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastkpca.base.rounding import UNIT, unit_roundoff
from fastkpca.kernels import Cost, FeatureMap, Kernel, Offer, Summary

__all__ = ["Cosine"]


def _unit_rows(X: np.ndarray) -> np.ndarray:
    """Rows of length one, float64; zero rows stay zero. Scaled first, so that no square over- or underflows."""
    X = np.asarray(X, dtype=np.float64)
    largest = np.abs(X).max(axis=1, initial=0.0)[:, None]
    # by a power of two: exact
    scaled = np.ldexp(X, -np.frexp(np.where(largest > 0.0, largest, 1.0))[1])
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return np.divide(scaled, lengths, out=scaled, where=lengths > 0.0)


class Cosine(Kernel):
    """Cosine kernel k(x, y) = x.y / (|x| |y|), scikit-learn's ``cosine_similarity``.

    Positive semidefinite, with the rows scaled to length one as its exact feature map. A row of zeros has no direction:
    k with it is 0, with itself too, so that it has no part in any component before centring.
    """

    api_version = 1
    positive_semidefinite = True
    translation = None
    scales_rows = True

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        A = _unit_rows(X)
        B = A if Y is X else _unit_rows(Y)
        return (A @ B.T).astype(X.dtype, copy=False)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return (np.asarray(X) != 0.0).any(axis=1).astype(np.float64)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float:
        # two rows with d + 4 roundings of their length, and a sum of d products of size at most 1 in sum
        return (4.0 * data.n_features + 16.0) * UNIT + 2.0 * unit_roundoff(dtype)

    def value_bound(self, data: Summary) -> float:
        return 1.0

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        d = data.n_features
        if d > max_features:
            return ()
        return (
            Offer("unit rows", Cost(d, row_flops=200.0 + 16.0 * d, memory=8.0 * d * d), lambda sample: UnitRowsMap(d)),
        )

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        return UnitRowsMap(int(header["n_features"]))


class UnitRowsMap(FeatureMap):
    """phi(x) = x / |x|: exact."""

    anywhere = True

    def __init__(self, n_features: int):
        self.n_features = n_features
        self.rounding = (n_features + 8) * UNIT

    def features(self, X: np.ndarray) -> np.ndarray:
        return _unit_rows(X).astype(X.dtype, copy=False)

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        return {"map": "unit rows", "n_features": self.n_features}, {}

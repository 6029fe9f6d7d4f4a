"""The Gram matrix and the feature matrix as scipy LinearOperators, never formed."""

from __future__ import annotations

import copy

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ..base import parallel
from ..base.protocol import FeatureMap, Kernel, Moments, Summation
from ..maps.passes import accumulate, apply, feature_moments, tile_rows
from ..rows.view import Rows
from .exact import ExactSummation

__all__ = ["CenteredGramOperator", "FeatureOperator", "GramOperator"]


def _columns(U: np.ndarray) -> np.ndarray:
    U = np.asarray(U)
    if np.iscomplexobj(U):
        raise TypeError("products with a kernel matrix take real vectors; apply it to .real and .imag apart")
    U = np.ascontiguousarray(U, dtype=np.float64)
    if not np.isfinite(U).all():  # said here, or a kernel from outside would be blamed for the product
        row = np.argwhere(~np.isfinite(U))[0, 0]
        raise ValueError(f"U contains NaN or infinity (first in row {row}); products need finite vectors")
    return U


class GramOperator(LinearOperator):
    """The kernel matrix k(x_i, y_j), shape (len X, len Y), as a LinearOperator: ``K @ U``, ``K.T @ U``, ...

    Attributes
    ----------
    kernel : Kernel
    error_bound : float
        |error of (K @ U)_ik| <= error_bound * sum_j |U_jk|, beyond rounding; 0 for exact products.
    products : str
        The name of the product that was chosen.
    """

    def __init__(
        self,
        kernel: Kernel,
        summation: Summation,
        rows_x: Rows,
        rows_y: Rows | None,
        n_threads: int = 1,
        *,
        name: str = "exact",
        progress: bool | parallel.Progress = False,
    ):
        super().__init__(np.float64, summation.shape)
        self.kernel = kernel
        self.products = name
        self._summation = summation
        self._rows_x, self._rows_y = rows_x, rows_y
        self._n_threads, self._progress = n_threads, progress
        self._means: np.ndarray | None = None

    def __repr__(self) -> str:
        n, m = self.shape
        how = f"products={self.products!r}, error_bound={self.error_bound:.2g}"
        return f"<{n}x{m} GramOperator of {self.kernel!r}, {how}>"

    @property
    def error_bound(self) -> float:
        return self._summation.error_bound

    @property
    def is_square(self) -> bool:
        """Whether sources and targets are the same rows."""
        return self._rows_y is None

    def _times(self, U: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        with parallel.reporter(self._progress) as report:
            own = self._summation
            if isinstance(own, ExactSummation) and report is not None:
                own = copy.copy(own)  # products may run at the same time
                own.progress = report
            result = own.rmatmat(U) if transposed else own.matmat(U)
            if report is not None and own is self._summation:  # one of the fast ones: in one step
                report("kernel product", 1, 1)
        return result

    def _matmat(self, U: np.ndarray) -> np.ndarray:
        return self._times(_columns(U))

    def _matvec(self, u: np.ndarray) -> np.ndarray:
        return self._matmat(np.reshape(u, (-1, 1)))

    def _rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._times(_columns(U), transposed=True)

    def _rmatvec(self, u: np.ndarray) -> np.ndarray:
        return self._rmatmat(np.reshape(u, (-1, 1)))

    def _adjoint(self) -> LinearOperator:
        return self if self.is_square and self._summation.symmetric else super()._adjoint()

    def _transpose(self) -> LinearOperator:
        return self._adjoint()  # real

    def _need_square(self, what: str) -> None:
        if not self.is_square:
            raise ValueError(f"{what} needs the kernel matrix of one set of rows with itself; found shape {self.shape}")

    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i), shape (N,)."""
        self._need_square("diagonal()")
        rows, n = self._rows_x, self._rows_x.n_samples
        step = parallel.tile_rows(rows.n_features)
        return np.concatenate([self.kernel.diagonal(rows.tile(i, min(n, i + step))) for i in range(0, n, step)])

    def trace(self) -> float:
        """Sum of the diagonal."""
        return float(self.diagonal().sum())

    def column_means(self) -> np.ndarray:
        """Mean of each column, shape (len Y,): what centring a new point needs. One product, kept."""
        if self._means is None:
            ones = np.ones((self.shape[0], 1))
            self._means = self._times(ones, transposed=True)[:, 0] / self.shape[0]
        return self._means

    def centered(self) -> CenteredGramOperator:
        """H K H with H = I - 11'/N, as a LinearOperator; square kernel matrices only."""
        self._need_square("centered()")
        return CenteredGramOperator(self)


class CenteredGramOperator(LinearOperator):
    """The doubly centred Gram matrix Kc = H K H; symmetric."""

    def __init__(self, gram: GramOperator):
        super().__init__(np.float64, gram.shape)
        self.gram = gram

    def _matmat(self, U: np.ndarray) -> np.ndarray:
        U = _columns(U)
        V = self.gram._times(U - U.mean(axis=0))
        if not self.gram._summation.symmetric:
            V = (V + self.gram._times(U - U.mean(axis=0), transposed=True)) / 2
        return V - V.mean(axis=0)

    def _matvec(self, u: np.ndarray) -> np.ndarray:
        return self._matmat(np.reshape(u, (-1, 1)))

    def _adjoint(self) -> LinearOperator:
        return self

    def _transpose(self) -> LinearOperator:
        return self

    def trace(self) -> float:
        """tr K - 1'K1 / N."""
        return self.gram.trace() - float(self.gram.column_means().sum())


class FeatureOperator(LinearOperator):
    """The feature matrix Phi (N, D) as a LinearOperator: K = Phi Phi' up to ``residual_trace``.

    Attributes
    ----------
    map : FeatureMap
    kernel : Kernel
    """

    def __init__(
        self,
        kernel: Kernel,
        feature_map: FeatureMap,
        rows: Rows,
        n_threads: int = 1,
        *,
        progress: bool | parallel.Progress = False,
    ):
        super().__init__(np.float64, (rows.n_samples, feature_map.n_features))
        self.kernel, self.map = kernel, feature_map
        self._rows, self._n_threads, self._progress = rows, n_threads, progress
        self._residual: float | None = None

    def _matmat(self, C: np.ndarray) -> np.ndarray:
        with parallel.reporter(self._progress) as report:
            return apply(self.map, self._rows, _columns(C), self._n_threads, progress=report, stage="features")

    def _matvec(self, c: np.ndarray) -> np.ndarray:
        return self._matmat(np.reshape(c, (-1, 1)))

    def _rmatmat(self, U: np.ndarray) -> np.ndarray:
        with parallel.reporter(self._progress) as report:
            return accumulate(self.map, self._rows, _columns(U), self._n_threads, progress=report, stage="features")

    def _rmatvec(self, u: np.ndarray) -> np.ndarray:
        return self._rmatmat(np.reshape(u, (-1, 1)))

    @property
    def shift(self) -> np.ndarray:
        """What to subtract from other rows before ``map`` sees them, shape (d,); the zero vector for some kernels."""
        return np.zeros(self._rows.n_features) if self._rows.shift is None else self._rows.shift

    def moments(self, weights: np.ndarray | None = None) -> Moments:
        """Count, mean and centred second moment of the features, in one pass; ``weights`` (N,) are non-negative."""
        if weights is not None:
            weights = np.ascontiguousarray(weights, dtype=np.float64)
            if weights.shape != (self.shape[0],) or not (np.isfinite(weights).all() and (weights >= 0).all()):
                raise ValueError(
                    f"weights must be {self.shape[0]} finite, non-negative numbers; found shape {weights.shape}"
                )
        with parallel.reporter(self._progress) as report:
            moments = feature_moments(self.map, self._rows, weights=weights, n_threads=self._n_threads, progress=report)
        if weights is None:
            self._residual = moments.residual_trace
        return moments

    def trace(self) -> float:
        """tr K: the sum of k(x_i, x_i)."""
        rows, n = self._rows, self._rows.n_samples
        step = parallel.tile_rows(rows.n_features)
        return float(sum(self.kernel.diagonal(rows.tile(i, min(n, i + step))).sum() for i in range(0, n, step)))

    @property
    def residual_trace(self) -> float:
        """Trace of K - Phi Phi', an upper bound; one pass over the rows, kept."""
        if self._residual is None:
            n, step = self._rows.n_samples, tile_rows(self.map)
            with parallel.reporter(self._progress) as report:
                self._residual = parallel.tree_reduce(
                    lambda i: float(self.map.residual(self._rows.tile(i * step, min(n, (i + 1) * step))).sum()),
                    -(-n // step),
                    lambda a, b: a + b,
                    n_threads=self._n_threads,
                    progress=report,
                    stage="residual",
                )
        return self._residual

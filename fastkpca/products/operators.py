"""The Gram matrix and the feature matrix as scipy LinearOperators, never formed."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from types import EllipsisType
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from .._core.arrays import contiguous
from ..base import parallel
from ..base.checks import as_float
from ..base.process_memory import DEFAULT_MEMORY
from ..base.progress import check_progress
from ..base.protocol import FeatureMap, Kernel, Moments, Summation
from ..maps.passes import accumulate, apply, feature_moments, map_tile_rows
from ..rows.values import check_weights
from ..rows.view import Rows
from .blocks import TILE_ROWS
from .exact import ExactSummation
from .vectors import centre

_logger = logging.getLogger("fastkpca")


def _real(U: Any) -> np.ndarray:
    """U as an array of numbers, before anything can lose its mask or read its strings."""
    if np.ma.isMaskedArray(U):
        raise TypeError("U is a masked array, and products would use what is masked; fill it first: U.filled(0.0)")
    if issparse(U):
        raise TypeError("products with a kernel matrix take dense blocks, found a sparse one; give U.toarray()")
    U = np.asarray(U)
    if U.dtype.kind == "c":
        raise TypeError("products with a kernel matrix take real vectors; apply it to .real and .imag apart")
    if U.dtype.kind not in "fiub":
        raise TypeError(f"products with a kernel matrix take real numbers; found an array of {U.dtype}")
    return U


def _columns(U: Any) -> np.ndarray:
    U = contiguous(_real(U), np.float64)
    if not np.isfinite(U).all():  # said here, or a kernel from outside would be blamed for the product
        row = np.argwhere(~np.isfinite(U))[0, 0]
        raise ValueError(f"U contains NaN or infinity (first in row {row}); products need finite vectors")
    return U


def _finite(product: np.ndarray, kernel: Kernel) -> np.ndarray:
    """The product, refused where it is not finite: one sum in cache or at the speed of memory, no further array."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = product.sum()
    if not np.isfinite(total) and not np.isfinite(product).all():
        row = int(np.argwhere(~np.isfinite(product))[0, 0])
        raise ValueError(
            f"the product with the kernel matrix or the features of {kernel!r} is not finite (first at row {row}): "
            "values of the kernel, or of U, leave the range of float64; scale the rows or U down, or change the "
            "kernel's parameters"
        )
    return product


def _factor(x: Any) -> float:
    """Factor or divisor of an operator."""
    number = as_float(x)
    if number is None or not np.isfinite(number):
        raise TypeError(f"an operator is multiplied or divided by finite real numbers, found {x!r}; give such a number")
    return number


def _summand(A: Any, shape: tuple[int, int]) -> LinearOperator:
    """Summand of an operator of this shape, as an operator."""
    if not (isinstance(A, LinearOperator) or issparse(A)):
        if np.asarray(A).ndim == 0:
            raise TypeError(
                f"an operator and {A!r} are not added: the sum may mean a number on the diagonal or one in every "
                "entry; for K + mu I give K + mu * scipy.sparse.identity(len(X))"
            )
        A = _real(A)
    if A.shape != shape:
        raise ValueError(
            f"an operator of shape {shape} and what has shape {A.shape} are not added; give a matrix or an operator of "
            "the same shape, as in K + scipy.sparse.diags(v) for numbers v on the diagonal"
        )
    if A.dtype is not None and A.dtype.kind not in "fiub":
        raise TypeError(f"an operator of real numbers and one of {A.dtype} are not added; add real ones")
    return aslinearoperator(A)


def _terms(A: LinearOperator) -> list[tuple[float, LinearOperator]]:
    return A._terms() if isinstance(A, _RealOperator) else [(1.0, A)]


def _check_size(n: int, m: int) -> None:
    if n * m * 8 > DEFAULT_MEMORY:
        raise ValueError(
            f"an array of shape {(n, m)} takes {n * m * 8 / 1e9:.3g} GB, and the limit is {DEFAULT_MEMORY / 1e9:.3g} "
            "GB; take products, K @ U, or some rows of a Gram matrix, K[rows]"
        )


def _diagonals(kernel: Kernel, rows: Rows) -> Iterator[np.ndarray]:
    """k(x_i, x_i), tile by tile."""
    n, step = rows.n_samples, parallel.tile_rows(rows.n_features)
    for start in range(0, n, step):
        yield kernel.diagonal(rows.tile(start, min(n, start + step)))


def _shift_of(rows: Rows) -> np.ndarray:
    return np.zeros(rows.n_features) if rows.shift is None else rows.shift


class _RealOperator(LinearOperator):
    """The base of the operators: blocks of real columns, checked before scipy turns them into plain arrays."""

    def _dense(self) -> np.ndarray:
        """All entries, a new array."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("the entries of this operator are computed, so np.asarray(..., copy=False) has none")
        _check_size(*self.shape)
        return self._dense().astype(dtype or np.float64, copy=False)

    def _terms(self) -> list[tuple[float, LinearOperator]]:
        """This as a sum of factors times operators."""
        return [(1.0, self)]

    def _plus(self, other: Any, sign: float) -> LinearOperator:
        other = _summand(other, self.shape)
        return _Combination(self._terms() + [(sign * factor, A) for factor, A in _terms(other)])

    def __add__(self, other: Any) -> LinearOperator:
        return self._plus(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> LinearOperator:
        return self._plus(other, -1.0)

    def __rsub__(self, other: Any) -> LinearOperator:
        return (-self)._plus(other, 1.0)

    def __neg__(self) -> Any:
        return self._scaled(-1.0)

    def __truediv__(self, other: Any) -> LinearOperator:
        factor = _factor(other)
        if factor == 0.0:
            raise ValueError("an operator is divided by 0; give another number")
        return self._scaled(1.0 / factor)

    def __rmul__(self, x: Any) -> Any:
        return self._scaled(_factor(x)) if np.isscalar(x) else super().__rmul__(x)

    def _scaled(self, by: float) -> Any:
        return _Combination([(by * factor, A) for factor, A in self._terms()])

    def dot(self, x: Any) -> Any:
        if np.isscalar(x):
            return self._scaled(_factor(x))
        if isinstance(x, LinearOperator):
            return super().dot(x)
        x = _real(x)
        if np.ndim(x) not in (1, 2) or len(x) != self.shape[1]:
            need = f"one vector, or a block of columns, of {self.shape[1]} numbers each"
            raise ValueError(f"U has shape {np.shape(x)}; this product takes {need}")
        return super().dot(x)

    def _matvec(self, u: np.ndarray) -> np.ndarray:
        return self._matmat(np.reshape(u, (-1, 1)))

    def _rmatvec(self, u: np.ndarray) -> np.ndarray:
        return self._rmatmat(np.reshape(u, (-1, 1)))

    def _adjoint(self) -> LinearOperator:
        return _Transposed(self)

    def _transpose(self) -> LinearOperator:
        return self._adjoint()  # real


class _Transposed(_RealOperator):
    """K' for an operator K."""

    def __init__(self, of: _RealOperator):
        super().__init__(np.float64, of.shape[::-1])
        self._of = of

    def _matmat(self, U: np.ndarray) -> np.ndarray:
        return self._of._rmatmat(U)

    def _rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._of._matmat(U)

    def _adjoint(self) -> LinearOperator:
        return self._of

    def _dense(self) -> np.ndarray:
        return self._of._dense().T


class _Combination(_RealOperator):
    """A sum of real factors times operators, as K + mu I; scipy's own sums would take no matrix and give no entries."""

    def __init__(self, terms: list[tuple[float, LinearOperator]]):
        super().__init__(np.float64, terms[0][1].shape)
        self._of = terms

    def _terms(self) -> list[tuple[float, LinearOperator]]:
        return self._of

    def __repr__(self) -> str:
        return "<" + " + ".join(f"{factor:g} * {A!r}" for factor, A in self._of) + ">"

    def _sum(self, parts: Iterator[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        total = np.zeros(shape)
        with np.errstate(over="ignore", invalid="ignore"):
            for (factor, _), part in zip(self._of, parts):
                total += factor * part
        if not np.isfinite(total).all():
            raise ValueError("a sum of operators leaves the range of float64; scale its factors, or U, down")
        return total

    def _matmat(self, U: np.ndarray) -> np.ndarray:
        U = _columns(U)
        return self._sum((A.matmat(U) for _, A in self._of), (self.shape[0], U.shape[1]))

    def _rmatmat(self, U: np.ndarray) -> np.ndarray:
        U = _columns(U)
        return self._sum((A.rmatmat(U) for _, A in self._of), (self.shape[1], U.shape[1]))

    def _adjoint(self) -> LinearOperator:
        return _Combination([(factor, A.H) for factor, A in self._of])

    def _dense(self) -> np.ndarray:
        operators = [A for _, A in self._of]
        parts = (A._dense() if isinstance(A, _RealOperator) else A.matmat(np.eye(A.shape[1])) for A in operators)
        return self._sum(parts, self.shape)


class GramOperator(_RealOperator):
    """The kernel matrix k(x_i, y_j), shape (len X, len Y), as a LinearOperator: ``K @ U``, ``K.T @ U``, ...

    ``K[rows]`` are some of its rows as an array, for a number, a slice, numbers or truth values of rows, and
    ``np.asarray(K)`` are all of them. These are exact entries, also where products have an ``error_bound`` above 0.
    Neither makes an array of more than 2 GiB. ``K + A`` and ``A - K`` take another operator or a matrix; the sums, and
    ``2.0 * K``, are such operators again.

    Attributes
    ----------
    kernel : Kernel
    error_bound : float
        |error of (K @ U)_ik| <= error_bound * sum_j |U_jk|, for ``K.T`` as well: the product's own error, and the
        rounding of kernel values and sums (products below 1e-300 aside). For a kernel that does not state the rounding
        of its values (``Kernel.entry_error``) it is about the values that ``block`` returned; infinite where nothing
        bounds them (``Kernel.value_bound``).
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
        rounding: float = np.inf,
        progress: bool | parallel.Progress = False,
    ):
        super().__init__(np.float64, summation.shape)
        self.kernel: Any = kernel  # for its users one of fastkpca.kernels
        self.error_bound = float(summation.error_bound + rounding)
        self.products = name
        self._summation = summation
        self._rows_x, self._rows_y = rows_x, rows_y
        self._n_threads, self._progress = n_threads, check_progress(progress)
        self._means: np.ndarray | None = None

    def __repr__(self) -> str:
        n, m = self.shape
        how = f"products={self.products!r}, error_bound={self.error_bound:.2g}"
        return f"<{n}x{m} GramOperator of {self.kernel!r}, {how}>"

    @property
    def is_square(self) -> bool:
        """True if sources and targets are the same rows."""
        return self._rows_y is None

    @property
    def shift(self) -> np.ndarray:
        """Vector subtracted from the rows before the kernel is evaluated, shape (d,); zero for some kernels."""
        return _shift_of(self._rows_x)

    def _times(self, U: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        with parallel.reporter(self._progress) as report:
            summation = self._summation
            if isinstance(summation, ExactSummation) and report is not None:
                summation = copy.copy(summation)  # products may run at the same time
                summation.progress = report
            result = summation.rmatmat(U) if transposed else summation.matmat(U)
            if report is not None and summation is self._summation:  # one of the fast ones: in one step
                report("kernel product", 1, 1)
        return _finite(result, self.kernel)

    def _matmat(self, U: np.ndarray) -> np.ndarray:
        return self._times(_columns(U))

    def _rmatmat(self, U: np.ndarray) -> np.ndarray:
        return self._times(_columns(U), transposed=True)

    def _adjoint(self) -> LinearOperator:
        return self if self.is_square and self._summation.symmetric else super()._adjoint()

    def __getitem__(self, rows: Any) -> np.ndarray:
        try:
            # numpy takes [] and ... as they are; others, as truth values in a data frame's column, are arrays first
            as_given = isinstance(rows, (slice, tuple, list, EllipsisType))
            index = np.arange(self.shape[0])[rows if as_given else np.asarray(rows)]
            if np.ndim(index) > 1:
                raise IndexError(f"an array of {np.ndim(index)} dimensions")
        except (IndexError, OverflowError, ValueError) as error:
            need = f"a number, a slice, or numbers or truth values of the {self.shape[0]} rows"
            raise IndexError(f"K[rows]: {error}; give {need}") from error
        chosen = np.atleast_1d(index)
        _check_size(len(chosen), self.shape[1])
        X, sources = self._rows_x.take(chosen), self._rows_x if self._rows_y is None else self._rows_y
        K = np.empty((len(chosen), self.shape[1]))
        for start, Y in sources.tiles(TILE_ROWS):
            K[:, start : start + len(Y)] = self.kernel.block(X, Y)
        return _finite(K, self.kernel)[0 if np.ndim(index) == 0 else slice(None)]

    def _dense(self) -> np.ndarray:
        return self[:]

    def _need_square(self, what: str) -> None:
        if not self.is_square:
            raise ValueError(f"{what} needs the kernel matrix of one set of rows with itself; found shape {self.shape}")

    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i), shape (N,)."""
        self._need_square("diagonal()")
        return np.concatenate(list(_diagonals(self.kernel, self._rows_x)))

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


class CenteredGramOperator(_RealOperator):
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

    def _adjoint(self) -> LinearOperator:
        return self

    def _dense(self) -> np.ndarray:
        K = self.gram._dense()
        centre(K)
        return K

    def trace(self) -> float:
        """tr K - 1'K1 / N."""
        return self.gram.trace() - float(self.gram.column_means().sum())


class FeatureOperator(_RealOperator):
    """The feature matrix Phi (N, D) as a LinearOperator: K = Phi Phi' up to ``residual_trace``.

    ``np.asarray(F)`` is the matrix itself, up to 2 GiB.

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
        self.kernel: Any = kernel  # for its users one of fastkpca.kernels
        self.map = feature_map
        self._rows, self._n_threads, self._progress = rows, n_threads, check_progress(progress)
        self._residual: float | None = None
        _logger.info("features: %d of %s, %d rows", feature_map.n_features, type(feature_map).__name__, rows.n_samples)

    def _matmat(self, C: np.ndarray) -> np.ndarray:
        with parallel.reporter(self._progress) as report:
            product = apply(self.map, self._rows, _columns(C), self._n_threads, progress=report, stage="features")
        return _finite(product, self.kernel)

    def _rmatmat(self, U: np.ndarray) -> np.ndarray:
        with parallel.reporter(self._progress) as report:
            product = accumulate(self.map, self._rows, _columns(U), self._n_threads, progress=report, stage="features")
        return _finite(product, self.kernel)

    def _dense(self) -> np.ndarray:
        Phi = np.empty(self.shape)
        for start, tile in self._rows.tiles(map_tile_rows(self.map)):
            Phi[start : start + len(tile)] = self.map.features(tile)
        return _finite(Phi, self.kernel)

    @property
    def shift(self) -> np.ndarray:
        """Vector to subtract from other rows before ``map`` is evaluated, shape (d,); zero for some kernels."""
        return _shift_of(self._rows)

    def moments(self, weights: np.ndarray | None = None) -> Moments:
        """Count, mean and centred second moment of the features, in one pass; ``weights`` (N,) are non-negative."""
        if weights is not None:
            weights = check_weights(weights, self.shape[0], "weights", fit=False)
        with parallel.reporter(self._progress) as report:
            moments = feature_moments(self.map, self._rows, weights=weights, n_threads=self._n_threads, progress=report)
        if weights is None:
            self._residual = moments.residual_trace
        return moments

    def trace(self) -> float:
        """tr K: the sum of k(x_i, x_i)."""
        return float(sum(values.sum() for values in _diagonals(self.kernel, self._rows)))

    def centered_trace(self) -> float:
        """Sum of squared distances of the features from their mean, tr H Phi Phi' H: no more than tr H K H.

        Tiles are centred by themselves and merged (Chan, Golub and LeVeque 1979): nothing cancels.
        """
        n, step = self._rows.n_samples, map_tile_rows(self.map)

        def of_tile(i: int) -> tuple[int, np.ndarray, float]:
            Phi = self.map.features(self._rows.tile(i * step, min(n, (i + 1) * step)))
            mean = Phi.mean(axis=0)
            return len(Phi), mean, float(np.sum((Phi - mean) ** 2))

        def merged(a: tuple[int, np.ndarray, float], b: tuple[int, np.ndarray, float]) -> tuple[int, np.ndarray, float]:
            count, apart = a[0] + b[0], b[1] - a[1]
            mean = a[1] + apart * (b[0] / count)
            return count, mean, a[2] + b[2] + float(apart @ apart) * (a[0] * b[0] / count)

        return parallel.tree_reduce(of_tile, -(-n // step), merged, n_threads=self._n_threads)[2]

    @property
    def residual_trace(self) -> float:
        """Upper bound on the trace of the semidefinite part of K - Phi Phi'; one pass over the rows, kept.

        In addition each entry may be off by ``map.defect``, which is not zero for Fourier features alone.
        """
        if self._residual is None:
            n, step = self._rows.n_samples, map_tile_rows(self.map)
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

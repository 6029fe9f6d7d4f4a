"""Operators of the eigensolver: products with a symmetric matrix, and bounds on it.

The centred kernel matrix comes as `CentredProducts`, in float64, and as `InFloat32`, for searching; the second moment
of a feature map as `MomentOperator`. To multiply by something else, write one more such class.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.rounding import UNIT, UNIT32, rounding_factor
from ..base.tall import without_means
from ..products.implicit import KernelMatrix
from ..products.vectors import with_ones
from .certificate import NOTHING_KNOWN, MatrixInfo, product_error


class Operator:
    """A symmetric matrix A of order ``n``.

    Attributes
    ----------
    n : int
    centred : bool
        True if the vector of ones is in its null space.
    n_threads : int
    certain : bool
        True if products have a known error bound (`error`), so that intervals can follow from them.
    """

    n: int
    centred: bool = False
    n_threads: int = 1
    certain: bool = True
    measures: bool = False
    """True if the next product is to measure the norm as well, where no bound on it is known yet."""
    share: float = 1.0
    """Cost of a product over that of a float64 pass."""

    def multiply(self, X: np.ndarray) -> np.ndarray:
        """A X, a new array (n, k), for k orthonormal columns (orthogonal to ones where A is ``centred``)."""
        raise NotImplementedError

    def error(self, columns: int) -> float:
        """Bound on the Frobenius norm of the errors of ``columns`` products with orthonormal vectors."""
        raise NotImplementedError

    @property
    def size(self) -> float:
        """Bound on |A|_F, or the size that rounding is relative to; infinite where none is known."""
        raise NotImplementedError

    def info(self, columns: int) -> MatrixInfo:
        """Trace and norm, as far as they are known, for a comparison with ``columns`` Ritz values."""
        raise NotImplementedError

    @property
    def lowest(self) -> float | None:
        """Lower bound on the eigenvalues, up to rounding; None where none is known."""
        raise NotImplementedError

    def expected_sums(self) -> tuple[float | None, float | None]:
        """Trace and norm as far as they are known or estimated, to plan by."""
        return None, None

    @property
    def total(self) -> float | None:
        """Total variance to which a fraction refers: an upper bound, as far as one is known."""
        return self.expected_sums()[0]

    def noise(self, theta: np.ndarray) -> float:
        """Estimated norm of the rounding error of a product, for Ritz values ``theta``."""
        raise NotImplementedError


class CentredProducts(Operator):
    """H K V with the mean of each column removed; V is orthogonal to ones, so H K V = H K H V."""

    centred = True

    def __init__(self, matrix: KernelMatrix):
        self.matrix = matrix
        self.n, self.n_threads = matrix.n, matrix.n_threads
        self.passes = 0
        """Number of passes in float64; those in float32 certify no columns."""
        self.row_means = np.empty(0)
        """Row means of K; empty until a pass has computed the row sums."""
        self.grand_mean = 0.0
        self.norm: float | None = None
        """Estimate of |Kc|_F for planning, from float32 or float64."""
        self.norm_bound: float | None = None
        """Upper bound on |Kc|_F, with its rounding and that of the entries."""
        self.whole = np.inf
        """Bound on |K|_F."""
        self.norm_wanting = True
        """The norm has not been measured in float64, or not accurately."""
        self._means_in_float64 = False
        if matrix.sums is not None:
            self.row_means, self.grand_mean = np.full(self.n, matrix.sums.shift), matrix.sums.shift
            self._set_norm(matrix.sums.row_sums, matrix.sums.square)

    # passes ----------------------------------------------------------------------------------------------------

    def multiply(self, X: np.ndarray) -> np.ndarray:
        """H K X in float64, with row sums (first time) and the Frobenius norm (where wanted) of the same tiles."""
        product = self.matrix.product
        if self.measures and self.norm_wanting and product.gives_norm:
            means = self.row_means if len(self.row_means) else np.zeros(self.n)
            Y, sums, square, _ = product.pass_with_norm(X, means, self.grand_mean)
            self._set_norm(np.asarray(sums, dtype=np.float64).ravel(), float(square))
        elif not self._means_in_float64:
            Y = product.matmat(with_ones(X))
            self._set_means(Y[:, -1])
            self._means_in_float64 = True
            Y = Y[:, :-1]
        else:
            Y = product.matmat(X)
        self.passes += 1
        return without_means(Y, self.n_threads)

    def multiply_in_float32(self, X: np.ndarray, measures: bool) -> np.ndarray:
        """H K X in float32; the first pass has one more column for the row sums, and a later one computes the norm."""
        product = self.matrix.search_product
        assert product is not None
        first = len(self.row_means) == 0
        U = (with_ones(X) if first else X).astype(np.float32, order="C")
        if measures and self.norm is None and not first and product.gives_norm:
            Y, _, square, _ = product.pass_with_norm(U, self.row_means, self.grand_mean)
            self.norm = float(np.sqrt(max(float(square), 0.0)))
        else:
            Y = product.matmat(U)
        del U
        if first:
            self._set_means(Y[:, -1].astype(np.float64))
            Y = Y[:, :-1]
        return without_means(Y, self.n_threads)

    def _set_means(self, sums: np.ndarray) -> None:
        self.row_means = sums / self.n
        self.grand_mean = float(self.row_means.mean())

    def _set_norm(self, sums: np.ndarray, squares: float) -> None:
        """|Kc|_F from sum (K_ij - r_i - r_j + g)^2 for any approximate row means r: the correction below is exact.

        M = K - r 1' - 1 r' + g 11' has HMH = Kc and, with a = M 1 / n,
        |M|^2 = |HMH|^2 + 2 n |a - mean a|^2 + n |mean a 1|^2.
        So nothing cancels unless r is inaccurate: r from float32 is, where K is nearly constant.

        Rounding of the square, with |K| for |K|_F: the entries of M err by a matrix of norm at most e = 8 u |K|, so
        |M|^2 by 2 |M| e + e^2. The sum of row i of K errs by rounding_factor(n) u sqrt(n) |K_i|. So a errs by at most
        f = (rounding_factor(n) + 8) u |K| / sqrt(n), and the terms subtracted from |M|^2 by 2 n (2 |a| f + f^2).
        """
        n = self.n
        before = self.row_means if len(self.row_means) else np.zeros(n)
        a = sums / n - before - before.mean() + self.grand_mean
        off = 2 * n * float(np.sum((a - a.mean()) ** 2)) + (n * float(a.mean())) ** 2
        means_were_exact = self._means_in_float64
        self._set_means(sums)
        self._means_in_float64 = True
        r, g = self.row_means, self.grand_mean
        spread = 2 * n * float(np.sum((r - g) ** 2))
        square = max(squares - off, 0.0)
        # 1 + 1e-8: the rounding of this sum of squares, and of ``square`` over |K|^2
        whole = float(np.sqrt(square + spread + (n * g) ** 2)) * (1 + 1e-8)
        entry = 8 * UNIT * whole
        mean = (rounding_factor(n) + 8.0) * UNIT * whole / np.sqrt(n)
        size = float(np.linalg.norm(a))
        of_means = 2 * n * (2 * size + mean) * mean
        error = rounding_factor(n) * UNIT * squares + (2 * np.sqrt(squares) + entry) * entry
        self.norm, self.whole = float(np.sqrt(square)), whole
        self.norm_bound = float(np.sqrt(square + error + of_means)) + n * self.matrix.entry_error
        self.norm_wanting = bool(not means_were_exact and of_means > error)

    # bounds on the matrix -------------------------------------------------------------------------------------

    @property
    def size(self) -> float:
        """Bound on |K|_F: measured, or the trace of a semidefinite matrix; infinite where neither is known."""
        known = self.matrix.positive_semidefinite and self.matrix.trace is not None
        return min(self.whole, self.matrix.trace or 0.0) if known else self.whole

    def estimated_size(self, theta: np.ndarray) -> float:
        """An estimate of |K|_F from its mean and the Ritz values, where no bound is known."""
        return abs(self.n * self.grand_mean) + float(np.linalg.norm(theta))

    @property
    def total(self) -> float | None:
        return None if self.trace is None else sum(self.trace)

    def noise(self, theta: np.ndarray) -> float:
        return 4.0 * rounding_factor(self.n) * UNIT * self.estimated_size(theta)

    def error(self, columns: int, passes: int | None = None) -> float:
        """`product_error` of the float64 products; ``passes``: that these columns are from, by default all so far."""
        matrix = self.matrix
        bound, passes = float(matrix.product.error_bound), passes or max(self.passes, 1)
        return product_error(self.n, columns, self.size, matrix.entry_error, bound, passes)

    def rounding_alone(self, columns: int) -> float:
        """The part of an interval's width that is rounding, without the error of approximate products."""
        return 2 * product_error(self.n, columns, self.size, self.matrix.entry_error, 0.0, max(self.passes, 1))

    @property
    def trace(self) -> tuple[float, float] | None:
        """tr Kc = tr K - 1'K1 / n and a bound on its rounding."""
        if self.matrix.trace is None or not len(self.row_means):
            return None
        error = self.error(1, passes=1)
        if not np.isfinite(error):
            return None
        # values of the diagonal err as well as the mean of all
        error += self.n * self.matrix.entry_error + rounding_factor(self.n) * UNIT * abs(self.matrix.trace)
        return self.matrix.trace - self.n * self.grand_mean, error

    def info(self, columns: int) -> MatrixInfo:
        return MatrixInfo(self.trace if self.matrix.positive_semidefinite else None, self.norm_bound)

    @property
    def lowest(self) -> float | None:
        if self.matrix.positive_semidefinite:
            return 0.0
        return None if self.norm_bound is None else -self.norm_bound

    def expected_sums(self) -> tuple[float | None, float | None]:
        trace = None
        if self.matrix.positive_semidefinite and self.matrix.trace is not None and len(self.row_means):
            trace = self.matrix.trace - self.n * self.grand_mean
        return trace, self.norm


class InFloat32(Operator):
    """The same matrix in float32, for searching."""

    centred, certain, share = True, False, 0.5

    def __init__(self, products: CentredProducts):
        self.products, self.n, self.n_threads = products, products.n, products.n_threads
        self.passes = 0

    def multiply(self, X: np.ndarray) -> np.ndarray:
        self.passes += 1
        return self.products.multiply_in_float32(X, self.measures)

    def error(self, columns: int) -> float:
        """Infinite where the values are not kept."""
        sums = self.products.matrix.sums
        if sums is None:
            return np.inf
        return float(np.sqrt(columns)) * sums.unit_error + self.products.error(columns, self.passes)

    @property
    def size(self) -> float:
        return self.products.size

    def info(self, columns: int) -> MatrixInfo:
        """Nothing where the values are not kept: the row means are then those of float32."""
        return NOTHING_KNOWN if self.products.matrix.sums is None else self.products.info(columns)

    def expected_sums(self) -> tuple[float | None, float | None]:
        return self.products.expected_sums()

    def noise(self, theta: np.ndarray) -> float:
        """Rounding of float32 tiles: relative to |K|, not to |Kc|."""
        return 8.0 * UNIT32 * max(self.products.estimated_size(theta), float(theta[0]))


class MomentOperator(Operator):
    """The centred second moment of a feature map, semidefinite up to a known error.

    Parameters
    ----------
    product : callable
        U (n, k) -> C U.
    n : int
    trace, norm : float
        tr C; upper bound on |C|_F.
    product_error : float
        Bound on |computed C u - C u| / |u|.
    indefinite : float
        Distance (in norm) to a semidefinite matrix whose trace and mean it shares.
    left_out : float
        Residual trace of the map, added to the trace to which a fraction refers.
    n_threads : int
    """

    def __init__(
        self,
        product: Callable[[np.ndarray], np.ndarray],
        n: int,
        trace: float,
        norm: float,
        product_error: float,
        indefinite: float = 0.0,
        left_out: float = 0.0,
        n_threads: int = 1,
    ):
        self.product, self.n, self.trace, self.norm, self.product_error = product, n, trace, norm, product_error
        self.indefinite, self.left_out, self.n_threads = indefinite, left_out, n_threads

    def multiply(self, X: np.ndarray) -> np.ndarray:
        return np.array(self.product(X), order="F")

    def error(self, columns: int) -> float:
        return float(np.sqrt(columns)) * (self.product_error + 8.0 * UNIT * self.norm)

    @property
    def size(self) -> float:
        return self.norm

    @property
    def total(self) -> float:
        return self.trace + self.left_out

    def info(self, columns: int) -> MatrixInfo:
        """The trace is that of the semidefinite matrix nearby, from which each Ritz value differs by ``indefinite``."""
        rounding = 8.0 * rounding_factor(self.n) * UNIT * self.trace
        return MatrixInfo((self.trace, rounding + (columns + 4.0) * self.indefinite), self.norm)

    @property
    def lowest(self) -> float:
        return -self.indefinite - self.product_error

    def expected_sums(self) -> tuple[float | None, float | None]:
        return self.trace, self.norm

    def noise(self, theta: np.ndarray) -> float:
        return 4.0 * rounding_factor(self.n) * UNIT * float(theta[0])

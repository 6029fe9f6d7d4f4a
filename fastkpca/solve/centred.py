"""The centred kernel matrix H K H, multiplied pass by pass, and its means, trace and norms, which the passes bring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.protocol import NormPass
from ..base.rounding import UNIT, rounding_factor
from ..products.vectors import with_ones
from .basis import without_means
from .certificate import MatrixInfo, product_error
from .costs import Expenses
from .task import KernelMatrix

__all__ = ["CentredProducts"]


MOST_SPREAD = 16.0
"""Sum of squares over that of the centred matrix, up to which row means need not be known to measure the norm."""


@dataclass(frozen=True)
class MeasuredNorm:
    """Frobenius norms from one pass over the values.

    Attributes
    ----------
    centred : float
        |Kc|_F.
    square_error : float
        Bound on the rounding of its square.
    whole : float
        Bound on |K|_F.
    cancelled : bool
        The row means were too inaccurate: another pass would give a better norm.
    """

    centred: float
    square_error: float
    whole: float
    cancelled: bool


class CentredProducts:
    """H K V with the mean of each column removed; V is orthogonal to ones, so H K V = H K H V."""

    def __init__(self, matrix: KernelMatrix, expenses: Expenses):
        self.matrix, self.expenses = matrix, expenses
        self.n = matrix.n
        self.row_means = np.empty(0)
        """Of K; empty until a pass has brought the row sums."""
        self.grand_mean = 0.0
        self.norm: MeasuredNorm | None = None
        self.estimated_norm: float | None = None
        """|Kc|_F from float32, for planning only."""
        self._means_in_float64 = False
        self.search_columns = 0
        """Of all products in float32."""
        if matrix.measured is not None:
            self._begin(matrix.measured, matrix.about)

    def _begin(self, measured: NormPass, about: float) -> None:
        self.row_means, self.grand_mean = np.full(self.n, about), about
        self._set_norm(measured.row_sums, measured.centred_square)
        assert self.norm is not None
        self.estimated_norm = self.norm.centred
        if measured.centred_square > MOST_SPREAD * self.norm.centred**2:
            self.norm = None  # a pass that knows the means will lose less

    # passes ----------------------------------------------------------------------------------------------------

    def product_in_float32(self, X: np.ndarray, want_norm: bool) -> np.ndarray:
        """H K X in float32; row sums ride along as one more column of the first pass, the norm with a later one."""
        product = self.matrix.search_product
        assert product is not None
        first = len(self.row_means) == 0
        U = (with_ones(X) if first else X).astype(np.float32, order="C")
        if want_norm and not first and product.gives_norm:
            Y, _, square, _ = product.pass_with_norm(U, self.row_means, self.grand_mean)
            self.estimated_norm = float(np.sqrt(max(float(square), 0.0)))
        else:
            Y = product.matmat(U)
        del U
        self.expenses.count_pass(search=True)
        self.search_columns += X.shape[1]
        if first:
            self._set_means(Y[:, -1].astype(np.float64))
            Y = Y[:, :-1]
        return without_means(Y, self.matrix.n_threads)

    def exact(self, X: np.ndarray, want_norm: bool) -> np.ndarray:
        """H K X in float64, with row sums (first time) and the Frobenius norm (where asked for) of the same tiles."""
        product = self.matrix.product
        if want_norm and len(self.row_means) and product.gives_norm:
            Y, sums, square, _ = product.pass_with_norm(X, self.row_means, self.grand_mean)
            self._set_norm(np.asarray(sums, dtype=np.float64).ravel(), float(square))
        elif not self._means_in_float64:
            Y = product.matmat(with_ones(X))
            self._set_means(Y[:, -1])
            self._means_in_float64 = True
            Y = Y[:, :-1]
        else:
            Y = product.matmat(X)
        self.expenses.count_pass(search=False)
        return without_means(Y, self.matrix.n_threads)

    def _set_means(self, sums: np.ndarray) -> None:
        self.row_means = sums / self.n
        self.grand_mean = float(self.row_means.mean())

    def _set_norm(self, sums: np.ndarray, squares: float) -> None:
        """|Kc|_F from sum (K_ij - r_i - r_j + g)^2 for any approximate row means r: the correction below is exact.

        M = K - r 1' - 1 r' + g 11' has HMH = Kc, and |M|^2 = |HMH|^2 + 2 n |a - mean a|^2 + n |mean a 1|^2 with
        a = M 1 / n, so nothing cancels unless r is inaccurate: r from float32 is, where K is nearly constant.

        Rounding of the square, with |K| for |K|_F: the entries of M err by a matrix of norm at most e = 8 u |K|, so
        |M|^2 by 2 |M| e + e^2; a row of K sums to rounding_factor(n) u sqrt(n) |K_i|, so a errs by at most
        f = (rounding_factor(n) + 8) u |K| / sqrt(n), and what is taken off by 2 n (2 |a| f + f^2).
        """
        n = self.n
        a = sums / n - self.row_means - self.row_means.mean() + self.grand_mean
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
        error = (
            rounding_factor(n) * UNIT * squares
            + (2 * np.sqrt(squares) + entry) * entry
            + 2 * n * (2 * size + mean) * mean
        )
        cancelled = not means_were_exact and error > 1e-3 * square
        self.norm = MeasuredNorm(float(np.sqrt(square)), float(error), whole, bool(cancelled))

    # bounds on the matrix -------------------------------------------------------------------------------------

    @property
    def norm_wanting(self) -> bool:
        """The norm has not been measured, or not accurately."""
        return self.norm is None or self.norm.cancelled

    @property
    def norm_within_reach(self) -> bool:
        return self.norm_wanting and self.matrix.product.gives_norm

    @property
    def size(self) -> float:
        """Bound on |K|_F: measured, or the trace of a semidefinite matrix; infinite where neither is known."""
        candidates = [np.inf if self.norm is None else self.norm.whole]
        if self.matrix.positive_semidefinite and self.matrix.trace is not None:
            candidates.append(self.matrix.trace)
        return min(candidates)

    def estimated_size(self, theta: np.ndarray) -> float:
        """An estimate of |K|_F from its mean and the Ritz values, where no bound is known."""
        return abs(self.n * self.grand_mean) + float(np.linalg.norm(theta))

    def search_size(self, theta: np.ndarray) -> float:
        """The same of what products of the search round: of K - s, where they take a number off all values."""
        product = self.matrix.search_product
        if product is None or product.search_error is None:
            return self.estimated_size(theta)
        r, g, shift = self.row_means, self.grand_mean, product.search_error[1]
        spread = float(np.sqrt(2 * self.n) * np.linalg.norm(r - g))
        return self.n * abs(g - shift) + spread + float(np.linalg.norm(theta))

    def error(self, columns: int, passes: int | None = None) -> float:
        """`product_error` of the float64 products; ``passes``: that these columns are from, by default all so far."""
        matrix = self.matrix
        bound, passes = float(matrix.product.error_bound), passes or max(self.expenses.passes, 1)
        return product_error(self.n, columns, self.size, matrix.entry_error, bound, passes)

    @property
    def search_error(self) -> float:
        """Bound on the Frobenius norm of the error of all products of the search; infinite where none is known.

        Before a pass in float64 has measured the norm: an estimate.
        """
        centred = self.estimated_norm if self.norm is None else self.norm.centred
        product = self.matrix.search_product
        if product is None or product.search_error is None or centred is None:
            return np.inf
        relative, shift = product.search_error
        n, r, g = self.n, self.row_means, self.grand_mean
        # |K - s|_F^2, where K - g splits into the centred matrix, and row and column means
        square = centred**2 + 2 * n * float(np.sum((r - g) ** 2)) + (n * (g - shift)) ** 2
        square += 0.0 if self.norm is None else self.norm.square_error
        each = 1.01 * relative * float(np.sqrt(square))
        return float(np.sqrt(self.search_columns)) * each + self.error(self.search_columns)

    def rounding_alone(self, columns: int) -> float:
        """The part of an interval's width that is rounding, without the error of approximate products."""
        passes = max(self.expenses.passes, 1)
        return 2 * product_error(self.n, columns, self.size, self.matrix.entry_error, 0.0, passes)

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

    @property
    def norm_bound(self) -> float | None:
        """Upper bound on |Kc|_F from the computed one: its rounding, and that of the entries."""
        if self.norm is None:
            return None
        return float(np.sqrt(self.norm.centred**2 + self.norm.square_error)) + self.n * self.matrix.entry_error

    @property
    def info(self) -> MatrixInfo:
        return MatrixInfo(self.trace if self.matrix.positive_semidefinite else None, self.norm_bound)

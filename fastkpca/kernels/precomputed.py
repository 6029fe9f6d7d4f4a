"""A precomputed Gram matrix, as a kernel on row indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..base.checks import check_flag
from ..base.protocol import Summary
from ..base.rounding import EPS, UNIT, factorisation_error, unit_roundoff
from ..errors import DistancesWarning, KernelParameterError, warn_caller
from ..rows.convert import as_rows
from .kernel import Kernel

MOST_PROVED = 8192
"""Order up to which a matrix declared semidefinite is proved to be; of a larger one, a submatrix of this order."""
COARSEST_ROUNDING = 1e-3
"""Error of an entry, over the largest one, up to which a negative eigenvalue counts as rounding."""
CHECKED_ROWS = 512
"""Rows of the submatrix whose eigenvector starts the search for the lowest eigenvalue."""
TRIANGLE_ROWS = 48
"""Rows of which a matrix with a zero diagonal is tried for the triangle inequality."""


class Precomputed(Kernel):
    """Precomputed kernel: X is the Gram matrix itself.

    ``kpca(K, "precomputed")`` takes the symmetric (N, N) matrix of the training rows, and
    ``kpca_project(model, K_new)`` the (m, N) matrix between new and training rows.

    Parameters
    ----------
    semidefinite : bool
        Declares that the matrix is positive semidefinite, up to rounding of its entries, and has it checked. Intervals
        then rest on bounds for semidefinite matrices: they are certain, and need fewer passes. Up to 8192 rows the
        check is a proof, by a Cholesky factorisation of the whole matrix (N^3 / 3 operations). Of more rows it is the
        matrix of 8192 of them, spread evenly, and nothing is proved about the whole. Default: not assumed.

    Notes
    -----
    The matrix is an array, a data frame or a sparse matrix (which stays sparse) of real numbers.

    A matrix whose two halves differ by rounding (at most 100 eps of its type times its largest entry) is accepted;
    values, components and intervals are then those of (K + K') / 2.

    Entries that are rounded, to single precision or to a few decimals, make small eigenvalues negative. Of a matrix
    that is declared semidefinite intervals that rest on its trace are then wider, by N times what bounds these. Beyond
    what rounding to about three digits does, 2 sqrt(N) / 1000 times the largest entry, the matrix is refused.
    """

    api_version = 1
    translation = None
    by_number = True
    knows_diagonal = False
    parameters = {"semidefinite": False}

    semidefinite: bool
    matrix: Any = None
    """An array, or compressed sparse rows."""
    largest: float | None = None
    """|K_ij| at most, of a square matrix."""
    mixed: bool = False
    """True if the two halves differ, so that values are those of (K + K') / 2."""

    def check(self) -> None:
        self.__dict__["semidefinite"] = check_flag(self.semidefinite, "semidefinite")

    @property
    def positive_semidefinite(self) -> bool:
        return self.semidefinite

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        K = _matrix(X)
        bound = Precomputed(semidefinite=self.semidefinite)
        if Y is None:
            if K.shape[0] != K.shape[1]:
                raise ValueError(
                    f"a precomputed Gram matrix must be square; found shape {K.shape}: give the values between all "
                    "pairs of training rows, those of new rows go to what projects or predicts"
                )
            largest, difference = _check_symmetric(K)
            _warn_of_distances(K, largest)
            bound.__dict__.update(largest=largest, mixed=difference > 0.0)
            if self.semidefinite:
                bound.__dict__["below_zero"] = _below_zero(K, largest)
        else:
            if K.shape[1] != len(Y):
                hint = "; its transpose has" if K.shape[0] == len(Y) else ""
                raise ValueError(
                    f"a precomputed matrix of new rows must have one column for each of the {len(Y)} training rows; "
                    f"found shape {K.shape}{hint}"
                )
            for i, rows in _strips(K):
                _refuse_not_finite(rows, i, "matrix of new rows")
        bound.__dict__["matrix"] = K
        return bound, np.arange(K.shape[0], dtype=np.float64)[:, None]

    def unbound(self) -> Kernel:
        """The kernel that a model keeps: without the matrix."""
        return Precomputed(semidefinite=self.semidefinite)

    def _entries(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        if self.matrix is None:
            raise KernelParameterError("precomputed: no matrix is bound; pass the Gram matrix itself in place of X")
        rows, columns = X[:, 0].astype(np.intp), Y[:, 0].astype(np.intp)
        if _consecutive(rows) and _consecutive(columns):  # a slice: no copy by index
            return dense(self.matrix[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
        return _submatrix(self.matrix, rows, columns)

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        K = np.array(self._entries(X, Y), dtype=X.dtype, order="C")
        if self.mixed:
            K += self._entries(Y, X).T
            K *= X.dtype.type(0.5)
        return K

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        index = X[:, 0].astype(np.intp)
        assert self.matrix is not None
        values = self.matrix.diagonal()[index] if sp.issparse(self.matrix) else self.matrix[index, index]
        return np.asarray(values, dtype=np.float64)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        if self.matrix is None:
            return 0.0
        if self.largest is None:
            return None
        # values are rounded to the tiles' type, and so is the sum of the two halves
        kind = self.matrix.dtype.kind
        held = self.largest <= 2.0**53 if kind in "iu" else np.can_cast(self.matrix.dtype, np.float64)
        exact = held and np.dtype(dtype) == np.float64 and not self.mixed
        return 0.0 if exact else 4.0 * unit_roundoff(dtype) * self.largest

    def value_bound(self, data: Summary) -> float | None:
        return self.largest


def _matrix(X: Any) -> Any:
    """The matrix as an array or compressed sparse rows."""
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise ValueError(f"a precomputed Gram matrix must have two dimensions; found shape {shape}")
    source = as_rows(X, purpose="the kernel 'precomputed'", missing=True).source
    return source if isinstance(source, np.ndarray) or sp.issparse(source) else source[0 : source.shape[0]]


def dense(part: Any) -> Any:
    return part.toarray() if sp.issparse(part) else part


def _submatrix(K: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return dense(K[rows][:, columns]) if sp.issparse(K) else K[np.ix_(rows, columns)]


def _evenly(n: int, most: int) -> np.ndarray:
    """Row numbers, at most ``most`` of n, spread evenly."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def _below_zero(K: Any, largest: float) -> float:
    """A proved bound on how far below zero an eigenvalue of (K + K') / 2 lies; ValueError where that is no rounding.

    A Cholesky factorisation of A + t I that ends proves A >= -t up to its backward error (``factorisation_error``).
    Entries that are rounded by e move eigenvalues by about 2 sqrt(n) e.
    """
    if not largest > 0.0:
        return 0.0
    n = K.shape[0]
    index = _evenly(n, MOST_PROVED)
    m = len(index)
    A = np.array(dense(K) if m == n else _submatrix(K, index, index), dtype=np.float64)
    A += A.T.copy()
    A *= 0.5
    t, most = 4.0 * m * UNIT * largest, 2.0 * np.sqrt(m) * COARSEST_ROUNDING * largest
    lowest = None
    while True:
        B = A.copy()
        B.flat[:: m + 1] += t
        diagonal = float(np.abs(B.diagonal()).max())
        try:
            scipy.linalg.cholesky(B, lower=True, overwrite_a=True, check_finite=False)
            return t + factorisation_error(m, UNIT) * diagonal
        except np.linalg.LinAlgError:
            if lowest is None:  # that of a part is no lower (interlacing), and grows with the root of its size
                part = _evenly(m, CHECKED_ROWS)
                lowest = float(np.linalg.eigvalsh(A[np.ix_(part, part)])[0])
                t = max(t, -0.5 * lowest * np.sqrt(m / len(part)))
            if t >= most or -lowest > most:
                break
            t = min(2.0 * t, most)
    t = max(t, -lowest)
    raise ValueError(
        f"the precomputed matrix{'' if m == n else f' of {m} of the rows'} is not positive semidefinite: it has an "
        f"eigenvalue below {-t:.2g}, which is more than rounding of its entries; take its semidefinite part, "
        f"w, V = np.linalg.eigh(K{'.toarray()' * sp.issparse(K)}); K = (V * np.maximum(w, 0)) @ V.T{_OF_DISTANCES}"
    )


_OF_DISTANCES = (
    "; of distances D take K = np.exp(-((D / np.median(D)) ** 2)), which is semidefinite where they are Euclidean"
)


def _warn_of_distances(K: Any, largest: float) -> None:
    """Warn of a matrix with a zero diagonal, and roots of its entries that keep the triangle inequality.

    So do distances, and squared Euclidean ones. The weights of a graph do not: rows without an edge have neighbours in
    common.
    """
    if K.shape[0] < 3 or not largest > 0.0 or np.any(K.diagonal()):
        return
    index = _evenly(K.shape[0], TRIANGLE_ROWS)
    part = np.asarray(_submatrix(K, index, index), dtype=np.float64)
    if part.min() < 0.0 or np.count_nonzero(part) < len(part) * (len(part) - 1):
        return
    root = np.sqrt(part)
    if (root[:, None, :] <= (root[:, :, None] + root[None, :, :]) * (1.0 + 1e-6)).all():
        warn_caller(
            "the precomputed matrix has a zero diagonal, and its entries are like distances: a kernel matrix is "
            "largest where rows are alike" + _OF_DISTANCES,
            DistancesWarning,
        )


def _consecutive(index: np.ndarray) -> bool:
    return len(index) > 0 and index[-1] - index[0] == len(index) - 1 and bool((np.diff(index) == 1).all())


def _strips(K: Any) -> Any:
    """(number of the first row, float64 rows) of strips of a few MB."""
    step = min(1024, max(64, (1 << 18) // max(1, K.shape[1])))
    for i in range(0, K.shape[0], step):
        yield i, np.asarray(dense(K[i : i + step]), dtype=np.float64)


def _refuse_not_finite(rows: np.ndarray, first: int, which: str) -> None:
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        word = "NaN" if np.isnan(rows[row, column]) else "infinity"
        raise ValueError(
            f"the precomputed {which} contains {word} (first at row {first + row}, column {column}); impute it"
        )


def _check_symmetric(K: Any) -> tuple[float, float]:
    """The largest |entry|, and the largest difference of the two halves: refused where it is more than rounding."""
    largest, worst, where = 0.0, 0.0, (0, 0)
    transposed = K.T.tocsr() if sp.issparse(K) else K.T
    for i, rows in _strips(K):
        _refuse_not_finite(rows, i, "Gram matrix")
        largest = max(largest, float(rows.max(initial=0.0)), -float(rows.min(initial=0.0)))
        difference = np.abs(rows - dense(transposed[i : i + len(rows)]))
        row, column = divmod(int(difference.argmax()), K.shape[1])
        if difference[row, column] > worst:
            worst, where = float(difference[row, column]), (i + row, column)
    eps = 2.0 * unit_roundoff(K.dtype) if K.dtype.kind == "f" else EPS
    if worst > 100 * eps * largest:
        raise ValueError(
            f"the precomputed Gram matrix is not symmetric: entries ({where[0]}, {where[1]}) and ({where[1]}, "
            f"{where[0]}) differ by {worst:.3g}; use (K + K.T) / 2 if that is what you mean"
        )
    return largest, worst

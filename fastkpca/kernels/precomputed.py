"""A precomputed Gram matrix, as a kernel on row indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ..base.checks import check_flag
from ..base.protocol import Summary
from ..base.rounding import EPS, UNIT, factorisation_error, unit_roundoff
from ..errors import KernelParameterError
from .kernel import Kernel

MOST_PROVED = 8192
"""Rows up to which a matrix that is declared semidefinite is proved to be; of a larger one, so many of its rows."""


class Precomputed(Kernel):
    """Precomputed kernel: X is the Gram matrix itself.

    ``kpca(K, "precomputed")`` takes the symmetric (N, N) matrix of the training rows, and
    ``kpca_project(model, K_new)`` the (m, N) matrix between new and training rows.

    Parameters
    ----------
    semidefinite : bool
        Declares that the matrix is positive semidefinite, up to rounding of its entries, and has it checked. Intervals
        then rest on bounds for semidefinite matrices: they are certain, and need fewer passes. Up to 8192 rows the
        check is a proof, by a Cholesky factorisation of the whole matrix (N^3 / 3 operations); of more rows it is the
        matrix of 8192 of them, spread evenly, and the rest is taken at your word. Default: not assumed.

    Notes
    -----
    A matrix whose two halves differ by rounding (at most 100 eps of its type times its largest entry) is accepted;
    values, components and intervals are then those of (K + K') / 2.
    """

    api_version = 1
    translation = None
    by_number = True
    knows_diagonal = False
    parameters = {"semidefinite": False}

    semidefinite: bool
    matrix: np.ndarray | None = None
    largest: float | None = None
    """|K_ij| at most, of a square matrix."""
    mixed: bool = False
    """Whether the two halves differ, so that values are those of (K + K') / 2."""
    below_zero: float = 0.0
    """Of a matrix that is declared semidefinite: it is that with this added to its diagonal."""

    def check(self) -> None:
        self.__dict__["semidefinite"] = check_flag(self.semidefinite, "semidefinite")

    def get_parameters(self) -> dict[str, Any]:
        return {"semidefinite": True} if self.semidefinite else {}  # as files have it that are older than the parameter

    @property
    def positive_semidefinite(self) -> bool:
        return self.semidefinite

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        K = np.asarray(X)
        if K.dtype.kind not in "fiub":
            found = f"dtype {K.dtype}" if K.ndim else f"an object of type {type(X).__name__}; give an array"
            raise TypeError(f"a precomputed Gram matrix must hold real numbers; found {found}")
        if K.ndim != 2:
            raise ValueError(f"a precomputed Gram matrix must have two dimensions; found shape {K.shape}")
        bound = Precomputed(semidefinite=self.semidefinite)
        if Y is None:
            if K.shape[0] != K.shape[1]:
                raise ValueError(f"a precomputed Gram matrix must be square; found shape {K.shape}")
            largest, difference = _check_symmetric(K)
            bound.__dict__.update(largest=largest, mixed=difference > 0.0)
            if self.semidefinite:
                bound.__dict__["below_zero"] = _below_zero(K, largest)
        elif K.shape[1] != len(Y):
            raise ValueError(
                f"a precomputed matrix for projecting must have one column for each of the {len(Y)} training rows; "
                f"found shape {K.shape}"
            )
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
            return self.matrix[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        return self.matrix[np.ix_(rows, columns)]

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        K = np.array(self._entries(X, Y), dtype=X.dtype, order="C")
        if self.mixed:
            K += self._entries(Y, X).T
            K *= X.dtype.type(0.5)
        return K

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        index = X[:, 0].astype(np.intp)
        assert self.matrix is not None
        return np.asarray(self.matrix[index, index], dtype=np.float64)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        if self.matrix is None:
            return 0.0
        if self.largest is None:
            return None
        # values are rounded to the tiles' type, and so is the sum of the two halves
        kind = self.matrix.dtype.kind
        held = self.largest <= 2.0**53 if kind in "iu" else np.can_cast(self.matrix.dtype, np.float64)
        exact = held and np.dtype(dtype) == np.float64 and not self.mixed
        # intervals hold for the matrix as it is, and for the nearest semidefinite one
        return self.below_zero + (0.0 if exact else 4.0 * unit_roundoff(dtype) * self.largest)

    def value_bound(self, data: Summary) -> float | None:
        return self.largest


def _below_zero(K: np.ndarray, largest: float) -> float:
    """A proved bound on how far below zero an eigenvalue of (K + K') / 2 lies; ValueError where that is no rounding.

    A Cholesky factorisation of A + t I that ends proves A >= -t up to its backward error (``factorisation_error``).
    Entries that are rounded by e move eigenvalues by n e.
    """
    n = len(K)
    m = min(n, MOST_PROVED)
    index = np.linspace(0, n - 1, m).astype(np.intp)
    unit = max(unit_roundoff(K.dtype), UNIT) if K.dtype.kind == "f" else UNIT
    for steps in (4.0 * m * UNIT, 2.0 * np.sqrt(m) * unit, 100.0 * m * unit):
        t = steps * largest
        A = np.array(K if m == n else K[np.ix_(index, index)], dtype=np.float64)
        A += A.T.copy()
        A *= 0.5
        A.flat[:: m + 1] += t
        diagonal = float(np.abs(A.diagonal()).max())
        try:
            scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return t + factorisation_error(m, UNIT) * diagonal
    raise ValueError(
        f"semidefinite=True, and the matrix{'' if m == n else f' of {m} of the rows'} has an eigenvalue below "
        f"{-t:.2g}, which is no rounding of its entries; leave semidefinite out (distances D are no kernel matrix, "
        "-0.5 * D ** 2 is one after centring)"
    )


def _consecutive(index: np.ndarray) -> bool:
    return len(index) > 0 and index[-1] - index[0] == len(index) - 1 and bool((np.diff(index) == 1).all())


def _check_symmetric(K: np.ndarray) -> tuple[float, float]:
    """The largest |entry|, and the largest difference of the two halves: refused where it is more than rounding."""
    step = min(1024, max(64, (1 << 18) // max(1, len(K))))  # a few MB, whatever the matrix
    largest = 0.0
    worst, where = 0.0, (0, 0)
    for i in range(0, len(K), step):
        rows = np.asarray(K[i : i + step], dtype=np.float64)
        if not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0]
            word = "NaN" if np.isnan(rows[row, column]) else "infinity"
            raise ValueError(f"the precomputed Gram matrix contains {word} (first at row {i + row}, column {column})")
        largest = max(largest, float(rows.max(initial=0.0)), -float(rows.min(initial=0.0)))
        difference = rows - K[:, i : i + step].T
        np.abs(difference, out=difference)
        if difference.max(initial=0.0) > worst:
            worst = float(difference.max())
            row, column = np.unravel_index(int(difference.argmax()), difference.shape)
            where = (i + int(row), int(column))
    eps = 2.0 * unit_roundoff(K.dtype) if K.dtype.kind == "f" else EPS
    if worst > 100 * eps * largest:
        raise ValueError(
            f"the precomputed Gram matrix is not symmetric: entries ({where[0]}, {where[1]}) and ({where[1]}, "
            f"{where[0]}) differ by {worst:.3g}; use (K + K.T) / 2 if that is what you mean"
        )
    return largest, worst

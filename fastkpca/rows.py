"""Where rows come from: one view over arrays, memory maps and sparse matrices, read tile by tile.

Nothing is copied whole: a tile is converted to float64 and shifted when it is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from . import execute
from ._core import moments as _moments
from .protocol import Summary

__all__ = ["Rows", "summarize"]

SAMPLE_ROWS = 4096
MAX_COVARIANCE = 1024
"""Columns up to which a summary has their covariance: beyond, it would cost more than most of what it could decide."""


class Rows:
    """N rows of d numbers, minus a shift; ``source`` is a 2-D array, a memory map or a CSR matrix."""

    def __init__(self, source: Any, shift: np.ndarray | None = None):
        self.source = source.tocsr() if sp.issparse(source) else source
        self.n_samples, self.n_features = (int(n) for n in source.shape)
        self.dtype = np.dtype(source.dtype).newbyteorder("=")
        self.shift = None if shift is None or not np.any(shift) else np.asarray(shift, dtype=np.float64)

    def __len__(self) -> int:
        return self.n_samples

    def shifted(self, shift: np.ndarray | None) -> Rows:
        """The same source with this shift instead."""
        return Rows(self.source, shift)

    def _finish(self, part: Any) -> np.ndarray:
        if sp.issparse(part):
            part = part.toarray()
        if self.shift is not None:  # subtract in float64, before anything is rounded
            return np.subtract(part, self.shift, dtype=np.float64, order="C")
        return np.ascontiguousarray(part, dtype=np.float64)

    def tile(self, start: int, stop: int) -> np.ndarray:
        """Rows start to stop as a C-contiguous float64 array, shifted. Treat it as read-only: it may be a view."""
        return self._finish(self.source[start:stop])

    def take(self, index: np.ndarray) -> np.ndarray:
        """The rows of these numbers, as ``tile``."""
        return self._finish(self.source[index])

    def all(self) -> np.ndarray:
        """Every row at once, for routes that are in-memory by nature."""
        return self.tile(0, self.n_samples)


def summarize(rows: Rows, *, shift: bool, rng: np.random.Generator, n_threads: int = 1) -> tuple[Rows, Summary]:
    """One pass (a second, cheap one for the radius where the rows are shifted): (shifted rows, their Summary).

    Raises ValueError that names the first row and column where a value is NaN or infinite.
    """
    n, d = rows.n_samples, rows.n_features
    rows = rows.shifted(None)
    step = execute.tile_rows(2 * d)
    n_tasks = -(-n // step)
    wide = d > MAX_COVARIANCE

    def first(i: int) -> tuple:
        X = rows.tile(i * step, min(n, (i + 1) * step))
        columns = np.array(X.T, order="C")  # reductions along contiguous memory: three times faster where d is small
        low, high = columns.min(axis=1), columns.max(axis=1)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            row, column = np.argwhere(~np.isfinite(X))[0]
            word = "NaN" if np.isnan(X[row, column]) else "infinity"
            raise ValueError(
                f"X contains {word} (first at row {i * step + row}, column {column}); "
                "drop or impute these rows before kpca"
            )
        mean, scatter = np.zeros((2, d)), np.zeros((0, 0) if wide else (d, d))
        with np.errstate(over="ignore", invalid="ignore"):
            square = 0.0 if shift else float(np.einsum("ij,ij->i", X, X).max())
            if wide:
                count, mean[0] = float(len(X)), columns.mean(axis=1)
            else:
                count = _moments.update(columns, None, 0.0, mean, scatter)
        return low, high, count, mean, scatter, square

    def join(a: tuple, b: tuple) -> tuple:
        if wide:
            count = a[2] + b[2]
            a[3][0] += (b[3][0] - a[3][0]) * (b[2] / count)
        else:
            count = _moments.merge(a[2], a[3], a[4], b[2], b[3], b[4])
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), count, a[3], a[4], max(a[5], b[5])

    low, high, _, (mean, _), scatter, square = execute.tree_reduce(first, n_tasks, join, n_threads=n_threads)
    shift_by = np.zeros(d)
    if shift:
        shift_by = mean
        rows = rows.shifted(mean)

        def second(i: int) -> float:
            X = rows.tile(i * step, min(n, (i + 1) * step))
            return float(np.einsum("ij,ij->i", X, X).max())

        square = execute.tree_reduce(second, n_tasks, max, n_threads=n_threads)
    index = np.arange(n) if n <= SAMPLE_ROWS else np.sort(rng.choice(n, SAMPLE_ROWS, replace=False))
    covariance = None if wide else (np.tril(scatter) + np.tril(scatter, -1).T) / n
    return rows, Summary(
        n_samples=n,
        n_features=d,
        dtype=rows.dtype,
        shift=shift_by,
        box=np.stack([low - shift_by, high - shift_by]),
        radius=float(np.sqrt(square)),
        covariance=covariance,
        mean=mean - shift_by,
        sample=rows.take(index),
        sample_index=index,
    )

"""What one look at the rows tells: their box, mean, covariance, radius, and a sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import moments as _moments
from ..base import parallel
from ..base.protocol import LARGEST, LEAST, Summary
from .sources import Source
from .view import EXACT, Rows, holds_more

__all__ = ["MAX_COVARIANCE", "SAMPLE_ROWS", "sample_index", "summarize"]

SAMPLE_ROWS = 4096
MAX_COVARIANCE = 1024
"""Columns up to which a summary has their covariance: beyond, it would cost more than most of what it could decide."""


def _near(rows: Rows) -> np.ndarray | None:
    """One of the rows to measure the others from, where float64 may not tell them apart; None where it does."""
    if not holds_more(rows.dtype):
        return None
    first = 0 if rows.weights is None else int(np.argmax(np.asarray(rows.weights) > 0))
    row = np.nan_to_num(rows.shifted(np.zeros(rows.n_features)).tile(first, first + 1), posinf=0.0, neginf=0.0)
    # rows that are far from a small whole number are far from it by what float64 keeps
    return row[0] if len(row) and (rows.dtype.kind == "f" or np.abs(row).max() >= EXACT) else None


def summarize(
    rows: Rows,
    *,
    shift: bool,
    rng: np.random.Generator,
    n_threads: int = 1,
    shift_by: np.ndarray | None = None,
    any_size: bool = False,
) -> tuple[Rows, Summary]:
    """One pass (a second, cheap one for the radius where the rows are shifted): (shifted rows, their Summary).

    ``shift_by`` is what to shift by instead of the mean; ``any_size``: the kernel scales the rows itself.

    With weights the mean and the covariance are weighted, rows of weight zero count in nothing, and the sample is one
    of the rows repeated so often.

    Raises ValueError that names the first row and column where a value is NaN or infinite, and where squares of the
    rows would leave the range of float64.
    """
    d = rows.n_features
    near = _near(rows) if shift else None
    rows = rows.shifted(np.zeros(d) if shift and near is None else near)
    step = parallel.tile_rows(2 * d)
    wide = d > MAX_COVARIANCE
    # passes over the rows of a cluster are dear: their sample comes with the first
    at_once = rows.distributed and rows.weights is None and near is None
    early = sample_index(rows, 0.0, rng) if at_once else np.zeros(0, dtype=np.intp)

    def first(rows: Rows, i: int) -> Any:  # a tuple, or None beyond the last row
        stop = (i + 1) * step
        X = rows.tile(i * step, min(rows.n_samples, stop) if rows.counted else stop)
        if len(X) == 0:
            return None
        columns = np.array(X.T, order="C")  # reductions along contiguous memory: three times faster where d is small
        low, high = columns.min(axis=1), columns.max(axis=1)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            row, column = np.argwhere(~np.isfinite(X))[0]
            word = "NaN" if np.isnan(X[row, column]) else "infinity"
            raise ValueError(
                f"X contains {word} (first at row {i * step + row}, column {column}); "
                "drop or impute these rows before kpca"
            )
        w = rows.tile_weights(i * step, i * step + len(X))
        if w is not None and not w.all():
            present = w > 0
            X, w = X[present], w[present]
            columns = np.array(X.T, order="C")
            low, high = columns.min(axis=1, initial=np.inf), columns.max(axis=1, initial=-np.inf)
        mean, scatter = np.zeros((2, d)), np.zeros((0, 0) if wide else (d, d))
        with np.errstate(over="ignore", invalid="ignore"):
            square = 0.0 if shift else float(np.einsum("ij,ij->i", X, X).max(initial=0.0))
            if len(X) == 0:
                count = 0.0
            elif wide:
                count = float(len(X)) if w is None else float(w.sum())
                mean[0] = columns.mean(axis=1) if w is None else columns @ w / count
            else:
                count = _moments.update(columns, w, 0.0, mean, scatter)
        a, b = np.searchsorted(early, (i * step, i * step + len(X)))
        return low, high, count, mean, scatter, square, X[early[a:b] - i * step]

    def join(a: tuple, b: tuple) -> tuple:
        if wide:
            count = a[2] + b[2]
            a[3][0] += (b[3][0] - a[3][0]) * (b[2] / count if count else 0.0)
        else:
            count = _moments.merge(a[2], a[3], a[4], b[2], b[3], b[4])
        drawn = np.concatenate([a[6], b[6]]) if len(b[6]) else a[6]
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), count, a[3], a[4], max(a[5], b[5]), drawn

    low, high, total, (mean, _), scatter, square, found = rows.reduce(
        first, step, join, n_threads=n_threads, stage="summary"
    )
    least = LEAST if shift_by is None else 0.0  # a shift that is given is that of other rows, which were looked at
    if not any_size:
        _check_size(low, high, 0.0 if shift else least, shifted=False)
    n = rows.n_samples
    index = early if len(early) else sample_index(rows, total, rng)
    sample: np.ndarray | None = found if len(early) else None
    if not shift:
        shift_by = np.zeros(d)
    else:
        origin = np.zeros(d) if near is None else near
        shift_by = mean + origin if shift_by is None else np.asarray(shift_by, dtype=np.float64)
        moved = shift_by - origin  # exact, or rounded by no more than the rows' extent allows
        low, high, mean = low - moved, high - moved, mean - moved
        if not any_size:
            _check_size(low, high, least, shifted=True)
        rows = rows.shifted(shift_by)
        drawn = index if isinstance(rows.source, Source) and sample is None else index[:0]

        def second(rows: Rows, i: int) -> tuple[float, np.ndarray]:
            start, stop = i * step, min(n, (i + 1) * step)
            X = rows.tile(start, stop)
            # a source is read in order: its sample comes with this pass
            a, b = np.searchsorted(drawn, (start, stop))
            squares = np.einsum("ij,ij->i", X, X)
            w = rows.tile_weights(start, stop)
            return float((squares if w is None else squares[w > 0]).max(initial=0.0)), X[drawn[a:b] - start]

        square, found = rows.reduce(
            second,
            step,
            lambda a, b: (max(a[0], b[0]), np.concatenate([a[1], b[1]]) if len(b[1]) else a[1]),
            n_threads=n_threads,
            stage="radius",
        )
        if sample is not None:
            sample = np.subtract(sample, shift_by, order="C") if np.any(shift_by) else sample
        elif len(drawn):
            sample = found
    covariance = None if wide else (np.tril(scatter) + np.tril(scatter, -1).T) / (n if rows.weights is None else total)
    return rows, Summary(
        n_samples=n,
        n_features=d,
        dtype=rows.dtype,
        shift=shift_by,
        box=np.stack([low, high]),
        radius=float(np.sqrt(square)),
        covariance=covariance,
        mean=mean,
        sample=rows.take(index) if sample is None else sample,
        sample_index=index,
    )


def _check_size(low: np.ndarray, high: np.ndarray, least: float, *, shifted: bool) -> None:
    """Distances and scalar products are sums of squares: refuse rows whose squares under- or overflow."""
    size = float(np.maximum(np.abs(low), np.abs(high)).max(initial=0.0))
    if size == 0.0 or not np.isfinite(size) or least <= size <= LARGEST:  # infinite: no row has a weight
        return
    raise ValueError(
        f"the largest number in X{', after subtracting the mean,' * shifted} is {size:.3g}; its square leaves the "
        f"range of float64, so it must lie between {LEAST:g} and {LARGEST:g}: multiply X by a power of ten"
    )


def sample_index(rows: Rows, total: float, rng: np.random.Generator, most: int = SAMPLE_ROWS) -> np.ndarray:
    """Numbers of the rows of a sample of at most this size, in order; none of weight zero. ``total``: of the weights.

    Few copies are all taken, and so are few rows. Of many, half are drawn by weight (systematically, so that a heavy
    row comes several times) and half whatever their weight, for a row whose weight outweighs all others says nothing
    of these.
    """
    n, w = rows.n_samples, rows.weights
    if w is None:
        return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    if n <= most:
        if total <= most and np.array_equal(w, np.rint(w)):
            return np.repeat(np.arange(n), np.asarray(w, dtype=np.intp))
        return np.flatnonzero(w)
    half = most // 2
    systematic = (np.arange(half) + rng.random()) / half
    uniform = np.sort(rng.choice(n, most - half, replace=False))
    return np.sort(np.concatenate([_by_weight(w, systematic * total), uniform[np.asarray(w[uniform]) > 0]]))


def _by_weight(w: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """The rows in which the running sum of the weights passes these marks."""
    found, before, step = np.zeros(len(marks), dtype=np.intp), 0.0, 1 << 16
    last = 0
    for start in range(0, len(w), step):
        part = np.asarray(w[start : start + step], dtype=np.float64)
        ends = before + np.cumsum(part)
        inside = (marks >= before) & (marks < ends[-1])
        found[inside] = start + np.searchsorted(ends, marks[inside], side="right")
        if ends[-1] > before:
            before, last = float(ends[-1]), start + int(np.flatnonzero(part)[-1])
    found[marks >= before] = last  # rounding of the sum
    return found

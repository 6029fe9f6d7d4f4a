"""Where rows come from: one view over arrays, sparse matrices and sources that are not in memory, read tile by tile.

Nothing is copied whole: a tile is converted to float64 and shifted when it is asked for. Integers of 64 bits and long
doubles hold more digits than float64: the shift is subtracted from all of them, and only the difference is rounded.

Rows may have weights: a whole number counts a row so many times, and zero leaves it out of the model (its score is
computed all the same).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import moments as _moments
from ..base import parallel
from ..base.protocol import LARGEST, LEAST, Summary
from .sources import Source, nearest_and_rest

__all__ = ["Rows", "sample_index", "summarize"]

SAMPLE_ROWS = 4096
MAX_COVARIANCE = 1024
"""Columns up to which a summary has their covariance: beyond, it would cost more than most of what it could decide."""


EXACT = 1 << 53
"""Up to here float64 holds every whole number."""


def holds_more(dtype: np.dtype) -> bool:
    """Whether the type has numbers with more digits than float64 keeps."""
    return dtype.itemsize >= 8 and (dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize > 8))


def _fits(values: np.ndarray) -> bool:
    """Whether all of these integers are such as float64 holds; of floats that takes a closer look."""
    return values.size == 0 or (values.dtype.kind != "f" and -EXACT <= values.min() and values.max() <= EXACT)


def _difference(values: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """values - shift, rounded once: the nearest float64 of each value, and then the rest, as Knuth's two-sum."""
    nearest, rest = nearest_and_rest(values)
    result = np.subtract(nearest, shift, order="C")
    with np.errstate(invalid="ignore"):  # infinity
        part = nearest - result
        rest += (nearest - (result + part)) + (part - shift)
    result += np.nan_to_num(rest, nan=0.0)
    return result


class Rows:
    """N rows of d numbers, minus a shift; ``source`` is a 2-D array, a memory map, a CSR matrix or a ``Source``.

    ``weights`` is an array (N,) of non-negative numbers, or None.

    Without a shift (None) rows are what they are: a number that float64 does not hold is refused when it is read. With
    one (zeros too) only differences count, and these are rounded.
    """

    def __init__(self, source: Any, shift: np.ndarray | None = None, weights: np.ndarray | None = None):
        self.source = source.tocsr() if sp.issparse(source) else source
        self._n = None if isinstance(source, Source) else int(source.shape[0])
        self.n_features = source.n_features if isinstance(source, Source) else int(source.shape[1])
        self.dtype = np.dtype(source.dtype).newbyteorder("=")
        self.shift = None if shift is None else np.asarray(shift, dtype=np.float64)
        self._offset = None if shift is None or not np.any(shift) else self.shift
        self.weights = weights

    @property
    def n_samples(self) -> int:
        """N; a source of unknown length is read once to count it."""
        if self._n is None:
            self._n = self.source.n_samples
        return self._n

    @property
    def counted(self) -> bool:
        """Whether N is known without reading."""
        return self._n is not None or self.source.counted

    @property
    def sequential(self) -> bool:
        """Rows can be read in order only: what needs them at random loads them."""
        return isinstance(self.source, Source) and self.source.sequential

    @property
    def distributed(self) -> bool:
        """Passes run elsewhere, on a scheduler of Dask's."""
        return getattr(self.source, "distributed", False)

    def __len__(self) -> int:
        return self.n_samples

    def reduce(
        self,
        task: Callable[[Rows, int], Any],
        span: int,
        combine: Callable[[Any, Any], Any],
        *,
        n_threads: int = 1,
        progress: parallel.Progress | None = None,
        stage: str,
        pack: Callable[[Any], Any] | None = None,
        unpack: Callable[[Any], Any] | None = None,
        alone: bool = False,
        size: int = 0,
    ) -> Any:
        """Combine task(rows, 0), task(rows, 1), ... along the fixed tree of ``execute.tree_reduce``.

        Task i reads rows i * span to (i + 1) * span, and only these, of the rows that it is *given* (these, or as many
        of them as it needs, on a worker); where the rows are not counted it returns None beyond the last. ``pack`` and
        ``unpack`` are for results that go elsewhere; ``alone``: one task at a time in a process;
        ``size``: bytes of a result, where that is much.
        """
        if self.distributed:
            found = self.source.reduce(
                self, task, span, combine, stage=stage, pack=pack, unpack=unpack, alone=alone, size=size
            )
            if progress is not None:
                progress(stage, 1, 1)
            return found
        n_tasks = -(-self.n_samples // span) if self.counted else None
        return parallel.tree_reduce(
            lambda i: task(self, i), n_tasks, combine, n_threads=n_threads, progress=progress, stage=stage
        )

    def shifted(self, shift: np.ndarray | None) -> Rows:
        """The same source with this shift instead."""
        return Rows(self.source, shift, self.weights)

    def weighted(self, weights: np.ndarray | None) -> Rows:
        """The same rows with these weights."""
        return Rows(self.source, self.shift, weights)

    def _finish(self, part: Any, *, fresh: bool = False) -> np.ndarray:
        """These rows of the source, dense and shifted; in place where ``fresh`` says that nobody else holds them."""
        if sp.issparse(part):
            part, fresh = part.toarray(), True
        if holds_more(part.dtype) and not _fits(part):
            if self._offset is not None:
                return _difference(part, self._offset)
            if self.shift is None:
                _refuse_rounding(part)
        if self._offset is not None:  # subtract in float64, before anything is rounded
            out = part if fresh and part.dtype == np.float64 and part.flags.c_contiguous else None
            return np.subtract(part, self._offset, out=out, dtype=np.float64, order="C")
        return np.ascontiguousarray(part, dtype=np.float64)

    def tile(self, start: int, stop: int) -> np.ndarray:
        """Rows start to stop as a C-contiguous float64 array, shifted. Treat it as read-only: it may be a view."""
        return self._finish(self.source[start:stop])

    def tile_weights(self, start: int, stop: int) -> np.ndarray | None:
        """The weights of these rows, float64, or None."""
        return None if self.weights is None else np.ascontiguousarray(self.weights[start:stop], dtype=np.float64)

    def tiles(self, step: int) -> Iterator[tuple[int, np.ndarray]]:
        """(number of the first row, tile), in order, for rows that need not be counted."""
        start = 0
        while not (self.counted and start >= self.n_samples):
            stop = min(self.n_samples, start + step) if self.counted else start + step
            tile = self.tile(start, stop)
            if len(tile):
                yield start, tile
            start += step

    def take(self, index: np.ndarray) -> np.ndarray:
        """The rows of these numbers, as ``tile``."""
        part = self.source[index]
        return self._finish(part, fresh=type(part) is np.ndarray and part.flags.owndata)

    def all(self) -> np.ndarray:
        """Every row at once, for routes that are in-memory by nature."""
        return self.tile(0, self.n_samples)

    def loaded(self) -> Rows:
        """These rows in memory, in their own type, where the source can be read in order only."""
        return Rows(self.source[0 : self.n_samples], self.shift, self.weights) if self.sequential else self

    def present(self) -> tuple[Rows, np.ndarray | None]:
        """(the rows of positive weight, their numbers); (these rows, None) where no weight is zero."""
        if self.weights is None or np.all(self.weights):
            return self, None
        index = np.flatnonzero(self.weights)
        return Rows(self.source[index], self.shift, np.asarray(self.weights)[index]), index


def _refuse_rounding(part: np.ndarray) -> None:
    rest = nearest_and_rest(part)[1]
    if rest.any():
        value = part[tuple(np.argwhere(rest)[0])]
        raise ValueError(
            f"X contains {value!s} of type {part.dtype}, which float64 would round, and the kernel depends on where "
            "zero lies; subtract an offset yourself, as in X - X[0], or round on purpose, X.astype(float)"
        )


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

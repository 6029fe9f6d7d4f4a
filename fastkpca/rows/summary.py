"""The summary of one pass over the rows: their box, mean, radius, and a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, isfinite, sqrt
from typing import Any

import numpy as np

from ..base.checks import Randomness
from ..base.protocol import MAX_ABS_VALUE, MIN_ABS_VALUE, Kernel, Summary
from ..base.rounding import EPS
from .view import MAX_INTEGER, Columns, Pass, Rows, holds_more, refuse_not_finite

SAMPLE_ROWS = 4096
"""Rows of the sample that maps and plans are made from."""


def _reference_row(rows: Rows) -> np.ndarray | None:
    """A row to subtract from all others first, where float64 may not tell them apart; None where it does."""
    if not holds_more(rows.dtype):
        return None
    first = 0 if rows.weights is None else int(np.argmax(np.asarray(rows.weights) > 0))
    row = np.nan_to_num(rows.shifted(np.zeros(rows.n_features)).tile(first, first + 1), posinf=0.0, neginf=0.0)
    # rows that are far from a small whole number are far from it by what float64 keeps
    return row[0] if len(row) and (rows.dtype.kind == "f" or np.abs(row).max() >= MAX_INTEGER) else None


@dataclass
class _RowSums:
    """Sums of the first pass over a group of rows."""

    box: np.ndarray  # (2, d): the lowest and the highest values
    count: float
    mean: np.ndarray  # (d,)
    squares: np.ndarray  # (d,): of the deviations from the mean, in sum; (0,) where they are not wanted
    square: float
    drawn: np.ndarray  # rows of the sample


class _FirstPass:
    """The first pass over the rows; ``index``: numbers of the rows that it takes as the sample.

    ``spreads``: sums of squared deviations are wanted.
    """

    def __init__(self, d: int, step: int, shift: bool, index: np.ndarray, spreads: bool):
        self.d, self.step, self.shift, self.index, self.spreads = d, step, shift, index, spreads

    def task(self, rows: Rows, i: int) -> _RowSums | None:
        """Summary of tile i; None beyond the last row."""
        start, stop = i * self.step, (i + 1) * self.step
        X = rows.tile(start, min(rows.n_samples, stop) if rows.counted else stop)
        if len(X) == 0:
            return None
        columns, box = self._columns(X)
        if not np.isfinite(box).all():
            refuse_not_finite(X, start, "X", "kpca")
        w = rows.tile_weights(start, start + len(X))
        if w is not None and not w.all():
            present = w > 0
            X, w = X[present], w[present]
            columns, box = self._columns(X)
        count = float(len(X)) if w is None else float(w.sum())
        square = 0.0 if self.shift else _longest(X)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _sums(columns, w) / (count or 1.0)
            squares = mean[:0]
            if self.spreads:
                # a mean far from zero is rounded: what that adds is taken off again (Chan, Golub and LeVeque 1983)
                apart = columns - mean[:, None]
                squares = np.maximum(_sums(apart**2, w) - _sums(apart, w) ** 2 / (count or 1.0), 0.0)
        drawn = X[:0]
        if len(self.index):
            a, b = self.index.searchsorted((start, start + len(X)))
            drawn = X[self.index[a:b] - start]
        return _RowSums(box, count, mean, squares, square, drawn)

    def _columns(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(X', its lowest and highest values): of few columns a copy, along which sums are three times faster."""
        columns, box = np.array(X.T, order="C") if len(X) > self.d else X.T, np.empty((2, self.d))
        columns.min(axis=1, initial=np.inf, out=box[0])
        columns.max(axis=1, initial=-np.inf, out=box[1])
        return columns, box

    def join(self, a: _RowSums, b: _RowSums) -> _RowSums:
        """Summary of the rows of both."""
        count = a.count + b.count
        apart, share = b.mean - a.mean, b.count / count if count else 0.0
        squares = a.squares + b.squares + (apart**2 * (a.count * share) if self.spreads else 0.0)
        drawn = np.concatenate([a.drawn, b.drawn]) if len(b.drawn) else a.drawn
        box = np.array([np.minimum(a.box[0], b.box[0]), np.maximum(a.box[1], b.box[1])])
        return _RowSums(box, count, a.mean + apart * share, squares, max(a.square, b.square), drawn)


def _sums(columns: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    return columns.sum(axis=1) if w is None else columns @ w


def _longest(X: np.ndarray) -> float:
    """|x|^2 of the longest row."""
    return float(np.einsum("ij,ij->i", X, X).max(initial=0.0))


def _largest_square(rows: Rows, step: int, index: np.ndarray, n_threads: int) -> tuple[float, np.ndarray]:
    """(|x|^2 of the longest row of positive weight, the rows of these numbers).

    A source may be read in order only, so the sample comes with this pass.
    """
    n = rows.n_samples

    def task(rows: Rows, i: int) -> tuple[float, np.ndarray]:
        start, stop = i * step, min(n, (i + 1) * step)
        X = rows.tile(start, stop)
        a, b = np.searchsorted(index, (start, stop))
        squares = np.einsum("ij,ij->i", X, X)
        w = rows.tile_weights(start, stop)
        return float((squares if w is None else squares[w > 0]).max(initial=0.0)), X[index[a:b] - start]

    def join(a: tuple[float, np.ndarray], b: tuple[float, np.ndarray]) -> tuple[float, np.ndarray]:
        return max(a[0], b[0]), np.concatenate([a[1], b[1]]) if len(b[1]) else a[1]

    return rows.reduce(Pass("radius", task, step, join), n_threads=n_threads)


def spread_rows(sample: np.ndarray, count: int) -> np.ndarray:
    """Rows of a sample (seeded, random), at most ``count``, spread evenly over it."""
    return sample if len(sample) <= count else sample[np.linspace(0, len(sample) - 1, count).astype(np.intp)]


def _early_sample(rows: Rows, reference: np.ndarray | None, randomness: Randomness) -> np.ndarray:
    """Numbers of the sample where it can be drawn before the rows are read: passes over the rows of a cluster are
    expensive.
    """
    if rows.distributed and rows.weights is None and reference is None:
        return sample_index(rows, 0.0, randomness)
    return np.zeros(0, dtype=np.intp)


def _like_rows(sample: np.ndarray, rows: Rows) -> np.ndarray:
    """The sample as it was read, shifted and scaled as the rows are."""
    if rows.shift is not None and np.any(rows.shift):
        sample = np.subtract(sample, rows.shift, order="C")
    return sample if rows.scale is None else sample / rows.scale


def _square_and_sample(
    rows: Rows, index: np.ndarray, sample: np.ndarray | None, square: float | None, n_threads: int
) -> tuple[float, np.ndarray]:
    """(|x|^2 of the longest row, the sample); ``square`` where it is known, ``sample`` where it was read already."""
    if rows.in_memory and rows.weights is None and rows.n_samples <= SAMPLE_ROWS:
        held = rows.hold()  # the sample is all rows, in their order
        return _longest(held) if square is None else square, held
    sample = None if sample is None else _like_rows(sample, rows)
    if square is not None:
        return square, rows.take(index) if sample is None else sample
    square, drawn = _largest_square(rows, rows.step, index if sample is None else index[:0], n_threads)
    return square, drawn if sample is None else sample


def summarize(
    rows: Rows,
    *,
    shift: bool,
    randomness: Randomness,
    n_threads: int = 1,
    shift_by: np.ndarray | None = None,
    scale: bool | np.ndarray = False,
    any_size: bool = False,
) -> tuple[Rows, Summary]:
    """One pass (a second, cheap one for the radius where the rows are shifted): (shifted rows, their Summary).

    ``randomness`` is for the sample of many rows. ``shift_by`` is what to shift by instead of the mean; ``scale``:
    what to divide the shifted rows by, or True for the standard deviations of the columns; ``any_size``: the kernel
    scales the rows itself.

    With weights the mean is weighted, rows of weight zero count in nothing, and the sample is one of the rows repeated
    so often.

    Raises ValueError that names the first row and column where a value is NaN or infinite, and where squares of the
    rows would leave the range of float64.
    """
    d, step = rows.n_features, rows.step
    reference = _reference_row(rows) if shift else None
    origin = np.zeros(d) if reference is None else reference
    rows = rows.framed(origin if shift else None, None)
    early = _early_sample(rows, reference, randomness)
    first = _FirstPass(d, step, shift, early, spreads=scale is True)
    sums: _RowSums = rows.reduce(Pass("summary", first.task, step, first.join), n_threads=n_threads)
    box, mean = sums.box, sums.mean
    # a shift that is given is that of other rows, which were summarised
    least = MIN_ABS_VALUE if shift_by is None else 0.0
    if not any_size:
        _check_size(box, 0.0 if shift else least, shifted=False)
    index, sample = (early, sums.drawn) if len(early) else (sample_index(rows, sums.count, randomness), None)
    if not shift:
        shift_by = np.zeros(d)
    else:
        shift_by = mean + origin if shift_by is None else np.asarray(shift_by, dtype=np.float64)
        moved = shift_by - origin  # exact, or rounded by no more than the rows' extent allows
        box, mean, unit = box - moved, mean - moved, None
        if scale is not False:
            unit = _spreads(sums) if scale is True else scale
            box, mean = box / unit, mean / unit
        if not any_size:
            _check_size(box, least, shifted=True)
        rows = rows.framed(shift_by, unit)
    square, sample = _square_and_sample(rows, index, sample, None if shift else sums.square, n_threads)
    return rows, Summary(
        n_samples=rows.n_samples,
        n_features=d,
        dtype=rows.dtype,
        shift=shift_by,
        box=box,
        radius=sqrt(square),
        mean=mean,
        sample=sample,
        sample_index=index,
    )


def summarize_for(
    kernel: Kernel, rows: Rows, *, centred: bool, scale: bool | np.ndarray = False, **options: Any
) -> tuple[Rows, Summary]:
    """``summarize`` with the shift that the kernel allows, or that goes with a ``scale``.

    ``centred``: only the centred matrix is used, so a kernel that merely keeps that one under a shift allows it too.
    """
    allowed = kernel.translation == "kernel" or (centred and kernel.translation is not None)
    shift = allowed or scale is not False
    return summarize(rows, shift=shift, scale=scale, any_size=kernel.scales_rows, **options)


def of_columns(data: Summary, columns: Columns) -> Summary:
    """The summary of some columns of the rows, each over its width; radii are bounds."""
    index, units = columns.index(data.n_features), columns.units(data.n_features)
    box = data.box[:, index] / units
    stretched = float((1.0 / units).max()) * (1.0 + 4.0 * EPS)
    corner = hypot(*np.abs(box).max(axis=0)) * (1.0 + 4.0 * len(index) * EPS)
    names = data.feature_names
    return replace(
        data,
        n_features=len(index),
        shift=data.shift[index] / units,
        box=box,
        radius=min(corner, data.radius * stretched),
        mean=data.mean[index] / units,
        sample=columns.of(data.sample),
        other_radius=None if data.other_radius is None else data.other_radius * stretched,
        feature_names=None if names is None else tuple(names[j] for j in index),
    )


def _spreads(sums: _RowSums) -> np.ndarray:
    """The standard deviation of each column, with N - 1; 1 for columns that are constant up to rounding."""
    spreads = np.sqrt(sums.squares / max(sums.count - 1.0, MIN_ABS_VALUE))
    constant = spreads <= 16 * EPS * np.abs(sums.box).max(axis=0)
    ranges = sums.box[1] - sums.box[0]
    tiny = np.flatnonzero(~(ranges >= MIN_ABS_VALUE) & (ranges > 0))
    if len(tiny):
        raise ValueError(
            f"column {tiny[0]} of X varies by {ranges[tiny[0]]:.3g}, and the squares of such numbers are not in the "
            "range of float64: standardize=True cannot scale it; multiply it by a power of ten, or leave it out"
        )
    return np.where(constant | ~np.isfinite(spreads), 1.0, spreads)


def _check_size(box: np.ndarray, least: float, *, shifted: bool) -> None:
    """Distances and scalar products are sums of squares: refuse rows whose squares under- or overflow."""
    size = float(np.abs(box).max(initial=0.0))
    if size == 0.0 or not isfinite(size) or least <= size <= MAX_ABS_VALUE:  # infinite: no row has a weight
        return
    raise ValueError(
        f"the largest number in X{', after subtracting the mean,' * shifted} is {size:.3g}; its square leaves the "
        f"range of float64, so it must lie between {MIN_ABS_VALUE:g} and {MAX_ABS_VALUE:g}: multiply X by a power "
        "of ten"
    )


def sample_index(rows: Rows, total: float, randomness: Randomness, limit: int = SAMPLE_ROWS) -> np.ndarray:
    """Numbers of the rows of a sample of at limit this size, in order; none of weight zero. ``total``: of the weights.

    All rows are taken where there are few, repeated by whole-number weights if these are few too. Of many rows, half
    the sample is drawn by weight (systematically: a heavy row comes several times), half without regard to weight: a
    row that outweighs all others says nothing about them.
    """
    n, w = rows.n_samples, rows.weights
    if n <= limit:
        if w is None:
            return np.arange(n)
        if total <= limit and np.array_equal(w, np.rint(w)):
            return np.repeat(np.arange(n), np.asarray(w, dtype=np.intp))
        return np.flatnonzero(w)
    rng = randomness.generator
    if w is None:
        return np.sort(rng.choice(n, limit, replace=False))
    half = limit // 2
    systematic = (np.arange(half) + rng.random()) / half
    uniform = np.sort(rng.choice(n, limit - half, replace=False))
    ends = np.cumsum(w, dtype=np.float64)  # a mark lies below the sum, and in a row of positive weight
    marked = np.searchsorted(ends, np.minimum(systematic * total, np.nextafter(ends[-1], 0.0)), side="right")
    return np.sort(np.concatenate([marked, uniform[np.asarray(w[uniform]) > 0]]))

"""View over arrays, sparse matrices and sources that are not in memory, read tile by tile.

Nothing is copied whole: a tile is converted to float64 and shifted when it is asked for. Integers of 64 bits and long
doubles hold more digits than float64: the shift is subtracted from all of them, and only the difference is rounded.

Rows may have weights: a row of the whole weight w counts w times, and one of weight zero is not part of the model (its
score is computed all the same).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from .._core.arrays import contiguous
from ..base import parallel
from ..base.rounding import UNIT
from .sources import Source, nearest_and_rest

__all__ = ["MAX_INTEGER", "Columns", "Pass", "Rows", "holds_more", "refuse_not_finite"]

MAX_INTEGER = int(np.reciprocal(UNIT))
"""2^53: float64 holds every whole number up to this one."""


def holds_more(dtype: np.dtype) -> bool:
    """True if the type has numbers with more digits than float64 keeps."""
    return dtype.itemsize >= 8 and (dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize > 8))


def _fits(values: np.ndarray) -> bool:
    """True if all of these integers are such as float64 holds; of floats each value is compared."""
    return values.size == 0 or (
        values.dtype.kind != "f" and -MAX_INTEGER <= values.min() and values.max() <= MAX_INTEGER
    )


def _difference(values: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """values - shift, rounded once: the nearest float64 of each value, and then the remainder, as Knuth's two-sum."""
    nearest, remainder = nearest_and_rest(values)
    result = np.subtract(nearest, shift, order="C")
    with np.errstate(invalid="ignore"):  # infinity
        part = nearest - result
        remainder += (nearest - (result + part)) + (part - shift)
    result += np.nan_to_num(remainder, nan=0.0)
    return result


def same(x: Any) -> Any:
    return x


@dataclass(frozen=True)
class Pass:
    """task(rows, 0), task(rows, 1), ... combined along the fixed tree of ``parallel.tree_reduce``.

    Task i reads rows i * span to (i + 1) * span, and only these. It uses the rows that it is *given*: on a worker of
    Dask's these may be no more than it needs. Where the rows are not counted, a task beyond the last row returns None.

    Attributes
    ----------
    stage : str
        Its name, for progress.
    task, span, combine
    pack, unpack : callable
        A result as what can be sent elsewhere, and back.
    alone : bool
        One task at a time in a process.
    """

    stage: str
    task: Callable[[Rows, int], Any]
    span: int
    combine: Callable[[Any, Any], Any]
    pack: Callable[[Any], Any] = same
    unpack: Callable[[Any], Any] = same
    alone: bool = False


def refuse_not_finite(tile: np.ndarray, first: int, name: str, purpose: str) -> NoReturn:
    """ValueError that names the first value of a tile that is NaN or infinite; ``first``: number of its first row."""
    row, column = np.argwhere(~np.isfinite(tile))[0]
    word = "NaN" if np.isnan(tile[row, column]) else "infinity"
    raise ValueError(
        f"{name} contains {word} (first at row {first + row}, column {column}); "
        + instead_of_missing(word, name, purpose)
    )


FILLING_FUNCTIONS = ("kpca_contributions", "kpca_denoise", "kpca_project", "kpca_spe", "kpca_t2")
"""Functions of a model and rows, for which the model itself may fill in what is missing."""


def instead_of_missing(word: str, name: str, purpose: str) -> str:
    """Advice on rows that hold NaN or infinity (``word``), as the end of an error."""
    text = f"drop or impute these rows before {purpose}"
    if word != "NaN" or purpose not in FILLING_FUNCTIONS:
        return text
    return f"{text}, or let the model fill them in: {purpose}(model, kpca_fill(model, {name}))"


@dataclass(frozen=True)
class Columns:
    """Some columns of rows, each over a width of its own.

    Attributes
    ----------
    numbers : tuple of int or None
        Numbers of the columns, all different; None: all columns in their order.
    widths : tuple of float or None
        What each of these columns is divided by, positive; None: nothing.
    """

    numbers: tuple[int, ...] | None = None
    widths: tuple[float, ...] | None = None

    def count(self, d: int) -> int:
        """Number of the columns, of d."""
        return d if self.numbers is None else len(self.numbers)

    def index(self, d: int) -> np.ndarray:
        return np.arange(d) if self.numbers is None else np.array(self.numbers, dtype=np.intp)

    def units(self, d: int) -> np.ndarray:
        """The widths, or ones."""
        return np.ones(self.count(d)) if self.widths is None else np.array(self.widths)

    def of(self, X: np.ndarray) -> np.ndarray:
        """These columns of a tile, or of one row, in the tile's type, as a C-contiguous array."""
        part = X if self.numbers is None else np.take(X, self.numbers, axis=-1)
        return part if self.widths is None else part / np.array(self.widths, dtype=X.dtype)

    def gradient(self, G: np.ndarray, d: int) -> np.ndarray:
        """Derivatives (..., d) by all columns from those by these ones, (..., count)."""
        G = G / self.units(d)
        if self.numbers is None:
            return G
        whole = np.zeros((*G.shape[:-1], d))
        whole[..., self.numbers] = G
        return whole


def _is_sparse(rows: Any) -> bool:
    return type(rows) is not np.ndarray and sp.issparse(rows)


class Rows:
    """N rows of d numbers, minus a shift and over a scale; ``source`` is a 2-D array, a memory map, a CSR matrix or a
    ``Source``.

    ``weights`` is an array (N,) of non-negative numbers, or None; ``scale`` one (d,) of positive numbers, or None.
    ``columns`` are the numbers of those columns that are used, after shift and scale; None: all. ``copied`` is of
    ``convert.as_rows``: the bytes of a copy that it made. ``named`` are the names of the columns (``foreign.Named``),
    or None.

    Without a shift (None) a number that float64 would round is refused when it is read. With a shift (even of zeros)
    only differences count, and these may be rounded.
    """

    def __init__(
        self,
        source: Any,
        shift: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        columns: np.ndarray | None = None,
        named: Any = None,
    ):
        self.source = source.tocsr() if _is_sparse(source) else source
        self._paged = source if isinstance(source, Source) else None
        self._n = int(source.shape[0]) if self._paged is None else None
        self.n_features = int(source.shape[1]) if self._paged is None else self._paged.n_features
        self.dtype = np.dtype(source.dtype).newbyteorder("=")
        self.shift = None if shift is None else np.asarray(shift, dtype=np.float64)
        self._offset = None if self.shift is None or not self.shift.any() else self.shift
        self.weights = weights
        self.scale, self.columns, self.named = scale, columns, named
        self.copied = 0
        self._held: np.ndarray | None = None
        self._width = self.n_features
        if columns is not None:
            self.n_features = len(columns)

    @property
    def frame(self) -> dict[str, Any]:
        """Transform of the rows of the source, and names of its columns: arguments of ``Rows`` for another source."""
        return {"shift": self.shift, "scale": self.scale, "columns": self.columns, "named": self.named}

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns; None where there are none."""
        return None if self.named is None else self.named.names

    @property
    def shape(self) -> tuple[int, int]:
        """(N, d)."""
        return self.n_samples, self.n_features

    @property
    def n_samples(self) -> int:
        """N; a source of unknown length is read once to count it."""
        if self._n is None:
            self._n = self.source.n_samples
        return self._n

    @property
    def step(self) -> int:
        """Rows of a tile for passes that read the rows and make nothing wider of them: by their shape alone."""
        return parallel.tile_rows(2 * self.n_features)

    @property
    def counted(self) -> bool:
        """True if N is known without reading."""
        return self._n is not None or self.source.counted

    @property
    def sequential(self) -> bool:
        """Rows can be read in order only: what needs them at random loads them."""
        return self._paged is not None and self._paged.sequential

    @property
    def distributed(self) -> bool:
        """Passes run elsewhere, on a scheduler of Dask's."""
        return self._paged is not None and self._paged.distributed

    @property
    def in_memory(self) -> bool:
        """Rows are an array or a matrix, not a source that is read page by page."""
        return self._paged is None

    @property
    def page_bytes(self) -> float:
        """Bytes of the pages that a source keeps."""
        if self._paged is None:
            return 0.0
        return 1.5 * min(float(self._paged.kept), float(self.n_samples) * self._paged.row_bytes)

    def shares_memory(self, array: np.ndarray) -> bool:
        """True if an array, or the file that it maps, is where the rows are read from."""
        held = self.source if self._paged is None else self._paged.mapped
        return held is not None and not _is_sparse(held) and np.shares_memory(held, array)

    def __len__(self) -> int:
        return self.n_samples

    def reduce(self, over: Pass, *, n_threads: int = 1, progress: parallel.Progress | None = None) -> Any:
        """The result of a pass over these rows."""
        if self.distributed:
            result = self.source.reduce(self, over)
            if progress is not None:
                progress(over.stage, 1, 1)
            return result
        n_tasks = -(-self.n_samples // over.span) if self.counted else None
        task, stage = partial(over.task, self), over.stage
        return parallel.tree_reduce(task, n_tasks, over.combine, n_threads=n_threads, progress=progress, stage=stage)

    def shifted(self, shift: np.ndarray | None) -> Rows:
        """The same source with this shift instead."""
        return self.framed(shift, self.scale)

    def framed(self, shift: np.ndarray | None, scale: np.ndarray | None) -> Rows:
        """The same source with this shift and over this scale instead."""
        return Rows(self.source, weights=self.weights, **self.frame | {"shift": shift, "scale": scale})

    def of_columns(self, columns: Columns) -> Rows:
        """The same rows with these columns alone, each over its width."""
        kept = np.arange(self._width) if self.columns is None else self.columns
        kept = kept[columns.index(len(kept))]
        scale = np.ones(self._width) if self.scale is None else self.scale.copy()
        scale[kept] *= columns.units(len(kept))
        return Rows(self.source, self.shift, self.weights, None if (scale == 1.0).all() else scale, kept)

    def weighted(self, weights: np.ndarray | None) -> Rows:
        """The same rows with these weights."""
        return Rows(self.source, weights=weights, **self.frame)

    def _finish(self, part: Any, *, fresh: bool = False) -> np.ndarray:
        """These rows of the source, dense, shifted and scaled; in place where ``fresh``: no one else uses them."""
        rows = self._shifted(part, fresh=fresh)
        rows = rows if self.scale is None else rows / self.scale
        return rows if self.columns is None else np.take(rows, self.columns, axis=1)

    def _shifted(self, part: Any, *, fresh: bool) -> np.ndarray:
        if _is_sparse(part):
            part, fresh = part.toarray(), True
        if holds_more(part.dtype) and not _fits(part):
            if self._offset is not None:
                return _difference(part, self._offset)
            if self.shift is None:
                _refuse_rounding(part)
        if self._offset is not None:  # subtract in float64, before anything is rounded
            out = part if fresh and part.dtype == np.float64 and part.flags.c_contiguous else None
            return np.subtract(part, self._offset, out=out, dtype=np.float64, order="C")
        with np.errstate(over="ignore"):  # of a long double: infinity, which is refused as such
            return contiguous(part, np.float64)

    def hold(self) -> np.ndarray:
        """All rows, shifted and scaled, which from now on are not made anew: for few rows. No one else's memory."""
        held = self.all()
        self._held = held.copy() if self.shares_memory(held) else held
        return self._held

    def tile(self, start: int, stop: int) -> np.ndarray:
        """Rows start to stop as a C-contiguous float64 array, shifted and scaled; read-only: it may be a view."""
        if self._held is not None:
            return self._held[start:stop]
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
        if self._held is not None:
            return self._held[index]
        part = self.source[index]
        return self._finish(part, fresh=type(part) is np.ndarray and part.flags.owndata)

    def all(self) -> np.ndarray:
        """Every row at once, for routes that are in-memory by nature."""
        return self.tile(0, self.n_samples)

    def loaded(self) -> Rows:
        """These rows in memory, in their own type, where the source can be read in order only."""
        return Rows(self.source[0 : self.n_samples], weights=self.weights, **self.frame) if self.sequential else self

    def present(self) -> tuple[Rows, np.ndarray | None]:
        """(the rows of positive weight, their numbers); (these rows, None) where no weight is zero."""
        if self.weights is None or np.all(self.weights):
            return self, None
        index = np.flatnonzero(self.weights)
        return Rows(self.source[index], weights=np.asarray(self.weights)[index], **self.frame), index


def _refuse_rounding(part: np.ndarray) -> None:
    remainder = nearest_and_rest(part)[1]
    if remainder.any():
        value = part[tuple(np.argwhere(remainder)[0])]
        raise ValueError(
            f"X contains {value!s} of type {part.dtype}, which float64 would round, and the kernel depends on where "
            "zero lies; subtract an offset yourself, as in X - X[0], or round on purpose, X.astype(float)"
        )

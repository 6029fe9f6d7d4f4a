"""Rows that are not in memory: files, HDF5 and zarr datasets, Parquet, Dask collections, iterables of blocks.

A ``Source`` has a shape and a type, and gives rows by slice or by number, as an array does. It reads *pages*, groups of
rows whose size depends on shape and type alone, and keeps a few of them. It takes a checksum of each page when it is
first read; a page that differs later is an error, not a wrong answer. A source is never loaded whole, and pages have
no influence on results: tiles are cut from the rows, for all chunks of the source.

There are two kinds. Direct sources read any rows at any time. Sequential sources only read forward: for a page that the
reader has passed, another one starts from the first row. The tasks of a pass ask for pages nearly in order,
and pages that are asked for a little later are kept, so that a pass reads the rows once.

``foreign`` decides which source reads an object of another library.
"""

from __future__ import annotations

import math
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from ..base import parallel
from ..errors import DataChangedError

PAGE_CACHE_BYTES = 1 << 25
"""Bytes of pages kept in memory, of rows that come one after the other (two pages, where any can be read again) and of
rows from files. Further pages go to a file without a name. Small compared with `DEFAULT_MEMORY`; not measured."""


def page_rows(row_bytes: int) -> int:
    """Rows of a page, a power of two: bytes enough to hide the cost of a call, few enough to stay in cache."""
    return parallel.tile_rows(row_bytes)


def whole_chunks(dataset: Any) -> int:
    """Rows to read or write at once of a dataset with two dimensions (h5py, zarr): whole chunks, unless these are too
    large."""
    row_bytes = dataset.shape[1] * np.dtype(dataset.dtype).itemsize
    rows = page_rows(row_bytes)
    chunks = getattr(dataset, "shards", None) or getattr(dataset, "chunks", None)
    if chunks and chunks[0] * row_bytes <= PAGE_CACHE_BYTES:
        rows = -(-rows // int(chunks[0])) * int(chunks[0])
    return rows


def nearest_and_rest(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the nearest float64, the remainder) of integers of 64 bits or long doubles; the two add up to the value."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):  # infinity, also of what float64 does not hold
            nearest = values.astype(np.float64)
            return nearest, np.nan_to_num((values - nearest).astype(np.float64), nan=0.0)
    high, low = (values >> 32).astype(np.float64) * 2.0**32, (values & 0xFFFFFFFF).astype(np.float64)
    nearest = high + low
    return nearest, low - (nearest - high)  # exact: |high| >= |low|, or high is zero


def bytes_of(rows: np.ndarray) -> np.ndarray:
    """The bytes of each row. Long doubles, some of whose bytes mean nothing, are taken as two float64."""
    if rows.dtype.kind == "f" and rows.dtype.itemsize > 8:
        rows = np.hstack(nearest_and_rest(rows))
    return np.ascontiguousarray(rows).view(np.uint8)


def changed(name: str, what: str, advice: str = "") -> DataChangedError:
    """The error for rows that are not those of an earlier pass."""
    need = f"every pass must see the same rows in the same order{advice}"
    return DataChangedError(f"{name} changed while it was read: {what}; {need}")


def other_rows(name: str, first: int, count: int, advice: str = "") -> DataChangedError:
    what = f"rows {first} to {first + count - 1} are not what they were in an earlier pass"
    return changed(name, what, advice)


class Source:
    """Rows read page by page; ``source[start:stop]`` and ``source[numbers]`` as of an array.

    Attributes
    ----------
    dtype : numpy.dtype
    n_features : int
    counted : bool
        Whether the number of rows is known; where it is not, ``shape`` reads them once to count them.
    sequential : bool
        Rows come in order: what needs them at random loads them.
    distributed : bool
        Passes run elsewhere, on a scheduler of Dask's.
    mapped : ndarray or None
        The memory map whose file is read.
    kept : int
        Bytes of the pages that are kept.
    """

    sequential = False
    distributed = False
    mapped: np.ndarray | None = None
    ndim = 2

    def __init__(self, name: str, n_samples: int | None, n_features: int, dtype: Any, rows_in_page: int | None = None):
        self.name = name
        self.n_features = int(n_features)
        self.dtype = np.dtype(dtype)
        self.row_bytes = self.n_features * self.dtype.itemsize
        self.page_rows = rows_in_page or page_rows(self.row_bytes)
        self._n = None if n_samples is None else int(n_samples)
        self._pages: OrderedDict[int, np.ndarray] = OrderedDict()
        self._sums: dict[int, int] = {}
        self._lock = threading.RLock()
        page_bytes = max(1, self.page_rows * self.row_bytes)
        self._max_pages = max(2, PAGE_CACHE_BYTES // page_bytes) if self.sequential else 2
        self.kept = self._max_pages * page_bytes

    @property
    def counted(self) -> bool:
        return self._n is not None

    @property
    def n_samples(self) -> int:
        if self._n is None:
            i = 0
            while self.page(i) is not None:
                i += 1
        assert self._n is not None
        return self._n

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_features

    def __len__(self) -> int:
        return self.n_samples

    # ------------------------------------------------------------------ pages

    def _load(self, i: int) -> np.ndarray | None:
        """Page i, its own copy; None beyond the last."""
        raise NotImplementedError

    def page(self, i: int) -> np.ndarray | None:
        """Rows i * page_rows and on, read-only; None beyond the last."""
        with self._lock:
            page = self._pages.get(i)
            if page is not None:
                self._pages.move_to_end(i)
                return page
            if self._n is not None and i * self.page_rows >= self._n:
                return None
            return self._fetch(i)

    def _fetch(self, i: int) -> np.ndarray | None:
        """Page i, read and kept."""
        page = self._load(i)
        return None if page is None else self._keep(i, page)

    def _keep(self, i: int, page: np.ndarray) -> np.ndarray:
        self._check(i, page)
        page.flags.writeable = False
        self._pages[i] = page
        self._pages.move_to_end(i)
        while len(self._pages) > self._max_pages:
            self._pages.popitem(last=False)
        return page

    def _check(self, i: int, page: np.ndarray) -> None:
        now = zlib.crc32(bytes_of(page).data)
        if self._sums.setdefault(i, now) != now:
            start = i * self.page_rows
            raise other_rows(self.name, start, len(page))

    def _expect(self, count: int) -> None:
        if self._n is not None and count != self._n:
            raise changed(self.name, f"{count} rows now, {self._n} in an earlier pass")

    # ------------------------------------------------------------------ rows

    def __getitem__(self, key: Any) -> Any:
        """Rows by slice or by number; ``source[:, columns]`` is the source of these columns of all rows."""
        if isinstance(key, tuple):
            columns = np.arange(self.n_features)[key[1]]
            return self if len(columns) == self.n_features and (np.diff(columns) == 1).all() else Columns(self, columns)
        if isinstance(key, slice):
            stop = key.stop if self._n is None and key.stop is not None else None
            start, stop = (key.start or 0, stop) if stop is not None else key.indices(self.n_samples)[:2]
            return self.read(start, stop)
        return self.take(np.asarray(key))

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows start to stop (fewer at the end, where the rows are not counted yet), read-only."""
        first, last = start // self.page_rows, max(start, stop - 1) // self.page_rows
        if first == last:
            page, before = self.page(first), first * self.page_rows
            return np.empty((0, self.n_features), self.dtype) if page is None else page[start - before : stop - before]
        result, filled = np.empty((stop - start, self.n_features), dtype=self.dtype), 0
        for i in range(first, last + 1):
            page = self.page(i)
            if page is None:
                break
            part = page[max(0, start - i * self.page_rows) : stop - i * self.page_rows]
            result[filled : filled + len(part)] = part
            filled += len(part)
        return result[:filled]

    def take(self, index: np.ndarray) -> np.ndarray:
        """The rows of these numbers; each page is read once, in order."""
        result = np.empty((len(index), self.n_features), dtype=self.dtype)
        order = np.argsort(index, kind="stable")
        pages = index[order] // self.page_rows
        begins: list[int] = np.flatnonzero(np.r_[True, pages[1:] != pages[:-1]]).tolist() if len(index) else []
        for a, b in zip(begins, [*begins[1:], len(index)]):
            page = self.page(int(pages[a]))
            assert page is not None
            result[order[a:b]] = page[index[order[a:b]] - pages[a] * self.page_rows]
        return result


# Direct sources ---------------------------------------------------------------------------------------------------


class FileSource(Source):
    """The file behind a view of a memory map, read and not mapped.

    A map would count as memory of the process as it is read, and a file cut short meanwhile would end the process
    (SIGBUS); reading says so. The map itself is read only where it is private or its file cannot be opened any more:
    page by page, each after the length of the file.

    Parameters
    ----------
    X : ndarray (n, d)
        The view.
    part : foreign.MappedPart
        Where it lies in the file.
    handle : int
        The open file, which is closed here; -1 where the map is to be read.
    """

    MIN_BYTES_AT_ONCE = 1 << 16

    def __init__(self, name: str, X: np.ndarray, part: Any, handle: int = -1):
        row_bytes = X.shape[1] * X.itemsize
        rows = page_rows(row_bytes)
        if abs(X.strides[0]) < abs(X.strides[1]):  # column by column: parts of columns long enough for a call
            while 16 * rows * X.itemsize < self.MIN_BYTES_AT_ONCE and 2 * rows * row_bytes <= PAGE_CACHE_BYTES // 2:
                rows *= 2
        super().__init__(name, len(X), X.shape[1], X.dtype, rows)
        self._part, self._handle = part, handle
        self.mapped = X  # the map itself stays open as long as this does

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            os.close(self._handle)

    def is_same_file(self) -> bool:
        """True if the open file is the one that is mapped, and not another one of its name."""
        assert self.mapped is not None
        if os.fstat(self._handle).st_size < self._part.high:
            return False
        return self._numbers(self._part.first, (1, self.n_features)).tobytes() == self.mapped[:1].tobytes()

    def _load(self, i: int) -> np.ndarray | None:
        assert self.mapped is not None
        start = i * self.page_rows
        count = min(self.n_samples - start, self.page_rows)
        if self._handle >= 0:
            return self._numbers(self._part.first + start * self.mapped.strides[0], (count, self.n_features))
        self._part.check(self.mapped, self.name)
        return np.array(self.mapped[start : start + count], order="C")

    def _numbers(self, at: int, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers of the file, the first of them at this byte, the others as in the map; in pieces where much lies
        between them."""
        assert self.mapped is not None
        steps, itemsize = self.mapped.strides, self.dtype.itemsize
        reach = [(n - 1) * step for n, step in zip(shape, steps)]
        size = sum(map(abs, reach)) + itemsize
        if size > max(self.MIN_BYTES_AT_ONCE, 4 * math.prod(shape) * itemsize):
            axis = int(np.argmax(np.abs(reach)))
            half = shape[axis] // 2
            sizes = [(n, *shape[1:]) if axis == 0 else (shape[0], n) for n in (half, shape[axis] - half)]
            places = (at, at + half * steps[axis])
            return np.concatenate([self._numbers(*piece) for piece in zip(places, sizes)], axis=axis)
        low = at + sum(min(x, 0) for x in reach)
        raw = bytearray()
        while len(raw) < size:
            part = os.pread(self._handle, size - len(raw), low + len(raw))
            if not part:
                there = os.fstat(self._handle).st_size
                needed = f"{self._part.high} are needed for its {self.n_samples} rows"
                raise changed(self.name, f"its file has {there} bytes now, and {needed}")
            raw += part
        return np.array(np.ndarray(shape, self.dtype, raw, at - low, steps), order="C")


class ChunkedSource(Source):
    """Source that is read by slices, as a dataset of HDF5 (h5py) or zarr.

    ``read(start, stop)`` returns rows of this type, by default that of X; a page is of ``rows_in_page`` rows, by
    default of whole chunks.
    """

    def __init__(
        self,
        name: str,
        X: Any,
        read: Callable[[int, int], np.ndarray],
        dtype: np.dtype | None = None,
        rows_in_page: int | None = None,
    ):
        super().__init__(name, X.shape[0], X.shape[1], dtype or X.dtype, rows_in_page or whole_chunks(X))
        self._data, self._read = X, read

    def _load(self, i: int) -> np.ndarray | None:
        start = i * self.page_rows
        self._expect(int(self._data.shape[0]))
        rows = np.array(self._read(start, min(self.n_samples, start + self.page_rows)), order="C")
        if rows.dtype != self.dtype or rows.shape[1:] != (self.n_features,):
            now = f"{rows.shape[1:]} columns of {rows.dtype} now"
            raise changed(self.name, f"{now}, {self.n_features} of {self.dtype} before")
        return rows


class TableSource(ChunkedSource):
    """A table in memory that holds its columns one by one: a data frame, a table of Arrow's."""

    def __init__(self, name: str, X: Any, dtype: np.dtype, read: Callable[[int, int], np.ndarray]):
        # long pages: what is done for each column takes as long as to convert some thousand numbers of it
        super().__init__(name, X, read, dtype, 4 * page_rows(X.shape[1] * dtype.itemsize))

    def copy(self) -> np.ndarray:
        """All rows, with little more memory than they take."""
        rows, step = np.empty(self.shape, dtype=self.dtype), max(self.page_rows, -(-self.n_samples // 32))
        for start in range(0, self.n_samples, step):
            rows[start : start + step] = self._read(start, min(self.n_samples, start + step))
        return rows


class Columns(Source):
    """Some columns of a direct source."""

    def __init__(self, source: Source, columns: np.ndarray):
        super().__init__(source.name, source.n_samples, len(columns), source.dtype, source.page_rows)
        self._source, self._columns = source, columns

    def _load(self, i: int) -> np.ndarray | None:
        page = self._source.page(i)
        return None if page is None else np.ascontiguousarray(page[:, self._columns])


# Sequential sources -----------------------------------------------------------------------------------------------


def _pages(blocks: Iterator[np.ndarray], rows: int, n_features: int, dtype: np.dtype) -> Iterator[np.ndarray]:
    """Pages of ``rows`` rows, cut from blocks and copied; the last page has fewer, or none."""
    page, filled = np.empty((rows, n_features), dtype=dtype), 0
    for block in blocks:
        at = 0
        while at < len(block):
            part = block[at : at + rows - filled]
            page[filled : filled + len(part)] = part
            at, filled = at + len(part), filled + len(part)
            if filled == rows:
                yield page
                page, filled = np.empty((rows, n_features), dtype=dtype), 0
    yield page[:filled].copy()


class SequentialSource(Source):
    """Blocks of rows, one after the other, from an object that can be started again.

    Parameters
    ----------
    name : str
    start : callable
        start() -> an iterator over blocks, from the first row on.
    convert : callable
        One block -> array (rows, columns) of numbers; raises where it is none.
    n_samples : int, optional
        Where it is known without reading.
    """

    sequential = True

    def __init__(
        self, name: str, start: Callable[[], Iterator], convert: Callable[[Any, str], np.ndarray], n_samples: int | None
    ):
        self._start, self._convert = start, convert
        self.name = name
        self._n = None
        blocks = self._blocks(None)
        head = next(blocks, None)
        if head is None:
            raise ValueError(f"{name} has no rows: the iterable yields no block with any")
        super().__init__(name, n_samples, head.shape[1], head.dtype)
        self._reader: Iterator[np.ndarray] | None = self._open(chain([head], blocks))

    def _open(self, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        self._next_page = 0
        return _pages(blocks, self.page_rows, self.n_features, self.dtype)

    def _blocks(self, like: tuple[int, np.dtype] | None) -> Iterator[np.ndarray]:
        start = 0
        for number, raw in enumerate(self._start()):
            which = f"block {number} of {self.name} (from row {start})"
            block = self._convert(raw, which)
            if block.ndim != 2:
                raise ValueError(f"{which} has shape {block.shape}; every block needs two dimensions, (rows, columns)")
            if like is None:
                like = block.shape[1], block.dtype
            if (block.shape[1], block.dtype) != like:
                others = f"the first block {like[0]} of {like[1]}; all blocks need the same columns and type"
                raise ValueError(f"{which} has {block.shape[1]} columns of {block.dtype}, {others}")
            start += len(block)
            if len(block):
                yield block

    def _fetch(self, i: int) -> np.ndarray | None:
        reader, self._reader = self._reader, None  # it is lost where it raises, or is at the end
        if reader is None or self._next_page > i:
            reader = self._open(self._blocks((self.n_features, self.dtype)))
        while True:
            number, page = self._next_page, next(reader)
            self._next_page += 1
            last = len(page) < self.page_rows or (self._n is not None and number >= (self._n - 1) // self.page_rows)
            if last:
                n_rows = number * self.page_rows + len(page)
                if len(next(reader, ())):
                    raise changed(self.name, f"it has more rows than the {n_rows} of an earlier pass")
                self._expect(n_rows)
                self._n = n_rows
            if len(page):
                # what another task will ask for soon waits
                self._keep(number, page)
            if number == i or last:
                self._reader = None if last else reader
                return page if number == i and len(page) else None

"""Rows of a Dask collection: every pass over them is a Dask graph, on the user's scheduler.

A pass is a map and a sum. The tasks are the same as over an array: task i reads rows i span to (i + 1) span, for all
chunks, and results are combined along the tree of ``parallel.tree_reduce``. A worker gets an aligned group of 2^k
tasks, about a chunk of rows, which is a whole subtree. So the result has the same bits for any chunks, any workers,
and any tasks that die and are computed again.

Rows that differ between two passes would give a result that belongs to no data. So each pass takes a checksum of one
row in ``CHECKSUM_STRIDE``, and compares it with that of the passes before.

Tasks are pure functions of their rows and of what the pass needs (a feature map, say), which is pickled and sent once
to each worker. An exception in a task is handed on as a value, so that the first one in the order of the rows is
raised, not the first in time. Errors of the machine (memory, files) are left to Dask.

Dask is imported only for objects of Dask's.
"""

from __future__ import annotations

import copy
import threading
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel
from ..errors import DataChangedError
from .foreign import is_dask
from .sinks import SCORES_AT_ONCE, Sink
from .sources import SequentialSource, Source, bytes_of, changed, other_rows
from .view import Pass, Rows, same

MOST_BANDS = 32
"""Bands of rows in a product with the kernel matrix: 528 pairs of them."""

CHECKSUM_STRIDE = 128
"""Step between the rows that enter the checksum of their chunk. The checksum costs next to nothing, and finds random
rows that are made anew in each pass, and files that were replaced. A change of fewer rows than these may be missed."""

_one_at_a_time = threading.Lock()

Table = Callable[[Any, int], np.ndarray]
"""(block, how many rows it has) -> these as an array."""


def dask_source(X: Any, name: str, convert: Callable[[Any, str], np.ndarray]) -> DaskSource | np.ndarray | None:
    """The source behind a Dask array or data frame; None for anything else.

    Lengths of chunks that are not known are computed, once. For what is not a table, or empty: an array of that shape
    (and no size), for the caller to refuse.
    """
    if not is_dask(X):
        return None
    import dask
    import dask.array
    from dask.delayed import Delayed

    if hasattr(type(X), "get_partition"):  # of the class: a Delayed has any attribute
        if X.ndim != 2:
            raise TypeError(f"{name} is a Dask series; give a frame, {name}.to_frame()")
        dtype = convert(X._meta, name).dtype
        parts = X.to_delayed()
        lengths = dask.compute(*(dask.delayed(len, pure=False)(part) for part in parts))
        task = dask.delayed(convert, pure=False)
        blocks = [
            dask.array.from_delayed(task(part, name), (n, len(X.columns)), dtype) for part, n in zip(parts, lengths)
        ]
        X = dask.array.concatenate(blocks)
    if not isinstance(X, dask.array.Array):
        word = "Delayed" if isinstance(X, Delayed) else type(X).__name__
        raise TypeError(
            f"{name} is a dask {word}; give a Dask array or data frame (dask.array.from_delayed makes an array of "
            "delayed blocks)"
        )
    if X.ndim != 2 or 0 in X.shape:
        return np.broadcast_to(np.zeros((), X.dtype), [0 if n != n else n for n in X.shape])
    if any(n != n for n in X.shape):
        X = dask.array.Array(X.dask, X.name, X.chunks, meta=X._meta)  # the user's own keeps its unknown chunks
        X.compute_chunk_sizes()
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return DaskSource(X, name, convert)


class Window:
    """Some of the rows (or weights) under their own numbers: what a task is given in place of them all."""

    def __init__(self, block: np.ndarray, first: int, n: int):
        self._block, self._first = block, first
        self.shape, self.dtype = (n, *block.shape[1:]), block.dtype

    def __getitem__(self, key: Any) -> np.ndarray:
        if isinstance(key, slice):
            start, stop, _ = key.indices(self.shape[0])
            if start < self._first or stop > self._first + len(self._block):
                raise IndexError(f"rows {start} to {stop} of a task that has {len(self._block)} from {self._first} on")
            return self._block[start - self._first : stop - self._first]
        return self._block[np.asarray(key) - self._first]


class _Cut(NamedTuple):
    """Rows ``lo`` to ``hi`` of a block of ``length`` rows, which are those of chunk ``chunk`` from ``offset`` on."""

    lo: int
    hi: int
    length: int
    chunk: int
    offset: int


class _Checksum(NamedTuple):
    """The number of rows of a part of a chunk, and their term of its checksum."""

    chunk: int
    rows: int
    term: int


def _checksum(chunk: int, rows: np.ndarray, offset: int) -> _Checksum:
    """Term of the checksum for the rows of a chunk from ``offset`` on: a sum over one row in ``CHECKSUM_STRIDE``.

    Every row is multiplied by an odd number of its own, so that rows that change places are seen.
    """
    first = -offset % CHECKSUM_STRIDE
    watched = zip(range(offset + first, offset + len(rows), CHECKSUM_STRIDE), bytes_of(rows[first::CHECKSUM_STRIDE]))
    return _Checksum(chunk, len(rows), sum(zlib.crc32(row) * (2 * i + 1) for i, row in watched))


def _changed(name: str, first: int, length: int) -> DataChangedError:
    return other_rows(name, first, length, f" ({name}.persist() keeps them)")


@dataclass
class _Failed:
    """Error that a task raised."""

    error: Exception


def _failure(results: Iterable[Any]) -> _Failed | None:
    """The first that failed, in the order of the rows."""
    return next((result for result in results if isinstance(result, _Failed)), None)


def _told(work: Callable[[], Any], alone: bool) -> Any:
    """The result of ``work``, or its error as a value; errors of the machine are raised."""
    try:
        with _one_at_a_time if alone else nullcontext(), parallel.blas_threads():
            return work()
    except (MemoryError, OSError):
        raise
    except Exception as error:
        return _Failed(error)


@dataclass
class _Shared:
    """Arguments that the tasks of one graph share."""

    frame: dict[str, np.ndarray | None]
    n: int
    table: Table
    over: Pass

    def rows(
        self, first: int, cuts: Sequence[_Cut], weights: np.ndarray | None, blocks: Sequence[Any]
    ) -> tuple[Rows, list[_Checksum]]:
        parts = [_cut(cut.lo, cut.hi, cut.length, self.table, x) for cut, x in zip(cuts, blocks)]
        seen = [_checksum(cut.chunk, part, cut.offset) for cut, part in zip(cuts, parts)]
        block = parts[0] if len(parts) == 1 else np.concatenate(parts)
        row_weights: Any = None if weights is None else Window(weights, first, self.n)
        return Rows(Window(block, first, self.n), weights=row_weights, **self.frame), seen


def _table(convert: Callable[[Any, str], np.ndarray], name: str, width: int, block: Any, length: int) -> np.ndarray:
    """A chunk as an array, if it has the shape that it had."""
    rows = convert(block, name)
    if rows.shape != (length, width):
        raise changed(name, f"a chunk of {name} has shape {rows.shape}, and {(length, width)} by its chunks")
    return rows


def _cut(lo: int, hi: int, length: int, table: Table, block: Any) -> np.ndarray:
    return table(block, length)[lo:hi]


# The builder of the graphs below: tasks (function, keys, ...), with all that is no key bound to the function, so that
# nothing of it is taken for one.


def _leaf(
    i: int,
    count: int,
    first: int,
    cuts: Sequence[_Cut],
    weights: np.ndarray | None,
    shared: _Shared,
    blocks: Sequence[Any],
) -> Any:
    """Tasks i to i + count of the pass, combined, and the rows seen."""
    over = shared.over

    def work() -> Any:
        rows, seen = shared.rows(first, cuts, weights, blocks)
        return over.pack(parallel.tree_reduce(lambda j: over.task(rows, i + j), count, over.combine)), seen

    return _told(work, over.alone)


def _join(shared: _Shared, parts: Sequence[Any]) -> Any:
    """Results that follow one another, combined along their part of the tree."""
    if failed := _failure(parts):
        return failed
    # what a task is given may be given to it again: combining writes into it
    over = shared.over
    joined = parallel.tree_reduce(lambda i: over.unpack(copy.deepcopy(parts[i][0])), len(parts), over.combine)
    return over.pack(joined), [one for _, seen in parts for one in seen]


def _band(step: int, rows: Rows, i: int) -> np.ndarray:
    return rows.tile(i * step, min(rows.n_samples, (i + 1) * step))


def _checksums_in(band: Any) -> Any:
    return _failure([band]) or band[1]


def _pair(alone: bool, pair: Callable, x: tuple, y: tuple, X: Any, Y: Any = None) -> Any:
    """``pair`` of two bands, or of one with itself (Y is None)."""
    if failed := _failure((X, Y)):
        return failed
    return _told(lambda: pair(X[0], None if Y is None else Y[0], x, y), alone)


def _add(number: int, parts: Sequence[Any]) -> Any:
    """(what the pairs add to a band, (this band, another, squares) of those pairs whose first band it is).

    ``parts`` are those of the band with all bands, in whose order they are added; ``number`` is its own.
    """
    if failed := _failure(parts):
        return failed
    total: Any = 0.0
    for j, part in enumerate(parts):
        total = total + part[1 if j < number else 0]
    return total, [(number, j, parts[j][2]) for j in range(number, len(parts))]


def _scored(block: Any, task: Any = None, block_info: Any = None) -> np.ndarray:
    return task(block, *block_info[0]["array-location"][0], block_info[0]["chunk-location"][0])


class _Scores:
    """A task on one block of rows and the number of its first row; ``sums`` are the checksums of chunks so far."""

    def __init__(self, task: Callable, table: Table, name: str, alone: bool, sums: dict[int, int]):
        self.task, self.table, self.name, self.alone, self.sums = task, table, name, alone, sums

    def __call__(self, block: Any, first: int, stop: int, chunk: int) -> np.ndarray:
        with _one_at_a_time if self.alone else nullcontext(), parallel.blas_threads():
            rows = self.table(block, stop - first)
            if chunk in self.sums and self.sums[chunk] != _checksum(chunk, rows, 0).term:
                raise _changed(self.name, first, len(rows))
            return self.task(rows, first)


class DaskSource(SequentialSource):
    """Rows of a Dask array whose chunks are known and hold whole rows.

    Loops over tiles get them chunk by chunk, as from any source that is read in order; passes (``Rows.reduce``)
    and exact products (``square``) are Dask graphs.
    """

    distributed = True

    def __init__(self, X: Any, name: str, convert: Callable[[Any, str], np.ndarray]):
        self.array = X
        n, d = X.shape
        Source.__init__(self, name, n, d, np.float64 if X.dtype.kind == "O" else X.dtype)
        self._convert, self._table = convert, partial(_table, convert, name, d)
        # what the user says of tasks (where they may run, say) is lost where their graph is optimised, or run by ours
        annotated = any(layer.annotations for layer in X.__dask_graph__().layers.values())
        self._parts = list(X.to_delayed(optimize_graph=not annotated).ravel())
        # an optimised graph may lack chunks that are futures: what is no key of the graph is no key in our tasks
        if not all(part.key in part.dask for part in self._parts):
            self._parts = list(X.to_delayed(optimize_graph=False).ravel())
        self._ends = np.cumsum(X.chunks[0])
        self._start = lambda: (part.compute() for part in self._parts)
        self._reader = None
        self._sums_of_chunks: dict[int, int] = {}

    def _compare(self, seen: Sequence[_Checksum]) -> None:
        """Raise DataChangedError where a chunk is not what an earlier pass saw; chunks seen in part are left out."""
        by_chunk: dict[int, list[_Checksum]] = {}
        for checksum in seen:
            by_chunk.setdefault(checksum.chunk, []).append(checksum)
        for chunk, checksums in sorted(by_chunk.items()):
            length = int(self.array.chunks[0][chunk])
            if sum(checksum.rows for checksum in checksums) == length:
                total = sum(checksum.term for checksum in checksums)
                if self._sums_of_chunks.setdefault(chunk, total) != total:
                    raise _changed(self.name, int(self._ends[chunk]) - length, length)

    # ------------------------------------------------------------------ graphs

    def _key(self, stage: str, token: str, *numbers: int) -> str:
        """The dashboard shows what comes before the first number: the stage."""
        return "-".join(["fastkpca", *stage.split(), *map(str, numbers), token])

    def _compute(self, keys: Sequence[Any], tasks: dict[Any, Any]) -> list[Any]:
        """Results of these tasks, together with those of the rows, by key."""
        import dask
        from dask.delayed import Delayed
        from dask.highlevelgraph import HighLevelGraph

        layer = f"fastkpca-{uuid.uuid4().hex}"
        graph = HighLevelGraph.from_collections(layer, tasks, dependencies=[self._parts[0]])
        with warnings.catch_warnings():
            # of vectors that go with the graph, so that they are there again when a worker dies
            warnings.filterwarnings("ignore", "Sending large graph")
            results = list(dask.compute(*(Delayed(key, graph, layer=layer) for key in keys)))
        if failed := _failure(results):
            raise failed.error
        return results

    def _chunks(self, start: int, stop: int, token: str, tasks: dict[Any, Any]) -> tuple[list[_Cut], list[Any]]:
        """The part of each chunk that has some of these rows, and its key. The worker that holds a chunk cuts a
        part out of it."""
        cuts, keys = [], []
        first = int(np.searchsorted(self._ends, start, side="right"))
        while start < stop:
            end, length = int(self._ends[first]), int(self.array.chunks[0][first])
            if length:
                lo, hi = start - (end - length), min(stop, end) - (end - length)
                block: Any = self._parts[first].key
                offset = lo
                if hi - lo < length:
                    key = self._key("rows", token, start)
                    tasks[key] = (partial(_cut, lo, hi, length, self._table), block)
                    block, lo, hi, length = key, 0, hi - lo, hi - lo
                cuts.append(_Cut(lo, hi, length, first, offset))
                keys.append(block)
                start = min(stop, end)
            first += 1
        return cuts, keys

    def reduce(self, rows: Rows, over: Pass) -> Any:
        """``Rows.reduce``."""
        n, token, stage, span = self.n_samples, uuid.uuid4().hex, over.stage, over.span
        shared = self._key("pass", token)
        tasks: dict[Any, Any] = {shared: _Shared(rows.frame, n, self._table, over)}
        n_tasks = -(-n // span)
        lengths = np.array(self.array.chunks[0])
        chunk = int(np.median(lengths[lengths > 0]))
        tasks_in_leaf = 1 << max(0, int(chunk // span).bit_length() - 1)
        level: list[Any] = []
        for i in range(0, n_tasks, tasks_in_leaf):
            count = min(tasks_in_leaf, n_tasks - i)
            start, stop = i * span, min(n, (i + count) * span)
            weights = None if rows.weights is None else rows.tile_weights(start, stop)
            level.append(self._key(stage, token, len(level)))
            cuts, blocks = self._chunks(start, stop, token, tasks)
            tasks[level[-1]] = (partial(_leaf, i, count, start, cuts, weights), shared, blocks)
        joined = 0
        while len(level) > 1:  # whole subtrees, and what is left at the end: the tree of ``parallel.tree_reduce``
            above: list[Any] = []
            for k in range(0, len(level), 2):
                subtree = level[k : k + 2]
                above.append(subtree[0])
                if len(subtree) > 1:
                    above[-1] = self._key(f"{stage} sum", token, joined)
                    tasks[above[-1]] = (_join, shared, subtree)
                    joined += 1
            level = above
        packed, seen = self._compute(level, tasks)[0]
        self._compare(seen)
        return over.unpack(packed)

    def square(
        self,
        frame: dict[str, np.ndarray | None],
        pair: Callable[[np.ndarray, np.ndarray | None, tuple, tuple], tuple],
        step: int,
        vectors: Sequence[np.ndarray | None],
        *,
        stage: str,
        alone: bool,
    ) -> tuple[np.ndarray, list[Any]]:
        """(the sum for each band over its pairs with all bands, (band, band, squares) of each pair in order).

        ``pair(X, Y, x, y)`` gets two bands of rows and the parts of the vectors that belong to each; Y is None on the
        diagonal. The sums of a band are added in the order of the pairs, by one task.
        """
        n, token = self.n_samples, uuid.uuid4().hex
        while step * MOST_BANDS < n:
            step *= 2
        shared, work = self._key("pass", token), self._key("pair", token)
        over = Pass(stage, partial(_band, step), step, np.add)  # each task makes a band of rows, nothing is added
        tasks: dict[Any, Any] = {shared: _Shared(frame, n, self._table, over), work: pair}
        bands, columns, checksums = [], [], []
        for a in range(0, n, step):
            b = min(n, a + step)
            bands.append(self._key("band", token, a))
            cuts, blocks = self._chunks(a, b, token, tasks)
            tasks[bands[-1]] = (partial(_leaf, a // step, 1, a, cuts, None), shared, blocks)
            checksums.append(self._key("look", token, a))
            tasks[checksums[-1]] = (_checksums_in, bands[-1])
            columns.append(self._key("vectors", token, a))
            tasks[columns[-1]] = (partial(same, tuple(None if v is None else v[a:b] for v in vectors)),)
        m, sums = len(bands), []
        parts = {(i, j): self._key(stage, token, i, j) for i in range(m) for j in range(i, m)}
        for (i, j), key in parts.items():
            other = [] if i == j else [bands[j]]
            tasks[key] = (partial(_pair, alone), work, columns[i], columns[j], bands[i], *other)
        for i in range(m):
            sums.append(self._key(f"{stage} sum", token, i))
            tasks[sums[-1]] = (partial(_add, i), [parts[min(i, j), max(i, j)] for j in range(m)])
        results = self._compute([*sums, *checksums], tasks)
        self._compare([one for seen in results[m:] for one in seen])
        totals, squares = zip(*results[:m])
        return np.concatenate(totals), [one for of_band in squares for one in of_band]

    def lazily(self, task: Callable[[np.ndarray, int], np.ndarray], n_columns: int, dtype: Any, *, alone: bool) -> Any:
        """A Dask array (N, n_columns), chunked as the rows: task(rows of a block, number of the first)."""
        import dask.array
        from dask import delayed

        token = uuid.uuid4().hex
        scores = _Scores(task, self._table, self.name, alone, dict(self._sums_of_chunks))
        shared = delayed(scores, pure=False, traverse=False, name=self._key("model", token))
        return dask.array.map_blocks(
            _scored,
            self.array,
            task=shared,
            chunks=(self.array.chunks[0], (n_columns,)),
            dtype=dtype,
            meta=np.empty((0, 0), dtype=dtype),
            name=self._key("scores", token),
        )

    def store(self, scores: Any, out: Any) -> None:
        """Write a Dask array into a file or dataset, in order and from this process: targets need not be safe to write
        to from several places at once."""
        import dask

        sink, blocks = Sink(out), list(scores.to_delayed().ravel())
        size = scores.dtype.itemsize * scores.size
        at_once = max(1, SCORES_AT_ONCE * len(blocks) // max(1, size))
        for start in range(0, len(blocks), at_once):
            for part in dask.compute(*blocks[start : start + at_once]):
                sink.write(part)
        sink.close()

    def wrap(self, values: np.ndarray) -> Any:
        """A Dask array of these, chunked as the rows."""
        import dask.array

        return dask.array.from_array(values, chunks=(self.array.chunks[0], values.shape[1]), name=False)

    # ------------------------------------------------------------------ rows

    def read(self, start: int, stop: int) -> np.ndarray:
        return super().read(start, stop) if stop - start <= 4 * self.page_rows else self.take(np.arange(start, stop))

    def take(self, index: np.ndarray) -> np.ndarray:
        """The rows of these numbers: only these leave the workers."""
        token = uuid.uuid4().hex
        order = np.argsort(index, kind="stable")
        numbers = np.searchsorted(self._ends, index[order], side="right")
        tasks: dict[Any, Any] = {}
        places = {i: order[numbers == i] for i in np.unique(numbers).tolist()}
        for i, positions in places.items():
            length = int(self.array.chunks[0][i])
            local = index[positions] - (int(self._ends[i]) - length)
            key = self._key("sample", token, i)
            tasks[key] = (partial(_taken, local, i, length, self._table), self._parts[i].key)
        results = self._compute(list(tasks), tasks)
        self._compare([seen for _, seen in results])
        result = np.empty((len(index), self.n_features), dtype=self.dtype)
        for positions, (rows, _) in zip(places.values(), results):
            result[positions] = rows
        return result


def _taken(index: np.ndarray, chunk: int, length: int, table: Table, block: Any) -> tuple[np.ndarray, _Checksum]:
    rows = table(block, length)
    return rows[index], _checksum(chunk, rows, 0)

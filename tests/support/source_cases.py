"""Random sources of rows, what may go wrong with them while they are read, and the promise that they must keep.

Whatever the source, its chunks and its type, a model has the bits of the model of the array; where the rows change
meanwhile, those of the rows before or after the change, or there is an error that says so. Never another answer, and
never no answer.
"""

import contextlib
import faulthandler
import itertools
import os
import tempfile
import threading
import time
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import pandas
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import scipy.sparse as sp
import zarr
from quiet import silent

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.errors import DataChangedError
from fastkpca.rows import foreign, sources

KINDS = (
    "npy map",
    "strided map",
    "h5py",
    "zarr",
    "parquet path",
    "parquet file",
    "parquet dataset",
    "list",
    "iterable",
    "function",
)
TYPES = ("f8", "f4", "i4", "i8", "u1", ">f8", ">f4", "i2", "f2")
ROUTES = (
    ("polynomial", {"degree": 2}, {"method": "features"}),
    ("gaussian", {}, {"features": "pivots", "tol": 1e-3}),
    ("gaussian", {}, {"features": "pivots", "tol": 5e-5}),
    ("gaussian", {}, {"features": "monomial", "tol": 0.1}),
    ("linear", {}, {"method": "features"}),
    ("gaussian", {}, {"method": "krylov", "tol": 1e-3}),
    ("gaussian", {}, {"method": "dense"}),
)


class Blocks:
    """An object whose iteration starts anew; ``on_block`` is called before each block."""

    def __init__(self, cut, on_block=lambda count: None):
        self._cut, self._on_block, self._count = cut, on_block, 0

    def __iter__(self):
        for block in self._cut():
            self._count += 1
            self._on_block(self._count)
            yield block


def values(rng, n, d, dtype):
    """Rows of a type, as an array of it."""
    X = rng.standard_normal((n, d)) * 3
    kind = np.dtype(dtype).kind
    if kind in "iu":
        X = np.abs(X * 5) if kind == "u" else X * 5
    return X.astype(dtype)


def blocks_of(rng, X):
    """Cuts X into blocks of random lengths and forms; the same each time."""
    ends = np.sort(rng.integers(0, len(X) + 1, size=int(rng.integers(0, 9))))
    ends = [0, *ends.tolist(), len(X)]
    native = X.dtype.isnative
    forms = rng.choice(["array", "frame", "csr", "arrow", "fortran"] if native else ["array"], size=len(ends))
    if X.dtype not in (np.float64, np.float32):  # whole numbers of Arrow are floats, for the sake of nulls
        forms[:] = "array"

    def cut():
        for form, a, b in zip(forms, ends, ends[1:]):
            part = X[a:b]
            if form == "frame":
                yield pandas.DataFrame(part)
            elif form == "csr":
                yield sp.csr_matrix(part)
            elif form == "arrow":
                yield pyarrow.RecordBatch.from_arrays([pyarrow.array(x) for x in part.T.copy()], list(names(X)))
            else:
                yield np.asfortranarray(part) if form == "fortran" else part

    return cut


def names(X):
    return [f"x{i}" for i in range(X.shape[1])]


def table_of(X):
    return pyarrow.table({name: np.ascontiguousarray(x) for name, x in zip(names(X), X.T)})


class Store:
    """Rows in a source of some kind; ``open`` gives what a user would, ``change`` does something to what is stored."""

    def __init__(self, rng, kind, X, folder):
        self.kind, self.X, self.folder = kind, X, Path(folder)
        self.rng = rng
        self.path = self.folder / f"rows{int(rng.integers(1 << 60)):x}"
        self._held = X
        self.on_block = lambda count: None
        self._open = []
        getattr(self, "_make_" + kind.split()[0])()

    def close(self):
        for thing in self._open:
            with contextlib.suppress(Exception):
                thing.close()

    # ------------------------------------------------------------------ kinds

    def _make_npy(self):
        path = self.path.with_suffix(".npy")
        np.save(path, self.X)
        self.path = path
        self.given = np.load(path, mmap_mode="r")
        self._start, self._step = self.given.offset, self.X.shape[1] * self.X.itemsize

    def _make_strided(self):  # some columns, or some rows, of a larger table
        X = self.X
        every, more = int(self.rng.integers(1, 4)), int(self.rng.integers(0, 5))
        whole = np.zeros((len(X) * every, X.shape[1] + more), dtype=X.dtype)
        whole[::every, : X.shape[1]] = X
        whole.tofile(self.path)
        self._start, self._step = 0, whole.shape[1] * X.itemsize * every
        mapped = np.memmap(self.path, dtype=X.dtype, mode="r", shape=whole.shape)
        self.given = mapped[::every, : X.shape[1]]

    def _make_h5py(self):
        chunks = self.rng.choice(["none", "rows", "both"])
        n, d = self.X.shape
        chunks = {"none": None, "rows": (int(self.rng.integers(1, n + 1)), d)}.get(chunks, (max(1, n // 3), 1))
        file = h5py.File(self.path, "w")
        self._open.append(file)
        self._data = file.create_dataset(
            "X", data=self.X, chunks=chunks, maxshape=None if chunks is None else (None, d)
        )
        self.given = self._data

    def _make_zarr(self):
        n, d = self.X.shape
        chunks = (int(self.rng.integers(max(1, n // 40), n + 1)), int(self.rng.integers(1, d + 1)))
        native = self.X.astype(self.X.dtype.newbyteorder("="))
        self._data = zarr.create_array(str(self.path), shape=(n, d), chunks=chunks, dtype=native.dtype)
        self._data[:] = native
        self.given = zarr.open_array(str(self.path), mode="r")

    def _make_parquet(self):
        self.path = self.path.with_suffix(".parquet")
        self._write(self.path, self.X)
        if self.kind == "parquet path":
            self.given = self.path if self.rng.random() < 0.5 else str(self.path)
        elif self.kind == "parquet file":
            self.given = pyarrow.parquet.ParquetFile(self.path)
            self._open.append(self.given)
        else:
            self.given = pyarrow.dataset.dataset(str(self.path))

    def _write(self, path, X):
        rows = int(self.rng.integers(1, len(X) + 1)) if len(X) < 500 else len(X) // int(self.rng.integers(1, 9))
        pyarrow.parquet.write_table(table_of(X), path, row_group_size=max(1, rows))

    def _make_list(self):
        cut = blocks_of(self.rng, self.X)
        self.given = [np.asarray(x.toarray() if sp.issparse(x) else x) for x in cut() if not hasattr(x, "schema")]
        if sum(map(len, self.given)) != len(self.X):  # Arrow batches are no arrays
            self.given = [self.X]

    def _make_iterable(self):
        seed = int(self.rng.integers(1 << 30))
        self.given = Blocks(
            lambda: blocks_of(np.random.default_rng(seed), self._held)(), lambda count: self.on_block(count)
        )

    def _make_function(self):
        self._make_iterable()
        again = self.given
        self.given = lambda: iter(again)

    # ------------------------------------------------------------------ what may happen to it

    def changes(self):
        """Names of what can happen to this kind."""
        kind = self.kind.split()[0]
        if kind in ("npy", "strided"):
            return ["value", "truncate", "grow", "replace", "delete"]
        if kind == "h5py":
            return ["value"] + (["shrink", "grow"] if self._data.chunks else [])
        if kind == "zarr":
            return ["value", "shrink", "grow", "lose a chunk"]
        if self.kind in ("parquet path", "parquet dataset", "parquet file"):
            return ["rewrite", "truncate", "replace", "delete"]
        if kind in ("iterable", "function"):
            return ["value", "shrink", "grow", "columns", "type", "raise", "empty"]
        return []

    def now(self):
        """What a reader who begins now would find; None: nothing."""
        try:
            kind = self.kind.split()[0]
            if kind in ("npy", "strided"):
                return np.array(self.given)
            if kind in ("h5py", "zarr"):  # what is gone of a zarr array that is open has the fill value
                return np.array(self.given[:])
            if kind == "parquet":
                return np.stack([x.to_numpy() for x in pyarrow.parquet.read_table(self.path).columns], axis=1)
            return np.array(self._held)
        except RIGHT_ERRORS:
            return None

    def after(self, row):
        """Other rows of the same kind."""
        X = self.X.copy()
        X[row, 0] += X.dtype.type(1)
        return X

    def change(self, change, row):
        X, path = self.X, self.path
        new = self.after(row)
        kind = self.kind.split()[0]
        if change == "delete":
            os.unlink(path)
        elif change == "truncate":
            os.truncate(path, int(os.path.getsize(path) * self.rng.random()))
        elif change in ("replace", "rewrite"):
            other = path.with_suffix(".other")
            if kind == "parquet":
                self._write(other, new)
            else:
                other.write_bytes(bytes(os.path.getsize(path)))
            if change == "replace":
                os.replace(other, path)
            else:  # in place, as an open file would see it
                path.write_bytes(other.read_bytes())
        elif kind in ("npy", "strided") and change == "value":
            with open(path, "r+b") as file:
                file.seek(self._start + row * self._step)
                file.write(new[row, :1].tobytes())
        elif kind in ("npy", "strided"):
            with open(path, "ab") as file:
                file.write(bytes(5000))
        elif kind in ("h5py", "zarr"):
            if change == "value":
                self._data[row, 0] = new[row, 0]
            elif change == "lose a chunk":
                files = [p for p in Path(path).rglob("*") if p.is_file() and not p.name.startswith(("zarr", "."))]
                files[int(self.rng.integers(len(files)))].unlink()
            else:
                n = int(len(X) * self.rng.random()) if change == "shrink" else len(X) + int(self.rng.integers(1, 500))
                self._data.resize((n, X.shape[1]))
        elif change == "value":
            self._held = new
        elif change == "shrink":
            self._held = X[: int(self.rng.integers(0, len(X)))]
        elif change == "grow":
            self._held = np.vstack([X, X[: int(self.rng.integers(1, 50))]])
        elif change == "columns":
            self._held = X[:, :-1] if X.shape[1] > 1 else np.hstack([X, X])
        elif change == "type":
            self._held = X.astype(np.float32 if X.dtype != np.float32 else np.float64)
        elif change == "empty":
            self._held = X[:0]
        else:

            def fail(count):
                raise OSError("the disk is gone")

            self.on_block = fail


RIGHT_ERRORS = (DataChangedError, OSError, pyarrow.ArrowException, KeyError)
"""Of a change: ours; or what the library, or the iterable itself, says of a file that is gone or broken."""


def out_of(rng, kind, shape, dtype, folder):
    """(where to write the scores, how to read them back)."""
    path = str(Path(folder) / f"out{int(rng.integers(1 << 60)):x}")
    if kind == "array":
        out = np.empty(shape, dtype)
    elif kind == "fortran":
        out = np.empty(shape, dtype, order="F")
    elif kind == "npy":
        out = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    elif kind == "zarr":
        out = zarr.create_array(path, shape=shape, chunks=(max(1, shape[0] // int(rng.integers(1, 9))), 1), dtype=dtype)
    else:
        chunks = None if rng.random() < 0.5 else (int(rng.integers(1, shape[0] + 1)), shape[1])
        out = h5py.File(path, "w").create_dataset("scores", shape=shape, dtype=dtype, chunks=chunks)
    return out


def small_pages(rng):
    """Pages of few rows, and few of them kept: short files then have many."""
    size = int(2 ** rng.integers(9, 18))
    patches = [
        mock.patch.object(sources, "page_rows", lambda width: parallel.tile_rows(width, entries=size)),
        mock.patch.object(sources, "PAGE_CACHE_BYTES", int(2 ** rng.integers(12, 22))),
        mock.patch.object(foreign, "PAGE_CACHE_BYTES", int(2 ** rng.integers(10, 18))),
    ]
    stack = contextlib.ExitStack()
    for patch in patches:
        stack.enter_context(patch)
    return stack


def fitted(X, route, c, **more):
    kernel, parameters, options = route
    return silent(fk.kpca, X, kernel, c, **parameters, **options, **more)


def is_loose(model):
    """Whether rows in memory, and those in order, go through other steps: looks at what a map leaves out of some."""
    return model.plan.name == "pivots" and model.info["tol"] >= 1e-4


def alike(found, expected, out=None):
    """Whether two models have the same bits; of a loose tol, whether their intervals meet."""
    if is_loose(expected):
        (low, high), (least, most) = found.eigenvalue_bounds.T, expected.eigenvalue_bounds.T
        return len(low) == len(least) and bool((low <= most).all() and (least <= high).all())
    return bits(found, out) == bits(expected)


def bits(model, out=None):
    """All numbers of a model, to compare."""
    score = model.score if out is None else out[:]
    return [
        np.asarray(x).tobytes()
        for x in (model.eigenvalues, model.eigenvalue_bounds, model.shift, np.ascontiguousarray(score))
    ]


def changing_rows(rng, asked):
    """The attack; a case of more than ten minutes is a hang, and ends the run with the stacks of all threads."""
    faulthandler.dump_traceback_later(600, exit=True)
    try:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            outcome, text = case(rng, folder, asked.largest)
    finally:
        faulthandler.cancel_dump_traceback_later()
    yield outcome, text, []


def case(rng, folder, largest):
    """One random case: ("right", "error", ...) and a description; raises AssertionError for a broken promise."""
    n = int(np.exp(rng.uniform(np.log(3), np.log(largest))))
    d = int(rng.integers(1, 6))
    kind, dtype = str(rng.choice(KINDS)), str(rng.choice(TYPES))
    if "parquet" in kind and dtype.startswith(">"):
        dtype = dtype[1:]
    route = ROUTES[int(rng.integers(len(ROUTES)))]
    if n > 600 and route[2].get("method") in ("krylov", "dense"):
        route = ROUTES[0]
    X = values(rng, n, d, dtype)
    c = int(rng.integers(1, 3)) if d > 1 and n > 5 else 1
    threads = int(rng.integers(1, 4))
    what = str(rng.choice(["plain", "plain", "bad value", "change", "change", "change"]))
    text = f"{kind} {X.dtype.str} n={n} d={d} {route[0]} {route[2]} threads={threads} {what}"
    begun = time.perf_counter()
    try:
        expected = fitted(np.ascontiguousarray(X), route, c, n_threads=1)
        usual = time.perf_counter() - begun
    except ValueError as error:  # equal rows, and the like
        refused = str(error)
        with small_pages(rng):
            store = Store(rng, kind, X, folder)
            try:
                fitted(store.given, route, c, n_threads=threads)
            except ValueError as found:
                assert str(found) == refused, f"{text}: {found!r}, of the array {refused!r}"
                return "refused alike", text
            finally:
                store.close()
        raise AssertionError(f"{text}: {refused!r} for the array only") from error
    with small_pages(rng):
        if what == "bad value":
            return _bad_value(rng, X, kind, route, c, threads, text, folder)
        store = Store(rng, kind, X, folder)
        try:
            if what == "change" and store.changes():
                return _changing(rng, store, expected, route, c, threads, text, usual)
            return _plain(rng, store, expected, route, c, threads, text, folder)
        finally:
            store.close()


def _plain(rng, store, expected, route, c, threads, text, folder):
    target = str(rng.choice(["none", "array", "fortran", "npy", "zarr", "h5py"]))
    out = None
    if target != "none":
        out = out_of(rng, target, expected.score.shape, expected.score.dtype, folder)
    found = fitted(store.given, route, c, n_threads=threads, out=out)
    assert alike(found, expected, out), f"{text} {target}: other numbers"
    if found.projector.grows_with_n or is_loose(expected):
        return "right", text
    Z, W = (fk.kpca_project(model, X, n_threads=threads) for model, X in ((found, store.given), (expected, store.X)))
    assert Z.tobytes() == W.tobytes(), f"{text}: other projections"
    return "right", text


def _bad_value(rng, X, kind, route, c, threads, text, folder):
    if X.dtype.kind != "f":
        return "no such value", text
    for _ in range(int(rng.integers(1, 4))):
        X[int(rng.integers(len(X))), int(rng.integers(X.shape[1]))] = rng.choice([np.nan, np.inf, -np.inf])
    row, column = np.argwhere(~np.isfinite(X))[0]
    word = "NaN" if np.isnan(X[row, column]) else "infinity"
    store = Store(rng, kind, X, folder)
    try:
        fitted(store.given, route, c, n_threads=threads)
    except ValueError as error:
        place = f"X contains {word} (first at row {row}, column {column})"
        assert place in str(error), f"{text}: {error!r}, not {place!r}"
        return "found", text
    finally:
        store.close()
    raise AssertionError(f"{text}: {word} at row {row} was not found")


def _changing(rng, store, expected, route, c, threads, text, usual):
    change, row = str(rng.choice(store.changes())), int(rng.integers(len(store.X)))
    when = str(rng.choice(["progress", "thread", "block", "read", "read", "read", "read"]))
    text += f" {change} by {when}"
    done = threading.Event()

    def happen():
        if not done.is_set():
            done.set()
            store.change(change, row)

    count, at, delay = 0, int(rng.integers(1, 9)), float(rng.uniform(0, 1.2)) * usual

    def progress(stage, finished, total):
        nonlocal count
        count += 1
        if count == at:
            happen()

    more = {"progress": progress} if when == "progress" else {}
    thread = None
    if when == "thread":

        def wait():
            time.sleep(delay)
            happen()

        thread = threading.Thread(target=wait)
        thread.start()
    elif when == "read":  # as a page is about to be read
        at = int(np.exp(rng.uniform(0, np.log(20))))
    elif when == "block":
        store.on_block = lambda number: happen() if number == at else None
    try:
        with _before_reads(happen, at) if when == "read" else contextlib.nullcontext():
            found = fitted(store.given, route, c, n_threads=threads, **more)
    except RIGHT_ERRORS as error:
        assert done.is_set(), f"{text}: {error!r} before anything changed"
        return f"error {type(error).__name__}", text
    except ValueError as error:
        # blocks of another type or width are told as such, an object without blocks as empty
        right = ("all blocks need the same", "has no rows", "changed while it was read")
        assert done.is_set(), f"{text}: {error!r} before anything changed"
        if not any(word in str(error) for word in right):
            _same_error(store.now(), route, c, error, text)
        return "error ValueError", text
    finally:
        if thread is not None:
            thread.join()
    if not done.is_set():
        assert alike(found, expected), f"{text}: other numbers"
        return "not changed", text
    if alike(found, expected):
        return "rows before", text
    rows = store.now()
    with contextlib.suppress(ValueError):
        changed = None if rows is None else fitted(np.ascontiguousarray(rows), route, c, n_threads=1)
        assert changed is not None and alike(found, changed), f"{text}: neither the rows before nor those after"
        return "rows after", text
    raise AssertionError(f"{text}: an answer from rows that have none")


def _same_error(rows, route, c, error, text):
    """The rows after the change are refused in the same words."""
    try:
        fitted(rows, route, c, n_threads=1)
    except ValueError as found:
        # a stream of one row has no columns to lie along
        same = str(found).partition(" (if")[0] == str(error).partition(" (if")[0]
        assert same, f"{text}: {error!r}, of the array {found!r}"
        return
    raise AssertionError(f"{text}: {error!r}")


@contextlib.contextmanager
def _before_reads(happen, at):
    """Calls happen() before page number ``at`` is read, counted over all passes."""
    count = itertools.count(1)

    def counted(method):
        def read(self, i):
            if next(count) == at:
                happen()
            return method(self, i)

        return read

    with contextlib.ExitStack() as stack:
        for source, name in (
            (sources.FileSource, "_load"),
            (sources.ChunkedSource, "_load"),
            (sources.SequentialSource, "_fetch"),
        ):
            stack.enter_context(mock.patch.object(source, name, counted(getattr(source, name))))
        yield

"""Rows that are not in memory: the same bits as from an array, whatever the source and its chunks."""

from __future__ import annotations

import errno
import os
from functools import partial

import numpy as np
import pytest
from child import child
from peak import needs_proc, peak

import fastkpca as fk
from fastkpca.base import parallel
from fastkpca.base.checks import Randomness
from fastkpca.cli.tables import write as scorefiles
from fastkpca.errors import DataChangedError
from fastkpca.rows import foreign, sources
from fastkpca.rows.convert import as_rows
from fastkpca.rows.sources import Source
from fastkpca.rows.summary import summarize

source_cases = pytest.importorskip("source_cases")  # which needs what reads rows

N, D = 30000, 3
DATA = (np.random.default_rng(0).standard_normal((N, D)) * [2.0, 1.0, 0.5] + [5.0, -3.0, 100.0]).astype(np.float32)


class Blocks:
    """Starts anew with every iter(); counts how often."""

    def __init__(self, X, sizes, wrap=lambda x: x):
        self.X, self.sizes, self.wrap, self.starts = X, sizes, wrap, 0

    def __iter__(self):
        self.starts += 1
        start = 0
        for i in range(10**9):
            if start >= len(self.X):
                return
            size = self.sizes[i % len(self.sizes)]
            yield self.wrap(self.X[start : start + size])
            start += size


def memmap(X, folder):
    X.tofile(folder / "x.bin")
    return np.memmap(folder / "x.bin", dtype=X.dtype, mode="r", shape=X.shape)


def stored(kind):
    """Of those that the attack on sources makes, in files and blocks cut at random."""
    return lambda X, folder: source_cases.Store(np.random.default_rng(0), kind, X, folder).given


def in_one_chunk(X, folder):
    return pytest.importorskip("h5py").File(folder / "x.h5", "w").create_dataset("x", data=X, chunks=X.shape)


def pandas_frame(X, types):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({f"c{j}": x for j, x in enumerate(X.T)}).astype({f"c{j}": t for j, t in types.items()})


SOURCES = {kind: stored(kind) for kind in source_cases.KINDS} | {
    "hdf5 in one chunk": in_one_chunk,
    "arrow table": lambda X, f: source_cases.table_of(X),
    "arrow batch": lambda X, f: source_cases.table_of(X).combine_chunks().to_batches()[0],
    "mixed frame": lambda X, f: pandas_frame(X.astype(float), {0: "float32"}),
    "nullable frame": lambda X, f: pandas_frame(X.astype(float), dict.fromkeys(range(D), "Float64")),
    "iterable of short blocks": lambda X, f: Blocks(X, [1, 17, 4096, 0, 10000]),
    "iterable of lists": lambda X, f: Blocks(X, [3000], lambda x: x.astype(np.float64).tolist()),
    "generator function": lambda X, f: lambda: (x for x in np.array_split(X, 7)),
}
MODEL = {}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    """Else all of the rows would be kept after the first pass."""
    pages(monkeypatch, 1 << 14, 1 << 16)


def pages(monkeypatch, size, kept):
    rows = partial(parallel.tile_rows, entries=size)
    monkeypatch.setattr(sources, "page_rows", rows)
    for module in (sources, foreign):
        monkeypatch.setattr(module, "PAGE_CACHE_BYTES", kept)


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_bits_whatever_the_source(kind, tmp_path):
    X = SOURCES[kind](DATA, tmp_path)
    double = kind in ("iterable of lists", "mixed frame", "nullable frame")
    for name, options in {
        "gaussian": {"sigma": 4.0, "features": "pivots"},
        "polynomial": {"degree": 2, "features": "monomial"},
    }.items():
        key = name, double
        if key not in MODEL:
            given = DATA.astype(np.float64) if double else DATA
            MODEL[key] = fk.kpca(given, name, 3, tol=1e-5, n_threads=1, **options)
        expected = MODEL[key]
        model = fk.kpca(X, name, 3, tol=1e-5, n_threads=3, **options)
        np.testing.assert_array_equal(model.eigenvalues, expected.eigenvalues)
        np.testing.assert_array_equal(model.eigenvalue_bounds, expected.eigenvalue_bounds)
        np.testing.assert_array_equal(model.score, expected.score)
    np.testing.assert_array_equal(fk.kpca_project(expected, X), expected.score)


@pytest.mark.parametrize("kind", ["npy map", "h5py", "zarr", "parquet path", "iterable"])
def test_the_plan_says_where_all_rows_are_loaded(kind, tmp_path):
    X = SOURCES[kind](DATA[:900], tmp_path)
    text = str(fk.plan(X, "gaussian", 4, sigma=3.0, method="krylov"))
    assert ("loads all rows (10.8 kB)" in text) == (kind in ("parquet path", "iterable"))


def test_pivots_that_need_rows_beyond_the_sample(tmp_path):
    X = DATA.copy()
    X[20123] += 60.0
    expected = fk.kpca(X, "gaussian", 3, sigma=3.0, features="pivots", tol=1e-5)
    model = fk.kpca(Blocks(X, [2500]), "gaussian", 3, sigma=3.0, features="pivots", tol=1e-5)
    np.testing.assert_array_equal(model.eigenvalues, expected.eigenvalues)
    np.testing.assert_array_equal(model.score, expected.score)


def test_gram_and_features_of_a_stream():
    few = DATA[:3000]
    X = Blocks(few, [100, 1])
    U = np.random.default_rng(1).standard_normal((3000, 2))
    np.testing.assert_array_equal(fk.gram(X, "gaussian", sigma=2.0) @ U, fk.gram(few, "gaussian", sigma=2.0) @ U)
    F, G = (fk.features(x, "gaussian", sigma=4.0, tol=1e-6) for x in (X, few))
    np.testing.assert_array_equal(F.T @ U, G.T @ U)
    with pytest.raises(ValueError, match="c is 3001, but X has 3000 rows"):
        fk.kpca(X, "gaussian", 3001, sigma=1.0)


# One pass is one pass -----------------------------------------------------------------------------------------------


def test_a_pass_reads_the_rows_once(monkeypatch):
    """Counting, summary and the rest: as few readings as the passes need, at any number of threads."""
    pages(monkeypatch, 1 << 18, 1 << 22)
    many = np.tile(DATA, (20, 1)) + np.float32(0.1)  # 7.2 MB
    for n_threads in (1, 3):
        X = Blocks(many, [1000])
        fk.kpca(X, "linear", 2, method="features", n_threads=n_threads, return_scores=False)
        assert X.starts == 3  # summary (which counts), radius and sample, moments
        fk.kpca(X, "linear", 2, method="features", n_threads=n_threads)
        assert X.starts == 7


def test_rows_at_random_and_backwards():
    rng = np.random.default_rng(3)
    X = Blocks(DATA, [1234])
    rows = as_rows(X)
    for _ in range(20):
        a, b = np.sort(rng.integers(0, N, 2))
        np.testing.assert_array_equal(rows.tile(a, b), DATA[a:b])
    index = rng.integers(0, N, 500)
    np.testing.assert_array_equal(rows.take(index), DATA[index])
    assert rows.n_samples == N == len(rows.source)
    assert rows.take(np.arange(0)).shape == (0, D)


@pytest.mark.parametrize("n", [2, 63, 64, 65, 1 << 14, (1 << 14) + 1])
@pytest.mark.parametrize("counted", [False, True])
def test_lengths_about_the_size_of_a_page(n, counted):
    X = np.random.default_rng(0).standard_normal((n, 2))
    stream = Blocks(X, [1 << 13])
    source = as_rows(np.array_split(X, 2) if counted else stream)
    assert source.counted == counted
    rows, data = summarize(source, shift=True, randomness=Randomness(0))
    own, expected = summarize(as_rows(X), shift=True, randomness=Randomness(0))
    assert rows.n_samples == n
    np.testing.assert_array_equal(data.sample, expected.sample)
    np.testing.assert_array_equal(data.covariance, expected.covariance)
    np.testing.assert_array_equal(rows.all(), own.all())


def test_a_buffer_that_is_filled_again():
    """An iterable may hand out one array again and again, with new contents."""

    def blocks():
        buffer = np.empty((700, D), dtype=np.float32)
        for start in range(0, N, 700):
            part = DATA[start : start + 700]
            buffer[: len(part)] = part
            yield buffer[: len(part)]

    rows = as_rows(blocks)
    np.testing.assert_array_equal(rows.all(), DATA)


# What is wrong is found ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SOURCES)
def test_the_place_of_what_is_not_finite(kind, tmp_path):
    X = DATA.copy()
    value, word = (np.nan, "NaN") if len(kind) % 2 else (np.inf, "infinity")
    X[23456, 1] = X[29000, 0] = value
    source = SOURCES[kind](X, tmp_path)
    column = "column 'c1'" if "frame" in kind else "column 1"
    text = rf"contains {word} \(first at row 23456, {column}\)"
    with pytest.raises(ValueError, match=text):
        fk.kpca(source, "gaussian", 2, sigma=1.0)
    model = fk.kpca(DATA[:500], "gaussian", 2, sigma=1.0)
    with pytest.raises(ValueError, match=text):
        fk.kpca_project(model, source)


@pytest.mark.parametrize("types", [{0: "float32", 1: "int64"}, {1: "Int64"}], ids=str)
def test_whole_numbers_too_large_far_down_a_table(types):
    frame = pandas_frame(np.round(DATA.astype(float)), types)
    frame.loc[23456, "c1"] = 2**60
    with pytest.raises(ValueError, match=r"'c1' \(first at row 23456\)"):
        fk.kpca(frame, "polynomial", 2, degree=2)


def test_nulls_of_a_table_are_missing_values():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [1.0, 2.0, 3.0], "b": pa.array([1, None, 3])})
    with pytest.raises(ValueError, match=r"NaN \(first at row 1, column 1\)"):
        fk.kpca(table, "gaussian", 1, sigma=1.0)
    with pytest.raises(TypeError, match=r"column 'b' \(number 1\) of type string"):
        fk.kpca(pa.table({"a": [1.0, 2.0], "b": ["x", "y"]}), "gaussian", 1, sigma=1.0)


TABLES = {
    "mixed": lambda X: pandas_frame(X, {0: "float32", 1: "int8", 2: "bool"}),
    "nullable": lambda X: pandas_frame(X, dict.fromkeys(range(X.shape[1]), "Float64")),
    "polars": lambda X: pytest.importorskip("polars").DataFrame({f"c{j}": x for j, x in enumerate(X.T)}),
    "arrow table": source_cases.table_of,
    "arrow batch": lambda X: source_cases.table_of(X).to_batches()[0],
}


@needs_proc
@pytest.mark.parametrize(
    ("kind", "limit"), [*((kind, 30_000_000) for kind in TABLES if kind != "arrow batch"), ("arrow batch", 300_000_000)]
)
def test_tables_of_columns_within_the_memory_limit(kind, limit):
    X = np.tile(np.round(DATA.astype(np.float64)), (4, 12))  # exact in all types
    X[:, 2] = X[:, 2] > 100
    assert X.nbytes > 1.1 * 30_000_000
    table = TABLES[kind](X)
    options = {"c": 2, "memory_limit": limit}
    if limit not in MODEL:
        MODEL[limit] = fk.kpca(X, "linear", **options)
    assert as_rows(table).in_memory
    grown, model = peak(lambda: fk.kpca(table, "linear", **options))
    assert grown < 1.1 * limit
    np.testing.assert_array_equal(model.eigenvalue_bounds, MODEL[limit].eigenvalue_bounds)
    np.testing.assert_array_equal(model.score, MODEL[limit].score)


class Changing(Blocks):
    """Another content from the given start on."""

    def __init__(self, change, when):
        super().__init__(DATA, [1000])
        self.change, self.when = change, when

    def __iter__(self):
        if self.starts + 1 == self.when:
            self.X = self.change(self.X.copy())
        return super().__iter__()


def one_value(X):
    X[17000, 1] = np.nextafter(X[17000, 1], np.float32(np.inf))
    return X


def swapped(X):
    X[[10, 11]] = X[[11, 10]]
    return X


CHANGES = {
    "a value": (one_value, "rows 16384 to 17407 are not what they were"),
    "two rows": (swapped, "rows 0 to 1023 are not what they were"),
    "shorter": (lambda X: X[:-1], "29999 rows now, 30000 in an earlier pass"),
    "longer": (lambda X: np.vstack([X, X[:1]]), "more rows than the 30000|changed while"),
    "another type": (lambda X: X.astype(np.float64), "3 columns of float64, the first block 3 of float32"),
    "another column": (lambda X: np.hstack([X, X[:, :1]]), "4 columns of float32, the first block 3"),
}


@pytest.mark.parametrize(
    ("change", "when"), [*((change, 2 + len(change) % 3) for change in CHANGES), ("a value", 2), ("a value", 3)]
)
def test_a_stream_that_changes_between_passes(change, when):
    make, text = CHANGES[change]
    with pytest.raises(ValueError, match=text) as caught:
        fk.kpca(Changing(make, when), "gaussian", 2, sigma=3.0, method="features", n_threads=2)
    if "type" not in change and "column" not in change:
        assert isinstance(caught.value, DataChangedError)


def test_a_memory_map_that_changes(tmp_path):
    X = memmap(DATA, tmp_path)
    stage = []

    def progress(name, done, total):
        if name == "moments" and not stage:
            stage.append(name)
            with open(tmp_path / "x.bin", "r+b") as file:
                file.seek(4 * D * 29990)
                file.write(np.float32(7.5).tobytes())

    with pytest.raises(DataChangedError, match="X changed while it was read: rows 29696 to 29999"):
        fk.kpca(X, "gaussian", 2, sigma=3.0, method="features", progress=progress, n_threads=1)


def test_a_file_cut_short_is_an_error_and_not_the_end_of_the_process(tmp_path):
    """Read through the mapping this would be SIGBUS."""
    DATA.tofile(tmp_path / "x.bin")
    code = f"""
        import numpy as np, os
        import fastkpca as fk
        from fastkpca.rows import sources
        sources.page_rows = lambda _: 256
        path = {str(tmp_path / "x.bin")!r}
        X = np.memmap(path, dtype=np.float32, mode="r", shape=({N}, {D}))
        def progress(name, done, total):
            if name == "moments":
                os.truncate(path, 4 * {D} * 10000)
        try:
            fk.kpca(X, "gaussian", 2, sigma=3.0, method="features", progress=progress, n_threads=1)
        except fk.errors.DataChangedError as error:
            print(error)
        try:
            fk.kpca(X, "gaussian", 2, sigma=3.0)
        except fk.errors.DataChangedError as error:
            print(error)
    """
    found = " ".join(child(code))
    assert "its file has 120000 bytes now, and 360000 are needed for its 30000 rows" in found
    assert "which has 120000 bytes now; 360000 are needed for 30000 x 3 numbers" in found


def test_a_memory_map_whose_file_was_replaced_or_deleted(tmp_path):
    X = memmap(DATA, tmp_path)
    (DATA + 1).tofile(tmp_path / "y.bin")
    os.replace(tmp_path / "y.bin", tmp_path / "x.bin")
    np.testing.assert_array_equal(as_rows(X).tile(0, 10), DATA[:10])
    os.remove(tmp_path / "x.bin")
    np.testing.assert_array_equal(as_rows(X).tile(0, 10), DATA[:10])


def test_maps_with_an_offset_and_parts_of_them(tmp_path):
    with open(tmp_path / "x.bin", "wb") as file:
        file.write(b"x" * 5003)
        DATA.tofile(file)
    X = np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="r", offset=5003, shape=(N, D))
    np.save(tmp_path / "x.npy", DATA)
    for map_ in (X, np.load(tmp_path / "x.npy", mmap_mode="r")):
        for key in (np.s_[:], np.s_[7:], np.s_[3:20000:3, 1:], np.s_[::-1], np.s_[::-7, ::-2]):
            rows = as_rows(map_[key])
            assert isinstance(rows.source, Source)
            np.testing.assert_array_equal(rows.all(), DATA[key])
        np.testing.assert_array_equal(as_rows(map_.T).all(), DATA.T)
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    private[5] = 7.0  # which its file does not have
    assert (as_rows(private).tile(4, 7) == private[4:7]).all()


def breaks():
    yield DATA[:5000]
    raise OSError("the tape broke")


def used_up():
    blocks = iter(np.array_split(DATA, 3))
    return lambda: blocks


REFUSED = {
    "generator": (lambda: (x for x in [DATA]), TypeError, "can be read once only"),
    "iterator": (lambda: iter([DATA]), TypeError, "can be read once only"),
    "the same iterator again": (used_up, TypeError, "same iterator twice"),
    "no blocks": (lambda: lambda: iter([]), ValueError, "no rows: the iterable yields no block"),
    "empty blocks": (lambda: Blocks(DATA[:0], [1]), ValueError, "no rows"),
    "vectors": (lambda: lambda: iter(DATA), ValueError, r"block 0 of X \(from row 0\) has shape \(3,\)"),
    "widths": (
        lambda: lambda: iter([DATA, DATA[:, :2]]),
        ValueError,
        r"block 1 of X \(from row 30000\) has 2 columns of float32, the first block 3",
    ),
    "words": (lambda: lambda: iter([[["a", "b"]]]), TypeError, r"block 0 of X .*contains 'a'"),
    "complex": (lambda: lambda: iter([DATA * 1j]), TypeError, "block 0 of X .* is complex"),
    "one row": (lambda: lambda: iter([DATA[:1]]), ValueError, "1 row; kpca needs at least 2: one row has no variance"),
    "not a block": (lambda: lambda: iter([None]), ValueError, r"block 0 of X \(from row 0\) has shape \(\)"),
    "an error of the iterable": (lambda: breaks, OSError, "the tape broke"),
    "a parquet path that is not there": (lambda: "nowhere.parquet", FileNotFoundError, "nowhere"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, error, text = REFUSED[case]
    if "parquet" in case:
        pytest.importorskip("pyarrow")
    with pytest.raises(error, match=text):
        fk.kpca(make(), "gaussian", 2, sigma=3.0)


def test_half_floats_of_a_table_are_what_they_are_elsewhere():
    """As an array of them: scores are float64, and those of float32 are float32."""
    pa = pytest.importorskip("pyarrow")
    for dtype, scores in ((np.float16, np.float64), (np.float32, np.float32), (np.int16, np.float64)):
        X = (8 * np.random.default_rng(0).standard_normal((50, 3))).astype(dtype)
        table = pa.table({f"x{i}": np.ascontiguousarray(x) for i, x in enumerate(X.T)})
        one, other = (fk.kpca(rows, "polynomial", 2, degree=2, method="features") for rows in (X, table))
        assert one.score.dtype == other.score.dtype == scores
        np.testing.assert_array_equal(one.score, other.score)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room is reserved where the system can")
@pytest.mark.parametrize("c", [2, 0.99])
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, monkeypatch, c):
    """Written through a map, rows that the disk has no room for would end the process (SIGBUS)."""
    asked = []

    def full(handle, start, size):
        asked.append(start + size <= os.fstat(handle).st_size or size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    X, path = np.random.default_rng(0).standard_normal((200, 3)), tmp_path / "s.npy"

    def place(shape, dtype):
        return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)

    out = place((200, 2), np.float64) if c == 2 else place
    with pytest.raises(OSError, match="No space left on device for .* MB of scores.*s.npy") as caught:
        fk.kpca(X, "gaussian", c, sigma=2.0, out=out)
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(path)
    monkeypatch.setattr(scorefiles, "SCORES_AT_ONCE", 0)
    with pytest.raises(OSError, match="No space left on device for 0.0032 MB of scores") as caught:
        fk.kpca(X, "gaussian", 2, sigma=2.0, out=scorefiles.score_place(path))
    assert caught.value.filename.startswith(str(tmp_path)) and asked == [True, 3200]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room is reserved where the system can")
def test_room_is_reserved_for_the_part_that_is_written(tmp_path):
    whole = np.memmap(tmp_path / "s", np.float64, "w+", shape=(1 << 20, 2))
    X = np.random.default_rng(0).standard_normal((200, 3))
    fk.kpca(X, "gaussian", 2, sigma=2.0, out=whole[1000:1200])
    used = os.stat(tmp_path / "s")
    assert used.st_size == 1 << 24 and 3200 <= 512 * used.st_blocks < 1 << 20
    assert not whole[:1000].any() and not whole[1200:1300].any() and whole[1000:1200].all()


def test_the_covariance_is_that_of_the_sample():
    X = np.random.default_rng(0).random((5000, 60)) * np.arange(1, 61)
    _, data = summarize(as_rows(X), shift=True, randomness=Randomness(0))
    assert len(data.sample) == 4096
    np.testing.assert_allclose(data.covariance, np.cov(data.sample.T, bias=True), rtol=1e-12, atol=1e-8)

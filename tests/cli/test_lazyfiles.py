"""HDF5, MATLAB v7.3, zarr and Parquet files: the rows that were written, read as they are needed."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
import scipy.io
from peak import needs_proc, peak

import fastkpca as fk
from fastkpca import cli
from fastkpca.cli.tables import read as tables
from fastkpca.cli.tables import write as scorefiles
from fastkpca.errors import DataFileError
from fastkpca.rows.convert import as_rows
from fastkpca.rows.sources import Source

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).standard_normal((5000, 4)) + [0.0, 100.0, -3.0, 1e-3]
WORDS = np.array(["one", "two", "three", "four", "five"])[np.arange(5000) % 5]
MODEL = {"kernel": "polynomial", "c": 3, "degree": 2}


def parquet(path, rows=slice(None), **columns):
    table = pa.table({name: X[rows, i] for i, name in enumerate("abcd")} | columns)
    pq.write_table(table, path, row_group_size=700)
    return path


def hdf5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name.replace("__", "/"), data=array, chunks=(min(64, len(array)), *array.shape[1:]))
    return path


def matlab(path, chunks=(1, 100), **arrays):
    """As MATLAB writes them: columns are the rows of the file, behind a header of 512 bytes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            stored = np.atleast_2d(array).T if array.ndim > 1 else array[None, :]
            data = file.create_dataset(name, data=stored, chunks=chunks)
            data.attrs["MATLAB_class"] = np.bytes_("double")
        file.create_group("#refs#").create_dataset("a", data=np.eye(3))
        empty = file.create_dataset("nothing", data=np.array([0, 0], dtype=np.uint64))
        empty.attrs["MATLAB_empty"] = np.uint8(1)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


def written(kind, folder):
    """(path, options) of the rows X in a file of this kind."""
    if kind == "parquet":
        return parquet(folder / "x.parquet"), {}
    if kind == "parquet folder":
        (folder / "many").mkdir()
        for i in range(5):
            parquet(folder / "many" / f"part-{i}.parquet", slice(1000 * i, 1000 * (i + 1)))
        return folder / "many", {}
    if kind == "hdf5":
        return hdf5(folder / "x.h5", X=X), {}
    if kind == "hdf5, one of several":
        return hdf5(folder / "x.hdf5", run__X=X, run__Y=X[:7]), {"var": "run/X"}
    if kind.startswith("matlab"):
        return matlab(folder / "x.mat", None if "contiguous" in kind else (1, 100), X=X, y=np.arange(5000.0)), {}
    if kind == "zarr":
        zarr.create_array(folder / "x.zarr", data=X, chunks=(300, 2))
        return folder / "x.zarr", {}
    zarr.create_group(folder / "group.zarr").create_group("inner").create_array("X", data=X, chunks=(300, 2))
    return folder / "group.zarr", {}


KINDS = ("parquet", "parquet folder", "hdf5", "hdf5, one of several", "matlab", "matlab, contiguous", "zarr",
         "group of zarr")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_equal_bits_whatever_the_file(kind, tmp_path):
    path, options = written(kind, tmp_path)
    table = tables.read(path, **options)
    assert isinstance(table.X, Source) or callable(table.X)  # nothing was loaded
    assert table.names == (list("abcd") if "parquet" in kind else None)
    expected = fk.kpca(X, **MODEL)
    model = fk.kpca(table.X, **MODEL)
    assert np.array_equal(model.eigenvalue_bounds, expected.eigenvalue_bounds)
    assert np.array_equal(model.score, expected.score)
    for columns, taken in ((["4", "1"], [3, 0]), (["2-3"], [1, 2])):
        some = tables.read(path, columns=columns, **options)
        assert np.array_equal(fk.kpca(some.X, **MODEL).score, fk.kpca(X[:, taken], **MODEL).score)
    table = tables.read(path, label_column="2", **options)
    np.testing.assert_array_equal(table.labels, X[:, 1])
    assert np.array_equal(fk.kpca(table.X, **MODEL).eigenvalues, fk.kpca(X[:, [0, 2, 3]], **MODEL).eigenvalues)


def test_labels_beside_the_rows(tmp_path):
    table = tables.read(hdf5(tmp_path / "x.h5", X=X, kind=np.arange(5000)), label_column="kind")
    np.testing.assert_array_equal(table.labels, np.arange(5000))
    table = tables.read(matlab(tmp_path / "x.mat", X=X, kind=np.arange(5000.0)), label_column="kind")
    np.testing.assert_array_equal(table.labels, np.arange(5000))
    table = tables.read(parquet(tmp_path / "x.parquet", kind=WORDS), label_column="kind")
    assert table.labels.tolist() == WORDS.tolist()


@pytest.mark.parametrize("kind", ["external", "virtual", "external labels"])
def test_an_hdf5_file_does_not_read_other_files(kind, tmp_path):
    X[:1000].tofile(tmp_path / "private.bin")
    hdf5(tmp_path / "private.h5", X=X)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        if kind == "virtual":
            layout = h5py.VirtualLayout(X.shape, X.dtype)
            layout[:] = h5py.VirtualSource(tmp_path / "private.h5", "X", X.shape)
            file.create_virtual_dataset("X", layout)
        else:
            name, shape = ("y", (1000,)) if kind == "external labels" else ("X", (1000, 4))
            outside = [(str(tmp_path / "private.bin"), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset(name, shape, X.dtype, external=outside)
            if name == "y":
                file["X"] = X[:1000]
    label = "y" if kind == "external labels" else None
    with pytest.raises(DataFileError, match=r"x.h5: the numbers of '[Xy]' lie in other files"):
        tables.read(tmp_path / "x.h5", label_column=label)


def refused(path, text, **options):
    with pytest.raises(DataFileError, match=text) as caught:
        tables.read(path, **options)
    assert "\n" not in str(caught.value)


def test_what_is_no_table(tmp_path):
    path = parquet(tmp_path / "x.parquet", kind=WORDS, when=np.arange(5000).astype("datetime64[s]"))
    refused(path, r"not numeric: column 5 \('kind'\) of type string, column 6 \('when'\) of type timestamp.*"
                  "leave out with --skip-columns kind,when")  # fmt: skip
    assert tables.read(path, skip_columns=["kind", "when"]).names == list("abcd")
    refused(path, "has no column 'e'", columns=["e"])
    refused(path, "leave out --var X", var="X")
    refused(parquet(tmp_path / "none.parquet", slice(0, 0)), r"the table is empty, its shape is \(0, 4\)")
    refused(hdf5(tmp_path / "x.h5", X=X, Y=X), r"several tables; choose one with --var: X \(5000 x 4\), Y")
    refused(hdf5(tmp_path / "v.h5", y=X[:, 0]), r"no table of rows and columns; it has y \(5000\)")
    refused(hdf5(tmp_path / "c.h5", y=X * 1j), "no array of real numbers")
    refused(tmp_path / "x.h5", "no array of real numbers called 'Z'", var="Z")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "is a folder, and neither a zarr store nor a folder of Parquet files")


DAMAGED = {
    "x.parquet": (parquet, 300),
    "x.h5": (lambda path: hdf5(path, X=X), 300),
    "m.mat": (lambda path: matlab(path, X=X), 300),
    "x.npz": (lambda path: np.savez_compressed(path, X=X[:20]), 3000),
    "x.mat": (lambda path: scipy.io.savemat(path, {"X": X[:20]}, do_compression=True), 100),  # by another process
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(tmp_path, attack, name):
    make, count = DAMAGED[name]
    rng, path = attack.rng(f"damaged {name}"), tmp_path / name
    make(path)
    whole = path.read_bytes()
    for kept in (12, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:kept])
        refused(path, name)
    for case in range(attack.count(count)):
        mutant = bytearray(whole)
        for at in rng.integers(len(whole), size=1 + case % 3):
            mutant[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(mutant[: int(rng.integers(3, len(whole))) if case % 2 else None])
        try:
            tables.read(path)
        except DataFileError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(("library", "kind"), [("h5py", "hdf5"), ("zarr", "zarr"), ("pyarrow", "parquet")])
def test_a_library_that_is_not_installed(library, kind, tmp_path, monkeypatch):
    path, _ = written(kind, tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    refused(path, rf"reading it needs {library} \(pip install {library}\)")


def test_arrow_files_are_read_as_parquet_is(tmp_path):
    feather = pytest.importorskip("pyarrow.feather")
    table = pq.read_table(parquet(tmp_path / "x.parquet", kind=WORDS))
    for name in ("x.arrow", "x.feather"):
        feather.write_feather(table, tmp_path / name)
        found, same = (tables.read(tmp_path / x, skip_columns=["kind"]) for x in (name, "x.parquet"))
        assert found.names == same.names
        np.testing.assert_array_equal(as_rows(found.X).all(), as_rows(same.X).all())
    (tmp_path / "x.arrow").write_bytes((tmp_path / "x.arrow").read_bytes()[:200])
    refused(tmp_path / "x.arrow", "is not a readable Arrow file")


def test_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scorefiles, "SCORES_AT_ONCE", 1000)  # scores wait in a file
    path = parquet(tmp_path / "x.parquet", kind=WORDS)
    model, scores = str(tmp_path / "m.kpca"), tmp_path / "s.npy"
    fit = ["fit", str(path), "--kernel", "polynomial", "--degree", "2", "-c", "3", "--skip-columns", "kind", "--quiet"]
    assert cli.main([*fit, "-o", model, "--scores", str(scores)]) == 0
    expected = fk.kpca(X, **MODEL)
    np.testing.assert_array_equal(np.load(scores), expected.score)
    assert sorted(os.listdir(tmp_path)) == ["m.kpca", "s.npy", "x.parquet"] and capsys.readouterr().err == ""


@needs_proc
@pytest.mark.parametrize("kind", ["parquet", "hdf5", "matlab", "zarr"])
def test_memory_does_not_grow_with_the_file(kind, tmp_path):
    """A third of its columns (of Parquet all), fitted from the command line.

    What a fit takes of a Parquet file of any size: 48 MB of pages and blocks, 11 MB of Arrow's for a few row groups,
    and up to 20 MB of gaps between them. So that file has 154 MB. Libraries are loaded by a small file before.
    """

    def write(path, rows):
        if kind == "parquet":
            table = pa.table({f"c{i}": rows[:, i] for i in range(12)})
            pq.write_table(table, path, row_group_size=10_000)
        elif kind == "zarr":
            zarr.create_array(path, data=rows, chunks=(20_000, 12), compressors=None)
        elif kind == "hdf5":
            with h5py.File(path, "w") as file:
                file.create_dataset("X", data=rows, chunks=(min(5000, len(rows)), 12))
        else:
            matlab(path, chunks=(12, min(5000, len(rows))), X=rows)
        return path

    def fit(path):
        columns = "1-12" if kind == "parquet" else "1,4,9,12"
        options = ["--kernel", "linear", "-c", "2", "--columns", columns, "--quiet", "--threads", "1"]
        return cli.main(["fit", str(path), *options])

    many = np.random.default_rng(0).random((1_600_000 if kind == "parquet" else 800_000, 12))
    path, size = write(tmp_path / "x", many), many.nbytes
    assert fit(write(tmp_path / "small", many[:1000])) == 0
    del many
    grown, code = peak(lambda: fit(path))
    assert code == 0 and grown < 0.75 * size

"""Kinds of MATLAB files: each is read rightly, or refused in a sentence whose advice works."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from fastkpca.cli.tables import read as tables
from fastkpca.errors import DataFileError
from fastkpca.rows.convert import as_rows

X = np.arange(12.0).reshape(4, 3)
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def cells(*values):
    array = np.empty((1, len(values)), dtype=object)
    array[0, :] = values
    return array


def numbers(path, **options):
    return as_rows(tables.read(path, **options).X).all()


READ = {
    "double": {"X": X},
    "single": {"X": X.astype(np.float32)},
    **{name: {"X": X.astype(name)} for name in WHOLE},
    "logical": {"X": X % 2 == 1},
    "sparse": {"X": sp.csc_matrix(X)},
    "sparse logical": {"X": sp.csc_matrix(X % 2 == 1)},
    "one column": {"X": X[:, :1]},
    "one row": {"X": X[:1]},
    "a table with vectors and words": {"X": X, "y": np.arange(4.0), "n": 3.0, "note": "hello"},
    "a struct": {"data": {"X": X, "note": "hello"}},
    "a struct in a struct": {"data": {"of": {"X": X}}},
    "a table beside a struct": {"X": X, "data": {"Z": X + 1}},
    "gaps": {"X": np.where(X == 5, np.nan, X)},
}


@pytest.mark.parametrize("options", [{}, {"do_compression": True}, {"format": "4"}], ids=["5", "compressed", "4"])
@pytest.mark.parametrize("kind", READ)
def test_what_is_read(tmp_path, in_this_process, kind, options):
    content = READ[kind]
    if options.get("format") == "4" and (kind not in {"double", "one column", "one row", "sparse", "gaps"}):
        content = {"X": X}  # version 4 has no others
    scipy.io.savemat(tmp_path / "x.mat", content, **options)
    expected = content.get("X", X)
    expected = expected.toarray() if sp.issparse(expected) else expected
    table = tables.read(tmp_path / "x.mat", allow_missing=True)
    np.testing.assert_array_equal(table.X.toarray() if sp.issparse(table.X) else table.X, expected)


REFUSED = {
    "complex": ({"X": X + 1j}, "real numbers are needed", {"X": (X + 1j).real}, {}),
    "words": ({"X": "hello"}, "holds no array of real numbers", {"X": X}, {}),
    "a cell array": ({"X": cells(X, "a")}, "holds no array of real numbers", {"X": X}, {}),
    "an array of structs": (
        {"s": np.array([(X,), (X,)], dtype=[("X", "O")])}, "holds no array of real numbers", {"s": {"X": X}}, {},
    ),
    "no rows": ({"X": np.zeros((0, 3))}, r"the array is empty, its shape is \(0, 3\)", {"X": X}, {}),
    "three dimensions": (
        {"X": np.zeros((2, 2, 3))}, r"no table of rows and columns; it has X \(2 x 2 x 3\)", {"X": X}, {},
    ),
    "two tables": ({"A": X + 1, "X": X}, r"choose one with --var: A \(4 x 3\), X \(4 x 3\)", None, {"var": "X"}),
    "another name": ({"X": X}, "no array of real numbers called 'Z'; it has X", None, {"var": "X"}),
    "nothing": ({}, "holds no array of real numbers", {"X": X}, {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused(tmp_path, in_this_process, kind):
    wrong, words, right, options = REFUSED[kind]
    scipy.io.savemat(tmp_path / "x.mat", wrong)
    with pytest.raises(DataFileError, match=words):
        tables.read(tmp_path / "x.mat", **({"var": "Z"} if kind == "another name" else {}))
    scipy.io.savemat(tmp_path / "x.mat", wrong if right is None else right)
    np.testing.assert_array_equal(numbers(tmp_path / "x.mat", **options), X)


# ---- version 7.3 -----------------------------------------------------------------------------------------------------


def stored(file, name, array, kind="double", **attributes):
    """A variable as MATLAB writes it into HDF5: column by column."""
    data = file.create_dataset(name, data=array.T)
    data.attrs["MATLAB_class"] = np.bytes_(kind)
    data.attrs.update(attributes)
    return data


def sparse(file):
    S, group = sp.csc_matrix(X), file.create_group("S")
    group.attrs.update({"MATLAB_class": np.bytes_("double"), "MATLAB_sparse": np.uint64(4)})
    for name, part in (("data", S.data), ("ir", S.indices.astype("u8")), ("jc", S.indptr.astype("u8"))):
        group[name] = part


def cell(file):
    h5py = pytest.importorskip("h5py")
    inner = stored(file.create_group("#refs#"), "a", X)
    data = file.create_dataset("C", data=np.array([[inner.ref]], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
    data.attrs["MATLAB_class"] = np.bytes_("cell")


def words(file):
    stored(file, "note", np.array([[104, 105], [106, 107]], dtype="u2"), "char", MATLAB_int_decode=np.int32(2))


def with_table(part):
    def both(file):
        part(file)
        stored(file, "X", X)

    return both


def struct(file):
    stored(file.create_group("data"), "X", X)


COMPLEX = np.zeros((4, 3), dtype=[("real", "f8"), ("imag", "f8")])
OF_73 = {
    "double": (with_table(lambda file: None), None),
    "logical": (lambda file: stored(file, "X", (X % 2 == 1).astype("u1"), "logical"), None),
    "a struct": (struct, None),
    "a table beside words": (with_table(words), None),
    "a table beside a sparse matrix": (with_table(sparse), None),
    "a table beside a cell array": (with_table(cell), None),
    "words": (words, "holds no array of real numbers"),
    "a cell array": (cell, "holds no array of real numbers"),
    "complex": (lambda file: stored(file, "X", COMPLEX), "holds no array of real numbers"),
    "a sparse matrix": (sparse, "the sparse matrix 'S', which is not read from a MATLAB v7.3 file; save it with '-v7'"),
}


@pytest.mark.parametrize("kind", OF_73)
def test_version_73(tmp_path, kind):
    h5py = pytest.importorskip("h5py")
    build, fault = OF_73[kind]
    path = tmp_path / "x.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        build(file)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    if fault is None:
        np.testing.assert_array_equal(numbers(path), X % 2 == 1 if kind == "logical" else X)
    else:
        with pytest.raises(DataFileError, match=fault):
            tables.read(path)

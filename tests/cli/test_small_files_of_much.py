"""Compressed files of a few bytes that hold more than memory does: an error, or read piece by piece."""

import bz2
import gzip
import io
import lzma
import struct
import zipfile

import numpy as np
import pytest
import scipy.io
from peak import needs_proc, peak

from fastkpca.cli.tables import read as tables
from fastkpca.errors import DataFileError
from fastkpca.rows.convert import as_rows

MEGABYTE = 1 << 20
SIZE, MEMORY = 128, 8e6  # megabytes in the file; bytes that may be taken
# Bytes: the pieces of a file of any size take 15 to 50 MB, modules imported in passing 30 MB, the whole file SIZE.
PIECES = 0.6e6 * SIZE
TABLE = b"".join(b"%d,%d\n" % (i, i % 7) for i in range(2000))
PACK = {"gz": gzip, "bz2": bz2, "xz": lzma}
TEXTS = {
    "digits": (b"", b"7", "line 1 has"),
    "cells": (b"", b"10,", "line 1 has"),
    "spaces": (b"", b"1 ", "line 1 has"),
    "comment": (b"#", b"x", "line 1 has"),
    "header": (b"a,", b"name,", "line 1 has"),
    "later line": (TABLE, b"7", "line 2001 has"),
    "quoted lines": (TABLE + b'"', b"1\n", "line 2001 opens a quotation mark"),
    "quoted cells": (TABLE, b'"1\n",', "line 2001 opens a quotation mark"),
    "UTF-16": ("\ufeff1,2\n3,4\n".encode("utf-16-le"), "\u0a0a".encode("utf-16-le"), "line 3 has"),
    "old Mac": (b"1,2\r3,4\r", b"5", "line 3 has"),
}


def packed(path, beginning, unit, how="gz"):
    with PACK[how].open(path, "wb") as file:
        file.write(beginning)
        for _ in range(SIZE):
            file.write(unit * (MEGABYTE // len(unit)))
    return path


def refused(path, text, **options):
    def call():
        with pytest.raises(DataFileError, match=text) as caught:
            tables.read(path, memory=MEMORY, **options)
        assert len(str(caught.value)) < 600

    return call


@needs_proc
@pytest.mark.parametrize(("kind", "how"), [*((kind, "gz") for kind in TEXTS), ("digits", "bz2"), ("later line", "xz")])
def test_a_line_longer_than_memory_is_refused_with_its_number_and_the_limit(tmp_path, kind, how):
    beginning, unit, text = TEXTS[kind]
    path = packed(tmp_path / f"x.csv.{how}", beginning, unit, how)
    need = f"{text}.* more than 62500 characters, the most of a line that 8 MB of memory take; .* raise --memory-limit"
    assert peak(refused(path, need))[0] < PIECES


@needs_proc
def test_a_long_line_behind_many_that_pandas_reads(tmp_path):
    pytest.importorskip("pandas")
    X = np.random.default_rng(0).random((400_000, 2))
    text = io.BytesIO()
    np.savetxt(text, X, "%.9f", ",")
    path = packed(tmp_path / "x.csv.gz", text.getvalue(), b"7")
    del text
    assert peak(refused(path, "line 400001 has more than 62500 characters"))[0] < 90e6


def test_a_wide_line_within_the_limit_is_read(tmp_path):
    line = ",".join(map(str, range(20_000)))
    (tmp_path / "x.csv").write_text(f"{line}\n{line}\n")
    assert tables.read(tmp_path / "x.csv", header=False, memory=2e7).X.shape == (2, 20_000)
    with pytest.raises(DataFileError, match="line 1 has more than 62500 characters"):
        tables.read(tmp_path / "x.csv", header=False, memory=MEMORY)
    assert tables.read(tmp_path / "x.csv", header=False).X[1, -1] == 19_999


def test_a_long_field_is_shown_by_its_beginning(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n" * 60 + f"{'x' * 5000},2\n")
    with pytest.raises(DataFileError, match="line 61, column 1: 'x{60}[.]{3}' is not a number") as caught:
        tables.read(tmp_path / "x.csv")
    assert len(str(caught.value)) < 300


def member(shape, order="C", dtype="<f8"):
    header = io.BytesIO()
    options = {"descr": dtype, "fortran_order": order == "F", "shape": shape}
    np.lib.format.write_array_header_1_0(header, options)
    return header.getvalue()


def archive(path, header, blocks, name="X.npy"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file, file.open(name, "w") as inside:
        inside.write(header)
        for block in blocks:
            inside.write(block)
    return path


@needs_proc
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_array_of_an_npz_file_is_read_piece_by_piece(tmp_path, order):
    block = np.arange(MEGABYTE // 4, dtype="<f4")
    path = archive(tmp_path / "x.npz", member((SIZE << 16, 4), order, "<f4"), [block.tobytes()] * SIZE)
    grown, table = peak(lambda: tables.read(path, memory=MEMORY))
    assert grown < PIECES
    same = np.tile(block, SIZE).reshape((SIZE << 16, 4), order=order)
    rows = as_rows(table.X)
    assert rows.dtype == np.float32 and not rows.in_memory
    for start in (0, 123_456, (SIZE << 16) - 5):
        np.testing.assert_array_equal(rows.tile(start, start + 5), same[start : start + 5])


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i8", "u1", "?", "f2"])
def test_small_arrays_of_an_npz_file(tmp_path, dtype, compressed):
    X = np.random.default_rng(0).integers(0, 2, (50, 3)).astype(dtype)
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "x.npz", X=X, y=np.arange(50), F=np.asfortranarray(X[::-1]))
    table = tables.read(tmp_path / "x.npz", var="X", label_column="y")
    assert table.X.dtype == X.dtype and (table.X == X).all() and (table.labels == np.arange(50)).all()
    assert (tables.read(tmp_path / "x.npz", var="F").X == X[::-1]).all()


@needs_proc
def test_a_header_of_an_npz_file_that_never_ends_and_labels_that_are_many(tmp_path):
    endless = archive(tmp_path / "x.npz", b"\x93NUMPY\2\0" + struct.pack("<I", 2**32 - 1), [b" " * MEGABYTE] * SIZE)
    assert peak(refused(endless, "is not a readable .npz file"))[0] < PIECES
    path = archive(tmp_path / "y.npz", member((SIZE << 17,)), [b"\0" * MEGABYTE] * SIZE, "y.npy")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("X.npy", member((5, 2)) + bytes(80))
    call = refused(path, r"'y' has \d+ entries for 5 rows of 'X'", var="X", label_column="y")
    assert peak(call)[0] < PIECES


def test_an_array_of_a_matlab_file_that_takes_more_than_memory(tmp_path):
    X = np.random.default_rng(0).integers(0, 9, (2000, 5)).astype(float)
    scipy.io.savemat(tmp_path / "x.mat", {"X": X}, do_compression=True)
    assert (as_rows(tables.read(tmp_path / "x.mat", memory=MEMORY).X).all() == X).all()
    scipy.io.savemat(tmp_path / "y.mat", {"X": np.zeros((SIZE << 15, 8))}, do_compression=True)
    refused(tmp_path / "y.mat", "takes more than 8 MB to read; in MATLAB write it anew with save.*'-v7.3'")()
    large = tables.read(tmp_path / "y.mat")
    assert large.X.shape == (SIZE << 15, 8) and not as_rows(large.X).in_memory


def test_a_chunk_of_a_dataset_that_takes_more_than_memory(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", (100_000, 8), "f8", chunks=(100_000, 8), compression="gzip")[:1] = 1.0
    refused(tmp_path / "x.h5", "a chunk of 'X' takes 6.4 MB, more than a quarter of the 8 MB that may be taken")()
    assert tables.read(tmp_path / "x.h5").X.shape == (100_000, 8)

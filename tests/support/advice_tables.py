"""Advice on the tables of the command line: see ``advice``."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sqlite3
import sys
from unittest import mock

import numpy as np
from advice import FOLDER, Case

from fastkpca.cli import inputs
from fastkpca.cli.arguments import parser_of_all
from fastkpca.cli.tables import read as tables
from fastkpca.cli.tables import write


def written(name="x.csv", text="t;a;b\n2026:03:01;1,5;2\n2026:03:02;2,5;1\n2026:03:03;7,5;5\n"):
    (FOLDER / name).write_text(text)
    return FOLDER / name


def read(path, **options):
    return tables.read(path, **options)


def fit_table(*options):
    options = parser_of_all().parse_all(["fit", str(written()), "--id", "t", *options])
    options.path = options.file
    return inputs.raw_table(options, lambda *_: None)


def workbook():
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "A"
    for sheet in (book.active, book.create_sheet("B")):
        sheet.append(["a", "b"])
        sheet.append([1, 2])
    book.save(FOLDER / "x.xlsx")
    return FOLDER / "x.xlsx"


def database():
    path = FOLDER / "x.db"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for name in "tu":
            connection.execute(f"create table {name} (a real, b real)")
            connection.execute(f"insert into {name} values (1, 2)")
        connection.commit()
    return path


def many_rows(name):
    with mock.patch.object(write, "MAX_SHEET_ROWS", 3):
        write.write_scores(FOLDER / name, np.ones((4, 2)), True)


def without_openpyxl(name):
    with mock.patch.dict(sys.modules, {"openpyxl": None}):
        write.write_scores(FOLDER / name, np.ones((4, 2)), True)


def encoded(encoding):
    """Latin 1 has a control character where Windows-1252 has none."""
    (FOLDER / "y.csv").write_bytes("a,b\u0081\n1,2\n".encode(encoding))
    return FOLDER / "y.csv"


def copied(path):
    options = parser_of_all().parse_all(["fit", str(path)])
    options.path = options.file
    with inputs.rereadable_input(options):
        return inputs.raw_table(options, lambda *_: None)


def parquet(name):
    """A Parquet file whose name need not be UTF-8."""
    import pyarrow
    from pyarrow import parquet

    folder = FOLDER.with_name(FOLDER.name + "-parquet")  # FOLDER itself is to be no folder of Parquet files
    folder.mkdir(exist_ok=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "b": [2.0, 1.0]}), folder / "x.parquet")
    path = os.path.join(os.fsencode(folder), name)
    os.replace(folder / "x.parquet", path)
    return os.fsdecode(path)


CASES: dict[str, Case] = {
    "columns to take and to leave out": (
        lambda: read(written(), columns=["a"], skip_columns=["t"]),
        "give --columns or --skip-columns, not both",
        lambda: [read(encoded("utf-8"), skip_columns=["1"]), read(encoded("utf-8"), columns=["a"])],
    ),
    "an encoding of Europe": (
        lambda: read(encoded("latin-1")),
        "save the file as UTF-8",
        lambda: read(encoded("utf-8")),
    ),
    "a Parquet file of a strange name": (
        lambda: read(parquet(b"\xff.parquet")),
        "rename it",
        lambda: read(parquet(b"y.parquet")),
    ),
    "a device without an end": (
        lambda: copied("/dev/zero"),
        "give a file or a pipe",
        lambda: copied(written("y.csv", "a,b\n1,2\n2,1\n")),
    ),
    "--thousands . without --decimal": (
        lambda: fit_table("--thousands", "."),
        "; give --decimal ,",
        lambda: fit_table("--thousands", ".", "--decimal", ","),
    ),
    "--sheet of a text": (
        lambda: fit_table("--decimal", ",", "--sheet", "A"),
        "; leave out --sheet",
        lambda: fit_table("--decimal", ","),
    ),
    "--query of a text": (
        lambda: fit_table("--decimal", ",", "--query", "select 1"),
        "; leave out --query",
        lambda: fit_table("--decimal", ","),
    ),
    "a sheet of several": (
        lambda: read(workbook()),
        "; choose one with --sheet: A, B",
        lambda: read(workbook(), sheet="B"),
    ),
    "a workbook beyond memory": (
        lambda: read(workbook(), memory=100),
        "or raise --memory-limit",
        lambda: read(workbook(), memory=1e9, sheet="A"),
    ),
    "a table of a database": (
        lambda: read(database()),
        "say which rows with --query 'select ...'; it has t, u",
        lambda: read(database(), query="select * from t"),
    ),
    "another form of times": (
        lambda: read(written(), id_column="t", date_format="day-first", decimal=","),
        "give theirs, as in '%d/%m/%Y %H:%M'",
        lambda: read(written(), id_column="t", date_format="%Y:%m:%d", decimal=","),
    ),
    "a sheet of too many rows": (lambda: many_rows("s.xlsx"), "; write .csv", lambda: many_rows("s.csv")),
    "a sheet without openpyxl": (
        lambda: without_openpyxl("s.xlsx"),
        "; or write .csv",
        lambda: without_openpyxl("s.csv"),
    ),
}

"""Sheets of workbooks (.xlsx) and rows of databases: written as text into a file without a name, and read as text is,
with the same options and errors."""

from __future__ import annotations

import csv
import importlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...base.process_memory import DEFAULT_MEMORY
from ...errors import DataFileError
from ...rows.columns import listed
from .archives import data_file_errors
from .cells import Reading
from .text import TextFile
from .write import MAX_SHEET_ROWS

MEMORY_FACTOR = 4
"""Bytes of memory for each byte of the largest member of a workbook, unpacked: openpyxl reads words whole."""
_FIRST_ROWS = 100
"""Rows of a sheet that show how many columns it has."""


def library(name: str, file: str, kind: str) -> Any:
    """A library that not everybody has."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise DataFileError(f"{file} is {kind}, and reading it needs {package} (pip install {package})") from None


def _as_text(rows: Iterable[Sequence[Any]], name: str, reading: Reading, memory: float | None) -> TextFile:
    """The rows as a table of text."""

    def cell(x: Any) -> str:
        if x is None or isinstance(x, str | date):
            return " ".join(str("" if x is None else x).splitlines())
        return str(float(x) if hasattr(x, "as_tuple") else x).replace(".", reading.decimal)  # a Decimal as a number

    file = tempfile.NamedTemporaryFile(prefix="fastkpca-")  # noqa: SIM115 (closed with the table, which holds it)
    with data_file_errors(name, "cannot be read"):
        text = io.TextIOWrapper(file, "utf-8", "surrogatepass", newline="")  # type: ignore[arg-type]
        writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")  # quoted: no cell begins a comment
        writer.writerows(map(cell, row) for row in rows)
        text.flush()
        text.detach()
        with open(file.name, "rb") as start:
            first = start.read(560)
    if not first:
        raise DataFileError(f"{name} has no row with data")
    table = TextFile(file.name, name, first, reading, memory=memory, delimiter=",")
    table.source = file
    return table


# ---- workbooks -------------------------------------------------------------------------------------------------------


def is_workbook(path: str | os.PathLike) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return False


def workbook(path: str | os.PathLike, name: str, reading: Reading, memory: float | None) -> TextFile:
    """The sheet that is asked for, or the only one that is not empty. Dates become text as 2026-03-01 06:00:00."""
    openpyxl = library("openpyxl", name, "a spreadsheet (.xlsx)")
    with data_file_errors(name, "is not a readable spreadsheet"):
        with zipfile.ZipFile(path) as archive:
            largest = max((member.file_size for member in archive.infolist()), default=0)
        if MEMORY_FACTOR * largest > (limit := DEFAULT_MEMORY if memory is None else memory):
            raise DataFileError(
                f"{name} takes {largest / 1e6:.3g} MB unpacked, more than a quarter of the {limit / 1e6:.3g} MB that "
                "may be taken; save the sheet as .csv, which is read piece by piece, or raise --memory-limit"
            )
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
            sheets = {sheet.title: sheet for sheet in book.worksheets}
            filled = [title for title, sheet in sheets.items() if any(_rows_of(sheet))]
            wanted = reading.sheet or (filled[0] if len(filled) == 1 else "")
            if not filled:
                raise DataFileError(f"{name} has no sheet with data")
            if wanted not in sheets:
                has = "holds several sheets" if not reading.sheet else f"has no sheet called {reading.sheet!r}"
                raise DataFileError(f"{name} {has}; choose one with --sheet: {listed(filled)}")
            return _as_text(_rows_of(sheets[wanted]), name, reading, memory)


def _rows_of(sheet: Any) -> Iterator[list[Any]]:
    """Rows of equal length, but titles above the table and empty rows."""
    sheet.reset_dimensions()  # what a file says of its size may be anything

    def trimmed() -> Iterator[list[Any]]:
        for row in sheet.iter_rows(max_row=MAX_SHEET_ROWS, values_only=True):  # a damaged file counts further
            cells = list(row)
            while cells and cells[-1] in (None, ""):
                cells.pop()
            yield cells

    rows = trimmed()
    first = list(islice(rows, _FIRST_ROWS))
    width, begun = max(map(len, first), default=0), False
    for cells in chain(first, rows):
        begun = begun or sum(cell not in (None, "") for cell in cells) > 1
        yield cells + [None] * (width - len(cells)) if begun and cells else cells


# ---- databases -------------------------------------------------------------------------------------------------------


def is_database(start: bytes) -> bool:
    """True if a file that begins so is one of SQLite or DuckDB."""
    return start.startswith(b"SQLite format 3") or start[8:12] == b"DUCK"


def database(
    path: str | os.PathLike, name: str, reading: Reading, memory: float | None, start: bytes = b""
) -> TextFile:
    """The rows of ``--query``, or of the only table, of a SQLite or DuckDB file, or of what a URL leads to."""
    import sqlite3  # which a command that reads no database does without

    path = os.fspath(path)
    of_url = "://" in path
    with data_file_errors(name, "cannot be read"):
        if of_url:
            connection = library("sqlalchemy", name, "a database").create_engine(path).raw_connection()
        elif start[8:12] == b"DUCK":
            connection = library("duckdb", name, "a DuckDB database").connect(path, read_only=True)
        else:
            connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
        with closing(connection):
            cursor = connection.cursor()
            query = reading.query
            if not query:
                names = [] if of_url else _tables(cursor)
                if len(names) != 1:
                    tables = f"; it has {listed(names)}" if names else ", and no table" * (not of_url)
                    raise DataFileError(f"{name} is a database: say which rows with --query 'select ...'{tables}")
                query = 'select * from "' + names[0].replace('"', '""') + '"'
            cursor.execute(query)
            head = [column[0] for column in cursor.description or ()]
            rows = chain.from_iterable(iter(lambda: cursor.fetchmany(1000), []))
            form = replace(reading, header=True if reading.header is None else reading.header)
            return _as_text(chain([head], rows), name, form, memory)


def _tables(cursor: Any) -> list[str]:
    cursor.execute("select name from sqlite_master where type in ('table', 'view') order by name")
    return [row[0] for row in cursor.fetchall() if not row[0].startswith("sqlite_")]

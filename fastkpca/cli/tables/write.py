"""Scores into files (csv, xlsx, npy), for the command line."""

from __future__ import annotations

import csv
import gzip
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from ...base import parallel
from ...base.atomic import atomic
from ...errors import DataFileError
from ...rows.sinks import SCORES_AT_ONCE, reserve

Identifiers = tuple[str, np.ndarray]
"""Names of the rows, and the name of that column."""
MAX_SHEET_ROWS, MAX_SHEET_TEXT = 1_048_576, 32_767
"""Rows of a sheet and characters of a cell that Excel opens."""


def score_place(path: str | os.PathLike) -> Callable[[tuple[int, ...], np.dtype], np.ndarray]:
    """Allocator for ``kpca(out=)`` of scores that are written to ``path`` later: in memory, or, where they are large,
    in a nameless file in the same folder."""

    def place(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if shape[0] * shape[1] * dtype.itemsize <= SCORES_AT_ONCE:
            return np.empty(shape, dtype)
        folder = Path(path).resolve().parent
        with tempfile.TemporaryFile(dir=folder) as file:
            reserve(file.fileno(), 0, shape[0] * shape[1] * dtype.itemsize, f"{folder}{os.sep}")
            return np.memmap(file, dtype, "w+", shape=shape)  # which keeps the file

    return place


def among_all(scores: np.ndarray, kept: np.ndarray | None, path: str | os.PathLike) -> np.ndarray:
    """Scores of the rows that were ``kept`` (None: all), with rows of NaN in the places of the others."""
    if kept is None:
        return scores
    every = score_place(path)((len(kept), scores.shape[1]), scores.dtype)
    every[...] = np.nan
    every[kept] = scores
    return every


class Format(NamedTuple):
    """Format of numbers in text: significant digits (17: all that they have), decimal point or comma. With decimal
    commas, semicolons separate the columns."""

    digits: int = 17
    decimal: str = "."

    def write(self, file: TextIO, rows: Iterable[Sequence[Any]]) -> None:
        digits, decimal = self
        form = "" if digits == 17 else f".{digits}g"

        def text(value: Any) -> str:
            if type(value) is not float:
                return str(value)
            return "" if value != value else format(value, form).replace(".", decimal)

        lines = csv.writer(file, delimiter="," if decimal == "." else ";", lineterminator="\n")
        lines.writerows(map(text, row) for row in rows)


FULL_PRECISION = Format()


def score_rows(scores: np.ndarray, identifiers: Identifiers | None = None) -> Iterator[list[Any]]:
    """Names of the columns, PC1, PC2, ..., then the scores. Identifiers of the rows come first."""
    if identifiers is not None and len(identifiers[1]) != len(scores):
        raise ValueError(f"there are {len(identifiers[1])} identifiers for {len(scores)} rows")
    head = [f"PC{i + 1}" for i in range(scores.shape[1])]
    yield head if identifiers is None else [identifiers[0], *head]
    step = parallel.tile_rows(scores.shape[1])
    for start in range(0, len(scores), step):
        part = scores[start : start + step]
        # the shortest digits of a float32 are not those of the same number as float64
        rows = (part if part.dtype == np.float64 else part.astype(str).astype(np.float64)).tolist()
        names = () if identifiers is None else identifiers[1][start : start + step].tolist()
        for name, row in zip(names, rows):
            yield [int(name) if isinstance(name, float) and name.is_integer() else name, *row]
        yield from rows if identifiers is None else ()


def write_sheet(file: Any, rows: Iterable[Sequence[Any]]) -> None:
    """The rows as a workbook of one sheet, with all digits."""
    openpyxl = require_openpyxl()
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("fastkpca")

    def cell(value: Any) -> Any:
        if isinstance(value, str):
            made = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("\ufffd", value)[:MAX_SHEET_TEXT])
            made.data_type = "s"  # never a formula
            return made
        return None if value != value else value

    try:
        for number, row in enumerate(rows):
            if number == MAX_SHEET_ROWS:
                raise DataFileError(f"a sheet of .xlsx holds {MAX_SHEET_ROWS} rows, and there are more; write .csv")
            sheet.append([cell(value) for value in row])
    except BaseException:
        sheet.close()  # else it writes its end into a file that is closed
        raise
    book.save(file)


def require_openpyxl() -> Any:
    try:
        return import_module("openpyxl")
    except ImportError:
        raise DataFileError("writing .xlsx needs openpyxl (pip install openpyxl); or write .csv") from None


def write_scores(
    path: str | os.PathLike,
    scores: np.ndarray,
    overwrite: bool,
    identifiers: Identifiers | None = None,
    form: Format = FULL_PRECISION,
) -> None:
    """Write scores as .csv, .csv.gz, .xlsx or .npy, as ``path`` ends. ``identifiers`` of the rows: not into .npy."""
    with atomic(path, overwrite=overwrite) as file:
        if str(path).lower().endswith(".npy"):
            # not write_array: numpy says nothing of what a full disk does not take at the end
            scores = np.ascontiguousarray(scores)
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(scores))
            file.write(scores.data)
        else:
            write_table(file, str(path), score_rows(scores, identifiers), form)


def write_table(file: Any, name: str, rows: Iterable[Sequence[Any]], form: Format) -> None:
    """The rows into an open file as .xlsx, .csv or .csv.gz, as its ``name`` ends."""
    if name.lower().endswith(".xlsx"):
        return write_sheet(file, rows)
    packed = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if name.lower().endswith(".gz") else None
    text = io.TextIOWrapper(packed or file, encoding="utf-8", newline="\n", write_through=True)
    form.write(text, rows)
    text.flush()
    text.detach()
    if packed is not None:
        packed.close()

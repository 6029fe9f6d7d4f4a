"""Scores into files (csv, xlsx, npy), for the command line."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import chain
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
    """For ``kpca(out=)``: where scores wait until they are written to ``path``, in memory or, where they are many, in a
    nameless file beside it."""

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
    """How numbers are written into text: significant digits (17: as many as bring back the same number), decimal point
    or comma. Semicolons separate columns beside decimal commas."""

    digits: int = 17
    decimal: str = "."

    @property
    def delimiter(self) -> str:
        return ";" if self.decimal == "," else ","

    def numbers(self, rows: np.ndarray) -> list[str]:
        """Lines of numbers; empty fields for NaN."""
        if self.digits < 17:
            form = ",".join([f"%.{self.digits}g"] * rows.shape[1])
            lines = [form % tuple(row) for row in rows.tolist()]
        elif rows.dtype == np.float64:
            lines = [",".join(map(repr, row)) for row in rows.tolist()]
        else:  # the shortest digits of a float32 are not those of the same number as float64
            lines = [",".join(row) for row in rows.astype(str).tolist()]
        for i in np.flatnonzero(np.isnan(rows).any(axis=1)):
            lines[i] = lines[i].replace("nan", "") or '""'  # not a blank line, which readers skip
        if self.decimal == ",":
            lines = [line.translate(_COMMAS) for line in lines]
        return lines

    def cell(self, value: Any) -> str:
        """One field; whole numbers without a fraction."""
        if isinstance(value, float):
            value = int(value) if value.is_integer() else self.numbers(np.array([[value]]))[0].strip('"')
        text = str(value)
        return '"' + text.replace('"', '""') + '"' if any(x in text for x in self.delimiter + '"\r\n') else text

    def line(self, values: Iterable[Any]) -> str:
        return self.delimiter.join(map(self.cell, values)) + "\n"


_COMMAS = str.maketrans(",.", ";,")
EXACT = Format()


def write_scores_csv(
    file: TextIO, scores: np.ndarray, identifiers: Identifiers | None = None, form: Format = EXACT
) -> None:
    """Scores as csv with the header PC1, PC2, ... Identifiers of the rows come first. Rows of NaN have empty fields."""
    file.write(form.line(_head(scores, identifiers)))
    step = parallel.tile_rows(scores.shape[1])
    for start in range(0, len(scores), step):
        rows = form.numbers(scores[start : start + step])
        if identifiers is not None:
            names = identifiers[1][start : start + step].tolist()
            rows = [f"{form.cell(x)}{form.delimiter}{row}" for x, row in zip(names, rows)]
        file.write("\n".join(rows) + "\n")


def _head(scores: np.ndarray, identifiers: Identifiers | None) -> list[str]:
    if identifiers is not None and len(identifiers[1]) != len(scores):
        raise ValueError(f"there are {len(identifiers[1])} identifiers for {len(scores)} rows")
    return [*([] if identifiers is None else identifiers[:1]), *(f"PC{i + 1}" for i in range(scores.shape[1]))]


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

    for number, row in enumerate(rows):
        if number == MAX_SHEET_ROWS:
            raise DataFileError(f"a sheet of .xlsx holds {MAX_SHEET_ROWS} rows, and there are more; write .csv")
        sheet.append([cell(value) for value in row])
    book.save(file)


def require_openpyxl() -> Any:
    try:
        return import_module("openpyxl")
    except ImportError:
        raise DataFileError("writing .xlsx needs openpyxl (pip install openpyxl); or write .csv") from None


def score_writer(
    path: str | os.PathLike, *, with_identifiers: bool = False, form: Format = EXACT
) -> Callable[..., None]:
    """The function (scores, overwrite, identifiers=None) that writes scores to ``path``, in the format its ending says.

    Raises
    ------
    DataFileError
        The ending is none of .csv, .csv.gz, .xlsx and .npy, or it is .npy and there are identifiers to write.
    """
    name = str(path).lower()

    def as_npy(scores: np.ndarray, overwrite: bool, identifiers: Identifiers | None = None) -> None:
        with atomic(path, overwrite=overwrite) as file:
            # not write_array: numpy says nothing of what a full disk does not take at the end
            scores = np.ascontiguousarray(scores)
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(scores))
            file.write(scores.data)

    def as_csv(scores: np.ndarray, overwrite: bool, identifiers: Identifiers | None = None) -> None:
        with atomic(path, overwrite=overwrite) as file:
            packed = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if name.endswith(".gz") else None
            text = io.TextIOWrapper(packed or file, encoding="utf-8", newline="\n", write_through=True)
            write_scores_csv(text, scores, identifiers, form)
            text.flush()
            text.detach()
            if packed is not None:
                packed.close()

    def as_xlsx(scores: np.ndarray, overwrite: bool, identifiers: Identifiers | None = None) -> None:
        head = _head(scores, identifiers)
        names = [[]] * len(scores) if identifiers is None else [[name] for name in identifiers[1].tolist()]
        rows = ([*name, *row.tolist()] for name, row in zip(names, scores))
        with atomic(path, overwrite=overwrite) as file:
            write_sheet(file, chain([head], rows))

    if name.endswith(".npy") and with_identifiers:
        raise DataFileError(f"--id writes a column beside the scores, which {str(path)!r} cannot hold; write .csv")
    if name.endswith(".xlsx"):
        require_openpyxl()
    for ending, writer in ((".npy", as_npy), (".csv", as_csv), (".csv.gz", as_csv), (".xlsx", as_xlsx)):
        if name.endswith(ending):
            return writer
    raise DataFileError(f"scores are written as .csv, .csv.gz, .xlsx or .npy, which {str(path)!r} does not end with")

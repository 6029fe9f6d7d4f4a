"""Tables of numbers from files (csv, npy, npz, mat; by ``lazyfiles`` also HDF5, zarr and Parquet), for the command
line.

Text goes through numpy's C reader line by line, so that memory stays at the size of the result; lines are counted and
checked on the way. Only where that fails is the text read again, slowly, to say which line and column are at fault.
"""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import DataFileError
from . import lazyfiles
from .archives import Mat, Npz, one_line, read_npy
from .foreign import find_source
from .sources import ChosenColumns, Source

__all__ = ["Table", "read"]

_SAMPLE_LINES = 50
_CHUNK_ROWS = 4096
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "nil", "?", "-", ".", "missing"}
_INFINITE = {"inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"}
_NOT_TEXT = {".xlsx": "a spreadsheet", ".xls": "a spreadsheet", ".ods": "a spreadsheet", ".feather": "a Feather file",
             ".pkl": "a pickle", ".pickle": "a pickle", ".kpca": "a fastkpca model"}  # fmt: skip
_READABLE = "csv (.csv .tsv .txt, also .gz .bz2 .xz), .npy, .npz, .mat, HDF5, zarr and Parquet files can be read"


@dataclass
class Table:
    """Rows of numbers as read from a file.

    Attributes
    ----------
    X : ndarray, memory map, CSR matrix or Source, shape (n, d), or a function
        What ``kpca`` takes; the function returns an iterator over blocks of rows.
    names : list of str, or None
        Of the d columns, where the file names them.
    labels : ndarray (n,), or None
        The label column, where one was asked for: numbers, or strings.
    notes : list of str
        What was decided on the user's behalf, to be told.
    """

    X: Any
    names: list[str] | None = None
    labels: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)


def read(
    path: str | os.PathLike,
    *,
    var: str | None = None,
    columns: Sequence[str] | None = None,
    skip_columns: Sequence[str] | None = None,
    label_column: str | None = None,
    header: bool | None = None,
    like: Sequence[str] | None = None,
) -> Table:
    """Read a table of numbers; the kind of file is told from its first bytes.

    Parameters
    ----------
    path : str or path-like
    var : str, optional
        Which array of an .npz, .mat, HDF5 or zarr file; by default the only one with two dimensions.
    columns, skip_columns : sequences of str, optional
        Columns to take, or to leave out: names, numbers from 1, or ranges of numbers like ``2-5``. A name wins over a
        number.
    label_column : str, optional
        Left out of X and returned as labels. In files of several arrays also the name of another array with one entry
        a row.
    header : bool, optional
        Whether the first line of a text file names the columns; by default told from the lines.
    like : sequence of str, optional
        Columns to take, in this order, where the file names its columns and no others are asked for.

    Raises
    ------
    DataFileError
        With one line of text that says what is wrong, where, and what to do.
    FileNotFoundError
    """
    name = str(path)
    choice = _Choice(name, columns, skip_columns, label_column, like)
    if os.path.isdir(path):
        kind = lazyfiles.kind_of_folder(path)
        if kind == "zarr":
            return _from_archive(lazyfiles.Zarr(path, name), var, choice)
        if kind == "parquet":
            return _from_parquet(path, var, choice)
        raise DataFileError(f"{name} is a folder, and neither a zarr store nor a folder of Parquet files; give a file")
    try:
        with open(path, "rb") as file:
            start = file.read(560)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {name!r}") from None
    if not start:
        raise DataFileError(f"{name} is empty")
    suffix = Path(path).suffix.lower()
    if start.startswith(b"\x93NUMPY"):
        _refuse_var(name, var, ".npy")
        return _from_array(read_npy(path), choice)
    if suffix in _NOT_TEXT:
        raise DataFileError(f"{name} is {_NOT_TEXT[suffix]}; {_READABLE}")
    if start.startswith(b"PK"):
        return _from_archive(Npz(path, name), var, choice)
    if start.startswith(b"PAR1") or suffix == ".parquet":
        return _from_parquet(path, var, choice)
    if start.startswith(b"\x89HDF") or start[512:516] == b"\x89HDF" or suffix in (".h5", ".hdf5"):
        return _from_archive(lazyfiles.Hdf5(path, name, start.startswith(b"MATLAB")), var, choice)
    if start.startswith(b"MATLAB") or suffix == ".mat":
        return _from_archive(Mat(path, name), var, choice)
    if suffix in (".npy", ".npz"):
        raise DataFileError(f"{name} is not a {suffix} file (it begins with {start[:8]!r})")
    _refuse_var(name, var, "text")
    return _Text(path, name, start, header).read(choice)


def _refuse_var(name: str, var: str | None, kind: str) -> None:
    if var is not None:
        raise DataFileError(f"{name} is a {kind} file and holds one array; leave out --var {var}")


# ---- columns ---------------------------------------------------------------------------------------------------------


class _Choice:
    """Which columns the user wants, as given; ``resolve`` turns it into numbers once the file is known."""

    def __init__(
        self, file: str, columns: Any, skip_columns: Any, label_column: str | None, like: Sequence[str] | None = None
    ):
        if columns is not None and skip_columns is not None:
            raise DataFileError("give --columns or --skip-columns, not both")
        self.file, self.columns, self.skip, self.label, self.like = file, columns, skip_columns, label_column, like

    @property
    def made(self) -> bool:
        return self.columns is not None or self.skip is not None

    def find(self, token: str, n_columns: int, names: list[str] | None) -> list[int]:
        """Numbers (from 0) of the columns that one word means."""
        token = str(token).strip()
        if names is not None and token in names:
            found = [i for i, name in enumerate(names) if name == token]
            if len(found) > 1:
                where = " and ".join(str(i + 1) for i in found)
                raise DataFileError(f"{self.file}: columns {where} are both called {token!r}; give the number instead")
            return found
        numbers = re.fullmatch(r"(\d+)(?:-(\d+))?", token)
        if numbers:
            first, last = int(numbers[1]), int(numbers[2] or numbers[1])
            if 1 <= first <= last <= n_columns:
                return list(range(first - 1, last))
            raise DataFileError(f"{self.file} has no column {token}; its columns are numbered 1 to {n_columns}")
        if names is None:
            raise DataFileError(
                f"{self.file} does not name its columns; give numbers (1 to {n_columns}), not {token!r}"
            )
        near = difflib.get_close_matches(token, names, n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {_listed(names)}"
        raise DataFileError(f"{self.file} has no column {token!r}; {hint}")

    def resolve(self, n_columns: int, names: list[str] | None) -> tuple[list[int], int | None]:
        """(numbers of the columns of X in the order asked for, number of the label column or None)."""
        label = None
        if self.label is not None:
            found = self.find(self.label, n_columns, names)
            if len(found) != 1:
                raise DataFileError(f"--label-column takes one column, not {self.label!r}")
            label = found[0]
        if not self.made and self.like is not None and names is not None:
            missing = [name for name in self.like if name not in names]
            if missing:
                named = f"column{'s' * (len(missing) > 1)} {_listed(list(map(repr, missing)))}"
                raise DataFileError(
                    f"{self.file} lacks the {named} of the model; --columns says which others to take instead, in the "
                    "model's order"
                )
            taken = [self.find(name, n_columns, names)[0] for name in self.like]
        elif self.columns is not None:
            taken = [i for token in self.columns for i in self.find(token, n_columns, names)]
            if len(set(taken)) != len(taken):
                raise DataFileError("--columns names a column twice")
        else:
            left_out = {i for token in self.skip or () for i in self.find(token, n_columns, names)}
            taken = [i for i in range(n_columns) if i not in left_out and i != label]
        if not taken:
            raise DataFileError(f"{self.file}: no column is left")
        return taken, label


def _listed(names: Sequence[str], most: int = 12) -> str:
    text = ", ".join(map(str, names[:most]))
    return text if len(names) <= most else f"{text}, ... ({len(names)} in all)"


def _column(i: int, names: list[str] | None) -> str:
    return f"column {i + 1}" + (f" ({names[i]!r})" if names is not None and i < len(names) and names[i] else "")


# ---- text ------------------------------------------------------------------------------------------------------------


class _Text:
    """One text file: how it is compressed, encoded and delimited, whether it has a header; and reading it."""

    def __init__(self, path: str | os.PathLike, name: str, start: bytes, header: bool | None):
        self.path, self.name = path, name
        self.opener: Callable[..., Any] = open
        for magic, opener in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open)):
            if start.startswith(magic):
                self.opener = opener
        if self.opener is not open:
            with self.reading(), self.opener(path, "rb") as file:
                start = file.read(560)
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.encoding = "utf-16"
        elif b"\0" in start:
            raise DataFileError(f"{name} is not a text file; {_READABLE}")
        else:
            # names may be in any encoding, numbers are ASCII in all of them: what does not decode is no reason to fail
            self.encoding = "utf-8-sig"

        sample = list(islice(self.lines(), _SAMPLE_LINES))
        if not sample:
            raise DataFileError(f"{name} has no line with data")
        text = [line for _, line in sample]
        with one_line(name, (csv.Error,), "is not a table"):
            self.delimiter = _detect_delimiter(text)
        rows = [self.split(line) for line in text]
        self.header_line, self.names = 0, None
        if header or (header is None and _is_header(rows)):
            self.header_line, self.names = sample[0][0], [field.strip() for field in rows.pop(0)]
        if not rows:
            raise DataFileError(f"{name} has a header but no line with data")
        self.sample = rows
        self.n_columns = len(rows[0])
        if self.names is not None and len(self.names) != self.n_columns:
            if len(self.names) == self.n_columns - 1:
                # a delimiter behind every line of data, or R's write.table: row names have no name
                self.names.insert(self.n_columns if self._open_end() else 0, "")
            else:
                raise DataFileError(
                    f"{name}: the header (line {self.header_line}) has {len(self.names)} columns, "
                    f"the first line of data has {self.n_columns}"
                )

    def reading(self) -> Any:
        return one_line(self.name, (EOFError, OSError, zlib.error, lzma.LZMAError), "cannot be decompressed")

    def lines(self) -> Iterator[tuple[int, str]]:
        """(line number from 1, line) of everything that is neither blank nor a comment."""
        with self.reading(), self.opener(self.path, "rt", encoding=self.encoding, errors="replace") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and line.lstrip()[0] != "#":
                    yield number, line

    def split(self, line: str) -> list[str]:
        with one_line(self.name, (csv.Error,), "is not a table"):
            if self.delimiter is None:
                return next(csv.reader([" ".join(line.split())], delimiter=" "))
            return next(csv.reader([line.rstrip("\r\n")], delimiter=self.delimiter, skipinitialspace=True))

    def data_lines(self, labels: list[str] | None, label: int | None) -> Iterator[str]:
        """Lines of data for numpy's reader; stops with _Ragged at one with another number of fields."""
        between = self.n_columns - 1
        delimiter = self.delimiter
        for number, line in self.lines():
            if number == self.header_line:
                continue
            if delimiter is None:
                count = len(line.split()) - 1
            else:
                count = line.count(delimiter)
            if count != between and ('"' not in line or len(self.split(line)) != self.n_columns):
                raise _Ragged(number, len(self.split(line)))
            if labels is not None and label is not None:
                labels.append(self.split(line)[label].strip())
            yield line

    def read(self, choice: _Choice) -> Table:
        taken, label = choice.resolve(self.n_columns, self.names)
        notes = []
        if not choice.made:
            taken, note = self._leave_out(taken)
            notes += note
        labels: list[str] | None = None if label is None else []
        try:
            X = np.loadtxt(
                self.data_lines(labels, label),
                delimiter=self.delimiter,
                usecols=None if taken == list(range(self.n_columns)) else taken,
                quotechar='"',
                comments=None,  # whole lines were dropped already, and a label may hold the character
                ndmin=2,
            )
        except _Ragged as ragged:
            raise DataFileError(
                f"{self.name}: line {ragged.line} has {ragged.count} columns where the first line of data has "
                f"{self.n_columns}{_decimal_comma(self.sample[0], self.delimiter)}"
            ) from None
        except ValueError as error:
            self._diagnose(taken)
            raise DataFileError(f"{self.name}: {error}") from None
        for start in range(0, len(X), _CHUNK_ROWS):
            if not np.isfinite(X[start : start + _CHUNK_ROWS]).all():
                self._diagnose(taken)
        names = None if self.names is None else [self.names[i] for i in taken]
        return Table(X, names, None if labels is None else _as_labels(labels), notes)

    def _open_end(self) -> bool:
        """Whether every line of the sample ends with a delimiter."""
        return all(len(row) == self.n_columns and not row[-1].strip() for row in self.sample)

    def _leave_out(self, taken: list[int]) -> tuple[list[int], list[str]]:
        """Columns that are no data: behind a delimiter at the end of every line, and unnamed row numbers."""
        notes = []
        last = self.n_columns - 1
        if last > 0 and (self.names is None or not self.names[last]) and self._open_end():
            taken = [i for i in taken if i != last]
        first = [row[0].strip() for row in self.sample]
        if self.names is not None and not self.names[0] and len(taken) > 1 and 0 in taken:
            counts = all(text.isdigit() for text in first)
            if counts and all(int(b) - int(a) == 1 for a, b in pairwise(first)):
                taken = [i for i in taken if i != 0]
                notes.append("column 1 has no name and counts the rows: left out (--columns takes it all the same)")
        return taken, notes

    def _diagnose(self, taken: list[int]) -> None:
        """Read again, slowly, and raise DataFileError for the first field that is not a number."""
        words = [i for i in taken if _is_words([row[i] for row in self.sample if i < len(row)])]
        if words:
            named = ", ".join(_column(i, self.names) for i in words[:5]) + (", ..." if len(words) > 5 else "")
            keys = ",".join((self.names[i] if self.names and self.names[i] else str(i + 1)) for i in words)
            keys = f'"{keys}"' if " " in keys else keys
            values = [row[words[0]] for row in self.sample if words[0] < len(row)]
            example = next(text for text in values if not _is_number(text) and text.strip().lower() not in _MISSING)
            raise DataFileError(
                f"{self.name}: not numeric: {named}, for example {example.strip()!r}"
                f"{_decimal_comma([example], self.delimiter)}; leave out with --skip-columns {keys}"
            )
        for number, line in self.lines():
            if number == self.header_line:
                continue
            fields = self.split(line)
            for i in taken:
                if _is_number(fields[i]):
                    continue
                text = fields[i].strip()
                where = f"{self.name}: line {number}, {_column(i, self.names)}"
                if text.lower() in _MISSING:
                    shown = f" ({text!r})" if text else ""
                    raise DataFileError(f"{where}: missing value{shown}; drop or fill in these rows first")
                if text.lower() in _INFINITE or _NUMBER.fullmatch(text):
                    raise DataFileError(f"{where}: {text} is not a finite number; drop or replace these rows first")
                raise DataFileError(f"{where}: {text!r} is not a number{_decimal_comma([text], self.delimiter)}")


class _Ragged(Exception):
    """A line with another number of columns."""

    def __init__(self, line: int, count: int):
        super().__init__(line, count)
        self.line, self.count = line, count


def _is_number(text: str) -> bool:
    text = text.strip()
    return _NUMBER.fullmatch(text) is not None and bool(np.isfinite(float(text)))


def _is_words(values: list[str]) -> bool:
    """Whether a column is made of words rather than of numbers with a slip."""
    wrong = [v for v in values if not _is_number(v) and v.strip().lower() not in _MISSING | _INFINITE]
    return len(wrong) > len(values) / 2


def _decimal_comma(fields: list[str], delimiter: str | None) -> str:
    if delimiter != "," and any(re.fullmatch(r"\s*[+-]?\d+,\d+\s*", text) for text in fields):
        return " (a decimal comma? write decimal points)"
    return ""


def _detect_delimiter(lines: list[str]) -> str | None:
    """The character that cuts every line into equally many fields; None for white space."""
    counts = {}
    for delimiter in ("\t", ";", ","):
        found = [len(row) for row in csv.reader([line.rstrip("\r\n") for line in lines], delimiter=delimiter)]
        if min(found) == max(found) > 1:
            return delimiter
        counts[delimiter] = sorted(found)[len(found) // 2]
    spaces = [len(line.split()) for line in lines]
    if min(spaces) == max(spaces) > 1 and max(counts.values()) == 1:
        return None
    # some line has too many or too few fields, or the header is short by one: let most of the lines decide
    best = max(counts, key=lambda delimiter: counts[delimiter])
    return best if counts[best] > 1 else None


def _is_header(rows: list[list[str]]) -> bool:
    first = [text.strip() for text in rows[0]]
    if len(rows) == 1:
        return not any(map(_is_number, first))
    rest = rows[1:]
    if len(rest[0]) == len(first) + 1 and not any(map(_is_number, first)):  # row names without a name of their own
        return True
    # pandas numbers nameless columns from 0; an empty cell before them stands for its row numbers
    bare = first[1:] if not first[0] else first
    if len(bare) > 2 and bare == [str(i) for i in range(len(bare))]:
        return True
    for i, text in enumerate(first):
        below = [row[i] for row in rest if i < len(row)]
        # a name, not a number with a slip: that must be reported and not be dropped as a header
        is_name = text.lower() not in _MISSING | _INFINITE and text[0] not in "+-.,0123456789"
        if is_name and below and not _is_words(below):
            return True
    # no column of numbers at all: words over words
    return not any(map(_is_number, first)) and not any(_is_number(text) for row in rest for text in row)


def _as_labels(labels: Sequence[str]) -> np.ndarray:
    """Numbers where all of them are, else strings."""
    if all(_NUMBER.fullmatch(text) for text in labels):
        return np.array([float(text) for text in labels])
    return np.array(labels, dtype=str)


# ---- arrays ----------------------------------------------------------------------------------------------------------


def _from_array(X: Any, choice: _Choice) -> Table:
    """A table from an array or source; nothing is copied where all columns (or a range of them) are taken, and of a
    file that is read as needed in no case."""
    name = choice.file
    if X.ndim != 2:
        raise DataFileError(f"{name}: the array has shape {tuple(X.shape)}; rows and columns are needed (2 dimensions)")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataFileError(f"{name}: the array is empty, its shape is {tuple(X.shape)}")
    if X.dtype.kind not in "biuf":
        raise DataFileError(f"{name}: the array has dtype {X.dtype}; real numbers are needed")
    taken, label = choice.resolve(X.shape[1], None)
    labels = None
    if label is not None:
        if sp.issparse(X):
            labels = X[:, [label]].toarray().ravel()
        else:
            labels = ChosenColumns(X, [label])[:].ravel() if isinstance(X, Source) else np.array(X[:, label])
    if taken == list(range(X.shape[1])):
        return Table(X, None, labels)
    if taken == list(range(taken[0], taken[-1] + 1)) and not isinstance(X, Source):
        X = X[:, taken[0] : taken[-1] + 1]
    else:
        source = find_source(X, name, lambda block, _: block) if isinstance(X, (np.memmap, Source)) else None
        X = X[:, taken] if source is None else ChosenColumns(source, taken)
    return Table(X, None, labels)


def _from_parquet(path: str | os.PathLike, var: str | None, choice: _Choice) -> Table:
    _refuse_var(choice.file, var, "Parquet")
    file = lazyfiles.Parquet(path, choice.file)
    if 0 in file.shape:
        raise DataFileError(f"{choice.file}: the table is empty, its shape is {file.shape}")
    taken, label = choice.resolve(file.shape[1], file.names)
    words = file.words(taken)
    if words:
        named = _listed([f"{_column(i, file.names)} of type {kind}" for i, kind in words], 5)
        keys = ",".join(file.names[i] for i, _ in words)
        raise DataFileError(f"{choice.file}: not numeric: {named}; leave out with --skip-columns {keys}")
    labels = None if label is None else file.column(label)
    return Table(file.rows(taken), [file.names[i] for i in taken], labels)


def _from_archive(archive: Npz | Mat | lazyfiles.Hdf5 | lazyfiles.Zarr, var: str | None, choice: _Choice) -> Table:
    shapes = archive.shapes()
    name = archive.name

    def described(names: Sequence[str]) -> str:
        return _listed([f"{n} ({' x '.join(map(str, shapes[n]))})" for n in names])

    if not shapes:
        raise DataFileError(f"{name} holds no array of real numbers")
    if var is None:
        tables = [n for n, shape in shapes.items() if len(shape) == 2]
        if not archive.has_vectors:  # in MATLAB: one row or column is a table where there is no other
            tables = [n for n in tables if min(shapes[n]) > 1] or tables
        if not tables:
            raise DataFileError(f"{name} holds no table of rows and columns; it has {described(list(shapes))}")
        if len(tables) > 1:
            raise DataFileError(f"{name} holds several tables; choose one with --var: {described(tables)}")
        var = tables[0]
    elif var not in shapes:
        raise DataFileError(f"{name} has no array of real numbers called {var!r}; it has {described(list(shapes))}")
    with one_line(name, archive.errors, f"does not give up its array {var!r}"):
        X = archive.load(var)
    beside = choice.label if choice.label in shapes and choice.label != var else None
    if beside is None:
        return _from_array(X, choice)
    choice.label = None
    table = _from_array(X, choice)
    labels: Any = archive.load(beside)
    labels = labels[:] if isinstance(labels, Source) else labels
    labels = np.ravel(labels.toarray() if sp.issparse(labels) else labels)
    if len(labels) != X.shape[0]:
        raise DataFileError(f"{name}: {beside!r} has {len(labels)} entries for {X.shape[0]} rows of {var!r}")
    table.labels = labels
    return table

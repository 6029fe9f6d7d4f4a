"""Tables in text files. csv of the standard library reads them, line by line, and says which are at fault; pandas is
quicker with large ones that are plain.

The first lines show how a file is encoded and delimited, and whether it names its columns.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from typing import Any, NoReturn

import numpy as np

from ...base import parallel
from ...base.room import DEFAULT_MEMORY
from ...errors import DataFileError
from ...rows.columns import listed
from .archives import data_file_errors
from .cells import (
    INFINITE,
    MISSING,
    NUMBER,
    detect_delimiter,
    fields_of,
    fields_of_any_length,
    hint_of_marks,
    is_header,
    is_number,
    is_row_of_years,
    is_words,
)
from .collected import CollectedRows
from .selection import ColumnSelection, Table, column_keys, column_label

_Block = tuple[np.ndarray, list[Iterable[str]]]
"""Some rows of X, with the label column and the identifiers, where they are asked for."""

SMALL_FILE = 1 << 22
"""Bytes up to which csv reads a file faster than pandas is imported; users of larger ones are told of pandas."""
CHARACTER_BYTES = 128
"""Bytes of memory for each character of a line, with its fields and those of the first lines: 46 to 113 for fields of
one to seven digits. A longer line, or record whose fields go on in the next lines, than memory takes is refused: a
compressed file of a few bytes may hold one."""
PANDAS_COLUMN_BYTES = 1600
"""Bytes that pandas takes for each column, measured with 750,000: wider tables are left to csv."""
_SAMPLE_LINES = 50
"""Lines from which the format of the file is determined."""
_ESCAPED = "surrogateescape"
"""What is done with bytes that are not of a file's encoding. They become what is in no proper text: ``_UNDECODED``."""
_UNDECODED = re.compile("[\udc80-\udcff]")
_ENCODINGS = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}
_SPELLINGS = [
    word + end for x in sorted(MISSING) for word in {x, x.upper(), x.capitalize(), "NaN"} for end in ("", " ")
]
"""Of missing values, as pandas takes them: as they stand in the file."""
_WITH_COMMA = re.compile(r"[+-]?(\d[\d.]*)?,\d+([eE][+-]?\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d[\d.]*(,\d*)?([eE][+-]?\d+)?")
_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?[,;\t|]*', re.IGNORECASE)
"""The first line of a file that names the separator for Excel."""
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_END = "\0"
"""A line after the last one, which no text file has: a quotation mark that is still open takes it in."""
_SWAPPED = str.maketrans(",.", ".,")


@dataclass
class _Faults:
    """By column: the first line at fault and what it has there, and how many lines are."""

    first: dict[int, tuple[int, str]] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)


class _LineLimit:
    """What pandas reads, of which no line may be longer than so many characters: it would hold the line whole."""

    def __init__(self, file: Any, end: Any, most: float):
        self._file, self._end, self._most, self._length = file, end, most, 0

    def read(self, size: int = -1) -> Any:
        chunk = self._file.read(size)
        at = chunk.rfind(self._end)
        self._length = len(chunk) - at - 1 if at >= 0 else self._length + len(chunk)
        if self._length > self._most:
            raise ValueError("a line is too long")
        return chunk

    read1 = read

    def readable(self) -> bool:
        return True


class _LimitedBytes(_LineLimit, io.BufferedIOBase):  # type: ignore[misc]
    pass


class _LimitedText(_LineLimit, io.TextIOBase):  # type: ignore[misc]
    pass


class TextFile:
    """One text file: its compression, encoding, delimiter and header, told from its first lines.

    ``start`` holds its first bytes, ``decimal`` is what stands between whole number and fraction. Raises DataFileError
    where it is not text, holds no line of data, or a line that takes more than ``memory`` bytes.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        name: str,
        start: bytes,
        header: bool | None,
        decimal: str,
        readable: str,
        memory: float | None = None,
    ):
        self.path, self.name, self.decimal = path, name, decimal
        self._memory = DEFAULT_MEMORY if memory is None else memory
        self._most = int(self._memory / CHARACTER_BYTES)
        self.opener: Callable[..., Any] = open
        for magic, opener in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open)):
            if start.startswith(magic):
                self.opener = opener
        if self.opener is not open:
            with self._reading(), self.opener(path, "rb") as file:
                start = file.read(560)
        self.encoding = "utf-16" if start.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        if self.encoding != "utf-16" and b"\0" in start:
            raise DataFileError(f"{name} is not a text file; {readable}")

        self.notes: list[str] = []
        self.needs, self.allow_missing = 1, False
        self.delimiter: str | None = None
        self.above = 0
        sample = self._first_lines()
        mark = _SEPARATOR.fullmatch(sample[0][1].rstrip("\r\n"))
        if mark:
            self.above = sample[0][0]
            sample = self._first_lines()
        with data_file_errors(name, "is not a table", (csv.Error,)):
            self.delimiter = mark[1] if mark else detect_delimiter([line for _, line in sample], decimal)
        # line ends of old Macs, which pandas is not asked to know
        self.text_only = self.encoding != "utf-8-sig" or b"\r" in start.replace(b"\r\n", b"")
        self.spaced = self.delimiter is None or any(f"{self.delimiter} " in line for _, line in sample)
        rows = [self._cells_of(line) for _, line in sample]
        self.names = None
        head = sample[0][0]
        if self._has_header(rows, head) if header is None else header:
            self.names = [cell.strip() for cell in self._split(sample[0][1])]
            rows.pop(0)
        if not rows:
            raise DataFileError(f"{name} has a header but no line with data")
        self.sample, self.n_columns = rows, len(rows[0])
        self.first_line = sample[0 if self.names is None else 1][0]
        if decimal == "," and self.n_columns == 1:
            self._refuse_separating_commas([line for _, line in sample])
        # a delimiter at the end of every line of data makes an empty last column
        self.open_end = all(len(row) == self.n_columns > 1 and not row[-1].strip() for row in rows)
        if self.names is not None:
            if len(self.names) == self.n_columns - 1:  # of an open end, or of R's write.table: row names have no name
                self.names.insert(self.n_columns if self.open_end else 0, "")
            if len(self.names) != self.n_columns:
                raise DataFileError(
                    f"{name}: the header (line {head}) has {len(self.names)} columns, "
                    f"the first line of data has {self.n_columns}"
                )
            self.open_end = self.open_end and not self.names[-1]

    def _first_lines(self) -> list[tuple[int, str]]:
        """The first lines with their numbers; what is not UTF-8 is taken for Windows-1252."""
        sample = self._sample()
        if not sample:
            raise DataFileError(f"{self.name} has no line with data")
        undecoded = next((number for number, line in sample if _UNDECODED.search(line)), None)
        if undecoded is None or self.encoding != "utf-8-sig":
            return sample
        self.encoding = "cp1252"
        self.notes.append(f"line {undecoded} is not UTF-8: the file is read as Windows-1252 (Western European)")
        return self._sample()

    def _sample(self) -> list[tuple[int, str]]:
        sample, size = [], 0
        for number, line in islice(self._lines(), _SAMPLE_LINES):
            sample.append((number, line))
            size += len(line)
            if size > SMALL_FILE and len(sample) > 2:
                break
        return sample

    def _refuse_separating_commas(self, lines: list[str]) -> None:
        """Raise DataFileError where commas cut all lines into equally many columns, more than one number may have."""
        counts = {len(fields_of(line, ",")) for line in lines}
        if len(counts) == 1 and counts.pop() > (2 if self.names is None else 1):
            raise DataFileError(
                f"{self.name}: --decimal , takes the commas as decimal commas, and nothing else separates columns; "
                "leave out --decimal , where commas separate columns"
            )

    def _has_header(self, rows: list[list[str]], line: int) -> bool:
        """True if the first line names the columns; a guess that might be wrong is noted."""
        if is_header([[self._whatever_the_decimal(cell) for cell in row] for row in rows]):
            return True
        if not is_row_of_years(rows):
            return False
        first = listed(rows[0], 3)
        self.notes.append(f"line {line} ({first}) is taken for the names of the columns; --header no takes it for data")
        return True

    def read(self, selection: ColumnSelection, allow_missing: bool = False) -> Table:
        """The columns that were asked for, as float64, with their names, labels and identifiers."""
        chosen = selection.resolve(self.n_columns, self.names)
        self.needs, self.allow_missing = selection.needs, allow_missing
        taken, notes = chosen.taken, [*self.notes, *selection.notes]
        if selection.columns is None and selection.skip is None:
            taken = [i for i in taken if not (self.open_end and i == self.n_columns - 1)]
            if len(taken) > 1 and taken[0] == 0 and self._counts_rows():
                taken = taken[1:]
                notes.append("column 1 has no name and counts the rows: left out (--columns takes it all the same)")
            if selection.like is None:
                notes += [self._note_of_numbers(i) for i in taken if self._numbers_rows(i)]
        self._refuse_words(taken)
        X, texts = self._collected(taken, [i for i in chosen[1:] if i is not None], notes)
        self._refuse_undecoded(texts)
        return Table(
            X,
            None if self.names is None else [self.names[i] for i in taken],
            None if chosen.label is None else self._labels(texts[chosen.label]),
            notes,
            None if chosen.identifiers is None else np.array(texts[chosen.identifiers], dtype=object),
            n_rows=X.shape[0],
            places=taken,
            lines=self._lines_of,
        )

    def _labels(self, texts: list[str]) -> np.ndarray:
        """Numbers where all labels are, else strings."""
        cells = list(map(self._with_points, texts))
        return np.array(cells).astype(np.float64) if all(map(NUMBER.fullmatch, cells)) else np.array(texts)

    def _lines_of(self, rows: np.ndarray) -> list[int]:
        """Numbers of the lines of some rows, which are in order."""
        wanted = set(rows.tolist())
        with fields_of_any_length():
            return [number for i, (number, _) in enumerate(islice(self._records(), int(rows[-1]) + 1)) if i in wanted]

    def _refuse_undecoded(self, texts: dict[int, list[str]]) -> None:
        """Raise DataFileError where a name, label or identifier holds bytes of another encoding. Elsewhere they do not
        matter: numbers are ASCII in all encodings."""
        if any(_UNDECODED.search("".join(cells)) for cells in (self.names or [], *texts.values())):
            line = next(number for number, line in self._lines() if _UNDECODED.search(line))
            raise DataFileError(f"{self.name}: line {line} is not {_ENCODINGS[self.encoding]}; save the file as UTF-8")

    # Reading

    def _collected(self, taken: list[int], beside: list[int], notes: list[str]) -> tuple[Any, dict[int, list[str]]]:
        """(X, texts of the other columns). Files that pandas does not read, or not for certain, are left to csv."""
        if os.path.getsize(self.path) > SMALL_FILE and PANDAS_COLUMN_BYTES * self.n_columns <= self._memory / 4:
            try:
                return self._joined(self._pandas_blocks(taken, beside), taken, beside)
            except ImportError:
                notes.append("with pandas installed, files of this size are read several times faster")
            except ValueError:
                pass
        return self._joined(self._blocks(taken, beside), taken, beside)

    def _joined(
        self, blocks: Iterator[_Block], taken: list[int], beside: list[int]
    ) -> tuple[Any, dict[int, list[str]]]:
        texts: dict[int, list[str]] = {i: [] for i in beside}
        with CollectedRows(len(taken), self.name) as X:
            for block, columns in blocks:
                X.append(block)
                for i, column in zip(beside, columns):
                    texts[i] += map(str.strip, column)
            return X.rows(), texts

    def _pandas_blocks(self, taken: list[int], beside: list[int]) -> Iterator[_Block]:
        """Raises ValueError where the file is not plain: a line may have too few or too many fields, a value may not be
        finite, or there are comments further down."""
        import pandas

        # pandas reads all columns: it does not count the fields of a line where it is asked for some. Of those that
        # nobody asked for it keeps one byte, which is much faster than words
        types: Any = dict.fromkeys(range(self.n_columns), "S1") | dict.fromkeys(taken, np.float64)
        types |= dict.fromkeys(beside, object)
        if len(taken) == self.n_columns:
            types = np.float64  # a type for each of thousands of columns takes twice as long
        # before 3.1 pandas rounds correctly only where it is asked to, and does not count the fields of a block's
        # first line: one more column holds what such a line has too many. Such a block takes twice the memory
        old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
        options: dict[str, Any] = {"na_filter": False}
        if old:
            options |= {"float_precision": "round_trip", "names": range(self.n_columns + 1)}
            types = dict.fromkeys(range(self.n_columns), np.float64) if types is np.float64 else types
            types[self.n_columns] = "S1"
        if self.allow_missing:
            options |= {"na_filter": True, "na_values": dict.fromkeys(taken, _SPELLINGS)}
        last = self.n_columns - 1 - self.open_end  # a line that is short has no value there
        with self._reading(), self._open(binary=not self.text_only) as file:
            for _ in range(self.first_line - 1):
                file.readline()
            limited = _LimitedText(file, "\n", self._most) if self.text_only else _LimitedBytes(file, b"\n", self._most)
            tables = pandas.read_csv(
                limited,
                sep=r"\s+" if self.delimiter is None else self.delimiter,
                decimal=self.decimal,
                header=None,
                dtype=types,
                keep_default_na=False,
                skipinitialspace=self.spaced or self.allow_missing,
                engine="c",
                encoding_errors=_ESCAPED,
                chunksize=parallel.tile_rows(self.n_columns, entries=1 << (22 - old), most=1 << (16 - old)),
                **options,
            )
            for table in tables:
                long = old and (table.pop(self.n_columns) != b"").any()
                short = table[last].isna() if last in taken else table[last].isin(["", b""])
                X = (table if taken == list(table.columns) else table[taken]).to_numpy()
                wrong = np.isinf(X) if self.allow_missing else ~np.isfinite(X)
                if long or short.any() or wrong.any():
                    raise ValueError("a line may be too long or too short, or a value not finite")
                yield X, [table[i] for i in beside]

    def _blocks(self, taken: list[int], beside: list[int]) -> Iterator[_Block]:
        """By csv of the standard library, which reads everything. Raises DataFileError for the first line with a field
        too many or too few, else for all columns that hold anything else than finite numbers."""
        faults = _Faults()
        records, step = self._records(), parallel.tile_rows(self.n_columns)
        while True:
            with fields_of_any_length():
                block = list(islice(records, step))
            if not block:
                break
            for number, row in block:
                if not self.n_columns - self.open_end <= len(row) <= self.n_columns:
                    self._refuse_width(number, len(row))
            cells = [self._with_points(row[i]) for _, row in block for i in taken]
            try:
                X = np.fromiter(map(float, cells), np.float64, len(cells)).reshape(-1, len(taken))
                text = "".join(cells)
                plain = np.isfinite(X).all() and "_" not in text and "\n" not in text
            except ValueError:
                plain = False
            if not plain:
                X = np.array([[self._value(number, row, i, faults) for i in taken] for number, row in block])
            if not faults.first:  # else it is read on for the other faults alone
                yield X, [[row[i] for _, row in block] for i in beside]
        if faults.first:
            self._refuse(faults, taken)

    def _value(self, number: int, row: list[str], i: int, faults: _Faults) -> float:
        """Column i of this line as a number, NaN where it is none: which is a fault, or a missing value."""
        text = self._with_points(row[i])
        if is_number(text) and "\n" not in text:
            return float(text)
        if not (self.allow_missing and text.strip().lower() in MISSING):
            faults.first.setdefault(i, (number, row[i].strip(" \t")))
            faults.counts[i] += 1
        return np.nan

    def _with_points(self, text: str) -> str:
        """With decimal points. A point among decimal commas becomes a comma, which no number has."""
        return text if self.decimal == "." else text.translate(_SWAPPED)

    def _whatever_the_decimal(self, cell: str) -> str:
        """A cell as a number also where it has a decimal comma that the user has not told of."""
        return cell.replace(",", ".") if self._decimal_hint(self._with_points(cell)) else cell

    def _reading(self) -> Any:
        errors = (EOFError, OSError, UnicodeError, zlib.error, lzma.LZMAError)
        return data_file_errors(self.name, "cannot be read", errors)

    def _open(self, binary: bool = False) -> Any:
        if binary:
            return self.opener(self.path, "rb")
        return self.opener(self.path, "rt", encoding=self.encoding, errors=_ESCAPED)

    def _lines(self) -> Iterator[tuple[int, str]]:
        """(line number from 1, line) of everything that is neither blank nor a comment."""
        # tabs that part missing values make no blank line
        blank = " \r\n" if self.allow_missing and self.delimiter == "\t" else None
        with self._reading(), self._open() as file:
            for number, line in enumerate(iter(partial(file.readline, self._most + 1), ""), 1):
                if len(line) > self._most:
                    raise self._too_long(f"line {number} has")
                if number > self.above and line.strip(blank) and not line.lstrip().startswith("#"):
                    yield number, line

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """(number of its first line, fields) of all data; a field in quotes may go on in the next line."""
        begun: list[int] = []

        def texts() -> Iterator[str]:
            length = 0
            for number, line in self._lines():
                if number >= self.first_line:
                    length = len(line) + (length if begun else 0)
                    begun.append(number)
                    if length > self._most:  # before csv has put together what stands in quotes
                        raise self._too_long(f"line {begun[0]} opens a quotation mark that closes after")
                    yield " ".join(line.split()) + "\n" if self.delimiter is None else line
            yield _END

        with data_file_errors(self.name, "is not a table", (csv.Error,)):
            spaces = self.delimiter is None
            for row in csv.reader(texts(), delimiter=self.delimiter or " ", skipinitialspace=not spaces):
                if row and row[-1].endswith(_END):
                    break
                yield begun[0], row
                begun.clear()
        if begun:
            raise DataFileError(f"{self.name}: line {begun[0]} opens a quotation mark that is not closed")

    def _too_long(self, what: str) -> DataFileError:
        return DataFileError(
            f"{self.name}: {what} more than {self._most} characters, the most of a line that "
            f"{self._memory / 1e6:.3g} MB of memory take; if these are rows and columns, raise --memory-limit"
        )

    def _split(self, line: str) -> list[str]:
        with data_file_errors(self.name, "is not a table", (csv.Error,)):
            if self.delimiter is None:
                return fields_of(" ".join(line.split()), " ")
            return fields_of(line, self.delimiter, skipinitialspace=True)

    def _cells_of(self, line: str) -> list[str]:
        """The fields of a line, with decimal points."""
        return [self._with_points(cell) for cell in self._split(line)]

    # What the first lines say of the columns

    def _cells(self, i: int) -> list[str]:
        """A column, as far as the first lines have it."""
        return [row[i].strip() for row in self.sample if i < len(row)]

    def _counts_rows(self) -> bool:
        """True if the first column has no name and holds consecutive numbers, as pandas writes its index."""
        cells = self._cells(0)
        if self.names is None or self.names[0] or not all(cell.isdigit() for cell in cells):
            return False
        return all(int(b) - int(a) == 1 for a, b in pairwise(cells))

    def _numbers_rows(self, i: int) -> bool:
        """True if a column is called id or index, and holds another whole number in each of the first lines."""
        cells = self._cells(i)
        is_named = self.names is not None and self.names[i].lower() in ("id", "index")
        return is_named and all(cell.isdecimal() for cell in cells) and len(set(cells)) == len(cells) > 1

    def _note_of_numbers(self, i: int) -> str:
        key = column_keys([i], self.names)
        return f"{column_label(i, self.names)} counts as data; --id {key} takes it as the names of the rows"

    def _refuse_words(self, taken: list[int]) -> None:
        """Raise DataFileError where columns are made of words."""
        words = [i for i in taken if is_words(self._cells(i))]
        with_separator = [i for i in words if self._decimal_hint(self._example(i))]
        others = [i for i in words if i not in with_separator]
        if self.decimal == ",":  # with points in a column the file is refused later on, with the number of the line
            words, with_separator = others, []
        if not words:
            return
        parts = []
        if with_separator:
            parts.append(self._not_numeric(with_separator, self._decimal_hint(self._example(with_separator[0]))))
        if others:
            cells = self._cells(others[0])
            hint = " (--id takes names of the rows, --label-column classes)"
            if marks := hint_of_marks(cells):
                hint = marks
            elif self.needs > max(1, len(taken) - len(others)):
                hint = f"; the model needs {self.needs} columns of numbers"
            elif len(set(cells)) == len(cells) > 1:
                hint = f" (the names of the rows? --id {column_keys(others[:1], self.names)} takes them)"
            parts.append(self._not_numeric(others, hint))
        if words == others and len(taken) - len(words) >= self.needs:
            parts.append(f"leave out with --skip-columns {column_keys(words, self.names)}")
        elif len(words) == len(others) == len(taken):
            parts.append("no column holds numbers")
        raise DataFileError(f"{self.name}: {'; '.join(parts)}")

    def _not_numeric(self, columns: list[int], hint: str) -> str:
        labels = listed(column_label(i, self.names) for i in columns)
        example = self._example(columns[0])
        hint = "; write 1 and 0 for truth values" if example.strip().lower() in ("true", "false") else hint
        return f"not numeric: {labels}, for example {example!r}{hint}"

    def _example(self, i: int) -> str:
        """The first word of a column, as it stands in the file."""
        word = next(x for x in self._cells(i) if not is_number(x) and x.lower() not in MISSING)
        return self._with_points(word)

    # What is wrong with the file

    def _refuse_width(self, number: int, width: int) -> NoReturn:
        hints = (self._decimal_hint(self._with_points(cell)) for cell in self.sample[0])
        raise DataFileError(
            f"{self.name}: line {number} has {width} columns where the first line of data has "
            f"{self.n_columns}{next(filter(None, hints), '')}"
        )

    def _refuse(self, found: _Faults, taken: list[int]) -> NoReturn:
        faults: list[str] = []
        advice: dict[str, None] = {}
        for i, (number, text) in sorted(found.first.items(), key=lambda item: item[1][0]):
            fault, what_to_do = self._fault(text)
            how_many = f" (the first of {found.counts[i]} in this column)" if found.counts[i] > 1 else ""
            faults.append(f"line {number}, {column_label(i, self.names)}: {fault}{how_many}")
            advice[what_to_do] = None
        end = advice.popitem()[0] if len(advice) == 1 else "drop these rows or replace the values first"
        if end and len(taken) - len(found.first) >= self.needs:
            end += f", or leave the columns out with --skip-columns {column_keys(sorted(found.first), self.names)}"
        elif self.needs > 1:
            end += f"{'; ' * bool(end)}the model needs {self.needs} columns"
        raise DataFileError("; ".join(filter(None, [f"{self.name}: {listed(faults, 8, '; ')}", end])))

    def _fault(self, text: str) -> tuple[str, str]:
        """(what is wrong with a field, what to do)."""
        text = text if len(text) <= 60 else f"{text[:60]}..."
        if text.lower() in MISSING:
            return (
                f"missing value{f' ({text!r})' if text else ''}",
                "drop or fill in these rows first (--drop-missing drops them; project and monitor take --fill-missing)",
            )
        if text.lower() in INFINITE or NUMBER.fullmatch(self._with_points(text)):
            return f"{text} is not a finite number", "drop or replace these rows first"
        return f"{text!r} is not a number{self._decimal_hint(text)}", ""

    def _decimal_hint(self, text: str) -> str:
        """What may be meant by a field, as it stands in the file, that is no number; "" where nothing comes to mind."""
        text = text.strip()
        if self.decimal == "." and _THOUSANDS.fullmatch(text):
            return " (a thousands comma? take it out; or a decimal comma? --decimal , reads it as that)"
        if self.decimal == "." and _WITH_COMMA.fullmatch(text):
            return " (a decimal comma? --decimal , reads it)"
        if self.decimal == "," and "." in text and _WITH_POINT.fullmatch(text):
            return " (a thousands point, or a decimal point? with --decimal , no number may hold a point)"
        return ""

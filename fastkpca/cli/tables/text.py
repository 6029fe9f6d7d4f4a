"""Tables in text files. pandas reads those that are large and plain. csv of the standard library reads the others line
by line, and finds the lines at fault where pandas refuses a file.

The first lines show how a file is encoded and delimited, and whether it names its columns.
"""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice, pairwise, takewhile
from typing import Any, NoReturn

import numpy as np

from ...base import parallel
from ...base.process_memory import DEFAULT_MEMORY
from ...errors import DataFileError
from ...rows.columns import listed
from ...rows.times import as_times
from . import cells
from .archives import data_file_errors
from .cells import MISSING, Reading
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
"""Error handler of the decoder: bytes that are not of the file's encoding become lone surrogates, ``_UNDECODED``."""
_UNDECODED = re.compile("[\udc80-\udcff]")
_ENCODINGS = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}
_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_READ_ERRORS = (EOFError, OSError, UnicodeError, zlib.error, lzma.LZMAError)
_SPELLINGS = [word for x in sorted(MISSING) for word in {x, x.upper(), x.capitalize(), "NaN"}]
"""Spellings of missing values for pandas, which compares them with the text of the file."""
_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?[,;\t|]*', re.IGNORECASE)
"""The first line of a file that names the separator for Excel."""
_END = "\0"
"""A line after the last one, which no text file has: a quotation mark that is still open takes it in."""
_COMMENTED = {"#", " ", "\t", b"#", b" ", b"\t"}
"""First characters of what may be a comment, where pandas reads no number: as text, or as one byte."""
_DAY_FIRST = re.compile(r"(\d{1,2})[-/. ](\d{1,2})[-/. ](\d{4})")


def _times(texts: list[str], form: str) -> np.ndarray | None:
    """Parsed times of the form ``form``; None if one does not have it."""
    if form == "day-first":
        return as_times(np.array([_DAY_FIRST.sub(r"\1.\2.\3", text, count=1) for text in texts], dtype=object))
    try:
        return as_times(np.array([datetime.datetime.strptime(text, form) for text in texts], dtype=object))
    except (ValueError, re.error):
        return None


def _certainty(hint: str) -> int:
    """Rank of a hint: more options in it are better, a choice between two is worse."""
    return 2 * hint.count("--") - 3 * (" or " in hint) + bool(hint)


class _LineLimit(io.BufferedIOBase):
    """File object for pandas that refuses lines of more than ``most`` bytes: pandas would hold each whole."""

    def __init__(self, file: Any, most: float):
        self._file, self._most, self._length = file, most, 0

    def read1(self, size: int = -1) -> bytes:
        chunk: bytes = self._file.read(size)
        at = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        self._length = len(chunk) - at - 1 if at >= 0 else self._length + len(chunk)
        if self._length > self._most:
            raise ValueError("a line is too long")
        return chunk

    def readable(self) -> bool:
        return True


class TextFile:
    """One text file: its compression, encoding, delimiter and header, told from its first lines.

    ``start`` holds its first bytes, ``reading`` what the user says of the file. Raises DataFileError where it is not
    text, holds no line of data, or a line that takes more than ``memory`` bytes.
    """

    @cells.fields_of_any_length()
    def __init__(
        self,
        path: str | os.PathLike,
        name: str,
        start: bytes,
        reading: Reading,
        readable: str = "",
        memory: float | None = None,
        delimiter: str | None = None,
    ):
        self.path, self.name, self.reading = path, name, reading
        self._memory = DEFAULT_MEMORY if memory is None else memory
        self._most = int(self._memory / CHARACTER_BYTES)
        self.opener: Callable[..., Any] = next((f for magic, f in _OPENERS.items() if start.startswith(magic)), open)
        if self.opener is not open:
            with self._errors(), self.opener(path, "rb") as file:
                start = file.read(560)
        self.encoding = "utf-16" if start.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        if self.encoding != "utf-16" and b"\0" in start:
            raise DataFileError(f"{name} is not a text file; {readable}")

        self.notes: list[str] = []
        self.needs, self.allow_missing = 1, False
        self.source: Any = None  # what the file goes with
        self.delimiter: str | None = None
        self.above = reading.skip_rows
        sample = self._first_lines()
        mark = None if delimiter else _SEPARATOR.fullmatch(sample[0][1].rstrip("\r\n"))
        if mark:
            self.above = sample[0][0]
            sample = self._first_lines()
        with data_file_errors(name, "is not a table", (csv.Error,)):
            lines = [line for _, line in sample]
            self.delimiter = delimiter or (mark[1] if mark else cells.detect_delimiter(lines, reading.decimal))
        self.spaced = self.delimiter is None or any(f"{self.delimiter} " in line for line in lines)
        self.first_line = self.above + 1
        in_sample = takewhile(lambda record: record[0] <= sample[-1][0], self._records())
        numbers, rows = map(list, zip(*in_sample))
        self._set_columns(numbers, rows)
        if reading.decimal == "," and self.n_columns == 1:
            self._refuse_separating_commas(lines)

    def _set_columns(self, numbers: list[int], rows: list[list[str]]) -> None:
        """The columns and their names, from the first lines: the numbers of these and their fields."""
        self.names = None
        header, units = self.reading.header, self.reading.units_row
        if len(rows[0]) == 1 and (title := self._hint_of_lines_above(numbers, rows)):
            raise DataFileError(f"{self.name}: line {numbers[0]} has 1 column where most lines have more{title}")
        if self._has_header(rows[:1] + rows[1 + units :], numbers[0]) if header is None else header:
            self.names = [cell.strip() for cell in rows.pop(0)]
        head = numbers.pop(0) if self.names is not None else 0
        if units:
            del rows[:1], numbers[:1]
        if not rows:
            raise DataFileError(f"{self.name} has a header but no line with data")
        self.sample, self.numbers, self.n_columns, self.first_line = rows, numbers, len(rows[0]), numbers[0]
        # a delimiter at the end of every line of data makes an empty last column
        self.open_end = all(len(row) == self.n_columns > 1 and not row[-1].strip() for row in rows)
        if self.names is not None:
            if len(self.names) == self.n_columns - 1:  # of an open end, or of R's write.table: row names have no name
                self.names.insert(self.n_columns if self.open_end else 0, "")
            if (width := len(self.names)) != self.n_columns:
                rest = f"the first line of data has {self.n_columns}"
                text = f"{self.name}: the header (line {head}) has {width} columns, {rest}"
                raise DataFileError(text + self._hint_of_lines_above([head, *numbers], [self.names, *rows]))
            self.open_end = self.open_end and not self.names[-1]

    def _hint_of_lines_above(self, numbers: list[int], rows: list[list[str]]) -> str:
        """Advice where the first lines have fewer columns than most: titles above a table."""
        widths = list(map(len, rows))
        usual = Counter(widths).most_common(1)[0][0]
        first = numbers[widths.index(usual)]
        begins = widths[0] < usual - 1 and widths.index(usual) < len(widths) / 2
        return f" (a title above the table? --skip-rows {first - 1} begins with line {first})" if begins else ""

    def _first_lines(self) -> list[tuple[int, str]]:
        """The first lines with their numbers; what is not UTF-8 is taken for Windows-1252."""
        sample = self._sample()
        if not sample:
            above = f" after the {self.above} that are skipped" if self.above else ""
            raise DataFileError(f"{self.name} has no line with data{above}")
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
        counts = {len(cells.fields_of(line, ",")) for line in lines}
        if len(counts) == 1 and counts.pop() > (2 if self.names is None else 1):
            raise DataFileError(
                f"{self.name}: --decimal , takes the commas as decimal commas, and nothing else separates columns; "
                "leave out --decimal , where commas separate columns"
            )

    def _has_header(self, rows: list[list[str]], line: int) -> bool:
        """True if the first line names the columns; a guess that might be wrong is noted."""
        rows = [list(map(self.reading.plain, row)) for row in rows]
        # numbers in a notation that the user has not told of are numbers
        if cells.is_header([["0.5" if "--" in self.reading.hint(cell) else cell for cell in row] for row in rows]):
            return True
        if not cells.is_row_of_years(rows):
            return False
        first = listed(rows[0], 3)
        self.notes.append(f"line {line} ({first}) is taken for the names of the columns; --header no takes it for data")
        return True

    @cells.fields_of_any_length()
    def read(self, selection: ColumnSelection, allow_missing: bool = False) -> Table:
        """The columns that were asked for, as float64, with their names, labels and identifiers."""
        chosen = selection.resolve(self.n_columns, self.names)
        self.needs, self.allow_missing = selection.needs, allow_missing
        taken, notes = chosen.taken, [*self.notes, *selection.notes]
        if selection.columns is None and selection.skip_columns is None:
            taken = [i for i in taken if not (self.open_end and i == self.n_columns - 1)]
            if len(taken) > 1 and taken[0] == 0 and self._counts_rows():
                taken = taken[1:]
                notes.append("column 1 has no name and counts the rows: left out (--columns takes it all the same)")
            for i in filter(self._numbers_rows, taken if selection.like is None else ()):
                label, key = column_label(i, self.names), column_keys([i], self.names)
                notes.append(f"{label} counts as data; --id {key} takes it as the names of the rows")
        self._refuse_words(taken)
        X, texts = self._collected(taken, [i for i in chosen[1:] if i is not None], notes)
        self._refuse_undecoded(texts)
        names = None if self.names is None else [self.names[i] for i in taken]
        labels = None if chosen.label is None else self._labels(texts[chosen.label])
        identifiers = None if chosen.identifiers is None else self._identifiers(texts[chosen.identifiers])
        return Table(X, names, labels, notes, identifiers, n_rows=len(X), places=taken, lines=self._lines_of)

    def _labels(self, texts: list[str]) -> np.ndarray:
        """Numbers where all labels are, else strings."""
        plain = list(map(self.reading.plain, texts))
        return np.array(plain).astype(np.float64) if all(map(cells.NUMBER.fullmatch, plain)) else np.array(texts)

    def _identifiers(self, texts: list[str]) -> np.ndarray:
        """As they stand in the file, or times where the user gives their form."""
        form = self.reading.date_format
        if not form:
            return np.array(texts, dtype=object)
        times = _times(texts, form)
        if times is None:
            wrong = next((i for i, text in enumerate(texts) if _times([text], form) is None), 0)
            raise DataFileError(
                f"{self.name}: line {self._lines_of(np.array([wrong]))[0]}: {texts[wrong][:60]!r} is no time of the "
                f"form --date-format {form}; give theirs, as in '%d/%m/%Y %H:%M', or leave the option out"
            )
        return np.array([str(time) for time in times.tolist()], dtype=object)

    @cells.fields_of_any_length()
    def _lines_of(self, rows: np.ndarray) -> list[int]:
        """Numbers of the lines of some rows, which are in order."""
        wanted = set(rows.tolist())
        return [number for i, (number, _) in enumerate(islice(self._records(), int(rows[-1]) + 1)) if i in wanted]

    def _refuse_undecoded(self, texts: dict[int, list[str]]) -> None:
        """Raise DataFileError where a name, label or identifier holds bytes of another encoding. Elsewhere they do not
        matter: numbers are ASCII in all encodings."""
        if any(_UNDECODED.search("".join(column)) for column in (self.names or [], *texts.values())):
            line = next(number for number, line in self._lines() if _UNDECODED.search(line))
            raise DataFileError(f"{self.name}: line {line} is not {_ENCODINGS[self.encoding]}; save the file as UTF-8")

    # Reading

    def _collected(self, taken: list[int], extra: list[int], notes: list[str]) -> tuple[Any, dict[int, list[str]]]:
        """(X, texts of the other columns). Files that pandas does not read, or not for certain, are left to csv. pandas
        takes a separator of thousands wherever it stands: 1,5 would be 15."""
        narrow = PANDAS_COLUMN_BYTES * self.n_columns <= self._memory / 4
        if narrow and not self.reading.thousands and os.path.getsize(self.path) > SMALL_FILE:
            try:
                return self._joined(self._pandas_blocks(taken, extra), taken, extra)
            except ImportError:
                notes.append("with pandas 3.1 installed, files of this size are read several times faster")
            except ValueError:
                pass
        return self._joined(self._blocks(taken, extra), taken, extra)

    def _joined(self, blocks: Iterator[_Block], taken: list[int], extra: list[int]) -> tuple[Any, dict[int, list[str]]]:
        texts: dict[int, list[str]] = {i: [] for i in extra}
        with CollectedRows(len(taken), self.name) as X:
            for block, columns in blocks:
                X.append(block)
                for i, column in zip(extra, columns):
                    texts[i] += map(str.strip, column)
            return X.rows(), texts

    def _pandas_blocks(self, taken: list[int], extra: list[int]) -> Iterator[_Block]:
        """Raises ValueError where the file is not plain: a line may have too few or too many fields, a value may not be
        finite, or there are comments further down."""
        import pandas

        if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):  # those before round and count otherwise
            raise ImportError
        # pandas reads all columns: it does not count the fields of a line where it is asked for some. Of those that
        # nobody asked for it keeps one byte, which is much faster than words
        types: Any = dict.fromkeys(range(self.n_columns), "S1") | dict.fromkeys(taken, np.float64)
        types |= dict.fromkeys(extra, object)
        if len(taken) == self.n_columns:
            types = np.float64  # a type for each of thousands of columns takes twice as long
        options: dict[str, Any] = {"na_filter": False}
        if self.allow_missing or self.reading.na_values:
            words = [x + end for x in [*_SPELLINGS, *self.reading.na_values] for end in ("", " ")]
            options = {"na_values": dict.fromkeys(taken, words)}
        last = self.n_columns - 1 - self.open_end  # a line that is short has no value there
        with self._errors(), self.opener(self.path, "rb") as file:
            text = io.TextIOWrapper(_LineLimit(file, self._most), self.encoding, _ESCAPED)  # type: ignore[type-var]
            for _ in range(self.first_line - 1):
                text.readline()
            tables = pandas.read_csv(
                text,
                sep=r"\s+" if self.delimiter is None else self.delimiter,
                decimal=self.reading.decimal,
                header=None,
                dtype=types,
                keep_default_na=False,
                skipinitialspace=self.spaced or "na_values" in options,
                engine="c",
                encoding_errors=_ESCAPED,
                chunksize=parallel.tile_rows(self.n_columns, entries=1 << 22, most=1 << 16),
                **options,
            )
            for table in tables:
                short = table[last].isna() if last in taken else table[last].isin(["", b""])
                X = (table if taken == list(table.columns) else table[taken]).to_numpy()
                wrong = np.isinf(X) if self.allow_missing else ~np.isfinite(X)
                commented = 0 not in taken and _COMMENTED & {cell[:1] for cell in table[0]}
                if commented or table.shape[1] != self.n_columns or short.any() or wrong.any():
                    raise ValueError("a line may be a comment or too short or too long, or a value not finite")
                yield X, [table[i] for i in extra]

    def _blocks(self, taken: list[int], extra: list[int]) -> Iterator[_Block]:
        """By csv of the standard library, which reads everything. Raises DataFileError for the first line with a field
        too many or too few, else for all columns that hold anything else than finite numbers."""
        faults: dict[int, tuple[int, str]] = {}  # the first of each column: its line, and what stands there
        counts: Counter[int] = Counter()

        def value(number: int, row: list[str], i: int) -> float:
            text = self.reading.plain(row[i])
            if cells.is_number(text) and "\n" not in text:
                return float(text)
            if not (self.allow_missing and text.strip().lower() in MISSING):
                faults.setdefault(i, (number, row[i].strip(" \t")))
                counts[i] += 1
            return np.nan

        records, step = self._records(), parallel.tile_rows(self.n_columns)
        while block := list(islice(records, step)):
            for number, row in block:
                if not self.n_columns - self.open_end <= len(row) <= self.n_columns:
                    self._refuse_width(number, len(row))
            texts = [self.reading.plain(row[i]) for _, row in block for i in taken]
            try:
                X = np.fromiter(map(float, texts), np.float64, len(texts)).reshape(-1, len(taken))
                text = "".join(texts)
                plain = np.isfinite(X).all() and "_" not in text and "\n" not in text
            except ValueError:
                plain = False
            if not plain:
                X = np.array([[value(number, row, i) for i in taken] for number, row in block])
            if not faults:  # else it is read on for the other faults alone
                yield X, [[row[i] for _, row in block] for i in extra]
        if faults:
            self._refuse(faults, counts, taken)

    def _errors(self) -> Any:
        return data_file_errors(self.name, "cannot be read", _READ_ERRORS)

    def _lines(self) -> Iterator[tuple[int, str]]:
        """(line number from 1, line) of everything that is neither blank nor a comment."""
        # tabs that part missing values make no blank line, and no comment of what begins with # behind them
        blank = " \r\n" if self.allow_missing and self.delimiter == "\t" else None
        text = {"mode": "rt", "encoding": self.encoding, "errors": _ESCAPED}
        with self._errors(), self.opener(self.path, **text) as file:
            for number, line in enumerate(iter(partial(file.readline, self._most + 1), ""), 1):
                if len(line) > self._most:
                    raise self._too_long(f"line {number} has")
                if number > self.above and line.strip(blank) and not line.lstrip(blank).startswith("#"):
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

    # Columns, from the first lines

    def _column(self, i: int) -> list[str]:
        """A column, as far as the first lines have it, with decimal points."""
        return [self.reading.plain(row[i]).strip() for row in self.sample if i < len(row)]

    def _counts_rows(self) -> bool:
        """True if the first column has no name and holds consecutive numbers, as pandas writes its index."""
        column = self._column(0)
        if self.names is None or self.names[0] or not all(cell.isdigit() for cell in column):
            return False
        return all(int(b) - int(a) == 1 for a, b in pairwise(column))

    def _numbers_rows(self, i: int) -> bool:
        """True if a column is called id or index, and holds another whole number in each of the first lines."""
        column = self._column(i)
        is_named = self.names is not None and self.names[i].lower() in ("id", "index")
        return is_named and all(cell.isdecimal() for cell in column) and len(set(column)) == len(column) > 1

    def _refuse_words(self, taken: list[int]) -> None:
        """Raise DataFileError where columns are made of words."""
        words = [i for i in taken if cells.is_words(self._column(i))]
        hints = {i: self._hint(i) for i in words}
        other_notation = sorted((i for i in words if "--" in hints[i]), key=lambda i: -_certainty(hints[i]))
        others = [i for i in words if i not in other_notation]
        if self.reading.decimal == ",":  # points in a column are refused later on, with the number of the line
            words, other_notation = others, []
        if not words:
            return
        parts = []
        if other_notation:
            parts.append(self._not_numeric(sorted(other_notation), hints[other_notation[0]]))
        if others:
            column = self._column(others[0])
            hint = " (--id takes names of the rows, --label-column classes)"
            if hints[others[0]]:
                hint = hints[others[0]]
            elif self.needs > max(1, len(taken) - len(others)):
                hint = f"; the model needs {self.needs} columns of numbers"
            elif len(set(column)) == len(column) > 1:
                hint = f" (the names of the rows? --id {column_keys(others[:1], self.names)} takes them)"
            parts.append(self._not_numeric(others, hint))
        if words == others and len(taken) - len(words) >= self.needs:
            parts.append(f"leave out with --skip-columns {column_keys(words, self.names)}")
        elif len(words) == len(others) == len(taken):
            parts.append("no column holds numbers")
        raise DataFileError(f"{self.name}: {'; '.join(parts)}")

    def _not_numeric(self, columns: list[int], hint: str) -> str:
        labels = listed(column_label(i, self.names) for i in columns)
        # of several columns what shows their notation most clearly
        example = max((x for i in columns for x in self._words(i)), key=lambda x: _certainty(self.reading.hint(x)))
        hint = "; write 1 and 0 for truth values" if example.strip().lower() in ("true", "false") else hint
        return f"not numeric: {labels}, for example {example!r}{hint}"

    def _words(self, i: int) -> list[str]:
        """Fields of a column that are no numbers, as the file has them."""
        pairs = ((row[i].strip(), self.reading.plain(row[i])) for row in self.sample if i < len(row))
        return [text for text, x in pairs if not cells.is_number(x) and x.strip().lower() not in MISSING]

    def _hint(self, i: int) -> str:
        """Suggestion for the words of a column: the hint of highest rank, or the first of these."""
        return max(map(self.reading.hint, self._words(i)), key=_certainty) or cells.hint_of_marks(self._column(i))

    # Errors about the file

    def _refuse_width(self, number: int, width: int) -> NoReturn:
        hints = [*map(self.reading.hint, self.sample[0]), self._hint_of_lines_above(self.numbers, self.sample)]
        raise DataFileError(
            f"{self.name}: line {number} has {width} columns where the first line of data has "
            f"{self.n_columns}{next(filter(None, hints), '')}"
        )

    def _refuse(self, found: dict[int, tuple[int, str]], counts: Counter[int], taken: list[int]) -> NoReturn:
        faults: list[str] = []
        advice: dict[str, None] = {}
        for i, (number, text) in sorted(found.items(), key=lambda item: item[1][0]):
            fault, what_to_do = self._fault(text)
            how_many = f" (the first of {counts[i]} in this column)" if counts[i] > 1 else ""
            faults.append(f"line {number}, {column_label(i, self.names)}: {fault}{how_many}")
            advice[what_to_do] = None
        end = advice.popitem()[0] if len(advice) == 1 else "drop these rows or replace the values first"
        words = [text for number, text in found.values() if number == self.first_line and any(map(str.isalpha, text))]
        if words and self.names is not None and set(counts.values()) == {1} and not self.reading.units_row:
            end = "a row of units? --units-row leaves it out"
        elif end and len(taken) - len(found) >= self.needs:
            end += f", or leave the columns out with --skip-columns {column_keys(sorted(found), self.names)}"
        elif self.needs > 1:
            end += f"{'; ' * bool(end)}the model needs {self.needs} columns"
        raise DataFileError("; ".join(filter(None, [f"{self.name}: {listed(faults, 8, '; ')}", end])))

    def _fault(self, text: str) -> tuple[str, str]:
        """(what is wrong with a field, what to do)."""
        plain, text = self.reading.plain(text), text if len(text) <= 60 else f"{text[:60]}..."
        if plain.strip().lower() in MISSING:
            return (
                f"missing value{f' ({text!r})' if text else ''}",
                "drop or fill in these rows first (--drop-missing drops them; project and monitor take --fill-missing)",
            )
        if plain.lower() in cells.INFINITE or cells.NUMBER.fullmatch(plain):
            return f"{text} is not a finite number", "drop or replace these rows first"
        hint = self.reading.hint(text)
        if not hint and re.fullmatch(r"[^\W\d]{2,}|[-*]{2,}", text):
            hint = f" (a missing value? --na-values={text} takes it as one)"
        return f"{text!r} is not a number{hint}", ""

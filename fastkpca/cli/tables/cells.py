"""Cells of text tables: numbers, words, missing values; what cuts lines into cells, and which line names them."""

from __future__ import annotations

import csv
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...base.caching import cached_property

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "nil", "?", "-", ".", ",", "missing"}
INFINITE = {"inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"}
MARKS = {" ": " \u00a0\u2009\u202f", "'": "'\u2019"}
"""Separators of thousands that are written as several characters."""
_LONG_FIELDS = threading.RLock()
_QUOTED_COMMA = re.compile(r'"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*"')
_SWAPPED = str.maketrans(",.", ".,")
_WITH_COMMA = re.compile(r"[+-]?(\d[\d.]*)?,\d+([eE][+-]?\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d[\d.]*(,\d*)?([eE][+-]?\d+)?")
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_POINT_GROUPS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?")

_SEPARATED = re.compile(r"[+-]?\d{1,3}([,.'\u2019 \u00a0\u2009\u202f_])\d{3}(\1\d{3})*([.,]\d+)?")
_SIGN = r"([%\u2030\u20ac$\u00a3\u00a5\u00b0]|[^\W\d_]{1,3}\b)[^\d]{0,4}"
_MARKED = re.compile(rf"(?P<before>{_SIGN})?(?P<number>[+-]?[\d.,]*\d)\s*(?P<after>{_SIGN})?")


@dataclass(frozen=True)
class Reading:
    """Format of the cells of a text file or spreadsheet, as the user states it and a model remembers it.

    ``header``: whether the first line names the columns (None: told from the lines); ``units_row``: the line below it
    is left out; ``skip_rows``: lines above it that are; ``na_values``: further words for missing values;
    ``date_format``: of identifiers, as ``strptime`` takes it, or "day-first"; ``sheet``, ``query``: which sheet of a
    workbook, which rows of a database.
    """

    header: bool | None = None
    decimal: str = "."
    thousands: str = ""
    na_values: tuple[str, ...] = ()
    skip_rows: int = 0
    units_row: bool = False
    date_format: str = ""
    sheet: str = ""
    query: str = ""

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        groups = rf"(?:[{re.escape(MARKS.get(self.thousands, self.thousands))}]\d{{3}})+"
        return re.compile(rf"\s*[+-]?\d{{1,3}}{groups}(?:{re.escape(self.decimal)}\d*)?(?:[eE][+-]?\d+)?\s*")

    @cached_property
    def _missing_numbers(self) -> set[float]:
        return {float(x) for x in map(self._with_point, self.na_values) if is_number(x)}

    def _with_point(self, text: str) -> str:
        """With a decimal point. A point among decimal commas becomes a comma, which no number has."""
        if self.thousands and self._grouped.fullmatch(text):
            text = re.sub(rf"[{re.escape(MARKS.get(self.thousands, self.thousands))}]", "", text)
        return text if self.decimal == "." else text.translate(_SWAPPED)

    def plain(self, text: str) -> str:
        """A cell with decimal points and without separators of thousands; "" for one of ``na_values``."""
        plain = text if self.decimal == "." and not self.thousands else self._with_point(text)
        if self.na_values and (
            text.strip() in self.na_values
            or (self._missing_numbers and is_number(plain) and float(plain) in self._missing_numbers)
        ):
            return ""
        return plain

    def hint(self, text: str) -> str:
        """Suggestion of an option that would read a field that is no number; "" if there is none."""
        text = text.strip()
        if self.decimal == "." and _POINT_GROUPS.fullmatch(text) and not NUMBER.fullmatch(text):
            return " (thousands points? --decimal , --thousands . reads them)"
        if self.decimal == "." and _GROUPS.fullmatch(text):
            return " (a thousands comma? --thousands , reads it as one; or a decimal comma? --decimal , does)"
        if self.decimal == "." and _WITH_COMMA.fullmatch(text):
            return " (a decimal comma? --decimal , reads it)"
        if self.decimal == "," and _POINT_GROUPS.fullmatch(text):
            return " (a thousands point, or a decimal point? --thousands . reads it as the first)"
        if self.decimal == "," and "." in text and _WITH_POINT.fullmatch(text):
            return " (a thousands point, or a decimal point? with --decimal , no number may hold a point)"
        marks = "" if is_number(self.plain(text)) else hint_of_marks([text])
        return marks if "--" in marks else ""


def is_number(text: str) -> bool:
    text = text.strip()
    return NUMBER.fullmatch(text) is not None and bool(np.isfinite(float(text)))


def is_words(cells: list[str]) -> bool:
    """True if a column is made of words rather than of numbers with a slip."""
    wrong = [x for x in cells if not is_number(x) and x.strip().lower() not in MISSING | INFINITE]
    return len(wrong) > len(cells) / 2


def hint_of_marks(cells: list[str]) -> str:
    """Marks that most cells have next to a number (a separator of thousands, a sign, a unit), and advice; else ""."""
    wrong = [x for x in map(str.strip, cells) if not is_number(x) and x.lower() not in MISSING | INFINITE]
    marked = [x for x in map(_SEPARATED.fullmatch, wrong) if x]
    if 2 * len(marked) > len(wrong):
        mark = next((one for one, several in MARKS.items() if marked[0][1] in several), marked[0][1])
        typed = f'"{mark}"' if mark in MARKS else mark
        comma = "--decimal , " if any((x[3] or "")[:1] == "," for x in marked) else ""
        return f" (a thousands separator? {comma}--thousands {typed} reads it)"
    found = [x for x in map(_MARKED.fullmatch, wrong) if x and bool(x["before"]) != bool(x["after"])]
    marks = {(x["before"] or x["after"]).strip() for x in found}
    if 2 * len(found) > len(wrong) and len(marks) == 1:
        return f" (numbers with {marks.pop()!r}? write them without it)"
    return ""


@contextmanager
def fields_of_any_length() -> Iterator[None]:
    """csv has one limit for the whole process, 131,072 characters: inside, and in functions so decorated, it is off."""
    with _LONG_FIELDS:
        limit = csv.field_size_limit(np.iinfo(np.intc).max)
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def fields_of(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter))


def detect_delimiter(lines: list[str], decimal: str) -> str | None:
    """The character that cuts every line into equally many fields; None for white space."""
    typical = {}
    commas = decimal != "," or any(map(_QUOTED_COMMA.search, lines))
    for delimiter in ("\t", ";", *"," * commas):
        counts = [len(fields_of(line, delimiter)) for line in lines]
        if min(counts) == max(counts) > 1:
            return delimiter
        typical[delimiter] = sorted(counts)[len(counts) // 2]
    spaces = [len(line.split()) for line in lines]
    if min(spaces) == max(spaces) > 1 and max(typical.values()) == 1:
        return None
    # some line has too many or too few fields, or the header is short by one: let most of the lines decide
    best = max(typical, key=lambda delimiter: typical[delimiter])
    return best if typical[best] > 1 else None


def is_header(rows: list[list[str]]) -> bool:
    first = [text.strip() for text in rows[0]]
    if len(rows) == 1:
        return not any(map(is_number, first))
    others = rows[1:]
    if len(others[0]) == len(first) + 1 and not any(map(is_number, first)):  # row names without a name of their own
        return True
    # pandas numbers nameless columns from 0; an empty cell before them stands for its row numbers
    numbered = first[1:] if not first[0] else first
    if len(numbered) > 2 and numbered == [str(i) for i in range(len(numbered))]:
        return True
    for i, text in enumerate(first):
        below = [row[i] for row in others if i < len(row)]
        # a name, not a number with a slip: that must be reported and not be dropped as a header
        is_name = text.lower() not in MISSING | INFINITE and text[0] not in "+-.,0123456789"
        if is_name and below and not is_words(below):
            return True
    # no column of numbers at all: words over words
    return not any(map(is_number, first)) and not any(is_number(text) for row in others for text in row)


def is_row_of_years(rows: list[list[str]]) -> bool:
    """True if the first line counts (1990, 1991, ...), and the lines below hold other numbers."""

    def counts(row: list[str]) -> bool:
        steps = {int(b) - int(a) for a, b in pairwise(row)} if all(x.isdecimal() for x in row) else set()
        return len(steps) == 1 and steps != {0}

    first, others = rows[0], rows[1:]
    if len(first) < 3 or not others or not counts(first) or any(map(counts, others)):
        return False
    below = [float(cell) for row in others for cell in row if is_number(cell)]
    low, high = sorted((int(first[0]), int(first[-1])))
    return not any(low <= x <= high for x in below) or not any(x == round(x) for x in below)

"""A table read from a file, and which of the file's columns go into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ...base.spelling import did_you_mean
from ...errors import DataFileError
from ...rows.columns import listed


@dataclass
class Table:
    """Rows of numbers as read from a file.

    Attributes
    ----------
    X : ndarray, memory map, CSR matrix or Source, shape (n, d), or a function
        What ``kpca`` takes; the function returns an iterator over blocks of rows.
    names : list of str, or None
        Names of the d columns, where the file names them.
    labels : ndarray (n,), or None
        The label column, where one was asked for: numbers, or strings.
    notes : list of str
        What was decided for the user, who should be told.
    identifiers : ndarray (n,), or None
        The column that names all rows of the file, where one was asked for: numbers, or strings as they stand there.
    n_rows : int
        Of X.
    places : list of int
        Numbers, from 0, that the d columns have in the file.
    kept : ndarray of bool, or None
        Which rows of the file those of X are; None: all.
    starts : tuple of int
        Numbers of the rows with which a file begins.
    lines : callable, or None
        Of a text file: numbers of its rows, from 0 -> numbers of their lines, from 1.
    """

    X: Any
    names: list[str] | None = None
    labels: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)
    identifiers: np.ndarray | None = None
    n_rows: int = field(kw_only=True)
    places: list[int] = field(kw_only=True)
    kept: np.ndarray | None = None
    lines: Callable[[np.ndarray], list[int]] | None = None
    starts: tuple[int, ...] = (0,)

    def label(self, j: int) -> str:
        """Name of column j of X in errors: its number in the file, from 1, and its name."""
        name = self.names[j] if self.names else ""
        return f"column {self.places[j] + 1}" + (f" ({name!r})" if name else "")


class Chosen(NamedTuple):
    """Numbers of columns, from 0: those of X in the order asked for, the label column, the one that names the rows."""

    taken: list[int]
    label: int | None
    identifiers: int | None


@dataclass
class ColumnSelection:
    """The columns that the user asks for, as given; ``resolve`` turns them into numbers once the file is known.

    Parameters
    ----------
    file : str
        What errors call the file.
    columns, skip_columns : sequences of str, optional
        Columns to take, or to drop: names, numbers from 1, or ranges of numbers like ``2-5``. A name wins over a
        number.
    label_column : str, optional
        Left out of X and returned as labels. In files of several arrays also the name of another array with one entry
        a row.
    like : sequence of str, optional
        Columns of the model, taken by their names and in this order where the file names its columns.
    id_column : str, optional
        Left out of X and returned as identifiers of the rows.
    needs : int
        How many columns have to be left where an error proposes to skip some.
    recalled : dict
        What a model remembers: "id", "columns" and "skip_columns", taken where nothing else is asked for and the file
        has more than ``needs`` columns, or names them.
    """

    file: str
    columns: Sequence[str] | None = None
    skip_columns: Sequence[str] | None = None
    label_column: str | None = None
    like: Sequence[str] | None = None
    id_column: str | None = None
    needs: int = 1
    recalled: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.columns is not None and self.skip_columns is not None:
            raise DataFileError("give --columns or --skip-columns, not both")

    def resolve(self, n_columns: int, names: list[str] | None) -> Chosen:
        """Columns that the options select, in a file of ``n_columns``."""
        self._places = _places(range(n_columns), names or [])
        self._recall(n_columns, names)
        label = self._one("--label-column", self.label_column, n_columns, names)
        identifiers = self._one("--id", self.id_column, n_columns, names)
        if label is not None and label == identifiers:
            raise DataFileError(f"--id and --label-column both name {self.label_column!r}; give --label-column alone")
        if self.columns is not None:
            taken = [i for word in self.columns for i in self._numbers(word, n_columns, names)]
            if len(set(taken)) != len(taken):
                raise DataFileError("--columns names a column twice")
        else:
            skipped = {i for word in self.skip_columns or () for i in self._numbers(word, n_columns, names)}
            taken = [i for i in range(n_columns) if i not in skipped and i not in (label, identifiers)]
        if self.like is not None and names is not None:
            taken = self._same_as_model(self.like, taken, names)
        if not taken:
            raise DataFileError(f"{self.file}: no column is left")
        return Chosen(taken, label, identifiers)

    def _recall(self, n_columns: int, names: list[str] | None) -> None:
        """Take what the model remembers of its own file, where this one may have it, too."""
        named, more = self.recalled.get("id"), n_columns > self.needs
        left_out = {*(self.columns or ()), *(self.skip_columns or ())}
        if self.id_column is None and named not in {None, *left_out} and (named in names if names else more):
            self.id_column = named
        if self.columns is None and self.skip_columns is None and self.like is None and more:
            self.columns, self.skip_columns = self.recalled.get("columns"), self.recalled.get("skip_columns")

    def _one(self, option: str, word: str | None, n_columns: int, names: list[str] | None) -> int | None:
        if word is None:
            return None
        matches = self._numbers(word, n_columns, names)
        if len(matches) != 1:
            raise DataFileError(f"{option} takes one column, not {word!r}")
        return matches[0]

    def _same_as_model(self, like: Sequence[str], candidates: list[int], names: list[str]) -> list[int]:
        """Candidates that the model was fitted on, by their names and in its order. Other names are taken only where
        ``--columns`` gives as many columns as the model has."""
        places = _places(candidates, names)
        missing, wanted = [name for name in like if name not in places], set(like)
        others = [i for i in candidates if names[i] not in wanted]
        if missing and (self.columns is None or len(others) != len(missing)):
            raise DataFileError(self._lacking(like, missing, [names[i] for i in candidates], names))
        if missing:
            pairs = listed([f"{names[i]!r} is taken for {name!r}" for i, name in zip(others, missing)], 12)
            self.notes.append(f"columns of the model that are not in the file by name: {pairs}")
        instead = dict(zip(missing, others))
        taken = []
        for name in like:
            matches = places.get(name) or [instead[name]]
            taken.append(matches[0] if len(matches) == 1 else self._numbers(name, len(names), names)[0])
        if taken != sorted(taken):
            self.notes.append("the columns are in another order than the model's: each is taken by its name")
        return taken

    def _lacking(self, like: Sequence[str], missing: list[str], candidates: list[str], names: list[str]) -> str:
        left_out = [name for name in missing if name in names]
        if left_out and self.skip_columns is not None:
            return f"{self.file}: --skip-columns leaves out {listed(map(repr, left_out))}, which the model needs"
        lacks = f"lacks the column{'s' * (len(missing) > 1)} {listed(map(repr, missing))} of the model; --columns"
        if self.columns is not None:
            lacks = f"with --columns has {len(candidates)} of {len(names)} columns, and {lacks}"
        others = listed([repr(name) for name in candidates if name not in like], 12)
        return (
            f"{self.file} {lacks} says which others to take instead, {len(like)} in the model's order"
            f"{others and f' (not of the model: {others})'}, or fit again without {'them' if missing[1:] else 'it'}"
        )

    def _numbers(self, word: str, n_columns: int, names: list[str] | None) -> list[int]:
        """The columns that one word means: a name, a number from 1, or a range of numbers."""
        word = str(word).strip()
        if matches := self._places.get(word, []):
            if len(matches) > 1:
                where = " and ".join(str(i + 1) for i in matches)
                raise DataFileError(f"{self.file}: columns {where} are both called {word!r}; give the number instead")
            return matches
        numbers = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if numbers:
            first, last = int(numbers[1]), int(numbers[2] or numbers[1])
            if 1 <= first <= last <= n_columns:
                return list(range(first - 1, last))
            if names is not None and numbers[2] and numbers[1] in names and numbers[2] in names:
                first, last = (names.index(numbers[i]) + 1 for i in (1, 2))
                raise DataFileError(
                    f"{self.file} has no column {word}; a range is of numbers of columns, here {first}-{last}"
                )
            raise DataFileError(f"{self.file} has no column {word}; its columns are numbered 1 to {n_columns}")
        if names is None:
            raise DataFileError(f"{self.file} does not name its columns; give numbers (1 to {n_columns}), not {word!r}")
        hint = did_you_mean(word, names) or f"there are {listed(names, 12)}"
        raise DataFileError(f"{self.file} has no column {word!r}; {hint}")


def _places(columns: Iterable[int], names: Sequence[str]) -> dict[str, list[int]]:
    """Numbers of the columns with each name; empty where the file has no names."""
    places: dict[str, list[int]] = {}
    for i in columns if names else ():
        places.setdefault(names[i], []).append(i)
    return places


def column_label(i: int, names: list[str] | None) -> str:
    return f"column {i + 1}" + (f" ({names[i]!r})" if names is not None and names[i] else "")


def column_keys(columns: Sequence[int], names: list[str] | None) -> str:
    """These columns as one types them after --skip-columns: by name, or by number where a name would be misread; many
    of them by ranges of numbers."""
    if len(columns) > 12:
        runs = [[i for _, i in run] for _, run in groupby(enumerate(columns, 1), lambda x: x[1] - x[0])]
        return ",".join(f"{run[0] + 1}-{run[-1] + 1}" if len(run) > 1 else str(run[0] + 1) for run in runs)
    keys = ",".join(names[i] if names is not None and _is_key(names[i], names) else str(i + 1) for i in columns)
    return keys if re.fullmatch(r"[\w.,+-]*", keys) else f'"{keys}"'


def _is_key(name: str, names: list[str]) -> bool:
    """True if this name means one column, and is no option, no list, and nothing that a shell would replace."""
    return re.fullmatch(r"[^\s\-,\"$`\\!]([^,\"$`\\!]*\S)?", name) is not None and names.count(name) == 1

"""The file of rows that a command reads."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..model.monitoring.health import Facts, findings_of, warn_of
from ..model.plan import readable_size
from ..rows.columns import RANGE_RATIO, listed
from ..rows.convert import as_rows
from .arguments import Parser, add_cells, add_columns, given
from .console import Refused, say, without_password
from .tables import read as tables


def raw_table(options: argparse.Namespace, progress: Any, like: Sequence[str] | None = None, needs: int = 1) -> Any:
    """All rows of a file, with NaN for missing values where they may be missing. Sets ``options.read_as``.

    ``options.recalled``, where a model is used: what it remembers of the file that it was made of.
    """
    progress(f"reading {file_name(options.file)}", 0, 0)
    recalled = vars(options).get("recalled", {})
    options.read_as = _reading(options, recalled)
    table = tables.read(
        options.path,
        called=file_name(options.file),
        allow_missing=options.drop_missing or options.fill_missing,
        memory=vars(options).get("memory_limit"),
        like=like,
        needs=needs,
        id_column=options.id,
        recalled=recalled,
        **given(options, "var", "columns", "skip_columns", "label_column"),
        **options.read_as,
    )
    if options.id is None and table.identifiers is not None:
        options.id = recalled["id"]
    return table


# ---- how a file is read, which a model remembers ---------------------------------------------------------------------

_REMEMBERED = "reading"
"""The entry of a model's info: options of ``fit``, as they are typed."""
_CELLS = ("sheet", "header", "decimal", "thousands", "na_values", "skip_rows", "units_row", "date_format")


def _reading(options: argparse.Namespace, recalled: dict[str, Any]) -> dict[str, Any]:
    """Fields of ``Reading`` for the file: from the options, and from the model where no option is given."""
    stated = given(options, *_CELLS, "query")
    recalled = {name: value for name, value in recalled.items() if name in _CELLS}
    if "decimal" in stated:
        recalled.pop("thousands", None)
    if not str(options.file).lower().endswith(".xlsx"):
        recalled.pop("sheet", None)
    reading = recalled | stated
    reading["header"] = {"yes": True, "no": False}.get(reading.get("header", "auto"))
    if reading.get("thousands") == (decimal := reading.get("decimal", ".")):
        other = "." if decimal == "," else ","
        raise Refused(f"{decimal!r} cannot be the separator of thousands and the decimal sign; give --decimal {other}")
    return reading


def remember(model: Any, options: argparse.Namespace) -> None:
    """Write into a model how the file that it was made of was read."""
    recalled = {name: getattr(options, name) for name in (*_CELLS, "id")}
    if model.feature_names is None:  # else columns are taken by their names
        label = [] if options.label_column is None else [options.label_column]
        skipped = None if options.columns else [*(options.skip_columns or ()), *label] or None
        recalled |= {"columns": options.columns, "skip_columns": skipped}
    words = []
    for name, value in recalled.items():
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{name.replace('_', '-')}")
        elif value is not None:
            text = ",".join(value) if isinstance(value, list) else value
            words.append(f"--{name.replace('_', '-')}={text}")
    if words:
        model.info[_REMEMBERED] = shlex.join(words)


def remembered(model: Any, name: str) -> dict[str, Any]:
    """Options that a model remembers from the file it was fitted on; ``name`` is the model's own file."""
    parser = Parser(add_help=False)
    add_cells(parser, "")
    add_columns(parser)
    try:
        with contextlib.redirect_stderr(None):
            options = parser.parse_args(shlex.split(str(model.info.get(_REMEMBERED, ""))))
    except (SystemExit, ValueError):
        raise Refused(f"{name} is damaged: what it says of the file it was made of is no list of options") from None
    return given(options, *vars(options))


def cleaned(table: Any, options: argparse.Namespace, lags: int = 0) -> Any:
    """The table without the rows that ``--drop-missing`` or ``--fill-missing`` drop, each with the ``lags`` rows before
    it; prints its notes."""
    if options.drop_missing or options.fill_missing:
        table = tables.without_missing(table, file_name(options.file), empty=options.fill_missing)
    if lags:
        table = tables.with_lags(table, lags, file_name(options.file))
    for note in table.notes if not options.quiet else ():
        say("note", note)
    return table


def own_columns(model: Any) -> tuple[Any, int]:
    """(names of the columns that a file has for a model, None without names; their number)."""
    d = model.n_features // (model.lags + 1)
    return model.feature_names and model.feature_names[:d], d


def file_name(file: str) -> str:
    return "standard input" if file == "-" else without_password(file)


def plain_names(table: Any) -> list[str]:
    """Names of the columns: those of the file, or their numbers in it."""
    return [(table.names[i] if table.names else "") or f"column {j + 1}" for i, j in enumerate(table.places)]


def health_of(table: Any, options: argparse.Namespace, limits: Any = None, *, scaled: bool = True) -> tuple[Any, Any]:
    """(findings about the rows of a table, printed even with --quiet; statistics of its columns).

    ``scaled``: their ranges may differ; the library itself warns where they differ by far.
    """
    facts = Facts(as_rows(table.X, missing=True))
    varying = facts.ranges[facts.ranges > 0]
    scaled = scaled or varying.max(initial=0.0) > RANGE_RATIO * varying.min(initial=np.inf)
    names = [table.label(i) for i in range(len(table.places))]
    findings = findings_of(facts, names, (options.id or "row", table.identifiers), limits, bool(scaled))
    warn_of(findings)
    return findings, facts


def read_new_rows(model: Any, options: argparse.Namespace, progress: Any) -> Any:
    """The table of rows that a model is used on, as ``raw_table``."""
    of_model, d = own_columns(model)
    options.recalled = remembered(model, options.model)
    table = raw_table(options, progress, of_model, d)
    file, names = file_name(options.file), table.names
    # columns cannot be taken by name where only the file or only the model has names
    if names is None and of_model is not None and not options.quiet:
        say("note", f"{file} does not name its columns: taken in their order for {listed(of_model)}")
    elif names is not None and of_model is None and not options.quiet:
        say("note", f"the model has no names of columns: those of {file} are taken in their order: {listed(names)}")
    return table


def note_of_filled(table: Any, names: Sequence[str] | None) -> None:
    """Say how many missing values of the table the model fills, and in which columns."""
    gaps = np.isnan(as_rows(table.X).all())
    of_rows, of_columns = gaps.any(axis=1), gaps.sum(axis=0)
    if of_rows.any():
        called = list(names or plain_names(table))
        where = listed([f"{called[j]} ({of_columns[j]})" for j in np.flatnonzero(of_columns)], 8)
        text = f"{gaps.sum()} missing values in {np.count_nonzero(of_rows)} of {len(gaps)} rows are filled by the model"
        say("note", f"{text}: {where}")


@contextlib.contextmanager
def columns_of_the_file(table: Any, needs: int = 1) -> Iterator[None]:
    """Columns in warnings and errors of the library by the numbers and names that the file gives them. Where rows are
    refused that hold NaN or infinity: all columns that do, with how many."""

    def renamed(message: Warning | str) -> str:
        def labels(found: re.Match[str]) -> str:
            numbers = [int(j) for j in found[1].split(", ")]
            return ", ".join(map(table.label, numbers)) if max(numbers) < len(table.places) else found[0]

        return re.sub(r"\bcolumn (\d+(?:, \d+)*)", labels, str(message))

    show = warnings.showwarning
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *place, **options: show(renamed(message), *place, **options)
            yield
    except ValueError as error:
        columns, n_others = tables.faults(table) if re.search(" contains (NaN|infinity) ", str(error)) else ("", 0)
        if not columns:
            raise Refused(renamed(str(error))) from error
        advice = ", or leave the columns out with --skip-columns" if n_others >= needs else ""
        raise Refused(
            f"missing values (NaN) or infinities in {columns}; drop or fill in these rows first (--drop-missing drops "
            f"those with NaN, --fill-missing lets the model fill them){advice}"
        ) from error


@contextlib.contextmanager
def rereadable_input(options: argparse.Namespace) -> Iterator[None]:
    """``options.path``: where the input is. Standard input (-) and pipes are copied into a file, since it is read
    repeatedly."""
    options.path = vars(options).get("file")
    if options.path is None or (options.path != "-" and not _is_pipe(options.path)):
        yield
        return
    name = "standard input" if options.path == "-" else options.path
    source = contextlib.nullcontext(sys.stdin.buffer) if options.path == "-" else open(options.path, "rb")  # noqa: SIM115
    with tempfile.NamedTemporaryFile(prefix="fastkpca-") as copy:
        with source as stream:
            _copy(stream, copy, name)
        copy.flush()
        options.path = copy.name
        yield


def _copy(stream: Any, copy: Any, name: str) -> None:
    """Copy the stream, up to half of the free space of the folder of temporary files: some input never ends."""
    with contextlib.suppress(OSError):  # what stands in for standard input may have no number
        number = stream.fileno()
        if not os.isatty(number) and stat.S_ISCHR(os.fstat(number).st_mode) and stream.peek(1):
            raise Refused(f"{name} is a device, which has no end; give a file or a pipe")
    free_bytes = size = shutil.disk_usage(os.path.dirname(copy.name)).free // 2
    while block := stream.read(1 << 20):
        free_bytes -= len(block)
        if free_bytes < 0:
            folder = os.path.dirname(copy.name)
            raise Refused(
                f"{name} has not ended after {readable_size(size)}, half of what {folder} has left, "
                "where it is copied, since it is read repeatedly; give a file, or TMPDIR another folder"
            )
        copy.write(block)


def _is_pipe(path: str) -> bool:
    """True if the path is neither a file nor a folder: a named pipe, a shell's <(command), /dev/stdin."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)

"""The file of rows that a command reads."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from ..model.plan import readable_size
from .console import Refused, say


def read_table(
    options: argparse.Namespace,
    progress: Any,
    label_column: str | None = None,
    like: Sequence[str] | None = None,
    needs: int = 1,
) -> Any:
    from ..rows import tables

    progress(f"reading {options.file}", 0, 0)
    name = "standard input" if options.file == "-" else options.file
    table = tables.read(
        options.path,
        var=options.var,
        columns=options.columns,
        skip_columns=options.skip_columns,
        label_column=label_column,
        header={"auto": None, "yes": True, "no": False}[options.header],
        like=like,
        needs=needs,
        id_column=options.id,
        decimal=options.decimal,
        called=name,
        allow_missing=options.drop_missing or options.fill_missing,
        memory=getattr(options, "memory_limit", None),
    )
    if options.drop_missing or options.fill_missing:
        table = tables.without_missing(table, name, empty=options.fill_missing)
    for note in table.notes if not options.quiet else ():
        say("note", note)
    return table


def read_new_rows(model: Any, options: argparse.Namespace, progress: Any) -> tuple[Any, Any]:
    """(the table of rows that a model is used on; with ``--fill-missing`` how many values it has filled in each)."""
    from ..rows.columns import listed

    table = read_table(options, progress, like=model.feature_names, needs=model.n_features)
    file, names, of_model = options.file, table.names, model.feature_names
    # columns cannot be taken by name where only the file or only the model has names
    if names is None and of_model is not None and not options.quiet:
        say("note", f"{file} does not name its columns: taken in their order for {listed(of_model)}")
    elif names is not None and of_model is None and not options.quiet:
        say("note", f"the model has no names of columns: those of {file} are taken in their order: {listed(names)}")
    return _filled(table, model, options, progress) if options.fill_missing else (table, None)


def _filled(table: Any, model: Any, options: argparse.Namespace, progress: Any) -> tuple[Any, Any]:
    """(the table, whose gaps the model has filled; how many values that were in each row)."""
    import numpy as np

    import fastkpca as fk

    from ..rows.columns import listed
    from ..rows.convert import as_rows

    gaps = np.isnan(as_rows(table.X).all())
    of_rows, of_columns = gaps.sum(axis=1), gaps.sum(axis=0)
    if not gaps.any():
        return table, of_rows
    with columns_of_the_file(table, model.n_features):
        X = fk.kpca_fill(model, table.X, progress=progress)
    if not options.quiet:
        names = model.feature_names or [f"column {j + 1}" for j in table.places]
        where = listed([f"{names[j]} ({of_columns[j]})" for j in np.flatnonzero(of_columns)], 8)
        text = f"{gaps.sum()} missing values in {np.count_nonzero(of_rows)} of {len(X)} rows are filled by the model"
        say("note", f"{text}: {where}")
    return dataclasses.replace(table, X=X), of_rows


@contextlib.contextmanager
def columns_of_the_file(table: Any, needs: int = 1) -> Iterator[None]:
    """Columns in warnings and errors of the library by the numbers and names that the file gives them. Where rows are
    refused that hold NaN or infinity: all columns that do, with how many."""
    from ..rows import tables

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
        columns, n_others = tables.faults(table)
        if not columns:
            raise Refused(renamed(str(error))) from error
        advice = ", or leave the columns out with --skip-columns" if n_others >= needs else ""
        raise Refused(
            f"missing values (NaN) or infinities in {columns}; drop or fill in these rows first (--drop-missing drops "
            f"those with NaN; project and monitor take --fill-missing){advice}"
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
    """All that there is, within half of the room that the folder of temporary files has left: some input never ends."""
    with contextlib.suppress(OSError):  # what stands in for standard input may have no number
        number = stream.fileno()
        if not os.isatty(number) and stat.S_ISCHR(os.fstat(number).st_mode) and stream.peek(1):
            raise Refused(f"{name} is a device, which has no end; give a file or a pipe")
    room = size = shutil.disk_usage(os.path.dirname(copy.name)).free // 2
    while block := stream.read(1 << 20):
        room -= len(block)
        if room < 0:
            folder = os.path.dirname(copy.name)
            raise Refused(
                f"{name} has not ended after {readable_size(size)}, half of what {folder} has left, "
                "where it is copied, since it is read repeatedly; give a file, or TMPDIR another folder"
            )
        copy.write(block)


def _is_pipe(path: str) -> bool:
    """Whether this is neither a file nor a folder: a named pipe, a shell's <(command), /dev/stdin."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)

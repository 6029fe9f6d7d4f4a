"""The files that a command writes, checked before any work."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .arguments import PICTURES
from .console import Refused


def check_outputs(outputs: Sequence[str | None], inputs: Sequence[str], force: bool) -> None:
    """Before any work: every output may be written, none is an input, no two are the same."""
    from ..base.atomic import check_target

    taken = {os.path.realpath(path): f"the input {path!r}" for path in inputs if path != "-"}
    for path in outputs:
        if path in (None, "-"):
            continue
        target = check_target(path, overwrite=True)
        if str(target) in taken:
            raise Refused(f"the output {path!r} is the same file as {taken[str(target)]}")
        taken[str(target)] = f"the output {path!r}"
        check_target(path, overwrite=force)


def check_picture(path: str | None) -> None:
    """Before any work: a plot can be drawn, and written in the format of its ending."""
    if path is not None:
        from .. import plot

        if Path(path).suffix.lower() not in PICTURES:
            raise Refused(f"plots are written as {', '.join(PICTURES)}, which {path!r} does not end with")
        plot.require_matplotlib()


def check_page(path: str | None) -> None:
    """Before any work: a report can be made, and is called one."""
    if path is not None:
        from ..plot._report import require_charts

        if Path(path).suffix.lower() not in (".html", ".htm"):
            raise Refused(f"reports are written as .html, which {path!r} does not end with")
        require_charts()


def text_format(options: argparse.Namespace) -> Any:
    """Digits and decimals of numbers in text: those of the file that was read, unless ``--digits`` says how many."""
    from .tables.write import Format

    return Format(6 if options.digits is None else options.digits, options.read_as.get("decimal", "."))


def score_writer(path: str | None, options: argparse.Namespace) -> Callable[..., None] | None:
    from .tables import write

    if path is None:
        return None
    if path != "-":
        write.score_writer(path, with_identifiers=options.id is not None)  # refuses before any work

    def write_scores(scores: Any, overwrite: bool, identifiers: Any) -> None:
        if path == "-":
            text_format(options).write(sys.stdout, write.score_rows(scores, identifiers))
        else:
            write.score_writer(path, form=text_format(options))(scores, overwrite, identifiers)

    return write_scores


def spill_path(path: str) -> str:
    """Path next to which many scores are stored until they are written: their file, or temporary files."""
    return tempfile.gettempdir() + os.sep if path == "-" else path


def row_names(table: Any, options: argparse.Namespace) -> tuple[str, Any] | None:
    """(name of the column of identifiers, the identifiers of the rows)."""
    return None if table.identifiers is None else ("id" if options.id.isdigit() else options.id, table.identifiers)

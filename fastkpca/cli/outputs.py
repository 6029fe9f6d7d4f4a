"""The files that a command writes, checked before any work."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from .. import plot
from ..base.atomic import check_target
from ..plot._report import require_charts
from .arguments import PICTURES
from .console import Refused
from .tables import write


def check_outputs(outputs: Sequence[str | None], inputs: Sequence[str], force: bool) -> None:
    """Before any work: every output may be written, none is an input, no two are the same."""
    taken = {os.path.realpath(path): f"the input {path!r}" for path in inputs if path != "-"}
    for path in outputs:
        if path in (None, "-"):
            continue
        target = check_target(path, overwrite=True)
        if str(target) in taken:
            raise Refused(f"the output {path!r} is the same file as {taken[str(target)]}")
        taken[str(target)] = f"the output {path!r}"
        check_target(path, overwrite=force)


def check_ending(what: str, path: str | None, *endings: str) -> None:
    """Before any work: a file is called what it will be, and what writes it is installed."""
    if path is None:
        return
    name = os.path.basename(path).lower()
    if not name.endswith(endings) or name in endings:
        raise Refused(f"{what} are written as {', '.join(endings)}, which {path!r} does not end with")
    if path.lower().endswith(".xlsx"):
        write.require_openpyxl()


def check_charts(options: argparse.Namespace) -> None:
    """Before any work: the plot and the report can be drawn, and are called so."""
    check_ending("plots", options.plot, *PICTURES)
    check_ending("reports", options.report, ".html", ".htm")
    if options.plot is not None:
        plot.require_matplotlib()
    if options.report is not None:
        require_charts()


def check_scores(path: str | None, options: argparse.Namespace) -> None:
    """Before any work: scores, and the names of their rows, can be written there."""
    if path not in (None, "-"):
        check_ending("scores", path, ".csv", ".csv.gz", ".xlsx", ".npy")
        if path.lower().endswith(".npy") and options.id is not None:
            raise Refused(f"--id writes a column beside the scores, which {path!r} cannot hold; write .csv")


def text_format(options: argparse.Namespace) -> Any:
    """Digits and decimals of numbers in text: those of the file that was read, unless ``--digits`` says how many."""
    return write.Format(6 if options.digits is None else options.digits, options.read_as.get("decimal", "."))


def write_scores(path: str, scores: Any, table: Any, options: argparse.Namespace) -> None:
    """Write scores of the rows of a table with the names of these, where it has some."""
    column = "id" if (options.id or "").isdigit() else options.id
    identifiers = None if table.identifiers is None else (column, table.identifiers)
    if path == "-":
        text_format(options).write(sys.stdout, write.score_rows(scores, identifiers))
    else:
        write.write_scores(path, scores, options.force, identifiers, text_format(options))


def tell_written(paths: dict[str, str | None], file: Any) -> None:
    """A line for each file that was written, after what it is."""
    for what, path in paths.items():
        if path not in (None, "-"):
            print(f"{what:<18}{path}", file=file)


def spill_path(path: str) -> str:
    """Path next to which many scores are stored until they are written: their file, or temporary files."""
    return tempfile.gettempdir() + os.sep if path == "-" else path

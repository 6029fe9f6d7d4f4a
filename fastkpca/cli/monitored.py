"""Output of ``fastkpca monitor``: rows and contributions as csv, and a line of JSON."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..base.atomic import append, atomic
from ..model.monitoring.contributions import foremost
from .console import say, without_password
from .outputs import text_format
from .tables.write import write_table


def write_rows(found: Any, every: np.ndarray, kept: np.ndarray, options: argparse.Namespace) -> None:
    """T^2, SPE and what is beyond of every row of the files, as csv; empty fields for rows that were left out.

    ``every``: what all rows are called; ``kept``: which of them were not left out.
    """
    if options.output is None and options.append is None:
        return
    columns = [found.t2, found.spe, *found.beyond.astype(int).T, *([] if found.filled is None else [found.filled])]
    head = [found.label_name, "T2", "SPE", "T2 beyond", "SPE beyond", *["filled"] * (found.filled is not None)]
    values = zip(*(column.tolist() for column in columns))
    lines = [[name, *(next(values) if is_kept else [""] * len(columns))] for name, is_kept in zip(every.tolist(), kept)]
    if options.output == "-":
        sys.stdout.write(_csv([head, *lines], options))
    elif options.output is not None:
        _write(options.output, [head, *lines], options)
    if options.append is not None:
        texts = [_csv([line], options)[:-1].encode() for line in lines]
        old = len(texts) - append(options.append, _csv([head], options)[:-1].encode(), texts)
        if old and not options.quiet:
            say("note", f"{old} of {len(texts)} rows are in {options.append} already, and not added again")


def write_contributions(found: Any, options: argparse.Namespace, progress: Any) -> None:
    """A line of csv for each alarm and each column."""
    which = found.contributions(progress=progress)
    lines = [[found.label_name, "statistic", "column", "value", "best value", "contribution", "fraction"]]
    for row, i in enumerate(found.alarms):
        label, statistic = found.labels[i : i + 1].tolist()[0], "spe" if found.beyond[i, 1] else "t2"
        parts = (which.given[row], which.values[row], which.contributions[row], which.fractions[row])
        lines += [[label, statistic, *cells] for cells in zip(which.names, *(part.tolist() for part in parts))]
    _write(options.contributions, lines, options)


def as_json(found: Any, options: argparse.Namespace, code: int, progress: Any) -> str:
    """One line: what was found, with the first ``--alarms`` alarms and the columns behind them."""
    first = found.alarms[: options.alarms]
    which, labels = found.contributions(first, progress=progress), found.labels.tolist()
    alarms = []
    for row, i in enumerate(first):
        names = ("column", "value", "best_value", "fraction")
        parts = (which.names, which.given[row], which.values[row], which.fractions[row])
        columns = [dict(zip(names, (part[j] for part in parts))) for j in foremost(which, row)]
        beyond = found.beyond_what(i).split("+")
        alarms.append({"row": labels[i], "t2": found.t2[i], "spe": found.spe[i], "beyond": beyond, "columns": columns})
    limits = {name: getattr(found.limits, name) for name in ("t2", "spe", "confidence", "joint", "n_calibration")}
    run_alarm = None if found.run_alarm is None else labels[found.run_alarm]
    return _json(options, code, len(labels), len(found.alarms), run_alarm=run_alarm, limits=limits, alarms=alarms)


def nothing_new(options: argparse.Namespace) -> int:
    """No row is later than ``--since``."""
    if options.json:
        print(_json(options, 0, 0, 0, run_alarm=None, limits=None, alarms=[]))
    elif not options.quiet:
        print(f"no rows later than {options.since.astype('datetime64[s]')}")
    return 0


def _json(options: argparse.Namespace, code: int, n_rows: int, n_alarms: int, **more: Any) -> str:
    files = [*map(without_password, options.files)]
    facts = {"model": options.model, "files": files, "rows": n_rows, "n_alarms": n_alarms}
    return json.dumps(_plain(facts | {"exit_code": code, "health": options.health} | more), allow_nan=False)


def _plain(value: Any) -> Any:
    """The value in JSON's types: Python numbers, null for NaN and infinity, times as text."""
    text = json.dumps(value, default=lambda x: x.item() if isinstance(x, np.number | np.bool_) else str(x))
    return json.loads(text, parse_constant=lambda name: None)


def _csv(rows: Iterable[Sequence[Any]], options: argparse.Namespace) -> str:
    text = io.StringIO()
    text_format(options).write(text, rows)
    return text.getvalue()


def _write(path: str, rows: Sequence[Sequence[Any]], options: argparse.Namespace) -> None:
    with atomic(path, overwrite=options.force) as file:
        write_table(file, path, rows, text_format(options))

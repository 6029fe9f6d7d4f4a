"""``fastkpca monitor``: T^2 and SPE of new rows under the limits of a model, and the columns behind each alarm."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fastkpca as fk

from .. import plot
from ..model.monitoring.novelty import NEAR_CEILING, share_of_ceiling
from ..rows.convert import as_rows
from ..rows.lags import lag_names
from ..rows.times import as_times
from ..rows.values import complete
from . import inputs, monitored
from .arguments import given
from .console import Refused, progress_bars, say
from .outputs import check_charts, check_ending, check_outputs, tell_written
from .tables import read as tables

_ALARM, _ASKED_ALARM, HEALTH = 3, 4, 5
"""Exit codes: rows beyond a limit; the same with --fail-on-alarm; none, but findings about columns or times."""


def run_monitor(options: argparse.Namespace) -> int:
    outputs = {name: getattr(options, name) for name in ("output", "plot", "contributions", "report")}
    check_outputs([*outputs.values()], [*options.files, options.model, options.normal or "-"], options.force)
    check_outputs([options.append], [*options.files, options.model, *filter(None, outputs.values())], True)
    check_charts(options)
    check_ending("rows", None if options.output == "-" else options.output, ".csv", ".xlsx")
    check_ending("rows", options.append, ".csv")
    check_ending("contributions", options.contributions, ".csv", ".xlsx")
    if options.json and options.output == "-":
        raise Refused("--json and -o - both want standard output; give -o a file")

    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(progress_bars(not options.quiet))
        stored = fk.load(options.model, plugins=options.plugins)
        model = stored.with_limits(_limits(stored, options, progress))
        warn_of_ceiling(model)
        raw = _read(model, options, progress, stack)
        if raw is None:
            return monitored.nothing_new(options)
        names = model.feature_names or tuple(lag_names(inputs.plain_names(raw), model.lags))
        model = dataclasses.replace(model, feature_names=names)
        health, _ = inputs.health_of(raw, options, model.limits)
        table = inputs.cleaned(raw, options, model.lags)
        every = np.asarray(raw.identifiers)
        kept = np.ones(len(every), dtype=bool) if table.kept is None else table.kept
        with inputs.columns_of_the_file(table, model.n_features):
            found = fk.kpca_monitor(
                model,
                table.X,
                labels=every[kept],
                label_name="row" if options.id is None else "id" if options.id.isdigit() else options.id,
                fill_missing=options.fill_missing,
                health=health,
                progress=progress,
            )
            added = _add_normal_rows(stored, table.X, found, options, progress) if options.update else ""
        if options.fill_missing and not options.quiet:
            inputs.note_of_filled(table, model.feature_names)
        code = HEALTH if options.health else 0
        if len(found.alarms) or found.run_alarm is not None:
            code = _ASKED_ALARM if options.fail_on_alarm else _ALARM
        files = ", ".join(map(inputs.file_name, options.files))
        title = f"{Path(options.model).name}, {datetime.date.today()}: {files}"
        text = ""
        if options.json:
            text = monitored.as_json(found, options, code, progress)
        elif not options.quiet:
            text = found.summary(options.alarms, progress=progress)
        if options.contributions is not None:
            monitored.write_contributions(found, options, progress)
        if options.report is not None:
            plot.report(found, options.report, title=title, command=options.typed, overwrite=options.force)
    if options.plot is not None:
        drawn = found.of_values()
        charts = plot.monitor(found.limits, drawn.t2, drawn.spe, x=drawn.labels, x_label=found.label_name, title=title)
        plot.save(charts, options.plot, overwrite=options.force)
    monitored.write_rows(found, every, kept, options)
    shown = sys.stderr if options.output == "-" else sys.stdout
    if text:
        print(text, file=shown)
    if not options.quiet and not options.json:
        if added:
            print(added, file=shown)
        written = {"rows written to": options.output, "rows added to": options.append, "chart written to": options.plot}
        tell_written(written | {"contributions to": options.contributions, "report written to": options.report}, shown)
    return code


def updated(model: Any, X: Any, options: argparse.Namespace, progress: Any) -> Any:
    """The model with more rows, as ``--forget``, ``--grow`` and ``--tol`` say."""
    if model._moments is None:
        raise Refused(f"{options.model} keeps no sums to add rows to; fit it with --keep-moments")
    grow = True if options.grow is None else options.grow or False
    return fk.kpca_update(model, X, forget=options.forget, grow=grow, progress=progress, **given(options, "tol"))


def _add_normal_rows(model: Any, X: Any, found: Any, options: argparse.Namespace, progress: Any) -> str:
    """Write the model again, with the rows that raise no alarm and lack no value; what was done, as text."""
    if found.run_alarm is not None:
        return f"no rows added to {options.model}: the whole run is unlike the normal rows"
    rows = as_rows(X, missing=True)
    normal = complete(rows)
    normal[found.alarms] = False
    if normal.any():
        fk.save(updated(model, rows.all()[normal], options, progress), options.model, overwrite=True)
    return f"{normal.sum()} of {len(normal)} rows added to {options.model}"


def _read(model: Any, options: argparse.Namespace, progress: Any, stack: contextlib.ExitStack) -> Any:
    """The rows of all files that are later than ``--since``, all of them named; None where there are none."""
    parts = []
    for file in options.files:
        # rows with missing values are refused after the health of the data is told
        one = argparse.Namespace(**vars(options) | {"file": file, "fill_missing": True})
        stack.enter_context(inputs.rereadable_input(one))
        table = inputs.read_new_rows(model, one, progress)
        options.id, options.read_as = one.id, one.read_as
        if options.since is not None and options.id is None:
            raise Refused("--since needs the times of the rows; give --id COLUMN, the column that holds them")
        if table.identifiers is None:
            table.identifiers = np.arange(1, table.n_rows + 1)
            if len(options.files) > 1:
                table.identifiers = np.array([f"{file}:{i}" for i in table.identifiers], dtype=object)
        if options.since is not None:
            table = _later(table, options, inputs.file_name(file))
        parts += [] if table is None else [table]
    options.file = " ".join(options.files)
    return tables.joined(parts) if parts else None


def _later(table: Any, options: argparse.Namespace, name: str) -> Any:
    """The rows of a table that are later than ``--since``; None where none is."""
    times = as_times(np.asarray(table.identifiers))
    if times is None:
        first = str(table.identifiers[0])
        raise Refused(
            f"--since needs times, and column {options.id} of {name} does not hold times only (first: {first!r}), "
            "which are as 2026-03-01 06:00 or 01.03.2026 06:00"
        )
    later = times > options.since
    if not later.any():
        return None
    chosen, lines = np.flatnonzero(later), table.lines
    table = dataclasses.replace(tables.only(table, later, name), kept=None, identifiers=table.identifiers[chosen])
    return table if lines is None else dataclasses.replace(table, lines=lambda rows: lines(chosen[rows]))


def calibrated(model: Any, X: Any, confidence: float) -> Any:
    """Limits below which both statistics of normal rows stay with this probability."""
    return fk.kpca_limits(model, X, confidence=confidence, joint=True)


def warn_of_ceiling(model: Any) -> None:
    """Say where the SPE of no row can rise far beyond its limit: far from all rows a Gaussian kernel has one value."""
    share = share_of_ceiling(model, model.limits.spe)
    if share > NEAR_CEILING:
        say(
            "warning",
            f"with this sigma SPE has a ceiling, and its limit is {share:.0%} of that: faults hardly show. Fit without "
            "--sigma, --kernel and -c: 'fastkpca fit --limits' then chooses what finds most simulated faults",
        )


def _limits(model: Any, options: argparse.Namespace, progress: Any) -> Any:
    """Limits that the model keeps, at another confidence where one is given; or limits of the rows of ``--normal``."""
    confidence = options.limits or inspect.signature(fk.kpca_limits).parameters["confidence"].default
    if options.normal is not None:
        # limits of rows that were made to fit would be too low
        gaps = {"fill_missing": False, "drop_missing": options.drop_missing or options.fill_missing}
        recalled = inputs.remembered(model, options.model)
        named = {"file": options.normal, "path": options.normal, "id": None, "recalled": recalled}
        other = argparse.Namespace(**vars(options) | named | gaps)
        table = inputs.cleaned(inputs.raw_table(other, progress, *inputs.own_columns(model)), other, model.lags)
        with inputs.columns_of_the_file(table, model.n_features):
            return calibrated(model, table.X, confidence)
    if model.limits is None:
        raise Refused(
            f"{options.model} keeps no limits; fit it with --limits {confidence:g}, which holds "
            "rows back for them, or give --normal FILE: rows of normal operation that the model was not made of"
        )
    if options.limits is None:
        return model.limits
    if model.limits.calibration is None:
        raise Refused(f"{options.model} keeps limits alone, and not what they were made from; leave out --limits")
    return calibrated(model, None, options.limits)

"""``fastkpca monitor``: T^2 and SPE of new rows under the limits of a model, and the columns behind each alarm."""

from __future__ import annotations

import argparse
import contextlib
import csv
import inspect
import io
import sys
from typing import Any

import numpy as np

from .console import Refused, progress_bars, say
from .inputs import columns_of_the_file, read_new_rows, read_table
from .outputs import check_outputs, check_picture, row_names

_ALARM = 3  # the exit code where rows are beyond a limit
_OF_FILLED = "SPE is the least that values there could give, T2 that of the filled row"


def run_monitor(options: argparse.Namespace) -> int:
    check_outputs([options.output, options.plot], [options.file, options.model, options.normal or "-"], options.force)
    check_picture(options.plot)
    if not (options.output or ".csv").lower().endswith((".csv", "-")):
        raise Refused(f"T2 and SPE of the rows are written as .csv, which {options.output!r} does not end with")

    import fastkpca as fk

    from .. import plot

    with progress_bars(not options.quiet) as progress:
        model = fk.load(options.model, plugins=options.plugins)
        limits = _limits(model, options, progress)
        table, gaps = read_new_rows(model, options, progress)
        with columns_of_the_file(table, model.n_features):
            t2 = fk.kpca_t2(model, table.X, progress=progress)
            spe = fk.kpca_spe(model, table.X, progress=progress)
        alarms = np.flatnonzero(limits.exceeded(t2=t2, spe=spe))
        report = _report(model.with_limits(limits), table, options, (t2, spe, gaps), alarms, progress)
    name, labels = _labels(table, options)
    if options.plot is not None:
        plot.save(plot.monitor(limits, t2, spe, x=labels, x_label=name), options.plot, overwrite=options.force)
    _write(options, table, np.column_stack([t2, spe]), gaps, limits)
    if not options.quiet:
        stream = sys.stderr if options.output == "-" else sys.stdout
        print(report, file=stream)
        for what, path in (("rows written to", options.output), ("chart written to", options.plot)):
            if path not in (None, "-"):
                print(f"{what:<18}{path}", file=stream)
    return _ALARM if len(alarms) else 0


def calibrated(model: Any, X: Any, confidence: float) -> Any:
    """Limits below which both statistics of normal rows stay with this probability."""
    import fastkpca as fk

    return fk.kpca_limits(model, X, confidence=confidence, joint=True)


def note_of_ceiling(model: Any) -> None:
    """Say where the SPE of no row can rise far beyond its limit: far from all rows a Gaussian kernel has one value."""
    from ..model.novelty import NEAR_CEILING, share_of_ceiling

    sigma, share = model.kernel.fixed_point_width(), share_of_ceiling(model, model.limits.spe)
    if share > NEAR_CEILING:
        say(
            "note",
            f"with this sigma SPE has a ceiling, and its limit is {share:.0%} of that: faults hardly show. A larger "
            f"sigma sees more: try --sigma {4 * sigma:.3g}, four times this one",
        )


def _limits(model: Any, options: argparse.Namespace, progress: Any) -> Any:
    """Those that the model keeps, at another confidence where one is asked for; or of the rows of ``--normal``."""
    import fastkpca as fk

    confidence = options.limits or inspect.signature(fk.kpca_limits).parameters["confidence"].default
    if options.normal is not None:
        # limits of rows that were made to fit would be too low
        gaps = {"fill_missing": False, "drop_missing": options.drop_missing or options.fill_missing}
        named = {"file": options.normal, "path": options.normal, "id": None}
        other = argparse.Namespace(**vars(options) | named | gaps)
        table = read_table(other, progress, like=model.feature_names, needs=model.n_features)
        with columns_of_the_file(table, model.n_features):
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


def _labels(table: Any, options: argparse.Namespace) -> tuple[str, np.ndarray]:
    """(name, values): what the rows of the table are called, their numbers in the file by default."""
    named = row_names(table, options)
    name, every = named or ("row", np.arange(1, (table.n_rows if table.kept is None else len(table.kept)) + 1))
    return name, np.asarray(every) if table.kept is None else np.asarray(every)[table.kept]


def _report(model: Any, table: Any, options: argparse.Namespace, found: Any, alarms: np.ndarray, progress: Any) -> str:
    """Limits, how many rows are beyond one, and the first of these with the columns behind them.

    ``found``: T^2, SPE, and how many values were filled, of each row.
    """
    t2, spe, gaps = found
    n, limits = len(t2), model.limits
    lines = [f"{'limits':<18}{limits}", f"{'rows':<18}{n}", f"{'alarms':<18}{len(alarms)} ({len(alarms) / n:.2%})"]
    name, labels = _labels(table, options)
    first = alarms[: options.alarms]
    if len(first):
        marked = np.zeros(n, dtype=bool) if gaps is None else gaps > 0
        names = [f"{label}{'*' * bool(marked[i])}" for i, label in zip(first, labels[first].tolist())]
        width = max(len(name), *map(len, names))
        head = f"{name:>{width}}  {'T2':>10}  {'SPE':>10}  {'beyond':<6}  "
        lines += ["", head + "columns: how much of the statistic each alone takes off (its value -> the best one)"]
        behind = _behind(model, table, first, spe[first] > limits.spe, progress)
        for i, text, columns in zip(first, names, behind):
            beyond = "+".join(["T2"] * bool(t2[i] > limits.t2) + ["SPE"] * bool(spe[i] > limits.spe))
            lines.append(f"{text:>{width}}  {t2[i]:>10.4g}  {spe[i]:>10.4g}  {beyond:<6}  {columns}")
        if marked[first].any():
            lines.append(f"* with missing values, which the model filled: {_OF_FILLED}")
    if len(alarms) > len(first):
        lines.append(f"and {len(alarms) - len(first)} more; --alarms {len(alarms)} shows them, -o FILE.csv writes all")
    return "\n".join(lines)


def _behind(model: Any, table: Any, index: np.ndarray, by_spe: np.ndarray, progress: Any) -> list[str]:
    """The columns that contribute most to each of these rows: to its SPE where that is beyond, else to T^2."""
    import fastkpca as fk

    from ..model.contributions import foremost
    from ..rows.convert import as_rows

    rows = as_rows(table.X)
    X = rows.shifted(np.zeros(rows.n_features)).take(index)
    texts = [""] * len(index)
    for statistic, chosen in (("spe", np.flatnonzero(by_spe)), ("t2", np.flatnonzero(~by_spe))):
        if not len(chosen):
            continue
        found = fk.kpca_contributions(model, X[chosen], statistic=statistic, progress=progress)
        names = found.names if model.feature_names else [f"column {j + 1}" for j in table.places]
        for row, i in enumerate(chosen):
            share = found.contributions[row] / max(float(found.of_rows[row]), np.finfo(float).tiny)
            largest = [j for j in foremost(found, row) if round(100 * share[j])]
            parts = [f"{names[j]} {share[j]:.0%} ({X[i, j]:.4g} -> {found.values[row, j]:.4g})" for j in largest]
            texts[i] = ", ".join(parts) or "no column alone takes anything off"
    return texts


def _write(options: argparse.Namespace, table: Any, values: np.ndarray, gaps: Any, limits: Any) -> None:
    """T^2, SPE and what is beyond of every row of the file, as csv; empty fields for rows that were left out. ``gaps``:
    how many values were filled, of each row; or None."""
    if options.output is None:
        return
    from ..base.atomic import atomic

    named = row_names(table, options)
    kept = np.ones(len(values), dtype=bool) if table.kept is None else table.kept
    name, every = named or ("row", np.arange(1, len(kept) + 1))
    head = [name, "T2", "SPE", "T2 beyond", "SPE beyond", *["filled"] * (gaps is not None)]
    beyond = (values > [limits.t2, limits.spe]).astype(int)
    columns = [*values.T.tolist(), *beyond.T.tolist(), *([] if gaps is None else [gaps.tolist()])]
    rows = zip(*columns)
    text = io.StringIO()
    write: Any = csv.writer(text, lineterminator="\n")
    write.writerow(head)
    for label, is_kept in zip(np.asarray(every).tolist(), kept):
        write.writerow([label, *(next(rows) if is_kept else [""] * (len(head) - 1))])
    if options.output == "-":
        sys.stdout.write(text.getvalue())
        return
    with atomic(options.output, overwrite=options.force) as file, contextlib.closing(text):
        file.write(text.getvalue().encode())

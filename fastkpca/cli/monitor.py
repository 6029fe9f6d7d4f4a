"""``fastkpca monitor``: T^2 and SPE of new rows under the limits of a model, and the columns behind each alarm."""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import inspect
import io
import sys
from typing import Any

import numpy as np

from .console import Refused, progress_bars, say
from .inputs import columns_of_the_file, note_of_filled, read_new_rows, read_table
from .outputs import check_outputs, check_picture, row_names

_ALARM = 3  # the exit code where rows are beyond a limit


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
        table = read_new_rows(model, options, progress)
        if model.feature_names is None:
            model = dataclasses.replace(model, feature_names=tuple(f"column {j + 1}" for j in table.places))
        name, labels = _labels(table, options)
        warn_of_ceiling(model.with_limits(limits))
        with columns_of_the_file(table, model.n_features):
            found = fk.kpca_monitor(
                model,
                table.X,
                limits=limits,
                labels=labels,
                label_name=name,
                fill_missing=options.fill_missing,
                progress=progress,
            )
        if options.fill_missing and not options.quiet:
            note_of_filled(table, model.feature_names)
        report = "" if options.quiet else found.summary(options.alarms, progress=progress)
    if options.plot is not None:
        plot.save(
            plot.monitor(limits, found.t2, found.spe, x=labels, x_label=name), options.plot, overwrite=options.force
        )
    _write(options, table, found)
    if not options.quiet:
        stream = sys.stderr if options.output == "-" else sys.stdout
        print(report, file=stream)
        for what, path in (("rows written to", options.output), ("chart written to", options.plot)):
            if path not in (None, "-"):
                print(f"{what:<18}{path}", file=stream)
    return _ALARM if len(found.alarms) else 0


def calibrated(model: Any, X: Any, confidence: float) -> Any:
    """Limits below which both statistics of normal rows stay with this probability."""
    import fastkpca as fk

    return fk.kpca_limits(model, X, confidence=confidence, joint=True)


def warn_of_ceiling(model: Any) -> None:
    """Say where the SPE of no row can rise far beyond its limit: far from all rows a Gaussian kernel has one value."""
    from ..model.novelty import NEAR_CEILING, share_of_ceiling

    share = share_of_ceiling(model, model.limits.spe)
    if share > NEAR_CEILING:
        say(
            "warning",
            f"with this sigma SPE has a ceiling, and its limit is {share:.0%} of that: faults hardly show. Fit without "
            "--sigma, --kernel and -c: 'fastkpca fit --limits' then chooses what finds most simulated faults",
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


def _write(options: argparse.Namespace, table: Any, found: Any) -> None:
    """T^2, SPE and what is beyond of every row of the file, as csv; empty fields for rows that were left out."""
    if options.output is None:
        return
    from ..base.atomic import atomic

    named, gaps = row_names(table, options), found.filled
    kept = np.ones(len(found.t2), dtype=bool) if table.kept is None else table.kept
    name, every = named or ("row", np.arange(1, len(kept) + 1))
    head = [name, "T2", "SPE", "T2 beyond", "SPE beyond", *["filled"] * (gaps is not None)]
    beyond = found.beyond.astype(int).T.tolist()
    columns = [found.t2.tolist(), found.spe.tolist(), *beyond, *([] if gaps is None else [gaps.tolist()])]
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

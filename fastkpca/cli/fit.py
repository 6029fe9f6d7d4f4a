"""``fastkpca fit`` and ``fastkpca plan``: a model of the rows of a file, and what it would cost."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import fastkpca as fk

from .. import plot
from ..fit.baseline import fit_with_limits, held_back
from ..fit.missing import fit_and_fill
from ..model.result import component_table, facts
from ..rows.convert import as_rows
from ..rows.values import complete
from .arguments import DEFAULT_COMPONENTS, given, kernel_parameters
from .console import Refused, in_words_of_the_command, progress_bars, say
from .inputs import cleaned, columns_of_the_file, file_name, health_of, raw_table, remember
from .monitor import HEALTH, warn_of_ceiling
from .outputs import check_charts, check_outputs, check_scores, spill_path, tell_written, write_scores
from .tables import read as tables
from .tables import write as scorefiles


def run_fit(options: argparse.Namespace) -> int:
    if options.output == "-":
        raise Refused("a model is written into a file; give -o NAME.kpca")
    check_outputs([options.output, options.scores, options.plot, options.report], [options.file], options.force)
    check_scores(options.scores, options)
    check_charts(options)
    if options.limits is not None and options.output is None:
        raise Refused("--limits are kept in the model; give -o NAME.kpca, too")
    settings = _settings(options)

    # MATLAB's variables include the scores
    mat = options.output if (options.output or "").lower().endswith(".mat") else None
    with progress_bars(not options.quiet) as progress:
        table = raw_table(options, progress)
        kernel = fk.get_kernel(options.kernel or "gaussian", **kernel_parameters(options))
        scaled = kernel.scales_columns or not kernel.takes_points
        scaled = scaled or options.limits is not None or options.standardize is not None
        _, columns = health_of(table, options, scaled=scaled)
        table = cleaned(table, options, options.lags)
        held = None
        if options.limits is not None:
            settings["rng"] = np.random.default_rng(options.seed)
            table, held = _held_back(table, options, settings["rng"])
        start, scores_at = time.perf_counter(), options.scores or options.plot or options.report or mat
        model = _fitted(table, held, columns.run, settings, scores_at, options, progress)
        remember(model, options)
        seconds = time.perf_counter() - start
        if options.health:
            model.info["health"] = "\n".join(options.health)
        if options.output is not None:
            write_model = fk.save if mat is None else fk.export_mat
            write_model(model, options.output, overwrite=options.force)
        if options.scores is not None:
            progress(f"writing {options.scores}", 0, 0)
            scores = scorefiles.among_all(model.score, table.kept, spill_path(options.scores))
            if held is not None:
                scores[held.kept] = fk.kpca_project(model, held.X)
            write_scores(options.scores, scores, table, options)
        if options.plot is not None:
            named = options.label_column or ""
            drawn = plot.scores(model, table.labels, label_name="" if named.isdigit() else named)
            plot.save(drawn, options.plot, overwrite=options.force)
        if options.report is not None:
            title = f"{Path(options.output or file_name(options.file)).name}, {datetime.date.today()}"
            plot.report(model, options.report, title=title, command=options.typed, overwrite=options.force)
    if not options.quiet:
        _report(model, seconds, options, for_python=options.output is not None and mat is None)
    return HEALTH if options.limits is not None and options.health else 0


def _report(model: Any, seconds: float, options: argparse.Namespace, *, for_python: bool) -> None:
    """The summary, what was written where, and how new rows are projected where that takes a plugin."""
    report = sys.stderr if options.scores == "-" else sys.stdout
    print(summary(model, seconds), file=report)
    written = {"model": options.output, "scores": options.scores, "plot": options.plot, "report": options.report}
    tell_written({f"{what} written to": path for what, path in written.items()}, report)
    plugin = _distribution(options.kernel or "gaussian") if for_python else None
    if plugin is not None:
        line = f"fastkpca project {options.output} FILE --plugins {plugin}"
        print(f"{'new rows':<18}{line} (the kernel is of that distribution)", file=report)


def _held_back(table: Any, options: argparse.Namespace, generator: np.random.Generator) -> tuple[Any, Any]:
    """(the rows that a model is made of, those that its limits are made of): a third at random, at most 4096; the last
    ones with --lags."""
    whole = complete(as_rows(table.X, missing=True))
    n = int(whole.sum())
    if n < 3:
        raise Refused(f"--limits needs rows that the model is not made of, and there are {n}; give more rows")
    held = held_back(whole, generator, options.lags)
    if not options.quiet:
        which = "the last ones" if options.lags else "chosen at random"
        of = f"{len(whole)} rows" if whole.all() else f"{n} rows without missing values"
        text = f"{held.sum()} of {of}, {which}, are held back from the fit: the limits are made of them"
        say("note", text)
    name = file_name(options.file)
    return tables.only(table, ~held, name), tables.only(table, held, name)


def _distribution(kernel: str) -> str | None:
    """The distribution that the kernel of this name comes from; None for fastkpca's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # get_kernel has said it
        holders = {e.distribution for e in fk.list_kernels() if kernel in (e.name, e.qualified, *e.aliases)}
    return next(iter(holders - {"fastkpca"}), None)


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of ``kpca`` and ``plan`` but c, which needs the table. A wrong kernel is found before a file is
    read."""
    parameters = kernel_parameters(options)
    kernel = fk.get_kernel(options.kernel or "gaussian", **parameters)
    settings = given(options, "tol", "max_features", "method", "n_threads", "memory_limit", "standardize")
    if vars(options).get("keep_moments"):
        settings["keep_moments"] = True
        if kernel.translation == "kernel":
            settings["features"] = "pivots"  # the map that can grow
    return {"kernel": options.kernel, "rng": options.seed, **settings, **parameters}


def _components(table: Any, options: argparse.Namespace) -> int | float | None:
    """Value of ``-c``; by default a number that a short file has, too."""
    if "components" in options:
        return options.components
    n = table.n_rows
    if not 2 <= n <= DEFAULT_COMPONENTS:  # kpca refuses a single row in its own words
        return min(n, DEFAULT_COMPONENTS)
    if not options.quiet:
        say("note", f"{n - 1} component{'s' * (n > 2)} in place of {DEFAULT_COMPONENTS}: {n} rows have no more")
    return n - 1


def _fitted(
    table: Any,
    held: Any,
    runs: np.ndarray,
    settings: dict[str, Any],
    scores_at: str | None,
    options: argparse.Namespace,
    progress: Any,
) -> Any:
    """The model of a table, with the names of its columns, and limits from the rows ``held`` if any.

    Scores are kept if ``scores_at`` is given; large ones wait in a file in its folder."""
    last: dict[str, Any] = {"return_scores": scores_at is not None, "progress": progress}
    last["out"] = None if scores_at is None else scorefiles.score_place(spill_path(scores_at))
    names = tuple(table.names or ())
    unique = names if names and all(names) and len(set(names)) == len(names) else None
    if held is None:
        settings["c"] = _components(table, options)
        with columns_of_the_file(table), warnings.catch_warnings():
            if "components" not in options:  # fewer than the default are what the summary says: nobody asked for more
                warnings.filterwarnings("ignore", f"{settings['c']} components asked for")
            if options.fill_missing:
                model = fit_and_fill(table.X, functools.partial(fk.kpca, **settings, return_scores=False), **last)
            else:
                model = fk.kpca(table.X, **settings, **last)
        if options.lags:
            model.info["lags"] = options.lags
        return dataclasses.replace(model, feature_names=unique)
    parameters, kernel = kernel_parameters(options), settings["kernel"]
    if kernel is not None or parameters:
        kernel = fk.get_kernel(kernel or "gaussian", **parameters)
        kernel = kernel.numbered(names) if names else kernel
    if "standardize" not in settings and not options.quiet:
        say("note", "each column is standardized (--no-standardize leaves them as they are)")
    own = {name: value for name, value in settings.items() if name not in ("kernel", *parameters)}
    own |= {"confidence": options.limits, "runs": runs, "lags": options.lags, "fill_missing": options.fill_missing}
    with columns_of_the_file(table):
        c = vars(options).get("components")
        model = fit_with_limits(table.X, held.X, kernel, c, names=unique, **{"standardize": True} | own | last)
        warn_of_ceiling(model)
    return model


def run_plan(options: argparse.Namespace) -> None:
    settings = _settings(options)

    with progress_bars(not options.quiet) as progress:
        table = cleaned(raw_table(options, progress), options, options.lags)
        settings["c"] = _components(table, options)
        with columns_of_the_file(table):
            chosen = fk.plan(table.X, **settings)
    print(in_words_of_the_command(str(chosen)))


def summary(model: Any, seconds: float | None = None) -> str:
    """Description of a model and of the accuracy of its eigenvalues, for the terminal."""
    heads, table = component_table(model, digits=12)
    width = [max(map(len, column)) for column in zip(heads, *table)]
    lines = ["  ".join(map(str.rjust, cells, width)) for cells in [heads, *table]]
    above = facts(model)
    below = {name: above.pop(name) for name in ("explained", "limits", "intervals") if name in above}
    seconds = model.info.get("seconds") if seconds is None else seconds
    if seconds is not None:
        above["seconds"] = f"{seconds:.3g}"
    parts = [[f"{name:<18}{text}" for name, text in part.items()] for part in (above, below)]
    return "\n".join([*parts[0], "", *lines, "", *parts[1]])

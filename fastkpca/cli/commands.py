"""The command line: ``fastkpca fit | plan | certify | project | monitor | update | info | kernels | demo``.

Wording only; the library does the work.

Exit codes:

0. Done.
1. An error: one line on stderr.
2. Wrong usage.
3. ``monitor`` found rows beyond a limit.
4. The same with --fail-on-alarm.
5. No row is beyond a limit, but columns or times are faulty: a line on stderr for each. Also ``fit`` with --limits.

130 is Ctrl-C, and 141 a pipe whose reader went away.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fastkpca as fk

from ..model.plan import readable_size
from ..rows.columns import listed
from . import console, demo
from .arguments import parser_of_all
from .certify import run_certify
from .fit import run_fit, run_plan, summary
from .inputs import cleaned, columns_of_the_file, note_of_filled, read_new_rows, rereadable_input
from .monitor import run_monitor, updated
from .outputs import check_outputs, check_scores, spill_path, write_scores
from .tables import write as scorefiles


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (argparse's own exits, 0 and 2, are raised as SystemExit)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # from here on what was begun is cleaned up
    if getattr(signal.getsignal(signal.SIGINT), "__module__", "") == "fastkpca":
        signal.signal(signal.SIGINT, signal.default_int_handler)
    console.open_closed_streams()
    options = argparse.Namespace(debug=False)
    try:
        with console.standard_output():
            options = parser_of_all().parse_all(arguments)
            options.typed = console.without_password(shlex.join(["fastkpca", *arguments]))
            with console.one_line_warnings() as options.health, rereadable_input(options):
                code = RUNS[options.command](options)
        return code or 0
    except KeyboardInterrupt:
        console.say("error", "interrupted")
        return 130
    except BrokenPipeError:
        console.discard_output()
        return 141
    except Exception as error:
        if options.debug:
            raise
        console.say("error", console.described(error))
        console.discard_output()
        return 1


@contextlib.contextmanager
def _model_and_rows(options: argparse.Namespace, progress: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(a model, the table of new rows, these rows with the values that the model fills); errors inside name columns as
    the file does."""
    model = fk.load(options.model, plugins=options.plugins)
    table = cleaned(read_new_rows(model, options, progress), options, model.lags)
    with columns_of_the_file(table, model.n_features):
        X = fk.kpca_fill(model, table.X, progress=progress) if options.fill_missing else table.X
        yield model, table, X
    if options.fill_missing and not options.quiet:
        note_of_filled(table, model.feature_names)


def _project(options: argparse.Namespace) -> None:
    target = options.output or "-"
    check_outputs([target], [options.file, options.model], options.force)
    check_scores(target, options)

    output = scorefiles.score_place(spill_path(target))
    with console.progress_bars(not options.quiet) as progress, _model_and_rows(options, progress) as (model, table, X):
        scores = fk.kpca_project(model, X, out=output, progress=progress)
    write_scores(target, scorefiles.among_all(scores, table.kept, spill_path(target)), table, options)
    if target != "-" and not options.quiet:
        print(f"scores of {scores.shape[0]} rows, {scores.shape[1]} components, written to {target}")


def _update(options: argparse.Namespace) -> None:
    target = options.output or options.model
    check_outputs([options.output], [options.file], options.force)

    with console.progress_bars(not options.quiet) as progress:
        with _model_and_rows(options, progress) as (model, _, X):
            model = updated(model, X, options, progress)
        fk.save(model, target, overwrite=options.force or target == options.model)
    if not options.quiet:
        print(f"{summary(model)}\n{'model written to':<18}{target}")


def _info(options: argparse.Namespace) -> None:
    model = fk.load(options.model, plugins=options.plugins)
    print(summary(model))
    how = "each column minus its mean, over its standard deviation, also in new rows"
    print(f"{'standardize':<18}{'no' if model.scale is None else f'yes: {how}'}")
    names = listed(model.feature_names or (), 50) or f"{model.n_features} without names, in the order of the fit"
    print(f"{'needs columns':<18}{names}")
    if "reading" in model.info:
        print(f"{'files are read by':<18}{model.info['reading']}")
    print(f"{'size of the file':<18}{readable_size(os.path.getsize(options.model))}")


def _kernels(options: argparse.Namespace) -> None:
    print(fk.list_kernels(load=options.load))


def _demo(options: argparse.Namespace) -> None:
    with console.progress_bars(not options.quiet) as progress:
        demo.run(options.output, summary, force=options.force, progress=progress)


RUNS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "fit": run_fit,
    "plan": run_plan,
    "certify": run_certify,
    "project": _project,
    "monitor": run_monitor,
    "update": _update,
    "info": _info,
    "kernels": _kernels,
    "demo": _demo,
}

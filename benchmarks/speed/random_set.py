"""Two versions on problems that nobody has tuned anything on: seconds, planning, and time at looser tolerances.

    python benchmarks/speed/random_set.py [--against PYTHON] [--cases 250] [--seed 0] [--seconds 3] [--loosen]
        [--only real] [--smallest 15000] [--columns 200]

``PYTHON``: the interpreter of an environment in which another version is installed. The versions take turns, each in a
process of its own, with one thread; times are processor seconds, the shortest of a few. Problems that this version's
plan predicts to take more than ``--seconds`` are left out, and counted.
``--only real`` or ``drawn`` rows, of at least ``--smallest`` and at most ``--largest`` rows, in ``--columns``.
``--loosen``: each problem also at tol 1e-2, 1e-4, 1e-6 and 1e-9: a looser tolerance is not to take longer.
Printed: each problem, then the quantiles. This set decides whether a special case comes in: see CONTRIBUTING.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
import warnings
from itertools import pairwise
from typing import Any
from unittest import mock

import common
import numpy as np
import problems

import fastkpca as fk
from fastkpca.fit.planning import make_plan

TOLERANCES = (1e-9, 1e-6, 1e-4, 1e-2)


def shortest(problem: problems.Problem, call: Any, options: dict[str, Any]) -> tuple[float, Any]:
    times: list[float] = []
    while len(times) < 2 or (len(times) < 7 and sum(times) < 0.2):
        started = time.process_time()
        result = call(problem.X, n_threads=1, **options)
        times.append(time.process_time() - started)
    return min(times), result


def planned(problem: problems.Problem, options: dict[str, Any]) -> tuple[float, Any]:
    """Processor seconds that a fit spends on its plan, the shortest of a few; and the plan, with all candidates."""
    times: list[float] = []

    def timed(*args: Any) -> Any:
        started = time.process_time()
        made = make_plan(*args)
        times.append(time.process_time() - started)
        return made

    with mock.patch.object(sys.modules["fastkpca.fit.kpca"], "make_plan", timed):
        _, plan = shortest(problem, fk.plan, options)
    return min(times), plan


def run(problem: problems.Problem, tol: float) -> dict[str, Any]:
    """What this process's version makes of it."""
    options = problem.options | {"tol": tol}
    planning, plan = planned(problem, options)
    seconds, model = shortest(problem, fk.kpca, options)
    width = float(np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0])
    return {"seconds": seconds, "planning": planning, "predicted": plan.chosen.seconds, "ran": model.plan.chosen.label,
            "planned": plan.chosen.label, "width": width}  # fmt: skip


def serve() -> None:
    """Answer one line for each that comes: arguments of ``problems.problem``, and tol."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        arguments, tol = json.loads(line)
        try:
            answer = run(problems.problem(*arguments), tol)
        except Exception as error:  # the other version's table goes on
            answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        print(json.dumps(answer), flush=True)


def drawn(options: argparse.Namespace) -> Any:
    """The problems that are not too long, with their numbers."""
    i = found = 0
    while found < options.cases:
        arguments = (options.seed, i, options.largest, options.smallest, options.only, options.columns)
        problem = problems.problem(*arguments)
        with warnings.catch_warnings(), contextlib.suppress(fk.errors.NoRouteError, ValueError):
            warnings.simplefilter("ignore")
            plan = fk.plan(problem.X, n_threads=1, **problem.options)
            if plan.chosen.seconds <= options.seconds:
                found += 1
                yield arguments, problem
        i += 1
    print(f"{i - found} problems were left out")


def show(name: str, ratios: list[float]) -> None:
    if ratios:
        quantiles = ", ".join(f"{q:.0%} {np.quantile(ratios, q):.2f}" for q in (0.0, 0.1, 0.5, 0.9, 0.95, 1.0))
        print(f"{name}: {quantiles} ({len(ratios)})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="PYTHON")
    parser.add_argument("--cases", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smallest", type=int, default=0)
    parser.add_argument("--largest", type=int, default=problems.SIZES[-1])
    parser.add_argument("--only", choices=("real", "drawn"), default="")
    parser.add_argument("--columns", type=int, nargs="+", default=problems.COLUMNS)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--loosen", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    common.header("Random problems, processor seconds")
    new = common.Worker(sys.executable, __file__)
    old = common.Worker(options.against, __file__) if options.against else None
    ratios: list[float] = []
    taken: list[float] = []
    looser: list[float] = []
    planning, total = 0.0, 0.0
    for arguments, problem in drawn(options):
        asked = (arguments, problem.options["tol"])
        now = new(*asked)
        text = f"{arguments[1]:>4} {problem} "
        if "error" in now:
            print(text + now["error"], flush=True)
            continue
        text += f"{now['seconds']:8.4f} s, predicted {now['predicted']:8.4f}  {now['ran']}"
        text += "" if now["ran"] == now["planned"] else f", not {now['planned']}"
        taken.append(now["seconds"] / now["predicted"])
        if len(problem.X) <= 2000:
            planning, total = planning + now["planning"], total + now["seconds"]
        if old is not None:
            before = old(*asked)
            if "error" not in before:
                ratios.append(now["seconds"] / before["seconds"])
                text += f"; before {before['seconds']:8.4f} {before['ran']}, ratio {ratios[-1]:.2f}"
                text += f", width {now['width']:.1e} {before['width']:.1e}"
        if options.loosen:
            times = [new(arguments, tol).get("seconds", np.inf) for tol in TOLERANCES]
            looser += [b / a for a, b in pairwise(times) if max(a, b) < np.inf]
            text += "; tol " + " ".join(f"{tol:.0e} {x:.4f}" for tol, x in zip(TOLERANCES, times))
        print(text, flush=True)
    show("this version over the other", ratios)
    show("time at a looser tol over the one before", looser)
    show("took over predicted", taken)
    show("prediction off by a factor", [max(x, 1.0 / x) for x in taken])
    within = sum(1.0 / 1.5 <= x <= 1.5 for x in taken)
    print(f"predictions within 1.5 times: {within} of {len(taken)}")
    print(f"planning, N <= 2000: {planning / max(total, 1e-300):.3f} of the time")


if __name__ == "__main__":
    main()

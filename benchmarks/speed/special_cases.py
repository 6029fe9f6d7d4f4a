"""What a special case gains: fits that use it, with it and without, in turns, on problems that nobody has tuned on.

    python benchmarks/speed/special_cases.py [truncated|quick|directions|flat|small|equal ...] [--cases 12] [--seed 0]

Problems are drawn as those of ``problems.py``, of the rows and widths that a case is for. Printed: the shortest
processor seconds of each, and the quartiles of the ratio without / with. CONTRIBUTING asks for a median of 1.3.
"""

from __future__ import annotations

import argparse
import contextlib
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import common
import numpy as np
import problems

import fastkpca as fk
from fastkpca.base import lapack
from fastkpca.fit import dense, feature_route, krylov
from fastkpca.fit.problem import Problem
from fastkpca.maps.toeplitz import MAX_DENSE_MODES, ToeplitzMoments
from fastkpca.solve import block_krylov, moments


class Case(NamedTuple):
    """``off``: what is put in place of which attributes; ``used``: the call whose result shows that a fit uses it."""

    sizes: tuple[int, ...]
    columns: tuple[int, ...]
    widths: tuple[float, ...]
    used: tuple[Any, str]
    off: tuple[tuple[Any, str, Any], ...]


def formed_where_small(self: ToeplitzMoments) -> np.ndarray | None:
    return self.form() if self.map.n_features <= MAX_DENSE_MODES else None


def nothing(*_: Any, **__: Any) -> None:
    """None, or False, as what does not apply returns."""


WIDTHS, TOLERANCES = (0.1, 0.2, 0.5, 1.0, 2.0), (1e-2, 1e-3, 1e-4, 1e-6)
CASES = {
    "truncated": Case(
        (2500, 5000, 10_000), (2, 3, 5, 8), (0.02, 0.05, 0.1, 0.2),
        (block_krylov, "truncated_start"), ((krylov, "_truncated_offer", nothing),),
    ),
    "quick": Case(
        (5000, 20_000, 50_000), (3, 5, 8), (1.0, 2.0),
        (feature_route, "_quick_may_do"), ((Problem, "takes_quick_moments", False),),
    ),
    "directions": Case(
        (5000, 20_000, 50_000), (3,), WIDTHS,
        (moments, "_compressed_pairs"), ((moments, "_compressed_pairs", nothing),),
    ),
    "flat": Case(
        (5000, 20_000, 100_000), (1,), (0.01, 0.02, 0.05),
        (ToeplitzMoments, "dense"), ((ToeplitzMoments, "dense", formed_where_small),),
    ),
    "small": Case(
        (100, 200, 300, 500, 700), problems.COLUMNS, WIDTHS,
        (dense, "pairs_of_small"), ((dense, "takes_products", nothing),),
    ),
    "equal": Case(
        (1000, 1500, 2000), (8, 13), (0.005, 0.01, 0.02),
        (lapack, "_common_value"), ((lapack, "_common_value", nothing),),
    ),
}  # fmt: skip


def drawn(case: Case, seed: int) -> Iterator[problems.Problem]:
    rng = np.random.default_rng(seed)
    real = {name: X for name, X in problems.real_sets().items() if len(case.columns) > 1 or X.shape[1] in case.columns}
    while True:
        kind, n = str(rng.choice([*problems.DRAWN, *real])), int(rng.choice(case.sizes))
        if kind in real:
            X = problems.some_rows(rng, real[kind], n)
        else:
            X = problems.DRAWN[kind](rng, n, int(rng.choice(case.columns)))
        part, c, tol = (rng.choice(x) for x in (case.widths, (2, 5, 10, 20, 50), TOLERANCES))
        if len(X) >= case.sizes[0] and (len(case.columns) > 1 or X.shape[1] in case.columns):
            yield problems.gaussian(kind, X, float(part), int(c), float(tol))


def seconds_of(problem: problems.Problem) -> float:
    started = time.process_time()
    fk.kpca(problem.X, n_threads=1, **problem.options)
    return time.process_time() - started


def uses(case: Case, problem: problems.Problem) -> bool:
    owner, name = case.used
    real, results = getattr(owner, name), []

    def call(*args: Any, **options: Any) -> Any:
        results.append(real(*args, **options))
        return results[-1]

    with mock.patch.object(owner, name, call):
        seconds_of(problem)
    return any(x is not None and x is not False for x in results)


def gain(case: Case, problem: problems.Problem) -> tuple[float, float]:
    """(Seconds with, seconds without)."""
    taken: tuple[list[float], list[float]] = [], []
    while len(taken[0]) < 2 or (len(taken[0]) < 9 and sum(taken[1]) < 0.5):
        taken[0].append(seconds_of(problem))
        with contextlib.ExitStack() as stack:
            for patch in case.off:
                stack.enter_context(mock.patch.object(*patch))
            taken[1].append(seconds_of(problem))
    return min(taken[0]), min(taken[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--cases", dest="count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1.0, help="leave out what is predicted to take longer")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    common.header("Special cases, processor seconds")
    for name in given.cases or CASES:
        case, ratios = CASES[name], []
        for problem in drawn(case, given.seed):
            if len(ratios) == given.count:
                break
            plan = fk.plan(problem.X, n_threads=1, **problem.options)
            if plan.chosen.seconds > given.seconds or not uses(case, problem):
                continue
            with_it, without = gain(case, problem)
            ratios.append(without / with_it)
            print(f"{name:10} {problem} with {with_it:.4f} without {without:.4f} ratio {ratios[-1]:.2f}", flush=True)
        quartiles = ", ".join(f"{q:.2f}" for q in np.quantile(ratios, (0.25, 0.5, 0.75)))
        print(f"{name}: quartiles of without / with {quartiles} ({len(ratios)})", flush=True)


if __name__ == "__main__":
    main()

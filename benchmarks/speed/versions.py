"""Two versions on named problems: processor seconds of one over those of the other.

    python benchmarks/speed/versions.py --against PYTHON [peers] [small] [gram] [--rounds 3] [--case BEGINNING]

``PYTHON``: the interpreter of an environment in which another version is installed. ``peers``: the problems of
``peers.py``; ``small``: those of ``small.py``, kpca and the estimator; ``gram``: one product of the Gaussian Gram
matrix with a column, for up to three columns of X, set-up included. The versions take turns, each in a process of its
own, with one thread, and begin anew in each round; a figure is the shortest of all. Printed: each problem, then the
geometric mean and the worst.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
import peers
import small

import fastkpca as fk
import fastkpca.sklearn

MOST = 7
"""Calls of one problem in one round."""
ENOUGH = 0.5
"""Seconds of one problem in one round, after which no further call is made."""


def of_peers(name: str) -> Callable[[], Any]:
    X = peers.CASES[name].make()
    setting = peers.CASES[name].setting(X)
    return lambda: peers.ours(X, setting)


def of_small(name: str) -> Callable[[], Any]:
    what, n, d, kernel = name.split()
    X = np.random.default_rng(0).random((int(n), int(d)))
    ours, theirs = small.kernels(int(d))[kernel]
    if what == "kpca":
        return lambda: fk.kpca(X, kernel, 10, n_threads=1, **ours)
    return lambda: fastkpca.sklearn.KernelPCA(10, n_jobs=1, **theirs).fit(X)


def of_gram(name: str) -> Callable[[], Any]:
    what, n, d, sigma = name.split()
    rng = np.random.default_rng(0)
    X = (rng.random if what == "uniform" else rng.standard_normal)((int(n), int(d)))
    u = rng.standard_normal(len(X))
    return lambda: fk.gram(X, "gaussian", sigma=float(sigma), tol=1e-6, n_threads=1) @ u


PROBLEMS: dict[str, tuple[Callable[[str], Callable[[], Any]], list[str]]] = {
    "peers": (of_peers, list(peers.CASES)),
    "small": (
        of_small,
        [f"{x} {n} {d} {k}" for n, d in small.SIZES for k in small.kernels(d) for x in ("kpca", "estimator")],
    ),
    "gram": (
        of_gram,
        [f"{x} 50000 {d} {s}" for x in ("uniform", "normal") for d in (1, 2, 3) for s in (0.02, 0.1, 0.5, 2.0)],
    ),
}


def shortest(call: Callable[[], Any]) -> float:
    call()  # lazy imports, memory
    times: list[float] = []
    while not times or (len(times) < MOST and sum(times) < ENOUGH):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def serve() -> None:
    """Answer one line for each that comes: table, name."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        table, name = json.loads(line)
        try:
            answer: float | str = shortest(PROBLEMS[table][0](name))
        except Exception as error:  # the table goes on
            answer = f"{type(error).__name__}: {str(error)[:100]}"
        print(json.dumps(answer), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(PROBLEMS), help=", ".join(PROBLEMS))
    parser.add_argument("--against", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", default="", help="the beginning of a problem's name")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if not options.against:
        parser.error("--against PYTHON: the interpreter of the other version")
    common.header("Two versions, processor seconds")
    for table in options.tables:
        ratios = []
        for name in PROBLEMS[table][1]:
            if not name.startswith(options.case):
                continue
            found: tuple[list[Any], list[Any]] = ([], [])
            for _ in range(options.rounds):
                for python, times in zip((sys.executable, options.against), found):
                    with common.Worker(python, __file__) as ask:
                        times.append(ask(table, name))
            failed = [x for times in found for x in times if isinstance(x, str)]
            if failed:
                print(f"{table}: {name}: {failed[0]}", flush=True)
                continue
            new, old = (min(times) for times in found)
            ratios.append(new / old)
            print(
                f"{table}: {name:32s} {1e3 * new:10.2f} ms, before {1e3 * old:10.2f}, ratio {new / old:.2f}", flush=True
            )
        if ratios:
            mean = np.exp(np.mean(np.log(ratios)))
            print(f"{table}: geometric mean {mean:.3f}, worst {max(ratios):.2f} ({len(ratios)})\n", flush=True)


if __name__ == "__main__":
    main()

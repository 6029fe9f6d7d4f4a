"""Two threads of one process against two processes of one thread each that do the same work, route by route.

The ratio is kernel PCAs a second of the first over that of the second, so 1 means that nothing is lost to threads: what
the memory and the processor's clock take from two processes they take from both. Needs a machine with nothing else to
do; ``--rounds`` measurements take turns, and the median of the ratios is printed. The last column says
whether all results have equal bits. BLAS has as many threads as fastkpca: where LAPACK does the work (the dense route)
that matters, and there one and two of BLAS's threads round differently.

    python benchmarks/speed/threads.py [case ...] [--rounds 5] [--seconds 2]
    python benchmarks/speed/threads.py [case ...] --where [--rounds 5]

``--where``: where the time of two threads goes, in % of twice the wall time, fits with one thread and with two taking
turns in one process. "Useful" is the processor time of one thread; "more" is what two threads take beyond that, as
they change caches and hand over the interpreter; "alone": one thread works outside of loops, the other waits;
"in loops": threads wait there, for the interpreter ("lock", of the tasks that have no loops in them) or for the end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import common
import numpy as np

import fastkpca as fk
from fastkpca.base import parallel

# rows, columns, arguments of kpca
CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "monomials": (100_000, 10, {"kernel": "polynomial", "degree": 3}),
    "pivots": (50_000, 8, {"kernel": "gaussian", "sigma": 4.0, "features": "pivots", "tol": 1e-4}),
    "fourier": (200_000, 2, {"kernel": "gaussian", "sigma": 0.1, "features": "fourier"}),
    "krylov, exact, d=5": (10_000, 5, {"kernel": "gaussian", "sigma": 0.5, "products": "exact"}),
    "krylov, exact, d=64": (5000, 64, {"kernel": "gaussian", "products": "exact"}),
    "krylov, grid": (30_000, 3, {"kernel": "gaussian", "sigma": 0.3, "products": "grid"}),
    "dense": (5000, 8, {"kernel": "gaussian", "sigma": 0.5, "method": "dense"}),
}


def work(name: str, threads: int, seconds: float) -> None:
    """Warm up, wait for a line, run for so long; print how many runs a second, and what the result was."""
    n, d, options = CASES[name]
    X = np.random.default_rng(0).random((n, d))
    warnings.simplefilter("ignore")
    model = fk.kpca(X, c=10, n_threads=threads, **options)
    bits = hashlib.sha256(model.eigenvalues.tobytes() + np.asarray(model.score).tobytes()).hexdigest()
    print("ready", flush=True)
    sys.stdin.readline()
    started, runs = time.perf_counter(), 0
    while runs == 0 or time.perf_counter() - started < seconds:
        fk.kpca(X, c=10, n_threads=threads, **options)
        runs += 1
    print(json.dumps({"rate": runs / (time.perf_counter() - started), "bits": bits}))


class Watched:
    """Stands in for ``parallel._in_pool``: sums up the wall time of outer loops, and how long tasks waited."""

    def __init__(self) -> None:
        self.known, self.depth, self.inside, self.waited = parallel._in_pool, 0, 0.0, 0.0
        self.here = threading.local()

    def __call__(self, task: Callable[[int], Any], *rest: Any) -> Iterator[Any]:
        outer = threading.current_thread() is threading.main_thread() and self.depth == 0
        self.depth, self.here.nested, started = self.depth + outer, True, time.perf_counter()
        try:
            yield from self.known(lambda i: self.watched(task, i), *rest)
        finally:
            self.depth -= outer
            self.inside += outer * (time.perf_counter() - started)

    def watched(self, task: Callable[[int], Any], i: int) -> Any:
        self.here.nested, started, used = False, time.perf_counter(), time.thread_time()
        result = task(i)
        if not self.here.nested:
            self.waited += time.perf_counter() - started - (time.thread_time() - used)
        return result


def where(name: str, rounds: int) -> list[float]:
    """Seconds: wall time of two threads, processor time of one and of two, wall time in loops, waits of their tasks."""
    n, d, options = CASES[name]
    X = np.random.default_rng(0).random((n, d))
    parallel._in_pool = watched = Watched()
    found = []
    for i in range(rounds + 1):
        times = []
        for threads in (1, 2):
            watched.inside = watched.waited = 0.0
            started, used = time.perf_counter(), time.process_time()
            fk.kpca(X, c=10, n_threads=threads, **options)
            times += [time.perf_counter() - started, time.process_time() - used]
        if i:  # the first one warms up
            found.append([times[2], times[1], times[3], watched.inside, watched.waited])
    parallel._in_pool = watched.known
    return list(np.median(found, axis=0))


def print_where(cases: list[str], rounds: int) -> None:
    common.header("where the time of two threads goes, in % of twice the wall time", "one and two threads")
    print("| route | wall, ms | useful | more | alone | in loops | of that lock |")
    print("|---|---|---|---|---|---|---|")
    warnings.simplefilter("ignore")
    for name in cases:
        wall, one, two, inside, waited = where(name, rounds)
        parts = np.array([one, two - one, wall - inside, wall + inside - two, waited]) / (2.0 * wall)
        print(
            f"| {name} | {1e3 * wall:.0f} | " + " | ".join(f"{100.0 * part:.0f}" for part in parts) + " |", flush=True
        )


def rate(name: str, threads: int, processes: int, seconds: float) -> tuple[float, set[str]]:
    """(runs a second of all processes together, hashes of their results)."""
    command = [sys.executable, __file__, "--one", name, str(threads), "--seconds", str(seconds)]
    limits = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=limits)
        for _ in range(processes)
    ]
    pipes = [(x.stdin, x.stdout) for x in started]
    for _, out in pipes:
        assert out is not None
        if out.readline().strip() != "ready":
            raise RuntimeError(f"{name} failed")
    outcomes = []
    for into, _ in pipes:
        assert into is not None
        into.write("go\n")
        into.flush()
    for process in started:
        outcomes.append(json.loads(process.communicate()[0].splitlines()[-1]))
    return sum(x["rate"] for x in outcomes), {x["bits"] for x in outcomes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--where", action="store_true", help="where the time of two threads goes")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "THREADS"))
    options = parser.parse_args()
    if options.one:
        work(options.one[0], int(options.one[1]), options.seconds)
        return
    if options.where:
        # BLAS's own threads, of the dense route, are not seen
        print_where(options.cases or [x for x in CASES if x != "dense"], options.rounds)
        return
    common.header("two threads against two processes of one thread", "one and two threads")
    print("| route | N | d | fits a second, two threads | two processes | ratio | equal bits |")
    print("|---|---|---|---|---|---|---|")
    for name in options.cases or CASES:
        n, d, _ = CASES[name]
        rates, bits = [], set()
        for _ in range(options.rounds):
            (together, some), (apart, others) = (rate(name, *x, options.seconds) for x in ((2, 1), (1, 2)))
            rates.append((together, apart))
            bits |= some | others
        together, apart = np.median(rates, axis=0)
        ratio = float(np.median([a / b for a, b in rates]))
        print(f"| {name} | {n} | {d} | {together:.3g} | {apart:.3g} | {ratio:.2f} | {len(bits) == 1} |", flush=True)


if __name__ == "__main__":
    main()

"""Dask: workers that are killed at random, and the overhead against the local route.

    python benchmarks/dask_runs.py deaths [RUNS]
    python benchmarks/dask_runs.py overhead [ROWS]

``deaths``: as many runs on a cluster of three worker processes, in each of which a worker is killed (SIGKILL) at a
random task; printed is the pass that this hit and the kind of the task that had finished last. Counted are right
answers and bits equal to those of a run without deaths, intervals also to the local route's.
``overhead``: rows on disk (float64, d = 4), the local route with two threads and a cluster of two workers of one
thread, one after the other in each of three rounds.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common  # noqa: F401  (limits threads before numpy is imported)
import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, SchedulerPlugin

import fastkpca as fk

CHUNK = 1 << 19
"""Rows: a power of two, so that tasks are whole chunks."""
PARTS = {"reading", "rows", "pass", "band", "vectors", "pair", "model"}
"""Tasks that belong to a pass under another name."""
ROUTES = {
    "polynomial, moments": {"kernel": "polynomial", "c": 4, "degree": 3},
    "gaussian, pivots": {"kernel": "gaussian", "c": 3, "sigma": 20.0, "features": "pivots"},
    "gaussian, fourier": {"kernel": "gaussian", "c": 3, "sigma": 6.0, "features": "fourier"},
    "gaussian, pivots in rounds": {"kernel": "gaussian", "c": 3, "sigma": 6.0, "features": "pivots", "tol": 3e-4},
    "gaussian, krylov": {"kernel": "gaussian", "c": 3, "products": "exact"},
}


class Watch(SchedulerPlugin):
    """What the scheduler is at: the pass, the kind of the task that finished last, and how many have finished."""

    name = "watch"
    finished, pass_, kind = 0, "start", ""

    def begin(self) -> None:
        self.finished, self.pass_, self.kind = 0, "start", ""

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        found = re.match(r"fastkpca-([a-z-]*[a-z])-", str(key).lstrip("('"))
        word = found[1] if found else "reading"
        if start == "released" and word.removesuffix("-sum") not in PARTS:
            self.pass_ = word.removesuffix("-sum")
        if start == "processing" and finish == "memory":
            self.finished += 1
            self.kind = word.removeprefix(self.pass_).removeprefix("-") or "rows seen"


def bits(model: fk.KPCAModel, score: np.ndarray) -> list[bytes]:
    return [x.tobytes() for x in (model.eigenvalues, model.eigenvalue_bounds, score)]


def processes(client: Client, n: int) -> list[int]:
    """Of the workers, once there are n and all of them answer."""
    while True:
        found = client.run(os.getpid, on_error="return")
        if len(found) == n and all(isinstance(x, int) for x in found.values()):
            return list(found.values())
        time.sleep(0.02)


def deaths(runs: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 2)) * [2.0, 1.0] + [5.0, 100.0]
    far = X[:40_000].copy()
    far[20_000:20_040, 0] += 40.0 * np.arange(1, 41)
    right = equal = killed = 0
    expected: dict[str, tuple[fk.KPCAModel, list[bytes]]] = {}
    tasks: dict[str, int] = {}
    hit: Counter = Counter()
    data = {name: far if "rounds" in name else X[:6000] if "krylov" in name else X for name in ROUTES}

    def run(name: str) -> tuple[fk.KPCAModel, np.ndarray]:
        rows = data[name]
        model = fk.kpca(da.from_array(rows, chunks=(len(rows) // 12, -1)), **ROUTES[name])
        return model, model.score.compute()

    with LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster, Client(cluster) as client:  # fmt: skip
        watch = Watch()
        cluster.scheduler.add_plugin(watch)
        for name in ROUTES:
            run(name)  # workers have imported what they need
            watch.begin()
            expected[name] = (fk.kpca(data[name], **ROUTES[name]), bits(*run(name)))
            tasks[name] = watch.finished
        started = time.perf_counter()
        for i in range(runs):
            name = list(ROUTES)[i % len(ROUTES)]
            pids = processes(client, 3)
            # after so many tasks: by time, most deaths would fall into the longest stage
            victim, after = pids[rng.integers(3)], int(rng.integers(tasks[name]))
            pause = 0.02 * rng.random()
            over, done = threading.Event(), []
            watch.begin()

            def kill(victim: int, after: int, pause: float, over: threading.Event, done: list) -> None:
                while watch.finished < after and not over.is_set():
                    time.sleep(0.001)
                time.sleep(pause)
                done.append((f"{watch.pass_}: {watch.kind}", watch.pass_, over.is_set()))
                os.kill(victim, signal.SIGKILL)

            killer = threading.Thread(target=kill, args=(victim, after, pause, over, done))
            killer.start()
            start = time.perf_counter()
            try:
                model, score = run(name)
            finally:
                took = time.perf_counter() - start
                over.set()
                killer.join()
            stage, pass_, late = done[0]
            killed += not late
            hit["after the run" if late else pass_] += 1
            local, wanted = expected[name]
            fine = np.allclose(model.eigenvalues, local.eigenvalues, rtol=1e-10) and np.allclose(
                score, local.score, rtol=1e-7, atol=1e-7
            )
            right += fine
            equal += bits(model, score) == wanted and np.array_equal(model.eigenvalue_bounds, local.eigenvalue_bounds)
            print(
                f"run {i + 1:3d}  {name:28s} killed {'after' if late else 'in':5s} {stage:36s} "
                f"{took:6.2f} s   right {right}, equal bits {equal}, killed during the run {killed}",
                flush=True,
            )
        print(f"{runs} runs in {time.perf_counter() - started:.0f} s: {right} right, {equal} with equal bits; a worker")
        print(f"was killed in {killed} of them: " + ", ".join(f"{k} {n}" for k, n in hit.most_common()))


def timed(call: Callable[[], fk.KPCAModel], client: Client | None) -> tuple[fk.KPCAModel, float, float]:
    """(model, seconds, processor seconds: of this process, which has the scheduler in it, and of the workers)."""

    def processor() -> float:
        return time.process_time() + (0.0 if client is None else sum(client.run(time.process_time).values()))

    before, start = processor(), time.perf_counter()
    model = call()
    return model, time.perf_counter() - start, processor() - before


def overhead(n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        rng = np.random.default_rng(0)
        with path.open("wb") as file:
            for _ in range(0, n, 1_000_000):
                file.write(rng.standard_normal((min(n, 1_000_000), 4)).tobytes())

        def part(start: int, stop: int) -> np.ndarray:
            return np.fromfile(path, count=4 * (stop - start), offset=32 * start).reshape(-1, 4)

        blocks = []
        for i in range(0, n, CHUNK):
            stop = min(n, i + CHUNK)
            blocks.append(da.from_delayed(dask.delayed(part)(i, stop), (stop - i, 4), np.float64))
        rows = da.concatenate(blocks)
        mapped = np.memmap(path, dtype=np.float64, mode="r", shape=(n, 4))
        with LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster, Client(cluster) as client:  # fmt: skip
            arguments = [{"kernel": "polynomial", "c": 5, "degree": p, "return_scores": False} for p in (2, 3, 5)]
            fk.kpca(rows[: 4 * CHUNK], **arguments[0])
            for one in arguments:
                for _ in range(3):
                    local, here, local_cpu = timed(lambda: fk.kpca(mapped, n_threads=2, **one), None)  # noqa: B023
                    model, there, cpu = timed(lambda: fk.kpca(rows, **one), client)  # noqa: B023
                    same = np.array_equal(model.eigenvalue_bounds, local.eigenvalue_bounds)
                    print(
                        f"N = {n:.0e}, degree {one['degree']} ({local.info['n_features']} features): "
                        f"local {here:.2f} s, Dask {there:.2f} s, ratio {there / here:.2f}; "
                        f"processor seconds {local_cpu:.2f} and {cpu:.2f}, ratio {cpu / local_cpu:.2f}; "
                        f"equal bits: {same}",
                        flush=True,
                    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, number = sys.argv[1], sys.argv[2:]
    deaths(int(number[0]) if number else 100) if what == "deaths" else overhead(
        int(float(number[0])) if number else 10_000_000
    )

"""Dask: workers that are killed at random, and the overhead against the local route.

    python benchmarks/dask_runs.py deaths [RUNS]
    python benchmarks/dask_runs.py overhead [ROWS]

``deaths``: as many runs on a cluster of three worker processes, in each of which a worker is killed (SIGKILL) at a
random time; counted are right answers and equal bits. ``overhead``: rows on disk (float64, d = 4), the local route with
two threads and a cluster of two workers of one thread, one after the other in each of three rounds.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import common  # noqa: F401  (limits threads before numpy is imported)
import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import fastkpca as fk

CHUNK = 1 << 19
"""Rows: a power of two, so that tasks are whole chunks."""
ROUTES = {
    "polynomial, moments": {"kernel": "polynomial", "c": 4, "degree": 3},
    "gaussian, pivots": {"kernel": "gaussian", "c": 3, "sigma": 20.0, "features": "pivots"},
    "gaussian, fourier": {"kernel": "gaussian", "c": 3, "sigma": 6.0, "features": "fourier"},
    "gaussian, krylov": {"kernel": "gaussian", "c": 3, "products": "exact"},
}


def bits(model: fk.KPCAModel, score: np.ndarray) -> list[bytes]:
    return [x.tobytes() for x in (model.eigenvalues, model.eigenvalue_bounds, score)]


def deaths(runs: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 2)) * [2.0, 1.0] + [5.0, 100.0]
    right = equal = killed = 0
    expected: dict[str, tuple[fk.KPCAModel, list[bytes]]] = {}
    seconds: dict[str, float] = {}

    def data(name: str) -> np.ndarray:
        return X[:6000] if "krylov" in name else X

    def run(name: str) -> tuple[fk.KPCAModel, np.ndarray]:
        rows = data(name)
        model = fk.kpca(da.from_array(rows, chunks=(len(rows) // 12, -1)), **ROUTES[name])
        return model, model.score.compute()

    with LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster, Client(cluster) as client:  # fmt: skip
        for name in ROUTES:
            run(name)  # workers have imported what they need
            start = time.perf_counter()
            expected[name] = (fk.kpca(data(name), **ROUTES[name]), bits(*run(name)))
            seconds[name] = time.perf_counter() - start
        for i in range(runs):
            name = list(ROUTES)[i % len(ROUTES)]
            client.wait_for_workers(3, timeout=600)
            pids = list(client.run(os.getpid).values())
            victim, delay = pids[rng.integers(3)], rng.random() * seconds[name]
            done: list[float] = []
            start = time.perf_counter()

            def kill(pid: int, done: list[float], start: float) -> None:
                os.kill(pid, signal.SIGKILL)
                done.append(time.perf_counter() - start)

            timer = threading.Timer(delay, kill, (victim, done, start))
            timer.start()
            model, score = run(name)
            took = time.perf_counter() - start
            timer.join()
            killed += done[0] < took
            local, wanted = expected[name]
            fine = np.allclose(model.eigenvalues, local.eigenvalues, rtol=1e-10) and np.allclose(
                score, local.score, rtol=1e-7, atol=1e-7
            )
            right += fine
            equal += bits(model, score) == wanted
            print(
                f"run {i + 1:3d}  {name:20s} killed at {done[0]:5.2f} s of {took:6.2f} s   "
                f"right {right}, equal bits {equal}, killed during the run {killed}",
                flush=True,
            )


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

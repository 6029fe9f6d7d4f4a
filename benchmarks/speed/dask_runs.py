"""Dask: workers that are killed at random, and the overhead against the local route.

    python benchmarks/speed/dask_runs.py deaths [RUNS]
    python benchmarks/speed/dask_runs.py overhead [ROWS ...]
    python benchmarks/speed/dask_runs.py constants

``deaths``: as many runs on a cluster of three worker processes, in each of which a worker is killed (SIGKILL) at a
random task; printed is the pass that this hit and the kind of the task that had finished last. Counted are right
answers (as without deaths, and intervals that overlap the local route's, which may be of second order) and equal bits.
``overhead``: rows on disk (float64, d = 4), the local route with two threads and a cluster of two workers of one
thread, one after the other in each of three rounds; of several sizes also the cost of no rows and of each million.
``constants``: what a million rows cost, bytes of a partial sum, tasks of a pass, the scheduler's time for one, bytes
moved, and the arithmetic of docs/dask.md for 1e12 rows on 1000 workers.
"""

from __future__ import annotations

import os
import pickle
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

import common  # (limits threads before numpy is imported)
import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, SchedulerPlugin

import fastkpca as fk

CHUNK = 1 << 19
"""Rows: a power of two, so that tasks are whole chunks."""
ROUNDS = 3
PARTS = {"reading", "rows", "pass", "band", "vectors", "pair", "model"}
"""Tasks that belong to a pass under another name."""
ROUTES = {
    "polynomial, moments": {"kernel": "polynomial", "c": 4, "degree": 3},
    "gaussian, pivots": {"kernel": "gaussian", "c": 3, "sigma": 20.0, "features": "pivots"},
    "gaussian, fourier": {"kernel": "gaussian", "c": 3, "sigma": 6.0, "features": "fourier"},
    "gaussian, pivots in rounds": {"kernel": "gaussian", "c": 3, "sigma": 6.0, "features": "pivots", "tol": 1e-4},
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


def processes(cluster: LocalCluster, client: Client, n: int) -> list[int]:
    """Of the workers, once there are n and all of them answer."""
    cluster.scale(n)
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
    expected: dict[str, tuple[fk.KPCAModel, np.ndarray]] = {}
    local: dict[str, np.ndarray] = {}
    tasks: dict[str, int] = {}
    hit: Counter = Counter()
    data = {name: far if "rounds" in name else X[:6000] if "krylov" in name else X for name in ROUTES}

    def run(name: str) -> tuple[fk.KPCAModel, np.ndarray]:
        rows = data[name]
        model = fk.kpca(da.from_array(rows, chunks=(len(rows) // 12, -1)), **ROUTES[name])
        return model, model.score.compute()

    with LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster, Client(cluster) as client:  # fmt: skip
        watch = Watch()
        cluster.scheduler.add_plugin(watch)
        for name in ROUTES:
            run(name)  # workers have imported what they need
            watch.begin()
            expected[name] = run(name)
            tasks[name] = watch.finished
            local[name] = fk.kpca(data[name], **ROUTES[name]).eigenvalue_bounds
        started = time.perf_counter()
        for i in range(runs):
            name = list(ROUTES)[i % len(ROUTES)]
            pids = processes(cluster, client, 3)
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
            alone, alone_score = expected[name]
            low, high = np.stack([model.eigenvalue_bounds, local[name]]).transpose(2, 0, 1)
            fine = (low.max(axis=0) <= high.min(axis=0)).all()
            fine &= np.allclose(model.eigenvalues, alone.eigenvalues, rtol=1e-10)
            fine &= np.allclose(score, alone_score, rtol=1e-7, atol=1e-7)
            right += fine
            equal += bits(model, score) == bits(alone, alone_score)
            print(
                f"run {i + 1:3d}  {name:28s} killed {'after' if late else 'in':5s} {stage:36s} "
                f"{took:6.2f} s   right {right}, equal bits {equal}, killed during the run {killed}",
                flush=True,
            )
        print(f"{runs} runs in {time.perf_counter() - started:.0f} s: {right} right, {equal} with equal bits; a worker")
        print(f"was killed in {killed} of them: " + ", ".join(f"{k} {n}" for k, n in hit.most_common()))


def timed(call: Callable[[], fk.KPCAModel], client: Client | None) -> tuple[fk.KPCAModel, float, float, float]:
    """(model, seconds, processor seconds of this process, which has the scheduler in it, and of the workers)."""

    def workers() -> float:
        return 0.0 if client is None else sum(client.run(time.process_time).values())

    theirs, own, start = workers(), time.process_time(), time.perf_counter()
    model = call()
    took, own = time.perf_counter() - start, time.process_time() - own
    return model, took, own, workers() - theirs


def opened(path: str, start: int, stop: int) -> np.ndarray:
    """A chunk as Dask's guide reads one from a file: mapped where it is used."""
    return np.memmap(path, dtype=np.float64, mode="r", offset=32 * start, shape=(stop - start, 4))


def on_disk(path: Path, n: int) -> da.Array:
    """n rows of four float64, written a million at a time, as a Dask array."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(0, n, 1_000_000):
            file.write(rng.standard_normal((min(n, 1_000_000), 4)).tobytes())
    chunk = min(CHUNK, 1 << max(14, (n // 6).bit_length() - 1))  # a power of two, and six to twelve for few rows
    read, ends = dask.delayed(opened), [min(n, i + chunk) for i in range(0, n, chunk)]
    starts = range(0, n, chunk)
    return da.concatenate(
        [da.from_delayed(read(str(path), i, j), (j - i, 4), np.float64) for i, j in zip(starts, ends)]
    )


def overhead(*sizes: int) -> None:
    arguments = [{"kernel": "polynomial", "c": 5, "degree": p, "return_scores": False} for p in (2, 3, 5)]
    found: dict[tuple[int, int], np.ndarray] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        for n in sizes:
            path = Path(folder) / "rows"
            rows = on_disk(path, n)
            mapped = np.memmap(path, dtype=np.float64, mode="r", shape=(n, 4))
            for one in arguments:
                fk.kpca(rows[:100_000], **one)
                seconds = []
                for _ in range(ROUNDS):
                    local, here, local_cpu, _ = timed(lambda: fk.kpca(mapped, n_threads=2, **one), None)  # noqa: B023
                    model, there, own, theirs = timed(lambda: fk.kpca(rows, **one), client)  # noqa: B023
                    assert np.array_equal(model.eigenvalue_bounds, local.eigenvalue_bounds)
                    seconds.append((here, there, there / here, local_cpu, own, theirs, (own + theirs) / local_cpu))
                here, there, ratio, local_cpu, own, theirs, cpu = np.median(seconds, axis=0)
                found[n, one["degree"]] = np.array([here, there, local_cpu, own + theirs])
                least = np.min(seconds, axis=0)
                print(
                    f"N = {n:.0e}, degree {one['degree']} (D = {local.info['n_features']:3d}): local {here:.2f} s, "
                    f"Dask {there:.2f} s, ratio {ratio:.2f} (of the fastest {least[1] / least[0]:.2f}); "
                    f"processor seconds {local_cpu:6.2f} and {own:.2f} + {theirs:6.2f}, ratio {cpu:.2f}; equal bits",
                    flush=True,
                )
            path.unlink()
    if len(sizes) > 1:
        few, many = min(sizes), max(sizes)
        for one in arguments:
            a, b = found[few, one["degree"]], found[many, one["degree"]]
            slope = (b - a) / (many - few)
            fixed = a - few * slope
            words = [f"{f:.2f} s + {1e6 * s:.3f} s for each 1e6 rows" for f, s in zip(fixed, slope)]
            print(f"degree {one['degree']}: wall local {words[0]}, Dask {words[1]}")
            print(f"          processor seconds local {words[2]}, Dask {words[3]}")


PAPER = {
    "polynomial, degree 2": {"kernel": "polynomial", "degree": 2, "offset": 1.0},
    "polynomial, degree 3": {"kernel": "polynomial", "degree": 3, "offset": 1.0},
    "polynomial, degree 5": {"kernel": "polynomial", "degree": 5, "offset": 1.0},
    "Gaussian, pivots, sigma 3": {"kernel": "gaussian", "sigma": 3.0, "features": "pivots", "tol": 1e-3},
}
MANY, WORKERS = 10**12, 1000


def incoming(dask_worker: Any = None) -> int:
    """Bytes that other workers have sent to this one."""
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def simple(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    """Rows that cost nothing to make."""
    return np.broadcast_to(np.arange(4.0) + block_info[0]["chunk-location"][0], (1 << 14, 4))


def constants() -> None:
    """What the arithmetic of docs/dask.md needs: measured, then multiplied."""
    common.header("constants for Dask: one core, rows of 4 float32 in memory")
    X = np.random.default_rng(0).standard_normal((2_000_000, 4), dtype=np.float32)
    cost: dict[str, list[float]] = {}
    for name, one in PAPER.items():
        best = [np.inf, np.inf]
        for _ in range(3):
            used = []
            for n in (400_000, 2_000_000):  # the difference: what each fit costs whatever its N falls out
                start = time.process_time()
                model = fk.kpca(X[:n], c=5, n_threads=1, return_scores=False, keep_moments=True, **one)
                middle = time.process_time()
                fk.kpca_project(model, X[:n], n_threads=1)
                used.append((middle - start, time.process_time() - middle))
            best = [min(b, (y - x) / 1.6) for b, x, y in zip(best, *used)]
        size = len(pickle.dumps(model._moments.state(), protocol=5))
        cost[name] = [*best, size]
        print(
            f"{name}: D = {model.info['n_features']}, {best[0]:.3f} s for each 1e6 rows of a fit, {best[1]:.3f} s for "
            f"scores (c = 5), {size} bytes of a partial sum, {len(pickle.dumps(model._moments.map))} of the map",
            flush=True,
        )
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster, Client(cluster) as client:  # fmt: skip
        watch = Watch()
        cluster.scheduler.add_plugin(watch)
        for chunks in (250, 2000):
            rows = da.map_blocks(
                simple, da.zeros((chunks << 14, 1), chunks=(1 << 14, 1)), chunks=(1 << 14, 4), dtype=float
            )
            fk.kpca(rows[: 1 << 18], "polynomial", 5, degree=2)
            watch.begin()
            moved = sum(client.run(incoming).values())
            loop, own = client.run_on_scheduler(time.thread_time), time.thread_time()
            fk.kpca(rows, "polynomial", 5, degree=2, offset=1.0, return_scores=False)
            loop, own = client.run_on_scheduler(time.thread_time) - loop, time.thread_time() - own
            moved = sum(client.run(incoming).values()) - moved
            n = watch.finished
            print(
                f"{chunks} chunks, two passes: {n} tasks, {n / 2 / chunks:.2f} a chunk and pass; "
                f"{1e3 * loop / n:.2f} ms of the scheduler's thread a task, {1e3 * own / n:.2f} ms to make the graph; "
                f"{moved / 1e6:.2f} MB moved between two workers, {moved / 2 / chunks:.0f} bytes a chunk and pass",
                flush=True,
            )
            each = (loop + own) / n
        per_chunk = n / 2 / chunks
    print(f"\non paper: {MANY:.0e} rows, {WORKERS} workers of one core, chunks of 2^25 rows (512 MiB)")
    leaves = -(-MANY >> 25)
    for name, (fit, scores, size) in cost.items():
        per_worker = MANY / WORKERS / 1e6
        print(
            f"{name}: compute of a fit {fit * per_worker:.0f} s, of the scores {scores * per_worker:.0f} s; "
            f"{leaves * size / 1e9:.2f} GB moved in the moments' pass, {leaves / WORKERS * size / 1e6:.2f} MB each; "
            f"scheduler {each * per_chunk * leaves:.0f} s a pass",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # on a busy machine a worker takes longer than 15 s to come back, and the cluster would forget it
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    what, numbers = sys.argv[1], [int(float(x)) for x in sys.argv[2:]]
    if what == "deaths":
        deaths(*numbers or [100])
    elif what == "constants":
        constants()
    else:
        overhead(*numbers or [10_000_000])

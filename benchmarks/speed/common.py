"""What every benchmark prints, and how it times: one thread, medians, ratios taken in one run."""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before numpy loads its BLAS

import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import fastkpca

DATA = Path(os.environ.get("FASTKPCA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def machine(threads: str = "one thread") -> str:
    """Processor and versions, so that a table can be compared with another one."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(x.split(":")[1].strip() for x in lines if x.startswith("model name"))
        wide = any("avx512f" in x for x in lines if x.startswith("flags"))
        processor += " (AVX-512)" if wide else ""
    except (OSError, StopIteration):
        pass
    versions = f"fastkpca {fastkpca.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    try:
        import sklearn

        versions += f", scikit-learn {sklearn.__version__}"
    except ImportError:
        pass
    return f"{processor}, {os.cpu_count()} processors, {threads} used; Python {platform.python_version()}, {versions}"


def header(what: str, threads: str = "one thread") -> None:
    print(f"# {what}\n# {machine(threads)}", flush=True)


def alternate(
    tasks: dict[str, Callable[[], Any]], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each task; the tasks take turns, so that a noisy moment hits all of them alike.

    ``clock``: time.process_time for tasks of one thread, where other work on the machine is not to count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()  # warm up: memory, caches, lazy imports
    for _ in range(repeats):
        for name, task in tasks.items():
            started = clock()
            task()
            seconds[name].append(clock() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_memory() -> float:
    """Most memory this process ever held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would begin with what the parent process held when it forked
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_fresh_process(script: str, *arguments: str) -> str:
    """Standard output of ``python script arguments`` in a new process: for peak memory that is the task's own."""
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, check=False, env=os.environ
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


class Worker:
    """A version in a process of its own, which answers each question with a line of JSON: ``script --serve``."""

    def __init__(self, python: str, script: str):
        self.process = subprocess.Popen(
            [python, script, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *asked: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

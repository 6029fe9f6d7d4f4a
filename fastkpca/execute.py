"""How work runs: a thread pool over tasks that release the GIL, one BLAS cap, and sums in a fixed order.

Results are equal bit for bit at any number of threads: what a task is depends on shapes alone, never on the number of
threads, and results are combined along a tree fixed by the number of tasks. Inside tasks BLAS runs one thread.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

import numpy as np
import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the controller below looks for libraries)
from threadpoolctl import ThreadpoolController

__all__ = ["Progress", "blas_threads", "reporter", "resolve_threads", "run", "threads_for", "tile_rows", "tree_reduce"]

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Called as progress(stage, done, total), from the calling thread."""


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads to use: as asked for, or the number of processors this process may run on."""
    if n_threads is None:
        try:
            return max(1, len(os.sched_getaffinity(0)))
        except AttributeError:  # not on this platform
            return max(1, os.cpu_count() or 1)
    if isinstance(n_threads, bool) or not isinstance(n_threads, (int, np.integer)):
        raise TypeError(f"n_threads is {n_threads!r}; give a positive whole number, or None for all processors")
    if n_threads < 1:
        raise ValueError(f"n_threads is {n_threads}; give a positive whole number, or None for all processors")
    return int(n_threads)


def threads_for(kernel: Any, n_threads: int | None) -> int:
    """``resolve_threads``, and one for a kernel that says that it is not thread-safe."""
    threads = resolve_threads(n_threads)
    return threads if kernel.thread_safe else 1


class _BlasCap:
    """One reference-counted cap for the process.

    Overlapping ``threadpool_limits`` contexts restore each other's limits in the wrong order and leave BLAS at one
    thread for good; here the first to enter sets the cap and the last to leave restores what was there before.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limiter: Any = None
        self._controller: ThreadpoolController | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                if self._controller is None:  # finding the libraries takes milliseconds: once
                    self._controller = ThreadpoolController()
                self._limiter = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                limiter, self._limiter = self._limiter, None
                limiter.restore_original_limits()


_blas_cap = _BlasCap()


@contextmanager
def blas_threads() -> Iterator[None]:
    """BLAS limited to one thread while inside; nests and overlaps safely."""
    with _blas_cap:
        yield


@contextmanager
def reporter(progress: bool | Progress, stream: TextIO | None = None) -> Iterator[Progress | None]:
    """A callable from what a user gives as ``progress``: theirs, a line on stderr that rewrites itself, or None."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield None
        return
    out = sys.stderr if stream is None else stream
    last_time, last_length = 0.0, 0

    def line(stage: str, done: int, total: int) -> None:
        nonlocal last_time, last_length
        now = time.monotonic()
        if now - last_time < 0.1 and done < total:
            return
        bar = "#" * (30 * done // max(1, total))
        text = f"{stage:<10} [{bar:<30}] {100 * done // max(1, total):3d} %"
        last_time, last_length = now, len(text)
        out.write("\r" + text)
        out.flush()

    try:
        yield line
    finally:
        if last_length:
            out.write("\r" + " " * last_length + "\r")
            out.flush()


def tile_rows(width: int, *, entries: int = 1 << 18, least: int = 64, most: int = 8192) -> int:
    """Rows of a tile whose widest array has ``width`` columns: a power of two, by shape alone (never by threads)."""
    rows = max(least, min(most, entries // max(1, width)))
    return 1 << (rows.bit_length() - 1)


def run(
    task: Callable[[int], T],
    n_tasks: int | None,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
    stage: str = "",
    window: int | None = None,
) -> Iterator[T]:
    """Yield task(0), task(1), ... in order, computed by ``n_threads`` threads, at most ``window`` ahead.

    ``n_tasks`` None: until a task returns None, one after the other (rows that nobody has counted yet).

    The first exception of a task (or Ctrl-C in the calling thread) stops the submission of more and is raised once
    the tasks that already run have ended; tasks are small, so that takes a fraction of a second.
    """
    with _blas_cap:
        if n_tasks is None:
            i = 0
            while (result := task(i)) is not None:
                yield result
                i += 1
            return
        if n_threads == 1 or n_tasks <= 1:
            for i in range(n_tasks):
                result = task(i)
                if progress is not None:
                    progress(stage, i + 1, n_tasks)
                yield result
            return
        window = window or 2 * n_threads
        with ThreadPoolExecutor(min(n_threads, n_tasks), thread_name_prefix="fastkpca") as pool:
            waiting: deque = deque()
            submitted = 0
            try:
                for i in range(n_tasks):
                    while submitted < n_tasks and len(waiting) < window:
                        waiting.append(pool.submit(task, submitted))
                        submitted += 1
                    result = waiting.popleft().result()
                    if progress is not None:
                        progress(stage, i + 1, n_tasks)
                    yield result
            finally:
                for future in waiting:
                    future.cancel()


def tree_reduce(
    task: Callable[[int], T],
    n_tasks: int | None,
    combine: Callable[[T, T], T],
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
    stage: str = "",
) -> T:
    """Combine task(0), ..., task(n_tasks - 1) along the fixed binary tree over their numbers.

    Holds at most log2(n_tasks) partial results beside those in flight.
    """
    if n_tasks is not None and n_tasks < 1:
        raise ValueError("nothing to reduce")
    stack: list[tuple[int, T]] = []
    for result in run(task, n_tasks, n_threads=n_threads, progress=progress, stage=stage):
        level = 0
        while stack and stack[-1][0] == level:
            _, left = stack.pop()
            result = combine(left, result)
            level += 1
        stack.append((level, result))
    if not stack:
        raise ValueError("nothing to reduce")
    _, total = stack.pop()
    while stack:
        _, left = stack.pop()
        total = combine(left, total)
    return total

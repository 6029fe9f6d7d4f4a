"""Parallel loops: a thread pool over tasks that release the GIL, one BLAS cap, and sums in a fixed order.

Results are equal bit for bit at any number of threads: what a task is depends on shapes alone, never on the number of
threads, and results are combined along a tree fixed by the number of tasks. Inside tasks BLAS runs one thread.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

import numpy as np

from . import process_memory
from .blas import allowed_blas_threads, blas_threads, with_all_threads, without_fork
from .progress import Progress, reporter
from .workers import INTERRUPT_SECONDS, Loop, checkpoint

__all__ = [
    "FLOPS_PER_NUMBER",
    "Progress",
    "blas_threads",
    "checkpoint",
    "columns",
    "each",
    "even_rows",
    "interruptible",
    "processors",
    "reporter",
    "resolve_threads",
    "run",
    "shares",
    "side_by_side",
    "threads_for",
    "tile_rows",
    "tree_reduce",
    "with_all_threads",
    "without_fork",
]

T = TypeVar("T")


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads to use: as asked for, or `processors`.

    Raises MemoryError where RLIMIT_AS is too low for n threads.
    """
    if n_threads is None:
        n_threads = processors()
    if isinstance(n_threads, bool) or not isinstance(n_threads, (int, np.integer)):
        raise TypeError(f"n_threads is {n_threads!r}; give a positive whole number, or None for all processors")
    if n_threads < 1:
        raise ValueError(f"n_threads is {n_threads}; give a positive whole number, or None for all processors")
    process_memory.available(int(n_threads))
    return int(n_threads)


def processors() -> int:
    """Number of threads this process may use: its processors, and at most the threads of BLAS.

    joblib's loky and users (OMP_NUM_THREADS, threadpoolctl) limit BLAS where processes share the processors. A worker
    of a pool of ``multiprocessing``, which is a daemon, has one: the other workers have the others.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.current_process().daemon:
        return 1
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        count = os.cpu_count() or 1
    return max(1, min(count, allowed_blas_threads() or count))


def threads_for(kernel: Any, n_threads: int | None) -> int:
    """``resolve_threads``, and one for a kernel that says that it is not thread-safe."""
    threads = resolve_threads(n_threads)
    return threads if kernel.thread_safe else 1


def interruptible(call: Callable[[], T]) -> T:
    """call(), for a long call into LAPACK: Ctrl-C is raised at once, not when the call has ended.

    Nothing can stop LAPACK. It goes on in a thread of its own until it ends (a second for 3000 rows, a minute for
    12000, the most that the default memory limit allows) and keeps its matrix that long. Nothing waits for it, not
    even the interpreter's exit. What ``call`` writes to must not be used by anything else.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()  # Ctrl-C is raised in the main thread alone
    outcome: list[Any] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.extend((True, call()))
        except BaseException as error:
            outcome.extend((False, error))
        finally:
            done.set()

    thread = threading.Thread(target=work, name="fastkpca-lapack", daemon=True)
    thread.start()
    done.wait()
    thread.join()
    fine, result = outcome
    if fine:
        return result
    raise result


def tile_rows(width: int, *, entries: int = 1 << 18, least: int = 64, most: int = 8192) -> int:
    """Rows of a tile whose widest array has ``width`` columns: a power of two, by shape alone (never by threads)."""
    rows = max(least, min(most, entries // max(1, width)))
    return 1 << (rows.bit_length() - 1)


def even_rows(n: int, step: int) -> int:
    """At most ``step`` rows, of which n rows are an even number of tiles, nearly equal ones: two threads that share
    them end at about the same time. A multiple of 16, by shape alone."""
    if n <= step:
        return step
    count = 2 * -(-n // (2 * step))
    return min(step, 16 * -(-n // (16 * count)))


# Measured: 0.03 ns a multiplication of a matrix product, 50 us until another thread has begun and its end is known.
MIN_TASK_FLOPS = 1 << 21
"""Multiplications that take as long as to hand them to a thread."""
FLOPS_PER_NUMBER = 16
"""Multiplications that take as long as to copy a number, to change it in place, or to make a kernel value."""


def shares(n: int, multiplications: float, *, most: int = 4, least: int = 1024) -> list[slice]:
    """range(n) in equal parts, for the tasks of some work on n rows: an even number, by shapes alone."""
    if n < 2 * least:
        return [slice(0, n)]
    count = 2 * (int(min(n // least, multiplications // MIN_TASK_FLOPS, most)) // 2) or 1
    step = 64 * -(-n // (64 * count)) if count > 1 else n
    return [slice(i, min(n, i + step)) for i in range(0, n, step)]


def columns(k: int, multiplications: float, *, most: int = 4) -> list[slice]:
    """range(k) in nearly equal parts, for the tasks of some work on each of k columns: by shapes alone."""
    count = max(1, min(k, most, int(multiplications // MIN_TASK_FLOPS)))
    ends = [k * i // count for i in range(count + 1)]
    return [slice(*ends[i : i + 2]) for i in range(count)]


def run(
    task: Callable[[int], T],
    n_tasks: int | None,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
    stage: str = "",
) -> Iterator[T]:
    """Yield task(0), task(1), ... in order, computed by this and ``n_threads`` - 1 other threads.

    At most twice as many tasks as threads are ahead of the one whose result is yielded. ``n_tasks`` None: until a task
    returns None, one after the other (rows that nobody has counted yet).

    The first exception of a task, one in the calling thread, or a generator that is closed stops the submission of
    more, and is raised once the tasks that already run have ended: tasks are small, and long ones call ``checkpoint``,
    so that takes a fraction of a second. Ctrl-C waits ``INTERRUPT_SECONDS`` seconds at most.
    """

    def report(done: int) -> None:
        if progress is not None and n_tasks is not None:
            progress(stage, done, n_tasks)

    with blas_threads():
        if n_tasks is None or min(n_threads, n_tasks) <= 1:
            yield from _in_turn(task, n_tasks, report)
        else:
            yield from _in_pool(task, n_tasks, min(n_threads, n_tasks), report)


def _in_turn(task: Callable[[int], T], n_tasks: int | None, report: Callable[[int], None]) -> Iterator[T]:
    for i in count() if n_tasks is None else range(n_tasks):
        checkpoint()
        result = task(i)
        if n_tasks is None and result is None:
            return
        report(i + 1)
        yield result


def _in_pool(task: Callable[[int], T], n_tasks: int, n_threads: int, report: Callable[[int], None]) -> Iterator[T]:
    loop = Loop(task, n_tasks, n_threads)
    patience: float | None = None
    try:
        loop.start()
        for i in range(n_tasks):
            result = loop.result(i)
            report(i + 1)
            yield result
    except (KeyboardInterrupt, GeneratorExit):  # the latter: it was raised where the results are used
        patience = INTERRUPT_SECONDS
        raise
    finally:
        loop.end(patience)


def each(task: Callable[[int], object], n_tasks: int, *, n_threads: int = 1, **options: Any) -> None:
    """``run`` for tasks that write their results themselves."""
    for _ in run(task, n_tasks, n_threads=n_threads, **options):
        pass


def side_by_side(*calls: Callable[[], Any], n_threads: int) -> list[Any]:
    """The results of independent calls, which may themselves run loops."""
    if n_threads == 1:
        return [call() for call in calls]
    return list(run(lambda i: calls[i](), len(calls), n_threads=n_threads))


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

    Holds at most log2(n_tasks) partial results in addition to those in flight.
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

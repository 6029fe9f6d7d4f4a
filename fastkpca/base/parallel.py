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
from typing import Any, TypeVar

import numpy as np
import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the controller below looks for libraries)
from threadpoolctl import ThreadpoolController

from . import room
from .progress import Progress, reporter

__all__ = [
    "Progress",
    "blas_threads",
    "checkpoint",
    "interruptible",
    "reporter",
    "resolve_threads",
    "run",
    "threads_for",
    "tile_rows",
    "tree_reduce",
    "with_all_threads",
    "without_fork",
]

T = TypeVar("T")


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads to use: as asked for, or the number of processors this process may run on.

    Raises MemoryError where RLIMIT_AS leaves no room for so many.
    """
    if n_threads is None:
        try:
            n_threads = len(os.sched_getaffinity(0))
        except AttributeError:  # not on this platform
            n_threads = os.cpu_count() or 1
    if isinstance(n_threads, bool) or not isinstance(n_threads, (int, np.integer)):
        raise TypeError(f"n_threads is {n_threads!r}; give a positive whole number, or None for all processors")
    if n_threads < 1:
        raise ValueError(f"n_threads is {n_threads}; give a positive whole number, or None for all processors")
    room.available(int(n_threads))
    return int(n_threads)


def threads_for(kernel: Any, n_threads: int | None) -> int:
    """``resolve_threads``, and one for a kernel that says that it is not thread-safe."""
    threads = resolve_threads(n_threads)
    return threads if kernel.thread_safe else 1


class _BlasCap:
    """One cap for the process, as long as anybody holds it.

    Overlapping ``threadpool_limits`` contexts restore each other's limits in the wrong order and leave BLAS at one
    thread for good; here the first to come sets the cap and the last to leave restores what was there before.

    Ctrl-C may strike between any two steps of what follows, and BLAS must not be left at one thread. So each step can
    be repeated, what was there before is noted before anything is changed, and whoever holds the cap is an object: it
    is let go when that object is gone, however its owner was left.

    A fork waits until no other thread is between two steps. Its child has the calling thread alone: there the holds of
    all other threads are let go.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a hold may be collected, and let go, while its own thread is in here
        self._holders: dict[int, int] = {}  # by its id, the thread that took it
        self._before: list[tuple[Any, int]] = []
        self._controller: ThreadpoolController | None = None

    def take(self, holder: int) -> None:
        with self._lock:
            self._holders[holder] = threading.get_ident()
            if not self._before:
                if self._controller is None:  # finding the libraries takes milliseconds: once
                    self._controller = ThreadpoolController()
                blas = [x for x in self._controller.lib_controllers if x.user_api == "blas"]
                self._before = [(x, x.get_num_threads()) for x in blas]
            for library, _ in self._before:
                _limit(library, 1)

    def leave(self, holder: int) -> None:
        with self._lock:
            self._holders.pop(holder, None)
            if not self._holders:
                self._restore()
                self._before = []

    def lift(self, owner: int) -> None:
        """For one call: BLAS as before the cap, where no thread but ``owner`` holds it."""
        with self._lock:
            if all(thread == owner for thread in self._holders.values()):
                self._restore()

    def lower(self) -> None:
        with self._lock:
            if self._holders:
                for library, _ in self._before:
                    _limit(library, 1)

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._lock = threading.RLock()
        own = threading.get_ident()
        self._holders = {holder: thread for holder, thread in self._holders.items() if thread == own}
        if not self._holders:
            self._restore()
            self._before = []

    def _restore(self) -> None:
        for library, threads in self._before:
            _limit(library, threads)


def _limit(library: Any, threads: int) -> None:
    if library.get_num_threads() == threads:
        return
    # newer versions of threadpoolctl let one thread alone set limits, and ignore all others without a word
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is None:
        library.set_num_threads(threads)
        return
    clear(force=True)
    library.set_num_threads(threads)
    clear(force=True)


class _ForkGate:
    """A fork waits here for calls of other threads into libraries that cannot bear one: see ``without_fork``."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._calls: dict[int, int] = {}  # by its id, the thread of a call

    def enter(self, call: int) -> None:
        with self._changed:
            self._calls[call] = threading.get_ident()

    def leave(self, call: int) -> None:
        with self._changed:
            self._calls.pop(call, None)
            self._changed.notify_all()

    def before_fork(self) -> None:
        self._changed.acquire()
        own = threading.get_ident()
        while any(thread != own for thread in self._calls.values()):
            self._changed.wait()

    def after_fork(self) -> None:
        self._changed.release()

    def after_fork_in_child(self) -> None:
        self._changed = threading.Condition(threading.RLock())


_blas_cap = _BlasCap()
_fork_gate = _ForkGate()
if sys.platform != "win32":
    for _place in (_blas_cap, _fork_gate):  # the last is the first that a fork comes to
        os.register_at_fork(
            before=_place.before_fork,
            after_in_parent=_place.after_fork,
            after_in_child=_place.after_fork_in_child,
        )


class without_fork:
    """Inside, no other thread forks: it waits for the end.

    For calls into libraries with locks of their own, which a fork would leave locked in the child for ever; and for
    BLAS by several threads, since OpenBLAS ends these at a fork, and who waits for one of them waits for ever. As with
    ``_Hold``, the wait ends when the object is gone, however its owner was left.
    """

    def __init__(self) -> None:
        _fork_gate.enter(id(self))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        _fork_gate.leave(id(self))

    def __del__(self) -> None:
        _fork_gate.leave(id(self))


class _Hold:
    """A hold on the cap, from its making until it is left or gone."""

    left = False

    def __init__(self) -> None:
        _blas_cap.take(id(self))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        _blas_cap.leave(id(self))
        self.left = True

    def __del__(self) -> None:
        if not self.left:
            _blas_cap.leave(id(self))


@contextmanager
def blas_threads() -> Iterator[None]:
    """BLAS limited to one thread while inside; nests and overlaps safely."""
    with _Hold():
        yield


def with_all_threads(call: Callable[[], T]) -> Callable[[], T]:
    """``call`` for ``interruptible``: a call into LAPACK by all of BLAS's threads, although its caller holds the cap.

    In the main thread the cap stays: Ctrl-C there could leave it lifted.
    """
    owner = threading.get_ident()

    def lifted() -> T:
        if threading.current_thread() is threading.main_thread():
            return call()
        with without_fork():
            _blas_cap.lift(owner)
            try:
                return call()
            finally:
                _blas_cap.lower()

    return lifted


class _Stopped(BaseException):
    """Raised in a pool's thread whose result nobody waits for any more; ends there."""


class _Here(threading.local):
    stop: threading.Event | None = None  # set where the run that this thread works for was interrupted


_here = _Here()


def checkpoint() -> None:
    """For tasks that consist of many steps: ends the task here where the run was interrupted meanwhile."""
    if _here.stop is not None and _here.stop.is_set():
        raise _Stopped


def interruptible(call: Callable[[], T]) -> T:
    """call(), for one call into LAPACK or the like that takes long: Ctrl-C is raised at once, not when it has ended.

    Nothing can stop LAPACK. It goes on in a thread of its own until it has ended (a second for 3000 rows, a minute for
    12000, as many as the default memory limit lets the plan take), holding its matrix that long; nobody waits for it,
    not even the interpreter's exit. ``call`` must own what it writes to.
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

    The first exception of a task, one in the calling thread, or a generator that is closed stops the submission of
    more, and is raised once the tasks that already run have ended: tasks are small, and long ones call ``checkpoint``,
    so that takes a fraction of a second. Ctrl-C waits ``PATIENCE`` seconds at most.
    """
    with _Hold():
        if n_tasks is None:
            i = 0
            checkpoint()
            while (result := task(i)) is not None:
                yield result
                i += 1
                checkpoint()
            return
        n_threads = min(n_threads, n_tasks)
        if n_threads <= 1:
            for i in range(n_tasks):
                checkpoint()
                result = task(i)
                if progress is not None:
                    progress(stage, i + 1, n_tasks)
                yield result
            return
        window = window or 2 * n_threads
        stop = threading.Event()

        def work(i: int) -> T:
            _here.stop = stop
            checkpoint()
            return task(i)

        pool = ThreadPoolExecutor(n_threads, thread_name_prefix="fastkpca")
        patience: float | None = None
        waiting: deque = deque()
        submitted = 0
        try:
            for i in range(n_tasks):
                while submitted < n_tasks and len(waiting) < window:
                    waiting.append(pool.submit(work, submitted))
                    submitted += 1
                result = waiting.popleft().result()
                if progress is not None:
                    progress(stage, i + 1, n_tasks)
                yield result
        except RuntimeError as error:
            if "start new thread" in str(error):
                raise MemoryError(f"no memory for the stack of a thread ({error}); n_threads=1 needs none") from error
            raise
        except (KeyboardInterrupt, GeneratorExit):  # the latter: it was raised where the results are used
            patience = PATIENCE
            raise
        finally:
            stop.set()
            threads = list(pool._threads)
            pool.shutdown(wait=patience is None, cancel_futures=True)
            if patience is not None:
                end = time.monotonic() + patience
                for thread in threads:
                    thread.join(max(0.0, end - time.monotonic()))


PATIENCE = 0.25
"""Seconds that Ctrl-C waits for tasks to end; what is left of one then ends on its own, and its result is dropped."""


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

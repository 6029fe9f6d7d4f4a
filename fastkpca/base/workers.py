"""Threads that help a loop over tasks: one pool for the process, as long as anybody holds the cap on BLAS's threads.

The thread that runs a loop takes tasks itself, and needs none of the pool's: where these come late, cannot be started,
or were ended by a fork, it does all the work alone. So loops may be nested, and a loop of short tasks is not slower
than without threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")

INTERRUPT_SECONDS = 0.25
"""Seconds that Ctrl-C waits for tasks to end; what is left of one then ends on its own, and its result is dropped."""


class _Stopped(BaseException):
    """Raised in a pool's thread whose result nobody waits for any more; ends there."""


class _Here(threading.local):
    stop: threading.Event | None = None  # set where the loop that this thread helps was interrupted
    pool: _Pool | None = None  # of the loop that has this thread inside of one of its tasks


_here = _Here()


def checkpoint() -> None:
    """For tasks of many steps, between two of them: ends the task where its loop was interrupted."""
    if _here.stop is not None and _here.stop.is_set():
        raise _Stopped


class _Pool:
    """Threads that wait for loops to help."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.loops: SimpleQueue[Loop[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self.wanted = 0  # threads, by all loops that run

    def help(self, loop: Loop[Any], n_threads: int, more: int) -> None:
        """Have n threads help; for this loop the pool may start ``more``."""
        with self._lock:
            self.wanted += more
            for _ in range(self.wanted - len(self.threads)):
                thread = threading.Thread(target=self._work, name="fastkpca", daemon=True)
                self.threads.append(thread)  # first: Ctrl-C may come while it starts
                try:
                    thread.start()
                except RuntimeError:  # no memory for its stack
                    self.threads.pop()
                    break
        for _ in range(min(n_threads, len(self.threads))):
            self.loops.put(loop)

    def release(self, n_threads: int) -> None:
        with self._lock:
            self.wanted -= n_threads

    def _work(self) -> None:
        while (loop := self.loops.get()) is not None:
            loop.help()
            del loop  # nor its task, and what that holds, while waiting
        self.loops.put(None)  # for the next thread


_pool = _Pool()


def _forget() -> None:
    """The child of a fork has none of the threads."""
    global _pool
    _pool = _Pool()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)


def dismiss() -> list[threading.Thread]:
    """The threads of the pool end, where they help a loop once that has ended. Each step may be repeated."""
    threads = _pool.threads
    if threads or _pool.wanted:  # the latter where Ctrl-C struck a loop that had begun to ask for threads
        _pool.loops.put(None)
        _forget()
    return threads


class Loop(Generic[T]):
    """task(0), task(1), ... by ``n_threads`` threads; one of them, the caller, asks for the results in order.

    At most twice as many tasks as threads are begun, or done, beyond the last whose result was asked for.
    """

    def __init__(self, task: Callable[[int], T], n_tasks: int, n_threads: int) -> None:
        self._task, self._n_tasks, self._ahead = task, n_tasks, 2 * n_threads
        self._begun, self._limit, self._helped = 0, min(self._ahead, n_tasks), 0
        self._pool, self._helpers = _pool, n_threads - 1
        # the threads that help a loop are enough for the loops inside its tasks
        self._more = 0 if _here.pool is _pool else self._helpers
        self._outcomes: dict[int, tuple[bool, Any]] = {}
        self._stop = threading.Event()
        self._changed = threading.Condition()  # re-entrant: a helper may collect a generator whose loop this is

    def start(self) -> None:
        self._pool.help(self, self._helpers, self._more)

    def help(self) -> None:
        """Take tasks until there are none, in a thread of the pool."""
        _here.stop = self._stop
        while (i := self._next()) is not None:
            outcome = self._outcome(i, BaseException)
            with self._changed:
                self._outcomes[i] = outcome
                self._helped -= 1
                self._changed.notify_all()
            del outcome

    def _next(self) -> int | None:
        with self._changed:
            while self._begun == self._limit < self._n_tasks and not self._stop.is_set():
                self._changed.wait()
            if self._begun == self._n_tasks or self._stop.is_set():
                return None
            self._begun, self._helped = self._begun + 1, self._helped + 1
            return self._begun - 1

    def result(self, i: int) -> T:
        """Result of task i, the next one in order; this thread takes tasks too until it is there."""
        while (taken := self._next_unless(i)) is not None:
            outcome = self._outcome(taken, Exception)
            with self._changed:
                self._outcomes[taken] = outcome
            del outcome
        fine, value = self._outcomes.pop(i)
        try:
            if fine:
                return value
            raise value
        finally:
            del value  # an exception's traceback holds this frame

    def _outcome(self, i: int, kind: type[BaseException]) -> tuple[bool, Any]:
        """(Whether task i ended well, its result or its error); an error of another kind is not the task's: Ctrl-C."""
        before = _here.pool  # if Ctrl-C strikes before this is back: the pool ends with the call
        try:
            _here.pool = self._pool
            return True, self._task(i)
        except kind as error:
            return False, error
        finally:
            _here.pool = before

    def _next_unless(self, i: int) -> int | None:
        """The next task, or None once the result of task i is there."""
        with self._changed:
            while i not in self._outcomes:
                if self._begun < self._limit:
                    self._begun += 1
                    return self._begun - 1
                self._changed.wait()
            self._limit = min(self._n_tasks, i + 1 + self._ahead)
            self._changed.notify_all()
            return None

    def end(self, patience: float | None) -> None:
        """No further task begins; waits for those that others run, ``patience`` seconds at most.

        Nobody waits for a thread that takes longer: it leaves the pool.
        """
        self._stop.set()
        self._pool.release(self._more)
        end = None if patience is None else monotonic() + patience
        with self._changed:
            self._changed.notify_all()
            while self._helped and (end is None or monotonic() < end):
                self._changed.wait(None if end is None else max(0.0, end - monotonic()))
            abandoned = self._helped > 0
        if abandoned:
            dismiss()

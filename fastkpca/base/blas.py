"""BLAS and forks: one cap on BLAS's threads for the process, and calls during which no other thread forks."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the controller below lists libraries)
from threadpoolctl import ThreadpoolController

from .workers import dismiss

T = TypeVar("T")


class _BlasCap:
    """One cap for the process, as long as anybody holds it.

    Overlapping ``threadpool_limits`` contexts restore each other's limits in the wrong order and leave BLAS at one
    thread for good. Here the first context sets the cap and the last one restores the limits from before.

    Ctrl-C may come between any two steps below, and BLAS must not be left at one thread. So each step can be repeated,
    the limits before are noted before anything is changed, and each holder is an object: when it is deleted, however
    its owner ended, it no longer holds the cap.

    A fork waits until no other thread is inside a step. The child has the calling thread alone, so there the holders
    of all other threads are dropped.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a hold may be collected, and leave, while its thread is in here
        self._holders: dict[int, int] = {}  # by its id, the thread that took it
        self._before: list[tuple[Any, int]] = []
        self._lowered = False
        self._controller: ThreadpoolController | None = None

    def enter(self, holder: int) -> None:
        with self._lock:
            self._holders[holder] = threading.get_ident()
            if not self._before:
                self._before = self._now()
            if not self._lowered:
                self.lower()

    def _now(self) -> list[tuple[Any, int]]:
        if self._controller is None:  # finding the libraries takes milliseconds: once
            self._controller = ThreadpoolController()
        blas = [x for x in self._controller.lib_controllers if x.user_api == "blas"]
        return [(x, x.get_num_threads()) for x in blas]

    def allowed(self) -> int | None:
        """Threads that BLAS may use where nobody holds the cap; None where no library of BLAS is known."""
        with self._lock:
            return min((threads for _, threads in self._before or self._now()), default=None)

    def leave(self, holder: int) -> list[threading.Thread]:
        """The threads of the pool that end now: the last to leave dismisses them."""
        with self._lock:
            self._holders.pop(holder, None)
            if not self._holders:
                self._restore()
                self._before = []
                return dismiss()
        return []

    def lift(self, owner: int) -> None:
        """For one call: BLAS as before the cap, where no thread but ``owner`` holds it."""
        with self._lock:
            if all(thread == owner for thread in self._holders.values()):
                self._restore()

    def lower(self) -> None:
        with self._lock:
            if self._holders:
                for library, threads in self._before:
                    if threads > 1:
                        _limit(library, 1)
                self._lowered = True

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._lock = threading.RLock()
        current = threading.get_ident()
        self._holders = {holder: thread for holder, thread in self._holders.items() if thread == current}
        if not self._holders:
            self._restore()
            self._before = []

    def _restore(self) -> None:
        self._lowered = False  # first: where Ctrl-C strikes here, the next holder sets the cap anew
        for library, threads in self._before:
            if threads > 1:
                _limit(library, threads)


def _limit(library: Any, threads: int) -> None:
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
        current = threading.get_ident()
        while any(thread != current for thread in self._calls.values()):
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


class _Hold:
    """Holds ``gate`` from its making until it is left, or collected where its owner was interrupted."""

    gate: ClassVar[_BlasCap | _ForkGate]
    left = False

    def __init__(self) -> None:
        self.gate.enter(id(self))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        self.gate.leave(id(self))
        self.left = True

    def __del__(self) -> None:
        if not self.left:
            self.gate.leave(id(self))


class blas_threads(_Hold):
    """BLAS limited to one thread while inside, and threads of the pool stay; nests and overlaps safely."""

    gate = _blas_cap

    def __exit__(self, *exc: object) -> None:
        ended = self.gate.leave(id(self))
        self.left = True
        for thread in ended:
            if thread.is_alive():  # Ctrl-C may have come before it started
                thread.join()


class without_fork(_Hold):
    """Inside, no other thread forks: it waits for the end.

    For calls into libraries that have locks, which a fork would leave locked in the child for ever; and for BLAS with
    several threads: OpenBLAS ends these at a fork, and a call that waits for one of them waits for ever.
    """

    gate = _fork_gate


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


def allowed_blas_threads() -> int | None:
    """Threads that BLAS may use outside of this library's calls; None where no library of BLAS is known."""
    return _blas_cap.allowed()

"""Progress of long work: what a user gives as ``progress``, as one callable, and the lines of the log.

tqdm draws the bars. The lines are those of the logger "fastkpca", one for each step.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .checks import check_flag

Progress = Callable[[str, int, int], None]
"""Called as progress(stage, done, total), from the calling thread."""


class Bars:
    """A bar of tqdm's for each stage; the last one stays until the next begins or all is done.

    ``options`` are tqdm's.
    """

    def __init__(self, **options: Any):
        from tqdm.auto import tqdm  # a widget in notebooks

        self._make = type("Bar", (tqdm,), {"monitor_interval": 0})  # without the thread that tqdm leaves behind
        self._options = {"leave": False, "mininterval": 0.1, "miniters": 1} | options
        self._bar: Any = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """``total`` 0: there is no telling how far the work is; it will not call again, so this is drawn at once."""
        bar = self._bar
        if bar is None or stage != self._stage or (total or None) != bar.total or done < bar.n:
            self.clear()
            unknown = {} if total else {"delay": 0, "bar_format": "{desc} ..."}
            bar = self._bar = self._make(total=total or None, desc=stage, **self._options | unknown)
            self._stage = stage
        bar.update(done - bar.n)
        if done >= total > 0 and not bar.disable and bar.last_print_n:  # tqdm skips a last step that comes soon
            bar.refresh()

    def clear(self) -> None:
        """Take the bar away, before anything else is printed."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Printer(logging.Handler):
    """Prints the lines of some ``threads`` on stdout."""

    threads: frozenset[int] = frozenset()
    level_before = logging.NOTSET
    """Level of the logger before the printer was added."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread in self.threads:
            print(f"[{record.name}] {self.format(record)}", file=sys.stdout, flush=True)


_printer, _lock = _Printer(), threading.Lock()


@contextmanager
def printed_lines() -> Iterator[None]:
    """The lines of the logger "fastkpca" that this thread writes meanwhile are printed on stdout."""
    logger, thread = logging.getLogger("fastkpca"), threading.get_ident()
    if thread in _printer.threads:  # one fit within another
        yield
        return
    with _lock:
        if not _printer.threads:
            _printer.level_before = logger.level
            logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
            logger.addHandler(_printer)
        _printer.threads |= {thread}
    try:
        yield
    finally:
        with _lock:
            _printer.threads -= {thread}
            if not _printer.threads:
                logger.removeHandler(_printer)
                logger.setLevel(_printer.level_before)


def check_progress(progress: Any) -> bool | Progress:
    """True, False, or a callable."""
    return progress if callable(progress) else check_flag(progress, "progress", "True, False, or a function to call")


@contextmanager
def reporter(progress: bool | Progress) -> Iterator[Progress | None]:
    """A callable from what a user gives as ``progress``: theirs, one that draws bars on stderr, or None."""
    given = check_progress(progress)
    if given is not True:
        yield given or None
        return
    bars = Bars()
    try:
        yield bars
    finally:
        bars.clear()

"""Progress of long work: what a user gives as ``progress``, as one callable. tqdm draws the bars."""

from __future__ import annotations

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

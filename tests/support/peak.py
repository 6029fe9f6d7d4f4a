"""Memory that a call takes, by /proc (Linux) or as Python and numpy ask for it."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the peak of memory")


def _status(name: str) -> int:
    """A line of /proc/self/status, bytes."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name))


def peak(call: Callable[[], Any]) -> tuple[int, Any]:
    """(bytes by which this process grew at most, what the call returned)."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # from here on the peak is counted anew
    before = _status("VmRSS")
    result = call()
    return _status("VmHWM") - before, result


def traced(call: Callable[[], Any]) -> int:
    """Bytes that were asked for at most at one time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

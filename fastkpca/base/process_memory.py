"""Free address space under RLIMIT_AS (``ulimit -v``), so that the plan keeps within it.

Nothing here does anything where the system knows no such limit, or where none is set.
"""

from __future__ import annotations

import sys

DEFAULT_MEMORY = 2 << 30
"""Default limit in bytes for a fit, without its rows."""

THREAD_STACK_BYTES = (2 * 33 + 8 + 64) << 20
"""Bytes for a thread: OpenBLAS's buffer in numpy's copy and in scipy's, a stack, and what malloc reserves. One more of
this is for Python itself: modules that are imported when they are needed, arrays that no prediction counts."""


def address_space() -> tuple[int, int] | None:
    """(RLIMIT_AS, what is left of it) in bytes; None where nothing limits the process, or there is no telling."""
    if sys.platform != "linux":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[0])
    except (OSError, ValueError):  # /proc is not there
        return None
    return limit, max(0, limit - pages * resource.getpagesize())


def describe_limit() -> str:
    """Free and total bytes in words, for errors."""
    space = address_space()
    if space is None:
        return ""
    return f"RLIMIT_AS (ulimit -v) is {space[0] / 1e6:.0f} MB, of which {space[1] / 1e6:.0f} MB are left"


def available(n_threads: int) -> int | None:
    """Free bytes under RLIMIT_AS after those of n threads and BLAS; None where there is no such limit.

    OpenBLAS waits for ever where it gets no buffer: a call without memory for these raises MemoryError here, before
    anything is computed.
    """
    space = address_space()
    if space is None:
        return None
    left = space[1] - (n_threads + 1) * THREAD_STACK_BYTES
    if left <= 0:
        words, fewer = ("one thread", "") if n_threads == 1 else (f"{n_threads} threads", "; n_threads=1 needs less")
        raise MemoryError(f"no room for {words} and BLAS: {describe_limit()}; raise the limit{fewer}")
    return left


def memory_within(memory_limit: int | None, n_threads: int) -> tuple[int, bool]:
    """(bytes that a fit may take, whether RLIMIT_AS leaves less than the user, or the default, allows)."""
    limit = DEFAULT_MEMORY if memory_limit is None else memory_limit
    left = available(n_threads)
    return (limit, False) if left is None or left >= limit else (left, True)

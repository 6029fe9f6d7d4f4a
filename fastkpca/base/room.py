"""Room under RLIMIT_AS (``ulimit -v``): how much of it is left, and what threads and BLAS take of it before all else.

A process under such a limit does not always get a MemoryError where it runs out:

- OpenBLAS asks for a buffer of 32 MB for each thread that is inside it, and where it gets none it asks for ever. It
  never gives one back, so here they are asked for beforehand, when there is room for them or it is said that there is
  not.
- ``Thread.start()`` waits for ever for a thread that cannot begin. So no more of them are started than have room for
  their stack.

Where the system knows no such limit, or none is set, nothing here does anything, and nothing depends on it. Where one
is set, it bounds the number of threads, and through ``memory_limit`` the routes among which the plan chooses.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["check_import", "left", "memory_for", "said", "startable", "threads_within"]

BUFFER = 33 << 20
"""Of OpenBLAS, for a thread inside it: 32 MiB, to the next page."""
ARENA = 64 << 20
"""What malloc reserves for each of the first few threads."""
STACK = 8 << 20
"""Of a thread, where the system does not say otherwise."""
MARGIN = 32 << 20
"""For Python itself: objects, modules that are imported when they are needed, arrays that no prediction counts."""
IMPORTS = 150 << 20
"""numpy's, scipy's and their BLAS's code and data."""

_lock = threading.Lock()
_buffers: dict[str, int] = {}  # library -> buffers that it surely has beside those of its own threads
_arenas = 0  # threads that have run at once, and whose arenas are there for the next


def limit() -> int | None:
    """RLIMIT_AS in bytes; None where there is none."""
    if resource is None or not hasattr(resource, "RLIMIT_AS"):
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else int(soft)


def left() -> int | None:
    """Bytes of address space that the process may still take; None where nothing limits it, or there is no telling."""
    most = limit()
    if most is None:
        return None
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[0])
    except (OSError, ValueError):  # not Linux
        return None
    return max(0, most - pages * resource.getpagesize())


def said() -> str:
    """How much is left of how much, for an error's text."""
    most, here = limit(), left()
    if most is None or here is None:
        return ""
    return f"RLIMIT_AS (ulimit -v) is {most / 1e6:.0f} MB, of which {here / 1e6:.0f} MB are left"


def _stack() -> int:
    own = threading.stack_size()
    if own or resource is None:
        return own or STACK
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return STACK if soft == resource.RLIM_INFINITY else int(soft)


def startable(n_threads: int) -> int:
    """So many threads, or fewer where there is no room for their stacks; 1: not even for two."""
    here = left()
    if here is None or n_threads < 2:
        return n_threads
    found = min(n_threads, max(1, (here - MARGIN // 2) // _stack()))
    return found if found > 1 else 1


def threads_within(n_threads: int) -> int:
    """So many threads, or as many as there is room for; BLAS then has what it needs for these.

    Raises MemoryError where there is none for a single one.
    """
    if left() is None:
        return n_threads
    with _lock:
        n = n_threads
        while n > 1 and _needed(n) > (left() or 0):
            n = (n + 1) // 2
        if _needed(n) > (left() or 0):
            raise MemoryError(
                f"no room for the buffers of BLAS: {said()}, and {_needed(n) / 1e6:.0f} MB are needed before anything "
                "is computed; raise the limit"
            )
        _reserve(n)
        return n


def memory_for(memory_limit: int | None, default: int, n_threads: int) -> tuple[int | None, bool]:
    """(the memory limit, or what there is room for where that is less; whether it is less)."""
    here = left()
    if here is None:
        return memory_limit, False
    within = max(1, here - MARGIN - _for_threads(n_threads))
    if within >= (default if memory_limit is None else memory_limit):
        return memory_limit, False
    return within, True


def _for_threads(n: int) -> int:
    """Stacks of so many threads beside the calling one, and arenas of those that are new."""
    own = n if n > 1 else 0
    return own * _stack() + max(0, own - _arenas) * ARENA


def _needed(n: int) -> int:
    """Before anything is computed by so many threads, and the calling one."""
    return sum(max(0, n + 1 - _buffers.get(x, 0)) for x in _libraries()) * BUFFER + _for_threads(n) + MARGIN


def _libraries() -> list[str]:
    """The files of OpenBLAS that this process has loaded; a wheel of numpy brings its own, and so does scipy's."""
    from threadpoolctl import ThreadpoolController

    global _found
    if _found is None:
        blas = ThreadpoolController().lib_controllers
        _found = [x.filepath for x in blas if getattr(x, "internal_api", "") == "openblas"]
    return _found


_found: list[str] | None = None


def _reserve(n: int) -> None:
    """Buffers for n threads and the calling one, in each library."""
    global _arenas
    for path in _libraries():
        have = _buffers.get(path, 0)
        if have >= n + 1:
            continue
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(path)
            take, give = library.blas_memory_alloc, library.blas_memory_free
            take.restype, take.argtypes = ctypes.c_void_p, [ctypes.c_int]
            give.restype, give.argtypes = None, [ctypes.c_void_p]
            held: list[int] = []
            while len(held) < n + 1 and (left() or 0) > BUFFER:  # another thread may have taken what there was
                held.append(take(0))
            for buffer in held:
                give(buffer)
            if len(held) < n + 1:
                raise MemoryError(f"no room for the buffers of BLAS: {said()}; raise the limit")
        _buffers[path] = n + 1
    _arenas = max(_arenas, n if n > 1 else 0)


def check_import() -> None:
    """Before numpy is imported: its BLAS starts a thread for each processor, and without room for their buffers the
    import would never end."""
    here = left()
    if here is None or "numpy" in sys.modules:
        return
    asked = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    n = int(asked) if asked.isdigit() and int(asked) else len(os.sched_getaffinity(0))
    needed = IMPORTS + 2 * n * (BUFFER + _stack()) + MARGIN
    if here < needed:
        text = (
            f"no room for numpy and scipy: {said()}, and {needed / 1e6:.0f} MB are needed"
            f"{f' with BLAS on {n} threads; OPENBLAS_NUM_THREADS=1 needs less' if n > 1 else ''}; raise the limit"
        )
        if os.path.basename(sys.argv[0]) in ("fastkpca", "fastkpca.exe", "-m"):
            raise SystemExit(f"fastkpca: error: out of memory: {text}")
        raise MemoryError(text)

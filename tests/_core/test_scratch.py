"""Memory that temporary arrays use again: never one that is in use, never longer than the scope."""

from __future__ import annotations

import gc
import queue
import threading

import numpy as np
import pytest

from fastkpca._core.scratch import Reuse

LARGE = 1 << 18  # numbers: 2 MB


def test_the_next_array_of_a_size_has_the_memory_of_the_last():
    with Reuse() as memory:
        first = np.full(LARGE, 7.0)
        place = first.ctypes.data
        assert place % 16 == 0
        del first
        assert memory.waiting == 8 * LARGE
        second = np.zeros(LARGE)
        assert second.ctypes.data == place and not second.any()
        third = np.empty(LARGE)
        assert third.ctypes.data != place and memory.waiting == 0
    del second, third
    assert memory.waiting == 0


def test_arrays_outlive_the_scope():
    with Reuse() as memory:
        kept = [np.arange(n, dtype=float) for n in (1, 1000, LARGE)]
        grown = np.arange(100.0)
        grown.resize(LARGE, refcheck=False)
        counted = np.fromiter(iter(range(LARGE)), dtype=float)
    del memory
    gc.collect()
    assert [x.sum() for x in kept] == [n * (n - 1) / 2 for n in (1, 1000, LARGE)]
    assert grown.sum() == 4950.0 and counted[-1] == LARGE - 1
    grown.resize(10, refcheck=False)
    assert grown.sum() == 45.0


def test_no_two_arrays_share_memory():
    rng = np.random.default_rng(0)
    arrays: dict[int, np.ndarray] = {}
    with Reuse() as memory:
        for step in range(3000):
            slot = int(rng.integers(20))
            if slot in arrays:
                assert (arrays[slot] == slot).all()
                del arrays[slot]
            n = int(rng.integers(1, 100_000))
            arrays[slot] = np.full(n, slot) if step % 2 else np.zeros(n, dtype=np.intp) + slot
            assert memory.waiting <= 1 << 26
    assert all((x == slot).all() for slot, x in arrays.items())


def test_other_threads_may_free_what_a_scope_gave():
    """Where there is no GIL they are in the handler at the same time as the scope's own thread."""
    given: queue.SimpleQueue = queue.SimpleQueue()
    spoiled = []

    def free():
        while (pair := given.get()) is not None:
            number, array = pair
            if not (array == number).all():
                spoiled.append(number)
            del pair, array

    threads = [threading.Thread(target=free) for _ in range(4)]
    for thread in threads:
        thread.start()
    with Reuse() as memory:
        for number in range(2000):
            given.put((number, np.full(LARGE // 32 * (1 + number % 3), number)))
        for _ in threads:
            given.put(None)
        for thread in threads:
            thread.join()
        assert 0 < memory.waiting <= 1 << 26
    assert memory.waiting == 0 and not spoiled


def test_scopes_nest_and_belong_to_a_thread():
    name = getattr(np, "_core", None) or np.core
    name = name.multiarray.get_handler_name
    seen = []
    with Reuse():
        assert name() == "fastkpca"
        thread = threading.Thread(target=lambda: seen.append(name()))
        thread.start()
        thread.join()
        with pytest.raises(ZeroDivisionError), Reuse():
            raise ZeroDivisionError
        assert name() == "fastkpca"
        with pytest.raises(MemoryError):
            np.empty(1 << 58)
    assert name() == seen[0] == "default_allocator"

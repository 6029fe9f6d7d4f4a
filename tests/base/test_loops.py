"""Loops over tasks: the order of results, how far threads run ahead, errors, nested loops, how many threads start."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from fastkpca.base import parallel, workers

THREADS = [1, 2, 3]


def ours():
    return [t.name for t in threading.enumerate() if t.name.startswith("fastkpca")]


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 3, 50])
def test_results_come_in_order(n_threads, n_tasks):
    def task(i):
        time.sleep(0.001 * (i * 7 % 3))
        return i * i

    assert list(parallel.run(task, n_tasks, n_threads=n_threads)) == [i * i for i in range(n_tasks)]
    assert not ours()


@pytest.mark.parametrize("n_threads", THREADS)
def test_no_more_than_twice_as_many_tasks_are_ahead(n_threads):
    begun = []

    def task(i):
        begun.append(i)
        return i

    for i in parallel.run(task, 40, n_threads=n_threads):
        time.sleep(0.002)
        assert len(begun) <= i + 1 + 2 * n_threads
    assert sorted(begun) == list(range(40))


@pytest.mark.parametrize("n_threads", THREADS)
def test_the_first_error_in_order_is_raised_and_no_more_is_begun(n_threads):
    begun, got = [], []

    def task(i):
        begun.append(i)
        if i >= 5:
            raise ValueError(f"task {i}")
        return i

    with pytest.raises(ValueError, match="task 5"):
        for i in parallel.run(task, 1000, n_threads=n_threads):
            got.append(i)
    assert got == list(range(5)) and len(begun) <= 6 + 2 * n_threads
    assert not ours()


@pytest.mark.parametrize("n_threads", [2, 3])
def test_loops_in_loops(n_threads):
    def inner(i):
        return sum(parallel.run(lambda j: i * j, 6, n_threads=n_threads))

    def middle(i):
        return sum(parallel.run(inner, i, n_threads=n_threads))

    expected = [sum(15 * j for j in range(i)) for i in range(8)]
    assert list(parallel.run(middle, 8, n_threads=n_threads)) == expected
    assert not ours()


def test_loops_of_several_threads_of_the_user():
    found = []

    def use():
        with parallel.blas_threads():
            for _ in range(30):
                found.append(list(parallel.run(lambda i: i, 9, n_threads=2)) == list(range(9)))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 120
    assert not ours()


def test_no_room_for_a_thread(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert list(parallel.run(lambda i: i, 9, n_threads=3)) == list(range(9))


def test_nothing_is_kept_of_a_loop_that_has_ended():
    class Rows:
        pass

    rows = Rows()
    kept = weakref.ref(rows)
    with parallel.blas_threads():
        for _ in parallel.run(lambda i, rows=rows: None, 20, n_threads=2):
            pass
        del rows
        end = time.monotonic() + 10
        while kept() is not None and time.monotonic() < end:
            time.sleep(0.001)
            gc.collect()
        assert kept() is None


class Collecting(dict):
    """Outcomes of tasks: where a thread keeps one, garbage is collected there, and the loop's own generator with it."""

    def __init__(self, loop, done):
        super().__init__()
        self.loop, self.done = loop, done

    def __setitem__(self, i, outcome):
        super().__setitem__(i, outcome)
        self.loop.end(0.01)
        self.done.set()


def test_a_generator_may_be_collected_by_a_thread_that_helps_it():
    with parallel.blas_threads():
        loop, done = workers.Loop(lambda i: i, 8, 2), threading.Event()
        loop._outcomes = Collecting(loop, done)
        loop.start()
        ended = done.wait(10.0)
        workers.dismiss()  # where the thread waits for ever: nobody waits for it
    assert ended


def test_tasks_that_write_their_results_themselves():
    for n in (0, 1, 2, 5):
        for n_threads in (1, 2, 3):
            out = np.zeros(n)
            parallel.each(lambda i: out.__setitem__(i, i + 1.0), n, n_threads=n_threads)  # noqa: B023
            assert out.tolist() == [i + 1.0 for i in range(n)]
    with pytest.raises(ZeroDivisionError):
        parallel.each(lambda i: 1 // i, 3, n_threads=2)


def test_calls_side_by_side_give_their_results_in_order():
    def loop():
        return sum(parallel.run(lambda j: j, 8, n_threads=2))

    for n_threads in (1, 2, 3):
        assert parallel.side_by_side(loop, lambda: "b", loop, n_threads=n_threads) == [28, "b", 28]
    together = threading.Barrier(2)  # neither ends before both have begun
    parallel.side_by_side(lambda: together.wait(60), lambda: together.wait(60), n_threads=2)

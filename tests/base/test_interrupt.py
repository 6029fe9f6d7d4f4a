"""Ctrl-C and exceptions of a progress callback: the call ends, and the process is as it was.

Limits are generous: how long it takes is measured by tests/attacks/interrupt.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from places import ROOT
from threadpoolctl import threadpool_info, threadpool_limits

import fastkpca as fk
from fastkpca.base import blas as blas_module
from fastkpca.base import parallel, workers

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 3))


def blas():
    return [(x["filepath"], x["num_threads"]) for x in threadpool_info() if x["user_api"] == "blas"]


def ours():
    return [t.name for t in threading.enumerate() if t.name.startswith("fastkpca")]


def gone():
    """No thread of ours is left, at once or soon."""
    deadline = time.monotonic() + 10
    while ours() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not ours()


ROUTES = {
    "dense": ("gaussian", {"method": "dense", "sigma": 1.0}),
    "monomial": ("polynomial", {"method": "features", "degree": 3}),
    "pivots": ("gaussian", {"features": "pivots", "sigma": 2.0, "tol": 1e-3}),
    "fourier": ("gaussian", {"features": "fourier", "sigma": 1.0, "tol": 1e-3}),
    "krylov": ("gaussian", {"method": "krylov", "sigma": 1.0, "products": "exact"}),
    "grid": ("gaussian", {"method": "krylov", "sigma": 1.0, "products": "grid", "tol": 1e-3}),
    "python": (lambda A, B: A @ B.T, {"method": "krylov"}),
}


@pytest.fixture(autouse=True)
def two_threads_of_blas(monkeypatch):
    """A cap of one thread that is left behind would not be seen where BLAS has one anyway."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")  # of child processes
    with threadpool_limits(2, user_api="blas"):
        yield


class Cancelled(Exception):
    pass


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("error", [Cancelled, KeyboardInterrupt])
def test_an_exception_of_the_callback_ends_the_call(route, threads, error):
    """That is how a window cancels."""
    kernel, options = ROUTES[route]
    before, calls = blas(), []

    def progress(stage, done, total):
        assert isinstance(stage, str) and 0 <= done <= total
        calls.append(threading.current_thread())
        if len(calls) == stop:
            raise error("enough")

    stop = 0
    model = fk.kpca(X, kernel, 3, n_threads=threads, progress=progress, **options)
    assert calls and set(calls) == {threading.current_thread()}
    for stop in sorted({1, len(calls) // 2 + 1, len(calls)}):
        calls = []
        with pytest.raises(error, match="enough"):
            fk.kpca(X, kernel, 3, n_threads=threads, progress=progress, **options)
        assert len(calls) == stop
        assert blas() == before
        assert gone()
    np.testing.assert_array_equal(fk.kpca(X, kernel, 3, n_threads=threads, **options).score, model.score)


def test_projecting_is_cancelled_too():
    for method in ("dense", "features"):
        model = fk.kpca(X, "polynomial", 3, method=method)
        out = np.zeros((300_000, 3))

        def progress(stage, done, total):
            raise Cancelled

        with pytest.raises(Cancelled):
            fk.kpca_project(model, RNG.standard_normal((300_000, 3)), out=out, n_threads=2, progress=progress)
        assert not out.all()  # it did not go on to the end


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("route", "scale", "threads"),
    [
        pytest.param("dense, all components", 0.5, 2, marks=pytest.mark.slow),
        ("features, monomial", 0.1, 1),
        ("features, pivots", 0.1, 2),
        ("krylov, exact", 0.3, 2),
        ("krylov, kernel in Python", 0.3, 1),
        ("project, rows", 0.3, 2),
    ],
)
def test_sigint_at_random_moments(route, scale, threads):
    """A few interrupts of the script that measures how long they take."""
    script = ROOT / "tests" / "attacks" / "interrupt.py"
    options = ["--interrupts", "4", "--scale", str(scale), "--child", route, str(threads)]
    run = subprocess.run([sys.executable, "-P", script, *options], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and "skipped" not in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("line", range(1, 110))
def test_an_interrupt_after_any_line_leaves_no_cap_and_no_thread(line):
    """The interpreter's own way to strike: a tracer, at each line of the cap and of the pool in the caller's thread."""
    before, seen = blas(), 0
    sources = {module.__file__: Path(module.__file__).read_text().splitlines() for module in (blas_module, workers)}

    def trace(frame, event, arg):
        nonlocal seen
        source = sources.get(frame.f_code.co_filename)
        if source is None or frame.f_code.co_name in ("dismiss", "__del__"):
            return None
        # no signal strikes between the end of a with block and the release of its lock, nor where nothing is done
        if event == "line" and not source[frame.f_lineno - 1].lstrip().startswith(("with ", "try:")):
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        with parallel.blas_threads():
            list(parallel.run(lambda i: i, 6, n_threads=2))
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    assert blas() == before and gone()
    with parallel.blas_threads():
        assert all(n == 1 for _, n in blas())
    both = threading.Barrier(2)  # a thread helps the next loop too: neither task ends without the other
    assert list(parallel.run(lambda i: both.wait(5) >= 0, 2, n_threads=2)) == [True, True]


@contextlib.contextmanager
def interrupted(seconds):
    """Ctrl-C strikes what is done here after this time."""
    if os.name != "posix":
        pytest.skip("signals of POSIX")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGINT, handler)


def test_lapack_aside_is_left_at_once():
    done, started = threading.Event(), time.monotonic()
    try:
        with interrupted(0.2):
            parallel.interruptible(lambda: done.wait(30))
        assert time.monotonic() - started < 20.0
        assert ours() == ["fastkpca-lapack"]  # it goes on, for nobody
    finally:
        done.set()
    assert gone()


def test_a_task_of_many_steps_stops_between_them():
    steps = []

    def task(i):
        for k in range(2000):
            parallel.checkpoint()
            time.sleep(0.005)
            steps.append(k)

    with interrupted(0.3):
        list(parallel.run(task, 8, n_threads=2))
    time.sleep(0.5)
    assert not ours() and len(steps) < 2000


def test_bars_of_tqdm():
    code = "import numpy as np, fastkpca as fk, threading\n"
    code += "fk.kpca(np.random.default_rng(0).random((3000, 3)), 'polynomial', 2, method='features', progress=True)\n"
    code += "assert threading.active_count() == 1"
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert run.returncode == 0 and "moments" in run.stderr and run.stdout == "", run.stderr

"""Forks while other threads compute: the child neither waits for a thread that it does not have, nor keeps its cap.

Workers of joblib and of multiprocessing: as many threads, all together, as there are processors; the same bits.
"""

import os
from pathlib import Path

import pytest
from child import child

import fastkpca

pytest.importorskip("joblib")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

# in a process of its own: a fork with threads warns from Python 3.12 on, and a hang must not take the tests with it
BEGINNING = """
import os, signal, threading, time, warnings
warnings.simplefilter("ignore")
import joblib, numpy as np
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits
import fastkpca as fk
from fastkpca.base import parallel

X = np.random.default_rng(0).random((20000, 6))
os.sched_getaffinity = lambda pid: {0, 1}

def fit(_=0, n_threads=None):
    threads = [1]
    def progress(stage, done, total):
        threads.append(1 + sum(t.name == "fastkpca" for t in threading.enumerate()))
    model = fk.kpca(X, "polynomial", 3, degree=3, offset=1.0, n_threads=n_threads, progress=progress)
    blas = max(x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas")
    return max(threads), blas, os.getpid(), model.score.tobytes()

libraries = [x for x in ThreadpoolController().lib_controllers if x.user_api == "blas"]
for x in libraries:
    x.set_num_threads(2)

def limits():
    return {x.get_num_threads() for x in libraries}

def outcome(child):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # what hangs ends
        code = 9
        try:
            code = child()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def run(code):
    return child(code, beginning=BEGINNING, without="_NUM_THREADS")


def test_the_cap_of_another_thread_does_not_reach_the_child():
    printed = run("""
        inside, leave = threading.Event(), threading.Event()
        def hold():
            with parallel.blas_threads():
                inside.set()
                leave.wait()
        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait()
        print(limits() == {1}, outcome(lambda: 0 if limits() == {2} else 7))
        leave.set()
        thread.join()
        print(limits() == {2})
        with parallel.blas_threads():
            print(outcome(lambda: 0 if limits() == {1} else 7))
        """)
    assert printed == ["True", "0", "True", "0"]


def test_a_fork_does_not_inherit_the_lock_of_another_thread():
    printed = run("""
        stop = False
        def take():
            while not stop:
                with parallel.blas_threads():
                    pass
        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        def child():
            with parallel.blas_threads():
                if limits() != {1}:
                    return 6
            return 0 if limits() == {2} else 7
        print({outcome(child) for _ in range(50)})
        stop = True
        for thread in threads:
            thread.join()
        print(limits())
        """)
    assert printed == ["{0}", "{2}"]


@pytest.mark.slow
def test_a_fork_waits_for_a_call_by_several_threads_of_blas():
    """OpenBLAS ends its threads at a fork: one that waits for another's part of a product would wait for ever."""
    printed = run("""
        X = np.random.default_rng(0).standard_normal((1100, 3))
        stop, done = False, 0
        def fit():
            global done
            while not stop:
                fk.kpca(X, "gaussian", 2, sigma=1.0, method="dense", n_threads=1)
                done += 1
        thread = threading.Thread(target=fit)
        thread.start()
        few = X[:100]
        def child():
            fk.kpca(few, "gaussian", 2, sigma=1.0, method="dense", n_threads=1)
            return 0 if limits() == {2} else 7
        found = set()
        for _ in range(30):
            time.sleep(0.01)
            found.add(outcome(child))
        stop = True
        thread.join(60)
        print(found, thread.is_alive(), done > 0, limits(), flush=True)
        os._exit(0)
        """)
    assert printed == ["{0}", "False", "True", "{2}"]


def test_properties_that_are_kept_have_no_lock():
    """Python 3.11 locks functools.cached_property for all instances of a class, for as long as it computes."""
    package = Path(fastkpca.__file__).parent
    assert not [path for path in package.rglob("*.py") if "from functools import cached_property" in path.read_text()]
    printed = run("""
        from fastkpca.base.caching import cached_property
        inside, leave = threading.Event(), threading.Event()
        class Slow:
            wait = True
            @cached_property
            def value(self):
                if self.wait:
                    inside.set()
                    leave.wait()
                return object()
        slow, quick = Slow(), Slow()
        quick.wait = False
        thread = threading.Thread(target=lambda: slow.value)
        thread.start()
        inside.wait()
        print(outcome(lambda: 0 if quick.value is quick.value else 7))
        leave.set()
        thread.join()
        print(slow.value is slow.value, isinstance(Slow.value, cached_property))
        """)
    assert printed == ["0", "True", "True"]


# Workers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_workers_of_joblib_share_the_processors(backend):
    """Two workers on two processors: one thread each, of ours and of BLAS's."""
    printed = run(
        f"""
        alone = fit(n_threads=2)
        os.environ["LOKY_MAX_CPU_COUNT"] = "2"
        found = joblib.Parallel(n_jobs=2, backend={backend!r})(joblib.delayed(fit)(i) for i in range(4))
        print(alone[0], *(x[0] for x in found), len({{x[3] for x in [alone, *found]}}))
        print(os.getpid() in [x[2] for x in found])
        """
    )
    assert printed == ["2", "1", "1", "1", "1", "1", "False"]


def test_a_fit_in_a_child_after_one_with_threads():
    printed = run("""
        first = fit(n_threads=2)
        print(outcome(lambda: 0 if fit(n_threads=2)[3] == first[3] else 3), fit(n_threads=2)[3] == first[3])
        """)
    assert printed == ["0", "True"]


def test_limits_of_blas_are_those_of_the_default():
    printed = run(
        """
        print(parallel.processors())
        with threadpool_limits(1, "blas"):
            print(parallel.processors())
            print(fit()[0])
            with parallel.blas_threads():
                print(parallel.processors())
        with parallel.blas_threads():  # the library's own cap is no limit of the user's
            print(parallel.processors())
        """
    )
    assert printed == ["2", "1", "1", "1", "2"]


def test_an_interpreter_may_end_while_a_daemon_thread_computes():
    printed = run("""
        inside = threading.Event()
        def work():
            while True:
                inside.set()
                fk.kpca(X, "gaussian", 3, sigma=0.5, n_threads=2, method="features", features="pivots", tol=1e-2)
        threading.Thread(target=work, daemon=True).start()
        inside.wait()
        print("end")
        """)
    assert printed == ["end"]

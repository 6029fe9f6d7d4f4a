"""Workers of joblib and of multiprocessing: as many threads, all together, as there are processors; the same bits."""

import pytest
from child import child

pytest.importorskip("joblib")

# in a process of its own: the workers import what this one does, and a hang must not take the tests with it
BEGINNING = """
import os, threading, multiprocessing
import numpy as np, joblib
from threadpoolctl import threadpool_info, threadpool_limits
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

"""


def run(code):
    return child(code, beginning=BEGINNING, without="_NUM_THREADS")


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
        pid = os.fork()
        if pid == 0:
            os._exit(0 if fit(n_threads=2) [3] == first[3] else 3)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), fit(n_threads=2)[3] == first[3])
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

"""Threads: every public call from eight threads at once gives the bits that it gives alone."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz_calls
import numpy as np
import pytest
from contrib_fits import FITS, answers, contents
from threadpoolctl import threadpool_info

import fastkpca as fk

THREADS, TIMES = 8, 3
X = np.random.default_rng(0).standard_normal((120, 3))
SQUARE = np.random.default_rng(1).random((200, 2))  # rows that every way to multiply can take


@pytest.fixture
def calls(tmp_path):
    """Right calls of every public function but those that draw, and of every way to fit and to multiply."""
    right = fuzz_calls.RightCalls(tmp_path)

    def own_place() -> dict[str, Path]:
        return {"path": tmp_path / f"{threading.get_ident()}-{random.getrandbits(64)}"}

    def register() -> Any:
        fk.register_kernel(f"own_{threading.get_ident()}", fk.kernels.Gaussian, overwrite=True)
        return contents(fk.kpca(X, f"own_{threading.get_ident()}", 2, sigma=2.0))

    calls: dict[str, Callable[[], Any]] = {"register": register}
    for name, (function, given) in right.calls.items():
        if not {"out", "ax"} & given.keys() and function is not fk.list_kernels:
            writes = {"path", "overwrite"} <= given.keys()
            calls[name] = lambda name=name, writes=writes: contents(
                right.call(name, own_place() if writes else {}, drawn=False)()
            )
    for method in ("dense", "features", "krylov"):
        calls[method] = lambda method=method: contents(fk.kpca(X, "gaussian", 3, sigma=1.0, method=method))
    for products in ("grid", "expansion", "exact"):
        calls[products] = lambda products=products: contents(
            fk.gram(SQUARE, "gaussian", sigma=0.3, tol=1e-6, products=products) @ SQUARE
        )
    return calls | {name: lambda name=name: contents(answers(name, FITS[name]())) for name in FITS}


def test_blas_has_the_threads_that_the_tests_ask_for():
    """A plugin of pytest that loads numpy before tests/conftest.py would leave it one for each processor."""
    for pool in threadpool_info():
        if pool["internal_api"] == "openblas":
            assert pool["num_threads"] <= int(os.environ["OPENBLAS_NUM_THREADS"]), pool


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_eight_threads_give_the_bits_of_one(calls):
    alone = {name: call() for name, call in calls.items()}
    alone = {name: answer for name, answer in alone.items() if " at 0x" not in str(answer)}  # objects without contents
    # rows without a fault have no findings
    assert {name for name, answer in alone.items() if not answer} <= {x for x in alone if x.startswith("kpca_health")}
    assert len(alone) > 150
    together = threading.Barrier(THREADS)
    wrong: list[str] = []
    done: list[int] = []

    def work(seed: int) -> None:
        order = random.Random(seed)
        for turn in range(TIMES):
            together.wait(timeout=600)
            for name in order.sample(sorted(alone), len(alone)):
                try:
                    if calls[name]() != alone[name]:
                        wrong.append(f"{name}: other bits in turn {turn} of thread {seed}")
                except Exception as error:
                    wrong.append(f"{name}: {type(error).__name__} in turn {turn} of thread {seed}: {error}")
            done.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, "\n".join(sorted(wrong)[:40])
    assert len(done) == THREADS * TIMES  # no thread ended before

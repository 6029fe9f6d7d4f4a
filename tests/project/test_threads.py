"""Threads: every public call from eight threads at once gives the bits that it gives alone."""

from __future__ import annotations

import importlib
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contrib_fits import FITS, answers, contents
from threadpoolctl import threadpool_info

import fastkpca as fk

THREADS, TIMES = 8, 5
X = np.random.default_rng(0).standard_normal((120, 3))
SQUARE = np.random.default_rng(1).random((200, 2))  # rows that every way to multiply can take


@pytest.fixture
def typed(monkeypatch):
    """The script with every public call (test_types holds it to that); what it asserts the types of is recorded."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "typed")
    script, here = importlib.import_module("every_call"), threading.local()

    def record(value: Any, _: Any) -> Any:
        here.values.append(contents(value))
        return value

    def recorded(call: Callable[..., None], *arguments: Any) -> list[Any]:
        here.values = []
        call(*arguments)
        return here.values

    monkeypatch.setattr(script, "assert_type", record)
    return script, recorded


def calls_of(typed: Any, tmp_path: Path) -> dict[str, Callable[[], Any]]:
    script, recorded = typed

    def folder() -> Path:
        place = tmp_path / f"{threading.get_ident()}-{random.getrandbits(64)}"
        place.mkdir()
        return place

    def register() -> Any:
        fk.register_kernel(f"own_{threading.get_ident()}", script.Cauchy, overwrite=True)
        listed = [x.name for x in (*fk.list_kernels(), *fk.list_methods()) if not x.name.startswith("own_")]
        return listed, contents(fk.kpca(X, f"own_{threading.get_ident()}", 2, width=2.0))

    calls: dict[str, Callable[[], Any]] = {
        "models": lambda: recorded(script.models, X, folder()),
        "shards": lambda: recorded(script.shards, X),
        "products": lambda: recorded(script.products, X),
        "kernels": register,
        "rows again": lambda: recorded(script.rows_again, X, folder()),
        "methods": lambda: recorded(script.methods, X, (X[:, 0] > 0).astype(int), folder()),
    }
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
def test_eight_threads_give_the_bits_of_one(typed, tmp_path):
    calls = calls_of(typed, tmp_path)
    alone = {name: call() for name, call in calls.items()}
    assert all(alone.values())
    together = threading.Barrier(THREADS)
    wrong: list[str] = []

    def work(seed: int) -> None:
        order = random.Random(seed)
        for turn in range(TIMES):
            together.wait(timeout=600)
            for name in order.sample(sorted(calls), len(calls)):
                try:
                    if calls[name]() != alone[name]:
                        wrong.append(f"{name}: other bits in turn {turn} of thread {seed}")
                except Exception as error:
                    wrong.append(f"{name}: {type(error).__name__} in turn {turn} of thread {seed}: {error}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, "\n".join(sorted(wrong)[:40])

"""Threads: every public call from eight threads at once gives the bits that it gives alone."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contrib_fits import FITS, answers, contents
from kernels_contrib.kica import kica_contrast
from kernels_contrib.matern import Matern
from threadpoolctl import threadpool_info

import fastkpca as fk
from fastkpca import state
from fastkpca.testing import check_kernel
from kernels_contrib import storage

THREADS, TIMES = 8, 20


class Cauchy(fk.kernels.Kernel):
    """A kernel as its author writes it."""

    api_version = 1
    positive_semidefinite = True
    translation = "kernel"
    parameters = {"width": 1.0}

    def __init__(self, width=1.0):
        self.width = width

    def block(self, X, Y):
        squares = ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
        return 1.0 / (1.0 + squares / self.width**2)


def from_file(write: Callable[[Path], Any], read: Callable[[Path], Any], folder: Path, name: str) -> Any:
    """What is read from the file that this thread wrote."""
    path = folder / f"{threading.get_ident()}-{name}"
    write(path)
    return read(path)


def fits(X: np.ndarray, folder: Path) -> dict[str, Callable[[], Any]]:
    """Calls that fit a model, and those that need none. Each method of fitting once."""
    half = len(X) // 2
    first = fk.kpca(X[:half], "polynomial", 2, degree=2, keep_moments=True)
    second = fk.kpca(X[half:], "polynomial", 2, degree=2, keep_moments=True, like=first)
    weights = np.linspace(1.0, 2.0, len(X))
    square = np.random.default_rng(1).random((200, 2))  # rows that every way to multiply can take

    def gram(X=X, kernel="gaussian", **options):
        K = fk.gram(X, kernel, **options)
        vectors = np.linspace(-1.0, 1.0, 2 * len(X)).reshape(-1, 2)
        return K @ vectors, K.centered() @ vectors, K.trace(), K.diagonal(), K.column_means(), K.error_bound

    def features():
        F = fk.features(X, "gaussian", sigma=1.0, tol=1e-3)
        return F.T @ np.ones(len(X)), F.residual_trace

    def register():
        fk.register_kernel(f"cauchy_{threading.get_ident()}", Cauchy, overwrite=True)
        return fk.kpca(X, f"cauchy_{threading.get_ident()}", 2, width=2.0)

    calls = {
        "kpca": lambda: fk.kpca(X, "gaussian", 3, sigma=1.5, tol=1e-6),
        "kpca, plugin": lambda: fk.kpca(X, 0.5 * Cauchy() + Matern(nu=1.5, length_scale=1.0), 2),
        "kpca, weights": lambda: fk.kpca(X, "tanh", 2, sample_weight=weights, standardize=True),
        "pca": lambda: fk.pca(X, 2),
        "plan": lambda: str(fk.plan(X, "polynomial", 0.9, degree=2).method),
        "kpca_merge": lambda: fk.kpca_project(fk.kpca_merge(first, second), X),
        "kpca_update": lambda: fk.kpca_project(fk.kpca_update(first, X[half:]), X),
        "gram": lambda: gram(sigma=1.0),
        "gram, matern": lambda: gram(kernel="matern", nu=1.5, length_scale=0.5),
        "features": features,
        "kpca_select": lambda: fk.kpca_select(X, {"gaussian": {"sigma": [1.0]}}, [1, 2], folds=2).columns,
        "register_kernel": register,
        "get_kernel": lambda: fk.get_kernel("matern", nu=1.5),
        "get_method": lambda: fk.get_method("klda"),
        "list_kernels": lambda: [x.name for x in fk.list_kernels() if not x.name.startswith("cauchy")],
        "list_methods": lambda: [x.name for x in fk.list_methods()],
        "on_columns": lambda: fk.kpca(X, fk.on_columns("gaussian", [0, 2], sigma=[1.0, 2.0]), 2),
        "check_kernel": lambda: sorted(check_kernel(Cauchy(2.0), X)),
    }
    for method in ("dense", "features", "krylov"):
        calls[f"kpca, {method}"] = lambda method=method: fk.kpca(X, "gaussian", 3, sigma=1.0, method=method)
    for products in ("grid", "expansion", "exact"):
        calls[f"gram, {products}"] = lambda products=products: gram(square, sigma=0.3, tol=1e-6, products=products)
    return calls


def models(X: np.ndarray, folder: Path) -> dict[str, Callable[[], Any]]:
    """Calls on a model that all threads share."""
    model = fk.kpca(X, "gaussian", 3, sigma=2.0)
    limits = fk.kpca_limits(model, X + 0.1, confidence=0.9)
    few = X[:4]
    return {
        "KPCAModel": lambda: (list(model), model.in_units_of_rows(X)),
        "kpca_project": lambda: fk.kpca_project(model, X),
        "kpca_preimage": lambda: fk.kpca_preimage(model, model.score[:4], method="fixed-point"),
        "kpca_denoise": lambda: fk.kpca_denoise(model, few),
        "kpca_fill": lambda: fk.kpca_fill(model, np.where(few > 1, np.nan, few), train=X),
        "kpca_t2": lambda: fk.kpca_t2(model, X),
        "kpca_spe": lambda: fk.kpca_spe(model, X, bounds=True),
        "kpca_limits": lambda: fk.kpca_limits(model, X + 0.1, confidence=0.9),
        "Limits.exceeded": lambda: limits.exceeded(spe=fk.kpca_spe(model, few)),
        "kpca_contributions": lambda: fk.kpca_contributions(model, few, train=X).values,
        "kpca_importance": lambda: fk.kpca_importance(model, X, method="permutation", rng=1).share,
        "kpca_uncertainty": lambda: fk.kpca_uncertainty(model, X, n_bootstrap=100).latent_interval,
        "save, load": lambda: from_file(
            lambda path: fk.save(model, path, scores=True, overwrite=True), fk.load, folder, "model.kpca"
        ),
        "export_mat": lambda: from_file(
            lambda path: fk.export_mat(model, path, overwrite=True), lambda path: path.stat().st_size, folder, "m.mat"
        ),
        "save_state, load_state": lambda: from_file(
            lambda path: state.save_state(path, "tests:rows", {"X": X, "n": 3}, overwrite=True),
            state.load_state,
            folder,
            "rows.state",
        ),
    }


def methods(X: np.ndarray, folder: Path) -> dict[str, Callable[[], Any]]:
    """The methods of ``kernels_contrib``, on rows of their own."""
    logit = FITS["logistic"]()
    calls = {name: lambda name=name: answers(name, FITS[name]()) for name in FITS}
    calls["kica_contrast"] = lambda: kica_contrast(X)
    calls["save, load (methods)"] = lambda: answers(
        "logistic",
        from_file(lambda path: storage.save(logit, path, overwrite=True), storage.load, folder, "logistic.kpca"),
    )
    return calls


def test_every_public_function_is_called(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    called = {name for group in (fits, models) for names in group(X, tmp_path) for name in names.split(", ")}
    assert {*fk.__all__, *state.__all__} - {"__version__"} <= called


def test_blas_has_the_threads_that_the_tests_ask_for():
    """A plugin of pytest that loads numpy before tests/conftest.py would leave it one for each processor."""
    for pool in threadpool_info():
        if pool["internal_api"] == "openblas":
            assert pool["num_threads"] <= int(os.environ["OPENBLAS_NUM_THREADS"]), pool


@pytest.mark.slow
@pytest.mark.parametrize("group", [fits, models, methods], ids=lambda group: group.__name__)
def test_eight_threads_give_the_bits_of_one(group, tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 3))
    calls = group(X, tmp_path)
    alone = {name: contents(call()) for name, call in calls.items()}
    together = threading.Barrier(THREADS)
    wrong: list[str] = []

    def work(seed: int) -> None:
        order = random.Random(seed)
        for turn in range(TIMES):
            together.wait(timeout=600)
            for name in order.sample(sorted(calls), len(calls)):
                try:
                    if contents(calls[name]()) != alone[name]:
                        wrong.append(f"{name}: other bits in turn {turn} of thread {seed}")
                except Exception as error:
                    wrong.append(f"{name}: {type(error).__name__} in turn {turn} of thread {seed}: {error}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, "\n".join(sorted(wrong)[:40])

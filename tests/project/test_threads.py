"""Threads: every public call from eight threads at once gives the bits that it gives alone."""

from __future__ import annotations

import dataclasses
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernels_contrib.matern import Matern
from threadpoolctl import threadpool_info

import fastkpca as fk
from fastkpca import state
from fastkpca.testing import check_kernel
from kernels_contrib import (
    cca,
    clustering,
    components,
    diffusion,
    hsic,
    kbda,
    kica,
    klda,
    logistic,
    mmd,
    perceptron,
    pls,
    ridge,
)
from kernels_contrib import storage as method_files

THREADS, TIMES = 8, 20
METHODS = (cca, clustering, components, diffusion, hsic, kbda, kica, klda, logistic, mmd, perceptron, pls, ridge)


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


def contents(result: Any) -> Any:
    """What a call returned, as something that can be compared: arrays by their bits."""
    if isinstance(result, np.ndarray):
        return result.dtype.str, result.shape, result.tobytes()
    if isinstance(result, fk.KPCAModel):
        return contents([*result, result.eigenvalues, result.eigenvalue_bounds, result.angle_bounds, result.bound_kind])
    if dataclasses.is_dataclass(result):
        return [contents(getattr(result, field.name)) for field in dataclasses.fields(result) if field.repr]
    if isinstance(result, dict):
        return {key: contents(value) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return [contents(value) for value in result]
    return repr(result)


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
    """The functions of ``kernels_contrib``."""
    y = (X[:, 0] > 0).astype(int)
    gaussian = {"kernel": "gaussian", "sigma": 1.0}
    lda = klda.klda(X, y, **gaussian, regularization=0.1)
    biased = kbda.kbda(X, y == 1, "gaussian", 1, sigma=1.0, regularization=0.1)
    sources = kica.kica(X, c=2)
    voted = perceptron.kernel_perceptron(X, y, **gaussian, max_epochs=20)
    logit = logistic.kernel_logistic(X, y, **gaussian)
    curve = components.kernel_pcr(X, X[:, 0], "gaussian", 3, sigma=1.0)
    return {
        "kernel_kmeans, assign": lambda: clustering.assign(clustering.kernel_kmeans(X, k=2, **gaussian), X),
        "spectral_clustering": lambda: diffusion.spectral_clustering(X, k=2, **gaussian).predict(X),
        "diffusion_map": lambda: diffusion.diffusion_map(X, c=2, **gaussian).project(X),
        "klda": lambda: klda.klda_project(klda.klda(X, y, **gaussian, regularization=0.1), X),
        "klda_project": lambda: klda.klda_project(lda, X),
        "klda_predict": lambda: klda.klda_predict(lda, X),
        "klda_probability": lambda: klda.klda_probability(lda, X),
        "kernel_fisherfaces": lambda: klda.klda_project(
            klda.kernel_fisherfaces(X, y, "polynomial", degree=2, components=5), X
        ),
        "kbda": lambda: kbda.kbda_project(kbda.kbda(X, y == 1, "gaussian", 1, sigma=1.0, regularization=0.1), X),
        "kbda_project": lambda: kbda.kbda_project(biased, X),
        "kica": lambda: kica.kica_project(kica.kica(X, c=2), X),
        "kica_project": lambda: kica.kica_project(sources, X),
        "kica_contrast": lambda: kica.kica_contrast(X),
        "kernel_perceptron": lambda: perceptron.perceptron_decision(
            perceptron.kernel_perceptron(X, y, **gaussian, max_epochs=20), X
        ),
        "perceptron_predict": lambda: perceptron.perceptron_predict(voted, X),
        "perceptron_decision": lambda: perceptron.perceptron_decision(voted, X),
        "kernel_logistic": lambda: logistic.logistic_probability(logistic.kernel_logistic(X, y, **gaussian), X),
        "logistic_predict": lambda: logistic.logistic_predict(logit, X),
        "logistic_probability": lambda: logistic.logistic_probability(logit, X),
        "kernel_pc_logistic": lambda: logistic.logistic_probability(
            components.kernel_pc_logistic(X, y, "gaussian", 3, sigma=1.0), X
        ),
        "kernel_pcr": lambda: components.pcr_predict(components.kernel_pcr(X, X[:, 0], "gaussian", 3, sigma=1.0), X),
        "pcr_predict": lambda: components.pcr_predict(curve, X),
        "mmd_test": lambda: mmd.mmd_test(X, X + 0.1, **gaussian, permutations=9).null,
        "hsic_test": lambda: hsic.hsic_test(X, X[:, :1], **gaussian, permutations=9).null,
        "kernel_cca": lambda: cca.kernel_cca(X, X[:, :1], **gaussian, tol=1e-3, permutations=3).null,
        "kernel_pls": lambda: pls.kernel_pls(X, X[:, 0], **gaussian).predict(X),
        "kernel_ridge": lambda: ridge.kernel_ridge(X, X[:, 0], **gaussian).predict(X),
        "save, load (methods)": lambda: logistic.logistic_probability(
            from_file(
                lambda path: method_files.save(logit, path, overwrite=True), method_files.load, folder, "logistic.kpca"
            ),
            X,
        ),
    }


def test_every_public_function_is_called(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    called = {name for group in (fits, models, methods) for names in group(X, tmp_path) for name in names.split(", ")}
    public = {*fk.__all__, *state.__all__}.union(*(module.__all__ for module in METHODS)) - {
        "__version__",
        "PermutationTest",
    }
    assert {name for name in public if not (name.endswith("Model") and name != "KPCAModel")} <= called


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

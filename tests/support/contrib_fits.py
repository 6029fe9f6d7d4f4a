"""A fit of each kind by the methods of kernels_contrib, and what its model says of new rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from kernels_contrib.cca import kernel_cca
from kernels_contrib.clustering import kernel_kmeans
from kernels_contrib.components import kernel_pc_logistic, kernel_pcr
from kernels_contrib.diffusion import diffusion_map, spectral_clustering
from kernels_contrib.hsic import hsic_test
from kernels_contrib.kbda import kbda
from kernels_contrib.kica import kica
from kernels_contrib.klda import kernel_fisherfaces, klda
from kernels_contrib.logistic import kernel_logistic
from kernels_contrib.mmd import mmd_test
from kernels_contrib.perceptron import kernel_perceptron
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge

import fastkpca as fk
from fastkpca.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
Y = np.array(["a", "bb", "c"])[np.arange(80) % 3]
VIEW = X[:, :1] ** 2 + 0.3 * RNG.standard_normal((80, 1))
T = np.sin(X[:, 0])
GROUPED = X + 6.0 * (np.arange(80) % 3)[:, None]
FITS = {
    "klda features": lambda **o: klda(X, Y, sigma=2.0, **o),
    "klda monomial": lambda **o: klda(X, Y == "a", "polynomial", **o),
    "klda gram": lambda **o: klda(X, np.arange(80) % 3, "laplacian", method="gram", length_scale=3.0, **o),
    "klda sum": lambda **o: klda(X, Y, Gaussian(sigma=2.0) + 0.1 * fk.get_kernel("linear"), **o),
    "kica": lambda **o: kica(X, **o),
    "fisherfaces": lambda **o: kernel_fisherfaces(X, Y, "gaussian", components=20, **o),
    "kbda": lambda **o: kbda(X, Y == "a", c=3, **o),
    "kbda gram": lambda **o: kbda(X, Y == "a", c=3, method="gram", regularization=0.1, **o),
    "perceptron": lambda **o: kernel_perceptron(X, Y, max_epochs=3, **o),
    "perceptron gram": lambda **o: kernel_perceptron(X, Y, max_epochs=3, method="gram", **o),
    "logistic": lambda **o: kernel_logistic(X, Y, **o),
    "logistic gram": lambda **o: kernel_logistic(X, Y, method="gram", **o),
    "logistic precomputed": lambda **o: kernel_logistic(X @ X.T, Y, "precomputed", **o),
    "components": lambda **o: kernel_pc_logistic(X, Y, c=4, **o),
    "regression": lambda **o: kernel_pcr(X, X[:, 0] ** 2, c=4, **o),
    "kmeans": lambda **o: kernel_kmeans(GROUPED, "gaussian", 3, sigma=1.0, **o),
    "kmeans features": lambda **o: kernel_kmeans(GROUPED, "gaussian", 3, sigma=1.0, method="features", **o),
    "kmeans, one group": lambda **o: kernel_kmeans(X, "gaussian", 1, sigma=1.0, **o),
    "spectral": lambda **o: spectral_clustering(GROUPED, "gaussian", 3, sigma=1.0, **o),
    "spectral, one group": lambda **o: spectral_clustering(X, "gaussian", 1, sigma=1.0, **o),
    "diffusion": lambda **o: diffusion_map(X, "gaussian", 3, sigma=1.0, **o),
    "mmd": lambda **o: mmd_test(X, X[:30] + 1.0, [Gaussian(sigma=1.0), "linear"], permutations=9, **o),
    "hsic": lambda **o: hsic_test(X, VIEW, "gaussian", "polynomial", permutations=9, **o),
    "cca": lambda **o: kernel_cca(X, VIEW, Gaussian(sigma=2.0), 2, kernel_y="polynomial", permutations=5, **o),
    "cca of two pivots": lambda **o: kernel_cca(X, VIEW, "laplacian", 2, kernel_y=Gaussian(sigma=1.0), **o),
    "pls": lambda **o: kernel_pls(X, T, sigma=1.0, **o),
    "pls gram": lambda **o: kernel_pls(X, np.column_stack([T, VIEW]), "laplacian", method="gram", **o),
    "ridge": lambda **o: kernel_ridge(X, T, "polynomial", **o),
    "ridge gram": lambda **o: kernel_ridge(X, np.column_stack([T, VIEW]), method="gram", **o),
}


def answers(name: str, model: Any) -> dict[str, Any]:
    """What a model that ``FITS[name]`` returned says of new rows, or of its permutations."""
    new = np.random.default_rng(1).standard_normal((9, 80 if "precomputed" in name else 3))
    new = new / 8 + X[:9] if "diffusion" in name else new
    calls = ("project", "predict", "probability", "decision", "error")
    said = {call: getattr(model, call)(new) for call in calls if callable(getattr(model, call, None))}
    if "cca" in name:
        said |= {"x": model.x.project(new), "y": model.y.project(new[:, :1])}
    return said | {x: getattr(model, x) for x in ("null", "p_value", "kernels") if hasattr(model, x)}


def contents(result: Any) -> Any:
    """What a call returned, as something that can be compared: arrays by their bits."""
    if isinstance(result, np.ndarray):
        return result.dtype.str, result.shape, result.tobytes()
    if isinstance(result, fk.KPCAModel):
        columns = result.n_features if result.kernel.takes_points else result.n_samples  # of a matrix: its rows
        new = np.random.default_rng(1).standard_normal((4, columns))
        said = [result.eigenvalues, result.eigenvalue_bounds, result.angle_bounds, result.bound_kind]
        return contents([*said, fk.kpca_project(result, new)])
    if dataclasses.is_dataclass(result):
        return [contents(getattr(result, field.name)) for field in dataclasses.fields(result) if field.repr]
    if isinstance(result, dict):
        return {key: contents(value) for key, value in result.items() if key != "seconds"}
    if isinstance(result, (list, tuple)):
        return [contents(value) for value in result]
    return repr(result)

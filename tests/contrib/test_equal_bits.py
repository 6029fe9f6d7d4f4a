"""Methods give the same bits at any number of threads, their own and BLAS's, and however arrays lie in memory.

Large eigenproblems of kernel PCA alone are solved with all of BLAS's threads (docs/guide.md): methods on components
take few features here.
"""

import dataclasses

import numpy as np
import pytest
import threadpoolctl
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

RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 4))
T = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * RNG.standard_normal((700, 2))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
W = RNG.random(700) + 0.5
RBF = {"sigma": 2.0}
METHODS = {
    "ridge": lambda X, T, w, **o: kernel_ridge(X, T, sample_weight=w, features_tol=1e-4, method="features", **RBF, **o),
    "ridge gram": lambda X, T, w, **o: kernel_ridge(X, T, sample_weight=w, method="gram", **RBF, **o),
    "pls": lambda X, T, w, **o: kernel_pls(X, T, sample_weight=w, tol=1e-4, method="features", **RBF, **o),
    "pls gram": lambda X, T, w, **o: kernel_pls(X, T, sample_weight=w, method="gram", **RBF, **o),
    "hsic": lambda X, T, w, **o: hsic_test(X, T, sample_weight=w, tol=1e-3, permutations=9, **RBF, **o),
    "hsic, matrices": lambda X, T, w, **o: hsic_test(X[:200], T[:200], sigma=0.5, tol=1e-3, permutations=9, **o),
    "cca": lambda X, T, w, **o: kernel_cca(X, T, tol=1e-3, permutations=9, **RBF, **o),
    "cca, weights": lambda X, T, w, **o: kernel_cca(X, T, sample_weight=w, tol=1e-3, **RBF, **o),
    "mmd": lambda X, T, w, **o: mmd_test(
        X[:300], X[300:], sample_weight=(w[:300], w[300:]), permutations=9, **RBF, **o
    ),
    "mmd features": lambda X, T, w, **o: mmd_test(
        X[:300], X[300:], method="features", tol=1e-3, permutations=9, **RBF, **o
    ),
    "klda": lambda X, T, w, **o: klda(X, Y, tol=1e-3, method="features", **RBF, **o),
    "klda norm": lambda X, T, w, **o: klda(X, Y, tol=1e-3, method="features", penalty="norm", **RBF, **o),
    "klda gram": lambda X, T, w, **o: klda(X, Y, tol=1e-3, method="gram", regularization=0.1, **RBF, **o),
    "kbda": lambda X, T, w, **o: kbda(X, Y == 1, tol=1e-3, method="features", **RBF, **o),
    "logistic": lambda X, T, w, **o: kernel_logistic(X, Y, sample_weight=w, features_tol=1e-3, **RBF, **o),
    "perceptron": lambda X, T, w, **o: kernel_perceptron(X, Y, max_epochs=3, **RBF, **o),
    "perceptron features": lambda X, T, w, **o: kernel_perceptron(
        X, Y, max_epochs=3, method="features", tol=1e-4, **RBF, **o
    ),
    "kmeans": lambda X, T, w, **o: kernel_kmeans(X, sample_weight=w, method="features", **RBF, **o),
    "spectral": lambda X, T, w, **o: spectral_clustering(X, k=3, sample_weight=w, method="features", **RBF, **o),
    "diffusion": lambda X, T, w, **o: diffusion_map(X, c=3, sample_weight=w, method="features", **RBF, **o),
    "components": lambda X, T, w, **o: kernel_pcr(X, T, c=10, max_features=100, method="features", **RBF, **o),
    "components, classes": lambda X, T, w, **o: kernel_pc_logistic(
        X, Y, c=10, method="features", max_features=100, **RBF, **o
    ),
    "kica": lambda X, T, w, **o: kica(X[:, :2], **o),
    "fisherfaces": lambda X, T, w, **o: kernel_fisherfaces(X[:150], Y[:150], components=20, **o),
}
LAYOUTS = {
    "Fortran": lambda A: np.asfortranarray(A),
    "reversed": lambda A: A[::-1].copy()[::-1],
    "columns": lambda A: np.ascontiguousarray(A.T[::-1])[::-1].T,
    "sliced": lambda A: np.repeat(A, 2, axis=0)[::2],
}


def bits(value):
    """All numbers of a model, and what it says of rows, as bytes."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, (int, float, str, type(None))):
        return value
    if isinstance(value, (list, tuple)):
        return [bits(x) for x in value]
    if isinstance(value, dict):
        return {key: bits(x) for key, x in value.items()}
    if isinstance(value, fk.KPCAModel):  # which also says how long it took
        return [bits(x) for x in (value.eigenvalues, value.eigenvalue_bounds, value.score)]
    if dataclasses.is_dataclass(value):
        return {key: bits(x) for key, x in vars(value).items()}
    return repr(value)


def answers(name, *rows, **options):
    model = METHODS[name](*rows, **options)
    said = [bits(model)]
    for ask in ("predict", "project", "probability"):
        if hasattr(model, ask):
            said.append(bits(getattr(model, ask)(X[:50, :2] if name == "kica" else X[:50])))
    return said


@pytest.fixture(scope="module")
def expected():
    found = {}

    def of(name):
        if name not in found:
            with threadpoolctl.threadpool_limits(1):
                found[name] = answers(name, X, T, W, n_threads=1)
        return found[name]

    return of


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_threads(name, expected):
    with threadpoolctl.threadpool_limits(2):
        for n_threads in (1, 2):
            if name == "fisherfaces":  # the dense route
                continue
            assert answers(name, X, T, W, n_threads=n_threads) == expected(name), n_threads


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", METHODS)
def test_layouts(name, layout, expected):
    with threadpoolctl.threadpool_limits(1):
        rows = [LAYOUTS[layout](A) for A in (X, T)] + [np.repeat(W, 2)[::2]]
        assert answers(name, *rows, n_threads=1) == expected(name)

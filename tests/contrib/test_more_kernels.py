"""All kernels of contrib: their promises and files; those on strings and histograms, ANOVA, the Laplacian: values."""

from __future__ import annotations

import pickle
from collections import Counter
from importlib import metadata
from itertools import combinations

import mpmath
import numpy as np
import pytest
from data import look
from kernels_contrib.anova import Anova
from kernels_contrib.cosine import Cosine
from kernels_contrib.histograms import ChiSquared, Intersection
from kernels_contrib.laplacian import Laplacian
from kernels_contrib.matern import Matern
from kernels_contrib.rational_quadratic import RationalQuadratic
from kernels_contrib.strings import Spectrum
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel

import fastkpca as fk
from fastkpca.testing import check_kernel

RNG = np.random.default_rng(0)
HISTOGRAMS = RNG.dirichlet(np.full(6, 0.5), 90) * (RNG.random((90, 6)) < 0.8)
ROWS = RNG.standard_normal((90, 4))
WORDS = ["".join(RNG.choice(list("abcé"), int(size))) for size in RNG.integers(1, 20, 80)]
CASES = {
    "anova": (Anova(degree=2), ROWS),
    "anova of one column each": (Anova(degree=1, sigma=0.7), ROWS),
    "anova of all columns": (Anova(degree=4, sigma=2.0), ROWS),
    "chi-squared": (ChiSquared(), HISTOGRAMS * 1e3),
    "chi-squared, gamma": (ChiSquared(gamma=0.5), HISTOGRAMS),
    "intersection": (Intersection(), HISTOGRAMS),
    "intersection of counts": (Intersection(), np.round(HISTOGRAMS * 1e4)),
    "spectrum": (Spectrum(), WORDS),
    "spectrum, plain": (Spectrum(length=2, normalized=False), WORDS),
    "laplacian": (Laplacian(), ROWS),
    "cosine": (Cosine(), np.vstack([ROWS, np.zeros(4)])),
    "matern": (Matern(nu=0.7, length_scale=1.0), ROWS),
    "rational quadratic": (RationalQuadratic(alpha=0.5), ROWS),
}


@pytest.mark.parametrize("name", CASES)
def test_the_promises_of_a_kernel(name):
    assert check_kernel(*CASES[name])


@pytest.mark.parametrize(
    "name", [x.name for x in metadata.entry_points(group="fastkpca.kernels") if "contrib" in x.value]
)
def test_found_by_name_saved_and_projected(name, tmp_path):
    X = {"spectrum": WORDS, "chi_squared": HISTOGRAMS, "intersection": HISTOGRAMS}.get(name, ROWS)
    model = fk.kpca(X, name, 3)
    fk.save(model, tmp_path / "m.kpca")
    again = fk.load(tmp_path / "m.kpca", plugins=["fastkpca-kernels-contrib"])
    assert again.kernel == model.kernel == pickle.loads(pickle.dumps(model.kernel))
    np.testing.assert_allclose(fk.kpca_project(again, X[:9]), model.score[:9], atol=1e-7)
    K = np.asarray(fk.gram(X, name if name == "spectrum" else model.kernel).centered())
    values = np.linalg.eigvalsh(K)
    np.testing.assert_allclose(model.eigenvalues, values[::-1][:3], rtol=1e-5)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_anova_is_the_sum_over_sets_of_columns(degree):
    X, Y = ROWS[:7], ROWS[7:12]
    exact = np.zeros((7, 5))
    for columns in map(list, combinations(range(4), degree)):
        exact += np.exp(-((X[:, None, columns] - Y[None, :, columns]) ** 2).sum(axis=2) / (2 * 0.7**2))
    np.testing.assert_allclose(Anova(degree=degree, sigma=0.7).block(X, Y), exact, rtol=1e-14)


def test_anova_of_all_columns_is_the_gaussian_and_one_width_a_column_divides():
    gaussian = fk.get_kernel("gaussian", sigma=1.3)
    np.testing.assert_allclose(Anova(degree=4, sigma=1.3).block(ROWS, ROWS), gaussian.block(ROWS, ROWS), rtol=1e-13)
    widths = [0.5, 1.0, 2.0, 4.0]
    one = fk.gram(ROWS, Anova(degree=2, sigma=widths)) @ np.eye(90)
    other = Anova(degree=2, sigma=1.0).block(ROWS / widths, ROWS / widths)
    np.testing.assert_allclose(one, other, rtol=1e-13)
    default = fk.gram(ROWS, "anova").kernel
    np.testing.assert_allclose(default.sigma, np.median(pdist(ROWS)) / np.sqrt(8))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("which", ["anova", "chi_squared", "intersection"])
def test_values_within_the_stated_error(which, dtype):
    kernel = {
        "anova": Anova(degree=2, sigma=0.7),
        "chi_squared": ChiSquared(gamma=3.0),
    }.get(which, Intersection())
    X = (ROWS if which == "anova" else HISTOGRAMS)[:12].astype(dtype)
    values = kernel.block(X, X)
    assert values.dtype == dtype
    error = kernel.entry_error(look(X.astype(np.float64))[1], np.dtype(dtype))
    with mpmath.workdps(40):
        for i, j in np.ndindex(12, 12):
            pairs = [(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(X[i], X[j])]
            if which == "anova":
                parts = [mpmath.exp(-((a - b) ** 2) / (2 * mpmath.mpf(kernel.sigma) ** 2)) for a, b in pairs]
                exact = mpmath.fsum(a * b for a, b in combinations(parts, 2))
            elif which == "chi_squared":
                exact = mpmath.exp(-3 * mpmath.fsum((a - b) ** 2 / (a + b) for a, b in pairs if a + b))
            else:
                exact = mpmath.fsum(map(min, pairs))
            assert abs(float(values[i, j]) - exact) <= error


def test_chi_squared_and_laplacian_as_scikit_learn():
    model = fk.gram(HISTOGRAMS, "chi_squared", gamma=2.0)
    np.testing.assert_allclose(np.asarray(model), chi2_kernel(HISTOGRAMS, gamma=2.0), rtol=1e-12)
    theirs = laplacian_kernel(ROWS, gamma=0.5)
    np.testing.assert_allclose(np.asarray(fk.gram(ROWS, "laplacian", gamma=0.5)), theirs, rtol=1e-12)
    mean = -np.log(chi2_kernel(HISTOGRAMS, gamma=1.0)).sum() / (90 * 89)
    np.testing.assert_allclose(fk.gram(HISTOGRAMS, "chi_squared").kernel.gamma, 1 / mean, rtol=1e-12)


@pytest.mark.parametrize("m", [1, 40, 200])
def test_the_sorted_product_of_the_intersection_kernel(m):
    Y = np.round(RNG.dirichlet(np.full(6, 0.5), m) * 50)  # with ties
    X = np.round(HISTOGRAMS * 50)
    U, V = RNG.standard_normal((m, 3)), RNG.standard_normal((90, 2))
    exact = np.minimum(X[:, None], Y[None]).sum(axis=2)
    product = fk.gram(X, "intersection", Y, products="sorted")
    assert product.products == "sorted"
    assert (np.abs(product @ U - exact @ U) <= product.error_bound * np.abs(U).sum(axis=0)).all()
    assert (np.abs(product.T @ V - exact.T @ V) <= product.error_bound * np.abs(V).sum(axis=0)).all()
    square = fk.gram(X, "intersection", products="sorted")
    np.testing.assert_allclose(square @ V, np.minimum(X[:, None], X[None]).sum(axis=2) @ V, rtol=1e-10)


def test_many_histograms_take_the_sorted_product():
    many = np.random.default_rng(1).dirichlet(np.ones(8), 20_000)
    assert fk.gram(many, "intersection").products == "sorted"


def spectrum(x, y, length, normalized):
    """By counting."""
    a, b = (Counter(text[i : i + length] for i in range(len(text) - length + 1)) for text in (x, y))
    inner = sum(a[piece] * b[piece] for piece in a)
    sizes = sum(v * v for v in a.values()) * sum(v * v for v in b.values())
    return inner / np.sqrt(sizes) if normalized and sizes else float(inner)


@pytest.mark.parametrize("length", [1, 2, 3, 40])
@pytest.mark.parametrize("normalized", [True, False])
def test_the_spectrum_kernel_counts_pieces(length, normalized):
    texts = [*WORDS[:20], "", "a", "\U0001f600\U0001f600a", "ab" * 40, "".join(map(chr, range(40, 400)))]
    values = Spectrum(length=length, normalized=normalized).block(texts, texts[::2])
    exact = [[spectrum(x, y, length, normalized) for y in texts[::2]] for x in texts]
    np.testing.assert_allclose(values, exact, rtol=1e-14, atol=1e-15)

"""kernels_contrib: found by its entry points, uses only the public surface, and its kernels are what they say."""

import ast
import importlib
import pickle
import tomllib
from collections import Counter
from importlib import metadata
from itertools import combinations
from pathlib import Path

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
from places import ROOT
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import chi2_kernel

import fastkpca as fk
from fastkpca.errors import KernelParameterError
from fastkpca.kernels import BUILTINS, get_kernel, kernel_state, list_kernels
from fastkpca.testing import check_kernel

NAME = "fastkpca-kernels-contrib"
PUBLIC = {"fastkpca"}.union(
    *({f"{module}.{name}" for name in importlib.import_module(module).__all__} for module in (
        "fastkpca", "fastkpca.kernels", "fastkpca.methods", "fastkpca.errors", "fastkpca.state", "fastkpca.sklearn",
        "fastkpca.base.parallel", "fastkpca.base.rounding", "fastkpca.kernels.parameters", "fastkpca.rows.view",
    )),
    {"fastkpca.base.parallel"},
    {f"fastkpca.kernels.{entry.value.split(':')[1]}" for entry in BUILTINS.values()},
)  # fmt: skip
"""What CONTRIBUTING and docs/api_authors.rst call public."""


def test_is_installed_and_not_the_folder_of_the_repository():
    module = __import__(type(get_kernel("laplacian")).__module__)
    assert module.__file__ is not None
    assert Path(module.__file__).parent != ROOT / "kernels_contrib"
    row = next(entry for entry in list_kernels() if entry.name == "laplacian")
    assert (row.distribution, row.version) == (NAME, metadata.version(NAME))


def test_cosine_has_an_exact_feature_map():
    X = np.random.default_rng(5).standard_normal((80, 4)) * 10.0 ** np.arange(-150, 170, 4)[:, None]
    X[3] = 0.0
    F = fk.features(X, "cosine", tol=1e-12)
    assert F.shape == (80, 4) and F.residual_trace == 0.0
    K = get_kernel("cosine").block(X, X)
    np.testing.assert_allclose(F @ (F.T @ np.eye(80)), K, atol=1e-14)
    diagonal = get_kernel("cosine").diagonal(X)
    np.testing.assert_allclose(np.diag(K), diagonal, atol=1e-15)
    assert diagonal[3] == 0.0 and (np.delete(diagonal, 3) == 1.0).all() and not K[3].any()


def test_every_kernel_and_method_is_found_by_its_name():
    named = tomllib.loads((ROOT / "kernels_contrib" / "pyproject.toml").read_text())["project"]["entry-points"]
    for group, listed, get in (
        ("kernels", list_kernels(), get_kernel),
        ("methods", fk.list_methods(), fk.get_method),
    ):
        found = {entry.name for entry in listed if entry.distribution == NAME}
        assert found == set(named[f"fastkpca.{group}"])
        assert all(get(name).__doc__ for name in found)


def test_compiled_parts_import_nothing_of_the_first_distribution():
    sources = sorted((ROOT / "kernels_contrib" / "src").rglob("*.pyx"))
    assert sources
    for path in sources:
        assert "fastkpca" not in path.read_text().replace("kernels_contrib", "")


def test_uses_only_the_public_surface():
    for path in (ROOT / "kernels_contrib" / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                assert name.split(".")[0] != "fastkpca" or name in PUBLIC, f"{path.name} imports {name}"


def test_kernels_and_methods_do_not_import_each_other():
    package = ROOT / "kernels_contrib" / "src" / "kernels_contrib"
    shared = {"kernels": set(), "methods": set()}
    for path in package.rglob("*.py"):
        relative = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        folders = {(node.module or "").split(".")[0] for node in relative if node.level} & set(shared)
        inside = {path.relative_to(package).parts[0]} & set(shared)
        assert len(folders | inside) <= 1, f"{path} imports {folders}"
        for folder in folders:
            shared[folder].add(path.stem)
    assert "matern" in shared["kernels"] and "klda" in shared["methods"]


def test_by_name_and_back():
    kernel = get_kernel("laplacian", gamma=4.0)
    assert kernel == get_kernel(f"{NAME}:laplacian", length_scale=0.25)
    state = {"name": f"{NAME}:laplacian", "parameters": {"length_scale": 0.25}, "version": metadata.version(NAME)}
    assert kernel_state(kernel) == state


def test_default_length_scale():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 3))
    pairs = [np.abs(X[i] - X[j]).sum() for i in range(200) for j in range(i)]
    assert get_kernel("laplacian").resolve(look(X)[1]).length_scale == pytest.approx(np.median(pairs), rel=1e-14)
    mostly_equal = np.zeros((50, 2))
    mostly_equal[:3] = [[1, 1], [2, 2], [4, 4]]
    pairs = [np.abs(a - b).sum() for i, a in enumerate(mostly_equal) for b in mostly_equal[:i]]
    expected = np.median([p for p in pairs if p > 0])
    assert get_kernel("laplacian").resolve(look(mostly_equal)[1]).length_scale == pytest.approx(expected, rel=1e-14)
    with pytest.raises(KernelParameterError, match="all rows of X are equal"):
        get_kernel("laplacian").resolve(look(np.ones((5, 2)))[1])
    kept = get_kernel("laplacian", length_scale=2.0)
    assert kept.resolve(look(X)[1]) is kept


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1", True, [[1.0]]])
@pytest.mark.parametrize("name", ["length_scale", "gamma"])
def test_bad_parameters(name, value):
    with pytest.raises(KernelParameterError, match=f"laplacian: {name} is .*; give a (positive |finite )?number"):
        get_kernel("laplacian", **{name: value})


def test_needs_a_length_scale_before_values():
    with pytest.raises(KernelParameterError, match="length_scale is not set"):
        get_kernel("laplacian").block(np.eye(2), np.eye(2))
    with pytest.raises(TypeError, match="two spellings of one parameter"):
        get_kernel("laplacian", length_scale=1.0, gamma=1.0)


@pytest.mark.parametrize("name", ["matern", "rational_quadratic"])
def test_the_default_length_is_the_gaussians(name):
    X = np.random.default_rng(5).standard_normal((200, 4)) * 30.0
    sigma = fk.kpca(X, "gaussian", 2).kernel.sigma
    model = fk.kpca(X, name, 2)
    assert model.kernel.length_scale == sigma
    given = fk.kpca(X, name, 2, length_scale=sigma)
    np.testing.assert_array_equal(model.eigenvalues, given.eigenvalues)
    assert fk.gram(X, name).kernel.length_scale == sigma
    with pytest.raises(KernelParameterError, match="length_scale is not set"):
        fk.get_kernel(name).block(X, X)
    with pytest.raises(KernelParameterError, match="all rows of X are equal"):
        fk.kpca(np.ones((20, 2)), name, 1)


# Kernels ------------------------------------------------------------------------------------------------------------


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


def test_the_default_gamma_of_chi_squared_is_one_over_the_mean():
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


@pytest.mark.parametrize("n", [500, 1000, 10_000])
def test_the_bound_of_the_sorted_product_holds_where_equal_terms_round_alike(n):
    K = fk.gram(np.array([[1.0], [1e-3]]), "intersection", np.ones((n, 1)), products="sorted")
    off = abs(float((K @ np.full(n, 0.1))[0] - np.longdouble(0.1) * n)) / (0.1 * n)
    assert 0.03 * K.error_bound < off <= K.error_bound


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

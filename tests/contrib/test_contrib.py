"""kernels_contrib: found by its entry point, uses only the public surface, and is the kernel that it says."""

from __future__ import annotations

import ast
import importlib
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from data import look
from places import ROOT

import fastkpca
from fastkpca.errors import KernelParameterError
from fastkpca.kernels import BUILTINS, get_kernel, kernel_state, list_kernels

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
    F = fastkpca.features(X, "cosine", tol=1e-12)
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
        ("methods", fastkpca.list_methods(), fastkpca.get_method),
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
    sigma = fastkpca.kpca(X, "gaussian", 2).kernel.sigma
    model = fastkpca.kpca(X, name, 2)
    assert model.kernel.length_scale == sigma
    given = fastkpca.kpca(X, name, 2, length_scale=sigma)
    np.testing.assert_array_equal(model.eigenvalues, given.eigenvalues)
    assert fastkpca.gram(X, name).kernel.length_scale == sigma
    with pytest.raises(KernelParameterError, match="length_scale is not set"):
        fastkpca.get_kernel(name).block(X, X)
    with pytest.raises(KernelParameterError, match="all rows of X are equal"):
        fastkpca.kpca(np.ones((20, 2)), name, 1)

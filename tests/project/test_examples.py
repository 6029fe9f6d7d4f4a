"""The example packages of docs/write_a_kernel.md and docs/methods.md: installed, found, run, word for word on them."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import textwrap

import pytest
from places import ROOT

EXAMPLES = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "write_a_kernel.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
METHODS_PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
PACKAGES = ("kernel_pure", "kernel_cython", "method_pure")
NAMES = {"cauchy": "fastkpca-example-pure", "sum_of_minima": "fastkpca-example-cython"}
NAMES |= {"kernel_herding": "fastkpca-example-method"}


built = pytest.mark.slow  # needs the packages of the examples built and installed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(*arguments): Python with the examples, installed into a folder, beside what is installed here."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]) or subprocess.run([*compiler, "--version"], capture_output=True).returncode:
        pytest.skip(f"one of the examples is in Cython, and here is no C compiler: {' '.join(compiler)} does not run")
    folder = tmp_path_factory.mktemp("examples")
    sources, installed = folder / "sources", folder / "installed"
    # meson, ninja and cython are programs as well
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_", "COV_"))}
    settings |= {"PATH": path, "PYTHONPATH": str(installed)}

    def run(*arguments, cwd=folder):
        done = subprocess.run(
            [sys.executable, "-P", *arguments], cwd=cwd, env=settings, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    shutil.copytree(EXAMPLES, sources, ignore=shutil.ignore_patterns("build", "__pycache__", "*.egg-info"))
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]
    run("-m", "pip", "install", *options, "--target", installed, *(sources / name for name in PACKAGES))
    return run


@built
def test_they_are_found_without_being_imported(run):
    """Also by an independent reader."""
    code = """
        import json, sys
        import entrypoints
        import fastkpca as fk
        found = {entry.name: entry.distribution for entry in (*fk.list_kernels(), *fk.list_methods())}
        groups = [entrypoints.get_group_all(f"fastkpca.{group}") for group in ("kernels", "methods")]
        assert {entry.name for group in groups for entry in group} == set(found), found
        assert not {"kernel_pure", "kernel_cython", "method_pure"} & set(sys.modules)
        print(json.dumps(found))
    """
    assert NAMES.items() <= json.loads(run("-c", textwrap.dedent(code))).items()


@built
def test_files_of_both_and_the_plan_that_takes_a_product_of_their_own(run):
    """Values, bounds and what is refused: their own tests, below."""
    code = """
        import numpy as np
        import fastkpca as fk
        X = np.random.default_rng(0).random((9000, 4))
        for name in ("cauchy", "sum_of_minima"):
            model = fk.kpca(X[:1500], name, 3)
            fk.save(model, "m.kpca", overwrite=True)
            again = fk.load("m.kpca", plugins=True)
            assert np.array_equal(fk.kpca_project(again, X[:9]), fk.kpca_project(model, X[:9]))
        assert fk.kpca(X, "sum_of_minima", 3).info["products"] == "sorted"
        assert fk.gram(X, "sum_of_minima").products == "sorted"
        both = fk.get_kernel("sum_of_minima") + 0.5 * fk.get_kernel("polynomial", degree=2)
        fk.gram(X, both, products="sum") @ np.ones((9000, 2))
    """
    run("-c", textwrap.dedent(code))


@built
@pytest.mark.skipif(importlib.util.find_spec("fastkpca.testing") is None, reason="the conformance kit is not there")
@pytest.mark.parametrize("name", PACKAGES)
def test_their_own_tests_pass(run, name):
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"sources/{name}/tests")


def test_the_pages_show_every_file_word_for_word():
    shown = set(FENCE.findall(PAGE)) | set(FENCE.findall(METHODS_PAGE))
    for path in sorted(EXAMPLES.rglob("*")):
        if path.suffix in (".py", ".pyx") or path.name in ("pyproject.toml", "meson.build"):
            text = path.read_text(encoding="utf-8")
            if path.relative_to(EXAMPLES).as_posix() in (
                "kernel_cython/pyproject.toml",
                "kernel_cython/tests/test_kernel_cython.py",
            ):
                continue  # like those of the other one
            assert text in shown, f"{path.relative_to(ROOT)} is on no page as it is"


def test_the_examples_use_only_the_public_surface():
    for path in EXAMPLES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fastkpca"):
                words = [*node.module.split("."), *(alias.name for alias in node.names)]
                assert not any(word.startswith("_") for word in words), path


def texts_of_the_package():
    """Every string in the sources, with a hole for each value that is put in."""
    for path in (ROOT / "fastkpca").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(x.value if isinstance(x, ast.Constant) else "\0" for x in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_the_errors_on_the_page_exist():
    texts = list(texts_of_the_package())
    quoted = re.findall(
        r"^\| `([^`]+)` (\((?:numpy|Python)\) )?\|", PAGE[PAGE.index("## When it doesn't work") :], re.MULTILINE
    )
    assert len(quoted) >= 24
    for error, foreign in quoted:
        if not foreign:
            pieces = [piece.strip() for piece in error.split("...")]
            assert any(all(piece in text for piece in pieces) for text in texts), error

"""Types: what users' type checkers see, and stubs that say what the compiled modules are."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from places import is_editable

import fastkpca
from fastkpca import plot

SCRIPT = Path(__file__).parent / "typed" / "every_call.py"
installed = pytest.mark.skipif(is_editable(), reason="mypy does not find an editable install")
METHODS = ("components", "kbda", "kica", "klda", "logistic", "perceptron", "storage")
METHODS += ("cca", "clustering", "diffusion", "hsic", "mmd", "pls", "ridge")
# made by Cython, or said only of classes written in C
NOT_IN_STUBS = r"""
.*\.__test__
.*\.__(reduce|setstate)_cython__
fastkpca\._core\.boxes\.(Grid|Points)
fastkpca\._core\.multiindex\.Expansion
kernels_contrib\.kernels\._radial\.Profile
"""


def run(module: str, *arguments: str | Path, cwd: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_public_call_is_in_the_script():
    called = {node.attr for node in ast.walk(ast.parse(SCRIPT.read_text())) if isinstance(node, ast.Attribute)}
    named = {node.id for node in ast.walk(ast.parse(SCRIPT.read_text())) if isinstance(node, ast.Name)}
    assert set(fastkpca.__all__) - {"__version__"} <= called
    assert set(plot.__all__) - {"require_matplotlib"} <= called
    for name in METHODS:
        public = set(importlib.import_module(f"kernels_contrib.{name}").__all__)
        assert {x for x in public if x not in ("load", "save")} <= named, name


@installed
def test_every_public_call_passes_mypy_strict(tmp_path):
    pytest.importorskip("mypy")
    # elsewhere, so that the installed package is read as a user's checker reads it: no settings of ours
    run("mypy", "--strict", "--cache-dir", tmp_path / "cache", SCRIPT, cwd=tmp_path)


def test_the_script_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)  # by name: what it defines is pickled
    pytest.importorskip("matplotlib").use("Agg")
    importlib.import_module("every_call").main(tmp_path)


@installed
@pytest.mark.parametrize(
    "module",
    [
        "fastkpca._core",
        "kernels_contrib.kernels._radial",
    ],
)
def test_stubs_say_what_the_compiled_modules_are(module, tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "allowed.txt").write_text(NOT_IN_STUBS)
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\n")
    run(
        "mypy.stubtest", module, "--allowlist", "allowed.txt", "--ignore-unused-allowlist",
        "--mypy-config-file", "mypy.ini", cwd=tmp_path,
    )  # fmt: skip

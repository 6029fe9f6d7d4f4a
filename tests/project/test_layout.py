"""What is installed is what is in the tree, and an unbuilt tree says what to do."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from places import ROOT, is_editable

import fastkpca


def listed(build_file: Path) -> set[Path]:
    """Every quoted source in a meson.build, relative to the root; not what the build writes itself."""
    names = re.findall(r"(?<!output: )'([^'\n]+\.(?:py|pyi|pyx|pxd|c|h|typed))'", build_file.read_text())
    return {(build_file.parent / name).relative_to(ROOT) for name in names}


def tree(folder: Path, *suffixes: str) -> set[Path]:
    files = {path.relative_to(ROOT) for suffix in suffixes for path in folder.rglob(f"*{suffix}")}
    return {path for path in files if "build" not in path.parts}


def test_install_lists_equal_the_tree():
    build_files = [ROOT / "fastkpca" / "meson.build", ROOT / "fastkpca" / "_core" / "meson.build"]
    named = set().union(*map(listed, build_files))
    assert {p for p in named if p.suffix in (".py", ".pyi", ".typed")} == tree(
        ROOT / "fastkpca", ".py", ".pyi", ".typed"
    )
    missing = {path for path in named if not (ROOT / path).exists()}
    assert not missing


def test_every_compiled_source_is_built():
    text = (ROOT / "fastkpca" / "_core" / "meson.build").read_text()
    for path in tree(ROOT / "fastkpca" / "_core", ".pyx", ".c"):
        assert f"'{path.stem}'" in text or f"'{path.name}'" in text, f"{path} is not in _core/meson.build"


def test_contrib_install_list_equals_the_tree():
    folder = ROOT / "kernels_contrib"
    assert listed(folder / "meson.build") == tree(folder / "src", ".py", ".pyi", ".pyx", ".c", ".h", ".typed")


@pytest.mark.skipif(is_editable(), reason="an editable install is the source tree")
def test_installed_files_equal_the_tree():
    files = metadata.distribution("fastkpca").files or []
    installed = {
        Path(f) for f in map(str, files) if f.startswith("fastkpca/") and f.endswith((".py", ".pyi", ".typed"))
    }
    assert installed == tree(ROOT / "fastkpca", ".py", ".pyi", ".typed")


def test_the_installed_package_is_tested():
    here = Path(fastkpca.__file__).resolve().parent
    if is_editable():
        assert here == ROOT / "fastkpca"
    else:
        assert here != ROOT / "fastkpca"


def test_version_stands_in_one_place():
    assert re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1] == metadata.version("fastkpca")
    assert "version" not in re.findall(r"^(\w+) =", (ROOT / "pyproject.toml").read_text(), flags=re.M)


def import_from(folder: Path) -> subprocess.CompletedProcess:
    # -S: without site-packages, so that no installed or editable copy is found instead
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import fastkpca"
    return subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)


def test_an_unbuilt_tree_says_what_to_do(tmp_path):
    shutil.copytree(
        ROOT / "fastkpca", tmp_path / "fastkpca", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    )
    result = import_from(tmp_path)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: fastkpca is not built in {tmp_path / 'fastkpca'}")
    for word in ("pip install .", "pip install --no-build-isolation -e .", "plain `pytest`"):
        assert word in last


def test_other_import_errors_are_not_disguised(tmp_path):
    """A compiled module that is there but fails for another reason keeps its own error."""
    package = tmp_path / "fastkpca"
    (package / "_core").mkdir(parents=True)
    shutil.copy(ROOT / "fastkpca" / "__init__.py", package)
    shutil.copytree(ROOT / "fastkpca" / "base", package / "base")
    (package / "_core" / "__init__.py").write_text("")
    (package / "_core" / "moments.py").write_text("import a_library_that_is_missing\n")
    result = import_from(tmp_path)
    assert result.stderr.strip().splitlines()[-1] == (
        "ModuleNotFoundError: No module named 'a_library_that_is_missing'"
    )


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("gcc"), reason="needs gcc -m32")
@pytest.mark.parametrize("folder", [ROOT, ROOT / "kernels_contrib"], ids=["fastkpca", "kernels_contrib"])
@pytest.mark.parametrize(
    ("compiler", "endian", "reason"),
    [
        # nothing is linked: 32-bit libraries are rarely installed
        (["gcc", "-m32", "-nostdlib"], "little", "needs a 64-bit platform"),
        (["gcc"], "big", "needs a little-endian platform"),
    ],
    ids=["32-bit", "big-endian"],
)
def test_platforms_that_are_not_supported_are_refused(compiler, endian, reason, folder, tmp_path):
    assert reason in refused_setup(folder, tmp_path, compiler=compiler, system="linux", endian=endian)


@pytest.mark.skipif(os.name != "posix", reason="the compiler that is played is a script of a shell")
@pytest.mark.parametrize("folder", [ROOT, ROOT / "kernels_contrib"], ids=["fastkpca", "kernels_contrib"])
def test_cl_is_refused(folder, tmp_path, monkeypatch):
    for name, says in (("cl", "C/C++ Optimizing Compiler Version 19.40.33811 for x64"), ("link", "Linker 14.40")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho 'Microsoft (R) {says}' >&{2 if name == 'cl' else 1}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    said = refused_setup(folder, tmp_path, compiler=[str(tmp_path / "cl")], system="windows", endian="little")
    assert "needs GCC or clang" in said and "CC=clang-cl" in said


def refused_setup(folder: Path, tmp_path: Path, *, compiler: list[str], system: str, endian: str) -> str:
    """What the build says where it is set up for such a machine, and refuses it."""
    machine = tmp_path / "machine.ini"
    machine.write_text(
        f"[binaries]\nc = {compiler}\npython = '{sys.executable}'\n"
        f"[host_machine]\nsystem = '{system}'\ncpu_family = 'x86'\ncpu = 'x86'\nendian = '{endian}'\n"
    )
    setup = [sys.executable, "-m", "mesonbuild.mesonmain", "setup", tmp_path / "build", "--cross-file", machine]
    run = subprocess.run(setup, cwd=folder, capture_output=True, text=True)
    assert run.returncode != 0
    return run.stdout

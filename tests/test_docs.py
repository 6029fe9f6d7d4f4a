"""The documents: every snippet of README.md and docs/*.md runs, and the guide leaves out nothing public."""

from __future__ import annotations

import inspect
import re
import shlex
import tomllib
from dataclasses import fields
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import fastkpca as fk
from fastkpca import errors
from fastkpca.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
# Files of the example packages stand on a page word for word; those that need the installed package are run by
# tests/test_examples.py.
RUN_INSTALLED = {
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs" / "examples").rglob("*.py"))
    if "from . import" in path.read_text(encoding="utf-8") or path.parent.name == "tests"
}
INSTALLS = "python3 -m venv .venv && .venv/bin/pip install "  # these are run by .ci/run, in a clone


def snippets(page, language):
    return [text for found, text in FENCE.findall(page.read_text(encoding="utf-8")) if found == language]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files that the documents speak of."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    for name, rows in (("measurements.csv", X), ("new.csv", X[:7])):
        np.savetxt(name, rows, delimiter=",", header="height,weight,age", comments="")
    lines = [",".join([*map(repr, row), "ab"[i % 2]]) for i, row in enumerate(X.tolist())]
    Path("labelled.csv").write_text("\n".join(["height,weight,age,group", *lines]) + "\n")
    np.savez("arrays.npz", X=X, other=X)
    return tmp_path


def test_the_pages_are_found_and_every_snippet_is_of_a_known_kind():
    assert {page.name for page in PAGES} >= {"README.md", "guide.md", "kernels.md", "theory.md", "write_a_kernel.md"}
    assert (ROOT / "docs" / "preimages_and_novelty.md") in PAGES
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found = FENCE.findall(text)
        assert 2 * len(found) == len(re.findall(r"^ *```", text, re.MULTILINE)), f"{page.name}: a fence is not read"
        assert {language for language, _ in found} <= {"python", "sh", "toml", "cython", "meson", ""}, page.name
    assert sum(len(snippets(page, "python")) for page in PAGES) >= 12
    assert snippets(ROOT / "README.md", "python")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_snippets_run_in_order(page, here, capsys):
    rng = np.random.default_rng(1)
    names = {"X": rng.standard_normal((150, 4)), "X_new": rng.standard_normal((12, 4)), "fk": fk, "np": np}
    before = fk.list_kernels().names
    for number, text in enumerate(snippets(page, "python")):
        if text in RUN_INSTALLED:
            continue
        exec(compile(text, f"{page.name}, python snippet {number}", "exec"), names)
    assert fk.list_kernels().names == before  # a snippet that registers a kernel takes it back


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_run(page, here, capsys):
    pytest.importorskip("matplotlib")
    for text in [*snippets(page, "sh"), *snippets(page, "")]:
        for line in text.strip().splitlines():
            line = line.strip()
            if line.startswith(INSTALLS):
                continue
            program, *arguments = shlex.split(line)
            assert program.removeprefix(".venv/bin/") == "fastkpca", f"{page.name}: {line!r} is not run by this test"
            arguments += [] if arguments[0] != "fit" else ["--force"]  # a page may write one file twice
            assert main(arguments) == 0, (line, capsys.readouterr().err)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_toml_is_toml(page):
    for text in snippets(page, "toml"):
        assert tomllib.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_named_files_exist(page):
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    for link in links:
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.is_file(), f"{page.name} links to {link}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}, link
    for name in re.findall(r"`((?:fastkpca|tests|benchmarks|docs|kernels_contrib)/[\w/.]*)`", text):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


@pytest.mark.parametrize("name", [name for name in fk.__all__ if not name.startswith("__")] + errors.__all__)
def test_the_guide_has_every_public_name(name):
    assert re.search(rf"`[^`\n]*\b{name}\b", GUIDE)


@pytest.mark.parametrize("name", [p.name for p in inspect.signature(fk.kpca).parameters.values()])
def test_the_guide_has_every_parameter_of_kpca(name):
    assert re.search(rf"`[^`\n]*\b{name}\b", GUIDE)


def test_the_guide_has_every_attribute_of_a_model():
    stored = {x.name for x in fields(fk.KPCAModel)}
    computed = {name for name, value in vars(fk.KPCAModel).items() if isinstance(value, (property, cached_property))}
    missing = [n for n in stored | computed if not n.startswith("_") and not re.search(rf"`{n}`", GUIDE)]
    assert not missing


def test_the_guide_has_every_kernel_and_parameter():
    for entry in fk.list_kernels():
        if entry.distribution != "fastkpca":
            continue
        kernel = type(fk.get_kernel(entry.name))
        for word in (entry.name, *entry.aliases, *kernel.parameters, *kernel.aliases):
            assert re.search(rf"`{word}\b", GUIDE), word

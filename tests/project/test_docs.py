"""The documents: every snippet of README.md and docs/*.md runs, and the guide leaves out nothing public."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import fields
from functools import cached_property
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

import fastkpca as fk
from fastkpca import errors, plot
from fastkpca.base import protocol
from fastkpca.cli import main
from fastkpca.testing import check_kernel

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDE = "".join(page.read_text(encoding="utf-8") for page in PAGES if page.name.startswith("guide"))
# Files of the example packages stand on a page word for word; those that need the installed package are run by
# tests/project/test_examples.py.
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
    for name, rows in (("timed.csv", X), ("hour.csv", X[:7])):
        times = np.datetime_as_string(np.datetime64("2026-03-01T00:00") + 5 * np.arange(len(rows)))
        lines = [",".join([time, *map(repr, row)]) for time, row in zip(times, rows.tolist())]
        Path(name).write_text("\n".join(["time,height,weight,age", *lines]) + "\n")
    lines = [",".join([*map(repr, row), "ab"[i % 2]]) for i, row in enumerate(X.tolist())]
    Path("labelled.csv").write_text("\n".join(["height,weight,age,group", *lines]) + "\n")
    np.savez("arrays.npz", X=X, other=X)
    np.save("rows.npy", X)
    return tmp_path


def test_the_pages_are_found_and_every_snippet_is_of_a_known_kind():
    assert {page.name for page in PAGES} >= {
        "README.md",
        "from_sklearn.md",
        "guide.md",
        "guide_command_line.md",
        "guide_errors.md",
        "guide_model.md",
        "kernels.md",
        "preimages_and_novelty.md",
        "theory.md",
        "write_a_kernel.md",
    }
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found = FENCE.findall(text)
        assert 2 * len(found) == len(re.findall(r"^ *```", text, re.MULTILINE)), f"{page.name}: a fence is not read"
        assert {language for language, _ in found} <= {"python", "sh", "toml", "cython", "meson", "r", "bibtex", ""}, (
            page.name
        )
    assert sum(len(snippets(page, "python")) for page in PAGES) >= 12
    assert snippets(ROOT / "README.md", "python")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_snippets_run_in_order(page, here, capsys):
    rng = np.random.default_rng(1)
    names = {"X": rng.standard_normal((150, 4)), "X_new": rng.standard_normal((12, 4)), "fk": fk, "np": np}
    names |= {"y": names["X"][:, 0] > 0}
    names |= {"january": names["X"][:90], "february": names["X"][90:]}
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


def test_the_guide_has_everything_public():
    """Functions, errors, parameters of kpca, attributes of a model, kernels with their parameters."""
    names = [name for name in fk.__all__ if not name.startswith("__")] + errors.__all__
    names += inspect.signature(fk.kpca).parameters
    for entry in fk.list_kernels():
        if entry.distribution == "fastkpca":
            kernel = type(fk.get_kernel(entry.name))
            names += [entry.name, *entry.aliases, *kernel.parameters, *kernel.aliases]
    missing = [name for name in names if not re.search(rf"`[^`\n]*\b{name}\b", GUIDE)]
    stored = {x.name for x in fields(fk.KPCAModel)}
    computed = {name for name, value in vars(fk.KPCAModel).items() if isinstance(value, (property, cached_property))}
    missing += [n for n in stored | computed if not n.startswith("_") and not re.search(rf"`{n}`", GUIDE)]
    assert not missing


def test_the_benchmarks_name_their_scripts_and_the_pictures_of_the_readme_are_there():
    readme, page = (ROOT / "README.md").read_text("utf-8"), (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    scripts = re.findall(r"^<!-- (\S+\.py)(?: .*)?: begin -->$", page, re.MULTILINE)
    assert len(scripts) == page.count("<!-- end -->") >= 6 and all((ROOT / "benchmarks" / x).is_file() for x in scripts)
    pictures = re.findall(r"!\[.+?\]\((.+?)\)", readme)
    assert len(pictures) == 3 and all((ROOT / path).is_file() for path in pictures)
    drawn = (ROOT / "docs" / "draw_pictures.py").read_text("utf-8")
    assert all(f'"{Path(path).name}"' in drawn for path in pictures)


def test_a_page_takes_what_the_commands_asked_for_print(tmp_path):
    page = tmp_path / "page.md"
    tables = ["<!-- compare.py --help: begin -->\nof last year", "<!-- size.py: begin -->\nkept"]
    page.write_text("".join(f"before\n{table}\n<!-- end -->\n" for table in tables))
    subprocess.run([sys.executable, ROOT / "benchmarks" / "page.py", page, "compare"], check=True, capture_output=True)
    first, second, rest = page.read_text().split("<!-- end -->\n")
    assert first.startswith("before\n<!-- compare.py --help: begin -->\nusage: compare.py") and "last year" not in first
    assert (second, rest) == (f"before\n{tables[1]}\n", "")


def test_the_check_of_links_finds_what_is_wrong(tmp_path):
    spec = importlib.util.spec_from_file_location("check_links", ROOT / "docs" / "check_links.py")
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    good = (
        '<a href="b.html#there">x</a><a href="#top">y</a><a id="top"></a><img src="p.png"><a href="https://x.y">z</a>'
    )
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html">a</a></p>')
    (tmp_path / "p.png").write_bytes(b"")
    assert check.problems(tmp_path) == ([], 4)
    wrong = {
        '<a href="c.html">': "not there",
        '<a href="b.html#nowhere">': "no such place",
        '<a href="../outside.html">': "not there",
        '<img src="q.png">': "not there",
        '<script src="https://x.y/z.js"></script>': "loads https://x.y/z.js",
        '<link rel="stylesheet" href="//x.y/z.css">': "loads //x.y/z.css",
    }
    for text, message in wrong.items():
        (tmp_path / "a.html").write_text(good + text)
        found, _ = check.problems(tmp_path)
        assert len(found) == 1 and message in found[0], (text, found)
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "s.css").write_text("@font-face { src: url(https://x.y/f.woff) }")
    assert len(check.problems(tmp_path)[0]) == 1


def test_the_api_pages_have_everything_public_and_that_of_authors_on_the_second():
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("api.rst", "api_authors.rst")]
    users, authors = [set(re.findall(r"^   ~?([\w.]+)$", page, re.MULTILINE)) for page in pages]
    assert {"kpca", "gaussian.Gaussian", "KernelPCA"} <= users and not users & authors
    assert authors >= {"warn_caller", "base.plugins.Entry", "require_matplotlib", "Kernel"}
    listed = users | authors
    public = [name for name in fk.__all__ if not name.startswith("__")] + errors.__all__ + plot.__all__
    public += [x for x in fk.kernels.__all__ if x in vars(protocol) or x.endswith("Kernel")]
    public += [entry.value.rpartition(":")[2] for entry in metadata.entry_points(group="fastkpca.methods")]
    missing = [name for name in public if not any(x == name or x.endswith(f".{name}") for x in listed)]
    assert not missing


@pytest.fixture
def sech(tmp_path, monkeypatch):
    """The kernel with a truncated map of write_a_kernel.md."""
    text = (ROOT / "docs" / "write_a_kernel.md").read_text()
    [code] = re.findall(r"```python\n(class Sech.*?)\nx = X", text, flags=re.DOTALL)
    heads = ["import numpy as np", "from fastkpca.kernels import *", "from scipy.spatial.distance import cdist", code]
    (tmp_path / "map_of_the_page.py").write_text("\n".join(heads))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "map_of_the_page", raising=False)
    return importlib.import_module("map_of_the_page").Sech


@pytest.mark.parametrize("N", [100, 400, 5000])
def test_the_plan_asks_the_map_of_write_a_kernel(sech, N):
    x = np.random.default_rng(0).random((N, 1))
    for kernel in (sech(width=0.3), sech(width=0.3) + 0.5 * fk.get_kernel("linear")):
        assert fk.kpca(x, kernel, 5).n_components == 5
        assert fk.kpca(x, kernel, 3, max_features=5).n_components == 3
    x = np.random.default_rng(0).random((N, 3))
    assert fk.kpca(x, sech(width=0.3), 5, tol=1e-2).n_components == 5


def test_the_map_of_write_a_kernel_keeps_its_bounds(sech):
    for width in (0.1, 0.7, 4.0):
        assert check_kernel(sech(width=width))["check_feature_map_outside"] == "passed"

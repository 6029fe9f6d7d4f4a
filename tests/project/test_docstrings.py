"""Every example in a docstring runs, and gives what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import fastkpca
import kernels_contrib

pytest.importorskip("matplotlib", reason="examples of fastkpca.plot need matplotlib, which is not installed")
LEFT_OUT = ("_core", "__main__")  # compiled, or run when imported


def modules():
    for package in (fastkpca, kernels_contrib):
        yield package
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not any(part in LEFT_OUT for part in found.name.split(".")):
                yield importlib.import_module(found.name)


EXAMPLES = [
    test
    for module in modules()
    if inspect.getsourcefile(module)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module)
    if test.examples
]


def test_the_calls_that_people_begin_with_have_examples():
    shown = {test.name.rpartition(".")[2] for test in EXAMPLES}
    calls = {"kpca", "kpca_project", "pca", "plan", "gram", "features", "save", "get_kernel", "get_method"}
    assert calls <= shown
    assert set(fastkpca.plot.__all__) - {"require_matplotlib", "save"} <= shown


@pytest.mark.parametrize("test", EXAMPLES, ids=lambda test: test.name)
def test_examples_of_docstrings(test, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written: list[str] = []
    with np.printoptions(precision=3, suppress=True):
        result = doctest.DocTestRunner(verbose=False).run(test, out=written.append)
    assert result.failed == 0, "".join(written)

"""scikit-learn's own test files, run with a class of theirs replaced by ours."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib.util import find_spec

import pytest

CODE = """
    import importlib, sys
    import pytest
    import fastkpca.sklearn
    ini, module, name, tests, words, *ignored = sys.argv[1:]
    ours = getattr(fastkpca.sklearn, name)
    setattr(importlib.import_module(module), name, ours)

    class Count:
        outcomes, replaced = [], set()
        def pytest_collection_modifyitems(self, items):
            Count.replaced = {getattr(item.module, name) for item in items}
        def pytest_runtest_logreport(self, report):
            if report.when == "call" or report.outcome == "skipped":
                Count.outcomes.append(report.outcome)

    args = ["-q", "-p", "no:cacheprovider", "-c", ini, "--rootdir", ini + "/..", "-k", words, "-W", "error"]
    for warning in ignored:
        args += ["-W", "ignore:" + warning]
    status = pytest.main(args + ["--pyargs", tests], plugins=[Count()])
    assert Count.replaced == {ours}, Count.replaced
    print(Count.outcomes.count("passed"), len(Count.outcomes))
    sys.exit(status)
"""


def passed(tmp_path, module: str, name: str, tests: str, *ignored: str, words: str = "") -> tuple[int, int]:
    """(how many passed, how many were run or skipped) where ``module.name`` is the class of fastkpca.sklearn.

    ``tests`` is a file as installed, ``words`` choose among its tests (pytest's -k). All warnings are errors but those
    that the filters ``ignored`` name.
    """
    if find_spec(tests) is None:
        pytest.skip("this scikit-learn comes without its tests")
    empty = tmp_path / "pytest.ini"
    empty.write_text("[pytest]\n")
    command = [sys.executable, "-P", "-c", textwrap.dedent(CODE), str(empty), module, name, tests, words, *ignored]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    few, every = map(int, done.stdout.splitlines()[-1].split())
    return few, every

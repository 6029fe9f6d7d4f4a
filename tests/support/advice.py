"""Advice in errors and warnings: the texts of the sources that hold some, as patterns of what users read.

    python tests/support/advice.py

prints those that no case of tests/project/test_advice.py follows. They stand in advice_without_a_test.txt there,
each behind the word that says why.
"""

from __future__ import annotations

import ast
import atexit
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fastkpca as fk

Case = tuple[Callable[[], Any], str, Callable[[], Any]]
"""A call that fails, words of its message that tell what to do, and the call after that."""

ROOT = Path(__file__).resolve().parents[2]
LISTED = ROOT / "tests" / "project" / "advice_without_a_test.txt"
VERBS = (
    "add ask call choose convert drop give install leave make pass project raise reinstall rename report rescale save "
    "say see set standardize take tell try upgrade use write"
)
ADVICE = re.compile(rf"(^|[;:,(] |\. |\bor |\band )({'|'.join(VERBS.split())})\b", re.IGNORECASE)
HOLE = "{}"

# What the cases have in common
X = np.random.default_rng(0).standard_normal((60, 4))
SPARE = np.random.default_rng(1).standard_normal((60, 4))
Y = (X[:, 0] > 0).astype(int)
GAPS = X.copy()
GAPS[3, 2] = np.nan
U = np.ones((60, 1))
FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def fitted(c: Any = 2, kernel: Any = "gaussian", **options: Any) -> fk.KPCAModel:
    return fk.kpca(X, kernel, c, **({"sigma": 2.0} if kernel == "gaussian" else {}), **options)


def gram(**options: Any) -> Any:
    return fk.gram(X, "gaussian", **{"sigma": 2.0} | options)


class Nearest:
    """A classifier as scikit-learn's are."""

    def fit(self, Z: Any, y: Any) -> Nearest:
        self.Z, self.y = Z, np.asarray(y)
        return self

    def score(self, Z: Any, y: Any) -> float:
        return float(np.mean(self.y[((Z[:, None] - self.Z) ** 2).sum(-1).argmin(axis=1)] == y))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


def message(case: Case) -> str:
    """What the call of a case says is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            case[0]()
        except (Exception, SystemExit) as error:
            return " ".join(str(error).split())
    raise AssertionError("the call succeeds")


def without_warnings(call: Callable[[], Any]) -> Any:
    """For what a warning says of the right call too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def _text(node: ast.expr) -> str:
    """The text of an expression, with ``{}`` for what is only known when it runs."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_text, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
    return HOLE


def texts() -> Iterator[tuple[str, str]]:
    """(module, text) of each error and warning of the package that advises."""
    for path in sorted((ROOT / "fastkpca").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            call = node.exc if isinstance(node, ast.Raise) else node
            warns = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "warn_caller"
            if not (isinstance(call, ast.Call) and call.args and (isinstance(node, ast.Raise) or warns)):
                continue
            text = re.sub(r"(\{\})+", HOLE, " ".join(_text(call.args[0]).split()))
            if ADVICE.search(text):
                yield path.relative_to(ROOT / "fastkpca").as_posix(), text


def pattern(text: str) -> re.Pattern[str]:
    """What a text of the sources may read like."""
    return re.compile(".*".join(map(re.escape, text.split(HOLE))), re.DOTALL)


def listed() -> dict[str, str]:
    """Texts without a case, and why each has none."""
    lines = (line.partition(" | ") for line in LISTED.read_text().splitlines())
    return {text: why for why, _, text in lines}


def not_followed(seen: list[str]) -> set[str]:
    """The texts that none of these messages is an instance of."""
    said = [" ".join(message.split()) for message in seen]
    return {f"{module}: {text}" for module, text in texts() if not any(map(pattern(text).fullmatch, said))}


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(ROOT / "tests" / "project"))
    import test_advice

    print("\n".join(sorted(not_followed([message(case) for case in test_advice.CASES.values()]))))

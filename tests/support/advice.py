"""Advice in errors and warnings: the texts of the sources that hold some, as patterns of what users read.

    python tests/support/advice.py > tests/project/advice_without_a_test.txt

writes down those that no case of tests/project/test_advice.py follows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTED = ROOT / "tests" / "project" / "advice_without_a_test.txt"
VERBS = (
    "add ask call choose convert drop give install leave make pass project raise reinstall rename report rescale save "
    "say see set standardize take tell try upgrade use write"
)
ADVICE = re.compile(rf"(^|[;:,(] |\. |\bor |\band )({'|'.join(VERBS.split())})\b", re.IGNORECASE)
HOLE = "{}"


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


def not_followed(seen: list[str]) -> set[str]:
    """The texts that none of these messages is an instance of."""
    said = [" ".join(message.split()) for message in seen]
    return {f"{module}: {text}" for module, text in texts() if not any(map(pattern(text).fullmatch, said))}


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(ROOT / "tests" / "project"))
    import test_advice

    print("\n".join(sorted(not_followed([test_advice.message(case) for case in test_advice.CASES.values()]))))

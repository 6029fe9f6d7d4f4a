"""Size of the code, by package: lines of code, numbers set by hand, and seconds to compile.

    python benchmarks/size.py [--compile]

A line of code holds more than a comment or a docstring. A number set by hand is a constant of a module (or several in
one statement) whose value has numbers written into it. ``--compile`` builds both distributions anew in a temporary
folder, without a compiler cache, and prints processor seconds, which takes some minutes.

CONTRIBUTING says what the budget is, and what a new special case has to show before it comes in.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DISTRIBUTIONS = {"fastkpca": ROOT, "kernels_contrib": ROOT / "kernels_contrib"}
BUDGET = {"code": 25_000, "numbers": 200, "tests": 22_000, "longest": 450}
"""Goals in lines of code and in numbers; ``longest`` is the code of the longest file."""
NO_CODE = {getattr(tokenize, name) for name in ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")}


def python_lines(text: str) -> int:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:  # a lambda's body is an expression
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                lines.difference_update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return len(lines)


def compiled_lines(text: str, suffix: str) -> int:
    cython = suffix in (".pyx", ".pxd")
    text = re.sub(r'""".*?"""' if cython else r"/\*.*?\*/", "", text, flags=re.DOTALL)
    comment = "#" if cython else "//"
    return sum(bool(line.strip()) and not line.strip().startswith(comment) for line in text.splitlines())


def numbers_set_by_hand(text: str) -> int:
    count = 0
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets[:1], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        written = [type(node.value) for node in ast.walk(value) if isinstance(node, ast.Constant)]
        if all(name.isupper() for name in names) and {int, float}.intersection(written):
            count += len(names)
    return count


def weigh(path: Path) -> tuple[int, int]:
    """(lines of code, numbers set by hand) of a source."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return python_lines(text), numbers_set_by_hand(text)
    return compiled_lines(text, path.suffix), 0


def sources() -> Iterator[tuple[str, Path]]:
    """(package, path): the folders and modules of fastkpca, and kernels_contrib as one."""
    for name, base in (("", ROOT / "fastkpca"), ("kernels_contrib", DISTRIBUTIONS["kernels_contrib"] / "src")):
        for path in sorted(base.rglob("*")):
            if path.suffix in (".py", ".pyx", ".pxd", ".c", ".h"):
                yield name or path.relative_to(base).with_suffix("").parts[0], path


def compile_seconds(folder: Path) -> float:
    """Processor seconds of a build from nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as build:
        tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = os.environ | {"CCACHE_DISABLE": "1", "PATH": tools}
        for command in (["meson", "setup", build, str(folder), "-Dbuildtype=release"], ["ninja", "-C", build]):
            subprocess.run(command, check=True, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    longest = (0, "")
    for room, path in sources():
        code, numbers = weigh(path)
        rooms[room] = [have + more for have, more in zip(rooms[room], (code, numbers, 1), strict=True)]
        longest = max(longest, (code, str(path.relative_to(ROOT))))
    print(f"{'package':16} {'code':>7} {'numbers':>8} {'files':>6}")
    for room, weights in sorted(rooms.items(), key=lambda row: -row[1][0]):
        print("{:16} {:7} {:8} {:6}".format(room, *weights))
    code, numbers, files = (sum(column) for column in zip(*rooms.values(), strict=True))
    print(f"{'all':16} {code:7} {numbers:8} {files:6}   budget {BUDGET['code']}, {BUDGET['numbers']}")
    print(f"longest file: {longest[1]}, {longest[0]} lines of code; budget {BUDGET['longest']}")
    for folder, budget in (("tests", f"; budget {BUDGET['tests']}"), ("benchmarks", "")):
        lines = sum(weigh(path)[0] for path in (ROOT / folder).rglob("*.py"))
        print(f"{folder}: {lines} lines of code{budget}")
    if options.compile:
        for name, folder in DISTRIBUTIONS.items():
            print(f"compiling {name}: {compile_seconds(folder):.0f} processor seconds")


if __name__ == "__main__":
    main()

"""Figures of the house: rooms, floors, arrows, long functions, repeated passages, lines. usage: house.py [ROOT]

A room is a folder or a loose module directly in fastkpca/, and kernels_contrib/ and benchmarks/ each. An arrow is a
pair of rooms with an import between them, a floor is a step of the longest chain of arrows. A repeated passage is a
pair of places with six or more equal lines of code (blank lines, comments and imports left out).
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from itertools import combinations
from pathlib import Path

LINES_OF_A_PASSAGE = 6
LONG_FUNCTION = 50
MANY_ARGUMENTS = 8


def sources(root: Path) -> dict[Path, str]:
    """Each source of both packages and the benchmarks, with its room."""
    package = root / "fastkpca"
    rooms = {}
    for suffix in ("*.py", "*.pyx"):
        for path in package.rglob(suffix):
            rooms[path] = path.relative_to(package).with_suffix("").parts[0]
        for path in (root / "kernels_contrib" / "src").rglob(suffix):
            rooms[path] = "kernels_contrib"
    rooms |= dict.fromkeys((root / "benchmarks").rglob("*.py"), "benchmarks")
    return dict(sorted(rooms.items()))


def imported_rooms(path: Path, root: Path, rooms: set[str]) -> set[str]:
    """The rooms that a Python source imports from."""
    targets = set()
    here = path.relative_to(root).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            dotted = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            stem = list(here[: len(here) - node.level + 1]) if node.level else []
            stem += node.module.split(".") if node.module else []
            dotted = [[*stem, alias.name] for alias in node.names]
        else:
            continue
        for parts in dotted:
            if parts[0] == "kernels_contrib":
                targets.add("kernels_contrib")
            elif parts[0] == "fastkpca":
                targets.add(parts[1] if len(parts) > 1 and parts[1] in rooms else "__init__")
    return targets


def floors(arrows: dict[str, set[str]]) -> dict[str, int]:
    heights: dict[str, int] = {}

    def height(room: str) -> int:
        if room not in heights:
            heights[room] = 1 + max(map(height, arrows[room]), default=0)
        return heights[room]

    for room in arrows:
        height(room)
    return heights


def functions(tree: ast.AST) -> list[tuple[str, int, int]]:
    """(name, lines without the docstring, arguments) of each function."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = node.end_lineno - node.lineno + 1
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines -= first.end_lineno - first.lineno + 1
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        found.append((node.name, lines, sum(x.arg not in ("self", "cls") for x in arguments)))
    return found


def code_lines(text: str) -> list[str]:
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    return [x for x in lines if len(x) > 2 and not x.startswith(("#", "import ", "from "))]


def repeated_passages(texts: list[str]) -> int:
    """Pairs of places that share six or more lines, in one file or in two; overlapping windows count once."""
    places = defaultdict(list)
    for file, text in enumerate(texts):
        lines = code_lines(text)
        for start in range(len(lines) - LINES_OF_A_PASSAGE + 1):
            places[tuple(lines[start : start + LINES_OF_A_PASSAGE])].append((file, start))
    starts = {pair for where in places.values() if len(where) <= 8 for pair in combinations(where, 2)}
    return sum(((f, i - 1), (g, j - 1)) not in starts for (f, i), (g, j) in starts)


def figures(root: Path) -> dict[str, int]:
    rooms = sources(root)
    names = set(rooms.values())
    arrows: dict[str, set[str]] = {name: set() for name in names}
    texts = {path: path.read_text(encoding="utf-8") for path in rooms}
    for path, room in rooms.items():
        if path.suffix == ".py":
            arrows[room] |= imported_rooms(path, root, names) - {room}
    packages = {path: text for path, text in texts.items() if rooms[path] != "benchmarks"}
    trees = {path: ast.parse(text) for path, text in packages.items() if path.suffix == ".py"}
    every = [item for tree in trees.values() for item in functions(tree)]

    def calls(*wanted: str) -> int:
        nodes = (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Call))
        return sum(isinstance(node.func, ast.Name) and node.func.id in wanted for node in nodes)

    def lines(folder: str) -> int:
        suffixes = {".py", ".pyx", ".pyi", ".c", ".h"}
        files = [p for p in (root / folder).rglob("*") if p.suffix in suffixes and "build" not in p.parts]
        return sum(len(p.read_text(encoding="utf-8").splitlines()) for p in files)

    return {
        "rooms": len(names),
        "floors": max(floors(arrows).values()),
        "arrows": sum(map(len, arrows.values())),
        "getattr and hasattr": calls("getattr", "hasattr"),
        "isinstance": calls("isinstance"),
        "type: ignore": sum(text.count("# type: ignore") for text in packages.values()),
        f"functions above {LONG_FUNCTION} lines (docstrings not counted)": sum(n > LONG_FUNCTION for _, n, _ in every),
        f"private functions above {MANY_ARGUMENTS} arguments": sum(
            a > MANY_ARGUMENTS and name.startswith("_") and name != "__init__" for name, _, a in every
        ),
        f"functions above {MANY_ARGUMENTS} arguments": sum(a > MANY_ARGUMENTS for _, _, a in every),
        "repeated passages in the packages": repeated_passages(list(packages.values())),
        "lines of both packages": lines("fastkpca") + lines("kernels_contrib/src"),
        "lines of tests": lines("tests"),
        "lines of benchmarks": lines("benchmarks"),
    }


if __name__ == "__main__":
    start = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    for name, value in figures(start.resolve()).items():
        print(f"{name:<52}{value:>7}")

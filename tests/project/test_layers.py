"""The house stands: imports run downwards only, nothing optional is imported by the way."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest
from child import child
from places import ROOT

PACKAGE = ROOT / "fastkpca"

# The house, from the ground up. A room is a folder or a loose module of fastkpca/. It may import rooms of lower floors
# only, never another room of its own floor.
FLOORS = (
    {"_core", "errors"},
    {"base"},
    {"rows"},
    {"maps"},
    {"products"},
    {"kernels", "solve"},
    {"methods", "model", "testing"},
    {"fit", "plot", "state"},
    {"sklearn", "__init__"},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
RUNTIME = {"numpy", "scipy", "threadpoolctl", "tqdm"}  # what is installed with fastkpca
# optional, imported where it is called (the last test below)
EXTRAS = {
    "model.selection": {"pandas"},
    "rows.foreign": {"pyarrow"},
    "rows.dask": {"dask"},
}
FACES = {"testing", "plot", "sklearn", "cli", "__main__"}  # may import what their users have


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def room(module: str) -> str:
    return module.split(".")[0]


def leads_into(parts: list[str]) -> str:
    """The module that a dotted path inside the package leads into ("__init__" is the package itself)."""
    while parts:
        file = PACKAGE.joinpath(*parts)
        if file.with_suffix(".py").exists() or file.with_suffix(".pyx").exists() or (file / "__init__.py").exists():
            return ".".join(parts)
        parts = parts[:-1]
    return "__init__"


@cache
def imports_of(path: Path) -> tuple[set[str], set[str]]:
    """(modules of the package, top-level names of others) that a source imports, wherever in it."""
    own, others = set(), set()
    here = ".".join((PACKAGE.name, *path.relative_to(PACKAGE).parent.parts))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            stem = resolve_name("." * node.level + (node.module or ""), here)
            names = [f"{stem}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for head, *tail in (name.split(".") for name in names):
            if head == PACKAGE.name:
                own.add(leads_into(tail))
            else:
                others.add(head)
    return own, others


SOURCES = sorted(PACKAGE.rglob("*.py"))


@cache
def arrows() -> set[tuple[str, str]]:
    """(room, room that it imports), for every import between rooms."""
    pairs = {(room(module_name(path)), room(target)) for path in SOURCES for target in imports_of(path)[0]}
    return {(here, there) for here, there in pairs if here != there}


def test_every_room_has_its_floor():
    rooms = {room(module_name(path)) for path in SOURCES}
    assert rooms == set(FLOOR), f"FLOORS and the tree differ in {sorted(rooms ^ set(FLOOR))}"
    print(f"{len(rooms)} rooms on {len(FLOORS)} floors, {len(arrows())} arrows")
    assert len(rooms) <= 20 and len(FLOORS) <= 11 and len(arrows()) <= 90


def test_no_floor_is_higher_than_it_has_to_be():
    below = {here: {there for start, there in arrows() if start == here} for here in FLOOR}
    for here, number in FLOOR.items():
        assert number == 1 + max((FLOOR[there] for there in below[here]), default=-1), f"{here} could stand lower"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_run_downwards(path):
    here = module_name(path)
    own, others = imports_of(path)
    for target in own:
        if room(target) != room(here):
            assert FLOOR[room(target)] < FLOOR[room(here)], f"{here} imports {target}, which does not stand below it"
    if room(here) not in FACES:
        foreign = others - RUNTIME - EXTRAS.get(here, set()) - set(sys.stdlib_module_names)
        assert not foreign, f"{here} imports {foreign}; only {sorted(RUNTIME)} are there"


def test_the_map_names_every_room():
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    named = re.findall(r"^    (\w+) {2,}\S", ast.get_docstring(ast.parse(text)), flags=re.M)
    assert sorted(named) == sorted(set(FLOOR) - {"__init__"})
    heights = [FLOOR[name] for name in named]
    assert heights == sorted(heights, reverse=True), "the map runs from the top floor down"


def test_every_room_says_what_lives_there():
    for folder in sorted({path.parent for path in SOURCES} - {PACKAGE}):
        assert (folder / "__init__.py").exists(), f"{folder.name} has no __init__.py"
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
        assert text, f"{folder.name}/__init__.py has no docstring"


@pytest.mark.parametrize("folder", ["base", "cli", "rows"])
def test_a_table_of_contents_names_every_module(folder):
    text = ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    table = text.split("====\n")[1]
    modules = {path.stem for path in (PACKAGE / folder).iterdir() if path.suffix == ".py" or path.is_dir()}
    modules = {name for name in modules if not name.startswith("__")}
    assert set(re.findall(r"``(\w+)``", table)) >= modules, modules
    assert {line.split("``")[1] for line in table.splitlines() if line.startswith("``")} <= modules


def test_no_cycles():
    graph = {module_name(path): imports_of(path)[0] - {module_name(path)} for path in SOURCES}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def test_compiled_modules_import_only_each_other():
    sources = sorted((PACKAGE / "_core").glob("*.pyx"))
    assert sources
    for path in sources:
        for line in path.read_text(encoding="utf-8").splitlines():
            match = re.match(r"\s*(?:from\s+(\S+)\s+c?import|c?import\s+(\S+))", line)
            if not match:
                continue
            target = (match[1] or match[2]).rstrip(",")
            assert not target.startswith("..") and target.split(".")[0] != "fastkpca", f"{path.name}: {line.strip()}"


def test_import_brings_nothing_optional():
    code = """
        import sys
        import fastkpca, fastkpca.kernels
        fastkpca.kernels.list_kernels()
        heavy = {"matplotlib", "sklearn", "pandas", "polars", "dask", "mpmath", "pytest", "kernels_contrib", "finufft"}
        heavy |= {"tqdm", "h5py", "zarr", "pyarrow"}
        found = heavy & {name.split(".")[0] for name in sys.modules}
        assert not found, found
        slow = {"scipy." + name for name in ("stats", "spatial", "fft", "optimize", "ndimage", "interpolate")}
        assert not slow & set(sys.modules), slow & set(sys.modules)
    """
    child(code)

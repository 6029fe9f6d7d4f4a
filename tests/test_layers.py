"""The house stands: imports run downwards only, nothing optional is imported by the way."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "fastkpca"

# Room -> floor. A new module gets its line here: who may import it, and what it may import, is decided then.
FLOORS = {
    "_core": 0,
    "protocol": 1,
    "rows": 1,
    "_dask": 1,
    "sources": 1,
    "execute": 1,
    "files": 1,
    "stored": 1,
    "errors": 1,
    "_room": 1,
    "validate": 1,
    "plugins": 1,
    "methods": 1,
    "features": 2,
    "summation": 2,
    "kernels": 3,
    "operators": 3,
    "_rates": 4,
    "_memory": 4,
    "_products": 4,
    "_plan": 4,
    "moments": 4,
    "krylov": 4,
    "subspace": 4,
    "nested": 4,
    "certificate": 4,
    "_kpca": 5,
    "_mat": 5,
    "_routes": 5,
    "_descent": 5,
    "_ridge": 5,
    "_pca": 5,
    "_gram": 5,
    "_gram_solve": 5,
    "model": 5,
    "preimage": 5,
    "state": 5,
    "monitor": 5,
    "merge": 5,
    "__init__": 6,
    "__main__": 6,
    "cli": 6,
    "_readmat": 5,
    "datafiles": 6,
    "demo": 6,
    "lazyfiles": 6,
    "plot": 6,
    "sklearn": 6,
    "_sklearn_kernels": 6,
    "testing": 6,
}
RUNTIME = {"numpy", "scipy", "threadpoolctl"}  # what is installed with fastkpca
# optional, imported where it is called (the last test below)
EXTRAS = {
    "features.transforms": {"finufft"},
    "execute": {"tqdm"},
    "sources": {"pyarrow"},
    "lazyfiles": {"h5py", "pyarrow", "zarr"},
    "_dask": {"dask"},
}


def module_name(path: Path, package: Path = PACKAGE) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def room(module: str) -> str:
    return module.split(".")[0]


def imports_of(path: Path, package: Path = PACKAGE) -> tuple[set[str], set[str]]:
    """(modules of the package, top-level names of others) that a source imports, wherever in it."""

    def resolve(dotted: str) -> str:
        """The module that a dotted path inside the package leads into ("" is the package itself)."""
        parts = dotted.split(".") if dotted else []
        while parts:
            file = package.joinpath(*parts)
            if file.with_suffix(".py").exists() or file.with_suffix(".pyx").exists() or (file / "__init__.py").exists():
                return ".".join(parts)
            parts.pop()
        return "__init__"

    own, others = set(), set()
    here = path.relative_to(package).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                head, _, tail = alias.name.partition(".")
                if head == package.name:
                    own.add(resolve(tail))
                else:
                    others.add(head)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = here[: len(here) - (node.level - 1)]
            elif node.module and node.module.split(".")[0] == package.name:
                base = ()
            else:
                others.add((node.module or "").split(".")[0])
                continue
            inner = (node.module or "").split(".") if node.level else node.module.split(".")[1:]
            stem = ".".join([*base, *filter(None, inner)])
            own.update(resolve(".".join(filter(None, [stem, alias.name]))) for alias in node.names)
    return own, others


SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_every_module_has_its_floor():
    missing = sorted({room(module_name(path)) for path in SOURCES} - set(FLOORS))
    assert not missing, f"give these modules a floor in tests/test_layers.py: {', '.join(missing)}"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_run_downwards(path):
    here = module_name(path)
    own, others = imports_of(path)
    for target in own:
        assert FLOORS[room(target)] <= FLOORS[room(here)], f"{here} imports {target}, which stands above it"
    if here == "__init__" or FLOORS[room(here)] < 6:
        foreign = others - RUNTIME - EXTRAS.get(here, set()) - set(sys.stdlib_module_names)
        assert not foreign, f"{here} imports {foreign}; only {sorted(RUNTIME)} are there"


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


def test_the_reader_of_imports(tmp_path):
    """The checks above stand on ``imports_of``: it has to see every way of writing an import."""
    package = tmp_path / "fastkpca"
    for name in ("__init__", "a", "b", "sub/__init__", "sub/c", "sub/d"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / f"{name}.py").write_text("")
    source = package / "sub" / "d.py"
    source.write_text(
        textwrap.dedent("""
            import os, numpy.linalg
            import fastkpca.a
            from . import c
            from .. import b
            from ..a import thing
            def late():
                from fastkpca.sub.c import other
                from fastkpca import __version__
                from scipy import sparse
        """)
    )
    own, others = imports_of(source, package)
    assert own == {"a", "b", "sub.c", "__init__"}
    assert others == {"os", "numpy", "scipy"}
    source.write_text("from . import nothing\nfrom .. import nothing_either\nfrom ..sub import d\n")
    assert imports_of(source, package)[0] == {"sub", "__init__", "sub.d"}


def test_import_brings_nothing_optional():
    code = """
        import sys
        import fastkpca, fastkpca.kernels
        fastkpca.kernels.list_kernels()
        heavy = {"matplotlib", "sklearn", "pandas", "polars", "dask", "mpmath", "pytest", "kernels_contrib", "finufft"}
        heavy |= {"tqdm", "h5py", "zarr", "pyarrow"}
        found = heavy & {name.split(".")[0] for name in sys.modules}
        assert not found, found
    """
    subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(code)], check=True)

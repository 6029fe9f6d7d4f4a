"""Metadata of installed distributions, read from their files without an import; damaged files are allowed for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import PurePath
from typing import Any


def points(group: str) -> tuple[list[tuple[metadata.Distribution, str, str]], list[str]]:
    """((distribution, name, value) of every entry point of a group, what could not be read of the group).

    One distribution that is damaged takes nothing of the others with it, and nothing is said of damage elsewhere in it.
    """
    found, problems, seen = [], [], set()
    for distribution in metadata.distributions():
        name = (_from_folder(distribution)[0] or name_version_summary(distribution)[0]).lower().replace("-", "_")
        if name in seen:  # the first on the path is what an import finds
            continue
        seen.add(name)
        try:
            lines = list(_section(_text(distribution), group))
        except Exception as error:
            problems.append(
                f"the entry_points.txt of {_who(distribution)} cannot be read ({type(error).__name__}: {error}); "
                "what that distribution brings is not known"
            )
            continue
        for line in lines:
            key, _, value = map(str.strip, line.partition("="))
            if key and value and "\N{REPLACEMENT CHARACTER}" not in line:
                found.append((distribution, key, value))
            else:
                problems.append(
                    f"the entry_points.txt of {_who(distribution)} is damaged: {line!r} in [{group}] is not of the "
                    "form name = module:attribute; it is ignored, reinstall that distribution"
                )
    return found, problems


def name_version_summary(distribution: metadata.Distribution) -> tuple[str, str, str]:
    """Name, version and summary of a distribution; those of its folder where METADATA does not say them."""
    name, version = _from_folder(distribution)
    try:
        fields = distribution.metadata
        return fields["Name"] or name or "unknown", fields["Version"] or version, fields["Summary"] or ""
    except Exception:
        return name or "unknown", version, ""


def _who(distribution: metadata.Distribution) -> str:
    return " ".join(("distribution", *name_version_summary(distribution)[:2])).rstrip()


def _from_folder(distribution: metadata.Distribution) -> tuple[str, str]:
    """Name and version by the folder NAME-VERSION.dist-info; empty where there is none."""
    name, _, version = PurePath(str(getattr(distribution, "_path", ""))).stem.partition("-")
    return name, version.partition("-")[0]


def _text(distribution: metadata.Distribution) -> str:
    """entry_points.txt; bytes that are no UTF-8 become replacement characters."""
    folder: Any = getattr(distribution, "_path", None)
    if folder is None:
        return distribution.read_text("entry_points.txt") or ""
    try:
        raw: bytes = folder.joinpath("entry_points.txt").read_bytes()
    except (FileNotFoundError, NotADirectoryError, KeyError):  # none, or in an archive without one
        return ""
    return raw.decode("utf-8-sig", "replace")


def _section(text: str, group: str) -> Iterator[str]:
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            inside = line[1:-1].strip() == group
        elif inside and line and not line.startswith(("#", ";")):
            yield line


def first_line(value: str) -> str:
    """The first line of the docstring of "module:attribute", taken from its source; "" where there is none."""
    module, _, attribute = value.partition("[")[0].replace(" ", "").partition(":")
    try:
        doc = _docstring(module, attribute.split(".")) or ""
    except Exception:  # no source, none that Python can read, or no such attribute
        return ""
    return doc.strip().partition("\n")[0].strip()


def _docstring(module: str, names: list[str]) -> str | None:
    spec = _spec(module)
    node: Any = ast.parse(spec.loader.get_source(module))
    for i, name in enumerate(names):
        node = next(x for x in reversed(node.body) if name in _bound_by(x))  # the last one is what an import finds
        if isinstance(node, ast.ImportFrom):  # passed on from another module
            package = module if spec.submodule_search_locations is not None else module.rpartition(".")[0]
            there = util.resolve_name("." * node.level + (node.module or ""), package)
            return _docstring(there, [_bound_by(node)[name], *names[i + 1 :]])
    return ast.get_docstring(node)


def _bound_by(node: ast.stmt) -> dict[str, str]:
    """The names that a definition or an import binds, and what the module that it is taken from calls them."""
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: alias.name for alias in node.names}
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return {node.name: node.name}
    return {}


def _spec(module: str) -> Any:
    """Spec of a module, by the finders of ``sys.meta_path``, without an import of its packages."""
    package = module.rpartition(".")[0]
    path = _spec(package).submodule_search_locations if package else None
    found = (finder.find_spec(module, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next(filter(None, found))

"""Distributions that are not installed: dist-info folders on sys.path, and modules beside them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from fastkpca.base.methods import _METHODS
from fastkpca.kernels import registry

HEADER = """
import threading, time
import numpy as np
from scipy.spatial.distance import cdist
from fastkpca.kernels import Cost, FeatureMap, Kernel, Offer, Summation
from good_kernels import *
"""


def source(name: str, body: str = "", base: str = "Plain") -> str:
    """A class of a plugin's module: one of ``good_kernels`` but for the body."""
    return f"class {name}({base}):\n    api_version = 1\n" + textwrap.indent(textwrap.dedent(body), " " * 4)


SCALED = source("Product", base="Scaled")


def write(folder: Path, distribution: str, entries: dict, sources: dict, *, version="1.0", summary="", group):
    """A dist-info with METADATA and entry_points.txt, and the modules that it names."""
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\nSummary: {summary}\n"
    )
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    for module, text in sources.items():
        (folder / f"{module}.py").write_text(HEADER + textwrap.dedent(text))


def on_path(folder: Path, monkeypatch) -> Iterator[Callable[..., None]]:
    """Yield add(distribution, entries, sources, version=, group=, summary=); leave no trace of what was imported."""
    groups = registry.KERNELS, _METHODS
    monkeypatch.syspath_prepend(folder)

    def add(distribution, entries, sources=None, version="1.0", *, group=registry.GROUP, summary=""):
        write(folder, distribution, entries, sources or {}, version=version, summary=summary, group=group)
        for one in groups:
            one.scanned.clear()

    yield add
    for one in groups:
        one.scanned.clear()
    for name in list(sys.modules):
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]

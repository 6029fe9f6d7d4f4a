"""Distributions that are not installed: dist-info folders on sys.path, and modules beside them."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

HEADER = """
import threading, time
import numpy as np
from scipy.spatial.distance import cdist
from fastkpca.kernels import Cost, FeatureMap, Kernel, Moments, Offer, Summation
"""


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


def forget(folder: Path, *groups) -> None:
    """Leave no trace of what was imported from the folder."""
    for group in groups:
        group.scanned.clear()
        group.loaded.clear()
    for name in list(sys.modules):
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]

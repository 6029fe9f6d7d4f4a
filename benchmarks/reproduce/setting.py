"""What the scripts of this folder share: the path to ``common``, data by name, and one way to print a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))

import numpy as np
from common import DATA, header, peak_memory

__all__ = ["DATA", "data", "header", "peak_memory", "table"]


def data(name: str) -> Any:
    """An npz file of ``../shared/data``, or of the folder that FASTKPCA_DATA names; without it the script ends."""
    path = DATA / name
    if not path.exists():
        sys.exit(f"{name} is not in {DATA}; put it there, or name its folder in FASTKPCA_DATA")
    return np.load(path, allow_pickle=False)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], widths: Sequence[int] | None = None) -> None:
    """Columns to the right, the first to the left; floats with two digits unless they are text already."""
    cells = [[f"{x:.2f}" if isinstance(x, float) else str(x) for x in row] for row in rows]
    widths = widths or [max(len(str(x)) for x in column) for column in zip(columns, *cells)]
    for row in (columns, *cells):
        first, *others = (str(x) for x in row)
        print("  ".join([first.ljust(widths[0]), *(x.rjust(w) for x, w in zip(others, widths[1:]))]))
    print()
    sys.stdout.flush()

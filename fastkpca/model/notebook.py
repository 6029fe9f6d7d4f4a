"""Notebook view of a result, a small table; and the page that ``plot.report`` makes of it."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any


def html_table(
    caption: str, facts: Iterable[tuple[str, str]], header: Sequence[str], lines: Iterable[Sequence[str]], more: str
) -> str:
    """Facts by name, then lines of cells under a header, then a line that says what is left out (\"\": nothing is)."""

    def cells(texts: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)

    wide = len(header) - 1
    parts = [f"<th>{html.escape(name)}</th><td colspan='{wide}'>{html.escape(text)}</td>" for name, text in facts]
    parts.append(cells(header, "th"))
    parts += [cells(line, "td") for line in lines]
    if more:
        parts.append(f"<td colspan='{wide + 1}'>{html.escape(more)}</td>")
    rows = "".join(f"<tr>{part}</tr>" for part in parts)
    return f"<table><caption>{html.escape(caption)}</caption>{rows}</table>"


class Reported:
    """Base class of results with a page of their own."""

    def report(self, path: str | os.PathLike, *, title: str = "", overwrite: bool = False) -> None:
        """Write a page about it, as ``fastkpca.plot.report``."""
        plot: Any = import_module("fastkpca.plot")  # which stands above: asked for by the user alone
        plot.report(self, path, title=title, overwrite=overwrite)

"""Parts that the pictures share: new axes, colours that everybody can tell apart, labels, files."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.atomic import atomic
from ..base.checks import check_flag

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Six of M. A. Petroff, Accessible color sequences for data visualization, 2021, and in place of its second grey, browns
# and pale blue four that a random search found far from these six for all eyes (tests/plot/test_colours.py measures)
BLUE, AMBER, RED, ORANGE, GREY = "#3f90da", "#ffa90e", "#bd1f01", "#e76300", "#717581"
COLOURS = (BLUE, AMBER, RED, "#216945", "#832db6", "#53c99c", ORANGE, "#4c3436", GREY, "#9dd3f5")
MARKERS = "o^sDvXPd<>"  # each class or line has its own: colours alone do not survive a grey print
LINES = "--", "-.", ":"  # as well
FEW = 2000
"""Rows up to which each is a mark in a picture, or all are drawn over contours."""
_SPOTS = [(turn, away) for away in (3, 10, 20, 32, 46, 62, 80) for turn in np.linspace(-np.pi, np.pi, 17)]
"""Positions of a name: direction in radians, and distance in points."""
_NUMBERS = re.compile(r"(^-?\d+(?:\.\d+)?|\d+(?:\.\d+)?)")


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install where matplotlib is missing.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("plots need matplotlib, which is not installed: pip install matplotlib") from None


_MADE_BY = "fastkpca.plot.save, which replaces its own pictures"
"""The maker that pictures name, by which they are known again."""
_MAKERS = {"png": "Software", "svg": "Creator", "svgz": "Creator", "pdf": "Creator", "ps": "Creator", "eps": "Creator"}
"""Metadata keys of matplotlib's formats."""


def save(ax: Axes | np.ndarray, path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Write the figure of ``ax``, completely or not at all, in the format of the ending of ``path``.

    A picture of fastkpca's is replaced, so that a script can run again: a PNG, SVG, PDF or
    PostScript file that names it as its maker.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or array of them
        What a function of this module returned.
    path : str or Path
        Such as ``scores.png``, ``scores.pdf`` or ``scores.svg``.
    overwrite : bool
        False: an existing file that is no picture of fastkpca's is left alone and FileExistsError raised.

    Raises
    ------
    FileExistsError
        Another file exists and ``overwrite`` is false.
    ValueError
        matplotlib does not write that format.
    TypeError
        ``ax`` is something else; or path or overwrite are of another type.
    """
    import matplotlib

    axes = np.ravel(np.asarray(ax, dtype=object)).tolist() or [None]
    figure = _checked(axes[0]).figure
    known = figure.canvas.get_supported_filetypes()
    if isinstance(path, str | os.PathLike) and Path(path).suffix[1:].lower() not in known:
        raise ValueError(f"{str(path)!r} ends in no format that matplotlib writes: {', '.join(sorted(known))}")
    # letters stay letters in PDF and PostScript (TrueType): journals ask for it
    letters = matplotlib.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42})
    kind = Path(path).suffix[1:].lower() if isinstance(path, str | os.PathLike) else ""
    made_by = {"metadata": {_MAKERS[kind]: _MADE_BY}} if kind in _MAKERS else {}
    try:
        with atomic(path, overwrite=check_flag(overwrite, "overwrite") or _is_own(path, kind)) as file, letters:
            figure.savefig(file, format=kind, **made_by)
    except FileExistsError as error:
        raise FileExistsError(f"{error}; plot.save(..., overwrite=True) replaces it") from None


def _is_own(path: Any, kind: str) -> bool:
    """True if a picture of this format names ``save`` as its maker."""
    if kind not in _MAKERS or not os.path.isfile(path):
        return False
    with contextlib.suppress(OSError, EOFError), (gzip.open if kind == "svgz" else open)(path, "rb") as file:
        return _MADE_BY.encode() in file.read(1 << 12) or _MADE_BY.encode() in file.read()[-(1 << 12) :]
    return False


def new_axes(rows: int = 1, columns: int = 1, size: tuple[float, float] = (7, 5), projection: str | None = None) -> Any:
    """An array of axes on a new Figure outside pyplot: it needs no display and no closing."""
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, hspace=0.04)  # space at the edges and between charts
    figure = Figure(figsize=size, dpi=150, layout=layout)
    return figure.subplots(rows, columns, squeeze=False, subplot_kw={"projection": projection} if projection else None)


def fitted(model: Any) -> Any:
    """The fitted model of an estimator; other objects unchanged."""
    try:
        return model.model_
    except AttributeError:
        return model


def axes_or_new(ax: Any, size: tuple[float, float] = (7, 5), projection: str | None = None) -> Any:
    """The axes that the caller gave, or new ones of their own."""
    return new_axes(size=size, projection=projection)[0, 0] if ax is None else _checked(ax)


def _checked(ax: Any) -> Any:
    """Axes that the caller gave; the picture sets the scales that it needs, whatever another one had left."""
    require_matplotlib()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax is of type {type(ax).__name__}; give axes of matplotlib, as figure.subplots() makes them")
    for name in ("xscale", "yscale"):
        if getattr(ax, f"get_{name}")() != "linear":
            ax.set(**{name: "linear"})
    return ax


def several_axes(ax: Any, count: int, of_what: str, columns: int, size: tuple[float, float]) -> np.ndarray:
    """The array of axes that the caller gave, of the number needed; or new ones, each of that ``size``, in
    ``columns`` columns."""
    if ax is None:
        rows = -(-count // columns)
        axes = new_axes(rows, columns, (columns * size[0], rows * size[1])).ravel()
        for empty in axes[count:]:
            empty.remove()
        return axes[:count]
    axes = np.ravel(np.asarray(ax, dtype=object))
    if len(axes) != count:
        raise ValueError(f"{count} {of_what} and {len(axes)} axes; one for each is needed")
    for one in axes:
        _checked(one)
    return axes


def colour_map(cmap: Any) -> Any:
    """A colour map by its name, or as it is."""
    from matplotlib import colormaps

    try:
        return colormaps.get_cmap(cmap)
    except (ValueError, TypeError) as error:
        raise type(error)(f"cmap is {cmap!r}; give a name that matplotlib.colormaps lists, or a Colormap") from error


def component_label(i: int, explained: Any) -> str:
    """ "PC1 (61.2 %)"; without the percentage where it is not known."""
    if explained is None or len(explained) <= i or not np.isfinite(explained[i]):
        return f"PC{i + 1}"
    percent = f"{explained[i]:.1f}" if abs(explained[i]) >= 0.1 else f"{explained[i]:.2g}"
    return f"PC{i + 1} ({percent} %)"


def classes_of(labels: np.ndarray) -> np.ndarray:
    """The distinct labels in their order: words as people count, "lot 2" before "lot 10"."""
    values = np.unique(labels)
    if values.dtype.kind != "U":
        return values
    # a split at numbers: words and numbers take turns, so that like is compared with like
    parts = [_NUMBERS.split(word) for word in values.tolist()]
    keys = [[float(x) if i % 2 else x for i, x in enumerate(part)] for part in parts]
    return values[sorted(range(len(values)), key=keys.__getitem__)]


def date_ticks() -> tuple[Any, Any]:
    """(locator, formatter) of an axis of times."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator()
    return locator, ConciseDateFormatter(locator)


def word_ticks(ax: Any, words: list[str]) -> None:
    """Names of the rows 0, 1, ... on the x axis, as far as they fit."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    longest = max(map(len, words))
    room = ax.figure.get_figwidth() * ax.get_position().width / (0.09 * (min(longest, 20) + 2))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=int(np.clip(room, 2, 12)), integer=True, min_n_ticks=1))
    named = lambda i, _: short(words[int(i)], 20) if i in range(len(words)) else ""  # noqa: E731
    ax.xaxis.set_major_formatter(FuncFormatter(named))


def bars(ax: Any, names: list[str]) -> Any:
    """Axes for horizontal bars at 0, 1, ..., the first on top: those given, or new ones."""
    ax = axes_or_new(ax, size=(6.0, 0.9 + 0.3 * len(names)))
    ax.set_yticks(np.arange(len(names)), [short(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    light_grid(ax, "x")
    return ax


def set_names(ax: Any, places: np.ndarray, names: list[str], points: np.ndarray) -> None:
    """Write names next to their points (n, 2), where each covers the least: no other name, few of the points (m, 2)
    that are drawn, near its place, to which a line leads."""
    from matplotlib.patheffects import withStroke  # a white rim: readable over points, which it does not hide
    from matplotlib.text import Text

    ax.figure.canvas.figure.draw_without_rendering()  # the axes with a legend next to them
    inside, to_pixels = ax.get_window_extent(), ax.figure.dpi / 72
    tips, drawn = (ax.transData.transform(np.reshape(x, (-1, 2))) for x in (places, points))
    look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center", "fontsize": "small"}
    look["path_effects"] = [withStroke(linewidth=2.5, foreground="white")]
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 1}
    taken: list[tuple[np.ndarray, np.ndarray]] = []
    for place, tip, name in zip(places, tips, names):
        text = ax.annotate(short(name), place, (0, 0), arrowprops=line, **look)
        half = np.array(Text.get_window_extent(text).size) / 2 + to_pixels
        found = []
        for turn, away in _SPOTS:
            direction = np.array([np.cos(turn), np.sin(turn)])
            # the box's corner, or the middle of its side, is that far away
            middle = tip + direction * away * to_pixels + half * np.clip(direction / 0.7, -1, 1)
            low, high = middle - half, middle + half
            over = sum(float(np.prod(np.clip(np.minimum(high, t[1]) - np.maximum(low, t[0]), 0, None))) for t in taken)
            out = max(*(inside.min - low), *(high - inside.max), 0.0)
            covered = int(((low < drawn) & (drawn < high)).all(axis=1).sum())
            found.append((over + 100.0 * out + covered + 0.3 * away, middle))
        _, middle = min(found, key=lambda x: x[0])
        taken.append((middle - half, middle + half))
        text.xyann = tuple((middle - tip) / to_pixels)


def short(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def open_frame(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def key_above(ax: Any, handles: Any = None) -> None:
    """The legend above the axes, where it hides no data, in as few lines as fit."""
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    inches = ax.figure.get_figwidth() * ax.get_position().width
    columns = int(inches / (0.6 + 0.08 * max(len(x.get_label()) for x in handles)))
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    ax.legend(handles=handles, ncols=max(1, columns), frameon=False, **place)


def light_grid(ax: Any, axis: Literal["both", "x", "y"] = "both") -> None:
    """Light lines behind the points."""
    ax.grid(True, axis=axis, which="major", color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)
    open_frame(ax)


def whole_numbers(ax: Any) -> None:
    """No ticks between whole numbers on the x axis."""
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def plain_numbers(axis: Any) -> None:
    """20, 50, 100 in place of powers of ten, where a logarithmic axis spans few decades of ordinary numbers."""
    low, high = axis.get_view_interval()
    if high / low < 500 and 1e-3 < low and high < 1e5:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())

"""What the pictures share: new axes, colours that everybody can tell apart, labels, files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.atomic import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# M. A. Petroff, Accessible color sequences for data visualization, 2021: ten that colour-blind readers can tell apart
COLOURS = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)
MARKERS = "o^sDvXP*<>"  # each class or line has its own: colours alone do not survive a grey print
LARGER = {"*": 2.2}  # a star of the others' size has half their area of ink
BLUE, AMBER, RED, GREY, ORANGE = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[8], COLOURS[6]


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


def save(ax: Axes | np.ndarray, path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Write the figure of ``ax``, completely or not at all, in the format of the ending of ``path``.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or array of them
        What a function of this module returned.
    path : str or Path
        Such as ``scores.png``, ``scores.pdf`` or ``scores.svg``.
    overwrite : bool
        False: an existing file is left alone and FileExistsError raised.

    Raises
    ------
    FileExistsError
        The file exists and ``overwrite`` is false.
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
    try:
        with atomic(path, overwrite=overwrite) as file, letters:
            figure.savefig(file, format=Path(path).suffix[1:].lower())
    except FileExistsError as error:
        raise FileExistsError(f"{error}; plot.save(..., overwrite=True) replaces it") from None


def new_axes(rows: int = 1, columns: int = 1, size: tuple[float, float] = (7, 5), projection: str | None = None) -> Any:
    """An array of axes on a new Figure outside pyplot: it needs no display and no closing."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    return figure.subplots(rows, columns, squeeze=False, subplot_kw={"projection": projection} if projection else None)


def fitted(model: Any) -> Any:
    """What an estimator has fitted; anything else as it is."""
    try:
        return model.model_
    except AttributeError:
        return model


def axes_or_new(ax: Any, size: tuple[float, float] = (7, 5), projection: str | None = None) -> Any:
    """The axes that the caller gave, or new ones of their own."""
    return new_axes(size=size, projection=projection)[0, 0] if ax is None else _checked(ax)


def _checked(ax: Any) -> Any:
    """Axes that the caller gave."""
    require_matplotlib()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax is of type {type(ax).__name__}; give axes of matplotlib, as figure.subplots() makes them")
    return ax


def given_axes(ax: Any, count: int, of_what: str) -> np.ndarray:
    """The array of axes that the caller gave, as many as needed."""
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


def short(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def open_frame(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def key_above(ax: Any, handles: Any = None, columns: int = 3) -> None:
    """The legend in one line above the axes, where it hides no data."""
    given = {} if handles is None else {"handles": handles}
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, borderaxespad=0.2, **given)


def columns_of_key(ax: Any) -> int:
    """Two where the axes are wide enough for two short texts side by side."""
    return 2 if ax.figure.get_figwidth() * ax.get_position().width > 4.5 else 1


def light_grid(ax: Any, axis: str = "both") -> None:
    """Light lines behind the points."""
    ax.grid(True, axis=axis, which="major", color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)
    open_frame(ax)


def few_ticks(axis: Any) -> None:
    """Numbers at powers of ten alone, or at 1, 2 and 5 times these where a logarithmic axis spans few of them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_minor_formatter(NullFormatter())
    plain_numbers(axis)


def decades_at_least(ax: Any, low: float, high: float, least: float = 10.0) -> None:
    """Limits of a logarithmic y axis around low..high, wide enough for its ticks to carry numbers."""
    if high < least * low:
        middle = np.sqrt(low * high)
        low, high = middle / np.sqrt(least), middle * np.sqrt(least)
    margin = (high / low) ** 0.05
    ax.set_ylim(low / margin, high * margin)


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

"""Pictures of a fitted model; needs matplotlib (``pip install fastkpca[plot]``), which is imported on the first call.

Nothing here opens a window: figures are drawn on the axes given, or on a new figure for the caller to show or save.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["require_matplotlib", "save", "scores"]

_CLASSES = 12  # more distinct labels than this are drawn on a colour scale where they are numbers
_LEGEND = 48  # a longer legend would be larger than the picture: the colours then stand alone
_POINTS_AS_PIXELS = 20_000  # more points than this go into vector formats as one picture


def scores(model: Any, labels: Any = None, ax: Axes | None = None) -> Axes:
    """Scatter of the first two components; of the only one against the row number where there is one.

    Parameters
    ----------
    model : fitted model, or ndarray (n, c) of scores
        A model also gives the percentages on the axes.
    labels : array-like (n,), optional
        Colours the points: a legend for words and for few whole numbers, a colour bar for other numbers.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        ``save`` writes its figure.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        The scores are not a table, or there is not one label a row.
    """
    require_matplotlib()
    points = np.asarray(model if isinstance(model, np.ndarray) else model.score)
    explained = getattr(model, "explained", None)
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"scores have shape {points.shape}; a row for every point and a column for every component")
    if ax is None:
        ax = _new_axes()
    if points.shape[1] == 1:
        x, y = np.arange(1, len(points) + 1), points[:, 0]
        ax.set_xlabel("row")
        ax.set_ylabel(_axis_label(0, explained))
    else:
        x, y = points[:, 0], points[:, 1]
        ax.set_xlabel(_axis_label(0, explained))
        ax.set_ylabel(_axis_label(1, explained))

    style: dict[str, Any] = {
        "s": float(np.clip(4e4 / len(points), 2, 24)),
        "alpha": float(np.clip(60 / np.sqrt(len(points)), 0.3, 0.85)),
        "linewidths": 0,
        "rasterized": len(points) > _POINTS_AS_PIXELS,
    }
    if labels is None:
        ax.scatter(x, y, color="C0", **style)
    else:
        labels = np.asarray(labels)
        if labels.shape != (len(points),):
            raise ValueError(f"labels have shape {labels.shape}; one for each of the {len(points)} points is needed")
        _coloured(ax, x, y, labels, style)
    # the origin is the mean of the training rows in feature space
    ax.axhline(0, color="0.85", linewidth=0.8, zorder=0)
    if points.shape[1] > 1:
        ax.axvline(0, color="0.85", linewidth=0.8, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def save(ax: Axes, path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Write the figure of ``ax`` in the format that the ending of ``path`` says, completely or not at all.

    Raises
    ------
    FileExistsError
        The file exists and ``overwrite`` is false.
    ValueError
        matplotlib does not write that format.
    """
    figure: Any = ax.figure
    with files.atomic(path, overwrite=overwrite) as file:
        figure.savefig(file, format=Path(path).suffix[1:].lower())


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install, where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("plots need matplotlib, which is not installed: pip install matplotlib") from None


def _new_axes() -> Axes:
    # a Figure of its own, not pyplot's: works without a display, and nothing has to be closed
    from matplotlib.figure import Figure

    return Figure(figsize=(7, 5), dpi=150, layout="constrained").add_subplot()


def _axis_label(i: int, explained: Any) -> str:
    if explained is None or len(explained) <= i or not np.isfinite(explained[i]):
        return f"PC{i + 1}"
    percent = f"{explained[i]:.1f}" if explained[i] >= 0.1 else f"{explained[i]:.2g}"
    return f"PC{i + 1} ({percent} %)"


def _coloured(ax: Axes, x: np.ndarray, y: np.ndarray, labels: np.ndarray, style: dict) -> None:
    import matplotlib

    colormaps: Any = matplotlib.colormaps
    values = np.unique(labels)
    numeric = labels.dtype.kind in "biuf"
    whole = numeric and bool(np.all(values == np.round(values)))
    if numeric and not (whole and len(values) <= _CLASSES):
        # every point in its own colour, in an order that lets no part of the scale lie on top
        order = np.random.default_rng(0).permutation(len(x))
        drawn = ax.scatter(x[order], y[order], c=labels[order].astype(float), cmap="viridis", **style)
        drawn.set_alpha(None)  # a transparent bar would not show the colours of its scale
        bar = ax.figure.colorbar(drawn, ax=ax)
        drawn.set_alpha(style["alpha"])
        bar.outline.set_visible(False)
        return
    if len(values) <= 10:
        colours = colormaps["tab10"].colors
    elif len(values) <= 20:
        colours = colormaps["tab20"].colors
    else:
        colours = colormaps["turbo"](np.linspace(0, 1, len(values)))
    index = np.searchsorted(values, labels)
    order = np.random.default_rng(0).permutation(len(x))
    ax.scatter(x[order], y[order], c=np.asarray(colours)[index[order]], **style)
    if len(values) > _LEGEND:
        return
    for value, colour in zip(values, colours):
        name = f"{value:g}" if numeric else str(value)
        ax.scatter([], [], color=[colour], s=30, label=name)
    ax.legend(
        loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, ncols=-(-len(values) // 24), handletextpad=0.2
    )

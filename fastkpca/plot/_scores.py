"""The rows of a fitted model in its leading components."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_flag, check_list, check_name, check_numbers, check_share, is_number
from ..rows.foreign import is_missing
from ..rows.times import as_times, row_labels
from ._figure import (
    COLOURS,
    LINES,
    MARKERS,
    axes_or_new,
    classes_of,
    colour_map,
    component_label,
    date_ticks,
    fitted,
    open_frame,
    plain_numbers,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLASSES = 12  # more distinct labels than this are drawn on a colour scale where they are numbers
_LEGEND = 48  # a longer legend would be larger than the picture: it then says how many there are
_KINDS = {"U": "words", "S": "words", "M": "times", "m": "durations"}
POINTS_AS_PIXELS = 20_000  # more points than this go into vector formats as one picture, or are counted in cells


def scores(
    model: Any,
    labels: Any = None,
    ax: Axes | None = None,
    *,
    components: Sequence[int] = (0, 1),
    label_name: str = "",
    new: Any = None,
    new_labels: Any = None,
    density: bool | None = None,
    ellipses: float | None = None,
    **style: Any,
) -> Axes:
    """Scatter plot of the rows in two or three components; one component is drawn over the row number.

    More than 20,000 rows without labels are counted in cells: darker ones hold more rows. New rows are marks over them.

    Parameters
    ----------
    model : fitted model, estimator, or ndarray (n, c) of scores
        For a model the axes also show the percentages of the variance.
    labels : array-like (n,), optional
        Colours the points: a legend for words and for few whole numbers or times, a colour bar for other numbers and
        times. "lot 2" stands before "lot 10". Words such as 2026-03-01 or 2026-03-01 06:00 are times; times with a zone
        are shown in UTC. There are ten colours: more classes than these differ by their marks, which the legend says.
        Of more than 48 words it says only how many there are.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure. Three components need axes made with ``projection="3d"``.
    components : sequence of 1 to 3 int
        Columns of the scores, from 0. The first two by default; the only one where there is one.
    label_name : str
        Title of the legend, or label of the colour bar.
    new : ndarray (m, c), optional
        Scores of new rows, from ``kpca_project``: hollow marks over those of the model.
    new_labels : array-like (m,), optional
        Their labels, in the colours of ``labels``.
    density : bool, optional
        Whether rows are counted in cells, in two components and without labels; by default where there are more than
        20,000.
    ellipses : float, optional
        In two components with classes as labels: an ellipse around each class of three or more rows, which would hold
        this share of it, as 0.95, if its scores were normally distributed.
    **style
        Passed on to matplotlib's ``scatter``: ``s``, ``alpha``, ``cmap`` and so on; with ``density`` to ``hexbin``.

    Returns
    -------
    matplotlib.axes.Axes
        ``save`` writes its figure.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        The scores are not a table or not finite, there is not one label for each row, labels are missing or not finite,
        or there is no such component. Or matplotlib does not take the style.
    TypeError, AttributeError
        An argument is of another type; matplotlib knows no such style.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> plot.scores(fk.kpca(X, "gaussian", 2, sigma=2.0)).get_xlabel()
    'PC1 (31.0 %)'
    """
    model = fitted(model)
    table, explained = _table(model)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"scores have shape {table.shape}; a row for every point and a column for every component")
    if table.shape[1] == 1 and isinstance(components, (tuple, list)) and [*components] == [0, 1]:
        components = (0,)
    columns = check_components(components, table.shape[1], counts=(1, 2, 3))
    points = check_numbers(table[:, columns], "scores", "one number for each row and component", (None, len(columns)))
    check_name(label_name, "label_name", "text")
    labels = check_labels(labels, len(points))
    others, other_labels = _new_points(new, new_labels, table, columns, labels)
    flat = len(columns) < 3
    drawn = axes_or_new(ax, projection=None if flat else "3d")
    if (drawn.name == "3d") == flat:
        need = "two-dimensional axes" if flat else 'axes made with projection="3d"'
        raise ValueError(f"{len(columns)} components are drawn on {need}, ax is {type(ax).__name__}")
    points = _named_axes(drawn, points, columns, explained)
    both = None if labels is None or others is None else classes_of(np.concatenate([labels, other_labels]))
    if _in_cells(density, len(points), labels is None and len(columns) == 2, style) and len(points):
        _counted(drawn, points, style)
        classes, style = [], {}  # a style of cells is none of points
    else:
        classes = draw_points(drawn, points, labels, label_name=label_name, values=both, **style)
    if ellipses is not None:
        _ellipses(drawn, points, labels, both, check_share(ellipses, "ellipses"), style.get("cmap"))
    if others is not None:
        classes.append(_hollow(drawn, others, other_labels, both, style))
    if classes:
        _legend(drawn, classes, label_name, new_figure=ax is None)
    if flat:
        # the origin is the mean of the training rows in feature space
        drawn.axhline(0, color="0.85", linewidth=0.8, zorder=0)
        if len(columns) > 1:
            drawn.axvline(0, color="0.85", linewidth=0.8, zorder=0)
        open_frame(drawn)
    return drawn


def _table(model: Any) -> tuple[np.ndarray, Any]:
    """The scores and explained shares of a model of this library, or a table of scores."""
    if isinstance(model, np.ndarray):
        return model, None
    try:
        explained = model.explained
    except AttributeError:
        raise TypeError(
            f"model is of type {type(model).__name__}; give a fitted model or estimator (of a pipeline that step, as "
            "in pipeline[-1]), or an array of scores"
        ) from None
    return np.asarray(model.score), explained


def _named_axes(ax: Any, points: np.ndarray, columns: list[int], explained: Any) -> np.ndarray:
    """The points as they are drawn: one component over the row number; the axes get their names."""
    if len(columns) == 1:
        ax.set(xlabel="row", ylabel=component_label(columns[0], explained))
        return np.column_stack([np.arange(1, len(points) + 1), points[:, 0]])
    ax.set(**{f"{axis}label": component_label(i, explained) for axis, i in zip("xyz", columns)})
    if len(columns) == 3:  # the names of the axes would stand on their numbers
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.labelpad = 8.0
    return points


def _new_points(
    new: Any, new_labels: Any, table: np.ndarray, columns: list[int], labels: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(points, labels) of new rows, checked; None for each that is not given."""
    if new is None:
        if new_labels is not None:
            raise ValueError("new_labels are of the rows in new=, and none are given; give both or neither")
        return None, None
    need = f"scores of new rows in the same {table.shape[1]} components, kpca_project(model, X_new)"
    scores = check_numbers(new, "new", need, (None, table.shape[1]))
    if len(columns) == 1:
        raise ValueError("new rows are drawn in two or three components, not over the row number; leave out new=")
    if (labels is None) != (new_labels is None):
        raise ValueError("labels and new_labels share their colours; give both or neither")
    others = check_labels(new_labels, len(scores))
    if labels is not None and others is not None:
        kind, other = (_KINDS.get(x.dtype.kind, "numbers") for x in (labels, others))
        if kind != other:
            raise ValueError(f"labels are {kind} and new_labels {other}; give both of one kind")
    return scores[:, columns], others


def _hollow(ax: Any, points: np.ndarray, labels: np.ndarray | None, values: Any, style: dict[str, Any]) -> Any:
    """New rows as hollow marks; returns their entry in the legend."""
    props: dict[str, Any] = {"facecolors": "none", "s": 30}
    draw_points(ax, points, labels, bar=False, values=values, hollow=True, **props | style)
    nowhere: list[list] = [[]] * points.shape[1]
    return ax.scatter(*nowhere, **props, edgecolors="black", label="new rows")


def _ellipses(ax: Any, points: np.ndarray, labels: Any, values: Any, level: float, cmap: Any) -> None:
    """An ellipse around the rows of each class: where a normal distribution of their mean and covariance has its
    ``level``."""
    from matplotlib.patches import Ellipse

    values = classes_of(labels) if values is None and labels is not None else values
    if labels is None or points.shape[1] != 2 or _on_a_scale(labels, values):
        raise ValueError("ellipses are of classes in two components; give labels= that are words or few whole numbers")
    colours = _looks(len(values), cmap)[0]
    for value, colour, line in zip(values, colours, cycle(("-", *LINES))):
        rows = points[labels == value]
        if len(rows) < 3:
            continue
        variances, directions = np.linalg.eigh(np.cov(rows.T))
        # chi^2 with two degrees of freedom is exponential
        width, height = 2 * np.sqrt(-2 * np.log1p(-level) * np.maximum(variances[::-1], 0))
        angle = float(np.degrees(np.arctan2(directions[1, 1], directions[0, 1])))
        props = {"fill": False, "edgecolor": colour, "linewidth": 1.4, "linestyle": line, "zorder": 2.5}
        ax.add_patch(Ellipse(rows.mean(axis=0), width, height, angle=angle, **props))


def _on_a_scale(labels: np.ndarray, values: np.ndarray) -> bool:
    """True if these labels are colours of a scale, not classes."""
    numeric, dates = labels.dtype.kind in "biuf", labels.dtype.kind == "M"
    whole = numeric and bool(np.all(values == np.round(values)))
    return (numeric or dates) and not ((whole or dates) and len(values) <= _CLASSES)


def _in_cells(density: bool | None, n_points: int, possible: bool, style: dict[str, Any]) -> bool:
    """True if the points are counted in cells, which is ``possible`` in two components and without labels."""
    if density is None:
        return possible and n_points > POINTS_AS_PIXELS and not {"s", "alpha"} & {*style}
    if check_flag(density, "density", "True, False or None") and not possible:
        raise ValueError("density counts rows in two components, without labels; leave out labels=, or density=")
    return density


def _counted(ax: Any, points: np.ndarray, style: dict[str, Any]) -> None:
    """Number of rows in each of many small cells."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    blues: Any = colormaps["Blues"]
    # a cell with a single row must be seen on white
    props = {"gridsize": 110, "mincnt": 1, "bins": "log", "cmap": ListedColormap(blues(np.linspace(0.3, 1.0, 256)))}
    cells = ax.hexbin(*points.T, linewidths=0.1, rasterized=True, **props | style)
    bar = ax.figure.colorbar(cells, ax=ax, label="rows in a cell", pad=0.02)
    plain_numbers(bar.ax.yaxis)
    bar.outline.set_visible(False)


def check_labels(labels: Any, n: int) -> np.ndarray | None:
    """Labels as an array of numbers, times or words, one for each row, none missing."""
    if labels is None:
        return None
    array = row_labels(labels, n)
    missing = np.ma.getmaskarray(labels) if np.ma.is_masked(labels) else np.zeros(n, dtype=bool)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # of a long double: not finite then
            array = array.astype(np.float64, copy=False)
    if array.dtype.kind == "O":
        missing |= np.array([is_missing(value) for value in array.tolist()], dtype=bool)
    elif array.dtype.kind in "fcmM":
        missing |= ~np.isfinite(array)
    if missing.any():
        raise ValueError(
            f"labels are missing or not finite (first at row {int(np.argmax(missing))}); give each row a label, or "
            "leave these rows out"
        )
    times = as_times(array)
    if times is not None:
        return times
    if array.dtype.kind == "O" and all(is_number(value) for value in array.tolist()):
        return array.astype(np.float64)  # of a nullable column, say: as words, 10 would stand before 2
    return array.astype(str) if array.dtype.kind in "Oc" else array


def draw_points(
    ax: Any,
    points: np.ndarray,
    labels: np.ndarray | None,
    *,
    label_name: str = "",
    bar: bool = True,
    values: np.ndarray | None = None,
    hollow: bool = False,
    **changed: Any,
) -> list[Any]:
    """Points (n, 2 or 3) on the axes, coloured by labels, in a random order so that no class hides the others.

    ``values`` are all classes, where they are more than those of ``labels``; ``hollow`` points have coloured edges.

    Returns the entries of a legend: none where there is a colour bar or no label, a single one for too many of them.
    """
    style = _style(len(points))
    if hollow:  # the rim is what shows the colour
        del style["edgecolors"], style["linewidths"]
    style |= changed
    if labels is None:
        colour = {"edgecolors": "black"} if hollow else {} if {"c", "color"} & {*style} else {"color": COLOURS[0]}
        ax.scatter(*points.T, **colour | style)
        return []
    values = classes_of(labels) if values is None else values
    numeric, dates = labels.dtype.kind in "biuf", labels.dtype.kind == "M"
    order = np.random.default_rng(0).permutation(len(points))
    points, labels, style = points[order], labels[order], _style_of(order, len(order), style)
    on_a_scale = _on_a_scale(labels, values)
    if twice := {"c", "color", *["marker"] * (not on_a_scale)} & {*changed}:
        raise ValueError(f"labels set {min(twice)}; leave out one of the two")
    if on_a_scale:
        _on_a_colour_scale(ax, points, labels, values, label_name, bar, style)
        return []
    colours, markers = _looks(len(values), style.pop("cmap", None))
    sorter = np.argsort(values)  # words do not stand in the order of text
    index = sorter[np.searchsorted(values, labels, sorter=sorter)]
    for marker in dict.fromkeys(markers):
        of_marker = np.flatnonzero(np.array([m == marker for m in markers])[index])
        props = _style_of(of_marker, len(order), style)
        paint = {"edgecolors" if hollow else "c": colours[index[of_marker]]}
        ax.scatter(*points[of_marker].T, marker=marker, **paint | props)
    if hollow:
        return []
    if len(values) > _LEGEND:
        return [ax.scatter(*[[]] * points.shape[1], s=0, label=f"{len(values)} labels, coloured in their order")]
    words = np.datetime_as_string(values, unit="auto") if dates else values
    names = [f"{x:g}" if numeric else short(str(x).replace("T", " ") if dates else str(x)) for x in words]
    return _entries(ax, [name or "(empty)" for name in names], colours, markers, style, [[]] * points.shape[1])


def _entries(
    ax: Any, names: list[str], colours: np.ndarray, markers: list[str], style: dict[str, Any], nowhere: list[list]
) -> list[Any]:
    """The entries of a legend: a mark for each class, drawn ``nowhere``."""
    named = {key: value for key, value in style.items() if key != "s" and np.ndim(value) == 0}
    named |= {"alpha": None, "rasterized": False}
    return [
        ax.scatter(*nowhere, color=[colour], marker=marker, s=30, label=name, **named)
        for name, colour, marker in zip(names, colours, markers)
    ]


def _style(n_points: int) -> dict[str, Any]:
    """The more points, the smaller and the more transparent; a white rim parts those that overlap."""
    return {
        "s": float(np.clip(4e4 / max(n_points, 1), 1, 32)),
        "alpha": float(np.clip(60 / np.sqrt(max(n_points, 1)), 0.08, 0.85)),
        "linewidths": float(np.clip(60 / np.sqrt(max(n_points, 1)) - 1.0, 0, 0.35)),
        "edgecolors": "white",
        "rasterized": n_points > POINTS_AS_PIXELS,
    }


def _style_of(rows: np.ndarray, n: int, style: dict[str, Any]) -> dict[str, Any]:
    """The style of these of n points: of what has an entry for each point, as sizes may, the entries of these."""
    arrays = {key: np.asarray(value) for key, value in style.items()}
    return {key: array[rows] if array.shape[:1] == (n,) else style[key] for key, array in arrays.items()}


def _legend(ax: Any, classes: list[Any], title: str, *, new_figure: bool) -> None:
    """Legend to the right of the axes; a new figure is widened by its width."""
    if len(COLOURS) < len(classes) <= _LEGEND:
        title = f"{title}\n({len(COLOURS)} colours: see the marks)".lstrip()
    layout: dict[str, Any] = {"frameon": False, "handletextpad": 0.2, "alignment": "left", "title": title or None}
    layout["ncols"] = -(-len(classes) // 20)
    if new_figure:
        legend = ax.figure.legend(handles=classes, loc="outside right center", **layout)
        ax.figure.set_figwidth(ax.figure.get_figwidth() + legend.get_window_extent().width / ax.figure.dpi)
    else:
        ax.legend(loc="center left", bbox_to_anchor=(1.01 if ax.name != "3d" else 1.06, 0.5), **layout)


def _on_a_colour_scale(
    ax: Any, points: np.ndarray, labels: np.ndarray, values: np.ndarray, name: str, bar: bool, style: dict[str, Any]
) -> None:
    """Points in the colours of a scale from the least to the largest of these values."""
    dates = labels.dtype.kind == "M"
    if dates:
        from matplotlib.dates import date2num

        values, labels = date2num(values), date2num(labels)
    style = {"vmin": float(values.min()), "vmax": float(values.max())} | style
    style |= {"cmap": colour_map(style.get("cmap", "viridis"))}
    if "facecolors" in style:  # hollow points would have no colour of a scale
        style |= {"edgecolors": "black", "linewidths": 0.6}
        del style["facecolors"]
    drawn = ax.scatter(*points.T, c=labels.astype(float), **style)
    if not bar:
        return
    drawn.set_alpha(None)  # a transparent bar would not show the colours of its scale
    ticks: dict[str, Any] = {}
    if dates:
        locator, formatter = date_ticks()
        ticks = {"ticks": locator, "format": formatter}
    scale = ax.figure.colorbar(drawn, ax=ax, label=name, pad=0.02 if points.shape[1] == 2 else 0.12, **ticks)
    drawn.set_alpha(style["alpha"])
    scale.outline.set_visible(False)


def _looks(classes: int, cmap: Any) -> tuple[np.ndarray, list[str]]:
    """A colour and a marker for each class, no two the same; for more classes than a legend takes, a colour scale."""
    from matplotlib.colors import to_rgba_array

    n = len(COLOURS)
    markers = [MARKERS[(i + i // n) % len(MARKERS)] if classes <= _LEGEND else "o" for i in range(classes)]
    if classes > _LEGEND or cmap is not None:
        scale = colour_map("viridis" if cmap is None else cmap)
        levels = np.arange(classes) % scale.N if scale.N < 64 else np.linspace(0, 1, classes)
        return scale(levels), markers
    return to_rgba_array([COLOURS[i % n] for i in range(classes)]), markers


def check_components(components: Any, available: int, *, counts: Sequence[int] = ()) -> list[int]:
    """Columns of the scores, their number one of ``counts``."""
    listed = check_list(components, "components", "columns of the scores, as in (0, 1)")
    if counts and len(listed) not in counts:
        raise ValueError(f"components is {components!r}; give {' or '.join(map(str, counts))} of them, as in (0, 1)")
    return [check_number_of(i, available, f"component {i!r}: the model has {available}") for i in listed]


def check_number_of(i: Any, available: int, what: str) -> int:
    """A column's number; ValueError where there is no such."""
    if isinstance(i, (bool, np.bool_)) or not isinstance(i, Real) or i not in range(available):
        raise ValueError(f"there is no {what}, counted from 0")
    return int(float(i))

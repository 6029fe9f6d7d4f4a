"""A measure of ``kpca_select`` over the candidates, with standard errors, and the choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_choice
from ..model.selection import LARGER_IS_BETTER, Selection
from ._figure import COLOURS, LINES, MARKERS, axes_or_new, key_above, open_frame, plain_numbers, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {
    "score": "score of the classifier on rows left out",
    "preimage": "error of the pre-images of rows left out",
    "reconstruction": "SPE of rows left out / variance",
    "stability": "overlap of the components of two halves",
}


def selection(choice: Selection, ax: Axes | None = None, *, measure: str | None = None) -> Axes:
    """A measure over the candidates of ``kpca_select``: one line for each number of components or kernel.

    The x axis is the parameter that varies, one for each class of kernels, else the number of components. Of more lines
    than ten only the best for each class of kernels is drawn. A kernel without such a parameter is a level line. Bars
    are one standard error of the mean over folds. The star is the choice; the ring, where the measure that decided is
    drawn, the best candidate.

    Parameters
    ----------
    choice : Selection
        What ``kpca_select`` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    measure : {"score", "preimage", "reconstruction", "stability"}, optional
        One that was taken; by default the one that decided.

    Returns
    -------
    matplotlib.axes.Axes
        Its y axis is the measure.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        The measure was not taken.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> plot.selection(fk.kpca_select(X, "gaussian", c=[1, 2])).get_xscale()
    'log'
    """
    if not isinstance(choice, Selection):
        raise TypeError(f"selection draws what kpca_select returned; found {type(choice).__name__}")
    measure = choice.criterion if measure is None else check_choice(measure, "measure", choice.measures)
    drawn = axes_or_new(ax)
    y, se = choice.columns[measure], choice.columns[measure + "_se"]
    x, label = _across(choice)
    lines = _lines(choice, label)
    if len(lines) > len(COLOURS):
        lines = _best_of_each(choice, x, y if measure in LARGER_IS_BETTER else -y)
    handles: list[Any] = []
    for i, (name, rows) in enumerate(lines.items()):
        order = rows[np.argsort(x[rows])]
        style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "linewidth": 1.2}
        if np.isnan(x[order]).all():
            style["linestyle"] = LINES[i % len(LINES)]
            handles.append(drawn.axhline(float(y[order[0]]), label=name, **style))
        else:
            bars = {"elinewidth": 0.9, "capsize": 2, "marker": MARKERS[i % len(MARKERS)], "markersize": 5}
            handles.append(drawn.errorbar(x[order], y[order], yerr=se[order], label=name, **bars, **style))
    handles += _mark(drawn, choice, x, y, best=measure == choice.criterion)
    if label == "c":
        whole_numbers(drawn)
    else:
        drawn.set_xscale("log")
        plain_numbers(drawn.xaxis)
    drawn.set_xlabel("number of components" if label == "c" else label)
    drawn.set_ylabel(f"{TITLES[measure]}\n({'larger' if measure in LARGER_IS_BETTER else 'smaller'} is better)")
    open_frame(drawn)
    key_above(drawn, handles)
    return drawn


def _mark(ax: Any, choice: Selection, x: np.ndarray, y: np.ndarray, *, best: bool) -> list[Any]:
    """The choice and the best; with kernel and c and at the right rim, where it is a level line."""
    marks = []
    for row, name, style in (
        (choice.best_row, "best", {"marker": "o", "mfc": "none", "markersize": 10}),
        (choice.chosen_row, "choice", {"marker": "*", "markersize": 13}),
    ):
        if best or name == "choice":
            level = bool(np.isnan(x[row]))
            rim = {"transform": ax.get_yaxis_transform(), "clip_on": False} if level else {}
            label = f"{name}: {_classes(choice)[row]}, c = {choice.columns['c'][row]}" if level else name
            place = (1.0 if level else x[row], y[row])
            marks += ax.plot(*place, color="black", linestyle="none", label=label, zorder=5, **style, **rim)
    return marks


def _classes(choice: Selection) -> np.ndarray:
    return np.array([type(choice.candidates[i]).__name__ for i in choice.columns["kernel"]])


def _varying(choice: Selection, rows: np.ndarray) -> dict[str, int]:
    """Parameters with several values in these rows, all of them positive, and how many."""
    counts = {name: np.unique(choice.columns[name][rows]) for name in choice.parameters}
    return {name: len(values) for name, values in counts.items() if len(values) > 1 and np.all(values > 0)}


def _across(choice: Selection) -> tuple[np.ndarray, str]:
    """Values and label of the x axis: the varying parameter of each class, nan where there is none; else c."""
    classes = _classes(choice)
    varying = {name: _varying(choice, classes == name) for name in np.unique(classes)}
    if not any(varying.values()) or (len(varying) > 1 and any(len(counts) > 1 for counts in varying.values())):
        return choice.columns["c"].astype(float), "c"
    x, labels = np.full(len(classes), np.nan), []
    for name, counts in varying.items():
        if counts:
            labels.append(max(counts, key=counts.__getitem__))
            x[classes == name] = choice.columns[labels[-1]][classes == name]
    return x, " or ".join(dict.fromkeys(labels))


def _lines(choice: Selection, label: str) -> dict[str, np.ndarray]:
    """Name -> numbers of the rows that differ in the x axis alone."""
    columns, classes = choice.columns, _classes(choice)
    several = len(set(classes)) > 1
    across = label.split(" or ")
    values = {name: np.unique(columns[name][np.isfinite(columns[name])]) for name in ("c", *choice.parameters)}
    varying = [name for name, different in values.items() if name not in across and len(different) > 1]
    lines: dict[str, list[int]] = {}
    for row, name in enumerate(classes):
        parts = [name] * several + [f"{x} = {columns[x][row]:g}" for x in varying if np.isfinite(columns[x][row])]
        lines.setdefault(", ".join(parts) or choice.criterion, []).append(row)
    return {name: np.array(rows) for name, rows in lines.items()}


def _best_of_each(choice: Selection, x: np.ndarray, gain: np.ndarray) -> dict[str, np.ndarray]:
    """Name of each class of kernels -> numbers of its best rows, one for each place on the x axis."""
    classes, gain = _classes(choice), np.nan_to_num(gain, nan=-np.inf)
    lines = {}
    for name in np.unique(classes):
        rows = np.flatnonzero(classes == name)
        places = [rows[(x[rows] == place) | np.isnan(x[rows])] for place in np.unique(x[rows])]
        lines[f"{name}, the best"] = np.array([candidates[np.argmax(gain[candidates])] for candidates in places])
    return lines

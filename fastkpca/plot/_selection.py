"""A measure of ``kpca_select`` over the candidates, with standard errors, and the choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_choice
from ..model.selection import LARGER_IS_BETTER, Selection
from ._figure import COLOURS, axes_or_new, key_above, open_frame, plain_numbers, whole_numbers

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

    Bars are one standard error of the mean over folds. The star is the choice; the ring, where the measure that decided
    is drawn, the best candidate.

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
    columns, across = choice.columns, _across(choice)
    x, y, se = columns[across].astype(float), columns[measure], columns[measure + "_se"]
    lines = _lines(choice, across)
    styles = ("-", "--", "-.", ":")
    for i, (label, rows) in enumerate(lines.items()):
        order = rows[np.argsort(x[rows])]
        drawn.errorbar(
            x[order],
            y[order],
            yerr=se[order],
            color=COLOURS[i % len(COLOURS)],
            linestyle=styles[i // len(COLOURS) % len(styles)],
            marker="o",
            markersize=3.5,
            linewidth=1.2,
            elinewidth=0.9,
            capsize=2,
            label=label,
        )
    if measure == choice.criterion:
        best = choice.best_row
        drawn.plot(
            x[best], y[best], "o", mfc="none", mec="black", markersize=10, linestyle="none", label="best", zorder=4
        )
    chosen = choice.chosen_row
    drawn.plot(x[chosen], y[chosen], "k*", markersize=13, linestyle="none", label="choice", zorder=5)
    if across != "c":
        drawn.set_xscale("log")
        plain_numbers(drawn.xaxis)
    else:
        whole_numbers(drawn)
    drawn.set_xlabel("number of components" if across == "c" else across)
    drawn.set_ylabel(f"{TITLES[measure]} ({'larger' if measure in LARGER_IS_BETTER else 'smaller'} is better)")
    open_frame(drawn)
    inches = drawn.figure.get_figwidth() * drawn.get_position().width
    key_above(drawn, columns=max(1, int(9 * inches / (6 + max(map(len, lines))))))
    return drawn


def _across(choice: Selection) -> str:
    """The column that the x axis shows: the parameter with the most values, all of them positive, else c."""
    counts = {name: len(np.unique(choice.columns[name])) for name in choice.parameters}
    counts = {name: n for name, n in counts.items() if n > 1 and np.all(choice.columns[name] > 0)}
    return max(counts, key=counts.__getitem__) if counts else "c"


def _lines(choice: Selection, across: str) -> dict[str, Any]:
    """Label -> numbers of the rows that differ in the x axis alone."""
    columns = choice.columns
    names = [type(choice.candidates[i]).__name__ for i in columns["kernel"]]
    several = len(set(names)) > 1
    values = {x: np.unique(columns[x][np.isfinite(columns[x])]) for x in ("c", *choice.parameters) if x != across}
    varying = [name for name, different in values.items() if len(different) > 1]
    lines: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        parts = [name] * several + [f"{x} = {columns[x][row]:g}" for x in varying if np.isfinite(columns[x][row])]
        lines.setdefault(", ".join(parts) or choice.criterion, []).append(row)
    return {label: np.array(rows) for label, rows in lines.items()}

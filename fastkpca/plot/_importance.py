"""Importance of the variables: bars for one component, and arrows over the scores of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_count
from ..model.result import check_model
from ..model.statistics.importance import Importance, kpca_importance
from ._figure import BLUE, GREY, ORANGE, bars, set_names
from ._scores import check_components, scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def importance(which: Any, X: Any = None, ax: Axes | None = None, *, component: int = 0, n_columns: int = 15) -> Axes:
    """Bars: the share of each column in a component, the largest on top.

    Blue where the score rises with the column in at least nine of ten rows, orange and hatched where it falls, light
    grey where it has no stable direction. For a permutation no direction is known: the bars are grey, and have standard
    errors.

    Parameters
    ----------
    which : Importance, KPCAModel or fitted estimator
        What ``kpca_importance`` returned; of a model, the importance by gradients at the rows X is found first.
    X : array_like (m, d), optional
        For a model: as for ``kpca_importance``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    component : int
        From 0.
    n_columns : int
        Largest number of bars.

    Returns
    -------
    matplotlib.axes.Axes
        With a key of the signs, where they are known.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    TypeError, ValueError
        ``which`` is neither importance nor model, or X is given together with importance; there is no such component;
        n_columns is not positive; or as ``kpca_importance``.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((60, 3)) * [3.0, 1.0, 0.1]
    >>> which = fk.kpca_importance(fk.kpca(X, "linear", 2), X)
    >>> [label.get_text() for label in plot.importance(which).get_yticklabels()]
    ['column 0', 'column 1', 'column 2']
    """
    measured = _measured(which, which, X, "which (no result of kpca_importance)")
    if X is not None and measured is which:
        raise TypeError("which is importance, and X is given too, which only a model needs; axes are given as ax=")
    (component,) = check_components([component], len(measured.importance))
    order = measured.ranking(component)[: check_count(n_columns, "n_columns")]
    percent = 100.0 * measured.share[component][order]
    place = np.arange(len(order))
    signed = measured.positive is not None
    sign = measured.sign[component][order] if signed else np.zeros(len(order))
    error = None
    if measured.standard_errors is not None:
        total = max(float(measured.importance[component].sum()), 1e-300)
        error = 100.0 * measured.standard_errors[component][order] / total
    drawn = bars(ax, [measured.names[i] for i in order])
    looks = {  # hatches and a light grey tell them apart in a grey print
        1: (BLUE, "rises", None),
        -1: (ORANGE, "falls", "//"),
        0: ("0.78" if signed else GREY, "has no stable direction" if signed else None, None),
    }
    for value, (colour, label, hatch) in looks.items():
        of_sign = sign == value
        if of_sign.any():
            edge = {"hatch": hatch, "edgecolor": "white", "linewidth": 0}
            drawn.barh(place[of_sign], percent[of_sign], color=colour, label=label, height=0.72, **edge)
    if error is not None:
        drawn.errorbar(percent, place, xerr=error, fmt="none", ecolor="black", elinewidth=0.9, capsize=2.5)
    drawn.set_xlim(left=0)
    drawn.set_xlabel(f"share of the importance for component {component + 1} (%)")
    if signed:
        anchor = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
        title = "when the column grows, the score"
        drawn.legend(ncols=3, title=title, frameon=False, alignment="left", columnspacing=1.2, **anchor)
    return drawn


def biplot(
    model: Any,
    which: Any = None,
    ax: Axes | None = None,
    *,
    labels: Any = None,
    components: Sequence[int] = (0, 1),
    n_arrows: int = 6,
    label_name: str = "",
) -> Axes:
    """The rows in two components, with an arrow for each column: where a row moves when the column grows.

    An arrow is the mean derivative of both scores times the column's standard deviation, over all rows. All arrows are
    stretched by one factor, so that the longest reaches the rim of the scores: compare them with each other. Where
    the direction changes from row to row, the mean is short: such a column has a large bar in ``importance`` and hardly
    an arrow here.

    Parameters
    ----------
    model : KPCAModel or fitted estimator
        With scores.
    which : Importance or array_like (m, d), optional
        Importance for this model, by gradients; or the rows at which it is measured, as for ``kpca_importance``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    labels : array-like (n,), optional
        Labels of the rows, as for ``scores``.
    components : sequence of 2 int
        From 0.
    n_arrows : int
        Number of arrows, the longest ones.
    label_name : str

    Returns
    -------
    matplotlib.axes.Axes
        Those of ``scores``.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    TypeError, ValueError
        ``which`` is by permutation, or of another number of components; or as ``scores`` and ``kpca_importance``.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((60, 3)) * [3.0, 1.0, 0.1]
    >>> model = fk.kpca(X, "linear", 2)
    >>> [text.get_text() for text in plot.biplot(model, fk.kpca_importance(model, X)).texts]
    ['column 0', 'column 1', 'column 2']
    """
    model = check_model(model)
    which = _measured(which, model, which)
    if which.mean_gradients is None:
        raise ValueError("a permutation shows no direction; give kpca_importance(model, X, method='gradient')")
    if len(which.importance) != model.n_components:
        raise ValueError(
            f"the importance is of {len(which.importance)} components, and the model has {model.n_components}; give "
            "kpca_importance of this model"
        )
    pair = check_components(components, model.n_components, counts=(2,))
    n_arrows = check_count(n_arrows, "n_arrows", least=0)
    drawn = scores(model, labels, ax, components=pair, label_name=label_name)
    arrows = (which.mean_gradients[pair] * which.spread).T
    lengths = np.hypot(*arrows.T)
    order = np.argsort(-lengths, kind="stable")[:n_arrows]
    order = order[lengths[order] > 1e-9 * max(float(lengths.max()), 1e-300)]
    reach = np.abs(np.asarray(model.score)[:, pair]).max(axis=0)
    tips = arrows[order] / max(float(np.max(np.abs(arrows[order]) / reach, initial=0.0)), 1e-300)
    origin = np.zeros_like(tips.T)
    drawn.quiver(*origin, *tips.T, angles="xy", scale_units="xy", scale=1, width=0.004)
    drawn.update_datalim(tips)
    shafts = np.concatenate([part * tips for part in np.linspace(0.1, 1, 40)])
    drawn.margins(0.12)
    set_names(drawn, tips, [which.names[i] for i in order], np.concatenate([np.asarray(model.score)[:, pair], shafts]))
    return drawn


def _measured(which: Any, model: Any, X: Any, name: str = "model") -> Importance:
    """Importance as it was given, else that of the model at the rows X."""
    return which if isinstance(which, Importance) else kpca_importance(check_model(model, name), X)

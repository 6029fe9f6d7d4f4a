"""The accuracy asked for and the one reached, the passes of a fit, and the candidates of a plan."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_choice, check_list, check_numbers
from ..base.rounding import EPS
from ..model.plan import Candidate, Plan, readable_seconds, readable_size
from ..model.result import KPCAModel, check_model, widest_interval
from ._figure import (
    AMBER,
    BLUE,
    GREY,
    RED,
    axes_or_new,
    fitted,
    key_above,
    light_grid,
    open_frame,
    plain_numbers,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def accuracy(models: Any, reference: Any = None, ax: Axes | None = None, *, tol: Sequence[float] | None = None) -> Axes:
    """The accuracy guaranteed over the accuracy asked for, and the true one where a reference is given.

    Parameters
    ----------
    models : KPCAModel, or sequence of them
        One, or several of the same rows at several tolerances.
    reference : array_like (c,), optional
        Eigenvalues more accurate than those of any of the models; from ``method="dense"``, for example.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    tol : sequence of float, optional
        What was asked for; by default what the models recorded.

    Returns
    -------
    matplotlib.axes.Axes
        Over tol: the width of the widest interval and the largest error, both divided by the largest eigenvalue. Hollow
        marks are intervals that hold with a stated probability.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    TypeError
        What is given is no model, nor a list of models; or ``ax`` are no axes.
    ValueError
        There is no model, a model was made without tol, a tol is not positive, or the reference has fewer
        eigenvalues than a model.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> models = [fk.kpca(X, "gaussian", 3, sigma=2.0, tol=tol) for tol in (1e-3, 1e-6)]
    >>> exact = fk.kpca(X, "gaussian", 3, sigma=2.0, method="dense").eigenvalues
    >>> plot.accuracy(models, exact).get_xlabel()
    'asked for (tol)'
    """
    models = [models] if isinstance(fitted(models), KPCAModel) else models
    models = [check_model(x, f"models[{i}]") for i, x in enumerate(check_list(models, "models", "a list of models"))]
    if not models:
        raise ValueError("models is empty; one or more fitted models are needed")
    need = f"one positive number for each of the {len(models)} models"
    asked = check_numbers([_tol(model) for model in models] if tol is None else tol, "tol", need, (len(models),))
    if not (asked > 0).all():
        raise ValueError(f"tol is {asked.min():g}; give {need}")
    order = np.argsort(asked, kind="stable")
    asked, models = asked[order], [models[i] for i in order]
    width = np.array([widest_interval(model) for model in models])
    error = None if reference is None else np.array([_error(model, reference) for model in models])
    drawn = axes_or_new(ax, (6, 5))
    drawn.set_xscale("log")
    drawn.set_yscale("log")
    reach = 4 if asked.min() < asked.max() else 30  # space for decades alone: marks between them are crowded
    line = (asked.min() / reach, asked.max() * reach)
    drawn.plot(line, line, color=GREY, linestyle="--", linewidth=1, label="asked for")
    sure = np.array([model.bound_kind == "guaranteed" for model in models])
    width = np.maximum(width, EPS)  # zero has no place on a logarithmic scale
    drawn.plot(asked, width, color=BLUE, linewidth=1)
    if sure.any():
        drawn.plot(asked[sure], width[sure], "o", color=BLUE, label="guaranteed: widest interval")
    if not sure.all():
        drawn.plot(asked[~sure], width[~sure], "o", color=BLUE, markerfacecolor="white", label="probable interval")
    if error is not None:
        label = "achieved: largest error"
        drawn.plot(asked, np.maximum(error, EPS), "D-", color=RED, linewidth=1, markersize=5, label=label)
    drawn.set_xlim(line)
    drawn.set_xlabel("asked for (tol)")
    drawn.set_ylabel("relative to the largest eigenvalue")
    light_grid(drawn)
    key_above(drawn)
    return drawn


def _tol(model: Any) -> float:
    value = model.info.get("tol")
    if value is None:
        raise ValueError("a model was made without tol (by max_features, or landmarks); give tol=, one a model")
    return float(value)


def _error(model: Any, reference: Any) -> float:
    c = model.n_components
    need = f"the {c} largest eigenvalues, descending"
    exact = check_numbers(reference, "reference", need, (None,))
    if len(exact) < c or not exact[0] > 0:
        raise ValueError(f"reference has shape {exact.shape}, and begins with {exact[:1]}; give {need}")
    return float(np.abs(model.eigenvalues - exact[:c]).max() / exact[0])


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Width of the widest interval after each pass over the kernel matrix, evaluated or held in memory.

    Parameters
    ----------
    model : KPCAModel
        Model of the krylov route.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Filled marks are intervals, after float64 passes; hollow ones are what the passes of the search
        predicted. The dashed line is the width asked for.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    TypeError
        It is no model, or ``ax`` are no axes.
    ValueError
        The model was not made in passes over the kernel matrix, or does not record them.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> plot.convergence(fk.kpca(X, "gaussian", 3, sigma=2.0, method="krylov")).get_xlabel()
    'pass over the kernel matrix'
    """
    model = check_model(model)
    info = model.info
    recorded = info.get("widths")
    if recorded is None:
        how = info.get("method", "another")
        raise ValueError(
            f"the passes are recorded on the krylov route, this model is of the {how} route; fit with method='krylov'"
        )
    passes, widths = _history(recorded)
    searched, expected = _history(info.get("search_widths", []))
    drawn = axes_or_new(ax, (6, 4.2))
    drawn.set_yscale("log")
    tol = info.get("tol")
    if len(searched):
        # the search leads to the first interval: one line through both
        joined = np.append(searched, passes[:1]), np.append(expected, widths[:1])
        drawn.plot(*joined, color=BLUE, linewidth=1, linestyle=":")
        drawn.plot(searched, expected, "o", color=BLUE, markerfacecolor="white", label="expected (no bound)", zorder=3)
    kind = "guaranteed" if model.bound_kind == "guaranteed" else "probabilistic (last)"
    drawn.plot(passes, widths, "o-", color=BLUE, label=f"widest interval, {kind}", zorder=3)
    if tol:
        drawn.axhline(tol, color=GREY, linestyle="--", linewidth=1, label="asked for (tol)")
    last = max([1, *passes, *searched])
    drawn.set_xlim(0.5, last + 0.5)
    whole_numbers(drawn)
    drawn.set_xlabel("pass over the kernel matrix")
    drawn.set_ylabel("width / largest eigenvalue")
    light_grid(drawn, axis="y")
    key_above(drawn)
    return drawn


def _history(pairs: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Passes, and the widths after them."""
    table = np.array(pairs, dtype=float).reshape(-1, 2)
    return table[:, 0].astype(int), table[:, 1]


_UNITS = {"seconds": "predicted seconds", "memory": "predicted memory (MB)"}


def candidates(plan: Any, ax: Axes | None = None, *, quantity: str = "seconds") -> Axes:
    """The candidates of a plan: bars of predicted seconds or memory, the fastest first.

    Parameters
    ----------
    plan : Plan or KPCAModel
        What ``fastkpca.plan`` returned, or a model, whose plan is drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    quantity : {"seconds", "memory"}

    Returns
    -------
    matplotlib.axes.Axes
        The chosen candidate is blue; those that are not possible are hatched, with the reason.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    ValueError
        There is no such quantity.
    TypeError
        What was given has no plan; the quantity is no text; or ``ax`` are no axes.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> plot.candidates(fk.plan(X, "gaussian", 3)).get_xlabel()
    'predicted seconds'
    """
    check_choice(quantity, "quantity", tuple(_UNITS))
    plan = fitted(plan)
    if isinstance(plan, KPCAModel):
        plan = plan.plan
    if not isinstance(plan, Plan):
        raise TypeError(f"plan is a {type(plan).__name__}; give what fastkpca.plan() or kpca() returned")
    listed = sorted(plan.candidates, key=lambda x: (bool(x.obstacle), x.seconds))
    values = np.array([x.seconds if quantity == "seconds" else x.memory / 1e6 for x in listed], dtype=float)
    drawn = axes_or_new(ax, (8, 1.3 + 0.5 * len(listed)))
    drawn.set_xscale("log")
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 1.0)
    left, high = low / 3, max(high, 10 * low)
    drawn.set_xlim(left, high * (high / left) ** 0.25)  # space for the text to the right of the bars
    plain_numbers(drawn.xaxis)
    for row, (candidate, value) in enumerate(zip(listed, values)):
        amount = f"{readable_seconds(value, 2)} s" if quantity == "seconds" else readable_size(candidate.memory)
        _bar(drawn, row, left, value, candidate, amount, candidate is plan.chosen)
    drawn.set_yticks(range(len(listed)), [x.label for x in listed])
    drawn.set_ylim(len(listed) - 0.4, -0.6)
    drawn.set_xlabel(_UNITS[quantity])
    drawn.tick_params(axis="y", length=0)
    open_frame(drawn)
    return drawn


def _bar(ax: Any, row: int, left: float, value: float, candidate: Candidate, amount: str, chosen: bool) -> None:
    """A bar with its text to the right; the reason why there is none stands over it."""
    end = max(value, left) if np.isfinite(value) else left
    look: dict[str, Any] = {"color": BLUE if chosen else AMBER}
    if candidate.obstacle:
        look = {"color": "white", "edgecolor": "0.7", "hatch": "////"}
    if end > left:
        ax.barh(row, end - left, left=left, height=0.66, **look)
    text = textwrap.fill(candidate.obstacle, 40) if candidate.obstacle else amount
    ax.annotate(
        text + (", chosen" if chosen else ""),
        (left if candidate.obstacle else end, row),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize="small",
        fontweight="bold" if chosen else "normal",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )

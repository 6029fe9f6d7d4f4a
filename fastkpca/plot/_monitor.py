"""Control charts: T^2 and SPE row by row, under their limits."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_name, check_numbers
from ..model.limits import Limits
from ..rows.foreign import is_missing
from ._figure import BLUE, GREY, RED, given_axes, key_above, new_axes, open_frame, plain_numbers, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKED = 2000  # rows up to which each is a dot beside the line
_FAR = 30.0  # above so many times the limit, a linear axis would flatten everything below the limit
_DECADES, _HIGHEST = 1e4, 1e9


def monitor(
    limits: Any, t2: Any = None, spe: Any = None, ax: Any = None, *, x: Any = None, x_label: str = "row"
) -> np.ndarray:
    """Control charts of T^2 and SPE: their values row by row, the limits, and the rows beyond them in red.

    The axis is logarithmic where values lie far beyond the limit; values outside its range are drawn at its end.

    Parameters
    ----------
    limits : Limits
        Of ``kpca_limits``.
    t2, spe : array_like (m,), optional
        Of ``kpca_t2`` and ``kpca_spe``; one chart for each that is given.
    ax : Axes or array of Axes, optional
        Where to draw: one for each chart. By default a new figure, one chart above the other.
    x : array_like (m,), optional
        Positions of the rows: times, or numbers; 0, 1, ... by default.
    x_label : str
        Label of ``x``.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        T^2 first.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    TypeError
        ``limits`` is not a result of ``kpca_limits``, or neither statistic is given; values are no numbers; or ``ax``
        are no axes.
    ValueError
        Values are missing or not finite; the numbers of values of t2, spe and x differ; or there are not enough axes.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> rng = np.random.default_rng(0)
    >>> model = fk.kpca(rng.standard_normal((300, 3)), "gaussian", 5, sigma=2.0)
    >>> limits = fk.kpca_limits(model, rng.standard_normal((200, 3)))
    >>> X = rng.standard_normal((50, 3))
    >>> plot.monitor(limits, fk.kpca_t2(model, X), fk.kpca_spe(model, X)).shape
    (2,)
    """
    if not isinstance(limits, Limits):
        raise TypeError(f"limits is of type {type(limits).__name__}; give what kpca_limits(model, X) returned")
    charts = [
        (name, _checked(values, word), limit, method)
        for name, word, values, limit, method in (
            ("T²", "t2", t2, limits.t2, limits.t2_method),
            ("SPE", "spe", spe, limits.spe, limits.spe_method),
        )
        if values is not None
    ]
    if not charts:
        raise TypeError("give t2=kpca_t2(model, X), spe=kpca_spe(model, X), or both")
    m = len(charts[0][1])
    if len(charts[-1][1]) != m:
        raise ValueError(f"t2 has {m} values and spe {len(charts[-1][1])}; give both of the same rows")
    place = np.arange(m) if x is None else _places(x, m)
    check_name(x_label, "x_label", "text")
    if ax is None:
        axes = new_axes(len(charts), 1, (8, 2.9 * len(charts) + 0.4))[:, 0]
    else:
        axes = given_axes(ax, len(charts), "charts")
    for one, (name, values, limit, method) in zip(axes, charts):
        of_both = " of both" if limits.joint else ""
        _draw(one, place, values, limit, f"{100 * limits.confidence:g} % limit{of_both} ({method})", name)
        if x is None:
            whole_numbers(one)
    axes[-1].set_xlabel(x_label)
    return axes


def _checked(values: Any, name: str) -> np.ndarray:
    array = check_numbers(values, name, "one value for each row", (None,))
    if not len(array):
        raise ValueError(f"{name} is empty; give one value for each row")
    return array


def _places(x: Any, m: int) -> np.ndarray:
    """Times as they are, numbers as float64: one for each row."""
    times = np.asarray(x)
    if times.dtype.kind != "M" and not all(isinstance(value, date) for value in times.ravel()):
        return check_numbers(x, "x", f"one number or time for each of {m} rows", (m,))
    missing = np.isnat(times) if times.dtype.kind == "M" else [is_missing(value) for value in times.ravel()]
    if times.shape != (m,) or np.any(missing):
        raise ValueError(f"x has shape {times.shape}, or misses times; give one for each of {m} rows")
    return times


def _draw(ax: Axes | Any, x: np.ndarray, values: np.ndarray, limit: float, text: str, name: str) -> None:
    beyond = values > limit
    far = limit > 0 and values.max() > _FAR * limit
    if far:
        # down to the lowest value or some decades below the limit, whichever is higher
        positive = values[values > 0]
        foot = max(min(float(positive.min()), limit), limit / _DECADES)
        values = np.clip(values, foot, _HIGHEST * limit)
        ax.set_yscale("log")
        ax.set_ylim(foot / 1.3, float(values.max()) * 1.6)
        plain_numbers(ax.yaxis)
    few = len(x) <= _MARKED
    size = float(np.clip(600 / len(x), 1.5, 5))
    (line,) = ax.plot(
        x,
        values,
        color=BLUE,
        linewidth=0.9 if few else 0.5,
        marker="o" if few else "None",
        markersize=size,
        markeredgewidth=0,
        rasterized=len(x) > 20 * _MARKED,
        label=f"{name} of {len(x)} rows" if len(x) > 1 else f"{name} of one row",
    )
    border = ax.axhline(limit, color=GREY, linewidth=1.2, linestyle="--", label=text, zorder=3)
    handles = [line, border]
    if beyond.any():
        size = float(np.clip(600 / beyond.sum(), 1.5, 6 if few else 3))
        handles += ax.plot(
            x[beyond],
            values[beyond],
            "o",
            color=RED,
            markersize=size,
            markeredgewidth=0,
            rasterized=int(beyond.sum()) > 20 * _MARKED,
            label=f"{int(beyond.sum())} beyond it",
        )
    if not far:
        low = min(0.0, float(values.min()))
        high = max(float(values.max()), limit)
        margin = 0.04 * (high - low) if high > low else 1.0
        ax.set_ylim(low - margin / 2, high + 2 * margin)
    ax.margins(x=0.02)
    ax.set_ylabel(name)
    open_frame(ax)
    key_above(ax, handles)

"""Monitoring: T^2 and SPE row by row under their limits, one against the other, and the columns behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_count, check_name, check_numbers, is_number
from ..model.limits import Limits
from ..model.monitoring.contributions import Contributions
from ..rows.foreign import is_missing
from ..rows.times import as_times, gaps
from ._figure import (
    BLUE,
    GREY,
    MAX_MARKS,
    RED,
    axes_or_new,
    bars,
    date_ticks,
    key_above,
    open_frame,
    set_names,
    several_axes,
    whole_numbers,
    word_ticks,
)
from ._scores import POINTS_AS_PIXELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAR = 30.0  # multiple of the limit above which a linear axis would flatten everything below the limit


def monitor(
    limits: Any,
    t2: Any = None,
    spe: Any = None,
    ax: Any = None,
    *,
    x: Any = None,
    x_label: str = "row",
    title: str = "",
) -> np.ndarray:
    """Control charts of T^2 and SPE: their values row by row, the limits, and the rows beyond them in red.

    The axis is logarithmic above the next power of ten where values lie far above the limit. Limits called joint have
    their share of normal rows below both.

    Parameters
    ----------
    limits : Limits
        Of ``kpca_limits``.
    t2, spe : array_like (m,), optional
        Of ``kpca_t2`` and ``kpca_spe``; one chart for each that is given.
    ax : Axes or array of Axes, optional
        Where to draw: one for each chart. By default a new figure, one chart above the other.
    x : array_like (m,), optional
        Positions of the rows: times, numbers, or names, written as far as they fit; 0, 1, ... by
        default. Words such as 2026-03-01 06:00 or 01.03.2026 06:00 are times; times with a zone are shown in UTC. The
        curve breaks where times have a gap.
    x_label : str
        Label of ``x``.
    title : str
        What stands above the figure.

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
    _check_limits(limits)
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
    place, words = (np.arange(m), None) if x is None else _places(x, m)
    check_name(x_label, "x_label", "text")
    axes = several_axes(ax, len(charts), "charts", 1, (8, 3.1))
    for one in axes[:-1] if ax is None else ():  # the rows are named below the last
        one.sharex(axes[-1])
        one.tick_params(labelbottom=False)
    for one, (name, values, limit, method) in zip(axes, charts):
        _draw(one, place, values, limit, f"{_share_of(limits)} limit ({method})", name)
        if words is not None:
            word_ticks(one, words)
        elif place.dtype.kind == "M":
            locator, formatter = date_ticks()
            one.xaxis.set(major_locator=locator, major_formatter=formatter)
        elif x is None:
            whole_numbers(one)
    axes[-1].set_xlabel(x_label)
    check_name(title, "title", "text")
    if title:
        axes[0].figure.suptitle(title, parse_math=False, fontsize="medium", x=0.01, ha="left")
    return axes


def influence(limits: Any, t2: Any, spe: Any, ax: Axes | None = None, *, names: Any = None, n_names: int = 5) -> Axes:
    """Influence plot: SPE against T^2 of each row, with both limits.

    Right of the limit of T^2 are rows that are extreme within the components, above that of SPE rows that these do not
    describe.

    Parameters
    ----------
    limits : Limits
        Of ``kpca_limits``.
    t2, spe : array_like (m,)
        Of ``kpca_t2`` and ``kpca_spe``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    names : array_like (m,), optional
        What the rows are called; their numbers by default.
    n_names : int
        Number of rows named: those furthest above a limit.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is not installed.
    TypeError
        ``limits`` is not a result of ``kpca_limits``; or values are no numbers.
    ValueError
        Values are missing or not finite, or the numbers of values differ.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> rng = np.random.default_rng(0)
    >>> model = fk.kpca(rng.standard_normal((300, 3)), "gaussian", 5, sigma=2.0)
    >>> limits = fk.kpca_limits(model, rng.standard_normal((200, 3)))
    >>> X = rng.standard_normal((50, 3))
    >>> plot.influence(limits, fk.kpca_t2(model, X), fk.kpca_spe(model, X)).get_xlabel()
    'T²'
    """
    _check_limits(limits)
    t2 = _checked(t2, "t2")
    spe = check_numbers(spe, "spe", f"one value for each of {len(t2)} rows", t2.shape)
    texts = [str(x) for x in (np.arange(len(t2)) if names is None else np.asarray(names)).tolist()]
    if len(texts) != len(t2):
        raise ValueError(f"there are {len(texts)} names for {len(t2)} rows; give one for each")
    drawn = axes_or_new(ax)
    beyond = limits.exceeded(t2=t2, spe=spe)
    props: dict[str, Any] = {"s": float(np.clip(4e4 / len(t2), 2, 24)), "linewidths": 0}
    props["rasterized"] = len(t2) > POINTS_AS_PIXELS
    handles = []
    for chosen, colour, mark, text in ((~beyond, BLUE, "o", "below both limits"), (beyond, RED, "D", "beyond one")):
        label = f"{int(chosen.sum())} {text}"
        handles.append(drawn.scatter(t2[chosen], spe[chosen], color=colour, marker=mark, label=label, **props))
    props = {"color": GREY, "linewidth": 1.2, "linestyle": "--"}
    handles.append(drawn.axhline(limits.spe, label=f"{_share_of(limits)} limits", **props))
    drawn.axvline(limits.t2, **props)
    for axis, values, limit in (("x", t2, limits.t2), ("y", spe, limits.spe)):
        if limit > 0 and values.max() > _FAR * limit:
            drawn.set(**{f"{axis}scale": "log"})
    far = np.maximum(t2 / (limits.t2 or 1.0), spe / (limits.spe or 1.0))
    drawn.set(xlabel="T²", ylabel="SPE")
    open_frame(drawn)
    key_above(drawn, handles)
    points, first = np.column_stack([t2, spe]), np.argsort(-far, kind="stable")
    first = first[beyond[first]][: check_count(n_names, "n_names", least=0)]
    set_names(drawn, points[first], [texts[i] for i in first], points)
    return drawn


def contributions(which: Any, ax: Axes | None = None, *, row: int = 0, n_columns: int = 15) -> Axes:
    """Bars: what each column alone takes off the statistic of a row, the largest on top, with its value and the best.

    Parameters
    ----------
    which : Contributions
        Of ``kpca_contributions``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    row : int
        Number of the row among those that the contributions are of, from 0.
    n_columns : int
        Largest number of bars.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        matplotlib is not installed.
    TypeError, ValueError
        ``which`` is not a result of ``kpca_contributions``; there is no such row; n_columns is not positive.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((60, 3)) * [3.0, 1.0, 0.1]
    >>> which = fk.kpca_contributions(fk.kpca(X, "linear", 2), [[0.0, 0.0, 2.0]], train=X)
    >>> plot.contributions(which).get_yticklabels()[0].get_text()
    'column 2'
    """
    if not isinstance(which, Contributions):
        raise TypeError(f"which is of type {type(which).__name__}; give what kpca_contributions(model, X) returned")
    m = len(which.of_rows)
    if check_count(row, "row", least=0) >= m:
        raise ValueError(f"there is no row {row}: the contributions are of {m}, counted from 0")
    order = which.ranking(row)[: check_count(n_columns, "n_columns")]
    percent = 100.0 * which.fractions[row, order]
    drawn = bars(ax, [which.names[i] for i in order])
    drawn.barh(np.arange(len(order)), percent, color=BLUE, height=0.72)
    drawn.set_xlim(0, 1.6 * max(float(percent.max()), 1.0))
    drawn.set_xticks([x for x in drawn.get_xticks() if x <= 100.0 or x <= percent.max()])
    for place, (i, length) in enumerate(zip(order, percent)):
        text = f"{which.given[row, i]:.4g}, best at {which.values[row, i]:.4g}" if length >= 1.0 else ""
        drawn.annotate(text, (length, place), (4, 0), textcoords="offset points", va="center", fontsize="small")
    name = {"spe": "SPE", "t2": "T²"}.get(which.statistic, "statistic")
    drawn.set_xlabel(f"share of the {name} of row {row} that this column alone takes off (%)")
    return drawn


def _share_of(limits: Limits) -> str:
    """The share of normal rows below each limit; "joint": below both."""
    return f"{'joint ' * limits.joint}{100 * limits.confidence:g} %"


def _check_limits(limits: Any) -> None:
    if not isinstance(limits, Limits):
        raise TypeError(f"limits is of type {type(limits).__name__}; give what kpca_limits(model, X) returned")


def _checked(values: Any, name: str) -> np.ndarray:
    array = check_numbers(values, name, "one value for each row", (None,))
    if not len(array):
        raise ValueError(f"{name} is empty; give one value for each row")
    return array


def _places(x: Any, m: int) -> tuple[np.ndarray, list[str] | None]:
    """(times, or numbers as float64: one for each row; None), or of names (0, 1, ...; the names)."""
    given = np.asarray(x)
    if given.dtype.kind not in "OUM" or (given.dtype.kind == "O" and all(map(is_number, given.ravel()))):
        return check_numbers(x, "x", f"one number, time or name for each of {m} rows", (m,)), None
    if given.shape != (m,):
        raise ValueError(f"x has shape {given.shape}; give one number, time or name for each of {m} rows")
    missing = np.isnat(given) if given.dtype.kind == "M" else np.array([is_missing(value) for value in given], bool)
    if missing.any():
        raise ValueError(f"x misses the value of row {np.argmax(missing)}; give one for each of {m} rows")
    times = as_times(given)
    return (np.arange(m), [str(value) for value in given.tolist()]) if times is None else (times, None)


def _draw(ax: Axes | Any, x: np.ndarray, values: np.ndarray, limit: float, text: str, name: str) -> None:
    beyond, few = values > limit, len(x) <= MAX_MARKS
    most = np.sqrt(np.finfo(float).max)  # matplotlib needs space beyond the values
    values = np.clip(values, -most, most)
    props: dict[str, Any] = {"markeredgewidth": 0, "rasterized": len(x) > POINTS_AS_PIXELS}
    label = f"{name} of {len(x)} rows" if len(x) > 1 else f"{name} of one row"
    dots: dict[str, Any] = {"marker": "o", "markersize": float(np.clip(600 / len(x), 1.5, 5))} if few else {}
    breaks = gaps(x)[0] if x.dtype.kind == "M" else np.zeros(0, dtype=np.intp)
    curve = np.insert(x, breaks, x[breaks]), np.insert(values.astype(float), breaks, np.nan)
    handles = ax.plot(*curve, color=BLUE, linewidth=0.9 if few else 0.5, label=label, **dots, **props)
    handles.append(ax.axhline(limit, color=GREY, linewidth=1.2, linestyle="--", label=text, zorder=3))
    if beyond.any():
        size = float(np.clip(600 / beyond.sum(), 1.5, 6 if few else 3))
        label = f"{int(beyond.sum())} of {len(x)} beyond the limit"
        handles += ax.plot(x[beyond], values[beyond], "D", color=RED, markersize=size, label=label, **props)
    if limit > 0 and values.max() > _FAR * limit:
        ax.set_yscale("symlog", linthresh=10.0 ** np.ceil(np.log10(limit)))
    ax.margins(0.02, 0.06)
    ax.set_ylabel(name)
    open_frame(ax)
    key_above(ax, handles)

"""A page about a model, or about new rows under its limits: one file, which loads nothing."""

from __future__ import annotations

import base64
import html
import io
import os
import platform
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import metadata, resources
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..base.atomic import atomic
from ..base.checks import check_name
from ..model.monitor import Monitored, columns_behind
from ..model.project import kpca_project
from ..model.result import KPCAModel, check_model, component_table, facts, widest_interval
from ..model.verdict import Verdict, verdict_of
from ..rows.times import as_times, gaps
from ._figure import BLUE, GREY, RED, bars
from ._monitor import monitor
from ._scores import scores
from ._scree import scree

MAX_POINTS = 4000
"""Points of a curve: of more rows the lowest and the highest of each group are drawn, and all that are beyond."""
MAX_BARS = 12


def require_charts() -> None:
    """Raise an ImportError that says what to install where a report cannot be made.

    Raises
    ------
    ImportError
        Jinja2 is not installed; or neither plotly nor matplotlib is.
    """
    lacks = ["Jinja2"] * (find_spec("jinja2") is None)
    lacks += ["plotly or matplotlib"] * (find_spec("plotly") is None and find_spec("matplotlib") is None)
    if lacks:
        raise ImportError(f"a report needs {' and '.join(lacks)}: pip install 'fastkpca[report]'")


def report(what: Any, path: str | os.PathLike, *, title: str = "", command: str = "", overwrite: bool = False) -> None:
    """Write a page about a model, or about new rows under its limits: one file, shown without a network.

    Charts can be zoomed, and say what is under the pointer, where plotly is installed; else they are matplotlib's.

    Parameters
    ----------
    what : KPCAModel or Monitored
        What ``kpca`` or ``kpca_monitor`` returned.
    path : str or Path
        Such as ``report.html``.
    title, command : str
        What stands above the page, and the command that made it, where there was one.
    overwrite : bool
        False: an existing file is left alone and FileExistsError raised.

    Raises
    ------
    ImportError
        Jinja2 is not installed; or neither plotly nor matplotlib is.
    FileExistsError
        The file exists and ``overwrite`` is false.
    TypeError
        ``what`` is something else.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> from fastkpca import plot
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> plot.report(fk.kpca(X, "gaussian", 3), "model.html", overwrite=True)
    """
    require_charts()
    import jinja2

    check_name(title, "title", "text")
    check_name(command, "command", "text")
    found = what if isinstance(what, Monitored) else None
    model = found.model if found is not None else check_model(what, "what")
    draw: Any = _Plotly() if find_spec("plotly") is not None else _Matplotlib()
    page = _of_rows(found, draw) if found is not None else _of_model(model, draw)
    heads, lines = component_table(model, digits=6)
    made = f"fastkpca {metadata.version('fastkpca')}, numpy {np.__version__}, Python {platform.python_version()}"
    template = resources.files("fastkpca.plot").joinpath("report.html").read_text(encoding="utf-8")
    text = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(template)
    with atomic(path, overwrite=overwrite) as file:
        file.write(
            text.render(
                page,
                title=title or "Kernel PCA",
                command=command,
                facts=facts(model).items(),
                heads=heads,
                components=lines[:20],
                sure=_sure_of(model),
                made=f"{datetime.now():%Y-%m-%d %H:%M}, {made}",
                script=draw.script,
            ).encode("utf-8", "replace")
        )


def _of_model(model: KPCAModel, draw: Any) -> dict[str, Any]:
    health = str(model.info.get("health", "")).splitlines()
    limits = "fit with --limits, or give model.with_limits some" if model.limits is None else str(model.limits)
    size = f"{model.n_components} components of {model.n_samples} rows, {model.n_features} columns"
    tiles = [
        ("What was fitted", size, repr(model.kernel)),
        ("How much it explains", facts(model)["explained"], ""),
        ("How sure", model.bounds_text, _sure_of(model)),
        ("Limits", "none" if model.limits is None else f"{100 * model.limits.confidence:g} %", limits),
    ]
    charts = [("Eigenvalues with their intervals", draw.scree(model))]
    if model._score is not None:
        charts.append(("The rows in the first two components", draw.scores(model.score, None)))
    headline = f"Kernel PCA of {model.n_samples} rows"
    headline += f": {len(health)} finding{'s' * (len(health) > 1)} about the data" if health else ""
    return {"tiles": tiles, "health": health, "charts": charts, "headline": headline, "alert": bool(health)}


def _of_rows(found: Monitored, draw: Any) -> dict[str, Any]:
    verdict, n, k = verdict_of(found), len(found.t2), len(found.alarms)
    health = [str(finding) for finding in found.health]
    headline = f"{k} of {n} rows beyond the limits" if k else f"None of {n} rows is beyond the limits"
    if health and not k:
        headline += ", but something is wrong with the data"
    charts = list(draw.monitor(found))
    alarms: dict[str, Any] = {}
    if verdict is not None:
        names = verdict.explained.names
        order = np.argsort(-verdict.fractions, kind="stable")[:MAX_BARS]
        text = "Columns behind the alarms: mean fraction of the statistic that each alone takes off (%)"
        charts.append((text, draw.bars([names[j] for j in order], 100 * verdict.fractions[order])))
        labels = found.labels.tolist()
        behind = [columns_behind(verdict.explained, row) for row in range(len(verdict.index))]
        alarms["alarms"] = [
            (labels[i], f"{found.t2[i]:.4g}", f"{found.spe[i]:.4g}", found.beyond_what(i), columns)
            for i, columns in zip(verdict.index, behind)
        ]
        alarms |= {"label_name": found.label_name, "n_more": k - len(verdict.index)}
    beyond = found.beyond.any(axis=1)
    if found.model.n_components > 1:
        charts.append(
            ("The rows in the first two components", draw.scores(kpca_project(found.model, found._X), beyond))
        )
    charts.append(("Eigenvalues of the model with their intervals", draw.scree(found.model)))
    tiles = _tiles(found, verdict) if verdict is not None else [("How sure", "no alarm", _rate_of(found))]
    return {
        "tiles": tiles,
        "health": health,
        "charts": charts,
        "headline": headline,
        "alert": bool(k or health),
        **alarms,
    }


def _tiles(found: Monitored, verdict: Verdict) -> list[tuple[str, str, str]]:
    """What is wrong, since when, which sensor, how sure: each in a few words, and what stands behind it."""
    n, k, labels, which = len(found.t2), len(found.alarms), found.labels.tolist(), verdict.explained
    of_t2, of_spe = found.beyond.sum(axis=0).tolist()
    kinds = f"SPE (columns do not go together as they did): {of_spe}; T2 (extreme values): {of_t2}"
    lasts = verdict.last == found.alarms[-1] and n - verdict.last <= max(3, n // 50)
    until = "and still at the end of the rows" if lasts else f"until {labels[verdict.last]}"
    j, explained = verdict.column, int(verdict.most.sum())
    row = int(np.argmax(which.contributions[:, j]))
    sensor = which.names[j] if explained else "no column alone"
    value = (
        f"{which.given[row, j]:.4g} where {which.values[row, j]:.4g} would be normal, at {labels[verdict.index[row]]}"
    )
    share = f"it contributes most in {verdict.most[j]} of {explained} alarms; {value}"
    odds = "less than one in a million" if verdict.chance < 1e-6 else f"{verdict.chance:.1g}"
    chance = (
        f"of {n} normal rows {verdict.expected:.2g} would be beyond on average; the chance of {k} or more is {odds}"
    )
    return [
        ("What is wrong", f"{k} of {n} rows are unlike normal ones", kinds),
        ("Since when", f"{found.label_name} {labels[verdict.first]}", until),
        ("Which sensor", sensor, share if explained else "several changed together"),
        ("How sure", verdict.certainty, f"{chance} (if neighbouring rows are independent)"),
    ]


def _rate_of(found: Monitored) -> str:
    limits = found.limits
    return f"of normal rows at most {100 * (1 - limits.confidence):.3g} % are beyond the limits: {limits}"


def _sure_of(model: KPCAModel) -> str:
    """The intervals in words."""
    width = f"every eigenvalue is known to within {widest_interval(model):.1e} of the largest"
    if model.bound_kind == "guaranteed":
        return f"{width}, for certain: no random numbers were used in the bound"
    return f"{width}, with a probability of {model.failure_probability:.1g} at most that one is not"


def _thinned(values: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Numbers of the values that are drawn, in order."""
    n = len(values)
    if n <= MAX_POINTS:
        return np.arange(n)
    groups = np.array_split(np.arange(n), MAX_POINTS // 2)
    ends = [part[f(values[part])] for part in groups for f in (np.argmin, np.argmax)]
    return np.unique([*ends, *np.flatnonzero(keep)[:MAX_POINTS]])


class _Plotly:
    """Charts that plotly's script draws; texts are escaped, since it takes them for HTML."""

    def __init__(self) -> None:
        from plotly.offline import get_plotlyjs

        self.script = get_plotlyjs()

    def monitor(self, found: Monitored) -> list[tuple[str, Any]]:
        limits, charts = found.limits, []
        for column, (name, values, limit) in enumerate((("T²", found.t2, limits.t2), ("SPE", found.spe, limits.spe))):
            beyond = found.beyond[:, column]
            title = f"{name}: {beyond.sum()} of {len(values)} beyond the limit {limit:.4g}"
            charts.append((title, self._control(found, values, limit, beyond)))
        return charts

    def _control(self, found: Monitored, values: np.ndarray, limit: float, beyond: np.ndarray) -> dict[str, Any]:
        index, times = _thinned(values, beyond), as_times(found.labels)
        labels = [html.escape(str(label)) for label in found.labels.tolist()]
        x = (
            list(range(len(values)))
            if times is None
            else np.datetime_as_string(times.astype("datetime64[ms]")).tolist()
        )
        breaks = set() if times is None else set(gaps(times)[0].tolist())
        xs: list[Any] = []
        ys: list[float | None] = []
        texts: list[str] = []
        for before, i in zip([-1, *index.tolist()], index.tolist()):
            if breaks and any(b in breaks for b in range(before + 1, i + 1)) and before >= 0:
                xs, ys, texts = [*xs, x[i]], [*ys, None], [*texts, ""]
            xs, ys, texts = [*xs, x[i]], [*ys, float(values[i])], [*texts, labels[i]]
        chosen = [i for i in index.tolist() if beyond[i]]
        far = limit > 0 and values.max() > 30 * limit and values.min() > 0
        hover = "%{text}<br>%{y:.4g}<extra></extra>"
        mode = "lines+markers" if len(index) <= 400 else "lines"
        data = [
            {"x": xs, "y": ys, "text": texts, "mode": mode, "line": {"color": BLUE, "width": 1}, "marker": {"size": 4},
             "name": "rows", "hovertemplate": hover, "connectgaps": False},
            {"x": [x[i] for i in chosen], "y": [float(values[i]) for i in chosen], "text": [labels[i] for i in chosen],
             "mode": "markers", "marker": {"color": RED, "size": 7, "symbol": "diamond"}, "name": "beyond the limit",
             "hovertemplate": hover},
        ]  # fmt: skip
        line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": limit, "y1": limit}
        layout: dict[str, Any] = {"shapes": [line | {"line": {"color": GREY, "dash": "dash"}}]}
        layout |= {"yaxis": {"type": "log"} if far else {"rangemode": "tozero"}}
        if times is None:
            shown = np.unique(np.linspace(0, len(x) - 1, 7).astype(int)).tolist()
            texts = [labels[i] if len(labels[i]) < 20 else labels[i][:19] + "…" for i in shown]
            layout["xaxis"] = {"tickvals": shown, "ticktext": texts, "title": {"text": html.escape(found.label_name)}}
        return {"data": data, "layout": layout}

    def scree(self, model: KPCAModel) -> dict[str, Any]:
        low, high = model.eigenvalue_bounds.T
        values = model.eigenvalues
        error = {"array": (high - values).tolist(), "arrayminus": np.minimum(values - low, 0.9 * values).tolist()}
        marks = {
            "x": list(range(1, len(values) + 1)),
            "y": values.tolist(),
            "mode": "markers",
            "marker": {"color": BLUE},
        }
        marks["error_y"] = {"type": "data", "symmetric": False, "color": "black", **error}
        ticks = {"dtick": 1, "exponentformat": "power"} if values[0] > 100 * values[-1] else {"dtick": "D2"}
        vertical = {"type": "log", "title": {"text": "eigenvalue"}, **ticks}
        axes = {"xaxis": {"title": {"text": "component"}}, "yaxis": vertical}
        return {"data": [marks | {"hovertemplate": "PC%{x}: %{y:.6g}<extra></extra>"}], "layout": axes}

    def scores(self, points: np.ndarray, beyond: np.ndarray | None) -> dict[str, Any]:
        index = np.unique(np.linspace(0, len(points) - 1, MAX_POINTS).astype(int))
        marked = np.zeros(len(points), dtype=bool) if beyond is None else beyond
        data = []
        for chosen, colour, name in ((~marked, BLUE, "rows"), (marked, RED, "beyond a limit")):
            some = points[index[chosen[index]]]
            if len(some):
                place = {"x": some[:, 0].tolist(), "y": some[:, min(1, some.shape[1] - 1)].tolist()}
                data.append(place | {"mode": "markers", "marker": {"color": colour, "size": 5}, "name": name})
        axes = {"xaxis": {"title": {"text": "PC1"}}, "yaxis": {"title": {"text": "PC2"}}}
        return {"data": data, "layout": axes | {"showlegend": beyond is not None}}

    def bars(self, names: Sequence[str], values: np.ndarray) -> dict[str, Any]:
        short = [html.escape(name if len(name) <= 40 else name[:39] + "…") for name in names]
        place = list(range(len(names)))
        data = {"type": "bar", "orientation": "h", "x": values.tolist(), "y": place, "marker": {"color": BLUE}}
        data |= {"text": [html.escape(name) for name in names], "textposition": "none"}
        data["hovertemplate"] = "%{text}: %{x:.3g} %<extra></extra>"
        axis = {"tickvals": place, "ticktext": short, "autorange": "reversed", "automargin": True}
        return {"data": [data], "layout": {"yaxis": axis}}


class _Matplotlib:
    """The same charts as pictures: SVG by matplotlib, in which nothing runs."""

    script = ""

    def monitor(self, found: Monitored) -> list[tuple[str, Any]]:
        k, n = len(found.alarms), len(found.t2)
        charts = lambda: monitor(found.limits, found.t2, found.spe, x=found.labels, x_label=found.label_name)[0]  # noqa: E731
        return [(f"T² and SPE: {k} of {n} beyond a limit", self._svg(charts))]

    def scree(self, model: KPCAModel) -> str:
        return self._svg(lambda: scree(model))

    def scores(self, points: np.ndarray, beyond: np.ndarray | None) -> str:
        labels = None if beyond is None else np.where(beyond, "beyond a limit", "below both")
        return self._svg(lambda: scores(points, labels))

    def bars(self, names: Sequence[str], values: np.ndarray) -> str:
        def draw() -> Any:
            ax = bars(None, list(names))
            ax.barh(np.arange(len(names)), values, color=BLUE, height=0.72)
            return ax

        return self._svg(draw)

    def _svg(self, draw: Callable[[], Any]) -> str:
        """The figure of the axes as the address of an image that is part of the page."""
        import matplotlib

        file = io.BytesIO()
        # names are no formulas; letters that the font lacks are boxes
        with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")
            draw().figure.savefig(file, format="svg")
        return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()

"""A page about a model, or about new rows under its limits: one file, which loads nothing."""

from __future__ import annotations

import base64
import io
import os
import warnings
from collections.abc import Callable
from datetime import datetime
from importlib import metadata, resources
from importlib.util import find_spec
from platform import python_version
from typing import Any

import numpy as np

from ..base.atomic import atomic
from ..base.checks import check_name
from ..model.monitoring.monitor import Monitored, columns_behind
from ..model.monitoring.verdict import verdict_of
from ..model.project import kpca_project
from ..model.result import KPCAModel, check_model, component_table, facts, widest_interval
from ..rows.times import as_times, gaps
from ._figure import BLUE, bars
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
    found = what.of_values() if isinstance(what, Monitored) else None
    model = check_model(what, "what") if found is None else found.model
    heads, lines = component_table(model, digits=6)
    page: dict[str, Any] = {"title": title or "Kernel PCA", "command": command, "made": datetime.now(), "script": ""}
    page |= {"model": model, "facts": facts(model), "width": widest_interval(model)}
    page |= {"heads": heads, "lines": lines[:20]}
    page["versions"] = {"fastkpca": metadata.version("fastkpca"), "numpy": np.__version__, "Python": python_version()}
    page |= _of_model(model) if found is None else _of_rows(found)
    if find_spec("plotly") is not None:
        from plotly.offline import get_plotlyjs

        page["script"] = get_plotlyjs()
    page["charts"] = [(caption, (data if page["script"] else _svg)(draw)) for caption, data, draw in page["charts"]]
    template = resources.files("fastkpca.plot").joinpath("report.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    with atomic(path, overwrite=overwrite) as file:
        file.write(environment.from_string(template).render(page).encode("utf-8", "replace"))


def _of_model(model: KPCAModel) -> dict[str, Any]:
    charts = [_scree_chart(model)] + ([] if model._score is None else [_scores_chart(model.score, None)])
    return {"health": str(model.info.get("health", "")).splitlines(), "charts": charts}


def _of_rows(found: Monitored) -> dict[str, Any]:
    """Findings, alarms and charts of the page about new rows, and the verdict on the sensor most at fault."""
    verdict, limits = verdict_of(found), found.limits
    page: dict[str, Any] = {"found": found, "health": [finding.text for finding in found.health], "verdict": verdict}
    charts = [_control_chart(found, 1, "SPE", limits.spe), _control_chart(found, 0, "T²", limits.t2)]
    if verdict is not None:
        which, labels = verdict.explained, found.labels.tolist()
        page["alarms"] = [
            (labels[i], found.t2[i], found.spe[i], found.beyond_what(i), columns_behind(which, row))
            for row, i in enumerate(verdict.index)
        ]
        page["n_more"] = len(found.alarms) - len(verdict.index)
        page["worst"] = int(which.fractions[:, verdict.column].argmax())
        order = np.argsort(-verdict.fractions, kind="stable")[:MAX_BARS]
        charts.append(_bars_chart([which.names[j] for j in order], 100 * verdict.fractions[order]))
    charts.append(_scores_chart(kpca_project(found.model, found._X), found.beyond.any(axis=1)))
    return page | {"charts": [*charts, _scree_chart(found.model)]}


# A chart is (caption, function that returns its data for plotly's script, function that draws it by matplotlib).


def _control_chart(found: Monitored, column: int, name: str, limit: float) -> Any:
    values, beyond = (found.t2, found.spe)[column], found.beyond[:, column]

    def data(_: Any) -> dict[str, Any]:
        index, times = _thinned(values, beyond), as_times(found.labels)
        labels, chart = found.labels.tolist(), {"kind": "control", "limit": limit, "name": found.label_name}
        x: list[Any] = index.tolist()
        if times is not None:
            x = np.datetime_as_string(times[index].astype("datetime64[ms]")).tolist()
            breaks = gaps(times)[0]
            chart["breaks"] = np.unique(np.searchsorted(index, breaks)).tolist()
        chart |= {"x": x, "y": values[index].tolist(), "text": [str(labels[i]) for i in index]}
        return chart | {"beyond": np.flatnonzero(beyond[index]).tolist(), "dates": times is not None}

    given: dict[str, Any] = {"spe" if column else "t2": values}
    draw = lambda: monitor(found.limits, **given, x=found.labels, x_label=found.label_name)[0]  # noqa: E731
    return f"{name}: {beyond.sum()} of {len(values)} beyond the limit {limit:.4g}", data, draw


def _thinned(values: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Numbers of the values that are drawn, in order."""
    n = len(values)
    if n <= MAX_POINTS:
        return np.arange(n)
    groups = np.array_split(np.arange(n), MAX_POINTS // 2)
    ends = [part[f(values[part])] for part in groups for f in (np.argmin, np.argmax)]
    return np.unique([*ends, *np.flatnonzero(keep)[:MAX_POINTS]])


def _scree_chart(model: KPCAModel) -> Any:
    low, high = model.eigenvalue_bounds.T
    chart = {"kind": "scree", "y": model.eigenvalues.tolist(), "low": low.tolist(), "high": high.tolist()}
    return "Eigenvalues of the model with their intervals", lambda _: chart, lambda: scree(model)


def _scores_chart(points: np.ndarray, beyond: Any) -> Any:
    index = np.unique(np.linspace(0, len(points) - 1, MAX_POINTS).astype(int))
    x, y = points[index, 0].tolist(), points[index, min(1, points.shape[1] - 1)].tolist()
    marked = [] if beyond is None else np.flatnonzero(beyond[index]).tolist()
    labels = None if beyond is None else np.where(beyond, "beyond a limit", "below both")
    chart = {"kind": "scores", "x": x, "y": y, "beyond": marked}
    return "The rows in the first two components", lambda _: chart, lambda: scores(points, labels)


def _bars_chart(names: list[str], values: np.ndarray) -> Any:
    def draw() -> Any:
        ax = bars(None, names)
        ax.barh(np.arange(len(names)), values, color=BLUE, height=0.72)
        return ax

    caption = "Columns behind the alarms: mean fraction of the statistic that each alone takes off (%)"
    return caption, lambda _: {"kind": "bars", "x": values.tolist(), "names": names}, draw


def _svg(draw: Callable[[], Any]) -> str:
    """The figure of the axes as the address of an image that is part of the page, in which no script runs."""
    import matplotlib

    file = io.BytesIO()
    # names are no formulas; letters that the font lacks are boxes
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        draw().figure.savefig(file, format="svg")
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()

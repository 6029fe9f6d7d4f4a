"""The page about a model, or about new rows: one file, which loads nothing and runs nothing but its own charts."""

from __future__ import annotations

import base64
import json
import re
import sys
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import fastkpca as fk
from fastkpca import cli, plot
from fastkpca.model.monitoring.verdict import verdict_of

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "a\"b'c & d",
    "\u202eevil\u202c \u0645\u0631\u062d\u0628\u0627",
    r"$\frac{a}{b}$ $x",
    "{{ 7*7 }}",
    "\u65e5\u672c\u8a9e \u2028",
    "-->]]><!--",
)


class Page(HTMLParser):
    """The elements of a page with their attributes, its text outside scripts, and its scripts."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.elements, self.text, self.scripts, self.within = [], "", [], None
        self.open = []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text
        elif "style" not in self.open:
            self.text += text

    @property
    def charts(self):
        return json.loads(re.search(r"^const charts = (.*);$", self.scripts[-1], re.MULTILINE)[1])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    L = rng.standard_normal((2, 8))
    made = lambda n: rng.standard_normal((n, 2)) @ L + 0.2 * rng.standard_normal((n, 8))  # noqa: E731
    return made(600), made(120)


@pytest.fixture(scope="module")
def found(rows):
    """Rows of which the column 1 is wrong from 70 on, under a model whose columns have hostile names."""
    pandas = pytest.importorskip("pandas")
    normal, new = rows
    frame = pandas.DataFrame(normal, columns=HOSTILE)
    model = fk.kpca(frame[:400], "linear", 2)
    model = model.with_limits(fk.kpca_limits(model, frame[400:], confidence=0.98, joint=True))
    new = new.copy()
    new[70:, 1] += 5.0
    labels = [f"lot <i>{i}</i> & '{i}'" for i in range(120)]
    return fk.kpca_monitor(model, new, labels=labels, label_name="<b>lot</b>")


@pytest.fixture(params=["plotly", "matplotlib"])
def charts(request, monkeypatch):
    if request.param == "plotly":
        pytest.importorskip("plotly")
    else:
        monkeypatch.setitem(sys.modules, "plotly", None)
    return request.param


def write(what, path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        what.report(path, **options)
    return Page(path)


def check_alone(page, charts):
    """Nothing is loaded, and no script runs but plotly's and the one of the charts."""
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form", "a", "audio", "video"), tag
        assert not any(name.startswith("on") for name in attributes), attributes
        address = attributes.get("src") or attributes.get("href") or ""
        assert address.startswith("data:image/svg+xml;base64,") == (tag == "img") and (tag == "img" or not address)
    assert len(page.scripts) == (2 if charts == "plotly" else 0)
    (policy,) = [x["content"] for tag, x in page.elements if tag == "meta" and "http-equiv" in x]
    assert policy.startswith("default-src 'none'") and "http" not in policy


def test_hostile_names_are_text(found, tmp_path, charts):
    page = write(found, tmp_path / "r.html", title="<b>title</b> {{ 1 }}", overwrite=False)
    check_alone(page, charts)
    for name in HOSTILE[:2]:
        assert name in page.text
    assert "<b>title</b> {{ 1 }}" in page.text and "49" not in page.text.split("{{ 7*7 }}")[0][-3:]
    assert "lot <i>7" in page.text and "<b>lot</b>" in page.text
    assert not {tag for tag, _ in page.elements} & {"i", "b"}
    if charts == "plotly":
        assert [chart["kind"] for chart in page.charts] == ["control", "control", "bars", "scores", "scree"]
        assert set(page.charts[2]["names"]) == set(HOSTILE)
        assert "<" not in page.scripts[-1].partition("const charts = ")[2].partition("\n")[0]
    else:
        for tag, attributes in page.elements:
            if tag == "img":
                picture = ElementTree.fromstring(base64.b64decode(attributes["src"].partition(",")[2]))
                assert not {x.tag.rpartition("}")[2] for x in picture.iter()} & {"script", "img", "image", "a"}


def test_what_is_wrong_since_when_which_sensor_how_sure(found, tmp_path, charts):
    page = write(found, tmp_path / "r.html")
    first = page.text.partition("SPE:")[0]  # ahead of the charts
    assert f"{len(found.alarms)} of 120 rows beyond the limits" in first
    assert "lot <i>70</i>" in first and "still at the end" in first
    assert HOSTILE[1] in first and "practically certain" in first and "2.4 would be beyond on average" in first
    verdict = verdict_of(found)
    row = int(np.argmax(verdict.explained.fractions[:, 1]))
    given, best = verdict.explained.given[row, 1], verdict.explained.values[row, 1]
    assert f"{given:.4g} where {best:.4g} would be normal" in first
    for text in (str(found.limits), "every eigenvalue is known to within", f"fastkpca {fk.__version__}"):
        assert text in page.text


def test_one_time_since_when_and_no_alert_where_it_may_be_chance(rows, found, tmp_path):
    assert found.run_alarm is not None and found.run_alarm > 70
    first = write(found, tmp_path / "r.html").text.partition("SPE:")[0]
    whole = first.partition("The whole run")[2].partition("How sure")[0]
    assert "reach 100" in whole and "lot <i>" not in whole
    early = np.flatnonzero(found.beyond.any(axis=1) & (np.arange(120) < verdict_of(found).first))
    assert (f"{len(early)} single alarm" in first) == (len(early) > 0)
    spe = np.where(np.arange(120) == 3, 2.0, 0.5) * found.limits.spe
    spe[70:] = 2.0 * found.limits.spe
    with_early = replace(found, t2=np.zeros(120), spe=spe)
    assert "still at the end of the rows; 1 single alarm before" in write(with_early, tmp_path / "e.html").text
    calm = fk.kpca_monitor(found.model, rows[1], labels=np.arange(120))
    one = replace(calm, t2=np.zeros(120), spe=np.where(np.arange(120) == 40, 1.01, 0.1) * found.limits.spe)
    for what, kind in ((one, "unsure"), (found, "alert")):
        page = write(what, tmp_path / f"{kind}.html")
        assert [x["class"] for tag, x in page.elements if tag == "header"] == [kind]
        assert ("which may be chance" in page.text) == (kind == "unsure")


def test_calm_rows_and_models(rows, found, tmp_path, charts):
    calm = fk.kpca_monitor(found.model, rows[1][:40], limits=replace(found.limits, t2=1e9, spe=1e9))
    page = write(calm, tmp_path / "calm.html")
    check_alone(page, charts)
    assert "None of 40 rows is beyond the limits" in page.text
    model = fk.kpca(rows[0], "gaussian", 1, sigma=4.0)
    page = write(model, tmp_path / "model.html")
    check_alone(page, charts)
    assert "Kernel PCA of 600 rows" in page.text and "guaranteed" in page.text
    with pytest.raises(FileExistsError):
        model.report(tmp_path / "model.html")
    model.report(tmp_path / "model.html", overwrite=True)
    with pytest.raises(TypeError, match="what kpca"):
        plot.report(3, tmp_path / "x.html")


def test_times_break_at_gaps_and_many_rows_are_thinned(rows, found, tmp_path):
    pytest.importorskip("plotly")
    times = np.datetime64("2026-03-01T00:00") + 5 * np.arange(120)
    times[60:] += 600
    with pytest.warns(fk.errors.HealthWarning, match="gaps"):
        timed = fk.kpca_monitor(found.model, rows[1], labels=times, label_name="time")
    page = write(timed, tmp_path / "t.html")
    assert page.charts[0]["breaks"] == [60] and page.charts[0]["x"][60].startswith("2026-03-01T15:00")
    assert "times of 'time' have gaps before 1 of 120 rows" in page.text
    many = fk.kpca_monitor(found.model, np.tile(rows[1], (400, 1)))
    chart = write(many, tmp_path / "m.html").charts[0]
    assert len(chart["x"]) < 12_000 and max(chart["y"]) == many.spe.max() and min(chart["y"]) == many.spe.min()


def test_rows_without_a_value_are_left_out(rows, found, tmp_path, charts):
    Y = rows[1].copy()
    Y[:2] = np.nan
    t2, spe = found.t2.copy(), found.spe.copy()
    t2[:2] = spe[:2] = np.nan  # as of a model of lagged rows
    page = write(replace(found, t2=t2, spe=spe, _X=Y), tmp_path / "n.html")
    assert "of 118 rows beyond the limits" in page.text
    if charts == "plotly":
        assert len(page.charts[0]["y"]) == 118


def test_what_is_missing_is_named(found, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs plotly or matplotlib: pip install 'fastkpca\[report\]'"):
        found.report(tmp_path / "r.html")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match="needs Jinja2 and plotly or matplotlib"):
        found.report(tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_the_verdict_finds_stretch_column_and_chance(rows, found):
    verdict = verdict_of(found)
    assert verdict.first == 70 and verdict.last == found.alarms[-1] and verdict.column == 1
    assert verdict_of(fk.kpca_monitor(found.model, rows[1][:40], limits=replace(found.limits, t2=1e9, spe=1e9))) is None
    # the chance of k alarms or more, by drawing: m new rows among n of the limits, whose k-th largest is the limit
    from fastkpca.model.monitoring.verdict import _chance

    rng, n, m = np.random.default_rng(0), 99, 50
    values = rng.random((20_000, n + m))
    limit = np.sort(values[:, :n], axis=1)[:, -10]
    beyond = (values[:, n:] > limit[:, None]).sum(axis=1)
    for k in (1, 5, 10, 15):
        assert abs(_chance(k, m, n, 0.1) - (beyond >= k).mean()) < 5 * np.sqrt(0.25 / 20_000)
    assert _chance(0, m, n, 0.1) == pytest.approx(1.0) and _chance(m, m, n, 0.01) < 1e-20


def test_the_commands_write_pages(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, X in (("normal.csv", rows[0]), ("new.csv", np.vstack([rows[1][:30], rows[1][:3] + 4.0]))):
        np.savetxt(name, X, delimiter=",", header=",".join("abcdefgh"), comments="")
    fit = ["fit", "normal.csv", "--kernel", "linear", "-c", "2", "--limits", "0.98", "-o", "m.kpca"]
    assert cli.main([*fit, "--report", "fit.html"]) == 0
    assert cli.main(["monitor", "m.kpca", "new.csv", "--report", "new.html"]) == 3
    assert "report written to new.html" in capsys.readouterr().out
    assert "fastkpca fit normal.csv --kernel linear" in Page("fit.html").text
    page = Page("new.html")
    assert "fastkpca monitor m.kpca new.csv --report new.html" in page.text and "m.kpca, 20" in page.text
    assert cli.main(["monitor", "m.kpca", "new.csv", "--report", "new.html"]) == 1
    assert cli.main(["monitor", "m.kpca", "new.csv", "--report", "new.doc"]) == 1
    assert "reports are written as .html" in capsys.readouterr().err

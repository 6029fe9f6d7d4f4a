"""Columns and times that say more about a sensor or a file than about the process, each found by name."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import HealthWarning, ScalesWarning
from fastkpca.model.monitoring.health import Facts
from fastkpca.rows.convert import as_rows

NAMES = ("temp", "flow", "level", "power")
X = np.random.default_rng(0).standard_normal((400, 4))


def spoiled(kind, column=1, n=400, seed=1):
    Y = np.random.default_rng(seed).standard_normal((n, 4))
    if kind == "dead":
        Y[:, column] = np.nan
    elif kind == "missing":
        Y[: int(0.7 * n), column] = np.nan
    elif kind == "constant":
        Y[:, column] = 0.25
    elif kind == "stuck":
        Y[n // 3 : n // 3 + max(n // 10, 30), column] = 0.25
    elif kind == "growing":
        Y[:, column] = 1.7e9 + 60.0 * np.arange(n)
    elif kind == "scales":
        Y[:, column] /= 150.0
    return Y


def kinds(findings):
    return {finding.kind: finding.columns for finding in findings}


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("kind", ["dead", "missing", "constant", "stuck", "growing", "scales"])
def test_each_trap_of_the_fit_is_found_by_name(kind, column):
    frame = pytest.importorskip("pandas").DataFrame(spoiled(kind, column), columns=NAMES)
    found = fk.kpca_health(frame, standardize=kind != "scales")
    assert kinds(found) == {kind: (NAMES[column],)}
    assert repr(NAMES[column]) in found[0].text and "\n" not in found[0].text
    assert kinds(fk.kpca_health(spoiled(kind, column), standardize=kind != "scales")) == {kind: (f"column {column}",)}


@pytest.fixture(scope="module")
def model():
    fitted = fk.kpca(X[:200], "linear", 2)
    return fitted.with_limits(fk.kpca_limits(fitted, X[200:], confidence=0.95, joint=True))


@pytest.mark.parametrize("n", [12, 40, 400])
@pytest.mark.parametrize("kind", ["dead", "missing", "constant", "stuck", "growing"])
def test_each_trap_of_new_rows(model, kind, n):
    if n < {"stuck": 40, "growing": 21}.get(kind, 0):
        pytest.skip("too few rows to tell")
    Y = spoiled(kind, 2, n)
    assert kinds(fk.kpca_health(Y, model=model)) == {kind: ("column 2",)}
    if np.isnan(Y).any():
        with pytest.warns(HealthWarning, match="column 2") as caught:
            found = fk.kpca_monitor(model, Y, fill_missing=True)
    else:
        with pytest.warns(HealthWarning, match="column 2") as caught:
            found = fk.kpca_monitor(model, Y)
    assert kinds(found.health) == {kind: ("column 2",)} and len(caught) == 1
    assert caught[0].filename == __file__


def test_rows_like_the_normal_ones_are_well(model):
    rng = np.random.default_rng(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (1, 2, 5, 50, 400):
            assert fk.kpca_monitor(model, rng.standard_normal((n, 4))).health == ()
    # sensors that are slow, coarse, or at a stop for long are as they were
    slow = np.column_stack([np.repeat(rng.standard_normal(100), 8), np.round(rng.standard_normal(800)),
                            np.where(np.arange(800) % 200 < 100, 5.0, rng.standard_normal(800))])  # fmt: skip
    assert fk.kpca_health(slow) == ()
    fitted = fk.kpca(slow[:400], "linear", 2)
    fitted = fitted.with_limits(fk.kpca_limits(fitted, slow[400:], confidence=0.9))
    assert fk.kpca_health(slow[::-1][:300], model=fitted) == ()
    stuck = slow[:300].copy()
    stuck[100:, 0] = 1.5
    assert kinds(fk.kpca_health(stuck, model=fitted)) == {"stuck": ("column 0",)}


def test_facts_do_not_depend_on_the_tiles():
    Y = np.round(np.random.default_rng(5).standard_normal((70_000, 3)), 1)
    Y[100:140, 0] = Y[65_000:66_000, 1] = 3.0
    Y[::7, 2] = np.nan
    facts = Facts(as_rows(Y))
    for j in range(3):
        ends = np.flatnonzero(np.append(Y[1:, j] != Y[:-1, j], True))
        runs = np.diff(np.append(-1, ends)) * ~np.isnan(Y[ends, j])
        assert facts.run[j] == runs.max() and facts.run_end[j] == ends[runs.argmax()]
        assert facts.rises[j] == (Y[1:, j] > Y[:-1, j]).sum() and facts.falls[j] == (Y[1:, j] < Y[:-1, j]).sum()
        assert facts.n_values[j] == np.isfinite(Y[:, j]).sum()
        assert (facts.low[j], facts.high[j]) == (np.nanmin(Y[:, j]), np.nanmax(Y[:, j]))


def test_times_that_repeat_fall_or_have_gaps():
    times = np.datetime64("2026-03-01T00:00", "m") + 5 * np.arange(200)
    assert fk.kpca_health(X[:200], labels=times) == ()
    german = [f"{t.day:02d}.{t.month:02d}.{t.year} {t:%H:%M}" for t in times.tolist()]
    assert fk.kpca_health(X[:200], labels=german) == ()
    wrong = times.copy()
    wrong[20:] += 60
    wrong[50], wrong[70] = wrong[49], wrong[40]
    texts = [finding.text for finding in fk.kpca_health(X[:200], labels=wrong, label_name="when")]
    assert [text.split(" of 200")[0] for text in texts] == [
        "times of 'when' repeat in 1", "times of 'when' fall in 1", "times of 'when' have gaps before 3"
    ]  # fmt: skip
    assert "the longest of 65 min before 2026-03-01T02:40; the usual step is 5 min" in texts[2]
    assert fk.kpca_health(X[:200], labels=[f"lot {i}" for i in range(200)]) == ()
    # steps of chance have no usual length, and a gap is what is far longer
    some = np.cumsum(np.random.default_rng(0).exponential(6e4, 200)).astype("timedelta64[ms]") + times[0]
    assert fk.kpca_health(X[:200], labels=some) == ()
    some[100:] += np.timedelta64(3, "h")
    assert [finding.kind for finding in fk.kpca_health(X[:200], labels=some)] == ["times"]


def test_runs_are_kept_in_the_file_and_older_limits_have_none(model, tmp_path):
    fk.save(model, tmp_path / "m.kpca")
    kept = fk.load(tmp_path / "m.kpca").limits
    np.testing.assert_array_equal(kept.runs, model.limits.runs)
    assert issubclass(ScalesWarning, HealthWarning)
    Y = spoiled("stuck", 0, 40)
    older = fk.load(tmp_path / "m.kpca")
    object.__setattr__(older.limits, "runs", None)
    assert fk.kpca_health(Y, model=older) == ()
    assert kinds(fk.kpca_health(spoiled("constant", 0, 40), model=older)) == {"constant": ("column 0",)}


@pytest.mark.parametrize("labels", [5, NotImplemented, np.datetime64("2026-03-01"), [1, 2], [[1], [1, 2]], "abc"])
def test_labels_that_are_not_one_for_each_row(model, labels):
    X = np.random.default_rng(4).standard_normal((40, 4))
    X[10:, 1] = 3.0  # a finding that names a row
    for call in (fk.kpca_health, partial(fk.kpca_monitor, model), partial(fk.kpca_monitor, model, health=())):
        with pytest.raises(ValueError, match=r"labels have shape \(.*\); give one for each of the 40 rows"):
            call(X, labels=labels)

"""``fastkpca fit --limits`` and ``fastkpca monitor``, from file to file, against the library on the same rows."""

from __future__ import annotations

import contextlib
import csv
import io
import shutil
import sys

import numpy as np
import pytest

import fastkpca as fk
from fastkpca import cli

NAMES = "temp,flow,level"


def rows(n, seed):
    t = np.random.default_rng(seed).uniform(-1, 1, (n, 1))
    return np.hstack([t, t**2, -t]) + 0.05 * np.random.default_rng(seed + 1).standard_normal((n, 3))


NORMAL, NEW = rows(600, 0), np.vstack([rows(40, 5), [[0.5, 0.25, 0.9], [0.1, 4.0, -0.1]]])


def write(name, X, head=NAMES, **more):
    with open(name, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*more, *head.split(",")])
        out.writerows([*(column[i] for column in more.values()), *map(repr, row)] for i, row in enumerate(X.tolist()))
    return name


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with normal.csv, new.csv and what fit makes: m.kpca with limits, and plain.kpca without."""
    folder = tmp_path_factory.mktemp("fitted")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
        write("normal.csv", NORMAL)
        write("new.csv", NEW)
        fit = ["fit", "normal.csv", "-c", "5", "--limits", "0.98", "-o", "m.kpca", "--scores", "s.csv"]
        with contextlib.redirect_stderr(io.StringIO()) as err:
            assert cli.main([*fit, "--plot", "s.png"]) == 0
        assert cli.main(["fit", "normal.csv", "-o", "plain.kpca", "--quiet"]) == 0
    assert "200 of 600 rows, chosen at random, are held back" in err.getvalue()
    assert "of 200 rows: 98 % of normal rows are below both" in out.getvalue()
    return folder


@pytest.fixture(autouse=True)
def copied(fitted, tmp_path, monkeypatch):
    """Each test in a copy of that folder."""
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def beyond(path):
    found = np.genfromtxt(path, delimiter=",", skip_header=1)
    return found[:, 1:3], found[:, 3:]


def test_limits_are_those_of_rows_that_were_held_back():
    model = fk.load("m.kpca")
    assert (model.n_samples, model.limits.n_calibration, model.limits.joint) == (400, 200, True)
    assert not model.limits.of_training
    scores = np.genfromtxt("s.csv", delimiter=",", skip_header=1)
    np.testing.assert_allclose(scores, fk.kpca_project(model, NORMAL), rtol=1e-6, atol=1e-9)  # of all rows
    t2, spe = fk.kpca_t2(model, NORMAL), fk.kpca_spe(model, NORMAL)
    inside = {tuple(x) for x in np.round(model.limits.calibration[:, :2], 9)}
    held = np.array([tuple(x) in inside for x in np.round(np.column_stack([t2, spe]), 9)])
    assert held.sum() == 200
    again = fk.kpca_limits(model, NORMAL[held], confidence=0.98, joint=True)
    np.testing.assert_allclose([again.t2, again.spe], [model.limits.t2, model.limits.spe], rtol=1e-9)


def test_alarms_their_columns_and_the_exit_code(run):
    code, out, err = run("monitor", "m.kpca", "new.csv", "-o", "rows.csv", "--plot", "chart.png")
    assert (code, err) == (3, "")
    model = fk.load("m.kpca")
    t2, spe = fk.kpca_t2(model, NEW), fk.kpca_spe(model, NEW)
    values, flags = beyond("rows.csv")
    np.testing.assert_allclose(values, np.column_stack([t2, spe]), rtol=1e-12)
    np.testing.assert_array_equal(flags, np.column_stack([t2 > model.limits.t2, spe > model.limits.spe]))
    alarms = model.limits.exceeded(t2=t2, spe=spe)
    assert alarms[-2:].all() and f"{alarms.sum()} (" in out
    which = fk.kpca_contributions(model, NEW[-2:])
    by_row = {line.split()[0]: line for line in out.splitlines() if line}
    assert f" level {which.contributions[0, 2] / spe[-2]:.0%} (0.9 -> {which.values[0, 2]:.4g})" in by_row["41"]
    assert which.largest.tolist() == [2, 1] and " flow " in by_row["42"]
    with open("chart.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"
    write("calm.csv", NEW[:1])
    assert run("monitor", "m.kpca", "calm.csv", "--limits", 0.999)[0] == 0  # of 200 rows: the largest value
    assert run("monitor", "m.kpca", "new.csv", "--quiet") == (3, "", "")


def test_a_sigma_under_which_faults_hardly_show_is_told(run):
    noisy = np.hstack([NORMAL, np.random.default_rng(3).standard_normal((600, 5))])
    write("noisy.csv", noisy, "a,b,c,d,e,f,g,h")
    fit = ("fit", "noisy.csv", "--limits", 0.95, "-o", "n.kpca", "--force")
    model_of = lambda: fk.load("n.kpca")  # noqa: E731
    err = run(*fit)[2]
    assert "SPE has a ceiling" in err
    wider = float(err.split("--sigma ")[1].split(",")[0])
    assert wider == pytest.approx(4 * model_of().kernel.sigma, rel=1e-2)
    far = fk.kpca_spe(model_of(), [[100.0] * 8])[0]
    assert f"{model_of().limits.spe / far:.0%} of that" in err
    assert "ceiling" not in run(*fit, "--sigma", wider)[2]
    assert "ceiling" not in run(*fit, "--kernel", "polynomial", "--degree", 2)[2]
    assert "ceiling" not in run(*fit, "--quiet")[2]


def test_another_confidence_and_rows_of_ones_own(run):
    model = fk.load("m.kpca")
    run("monitor", "m.kpca", "new.csv", "--limits", 0.9, "-o", "a.csv")
    expected = fk.kpca_limits(model, confidence=0.9, joint=True)
    assert expected.t2 < model.limits.t2 or expected.spe < model.limits.spe
    values, flags = beyond("a.csv")
    np.testing.assert_array_equal(flags, values > [expected.t2, expected.spe])
    write("others.csv", rows(300, 9))
    run("monitor", "m.kpca", "new.csv", "--normal", "others.csv", "-o", "b.csv")
    expected = fk.kpca_limits(model, rows(300, 9), confidence=0.99, joint=True)
    values, flags = beyond("b.csv")
    np.testing.assert_array_equal(flags, values > [expected.t2, expected.spe])


def test_columns_by_name_rows_by_time_and_missing_values(run, fails):
    pytest.importorskip("matplotlib")
    times = [f"2026-03-01 {6 + i // 60:02d}:{i % 60:02d}" for i in range(len(NEW))]
    X = NEW.copy()
    X[3, 1] = np.nan
    write("turned.csv", X[:, ::-1], "level,flow,temp", time=times)
    err = fails("monitor", "m.kpca", "turned.csv", "--id", "time")
    assert "flow" in err and "line 5" in err and err.count("\n") == 1
    options = ("--id", "time", "--drop-missing", "-o", "-", "--plot", "c.svg")
    code, out, err = run("monitor", "m.kpca", "turned.csv", *options)
    lines = out.splitlines()
    assert code == 3 and lines[0] == "time,T2,SPE,T2 beyond,SPE beyond" and len(lines) == len(NEW) + 1
    assert lines[4] == f"{times[3]},,,," and lines[-1].startswith(times[-1]) and times[-1] in err
    kept = np.delete(NEW, 3, axis=0)
    found = [float(line.split(",")[2]) for i, line in enumerate(lines[1:]) if i != 3]
    np.testing.assert_allclose(found, fk.kpca_spe(fk.load("m.kpca"), kept), rtol=1e-9)


def test_missing_values_filled_by_the_model(run):
    X = NEW.copy()
    X[3, 1] = X[5, 0] = X[5, 1] = X[40, 0] = np.nan  # of which row 40 has a wrong level
    X[7] = np.nan
    write("holes.csv", X)
    code, out, err = run("monitor", "m.kpca", "holes.csv", "--fill-missing", "-o", "rows.csv", "--plot", "c.png")
    assert code == 3 and "1 of 42 rows has no value at all and is left out: line 9" in err
    assert "4 missing values in 3 of 41 rows are filled by the model: temp (2), flow (2)" in err
    model = fk.load("m.kpca")
    kept = np.delete(np.arange(42), 7)
    filled = fk.kpca_fill(model, X[kept])
    found = np.genfromtxt("rows.csv", delimiter=",", skip_header=1)
    np.testing.assert_allclose(found[kept, 1], fk.kpca_t2(model, filled), rtol=1e-12)
    np.testing.assert_allclose(found[kept, 2], fk.kpca_spe(model, filled), rtol=1e-12)
    assert np.isnan(found[7, 1:]).all() and found[kept, 5].sum() == 4 and found[5, 5] == 2
    marked = {line.split()[0] for line in out.splitlines() if "*" in line}
    assert "41*" in marked and "SPE is the least that values there could give" in out
    code, out, _ = run("project", "m.kpca", "holes.csv", "--fill-missing")
    scores = np.genfromtxt(out.splitlines(), delimiter=",", skip_header=1)
    np.testing.assert_allclose(scores[kept], fk.kpca_project(model, filled), rtol=1e-9, atol=1e-12)
    # limits are not made of rows that were made to fit
    Y = rows(300, 9)
    Y[::3, 0] = np.nan
    write("others.csv", Y)
    write("whole.csv", np.delete(Y, np.s_[::3], axis=0))
    options = ("--normal", "others.csv", "--limits", 0.9, "--fill-missing", "-o", "a.csv")
    assert "100 of 300 rows have missing values and are left out" in run("monitor", "m.kpca", "new.csv", *options)[2]
    run("monitor", "m.kpca", "new.csv", "--normal", "whole.csv", "--limits", 0.9, "-o", "b.csv")
    np.testing.assert_array_equal(beyond("a.csv")[1][:, :2], beyond("b.csv")[1])
    assert "--fill-missing" in run("monitor", "m.kpca", "holes.csv")[2]
    code, _, err = run("monitor", "m.kpca", "holes.csv", "--fill-missing", "--drop-missing")
    assert code == 2 and "not allowed with" in err


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("monitor", "plain.kpca", "new.csv"), 1, "plain.kpca keeps no limits; fit it with --limits 0.99"),
        (("monitor", "m.kpca", "other.csv"), 1, "'level'"),
        (("monitor", "m.kpca", "empty.csv"), 1, "empty.csv is empty"),
        (("monitor", "m.kpca", "head.csv"), 1, "head.csv"),
        (("monitor", "m.kpca", "new.csv", "--limits", "1"), 2, "not a number between 0 and 1"),
        (("monitor", "m.kpca", "new.csv", "--limits", "99"), 2, "not a number between 0 and 1"),
        (("monitor", "m.kpca", "new.csv", "--limits", "nan"), 2, "not a number between 0 and 1"),
        (("monitor", "m.kpca", "new.csv", "--alarms", "-1"), 2, "not a whole number"),
        (("monitor", "m.kpca", "new.csv", "-o", "rows.npy"), 1, "written as .csv"),
        (("monitor", "m.kpca", "new.csv", "-o", "new.csv", "--force"), 1, "the same file as the input"),
        (("monitor", "m.kpca", "new.csv", "-o", "m.kpca"), 1, "the same file as the input"),
        (("monitor", "m.kpca", "new.csv", "--plot", "a.doc"), 1, "plots are written as"),
        (("monitor", "m.kpca", "missing.csv"), 1, "there is no file"),
        (("monitor", "new.csv", "new.csv"), 1, "new.csv"),
        (("fit", "normal.csv", "--limits", "0.9"), 1, "give -o NAME.kpca"),
        (("fit", "two.csv", "--limits", "0.9", "-o", "t.kpca"), 1, "and there are 2; give more rows"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(run, arguments, code, text):
    write("other.csv", NEW[:, :2], "temp,flow")
    write("two.csv", NEW[:2])
    write("head.csv", NEW[:0])
    open("empty.csv", "w").close()
    found = run(*arguments)
    assert found[0] == code and found[1] == "" and text in found[2].splitlines()[-1] and "fault" not in found[2]


def test_a_closed_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["monitor", "m.kpca", "new.csv"]) == 1
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["monitor", "m.kpca", "new.csv", "--quiet"]) == 3  # which prints nothing


def test_limits_in_the_file_the_model_and_for_matlab(run):
    loadmat = pytest.importorskip("scipy.io").loadmat
    model = fk.load("m.kpca")
    assert run("fit", "normal.csv", "-c", 5, "--limits", 0.98, "-o", "m.mat")[0] == 0
    kept = loadmat("m.mat", simplify_cells=True)["limits"]
    for name in ("t2", "spe", "confidence", "joint"):
        assert kept[name] == pytest.approx(float(getattr(model.limits, name)))
    assert "limits" in run("info", "m.kpca")[1]
    assert model.with_limits(None).limits is None

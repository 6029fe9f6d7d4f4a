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
        fit = [
            "fit",
            "normal.csv",
            "-c",
            "5",
            "--limits",
            "0.98",
            "-o",
            "m.kpca",
            "--scores",
            "s.csv",
            "--digits",
            "17",
        ]
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
    code, out, err = run("monitor", "m.kpca", "new.csv", "-o", "rows.csv", "--plot", "chart.png", "--digits", 17)
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
    """By fit and by monitor, in --quiet too; what the words advise takes the ceiling away."""
    noisy = np.hstack([NORMAL, np.random.default_rng(3).standard_normal((600, 5))])
    write("noisy.csv", noisy, "a,b,c,d,e,f,g,h")
    fit = ("fit", "noisy.csv", "--limits", 0.95, "-o", "n.kpca", "--force", "--quiet")
    err = run(*fit, "--sigma", 1.5, "-c", 5)[2]
    model = fk.load("n.kpca")
    far = fk.kpca_spe(model, [[100.0] * 8])[0]
    assert f"SPE has a ceiling, and its limit is {model.limits.spe / far:.0%} of that" in err
    assert "without --sigma, --kernel and -c" in err and err.count("\n") == 1
    assert "SPE has a ceiling" in run("monitor", "n.kpca", "noisy.csv", "--quiet")[2]
    wrong = noisy.copy()
    wrong[:, 2] = np.roll(wrong[:, 2], 1)
    found = [np.mean(fk.kpca_monitor(model, wrong).beyond.any(axis=1))]
    assert run(*fit) == (0, "", "")
    assert run("monitor", "n.kpca", "noisy.csv", "--quiet")[2] == ""
    found.append(np.mean(fk.kpca_monitor(fk.load("n.kpca"), wrong).beyond.any(axis=1)))
    assert found[1] > found[0] + 0.3
    assert run(*fit, "--kernel", "polynomial", "--degree", 2)[2] == ""


def test_limits_choose_what_finds_faults_and_say_so(run):
    write("w.csv", NORMAL * [1.0, 1e3, 1e-3])  # in units of their own
    code, out, err = run("fit", "w.csv", "--limits", 0.98, "-o", "w.kpca")
    assert code == 0 and "each column is standardized (--no-standardize" in err and "ranges" not in err
    chosen = next(line for line in out.splitlines() if line.startswith("chosen"))
    assert "of simulated faults at 2 % false alarms" in chosen and chosen in run("info", "w.kpca")[1]
    model = fk.load("w.kpca")
    again = fk.kpca_baseline(NORMAL * [1.0, 1e3, 1e-3], confidence=0.98)
    assert model.scale is not None and repr(again.kernel)[:8] == repr(model.kernel)[:8]
    run("fit", "w.csv", "--limits", 0.98, "-o", "v.kpca", "-c", 4, "--sigma", 3, "--no-standardize")
    given = fk.load("v.kpca")
    assert (given.n_components, given.kernel.sigma, given.scale, given.spe_components) == (4, 3.0, None, None)


@pytest.mark.parametrize("lags", [0, 2])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_command_and_python_choose_the_same(run, lags, gaps):
    X = NORMAL.copy()
    X[10:500:7, 1] = np.nan if gaps else 0.0
    write("w.csv", X)
    options = ("--lags", lags, "--limits", 0.98, "--seed", 3, *["--fill-missing"] * gaps, "--scores", "w-s.csv")
    assert run("fit", "w.csv", *options, "-o", "w.kpca")[0] == 0
    ours = fk.load("w.kpca")
    model = fk.kpca_baseline(X, confidence=0.98, lags=lags, fill_missing=gaps, rng=3)
    assert (ours.kernel, ours.n_components, ours.spe_components) == (
        model.kernel, model.n_components, model.spe_components)  # fmt: skip
    assert ours.limits == model.limits and ours.info["chosen"] == model.info["chosen"]
    np.testing.assert_array_equal(ours.latent, model.latent)
    np.testing.assert_array_equal(ours.limits.runs, model.limits.runs)
    assert (ours.info.get("filled"), ours.lags) == (model.info.get("filled"), lags)
    # runs are those of all rows: of the rows that are held back none follow each other
    assert ours.limits.runs[:3].tolist() == [1, 1, 1]
    stuck = np.repeat(NORMAL[:150], 4, axis=0)
    assert fk.kpca_baseline(stuck, "linear", 2).limits.runs.tolist() == [4, 4, 4]


def test_lags_and_missing_values_in_the_rows_of_the_fit(run):
    n = 600
    times = [f"2026-03-{1 + i // 48:02d} {i % 48 // 2:02d}:{i % 2 * 30:02d}" for i in range(n + 20)]
    times = times[:200] + times[220:]  # a gap
    X = NORMAL.copy()
    X[50:400:10, 1] = np.nan
    write("holes.csv", X, time=times)
    options = ("--id", "time", "--limits", 0.95, "--lags", 2, "--force", "-o", "l.kpca")
    code, out, err = run("fit", "holes.csv", *options, "--fill-missing")
    assert "4 of 600 rows are left out: what goes before them for --lags is missing" in err
    assert "the last ones, are held back" in err and "filled " in out and " missing values in " in out
    model = fk.load("l.kpca")
    assert model.lags == 2 and model.feature_names == (*NAMES.split(","), *(
        f"{name}[-{k}]" for k in (1, 2) for name in NAMES.split(",")
    ))  # fmt: skip
    assert "filled" in run("info", "l.kpca")[1]
    write("l.csv", NEW, time=times[: len(NEW)])
    code, out, err = run("monitor", "l.kpca", "l.csv", "--id", "time", "-o", "l-rows.csv", "--digits", 17)
    assert code == 3 and "2 of 42 rows are left out" in err and "whole run" not in out
    values = np.genfromtxt("l-rows.csv", delimiter=",", skip_header=1)[:, 1:]
    long = np.hstack([NEW[2:], NEW[1:-1], NEW[:-2]])
    assert np.isnan(values[:2]).all()
    np.testing.assert_allclose(values[2:, 1], fk.kpca_spe(model, long), rtol=1e-9)
    np.testing.assert_allclose(values[2:, 1], fk.kpca_monitor(model, NEW, health=()).spe[2:], rtol=1e-9)
    # each file begins anew
    code, out, err = run(
        "monitor", "l.kpca", "l.csv", "l.csv", "--id", "time", "-o", "l-rows.csv", "--force", "--digits", 17
    )
    twice = np.genfromtxt("l-rows.csv", delimiter=",", skip_header=1)[:, 1:]
    np.testing.assert_array_equal(twice, np.vstack([values, values]))
    scores = np.genfromtxt(
        run("project", "l.kpca", "l.csv", "--id", "time", "--digits", 17)[1].splitlines()[1:], delimiter=","
    )
    np.testing.assert_allclose(scores[2:, 1:], fk.kpca_project(model, long), rtol=1e-9, atol=1e-12)
    for many in (50, 10**9):
        assert f"no row has {many} rows before it" in run("fit", "l.csv", "--id", "time", "--lags", many)[2]
    # without limits, too
    code, out, _ = run("fit", "holes.csv", "--id", "time", "--fill-missing", "-c", 2, "--scores", "f.csv", "--force")
    assert code == 0 and "35 missing values in 35 of 600 rows" in out
    assert np.isfinite(np.genfromtxt("f.csv", delimiter=",", skip_header=1)[:, 1:]).all()
    err = run("fit", "holes.csv", "--id", "time", "--fill-missing", "-c", "all", "--kernel", "linear")[2]
    assert "all 3 components of the linear kernel fit any value" in err


def test_an_alarm_of_the_whole_run(run):
    drifting = rows(400, 7)
    drifting[:, 2] += np.linspace(0, 0.15, 400)
    write("drift.csv", drifting)
    code, out, _ = run("monitor", "m.kpca", "drift.csv", "--alarms", 0)
    found = fk.kpca_monitor(fk.load("m.kpca"), drifting)
    assert code == 3 and f"alarm at row {found.run_alarm + 1}; fewer than 1 %" in out
    assert f'"run_alarm": {found.run_alarm + 1}' in run("monitor", "m.kpca", "drift.csv", "--json")[1]
    assert "no alarm (evidence" in run("monitor", "m.kpca", "normal.csv", "--alarms", 0)[1]


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
    assert "flow" in err and "line 5)" in err and err.count("error") == 1
    options = ("--id", "time", "--drop-missing", "-o", "-", "--plot", "c.svg", "--digits", 17)
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
    code, out, err = run(
        "monitor", "m.kpca", "holes.csv", "--fill-missing", "-o", "rows.csv", "--plot", "c.png", "--digits", 17
    )
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
    code, out, _ = run("project", "m.kpca", "holes.csv", "--fill-missing", "--digits", 17)
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

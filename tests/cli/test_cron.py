"""``fastkpca fit`` and ``monitor`` as a timer runs them: exit codes, health of data, --append, --since, --json."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

import fastkpca as fk
from fastkpca import cli

NAMES = ["temp", "flow", "level", "power"]


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) @ [[1.0, 1.0, -1.0, 0.5], [0.5, -1.0, 1.0, 1.0]] + 0.1 * rng.standard_normal(
        (n, 4)
    )


def times(n, first="2026-03-01T00:00"):
    return np.datetime_as_string(np.datetime64(first, "m") + 5 * np.arange(n)).tolist()


def write(name, X, when=None):
    with open(name, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["time"] * (when is not None) + NAMES)
        for i, row in enumerate(X.tolist()):
            out.writerow(([] if when is None else [when[i]]) + ["" if np.isnan(x) else repr(x) for x in row])
    return name


CALM, FAULTY = rows(40, 1), rows(40, 2)
FAULTY[25:, 1] += 6.0


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cron")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        write("normal.csv", rows(900, 0), times(900, "2026-01-01T00:00"))
        write("calm.csv", CALM, times(40))
        write("faulty.csv", FAULTY, times(40, "2026-03-01T03:20"))
        fit = ["fit", "normal.csv", "--id", "time", "--kernel", "linear", "-c", "2", "--limits", "0.999", "--quiet"]
        assert cli.main([*fit, "-o", "m.kpca"]) == 0
    return folder


@pytest.fixture(autouse=True)
def copied(fitted, tmp_path, monkeypatch):
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def table(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_exit_codes(run):
    quiet = ("--id", "time", "--quiet")
    assert run("monitor", "m.kpca", "calm.csv", *quiet) == (0, "", "")
    assert run("monitor", "m.kpca", "faulty.csv", *quiet) == (3, "", "")
    assert run("monitor", "m.kpca", "faulty.csv", *quiet, "--fail-on-alarm") == (4, "", "")
    assert run("monitor", "m.kpca", "calm.csv", *quiet, "--fail-on-alarm") == (0, "", "")
    write("gap.csv", CALM, [*times(20), *times(20, "2026-03-02T00:00")])
    code, out, err = run("monitor", "m.kpca", "gap.csv", *quiet)
    assert (code, out) == (5, "") and "times of 'time' have gaps before 1 of 40 rows" in err and err.count("\n") == 1
    write("gap.csv", FAULTY, [*times(20), *times(20, "2026-03-02T00:00")])
    assert run("monitor", "m.kpca", "gap.csv", *quiet)[0] == 3  # an alarm outweighs what is wrong with the data


SPOILED = {
    "dead": (np.s_[:], np.nan, "no value in any of the 40 rows"),
    "constant": (np.s_[:], 0.5, "the same value in all of the 40 rows"),
    "stuck": (np.s_[20:], 0.5, "stuck, the same value in many rows in a row"),
    "missing": (np.s_[10:], np.nan, "more than half of the values of 40 rows missing"),
}


@pytest.mark.parametrize("kind", SPOILED)
@pytest.mark.parametrize("gaps", ["--fill-missing", "--drop-missing"])
def test_a_sensor_that_is_dead_is_told_and_counted_whatever_is_quiet(run, kind, gaps):
    some, value, text = SPOILED[kind]
    X = CALM.copy()
    X[some, 2] = value
    text += ": column 4 ('level')"
    write("new.csv", X, times(40))
    code, out, err = run("monitor", "m.kpca", "new.csv", "--id", "time", "--quiet", gaps)
    lines = [line for line in err.splitlines() if text in line]
    assert len(lines) == 1 and out == ""
    if (kind, gaps) == ("dead", "--drop-missing"):
        assert code == 1 and "every row has a missing value" in err.splitlines()[-1]
        return
    assert code in (3, 5) and len(err.splitlines()) == 1
    found = json.loads(run("monitor", "m.kpca", "new.csv", "--id", "time", "--json", gaps)[1])
    assert found["exit_code"] == code and len(found["health"]) == 1 and text in found["health"][0]


def test_faults_are_named_before_missing_values_are_refused(run):
    X = CALM.copy()
    X[3:6, 0], X[20:, 2] = np.nan, 0.5
    write("new.csv", X, [*times(20), *times(20, "2026-03-02T00:00")])
    code, out, err = run("monitor", "m.kpca", "new.csv", "--id", "time", "--quiet")
    *findings, last = err.splitlines()
    assert (code, out) == (1, "") and len(findings) == 2
    assert "stuck, the same value" in findings[0] and "times of 'time' have gaps" in findings[1]
    assert "missing values (NaN) or infinities in column 2 ('temp'): 3 rows (first in line 5)" in last
    assert "--fill-missing lets the model fill them" in last
    assert run("monitor", "m.kpca", "new.csv", "--id", "time", "--quiet", "--fill-missing")[0] in (3, 5)


def test_the_health_of_the_rows_of_a_fit(run):
    X = rows(300, 3)
    clock = X.copy()
    clock[:, 0] = 1.7e9 + 60.0 * np.arange(300)
    write("clock.csv", clock)
    fit = ("fit", "clock.csv", "--quiet", "--force")
    code, out, err = run(*fit, "--standardize", "--limits", 0.9, "-o", "c.kpca")
    assert (code, out) == (5, "") and err.count("\n") == 1
    assert "only grow or only fall" in err and "column 1 ('temp') (1700000000 to 1700017940)" in err
    assert fk.load("c.kpca").info["health"] == err.strip().removeprefix("fastkpca: warning: ")
    code, _, err = run(*fit, "--standardize", "-o", "c.kpca")
    assert code == 0 and "'temp'" in err  # no limits: the model watches nothing
    mixed = X * [1.0, 1.0, 150.0, 1.0]
    write("clock.csv", mixed)
    code, _, err = run(*fit, "-o", "c.kpca")
    assert code == 0 and err.count("\n") == 1 and "column 1 ('temp') (" in err and "--standardize scales all" in err
    for more in (("--standardize",), ("--no-standardize",), ("--sigma", "1,1,100,1"), ("--limits", 0.9)):
        assert run(*fit, "-o", "c.kpca", *more)[::2] == (0, "")  # limits are of standardized columns
    write("clock.csv", X * [1.0, 1.0, 1e4, 1.0])  # which the library warns of by itself
    assert run(*fit, "-o", "c.kpca")[2].count("\n") == 1
    mixed[:250, 3] = np.nan
    write("clock.csv", mixed)
    err = run(*fit, "--drop-missing", "--standardize", "--limits", 0.9, "-o", "c.kpca")[2]
    assert "more than half of the values of 300 rows missing: column 4 ('power') (83.3%)" in err


def test_append_writes_the_head_once_and_no_half_line(run):
    for name in ("calm.csv", "faulty.csv"):
        run("monitor", "m.kpca", name, "--id", "time", "--append", "all.csv", "-o", f"of-{name}", "--quiet")
    assert table("all.csv") == table("of-calm.csv") + table("of-faulty.csv")[1:]
    code, _, err = run("monitor", "m.kpca", "calm.csv", "--append", "all.csv", "--skip-columns", "time")
    assert code == 1 and "begins with 'time,T2" in err and len(table("all.csv")) == 81
    with open("all.csv", "ab") as file:  # of another program that was killed
        file.write(b"2026-03-0")
    write("later.csv", CALM, times(40, "2026-03-02T00:00"))
    run("monitor", "m.kpca", "later.csv", "--id", "time", "--append", "all.csv", "-o", "of-later.csv", "--quiet")
    lines = table("all.csv")
    assert lines[81] == ["2026-03-0"] and lines[82:] == table("of-later.csv")[1:]
    # rows that are there are not added again: the same command twice, and a file that overlaps with the last one
    write("overlap.csv", np.vstack([CALM[30:], FAULTY[:3]]), times(13, "2026-03-02T02:30"))
    err = run("monitor", "m.kpca", "overlap.csv", "--id", "time", "--append", "all.csv")[2]
    assert "10 of 13 rows are in all.csv already, and not added again" in err and len(table("all.csv")) == 125
    run("monitor", "m.kpca", "overlap.csv", "--id", "time", "--append", "all.csv")
    assert len(table("all.csv")) == 125
    assert run("monitor", "m.kpca", "calm.csv", "--append", "calm.csv")[0] == 1
    assert not [name for name in os.listdir() if name.endswith(".tmp")]


@pytest.mark.skipif(sys.platform == "win32", reason="no fcntl")
def test_several_processes_append_whole_lines():
    code = (
        "from fastkpca.base.atomic import append\nfor i in range(20): append('all.csv', b'a,b', 3 * [b'{k}.%d,x' % i])"
    )
    children = [subprocess.Popen([sys.executable, "-c", code.replace("{k}", str(k))]) for k in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    lines = table("all.csv")
    assert lines[0] == ["a", "b"] and len(lines) == 181
    assert sorted(line[0] for line in lines[1:]) == sorted(3 * [f"{k}.{i}" for k in range(3) for i in range(20)])


def test_several_files_are_one_run(run):
    code, out, err = run(
        "monitor", "m.kpca", "calm.csv", "faulty.csv", "--id", "time", "-o", "both.csv", "--digits", 17
    )
    assert code == 3 and "rows              80" in out and err == ""  # no gap between the files
    X = np.vstack([CALM, FAULTY])
    found = np.genfromtxt("both.csv", delimiter=",", skip_header=1)
    np.testing.assert_allclose(found[:, 2], fk.kpca_spe(fk.load("m.kpca"), X), rtol=1e-9)
    run("monitor", "m.kpca", "calm.csv", "faulty.csv", "-o", "numbers.csv", "--force", "--skip-columns", "time")
    assert [line[0] for line in table("numbers.csv")[40:42]] == ["calm.csv:40", "faulty.csv:1"]


@pytest.mark.parametrize("since", ["2026-03-01T05:00", "01.03.2026 05:00", "2026-03-01 06:00+01:00"])
def test_since(run, since):
    files = ("calm.csv", "faulty.csv")
    options = ("--id", "time", "-o", "late.csv", "--force", "--quiet", "--since", since)
    assert run("monitor", "m.kpca", *files, *options)[0] == 3
    assert [line[0] for line in table("late.csv")[1:]] == [
        t for t in times(40, "2026-03-01T03:20") if t > "2026-03-01T05:00"
    ]
    assert run("monitor", "m.kpca", "calm.csv", "--id", "time", "--since", since) == (
        0, "no rows later than 2026-03-01T05:00:00\n", "")  # fmt: skip
    assert json.loads(run("monitor", "m.kpca", "calm.csv", "--id", "time", "--since", since, "--json")[1])["rows"] == 0
    assert "give --id COLUMN" in run("monitor", "m.kpca", "calm.csv", "--since", since, "--skip-columns", "time")[2]
    write("lots.csv", CALM, [f"lot {i}" for i in range(40)])
    assert "does not hold times only" in run("monitor", "m.kpca", "lots.csv", "--id", "time", "--since", since)[2]
    assert run("monitor", "m.kpca", "calm.csv", "--id", "time", "--since", "yesterday")[0] == 2


def test_json_is_one_line_of_what_was_found(run):
    code, out, err = run("monitor", "m.kpca", "faulty.csv", "--id", "time", "--json", "--alarms", 3)
    assert code == 3 and err == "" and out.count("\n") == 1
    found = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    model = fk.load("m.kpca")
    which = fk.kpca_monitor(model, FAULTY)
    assert (found["rows"], found["n_alarms"], found["exit_code"]) == (40, len(which.alarms), 3)
    assert len(found["alarms"]) == 3 and found["alarms"][0]["row"] == times(40, "2026-03-01T03:20")[which.alarms[0]]
    assert found["alarms"][0]["columns"][0]["column"] == NAMES[which.contributions().largest[0]]
    assert found["limits"]["spe"] == model.limits.spe
    assert "both want standard output" in run("monitor", "m.kpca", "calm.csv", "--json", "-o", "-")[2]
    from fastkpca.cli.monitored import _plain

    assert _plain({"a": [np.float64("nan"), np.inf, np.int64(3), np.datetime64("2026-03-01")]}) == {
        "a": [None, None, 3, "2026-03-01"]
    }


def test_contributions_of_every_alarm_and_column(run):
    run("monitor", "m.kpca", "faulty.csv", "--id", "time", "--contributions", "why.csv", "--quiet", "--digits", 17)
    head, *lines = table("why.csv")
    found = fk.kpca_monitor(fk.load("m.kpca"), FAULTY)
    which = found.contributions()
    assert head == ["time", "statistic", "column", "value", "best value", "contribution", "fraction"]
    assert len(lines) == 4 * len(found.alarms)
    assert [line[2] for line in lines[:4]] == NAMES
    values = np.array([[float(x) for x in line[3:]] for line in lines])
    np.testing.assert_allclose(values[:, 0], FAULTY[found.alarms].ravel(), rtol=1e-15)
    np.testing.assert_allclose(values[:, 2], which.contributions.ravel(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        values[:, 3], (which.contributions / which.of_rows[:, None]).ravel(), rtol=1e-9, atol=1e-12
    )


def test_the_script_of_the_page_runs(monkeypatch):
    page = (ROOT / "docs" / "every_hour.md").read_text(encoding="utf-8")
    script = re.search(r"^~~~bash\n(#!.*?)^~~~$", page, re.MULTILINE | re.DOTALL)[1]
    Path("hourly.sh").write_text(script)
    folder = Path(sys.executable).parent
    places = os.pathsep.join([str(folder), os.environ["PATH"]])
    env = os.environ | {"PATH": places}
    os.rename("m.kpca", "watched.kpca")

    def hour(name):
        done = subprocess.run(["sh", "hourly.sh", name], env=env, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert hour("calm.csv")[:2] == (0, "")
    assert hour("calm.csv")[:2] == (0, "no new rows: does the feed still run?\n")
    code, out, _ = hour("faulty.csv")
    assert code == 0 and "rows beyond the limits: see report.html" in out
    assert len(table("all.csv")) == 81 and Path("report.html").exists()
    assert [json.loads(line)["exit_code"] for line in Path("log.json").read_text().splitlines()] == [0, 0, 3]
    assert "failed" in hour("missing.csv")[1]

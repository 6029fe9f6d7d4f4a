"""``fastkpca update`` and ``monitor --update``: from file to file, against the library on the same rows."""

from __future__ import annotations

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import CertificateWarning

NAMES = ["temp", "flow", "level"]


def rows(n, seed, at=0.0):
    t = np.random.default_rng(seed).uniform(-1, 1, (n, 1))
    return np.hstack([t, t**2, -t]) + 0.05 * np.random.default_rng(seed + 1).standard_normal((n, 3)) + at


def write(name, X):
    np.savetxt(name, X, delimiter=",", header=",".join(NAMES), comments="", fmt="%.17g")
    return name


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("first.csv", rows(400, 0))
    write("second.csv", rows(300, 2, 0.5))
    return tmp_path


def test_a_model_takes_the_rows_of_another_file(run, here):
    assert run("fit", "first.csv", "-c", "3", "--keep-moments", "--tol", "1e-3", "-o", "m.kpca")[0] == 0
    before = (here / "m.kpca").read_bytes()
    done = run("update", "m.kpca", "second.csv", "--tol", "1e-3", "--forget", "0.5", "-o", "new.kpca")
    assert done[0] == 0 and "model written to  new.kpca" in done[1]
    assert (here / "m.kpca").read_bytes() == before
    with pytest.warns(CertificateWarning):
        here_and_now = fk.kpca_update(fk.load("m.kpca"), rows(300, 2, 0.5), tol=1e-3, forget=0.5)
    model = fk.load("new.kpca")
    assert model.n_samples == 700 and model.weight_sum == pytest.approx(500)
    np.testing.assert_allclose(model.eigenvalue_bounds, here_and_now.eigenvalue_bounds, rtol=1e-9)
    # in place, which needs no --force
    assert run("update", "m.kpca", "second.csv", "--tol", "1e-3", "--grow", "0", "--quiet")[0] == 0
    in_place = fk.load("m.kpca")
    assert in_place.n_samples == 700 and in_place.info.get("grown", 0) == 0


def test_what_is_refused_names_the_option_that_helps(run, here):
    assert run("fit", "first.csv", "-o", "m.kpca", "--quiet")[0] == 0
    done = run("update", "m.kpca", "second.csv")
    assert done[0] == 1 and "fit it with --keep-moments" in done[2]
    assert run("fit", "first.csv", "--keep-moments", "-o", "m.kpca", "--force", "--quiet")[0] == 0
    assert run("update", "m.kpca", "second.csv", "--forget", "1.5")[0] == 1
    np.savetxt("other.csv", rows(50, 4)[:, [1, 0, 2]], delimiter=",", header="flow,temp,level", comments="")
    assert run("update", "m.kpca", "other.csv", "--quiet")[0] == 0  # columns are found by name
    assert fk.load("m.kpca").n_samples == 450


def test_monitor_adds_the_rows_without_an_alarm(run, here):
    assert run("fit", "first.csv", "--limits", "0.95", "--keep-moments", "-o", "m.kpca", "--quiet")[0] == 0
    before = fk.load("m.kpca")
    X = rows(100, 8)
    X[::10, 1] += 3.0
    write("new.csv", X)
    done = run("monitor", "m.kpca", "new.csv", "--update", "--quiet")
    assert done[0] == 3
    after = fk.load("m.kpca")
    alarms = len(fk.kpca_monitor(before, X).alarms)
    assert alarms >= 10 and after.n_samples == before.n_samples + 100 - alarms
    assert after.limits.t2 == before.limits.t2 and after.limits.spe == before.limits.spe
    assert after.spe_components == before.spe_components and after.info["chosen"] == before.info["chosen"]
    # without the option the model stays as it is
    stored = (here / "m.kpca").read_bytes()
    run("monitor", "m.kpca", "new.csv", "--quiet")
    assert (here / "m.kpca").read_bytes() == stored

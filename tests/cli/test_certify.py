"""``fastkpca certify``: the table of the library's call, for files of vectors of every kind."""

from pathlib import Path

import numpy as np
import pytest
from reference import eigh, gram

import fastkpca as fk

SIGMA = 1.5


@pytest.fixture
def X(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(1).standard_normal((120, 4))
    np.savetxt("x.csv", X, delimiter=",", fmt="%.17g", header="a,b,c,d", comments="")
    V = eigh(gram("gaussian", X, sigma=SIGMA))[1][:, :3]
    np.save("v.npy", V)
    np.savetxt("v.csv", V, delimiter=",", fmt="%.17g")
    return X


@pytest.mark.parametrize("vectors", ["v.npy", "v.csv"])
def test_it_prints_what_the_library_finds(X, fine, vectors):
    found = fk.certify(X, "gaussian", np.load("v.npy"), sigma=SIGMA)
    out = fine("certify", "x.csv", vectors, "--kernel", "gaussian", "--sigma", SIGMA, "--quiet")
    assert out == f"{found}\n"
    assert "missed: 0\n" in fine("certify", "x.csv", vectors, "--sigma", SIGMA, "--tol", "1e-8", "--guaranteed")
    assert "sampled rows" in fine("certify", "x.csv", vectors, "--sigma", SIGMA, "--rows", "50")
    assert "not centred" in fine("certify", "x.csv", vectors, "--sigma", SIGMA, "--no-center")


def test_rows_that_are_left_out(X, run):
    lines = Path("x.csv").read_text().splitlines()
    lines[5] = "1.0,,2.0,3.0"
    Path("gaps.csv").write_text("\n".join(lines))
    code, out, err = run("certify", "gaps.csv", "v.npy", "--sigma", SIGMA, "--drop-missing")
    assert code == 0 and "119 rows" in out and "left out" in err


def test_what_it_refuses(X, fails, run):
    np.save("short.npy", np.ones((7, 2)))
    assert "V has 7 rows, and X has 120" in fails("certify", "x.csv", "short.npy", "--sigma", SIGMA)
    assert "missing.npy" in fails("certify", "x.csv", "missing.npy")
    assert run("certify", "x.csv")[0] == 2
    code, out, err = run("certify", "x.csv", "v.npy", "--sigma", SIGMA, "--tol", "1e-20")
    assert code == 0 and out and "a larger tol helps" in err and err.count("\n") == 1

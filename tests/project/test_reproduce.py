"""The scripts of benchmarks/reproduce run, scaled down; those that read data are skipped without it."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from places import DATA, ROOT

FOLDER = ROOT / "benchmarks" / "reproduce"


@pytest.fixture
def run(monkeypatch, capsys):
    """run(script, *options): what it prints. In this process: another would import scikit-learn and all else anew."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # the scripts would, for good
    monkeypatch.setenv("FASTKPCA_DATA", str(DATA))

    def run(script: str, *options: str | Path, data: str | None = None) -> str:
        if data is not None and not (DATA / data).exists():
            pytest.skip(f"{data} is not in {DATA}")
        monkeypatch.setattr(sys, "argv", [script, *map(str, options)])
        runpy.run_path(str(FOLDER / script), run_name="__main__")
        return capsys.readouterr().out

    there, path = set(sys.modules), list(sys.path)
    yield run
    sys.path[:] = path
    for name in set(sys.modules) - there:
        if FOLDER.parent in Path(getattr(sys.modules[name], "__file__", None) or ".").parents:
            del sys.modules[name]  # their names are short ones: another test may mean something else


def line(text: str, start: str) -> list[float]:
    """The numbers of the last line that starts so."""
    found = [x for x in text.splitlines() if x.startswith(start)]
    assert found, text
    return [float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", found[-1].removeprefix(start))]


def test_two_spheres_and_two_rings(run):
    text = run("two_spheres_rings.py", "--draws", "1")
    assert line(text, "kernel PCA")[0] > 93 > 75 > line(text, "PCA")[0]
    published, ours, _, right, found, _ = line(text, "c = 6")
    assert abs(ours - published) <= 1 and abs(found - right) < 5


def test_certify(run):
    text = run("certify.py", "--rows", "300", "--sizes", "600")
    assert text.count("  yes") == 8 and "NO" not in text
    assert line(text, "arpack")[0] < 1e-10 and line(text, "the largest is missing")[2:] == [1, 1]
    falling, _ = re.findall(r"^ +600 .*", text, re.MULTILINE)
    width, of_kpca, _, sampled = (float(x) for x in falling.split()[-4:])
    assert width <= of_kpca <= 1e-6 < sampled


def test_linear_models(run):
    text = run("linear_models.py", "--sizes", "200", "--epochs", "3")
    differ = re.findall(r"(\d+) of \d+ ", text)
    assert len(differ) >= 4 and set(differ) == {"0"}


def test_large_klda(run):
    text = run("large_klda.py", "--rows", "2000", "--sizes", "20", "--tols", "0.3")
    ours, theirs = (line(text, name) for name in ("klda, tol 0.3 ", "Nystroem(20) + LDA "))
    error, least = ours[2:4]
    assert least <= error + 0.5 and error < theirs[2]


def test_ida(run):
    text = run("ida.py", "--splits", "3", "--tuned", "1", "--coarse", "4", "--sets", "thyroid", data="ida/thyroid.npz")
    published, _, ours = line(text, "thyroid")[:3]
    assert abs(ours - published) < 6


def test_faces(run):
    text = run("faces.py", "--people", "3", data="orl_faces_28x23.npz")
    for name in ("Eigenface (30)", "Kernel Eigenface, d = 2 (50)", "KLDA N + mu I, sigma = 10 (14)"):
        assert line(text, name)[3] <= 2


@pytest.mark.parametrize("kind", ["folder", "mat"])
def test_yale_runs_on_images_that_the_user_has(run, tmp_path, kind):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(3), 4)
    faces = np.clip(rng.uniform(60, 180, (3, 41, 29))[person] + rng.normal(0, 5, (12, 41, 29)), 0, 255)
    if kind == "mat":
        images = tmp_path / "yale.mat"
        scipy.io.savemat(images, {"fea": faces.reshape(12, -1), "gnd": person[:, None] + 1})
    else:
        pytest.importorskip("PIL")
        images = tmp_path
        for i, face in enumerate(faces.astype(np.uint8)):
            name = f"subject{person[i]:02d}.number{i}.pgm"
            (tmp_path / name).write_bytes(b"P5 29 41 255\n" + face.tobytes())
        (tmp_path / "readme.txt").write_text("not an image")
    text = run("yale.py", "--images", str(images), "--components", "10")
    assert "12 images of 3 people, 1189 pixels" in text
    assert line(text, "Eigenface (30)")[:4] == [47, 165, 28.48, 0]
    assert line(text, "ICA, basis images (30)")[3] <= 20


def test_yale_says_that_the_images_are_not_shipped(run, tmp_path):
    for path, words in ((tmp_path / "nowhere", "are not shipped"), (tmp_path, "no files whose names begin")):
        with pytest.raises(SystemExit, match=words):
            run("yale.py", "--images", path)


def test_selection(run):
    text = run("selection.py", "--draws", "2", "--sets", "rings")
    best, _, chosen = line(text, "rings")[:3]
    assert best <= chosen < best + 3


def test_usps(run, tmp_path):
    options = ("--draws", "1", "--rows", "500", "--degrees", "2", "--sizes", "32", "64")
    record = tmp_path / "found"
    text = run("usps.py", *options, "-C", "10", "--record", str(record), data="usps.npz")
    published, ours = line(text, "64")
    assert np.isclose(published, 7.3) and 5 < ours < 20
    lines = record.read_text()
    again = run("usps.py", *options, "-C", "10", "--record", str(record), data="usps.npz")
    assert record.read_text() == lines and line(again, "64") == [published, ours]


def test_denoise(run):
    sizes = ("--rows", "100", "--tests", "4", "--sizes", "32", "64", "256", "999")
    text = run("denoise.py", *sizes, "--sigma", "9.5", data="usps.npz")
    assert line(text, "gaussian: linear / kernel")[0] > 1.3  # published 1.6, with three times as many digits
    assert line(text, "speckle: linear / kernel")[0] > 1.1


def test_limits(run):
    """Order statistics keep the rate of false alarms, of one statistic and of both; F and box do not."""
    text = run("limits.py", "--draws", "2", "--samples", "8", "--new", "1000")
    over, excess = line(text, "most over the bound")
    assert over < 3 and excess < 5
    assert len(re.findall(r"^(?:normal|heavy tails|lognormal|mixture), \d+ ", text, re.MULTILINE)) == 24
    asked = np.repeat([10.0, 5.0, 1.0, 0.1], 3)
    assert (np.abs(np.array(line(text, "lognormal, 2000")) - asked) < asked).all()
    (least_f, _, least_box), (most_f, _, _) = (line(text, name) for name in ("least", "most "))
    assert least_f < 0.1 and most_f > 4 and least_box < 0.3


def test_plants(run):
    """The README's two commands find as much as linear PCA that knows the number of factors, and alarm as asked."""
    text = run("plants.py", "--plants", "2", "--first", "200", "--sets", "plants", "README")
    false = float(re.search(r"false alarms (\d+\.\d+) %", text)[1])
    chosen, before, pca = line(text, "plants: all")[:3]
    assert false < 2.0 and chosen > before + 10 and chosen > pca - 5
    found, rate = line(text, "plant 200: bias")[:2]
    assert rate < 2.0 and found > 20


def test_runs(run):
    text = run("runs.py", "--runs", "100", "--rows", "200", "--delays", "4")
    assert line(text, "200 rows")[1] <= 3 and line(text, "2000 rows")[1] <= 3
    assert line(text, "shift of 2, after 100 rows")[0] < 20

"""Models for MATLAB and Octave: read back by scipy, and rows projected by Octave itself where it is installed."""

import os
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest
import scipy.io
from places import ROOT

import fastkpca as fk
from fastkpca.errors import ModelFileError

SCRIPT = ROOT / "docs" / "fastkpca_project.m"
X = np.random.default_rng(0).standard_normal((70, 3)) + [3.0, 0.0, -1.0]
NEW = np.random.default_rng(1).standard_normal((9, 3)) + [3.0, 0.0, -1.0]
LINEAR, SQUARE = fk.get_kernel("linear"), fk.get_kernel("polynomial", degree=2)
MODELS = {
    "gaussian, rows": ("gaussian", 3, {"sigma": 1.5, "method": "dense"}),
    "polynomial, rows": ("polynomial", 3, {"degree": 3, "scale": 0.5, "method": "dense"}),
    "tanh, rows": ("tanh", 2, {"scale": 0.1, "offset": 0.3, "method": "dense"}),
    "combined, rows": (0.5 * SQUARE * (LINEAR + SQUARE), 3, {"method": "dense"}),
    "polynomial": ("polynomial", 3, {"degree": 3, "scale": 0.5, "offset": 2.0, "method": "features"}),
    "homogeneous": ("polynomial", 3, {"degree": 3, "offset": 0.0, "method": "features"}),
    "linear": ("linear", 2, {"method": "features"}),
    "taylor": ("gaussian", 3, {"sigma": 8.0, "features": "monomial", "tol": 1e-3}),
    "pivots": ("gaussian", 3, {"sigma": 3.0, "features": "pivots", "tol": 1e-2}),
    "fourier": ("gaussian", 3, {"sigma": 4.0, "features": "fourier", "tol": 1e-8}),
    "scaled": (2.0 * SQUARE, 3, {"method": "features"}),
    "sum": (LINEAR + 0.5 * SQUARE, 3, {"method": "features"}),
    "product": (LINEAR * SQUARE, 3, {"method": "features"}),
    "precomputed": ("precomputed", 2, {}),
}


def fitted(name):
    kernel, c, options = MODELS[name]
    return fk.kpca(X @ X.T if kernel == "precomputed" else X, kernel, c, **options)


def test_one_thread_writes_at_a_time(tmp_path, monkeypatch):
    """scipy's writers share the length of the variable they write: side by side they put it into each other's files."""
    inside, most, savemat = [], [], scipy.io.savemat

    def slow(*args, **options):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)
        savemat(*args, **options)
        inside.pop()

    model = fitted("gaussian, rows")
    monkeypatch.setattr(scipy.io, "savemat", slow)
    threads = [threading.Thread(target=fk.export_mat, args=(model, tmp_path / f"{i}.mat")) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]
    behind_the_header = {(tmp_path / f"{i}.mat").read_bytes()[128:] for i in range(4)}  # that has the time
    assert len(behind_the_header) == 1


def test_scipy_reads_back_what_was_written(tmp_path):
    model = fitted("gaussian, rows")
    fk.export_mat(model, tmp_path / "m.mat")
    back = scipy.io.loadmat(tmp_path / "m.mat", squeeze_me=False)
    for name, value in zip(("coeff", "score", "latent", "tsquared", "explained"), model):
        expected = value if value.ndim == 2 else value[:, None]
        assert back[name].shape == expected.shape and back[name].dtype == np.float64
        np.testing.assert_array_equal(back[name], expected)
    np.testing.assert_array_equal(back["eigenvalues"][:, 0], model.eigenvalues)
    np.testing.assert_array_equal(back["eigenvalue_bounds"], model.eigenvalue_bounds)
    np.testing.assert_array_equal(back["shift"][0], model.shift)
    assert back["bound_kind"][0] == "guaranteed" and back["n_samples"][0, 0] == len(X)
    assert back["kernel"]["name"][0, 0][0] == "gaussian"
    assert back["kernel"]["parameters"][0, 0]["sigma"][0, 0][0, 0] == 1.5
    assert back["clusters"].min() == 1  # as MATLAB counts
    # the formula of docs/fastkpca_project.m, in Python
    p = {key: back["projector"][key][0, 0] for key in ("X", "coeff", "column_means")}
    rows = NEW - back["shift"]
    squares = ((rows[:, None, :] - p["X"][None, :, :]) ** 2).sum(axis=2)
    scores = (np.exp(-squares / (2 * 1.5**2)) - p["column_means"]) @ p["coeff"]
    np.testing.assert_allclose(scores, fk.kpca_project(model, NEW), atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "dense"},
        {"method": "features", "features": "pivots"},
        {"standardize": True},
        {"center": False},
        {"sample_weight": np.linspace(0.0, 2.0, len(X))},
    ],
)
def test_the_linear_kernel_has_loadings(tmp_path, options):
    rows = X + 3.0
    model = fk.kpca(rows, "linear", 2, **options)
    fk.export_mat(model, tmp_path / "m.mat")
    back = scipy.io.loadmat(tmp_path / "m.mat")
    assert back["loadings"].shape == (X.shape[1], 2) and back["mu"].shape == (1, X.shape[1])
    np.testing.assert_allclose((NEW - back["mu"]) @ back["loadings"], fk.kpca_project(model, NEW), atol=1e-10)
    if not options:
        _, _, V = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        np.testing.assert_allclose(np.abs(back["loadings"].T), np.abs(V[:2]), atol=1e-12)
        np.testing.assert_allclose(back["mu"][0], rows.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose((rows - rows.mean(axis=0)).T @ model.coeff, back["loadings"], atol=1e-12)
        np.testing.assert_allclose(model.shift, rows.mean(axis=0), atol=1e-12)
    fk.export_mat(fitted("gaussian, rows"), tmp_path / "g.mat")
    assert not {"loadings", "mu"} & set(scipy.io.loadmat(tmp_path / "g.mat"))


def test_of_float32_and_without_scores(tmp_path):
    fk.export_mat(fk.kpca(X.astype(np.float32), "gaussian", 2, tol=1e-3), tmp_path / "single.mat")
    assert scipy.io.loadmat(tmp_path / "single.mat")["score"].dtype == np.float64
    model = fk.kpca(X, "polynomial", 2, method="features", return_scores=False)
    fk.export_mat(model, tmp_path / "m.mat")
    back = scipy.io.loadmat(tmp_path / "m.mat")
    assert not {"score", "tsquared", "coeff"} & set(back) and "latent" in back


def test_files_are_not_replaced_unless_asked_for(tmp_path):
    model = fitted("linear")
    (tmp_path / "m.mat").write_bytes(b"before")
    with pytest.raises(FileExistsError, match=r"export_mat\(..., overwrite=True\) replaces it"):
        fk.export_mat(model, tmp_path / "m.mat")
    assert (tmp_path / "m.mat").read_bytes() == b"before"
    fk.export_mat(model, tmp_path / "m.mat", overwrite=True)
    assert os.listdir(tmp_path) == ["m.mat"]
    with pytest.raises(TypeError, match="give what kpca"):
        fk.export_mat(X, tmp_path / "x.mat")


def characters_in_common(A, B):
    return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])


def test_kernels_that_matlab_could_not_compute_are_refused(tmp_path):
    scaled = fk.kpca(X, "gaussian", 2, sigma=[1.0, 2.0, 3.0], method="dense")
    some = fk.kpca(X, LINEAR + fk.on_columns("gaussian", [0, 2], sigma=2.0), 2)
    for model in (scaled, some):
        with pytest.raises(ValueError, match="no place for a kernel on some columns, or with a width for each: select"):
            fk.export_mat(model, tmp_path / "m.mat")
    with pytest.raises(ValueError, match="cannot be written down by name"):
        fk.export_mat(fk.kpca(X, lambda A, B: A @ B.T, 2), tmp_path / "m.mat")
    with fk.register_kernel("common", characters_in_common):
        words = fk.kpca(["abc", "bcd", "xyz", "xya"], "common", 2)
        with pytest.raises(ValueError, match="no place for a kernel of objects"):
            fk.export_mat(words, tmp_path / "m.mat")
    assert os.listdir(tmp_path) == []


def test_a_map_without_a_formula_is_refused(tmp_path, monkeypatch):
    model = fitted("pivots")
    monkeypatch.setattr(type(model.projector.map), "formula", lambda self: None)
    with pytest.raises(ValueError, match="the feature map PivotMap has no formula for MATLAB; fit with"):
        fk.export_mat(model, tmp_path / "m.mat")


def test_too_large_for_the_format(tmp_path, monkeypatch):
    monkeypatch.setattr("fastkpca.model.matlab.MAX_ARRAY_BYTES", 1000)
    with pytest.raises(ValueError, match=r"projector.X takes 1.68e\+03 bytes"):
        fk.export_mat(fitted("gaussian, rows"), tmp_path / "m.mat")


def octave(tmp_path, code):
    """What Octave prints; skips where it is not installed."""
    program = shutil.which("octave-cli") or shutil.which("octave")
    if program is None:
        pytest.skip("GNU Octave is not installed (Debian: apt-get install octave): projecting in it is not checked")
    whole = f"addpath('{SCRIPT.parent}'); cd('{tmp_path}'); {code}"
    run = subprocess.run([program, "--quiet", "--no-init-file", "--eval", whole], capture_output=True, text=True)
    return run.stdout, run.stderr


def test_octave_projects_new_rows(tmp_path):
    """One process for all: it takes seconds to start."""
    far = np.vstack([NEW, NEW[:2] + 100.0])
    given = {name: far @ X.T if name == "precomputed" else far for name in MODELS}
    for i, name in enumerate(MODELS):
        fk.export_mat(fitted(name), tmp_path / f"{i}.mat")
        scipy.io.savemat(tmp_path / f"in{i}.mat", {"X": given[name]})
    code = (
        f"for i = 0:{len(MODELS) - 1}, m = load(sprintf('%d.mat', i)); q = load(sprintf('in%d.mat', i)); "
        "s = fastkpca_project(m, q.X); save('-v7', sprintf('out%d.mat', i), 's'); end"
    )
    out = octave(tmp_path, code)
    for i, name in enumerate(MODELS):
        assert (tmp_path / f"out{i}.mat").exists(), out
        expected = fk.kpca_project(fitted(name), given[name])
        found = scipy.io.loadmat(tmp_path / f"out{i}.mat")["s"]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max(), err_msg=name)


def test_octave_refuses_rows_that_cannot_be_projected(tmp_path):
    fk.export_mat(fitted("gaussian, rows"), tmp_path / "m.mat")
    scipy.io.savemat(tmp_path / "x.mat", {"X": NEW.round().astype(np.int16)})
    out, err = octave(
        tmp_path,
        "m = load('m.mat'); x = load('x.mat'); "
        "try, fastkpca_project(m, [1 2 3; 1 NaN 3]), catch e, disp(e.message), end; "
        "try, fastkpca_project(m, ones(3, 5)), catch e, disp(e.message), end; "
        "s = fastkpca_project(m, x.X); save('-v7', 'o.mat', 's');",
    )
    assert "NaN or infinity (first in row 2)" in out and "X has 5 columns, the model needs 3" in out, err
    expected = fk.kpca_project(fitted("gaussian, rows"), NEW.round())
    np.testing.assert_allclose(scipy.io.loadmat(tmp_path / "o.mat")["s"], expected, atol=1e-10, rtol=1e-10)


def test_save_and_load_leave_mat_files_to_export_mat(tmp_path):
    model = fk.kpca(np.random.default_rng(0).standard_normal((30, 2)), "gaussian", 2, sigma=1.0)
    for name in ("m.mat", "M.MAT"):
        with pytest.raises(ValueError, match="export_mat"):
            fk.save(model, tmp_path / name)
    assert not list(tmp_path.iterdir())
    fk.export_mat(model, tmp_path / "m.mat")
    with pytest.raises(ModelFileError, match="not a fastkpca model file; it looks like a .mat.*fastkpca.save"):
        fk.load(tmp_path / "m.mat")
    (tmp_path / "x.txt").write_text("neither of the two, but long enough to be one")
    with pytest.raises(ModelFileError, match="not a fastkpca model file$"):
        fk.load(tmp_path / "x.txt")

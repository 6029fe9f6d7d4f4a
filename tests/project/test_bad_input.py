"""Bad input end to end: each kind gets its own clear error from kpca and kpca_project, or the right answer."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference import eigh, gram

import fastkpca as fk

RNG = np.random.default_rng(11)
X = RNG.integers(-40, 40, size=(45, 4)) / 16.0  # exact in float16 too


GOOD = {
    "F-order": np.asfortranarray,
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda X: X.astype(">f8"),
    "float16": lambda X: X.astype(np.float16),
    "float32": lambda X: X.astype(np.float32),
    "longdouble": lambda X: X.astype(np.longdouble),
    "list": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "nothing masked": np.ma.array,
    "csr": sp.csr_matrix,
    "coo array": sp.coo_array,
    "frame": pd.DataFrame,
}


def test_saving_over_a_file_says_how(tmp_path):
    model = fk.kpca(X, "gaussian", 2)
    fk.save(model, tmp_path / "m.kpca")
    with pytest.raises(FileExistsError, match=r"exists already.*save\(..., overwrite=True\) replaces it"):
        fk.save(model, tmp_path / "m.kpca")


@pytest.mark.parametrize("kind", GOOD)
def test_every_kind_of_input_gives_the_same_answer(kind):
    given = GOOD[kind](X)
    model = fk.kpca(given, "gaussian", 3, sigma=2.0)
    expected = eigh(gram("gaussian", X, sigma=2.0))[0]
    np.testing.assert_allclose(model.eigenvalues, expected[:3], atol=1e-5 * expected[0])
    low, high = model.eigenvalue_bounds.T
    slack = 1e-12 * expected[0]  # LAPACK's own
    assert (low <= expected[:3] + slack).all() and (expected[:3] <= high + slack).all()
    assert model.score.dtype == (np.float32 if kind == "float32" else np.float64)
    again = fk.kpca_project(model, given)
    np.testing.assert_allclose(again, model.score, atol=1e-5)


def test_read_only_input_and_memory_maps_are_left_alone(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    before = path.read_bytes()
    mapped = np.load(path, mmap_mode="r")
    first = fk.kpca(mapped, "gaussian", 2, sigma=2.0)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(fk.kpca(frozen, "gaussian", 2, sigma=2.0).score, first.score)
    np.testing.assert_array_equal(fk.kpca_project(first, mapped), fk.kpca_project(first, frozen))
    assert path.read_bytes() == before


def test_constant_columns_change_nothing():
    wider = np.column_stack([X, np.full(len(X), 1e3), np.zeros(len(X))])
    for kernel, parameters in (("gaussian", {"sigma": 2.0}), ("linear", {})):
        narrow = fk.kpca(X, kernel, 3, **parameters).eigenvalues
        np.testing.assert_allclose(fk.kpca(wider, kernel, 3, **parameters).eigenvalues, narrow, rtol=1e-10)


def with_value(value):
    spoiled = X.copy()
    spoiled[7, 2] = spoiled[20, 0] = value
    return spoiled


def masked():
    spoiled = np.ma.array(X.copy())
    spoiled[7, 2] = np.ma.masked
    return spoiled


BAD_ROWS = {
    "nan": (with_value(np.nan), ValueError, r"X contains NaN \(first at row 7, column 2\); drop or impute"),
    "inf": (with_value(-np.inf), ValueError, r"X contains infinity \(first at row 7, column 2\)"),
    "nan in a sparse matrix": (sp.csr_matrix(with_value(np.nan)), ValueError, r"NaN \(first at row 7, column 2\)"),
    "nan in a frame": (pd.DataFrame(with_value(np.nan)), ValueError, r"NaN \(first at row 7, column 2\)"),
    "masked": (masked(), ValueError, r"masked entries \(first at row 7, column 2\)"),
    "frame with text": (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), TypeError, "column 'b'"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows(case):
    bad, error, text = BAD_ROWS[case]
    with pytest.raises(error, match=text):
        fk.kpca(bad, "gaussian", 2, sigma=1.0)
    model = fk.kpca(X, "gaussian", 2, sigma=1.0)
    with pytest.raises(error, match=text):
        fk.kpca_project(model, bad)


def test_one_sample():
    with pytest.raises(ValueError, match="X has 1 row; kpca needs at least 2"):
        fk.kpca(X[:1], "gaussian", 1, sigma=1.0)
    model = fk.kpca(X, "gaussian", 2, sigma=1.0)
    np.testing.assert_allclose(fk.kpca_project(model, X[:1]), model.score[:1], atol=1e-5)


@pytest.mark.parametrize("columns", [1, 3, 5])
def test_projection_with_the_wrong_number_of_columns(columns):
    for kernel, parameters in (("gaussian", {"sigma": 1.0}), ("polynomial", {"degree": 2}), ("tanh", {"scale": 0.01})):
        model = fk.kpca(X, kernel, 2, **parameters)
        hint = "; X may be transposed" if columns == 1 else "order$"
        with pytest.raises(ValueError, match=f"X has {columns} columns?, the model was fitted on 4; give .*{hint}"):
            fk.kpca_project(model, np.ones((3, columns)))


def test_what_registered_names_mean_goes_before_what_others_call_them():
    registry = importlib.import_module("fastkpca.kernels.registry")
    own = {spelling for entry in registry.BUILTINS.values() for spelling in (entry.name, *entry.aliases)}
    assert not own & set(registry._ELSEWHERE)
    fk.register_kernel("cubic", lambda A, B: (A @ B.T) ** 3)
    try:
        assert fk.get_kernel("cubic") is not None
    finally:
        registry.SESSION.pop("cubic")


@pytest.mark.parametrize("method", ["dense", "features", "krylov"])
def test_overflow_of_the_polynomial_kernel(method):
    with pytest.raises((ValueError, OverflowError)) as caught:
        fk.kpca(X * 1e60, "polynomial", 2, degree=8, method=method)
    text = str(caught.value).lower()
    assert "polynomial" in text and "scale" in text
    assert "nan" not in text

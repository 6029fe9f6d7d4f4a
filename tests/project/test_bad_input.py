"""Bad input end to end: each kind gets its own clear error from kpca and kpca_project, or the right answer."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference import eigh, gram

import fastkpca as fk
from fastkpca.errors import KernelParameterError, UnknownKernelError

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


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("n_components", "c"),
        ("NumComponents", "c"),
        ("n_jobs", "n_threads"),
        ("random_state", "rng"),
        ("KernelScale", r"sqrt\(2\) \* sigma"),
    ],
)
def test_names_of_other_libraries_are_told_ours(theirs, ours):
    with pytest.raises(TypeError, match=f"no parameter '{theirs}'.*{theirs} is called {ours}.* here"):
        fk.kpca(X, "gaussian", **{theirs: 3})
    with pytest.raises(TypeError, match="no parameter 'sgima'; did you mean 'sigma'[?] it takes: sigma, gamma$"):
        fk.plan(X, "gaussian", sgima=3)


def test_an_array_in_the_place_of_a_number_is_not_printed_whole():
    with pytest.raises(TypeError, match="c is of type ndarray; give a whole number"):
        fk.kpca(X, "gaussian", np.arange(len(X)))


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


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.bool_])
def test_whole_numbers_do_not_wrap(dtype):
    whole = RNG.integers(0, 2 if dtype is np.bool_ else 120, size=(30, 3)).astype(dtype)
    model = fk.kpca(whole, "linear", 2)
    centered = whole.astype(float) - whole.astype(float).mean(axis=0)
    expected = np.linalg.svd(centered, compute_uv=False)[:2] ** 2
    np.testing.assert_allclose(model.eigenvalues, expected, rtol=1e-12)


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
    "1-D": (X[:, 0], ValueError, r"reshape\(-1, 1\)"),
    "3-D": (X[None], ValueError, "3 dimensions"),
    "no rows": (X[:0], ValueError, "no rows"),
    "no columns": (X[:, :0], ValueError, "no columns"),
    "strings": (X.astype(str), TypeError, "strings"),
    "complex": (X + 1j, TypeError, "complex"),
    "dates": (X.astype("M8[D]"), TypeError, "dates"),
    "objects": (np.where(X > 2, "high", X.astype(object)), TypeError, "contains 'high' of type str"),
    "frame with text": (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), TypeError, "column 'b'"),
    "None": (None, TypeError, "X is None"),
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
        with pytest.raises(ValueError, match=f"{columns} columns?, the model was fitted on 4"):
            fk.kpca_project(model, np.ones((3, columns)))


@pytest.mark.parametrize(
    "c, error, text",
    [
        (0, ValueError, "c is 0"),
        (-1, ValueError, "c is -1"),
        (True, TypeError, "truth value"),
        (46, ValueError, "X has 45 rows"),
        (1.0, ValueError, "one component or 100 %"),
        (2.5, ValueError, "c is 2.5"),
        (float("nan"), ValueError, "c is nan"),
        ("3", TypeError, "c is '3'"),
    ],
)
def test_bad_c(c, error, text):
    with pytest.raises(error, match=text):
        fk.kpca(X, "gaussian", c, sigma=1.0)


BAD_PARAMETERS = [
    ("gaussian", {"sigma": 0.0}, "sigma"),
    ("gaussian", {"sigma": -1.0}, "sigma"),
    ("gaussian", {"sigma": float("nan")}, "sigma"),
    ("gaussian", {"sigma": float("inf")}, "sigma"),
    ("gaussian", {"sigma": "wide"}, "sigma"),
    ("gaussian", {"sigma": True}, "sigma"),
    ("rbf", {"gamma": -1.0}, "gamma"),
    ("polynomial", {"degree": 0}, "degree"),
    ("polynomial", {"degree": 2.5}, "degree"),
    ("polynomial", {"degree": 2, "offset": float("nan")}, "offset"),
    ("tanh", {"scale": float("nan")}, "scale"),
]


@pytest.mark.parametrize("kernel, parameters, word", BAD_PARAMETERS)
def test_bad_kernel_parameters(kernel, parameters, word):
    with pytest.raises(KernelParameterError, match=word):
        fk.kpca(X, kernel, 2, **parameters)


def test_two_spellings_of_one_parameter():
    with pytest.raises(TypeError, match="'sigma' and 'gamma' are two spellings of one parameter"):
        fk.kpca(X, "gaussian", 2, sigma=1.0, gamma=0.5)


def test_parameters_of_another_kernel():
    with pytest.raises(TypeError, match="Gaussian has no parameter 'degree'; it takes: sigma, gamma"):
        fk.kpca(X, "gaussian", 2, degree=3)


def test_unknown_kernel():
    with pytest.raises(UnknownKernelError, match="did you mean 'gaussian'"):
        fk.kpca(X, "gausian", 2)


@pytest.mark.parametrize(
    "name, text",
    [
        ("RBF", "did you mean 'rbf'"),
        ("sigm", "did you mean 'sigmoid'"),
        ("cubic", "it is 'polynomial' with degree=3 here"),
        ("rbfdot", "it is 'rbf' with its sigma as gamma here"),
        ("fastkpca:gausian", "did you mean 'gaussian'"),
    ],
)
def test_names_from_elsewhere(name, text):
    with pytest.raises(UnknownKernelError, match=text):
        fk.kpca(X, name, 2)


def test_what_registered_names_mean_goes_before_what_others_call_them():
    registry = importlib.import_module("fastkpca.kernels.registry")
    own = {spelling for entry in registry.BUILTINS.values() for spelling in (entry.name, *entry.aliases)}
    assert not own & set(registry._ELSEWHERE)
    fk.register_kernel("cubic", lambda A, B: (A @ B.T) ** 3)
    try:
        assert fk.get_kernel("cubic") is not None
    finally:
        registry.SESSION.pop("cubic")


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: fk.kpca(X, "polynomial", 2, degre=3), "no parameter 'degre'; did you mean 'degree'"),
        (lambda: fk.kpca(X, "gaussian", 2, Sigma=3.0), "did you mean 'sigma'"),
        (lambda: fk.kpca(X, "gaussian", 2, max_pases=3), "or, of kpca itself, did you mean 'max_passes'"),
        (lambda: fk.kpca(X, "gaussian", n_component=2), r"of kpca itself.*'n_components' \(called c here\)"),
        (lambda: fk.kpca(X, "gaussian", n_components=2), "n_components is called c here"),
        (lambda: fk.gram(X, "gaussian", tolerance=1e-3), "tolerance is called tol here"),
        (lambda: fk.gram(X, "gaussian", n_thread=2), "of gram itself.*'n_threads'"),
        (lambda: fk.features(X, "gaussian", max_feature=2), "of features itself.*'max_features'"),
        (lambda: fk.kpca(X, _linear, 2, positive_semidefinit=True), "did you mean 'positive_semidefinite'"),
    ],
)
def test_misspelled_parameters(call, text):
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"method": "krilov"}, "did you mean 'krylov'"),
        ({"features": "pivot"}, "no map of this name .*did you mean 'pivots'"),
        ({"products": "exct"}, "did you mean 'exact'"),
    ],
)
def test_misspelled_choices(arguments, text):
    with pytest.raises(ValueError, match=text):
        fk.kpca(X, "gaussian", 2, sigma=1.0, **arguments)


def _linear(A, B):
    return A @ B.T


def test_all_rows_equal():
    with pytest.raises(KernelParameterError, match="all rows of X are equal"):
        fk.kpca(np.ones((20, 3)), "gaussian", 2)


@pytest.mark.parametrize("method", ["dense", "features", "krylov"])
def test_overflow_of_the_polynomial_kernel(method):
    with pytest.raises((ValueError, OverflowError)) as caught:
        fk.kpca(X * 1e60, "polynomial", 2, degree=8, method=method)
    text = str(caught.value).lower()
    assert "polynomial" in text and "scale" in text
    assert "nan" not in text


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"tol": 0.0}, ValueError, "tol is 0.0"),
        ({"tol": "1e-3"}, TypeError, "tol is '1e-3'"),
        ({"method": "lapack"}, ValueError, "method is 'lapack'"),
        ({"memory_limit": "much"}, ValueError, "memory_limit is 'much'"),
        ({"n_threads": 0}, ValueError, "n_threads is 0"),
        ({"rng": 1.5}, TypeError, "rng is 1.5"),
    ],
)
def test_bad_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        fk.kpca(X, "gaussian", 2, sigma=1.0, **arguments)

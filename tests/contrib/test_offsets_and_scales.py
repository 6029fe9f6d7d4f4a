"""Columns far from zero, and rows of any size: methods that centre give what the rows about their mean give.

``attack.py --only rounding`` holds every stated error against long doubles; here are the plain cases.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from kernels_contrib.cca import kernel_cca
from kernels_contrib.clustering import kernel_kmeans
from kernels_contrib.hsic import hsic_test
from kernels_contrib.klda import klda
from kernels_contrib.mmd import mmd_test
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge
from kernels_contrib.storage import load, save

import fastkpca as fk

RNG = np.random.default_rng(0)
Z = np.round(RNG.standard_normal((200, 3)) * 1024) / 1024  # exact whatever is added
T = Z[:, 2] + 0.1 * RNG.standard_normal(200)
OFFSETS = [0.0, 2.0**14, 2.0**17, 2.0**20, 2.0**27]


@pytest.mark.parametrize("offset", OFFSETS)
def test_the_error_of_hsic_counts_what_rounding_did_to_its_features(offset):
    x, y, w = Z[:30, 0] + offset, T[:30], RNG.random(30) + 0.1
    found = hsic_test(x[:, None], y[:, None], "linear", sample_weight=w, permutations=1)
    x, y, w = ([Fraction(float(v)) for v in values] for values in (x, y, w))
    mean = sum(a * b for a, b in zip(w, x)) / sum(w)
    exact = (sum(a * (b - mean) * (c - sum(y) / 30) for a, b, c in zip(w, x, y)) / sum(w)) ** 2
    assert abs(Fraction(float(found.statistic[0])) - exact) <= Fraction(float(found.error[0])) < exact / 10**10


@pytest.mark.parametrize("offset", OFFSETS)
def test_bounds_of_a_correlation_hold_the_exact_one(offset):
    x, y = Z[:, 0] + offset, T
    found = kernel_cca(x[:, None], y[:, None], "linear", regularization=1e-3)
    a, b = Z[:, 0].astype(np.longdouble), y.astype(np.longdouble)
    a, b = a - a.mean(), b - b.mean()
    exact = abs(a @ b) / 200 / np.sqrt((a @ a / 200 + found.x.penalty) * (b @ b / 200 + found.y.penalty))
    low, high = found.correlation_bounds[0]
    assert low <= exact <= high and high - low < 1e-8


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["auto", "gram", "features"])
@pytest.mark.parametrize("offset", OFFSETS[1:])
def test_components_for_targets_do_not_depend_on_an_offset(offset, method, tmp_path):
    near, far = (kernel_pls(rows, T, "linear", 3, method=method) for rows in (Z, Z + offset))
    np.testing.assert_allclose(far.explained, near.explained, rtol=1e-9)
    np.testing.assert_allclose(far.predict(Z[:9] + offset), near.predict(Z[:9]), rtol=1e-6, atol=1e-6)
    save(far, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(Z + offset), far.predict(Z + offset))


@pytest.mark.parametrize("method", ["gram", "features"])
def test_shifted_rows_keep_the_names_of_their_columns(method, tmp_path):
    frame = pd.DataFrame(Z + 2.0**20, columns=["a", "b", "c"])
    save(kernel_pls(frame, T, "linear", 2, method=method), tmp_path / "model")
    model = load(tmp_path / "model")
    assert model.feature_names == ("a", "b", "c")
    near = kernel_pls(Z, T, "linear", 2, method=method).predict(Z[:9])
    np.testing.assert_allclose(model.predict(frame[:9]), near, rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="in another order"):
        model.predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize("sigma", [10.0, 1e3])
def test_tol_is_a_share_of_the_centred_trace(sigma):
    """A wide Gaussian is all but constant: tol times tr K would be more than what varies."""
    K = np.asarray(fk.gram(Z, "gaussian", sigma=sigma))
    centred = float(np.trace(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()))
    found = fk.features(Z, "gaussian", sigma=sigma, tol=1e-4, center=True)
    assert found.residual_trace <= 1e-4 * centred < 1e-4 * np.trace(K)
    np.testing.assert_allclose(found.centered_trace(), centred, rtol=2e-4)
    wide = {"sigma": sigma, "tol": 1e-4}
    by_features, by_gram = (kernel_pls(Z, T, c=2, method=method, **wide) for method in ("features", "gram"))
    np.testing.assert_allclose(by_features.explained, by_gram.explained, rtol=1e-2)


def test_features_say_which_trace_they_miss():
    with pytest.raises(ValueError, match=r"tol=1e-09 of the centred trace \(about .* of tr K\).* raise tol"):
        fk.features(Z, "gaussian", sigma=1e5, tol=1e-9, center=True, features="pivots")


def test_a_matrix_that_will_be_centred_keeps_its_digits():
    U, far = RNG.standard_normal((200, 2)), Z + 2.0**27
    H = np.eye(200) - 1 / 200
    exact = H @ Z @ (Z.T @ (H @ U))
    gram = fk.gram(far, "linear", center=True)
    np.testing.assert_allclose(gram.centered() @ U, exact, atol=1e-10)
    np.testing.assert_allclose(gram.shift, far.mean(axis=0), rtol=1e-12)
    plain = fk.gram(far, "linear")
    np.testing.assert_allclose(plain[0], far @ far[0], rtol=1e-12)  # entries as ever, and digits lost
    assert np.abs(plain.centered() @ U - exact).max() > 1e-3 and not plain.shift.any()


@pytest.mark.parametrize("scale", [2.0**17, 2.0**60, 2.0**-60])
def test_default_tolerances_are_relative_to_the_size_of_the_kernel(scale):
    for fit in (
        lambda X: mmd_test(X[:50], X[50:90], "linear").p_value,
        lambda X: kernel_kmeans(X, "linear", 2).labels,
        lambda X: kernel_pls(X, T * scale, "linear", 2).explained,
        lambda X: klda(X, T > 0, "linear", penalty="norm", method="gram").quotients,
        lambda X: hsic_test(X, X[:, :1] ** 2 / scale, "linear").p_value,
    ):
        np.testing.assert_allclose(fit(Z * scale), fit(Z), rtol=1e-6)


def test_tol_of_products_has_the_unit_of_the_kernel():
    far = Z * 1e5
    assert fk.gram(far, "linear", tol=10.0).error_bound <= 10.0
    for tol in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="tol is .*; give a positive number: the error of an entry"):
            fk.gram(far, "linear", tol=tol)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: hsic_test(Z * 1e-100, Z[:, :1] * 1e-100, "linear"), "HSIC is about, is out of the range of float64"),
        (lambda: hsic_test(Z * 1e100, Z[:, :1] * 1e100, "linear"), "multiply X or Y by a power of ten"),
        (lambda: klda(Z * 1e-100, T > 0, "linear"), "default regularization needs, is out of the range"),
        (lambda: klda(Z * 1e100, T > 0, "linear", penalty="norm", method="gram"), "method='gram' needs 1e-140 to"),
        (lambda: kernel_ridge(Z, T, "linear", regularization=1e-200), "regularization is 1e-200; kernel_ridge needs"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_squares_beyond_float64_are_refused_in_words(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("method", ["features", "gram"])
def test_means_that_differ_by_little_are_told_apart(method):
    """Fisher's quotient is 3.4e-5: small beside what rounding leaves over a small penalty, and not rounding."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((150, 2)), np.arange(150) % 2
    X = X - np.array([X[y == k].mean(axis=0) for k in (0, 1)])[y] + np.outer(y, [0.0, 0.0104])
    for mu in (1e-9, 1e-3) if method == "features" else (1e-3,):
        model = klda(X + 100.0, y, "linear", penalty="norm", regularization=mu, method=method)
        centred = X - np.array([X[y == k].mean(axis=0) for k in (0, 1)])[y]
        step = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
        exact = 75 * 75 / 150 * step @ np.linalg.solve(centred.T @ centred + mu * np.eye(2), step)
        np.testing.assert_allclose(model.quotients, [exact], rtol=1e-6)
        assert 2e-5 < exact < 4e-5
    X = np.vstack([Z[:20], -Z[:20]])  # each class and its mirror image: both means are zero
    with pytest.raises(ValueError, match="their means coincide .* up to a distance of .* within rounding"):
        klda(np.vstack([X, 3 * X]), np.repeat([0, 1], 40), "linear", penalty="norm", method=method)

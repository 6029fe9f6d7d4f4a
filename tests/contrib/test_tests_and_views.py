"""Tests of two samples and of independence, kernel CCA, PLS and ridge regression: promises, files, and what is refused.

The textbook formulas, and random problems for the attack, are in tests/support/method_cases.py.
"""

import method_cases as cases
import numpy as np
import pytest
from kernels_contrib.cca import kernel_cca
from kernels_contrib.errors import AccuracyWarning
from kernels_contrib.hsic import hsic_test
from kernels_contrib.methods import permutation
from kernels_contrib.mmd import mmd_test
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge

from fastkpca.errors import ComponentsWarning

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 3))
Y = X[:, :1] ** 2 + 0.3 * RNG.standard_normal((60, 1))
T = np.sin(X[:, 0])


# Permutation tests -------------------------------------------------------------------------------------------------


def test_independence_where_features_are_as_many_as_rows():
    rng, n = np.random.default_rng(8), 220
    A = rng.standard_normal((n, 8))
    B = A[:, ::-1] ** 2 + rng.standard_normal((n, 8))
    found = hsic_test(A, B, sigma=1.0, permutations=9, rng=1)
    assert found.info["x"]["n_features"] * found.info["y"]["n_features"] > 150 * n
    again, H = np.random.default_rng(1), np.eye(n) - 1.0 / n
    K, L = (H @ cases.gram("gaussian", rows, sigma=1.0) @ H for rows in (A, B))
    for value, error, order in zip(
        [*found.statistic, *found.null[:, 0]],
        [*found.error, *found.null_error[:, 0]],
        [np.arange(n), *(again.permutation(n) for _ in range(9))],
        strict=True,
    ):
        assert abs(value - np.sum(K * L[np.ix_(order, order)]) / n**2) <= error


def test_a_permutation_within_the_error_makes_an_interval():
    """Equal rows: every statistic is zero, and no one can say which reach the observed one."""
    rows = np.ones((10, 2))
    rows[0] += 1e-9  # or there is no median distance
    found = mmd_test(rows, rows, sigma=1.0, permutations=19)
    assert found.p_interval[0] < found.p_interval[1] == found.p_value and not found.is_exact
    assert "p between" in repr(found)
    # a permutation that changes nothing is no question: two rows of six have six ways, with exchanged names
    few = mmd_test([[0.0], [0.1]], [[1.0], [1.2]], sigma=1.0, permutations=199)
    assert few.is_exact and abs(few.p_value - 1 / 3) < 0.1


def test_errors_widen_the_interval_of_each_kernel_and_of_all():
    values = np.random.default_rng(0).random((20, 2))
    values[0] = 2.0
    nothing = np.zeros(19, dtype=bool)
    fields = {"name": "MMD^2, biased", "kernels": (), "n_samples": 4, "info": {}}
    for error, expected in ((1e-3, [0.05, 0.05]), (np.inf, [0.05, 1.0])):
        found = permutation.test_of(values, np.full((20, 2), error), nothing, **fields)
        np.testing.assert_array_equal(found.p_interval, expected)
        np.testing.assert_array_equal(found.intervals, [expected, expected])
    # whatever the exact values are within the errors, the exact p-value is in the interval
    rng = np.random.default_rng(1)
    for _ in range(200):
        exact = rng.random((20, 2))
        errors = rng.choice([1e-3, 0.05, 0.2]) * rng.random((20, 2))
        found = permutation.test_of(exact + errors * rng.uniform(-1, 1, (20, 2)), errors, nothing, **fields)
        z = ((exact - exact.mean(axis=0)) / exact.std(axis=0)).max(axis=1)
        assert found.p_interval[0] <= np.mean(z >= z[0]) <= found.p_interval[1]


def test_several_widths_are_one_test():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((80, 2)), 1.6 * rng.standard_normal((80, 2))
    widths = [cases.gaussian(s) for s in (0.05, 1.0, 50.0)]
    found = mmd_test(A, B, widths)
    assert found.p_value <= 0.05 and found.statistic.shape == found.intervals[:, 0].shape == (3,)
    for k, width in enumerate(widths):
        alone = mmd_test(A, B, width)
        np.testing.assert_allclose(found.statistic[k], alone.statistic[0], atol=1e-12)
        np.testing.assert_array_equal(found.intervals[k], alone.p_interval)
    z = np.vstack([found.statistic, found.null])
    z = ((z - z.mean(axis=0)) / z.std(axis=0)).max(axis=1)
    assert found.p_interval[0] <= np.mean(z >= z[0]) <= found.p_interval[1]


def test_weights_of_partial_least_squares_are_equal_rows():
    """Of the other methods the weights are in the formulas that the attack holds them against."""
    w = RNG.integers(1, 4, 60).astype(float)
    again = np.repeat(np.arange(60), w.astype(int))
    weighted = kernel_pls(X, T, sigma=1.0, sample_weight=w, method="gram")
    np.testing.assert_allclose(weighted.predict(X), kernel_pls(X[again], T[again], sigma=1.0).predict(X), atol=1e-8)


@pytest.mark.parametrize("unbiased", [False, True])
def test_rows_on_disk_and_of_dask_by_means_of_features(tmp_path, unbiased):
    dask = pytest.importorskip("dask.array")
    h5py = pytest.importorskip("h5py")
    A, B = RNG.standard_normal((3000, 2)), RNG.standard_normal((2000, 2)) + 0.1
    expected = mmd_test(A, B, sigma=1.0, unbiased=unbiased, permutations=9)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        on_disk = file.create_dataset("rows", data=A)
        found = mmd_test(
            on_disk, dask.from_array(B, chunks=(700, 2)), sigma=1.0, unbiased=unbiased, permutations=9, tol=1e-11
        )
        with pytest.raises(ValueError, match="in memory"):
            mmd_test(on_disk, B, method="gram")
    assert found.info["method"] == "features" and expected.info["method"] == "gram"
    assert (np.abs(found.statistic - expected.statistic) <= found.error + expected.error).all()
    assert (np.abs(found.null - expected.null) <= found.null_error + expected.null_error).all()
    assert (found.error < 1e-7).all()


def test_views_of_dask_are_those_in_memory():
    dask = pytest.importorskip("dask.array")
    A, B = (dask.from_array(rows, chunks=(17, rows.shape[1])) for rows in (X, Y))
    for test in (hsic_test, kernel_cca):
        ours, theirs = test(A, B, sigma=1.0), test(X, Y, sigma=1.0)
        key = "statistic" if test is hsic_test else "correlations"
        np.testing.assert_allclose(getattr(ours, key), getattr(theirs, key), atol=1e-6)


def test_permutations_of_the_first_correlation():
    apart = kernel_cca(X, RNG.standard_normal((60, 1)), sigma=1.0, permutations=99)
    together = kernel_cca(X, Y, sigma=1.0, permutations=99, tol=1e-10)
    assert together.p_value == 0.01 and apart.p_value > 0.02
    share = np.full(60, 1 / 60)
    K, L = cases.gram("gaussian", X, sigma=1.0), cases.gram("gaussian", Y, sigma=1.0)
    again = np.random.default_rng(0)
    for value in together.null[:5]:
        order = again.permutation(60)
        exact = cases.correlations(K, L[np.ix_(order, order)], together.x.penalty, together.y.penalty, share)[0]
        np.testing.assert_allclose(value, exact, atol=1e-6)


# Regressions -------------------------------------------------------------------------------------------------------


def test_the_error_of_predictions_holds_where_iterations_stop_early():
    rows, new = RNG.standard_normal((300, 2)), RNG.standard_normal((50, 2))
    t = RNG.standard_normal((300, 2))
    K = cases.gram("gaussian", rows, sigma=1.0)
    exact = cases.gram("gaussian", new, rows, sigma=1.0) @ np.linalg.solve(K + 1e-6 * np.eye(300), t)
    for steps in (1, 3, 10):
        with pytest.warns(AccuracyWarning, match="relative residual"):
            model = kernel_ridge(rows, t, sigma=1.0, regularization=1e-6, method="gram", max_iterations=steps)
        off, bound = np.abs(model.predict(new) - exact), model.error(new)
        assert (off <= bound).all()
    assert (off > 1e-6 * bound).any(), "a bound that far from the truth says nothing"


def test_components_that_are_not_there():
    rows = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0)
    with pytest.warns(ComponentsWarning, match="3 components asked for, 1 returned"):
        model = kernel_pls(rows, rows[:, 0], "linear", 3)
    np.testing.assert_allclose(model.predict(rows), rows[:, 0], atol=1e-12)
    assert model.n_components == 1 and model.explained[-1] > 1 - 1e-12


def test_of_a_precomputed_matrix():
    K = cases.gram("gaussian", X, sigma=1.0)
    for fit in (kernel_pls, kernel_ridge):
        model = fit(K, T, "precomputed")
        np.testing.assert_allclose(model.predict(K), fit(X, T, sigma=1.0).predict(X), atol=1e-6)


# What is refused ---------------------------------------------------------------------------------------------------


def test_a_view_that_does_not_vary():
    assert hsic_test(X, np.ones((60, 1)), sigma=1.0).p_value == 1.0


def test_constant_targets():
    assert np.isfinite(kernel_ridge(X, np.ones(60)).predict(X)).all()  # without an intercept they say something
    assert (kernel_ridge(X, np.zeros(60)).predict(X) == 0).all()

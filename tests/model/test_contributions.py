"""Contributions of columns to SPE and T^2: against closed forms and dense searches, and planted faults."""

import numpy as np
import pytest

import fastkpca as fk
from fastkpca import get_kernel

D = 12
FEATURES = {"method": "features", "features": "pivots"}


def rows(n, seed):
    """Rows near a curved surface of three dimensions in twelve columns, of many units."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, (n, 3))
    A = np.random.default_rng(9).standard_normal((3, D))
    X = np.tanh(t @ A) + 0.5 * (t @ A[:, ::-1]) ** 2 + 0.05 * rng.standard_normal((n, D))
    return X * 10.0 ** np.arange(-3, D - 3) + 5.0


def faulty(X, size, seed):
    """(rows, the same with one wrong column each, which column)."""
    rng = np.random.default_rng(seed)
    clean, which = rows(100, seed), rng.integers(D, size=100)
    wrong = clean.copy()
    wrong[np.arange(100), which] += size * X.std(axis=0)[which] * rng.choice([-1, 1], 100)
    return clean, wrong, which


@pytest.mark.parametrize(
    ("name", "c", "options", "size"),
    [
        ("gaussian", 0.95, {}, 4),
        ("gaussian", 0.95, {"sigma": 2.0, "method": "krylov"}, 30),
        ("gaussian", 0.95, {"sigma": 10.0} | FEATURES, 4),
        ("linear", 0.95, {}, 30),
        ("polynomial", 0.95, {"degree": 2}, 4),
        ("polynomial", 0.95, {"degree": 3, "method": "dense"}, 30),
        ("laplacian", 30, {"method": "dense"}, 4),
        ("matern", 0.95, {"method": "krylov"}, 30),
        ("rational_quadratic", 0.95, {}, 4),
    ],
)
def test_a_planted_fault_is_found(name, c, options, size):
    X = rows(600, 0)
    model = fk.kpca(X, name, c, standardize=True, **options)
    clean, wrong, which = faulty(X, size, 5)
    found = fk.kpca_contributions(model, wrong, train=X)
    assert (found.largest == which).sum() >= 95
    assert [found.ranking(i)[0] for i in range(100)] == found.largest.tolist()
    i = np.arange(100)
    np.testing.assert_allclose(found.of_rows, fk.kpca_spe(model, wrong), rtol=1e-6, atol=1e-9 * found.of_rows.max())
    assert (found.contributions >= 0).all() and (found.contributions <= found.of_rows[:, None] * (1 + 1e-9)).all()
    # the value in its place is near what it was before the fault
    error = np.abs(found.values[i, which] - clean[i, which]) / X.std(axis=0)[which]
    assert np.median(error) < 0.3


@pytest.mark.parametrize("statistic", ["spe", "t2"])
@pytest.mark.parametrize("options", [{}, {"method": "dense"}, {"method": "features"}])
def test_the_linear_kernel_has_a_closed_form(statistic, options):
    X = rows(300, 0) / 10.0 ** np.arange(-3, D - 3)
    model = fk.kpca(X, "linear", 4, **options)
    new = rows(20, 1) / 10.0 ** np.arange(-3, D - 3)
    _, values, V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    P, latent = V[:4].T, values[:4] ** 2 / (len(X) - 1)
    M = np.eye(D) - P @ P.T if statistic == "spe" else P / latent @ P.T
    x = new - X.mean(axis=0)
    exact = (x @ M) ** 2 / np.diag(M)
    best = new - x @ M / np.diag(M)
    away = 1.1 * np.abs(best - new).max()
    wide = np.vstack([new - away, new + away])  # the best value lies within their range
    found = fk.kpca_contributions(model, new, statistic=statistic, train=wide)
    np.testing.assert_allclose(found.contributions, exact, rtol=1e-6, atol=1e-6 * exact.max())
    np.testing.assert_allclose(found.values, best, atol=1e-4 * away)
    inside = fk.kpca_contributions(model, new, statistic=statistic, train=X)
    assert (inside.contributions <= exact * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("statistic", ["spe", "t2"])
@pytest.mark.parametrize(
    "kernel", [get_kernel("gaussian", sigma=3.0), get_kernel("polynomial"), get_kernel("matern", length_scale=3.0)]
)
def test_no_value_of_a_dense_search_is_lower(kernel, statistic):
    """Over each column alone, at 400 values of its range."""
    X = rows(200, 0) / 10.0 ** np.arange(-3, D - 3)
    model = fk.kpca(X, kernel, 8, method="dense")
    _, new, _ = faulty(X, 4, 3)
    new = (new / 10.0 ** np.arange(-3, D - 3))[:5]
    found = fk.kpca_contributions(model, new, statistic=statistic)
    value = {"spe": fk.kpca_spe, "t2": fk.kpca_t2}[statistic]
    before, missed = value(model, new), 0
    for column in range(D):
        moved = np.repeat(new, 400, axis=0)
        moved[:, column] = np.tile(np.linspace(X[:, column].min(), X[:, column].max(), 400), len(new))
        dense = before - value(model, moved).reshape(len(new), 400).min(axis=1)
        missed += int((found.contributions[:, column] < dense - 1e-6 * before).sum())
        at = new.copy()
        at[:, column] = found.values[:, column]
        np.testing.assert_allclose(before - value(model, at), found.contributions[:, column], atol=1e-9 * before.max())
    assert missed == 0


def test_columns_have_names_and_units_and_rows_come_one_at_a_time():
    pandas = pytest.importorskip("pandas")
    X = rows(200, 0)
    names = [f"sensor {i}" for i in range(D)]
    model = fk.kpca(pandas.DataFrame(X, columns=names), "gaussian", 0.9, standardize=True, method="dense")
    _, new, which = faulty(X, 6, 2)
    found = fk.kpca_contributions(model, pandas.DataFrame(new, columns=names), n_threads=1)
    assert found.names == tuple(names) and found.statistic == "spe"
    text = repr(found)
    assert f"row 0: spe {found.of_rows[0]:.3g}, of which sensor {which[0]} " in text and "and 90 more rows" in text
    again = fk.kpca_contributions(model, new, n_threads=2)
    np.testing.assert_allclose(again.contributions, found.contributions, rtol=1e-9, atol=1e-12)
    one = fk.kpca_contributions(model, new[:1])
    assert one.contributions.shape == (1, D) and one.largest[0] == which[0]
    assert "1 row, 12 columns" in repr(one)
    low, high = X.min(axis=0), X.max(axis=0)
    outside = (found.values < low - 1e-9 * abs(low)) | (found.values > high + 1e-9 * abs(high))
    np.testing.assert_allclose(found.values[outside], new[outside])  # or else it stays as it is


def test_rows_of_weight_zero_do_not_widen_the_range():
    X = rows(200, 0) / 10.0 ** np.arange(-3, D - 3)
    with_outlier = np.vstack([X, X[:1] + 1e3])
    model = fk.kpca(with_outlier, "gaussian", 5, sigma=3.0, sample_weight=np.r_[np.ones(200), 0.0], method="dense")
    found = fk.kpca_contributions(model, X[:3])
    plain = fk.kpca_contributions(fk.kpca(X, "gaussian", 5, sigma=3.0, method="dense"), X[:3])
    np.testing.assert_allclose(found.contributions, plain.contributions, rtol=1e-6, atol=1e-9)


def test_no_column_is_blamed_where_none_alone_helps():
    X = rows(60, 0)
    model = fk.kpca(X, "gaussian", 5, standardize=True)
    found = fk.kpca_contributions(model, np.vstack([X[:1], X[:1] + 100.0 * X.std(axis=0), X[1:2]]))
    assert found.largest[1] == -1 and (found.largest[[0, 2]] >= 0).all()
    assert "row 1: spe 1" in repr(found) and "no column alone takes anything off" in repr(found).splitlines()[2]
    np.testing.assert_allclose(found.values[1], X[0] + 100.0 * X.std(axis=0))  # left as they are

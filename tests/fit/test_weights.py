"""Weights of rows: a whole number is so many copies of the row, on every route that takes weights."""

from __future__ import annotations

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import ComponentsWarning

N, D, C = 150, 3, 4
ROUTES = {
    "dense": ("gaussian", {"sigma": 1.5, "method": "dense"}),
    "monomial": ("polynomial", {"degree": 3, "offset": 0.7, "features": "monomial"}),
    "krylov, tanh": ("tanh", {"scale": 0.1, "offset": 0.2, "method": "krylov"}),
    "krylov, fast products": ("gaussian", {"sigma": 1.0, "products": "grid"}),
}
"""tests/attacks/attack.py has others."""


def data(seed: int = 0, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * [1.0, 0.8, 0.5] + 3.0
    w = rng.integers(0, 6, n).astype(float)
    w[:5] = [0.0, 0.0, 40.0, 1.0, 1.0]
    X[:2] += 50.0  # far out, and of no weight
    return X, w


def same_columns(A, B, scale, tol):
    """A and B are equal up to the sign of each column."""
    signs = np.sign(np.sum(A * B, axis=0))
    np.testing.assert_allclose(A * signs, B, atol=tol * scale)


@pytest.mark.parametrize("route", ROUTES)
def test_whole_weights_are_repeated_rows(route):
    X, w = data()
    times = w.astype(int)
    kernel, options = ROUTES[route]
    one = fk.kpca(X, kernel, C, tol=1e-7, sample_weight=w, **options)
    other = fk.kpca(np.repeat(X, times, axis=0), kernel, C, tol=1e-7, **options)
    top = other.eigenvalues[0]
    # approximations differ in what they leave out, within the stated bounds; what is exact is equal to rounding
    slack = max(1e-12, *(np.ptp(x.eigenvalue_bounds, axis=1).max() / top for x in (one, other)))
    np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, rtol=0, atol=2 * slack * top)
    np.testing.assert_allclose(one.latent, other.latent, rtol=0, atol=2 * slack * other.latent[0])
    np.testing.assert_allclose(one.explained, other.explained, rtol=2 * slack + 1e-12, atol=300 * slack)
    angle = 1e-9 + max(one.angle_bounds.max(), 0.0) + max(other.angle_bounds.max(), 0.0)
    assert angle < 2e-2
    scale = np.abs(other.score).max()
    present = w > 0
    same_columns(np.repeat(one.score, times, axis=0), other.score, scale, angle)
    copies = np.add.reduceat(other.coeff, np.r_[0, np.cumsum(times[present])[:-1]], axis=0)
    assert not np.any(one.coeff[~present])
    same_columns(one.coeff[present], copies, np.abs(copies).max(), 10 * angle)
    np.testing.assert_allclose(np.repeat(one.tsquared, times), other.tsquared, rtol=100 * angle)
    new = np.vstack([X[~present], X[:40] + 0.1])
    same_columns(fk.kpca_project(one, new), fk.kpca_project(other, new), scale, angle)
    # rows of weight zero have the scores of new rows
    np.testing.assert_allclose(one.score[~present], fk.kpca_project(one, X[~present]), atol=1e-9 * scale)
    assert one.weight_sum == w.sum() and one.n_samples == len(X)


def test_far_rows_that_only_weight_brings_in():
    """A second round of pivots goes where weight times residual is large."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20000, 2))
    X[17] += 40.0
    w = np.ones(len(X))
    w[17] = 1e4
    model = fk.kpca(X, "gaussian", 3, sigma=3.0, features="pivots", tol=1e-6, sample_weight=w)
    heavy = fk.kpca(np.vstack([X, np.repeat(X[17:18], 9999, axis=0)]), "gaussian", 3, sigma=3.0, tol=1e-6)
    np.testing.assert_allclose(model.eigenvalues, heavy.eigenvalues, rtol=0, atol=2e-6 * heavy.eigenvalues[0])


def test_default_bandwidth_is_that_of_the_repeated_rows():
    X, w = data()
    one = fk.kpca(X, "gaussian", 2, sample_weight=w, method="dense")
    other = fk.kpca(np.repeat(X, w.astype(int), axis=0), "gaussian", 2, method="dense")
    assert one.kernel == other.kernel


WRONG = {
    "length": (np.ones(3), ValueError, r"shape \(3,\); give 150 numbers"),
    "negative": (np.r_[np.ones(149), -1.0], ValueError, r"contains -1.0 \(first at row 149\)"),
    "nan": (np.r_[np.nan, np.ones(149)], ValueError, r"contains NaN or infinity \(first at row 0\)"),
    "infinite": (np.r_[np.ones(149), np.inf], ValueError, r"contains NaN or infinity \(first at row 149\)"),
    "one row": (np.eye(150)[3] * 5, ValueError, "leaves 1 rows of positive weight"),
    "normalised": (np.full(150, 1 / 150), ValueError, r"sums to 1; .*scale them"),
    "words": (["a"] * 150, TypeError, "of the type <U1"),
    "matrix": (np.ones((150, 1)), ValueError, r"shape \(150, 1\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_weights(case):
    weights, error, text = WRONG[case]
    with pytest.raises(error, match=text):
        fk.kpca(data()[0], "gaussian", 2, sigma=1.0, sample_weight=weights)


def test_a_fraction_of_the_variance_with_weights():
    X, w = data()
    times = w.astype(int)
    for kernel, parameters in (("polynomial", {"degree": 2}), ("gaussian", {"sigma": 2.0})):
        one = fk.kpca(X, kernel, 0.9, sample_weight=w, **parameters)
        other = fk.kpca(np.repeat(X, times, axis=0), kernel, 0.9, **parameters)
        assert one.n_components == other.n_components
        assert one.explained.sum() >= 90 - 1e-6


def test_more_components_than_rows_of_weight():
    X, w = data(n=40)
    w[10:] = 0.0
    with pytest.warns(ComponentsWarning):
        model = fk.kpca(X, "gaussian", 20, sigma=1.0, sample_weight=w, method="dense")
    assert model.n_components <= np.count_nonzero(w) - 1


def test_masked_weights_are_refused():
    X = np.random.default_rng(0).standard_normal((20, 2))
    w = np.ma.masked_equal(np.r_[1.0, 2.0, -1.0, np.ones(16), -1.0], -1.0)
    with pytest.raises(ValueError, match=r"sample_weight has 2 masked entries \(first at row 2\).*0 leaves a row out"):
        fk.kpca(X, "gaussian", 2, sample_weight=w)
    found = fk.kpca(X, "gaussian", 2, sample_weight=w.filled(0))
    assert fk.kpca(X, "gaussian", 2, sample_weight=np.ma.array(w.filled(0))).eigenvalues[0] == found.eigenvalues[0]


@pytest.mark.parametrize("route", ["dense", "krylov"])
def test_scores_of_rows_with_small_weights_are_their_projections(route):
    """The root of a weight of 1e-6 would divide what the vectors of small eigenvalues err by."""
    rng = np.random.default_rng(1)
    X, w = rng.uniform(size=(60, 2)), 10.0 ** rng.uniform(-6, 6, 60)
    model = fk.kpca(X, "gaussian", 8, sigma=3.0, method=route, sample_weight=w)
    assert model.eigenvalues[-1] < 1e-6 * model.eigenvalues[0]
    np.testing.assert_allclose(fk.kpca_project(model, X), model.score, rtol=0, atol=5e-11)

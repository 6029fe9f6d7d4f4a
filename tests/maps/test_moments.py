"""Second moments in one pass: against two passes in longdouble, where centring is hardest, and merging."""

import intervals
import numpy as np
import pytest
from instruction_sets import each_instruction_set

import fastkpca as fk
from fastkpca._core import moments, multiindex
from fastkpca.maps.combined import ColumnMap, ScaledMap
from fastkpca.maps.monomial import PolynomialMap, TaylorMap
from fastkpca.maps.passes import feature_moments
from fastkpca.rows.view import Columns, Rows

LONG = np.longdouble


def two_pass(Phi, weights=None):
    Phi = Phi.astype(LONG)
    w = np.ones(len(Phi), dtype=LONG) if weights is None else weights.astype(LONG)
    mean = (w @ Phi) / w.sum()
    centered = (Phi - mean) * np.sqrt(w)[:, None]
    return mean, centered.T @ centered


@pytest.mark.parametrize(
    "name, phi, scale",
    [
        ("sigma 1e4", TaylorMap(3, 1e4, 4, np.zeros(3)), 1.0),
        ("offset 1e8", PolynomialMap(3, 3, 1.0, 1e8), 1.0),
        ("plain", PolynomialMap(3, 2, 1.0, 1.0), 1.0),
        ("far from the origin", PolynomialMap(3, 1), 1e6),
    ],
)
@pytest.mark.parametrize("order", ["random", "sorted", "outliers first"])
def test_one_pass_keeps_1e_13_of_lambda_1(name, phi, scale, order, attack):
    rng = attack.rng(name)
    X = rng.standard_normal((30_000, 3))
    if name == "far from the origin":
        X += scale
    if order == "sorted":
        X = X[np.argsort(X[:, 0])]
    elif order == "outliers first":
        X[:50] *= 30
    moments = feature_moments(phi, Rows(X))
    mean, C = two_pass(phi.features(X))
    ours = np.linalg.eigvalsh(moments.dense())
    # longdouble has no eigensolver; C is good to 1e-19, so rounding it to float64 is the only loss
    exact = np.linalg.eigvalsh(C.astype(np.float64))
    assert np.abs(ours - exact).max() <= 1e-13 * exact[-1]
    np.testing.assert_allclose(moments.mean, mean.astype(np.float64), rtol=1e-13, atol=1e-13 * np.abs(mean).max())
    assert moments.trace == pytest.approx(float(np.trace(C)), rel=1e-12)


isa = each_instruction_set(multiindex)


@pytest.mark.parametrize(
    "phi", [PolynomialMap(10, 2, 1.0, 1.0), PolynomialMap(5, 3), TaylorMap(2, 1.0, 6, np.zeros(2))]
)
def test_features_times_coefficients_of_any_number(phi, isa):
    rng = np.random.default_rng(1)
    for n, k in ((1, 1), (7, 4), (31, 5), (32, 6), (33, 10), (127, 11), (129, 3), (300, 23), (0, 2), (5, 0)):
        X, C = rng.standard_normal((n, phi.d)), rng.standard_normal((phi.n_features, k))
        Phi = phi.features(X)
        bound = 4.0 * phi.n_features * 2.0**-53 * (np.abs(Phi) @ np.abs(C))
        assert (np.abs(phi.apply(X, C) - Phi.astype(np.longdouble) @ C) <= bound).all()


@pytest.mark.parametrize("d, degree", [(10, 2), (4, 5), (6, 3)])
def test_sums_of_products_of_any_number_of_points(d, degree, isa):
    phi = PolynomialMap(d, degree, 1.0, 1.0)
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8, 9, 127, 128, 129, 255, 257, 512, 513, 1030):
        X, moments = rng.standard_normal((n, d)) / d, phi.quick_moments()
        moments.update(X)
        Phi = phi.features(X).astype(np.longdouble)
        about_zero = moments.dense() + n * np.outer(moments.mean, moments.mean)
        assert np.abs(about_zero - Phi.T @ Phi).max() <= 1e-14 * (Phi**2).sum()
        assert np.abs(moments.mean - Phi.mean(axis=0)).max() <= 1e-14 * np.abs(Phi).max()


@pytest.mark.parametrize("n", [1, 255, 256, 257, 263, 264, 511, 513, 1031])
def test_second_moment_of_any_number_of_features_and_points(n):
    rng = np.random.default_rng(n)
    for D in (1, 2, 3, 4, 5, 8, 63, 64, 65, 130):
        tile = rng.standard_normal((D, n)) + 3.0
        weights = rng.random(n) if D % 2 else None
        scatter, mean = np.zeros((D, D)), np.zeros((2, D))
        given = tile.copy()
        count = moments.update(given, weights, 0.0, mean, scatter)
        assert np.array_equal(given, tile)  # features may be kept
        w = np.ones(n, np.longdouble) if weights is None else weights.astype(np.longdouble)
        centred = tile - (tile @ w / w.sum())[:, None]
        exact = (centred * w) @ centred.T
        assert np.abs(np.tril(scatter - exact)).max() <= 1e-14 * np.trace(exact) + 1e-28
        assert not np.triu(scatter, 1).any()  # others rely on it
        assert count == pytest.approx(float(w.sum()))


QUICK = [
    ("with an offset", PolynomialMap(6, 3, 0.7, 2.0), 1.0),
    ("without one", PolynomialMap(7, 3), 1.0),
    ("of high degree", PolynomialMap(3, 6, 1.0, 1e-3), 1.0),
    ("a thousand from the origin", PolynomialMap(9, 3, 1.0, 1.0), 1e3),
    ("Gaussian", TaylorMap(3, 0.8, 7, np.array([0.3, 0.0, -0.2])), 1.0),
    ("scaled", ScaledMap(PolynomialMap(6, 3, 0.7, 2.0), 0.3), 1.0),
    ("widths", ColumnMap(TaylorMap(3, 0.8, 7, np.zeros(3)), Columns(None, (2.0, 0.3, 1.0)), 10.0), 1.0),
]


@pytest.mark.parametrize("name, phi, far", QUICK, ids=[x[0] for x in QUICK])
def test_quick_moments_err_by_no_more_than_they_say(name, phi, far, attack, isa):
    rng = attack.rng(name)
    d = getattr(phi, "part", phi).d
    X = rng.standard_normal((1500, d)) / d + (far > 1) * far
    first, moments = phi.quick_moments(), phi.quick_moments()
    residuals = [moments.update(X[a:b]) for a, b in ((0, 1), (1, 130), (130, 900))]
    residuals.append(first.update(X[900:]))
    moments.merge(phi.quick_moments().restore(*first.state()))
    mean, exact = two_pass(phi.features(X))
    C = moments.dense()
    off = (C - exact).astype(np.float64)
    assert np.linalg.norm(off, 2) <= moments.error
    assert abs(moments.trace - float(np.trace(exact))) <= moments.error
    assert moments.error <= 1e-12 * float(np.trace(phi.features(X) @ phi.features(X).T))
    assert np.array_equal(C, C.T)
    np.testing.assert_allclose(moments.mean, mean.astype(np.float64), rtol=1e-13, atol=1e-14 * np.abs(mean).max())
    assert moments.count == len(X)
    np.testing.assert_allclose(np.concatenate(residuals), phi.residual(X), atol=1e-15)
    assert moments.residual_trace == pytest.approx(float(phi.residual(X).sum()), abs=1e-12)


@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_the_error_of_quick_moments_is_that_of_tiles_and_not_of_all_rows(apart):
    """Rows that are equal, or nearly so, round alike: that is within it, too."""
    rng = np.random.default_rng(0)
    phi = PolynomialMap(4, 5, 1.0, 1.0)
    X = rng.standard_normal(4) / 4 + apart * rng.standard_normal((20_000, 4)) / 4
    found = feature_moments(phi, Rows(X), quick=True)
    _, exact = two_pass(phi.features(X))
    assert np.linalg.norm((found.dense() - exact).astype(np.float64), 2) <= found.error
    about_zero = found.trace + found.count * float(found.mean @ found.mean)
    assert found.error <= 1000 * 2.0**-53 * about_zero  # 2200 where a term went through an addition for each row


def test_quick_moments_only_where_they_are_fewer_sums():
    assert PolynomialMap(3, 2, 1.0, 1.0).quick_moments() is None  # 10 features
    assert PolynomialMap(60, 1, 1.0, 1.0).quick_moments() is None  # all products differ
    assert TaylorMap(3, 1.0, 1, np.zeros(3)).quick_moments() is None
    with pytest.raises(NotImplementedError, match="without weights"):
        PolynomialMap(6, 3, 1.0, 1.0).quick_moments().update(np.ones((2, 6)), np.ones(2))


@pytest.mark.parametrize("offset", [1.0, 1e4, 1e9])
@pytest.mark.parametrize("center", [True, False])
def test_quick_moments_give_way_where_they_are_not_accurate(offset, center, attack):
    """N |m|^2 may be any times lambda_1: components are those of centred sums, and the intervals as narrow."""
    X = attack.rng(f"offset {offset}").random((3000, 6))
    options = {"degree": 3, "offset": offset, "center": center, "features": "monomial"}
    model = fk.kpca(X, "polynomial", 6, **options)
    exact = fk.kpca(X, "polynomial", 6, keep_moments=True, **options)
    intervals.hold(model, exact.eigenvalues, tol=max(2e-8, 2 * intervals.width(exact)))
    gap = np.abs(np.diff(exact.eigenvalues)).min() / exact.eigenvalues[0]
    np.testing.assert_allclose(model.score, exact.score, atol=1e-8 / gap * np.abs(exact.score).max())


def test_quick_moments_give_way_to_small_eigenvalues(attack):
    """Rows near a line: the sixth eigenvalue is 1e-12 of the first, and the error of the sums as large."""
    rng = attack.rng("line")
    X = rng.random((2000, 1)) * rng.random(8) + 1e-6 * rng.random((2000, 8))
    model = fk.kpca(X, "polynomial", 12, degree=2, offset=1.0, method="features")
    exact = fk.kpca(X, "polynomial", 12, degree=2, offset=1.0, method="features", keep_moments=True)
    np.testing.assert_array_equal(model.eigenvalues, exact.eigenvalues)
    np.testing.assert_array_equal(model.score, exact.score)

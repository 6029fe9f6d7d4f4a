"""Fourier features, their moments and transforms: bounds attacked, references dense or direct."""

import itertools
import warnings

import intervals
import numpy as np
import pytest
import reference
from data import look
from reference import long_gaussian

import fastkpca as fk
from fastkpca.errors import CertificateWarning, NoRouteError
from fastkpca.maps import transforms
from fastkpca.maps.fourier import fourier_offers, gaussian_fourier_map
from fastkpca.maps.passes import accumulate, apply, feature_moments
from fastkpca.maps.toeplitz import ToeplitzMoments
from fastkpca.rows.view import Rows
from fastkpca.solve.moments import leading_axes


def corners(low, high):
    return np.array(list(itertools.product(*zip(low, high))))


def attack_rows(rng, d, n=40):
    """Rows of a box of unequal sides: random, coincident, and its corners and rim, where images are nearest."""
    sides = rng.uniform(0.2, 1.0, d)
    X = rng.random((n, d)) * sides
    X[: n // 8] = X[0]
    X[n // 8 : n // 4, 0] = 0.0
    return np.vstack([X, corners(np.zeros(d), sides)])


def box_of(X):
    return np.stack([X.min(axis=0), X.max(axis=0)])


CASES = [(1, s, t) for s in (0.02, 0.1, 1, 10) for t in (1e-2, 1e-6, 1e-12)]
CASES += [(2, s, t) for s in (0.1, 0.4, 3) for t in (1e-2, 1e-6, 1e-12)]
CASES += [(3, s, t) for s in (0.3, 2) for t in (1e-2, 1e-5)]


@pytest.mark.parametrize(("d", "sigma", "tol"), CASES)
def test_the_bounds_hold_in_every_entry(d, sigma, tol):
    """K - Phi Phi' = semidefinite with diagonal tail, and entries at most ``images``; both are needed, and not wide."""
    X = attack_rows(np.random.default_rng(int(1000 * sigma)), d)
    m = gaussian_fourier_map(box_of(X), sigma, tol)
    Phi = m.features(X)
    E = (long_gaussian(X, X, sigma) - (Phi @ Phi.T).astype(np.longdouble)).astype(np.float64)
    rounding = 2 * m.rounding + 1e-15
    assert np.abs(np.diag(E)).max() <= m.tail + m.images + rounding
    assert np.abs(E).max() <= m.tail + m.images + rounding
    lowest = np.linalg.eigvalsh((E + E.T) / 2)[0]
    assert lowest >= -len(X) * (m.images + rounding)
    assert m.tail <= tol and (m.residual(X) == m.tail).all()
    if tol >= 1e-6:
        assert np.diag(E).max() >= 0.05 * m.tail  # a bound a hundred times too large would say nothing


@pytest.mark.parametrize("d", [1, 2, 3])
def test_images_are_as_near_as_the_bound_says(d):
    """With a small margin aliasing is there, of the size of ``images`` at opposite corners, and not beyond it."""
    from fastkpca.maps.fourier import gaussian_images

    sigma, side = 0.5, 1.0
    for gap in (1.0, 2.0, 3.0):
        period = side + gap * sigma
        s = np.linspace(-side, side, 401)
        true = sum(np.exp(-((s + n * period) ** 2) / (2 * sigma**2)) for n in range(-20, 21) if n)
        bound = gaussian_images(side, period, sigma)
        assert true.max() <= bound <= 4 * true.max()
        assert (1 + true.max()) ** d - 1 <= (1 + bound) ** d - 1


def test_a_new_row_anywhere_is_right_and_meets_no_ghost():
    """Rows from inside the box to many periods away, and exactly where the periodic images of the data lie."""
    rng = np.random.default_rng(3)
    for d, sigma, tol in ((1, 0.1, 1e-6), (2, 0.2, 1e-4), (2, 0.2, 1e-8)):
        X = rng.random((60, d))
        m = gaussian_fourier_map(box_of(X), sigma, tol)
        steps = np.concatenate([np.linspace(-2.5, 2.5, 41), [10.0, -1e6]])
        new = np.vstack([X[:3] + t * m.period * e for t in steps for e in np.vstack([np.eye(d), np.ones(d)])])
        C = accumulate(m, Rows(X), np.eye(60))
        values = apply(m, Rows(new), C)
        error = np.abs(values - reference.gram("gaussian", new, X, sigma=sigma))
        slack = 3 * transforms.error_bound(m.half, m.eps) * np.sqrt(m.n_features)
        assert error.max() <= m.beyond + m.tail + slack
        assert m.beyond <= 1e-3
        far = np.abs(new - X.mean(axis=0)).max(axis=1) > m.period.max()
        assert far.any() and (values[far] == 0).all()
        assert (m.features(new)[far] == 0).all() and (m.residual(new)[far] >= 1.0).all()


def test_the_formula_is_that_of_the_features():
    """Evaluated as fastkpca_project.m does."""
    X = attack_rows(np.random.default_rng(1), 2)
    m = gaussian_fourier_map(box_of(X), 0.3, 1e-4)
    f = m.formula()
    Phi = np.sqrt(f["weights"])
    for c in range(2):
        T = 2 * np.pi * np.outer((X[:, c] - f["centre"][0, c]) / f["period"][0, c], f["modes"][:, c])
        Phi = Phi * np.where(f["modes"][:, c] < 0, -np.sin(T), np.cos(T))
    assert np.abs(Phi - m.features(X)).max() <= 2 * m.rounding


def test_moments_refuse_rows_outside_their_box():
    m = gaussian_fourier_map(np.array([[0.0, 0.0], [1.0, 1.0]]), 0.3, 1e-4)
    with pytest.raises(ValueError, match="outside the box"):
        m.new_moments().update(np.array([[0.5, 1.01]]))


@pytest.mark.parametrize(("d", "sigma", "tol"), [(1, 0.1, 1e-8), (2, 0.2, 1e-6), (2, 1.0, 1e-12), (3, 0.5, 1e-4)])
def test_toeplitz_moments_equal_dense_ones(d, sigma, tol):
    rng = np.random.default_rng(5)
    X = attack_rows(rng, d, 100)
    m = gaussian_fourier_map(box_of(X), sigma, tol)
    weights = rng.random(len(X))
    Phi = m.features(X)
    for w in (None, weights):
        whole, first, second = (m.new_moments() for _ in range(3))
        assert isinstance(whole, ToeplitzMoments)
        whole.update(X, w)
        first.update(X[:30], None if w is None else w[:30])
        second.update(X[30:], None if w is None else w[30:])
        first.merge(second)
        v = np.ones(len(X)) if w is None else w
        mean = v @ Phi / v.sum()
        C = (Phi - mean).T @ (v[:, None] * (Phi - mean))
        error = v.sum() * m.transform_error + 1e-12 * v.sum()
        for moments in (whole, first):
            U = rng.standard_normal((m.n_features, 3))
            U /= np.linalg.norm(U, axis=0)
            assert np.linalg.norm(moments.matmat(U) - C @ U, 2) <= 2 * error
            assert abs(moments.trace - np.trace(C)) <= error
            assert np.linalg.norm(C) - error <= moments.norm <= np.linalg.norm(C) + error + 1e-6 * v.sum()
            assert np.abs(moments.mean - mean).max() <= error
            assert moments.count == pytest.approx(v.sum(), rel=1e-14)
            assert moments.residual_trace == pytest.approx(v.sum() * m.tail, rel=1e-12)
            dense = moments.dense()
            if dense is not None:
                assert np.abs(dense - C).max() <= 2 * error


def test_accumulate_and_apply_are_adjoint_and_equal_features():
    rng = np.random.default_rng(7)
    X = attack_rows(rng, 2)
    m = gaussian_fourier_map(box_of(X), 0.3, 1e-6)
    U, C = rng.standard_normal((len(X), 3)), rng.standard_normal((m.n_features, 4))
    eta = transforms.error_bound(m.half, m.eps)
    assert np.abs(m.accumulate(X, U) - m.features(X).T @ U).max() <= eta * np.abs(U).sum(axis=0).max()
    assert np.abs(m.apply(X, C) - m.features(X) @ C).max() <= eta * np.abs(C).sum(axis=0).max()
    assert m.apply(X[:0], C).shape == (0, 4) and m.accumulate(X[:0], U[:0]).shape == (m.n_features, 3)


def waves(P, half):
    """All products of a cosine or a sine of each axis, (points, 2 M_1 + 1, ...), in long double."""
    result = np.ones((P.shape[1], 1), dtype=np.longdouble)
    for p, m in zip(P.astype(np.longdouble), half):
        angles = p[:, None] * np.arange(m + 1)
        one = np.hstack([np.cos(angles), np.sin(angles[:, 1:])])
        result = (result[:, :, None] * one[:, None, :]).reshape(P.shape[1], -1)
    return result.reshape(P.shape[1], *(2 * m + 1 for m in half))


def nodes_for(P, half, eps, lines):
    ends = np.stack([P.min(axis=1), P.max(axis=1)])
    return transforms.Nodes(half, eps, ends, P.shape[1], 3, transforms.mean_modes(lines))


@pytest.mark.parametrize("share", [0.0, 1e-3, 0.2, 1.0])
@pytest.mark.parametrize("half", [(1,), (150,), (22, 7), (40, 30), (9, 1, 14)])
def test_transforms_against_direct_sums(half, share):
    """Points all over the period, in a part of it, on its rim, and in a single place."""
    d, n, rng = len(half), 60, np.random.default_rng(sum(half))
    middle = (1.0 - share) * np.pi * rng.uniform(-1, 1, (d, 1))
    P = middle + share * np.pi * rng.uniform(-1, 1, (d, n))
    P[:, :2] = middle + share * np.pi * np.array([-1, 1])  # ends
    P[:, 2:12] = middle + share * np.pi * rng.choice([-1, 1], (d, 10))
    exact, U = waves(P, half), rng.standard_normal((n, 3))
    C = rng.standard_normal((3, *(2 * m + 1 for m in half)))
    sums, values = np.tensordot(U.T, exact, 1), np.tensordot(exact, C, (range(1, d + 1), range(1, d + 1)))
    last = [np.eye(m + 1)[m] for m in half]  # all weight on the highest mode: the bound is then one of each sum
    for eps in (1e-3, 1e-6, 1e-9, 4e-13):
        nodes, bound = nodes_for(P, half, eps, last), transforms.error_bound(half, eps)
        assert np.abs(transforms.type1(P, U, nodes) - sums).max() <= bound * np.abs(U).sum(axis=0).max()
        whole = np.abs(C).reshape(3, -1).sum(axis=1)
        assert (np.abs(transforms.Type2(C, nodes)(P) - values).max(axis=0) <= bound * whole).all()


@pytest.mark.parametrize("half", [(2,), (60,), (8, 3), (12, 12), (7, 4, 5)])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_boxes_for_weighted_modes_keep_their_bound(half, share):
    """Many points, so that errors are seen where they are largest; coarser boxes than for modes without weights."""
    d, rng = len(half), np.random.default_rng(sum(half))
    P = share * rng.uniform(-np.pi, np.pi, (d, 500))
    exact = waves(P, half)
    for eps in (1e-3, 1e-6, 1e-9, 1e-12):
        lines = [np.exp(np.log(eps) * (np.arange(m + 1) / m) ** 2) for m in half]
        lines = [np.concatenate([line[:1], 2.0 * line[1:]]) for line in lines]
        nodes, bound = nodes_for(P, half, eps, lines), transforms.error_bound(half, eps)
        modes = transforms.mean_modes(lines), np.tile(np.array(half, dtype=float)[:, None], len(transforms.ORDERS.q))
        weighted, strict = (transforms.cheapest_boxes(half, eps, [share * np.pi] * d, 500, 3, x).cost for x in modes)
        assert weighted <= strict
        w = np.ones(())
        for line in lines:
            w = np.multiply.outer(w, np.concatenate([line, line[1:]]))
        # the coefficients of which errors are largest: phi of a point, whose values at the points are kernel values
        C = np.sqrt(w) * np.stack([np.sqrt(w) * exact[0].astype(float), rng.standard_normal(w.shape)])
        sizes = np.sqrt((C**2 / w).reshape(2, -1).sum(axis=1)) * np.sqrt(w[tuple([0] * d)] + w.sum())
        error = transforms.Type2(C, nodes)(P) - np.tensordot(exact, C, (range(1, d + 1), range(1, d + 1)))
        assert (np.abs(error).max(axis=0) <= bound * sizes).all()
        # the root mean square of the errors of sums, at one place, where they add up
        same = np.repeat(P[:, :1], 50, axis=1)
        error = transforms.type1(same, np.ones((50, 1)), nodes)[0] - 50 * exact[0]
        assert np.sqrt((w * error.astype(float) ** 2).sum() / w.sum()) <= 50 * bound


def test_offers_and_the_plan():
    X = np.random.default_rng(0).random((50000, 2))
    rows, data = look(X)
    (offer,) = fourier_offers(data, 0.05, 1e-7)
    built = offer.build(data.sample)
    assert abs(built.n_features / offer.cost.n_features - 1) < 0.2
    assert fourier_offers(data, 1e-6, 1e-7) == []  # too many modes
    assert fourier_offers(data, 0.05, 1e-16) == []  # below what the transforms reach
    assert fourier_offers(look(np.random.default_rng(0).random((50, 4)))[1], 0.5, 1e-3) == []
    chosen = fk.plan(X, "gaussian", 10, sigma=0.05).chosen
    assert chosen.name == "fourier" and chosen.memory < 8 * chosen.n_features**2 and chosen.seconds < 1
    assert feature_moments(built, rows).dense() is None


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("c", [2, None, 0.9])
@pytest.mark.parametrize("place", [1.0, 1e5])
def test_equal_rows_have_no_variance(d, c, place):
    """The errors of the transforms are no components."""
    for X in (np.full((30, d), place), np.full((30, d), place) + 1e-15 * np.arange(30.0)[:, None]):
        with pytest.raises(ValueError, match="no component of"):
            fk.kpca(X, "gaussian", c, sigma=1.0, features="fourier")


@pytest.mark.parametrize("c", [None, 12])
def test_few_rows_are_not_asked_for_more_components_than_they_have(c, monkeypatch):
    def form(self):
        raise AssertionError("the moment of all modes is formed for 20 rows")

    monkeypatch.setattr(ToeplitzMoments, "form", form)
    X = np.random.default_rng(0).random((20, 3))
    model = fk.kpca(X, "gaussian", c, sigma=1.0, features="fourier", tol=1e-3, memory_limit="60MB")
    exact = fk.kpca(X, "gaussian", None, sigma=1.0, method="dense").eigenvalues
    assert model.info["n_features"] > 4000
    intervals.hold(model, exact, 1e-13 * exact[0])


def test_many_components_of_a_moment_that_is_formed_for_them():
    """Of 961 features, which are an operator where fewer components are asked for."""
    X = np.random.default_rng(0).random((600, 2))
    model = fk.kpca(X, "gaussian", 245, sigma=0.15, features="fourier", tol=1e-6)
    exact = fk.kpca(X, "gaussian", 245, sigma=0.15, method="dense").eigenvalues
    intervals.hold(model, exact, 1e-13 * exact[0], tol=1e-6)
    assert 600 < model.info["n_features"] < 4 * 245


def test_where_more_columns_widen_what_the_traces_prove_the_complement_proves_it():
    """The error of a trace grows with the columns, beside eigenvalues as small as that of the moment's sums."""
    X = np.random.default_rng(0).random((200, 3)) * [1.0, 0.6, 0.3]
    X[:100] = X[0]
    moments = gaussian_fourier_map(box_of(X), 1.0, 4e-6).new_moments()
    moments.update(X)
    pairs = leading_axes(moments, 14, tol=2e-5, rank=len(X) - 1, failure=1e-6)[2]
    assert np.ptp(pairs.certificate.eigenvalue_bounds[:14], axis=1).max() <= 2e-5 * pairs.values[0]


def _in_a_large_box():
    """Five rows make the box large: the others crowd in its middle."""
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[:5] *= 10
    return X


def test_rows_that_crowd_in_a_large_box_reach_tol():
    X = _in_a_large_box()
    model = fk.kpca(X, "gaussian", 30, sigma=4.0, tol=1e-9, features="fourier")
    assert intervals.width(model) <= 1e-9


@pytest.mark.parametrize(
    ("sigma", "tol"),
    # of sigma = .04 and tol = 1e-6 the eigenpairs of the map take 2.5 times as long as block Krylov
    [(s, t) for s in (0.04, 0.06, 0.1) for t in (1e-4, 1e-5, 1e-6) if (s, t) != (0.04, 1e-6)],
)
def test_a_map_keeps_tol_where_few_rows_overrate_the_first_eigenvalue(sigma, tol):
    """Of many eigenvalues that are about as large, a glance at 128 rows makes the first up to three times larger."""
    X = np.random.default_rng(5).random((3000, 2))
    model = fk.kpca(X, "gaussian", 5, sigma=sigma, tol=tol)
    assert "features_tried" not in model.info
    assert intervals.width(model) <= tol


def test_the_plan_knows_what_rounding_leaves():
    """Where transforms round by more than tol, another route is taken, and tol is met without a second route."""
    X = _in_a_large_box()
    plan = fk.plan(X, "gaussian", 30, sigma=4.0, tol=1e-10)
    assert plan.name != "fourier"
    model = fk.kpca(X, "gaussian", 30, sigma=4.0, tol=1e-10)
    assert intervals.width(model) <= 1e-10 and "features_tried" not in model.info


@pytest.mark.parametrize("seed", range(6))
def test_residuals_that_rounding_takes_below_zero_are_zero(seed):
    """Two rows, repeated: the moment has one direction, which is found at once, and all that is left is rounding."""
    rows = np.random.default_rng(seed).random((2, 3))[[0, 0, 0, 1]]
    model = fk.kpca(rows, "gaussian", None, sigma=1.0, features="fourier", tol=1e-7)
    exact = [*fk.kpca(rows, "gaussian", 1, sigma=1.0, method="dense").eigenvalues, 0.0, 0.0]
    intervals.hold(model, exact)


@pytest.mark.parametrize("tol", [None, 1e-3])
def test_max_features_holds_for_waves_too(tol):
    X = np.random.default_rng(0).standard_normal((1000, 2))
    options = {"sigma": 1.0, "features": "fourier"} | ({} if tol is None else {"tol": tol})
    enough = fk.kpca(X, "gaussian", 2, **options)
    assert enough.plan.name == "fourier" and enough.info["n_features"] > 100
    with pytest.raises(NoRouteError, match="needs more than 40 features.*raise max_features, memory_limit or tol"):
        fk.kpca(X, "gaussian", 2, max_features=40, **options)
    for most in (300, enough.info["n_features"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            found = fk.kpca(X, "gaussian", 2, max_features=most, **options)
        assert found.plan.name == "fourier" and found.info["n_features"] <= most

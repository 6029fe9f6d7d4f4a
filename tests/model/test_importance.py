"""Importance of variables: against squared loadings, differences of the scores, and what was put into the data."""

import numpy as np
import pytest
from option_cases import differences
from quiet import silent

import fastkpca as fk
from fastkpca import get_kernel


def rows(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(2.0, 0.4, d)
    X[:, -1] += 0.3 * X[:, 0]
    return X


@pytest.mark.parametrize("method", ["dense", "krylov", "features"])
def test_linear_importance_is_the_squared_loading(method):
    X = rows() + 3.0
    _, _, V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    model = fk.kpca(X, "linear", 3, method=method)
    which = fk.kpca_importance(model, X)
    np.testing.assert_allclose(which.squared_gradients, V[:3] ** 2, rtol=0, atol=1e-12)
    np.testing.assert_allclose(which.importance, V[:3] ** 2 * X.var(axis=0), rtol=0, atol=1e-11)
    np.testing.assert_array_equal(which.sign, np.sign(which.mean_gradients))
    np.testing.assert_allclose(np.abs(which.mean_gradients), np.abs(V[:3]), rtol=0, atol=1e-12)


LAPLACIAN = get_kernel("laplacian", length_scale=3.0)
NOT_IN_THE_ATTACK = [
    LAPLACIAN,
    get_kernel("matern", nu=2.2, length_scale=2.0),
    get_kernel("cosine"),
    (get_kernel("gaussian", sigma=2.0) + get_kernel("linear")) * LAPLACIAN * (2.0 * get_kernel("matern")),
]
ROUTES = [{"method": "dense"}, {"method": "krylov"}] + [
    {"method": "features", "features": name} for name in ("auto", "pivots", "fourier", "monomial")
]


@pytest.mark.parametrize("kernel", NOT_IN_THE_ATTACK, ids=repr)
def test_gradients_are_those_of_the_scores_on_every_route(kernel):
    tried = 0
    for route in ROUTES:
        X, new = rows(), rows(40, seed=1)
        if route.get("features") == "fourier":
            X, new = X[:, :2], new[:, :2]
        try:
            model = silent(fk.kpca, X, kernel, 3, **route)  # a map forced on few rows
        except (ValueError, fk.errors.NoRouteError):
            assert route["method"] != "dense"
            continue
        tried += 1
        new = new[(np.abs(new[:, None] - X).min(axis=(1, 2)) > 3e-5)]  # away from the edges of the Laplacian
        G = differences(model, new, 1e-5 if "Laplacian" in repr(kernel) else 1e-4)
        which = fk.kpca_importance(model, new)
        scale = np.abs(G).max()
        np.testing.assert_allclose(which.mean_gradients, G.mean(axis=0), rtol=0, atol=1e-6 * scale)
        np.testing.assert_allclose(which.squared_gradients, (G**2).mean(axis=0), rtol=0, atol=1e-6 * scale**2)
        np.testing.assert_allclose(which.importance, which.squared_gradients * new.var(axis=0), rtol=1e-9)
        clear = np.abs(G) > 1e-6 * scale
        np.testing.assert_allclose(which.positive, (G > 0).mean(axis=0), atol=1.5 / len(new) + (~clear).mean())
    assert tried >= 2


class Cubed(fk.kernels.Kernel):
    """A kernel of a plugin that knows no derivative: (1 + x.y)^3 in disguise."""

    api_version = 1
    positive_semidefinite = True

    def block(self, X, Y):
        return (1.0 + X @ Y.T) ** 3


def test_a_kernel_without_a_derivative_is_differentiated_by_differences():
    X = rows()
    known = fk.kpca_importance(fk.kpca(X, "polynomial", 2, method="dense"), X)
    for kernel in (Cubed(), 0.5 * Cubed() + 0.5 * get_kernel("polynomial")):
        found = fk.kpca_importance(fk.kpca(X, kernel, 2, method="dense"), X)
        np.testing.assert_allclose(found.importance, known.importance, rtol=1e-7, atol=1e-7 * known.importance.max())


def relevant(seed):
    """Three of 20 columns are noisy functions of one variable, the others are noise of the same spread."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 20))
    t = rng.uniform(-1.5, 1.5, 300)
    X[:, [4, 9, 16]] = np.column_stack([np.sinh(t), np.tanh(2 * t), np.exp(t)]) + 0.5 * rng.standard_normal((300, 3))
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("method", ["gradient", "permutation"])
def test_three_relevant_of_twenty_come_first(method):
    right = 0
    for seed in range(20):
        X = relevant(seed)
        model = fk.kpca(X, "gaussian", 2, sigma=5.0, method="dense")
        which = fk.kpca_importance(model, X, method=method)
        right += set(which.ranking()[:3]) == {4, 9, 16}
    assert right >= 18


def test_permutation_is_half_the_mean_squared_change():
    X = rows(2000)
    model = fk.kpca(X, "linear", 2)
    which = fk.kpca_importance(model, X, method="permutation")
    expected = model.projector.axes.T**2 * X.var(axis=0)
    assert (np.abs(which.importance - expected) <= 5 * which.standard_errors).all()
    assert (which.standard_errors <= 0.1 * expected.max()).all()
    with pytest.raises(ValueError, match="method='gradient'"):
        _ = which.sign
    again = fk.kpca_importance(model, X, method="permutation", n_threads=1)
    np.testing.assert_array_equal(again.importance, which.importance)


@pytest.mark.parametrize("method", ["gradient", "permutation"])
def test_a_weight_counts_a_row_so_many_times(method):
    X, weights = rows(150), np.random.default_rng(3).integers(0, 4, 150)
    model = fk.kpca(X, "gaussian", 2, sigma=2.0, sample_weight=weights, method="dense")
    held = fk.kpca_importance(model, method=method)
    given = fk.kpca_importance(model, X, sample_weight=weights, method=method)
    repeated = fk.kpca_importance(model, np.repeat(X, weights, axis=0), method=method)
    if method == "gradient":
        for other in (given, repeated):
            np.testing.assert_allclose(other.importance, held.importance, rtol=1e-10)
            np.testing.assert_allclose(other.positive, held.positive, rtol=1e-10)
    for other in (given, repeated):
        np.testing.assert_allclose(other.spread, held.spread, rtol=1e-12)
        np.testing.assert_allclose(other.importance, held.importance, rtol=0.6, atol=0.2 * held.importance.max())


def test_names_constant_columns_and_rankings():
    pandas = pytest.importorskip("pandas")
    X = rows()
    X[:, 2] = 7.0
    frame = pandas.DataFrame(X, columns=["length", "width", "colour", "age"])
    which = fk.kpca_importance(fk.kpca(frame, "gaussian", 2, sigma=2.0), frame)
    assert which.names == ("length", "width", "colour", "age")
    assert which.importance[:, 2].tolist() == [0.0, 0.0] and which.spread[2] == 0.0
    assert which.ranking()[-1] == 2 and "length" in repr(which)
    np.testing.assert_allclose(which.share.sum(axis=1), 1.0)
    assert fk.kpca_importance(fk.kpca(X, "gaussian", 2, sigma=2.0), X).names[1] == "column 1"
    jumping = fk.kpca_importance(fk.kpca(rows(), "polynomial", 4, degree=2), rows())
    assert (jumping.sign == 0).any() and set(np.unique(jumping.sign)) <= {-1, 0, 1}


@pytest.mark.parametrize("method", ["gradient", "permutation"])
def test_extreme_rows_and_weights(method):
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = fk.kpca(X, "gaussian", 2, sigma=2.0)
    with pytest.raises(ValueError, match="leave the range of float64"):
        fk.kpca_importance(model, 1e200 * X, method=method)
    plain = fk.kpca_importance(model, X, method=method, sample_weight=np.ones(60))
    for size in (1e-320, 1e90):
        found = fk.kpca_importance(model, X, method=method, sample_weight=np.full(60, size))
        np.testing.assert_allclose(found.importance, plain.importance, rtol=1e-2)
    with pytest.raises(ValueError, match="lie far from those that the model was fitted on"):
        fk.kpca_importance(model, 1e3 * X + 1e5, method=method)

"""Every fast product of the Gaussian through ``fk.gram``: the tolerance, entry by entry, against long double.

The dimensions, layouts and scales of tests/support/product_cases.py and others, all columns of small matrices.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from reference import long_gaussian

import fastkpca as fk
from fastkpca.kernels import Kernel
from fastkpca.products.matrix import gram_matrix
from fastkpca.rows.view import Rows

LONG = np.longdouble
NAMES = ("auto", "expansion", "grid", "clusters")
LAYOUTS = (
    "uniform",
    "clustered",
    "collinear",
    "duplicates",
    "outliers",
    "far clusters",
    "offset",
    "flat axes",
    "lattice",
    "sphere",
    "inside",
    "away",
    "corners",
)


def points(layout, d, n, rng):
    """(targets, sources or None)."""
    X = rng.random((n, d))
    if layout == "clustered":
        return rng.random((6, d))[rng.integers(0, 6, n)] + 10.0 ** rng.uniform(-7, -1) * rng.standard_normal(
            (n, d)
        ), None
    if layout == "collinear":
        return X[:, :1] * rng.standard_normal(d) + 1e-9 * rng.standard_normal((n, d)), None
    if layout == "duplicates":
        return X[rng.integers(0, max(1, n // 10), n)], None
    if layout == "outliers":
        X[: max(1, n // 50)] *= 10.0 ** rng.uniform(1, 7)
    elif layout == "far clusters":
        X += 10.0 ** rng.uniform(1, 9) * rng.standard_normal((3, d))[rng.integers(0, 3, n)]
    elif layout == "offset":
        X += 10.0 ** rng.uniform(2, 8)
    elif layout == "flat axes":
        X[:, rng.random(d) < 0.6] = 1.5
    elif layout == "lattice":  # on the borders of boxes
        X = np.round(8 * X) / 8
    elif layout == "sphere":
        X -= 0.5
        X /= np.maximum(np.linalg.norm(X, axis=1), 1e-9)[:, None]
    elif layout == "inside":  # targets deep inside tight clusters of sources, and at their centres
        centers = rng.random((6, d))
        Y = centers[rng.integers(0, 6, n)] + 0.02 * rng.uniform(-1, 1, (n, d))
        near = centers[rng.integers(0, 6, n // 2)] + 0.002 * rng.uniform(-1, 1, (n // 2, d))
        return np.concatenate([centers, near]), Y
    elif layout == "away":
        return np.concatenate([X[: n // 2 + 1] + 1.5, 40 * X[n // 2 :] - 20]), X
    elif layout == "corners":
        return np.round(X), X
    return X, None


def excess(V, exact_V, U):
    """Largest error over sum |u|, the reference's own rounding to float64 left out."""
    error = np.abs(V - exact_V) - 2.0**-53 * np.abs(exact_V)
    return float((error / np.abs(U).sum(axis=0)).max())


def cell(rng):
    d, layout = int(rng.choice([1, 2, 2, 3, 3, 4, 5, 8])), str(rng.choice(LAYOUTS))
    n = int(rng.integers(1, 4)) if rng.random() < 0.05 else int(np.exp(rng.uniform(np.log(20), np.log(400))))
    X, Y = points(layout, d, n, rng)
    if rng.random() < 0.1:
        X, Y = X.astype(np.float32), None if Y is None else Y.astype(np.float32)
    side = 1.0 if layout == "far clusters" else float(np.ptp(X, axis=0).max()) or 1.0
    sigma = side * 10.0 ** (rng.uniform(-2, 1) if rng.random() < 0.75 else rng.uniform(-6, 6))
    return layout, X, Y, sigma, 10.0 ** rng.uniform(-13.5, -0.4)


def test_every_product_keeps_the_tolerance(attack):
    answers = dict.fromkeys(NAMES, 0)
    for case in range(attack.count(1500, least=30)):
        rng = attack.rng("products", case)
        layout, X, Y, sigma, tol = cell(rng)
        K = long_gaussian(X, X if Y is None else Y, sigma)
        m = K.shape[1]
        # single sources and sums, of sizes sixteen orders apart in one call, a zero column between them
        U = np.zeros((m, m + 3))
        U[np.arange(m), np.arange(m)] = 10.0 ** rng.uniform(-8, 8, m)
        U[:, m] = 1e8 * rng.choice([-1.0, 1.0], m)
        U[:, m + 1] = rng.standard_normal(m)
        U = U[:, rng.permutation(m + 3)]
        A = rng.standard_normal((len(X), 3)) * 10.0 ** rng.uniform(-4, 4, 3)
        some = np.abs(U).sum(axis=0) > 0
        for name in NAMES:
            where = f"case {case}: {name}, {layout}, {K.shape} d={X.shape[1]} {X.dtype} sigma={sigma:.3g} tol={tol:.2g}"
            try:
                ours = fk.gram(X, "gaussian", Y, sigma=sigma, tol=tol, products=name, n_threads=1)
            except ValueError as error:
                assert "offers no products" in str(error) or "keep for certain" in str(error), where
                continue
            answers[name] += 1
            V, W = ours @ U, ours.T @ A
            assert np.isfinite(V).all() and not V[:, ~some].any(), where
            assert ours.error_bound <= tol, where
            assert excess(V[:, some], K @ U[:, some].astype(LONG), U[:, some]) <= tol, where
            assert excess(W, K.T @ A.astype(LONG), A) <= tol, where
            # its adjoint, to rounding
            scaled = U[:, some] / np.abs(U[:, some]).sum(axis=0)
            size = np.abs(A).sum(axis=0)[:, None]
            gap = float(np.abs((A.T @ (ours @ scaled) - W.T @ scaled) / size).max())
            assert gap <= 1e-13, where
            if case % 3 == 0:
                again = fk.gram(X, "gaussian", Y, sigma=sigma, tol=tol, products=name, n_threads=2)
                assert np.array_equal(again @ U, V), where
    assert min(answers.values()) >= 5, answers


def test_long_sums_of_equal_terms():
    """Equal points with equal values: rounding of one long sum would go one way, term after term."""
    n, sigma, tol = 100000, 0.3, 2e-13
    X = np.repeat(np.random.default_rng(0).random((5, 1)), n // 5, axis=0)
    K = fk.gram(X, "gaussian", sigma=sigma, tol=tol, products="grid", n_threads=1)
    few = X[:: n // 5]
    for value in (0.1, 1 / 3, 0.7):
        V = (K @ np.full((n, 1), value))[:: n // 5, 0]
        error = np.abs(V - long_gaussian(few, few, sigma).sum(axis=1) * (n // 5) * LONG(value))
        assert float(error.max()) <= tol * n * value


def test_what_moving_the_rows_costs_comes_out_of_the_tolerance():
    """Clusters a million sigma apart: subtracting the mean moves rows by units of that distance."""
    for case in (1, 2, 3, 4, 5, 6, 86):
        rng = np.random.default_rng([case, 11])
        d, n, far = int(rng.integers(1, 4)), int(rng.integers(100, 400)), 10.0 ** rng.uniform(5, 10)
        X = far * rng.standard_normal((2, d))[rng.integers(0, 2, n)]
        X += rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 0.5)
        with pytest.raises(ValueError, match="keep for certain") as refused:
            fk.gram(X, "gaussian", sigma=1.0, tol=1e-15)
        least = float(re.search(r"is below ([0-9.e+-]+)", str(refused.value)).group(1))
        tol = min(least * rng.uniform(1.02, 4.0), 0.45)
        K = long_gaussian(X, X, 1.0)
        for name in ("auto", "clusters"):
            try:
                ours = fk.gram(X, "gaussian", sigma=1.0, tol=tol, products=name, n_threads=1)
            except ValueError as error:
                assert "offers no products" in str(error)
                continue
            assert float(np.abs(ours @ np.eye(n) - K).max()) <= tol, (case, name)


def test_the_total_variance_knows_of_the_products_error():
    """The trace of the centred matrix is found by a product, so its interval holds what that errs by."""
    X = np.random.default_rng(3).random((64, 2))
    K = long_gaussian(X, X, 0.6)
    exact_trace = float(np.trace(K) - K.mean() * len(X))
    model = fk.kpca(X, "gaussian", 5, sigma=0.6, tol=1e-2, products="grid", n_threads=1)
    low, high = (x * (len(X) - 1) for x in model.total_variance_bounds)
    assert low <= exact_trace <= high


def test_features_that_are_too_many_are_refused():
    X = np.random.default_rng(0).random((400, 2))
    with pytest.raises(ValueError, match="at most 100 features"):
        fk.features(X, "gaussian", sigma=0.1, tol=1e-6, features="fourier", max_features=100)


@pytest.mark.parametrize("n", [2, 8, 40])
def test_never_more_components_than_centred_rows_have_directions(n):
    X = np.random.default_rng(n).random((n, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fk.kpca(X, "gaussian", None, sigma=0.3, tol=1e-2, method="features", features="fourier")
    assert model.n_components < n
    assert np.abs(model.coeff.sum(axis=0)).max() <= 1e-12 * np.abs(model.coeff).sum(axis=0).max()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200, 600])
def test_the_whole_matrix_is_symmetric_to_the_bit(n):
    """A kernel from outside may round its two halves differently: the lower one of each tile on the diagonal counts."""

    class Uneven(Kernel):
        positive_semidefinite = False

        def block(self, X, Y):
            return np.cos(np.outer(X[:, 0], Y[:, 0])) + 1e-16 * (X - Y.T)

    X = np.random.default_rng(n).standard_normal((n, 1))
    K, tile = gram_matrix(Uneven(), Rows(X)), Uneven().block(X, X)
    assert np.array_equal(K, K.T)
    if n <= 512:
        assert np.array_equal(np.tril(K), np.tril(tile))
    assert np.abs(K - tile).max() <= 1e-14

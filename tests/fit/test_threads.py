"""Every route, product and pass gives the same bits at any number of threads."""

import numpy as np
import pytest
import second_order_calls
from good_kernels import Cauchy
from quiet import silent

import fastkpca as fk
from fastkpca.maps.monomial import PolynomialMap
from fastkpca.maps.passes import accumulate, apply, feature_moments
from fastkpca.rows.view import Rows

RNG = np.random.default_rng(0)
X, SQUARE, U = RNG.standard_normal((30_000, 3)), RNG.random((98_400, 2)), RNG.standard_normal((98_400, 4))
COPIES = np.concatenate([X[:1500] * [1.0, 1e-9, 0.0], X[:1500]])
CUBIC = PolynomialMap(6, 3, 1.0, 1.0)


def numbers(model):
    return [model.eigenvalues, model.eigenvalue_bounds, np.asarray(model.score)]


def fit(rows, kernel, c=4, **options):
    return lambda n_threads: numbers(silent(fk.kpca, rows, kernel, c, n_threads=n_threads, **options))


def few_features(how):
    call = second_order_calls.Call(X[:3000], 3, {"sigma": 2.5, "max_features": 60}, how=how, count=600)
    return lambda n_threads: numbers(second_order_calls.fitted(call, 0, 1e-3, n_threads=n_threads))


def product(products, rows=X[:3000], kernel="gaussian", other=None, tol=1e-6, **parameters):
    def call(n_threads):
        K = fk.gram(rows, kernel, other, products=products, tol=tol, n_threads=n_threads, **parameters)
        return [K @ U[: K.shape[1]], K @ U[: K.shape[1], 0], K.T @ U[: K.shape[0]]]

    return call


def passes(n_threads):
    rows = Rows(X.reshape(-1, 6))
    moments = [feature_moments(CUBIC, rows, n_threads=n_threads, quick=quick) for quick in (False, True)]
    C = np.ones((CUBIC.n_features, 2))
    found = [x for m in moments for x in (m.dense(), m.mean)]
    return [*found, accumulate(CUBIC, rows, U[: len(rows)], n_threads), apply(CUBIC, rows, C, n_threads)]


CALLS = {
    "moments and passes": passes,
    "monomial": fit(X, "polynomial", degree=3),
    "pivots": fit(X[:9000] * 3.0, "gaussian", sigma=3.0, features="pivots", tol=1e-4),
    "second round of pivots": fit(X[:20_000] + 40.0 * (RNG.random((20_000, 1)) < 0.003), "gaussian", features="pivots"),
    "a sample of what pivots leave out": fit(X, "gaussian", sigma=2.5, max_features=100),
    "rows of what pivots leave out": few_features("rows"),
    "a pass over what pivots leave out": few_features("pass"),
    "fourier": fit(SQUARE[:40_000], "gaussian", 3, sigma=0.3, features="fourier"),
    "small": fit(X[:500], "gaussian", 6, sigma=1.0),
    "dense": fit(X[:600], "gaussian", sigma=1.0, method="dense", tol=1e-12),
    **{
        f"krylov, {kernel}": fit(X[:2500] / 3.0, kernel, method="krylov", products="exact", tol=1e-4)
        for kernel in ("gaussian", "polynomial", "tanh", "linear", Cauchy())
    },
    "near values": fit(SQUARE[:2500], "gaussian", sigma=0.02, method="krylov", tol=1e-4),
    **{
        f"exact, {kernel}": product("exact", X[:2100], kernel, other, None)
        for kernel, other in (("gaussian", None), ("tanh", None), ("polynomial", X[:900]), (Cauchy(), X[:900]))
    },
    "expansion": product("expansion", sigma=3.0),
    **{f"grid, {sigma}": product("grid", SQUARE, sigma=sigma) for sigma in (0.1, 3.0)},
    "clusters": product("clusters", COPIES, sigma=0.03),
    "sorted": product("sorted", X[:, :1], "matern", nu=0.5, length_scale=0.2),
    "split": product("split", X[:3000, :2], "matern", tol=1e-5, nu=0.5, length_scale=0.2),
    "clusters of two sets": product("clusters", X[:3000], other=COPIES[:1700] + 1e-3, sigma=0.03),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_bits(name):
    first, *others = (CALLS[name](n_threads) for n_threads in (1, 2, 5))
    for other in others:
        for one, two in zip(first, other, strict=True):
            np.testing.assert_array_equal(one, two)

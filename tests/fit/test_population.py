"""Intervals for a population: against finite populations, whose every mean is known exactly, and what is refused.

A population of M points, drawn from with replacement: its covariance in feature space has the eigenvalues of H K H / M.
"""

import numpy as np
import pytest

import fastkpca as fk

M, SIGMA = 400, 1.2
LAWS = {
    "normal": lambda rng: rng.standard_normal((M, 2)) * [2.0, 1.0],
    "heavy tails": lambda rng: rng.standard_t(1.5, (M, 2)),
    "a rare cluster": lambda rng: np.where(np.arange(M)[:, None] < 8, 6.0, 0.3 * rng.standard_normal((M, 2))),
}


def gram(X, Y):
    return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=-1) / (2 * SIGMA**2))


def truths(P, model, train, k):
    """(sums of the k largest variances; variances along the first k components of a model that holds its rows; the
    total; the mean SPE), by matrices of all points."""
    K = gram(P, P)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    leading = np.cumsum(np.linalg.eigvalsh(K)[::-1][:k]) / M
    T, C = gram(train, train), gram(P, train)
    A = model.coeff - model.coeff.mean(axis=0)
    z = (C - T.mean(axis=0)) @ A
    along = [np.einsum("ij,ij->", d @ np.linalg.inv(A[:, :j].T @ T @ A[:, :j]), d) / M
             for j in range(1, k + 1) for d in [z[:, :j] - z[:, :j].mean(axis=0)]]  # fmt: skip
    centred = 1.0 - 2.0 * C.mean(axis=1) + T.mean()
    G = A.T @ T @ A
    spe = np.mean(centred - np.einsum("ij,jk,ik->i", z, np.linalg.inv(G), z))
    return leading, np.array(along), np.trace(K) / M, spe


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [40, 300])
def test_no_interval_fails_more_often_than_stated(law, n, attack):
    rng, k, draws = attack.rng(f"population {law} {n}"), 3, attack.count(1000, least=20)
    P = LAWS[law](rng)
    missed = np.zeros((draws, 8))
    for i in range(draws):
        train, new = (P[rng.integers(M, size=n)] for _ in range(2))
        model = fk.kpca(train, "gaussian", k, sigma=SIGMA, method="dense")
        found = fk.kpca_population(model, new, level=0.8, spectrum=[None, model][i % 2], rng=i)
        leading, along, total, spe = truths(P, model, train, k)
        ends = [
            (found.leading_variance[0], leading[0]),
            (found.leading_variance[2], leading[2]),
            (found.explained_variance[0], along[0]),
            (found.explained_variance[2], along[2]),
            (found.explained[0], 100 * along[0] / total),
            (found.explained[2], 100 * along[2] / total),
            (found.total_variance, total),
            (found.mean_spe, spe),
        ]
        missed[i] = [not low <= value <= high for (low, high), value in ends]
    # 20 % may fail; five standard errors of so many draws
    assert (missed.mean(axis=0) <= 0.2 + 5 * np.sqrt(0.16 / draws)).all()


def test_intervals_shrink_with_the_rows_and_agree_between_kinds_of_models():
    rng = np.random.default_rng(0)
    train = rng.standard_normal((1000, 2))
    few, many = rng.standard_normal((500, 2)), rng.standard_normal((8000, 2))
    found = {}
    for name, options in {
        "dense": {"method": "dense"},
        "pivots": {"method": "features", "features": "pivots"},
        "fourier": {"method": "features", "features": "fourier"},
        "krylov": {"method": "krylov"},
    }.items():
        model = fk.kpca(train, "gaussian", 4, sigma=SIGMA, tol=1e-8, **options)
        found[name] = fk.kpca_population(model, many)
        widths = [np.ptp(fk.kpca_population(model, X).leading_variance, axis=1) for X in (few, many)]
        assert (widths[1] < 0.4 * widths[0]).all(), name
    for other in found.values():
        for name in ("leading_variance", "explained_variance", "explained", "total_variance"):
            np.testing.assert_allclose(getattr(other, name), getattr(found["dense"], name), rtol=1e-3)


def test_a_linear_kernel_takes_what_the_process_can_give():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (3000, 2)) * [3.0, 1.0]
    model = fk.kpca(X[:1500], "linear", 2)
    with pytest.raises(ValueError, match=r"give squared_diameter=") as refused:
        fk.kpca_population(model, X[1500:])
    assert "k(x, x) + k(y, y) - 2 k(x, y)" in str(refused.value)
    found = fk.kpca_population(model, X[1500:], squared_diameter=36.0 + 4.0, spectrum=model)
    low, high = found.leading_variance.T
    assert (low < [3.0, 3.0 + 1 / 3]).all() and (high > [3.0, 3.0 + 1 / 3]).all() and (high - low < 1.1).all()
    with pytest.raises(ValueError, match="two rows of X have the squared distance"):
        fk.kpca_population(model, X[1500:], squared_diameter=10.0)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "matern", "rational_quadratic"])
def test_kernels_without_negative_values_have_the_smaller_diameter(kernel):
    X = np.random.default_rng(0).standard_normal((400, 2))
    model = fk.kpca(X[:200], kernel, 2)
    bounded = fk.kpca_population(model, X[200:])
    assert (fk.kpca_population(model, X[200:], squared_diameter=2.0).leading_variance == bounded.leading_variance).all()
    double = fk.kpca(X[:200], 3.0 * fk.get_kernel(kernel), 2)
    np.testing.assert_allclose(
        fk.kpca_population(double, X[200:]).leading_variance, 3.0 * bounded.leading_variance, rtol=1e-3
    )


def test_what_is_refused():
    X = np.random.default_rng(0).standard_normal((300, 2))
    model = fk.kpca(X[:150], "gaussian", 3, sigma=1.0)
    with pytest.raises(ValueError, match="X are the rows that the model was made of"):
        fk.kpca_population(model, X[:150])
    with pytest.raises(ValueError, match="X has 19 rows; give at least 20"):
        fk.kpca_population(model, X[150:169])
    weighted = fk.kpca(X[:150], "gaussian", 3, sigma=1.0, sample_weight=np.ones(150))
    with pytest.raises(ValueError, match="fit without sample_weight"):
        fk.kpca_population(weighted, X[150:])
    with pytest.raises(ValueError, match="fit with center=True"):
        fk.kpca_population(fk.kpca(X[:150], "gaussian", 3, sigma=1.0, center=False), X[150:])
    with pytest.raises(ValueError, match="no positive semidefinite kernel"):
        fk.kpca_population(fk.kpca(X[:150], "tanh", 3), X[150:])
    with pytest.raises(ValueError, match="level is 1"):
        fk.kpca_population(model, X[150:], level=1)
    other = fk.kpca(X, "gaussian", 3, sigma=2.0)
    with pytest.raises(ValueError, match="fit both with one kernel"):
        fk.kpca_population(model, X[150:], spectrum=other)
    scaled = fk.kpca(X[:150], "gaussian", 3, sigma=1.0, standardize=True)
    with pytest.raises(ValueError, match="its scales come from its own rows"):
        fk.kpca_population(scaled, X[150:], spectrum=scaled)
    assert fk.kpca_population(scaled, X[150:]).n_spectrum == 150
    few = {"features": "pivots", "max_features": 20, "tol": 1e-2}  # so few that their residual is bounded by a sample
    loose = fk.kpca(X, "gaussian", 3, sigma=1.0, failure_probability=0.3, **few)
    assert loose.failure_probability == 0.15
    with pytest.raises(ValueError, match=r"give a level below 0\.7$"):
        fk.kpca_population(model, X[150:], spectrum=loose)
    assert fk.kpca_population(model, X[150:], spectrum=loose, level=0.69).n_spectrum == 300


def test_more_components_than_the_rows_of_the_spectrum_have():
    X = np.random.default_rng(0).standard_normal((80, 4))
    model = fk.kpca(X[:60], "gaussian", 40, sigma=1.0)
    found = fk.kpca_population(model, X[60:])
    assert found.leading_variance.shape == (40, 2)
    assert (np.diff(found.leading_variance, axis=1) > 0).all() and np.isfinite(found.leading_variance).all()

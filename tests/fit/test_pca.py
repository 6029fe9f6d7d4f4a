"""pca: the linear case against LAPACK, primal and dual."""

import numpy as np
import pytest
from data import look
from peak import traced
from sklearn.decomposition import PCA

import fastkpca as fk


def sample(n, d, seed=0, offset=3.0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.linspace(3.0, 0.5, d) + offset


@pytest.mark.parametrize(
    ("n", "d", "method"), [(2000, 7, "features"), (60, 3000, "dense"), (50, 50, None), (30, 1, None)]
)
def test_pca_is_scikit_learns(n, d, method):
    X = sample(n, d)
    c = min(5, d)
    model = fk.pca(X, c)
    assert method is None or model.plan.method == method
    reference = PCA(c, svd_solver="full").fit(X)
    np.testing.assert_allclose(model.latent, reference.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(model.explained, 100 * reference.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(model.score), np.abs(reference.transform(X)), atol=1e-8)
    axes = (X - X.mean(axis=0)).T @ model.coeff
    np.testing.assert_allclose(np.abs(axes.T), np.abs(reference.components_), atol=1e-8)
    new = sample(9, d, 1)
    np.testing.assert_allclose(np.abs(fk.kpca_project(model, new)), np.abs(reference.transform(new)), atol=1e-8)


def test_all_components_and_a_fraction():
    X = sample(12, 40)
    assert fk.pca(X).n_components == 11
    assert fk.pca(sample(100, 6)).n_components == 6
    model = fk.pca(sample(100, 6), 0.9)
    assert model.explained.sum() >= 90 > model.explained[:-1].sum()


def test_many_columns_are_never_squared():
    """20000 columns: their covariance alone would take 3.2 GB."""
    X, models = sample(40, 20_000), []
    assert traced(lambda: models.append(fk.pca(X, 3))) < 200e6
    exact = np.linalg.eigvalsh((X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T)[::-1][:3]
    np.testing.assert_allclose(models[0].eigenvalues, exact, rtol=1e-10)
    assert fk.kpca(X, "gaussian", 2).n_components == 2


def test_wide_rows_have_the_mean_and_the_box_of_their_tiles():

    X = sample(700, 1500, offset=1e3)
    data = look(X)[1]
    np.testing.assert_allclose(data.shift, X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(data.box + data.shift, [X.min(axis=0), X.max(axis=0)], rtol=1e-12)
    assert data.radius == pytest.approx(np.linalg.norm(X - X.mean(axis=0), axis=1).max(), rel=1e-12)


def test_no_other_kernel():
    with pytest.raises(TypeError, match="pca has no kernel"):
        fk.pca(sample(10, 3), 2, kernel="gaussian")
    with pytest.raises(TypeError, match="n_components is called c"):
        fk.pca(sample(10, 3), n_components=2)

"""center=False: kernel PCA about the origin of feature space, against LAPACK on the Gram matrix as it is."""

from __future__ import annotations

import numpy as np
import pytest
from reference import gram
from scipy import stats

import fastkpca as fk


def sample(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + np.linspace(2.0, 0.0, d), rng.integers(0, 4, n).astype(float)


def test_as_many_components_as_rows():
    X, _ = sample(12)
    model = fk.kpca(X, "gaussian", None, sigma=0.5, center=False)
    assert model.n_components == 12
    assert abs(model.explained.sum() - 100.0) < 1e-9
    many = fk.kpca(X, "gaussian", 12, sigma=0.5, center=False, method="krylov")
    np.testing.assert_allclose(many.eigenvalues, model.eigenvalues, rtol=1e-6)


def test_a_fraction_on_every_route():
    X, _ = sample()
    values = np.linalg.eigvalsh(gram("gaussian", X, sigma=0.7))[::-1]
    needed = int(np.argmax(np.cumsum(values) >= 0.9 * values.sum())) + 1
    for method in ("dense", "krylov", "features"):
        assert fk.kpca(X, "gaussian", 0.9, sigma=0.7, center=False, method=method).n_components == needed


def test_pre_images_of_the_gaussian_come_back():
    X, _ = sample(80)
    model = fk.kpca(X, "gaussian", 60, sigma=1.0, center=False)
    np.testing.assert_allclose(fk.kpca_preimage(model, model.score), X, atol=0.02)


def test_the_limit_of_t2_is_that_of_known_means():
    X, _ = sample()
    model = fk.kpca(X, "linear", 2, center=False)
    limit = fk.kpca_limits(model, X + 0.1, confidence=0.9, t2="F").t2
    assert limit == pytest.approx(2 * 300 / 299 * stats.f.ppf(0.9, 2, 299))


def test_what_it_says_and_what_contradicts_it():
    X, _ = sample()
    first = fk.kpca(X, "polynomial", 3, degree=2, center=False, keep_moments=True)
    assert "not centred" in repr(first) and fk.kpca(X, like=first).center is False
    with pytest.raises(ValueError, match="center=True was asked for, and the model given as like was made with center"):
        fk.kpca(X, like=first, center=True)
    with pytest.raises(TypeError, match="center is 0; give True or False"):
        fk.kpca(X, center=0)

"""center=False: kernel PCA about the origin of feature space, against LAPACK on the Gram matrix as it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import fastkpca as fk

KERNELS = {
    "gaussian": {"sigma": 0.7},
    "polynomial": {"degree": 3, "offset": 1.0},
    "linear": {},
    "tanh": {"scale": 0.1},
}
ROUTES = {
    "dense": {"method": "dense"},
    "krylov": {"method": "krylov"},
    "pivots": {"features": "pivots"},
    "monomial": {"features": "monomial"},
    "fourier": {"features": "fourier"},
    "grid": {"products": "grid"},
}
CASES = [
    (kernel, route)
    for kernel in KERNELS
    for route in ROUTES
    if (kernel != "tanh" or route in ("dense", "krylov"))
    and (kernel == "gaussian" or route not in ("fourier", "grid"))
    and (kernel, route) != ("gaussian", "monomial")
]


def sample(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + np.linspace(2.0, 0.0, d), rng.integers(0, 4, n).astype(float)


def gram_matrix(kernel, X):
    return np.asarray(fk.get_kernel(kernel, **KERNELS[kernel]).block(X, X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kernel", "route"), CASES)
def test_eigenvalues_scores_and_errors_are_those_of_the_gram_matrix(kernel, route, weighted):
    X, w = sample()
    K = gram_matrix(kernel, X)
    root = np.sqrt(w) if weighted else np.ones(len(X))
    values, vectors = np.linalg.eigh(root[:, None] * K * root)
    values = values[::-1][:3]
    model = fk.kpca(
        X, kernel, 3, center=False, tol=1e-6 if route in ("fourier", "grid") else 1e-8,
        sample_weight=w if weighted else None, **ROUTES[route], **KERNELS[kernel],
    )  # fmt: skip
    slack = 1e-12 * np.abs(K).max() * len(X)
    low, high = model.eigenvalue_bounds.T
    assert (low - slack <= values).all() and (values <= high + slack).all()
    np.testing.assert_allclose(model.eigenvalues, values, atol=1e-6 * values[0])
    count = float(root @ root)
    np.testing.assert_allclose(model.latent, model.eigenvalues / count)
    total = root @ (np.diag(K) * root) / count
    low, high = model.total_variance_bounds
    assert low * (1 - 1e-12) <= total <= high * (1 + 1e-12)
    v = vectors[:, ::-1][:, :3] * np.sqrt(values)
    present = root > 0
    reference = v[present] / root[present, None]
    scores = fk.kpca_project(model, X)[present]
    np.testing.assert_allclose(np.abs(scores), np.abs(reference), atol=2e-3 * np.abs(reference).max())
    np.testing.assert_allclose(model.score, fk.kpca_project(model, X), atol=1e-9 * np.abs(scores).max())
    np.testing.assert_allclose(K @ model.coeff, model.score, atol=1e-4 * np.abs(scores).max())
    if kernel != "tanh":
        spe, interval = fk.kpca_spe(model, X, bounds=True)
        exact = np.diag(K) - np.sum(fk.kpca_project(model, X) ** 2, axis=1)
        assert (interval[:, 0] <= exact + 1e-12 * K.max()).all() and (exact <= interval[:, 1] + 1e-12 * K.max()).all()
        np.testing.assert_allclose(spe, exact, atol=1e-6 * K.max())


def test_as_many_components_as_rows():
    X, _ = sample(12)
    model = fk.kpca(X, "gaussian", None, sigma=0.5, center=False)
    assert model.n_components == 12
    assert abs(model.explained.sum() - 100.0) < 1e-9
    many = fk.kpca(X, "gaussian", 12, sigma=0.5, center=False, method="krylov")
    np.testing.assert_allclose(many.eigenvalues, model.eigenvalues, rtol=1e-6)


def test_a_fraction_on_every_route():
    X, _ = sample()
    values = np.linalg.eigvalsh(gram_matrix("gaussian", X))[::-1]
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

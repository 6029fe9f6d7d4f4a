"""standardize=True: columns without mean over their standard deviations; center=False: about the origin."""

import numpy as np
import pytest
from reference import gram
from scipy import stats

import fastkpca as fk
from fastkpca.errors import ScalesWarning


def sample(n=300, seed=0):
    """Rows with one constant column, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) * [1.0, 10.0, 0.1, 0.0] + [5.0, 0.0, 2.0, 0.1]
    return X, rng.integers(0, 4, n).astype(float)


def standard_scores(X, w):
    rows = np.repeat(X, w.astype(int), axis=0).astype(np.longdouble)
    mean, scale = rows.mean(axis=0), rows.std(axis=0, ddof=1)
    scale[scale < 1e-12] = 1.0
    return ((X - mean) / scale).astype(float), scale.astype(float)


def test_constant_columns_become_zero():
    X, _ = sample()
    model = fk.kpca(X, "gaussian", 2, standardize=True)
    assert model.scale[3] == 1.0
    moved = X[:5] + [0.0, 0.0, 0.0, 2.0]
    assert not np.allclose(fk.kpca_project(model, moved), model.score[:5])
    with pytest.raises(ValueError, match="rows of X"):
        fk.kpca(np.full((10, 2), 0.1), "linear", 1, standardize=True)


def test_pre_images_are_in_the_units_of_the_rows():
    X, _ = sample(100)
    for kernel, c in (("linear", 3), ("gaussian", 80)):
        model = fk.kpca(X, kernel, c, standardize=True, **({"sigma": 1.5} if kernel == "gaussian" else {}))
        back = fk.kpca_preimage(model, model.score)
        assert (np.abs(back - X).max(axis=0) <= 1e-3 * model.scale).all()
    np.testing.assert_allclose(fk.kpca_denoise(model, X[:9]), X[:9], atol=0.05)


def test_landmarks_are_in_the_units_of_the_rows():
    X, _ = sample()
    by_number = fk.kpca(X, "gaussian", 2, sigma=1.0, standardize=True, landmarks=np.arange(40))
    as_rows = fk.kpca(X, "gaussian", 2, sigma=1.0, standardize=True, landmarks=X[:40])
    np.testing.assert_allclose(as_rows.eigenvalues, by_number.eigenvalues, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_columns(weighted):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((50, 1500)) * rng.uniform(1, 5, 1500) + 7.0, rng.integers(0, 3, 50).astype(float)
    model = fk.kpca(X, "gaussian", 2, sigma=40.0, standardize=True, sample_weight=w if weighted else None)
    np.testing.assert_allclose(model.scale, standard_scores(X, w if weighted else np.ones(50))[1], rtol=1e-12)


def test_one_warning_names_the_columns():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).standard_normal((100, 4)) * [1e-3, 1.0, 30.0, 1e2]
    with pytest.warns(ScalesWarning, match="column 3 is .* is the range of column 0,") as caught:
        fk.kpca(X, "gaussian", 2)
    assert len(caught) == 1 and caught[0].filename == __file__
    frame = pd.DataFrame(X, columns=["mg", "m", "s", "Pa"])
    with pytest.warns(ScalesWarning, match="column 'Pa' is .*is the range of column 'mg',"):
        fk.kpca(frame, "linear", 2)
    with pytest.warns(ScalesWarning):
        fk.plan(X, "polynomial", 2)
    fk.kpca(X, "gaussian", 2, standardize=False)  # a warning is an error from here on
    fk.kpca(X, "gaussian", 2, standardize=True)
    fk.kpca(X[:, 1:], "gaussian", 2)
    fk.kpca(X @ X.T, "precomputed", 2)


def test_what_it_is_not_for():
    with pytest.raises(ValueError, match="standardize=True scales columns of numbers, and Precomputed"):
        fk.kpca(np.eye(5), "precomputed", 2, standardize=True)
    X, _ = sample()
    first = fk.kpca(X, "polynomial", 2, degree=2, standardize=True, keep_moments=True)
    assert "standardized columns" in repr(first) and fk.kpca(X[:99], like=first).scale is first.scale
    with pytest.raises(ValueError, match="standardize=False was asked for, and the model given as like"):
        fk.kpca(X, like=first, standardize=False)


@pytest.mark.parametrize("size", [1e-152, 1e-160, 1e-300, 1e-320])
def test_a_column_whose_squares_leave_the_range_is_refused(size):
    X, w = sample()
    X = X[:, :3] * [1.0, size, 1.0]
    for weights in (None, w):
        with pytest.raises(ValueError, match="column 1 of X varies by"):
            fk.kpca(X, "linear", 2, standardize=True, sample_weight=weights)
    X[:, 1] *= 0.0
    assert fk.kpca(X, "linear", 2, standardize=True).scale[1] == 1.0


# Not centred --------------------------------------------------------------------------------------------------------


def uncentred(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + np.linspace(2.0, 0.0, d)


def test_as_many_components_as_rows():
    X = uncentred(12)
    model = fk.kpca(X, "gaussian", None, sigma=0.5, center=False)
    assert model.n_components == 12
    assert abs(model.explained.sum() - 100.0) < 1e-9
    many = fk.kpca(X, "gaussian", 12, sigma=0.5, center=False, method="krylov")
    np.testing.assert_allclose(many.eigenvalues, model.eigenvalues, rtol=1e-6)


def test_a_fraction_on_every_route():
    X = uncentred()
    values = np.linalg.eigvalsh(gram("gaussian", X, sigma=0.7))[::-1]
    needed = int(np.argmax(np.cumsum(values) >= 0.9 * values.sum())) + 1
    for method in ("dense", "krylov", "features"):
        assert fk.kpca(X, "gaussian", 0.9, sigma=0.7, center=False, method=method).n_components == needed


def test_the_limit_of_t2_is_that_of_known_means():
    X = uncentred()
    model = fk.kpca(X, "linear", 2, center=False)
    limit = fk.kpca_limits(model, X + 0.1, confidence=0.9, t2="F").t2
    assert limit == pytest.approx(2 * 300 / 299 * stats.f.ppf(0.9, 2, 299))


def test_what_it_says_and_what_contradicts_it():
    X = uncentred()
    first = fk.kpca(X, "polynomial", 3, degree=2, center=False, keep_moments=True)
    assert "not centred" in repr(first) and fk.kpca(X, like=first).center is False
    with pytest.raises(ValueError, match="center=True was asked for, and the model given as like was made with center"):
        fk.kpca(X, like=first, center=True)

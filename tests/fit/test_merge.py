"""Models that add up: merged from moments, they are the model of all the rows."""

import pickle
import warnings

import intervals
import numpy as np
import pytest
from good_kernels import Plain, WithOffers

import fastkpca as fk
from fastkpca.errors import CertificateWarning, DriftWarning
from fastkpca.maps.monomial import TaylorMap

pytestmark = pytest.mark.filterwarnings("ignore::fastkpca.errors.CertificateWarning")
N, D, C = 3000, 2, 5
MAPS = {
    "monomial": ("polynomial", {"degree": 3, "offset": 0.5}),
    "linear": ("linear", {}),
    "taylor": ("gaussian", {"sigma": 2.0, "features": "monomial"}),
    "pivots": ("gaussian", {"sigma": 1.5, "features": "pivots"}),
    "fourier": ("gaussian", {"sigma": 1.5, "features": "fourier"}),
    "fourier held as an operator": ("gaussian", {"sigma": 1.0, "features": "fourier"}),
    "sum": ("sum", {}),
    "product": ("product", {}),
    "scaled": ("scaled", {}),
}


def kernel_of(name):
    gaussian, polynomial = fk.get_kernel("gaussian", sigma=2.0), fk.get_kernel("polynomial", degree=2)
    return {"sum": gaussian + polynomial, "product": gaussian * polynomial, "scaled": 3.0 * gaussian}.get(name, name)


def data(seed=0, n=N, box=3.0):
    """Rows in a box whose corners are the first rows, so that any part with these spans it."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.standard_normal((n, D)) * [1.0, 0.6], -box, box)
    corners = np.array([[i, j] for i in (-box, box) for j in (-box, box)])
    X[:4] = corners
    return X + 7.0


def fit(X, which, c=C, **more):
    kernel, options = MAPS[which]
    c = 2 if kernel == "linear" else c
    options = {"tol": 1e-6} | options | more
    return fk.kpca(X, kernel_of(kernel), c, keep_moments=True, return_scores=False, **options)


def same(one, other, tol=1e-13):
    """One model is the other to rounding, signs apart."""
    top = other.eigenvalues[0]
    scale = tol * top + 1e-11 * max(0.0, np.ptp(other.eigenvalue_bounds, axis=1).max())
    np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, rtol=0, atol=scale)
    np.testing.assert_allclose(one.eigenvalue_bounds, other.eigenvalue_bounds, rtol=0, atol=100 * scale)
    np.testing.assert_allclose(one.latent, other.latent, rtol=0, atol=scale / other.n_samples)
    np.testing.assert_allclose(one.explained, other.explained, rtol=1e-9)
    assert one.bound_kind == other.bound_kind
    assert one.n_samples == other.n_samples


@pytest.mark.parametrize("which", MAPS)
def test_shards_are_the_whole(which):
    X = data()
    first = fit(X[:1000], which)
    second, third = (
        fk.kpca(X[1000:1700], like=first, keep_moments=True),
        fk.kpca(X[1700:], like=first, keep_moments=True),
    )
    together = fk.kpca_merge(first, second, third)
    whole = fk.kpca(X, like=first, keep_moments=True)
    # an eigensolver of its own stops at a share of tol, and so do the nodes that stand for rows in a Fourier moment
    tol = 1e-8 if "operator" in which else 1e-10 if which == "fourier" else 1e-13
    same(together, whole, tol)
    updated = fk.kpca_update(fk.kpca_update(first, X[1000:1001], grow=False), X[1001:], grow=False)
    same(updated, whole, tol)
    # first of two, then of three: the same to rounding, whatever the order
    same(fk.kpca_merge(fk.kpca_merge(first, second), third), whole, tol)
    same(fk.kpca_merge(fk.kpca_merge(third, first), second), whole, tol)
    Z, expected = fk.kpca_project(together, X[:50]), fk.kpca_project(whole, X[:50])
    signs = np.sign(np.sum(Z * expected, axis=0))
    np.testing.assert_allclose(Z * signs, expected, atol=1e-6 * np.abs(expected).max())
    # the parts are not touched by it
    same(fk.kpca(X[1000:1700], like=first, keep_moments=True), second, tol)
    assert first.n_samples == 1000 and together.n_samples == N


def test_rows_outside_the_box_of_fourier_features():
    X = data()
    first = fit(X[:500], "fourier")
    with pytest.raises(ValueError, match=r"outside the box .*coordinate 1, .*features='pivots'"):
        fk.kpca(X + [0.0, 5.0], like=first, keep_moments=True)
    with pytest.raises(ValueError, match="outside the box"):
        fk.kpca_update(first, X + [0.0, 5.0])


def test_rows_farther_out_than_a_map_knows_of():
    X = data()
    first = fk.kpca(X[:500], WithOffers(sigma=2.0), 2, features="good", keep_moments=True)
    fk.kpca((X[500:] + first.shift) / 2.0, like=first, keep_moments=True)
    with pytest.raises(ValueError, match=r"rows lie up to .* whose own lie up to .*features='pivots'"):
        fk.kpca(X * 3, like=first, keep_moments=True)
    first.projector.map._inner.anywhere = True  # as its author would say
    assert fk.kpca(X * 3, like=first, keep_moments=True).n_samples == N
    radius = first.info["radius"]
    with pytest.warns(DriftWarning, match="the process has moved"):
        assert fk.kpca_update(first, X * 3).info["radius"] > 2.0 * radius
    assert first.info["radius"] == radius


def test_where_the_expansion_of_a_gaussian_underflows():
    """exp(-|x|^2 / 2) at 40 sigma is zero, and so are its features, but not by right if their order is 1500."""
    x = np.linspace(0.0, 4.0, 200)[:, None]
    first = fk.kpca(x, "gaussian", 3, sigma=1.0, features="monomial", keep_moments=True)
    assert fk.kpca_update(first, np.array([[45.0]]), tol=0.1).n_samples == 201
    high = TaylorMap(1, 1.0, 1500, np.zeros(1))
    assert high.reaches(36.0) and not high.reaches(38.0)


def test_like_takes_kernel_shift_and_map():
    X = data()
    first = fit(X[:1000], "pivots")
    second = fk.kpca(X[1000:], like=first, keep_moments=True)
    assert second.kernel == first.kernel and np.array_equal(second.shift, first.shift)
    assert second.n_components == first.n_components
    np.testing.assert_array_equal(second.projector.map.pivots, first.projector.map.pivots)
    assert "like" in second.plan.reason
    third = fk.kpca(X[1000:], "gaussian", 2, sigma=1.5, like=first, tol=1e-2)
    assert third.n_components == 2 and third._moments is None and third.score.shape == (2000, 2)
    assert "like" in fk.plan(X, like=first, tol=1e-2).reason


def test_rows_of_any_size_where_the_kernel_scales_them():
    X = 1e150 * np.random.default_rng(0).standard_normal((300, 3))
    first = fk.kpca(X[:200], "cosine", 2, features="pivots", keep_moments=True)
    both = fk.kpca_update(first, X[200:])
    whole = fk.kpca(X, "cosine", 2)
    np.testing.assert_allclose(both.latent, whole.latent, rtol=1e-6)


def test_a_model_that_is_merged_with_itself():
    X = data()
    first = fit(X, "taylor")
    twice = fk.kpca_merge(first, first)
    np.testing.assert_allclose(twice.eigenvalues, 2 * first.eigenvalues, rtol=1e-13)
    for more in (twice, fk.kpca_update(first, X[:1500] + 0.1)):  # signs follow the first model
        assert np.all(np.sum(more.projector.axes * first.projector.axes, axis=0) > 0.5)


def test_what_does_not_fit_together():
    X = data()
    first = fit(X[:1000], "taylor")
    plain = fk.kpca(X[:500], "gaussian", 2, sigma=2.0, method="features", tol=1e-3)
    wrong = {
        "model 1 has no moments to add up; make it with kpca": plain,
        "model 1 is of .*sigma=3.0.*like=": fk.kpca(X, sigma=3.0, c=2, tol=1e-3, keep_moments=True),
        r"measures its rows from another origin \(shift\)": fit(X[1000:], "taylor"),
        "another feature map than model 0": fk.kpca(
            X[:1000], "gaussian", 2, sigma=2.0, features="pivots", tol=1e-3, keep_moments=True
        ),
    }
    for text, model in wrong.items():
        with pytest.raises(ValueError, match=text):
            fk.kpca_merge(first, model)
    with pytest.raises(ValueError, match="the model has no moments"):
        fk.kpca_update(pytest.importorskip("fastkpca.sklearn").KernelPCA(2, kernel="poly").fit(X), X)
    with pytest.raises(TypeError, match="model 1 is of type ndarray"):
        fk.kpca_merge(first, X)
    with pytest.raises(ValueError, match=r"X has 3 columns, the model was fitted on 2"):
        fk.kpca_update(first, np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"NaN \(first at row 1, column 0\)"):
        fk.kpca_update(first, [[7.0, 7.0], [np.nan, 7.0]])
    dense = fk.kpca(X[:100], "gaussian", 2, sigma=2.0, method="dense")
    with pytest.raises(ValueError, match="like was made with method='dense', which has no feature map"):
        fk.kpca(X, like=dense)
    with pytest.raises(ValueError, match="like= brings its kernel"):
        fk.kpca(X, "gaussian", 2, sigma=1.0, like=first)
    with pytest.raises(ValueError, match="keep_moments=True forces method='features'"):
        fk.kpca(X, "gaussian", 2, sigma=2.0, keep_moments=True, method="dense")
    with pytest.raises(ValueError, match=r"features='pivots' and like="):
        fk.kpca(X, features="pivots", like=first)


class Other(Plain):
    def block(self, X, Y):
        return np.exp(-np.abs(X[:, None] - Y).sum(axis=2) / self.sigma)


def test_a_kernel_beside_like_is_the_models_or_an_error():
    X = data()[:600]
    model = fk.kpca(X, Plain(sigma=2.0), 2, features="pivots", tol=1e-2)
    for same in ({}, {"kernel": Plain(sigma=2.0)}, {"sigma": 2.0}, {"kernel": Plain, "sigma": 2.0}):
        assert type(fk.kpca(X, **same, like=model, tol=1e-2).kernel) is Plain
    wrong = [{"kernel": "gaussian"}, {"kernel": Other(sigma=2.0)}, {"kernel": Other}, {"kernel": Plain(sigma=3.0)}]
    wrong += [{"sigma": 3.0}, {"kernel": "linear"}, {"kernel": lambda X, Y: X @ Y.T}]
    for asked in wrong:
        for function in (fk.kpca, fk.plan):
            with pytest.raises(ValueError, match="like= brings its kernel, Plain"):
                function(X, **asked, like=model)
    one, other = Plain(sigma=2.0).block, Plain(sigma=3.0).block  # functions
    of_one = fk.kpca(X, one, 2, features="pivots", tol=1e-2, positive_semidefinite=True)
    assert fk.kpca(X, one, like=of_one, tol=1e-2, positive_semidefinite=True).kernel == of_one.kernel
    with pytest.raises(ValueError, match="like= brings its kernel"):
        fk.kpca(X, other, like=of_one, positive_semidefinite=True)
    gaussian = fit(X, "pivots")
    assert fk.kpca(X, "gaussian", like=gaussian, tol=1e-2).kernel == gaussian.kernel
    with pytest.raises(TypeError, match="no parameter 'degree'"):
        fk.kpca(X, like=gaussian, degree=3)


def test_a_combined_kernel_of_another_distribution_shares_its_map():
    """A guarded subclass of a sum: its parts are found behind the guard."""
    from fastkpca.kernels import ScaledKernel

    class Mine(ScaledKernel):
        pass

    X = data()[:600]
    kernel = Mine(factor=2.0, kernel=fk.get_kernel("polynomial", degree=2))
    first = fk.kpca(X, kernel, 3, method="features", keep_moments=True)
    merged = fk.kpca_update(first, 3.0 * X)
    both = np.concatenate([X, 3.0 * X])
    exact = fk.kpca(both, "polynomial", 3, degree=2, method="dense")
    # its shift is zero, so that the centre is the origin for both
    np.testing.assert_allclose(merged.eigenvalues, 2.0 * exact.eigenvalues, rtol=1e-9)


def test_pivots_at_equal_places_but_not_the_same_are_another_map():
    X = data()
    first = fit(X, "pivots")
    moved = fit(X, "pivots")
    assert fk.kpca_merge(first, moved, tol=1e-3).n_samples == 2 * N  # equal rows, equal map: nothing is random
    moved.projector.map.pivots[3, 1] = np.nextafter(moved.projector.map.pivots[3, 1], 100.0)
    with pytest.raises(ValueError, match="another feature map"):
        fk.kpca_merge(first, moved)


@pytest.mark.parametrize("degree, size", [(2, 1e100), (3, 1e100), (5, 1e40), (1, 1e153)])
def test_a_row_whose_features_overflow_when_squared_is_refused(degree, size):
    model = fk.kpca(data(n=300), "polynomial", 2, degree=degree, keep_moments=True)
    with pytest.raises(ValueError, match="not finite|beyond|range"):
        fk.kpca_update(model, np.full((1, D), size))


def left_out_of(model, X, weights=None):
    """The largest eigenvalue of what the model's feature map leaves out of these rows."""
    rows = np.asarray(X, dtype=np.float64) - model.shift
    Phi = model.projector.map.features(rows)
    R = model.kernel.block(rows, rows) - Phi @ Phi.T
    root = np.ones(len(X)) if weights is None else np.sqrt(weights)
    return float(np.linalg.eigvalsh(root[:, None] * R * root)[-1])


@pytest.mark.parametrize("weighted", [False, True])
def test_merged_models_know_what_samples_of_their_parts_prove(tmp_path, weighted):
    """No warning, and far narrower than by the trace; the bounds, and their failure probabilities, add up."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 8))
    w = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    parts = [(X[:1250], None if w is None else w[:1250]), (X[1250:], None if w is None else w[1250:])]
    options = {"tol": 2e-2, "keep_moments": True}
    first = fk.kpca(parts[0][0], "gaussian", 3, sigma=2.8, sample_weight=parts[0][1], **options)
    second = fk.kpca(parts[1][0], like=first, sample_weight=parts[1][1], **options)
    fk.save(first, tmp_path / "first.kpca")
    loaded = fk.load(tmp_path / "first.kpca")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        merged = fk.kpca_merge(loaded, pickle.loads(pickle.dumps(second)), tol=3e-2)
        updated = fk.kpca_update(first, parts[1][0], sample_weight=parts[1][1], tol=4e-2, grow=False)
        further = fk.kpca_update(updated, parts[1][0][:50], tol=4e-2)
    exact = fk.kpca(X, "gaussian", 3, sigma=2.8, method="dense", sample_weight=w).eigenvalues
    truth = left_out_of(first, X, w)
    for model in (merged, updated):
        intervals.hold(model, exact)
        assert truth <= model.info["residual_norm"] < 0.2 * model.info["residual_trace"]
        assert model.bound_kind == "probabilistic"
        assert model.failure_probability == first.failure_probability + second.failure_probability <= 1e-6
    assert merged.info["residual_norm"] == first.info["residual_norm"] + second.info["residual_norm"]
    assert further.failure_probability > updated.failure_probability
    # the trace alone will do
    with pytest.warns(CertificateWarning):
        wide = fk.kpca_merge(first, second, tol=1e-6)
    assert wide.bound_kind == "probabilistic"
    assert fk.kpca_merge(first, second, tol=0.5).bound_kind == "guaranteed"


def test_files_of_models_without_the_bound_load_and_merge_by_their_trace():
    X = np.random.default_rng(1).standard_normal((3000, 8))
    model = fk.kpca(X, "gaussian", 3, sigma=2.8, tol=2e-2, keep_moments=True)
    header, arrays = model.state()
    old = fk.KPCAModel.from_state(header | {"left_out": None}, arrays)
    with pytest.warns(CertificateWarning):
        merged = fk.kpca_merge(old, old, tol=2e-2)
    assert merged.bound_kind == "guaranteed" and merged.info["residual_norm"] == merged.info["residual_trace"]
    for wrong in ([1.0], [-1.0, 0.0], [1.0, 2.0], [np.nan, 0.0], "sampled"):
        with pytest.raises(fk.errors.ModelFileError):
            fk.KPCAModel.from_state(header | {"left_out": wrong}, arrays)
    bare = {key: value for key, value in header.items() if key != "moments"}
    with pytest.raises(fk.errors.ModelFileError, match="no moments"):
        fk.KPCAModel.from_state(bare, {key: x for key, x in arrays.items() if not key.startswith("moments.")})


def test_bounds_of_merged_models_fail_as_rarely_as_they_say():
    """Each part's bound fails with 1 in 20 instead of in millions, so that failures can be seen."""
    missed = merged_models = 0
    for seed in range(60):
        rng = np.random.default_rng([5, seed])
        X = rng.standard_normal((int(rng.integers(200, 700)), 6)) * np.exp(rng.uniform(-2, 1, 6))
        X[0] *= 10.0 ** rng.uniform(0, 2)
        half = int(rng.integers(60, len(X) - 60))
        often = {"failure_probability": 0.1}  # of which samples have half
        options = {"max_features": int(rng.integers(5, 40)), "rng": seed}
        first = fk.kpca(X[:half], "gaussian", 2, keep_moments=True, **options, **often)
        second = fk.kpca(X[half:], like=first, tol=0.1, rng=seed, keep_moments=True, **often)
        merged = fk.kpca_merge(first, second, tol=1e-3)
        if seed % 2:
            merged = fk.kpca_update(first, X[half:], tol=1e-3, **often)
        if merged.bound_kind == "probabilistic":
            merged_models += 1
            missed += merged.info["residual_norm"] < left_out_of(merged, X) * (1 - 1e-9)
    assert merged_models > 30 and missed <= 0.05 * merged_models

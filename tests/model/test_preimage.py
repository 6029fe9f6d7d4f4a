"""Pre-images: points that have one are found again, on every route; what has none is a minimum; nothing is silent."""

import warnings
from functools import partial

import numpy as np
import pytest
from good_kernels import Cauchy
from quiet import silent

import fastkpca as fk
from fastkpca.errors import PreimageWarning
from fastkpca.model.feature_projector import FeatureProjector
from fastkpca.model.sample_projector import SampleProjector


def curve(n, seed=0, noise=0.0, offset=0.0):
    """A closed curve in three dimensions, and the same with noise."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, n)
    clean = np.column_stack([np.cos(t), np.sin(t), 0.3 * np.cos(2 * t)])
    return clean + offset + noise * rng.standard_normal((n, 3))


fit = partial(silent, fk.kpca)
ROUTES = [{"method": "dense"}, {"method": "krylov"}, {"features": "pivots"}, {"features": "monomial"}]


@pytest.mark.parametrize(("route", "start"), list(zip(ROUTES, [False, True, False, True])), ids=str)
def test_images_of_rows_lead_back_to_them(route, start):
    """With nearly all of the variance kept, P is the image of the row itself."""
    X = curve(300, noise=0.05)
    model = fit(X, "gaussian", 60, sigma=1.0, tol=1e-9, **route)
    new = curve(130, seed=1, noise=0.05)
    begin = new + 0.1 if start else None
    for method in ("auto", "fixed-point", "gradient"):
        found = fk.kpca_preimage(model, fk.kpca_project(model, new), method=method, start=begin)
        assert np.abs(found - new).max() < 2e-3, method


@pytest.mark.parametrize("route", [*ROUTES, {"features": "fourier", "tol": 1e-4}], ids=str)
def test_what_is_found_is_a_minimum(route):
    """Against scipy's minimiser on |phi(x) - P|^2 written out with the training rows."""
    from scipy.optimize import minimize

    X, sigma = curve(250, noise=0.1), 0.6
    model = fit(X, "gaussian", 5, sigma=sigma, **route)
    new = curve(8, seed=3, noise=0.2)
    Z = fk.kpca_project(model, new)
    found = fk.kpca_preimage(model, Z, start=new)
    plain = fit(X, "gaussian", 5, sigma=sigma, method="dense")
    signs = np.sign(np.sum(plain.score * model.score, axis=0))
    for z, x, begin in zip(Z, found, new):
        weights = plain.coeff @ (z * signs) + 1 / len(X)

        def objective(at, weights=weights):
            return -2 * weights @ np.exp(-((X - at) ** 2).sum(axis=1) / (2 * sigma**2))

        best = minimize(objective, x, tol=1e-10)
        assert np.linalg.norm(best.x - x) < 2e-3 and objective(x) <= objective(begin) + 1e-9


@pytest.mark.parametrize(("route", "sigma"), list(zip(ROUTES, [0.7, 1.5, 1.5, 0.7])), ids=str)
def test_denoising_is_projection_without_centring(route, sigma):
    """P of kpca_denoise is the multiple of the projection of phi(x) on the span of mean and components: solved by the
    Gram matrix of both, written out."""
    from fastkpca.model.preimages.preimage import _scores_in_span
    from fastkpca.rows.view import Rows

    X, new = curve(150, noise=0.1), curve(20, seed=1, noise=0.3)
    model = fit(X, "gaussian", 4, sigma=sigma, tol=1e-9, **route)
    K, k = (np.exp(-((A[:, None] - X) ** 2).sum(axis=2) / (2 * sigma**2)) for A in (X, new))
    basis = np.column_stack([model.coeff - model.coeff.mean(axis=0), np.full(150, 1 / 150)])  # in phi(x_i)
    weights = np.linalg.solve(basis.T @ K @ basis, (k @ basis).T).T
    share = weights[:, -1:]
    found = _scores_in_span(model, model.kernel, Rows(new - model.shift), 1)
    assert (share > 1e-3).all()
    assert np.allclose(found, weights[:, :-1] / share, rtol=1e-3, atol=1e-3 * np.abs(found).max())


@pytest.mark.parametrize("route", ROUTES[:3], ids=str)
def test_denoising_in_many_columns(route):
    """Noise that is as long as sigma: the mean would draw a pre-image of the centred projection to the middle."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((40, 3)))[0].T
    X, clean = (6.0 * curve(n, seed=s) @ axes for n, s in ((400, 0), (60, 1)))
    noisy = clean + rng.standard_normal(clean.shape)
    model = fit(X, "gaussian", 6, sigma=2.0, **route)

    def error(rows):
        return np.mean(np.sum((rows - clean) ** 2, axis=1))

    plain = fk.kpca_preimage(model, fk.kpca_project(model, noisy), start=noisy)
    found = fk.kpca_denoise(model, noisy)
    assert error(found) < 0.5 * error(plain) < 0.1 * error(noisy)
    assert np.array_equal(found, fk.kpca_denoise(model, noisy, n_threads=3))
    rows = {"train": X} if isinstance(model.projector, FeatureProjector) else {}
    assert error(fk.kpca_denoise(model, noisy, method="ridge", **rows)) < 0.1 * error(noisy)


@pytest.mark.filterwarnings("ignore::fastkpca.errors.PreimageWarning")
def test_denoising_elsewhere():
    X = curve(100, noise=0.1)
    for kernel in ("linear", "polynomial"):
        model = fit(X, kernel, 2, method="dense")
        plain = fk.kpca_preimage(model, fk.kpca_project(model, X), start=X)
        assert np.array_equal(fk.kpca_denoise(model, X), plain)
    single = fit(X.astype(np.float32), "gaussian", 5, sigma=0.8, method="dense")
    assert fk.kpca_denoise(single, X.astype(np.float32)).dtype == np.float32
    assert fk.kpca_denoise(single, X).dtype == np.float64
    far = np.array([[1e3, 0, 0], [0, 1e160, 0], [4.0, 0, 0]])  # the kernel vanishes, or nearly
    found = fk.kpca_denoise(single, far)
    assert np.isfinite(found).all() and np.abs(found).max() < 10
    assert np.linalg.norm(found[2] - [1, 0, 0.3]) < 0.3


@pytest.mark.parametrize("route", [{"method": "dense"}, {"method": "features"}, {"features": "pivots"}], ids=str)
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_linear_is_exact(route, offset):
    X = np.random.default_rng(0).standard_normal((90, 6)) + offset
    model = fit(X, "linear", 4, **route)
    found = fk.kpca_preimage(model, model.score)
    mean = X.mean(axis=0)
    _, _, axes = np.linalg.svd(X - mean, full_matrices=False)
    assert np.allclose(found, mean + (X - mean) @ axes[:4].T @ axes[:4], rtol=0, atol=1e-6 if offset else 1e-9)
    assert np.allclose(fk.kpca_project(model, found), model.score, rtol=0, atol=1e-6 if offset else 1e-9)
    assert np.allclose(fk.kpca_preimage(model, np.zeros((1, 4))), mean)


def test_descent_of_polynomials():
    """Images under a polynomial kernel lead back up to sign (an even degree has two pre-images)."""
    X = np.random.default_rng(0).standard_normal((200, 4))
    for options in ({"method": "dense"}, {"features": "pivots"}, {"features": "monomial"}):
        model = fit(X, "polynomial", 14, degree=2, **options)  # all of them: exact
        rows = {"train": X} if isinstance(model.projector, FeatureProjector) else {}
        found = fk.kpca_preimage(model, model.score[:40], method="gradient", **rows)
        assert np.abs(found - X[:40]).max() < 1e-4
        begin = X[:40] + 0.05
        found = fk.kpca_preimage(model, model.score[:40], method="gradient", start=begin, **rows)
        assert np.abs(found - X[:40]).max() < 1e-4


@pytest.mark.parametrize("kernel", [Cauchy(), fk.get_kernel("gaussian", sigma=1.0) + fk.get_kernel("linear")])
def test_descent_of_other_kernels(kernel):
    X = curve(200, noise=0.05)
    model = fit(X, kernel, 10, method="dense")
    assert isinstance(model.projector, SampleProjector)
    begin = curve(20, seed=2, noise=0.05)
    Z = fk.kpca_project(model, begin)
    found = fk.kpca_preimage(model, Z, method="gradient", start=begin + 0.2)
    assert np.abs(fk.kpca_project(model, found) - Z).max() < 0.5 * np.abs(Z).max()
    assert np.abs(found - begin).max() < 0.3


@pytest.mark.filterwarnings("ignore::fastkpca.errors.PreimageWarning")
def test_an_indefinite_kernel():
    """There |phi(x) - P|^2 is no distance, and need not have a minimum; the regression does not mind."""
    X, new = curve(200, noise=0.05), curve(20, seed=2, noise=0.05)
    model = fit(X, "tanh", 10, scale=0.3, offset=0.1, method="dense")
    Z = fk.kpca_project(model, new)
    assert np.abs(fk.kpca_preimage(model, Z) - new).max() < 0.05
    assert np.isfinite(fk.kpca_preimage(model, Z, method="gradient")).all()


@pytest.mark.parametrize("n", [40, 1500])
def test_ridge_finds_the_rows_again(n):
    X, new = curve(n), curve(50, seed=1)
    model = fit(X, "gaussian", 8, sigma=0.8, method="dense")
    found = fk.kpca_preimage(model, fk.kpca_project(model, new), method="ridge")
    assert np.abs(found - new).max() < (0.2 if n == 40 else 0.01)
    features = fit(X, "gaussian", 8, sigma=0.8, features="pivots")
    other = fk.kpca_preimage(features, fk.kpca_project(features, new), method="ridge", train=X)
    assert np.allclose(other, found, atol=0.05 if n == 40 else 5e-3)


def test_ridge_is_kernel_ridge_regression():
    """Where every row is a pivot: scikit-learn's KernelRidge on centred scores of the same kernel, and its alpha."""
    pytest.importorskip("sklearn")
    from sklearn.gaussian_process.kernels import RBF

    from fastkpca.model.preimages.ridge import fit_ridge
    from fastkpca.rows.view import Rows

    rng = np.random.default_rng(0)
    Z, X = rng.standard_normal((70, 5)), rng.standard_normal((70, 4))
    for alpha in (1e-3, 1.0):
        found = fit_ridge(Z, Rows(X), alpha=alpha)
        kernel = RBF(found.sigma * found.unit)
        K = kernel(Z)
        H = np.eye(70) - 1 / 70
        new = rng.standard_normal((9, 5))
        k = kernel(new, Z)
        dual = np.linalg.solve(H @ K @ H + alpha * np.eye(70), H @ X)
        expected = X.mean(axis=0) + (k - K.mean(axis=0)) @ H @ dual
        assert np.allclose(found.predict(new), expected, atol=1e-4)


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial", "linear", "laplacian"])
@pytest.mark.parametrize("copies", ["all", "all, nearly", "one", "one, nearly"])
def test_ridge_takes_no_copy_for_another_row(kernel, copies):
    """With a copy of each row left in, the regression through every row seemed best, and new rows came back 20 times
    as far away as their mean."""
    rng = np.random.default_rng(3)
    X, new = rng.standard_normal((60, 4)), rng.standard_normal((200, 4))
    again = X if "all" in copies else X[:1]
    rows = np.vstack([X, again + 1e-9 * rng.standard_normal(again.shape) * ("nearly" in copies)])
    weights = np.ones(60)
    weights[: len(again)] = 2.0
    one, other = fit(X, kernel, 2, sample_weight=weights), fit(rows, kernel, 2)
    Z = fk.kpca_project(one, new)
    signs = np.sign(np.sum(Z * fk.kpca_project(other, new), axis=0))
    found = fk.kpca_preimage(other, Z * signs, method="ridge", train=rows)
    if one.projector.grows_with_n:
        np.testing.assert_allclose(fk.kpca_preimage(one, Z, method="ridge"), found, atol=0.02)
    assert np.sqrt(np.mean((found - new) ** 2)) < 1.1 * np.sqrt(np.mean((X.mean(axis=0) - new) ** 2))


def test_ridge_with_weights_of_all_sizes():
    """Rows of next to no weight do not count, and one that outweighs all others hides nothing."""
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((60, 4)), rng.standard_normal((200, 4))
    mean_error = np.sqrt(np.mean((new - X.mean(axis=0)) ** 2))
    for weights in (
        np.repeat([1.0, 1e-13], 30),
        np.r_[1e6, np.ones(59)],
        np.geomspace(1e-6, 1e6, 60),
    ):
        model = fit(X, "gaussian", 2, sigma=2.0, sample_weight=weights)
        found = fk.kpca_preimage(model, fk.kpca_project(model, new), method="ridge")
        assert np.sqrt(np.mean((found - new) ** 2)) < 1.5 * mean_error


def test_training_rows_of_any_size():
    X = curve(40, noise=0.1)
    table = fk.kpca(X @ X.T, "precomputed", 2)
    for size in (1e-320, 1e306):  # sums of the rows, and of their squares, are beyond the range
        plain, found = (fk.kpca_preimage(table, table.score, train=f * X) for f in (1.0, size))
        np.testing.assert_allclose(found / size, plain, rtol=1e-3, atol=1e-2)


def test_ridge_smooths_noise_that_scores_do_not_hold():
    X = curve(1000)
    noisy = X + 0.2 * np.random.default_rng(1).standard_normal(X.shape)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    model = fk.kpca(K, "precomputed", 6, method="dense")
    found = fk.kpca_preimage(model, model.score, train=noisy)
    assert np.abs(found - X).mean() < 0.4 * np.abs(noisy - X).mean()
    rough = fk.kpca_preimage(model, model.score, train=noisy, alpha=1e-12)
    assert np.abs(rough - X).mean() > np.abs(found - X).mean()


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_scores_far_outside(route):
    X = curve(200, noise=0.05)
    model = fit(X, "gaussian", 4, sigma=0.7, **route)
    for factor in (10.0, 1e8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PreimageWarning)
            found = fk.kpca_preimage(model, factor * model.score[:70])
        assert np.isfinite(found).all() and np.abs(found).max() < 10
    # where the kernel has vanished there is no direction to go: such starts are replaced
    model = fit(X, "gaussian", 20, sigma=0.7, **route)
    found = fk.kpca_preimage(model, model.score[:50], start=np.tile([1e6, 0.0, 0.0], (50, 1)))
    assert np.abs(found - X[:50]).max() < 0.2
    with pytest.warns(PreimageWarning, match=r"did not converge in 1 steps; a larger max_iter"):
        assert np.isfinite(fk.kpca_preimage(model, model.score, max_iter=1)).all()


@pytest.mark.parametrize("sigma", [1e-3, 1e6])
@pytest.mark.filterwarnings("ignore::fastkpca.errors.PreimageWarning")
def test_extreme_widths(sigma):
    X = curve(120, noise=0.05)
    model = fit(X, "gaussian", 5, sigma=sigma, method="dense")
    found = fk.kpca_preimage(model, model.score)
    # a tiny sigma sees single rows, a huge one is linear kernel PCA: on three axes, exact
    assert np.isfinite(found).all()
    if sigma >= 1e3:
        assert np.abs(found - X).max() < 1e-2 * max(1.0, sigma / 1e3)
    else:
        assert np.abs(found[:, None] - X).max(axis=2).min(axis=1).max() < 0.1


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_offsets_constant_columns_and_one_component(route):
    X = np.column_stack([curve(200, noise=0.05), np.full(200, 7.0)])
    model = fit(X, "gaussian", 12, sigma=0.9, **route)
    found = fk.kpca_preimage(model, model.score)
    assert np.abs(found[:, 3] - 7.0).max() < 1e-6
    moved = fit(X + 1e8, "gaussian", 12, sigma=0.9, **route)
    assert np.abs(fk.kpca_preimage(moved, moved.score) - 1e8 - found).max() < 2e-4
    one = fit(X, "gaussian", 1, sigma=0.9, **route)
    assert np.isfinite(fk.kpca_preimage(one, one.score)).all()


def test_no_start_in_sight_is_said():
    """Fourier features hold no rows, and the mean of a wide ring is far from all of it."""
    t = np.linspace(0, 2 * np.pi, 600, endpoint=False)
    X = np.column_stack([np.cos(t), np.sin(t)])
    model = fit(X, "gaussian", 8, sigma=0.05, features="fourier")
    with pytest.warns(PreimageWarning, match=r"give start= or train="):  # of a few rows rounding may find every one
        fk.kpca_preimage(model, model.score[::30])
    assert np.abs(np.linalg.norm(fk.kpca_preimage(model, model.score[:5], train=X), axis=1) - 1).max() < 0.05


@pytest.mark.parametrize("route", [*ROUTES, {"method": "dense", "how": "ridge"}], ids=str)
def test_threads_types_files_and_inputs(route, tmp_path):
    route = dict(route)
    how = {"method": route.pop("how", "auto")}
    at = {} if how["method"] == "ridge" else {"start": curve(300, noise=0.05)}
    X = curve(300, noise=0.05)
    model = fit(X, "gaussian", 5, sigma=0.8, **route)
    Z = fk.kpca_project(model, X)
    before, begin = Z.copy(), X.copy()
    one, many = (fk.kpca_preimage(model, Z, n_threads=t, **at, **how) for t in (1, 3))
    assert np.array_equal(one, many) and np.array_equal(Z, before) and np.array_equal(X, begin)
    fk.save(model, tmp_path / "m.kpca")
    assert np.array_equal(fk.kpca_preimage(fk.load(tmp_path / "m.kpca"), Z, **at, **how), one)
    seen = []
    fk.kpca_preimage(model, Z, progress=lambda stage, done, total: seen.append((done, total)), **how)
    assert seen and seen[-1][0] == seen[-1][1]
    single = fit(X.astype(np.float32), "gaussian", 5, sigma=0.8, **route)
    Z32 = fk.kpca_project(single, X.astype(np.float32))
    found = fk.kpca_preimage(single, Z32, **at, **how)
    assert Z32.dtype == found.dtype == np.float32 and np.abs(found - one).max() < 2e-3
    assert fk.kpca_preimage(single, Z, **how).dtype == np.float64


def test_of_many_components_too_the_search_starts_from_the_nearest_scores(monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 8))
    model = fk.kpca(X, "gaussian", 60, sigma=3.0, method="dense")
    Z = model.score[:50] + 1e-3 * np.random.default_rng(1).standard_normal((50, 60))
    found = fk.kpca_preimage(model, Z)
    np.testing.assert_allclose(found, fk.kpca_preimage(model, Z, start=X[:50]), atol=1e-4)
    # as where the matrix of weights is large
    monkeypatch.setattr("fastkpca.model.preimages.descent.MAX_STORED_WEIGHTS", 0)
    np.testing.assert_allclose(fk.kpca_preimage(model, Z), found, atol=1e-6)


def test_options_of_another_method_are_refused():
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = fk.kpca(X, "gaussian", 2, sigma=1.0, method="dense")
    for method in ("auto", "fixed-point", "gradient"):
        with pytest.raises(ValueError, match="drop it, or give method='ridge'"):
            fk.kpca_preimage(model, model.score, method=method, alpha=1.0)
        with pytest.raises(ValueError, match="drop it, or give method='ridge'"):
            fk.kpca_denoise(model, X, method=method, alpha=1.0)
    with pytest.raises(ValueError, match="start= is for searches, and method='ridge' makes none; drop one"):
        fk.kpca_preimage(model, model.score, method="ridge", start=X)
    learned = fk.kpca_denoise(model, X, method="ridge", alpha=1.0)
    assert np.isfinite(learned).all()

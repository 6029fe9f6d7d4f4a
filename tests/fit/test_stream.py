"""Models of rows that keep coming: intervals after each batch, growth, forgetting, subtraction, warnings and files."""

import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import stream_cases

import fastkpca as fk
from fastkpca.errors import CertificateWarning, DriftWarning, ModelFileError
from fastkpca.maps.draws import Draws, Reservoir
from fastkpca.sklearn import KernelPCA

pytestmark = pytest.mark.filterwarnings("ignore::fastkpca.errors.CertificateWarning")
OPTIONS = {"sigma": 1.0, "features": "pivots", "keep_moments": True}


def exact(X, w=None, sigma=1.0):
    return stream_cases.exact(fk.get_kernel("gaussian", sigma=sigma), X, np.ones(len(X)) if w is None else w)


def holds(model, truth):
    low, high = model.eigenvalue_bounds.T
    truth = truth[: model.n_components]
    slack = 1e-12 * truth[0]
    return bool(((low - slack <= truth) & (truth <= high + slack)).all())


def regimes(seed=0, n=300):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, 2)) + at for at in (0.0, 0.0, 6.0, 6.0, 6.0)]


def test_random_streams_hold_the_exact_eigenvalues_after_each_batch(attack):
    for case in range(attack.count(500)):
        found = stream_cases.stream(attack.rng("streams", case))
        assert not found["missed"], found


def test_a_map_grows_where_the_process_goes_and_reads_no_old_row_again():
    made = regimes()
    model = fixed = fk.kpca(made[0], "gaussian", 4, tol=1e-4, **OPTIONS)
    size = model.info["n_features"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        for i, batch in enumerate(made[1:], start=2):
            model, fixed = fk.kpca_update(model, batch, tol=1e-4), fk.kpca_update(fixed, batch, tol=1e-4, grow=False)
            truth = exact(np.concatenate(made[:i]))
            assert holds(model, truth) and holds(fixed, truth)
    widths = [np.ptp(x.eigenvalue_bounds, axis=1).max() / truth[0] for x in (model, fixed)]
    assert widths[0] < 0.02 and widths[1] > 0.5
    # the features of the rows before stay those that they had, to the last bit
    assert model.info["n_features"] > 1.3 * size == 1.3 * fixed.info["n_features"]
    assert model.info["grown"] >= 1 and model.info["batches"] == 4
    # scores of new rows are those of a fit of all rows
    whole = fk.kpca(np.concatenate(made), "gaussian", 4, sigma=1.0, method="dense")
    Z, W = fk.kpca_project(model, made[3]), fk.kpca_project(whole, made[3])
    np.testing.assert_allclose(np.abs(np.sum(Z * W, axis=0)), np.sum(W * W, axis=0), rtol=0.02)


def test_a_limit_of_features_is_kept():
    model = fk.kpca(regimes()[0], "gaussian", 4, tol=1e-4, **OPTIONS)
    most = model.info["n_features"] + 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        for batch in regimes()[1:]:
            model = fk.kpca_update(model, batch, grow=most)
    assert model.info["n_features"] == most
    with pytest.raises(ValueError, match="grow"):
        fk.kpca_update(model, regimes()[1], grow=-1)
    with pytest.raises(ValueError, match=f"grow is {most - 1}, and the model has {most} features; give {most} or more"):
        fk.kpca_update(model, regimes()[1], grow=most - 1)


def test_forgotten_rows_weigh_less():
    made, forget = regimes(), 0.6
    model, w = fk.kpca(made[0], "gaussian", 4, tol=1e-4, **OPTIONS), np.ones(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        for batch in made[1:]:
            model, w = fk.kpca_update(model, batch, forget=forget), np.concatenate([w * forget, np.ones(300)])
    X = np.concatenate(made)
    assert holds(model, exact(X, w))
    assert model.weight_sum == pytest.approx(w.sum()) and model.n_samples == 1500
    # as a fit with these weights
    weighted = fk.kpca(X, "gaussian", 4, sigma=1.0, sample_weight=w, method="dense")
    np.testing.assert_allclose(model.eigenvalues, weighted.eigenvalues, rtol=0.02)
    for wrong in (0.0, 1.1, "half", np.nan):
        with pytest.raises(ValueError, match=r"forget is .*; give a factor above 0 and at most 1"):
            fk.kpca_update(model, made[0], forget=wrong)


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_a_window_is_what_is_left_after_subtraction(offset):
    made = [X + offset for X in regimes()]
    first = fk.kpca(made[0], "gaussian", 3, tol=1e-6, **OPTIONS)
    second = fk.kpca(made[1], like=first, keep_moments=True)
    third = fk.kpca(made[2], like=first, keep_moments=True)
    total = fk.kpca_merge(first, second, third)
    window = fk.kpca_subtract(fk.kpca_subtract(total, first), second)
    assert window.n_samples == 300 and holds(window, exact(made[2]))
    assert holds(fk.kpca_subtract(total, second), exact(np.concatenate([made[0], made[2]])))
    assert (window.eigenvalues <= exact(made[2])[:3] * (1 + 1e-9)).all()
    with pytest.raises(ValueError, match="give a model of some of its rows"):
        fk.kpca_subtract(first, total)
    with pytest.raises(ValueError, match="model 1 measures its rows from another origin"):
        fk.kpca_subtract(total, fk.kpca(made[3], "gaussian", 3, **OPTIONS))


@pytest.mark.parametrize("scale", [0.01, 1e6])
def test_the_rounding_of_a_subtraction_counts_rows_and_not_their_weights(scale):
    """Sums of n rounded terms err by up to n units of their size, whatever their weights add up to."""
    X = np.random.default_rng(0).standard_normal((900, 3))

    def rest(scale):
        def fitted(rows, like=None):
            weights = np.full(len(rows), scale)
            kernel = {"like": like} if like else {"kernel": "polynomial", "degree": 2}
            return fk.kpca(rows, c=3, sample_weight=weights, keep_moments=True, **kernel)

        first = fitted(X[:600])
        return fk.kpca_subtract(fk.kpca_merge(first, fitted(X[600:], first)), first)

    plain, scaled = rest(1.0), rest(scale)
    np.testing.assert_allclose(np.diff(scaled.eigenvalue_bounds), scale * np.diff(plain.eigenvalue_bounds), rtol=0.01)
    kernel = fk.get_kernel("polynomial", degree=2)
    assert holds(scaled, stream_cases.exact(kernel, X[600:], np.full(300, scale)))


def test_rows_are_not_subtracted_where_their_features_are_not_known():
    """Whether rows have the features that were added decides what to subtract: neither answer is right for all."""
    made = regimes()
    first = fk.kpca(made[0], "gaussian", 3, tol=1e-4, **OPTIONS)
    shard = fk.kpca(made[1], like=first, keep_moments=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        grown = fk.kpca_update(fk.kpca_merge(first, shard), made[2])
        fixed = fk.kpca_update(fk.kpca_merge(first, shard), made[2], grow=False)
    for part in (shard, fk.kpca(made[1], like=grown, keep_moments=True)):
        with pytest.raises(ValueError, match=r"merge the parts that stay \(kpca_merge\), or update with grow=False"):
            fk.kpca_subtract(grown, part)
    # the advice
    assert holds(fk.kpca_subtract(fixed, shard), exact(np.concatenate([made[0], made[2]])))
    rest = fk.kpca_merge(first, fk.kpca(made[2], like=grown, keep_moments=True))
    assert holds(rest, exact(np.concatenate([made[0], made[2]])))


def test_shards_of_a_model_that_grew_are_merged_with_its_rows():
    made = regimes()
    first = fk.kpca(made[0], "gaussian", 3, tol=1e-4, **OPTIONS)
    shard = fk.kpca(made[1], like=first, keep_moments=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        grown = fk.kpca_update(first, made[2])
    later = fk.kpca(made[3], like=grown, keep_moments=True)
    for models in ((grown, shard, later), (shard, later, grown), (later, grown, shard)):
        together = fk.kpca_merge(*models)
        assert together.n_samples == 1200 and holds(together, exact(np.concatenate(made[:4])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        apart = fk.kpca_update(first, made[2] - 20.0)
    with pytest.raises(ValueError, match="has another feature map than"):
        fk.kpca_merge(grown, apart)


def test_parts_are_fitted_in_other_processes():
    """What docs/streams.md says of Spark and Ray: a model goes out, models come back, and are merged."""
    made = regimes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        first = fk.kpca_update(fk.kpca(made[0], "gaussian", 4, tol=1e-4, **OPTIONS), made[2])
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as workers:
        models = list(workers.map(stream_cases.part_of, [first] * 3, [made[1], made[3], made[4]]))
    together = fk.kpca_merge(first, *models)
    assert together.n_samples == 1500
    assert holds(together, exact(np.concatenate([made[i] for i in (0, 2, 1, 3, 4)])))
    here = fk.kpca_merge(first, *(stream_cases.part_of(first, made[i]) for i in (1, 3, 4)))
    assert (here.eigenvalue_bounds == together.eigenvalue_bounds).all()


def test_files_keep_what_a_stream_needs(tmp_path):
    made = regimes()
    model = fk.kpca(made[0], "gaussian", 3, tol=1e-4, **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        grown = fk.kpca_update(model, made[2])
        fk.save(grown, tmp_path / "m.kpca")
        loaded = fk.load(tmp_path / "m.kpca")
        one, other = (fk.kpca_update(x, made[3] - 12.0) for x in (grown, loaded))
    assert (one.eigenvalue_bounds == other.eigenvalue_bounds).all()
    assert one.info["grown"] == other.info["grown"] == 2
    header, arrays = grown.state()
    for wrong in ([[0.5, 1.0]], [[3, -1.0]], [[10**9, 1.0]], [[5, 1.0], [4, 1.0]], [3], None):
        with pytest.raises(ModelFileError):
            fk.KPCAModel.from_state(header | {"added": wrong}, arrays)
    with pytest.raises(ValueError, match="a residual is negative"):
        fk.KPCAModel.from_state(header, arrays | {"reservoir.residual": -arrays["reservoir.residual"]})


def test_a_process_that_has_moved_is_said_once():
    made = regimes()
    model = fk.kpca(made[0], "gaussian", 2, tol=1e-2, **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DriftWarning)
        model = fk.kpca_update(model, made[1])
    far = np.random.default_rng(1).uniform(20.0, 24.0, (200, 2))
    with pytest.warns(DriftWarning, match=r"explain \d+% of the variance of the last batch.*forget=0.9") as said:
        model = fk.kpca_update(fk.kpca_update(model, far[:40]), far[40:80])
    assert sum(issubclass(x.category, DriftWarning) for x in said) == 1
    # the advice: a model that forgets explains them again
    for _ in range(40):
        model = fk.kpca_update(model, far, forget=0.9)
    assert model.info["batch_explained"] > 0.5 * model.info["first_explained"]


def test_the_estimator_follows_a_process():
    made = regimes()
    estimator = KernelPCA(3, kernel="rbf", gamma=0.5, forget=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        for batch in made:
            estimator.partial_fit(batch)
    w = np.repeat(0.5 ** np.arange(4, -1, -1), 300)
    assert holds(estimator.model_, exact(np.concatenate(made), w))
    assert estimator.n_samples_seen_ == 1500


def test_certain_bounds_stay_certain():
    """guaranteed=True keeps no rows that bounds of random numbers would come from."""
    made = regimes()
    model = fk.kpca(made[0], "gaussian", 3, tol=1e-3, guaranteed=True, **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        for i, batch in enumerate(made[1:], start=2):
            model = fk.kpca_update(model, batch, tol=1e-3)
            assert model.bound_kind == "guaranteed" and model.failure_probability == 0.0
            assert holds(model, exact(np.concatenate(made[:i])))
    assert model.info["grown"] >= 1


def test_a_wide_interval_is_said():
    model = fk.kpca(regimes()[0], "gaussian", 3, tol=1e-2, **OPTIONS)
    with pytest.warns(CertificateWarning), warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        fk.kpca_update(model, regimes()[2], tol=1e-9)


def test_a_reservoir_holds_the_rows_of_every_part_in_proportion_in_whatever_order_they_are_joined():
    s = 2048
    a, b, c, d = (
        Reservoir(Draws(0, total, np.arange(s), np.ones(s)), np.full((s, 1), float(i)), np.ones(s))
        for i, total in enumerate([1.0, 1.0, 2.0, 4.0])
    )
    for joined in (a.join(b).join(c).join(d), d.join(c.join(a.join(b))), a.join(b).join(d.join(c))):
        shares = [np.mean(joined.rows == i) for i in range(4)]
        np.testing.assert_allclose(shares, [0.125, 0.125, 0.25, 0.5], atol=0.05)  # four and more standard errors


def grown_on_axes():
    """Models of rows on the first axis, to which the third and then the second were added; and makers of more."""
    e, s = np.eye(3), np.linspace(0.5, 1.0, 40)[:, None]
    options = {"center": False, "tol": 1e-6, "features": "pivots", "keep_moments": True, "guaranteed": True}
    first = fk.kpca(s * e[0], "linear", 1, **options)
    middle = fk.kpca_update(first, 0.3 * s * e[2])
    return e, s, first, middle, fk.kpca_update(middle, 0.3 * s * e[1])


@pytest.mark.filterwarnings("ignore::fastkpca.errors.DriftWarning")
def test_a_part_of_a_block_that_rows_lack_is_lacked_too():
    """Merged with a model that knows the first of two features, rows still lack the second."""
    e, s, first, middle, widest = grown_on_axes()
    assert [model.info["n_features"] for model in (first, middle, widest)] == [1, 2, 3]
    made = [(first, np.tile(e[0] - e[1], (100, 1))), (widest, np.tile(e[0] + e[1], (100, 1))), (middle, s * e[0])]
    parts = [fk.kpca(X, like=like, c=1, keep_moments=True, guaranteed=True) for like, X in made]
    one = fk.kpca_merge(*parts[:2])
    for merged, X in ((one, made[:2]), (fk.kpca_merge(one, parts[2]), made), (fk.kpca_merge(parts[2], one), made)):
        X = np.concatenate([X for _, X in X])
        assert merged.failure_probability == 0.0 and holds(merged, np.linalg.eigvalsh(X.T @ X)[::-1])


@pytest.mark.filterwarnings("ignore::fastkpca.errors.DriftWarning")
def test_maps_that_were_grown_apart_do_not_add_up():
    e, s, first, middle, _ = grown_on_axes()
    other = fk.kpca_update(fk.kpca_update(first, 0.3 * s * e[1]), 0.3 * s * e[2])
    for models in ((middle, other), (first, middle, other), (other, first, middle)):  # all begin with the first
        with pytest.raises(ValueError, match="has another feature map than"):
            fk.kpca_merge(*models)


@pytest.mark.filterwarnings("ignore::fastkpca.errors.DriftWarning")
@pytest.mark.parametrize("size", [1e4, 1e5, 1e6, 1e8])
def test_rows_that_rounding_keeps_from_the_map_widen_the_intervals(size):
    """A pivot whose kernel values round by more than those of the others are: refused, not taken as infinite."""
    rng = np.random.default_rng(0)
    made = [rng.standard_normal((60, 2)), size * rng.standard_normal((30, 2))]
    model = fk.kpca(made[0], "polynomial", 3, degree=2, features="pivots", keep_moments=True, tol=1e-4)
    model = fk.kpca_update(model, made[1])
    assert np.isfinite(model.eigenvalue_bounds).all() and holds(
        model, stream_cases.exact(model.kernel, np.concatenate(made) - model.shift, np.ones(90))
    )
    assert np.isfinite(fk.kpca_project(model, made[1])).all()


@pytest.mark.filterwarnings("ignore::fastkpca.errors.DriftWarning")
@pytest.mark.parametrize(("seed", "n"), [(7, 60), (10, 8)])
def test_rows_far_from_each_other_have_equal_eigenvalues(seed, n):
    """Added features of one row each: a scatter that is a multiple of the identity, to rounding."""
    rng = np.random.default_rng(seed)
    made = [rng.standard_normal((80, 2)), 1e3 * rng.standard_normal((n, 2))]
    model = fk.kpca_update(fk.kpca(made[0], "gaussian", 3, tol=1e-3, **OPTIONS), made[1])
    assert model.info["grown"] == 1 and holds(model, exact(np.concatenate(made)))


@pytest.mark.parametrize(("features", "size"), [(None, 1e6), (6, 1e8), (10, 1e8), (10, 1e4)])
def test_a_part_whose_residuals_were_bounded_with_larger_errors(features, size):
    """A part that was made anew together with a far row, of whose kernel values less is known."""
    X, options = np.random.default_rng(0).standard_normal((200, 2)), {"guaranteed": True, "keep_moments": True}
    first = fk.kpca(X[:100], "gaussian", 3, sigma=1.0, features="pivots", max_features=features, **options)
    far = np.concatenate([[[size, size]], X[:20]])
    parts = (X[100:], far, np.concatenate([X[100:195], far]))
    near, beyond, part = (fk.kpca(rows, like=first, c=3, **options) for rows in parts)
    rest = fk.kpca_subtract(fk.kpca_merge(near, beyond), part)
    assert rest.failure_probability == 0.0 and holds(rest, exact(X[195:]))

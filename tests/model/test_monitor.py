"""SPE, T^2 and control limits: against the centred Gram matrix written out, on every route; rates on unseen rows."""

import numpy as np
import pytest
from exact_kernels import exact_matrix
from quiet import silent
from spe_cases import check_interval, exact_spe

import fastkpca as fk
from fastkpca.errors import LimitsWarning
from fastkpca.kernels import Kernel
from fastkpca.model.monitoring.novelty import share_of_ceiling
from fastkpca.model.sample_projector import SampleProjector


def rows(n, d, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.linspace(1.0, 0.3, d) + offset


def reference(name, parameters, X, Y, c):
    """(t2, spe) of Y by the eigenvectors of the centred Gram matrix of X; the centring in long double."""
    K, k = exact_matrix(name, parameters, X)[0], exact_matrix(name, parameters, Y, X)[0]
    own = np.array([exact_matrix(name, parameters, y[None])[0][0, 0] for y in Y])
    means, grand = K.mean(axis=0), K.mean()
    values, vectors = np.linalg.eigh((K - means - means[:, None] + grand).astype(np.float64))
    values, vectors = values[::-1][:c], vectors[:, ::-1][:, :c]
    centred = k - k.mean(axis=1, keepdims=True) - means + grand
    z = centred @ (vectors / np.sqrt(values))
    t2 = (z**2 / (values / (len(X) - 1))).sum(axis=1)
    return t2.astype(float), (own - 2 * k.mean(axis=1) + grand - (z**2).sum(axis=1)).astype(float)


ROUTES = [
    ("gaussian", {"sigma": 1.0}, {"method": "dense"}),
    ("gaussian", {"sigma": 1.0}, {"method": "krylov", "tol": 1e-10}),
    ("gaussian", {"sigma": 1.0}, {"features": "pivots", "tol": 1e-8}),
    ("gaussian", {"sigma": 2.5}, {"features": "monomial", "tol": 1e-8}),
    ("gaussian", {"sigma": 100.0}, {"method": "dense", "tol": 1e-8}),
    ("linear", {}, {"method": "dense"}),
    ("linear", {}, {"method": "features"}),
    ("polynomial", {"degree": 2}, {"method": "dense"}),
    ("polynomial", {"degree": 2}, {"features": "monomial"}),
    ("polynomial", {"degree": 3, "offset": 0.0}, {"features": "pivots"}),
    ("tanh", {"scale": 1.0, "offset": -1.0}, {"method": "dense"}),  # some SPE are negative
]


def fit(X, name, c, options):
    return silent(fk.kpca, X, name, c, **options)


@pytest.mark.parametrize(("name", "parameters", "options"), ROUTES, ids=str)
@pytest.mark.parametrize("c", [1, 3])
def test_against_the_centred_matrix(name, parameters, options, c):
    X, new = rows(150, 4), np.vstack([rows(25, 4, seed=1), 4 * rows(4, 4, seed=2), rows(150, 4)[:5]])
    t2, spe = reference(name, parameters, X, new, c)
    model = fit(X, name, c, parameters | options)
    found, interval = fk.kpca_spe(model, new, bounds=True)
    scale = float(np.abs(spe).max()) + model.total_variance
    assert np.allclose(found, spe, rtol=1e-5, atol=2e-7 * scale)
    assert np.allclose(fk.kpca_t2(model, new), t2, rtol=1e-4, atol=1e-6)
    assert np.allclose(fk.kpca_t2(model, X), model.tsquared, rtol=1e-6, atol=1e-9)
    assert (interval[:, 0] <= found).all() and (found <= interval[:, 1] + 1e-12 * abs(interval[:, 1])).all()
    assert (interval[:, 0] >= 0).all() if name != "tanh" else spe.min() < -1e-3
    assert np.diff(interval, axis=1).max() <= 1e-3 * scale


def test_no_interval_reaches_beyond_what_no_component_leaves():
    """Components of noise are no axes at all, but SPE is never more than the whole of a row."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    model = fit(X, "gaussian", 12, {"sigma": 100.0, "method": "dense"})
    _, interval = fk.kpca_spe(model, rows(10, 2, seed=1), bounds=True)
    assert np.isfinite(interval).all() and interval.max() <= 2.0


def test_intervals_allow_for_the_errors_of_values_far_out():
    """Between a cluster and nowhere a component is zero: what it errs by is small there, beside that of a value."""
    rng = np.random.default_rng(0)
    X = 1e8 * rng.choice([0.0, 1.0, 5.0], (90, 1)) + rng.standard_normal((90, 1))
    new = 1e8 * np.array([[1.0], [5.0]])[:, None] + np.linspace(0.0, 4.0, 200)[:, None]
    model, new = fk.kpca(X, "gaussian", 1, sigma=1.0, method="dense"), new.reshape(-1, 1)
    exact = exact_spe(model, lambda A, B: exact_matrix("gaussian", {"sigma": 1.0}, A, B)[0], X, new)
    assert not any(excess for _, excess in check_interval(*exact, fk.kpca_spe(model, new, bounds=True)[1]))


class FarValuesErr(Kernel):
    """x y of the first columns; where rows lie far out along the second, off by what is stated, up or down."""

    api_version = 1
    positive_semidefinite = True
    far, error = 1e3, 1e-6

    def block(self, X, Y):
        return X[:, :1] * Y[:, 0] + self.error * (X[:, 1:] - Y[:, 1]) / self.far

    def entry_error(self, data, dtype):
        return self.error if data.radius >= self.far else 1e-14


def test_errors_of_a_new_rows_values_add_up_in_its_score():
    """All err one way, and 400 of them make more of the score's square than of any value."""
    X = np.column_stack([np.r_[np.ones(400), 20.0], np.zeros(401)])
    model = fk.kpca(X, FarValuesErr(), 1, center=False, method="dense")
    new = np.array([[20.0, FarValuesErr.far], [20.0, -FarValuesErr.far]])  # of no SPE: the one component has all
    spe, interval = fk.kpca_spe(model, new, bounds=True)
    assert spe.max() > 10 * FarValuesErr.error
    assert (interval[:, 0] <= 0.0).all() and interval.max() < 100 * FarValuesErr.error


def test_rows_in_the_span_have_none():
    X = rows(60, 3) @ np.diag([1.0, 1.0, 0.0])
    for options in ({"method": "dense"}, {"method": "features"}):
        model = fk.kpca(X, "linear", 2, **options)
        spe, interval = fk.kpca_spe(model, X, bounds=True)
        assert (spe <= 1e-12).all() and (interval[:, 0] == 0).all()
        assert np.allclose(fk.kpca_spe(model, X + [0, 0, 2.0]), 4.0)


@pytest.mark.parametrize("options", [{"method": "dense"}, {"features": "pivots"}, {"features": "monomial"}], ids=str)
def test_far_rows_and_offsets(options):
    X = rows(200, 3)
    model = fit(X, "gaussian", 5, {"sigma": 1.5} | options)
    far = np.array([[1e3, 0, 0], [1e8, 1e8, -1e8], [1e130, 0, 0]])
    spe, interval = fk.kpca_spe(model, far, bounds=True)
    # |phi(x)|^2 = 1, at right angles to all training rows: 1 + |mean|^2 - what of the mean lies in the components
    assert np.allclose(spe, spe[0], rtol=1e-6) and 1.0 < spe[0] < 2.0
    assert (interval[:, 0] <= spe).all() and np.isfinite(interval).all()
    moved = fit(X + 1e8, "gaussian", 5, {"sigma": 1.5} | options)
    assert np.allclose(fk.kpca_spe(moved, X + 1e8), fk.kpca_spe(model, X), atol=1e-6)


def test_types_threads_files_and_progress(tmp_path):
    X = rows(300, 4)
    for options in ({"method": "dense"}, {"features": "pivots"}):
        single = fit(X.astype(np.float32), "gaussian", 3, {"sigma": 1.5} | options)
        found = fk.kpca_spe(single, X.astype(np.float32))
        assert found.dtype == np.float32 and fk.kpca_t2(single, X.astype(np.float32)).dtype == np.float32
        assert fk.kpca_spe(single, X).dtype == np.float64
        model = fit(X, "gaussian", 3, {"sigma": 1.5} | options)
        assert np.allclose(found, fk.kpca_spe(model, X), atol=1e-5)
        before = X.copy()
        one, many = (fk.kpca_spe(model, X, bounds=True, n_threads=t) for t in (1, 3))
        assert np.array_equal(one[0], many[0]) and np.array_equal(one[1], many[1]) and np.array_equal(X, before)
        fk.save(model, tmp_path / "m.kpca", overwrite=True)
        loaded = fk.load(tmp_path / "m.kpca")
        assert np.array_equal(fk.kpca_spe(loaded, X), one[0])
        assert fk.kpca_limits(loaded, X + 0.01) == fk.kpca_limits(model, X + 0.01)
        seen = []
        fk.kpca_spe(model, X, progress=lambda stage, done, total, seen=seen: seen.append((done, total)))
        assert seen and seen[-1][0] == seen[-1][1]


def test_precomputed():
    X, new = rows(80, 3), rows(10, 3, seed=1)
    K, k = (exact_matrix("gaussian", {"sigma": 1.5}, A, X)[0].astype(float) for A in (X, new))
    model, plain = fk.kpca(K, "precomputed", 4, method="dense"), fk.kpca(X, "gaussian", 4, sigma=1.5, method="dense")
    assert np.allclose(fk.kpca_spe(model, k, diagonal=np.ones(10)), fk.kpca_spe(plain, new))
    assert np.allclose(fk.kpca_t2(model, k), fk.kpca_t2(plain, new))
    spe, interval = fk.kpca_spe(model, k, diagonal=np.ones(10), bounds=True)
    assert (interval[:, 0] <= spe).all()
    assert fk.kpca_limits(model, k, confidence=0.9, diagonal=np.ones(10)).n_calibration == 10


@pytest.mark.parametrize(("options", "confidence"), [({"method": "dense"}, 0.9), ({"features": "pivots"}, 0.99)])
def test_rates_of_false_alarms(options, confidence):
    """On rows never seen: empirical limits of rows never seen are honest for any distribution; parametric ones where
    the scores are normal. 4000 rows: three standard errors are 1.5 and 0.5 percent."""
    X, calibration, new = (rows(n, 5, seed=s) for n, s in ((1500, 0), (2000, 1), (4000, 2)))
    error = 4 * np.sqrt(confidence * (1 - confidence) * (1 / 4000 + 1 / 2000))
    model = fit(X, "gaussian", 6, {"sigma": 2.0, "tol": 1e-4} | options)
    t2, spe = fk.kpca_t2(model, new), fk.kpca_spe(model, new)
    limits = fk.kpca_limits(model, calibration, confidence=confidence, t2="empirical", spe="empirical")
    for values, name in ((t2, "t2"), (spe, "spe")):
        assert abs(limits.exceeded(**{name: values}).mean() - (1 - confidence)) < error
    both = limits.exceeded(t2=t2, spe=spe).mean()
    assert max(limits.exceeded(t2=t2).mean(), limits.exceeded(spe=spe).mean()) <= both <= 2 * (1 - confidence) + error


@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_parametric_limits_where_scores_are_normal(confidence):
    X, new = rows(1500, 8), rows(6000, 8, seed=2)
    error = 4 * np.sqrt(confidence * (1 - confidence) * (1 / 6000 + 1 / 1500))
    model = fk.kpca(X, "linear", 3, method="dense")
    for t2 in ("F", "chi2"):
        with pytest.warns(LimitsWarning, match="rows that the model was made of"):
            limits = fk.kpca_limits(model, confidence=confidence, t2=t2)
        assert limits.n_calibration == 1500
        assert abs(np.mean(fk.kpca_t2(model, new) > limits.t2) - (1 - confidence)) < error
        assert abs(np.mean(fk.kpca_spe(model, new) > limits.spe) - (1 - confidence)) < error
    few = fk.kpca(rows(12, 8), "linear", 3, method="dense")
    f, chi2 = (fk.kpca_limits(few, new, t2=t2).t2 for t2 in ("F", "chi2"))
    assert f > 1.5 * chi2


def test_a_model_of_few_rows_and_all_components():
    X = rows(8, 3)
    model = fk.kpca(X, "gaussian", 7, sigma=1.0, method="dense")
    assert (fk.kpca_spe(model, X) < 1e-12).all()  # nothing is left out
    with pytest.warns(LimitsWarning):
        limits = fk.kpca_limits(model)
    assert np.isfinite(limits.t2) and limits.spe >= 0
    assert isinstance(model.projector, SampleProjector)


def test_limits_are_order_statistics_and_say_where_rows_are_too_few():
    rng = np.random.default_rng(0)
    X, others = rng.standard_normal((300, 3)), rng.standard_normal((1000, 3))
    model = fk.kpca(X, "gaussian", 8, sigma=2.0)
    for joint, fewest in ((False, 99), (True, 199)):
        limits = fk.kpca_limits(model, others[:fewest], joint=joint)
        assert (limits.t2_method, limits.spe_method, limits.joint) == ("empirical", "empirical", joint)
        if not joint:  # the largest of 99 rows
            assert limits.t2 == pytest.approx(fk.kpca_t2(model, others[:99]).max(), rel=1e-12)
            assert limits.spe == pytest.approx(fk.kpca_spe(model, others[:99]).max(), rel=1e-12)
            assert not limits.exceeded(t2=limits.t2, spe=limits.spe)
            assert limits.exceeded(t2=limits.t2 * 1.01, spe=0.0)
        assert limits == fk.kpca_limits(model, others[:fewest], t2="empirical", spe="empirical", joint=joint)
        with pytest.warns(
            LimitsWarning, match=f"at least {fewest} rows, and there are {fewest - 1}: they prove limits"
        ):
            limits = fk.kpca_limits(model, others[: fewest - 1], joint=joint)
        assert (limits.t2_method, limits.spe_method) == ("largest", "largest")
        assert limits.t2 == pytest.approx(fk.kpca_t2(model, others[: fewest - 1]).max(), rel=1e-12)  # other products
    mixed = fk.kpca_limits(model, others, spe="box")
    assert (mixed.t2_method, mixed.spe_method) == ("empirical", "box")


@pytest.mark.filterwarnings("ignore::fastkpca.errors.LimitsWarning")
@pytest.mark.parametrize("options", [{}, {"joint": True}, {"joint": True, "spe": "box"}, {"t2": "F"}], ids=str)
@pytest.mark.parametrize("n", [2, 50])
def test_limits_never_fall_as_confidence_rises(n, options):
    """Where rows were few, F and box came next: 104.6 at 96.6 %, 38.9 at 98.5 %."""
    model, held_out = fk.kpca(rows(400, 4), "gaussian", 20, sigma=2.0), rows(n, 4, seed=1)
    found = [
        fk.kpca_limits(model, held_out, confidence=confidence, **options)
        for confidence in (1e-9, 0.1, 0.5, 0.9, 0.95, 0.966, 0.985, 0.99, 0.995, 0.999, 1 - 1e-12)
    ]
    assert (np.diff([(x.t2, x.spe) for x in found], axis=0) >= 0).all()


def test_the_rows_of_the_model_itself_get_a_word():
    X, other = rows(120, 3), rows(120, 3, seed=1)
    for given in (X, X.astype(np.float32)):
        model = fit(given, "gaussian", 3, {"sigma": 1.0, "method": "dense"})
        for same in (None, given, given[::-1], given[:100]):
            with pytest.warns(LimitsWarning, match="made of rows that the model was made of"):
                fk.kpca_limits(model, same, confidence=0.9)
        for new in (other, np.vstack([X[:100], other])):
            assert fk.kpca_limits(model, new, confidence=0.9).n_calibration == len(new)


@pytest.mark.parametrize("population", ["normal", "lognormal", "alike", "opposed"])
@pytest.mark.parametrize(("n", "confidence"), [(19, 0.9), (30, 0.9), (200, 0.9), (200, 0.99)])
def test_joint_limits_keep_the_rate_of_both(population, n, confidence):
    """T^2 and SPE of rows of the linear kernel with one component are squares of their two columns."""
    rng = np.random.default_rng(0)

    def draw(m):
        a, b = rng.standard_normal((2, m))
        b = {"alike": a, "opposed": np.sign(a) * (3.0 - np.minimum(np.abs(a), 3.0))}.get(population, b)
        x = np.column_stack([3.0 * a, b])
        return np.sign(x) * np.expm1(np.abs(x)) if population == "lognormal" else x

    model = fk.kpca([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]], "linear", 1, method="dense")
    new = draw(4000)
    t2, spe = fk.kpca_t2(model, new), fk.kpca_spe(model, new)
    rates = []
    for _ in range(60):
        limits = fk.kpca_limits(model, draw(n), confidence=confidence, joint=True)
        rates.append(limits.exceeded(t2=t2, spe=spe).mean())
    error = 4 * np.std(rates) / np.sqrt(60)
    assert 0.2 * (1 - confidence) < np.mean(rates) + error and np.mean(rates) - error <= 1 - confidence


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_spe_is_the_distance_from_the_span_of_components_of_second_order(seed):
    """As kpca_spe is documented: these are not orthonormal, and k~(x, x) - |z|^2 lies outside some intervals."""
    rng = np.random.default_rng(seed)
    X, new = rng.standard_normal((300, 2)), rng.standard_normal((200, 2))
    model = fk.kpca(X, "gaussian", 1, sigma=1.0, tol=1e-2, features="pivots", rng=seed)
    assert "residual_rows" in model.info

    def k(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=-1) / 2.0)

    centred = 1.0 - 2.0 * k(new, X).mean(axis=1) + k(X, X).mean()
    z, W = fk.kpca_project(model, new), model.projector.axes
    exact = centred - np.einsum("ij,ij->i", z, z @ np.linalg.inv(W.T @ W))
    low, high = fk.kpca_spe(model, new, bounds=True)[1].T
    assert (low - 1e-12 <= exact).all() and (exact <= high + 1e-12).all()
    without = centred - (z**2).sum(axis=1)
    assert ((without < low) | (without > high)).any()
    # a row far from all others has the largest value that there is
    assert share_of_ceiling(model, float(fk.kpca_spe(model, [[1e3, 1e3]])[0])) == pytest.approx(1.0, abs=1e-9)

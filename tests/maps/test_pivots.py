"""Pivoted Cholesky: the certificate is attacked against LAPACK on the exact matrix, and no small cluster is missed."""

import intervals
import numpy as np
import pytest
import scipy.linalg
from data import unkind_rows

import fastkpca as fk
from fastkpca.base.checks import Randomness
from fastkpca.base.protocol import Kernel, Moments
from fastkpca.kernels import get_kernel
from fastkpca.maps.choosing import Candidates, pivot_map, selected
from fastkpca.maps.pivots import PivotMap
from fastkpca.maps.probe import RankProbe, probe_rank
from fastkpca.products.rates import pivots_cost
from fastkpca.rows.summary import summarize
from fastkpca.rows.view import Rows

U = 2.0**-53


class Gauss(Kernel):
    """By differences: entries good to a few ulp, so that the attack is on the map and not on the kernel.

    Or off by up to ``noise``, neither symmetric nor semidefinite, as a GEMM form far out would be.
    """

    positive_semidefinite = True
    translation = "kernel"
    parameters = {"sigma": 1.0, "noise": 0.0}

    def block(self, X, Y):
        square = sum(((x[:, None] - y) / self.sigma) ** 2 for x, y in zip(X.T, Y.T))
        return np.exp(-0.5 * square) + self.noise * np.sin(1e4 * (X[:, :1] + 1.7 * Y[:, 0]))

    def diagonal(self, X):
        return 1.0 + self.noise * np.cos(1e4 * X[:, 0])


def entry_error(kernel, X):
    """Of the kernels above, generously."""
    top = float(kernel.diagonal(X).max())
    return (8 + 4 * X.shape[1]) * U * top


def assert_certified(feature_map, X, K, error):
    """Intervals, sums of residuals and semidefiniteness against dense LAPACK on K."""
    n = len(X)
    Phi = feature_map.features(X)
    residual = feature_map.residual(X, Phi)
    assert (residual >= 0).all()
    exact = np.diag(K).astype(np.longdouble) - (Phi.astype(np.longdouble) ** 2).sum(axis=1)
    assert (residual >= exact.astype(float) - error).all()
    trace = float(np.trace(K))
    lapack = 20 * n * U * max(trace, 1e-300) + n * error  # what eigvalsh and the entries of K themselves err by
    E = K - Phi @ Phi.T
    bottom = scipy.linalg.eigvalsh(E)[0] if n else 0.0
    assert bottom >= -n * feature_map.defect - lapack
    true = scipy.linalg.eigvalsh(K)[::-1]
    mine = scipy.linalg.eigvalsh(Phi @ Phi.T)[::-1]
    assert (mine <= true + n * feature_map.defect + lapack).all()
    assert (true <= mine + residual.sum() + n * feature_map.defect + lapack).all()
    moments = Moments(feature_map)
    for part in np.array_split(X, 3):
        moments.update(part)
    np.testing.assert_allclose(moments.residual_trace, residual.sum(), rtol=1e-6, atol=lapack)
    return residual.sum() / trace if trace else 0.0


def test_certificate_attacked(attack):
    """Errors that the kernel declares are in it; tests/attacks/attack.py has other kernels."""
    for case in range(attack.count(2000, least=60)):
        rng = attack.rng("pivots", case)
        n, d = int(rng.integers(1, 250)), int(rng.integers(1, 6))
        X = unkind_rows(rng, n, d)
        kernel = Gauss(sigma=float(10.0 ** rng.uniform(-2, 2.5)), noise=rng.integers(2) * 10.0 ** rng.uniform(-14, -5))
        exact = Gauss(sigma=kernel.sigma)
        error = entry_error(exact, X)
        declared = kernel.noise + float(rng.integers(2) or kernel.noise > 0) * error
        tol = 10.0 ** rng.uniform(-12, -2)
        feature_map = pivot_map(kernel, X, tol=tol, max_features=n, rng=rng, entry_error=declared)
        reached = assert_certified(feature_map, X, exact.block(X, X), error)
        assert feature_map.n_features <= n
        # all rows were pivots or seen: tol was met but for the shift and rounding, both known
        floor = 40 * (feature_map.n_features + 2) ** 2 * (U + declared)
        assert not feature_map.reached or reached <= tol + max(floor, 1e-13)


def test_shift_keeps_semidefinite_where_plain_cholesky_fails():
    X = np.sort(np.random.default_rng(0).random((400, 1)), axis=0)
    kernel = Gauss(sigma=3.0)
    with pytest.raises(scipy.linalg.LinAlgError):
        scipy.linalg.cholesky(kernel.block(X, X))
    assert_certified(PivotMap(kernel, X), X, kernel.block(X, X), entry_error(kernel, X))


@pytest.mark.parametrize("n", [1, 2, 31, 33, 200])
def test_tolerance_zero_stops_at_rounding(n):
    rng = np.random.default_rng(n)
    X = rng.random((n, 2))
    kernel = Gauss(sigma=2.0)
    feature_map = pivot_map(kernel, X, tol=0.0, max_features=n, rng=rng)
    assert 1 <= feature_map.n_features <= n
    assert not feature_map.reached or n <= 2
    assert assert_certified(feature_map, X, kernel.block(X, X), entry_error(kernel, X)) < 1e-9


def test_rank_deficient_kernels_stop_at_their_rank():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 3))
    feature_map = pivot_map(get_kernel("polynomial", degree=3), X, tol=1e-11, max_features=300, rng=rng)
    assert feature_map.n_features == 20  # C(3 + 3, 3)
    distinct = pivot_map(Gauss(sigma=0.1), X[rng.integers(0, 17, 300)], tol=1e-12, max_features=300, rng=rng)
    assert distinct.n_features <= 17
    constant = pivot_map(Gauss(), np.ones((50, 4)), tol=1e-12, max_features=50, rng=rng)
    assert constant.n_features == 1


def test_zero_kernel_has_no_features():
    class Zero(Kernel):
        positive_semidefinite = True

        def block(self, X, Y):
            return np.zeros((len(X), len(Y)))

    X = np.ones((5, 2))
    feature_map = pivot_map(Zero(), X, tol=1e-3, max_features=5, rng=np.random.default_rng(0))
    assert feature_map.n_features == 0
    assert feature_map.reached
    moments = feature_map.new_moments()
    moments.update(X)
    assert moments.residual_trace == 0.0


def test_max_features_is_kept_and_said():
    rng = np.random.default_rng(2)
    X = rng.random((500, 6))
    kernel = Gauss(sigma=0.3)
    feature_map = pivot_map(kernel, X, tol=1e-6, max_features=70, rng=rng)
    assert feature_map.n_features == 70
    assert not feature_map.reached
    assert feature_map.predicted == pytest.approx(feature_map.residual(X).sum() / 500, rel=1e-6)


def test_not_semidefinite_is_refused():
    class Tanh(Kernel):
        def block(self, X, Y):
            return np.tanh(X @ Y.T)

    class Liar(Tanh):
        positive_semidefinite = True

        def block(self, X, Y):
            return np.tanh(X @ Y.T - 3.0) + 4.0 * (X[:, :1] == Y[:, 0])

        def diagonal(self, X):
            return np.full(len(X), 1e-3)

    X = np.random.default_rng(3).standard_normal((40, 2))
    with pytest.raises(ValueError, match="does not declare it"):
        pivot_map(Tanh(), X, tol=1e-3, max_features=10, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="are not; set positive_semidefinite"):
        PivotMap(Liar(), np.concatenate([X, -3 * X]))


def test_draws_follow_randomly_pivoted_cholesky():
    """The first two pivots of the blocked draw against the exact distribution of the sequential one."""
    X = np.array([[0.0], [0.1], [0.3], [2.0], [2.2]])
    kernel = Gauss(sigma=0.7)
    K = kernel.block(X, X)
    exact = np.zeros((5, 5))
    for i in range(5):
        left = 1.0 - K[:, i] ** 2
        left[i] = 0.0
        exact[i] = left / left.sum() / 5
    seen = np.zeros((5, 5))
    repeats = 4000
    candidates = Candidates(X, np.ones(5), np.ones(5))
    for seed in range(repeats):
        found = selected(kernel, candidates, 0.0, 2, np.random.default_rng(seed))
        seen[tuple(found.index)] += 1
    expected = exact * repeats
    off = expected > 0
    chi2 = ((seen[off] - expected[off]) ** 2 / expected[off]).sum()
    assert seen[~off].sum() == 0
    assert chi2 < 50  # 19 degrees of freedom: one in 10^4


@pytest.mark.parametrize("n_threads", [1, 4])
def test_what_is_left_of_many_rows_is_added_up_by_weight_and_from_all_parts(n_threads):
    """So many that several tasks share them: the trace after every pivot is that of the Schur complement."""
    rng = np.random.default_rng(4)
    X, weights, kernel = rng.standard_normal((60_000, 3)), rng.random(60_000), get_kernel("gaussian", sigma=1.5)
    candidates = Candidates(X, np.ones(len(X)), weights)
    found = selected(kernel, candidates, 0.0, 90, np.random.default_rng(0), n_threads=n_threads)
    L = np.linalg.cholesky(kernel.block(X[found.index], X[found.index]) + 1e-12 * np.eye(90))
    squares = np.cumsum(scipy.linalg.solve_triangular(L, kernel.block(X[found.index], X), lower=True) ** 2, axis=0)
    left = [weights.sum(), *((1.0 - squares) @ weights)]
    np.testing.assert_allclose(found.trace, left, rtol=1e-6)


def test_features_are_column_major_and_float32_is_kept():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((100, 3))
    feature_map = pivot_map(Gauss(), X, tol=1e-4, max_features=100, rng=rng)
    Phi = feature_map.features(X)
    assert Phi.flags.f_contiguous
    assert Phi.shape == (100, feature_map.n_features)
    single = feature_map.features(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, feature_map.features(X.astype(np.float32).astype(float)), atol=1e-7)
    assert (feature_map.residual(X.astype(np.float32)) >= 0).all()


def test_probe_predicts_the_rank():
    rng = np.random.default_rng(8)
    X = rng.random((6000, 3))
    _, summary = summarize(Rows(X), shift=True, randomness=Randomness(rng))
    kernel = Gauss(sigma=0.5)
    for tol in (1e-3, 1e-6, 1e-8):
        probe = probe_rank(kernel, summary, tol, np.random.default_rng(0), max_probe=128)
        full = pivot_map(
            kernel, summary.sample, tol=tol, max_features=2000, rng=np.random.default_rng(1), n_samples=6000
        )
        assert full.reached
        assert 0.6 * full.n_features <= probe.rank(tol) <= 1.7 * full.n_features
    assert probe.rank(0.0) == np.inf


def test_undeclared_errors_are_found_out():
    """Where the factorisation fails for the declared error, an error of the size seen is assumed, and the map works."""
    X = np.random.default_rng(9).random((150, 2))
    feature_map = PivotMap(Gauss(sigma=3.0, noise=1e-9), X)
    assert 1e-11 < feature_map.entry_error < 1e-8
    assert feature_map.defect > 1e-11
    Phi = feature_map.features(X)
    exact = Gauss(sigma=3.0).block(X, X)
    assert np.abs(exact - Phi @ Phi.T).max() < 1e-7


def test_a_rank_that_nothing_could_hold_has_a_cost_without_overflow():
    # a residual that hardly falls is extrapolated to 1e124 pivots and more, whose cube is no float64
    curve = np.exp(-1e-3 * np.log(np.arange(1.0, 300.0)))
    probe = RankProbe(curve=curve, exhausted=False)
    assert 1e103 < probe.rank(0.5) < np.inf
    cost = pivots_cost(probe.rank(0.5), 10.0, 0.5, candidates=1000)
    assert cost.n_features == 2**31 - 1 and cost.setup_flops == np.inf


@pytest.mark.parametrize("d", [3, 8])
def test_a_probe_tells_what_more_pivots_leave_of_other_rows(d):
    """Trace, and largest eigenvalue, of what is left of rows that the pivots were not chosen from."""
    kernel, X = get_kernel("gaussian", sigma=np.sqrt(d)), np.random.default_rng(0).standard_normal((6000, d))
    summary = summarize(Rows(X), shift=True, randomness=Randomness(1))[1]
    probe = probe_rank(kernel, summary, 1e-12, np.random.default_rng(0), held_out=True)
    rank = np.array([400])
    chosen = pivot_map(
        kernel, summary.sample, tol=0.0, max_features=int(rank[0]), rng=np.random.default_rng(2), n_samples=len(X)
    )
    left = chosen.residual(X - summary.shift)
    assert probe.held_out_residual(rank)[0] == pytest.approx(left.mean(), rel=0.35)
    P = X[:1500] - summary.shift
    Phi, r = chosen.features(P), chosen.residual(P)
    share = np.linalg.eigvalsh(kernel.block(P, P) - Phi @ Phi.T)[-1] / r.sum()
    assert probe.largest_share(rank, np.array([1500]))[0] == pytest.approx(share, rel=0.5)


@pytest.mark.parametrize("tol", [1e-3, 1e-4])
def test_far_rows_do_not_ask_for_ever_more_pivots(tol):
    """What is left of rows beside the sample is that of a few far ones, each of which takes one pivot."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 6)) * np.exp(1.2 * rng.standard_normal((5000, 1)))
    kernel = get_kernel("polynomial", degree=3, scale=1 / 6, offset=1.0)
    summary = summarize(Rows(X), shift=False, randomness=Randomness(1))[1]
    probe = probe_rank(kernel, summary, 1e-12, np.random.default_rng(0), max_probe=64, sample_rows=512, held_out=True)
    needed = pivot_map(kernel, X, tol=tol, max_features=2000, rng=np.random.default_rng(2)).n_features
    assert needed / 3 <= probe.rank(tol) <= 3 * needed + 20


def test_the_plan_knows_below_which_residual_more_pivots_only_round_more():
    X = np.random.default_rng(12).normal(size=(2500, 2))
    model = fk.kpca(X, "gaussian", 50, sigma=0.5, tol=1e-11)
    (pivots,) = (x for x in model.plan.candidates if x.name == "pivots")
    assert pivots.offer.cost.rounding > pivots.offer.cost.residual
    assert "features_tried" not in model.info
    assert intervals.width(model) <= 1e-11

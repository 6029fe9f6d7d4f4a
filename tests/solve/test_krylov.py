"""Block Krylov against dense LAPACK: accuracy, passes, multiplicity, limits, and what it says when it can't."""

import numpy as np
import pytest
from dense_products import DenseProduct, centered, median_distance
from reference import gram

from fastkpca.base.protocol import Summation
from fastkpca.solve.costs import basis_bytes
from fastkpca.solve.krylov import block_krylov
from fastkpca.solve.task import KernelMatrix, SolverBudget, SolverTarget


def solve(
    K,
    c,
    *,
    semidefinite=True,
    search=False,
    reference=None,
    fraction=None,
    tol=1e-6,
    failure=1e-6,
    max_passes=20,
    memory_limit=None,
    entry_error=0.0,
    **options,
):
    """(result, reference eigenvalues); the interval is checked for every problem here."""
    product = DenseProduct(K)
    single = DenseProduct(K, np.float32) if search else None
    trace = options.pop("trace", float(np.trace(K)))
    matrix = KernelMatrix(product, single, trace, semidefinite, entry_error)
    target = SolverTarget(c, tol, fraction, failure)
    result = block_krylov(matrix, target, SolverBudget(max_passes, memory_limit), **options)
    if reference is None:
        reference = np.linalg.eigvalsh(centered(K))[::-1]
    bounds, k = result.certificate.eigenvalue_bounds, len(result.theta)
    rounding = 2e-15 * np.abs(reference).max()
    assert np.all(bounds[:, 0] <= reference[:k] + rounding)
    assert np.all(bounds[:, 1] >= reference[:k] - rounding)
    # what is counted is what was done
    assert result.passes == product.passes + (single.passes if search else 0)
    assert result.search_passes == (single.passes if search else 0)
    assert np.linalg.norm(result.vectors.T @ result.vectors - np.eye(k)) < 1e-12
    assert np.abs(result.vectors.sum(axis=0)).max() < 1e-11
    return result, reference


def error(result, reference):
    return np.abs(result.theta - reference[: len(result.theta)]).max() / np.abs(reference).max()


@pytest.fixture(scope="module")
def digits():
    datasets = pytest.importorskip("sklearn.datasets")
    X = datasets.load_digits().data
    K = gram("gaussian", X, sigma=median_distance(X) / np.sqrt(2))
    return K, np.linalg.eigvalsh(centered(K))[::-1]


@pytest.fixture(scope="module")
def cube():
    X = np.random.default_rng(0).random((600, 5))
    return gram("gaussian", X, sigma=0.5)


@pytest.mark.parametrize("seed", range(3))
def test_passes_on_digits(digits, seed):
    """Issue 3: error 1e-6 after at most 4 passes, certified width 1e-6 after at most 5, from a random start."""
    K, reference = digits
    four, _ = solve(K, 10, tol=1e-12, max_passes=4, rng=seed, reference=reference)
    assert four.passes == 4
    assert error(four, reference) <= 1e-6
    for search in (False, True):
        result, _ = solve(K, 10, tol=1e-6, rng=seed, search=search, reference=reference)
        assert not result.message and result.passes <= 5
        assert result.certificate.bound_kind == "guaranteed"
        assert result.certificate.width <= 1e-6 * result.theta[0]
        assert error(result, reference) <= 1e-6
        assert (result.search_passes > 0) == search


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_tolerance(cube, tol, search):
    result, reference = solve(cube, 8, tol=tol, search=search)
    assert not result.message
    assert result.certificate.width <= tol * result.theta[0]
    assert error(result, reference) <= tol
    assert result.history[-1] == (result.passes, result.certificate.width / result.theta[0])
    Kc = centered(cube)
    np.testing.assert_allclose(result.row_means, cube.mean(axis=1), rtol=1e-13)
    assert result.grand_mean == pytest.approx(cube.mean(), rel=1e-13)
    # the angles, against the dense eigenvectors
    vectors = np.linalg.eigh(Kc)[1]
    certificate = result.certificate
    for label in np.unique(certificate.clusters)[:-1]:
        mine = np.flatnonzero(certificate.clusters == label)
        true = vectors[:, ::-1][:, mine]
        sine = np.linalg.norm(result.vectors[:, mine] - true @ (true.T @ result.vectors[:, mine]), 2)
        assert sine <= np.sin(certificate.angle_bounds[mine[0]]) + 1e-12


@pytest.mark.parametrize("search", [False, True])
def test_indefinite(search):
    X = np.random.default_rng(1).random((500, 5))
    K = np.tanh(3 * X @ X.T - 1)
    result, reference = solve(K, 6, semidefinite=False, search=search)
    assert not result.message and result.certificate.outside.form == "frobenius"
    assert reference[-1] < -1
    assert result.negative_end == pytest.approx(reference[-1], rel=1e-3)
    assert error(result, reference) <= 1e-6


def test_indefinite_without_a_norm_knows_nothing():
    class NoNorm(Summation):
        def __init__(self, K):
            self.K, self.shape = K, K.shape

        def matmat(self, U):
            return self.K @ U

    K = np.tanh(np.random.default_rng(1).standard_normal((60, 60)))
    K = K + K.T
    result = block_krylov(KernelMatrix(NoNorm(K)), SolverTarget(3, failure=1e-6), SolverBudget(3))
    assert result.message
    assert np.all(np.isinf(result.certificate.eigenvalue_bounds))


@pytest.mark.parametrize("block", [3, 5, 8, 20])
def test_multiplicity_above_the_block(block):
    rng = np.random.default_rng(4)
    n = 300
    Q = np.linalg.qr(np.hstack([np.ones((n, 1)), rng.standard_normal((n, n - 1))]))[0][:, 1:]
    K = (Q * np.concatenate([np.ones(8), 0.5 * np.exp(-0.02 * np.arange(n - 9))])) @ Q.T
    K = (K + K.T) / 2
    result, _ = solve(K, 8, block_size=block, max_passes=60, tol=1e-6)
    assert not result.message and result.certificate.bound_kind == "guaranteed"
    np.testing.assert_allclose(result.theta, np.ones(8), atol=1e-6)
    assert np.all(result.certificate.clusters == 0)


@pytest.mark.parametrize("search", [False, True])
def test_start_orthogonal_to_the_wanted_vectors(cube, search):
    """Not one of the start columns has a component along the leading eigenvectors: found all the same."""
    leading = np.linalg.eigh(centered(cube))[1][:, -4:]
    start = np.random.default_rng(0).standard_normal((len(cube), 20))
    start -= leading @ (leading.T @ start)
    result, reference = solve(cube, 4, start=start, block_size=20, search=search)
    assert not result.message
    assert error(result, reference) <= 1e-6


@pytest.mark.parametrize("search", [False, True])
def test_memory_limit(cube, search):
    limit = basis_bytes(len(cube), 50, 14)
    result, reference = solve(cube, 10, tol=1e-8, block_size=14, memory_limit=limit, max_passes=40, search=search)
    assert not result.message
    assert error(result, reference) <= 1e-8
    with pytest.raises(ValueError, match=r"memory_limit of 1e\+04 bytes is too small for a basis; c = 10 in blocks of"):
        solve(cube, 10, memory_limit=1e4)


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("fraction", [0.3, 0.9, 0.99])
def test_fraction(cube, fraction, search):
    result, reference = solve(cube, 4, fraction=fraction, search=search)
    shares = np.cumsum(reference) / reference.sum()
    assert not result.message
    assert len(result.theta) == np.searchsorted(shares, fraction) + 1
    assert result.certificate.eigenvalue_bounds[:, 0].sum() >= fraction * np.trace(centered(cube)) * (1 - 1e-12)


def test_nearly_constant_matrix_says_so():
    """sigma = 1000 times the median: rounding of K, a million times Kc, is what limits."""
    X = np.random.default_rng(2).random((400, 3))
    K = gram("gaussian", X, sigma=1000 * median_distance(X))
    result, _ = solve(K, 3, tol=1e-10, search=True)
    assert "rounding in float64 alone" in result.message
    assert result.passes < 20
    assert result.certificate.width <= 1e-4 * result.theta[0]


def test_flat_spectrum_is_probabilistic_and_labelled():
    """No deterministic mu gets below the tenth eigenvalue; with a fallback the label says so, without it is wide."""
    X = np.random.default_rng(0).random((1200, 3))
    K = gram("gaussian", X, sigma=0.05)
    result, reference = solve(K, 10, tol=1e-4, max_passes=30, search=True)  # no warning: tol is met
    assert result.message == ""
    assert result.certificate.bound_kind == "probabilistic"
    assert 0 < result.certificate.failure_probability <= 1e-6
    assert error(result, reference) <= 1e-4
    result, reference = solve(K, 10, tol=1e-4, max_passes=30, search=True, failure=0.0)
    assert "more passes" in result.message
    assert result.certificate.bound_kind == "guaranteed"
    assert error(result, reference) <= 1e-4


def test_rank_deficient_and_whole_space():
    X = np.random.default_rng(3).standard_normal((40, 2))
    K = (X @ X.T + 1) ** 2
    result, reference = solve(K, 9)  # rank 5 after centring: the others are zero up to rounding
    assert not result.message
    assert error(result, reference) <= 1e-12
    result, reference = solve(K, 39)
    assert error(result, reference) <= 1e-12
    result, reference = solve(np.array([[2.0, 0.0], [0.0, 1.0]]), 1)
    assert result.theta == pytest.approx([1.5])


def test_limit_on_passes_is_kept(cube):
    for limit in (1, 2, 3):
        for search in (False, True):
            result, _ = solve(cube, 10, tol=1e-9, max_passes=limit, search=search)
            assert "max_passes" in result.message
            assert result.passes <= limit


def test_same_seed_same_bits(cube):
    first, _ = solve(cube, 5, rng=3, search=True)
    second, _ = solve(cube, 5, rng=3, search=True)
    np.testing.assert_array_equal(first.vectors, second.vectors)
    np.testing.assert_array_equal(first.certificate.eigenvalue_bounds, second.certificate.eigenvalue_bounds)
    seen = []
    solve(cube, 5, rng=3, progress=lambda *step: seen.append(step))
    assert seen[0] == ("krylov", 1, 20) and [s[1] for s in seen] == list(range(1, len(seen) + 1))


def test_entry_error_widens_the_interval(cube):
    sharp, _ = solve(cube, 3)
    wide, _ = solve(cube, 3, entry_error=1e-6)
    assert wide.message
    assert wide.certificate.width >= sharp.certificate.width + 2 * len(cube) * 1e-6


class _WrongEntries(DenseProduct):
    """Each pass errs by ``error`` in every entry, with signs that change what it multiplies as much as can be."""

    def __init__(self, K, error, seed):
        super().__init__(K)
        self.exact, self.error, self.rng = K, error, np.random.default_rng(seed)

    def _err(self, U):
        way = U[:, 0] if self.rng.random() < 0.5 else U @ self.rng.standard_normal(U.shape[1])
        signs = np.where(way < 0, -1.0, 1.0)
        self.K = self.exact + self.error * self.rng.choice([-1.0, 1.0]) * np.outer(signs, signs)
        if self.rng.random() < 0.3:  # the mean of all errs by as much, and the trace the other way
            self.K = self.exact + self.error * (1.0 - 2.0 * np.eye(len(U)))

    def matmat(self, U):
        self._err(U)
        return super().matmat(U)

    def pass_with_norm(self, U, row_means, grand_mean):
        self._err(U)
        return super().pass_with_norm(U, row_means, grand_mean)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("fall", "tol"), [(0.5, 1e-6), (0.8, 1e-4), (0.9, 1e-2)])
def test_intervals_hold_where_each_pass_has_other_errors_in_its_entries(seed, fall, tol):
    """Most entries of a pass err the same way: its bound is n e for all of its columns, and that is nearly reached."""
    n, c, rng = 300, 6, np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    K = (Q * fall ** np.arange(n)) @ Q.T
    reference = np.linalg.eigvalsh(centered(K))[::-1]
    error = 0.02 * tol / n
    product = _WrongEntries(K, error, seed)
    matrix = KernelMatrix(product, None, float(np.trace(K)) - n * error, True, error)
    result = block_krylov(matrix, SolverTarget(c, tol, failure=1e-6), SolverBudget(20), rng=seed)
    lower, upper = result.certificate.eigenvalue_bounds.T
    assert not result.message and (lower <= reference[:c]).all() and (reference[:c] <= upper).all()
    # one pass errs by n e; what the certificate adds to it is a small multiple, however many columns there are
    assert result.certificate.rounding <= 3.0 * np.sqrt(result.passes) * n * error


@pytest.mark.parametrize(
    "options", [{"c": 0}, {"c": 600}, {"c": 2, "max_passes": 0}, {"c": 2, "fraction": 0.5, "trace": None}]
)
def test_refused(cube, options):
    with pytest.raises(ValueError):
        solve(cube, **options)

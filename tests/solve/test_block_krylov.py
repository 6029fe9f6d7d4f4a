"""Block Krylov against dense LAPACK: accuracy, passes, multiplicity, limits, and what it says when it can't."""

import logging

import intervals
import numpy as np
import pytest
from dense_products import DenseProduct, centered
from reference import gram, with_eigenvalues

from fastkpca.products.implicit import KernelMatrix
from fastkpca.solve.block_krylov import block_krylov
from fastkpca.solve.costs import basis_bytes
from fastkpca.solve.operators import CentredProducts
from fastkpca.solve.task import SolverBudget, SolverTarget


def solve(K, c, *, search=False, fraction=None, tol=1e-6, failure=1e-6, max_passes=20, memory_limit=None, **options):
    """(result, reference eigenvalues); the interval is checked for every problem here."""
    product = DenseProduct(K)
    single = DenseProduct(K, np.float32) if search else None
    trace = options.pop("trace", float(np.trace(K)))
    matrix = KernelMatrix(product, single, trace, True)
    target = SolverTarget(c, tol, fraction, failure)
    result = block_krylov(matrix, target, SolverBudget(max_passes, memory_limit), **options)
    reference = np.linalg.eigvalsh(centered(K))[::-1]
    intervals.hold(result.certificate, reference, 2e-15 * np.abs(reference).max())
    # what is counted is what was done
    assert result.passes == product.passes + (single.passes if search else 0)
    assert result.search_passes == (single.passes if search else 0)
    assert np.linalg.norm(result.vectors.T @ result.vectors - np.eye(len(result.values))) < 1e-12
    assert np.abs(result.vectors.sum(axis=0)).max() < 1e-11
    return result, reference


def error(result, reference):
    return np.abs(result.values - reference[: len(result.values)]).max() / np.abs(reference).max()


@pytest.mark.parametrize("sigma", [1.0, 1e3, 1e4])
def test_the_norm_is_a_bound_and_is_measured_again_where_rough_means_make_most_of_its_error(sigma):
    K = gram("gaussian", np.random.default_rng(0).standard_normal((300, 5)), sigma=sigma)
    exact, v = float(np.linalg.norm(centered(K))), np.linalg.qr(np.random.default_rng(1).standard_normal((300, 2)))[0]
    A = CentredProducts(KernelMatrix(DenseProduct(K), DenseProduct(K, np.float32), float(np.trace(K)), True))
    A.multiply_in_float32(v, False)
    A.measures = True
    A.multiply(v)
    assert exact * (1 - 1e-15) <= A.norm_bound and A.norm_wanting == (sigma == 1e4)
    A.multiply(v)
    assert exact * (1 - 1e-15) <= A.norm_bound <= 1.01 * exact and not A.norm_wanting


@pytest.fixture(scope="module")
def cube():
    X = np.random.default_rng(0).random((600, 5))
    return gram("gaussian", X, sigma=0.5)


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_tolerance(cube, tol, search):
    result, reference = solve(cube, 8, tol=tol, search=search)
    assert not result.message
    assert result.certificate.width <= tol * result.values[0]
    assert error(result, reference) <= tol
    assert result.history[-1] == (result.passes, result.certificate.width / result.values[0])
    np.testing.assert_allclose(result.row_means, cube.mean(axis=1), rtol=1e-13)
    assert result.grand_mean == pytest.approx(cube.mean(), rel=1e-13)


@pytest.mark.parametrize("search", [False, True])
def test_each_pass_and_each_check_has_a_line_of_the_log(cube, search, caplog):
    with caplog.at_level(logging.INFO, "fastkpca"):
        result, _ = solve(cube, 8, tol=1e-9, search=search)
    lines = [record.getMessage() for record in caplog.records]
    assert sum("float64" in x for x in lines) == result.passes - result.search_passes
    assert sum("float32" in x for x in lines) == result.search_passes
    assert sum(" expected intervals of " in x for x in lines) == len(result.search_history)
    assert sum(", intervals of " in x for x in lines) == len(result.history)
    assert lines[-1].endswith(
        f"intervals of {result.certificate.width / result.values[0]:.2g} of the largest eigenvalue"
    )


@pytest.mark.parametrize("block", [3, 20])
def test_multiplicity_above_the_block(block):
    values = np.concatenate([np.ones(8), 0.5 * np.exp(-0.02 * np.arange(291))])
    K = with_eigenvalues(np.random.default_rng(4), values, centred=True)
    result, _ = solve(K, 8, block_size=block, max_passes=60, tol=1e-6)
    assert not result.message and result.certificate.bound_kind == "guaranteed"
    np.testing.assert_allclose(result.values, np.ones(8), atol=1e-6)
    assert np.all(result.certificate.clusters == 0)


def test_memory_limit(cube):
    limit = basis_bytes(len(cube), 50, 14)
    result, reference = solve(cube, 10, tol=1e-8, block_size=14, memory_limit=limit, max_passes=40, search=True)
    assert not result.message
    assert error(result, reference) <= 1e-8
    with pytest.raises(ValueError, match=r"memory_limit of 1e\+04 bytes is too small for a basis; c = 10 in blocks of"):
        solve(cube, 10, memory_limit=1e4)


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("fraction", [0.3, 0.99])
def test_fraction(cube, fraction, search):
    result, reference = solve(cube, 4, fraction=fraction, search=search)
    shares = np.cumsum(reference) / reference.sum()
    assert not result.message
    assert len(result.values) == np.searchsorted(shares, fraction) + 1
    assert result.certificate.eigenvalue_bounds[:, 0].sum() >= fraction * np.trace(centered(cube)) * (1 - 1e-12)


def test_flat_spectrum_is_probabilistic_and_labelled():
    """No deterministic mu gets below the tenth eigenvalue in few passes; with a fallback the label says so, without it
    is wide."""
    X = np.random.default_rng(0).random((700, 3))
    K = gram("gaussian", X, sigma=0.06)
    result, reference = solve(K, 10, tol=1e-4, max_passes=30, search=True)  # no warning: tol is met
    assert result.message == ""
    assert result.certificate.bound_kind == "probabilistic"
    assert 0 < result.certificate.failure_probability <= 1e-6
    assert error(result, reference) <= 1e-4
    result, reference = solve(K, 10, tol=1e-4, max_passes=12, search=True, failure=0.0)
    assert "more passes" in result.message
    assert result.certificate.bound_kind == "guaranteed"
    assert error(result, reference) <= 1e-4


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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("fall", "tol"), [(0.5, 1e-6), (0.8, 1e-4), (0.9, 1e-2)])
def test_intervals_hold_where_each_pass_has_other_errors_in_its_entries(seed, fall, tol):
    """Most entries of a pass err the same way: its bound is n e for all of its columns, and that is nearly reached."""
    n, c = 300, 6
    K = with_eigenvalues(np.random.default_rng(seed), fall ** np.arange(n))
    reference = np.linalg.eigvalsh(centered(K))[::-1]
    error = 0.02 * tol / n
    product = _WrongEntries(K, error, seed)
    matrix = KernelMatrix(product, None, float(np.trace(K)) - n * error, True, error)
    result = block_krylov(matrix, SolverTarget(c, tol, failure=1e-6), SolverBudget(20), rng=seed)
    intervals.hold(result.certificate, reference)
    assert not result.message
    # one pass errs by n e; what the certificate adds to it is a small multiple, however many columns there are
    assert result.certificate.rounding <= 3.0 * np.sqrt(result.passes) * n * error


@pytest.mark.parametrize(
    "options", [{"c": 0}, {"c": 600}, {"c": 2, "max_passes": 0}, {"c": 2, "fraction": 0.5, "trace": None}]
)
def test_refused(cube, options):
    with pytest.raises(ValueError):
        solve(cube, **options)

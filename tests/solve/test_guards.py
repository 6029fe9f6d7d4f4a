"""Bounds from Ritz values of a search in float32: against dense LAPACK, with the largest errors of products."""

import numpy as np
import pytest
from dense_products import DenseProduct, centered, median_distance
from reference import gram

import fastkpca as fk
from fastkpca.products import exact
from fastkpca.rows.view import Rows
from fastkpca.solve import exact_passes, search
from fastkpca.solve.beyond import guarded_mu
from fastkpca.solve.centred import CentredProducts
from fastkpca.solve.certificate import upper_ends
from fastkpca.solve.costs import Expenses
from fastkpca.solve.krylov import block_krylov
from fastkpca.solve.task import KernelMatrix, SolverBudget, SolverTarget


class WrongProduct(DenseProduct):
    """Every entry errs by all that it may."""

    def __init__(self, K, error, shift, rng, harm):
        super().__init__(K)
        self.search_error, self._sizes, self._rng, self._harm = (error, shift), np.abs(K - shift), rng, harm

    def matmat(self, U):
        return self._wrong(super().matmat(U), U)

    def pass_with_norm(self, V, row_means, grand_mean):
        found = super().pass_with_norm(V, row_means, grand_mean)
        return type(found)(self._wrong(found[0], V), *found[1:])

    def _wrong(self, product, U):
        U = U.astype(np.float64)
        most = 0.999 * self.search_error[0] * (self._sizes @ np.abs(U))
        if self._harm == "random":
            return product + most * self._rng.choice([-1.0, 1.0], U.shape)
        return product + most * np.sign(product if self._harm == "larger" else -product)


def spectrum(kind, n, rng):
    if kind == "falling":
        return np.exp(-0.15 * np.arange(n)) * rng.uniform(0.5, 1.5, n)
    if kind == "steps":
        return np.repeat(2.0 ** -np.arange(8), -(-n // 8))[:n] ** 3 * rng.uniform(0.99, 1.01, n)
    return np.where(np.arange(n) < n // 8, 1.0 + 0.3 * rng.random(n), 1e-3)  # many that are nearly equal


@pytest.mark.parametrize("harm", ["random", "larger", "smaller"])
@pytest.mark.parametrize("kind", ["falling", "steps", "equal"])
@pytest.mark.parametrize("semidefinite", [True, False])
def test_no_eigenvalue_beyond_the_basis_is_above_the_bound(kind, harm, semidefinite, monkeypatch):
    rng = np.random.default_rng([ord(kind[0]), ord(harm[0]), semidefinite])
    seen, bound = [], exact_passes.guarded_bound
    runs = []
    monkeypatch.setattr(exact_passes, "guarded_bound", lambda *args: seen.append(bound(*args)) or seen[-1])
    certify = exact_passes.ExactRun._certify

    def spied(run, pairs):
        before = len(seen)
        verdict = certify(run, pairs)
        if len(seen) > before:
            Q = np.linalg.qr(run.basis.Q)[0]
            runs.append((seen[-1].mu, Q))
        return verdict

    monkeypatch.setattr(exact_passes.ExactRun, "_certify", spied)
    monkeypatch.setattr(search, "saved_seconds", lambda *sizes: 1.0)  # as of many rows
    for number in range(8):
        n = int(rng.integers(120, 300))
        values = spectrum(kind, n, rng)
        if not semidefinite:
            values = values * rng.choice([1.0, 1.0, 1.0, -0.5], n)
        V = np.linalg.qr(rng.standard_normal((n, n)))[0]
        K = (V * values) @ V.T + (number % 2) * 3.0 / n
        K = (K + K.T) / 2
        shift = float(K.mean()) * (number % 4 > 1)
        single = WrongProduct(K, 10.0 ** rng.uniform(-8, -3), shift, rng, harm)
        matrix = KernelMatrix(DenseProduct(K), single, float(np.trace(K)), semidefinite)
        target = SolverTarget(int(rng.choice([1, 3, 6])), 10.0 ** rng.uniform(-6, -2), failure=1e-6)
        before = len(runs)
        result = block_krylov(matrix, target, SolverBudget(40), rng=number)
        exact_values = np.linalg.eigvalsh(centered(K))[::-1]
        bounds, c = result.certificate.eigenvalue_bounds, len(result.theta)
        assert np.all(bounds[:, 0] <= exact_values[:c] + 1e-13) and np.all(bounds[:, 1] >= exact_values[:c] - 1e-13)
        for mu, Q in runs[before:]:
            A = centered(K)
            P = np.eye(n) - Q @ Q.T
            assert np.linalg.eigvalsh(P @ A @ P)[-1] <= mu + 1e-13
    if semidefinite and kind == "falling":
        assert len(runs) >= 4  # the bound is made


def test_bound_from_blocks_of_any_matrix():
    """The formula alone: V_1, V_2, V_3 of random matrices, with the largest error that it allows."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        n, k = int(rng.integers(4, 14)), int(rng.integers(1, 3))
        p = int(rng.integers(1, n - k))
        A = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-2, 2, n)
        A = A @ A.T if rng.random() < 0.5 else A + A.T
        if rng.random() < 0.7:  # small coupling
            A[k + p :, k : k + p] *= 1e-3
            A[k : k + p, k + p :] *= 1e-3
            if np.linalg.eigvalsh(A)[0] < 0:
                trace_known = False
            else:
                trace_known = True
        else:
            trace_known = bool(np.linalg.eigvalsh(A)[0] >= 0)
        values, Y = np.linalg.eigh(A[k : k + p, k : k + p])
        order = np.argsort(-values)
        turn = np.eye(n)
        turn[k : k + p, k : k + p] = Y[:, order]
        A = turn.T @ A @ turn
        eta = 10.0 ** rng.uniform(-6, -1) * np.linalg.norm(A)
        theta = np.sort(np.diag(A)[k : k + p] + rng.uniform(-1, 1, p) * eta / np.sqrt(p))[::-1]
        residuals = np.linalg.norm(A[k + p :, k : k + p], axis=0)
        squares = np.maximum(residuals - rng.random(p) * eta / np.sqrt(p), 0.0) ** 2
        rest = A[k:, k:]
        trace = float(np.trace(rest)) if trace_known and np.linalg.eigvalsh(A)[0] >= 0 else np.inf
        square = np.linalg.norm(A) ** 2 - np.linalg.norm(A[:k, :k]) ** 2 - 2 * np.linalg.norm(A[k:, :k]) ** 2
        mu = guarded_mu(theta, squares, float(eta), trace, float(square), 1e-14 * np.linalg.norm(A) ** 2)
        assert np.linalg.eigvalsh(rest)[-1] <= mu * (1 + 1e-12)


def test_product_in_float32_errs_by_no_more_than_it_says():
    rng = np.random.default_rng(2)
    for n, d, sigma in ((300, 40, 8.0), (1500, 70, 30.0), (900, 3, 0.3)):
        X = rng.standard_normal((n, d))
        double = exact.ExactSummation(fk.get_kernel("gaussian", sigma=sigma), Rows(X), keeps=True)
        single = double.in_float32()
        K = gram("gaussian", X, sigma=sigma)
        relative, shift = single.search_error
        assert abs(shift - K.mean()) < 0.2 * K.std()
        U = rng.standard_normal((n, 5))
        U -= U.mean(axis=0)
        error = single.matmat(U.astype(np.float32)) - K @ U
        error -= error.mean(axis=0)
        most = relative * (np.abs(K - shift) @ np.abs(U))
        assert np.linalg.norm(error) <= np.linalg.norm(most)
        # and the mean that was taken off is put back
        assert np.abs(single.matmat(np.ones((n, 1), dtype=np.float32))[:, 0] - K.sum(axis=1)).max() < 1e-4 * n


def test_exact_pass_multiplies_the_wanted_vectors_alone(monkeypatch):
    """Before, it took as many as bring the sum of squares down: 42 columns on digits."""
    datasets = pytest.importorskip("sklearn.datasets")
    X = datasets.load_digits().data
    columns = []
    square = exact.ExactSummation._square

    def spied(self, pair, U, *args):
        if self.dtype == np.float64 and U.shape[1] > 1:
            columns.append(U.shape[1])
        return square(self, pair, U, *args)

    monkeypatch.setattr(exact.ExactSummation, "_square", spied)
    model = fk.kpca(X, "gaussian", 10, sigma=median_distance(X) / np.sqrt(2))
    assert model.bound_kind == "guaranteed"
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() <= 1e-6 * model.eigenvalues[0]
    assert columns == [12]  # two more; the pass that has computed the values has brought the row sums and the norm


@pytest.mark.parametrize("apart", [False, True])
def test_the_pass_that_computes_the_values_measures_the_norm_unless_row_means_differ_too_much(apart):
    rng = np.random.default_rng(11)
    X = rng.random((900, 40)) * (0.01 if apart else 1.0) + (1.0 + 0.1 * rng.random((900, 1))) * apart
    double = exact.ExactSummation(fk.get_kernel("polynomial", degree=2, offset=1.0), Rows(X), keeps=True)
    single = double.in_float32()
    products = CentredProducts(
        KernelMatrix(double, single, measured=double.measured, about=double.shift), Expenses(SolverBudget(), None)
    )
    K = (X @ X.T + 1.0) ** 2
    means = K.mean(axis=1)
    centred = K - means - means[:, None] + means.mean()
    np.testing.assert_allclose(products.row_means, means, rtol=1e-12)
    assert products.estimated_norm == pytest.approx(np.linalg.norm(centred), rel=1e-8)
    crude = np.sum((K - double.shift) ** 2) > 16.0 * np.sum(centred**2)
    assert crude == (products.norm is None) == apart
    if not crude:
        assert abs(products.norm.centred**2 - np.sum(centred**2)) <= products.norm.square_error
    columns = rng.standard_normal((900, 3))
    products.exact(columns - columns.mean(axis=0), products.norm_wanting)
    assert products.norm is not None and not products.norm.cancelled
    assert abs(products.norm.centred**2 - np.sum(centred**2)) <= products.norm.square_error


@pytest.mark.parametrize("mu_share", [0.3, 0.9, 0.999])
def test_expected_width_is_that_of_the_whole_problem_though_a_smaller_one_tells_it(monkeypatch, mu_share):
    """Residuals of a Krylov space at each of its steps: those of small Ritz values are folded into what is outside."""
    rng, n, b, c, orders = np.random.default_rng(7), 240, 8, 5, []
    A = np.diag(np.geomspace(1.0, 1e-7, n))
    dsyevd = search.lapack.dsyevd
    monkeypatch.setattr(search.lapack, "dsyevd", lambda a, **how: orders.append(len(a)) or dsyevd(a, **how))
    Q = np.linalg.qr(rng.standard_normal((n, b)))[0]
    for _ in range(7):
        Q = np.linalg.qr(np.hstack([Q, A @ Q[:, -b:]]))[0]
        theta, Y = (x[..., ::-1] for x in np.linalg.eigh(Q.T @ A @ Q))
        R = A @ Q - Q @ (Q.T @ A @ Q)
        residuals = np.linalg.qr(R[:, -b:])[0].T @ R @ Y
        mu = mu_share * theta[c - 1]
        orders.clear()
        width = search._width(theta, residuals, mu, c)
        assert orders[0] < len(theta) + b
        whole = np.max(upper_ends(np.diag(theta), residuals, mu)[:c] - theta[:c])
        assert abs(width - whole) <= 0.25 * whole + 1e-13


def test_columns_are_planned_with_what_the_search_itself_errs_by():
    """Of an indefinite kernel, the norm less Ritz values in float32 tells nothing of eigenvalues far below theta_1."""
    X = np.random.default_rng(0).random((600, 3))
    model = fk.kpca(X, "tanh", 5, scale=0.2)
    assert model.eigenvalues[4] < 1e-4 * model.eigenvalues[0]
    assert model.info["search_passes"] == 2 and "factorisations" not in model.info
    assert np.ptp(model.eigenvalue_bounds, axis=1).max() <= 1e-6 * model.eigenvalues[0]

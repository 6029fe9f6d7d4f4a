"""Two levels of modes: what they return are eigenvalues, and the intervals hold, also where the split is a bad one."""

import numpy as np
import pytest
import scipy.linalg

from fastkpca.maps.fourier import gaussian_fourier_map
from fastkpca.solve import nested
from fastkpca.solve.lanczos import Lanczos, SymmetricOperator, leading_pairs
from fastkpca.solve.task import SolverTarget


def moments_of(X, sigma, tol=1e-5):
    made = gaussian_fourier_map(np.array([X.min(axis=0), X.max(axis=0)]), sigma, tol).new_moments()
    made.update(X)
    return made


def data(kind, n, d, seed):
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.random((n, d))
    if kind == "clusters":
        return rng.random((6, d))[rng.integers(0, 6, n)] + 0.01 * rng.standard_normal((n, d))
    if kind == "lattice":  # multiple eigenvalues, exactly
        side = round(n ** (1 / d))
        return np.stack(np.meshgrid(*[np.linspace(0, 1, side)] * d), axis=-1).reshape(-1, d)
    X = rng.random((n, d))  # a heavy point: the symbol peaks there
    X[: n // 2] = X[0]
    return X


CASES = [(kind, 2, 0.1) for kind in ("uniform", "clusters", "lattice", "heavy")]
CASES += [("uniform", 3, 0.3), ("clusters", 3, 0.3), ("heavy", 3, 2.0)]


@pytest.mark.parametrize(("kind", "d", "sigma"), CASES)
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_intervals_hold(kind, d, sigma, tol, monkeypatch):
    monkeypatch.setattr(nested, "LEAST", 200)
    monkeypatch.setattr(nested, "MOST_HEAVY", 0.8)
    moments = moments_of(data(kind, 1000, d, 3), sigma, 1e-5 if d == 2 else 1e-2)
    found = nested.nested_pairs(moments, SolverTarget(5, tol, failure=1e-6))
    if found is None:
        assert (kind, d) == ("heavy", 3)  # no light modes to speak of; everywhere else two levels do get there
        return
    D = moments.map.n_features
    exact = scipy.linalg.eigvalsh(moments.form(), subset_by_index=[D - 6, D - 1])[::-1]
    ends = found.certificate.eigenvalue_bounds
    rounding = 1e-12 * exact[0]
    assert (ends[:6, 0] <= exact[: len(ends)] + rounding).all() and (exact[: len(ends)] - rounding <= ends[:6, 1]).all()
    assert np.ptp(ends[:5], axis=1).max() <= tol * exact[0]
    assert found.certificate.bound_kind == "probabilistic" and 0 < found.certificate.failure_probability <= 1e-4
    V = found.vectors[:, :5]
    assert np.abs(V.T @ V - np.eye(5)).max() < 1e-10
    assert np.linalg.norm(moments.matmat(V) - V * found.values[:5]) <= found.residual * (1 + 1e-9) + rounding


@pytest.mark.parametrize(("kind", "d", "sigma"), CASES)
@pytest.mark.parametrize("share", [1e-1, 1e-3, 1e-5])
def test_bound_on_the_light_modes(kind, d, sigma, share):
    moments = moments_of(data(kind, 1000, d, 4), sigma, 1e-5 if d == 2 else 1e-2)
    C = moments.form()
    small, kept, left = moments.heavy(share)
    others = np.setdiff1d(np.arange(len(C)), kept)
    largest = np.linalg.eigvalsh(C[np.ix_(others, others)])[-1]
    assert largest <= left
    U = np.random.default_rng(0).standard_normal((len(kept), 2))
    assert np.abs(small.matmat(U) - C[np.ix_(kept, kept)] @ U).max() < 1e-11 * np.abs(C).sum(axis=1).max()
    assert abs(small.trace - np.trace(C[np.ix_(kept, kept)])) < 1e-9 * np.trace(C)
    assert np.linalg.norm(C[np.ix_(kept, kept)]) <= small.norm


def test_every_way_out_is_none_or_proved(monkeypatch):
    """A start that has missed an eigenvector is not certified as if it had not."""
    monkeypatch.setattr(nested, "LEAST", 200)
    monkeypatch.setattr(nested, "MOST_HEAVY", 0.8)
    moments = moments_of(data("uniform", 1000, 2, 5), 0.1)
    exact = scipy.linalg.eigvalsh(moments.form())[::-1][:6]
    keep = nested._HeavySearch._keep

    def spoiled(self, *arguments):
        keep(self, *arguments)
        self.vectors = np.roll(self.vectors, -1, axis=1)  # the first is gone from the start

    monkeypatch.setattr(nested._HeavySearch, "_keep", spoiled)
    found = nested.nested_pairs(moments, SolverTarget(5, 1e-6, failure=1e-6))
    if found is not None:
        ends = found.certificate.eigenvalue_bounds[:5]
        assert (ends[:, 0] <= exact[:5] + 1e-9).all() and (exact[:5] <= ends[:, 1] + 1e-9).all()


def test_same_bits_twice():
    moments = moments_of(data("uniform", 3000, 3, 6), 0.4)
    one, two = (nested.nested_pairs(moments, SolverTarget(5, 1e-6, failure=1e-6)) for _ in range(2))
    assert one is not None and (one.values == two.values).all() and (one.vectors == two.vectors).all()


def test_the_residual_of_a_recurrence_takes_no_products():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((400, 400)))[0]
    spectrum = 0.8 ** np.arange(400.0)
    A = (Q * spectrum) @ Q.T
    columns = 0

    def matmat(U):
        nonlocal columns
        columns += U.shape[1]
        return A @ U

    operator = SymmetricOperator(matmat, 400, float(np.trace(A)), float(np.linalg.norm(A)), 1e-13, 1e-13)
    for tol in (1e-2, 1e-6, 1e-9):
        columns = 0
        pairs = leading_pairs(operator, SolverTarget(6, tol, failure=1e-6))
        V = pairs.vectors[:, :6]
        assert columns == pairs.columns and pairs.certificate.bound_kind == "guaranteed"
        assert np.linalg.norm(A @ V - V * pairs.values[:6]) <= pairs.residual
        assert np.ptp(pairs.certificate.eigenvalue_bounds[:6], axis=1).max() <= tol


def test_where_products_are_dear_an_exploration_is_rarely_made_twice(monkeypatch):
    n, explorations, explored = 4000, 0, Lanczos.explored_bound
    spectrum = np.concatenate([1.0 - 0.02 * np.arange(6), 0.7 * np.linspace(1, 0, n - 6)])

    def counted(*arguments, **options):
        nonlocal explorations
        explorations += 1
        return explored(*arguments, **options)

    monkeypatch.setattr(Lanczos, "explored_bound", counted)
    sums = float(spectrum.sum()), float(np.linalg.norm(spectrum))
    operator = SymmetricOperator(lambda U: spectrum[:, None] * U, n, *sums, 1e-14, 1e-14, dear=True)
    for tol in 10.0 ** -np.arange(2, 9, 0.5):
        pairs = leading_pairs(operator, SolverTarget(6, tol, failure=1e-6))
        ends = pairs.certificate.eigenvalue_bounds[:6]
        assert (ends[:, 0] <= spectrum[:6]).all() and (spectrum[:6] <= ends[:, 1]).all()
        assert np.ptp(ends, axis=1).max() <= tol
    assert explorations <= 17

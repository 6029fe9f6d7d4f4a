"""Bounds from the entries of the matrix beyond some vectors, against LAPACK on that matrix."""

from types import SimpleNamespace

import intervals
import numpy as np
import pytest
from dense_products import centered, entries_of

import fastkpca as fk
from fastkpca.kernels import get_kernel
from fastkpca.solve.certifier import Proof, Proofs
from fastkpca.solve.costs import Expenses
from fastkpca.solve.deflated import DeflatedMatrix
from fastkpca.solve.task import SolverBudget


def flat_matrix(rng, n, *, indefinite=False):
    """A kernel matrix with a flat spectrum, and an offset that centring removes."""
    d = int(rng.integers(3, 12))
    X = rng.standard_normal((n, d))
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    K = np.exp(-squares / (2 * d * rng.uniform(0.02, 1.0) ** 2)) + rng.choice([0.0, 1.0, 30.0])
    if indefinite:
        K = K - 0.5 * np.eye(n)
    return (K + K.T) / 2


def rest_of(K, p, noise, rng, rows=None):
    """(DeflatedMatrix, P A P) for p eigenvectors that are off by some noise."""
    A = centered(K)
    V = np.linalg.eigh(A)[1][:, ::-1][:, :p]
    V = V + noise * rng.standard_normal(V.shape)
    V = np.linalg.qr(V - V.mean(axis=0))[0]
    P = np.eye(len(K)) - V @ V.T
    entries = entries_of(K) if rows is None else rows
    rest = DeflatedMatrix(entries, V, A @ V, K.mean(axis=1), 1e-15 * np.linalg.norm(K))
    return rest, P @ A @ P


@pytest.mark.parametrize("scale", [1.0, 1e-44, 1e38, 1e120])
def test_a_factorisation_never_proves_too_small_a_bound(scale):
    """On either side of the largest eigenvalue, close to it and far, for definite and indefinite matrices.

    Of values beyond the range of float32, too.
    """
    rng, proved, trials = np.random.default_rng(0), 0, 45 if scale == 1.0 else 6
    for trial in range(trials):
        n = int(rng.integers(20, 400))
        K = flat_matrix(rng, n, indefinite=trial % 3 == 0)
        rest, left = rest_of(scale * K, int(rng.integers(1, 8)), 10.0 ** rng.uniform(-12, 0), rng)
        largest = np.linalg.eigvalsh(left / scale)[-1] * scale
        for off in (-0.5, -1e-2, -1e-4, -1e-6, 1e-6, 1e-4, 1e-2, 0.5):
            bound = rest.factorised_bound(largest * (1.0 + off))
            if np.isfinite(bound.mu):
                proved += 1
                assert off > 0.0 and bound.mu == largest * (1.0 + off) and bound.failure_probability == 0.0
        assert np.isfinite(rest.factorised_bound(1.1 * largest).mu)
    assert proved >= trials


@pytest.mark.parametrize(
    ("n", "d", "kernel", "c", "options"),
    [
        (1200, 8, get_kernel("gaussian", sigma=0.7), 5, {"tol": 1e-5}),
        (1200, 8, get_kernel("tanh", scale=3.0, offset=-1.0), 5, {"tol": 1e-5}),
        (1200, 6, get_kernel("gaussian", sigma=0.4), 4, {"tol": 1e-5, "sample_weight": 1.0 + np.arange(1200) % 3}),
        (1200, 6, get_kernel("gaussian", sigma=0.4), 4, {"tol": 1e-5, "center": False}),
        # before passes over a wide basis, which would cost more
        (1000, 20, get_kernel("polynomial", degree=5, scale=0.05, offset=1.0), 30, {"tol": 1e-2}),
    ],
)
def test_a_factorisation_makes_flat_spectra_of_few_rows_certain(n, d, kernel, c, options):
    X = np.random.default_rng(4).standard_normal((n, d))
    model = fk.kpca(X, kernel, c, method="krylov", products="exact", **options)
    assert model.info["factorisations"] >= 1 and model.bound_kind == "guaranteed" and not model.failure_probability
    assert c < 30 or model.info["matrix_passes"] == model.info["search_passes"] + 1
    values = fk.kpca(X, kernel, c, method="dense", **options).eigenvalues
    intervals.hold(model, values, 1e-13 * values[0], tol=options["tol"])


@pytest.mark.parametrize(("certain", "apart"), [(True, 2.0), (False, 1.0)])
def test_a_proof_that_failed_waits_until_the_run_has_cost_as_much_again(certain, apart):
    """One that is certain; one by chance has found what was missed. Its price, and then as much of other work."""
    begun = []

    class Failing(Proof):
        free = False

        def cost(self, run):
            return 1.0 if certain else 0.5  # which counts twice

        def certificate(self, run):
            begun.append(run.expenses.seconds)

    failing, run = Failing(), SimpleNamespace(expenses=Expenses(SolverBudget(), None), done=lambda _: False)
    failing.certain = certain
    proofs, none_yet = Proofs([failing]), SimpleNamespace(failure_probability=0.0)
    while run.expenses.seconds < 20.0:
        proofs.proved(run, none_yet, last=False)
        run.expenses.seconds += 0.125
    assert len(begun) > 5 and (np.diff(begun) >= apart).all() and (np.diff(begun) <= apart + 0.25).all()

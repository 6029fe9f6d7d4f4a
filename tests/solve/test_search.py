"""What a search in float32 proves from values that are kept: no eigenvalue lies above its upper end."""

import numpy as np
import pytest
from dense_products import centered

import fastkpca as fk
from fastkpca.products.exact import ExactSummation
from fastkpca.products.implicit import KernelMatrix
from fastkpca.rows.view import Rows
from fastkpca.solve.basis import Basis, Space
from fastkpca.solve.costs import Expenses
from fastkpca.solve.eigen import Search, grow
from fastkpca.solve.operators import CentredProducts, InFloat32
from fastkpca.solve.task import SolverBudget, SolverTarget

KERNELS = {
    "gaussian": fk.get_kernel("gaussian", sigma=2.0),
    "narrow": fk.get_kernel("gaussian", sigma=0.3),
    "nearly constant": fk.get_kernel("gaussian", sigma=3e3),
    "polynomial": fk.get_kernel("polynomial", degree=3, scale=0.1, offset=30.0),
    "indefinite": fk.get_kernel("tanh", scale=0.2, offset=-0.5),
}


def searched(kernel, X, c, tol, *, kept=True):
    """(Upper ends, eigenvalues of the values as computed)."""
    product = ExactSummation(kernel, Rows(X), keeps=True)
    single = product.in_float32()
    K = kernel.block(X, X)
    sums = single.sums if kept else None
    matrix = KernelMatrix(product, single, float(np.trace(K)), kernel.positive_semidefinite, sums=sums)
    space = Space(Basis(len(X), np.random.default_rng(0), centred=True), c + 8, c + 8, 200)
    search = Search(InFloat32(CentredProducts(matrix)), space, SolverTarget(c, tol), Expenses(SolverBudget(), None))
    start = space.basis.rng.standard_normal((len(X), c + 8))
    grow(search.A, start, space, search, search.expenses)
    return search.proved_ends(), np.linalg.eigvalsh(centered(K))[::-1]


@pytest.mark.parametrize("rows", ["normal", "copies", "far"])
@pytest.mark.parametrize("name", KERNELS)
def test_no_eigenvalue_lies_above_its_upper_end(name, rows):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((700, 4))
        if rows == "copies":
            X = X[rng.integers(150, size=len(X))]
        elif rows == "far":
            X[:6] *= 40.0
        c, tol = int(rng.integers(1, 20)), 10.0 ** rng.uniform(-9, -2)
        upper, values = searched(KERNELS[name], X, c, tol)
        K_size = np.linalg.norm(KERNELS[name].block(X, X))
        assert (values[: len(upper)] <= upper + 1e-14 * K_size).all()
        if (name, rows) == ("gaussian", "normal"):
            assert (upper - values[: len(upper)])[:c].max() <= 0.1 * values[0]  # they say something


def test_values_that_are_not_kept_prove_nothing():
    """Row means of float32, and kernel values whose error is not known."""
    upper, _ = searched(KERNELS["gaussian"], np.random.default_rng(0).standard_normal((300, 4)), 5, 1e-6, kept=False)
    assert np.isinf(upper).all()


def test_a_step_further_costs_no_column():
    """One look after a good start: residuals of the wanted vectors are needed only for a smaller tol."""
    X = np.random.default_rng(0).standard_normal((900, 3))
    kernel = KERNELS["gaussian"]
    product = ExactSummation(kernel, Rows(X), keeps=True)
    K = centered(kernel.block(X, X))
    vectors = np.linalg.eigh(K)[1]
    start = vectors[:, ::-1][:, :20] + 1e-3 / np.sqrt(len(X)) * np.random.default_rng(1).standard_normal((len(X), 20))
    columns = []
    for tol in (1e-6, 1e-11):
        matrix = KernelMatrix(product, product.in_float32(), float(np.trace(K)), True)
        space = Space(Basis(len(X), np.random.default_rng(0), centred=True), 20, 20, 200)
        search = Search(InFloat32(CentredProducts(matrix)), space, SolverTarget(3, tol), Expenses(SolverBudget(), None))
        grow(search.A, space.basis.orthonormal(start - start.mean(axis=0)), space, search, search.expenses)
        V = search.columns(np.full(space.basis.size, np.inf))
        columns.append(V.shape[1])
        V = V[:, :3] / np.linalg.norm(V[:, :3], axis=0)
        squares = np.square(K @ V - V * np.einsum("ij,ij->j", V, K @ V)).sum(axis=0)
        assert (squares <= 1e-2 * search.ritz.squares[:3]).all()
    assert columns == [5, 8]


def test_guaranteed_runs_go_on_until_the_norm_is_enough():
    """The vectors have converged some passes before; a factorisation would take longer."""
    rng = np.random.default_rng(1)
    few = rng.random((400, 20))
    X = few[rng.integers(0, len(few), 8000)]
    model = fk.kpca(X, c=4, sigma=1.0, tol=0.03, guaranteed=True, method="krylov")
    assert "factorisations" not in model.info

"""The search on a second moment that is an operator: what it proves, and with how many columns."""

import intervals
import numpy as np
import pytest

from fastkpca.solve.moments import leading_pairs
from fastkpca.solve.operators import MomentOperator
from fastkpca.solve.task import SolverTarget

# name: (eigenvalues, how many are wanted, tol, columns at most, may the matrix be formed)
CASES = {
    "falls by 20": (np.exp(-np.arange(2000.0) / 20.0), 10, 1e-6, 200),
    "falls by 40": (np.exp(-np.arange(2000.0) / 40.0), 10, 1e-6, 400),
    "falls by 80": (np.exp(-np.arange(2000.0) / 80.0), 10, 1e-6, 640),
    # a tail that the traces cannot rule out: the search ends by another proof, not at its limit
    "tail": (np.concatenate([2.0 ** -np.arange(12.0), np.linspace(2.0**-13, 2.0**-14, 200)]), 10, 1e-6, 120),
    # a bound on the others has to be below tol there, and not below the last; and a residual is as small as it is
    "below tol": (np.concatenate([10.0 ** -np.linspace(0.0, 14.0, 40), np.zeros(800)]), 34, 1e-10, 640),
    # blocks lose their rank, random columns follow
    "repeated": (np.repeat([1.0, 0.5, 1e-6, 1e-9], [3, 40, 200, 300]), 20, 1e-9, 640),
    "repeated beyond the block": (np.repeat([1.0, 1e-3], [9, 690]), 5, 1e-6, 640),
    "close": (np.concatenate([1 - 1e-9 * np.arange(12), np.linspace(0.1, 0, 688)]), 5, 1e-6, 640),
    "flat": (np.linspace(1.0, 0.5, 300), 5, 1e-6, 640),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_intervals_are_narrow_and_hold_after_few_products(name, seed):
    values, c, tol, most = CASES[name]
    columns = []

    def product(U):
        columns.append(U.shape[1])
        return values[:, None] * U

    norm = float(np.linalg.norm(values)) * (1 + 1e-12)
    operator = MomentOperator(product, len(values), float(values.sum()), norm, 1e-14)
    found = leading_pairs(operator, SolverTarget(c, tol, failure=1e-6), rng=seed)
    low, high = found.certificate.eigenvalue_bounds[:c].T
    assert len(low) == c and (low <= values[:c]).all() and (values[:c] <= high).all()
    assert (high - low).max() <= tol or name == "repeated"
    assert sum(columns) <= most
    V = found.vectors
    assert np.linalg.norm(values[:, None] * V[:, :c] - V[:, :c] * found.values[:c], 2) <= found.residual
    assert np.linalg.norm(V.T @ V - np.eye(V.shape[1])) < 1e-12


def test_columns_beyond_the_rank_are_not_multiplied():
    """Few rows and many features: what follows the rank is rounding, and a tol below that is not reached by more."""
    values, columns = np.concatenate([[6.0, 4.5, 4.0, 2.0], np.zeros(3000)]), []

    def product(U):
        columns.append(U.shape[1])
        return values[:, None] * U

    norm, indefinite = float(np.linalg.norm(values)), 1e-9
    operator = MomentOperator(product, len(values), float(values.sum()), norm, 1e-10, indefinite)
    found = leading_pairs(operator, SolverTarget(12, 1e-11, failure=1e-6), rank=21)
    low, high = found.certificate.eigenvalue_bounds[:12].T
    assert (low <= values[:12]).all() and (values[:12] <= high).all() and (high - low).max() < 1e-7
    assert sum(columns) <= 21 + 2 * 6


def test_a_fraction_that_the_space_cannot_hold():
    """A flat spectrum: 640 columns are not 99 percent of 1200 eigenvalues, and what they are is proved all the same."""
    values = np.linspace(1.0, 0.9, 1200)
    norm = 1.001 * np.linalg.norm(values)
    operator = MomentOperator(lambda U: values[:, None] * U, 1200, float(values.sum()), norm, 1e-13)
    found = leading_pairs(operator, SolverTarget(10, 1e-6, 0.99, failure=1e-6))
    intervals.hold(found.certificate, values)
    assert len(found.values) <= 640

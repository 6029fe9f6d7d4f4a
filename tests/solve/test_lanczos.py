"""The search on a small operator: how often it looks at its Ritz values, and what it proves."""

import numpy as np
import pytest

from fastkpca.solve.moments import leading_pairs
from fastkpca.solve.operators import MomentOperator
from fastkpca.solve.task import SolverTarget


def _operator(values, multiplied=None):
    """``multiplied``: a list to which the numbers of columns are added."""

    def product(U):
        if multiplied is not None:
            multiplied.append(U.shape[1])
        return values[:, None] * U

    return MomentOperator(
        product,
        len(values),
        float(values.sum()),
        float(np.linalg.norm(values)) * (1 + 1e-12),
        1e-14 * float(values.max()),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("fall", "most"), [(20.0, 200), (40.0, 400), (80.0, 640)])
def test_a_long_recurrence(fall, most, seed):
    """Where the traces, or random blocks, prove that nothing was missed."""
    values = np.exp(-np.arange(2000.0) / fall)
    columns = []
    found = leading_pairs(_operator(values, columns), SolverTarget(10, 1e-6, failure=1e-6), rng=seed)
    bounds = found.certificate.eigenvalue_bounds
    assert len(bounds) >= 10 and (bounds[:10, 0] <= values[:10]).all() and (values[:10] <= bounds[:10, 1]).all()
    assert np.ptp(bounds[:10], axis=1).max() <= 1e-6 and sum(columns) <= most


def test_a_bound_that_does_not_fall_is_left_early():
    """A tail that the traces cannot rule out: the search ends by another proof, not at its limit."""
    values = np.concatenate([2.0 ** -np.arange(12.0), np.linspace(2.0**-13, 2.0**-14, 200)])
    columns = []
    found = leading_pairs(_operator(values, columns), SolverTarget(10, 1e-6, failure=1e-6))
    bounds = found.certificate.eigenvalue_bounds[:10]
    assert (bounds[:, 0] <= values[:10]).all() and (values[:10] <= bounds[:, 1]).all()
    assert np.ptp(bounds, axis=1).max() <= 1e-6 and sum(columns) <= 120


@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_narrow_where_the_last_eigenvalues_are_far_below_tol(seed):
    """A bound on the others has to be below tol there, and not below the last; and a residual is as small as it is."""
    values = np.concatenate([10.0 ** -np.linspace(0.0, 14.0, 40), np.zeros(800)])
    found = leading_pairs(_operator(values), SolverTarget(34, 1e-10, failure=1e-6), rng=seed)
    bounds = found.certificate.eigenvalue_bounds[:34]
    assert (bounds[:, 0] <= values[:34]).all() and (values[:34] <= bounds[:, 1]).all()
    assert np.ptp(bounds, axis=1).max() <= 1e-10


def test_columns_that_a_block_lost_are_counted():
    """Repeated eigenvalues: blocks lose their rank, random columns follow, and intervals hold."""
    values = np.repeat([1.0, 0.5, 1e-6, 1e-9], [3, 40, 200, 300])
    found = leading_pairs(_operator(values), SolverTarget(20, 1e-9, failure=1e-6))
    bounds = found.certificate.eigenvalue_bounds[:20]
    assert (bounds[:, 0] <= values[:20]).all() and (values[:20] <= bounds[:, 1]).all()

"""Bounds from polynomials of a matrix times random columns."""

from __future__ import annotations

import numpy as np
import pytest

from fastkpca.solve.filtered import filter_steps, filtered_bound

SPECTRA = {
    "flat": lambda rng, n: 1.0 - 0.3 * np.arange(n) / n,
    "one value": lambda rng, n: np.ones(n),
    "one above all": lambda rng, n: np.r_[1.0, 0.6 * rng.random(n - 1)],
    "one a little above": lambda rng, n: np.r_[1.0, np.full(n - 1, 0.97)],
    "repeated": lambda rng, n: np.r_[np.ones(6), 0.9 * rng.random(n - 6)],
    "indefinite": lambda rng, n: np.r_[1.0, 1.8 * rng.random(n - 1) - 1.0],
    "geometric": lambda rng, n: 0.7 ** np.arange(n),
}


def bound_of(values, rng, failure, *, error=0.0, columns=None, hide=False):
    """Of a diagonal matrix; ``hide``: the product errs as much as it may, against the first eigenvector."""
    n, top = len(values), float(values.max() * rng.uniform(0.4, 1.3))

    def multiply(U):
        image = values[:, None] * U
        if hide:
            size = np.linalg.norm(image[0])
            image[0] *= max(0.0, 1.0 - error * np.linalg.norm(U) / size) if size > 0.0 else 1.0
        return image

    block = rng.standard_normal((n, columns or int(rng.integers(1, 7))))
    wanted = top * float(rng.choice([1.0, 1.01, 1.2]))
    return filtered_bound(
        multiply, np.copy, block, top, wanted=wanted, error=error, failure=failure, most_steps=int(rng.integers(1, 60))
    )


@pytest.mark.parametrize("family", SPECTRA)
@pytest.mark.parametrize("error", [0.0, 1e-5])
def test_it_fails_no_more_often_than_it_says(family, error):
    problems, failure = 400, 0.05
    missed = 0
    for case in range(problems):
        rng = np.random.default_rng([case, len(family)])
        values = np.sort(SPECTRA[family](rng, int(rng.integers(8, 80))))[::-1]
        missed += bound_of(values, rng, failure, error=error, hide=error > 0.0).mu < values[0]
    assert missed <= failure * problems + 4 * np.sqrt(failure * problems)


def test_a_component_that_is_smaller_than_it_counts_on_breaks_it():
    """The attack above would see a bound that is too small."""
    rng = np.random.default_rng(0)
    values = np.r_[1.0, np.full(999, 0.5)]
    block = rng.standard_normal((1000, 1))
    block[0] *= 1e-4 / abs(block[0, 0])
    bound = filtered_bound(
        lambda U: values[:, None] * U, np.copy, block, 0.6, wanted=0.61, error=0.0, failure=0.05, most_steps=8
    )
    assert bound.mu < 1.0


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("wanted", [1.02, 1.2])
def test_it_takes_as_many_steps_as_are_predicted(columns, wanted):
    values, taken = 1.0 - 0.4 * np.arange(3000) / 3000, []

    def multiply(U):
        taken.append(len(U))
        return values[:, None] * U

    block = np.random.default_rng(1).standard_normal((3000, columns))
    steps = filter_steps(3000, columns, 1.0, wanted, 1e-6)
    bound = filtered_bound(
        multiply, np.copy, block, 1.0, wanted=wanted, error=1e-12, failure=1e-6, most_steps=int(2 * steps)
    )
    assert 1.0 <= bound.mu <= wanted
    assert 0.7 * steps <= len(taken) <= 1.1 * steps + 1


def test_a_product_that_errs_too_much_proves_nothing():
    values = 1.0 - 0.4 * np.arange(500) / 500
    block = np.random.default_rng(1).standard_normal((500, 2))
    bound = filtered_bound(
        lambda U: values[:, None] * U, np.copy, block, 1.0, wanted=1.1, error=1e-2, failure=1e-6, most_steps=50
    )
    assert bound.mu > 1.1


def test_an_eigenvalue_above_what_is_wanted_ends_it_early():
    values, taken = np.r_[1.5, 1.0 - 0.4 * np.arange(999) / 999], []

    def multiply(U):
        taken.append(len(U))
        return values[:, None] * U

    block = np.random.default_rng(1).standard_normal((1000, 4))
    bound = filtered_bound(multiply, np.copy, block, 1.0, wanted=1.1, error=0.0, failure=1e-6, most_steps=300)
    assert bound.mu >= 1.5 and len(taken) < 20

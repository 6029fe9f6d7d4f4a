"""Estimates of a spectrum from a few hundred rows, against the dense eigenvalues of thousands."""

import numpy as np
import pytest
import scipy.linalg

from fastkpca.base.checks import Randomness
from fastkpca.fit.probe import probed
from fastkpca.kernels import get_kernel
from fastkpca.rows.convert import as_rows
from fastkpca.rows.summary import summarize

N = 3000


def probe(X, kernel, level=1):
    return probed(kernel, summarize(as_rows(X), shift=True, randomness=Randomness(0))[1], level)


def shares(K, count):
    """The largest eigenvalues of the centred matrix over the trace of K."""
    centred = K - K.mean(axis=0) - (K.mean(axis=1) - K.mean())[:, None]
    return scipy.linalg.eigh(centred, eigvals_only=True, subset_by_index=(len(K) - count, len(K) - 1))[::-1] / K.trace()


@pytest.mark.parametrize("d", [26, 100, 200])
def test_rows_of_equal_variance_in_many_columns_are_not_taken_for_a_falling_spectrum(d):
    """A sample of s rows spreads d equal eigenvalues up to (1 + sqrt(d / s))^2 of themselves."""
    X = np.random.default_rng(d).standard_normal((N, d))
    kernel = get_kernel("gaussian", sigma=np.sqrt(2.0 * d))
    found, exact = probe(X, kernel), shares(kernel.block(X, X), 20)
    leading = found.leading(20)[0]
    assert leading[0] == pytest.approx(exact[0], rel=0.25)
    assert leading[19] == pytest.approx(exact[19], rel=0.25)
    assert found.first == pytest.approx(exact[0], rel=0.25)


def test_a_spectrum_that_falls_is_taken_from_the_rows_themselves():
    X = np.random.default_rng(0).standard_normal((N, 3))
    kernel = get_kernel("gaussian", sigma=1.0)
    found, exact = probe(X, kernel), shares(kernel.block(X, X), 20)
    assert np.allclose(found.leading(20)[0][:10], exact[:10], rtol=0.5)


def test_equal_eigenvalues_stay_together_however_many_there_are():
    """Of 5,000 narrow Gaussians a few rows show a thousand equal eigenvalues, and hardly any others."""
    X = np.random.default_rng(1).random((5000, 3))
    found = probe(X, get_kernel("gaussian", sigma=0.05))
    values, beyond = found.spectrum
    assert found.equal > len(found.shares) and beyond > 0.0
    assert (np.diff(values) <= 0).all() and values[0] < 4.0 * found.size  # a few rows spread them further

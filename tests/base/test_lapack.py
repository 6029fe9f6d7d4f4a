"""LAPACK's largest eigenpairs: accurate for any spectrum, in little more memory than the matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from peak import traced
from reference import with_eigenvalues

from fastkpca.base import parallel
from fastkpca.base.lapack import largest_eigenpairs
from fastkpca.kernels import Gaussian

SPECTRA = {
    "even": lambda rng, n: rng.random(n),
    "all equal": lambda rng, n: np.ones(n),
    "each three times": lambda rng, n: np.repeat(rng.random(n), 3)[:n],
    "eighteen decades": lambda rng, n: 10.0 ** -rng.uniform(0, 18, n),
    "projection": lambda rng, n: np.arange(n) % 2.0,
    "negative": lambda rng, n: -rng.random(n),
    "nearly equal": lambda rng, n: 1.0 + 1e-13 * rng.random(n),
    "tiny": lambda rng, n: 1e-140 * rng.standard_normal(n),
    "huge": lambda rng, n: 1e140 * rng.standard_normal(n),
    "near the largest number": lambda rng, n: 1e300 * (1.0 + rng.random(n)),
    "zero": lambda rng, n: np.zeros(n),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("diagonal", [False, True])
def test_pairs_of_any_spectrum_are_accurate(name, diagonal, attack):
    rng = attack.rng(name, diagonal)
    for _ in range(20):
        n = int(rng.integers(4, 90))
        c = int(rng.integers(1, n // 2 + 1))
        values = SPECTRA[name](rng, n)
        A = np.diag(values) if diagonal else with_eigenvalues(rng, values)
        found, vectors = largest_eigenpairs(A.copy(), c)
        unit = 2.0 ** -np.frexp(np.abs(values).max())[1]  # norms are sums of squares
        A, found, values = A * unit, found * unit, values * unit
        size = np.abs(values).max() * np.sqrt(n)
        assert np.abs(found - np.linalg.eigvalsh(A)[::-1][:c]).max() <= 4e-15 * size
        assert np.linalg.norm(A @ vectors - vectors * found) <= 4e-14 * size
        assert np.linalg.norm(vectors.T @ vectors - np.eye(c)) <= 4e-14 * np.sqrt(n)


def test_nearly_equal_eigenvalues_are_found_without_all_others(monkeypatch):
    """Of rows far apart: a kernel matrix that is nearly the identity."""
    X = np.random.default_rng(0).standard_normal((700, 8))
    K = Gaussian(sigma=0.0635).block(X, X)
    A = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    calls, eigh = [], scipy.linalg.eigh
    monkeypatch.setattr(
        scipy.linalg, "eigh", lambda *given, **options: calls.append(options) or eigh(*given, **options)
    )
    found, vectors = largest_eigenpairs(A.copy(), 7)
    assert len(calls) == 1
    assert np.abs(found - np.linalg.eigvalsh(A)[:-8:-1]).max() <= 1e-14
    assert np.linalg.norm(A @ vectors - vectors * found) <= 1e-13


@pytest.mark.parametrize("c", [40, 600])
def test_vectors_are_the_only_large_array_beside_the_matrix(c):
    n = 1500
    A = np.random.default_rng(0).standard_normal((n, n))
    A = A + A.T
    # 600 vectors are not copied whole
    assert traced(lambda: largest_eigenpairs(A, c)) <= 8 * n * (c + 2 * min(c, parallel.tile_rows(n)) + 100)

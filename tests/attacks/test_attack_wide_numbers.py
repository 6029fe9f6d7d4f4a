"""Random whole numbers, as wide as their type: intervals hold the eigenvalues of the rows as given."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import fastkpca as fk

TYPES = (np.int64, np.uint64, np.int32, np.uint32, np.int16, np.uint8)
GIVEN = {
    "array": lambda X: X,
    "sparse": sp.csr_array,
    "blocks": lambda X: [X[: len(X) // 2], X[len(X) // 2 :]],
    "function": lambda X: lambda: iter([X[:5], X[5:]]),
    "other byte order": lambda X: X.astype(X.dtype.newbyteorder(">")),
}


def wide_rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(rows of whole numbers that may lie far from zero, their exact differences from the first row)."""
    info = np.iinfo(rng.choice(TYPES))
    lowest, largest = int(info.min), int(info.max)
    span = int(2.0 ** rng.uniform(1, np.log2(float(largest - lowest))))
    start = largest - span if rng.random() < 0.3 else lowest + int(rng.random() * (largest - lowest - span))
    shape = int(rng.integers(8, 60)), int(rng.integers(1, 4))
    steps = [[int(rng.integers(2**53)) * span >> 53 for _ in range(shape[1])] for _ in range(shape[0])]
    X = np.array([[start + step for step in row] for row in steps], dtype=info.dtype)
    differences = [[step - first for step, first in zip(row, steps[0])] for row in steps]
    return X, np.array(differences, dtype=np.longdouble)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than float64")
def test_random_whole_numbers(attack):
    answered, count = 0, attack.count(2000, least=40)
    for case in range(count):
        rng = attack.rng("wide numbers", case)
        X, near = wide_rows(rng)
        sigma = float(near.std()) * rng.choice([0.5, 1.0, 3.0])
        w = rng.integers(0, 4, len(X)) + 1.0 * (np.arange(len(X)) < 3) if rng.random() < 0.3 else np.ones(len(X))
        kernel, options = ("gaussian", {"sigma": sigma}) if rng.random() < 0.7 and sigma else ("linear", {})
        given, method = rng.choice(list(GIVEN)), str(rng.choice(["auto", "dense", "krylov", "features"]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fk.kpca(GIVEN[given](X), kernel, 2, method=method, sample_weight=w, **options)
        except ValueError:
            continue
        near = near - w.astype(np.longdouble) @ near / w.sum()
        squares = ((near[:, None] - near) ** 2).sum(axis=-1)
        K = np.exp(-squares / (2 * np.longdouble(sigma) ** 2)) if options else near @ near.T
        share = w.astype(np.longdouble) / w.sum()
        K = K - (share @ K) - (K @ share)[:, None] + share @ K @ share
        K = np.asarray(K * np.sqrt(w) * np.sqrt(w)[:, None], dtype=np.float64)
        exact = np.linalg.eigvalsh(K)[::-1][: model.n_components]
        rounding = 1e-13 * np.trace(K) + 4e-16 * len(K) * np.abs(K).max()  # of the reference
        low, high = model.eigenvalue_bounds.T
        assert (low <= exact + rounding).all() and (exact - rounding <= high).all(), (case, given, kernel, method)
        answered += 1
    assert answered > 0.6 * count

"""Random whole numbers, as wide as their type: intervals hold the eigenvalues of the rows as given."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from attack_cases import check_eigenvalues, check_trace, spectrum
from exact_kernels import LONG, LONG_UNIT

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
    return X, np.array(differences, dtype=LONG)


def wide_numbers(rng, asked):
    """The attack."""
    X, near = wide_rows(rng)
    sigma = float(near.std()) * rng.choice([0.5, 1.0, 3.0])
    w = rng.integers(0, 4, len(X)) + 1.0 * (np.arange(len(X)) < 3) if rng.random() < 0.3 else np.ones(len(X))
    kernel, options = ("gaussian", {"sigma": sigma}) if rng.random() < 0.7 and sigma else ("linear", {})
    given, method = str(rng.choice(list(GIVEN))), str(rng.choice(["auto", "dense", "krylov", "features"]))
    text = f"{kernel} {options} {method} {X.dtype} {X.shape}"
    yield given, text, None
    try:
        model = fk.kpca(GIVEN[given](X), kernel, 2, method=method, sample_weight=w, **options)
    except ValueError as error:
        yield given, text, str(error)
        return
    near = near - w.astype(LONG) @ near / w.sum()
    squares = ((near[:, None] - near) ** 2).sum(axis=-1)
    K = np.exp(-squares / (2 * LONG(sigma) ** 2)) if options else near @ near.T
    exact = spectrum(K, 8 * LONG_UNIT * np.abs(K).max(), w)
    yield given, text, [*check_eigenvalues(model, exact), *check_trace(model, exact, float(w.sum()))]

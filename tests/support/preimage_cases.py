"""Pre-images: ridge with weights and copies under every kernel, and every method on rows and scores of any size.

Copies: some 20 to 80 rows, each counted one to four times, by weight or by being there as often. Both models must give
the same rows for the scores of new rows, to a tenth of the range of all rows, and nine in ten of them no farther from
the new ones than 1.5 times as far as those of a model of each row once, or as the mean of all rows. Sizes: rows of
1e-150 to 1e150, outliers, columns of all sizes, copies, weights of 1e-90 to 1e90; scores of 1e-300 to 1e308. Each
answer must be finite, or an error of ours; a warning of numpy's is a failure.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from kernel_rows import own_rows

import fastkpca as fk

KERNELS = sorted(entry.name for entry in fk.list_kernels())
HOLD_NO_ROWS = "precomputed", "spectrum"


def given(kernel: str, rows: np.ndarray, others: np.ndarray) -> Any:
    """What the kernel takes in place of ``rows`` where a model was made of ``others``."""
    if kernel == "precomputed":
        return np.exp(-((rows[:, None] - others) ** 2).sum(axis=2) / 8.0)
    return own_rows(kernel, rows)


def back(kernel: str, X: np.ndarray, new: np.ndarray, c: int, weights: np.ndarray | None) -> np.ndarray:
    """New rows projected and taken back by ridge."""
    model = fk.kpca(given(kernel, X, X), kernel, c, sample_weight=weights, method="dense", n_threads=1)
    Z = fk.kpca_project(model, given(kernel, new, X), n_threads=1)
    train = X if kernel in HOLD_NO_ROWS else None
    return fk.kpca_preimage(model, Z, method="ridge", train=train, n_threads=1)


def copies(rng: np.random.Generator, kernel: str) -> list[tuple[str, float]]:
    """Of weights, and of rows that are there as often."""
    n, d = int(rng.integers(20, 81)), int(rng.integers(1, 6))
    rows = rng.standard_normal((n + 100, d)) @ rng.standard_normal((d, d))
    if rng.random() < 0.3:
        rows = np.column_stack([rows[:, 0], np.sin(rows[:, 0]), rows[:, 1:] * 0.1])
    rows = own_rows(kernel, rows) if kernel not in HOLD_NO_ROWS else rows
    X, new, c = rows[:n], rows[n:], int(rng.integers(1, 7))
    kinds = [np.full(n, 2), rng.integers(1, 5, n), np.where(np.arange(n) == 0, 40, 1), 1 + (np.arange(n) < n // 10)]
    counts = kinds[rng.integers(len(kinds))]
    found = back(kernel, X, new, c, counts.astype(float)), back(kernel, np.repeat(X, counts, axis=0), new, c, None)
    takes = (*found, back(kernel, X, new, c, None), X.mean(axis=0))
    errors = [np.quantile(np.linalg.norm(P - new, axis=1), 0.9) for P in takes]
    assert np.isfinite(errors).all()
    apart = float(np.abs(found[0] - found[1]).max() / np.ptp(X))
    worse = float(max(errors[:2]) / max(errors[2:]))
    return [("copies are weights", apart - 0.1), ("as good as rows once", worse - 1.5)]


def hostile_rows(rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((int(rng.integers(3, 50)), int(rng.integers(1, 5))))
    kind = rng.integers(8)
    if kind < 3:
        X *= 10.0 ** rng.integers(-150, 150)
    elif kind == 3:
        X[0] *= 10.0 ** rng.integers(1, 150)
    elif kind == 4:
        X *= 10.0 ** rng.integers(-100, 100, X.shape[1])
    elif kind == 5:
        X = np.repeat(X[: len(X) // 5 + 2], 5, axis=0)
    elif kind == 6:
        X = np.sign(X) * np.exp(30.0 * X)
    return X


def sizes(rng: np.random.Generator, kernel: str) -> None:
    """Scores of all sizes taken back by every method; an AssertionError or a RuntimeWarning is a failure."""
    X = hostile_rows(rng)
    weights = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-1, 1, len(X)) * 10.0 ** rng.integers(0, 90)
    if rng.random() < 0.3:
        weights = 10.0 ** rng.uniform(-60, 60, len(X))
    try:
        X = own_rows(kernel, X) if kernel not in HOLD_NO_ROWS else X
        rows = X @ X.T if kernel == "precomputed" else own_rows(kernel, X)
        features: dict[str, Any] = [{}, {"method": "dense"}, {"features": "pivots"}][rng.integers(3)]
        model = fk.kpca(rows, kernel, int(rng.integers(1, 5)), sample_weight=weights, n_threads=1, **features)
    except (ValueError, RuntimeWarning, fk.errors.NotConvergedError):  # a fit's warnings are for another attack
        return
    if kernel in HOLD_NO_ROWS:
        X = X * 10.0 ** rng.integers(-100, 100)
    scores = np.asarray(model.score[:3], dtype=np.float64)
    for size in (None, 1e-300, 1e6, 1e150, 1e308):
        Z = scores if size is None else scores / max(float(np.abs(scores).max()), 1e-300) * size
        for method in ("ridge", "gradient", "auto"):
            for start in (None, X[:3]):
                try:
                    found = fk.kpca_preimage(model, Z, method=method, train=X, start=start, max_iter=50, n_threads=1)
                except ValueError as error:
                    assert "Traceback" not in str(error)
                    continue
                assert np.isfinite(found).all()


def preimages(rng, asked):
    """The attack: every kernel."""
    warnings.simplefilter("error", RuntimeWarning)
    for kernel in KERNELS:
        yield kernel, "copies", None
        yield kernel, "copies", copies(rng, kernel)
        yield kernel, "sizes", None
        sizes(rng, kernel)

"""Random small clustering problems, and every clustering of their rows."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from kernels_contrib.clustering import kernel_kmeans
from kernels_contrib.diffusion import spectral_clustering

import fastkpca as fk


class Case(NamedTuple):
    """Rows, a kernel, weights or None, and the number of groups."""

    X: np.ndarray
    kernel: Any
    weights: np.ndarray | None
    k: int


@cache
def every_clustering(n: int, k: int) -> np.ndarray:
    """Labels (P, n) of all clusterings of n rows into k groups, each once."""
    found: list[list[int]] = [[0]]
    for _ in range(n - 1):
        found = [[*x, label] for x in found for label in range(min(max(x) + 2, k))]
    return np.array([x for x in found if max(x) == k - 1])


def between_costs(K: np.ndarray, weights: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """sum_j 1_j'W K W 1_j / w_j for many clusterings (P, n)."""
    Y = (labels[:, None, :] == np.arange(k)[:, None]) * weights
    return np.asarray((((Y @ K) * Y).sum(axis=2) / Y.sum(axis=2)).sum(axis=1))


def difference(labels: np.ndarray, others: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """Share of the weight in which each of many clusterings (P, n) differs, after the best matching of groups."""
    own = (labels == np.arange(k)[:, None]) * weights
    theirs = others[:, None, :] == np.arange(k)[:, None]
    shared = np.einsum("in,pjn->pij", own, theirs.astype(float), optimize=True)
    best = np.max([shared[:, np.arange(k), list(p)].sum(axis=1) for p in permutations(range(k))], axis=0)
    return 1.0 - best / weights.sum()


def random_case(rng: np.random.Generator) -> Case:
    """Groups that are far apart, near each other, or none at all."""
    n, k = int(rng.integers(4, 9)), int(rng.integers(2, 4))
    d = int(rng.integers(1, 4))
    centres = rng.standard_normal((k, d)) * rng.choice([0.0, 1.0, 3.0, 10.0])
    X = centres[rng.integers(k, size=n)] + rng.choice([0.02, 0.1, 0.3, 1.0]) * rng.standard_normal((n, d))
    weights = rng.choice([1.0, 2.0, 5.0], n) if rng.random() < 0.3 else rng.random(n) + 0.3
    kernels = [
        fk.get_kernel("gaussian", sigma=float(rng.choice([0.3, 1.0, 3.0]))),
        fk.get_kernel("linear"),
        fk.get_kernel("polynomial", degree=2, offset=1.0),
        fk.get_kernel("laplacian", length_scale=2.0),
    ]
    return Case(X, kernels[int(rng.integers(4))], weights if rng.random() < 0.5 else None, k)


def attack_kmeans(case: Case, method: str) -> bool:
    """Compare the certificate with every clustering; returns whether it said something about how others differ."""
    X, kernel, weights, k = case
    model = kernel_kmeans(X, kernel, k, method=method, sample_weight=weights)
    w = np.ones(len(X)) if weights is None else weights
    K, others = np.asarray(kernel.block(X, X), dtype=np.float64), every_clustering(len(X), k)
    rounding = 64 * np.finfo(float).eps * w.sum() * np.abs(K).max()  # of the values here, which are not shifted
    K = K - (K @ w / w.sum())[:, None] - w @ K / w.sum() + w @ K @ w / w.sum() ** 2
    costs = w @ np.diag(K) - between_costs(K, w, others, k)
    own = w @ np.diag(K) - between_costs(K, w, model.labels[None], k)[0]
    slack = 1e-12 * (w @ np.diag(K)) + rounding
    assert model.cost_bounds[0] - slack <= own <= model.cost_bounds[1] + slack, (model.cost_bounds, own)
    assert model.least_cost <= costs.min() + slack, (model.least_cost, costs.min())
    as_good = others[costs <= own]
    if len(as_good):
        farthest = difference(model.labels, as_good, w, k).max()
        assert farthest <= model.differing + 1e-12, (farthest, model.differing)
    return model.differing < 1.0


def attack_spectral(case: Case, method: str) -> bool:
    """The same of a spectral clustering, whose costs are normalised cuts."""
    X, _, weights, k = case
    kernel = fk.get_kernel("gaussian", sigma=1.0)
    model = spectral_clustering(X, kernel, k, method=method, sample_weight=weights)
    w = np.ones(len(X)) if weights is None else weights
    K, others = np.asarray(kernel.block(X, X), dtype=np.float64), every_clustering(len(X), k)
    degrees = K @ w
    volumes = w * degrees
    scaled = K / degrees[:, None] / degrees
    costs = k - between_costs(scaled, volumes, others, k)
    own = k - between_costs(scaled, volumes, model.labels[None], k)[0]
    assert model.cost_bounds[0] - 1e-12 <= own <= model.cost_bounds[1] + 1e-12, (model.cost_bounds, own)
    assert model.least_cost <= costs.min() + 1e-12, (model.least_cost, costs.min())
    N = np.sqrt(w / degrees)[:, None] * K * np.sqrt(w / degrees)
    exact = np.linalg.eigvalsh(N)[::-1][: len(model.eigenvalues)]
    assert (model.eigenvalue_bounds[:, 0] <= exact + 1e-13).all() and (
        exact <= model.eigenvalue_bounds[:, 1] + 1e-13
    ).all()
    as_good = others[costs <= own]
    if len(as_good):
        farthest = difference(model.labels, as_good, volumes, k).max()
        assert farthest <= model.differing + 1e-12, (farthest, model.differing)
    return model.differing < 1.0

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


def kmeans(rng, asked, method):
    """The attack on the certificate of kernel k-means: every clustering is tried."""
    X, kernel, weights, k = random_case(rng)
    yield method, f"{kernel} {X.tolist()} k={k} {weights}", None
    model = kernel_kmeans(X, kernel, k, method=method, sample_weight=weights)
    w = np.ones(len(X)) if weights is None else weights
    K = np.asarray(kernel.block(X, X), dtype=np.float64)
    rounding = 64 * np.finfo(float).eps * w.sum() * np.abs(K).max()  # of the values here, which are not shifted
    K = K - (K @ w / w.sum())[:, None] - w @ K / w.sum() + w @ K @ w / w.sum() ** 2
    total = w @ np.diag(K)
    yield from _compared(method, model, K, w, total, k, 1e-12 * total + rounding, [])


def spectral(rng, asked, method):
    """The same of a spectral clustering, whose costs are normalised cuts."""
    X, _, weights, k = random_case(rng)
    kernel = fk.get_kernel("gaussian", sigma=1.0)
    yield method, f"{X.tolist()} k={k} {weights}", None
    model = spectral_clustering(X, kernel, k, method=method, sample_weight=weights)
    w = np.ones(len(X)) if weights is None else weights
    K = np.asarray(kernel.block(X, X), dtype=np.float64)
    degrees = K @ w
    N = np.sqrt(w / degrees)[:, None] * K * np.sqrt(w / degrees)
    exact = np.linalg.eigvalsh(N)[::-1][: len(model.eigenvalues)]
    low, high = model.eigenvalue_bounds.T
    inside = ("eigenvalues", float(np.maximum(low - exact, exact - high).max()) - 1e-13)
    yield from _compared(method, model, K / degrees[:, None] / degrees, w * degrees, k, k, 1e-12, [inside])


def _compared(method, model, K, w, total, k, slack, found):
    """What a clustering says of its cost and of others, against all of them."""
    others = every_clustering(len(K), k)
    costs = total - between_costs(K, w, others, k)
    own = total - between_costs(K, w, model.labels[None], k)[0]
    low, high = model.cost_bounds
    found += [
        ("cost", float(max(low - own, own - high) - slack)),
        ("least cost", float(model.least_cost - costs.min() - slack)),
    ]
    as_good = others[costs <= own]
    if len(as_good):
        farthest = difference(model.labels, as_good, w, k).max()
        found.append(("others", float(farthest - model.differing - 1e-12)))
    yield f"{method}, {'something' if model.differing < 1.0 else 'nothing'} said", "", found

"""Nystroem with landmarks and weights that are unkind, held against LAPACK on the whole matrix."""

from __future__ import annotations

import numpy as np
from data import unkind_rows
from loose_cases import outside, probable
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from tally import MAY_FAIL

from fastkpca.errors import NoVarianceError
from fastkpca.sklearn import Nystroem

KERNELS = {"rbf": rbf_kernel, "laplacian": laplacian_kernel, "poly": polynomial_kernel}


def _weights(rng, n):
    kinds = rng.integers(0, 5, n).astype(float), 10.0 ** rng.uniform(-2, 2, n), np.where(rng.random(n) < 0.05, 1e4, 1.0)
    weights = kinds[rng.integers(3)]
    weights[:3] += 1.0
    return weights


def _landmarks(rng, X):
    n, m = len(X), int(rng.integers(1, max(2, len(X) // 3)))
    kind = rng.choice(["drawn", "uniform", "rows", "one cluster", "repeated"])
    if kind in ("drawn", "uniform"):
        return {"selection": "auto" if kind == "drawn" else kind, "n_components": m}
    if kind == "rows":
        shift = rng.choice([0.0, 1e-6, 0.3]) * X.std()
        return {"landmarks": X[rng.integers(0, n, m)] + shift * rng.standard_normal((m, X.shape[1]))}
    if kind == "one cluster":
        return {"landmarks": np.argsort(((X - X[0]) ** 2).sum(axis=1))[:m]}
    return {"landmarks": rng.integers(0, max(2, m // 2), m)}


def nystroem(rng, asked):
    """The attack: bounds on the largest eigenvalue that is left out, on its trace, and intervals."""
    n, d = int(rng.integers(20, 220)), int(rng.integers(1, 6))
    X, name = unkind_rows(rng, n, d), str(rng.choice(list(KERNELS)))
    size = max(float(np.median(np.abs(X - np.median(X, axis=0)))) * np.sqrt(d), 1e-3)
    scale = {"rbf": size**-2, "laplacian": 1.0 / size, "poly": 1.0 / (1.0 + size**2)}[name]
    given = {"gamma": float(10.0 ** rng.uniform(-1.5, 0.5) * scale)} | ({"degree": 2} if name == "poly" else {})
    w = _weights(rng, n) if rng.random() < 0.5 else None
    root = np.ones(n) if w is None else np.sqrt(w)
    options = _landmarks(rng, X) | {"random_state": int(rng.integers(1 << 30)), "failure_probability": asked.failure}
    nystroem = Nystroem(name, **given, **options).fit(X, sample_weight=w)
    K = root[:, None] * KERNELS[name](X, **given | ({"coef0": 1} if name == "poly" else {})) * root
    Z = root[:, None] * nystroem.transform(X)
    left, slack = np.linalg.eigvalsh(K - Z @ Z.T), 1e-10 * np.trace(K)
    yield (
        name,
        "",
        [
            (MAY_FAIL, float(left[-1] > nystroem.residual_norm_ + slack)),
            ("trace", float((left.sum() - nystroem.residual_trace_ - slack) / np.trace(K))),
        ],
    )
    center, c = bool(rng.random() < 0.7), int(rng.integers(1, min(len(np.unique(nystroem.components_, axis=0)), 6) + 1))
    tol = [None, 1e-1, 1e-2, 1e-3][rng.integers(4)]
    try:
        model = nystroem.kpca(X, c, tol=tol, center=center, sample_weight=w)
    except NoVarianceError as error:
        yield f"{name}, intervals", "", str(error)
        return
    if center:
        H = np.eye(n) - np.outer(root, root) / (root @ root)
        K = H @ K @ H
    order = "second" if "residual_rows" in model.info else "first"
    yield f"{name}, intervals of {order} order", "", probable(model, outside(model, np.linalg.eigvalsh(K)[::-1], slack))

"""Random streams, and after each batch the exact eigenvalues of all rows so far."""

from __future__ import annotations

import warnings

import numpy as np

import fastkpca as fk

MOST_ROWS = 1200


def batches(rng: np.random.Generator) -> tuple[list[np.ndarray], str]:
    """Batches of a stream: stationary, a shift, a drift, new clusters, heavy tails, or a regime that comes back."""
    d, n = int(rng.integers(1, 5)), int(rng.integers(3, 30))
    size = max(2, int(MOST_ROWS * rng.uniform(0.1, 1.0)) // n)
    kind = str(rng.choice(["stationary", "shift", "drift", "clusters", "heavy tails", "returns"]))
    step = rng.uniform(0.5, 8.0) * rng.standard_normal(d)
    made = []
    for i in range(n):
        X = rng.standard_normal((size + int(rng.integers(size)), d))
        if kind == "shift" and i > n // 2:
            X += step
        elif kind == "drift":
            X += step * i / n
        elif kind == "clusters":
            X = 0.3 * X + rng.standard_normal((1 + i, d))[rng.integers(1 + i, size=len(X))] * 4.0
        elif kind == "heavy tails":
            X = rng.standard_t(1.5, X.shape)
        elif kind == "returns" and i % 3 == 1:
            X += step
        made.append(X)
    made[0] = np.concatenate([made[0], rng.standard_normal((8, d))])
    return made, kind


def part_of(first, rows):
    """A worker's model of its rows."""
    return fk.kpca(rows, like=first, keep_moments=True, return_scores=False)


def exact(kernel, X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Eigenvalues of the weighted centred matrix, by LAPACK from matrices in long double."""
    K = np.asarray(kernel.block(X, X), dtype=np.longdouble)
    w = w.astype(np.longdouble)
    m = K @ w / w.sum()
    K = (K - m - m[:, None] + w @ m / w.sum()) * np.sqrt(w) * np.sqrt(w)[:, None]
    return np.linalg.eigvalsh(K.astype(np.float64))[::-1]


def stream(rng: np.random.Generator) -> dict:
    """One stream through ``kpca_update``: how many intervals, how many of these miss, and whether any may."""
    made, kind = batches(rng)
    names = {"gaussian": {"sigma": float(rng.uniform(0.5, 3.0))}, "laplacian": {}, "matern": {"length_scale": 2.0}}
    name = str(rng.choice(list(names)))
    kernel = fk.get_kernel(name, **names[name])
    forget = float(rng.choice([1.0, 1.0, 0.9, 0.5]))
    tol, c = float(10.0 ** rng.uniform(-6, -1)), int(rng.integers(1, 6))
    grow = [True, True, 60, False][int(rng.integers(4))]
    weighted = bool(rng.random() < 0.3)
    given = [rng.integers(1, 4, len(X)).astype(float) if weighted else np.ones(len(X)) for X in made]
    options = {"tol": tol, "failure_probability": float(rng.choice([0.05, 1e-6]))}
    asked = f"{kind} {kernel!r} c={c} forget={forget} grow={grow} weighted={weighted} {options}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = {"features": "pivots", "keep_moments": True, "rng": int(rng.integers(1000))}
        weights = given[0] if weighted else None
        model = fk.kpca(made[0], kernel, c, sample_weight=weights, **first, **options)
        kernel = model.kernel
        if not isinstance(grow, bool):
            grow = max(grow, model.info["n_features"])
        X, w, found = made[0], given[0], {"intervals": 0, "missed": 0, "grown": 0, "asked": asked, "batches": 0}
        for i in range(1, len(made)):
            weights = given[i] if weighted else None
            model = fk.kpca_update(model, made[i], sample_weight=weights, grow=grow, forget=forget, c=c, **options)
            if rng.random() < 0.1:
                model = type(model).from_state(*model.state(), plugins=True)
            X, w = np.concatenate([X, made[i]]), np.concatenate([w * forget, given[i]])
            truth = exact(kernel, X, w)[: model.n_components]
            low, high = model.eigenvalue_bounds.T
            slack = 1e-12 * truth[0]
            found["intervals"] += len(truth)
            found["missed"] += int(((truth < low - slack) | (truth > high + slack)).sum())
            found["batches"] += 1
        found |= {"grown": model.info.get("grown", 0), "width": float((high - low).max() / truth[0])}
        found["certain"] = model.failure_probability == 0.0
    return found

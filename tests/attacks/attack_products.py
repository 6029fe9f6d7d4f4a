"""Try to break the guarantee of fast products: |(K^ u - K u)_i| <= tol sum_j |u_j| for every target i and every u.

A cell is a dimension, a bandwidth, a tolerance and a layout of the points. In each, every product that is offered is
held against sums in long double: for u = single sources (the farthest ones, those next to others, random ones), where
the error of *every* target is looked at, which is the guarantee's worst case, column by column; and for u of ones and
of random signs, at the targets where the single sources erred most and at random ones. "kept" is error <= tol sum |u|;
slack is tol / (largest error over sum |u|), of the worst u.

    python tests/attacks/attack_products.py                 about half an hour
    python tests/attacks/attack_products.py --every 20      one cell in twenty
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "speed"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command

import common  # isort: skip (limits BLAS to one thread before numpy loads it)
import numpy as np
from reference import long_gaussian

import fastkpca as fk

DIMENSIONS = (1, 2, 3, 4, 5, 8)
SIGMAS = (0.02, 0.1, 0.3, 1.0, 3.0)
TOLERANCES = (1e-2, 1e-4, 1e-6, 1e-9, 1e-12)
LAYOUTS = ("uniform", "clustered", "collinear", "duplicates", "outliers", "inside", "away")
NAMES = ("auto", "expansion", "grid", "clusters")


def points(layout: str, d: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    """(targets, sources); None: the same rows."""
    if layout == "clustered":
        centers = rng.random((20, d))
        return centers[rng.integers(0, 20, n)] + 0.01 * rng.standard_normal((n, d)), None
    if layout == "collinear":
        return rng.random((n, 1)) * np.ones(d) + 1e-9 * rng.standard_normal((n, d)), None
    if layout == "duplicates":
        return rng.random((n // 10, d))[rng.integers(0, n // 10, n)], None
    X = rng.random((n, d))
    if layout == "outliers":
        X[:3] = 1e5 * rng.standard_normal((3, d))
        X[3] = 7.0
    if layout == "inside":  # targets deep inside tight clusters of sources
        centers = rng.random((10, d))
        Y = centers[rng.integers(0, 10, n)] + 0.02 * rng.uniform(-1, 1, (n, d))
        return centers[rng.integers(0, 10, n // 2)] + 0.002 * rng.uniform(-1, 1, (n // 2, d)), Y
    if layout == "away":
        return np.concatenate([rng.random((n // 4, d)) + 1.5, rng.random((n // 4, d)) * 40 - 20]), X
    return X, None


def attack(A: np.ndarray, B: np.ndarray | None, sigma: float, tol: float, name: str, rng: np.random.Generator):
    """(product, largest error over sum |u| for single sources, the same for ones and signs), or None: not offered."""
    try:
        K = fk.gram(A, "gaussian", B, sigma=sigma, tol=tol, products=name)
    except ValueError as error:
        if "offers no products" in str(error) or "is below" in str(error):
            return None
        raise
    sources = A if B is None else B
    middle = sources.mean(axis=0)
    far = np.argsort(-np.abs(sources - middle).max(axis=1))[:8]
    near = np.argsort(np.linalg.norm(sources - sources[len(sources) // 2], axis=1))[:8]
    some = np.unique(np.concatenate([far, near, rng.integers(0, len(sources), 24)]))
    U = np.zeros((len(sources), len(some) + 2))
    U[some, np.arange(len(some))] = 1.0
    U[:, -2] = 1.0
    U[:, -1] = rng.choice([-1.0, 1.0], len(sources))
    V = K @ U
    E = np.abs(V[:, :-2] - long_gaussian(A, sources[some], sigma))
    worst = np.unique(np.concatenate([np.argsort(-E.max(axis=1))[:24], rng.integers(0, len(A), 24)]))
    sums = long_gaussian(A[worst], sources, sigma) @ U[:, -2:].astype(np.longdouble)
    dense = np.abs(V[worst, -2:] - sums) / len(sources)
    # sources = targets: the adjoint is the adjoint, to rounding
    v = rng.standard_normal(len(A))
    left, right = float(v @ V[:, -1]), float((K.T @ v) @ U[:, -1])
    adjoint = abs(left - right) / (np.abs(v).sum() * np.abs(U[:, -1]).sum())
    return K.products, float(E.max()), float(dense.max()), adjoint


def cells() -> Iterator[tuple]:
    yield from itertools.product(DIMENSIONS, SIGMAS, TOLERANCES, LAYOUTS)


def real(name: str, n: int, rng: np.random.Generator) -> np.ndarray | None:
    path = common.DATA / name
    if not path.exists():
        return None
    with np.load(path) as file:
        key = next(k for k in ("X", "x", "data", *file.files) if k in file.files)
        X = np.asarray(file[key], dtype=np.float64)
    X = X[rng.choice(len(X), min(n, len(X)), replace=False)]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0).max()


def main() -> None:
    asked = command.options(__doc__, every=1, first=0, rows=8000)
    common.header("fast Gaussian products: is the tolerance kept?")
    jobs = [(f"d={d} sigma={s:g} {layout}", d, s, t, layout) for d, s, t, layout in cells()]
    for file in ("lidar.npz", "uci_kin40k.npz"):
        jobs += [(f"{file} sigma={s:g}", file, s, t, "") for s in SIGMAS for t in TOLERANCES]
    started = time.perf_counter()
    results: dict[str, list[tuple[float, float]]] = {}
    tried = broken = 0
    for number, (label, d, sigma, tol, layout) in enumerate(jobs):
        if number % asked.every != asked.first:
            continue
        rng = np.random.default_rng(number)
        A, B = (real(d, asked.rows, rng), None) if isinstance(d, str) else points(layout, d, asked.rows, rng)
        if A is None:
            continue
        tried += 1
        for name in NAMES:
            answer = attack(A, B, sigma, tol, name, rng)
            if answer is None:
                continue
            product, single, dense, adjoint = answer
            # what is exact has no tolerance to exhaust
            if product != "exact":
                key = f"auto ({product})" if name == "auto" else name
                results.setdefault(key, []).append((tol / max(single, dense, 1e-300), tol / max(dense, 1e-300)))
            if max(single, dense) > tol or adjoint > 1e-14:
                broken += 1
                print(
                    f"BROKEN {label} tol={tol:g} {name} ({product}): {single:.3g}, {dense:.3g}, adjoint {adjoint:.2g}"
                )
    print(f"{tried} cells, {broken} answers broken, {time.perf_counter() - started:.0f} s")
    print(f"{'product':20s}{'answers':>9s}{'least slack':>13s}{'median':>9s}{'median, dense u':>17s}")
    for key, values in results.items():
        slack = np.array(values)
        middle = np.median(slack, axis=0)
        print(f"{key:20s}{len(slack):9d}{slack[:, 0].min():13.2f}{middle[0]:9.1f}{middle[1]:17.1f}")
    if broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

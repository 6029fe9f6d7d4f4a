"""How many features a Gaussian needs on real data: by total degree, by pivots.

    python benchmarks/speed/feature_counts.py [FOLDER] [--max-features 4000] [--sets protein kin40k]

For each UCI set in FOLDER (default: shared/data beside the checkout), columns standardised, sigma^2 = f * (squared
median distance) / 2 with f = 1 (the default bandwidth of the library), 2 and 4 (f = 4: "sigma^2 twice the squared
median distance"), and residual trace over trace 1e-2, 1e-3, 1e-6. Every count is judged by the residual over ALL
rows, which the table gives beside it: maps are chosen on a sample of at most 4096 rows.

- degree: C(d + p - 1, d) with the smallest p such that mean gammainc(p, |x_i|^2 / sigma^2) <= tol, over all rows;
- pivots: ``pivot_map``, and a second round where the residual over all rows asks for it.
"""

from __future__ import annotations

import argparse
import platform
import time
from math import comb
from pathlib import Path

import numpy as np
import scipy
from scipy.spatial.distance import pdist
from scipy.special import gammainc

from fastkpca.base import parallel
from fastkpca.base.checks import Randomness
from fastkpca.base.protocol import FeatureMap, Kernel
from fastkpca.maps.choosing import pivot_map, second_round
from fastkpca.rows.summary import summarize
from fastkpca.rows.view import Rows

SETS = ["protein", "kin40k", "keggdirected", "tamielectric"]


class Gauss(Kernel):
    """exp(-|x-y|^2 / (2 sigma^2)) by GEMM: the counts do not need more."""

    positive_semidefinite = True
    translation = "kernel"
    parameters = {"sigma": 1.0}

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        square = X @ (-2.0 * Y.T)
        square += np.einsum("ij,ij->i", X, X)[:, None]
        square += np.einsum("ij,ij->i", Y, Y)
        np.maximum(square, 0.0, out=square)
        square *= -0.5 / self.sigma**2
        return np.exp(square, out=square)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))


def residual(feature_map: FeatureMap, rows: Rows) -> float:
    """Residual trace over trace of all rows."""
    step = parallel.tile_rows(max(1, feature_map.n_features))
    parts = range(0, len(rows), step)
    return sum(float(feature_map.residual(rows.tile(i, min(i + step, len(rows)))).sum()) for i in parts) / len(rows)


def total_degree(square: np.ndarray, d: int, tol: float) -> tuple[int, int]:
    """(p, number of monomials of degree below p)."""
    low, high = 0, 1
    while gammainc(high, square).mean() > tol:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gammainc(middle, square).mean() <= tol else (middle, high)
    return high, comb(d + high - 1, d)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parents[2]
    parser.add_argument("folder", nargs="?", type=Path, default=here.parent / "shared" / "data")
    parser.add_argument("--max-features", type=int, default=4000)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, {platform.machine()}"
    )
    print(f"{'set':13}{'f':>3}{'tol':>7} | {'p':>4}{'degree':>15} | {'pivots':>7}{'all rows':>10}{'s':>7}{'rounds':>7}")
    with parallel.blas_threads():
        for name in options.sets:
            file = options.folder / f"uci_{name}.npz"
            if not file.exists():
                print(f"{name}: {file} not found")
                continue
            X = np.load(file, allow_pickle=False)["X"].astype(np.float64)
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            rows, summary = summarize(Rows(X), shift=True, randomness=Randomness(0))
            median = float(np.median(pdist(summary.sample[:1000])))
            for f in (1, 2, 4):
                sigma = median * np.sqrt(f / 2)
                for tol in (1e-2, 1e-3, 1e-6):
                    report(name, f, sigma, tol, rows, summary, options.max_features)


def report(name: str, f: int, sigma: float, tol: float, rows: Rows, summary, most: int) -> None:
    d = rows.n_features
    X = rows.all()
    p, degree = total_degree(np.einsum("ij,ij->i", X, X) / sigma**2, d, tol)
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    pivots = pivot_map(
        Gauss(sigma=sigma), summary.sample, tol=tol, max_features=most, rng=rng, n_samples=summary.n_samples
    )
    pivot_seconds = time.perf_counter() - start
    rounds = 1
    left = residual(pivots, rows)
    while left > tol and rounds < 5 and pivots.n_features < most:
        pivots, _ = second_round(pivots, rows, tol=tol, max_features=most, rng=rng)
        left = residual(pivots, rows)
        rounds += 1
    print(
        f"{name:13}{f:3d}{tol:7.0e} | {p:4d}{degree:15.6g} | "
        f"{pivots.n_features:7d}{left:10.1e}{pivot_seconds:7.2f}{rounds:7d}",
        flush=True,
    )


if __name__ == "__main__":
    main()

"""Exact Gaussian products K @ U on one thread, against a blocked GEMM + np.exp product that uses no symmetry.

Processor seconds: every ratio is of medians of runs that alternate in one process. ``--float32`` adds
the product on float32 tiles, ``--crossing`` the dimensions around which GEMM overtakes differences, and KeOps is
timed where pykeops is installed.
"""

from __future__ import annotations

import argparse
import time

import common
import numpy as np

from fastkpca._core import tiles
from fastkpca.base import parallel
from fastkpca.base.protocol import Kernel
from fastkpca.products.exact import ExactSummation
from fastkpca.rows.view import Rows


class Gaussian(Kernel):
    parameters = {"sigma": 1.0}

    def compiled_tile(self):
        return "gaussian", {"sigma": self.sigma}


def blocked(X: np.ndarray, U: np.ndarray, sigma: float, rows: int = 1000) -> np.ndarray:
    """K U by GEMM, one fused shift a row and a column, exp in place, GEMM: what a careful numpy user writes."""
    n = len(X)
    scaled = X / sigma
    half = 0.5 * np.einsum("ij,ij->i", scaled, scaled)
    buffer, out = np.empty((rows, n)), np.empty((n, U.shape[1]))
    for start in range(0, n, rows):
        stop = min(n, start + rows)
        K = np.dot(scaled[start:stop], scaled.T, out=buffer[: stop - start])
        K -= half
        K -= half[start:stop, None]
        np.exp(K, out=K)
        np.dot(K, U, out=out[start:stop])
    return out


def keops_product(X: np.ndarray, U: np.ndarray, sigma: float):
    """A function that computes K U with KeOps on the processor, or None where pykeops is not installed."""
    try:
        from pykeops.numpy import LazyTensor
    except ImportError:
        return None
    x, y = LazyTensor(X[:, None, :] / sigma), LazyTensor(X[None, :, :] / sigma)
    K = (-((x - y) ** 2).sum(-1) / 2).exp()
    return lambda: K @ U


def medians(calls: list, repeats: int) -> list[float]:
    return list(common.alternate(dict(enumerate(calls)), repeats, time.process_time).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=20000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--crossing", action="store_true")
    arguments = parser.parse_args()
    n, repeats = arguments.n, arguments.repeats
    common.header(f"exact products, N = {n}, median of {repeats}, tile loops: {tiles.INSTRUCTION_SET}")
    rng = np.random.default_rng(0)
    with parallel.blas_threads():
        print(f"{'d':>4} {'columns':>7} {'fastkpca s':>10} {'blocked s':>10} {'ratio':>6} {'difference':>10}")
        for d in (3, 50):
            X, sigma = rng.uniform(size=(n, d)), 0.5 * np.sqrt(d / 3)
            S = ExactSummation(Gaussian(sigma=sigma), Rows(X))
            for k in (1, 20):
                U = rng.normal(size=(n, k))
                calls = [lambda: S.matmat(U), lambda: blocked(X, U, sigma)]  # noqa: B023
                keops = keops_product(X, U, sigma)
                error = np.abs(calls[0]() - calls[1]()).max() / np.abs(calls[1]()).max()
                seconds = medians(calls + ([keops] if keops else []), repeats)
                print(
                    f"{d:4} {k:7} {seconds[0]:10.3f} {seconds[1]:10.3f} {seconds[1] / seconds[0]:6.2f} {error:10.1e}"
                    + (f"   KeOps {seconds[2]:.2f} s" if keops else ""),
                    flush=True,
                )
        if arguments.float32:
            print(f"\n{'d':>4} {'columns':>7} {'float64 s':>10} {'float32 s':>10} {'float32 G entries/s':>20}")
            for d in (3, 10, 50):
                X, sigma = rng.uniform(size=(n, d)), 0.5 * np.sqrt(d / 3)
                double = ExactSummation(Gaussian(sigma=sigma), Rows(X))
                single = ExactSummation(Gaussian(sigma=sigma), Rows(X), dtype=np.float32)
                for k in (1, 4, 16, 32):
                    U = rng.normal(size=(n, k))
                    a, b = medians([lambda: double.matmat(U), lambda: single.matmat(U)], repeats)  # noqa: B023
                    print(f"{d:4} {k:7} {a:10.3f} {b:10.3f} {n * n / b / 1e9:20.2f}", flush=True)
        if arguments.crossing:
            print(f"\n{'d':>4} {'one tile, G entries/s: float64':>30} {'float32':>8}")
            for d in (2, 4, 8, 16, 24, 32, 33, 48, 64):
                X = rng.uniform(size=(1536, d))
                Y, single = X + 0.5, X.astype(np.float32)
                a, b = medians(
                    [
                        lambda: tiles.block("gaussian", {"sigma": 1.0}, X, Y),  # noqa: B023
                        lambda: tiles.block("gaussian", {"sigma": 1.0}, single, single + np.float32(0.5)),  # noqa: B023
                    ],
                    5 * repeats,
                )
                print(f"{d:4} {1536**2 / a / 1e9:30.2f} {1536**2 / b / 1e9:8.2f}", flush=True)


if __name__ == "__main__":
    main()

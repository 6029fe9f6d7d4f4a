"""Gaussian products on a uniform cube: every product against the blocked GEMM + exp product of numpy, in one run.

Set-up included, one column, one thread, float64, processor seconds. Ratios are to numpy's blocked product (higher is
faster); "choice" is
the automatic one's time over the fastest one's. finufft, where it is installed, is called by hand as well, with the
modes and the box that the tolerance needs.

    python benchmarks/speed/fast_products.py
    python benchmarks/speed/fast_products.py --tol 1e-3 --dimensions 1 4 8
    python benchmarks/speed/fast_products.py --growth docs/growth.svg      seconds from 1e4 to 1e6 rows, as a picture
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import common
import numpy as np

import fastkpca as fk

SIGMAS = (0.02, 0.1, 0.3, 1.0)
clock = time.process_time
NAMES = ("exact", "expansion", "grid", "clusters")


def blocked(X: np.ndarray, u: np.ndarray, sigma: float) -> np.ndarray:
    """What one writes in numpy: distances by GEMM, np.exp, in blocks of 128 x 4096, the fastest of six tried sizes."""
    squares = np.einsum("ij,ij->i", X, X)
    out = np.zeros(len(X))
    for i in range(0, len(X), 128):
        rows = slice(i, i + 128)
        for j in range(0, len(X), 4096):
            others = slice(j, j + 4096)
            K = X[rows] @ X[others].T
            K *= -2.0
            K += squares[rows, None]
            K += squares[others]
            K *= -0.5 / sigma**2
            np.exp(K, out=K)
            out[rows] += K @ u[others]
    return out


def finufft_by_hand(X: np.ndarray, u: np.ndarray, sigma: float, tol: float) -> np.ndarray:
    """Type 1, weights, type 2: the Gaussian's Fourier series on a box wide enough for tol."""
    import finufft

    d = X.shape[1]
    side = 1.0 + sigma * np.sqrt(2 * np.log(2 * d / tol))
    modes = 2 * int(np.ceil(side / (np.pi * sigma) * np.sqrt(np.log(2 * d / tol) / 2))) + 1
    points = [np.ascontiguousarray(2 * np.pi / side * (X[:, c] - 0.5)) for c in range(d)]
    one, two = ((finufft.nufft1d1, finufft.nufft1d2), (finufft.nufft2d1, finufft.nufft2d2), (
        finufft.nufft3d1, finufft.nufft3d2))[d - 1]  # fmt: skip
    F = one(*points, u.astype(np.complex128), (modes,) * d, eps=tol / 10, nthreads=1)
    m = np.arange(-(modes // 2), modes // 2 + 1)
    w = np.sqrt(2 * np.pi) * sigma / side * np.exp(-2 * (np.pi * m * sigma / side) ** 2)
    for c in range(d):
        F *= w.reshape([-1 if a == c else 1 for a in range(d)])
    return two(*points, F, eps=tol / 10, nthreads=1).real


def has_finufft() -> bool:
    try:
        import finufft  # noqa: F401
    except ImportError:
        return False
    return True


def tasks(X: np.ndarray, u: np.ndarray, sigma: float, tol: float) -> dict[str, Callable[[], np.ndarray]]:
    def ours(name: str) -> Callable[[], np.ndarray]:
        return lambda: fk.gram(X, "gaussian", sigma=sigma, tol=tol, products=name, n_threads=1) @ u

    found = {}
    for name in NAMES:
        try:
            fk.gram(X[:: max(1, len(X) // 2000)], "gaussian", sigma=sigma, tol=tol, products=name)
        except ValueError as error:
            if "offers no products" not in str(error):
                raise
            continue
        found[name] = ours(name)
    found["auto"] = ours("auto")
    if X.shape[1] <= 3 and has_finufft():
        found["finufft by hand"] = lambda: finufft_by_hand(X, u, sigma, tol)
    return found


def table(n: int, dimensions: list[int], sigmas: list[float], tol: float, repeats: int) -> None:
    rng = np.random.default_rng(0)
    columns = (*NAMES, "auto", "finufft by hand")
    print(f"# N = {n}, uniform cube, tol = {tol:g}; ratio to numpy's blocked product, and seconds of auto")
    print(f"{'d':>2s}{'sigma':>7s}" + "".join(f"{x:>11s}" for x in columns[:-1]) + f"{'finufft':>11s}"
          f"{'numpy s':>9s}{'auto s':>9s}{'choice':>8s}{'auto is':>11s}{'error':>9s}")  # fmt: skip
    for d in dimensions:
        X, u = rng.random((n, d)), rng.standard_normal(n)
        base = common.alternate({"numpy": lambda: blocked(X, u, 0.3)}, repeats=1, clock=clock)["numpy"]  # noqa: B023
        for sigma in sigmas:
            found = tasks(X, u, sigma, tol)
            slow = {"exact", "expansion", "clusters"}
            seconds = common.alternate({k: v for k, v in found.items() if k not in slow}, repeats, clock)
            seconds |= common.alternate({k: v for k, v in found.items() if k in slow}, 1, clock)
            rows = rng.integers(0, n, 50)
            truth = np.exp(-((X[rows, None, :] - X[None, :, :]) ** 2).sum(axis=2) / (2 * sigma**2)) @ u
            error = np.abs(found["auto"]()[rows] - truth).max() / np.abs(u).sum()
            best = min(v for k, v in seconds.items() if k in NAMES)
            chosen = fk.gram(X, "gaussian", sigma=sigma, tol=tol).products
            cells = "".join(f"{base / seconds[k]:11.1f}" if k in seconds else f"{'-':>11s}" for k in columns)
            print(f"{d:2d}{sigma:7.2f}{cells}{base:9.2f}{seconds['auto']:9.4f}{seconds['auto'] / best:8.2f}"
                  f"{chosen:>11s}{error:9.1e}", flush=True)  # fmt: skip


def growth(path: str, tol: float) -> None:
    """Seconds of the automatic product from 1e4 to 1e6 rows at fixed sigma, their exponent, and a picture."""
    counts = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    rng = np.random.default_rng(0)
    curves = {}
    for d in (2, 3):
        for sigma in (0.1, 0.3):
            seconds = []
            for n in counts:
                X, u = rng.random((n, d)), rng.standard_normal(n)
                task = {"auto": lambda: fk.gram(X, "gaussian", sigma=sigma, tol=tol, n_threads=1) @ u}  # noqa: B023
                seconds.append(common.alternate(task, repeats=3, clock=clock)["auto"])
            exponent = np.polyfit(np.log(counts), np.log(seconds), 1)[0]
            last = np.log(seconds[-1] / seconds[-2]) / np.log(counts[-1] / counts[-2])
            curves[f"d = {d}, sigma = {sigma}"] = seconds
            print(f"d={d} sigma={sigma}: " + ", ".join(f"{s:.4f}" for s in seconds)
                  + f" s; exponent {exponent:.2f}, the last step {last:.2f}", flush=True)  # fmt: skip
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
    for label, seconds in curves.items():
        ax.loglog(counts, seconds, marker="o", label=label)
    middle = float(np.median([s[-1] for s in curves.values()]))
    ax.loglog(counts, [middle * n / counts[-1] for n in counts], color="0.6", linestyle="--", label="linear in N")
    ax.set(xlabel="rows N", ylabel=f"seconds (one product, tol {tol:g})")
    ax.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.endswith("svg") else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=50_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--sigmas", type=float, nargs="+", default=list(SIGMAS))
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", help="draw the growth with N into this file instead")
    asked = parser.parse_args()
    common.header("fast Gaussian products")
    if asked.growth:
        growth(asked.growth, asked.tol)
    else:
        table(asked.n, asked.dimensions, asked.sigmas, asked.tol, asked.repeats)


if __name__ == "__main__":
    main()

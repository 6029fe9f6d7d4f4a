"""Gaussian products on a uniform cube: the one that is chosen, or all, against numpy's blocked GEMM + exp, in one run.

Set-up included, one column, one thread, float64, processor seconds. "error" is the largest of 50 entries, over the sum
of |u|. finufft, where it is installed, is called by hand as well, with the modes and the box that the tolerance needs.

    python benchmarks/speed/fast_products.py [--tol 1e-3] [--dimensions 1 4 8]
    python benchmarks/speed/fast_products.py --all      every product; how the chosen one compares with the fastest
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


def tasks(X: np.ndarray, u: np.ndarray, sigma: float, tol: float, names: tuple) -> dict[str, Callable[[], np.ndarray]]:
    def ours(name: str) -> Callable[[], np.ndarray]:
        return lambda: fk.gram(X, "gaussian", sigma=sigma, tol=tol, products=name, n_threads=1) @ u

    found = {}
    for name in names:
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


def table(n: int, dimensions: list[int], sigmas: list[float], tol: float, repeats: int, names: tuple) -> None:
    rng = np.random.default_rng(0)
    common.header(f"Gaussian products, N = {n}, uniform cube, tol = {tol:g}")
    others = "".join(f" {name} |" for name in (*names, *["choice"] * bool(names)))
    print(f"| d | sigma | product | seconds | times faster than numpy | than finufft by hand | error |{others}")
    print("|---" * (7 + others.count("|")) + "|")
    for d in dimensions:
        X, u = rng.random((n, d)), rng.standard_normal(n)
        base = common.alternate({"numpy": lambda: blocked(X, u, 0.3)}, repeats=1, clock=clock)["numpy"]  # noqa: B023
        for sigma in sigmas:
            found = tasks(X, u, sigma, tol, names)
            slow = {"exact", "expansion", "clusters"}
            seconds = common.alternate({k: v for k, v in found.items() if k not in slow}, repeats, clock)
            seconds |= common.alternate({k: v for k, v in found.items() if k in slow}, 1, clock)
            rows = rng.integers(0, n, 50)
            truth = np.exp(-((X[rows, None, :] - X[None, :, :]) ** 2).sum(axis=2) / (2 * sigma**2)) @ u
            error = np.abs(found["auto"]()[rows] - truth).max() / np.abs(u).sum()
            auto = seconds["auto"]
            chosen = fk.gram(X, "gaussian", sigma=sigma, tol=tol).products
            faster = [f"{seconds[x] / auto:.2g}" if x in seconds else "" for x in ("finufft by hand", *names)]
            cells = [str(d), f"{sigma:g}", chosen, f"{auto:.3g}", f"{base / auto:.2g}", faster[0], f"{error:.0e}"]
            best = [f"{auto / min(seconds[x] for x in names if x in seconds):.2f}"] if names else []
            print("| " + " | ".join([*cells, *faster[1:], *best]) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=50_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--sigmas", type=float, nargs="+", default=list(SIGMAS))
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="each product that there is, in times of the chosen one")
    asked = parser.parse_args()
    names = NAMES if asked.all else ()
    table(asked.n, asked.dimensions, asked.sigmas, asked.tol, asked.repeats, names)


if __name__ == "__main__":
    main()

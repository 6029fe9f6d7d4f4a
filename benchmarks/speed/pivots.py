"""How well pivots are chosen, and what that costs: blocks with rejection, one by one at random, greedy, uniform.

    python benchmarks/speed/pivots.py [set ...] [--rows 10000] [--count 500] [--seeds 3]

For each set: the trace that is left over tr K (mean over the seeds), after so many pivots among so many rows, and
seconds. "blocks" is what the library does (accelerated RPCholesky: Epperly, Tropp, Webber, arXiv:2410.03969), "plain"
one pivot after another, each drawn in proportion to the residual diagonal (RPCholesky), "greedy" the row with the
largest residual each time, "uniform" rows drawn without looking. Plain and greedy are a dozen lines of numpy here, with
the kernel's compiled tiles. The last column is the time of blocks over that of one product of matrices of as many
operations, 2 rows count^2. Processor seconds, one thread. The kernel is the Gaussian with the median heuristic.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import common
import loose
import numpy as np
import scipy.linalg

from fastkpca.kernels import Gaussian, Kernel
from fastkpca.maps.choosing import random_pivots

SETS = ("normal", "kin40k", "protein", "usps")


def one_by_one(kernel: Kernel, X: np.ndarray, count: int, pick: Callable[[np.ndarray], int]) -> np.ndarray:
    """Pivoted Cholesky of the whole kernel matrix, a column at a time."""
    F, residual, index = np.zeros((count, len(X))), kernel.diagonal(X).copy(), []
    for k in range(count):
        i = pick(residual)
        column = kernel.block(X[i : i + 1], X)[0] - F[:k, i] @ F[:k]
        F[k] = column / np.sqrt(column[i])
        residual = np.maximum(residual - F[k] ** 2, 0.0)
        residual[i] = 0.0
        index.append(i)
    return np.array(index)


def left(kernel: Kernel, X: np.ndarray, index: np.ndarray) -> float:
    """tr(K - K_XP K_PP^-1 K_PX) / tr K."""
    K = kernel.block(X[index], X[index])
    K.flat[:: len(K) + 1] += 1e-13 * len(K)
    Phi = scipy.linalg.solve_triangular(np.linalg.cholesky(K), kernel.block(X[index], X), lower=True)
    diagonal = kernel.diagonal(X)
    return float(np.maximum(diagonal - np.einsum("ij,ij->j", Phi, Phi), 0.0).sum() / diagonal.sum())


def seconds_of_product(n: int, count: int) -> float:
    A, B = np.ones((count, count)), np.ones((count, n))
    started = time.process_time()
    A @ B
    return time.process_time() - started


def measured(name: str, given: argparse.Namespace) -> str:
    X = loose.rows_of(name)
    kernel = Gaussian(sigma=loose.sigma_of(X))
    X = np.ascontiguousarray(X[np.random.default_rng(0).permutation(len(X))[: given.rows]] - X.mean(axis=0))
    n, count = len(X), given.count
    ways: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
        "uniform": lambda rng: rng.choice(n, count, replace=False),
        "blocks": lambda rng: random_pivots(kernel, X, count, rng),
        "plain": lambda rng: one_by_one(kernel, X, count, lambda r: int(rng.choice(n, p=r / r.sum()))),
        "greedy": lambda rng: one_by_one(kernel, X, count, lambda r: int(np.argmax(r))),
    }
    line, seconds = f"{name:9}{n:7}{count:6}", {}
    for way, choose in ways.items():
        traces, spent = [], []
        for seed in range(given.seeds):
            rng = np.random.default_rng(seed)
            started = time.process_time()
            index = choose(rng)
            spent.append(time.process_time() - started)
            traces.append(left(kernel, X, index))
        seconds[way] = min(spent)
        line += f"{np.mean(traces):10.5f}"
    product = min(seconds_of_product(n, count) for _ in range(3))
    line += "".join(f"{seconds[way]:9.3f}" for way in ("blocks", "plain", "greedy"))
    return f"{line}{seconds['blocks'] / product:8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    common.header(
        "trace that is left over tr K, by how pivots are chosen; seconds; blocks over one product of matrices"
    )
    print(
        f"{'set':9}{'rows':>7}{'count':>6}{'uniform':>10}{'blocks':>10}{'plain':>10}{'greedy':>10}"
        f"{'blocks s':>9}{'plain s':>9}{'greedy s':>9}{'/ GEMM':>8}"
    )
    for name in given.sets or SETS:
        print(measured(name, given), flush=True)


if __name__ == "__main__":
    main()

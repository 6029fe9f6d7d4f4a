"""Tests of two samples, of independence, and regressions of ``kernels_contrib`` against their dense formulas.

    nice -n 5 python benchmarks/speed/two_samples.py [mmd] [many] [hsic] [regression]

One thread, processor seconds, ratios of the same run. "dense" is the textbook's: the kernel matrix and its sums
(numpy, cdist), block by block where the matrix does not fit into memory. ``mmd``, beside one statistic, permutes labels
199 times; the dense test permutes the stored matrix.
"""

from __future__ import annotations

import sys
import time
from functools import partial

from common import alternate, header  # isort: skip (limits BLAS to one thread before numpy loads it)

import numpy as np
import scipy.linalg
from kernels_contrib.hsic import hsic_test
from kernels_contrib.mmd import mmd_test
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge
from scipy.spatial.distance import cdist


def seconds(task):
    started = time.process_time()
    return task(), time.process_time() - started


def gaussian(X, Y, sigma):
    K = cdist(X, Y, "sqeuclidean")
    K *= -0.5 / sigma**2
    return np.exp(K, out=K)


def block_mmd(X, Y, sigma, blocks=None, step=2000):
    """The biased statistic, block by block; of the first ``blocks`` blocks of rows alone, for the time."""
    Z, n = np.vstack([X, Y]), len(X)
    s, total = np.where(np.arange(len(Z)) < n, 1 / n, -1 / len(Y)), 0.0
    for start in range(0, len(Z), step)[:blocks]:
        for at in range(0, len(Z), step):
            here, there = slice(start, start + step), slice(at, at + step)
            total += s[here] @ gaussian(Z[here], Z[there], sigma) @ s[there]
    return total


def mmd():
    header("mmd_test: one statistic and one permutation, against the dense formula by blocks (5 of them timed)")
    print(f"{'rows':>14} {'columns':>7} {'ours':>8} {'dense':>8} {'ratio':>6} {'statistic':>11} {'error':>8}  product")
    rng = np.random.default_rng(0)
    for n, d, sigma in ((5_000, 2, 1.0), (5_000, 10, 3.0), (100_000, 2, 1.0), (100_000, 3, 1.0), (20_000, 10, 3.0)):
        X, Y = rng.standard_normal((n, d)), rng.standard_normal((n, d)) + 0.02
        blocks = 2 * n // 2000 if n < 10_000 else 5
        found, ours = seconds(partial(mmd_test, X, Y, sigma=sigma, permutations=1, n_threads=1))
        _, dense = seconds(partial(block_mmd, X, Y, sigma, blocks))
        dense *= 2 * n / 2000 / blocks
        print(
            f"{f'2 x {n}':>14} {d:7d} {ours:8.3f} {dense:8.2f} {dense / ours:6.0f} {found.statistic[0]:11.4e} "
            f"{found.error[0]:8.1e}  {found.info['products']}",
            flush=True,
        )
    header("mmd_test with 199 permutations at 2 x 2,500 rows, against sums over the stored, permuted matrix")
    X, Y = rng.standard_normal((2500, 5)), rng.standard_normal((2500, 5)) + 0.05

    def textbook():
        K, labels, again = gaussian(*[np.vstack([X, Y])] * 2, 2.0), np.arange(5000) < 2500, np.random.default_rng(0)
        values = []
        for k in range(200):
            L = labels if k == 0 else again.permutation(labels)
            x, y = np.flatnonzero(L), np.flatnonzero(~L)
            values.append(K[np.ix_(x, x)].mean() + K[np.ix_(y, y)].mean() - 2 * K[np.ix_(x, y)].mean())
        return np.mean(np.array(values) >= values[0])

    (found, ours), (p, dense) = seconds(lambda: mmd_test(X, Y, sigma=2.0, n_threads=1)), seconds(textbook)
    print(f"ours {ours:.2f} s, p = {found.p_value:.3f}; textbook {dense:.2f} s, p = {p:.3f}; {dense / ours:.0f} times")


def many():
    header("mmd_test of 500,000 + 500,000 rows of 2 columns")
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((500_000, 2)), rng.standard_normal((500_000, 2))
    for permutations in (1, 20, 199):
        found, ours = seconds(lambda count=permutations: mmd_test(X, Y, permutations=count, n_threads=1))
        null = np.median(found.null)
        print(f"{permutations:4d} permutations: {ours:6.2f} s, median of the null {null:.1e}, {found}", flush=True)


def hsic():
    header("hsic_test with 199 permutations against traces of the stored matrices")
    print(f"{'rows':>7} {'ours':>8} {'dense':>8} {'ratio':>6} {'statistic':>11} {'error':>8}")
    rng = np.random.default_rng(2)
    for n in (1000, 5000, 100_000):
        X = rng.standard_normal((n, 2))
        Y = X[:, :1] ** 2 + 3 * rng.standard_normal((n, 1))

        def dense(X=X, Y=Y, n=n):
            K, L = gaussian(X, X, 1.0), gaussian(Y, Y, 1.0)
            K -= K.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
            for k in range(5):  # of 200
                order = np.random.default_rng(k).permutation(n)
                np.vdot(K, L[np.ix_(order, order)])

        found, ours = seconds(lambda X=X, Y=Y: hsic_test(X, Y, sigma=1.0, n_threads=1))
        theirs = 40 * seconds(dense)[1] if n < 10_000 else np.nan
        print(
            f"{n:7d} {ours:8.2f} {theirs:8.1f} {theirs / ours:6.0f} {found.statistic[0]:11.4e} {found.error[0]:8.1e}",
            flush=True,
        )


def regression():
    header("kernel_ridge and kernel_pls (5 components) against Cholesky, and NIPALS on the stored matrix")
    rng = np.random.default_rng(3)
    for n, mu in ((2000, 1.0), (5000, 1.0), (5000, 1e-3)):
        X = rng.standard_normal((n, 5))
        t = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)

        def cholesky(X=X, t=t, n=n, mu=mu):
            K = gaussian(X, X, 2.0)
            K.flat[:: n + 1] += mu
            return scipy.linalg.solve(K, t, assume_a="pos", overwrite_a=True)

        tasks = {
            "ridge": lambda X=X, t=t, mu=mu: kernel_ridge(X, t, sigma=2.0, regularization=mu, n_threads=1),
            "cholesky": cholesky,
            "pls": lambda X=X, t=t: kernel_pls(X, t, c=5, sigma=2.0, n_threads=1),
        }
        times = alternate(tasks, 3, time.process_time)
        model = tasks["ridge"]()
        exact = gaussian(X[:200], X, 2.0) @ cholesky()
        off = np.abs(model.predict(X[:200]) - exact).max()
        print(
            f"N = {n}, mu = {mu:g}: ridge {times['ridge']:.2f} s ({model.info['iterations']} steps, off by {off:.1e}, "
            f"bound {model.error(X[:200]).max():.1e}), Cholesky {times['cholesky']:.2f} s; pls {times['pls']:.2f} s",
            flush=True,
        )


TASKS = {"mmd": mmd, "many": many, "hsic": hsic, "regression": regression}

if __name__ == "__main__":
    for name in sys.argv[1:] or TASKS:
        TASKS[name]()

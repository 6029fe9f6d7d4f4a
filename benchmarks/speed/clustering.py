"""Clustering: scikit-learn's spectral clustering and Nystroem with k-means, and what certificates say on real data.

    nice -n 19 python benchmarks/speed/clustering.py [spectral] [kmeans] [groups] [certificates]

One thread, processor seconds; ratios are of the same run, with turns taken. "agree": rows with the same group, after
the best matching. "above" and "differ": the cost may be so much above that of the best clustering, and any that costs
no more differs in at most that share of the rows.
"""

# ruff: noqa: B023 (every function that is made in a loop is called in the same turn)

from __future__ import annotations

import sys
import time
import warnings

from common import DATA, alternate, header  # isort: skip (limits BLAS to one thread before numpy loads it)

import numpy as np
from kernels_contrib.clustering import kernel_kmeans
from kernels_contrib.diffusion import spectral_clustering
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import StandardScaler

import fastkpca as fk

ONE = {"n_threads": 1}
REPEATS = 3


def blobs(n: int, centres: np.ndarray, spread: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return centres[rng.integers(len(centres), size=n)] + spread * rng.standard_normal((n, centres.shape[1]))


def agreement(a: np.ndarray, b: np.ndarray) -> float:
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(a))


def percent(share: float) -> str:
    return "nothing" if not share < 1.0 else f"{100 * share:.2g} %"


FOUR = np.array([[0.0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]])


def spectral() -> None:
    header("spectral clustering of 5000 rows: scikit-learn (rbf, arpack) and spectral_clustering; processor seconds")
    print(f"{'rows':>16} {'sigma':>6} {'k':>3} {'theirs':>8} {'ours':>8} {'ratio':>6}", end=" ")
    print(f"{'agree':>7} {'above':>9} {'differ':>9}")
    wide = np.random.default_rng(1).standard_normal((5, 10)) * 1.5
    digits = StandardScaler().fit_transform(load_digits().data)
    cases = [
        ("5000 x 3", blobs(5000, FOUR, 0.3), 0.5, 4),
        ("5000 x 3", blobs(5000, FOUR, 0.3), 1.0, 4),
        ("5000 x 10", blobs(5000, wide, 0.8), 2.0, 5),
        ("digits 1797 x 64", digits, 5.0, 10),
    ]
    for name, X, sigma, k in cases:

        def theirs():
            return SpectralClustering(k, gamma=1 / (2 * sigma**2), random_state=0).fit(X)

        def ours():
            return spectral_clustering(X, "gaussian", k, sigma=sigma, **ONE)

        seconds = alternate({"theirs": theirs, "ours": ours}, REPEATS, time.process_time)
        model = ours()
        print(
            f"{name:>16} {sigma:6} {k:3} {seconds['theirs']:8.2f} {seconds['ours']:8.3f} "
            f"{seconds['theirs'] / seconds['ours']:6.1f} {agreement(theirs().labels_, model.labels):7.4f} "
            f"{percent(model.above_least):>9} {percent(model.differing):>9}",
            flush=True,
        )


def kmeans() -> None:
    header("100000 rows: Nystroem(300) + KMeans of scikit-learn, and kernel_kmeans; processor seconds")
    print(f"{'columns':>8} {'theirs':>8} {'ours':>8} {'ratio':>6} {'cost / theirs':>14} {'above':>9} {'differ':>9}")
    for d in (3, 8, 16):
        centres = 2.0 * np.random.default_rng(2).standard_normal((6, d))
        X = blobs(100_000, centres, 0.7)
        sigma = float(fk.gram(X[:2000], "gaussian").kernel.sigma)

        def theirs():
            Phi = Nystroem(gamma=1 / (2 * sigma**2), n_components=300, random_state=0).fit_transform(X)
            return KMeans(6, n_init=1, random_state=0).fit(Phi), Phi

        def ours():
            return kernel_kmeans(X, "gaussian", 6, sigma=sigma, max_features=300, **ONE)

        seconds = alternate({"theirs": theirs, "ours": ours}, REPEATS, time.process_time)
        model, (groups, Phi) = ours(), theirs()
        means = np.stack([Phi[model.labels == j].mean(axis=0) for j in range(6)])
        cost = float(((Phi - means[model.labels]) ** 2).sum())
        print(
            f"{d:8} {seconds['theirs']:8.2f} {seconds['ours']:8.2f} {seconds['theirs'] / seconds['ours']:6.2f} "
            f"{cost / groups.inertia_:14.4f} {percent(model.above_least):>9} {percent(model.differing):>9}",
            flush=True,
        )


def groups() -> None:
    header(
        "four groups of many rows, three columns, sigma 1; processor seconds of kpca and of kernel_kmeans, kpca in it"
    )
    print(f"{'rows':>9} {'spread':>7} {'kpca':>7} {'kmeans':>7} {'spectral':>9} {'above':>9} {'differ':>9}")
    for n, spread in ((200_000, 0.3), (200_000, 0.15), (1_000_000, 0.3)):
        X = blobs(n, FOUR, spread)
        tasks = {
            "kpca": lambda: fk.kpca(X, "gaussian", 8, sigma=1.0, **ONE),
            "kmeans": lambda: kernel_kmeans(X, "gaussian", 4, sigma=1.0, **ONE),
            "spectral": lambda: spectral_clustering(X, "gaussian", 4, sigma=1.0, **ONE),
        }
        seconds = alternate(tasks, REPEATS, time.process_time)
        model = tasks["kmeans"]()
        print(
            f"{n:9} {spread:7} {seconds['kpca']:7.2f} {seconds['kmeans']:7.2f} {seconds['spectral']:9.2f} "
            f"{percent(model.above_least):>9} {percent(model.differing):>9}",
            flush=True,
        )


def certificates() -> None:
    header("what certificates say, Gaussian kernel, width by the median distance times a factor")
    sets = {
        "iris": (load_iris(return_X_y=True), (2, 3)),
        "wine": (load_wine(return_X_y=True), (3,)),
        "breast cancer": (load_breast_cancer(return_X_y=True), (2,)),
        "digits 0, 1": (load_digits(n_class=2, return_X_y=True), (2,)),
        "digits": (load_digits(return_X_y=True), (10,)),
    }
    for path in sorted((DATA / "ida").glob("*.npz")):
        data = np.load(path)
        sets[path.stem] = ((data["X"], data["y"]), (2,))
    print(f"{'set':>14} {'rows':>5} {'k':>2} {'width':>6} | {'k-means: above':>14} {'differ':>8}", end=" | ")
    print(f"{'spectral: above':>15} {'differ':>8}")
    said = np.zeros((2, 2), dtype=int)
    total = 0
    for name, ((X, _), counts) in sets.items():
        X = StandardScaler().fit_transform(X) if not name.startswith("digits") else X
        for k in counts:
            for factor in (0.5, 1.0, 2.0):
                sigma = factor * float(fk.gram(X, "gaussian").kernel.sigma)
                models = [fit(X, "gaussian", k, sigma=sigma, **ONE) for fit in (kernel_kmeans, spectral_clustering)]
                for row, model in zip(said, models):
                    row += model.above_least < 1.0, model.differing < 1.0
                total += 1
                words = [x for m in models for x in (percent(m.above_least), percent(m.differing))]
                print(f"{name:>14} {len(X):5} {k:2} {factor:6} | {words[0]:>14} {words[1]:>8}", end=" | ")
                print(f"{words[2]:>15} {words[3]:>8}", flush=True)
    for what, row in zip(("kernel_kmeans", "spectral_clustering"), said):
        print(f"{what}: above below 100 % in {row[0]} of {total}, a share that may differ in {row[1]} of {total}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = {"spectral": spectral, "kmeans": kmeans, "groups": groups, "certificates": certificates}
    for part in sys.argv[1:] or parts:
        parts[part]()

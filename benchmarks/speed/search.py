"""A grid search over kernel PCA before a classifier: what ``tol=1e-2`` saves, and what it costs in the score.

    python benchmarks/speed/search.py [--rows 4000]

Three widths around the median distance, 30 components, three folds; processor seconds of one thread, and the best mean
score, for scikit-learn's KernelPCA and for ours with the default tol=0, 1e-6 and 1e-2. The labels of uci_protein are
whether its target lies above the median.
"""

from __future__ import annotations

import argparse
import time
import warnings

import common
import numpy as np
import sklearn.decomposition
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastkpca.sklearn import KernelPCA


def searched(pca: object, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """(processor seconds, best score)."""
    gamma = 1.0 / np.median(pdist(StandardScaler().fit_transform(X)[:1000])) ** 2  # 1 / (2 sigma^2)
    pipeline = make_pipeline(StandardScaler(), pca, LogisticRegression(max_iter=1000))
    grid = {"kernelpca__gamma": [gamma / 4, gamma, 4 * gamma]}
    start = time.process_time()
    found = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    return time.process_time() - start, float(found.best_score_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=4000)
    n = parser.parse_args().rows
    common.header("speed: a grid search")
    warnings.simplefilter("ignore")
    data = {"digits, 1797 x 64": load_digits(return_X_y=True)}
    with np.load(common.DATA / "uci_protein.npz") as file:
        index = np.random.default_rng(0).permutation(len(file["X"]))[:n]
        data[f"uci_protein, {n} x 9"] = file["X"][index], file["y"][index] > np.median(file["y"])
    options = {"n_components": 30, "kernel": "rbf"}
    for name, (X, y) in data.items():
        ways = {"scikit-learn": sklearn.decomposition.KernelPCA(**options)}
        ways |= {f"tol={tol:g}": KernelPCA(**options, tol=tol, n_jobs=1) for tol in (0, 1e-6, 1e-2)}
        for way, pca in ways.items():
            seconds, score = searched(pca, X, np.ravel(y))
            print(f"{name:<24}{way:<14}{seconds:8.2f} s   score {score:.4f}", flush=True)


if __name__ == "__main__":
    main()

"""Kernel perceptron and kernel logistic regression against scikit-learn's linear models on an exact factor of K.

scikit-learn has neither; its Perceptron and LogisticRegression are given the rows of F, F F' = K by LAPACK, so that
they fit the same functions. Printed: predictions on new rows that differ, and seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.linalg
from kernels_contrib.logistic import kernel_logistic
from kernels_contrib.perceptron import kernel_perceptron
from setting import header, table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics.pairwise import rbf_kernel


def rows(name: str, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """(training rows, labels, new rows, their labels, sigma)."""
    if name == "digits":
        digits = load_digits()
        order = np.random.default_rng(0).permutation(len(digits.data))
        X, y = digits.data[order] / 16, digits.target[order]
        n = min(n, 1200)
        return X[:n], y[:n], X[n:], y[n:], 1.5
    rng = np.random.default_rng(0)
    angle, outer = rng.uniform(0, 2 * np.pi, 2 * n), rng.random(2 * n) < 0.5
    ring = (1 + outer)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = ring + 0.4 * rng.standard_normal((2 * n, 2))
    return X[:n], outer[:n], X[n:], outer[n:], 0.7


def seconds(task):
    started = time.perf_counter()
    result = task()
    return result, time.perf_counter() - started


def compare(name: str, n: int, epochs: int) -> list[tuple]:
    X, y, new, truth, sigma = rows(name, n)
    gamma = 1 / (2 * sigma**2)
    started = time.perf_counter()
    values, vectors = scipy.linalg.eigh(rbf_kernel(X, gamma=gamma))
    kept = values > 1e-13 * values[-1]
    change = vectors[:, kept] / np.sqrt(values[kept])
    F, G = rbf_kernel(X, gamma=gamma) @ change, rbf_kernel(new, X, gamma=gamma) @ change
    factor = time.perf_counter() - started
    perceptron = Perceptron(fit_intercept=False, shuffle=False, max_iter=epochs, tol=None)
    logistic = LogisticRegression(C=10.0, solver="newton-cg", tol=1e-8, max_iter=10000)
    pairs = {
        "perceptron": (lambda: kernel_perceptron(X, y, sigma=sigma, max_epochs=epochs), perceptron),
        "logistic": (lambda: kernel_logistic(X, y, sigma=sigma, regularization=0.1, features_tol=1e-8), logistic),
    }
    found = []
    for what, (fit, reference) in pairs.items():
        ours, our_time = seconds(lambda fit=fit: fit().predict(new))
        theirs, their_time = seconds(lambda reference=reference: reference.fit(F, y).predict(G))
        differ = f"{int(np.sum(ours != theirs))} of {len(new)}"
        right = f"{100 * np.mean(ours == truth):.1f}"
        found.append((name, len(X), what, differ, right, f"{our_time:.2f}", f"{factor:.2f} + {their_time:.2f}"))
        print("  ".join(map(str, found[-1])), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    header("reproduce: kernel perceptron and kernel logistic regression")
    found = []
    for name in ("rings", "digits"):
        for n in options.sizes:
            found += compare(name, n, options.epochs)
    print()
    table(("rows", "N", "model", "predictions that differ", "% right", "seconds", "scikit-learn: factor + fit"), found)


if __name__ == "__main__":
    main()

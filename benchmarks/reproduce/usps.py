"""Kernel PCA and a linear machine on USPS digits: Schoelkopf, Smola, Mueller 1998, table 1, beside ours.

Kernel (x.y)^d, components of the Gram matrix of 3000 training digits (averaged over several choices of them), a linear
support vector machine on the first n of them. Which 3000, and the machine's C, are not given in the paper; C is an
option here, for scores scaled to unit mean square norm. With ``--all`` also from all 7291 digits.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from setting import data, header, table
from sklearn.svm import LinearSVC

import fastkpca as fk

COUNTS = (32, 64, 128, 256, 512, 1024, 2048)
PUBLISHED = {
    32: (9.6, 8.8, 8.1, 8.5, 9.1, 9.3, 10.8),
    64: (8.8, 7.3, 6.8, 6.7, 6.7, 7.2, 7.5),
    128: (8.6, 5.8, 5.9, 6.1, 5.8, 6.0, 6.8),
    256: (8.7, 5.5, 5.3, 5.2, 5.2, 5.4, 5.4),
    512: (None, 4.9, 4.6, 4.4, 5.1, 4.6, 4.9),
    1024: (None, 4.9, 4.3, 4.4, 4.6, 4.8, 4.6),
    2048: (None, 4.9, 4.2, 4.1, 4.0, 4.3, 4.4),
}


def errors(
    X: np.ndarray, y: np.ndarray, digits: dict, degree: int, counts: list[int], strength: float, tol: float
) -> dict[int, float]:
    """Percent wrong on the test digits for each number of components; the machine is trained on the rows of X."""
    most = min(max(counts), len(X) - 1, X.shape[1] if degree == 1 else len(X))
    started = time.perf_counter()
    parameters = {"degree": degree, "scale": 1.0 / X.shape[1], "offset": 0.0}
    model = fk.kpca(X, "polynomial", most, tol=tol, **parameters)
    print(f"#   {len(X)} digits, d = {degree}: {model.n_components} components by {model.plan.method} in "
          f"{time.perf_counter() - started:.1f} s", flush=True)  # fmt: skip
    train, test = model.score, fk.kpca_project(model, digits["X_test"])
    unit = np.sqrt(np.mean(np.sum(train**2, axis=1)))
    found = {}
    for n in counts:
        if n > most:
            continue
        machine = LinearSVC(C=strength, dual=n >= len(X), random_state=0, max_iter=20000)
        machine.fit(train[:, :n] / unit, y)
        found[n] = 100 * float(np.mean(machine.predict(test[:, :n] / unit) != digits["y_test"]))
    return found


def show(what: str, found: dict[tuple[int, int], list[float]], degrees: list[int], counts: list[int]) -> None:
    print(what)
    rows = []
    for n in counts:
        row = [str(n)]
        for degree in degrees:
            published = PUBLISHED[n][degree - 1] if n in PUBLISHED else None
            ours = found.get((n, degree))
            row.append(f"{'-' if published is None else published} / {'-' if ours is None else f'{np.mean(ours):.1f}'}")
        rows.append(row)
    table(("n", *(f"d = {degree}" for degree in degrees)), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--degrees", type=int, nargs="+", default=list(range(1, 8)))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(COUNTS), help="numbers of components")
    parser.add_argument("--all", action="store_true", help="also all 7291 digits in the Gram matrix")
    parser.add_argument("-C", type=float, default=10.0)
    parser.add_argument("--tol", type=float, default=1e-6)
    options = parser.parse_args()
    digits = dict(data("usps.npz"))
    X, y = digits["X"], digits["y"]
    header("reproduce: kernel PCA on USPS")
    choices = [np.random.default_rng(i).choice(len(X), options.rows, replace=False) for i in range(options.draws)]
    what = f"published / ours, percent wrong: {options.rows} digits, mean over {options.draws} choices"
    runs = [(what, choices)]
    if options.all:
        runs.append((f"published (3000 digits) / ours from all {len(X)}", [np.arange(len(X))]))
    for what, choices in runs:
        found: dict[tuple[int, int], list[float]] = {}
        for index in choices:
            for degree in options.degrees:
                part = errors(X[index], y[index], digits, degree, options.sizes, options.C, options.tol)
                for n, value in part.items():
                    found.setdefault((n, degree), []).append(value)
        show(what, found, options.degrees, options.sizes)


if __name__ == "__main__":
    main()

"""Does ``kpca_select`` choose a good width? Test error of its choice, of the best width of the grid, and of the median.

Eight sets: two rings, two spheres, digits, and five of the IDA benchmark (training parts of the stored sizes). Each
draw makes new training rows; ``kpca_select`` sees these alone and chooses among 12 widths. Then every width is fitted
on the training rows and judged on the test rows: logistic regression on ten components, scaled. "best" is the width
with the least mean error on the test rows, which nobody knows beforehand. A choice is within one standard error if its
mean error exceeds that of the best by at most the standard deviation over the draws (the standard error of one test);
the stricter column divides that by the root of the number of draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from setting import data, header, table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from two_spheres_rings import rings, spheres

import fastkpca as fk
from fastkpca.errors import ComponentsWarning, silenced

SETS = ("rings", "spheres", "digits", "banana", "ringnorm", "thyroid", "twonorm", "waveform")
WIDTHS = 2.0 ** np.arange(-3.0, 3.0, 0.5)
Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def draw(name: str, seed: int) -> Draw:
    """(training rows, their labels, test rows, their labels)."""
    rng = np.random.default_rng([2026, seed])
    if name in ("rings", "spheres"):
        make = rings if name == "rings" else spheres
        return *make(rng), *make(rng, 3000)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        n = 900
    else:
        stored = data(f"ida/{name}.npz")
        X, y, n = stored["X"], stored["y"], int(stored["n_train"])
    order = rng.permutation(len(X))
    train, test = order[:n], order[n:]
    if name != "digits":
        X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    return X[train], y[train], X[test], y[test]


def classifier() -> object:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def test_errors(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, c: int) -> Iterator[float]:
    """Percent wrong at each width of the grid."""
    median = fk.kpca(X, "gaussian", 1).kernel.sigma
    for width in WIDTHS:
        with silenced(ComponentsWarning):
            model = fk.kpca(X, "gaussian", c, sigma=median * width)
        learned = classifier().fit(model.score, y)
        yield 100 * (1 - learned.score(fk.kpca_project(model, X_test), y_test))


def run(name: str, draws: int, c: int) -> tuple[list, bool]:
    """A row of the table, and whether the choice by labels is within one standard error of the best."""
    errors, labelled, unlabelled = [], [], []
    for seed in range(draws):
        X, y, X_test, y_test = draw(name, seed)
        errors.append(list(test_errors(X, y, X_test, y_test, c)))
        choice = fk.kpca_select(X, "gaussian", c, y=y, classifier=classifier())
        labelled.append(errors[-1][choice.chosen_row])
        if c < X.shape[1]:
            unlabelled.append(errors[-1][fk.kpca_select(X, "gaussian", c, criterion="preimage").chosen_row])
    of_grid = np.array(errors)
    best = int(of_grid.mean(axis=0).argmin())
    one_test = float(of_grid[:, best].std(ddof=1))
    apart = float(np.mean(labelled) - of_grid[:, best].mean())
    row = [
        name,
        f"{of_grid[:, best].mean():.2f}",
        f"{one_test:.2f}",
        f"{np.mean(labelled):.2f}",
        f"{apart / one_test if one_test else 0.0:+.2f}",
        f"{apart / one_test * np.sqrt(draws) if one_test else 0.0:+.1f}",
        f"{of_grid[:, list(WIDTHS).index(1.0)].mean():.2f}",
        f"{np.mean(unlabelled):.2f}" if unlabelled else "-",
        f"{of_grid.mean(axis=0).max():.1f}",
    ]
    return row, apart <= one_test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    options = parser.parse_args()
    header("reproduce: the choice of sigma by kpca_select")
    print(f"Percent wrong on test rows, mean of {options.draws} draws, {options.components} components")
    columns = ("set", "best", "std error", "chosen", "apart", "strict", "median", "preimage", "worst")
    results = [run(name, options.draws, options.components) for name in options.sets]
    table(columns, [row for row, _ in results])
    print("std error: of one test, the standard deviation over draws; apart: chosen minus best in units of it")
    print("strict: the same in standard errors of the mean over all draws")
    print("preimage: the choice without labels, where there are more columns than components")
    print(f"{sum(within for _, within in results)} of {len(results)} choices within one standard error of the best")


if __name__ == "__main__":
    main()

"""Kernel PCA and a linear machine on USPS digits: Schoelkopf, Smola, Mueller 1998, table 1, beside ours.

Kernel (x.y)^d, components of the Gram matrix of 3000 training digits, a linear soft-margin support vector machine on
the first n of them. Not known: which 3000 digits (here the mean and standard deviation of several random choices);
whether the machine is trained on these 3000 or on the projections of all 7291 training digits (both are here); C, and
how ten classes are made of two. Here: scores scaled to unit mean square norm (of all components together), one machine
a class against the rest, the largest decision wins; C for each table and n from 1, 10, 100, 1000 by cross-validation in
three parts of the training digits, with d = 3 and the components of the first choice (the smallest C of equally good
ones), then kept for all degrees and choices. Test digits decide nothing. With ``--all`` also from the components of all
7291 digits, which the authors could not compute, with the C of the second table.

    python benchmarks/reproduce/usps.py [--degrees 2 3] [--draws 5] [--all] [--record usps.jsonl]

The machine is libsvm's, on the Gram matrix of the scores: that grows by the products of the components that n adds, and
a machine costs about the same whatever n is. What is in the ``--record`` file is not computed again; keep one file for
one set of options.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from setting import data, header, table
from sklearn import config_context
from sklearn.svm import SVC

import fastkpca as fk

COUNTS = (32, 64, 128, 256, 512, 1024, 2048)
GRID = (1.0, 10.0, 100.0, 1000.0)
PUBLISHED = {
    32: (9.6, 8.8, 8.1, 8.5, 9.1, 9.3, 10.8),
    64: (8.8, 7.3, 6.8, 6.7, 6.7, 7.2, 7.5),
    128: (8.6, 5.8, 5.9, 6.1, 5.8, 6.0, 6.8),
    256: (8.7, 5.5, 5.3, 5.2, 5.2, 5.4, 5.4),
    512: (None, 4.9, 4.6, 4.4, 5.1, 4.6, 4.9),
    1024: (None, 4.9, 4.3, 4.4, 4.6, 4.8, 4.6),
    2048: (None, 4.9, 4.2, 4.1, 4.0, 4.3, 4.4),
}


class Record:
    """What was found, by (what, rows, draw, degree, n); on disk at once where there is a file."""

    def __init__(self, path: Path | None):
        self.path, self.found = path, {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                key, value = json.loads(line)
                self.found[tuple(key)] = value

    def put(self, key: tuple, value: float) -> None:
        self.found[key] = value
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps([key, value]) + "\n")


def machines(K: np.ndarray, y: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the rows, one column a class against the rest, and the constants."""
    coefficients, constants = np.zeros((len(K), 10)), np.zeros(10)
    K = np.asarray(K, dtype=np.float64)  # once, not in each of the ten
    with config_context(assume_finite=True):
        for digit in range(10):
            machine = SVC(C=strength, kernel="precomputed", cache_size=400).fit(K, y == digit)
            coefficients[machine.support_, digit] = machine.dual_coef_[0]
            constants[digit] = machine.intercept_[0]
    return coefficients, constants


def percent_wrong(decisions: np.ndarray, y: np.ndarray) -> float:
    return 100 * float(np.mean(np.argmax(decisions, axis=1) != y))


def cross_validated(K: np.ndarray, y: np.ndarray) -> float:
    """The C that three parts of the training digits do best with."""
    part = np.random.default_rng(0).permutation(len(y)) % 3
    wrong = np.zeros(len(GRID))
    for i in range(3):
        kept, left = np.flatnonzero(part != i), np.flatnonzero(part == i)
        own, other = K[np.ix_(kept, kept)].astype(np.float64), K[np.ix_(left, kept)]
        for j, strength in enumerate(GRID):
            coefficients, constants = machines(own, y[kept], strength)
            wrong[j] += np.sum(np.argmax(other @ coefficients + constants, axis=1) != y[left])
    return GRID[int(np.argmin(wrong))]


def tried(record: Record, label: tuple, degree: int, counts: list[int], train: np.ndarray, y: np.ndarray,
          test: np.ndarray, y_test: np.ndarray, given: float | None) -> float:  # fmt: skip
    """Percent wrong on the test digits for each number of components, into the record; the machines' seconds."""
    unit = np.sqrt(np.mean(np.sum(train**2, axis=1)))
    train, test = (np.asarray(x / unit, dtype=np.float32) for x in (train, test))  # as libsvm holds its matrix
    K, before, seconds = np.zeros((len(train), len(train)), dtype=np.float32), 0, 0.0
    for n in counts:
        added = train[:, before:n]
        K += added @ added.T
        before = n
        key = ("C", "all" if label[0] == "whole" else label[0], n)
        if given is None and key not in record.found:
            record.put(key, cross_validated(K, y))
        started = time.process_time()
        coefficients, constants = machines(K, y, given or record.found[key])
        wrong = percent_wrong(test[:, :n] @ (train[:, :n].T @ coefficients) + constants, y_test)
        seconds += time.process_time() - started
        record.put(("percent", *label, degree, n), wrong)
    return seconds


def errors(
    record: Record, rows: int, draw: int, digits: dict, degree: int, counts: list[int], given: float | None, tol: float
) -> None:
    """One choice of digits for the Gram matrix, one degree: the machine trained on these rows, and on all."""
    X, y = digits["X"], digits["y"]
    index = chosen(len(X), rows, draw)
    most = min(max(counts), rows - 1, X.shape[1] if degree == 1 else rows)
    counts = [n for n in counts if n <= most]
    labels = [("whole", rows, 0)] if rows == len(X) else [("same", rows, draw), ("all", rows, draw)]
    labels = [x for x in labels if any(("percent", *x, degree, n) not in record.found for n in counts)]
    if not labels:
        return
    started = time.process_time()
    model = fk.kpca(X[index], "polynomial", most, tol=tol, degree=degree, scale=1.0 / X.shape[1], offset=0.0)
    seconds = [time.process_time() - started]
    train, test = fk.kpca_project(model, X), fk.kpca_project(model, digits["X_test"])
    seconds.append(time.process_time() - started - seconds[0])
    for label in labels:
        own = index if label[0] == "same" else slice(None)
        seconds.append(tried(record, label, degree, counts, train[own], y[own], test, digits["y_test"], given))
    print(f"# {rows} digits, choice {draw}, d = {degree}: {model.n_components} components by {model.plan.method} in "
          f"{seconds[0]:.0f} s, projections {seconds[1]:.0f} s, machines (without cross-validation) "
          f"{', '.join(f'{x:.0f}' for x in seconds[2:])} s", flush=True)  # fmt: skip
    record.put(("seconds", rows, draw, degree, most), seconds[0])


def chosen(total: int, rows: int, draw: int) -> np.ndarray:
    return np.random.default_rng(draw).choice(total, rows, replace=False) if rows < total else np.arange(total)


def show(what: str, record: Record, labels: list[tuple], degrees: list[int], counts: list[int]) -> None:
    print(f"\n{what}\n")
    rows = []
    for n in counts:
        row = [str(n)]
        for degree in degrees:
            published = PUBLISHED[n][degree - 1] if n in PUBLISHED else None
            ours = [record.found.get(("percent", *label, degree, n)) for label in labels]
            ours = [x for x in ours if x is not None]
            spread = f" ({np.std(ours, ddof=1):.1f})" if len(ours) > 1 else ""
            text = f"{np.mean(ours):.1f}{spread}" if ours else "-"
            row.append(f"{'-' if published is None else published} / {text}")
        rows.append(row)
    table(("n", *(f"d = {degree}" for degree in degrees)), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5, help="choices of training digits")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--degrees", type=int, nargs="+", choices=range(1, 8), default=list(range(1, 8)))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(COUNTS), help="numbers of components")
    parser.add_argument("--all", action="store_true", help="also all 7291 digits in the Gram matrix")
    parser.add_argument("-C", type=float, help="for all machines, in place of cross-validation")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--record", type=Path, help="file of what was found; what it holds is not computed again")
    options = parser.parse_args()
    digits = dict(data("usps.npz"))
    header("reproduce: kernel PCA on USPS")
    record = Record(options.record)
    counts = sorted(options.sizes)
    total = len(digits["X"])
    # draw by draw, so that an interrupted run has whole tables
    runs = [(options.rows, i) for i in range(options.draws)] + ([(total, 0)] if options.all else [])
    for rows, draw in runs:
        for degree in sorted(options.degrees, key=lambda d: d != 3):  # the first one chooses C
            errors(record, rows, draw, digits, degree, counts, options.C, options.tol)
    print("\n# C for n = " + ", ".join(map(str, counts)))
    for which in ("same", "all"):
        found = [options.C or record.found.get(("C", which, n)) for n in counts]
        print(f"#   machine trained on {which} digits: {', '.join('-' if x is None else f'{x:g}' for x in found)}")
    what = f"published / ours, percent wrong: Gram matrix of {options.rows} digits, machine trained on "
    of = f"mean (standard deviation) of {options.draws} choices"
    for which, rows in (("same", f"the same {options.rows}"), ("all", f"all {total}")):
        labels = [(which, options.rows, i) for i in range(options.draws)]
        show(f"{what}{rows}; {of}", record, labels, options.degrees, counts)
    if options.all:
        what = f"published (3000 digits) / ours, percent wrong: Gram matrix of all {total}"
        show(what, record, [("whole", total, 0)], options.degrees, counts)


if __name__ == "__main__":
    main()

"""Kernel PCA and a linear machine on USPS digits: Schoelkopf, Smola, Mueller 1998, table 1, beside ours.

Kernel (x.y)^d, components of the Gram matrix of 3000 training digits, a linear soft-margin support vector machine on
the first n of them. Not known: which 3000 digits (here the mean and standard deviation of several random choices);
whether the machine is trained on these 3000 or on the projections of all 7291 training digits; whether ten classes are
told apart by ten machines (a class against the rest, the largest decision wins) or by 45 (each pair, votes): there is
a table of each of the four; and C. Here: scores scaled to unit mean square norm (of all components together), C for
each table and n from 1, 10, 100, 1000 by cross-validation in three parts of the training digits, with d = 3 and the
components of the first choice (the smallest C of equally good ones), then kept for all degrees and choices; with
``--own-C`` for each degree by itself. Test digits decide nothing. With ``--all`` also from the components of all 7291
digits, which the authors could not compute, with the C of machines trained on all.

    python benchmarks/reproduce/usps.py [--degrees 2 3] [--draws 5] [--all] [--record usps.jsonl]

The machine is libsvm's, on the Gram matrix of the scores: that grows by the products of the components that n adds, and
a machine costs about the same whatever n is. What is in the ``--record`` file is not computed again; keep one file for
one set of options.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path

import numpy as np
from setting import data, header, table
from sklearn import config_context
from sklearn.svm import SVC

import fastkpca as fk

COUNTS = (32, 64, 128, 256, 512, 1024, 2048)
MACHINES = {"rest": "ten machines (one against the rest)", "pairs": "45 machines (pairs)"}
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


def predicted(K: np.ndarray, y: np.ndarray, K_new: np.ndarray, strength: float, machines: str) -> np.ndarray:
    """Digits of the rows of K_new (m, N) from machines trained on K (N, N)."""
    with config_context(assume_finite=True):
        if machines == "pairs":
            machine = SVC(C=strength, kernel="precomputed", cache_size=400).fit(K, y)
            return machine.predict(K_new)
        decisions = np.empty((len(K_new), 10))
        for digit in range(10):
            machine = SVC(C=strength, kernel="precomputed", cache_size=400).fit(K, y == digit)
            decisions[:, digit] = K_new[:, machine.support_] @ machine.dual_coef_[0] + machine.intercept_[0]
    return np.argmax(decisions, axis=1)


def cross_validated(K: np.ndarray, y: np.ndarray, machines: str) -> float:
    """The C that three parts of the training digits do best with."""
    part = np.random.default_rng(0).permutation(len(y)) % 3
    wrong = np.zeros(len(GRID))
    for i in range(3):
        kept, left = np.flatnonzero(part != i), np.flatnonzero(part == i)
        own, other = K[np.ix_(kept, kept)], K[np.ix_(left, kept)]
        wrong += [np.sum(predicted(own, y[kept], other, strength, machines) != y[left]) for strength in GRID]
    return GRID[int(np.argmin(wrong))]


def tried(record: Record, labels: list[tuple], degree: int, counts: list[int], train: np.ndarray, y: np.ndarray,
          test: np.ndarray, y_test: np.ndarray, given: float | None) -> float:  # fmt: skip
    """Percent wrong on the test digits for each number of components, into the record; the machines' seconds."""
    unit = np.sqrt(np.mean(np.sum(train**2, axis=1)))
    train, test = (np.asarray(x / unit, dtype=np.float32) for x in (train, test))  # as libsvm holds its matrix
    K, K_test = np.zeros((len(train), len(train))), np.zeros((len(test), len(train)))
    before, seconds = 0, 0.0
    for n in counts:
        added = train[:, before:n]
        K += added @ added.T
        K_test += test[:, before:n] @ added.T
        before = n
        for which, machines, rows, draw in labels:
            key = ("C", "all" if which == "whole" else which, machines, n, *([degree] if given == 0 else []))
            if not given and key not in record.found:
                record.put(key, cross_validated(K, y, machines))
            started = time.process_time()
            wrong = predicted(K, y, K_test, given or record.found[key], machines) != y_test
            seconds += time.process_time() - started
            record.put(("percent", which, machines, rows, draw, degree, n), 100 * float(np.mean(wrong)))
    return seconds


def errors(
    record: Record, rows: int, draw: int, digits: dict, degree: int, counts: list[int], given: float | None, tol: float
) -> None:
    """One choice of digits for the Gram matrix, one degree: the machine trained on these rows, and on all."""
    X, y = digits["X"], digits["y"]
    index = chosen(len(X), rows, draw)
    most = min(max(counts), rows - 1, X.shape[1] if degree == 1 else rows)
    counts = [n for n in counts if n <= most]
    labels = {}
    for which in ["whole"] if rows == len(X) else ["same", "all"]:
        own = [(which, machines, rows, draw) for machines in MACHINES]
        labels[which] = [x for x in own if any(("percent", *x, degree, n) not in record.found for n in counts)]
    if not any(labels.values()):
        return
    started = time.process_time()
    model = fk.kpca(X[index], "polynomial", most, tol=tol, degree=degree, scale=1.0 / X.shape[1], offset=0.0)
    seconds = [time.process_time() - started]
    train, test = fk.kpca_project(model, X), fk.kpca_project(model, digits["X_test"])
    seconds.append(time.process_time() - started - seconds[0])
    for which, own in labels.items():
        part = index if which == "same" else slice(None)
        if own:
            seconds.append(tried(record, own, degree, counts, train[part], y[part], test, digits["y_test"], given))
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
    parser.add_argument(
        "--own-C", dest="C", action="store_const", const=0.0, help="by cross-validation for each degree"
    )
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
    trained = {"same": f"the same {options.rows}", "all": f"all {total}"}
    for which, machines in product(trained, MACHINES):
        for degree in options.degrees if options.C == 0 else (None,):
            own = () if degree is None else (degree,)
            found = [options.C or record.found.get(("C", which, machines, n, *own)) for n in counts]
            text = ", ".join("-" if x is None else f"{x:g}" for x in found) + (f" (d = {degree})" if own else "")
            print(f"#   {MACHINES[machines]} trained on {trained[which]} digits: {text}")
    of = f"mean (standard deviation) of {options.draws} choices"
    for machines, which in product(MACHINES, trained):
        what = f"Gram matrix of {options.rows} digits; {MACHINES[machines]} trained on {trained[which]}; {of}"
        labels = [(which, machines, options.rows, i) for i in range(options.draws)]
        show(f"published / ours, percent wrong: {what}", record, labels, options.degrees, counts)
    if options.all:
        for machines, text in MACHINES.items():
            what = f"published (3000 digits) / ours, percent wrong: Gram matrix of all {total}; {text}"
            show(what, record, [("whole", machines, total, 0)], options.degrees, counts)


if __name__ == "__main__":
    main()

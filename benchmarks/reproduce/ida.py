"""Kernel Fisher discriminant on seven sets of the IDA benchmark: Mueller et al. 2001, table V, beside ours.

Their protocol: for each of the first five splits the parameters with the least error in a five-fold cross-validation,
then the median of the five; with these the error on the test part of 100 splits. Gaussian kernel, regulariser N + mu I.

What they leave open: how the threshold on the one coordinate is found, and what the median is of. Two forms stand side
by side here, from the same splits and the same tables of cross-validation:

- "plain": the median of each parameter by itself, and the threshold by a linear support vector machine (C = 1), as in
  Mika et al. 1999;
- "given": the median of the width, then that of mu at that width, since a wider kernel asks for a smaller mu; the
  threshold by that machine or by ``klda_predict``'s rule ("means"), whichever did better in the cross-validation.

What was fixed when: the second form was chosen after the test errors of the first had been seen, on splits that were
seeded otherwise. The splits here (``SEED``) were not looked at until both forms, the grid and the seed stood fixed;
mu beyond 100 was added to the grid at the same time, since eigenvalues of N reach far beyond that. The original splits
are not stored; these have their sizes.

``--groups`` and ``--oracle`` are diagnostics and no result: how far the mean error moves with the five splits that the
parameters are chosen on, which no standard error over splits counts, and the least mean error on the test parts that
any parameters of the grid reach.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
from kernels_contrib.klda import klda
from setting import data, header, table
from sklearn.svm import SVC

PUBLISHED = {  # percent, standard deviation over the splits as printed
    "banana": (10.8, 0.5),
    "breast_cancer": (25.8, 4.6),
    "heart": (16.1, 3.4),
    "ringnorm": (1.5, 0.1),
    "thyroid": (4.2, 2.1),
    "twonorm": (2.6, 0.2),
    "waveform": (9.9, 0.4),
}
WIDTHS = 2.0 ** np.arange(-3, 3.1)  # of sigma, in units of sqrt(d) on standardised columns
STRENGTHS = 10.0 ** np.arange(-5, 4.1)
RULES = ("machine", "means")
SEED = 2026
ROUNDED = 0.05  # the printed means are rounded to a tenth


@dataclass(frozen=True)
class Choice:
    """Places in the grid and among the rules."""

    width: int
    strength: int
    rule: int


def standardised(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    spread = X[train].std(axis=0)
    return (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def errors(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, sigma: float, mu: float) -> np.ndarray:
    """Percent wrong on ``test``: (threshold by a support vector machine, by the discriminant's own rule)."""
    model = klda(X[train], y[train], "gaussian", sigma=sigma, regularization=mu, tol=1e-6, n_threads=1)
    line = model.project(X[train])
    unit = line.std() or 1.0
    machine = SVC(kernel="linear", C=1.0).fit(line / unit, y[train])
    wrong = machine.predict(model.project(X[test]) / unit) != y[test]
    return 100 * np.array([wrong.mean(), np.mean(model.predict(X[test]) != y[test])])


def splits(n: int, n_train: int, number: int) -> list[tuple[np.ndarray, np.ndarray]]:
    orders = [np.random.default_rng([SEED, split]).permutation(n) for split in range(number)]
    return [(order[:n_train], order[n_train:]) for order in orders]


def validation(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, widths: np.ndarray, strengths: np.ndarray
) -> np.ndarray:
    """Percent wrong in five folds of the training rows, shape (widths, strengths, rules)."""
    folds = np.array_split(np.random.default_rng(0).permutation(train), 5)
    total = np.zeros((len(widths), len(strengths), len(RULES)))
    for i, fold in enumerate(folds):
        rest = np.concatenate([x for j, x in enumerate(folds) if j != i])
        for a, sigma in enumerate(widths):
            for b, mu in enumerate(strengths):
                total[a, b] += errors(X, y, rest, fold, sigma, mu) * len(fold) / len(train)
    return total


def least(wrong: np.ndarray) -> int:
    """Where the least is; of equals the last, which is the smoothest."""
    return int(np.flatnonzero(wrong <= wrong.min() + 1e-9)[-1])


def median(places: list[int]) -> int:
    return sorted(places)[(len(places) - 1) // 2]


def plain(tables: list[np.ndarray]) -> Choice:
    """The median of each parameter by itself, the threshold by the machine."""
    best = [np.unravel_index(least(x[:, :, 0].ravel()), x.shape[:2]) for x in tables]
    return Choice(median([int(x[0]) for x in best]), median([int(x[1]) for x in best]), 0)


def given(tables: list[np.ndarray]) -> Choice:
    """The median of the width, then that of mu at this width; the rule that did better."""
    rule = int(np.argmin(np.min(tables, axis=(1, 2)).mean(axis=0)))
    width = median([least(x[:, :, rule].min(axis=1)) for x in tables])
    return Choice(width, median([least(x[width, :, rule]) for x in tables]), rule)


FORMS = {"plain": plain, "given": given}


def row(name: str, form: str, wrong: np.ndarray, rule: int, sigma: float, mu: float) -> list:
    number = len(wrong)
    mean, deviation = float(wrong.mean()), float(wrong.std(ddof=1 if number > 1 else 0))
    published, published_deviation = PUBLISHED[name]
    combined = np.hypot(deviation, published_deviation) / np.sqrt(number)
    beyond = max(0.0, abs(mean - published) - ROUNDED) * np.sign(mean - published)
    return [
        name,
        f"{published:.1f} +- {published_deviation:.1f}",
        f"{mean:.2f} +- {deviation:.2f}",
        f"{deviation / np.sqrt(number):.2f}",
        f"{(mean - published) / combined:+.1f}",
        f"{beyond / combined:+.1f}",
        form,
        RULES[rule],
        f"{sigma:.3g}",
        f"{mu:.2g}",
    ]


def run(name: str, number: int, tuned: int, coarse: int, groups: int, oracle: int) -> list[list]:
    """A row for each form, and those of the diagnostics where they are asked for."""
    stored = data(f"ida/{name}.npz")
    X, y = stored["X"], stored["y"]
    n_train, n_test = int(stored["n_train"]), int(stored["n_test"])
    widths, strengths = WIDTHS[::coarse] * np.sqrt(X.shape[1]), STRENGTHS[::coarse]
    all_splits = [(train, test[:n_test]) for train, test in splits(len(X), n_train, number)]
    tables = [
        validation(standardised(X, train), y, train, widths, strengths) for train, _ in all_splits[: tuned * groups]
    ]
    tested: dict[tuple[int, int], np.ndarray] = {}

    def on_tests(width: int, strength: int, some: int = number) -> np.ndarray:
        return np.array(
            [
                errors(standardised(X, train), y, train, test, float(widths[width]), float(strengths[strength]))
                for train, test in all_splits[:some]
            ]
        )

    rows = []
    for group in range(groups):
        for form, choose in FORMS.items():
            choice = choose(tables[tuned * group : tuned * (group + 1)])
            cell = choice.width, choice.strength
            if cell not in tested:
                tested[cell] = on_tests(*cell)
            found = tested[cell][:, choice.rule]
            label = form if group == 0 else f"{form}, group {group + 1}"
            rows.append(row(name, label, found, choice.rule, float(widths[cell[0]]), float(strengths[cell[1]])))
    if oracle:
        some = np.array([[on_tests(a, b, oracle) for b in range(len(strengths))] for a in range(len(widths))])
        a, b, rule = np.unravel_index(np.argmin(some.mean(axis=2)), (*some.shape[:2], len(RULES)))
        rows.append(row(name, "oracle", some[a, b, :, rule], int(rule), float(widths[a]), float(strengths[b])))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--tuned", type=int, default=5, help="splits that the parameters are chosen on")
    parser.add_argument("--coarse", type=int, default=1, help="every how manyth parameter of the grid")
    parser.add_argument(
        "--groups", type=int, default=1, help="diagnostic above 1: choose again on further groups of splits"
    )
    parser.add_argument(
        "--oracle", type=int, default=0, help="diagnostic: parameters chosen on the test parts of so many splits"
    )
    parser.add_argument("--sets", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    options = parser.parse_args()
    header("reproduce: kernel Fisher discriminant on the IDA sets")
    print(f"Percent wrong, mean +- standard deviation over {options.splits} splits")
    columns = ("set", "published", "ours", "std error", "apart", "rounded", "form", "threshold", "sigma", "mu")
    rows = []
    for name in options.sets:
        for found in run(name, options.splits, options.tuned, options.coarse, options.groups, options.oracle):
            rows.append(found)
            print("  ".join(found), f" ({time.process_time():.0f} s of processor time so far)", flush=True)
    print()
    rows.sort(key=lambda x: (x[6] not in FORMS, x[6] if x[6] not in FORMS else list(FORMS).index(x[6])))
    table(columns, rows)
    print("apart: ours minus published, in combined standard errors")
    print("rounded: the same of what exceeds the 0.05 that the printed means are rounded by")
    for form in FORMS:
        apart = np.array([(float(x[4]), float(x[5])) for x in rows if x[6] == form])
        within, below = np.sum(np.abs(apart) <= 2, axis=0), np.sum(apart < -2, axis=0)
        print(
            f"{form}: {within[0]} of {len(apart)} within two combined standard errors, {below[0]} below them; "
            f"{within[1]} and {below[1]} allowing for the rounding"
        )
    if options.groups > 1:
        print(f"\nDiagnostic: means with the parameters chosen on {options.groups} different groups of splits, their")
        print("standard deviation, and ours minus published in standard errors that count it, ours and theirs")
        for form in FORMS:
            for name in options.sets:
                of_form = [x for x in rows if x[0] == name and x[6].split(",")[0] == form]
                means = np.array([float(x[2].split()[0]) for x in of_form])
                published, deviation = PUBLISHED[name]
                variance = (float(of_form[0][2].split()[-1]) ** 2 + deviation**2) / options.splits
                apart = (means[0] - published) / np.sqrt(variance + 2 * means.var(ddof=1))
                print(f"{form}  {name}  {np.array2string(means)}  {means.std(ddof=1):.2f}  {apart:+.1f}")


if __name__ == "__main__":
    main()

"""Attack the tests of two samples and of independence, kernel CCA, PLS and ridge regression.

    python tests/attacks/attack_methods.py [--problems 500] [--draws 5000] [--seed 0]

Random problems against textbook formulas on dense matrices (tests/support/method_cases.py), whose exact numbers must
lie in the stated intervals; then the level of both tests over so many draws of two equal distributions, or two
independent views (5 % +- .7), and their power beside that of the dense formula at the same permutations.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command
import method_cases as cases
from kernels_contrib.hsic import hsic_test
from kernels_contrib.mmd import mmd_test


def problems(count: int, seed: int) -> bool:
    fine = True
    for number, (name, check) in enumerate(cases.CHECKS.items()):
        widths, exact, broken = [], 0, 0
        for case in range(count):
            try:
                width, sure = check(np.random.default_rng([seed, number, case]))
                widths.append(width)
                exact += sure
            except Exception:
                broken += 1
                print(f"BROKEN {name} {case}\n{traceback.format_exc()}", flush=True)
        fine = fine and not broken
        print(
            f"{name}: {count} problems, {broken} broken, {exact} exact p-values or no p-value; "
            f"stated width or error: median {np.median(widths):.1e}, largest {np.max(widths):.1e}",
            flush=True,
        )
    return fine


def dense_p(K, orders):
    values = np.array([cases.mmd(K, L) for L in orders])
    return np.mean(values >= values[0] - 1e-12)


def levels(draws: int, seed: int) -> bool:
    rejected = {"mmd": 0, "hsic": 0, "mmd of three widths": 0}
    for draw in range(draws):
        rng = np.random.default_rng([seed, 99, draw])
        X, Y = rng.standard_normal((20, 2)), rng.standard_normal((15, 2))
        several = [cases.gaussian(s) for s in (0.5, 1.0, 2.0)]
        options = {"permutations": 99, "rng": draw, "n_threads": 1}
        rejected["mmd"] += mmd_test(X, Y, sigma=1.0, **options).p_value <= 0.05
        rejected["mmd of three widths"] += mmd_test(X, Y, several, **options).p_value <= 0.05
        rejected["hsic"] += hsic_test(X[:15], Y, sigma=1.0, **options).p_value <= 0.05
    for name, count in rejected.items():
        print(f"level of {name}: {100 * count / draws:.2f} % of {draws} draws (nominal 5 %)", flush=True)
    return all(abs(count / draws - 0.05) <= 0.007 for count in rejected.values())


def power(draws: int, seed: int) -> bool:
    """The same permutations of the same rows by the dense formula: the same decisions."""
    ours = dense = differ = 0
    for draw in range(draws):
        rng = np.random.default_rng([seed, 7, draw])
        X, Y = rng.standard_normal((30, 2)), rng.standard_normal((30, 2)) + 0.4
        found = mmd_test(X, Y, sigma=1.0, permutations=99, rng=draw, n_threads=1)
        labels, again = np.arange(60) < 30, np.random.default_rng(draw)
        orders = [labels, *(again.permutation(labels) for _ in range(99))]
        p = dense_p(cases.gram("gaussian", np.vstack([X, Y]), sigma=1.0), orders)
        ours, dense = ours + (found.p_value <= 0.05), dense + (p <= 0.05)
        differ += abs(p - found.p_value) > 1e-12
    print(f"power: {ours} of {draws} rejected, dense formula {dense}; {differ} p-values differ", flush=True)
    return differ == 0


def main() -> int:
    asked = command.options(__doc__, problems=500, draws=5000, seed=0)
    warnings.simplefilter("ignore")
    fine = [problems(asked.problems, asked.seed), levels(asked.draws, asked.seed), power(asked.draws // 10, asked.seed)]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    raise SystemExit(main())

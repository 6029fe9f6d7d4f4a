"""Attack the intervals of second order: at delta = 0.05 few problems of any family may break them, of a pass none.

    python tests/attacks/attack_second_order.py [--problems 20000] [--passes 2000] [--failure 0.05] [--seed 0]

tests/solve/test_second_order.py runs a fraction; tests/support/second_order_cases.py has the families.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command
import second_order_cases as cases
from tally import Shares


def attack_passes(problems, seed):
    """How many intervals of passes and of V'RV miss."""
    total = 0
    for i, (name, family) in enumerate(cases.FAMILIES.items()):
        misses, widths = 0, []
        for case in range(problems // len(cases.FAMILIES)):
            rng = np.random.default_rng([seed, 100 + i, case])
            problem = family(rng)
            true, slack = problem.true, 10.0 ** rng.uniform(0, 1)
            for single in (False, True):
                found, leading, _ = cases.passed(problem, single, slack)
                misses += cases.missed(found.eigenvalue_bounds, true, true[0])
                widths.append(found.width / leading.first.first(problem.c).width)
            misses += cases.missed(cases.known(problem, slack)[0].certificate.eigenvalue_bounds, true, true[0])
        total += misses
        print(f"{name:14} {len(widths)} passes: {misses} missed, median width {np.median(widths):.2g} of first order")
    return total


def main():
    given = command.options(__doc__, problems=20000, passes=2000, failure=0.05, seed=0)
    missed = attack_passes(given.passes, given.seed)
    shares = Shares(given.seed)
    for i, (name, family) in enumerate(cases.FAMILIES.items()):
        attack = lambda rng, _, f=family: cases.sampled_misses(rng, f(rng), given.failure)  # noqa: E731
        shares.take(name, given.problems // len(cases.FAMILIES), i, attack)
    if missed or shares.worst > given.failure:
        sys.exit(f"{missed} passes miss; the sampled intervals fail with probability {shares.worst:.3g}")


if __name__ == "__main__":
    main()

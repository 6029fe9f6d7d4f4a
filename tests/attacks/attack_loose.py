"""Attack the sampled bound: at delta = 0.05 at most 5 % of the problems of any family may break it.

    python tests/attacks/attack_loose.py [--problems 20000] [--failure 0.05] [--seed 0]

tests/attacks/test_attack_loose.py runs a fraction; tests/support/loose_cases.py has the families.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import loose_cases as cases


def attack_bound(problems, failure, seed):
    """The bound alone, family by family."""
    worst = 0.0
    for i, (name, family) in enumerate(cases.FAMILIES.items()):
        started, misses, ratios = time.perf_counter(), 0, []
        for case in range(problems):
            rng = np.random.default_rng([seed, i, case])
            missed, ratio = cases.bound_misses(rng, family(rng), failure)
            misses += missed
            ratios.append(ratio)
        share = misses / problems
        worst = max(worst, share)
        seconds = time.perf_counter() - started
        print(
            f"{name:16} {problems} problems, {100 * share:.3f} % missed, median bound {np.median(ratios):.2f} times "
            f"the largest eigenvalue, {seconds:.0f} s",
            flush=True,
        )
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20000)
    parser.add_argument("--failure", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    worst = attack_bound(given.problems, given.failure, given.seed)
    if worst > given.failure:
        sys.exit(f"the bound fails more often than promised: {worst}")


if __name__ == "__main__":
    main()

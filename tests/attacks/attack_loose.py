"""Attack the sampled bound: at delta = 0.05 at most 5 % of the problems of any family may break it.

    python tests/attacks/attack_loose.py [--problems 20000] [--calls 20000] [--failure 0.05] [--seed 0] [--moved]

First the bound alone, then kpca with few features and that failure_probability. With --moved pivots go to means of
rows, also where the rows are few.

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

from fastkpca.fit import offers


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


def attack_calls(calls, failure, seed):
    """kpca with this failure_probability, family by family."""
    worst = 0.0
    for i, (name, family) in enumerate(cases.CALLS.items()):
        started, misses, probabilistic = time.perf_counter(), 0, 0
        for case in range(calls // len(cases.CALLS)):
            rng = np.random.default_rng([seed, 100 + i, case])
            missed, may_fail = cases.call_misses(family(rng, 3000 if case % 500 == 0 else 120), case, failure)
            misses += missed
            probabilistic += may_fail
        share = misses / max(probabilistic, 1)
        worst = max(worst, share)
        seconds = time.perf_counter() - started
        print(
            f"{name:28} {probabilistic} probabilistic of {calls // len(cases.CALLS)}, {100 * share:.3f} % missed, "
            f"{seconds:.0f} s",
            flush=True,
        )
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20000)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--failure", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--moved", action="store_true")
    given = parser.parse_args()
    if given.moved:
        offers.MEANS_FROM = 0
    worst = attack_bound(given.problems, given.failure, given.seed)
    worst = max(worst, attack_calls(given.calls, given.failure, given.seed))
    if worst > given.failure:
        sys.exit(f"the bound fails more often than promised: {worst}")


if __name__ == "__main__":
    main()

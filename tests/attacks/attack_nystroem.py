"""Attack what Nystroem says of landmarks that are unkind, with weights: at delta = 0.05 few of its bounds may fail.

    python tests/attacks/attack_nystroem.py [--problems 6000] [--failure 0.05] [--seed 0]

tests/sklearn/test_nystroem.py runs a fraction; tests/support/nystroem_cases.py has the problems.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command
import nystroem_cases as cases


def main():
    given = command.options(__doc__, problems=6000, failure=0.05, seed=0)
    found = [cases.misses(np.random.default_rng([given.seed, case]), given.failure) for case in range(given.problems)]
    norm, trace, interval, second = (int(x) for x in np.sum(found, axis=0))
    print(
        f"{given.problems} problems, failure {given.failure:g}: missed {norm} largest eigenvalues, {trace} traces, "
        f"{interval} intervals; {second} of second order"
    )
    if trace or max(norm, interval) > given.failure * given.problems:
        sys.exit("bounds fail more often than they say")


if __name__ == "__main__":
    main()

"""Attack the certificates of clusterings: every clustering of few rows is tried.

    python tests/attacks/attack_clustering.py [--problems 10000] [--seed 0]

tests/contrib/test_clustering.py runs a fraction; tests/support/clustering_cases.py has the problems.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import clustering_cases as cases
import command

ATTACKS = (
    ("kernel_kmeans", "features", cases.attack_kmeans),
    ("kernel_kmeans", "gram", cases.attack_kmeans),
    ("spectral_clustering", "dense", cases.attack_spectral),
    ("spectral_clustering", "auto", cases.attack_spectral),
)


def main() -> int:
    given = command.options(__doc__, problems=10_000, seed=0)
    broken = 0
    for name, method, attack in ATTACKS:
        said, started = 0, time.perf_counter()
        for i in range(given.problems):
            try:
                said += attack(cases.random_case(np.random.default_rng([given.seed, i])), method)
            except AssertionError as error:
                broken += 1
                print(f"{name}, {method}, seed {given.seed}, problem {i}: broken by {error}")
        seconds = time.perf_counter() - started
        print(f"{name:20} {method:9} {given.problems} problems, something said in {said}, {seconds:.0f} s", flush=True)
    print(f"{broken} broken")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Attack models that add up, and weights: every interval of a union must contain the exact number.

    python tests/attacks/attack_merge.py [--unions 2000] [--weights 1000] [--seed 0] [--first 0]

Shards of very different sizes (one row, and all but a few), equal rows, far and drifting shards, float32 and float64
mixed, weights from 1e-12 to 1e12 and zero, every kind of feature map, merged in random order by kpca_merge and
kpca_update with models that were stored between. The reference is the dense eigenproblem of the union in extended
precision. tests/attacks/test_attack_merge.py runs a fraction of the same cases; tests/support/merge_cases.py has the
problems and the checks. Needs kernels_contrib.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import attack_cases
import command
import merge_cases as cases
from tally import Tally, report, rounds


def attack_unions(options, deadline):
    tallies = defaultdict(Tally)
    with attack_cases.folder() as folder:
        for case, rng in rounds("merge", options, options.unions, deadline):
            given = cases.union(rng, options.largest)
            if given.exact.size > 1e-13 * given.exact.norm_K:
                tally = tallies[f"{type(given.kernel).__name__} {given.features}"]
                attack(tally, f"union {case}: {given.name}", given, cases.merged, rng, given, folder)
    return report(tallies)


def attack_weights(options, deadline):
    tallies = defaultdict(Tally)
    for case, rng in rounds("weights", options, options.weights, deadline):
        given = cases.weighted_problem(rng, options.largest)
        if not given.exact.size > 1e-13 * given.exact.norm_K:
            continue
        w = given.weights[0]
        whole = np.array_equal(w, np.rint(w)) and w.sum() <= 1000
        for route, keywords in cases.weighted_routes(given):
            for repeated in (False, True) if whole else (False,):
                label = f"{route.split()[0]}{', repeated rows' if repeated else ''}"
                seen = given if not repeated else cases.repeated(given)
                where = f"weights {case} {label}: {given.name}"
                attack(tallies[label], where, seen, cases.fit_weighted, given, keywords, repeated)
    return report(tallies)


def attack(tally, where, given, way, *args):
    try:
        model, refused = cases.run(way, *args)
        if refused:
            tally.refuse(refused)
            return
        tally.measure(model, given.exact, given.tol)
        tally.check(where, cases.checks(given, model))
    except Exception:
        tally.fail(where)


def main():
    options = command.options(__doc__, unions=2000, weights=1000, largest=1500, seed=0, first=0, minutes=np.inf)
    deadline = time.perf_counter() + 60 * options.minutes
    broken = attack_unions(options, deadline) + attack_weights(options, deadline)
    print(f"{broken} broken")
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()

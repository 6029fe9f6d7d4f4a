"""Attack kpca through its public functions: every promised interval must contain the exact number.

    python tests/attacks/attack_kpca.py [--problems 2000] [--clusters 500] [--products 1000] [--ranges 3000]
        [--seed 0] [--first 0]

Each problem runs through every route that can be forced, and through "auto". Full scale takes about five minutes on
one core. tests/attacks/test_attack_kpca.py runs a fraction of the same cases; tests/support/attack_cases.py has the
problems, the exact references and the checks.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import scipy.linalg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import attack_cases as cases
import command
import range_cases as ranges
from reference import center
from tally import Tally, report, rounds


def calibrate(options):
    """Largest error of the reference's rounding to float64 and of LAPACK, in units of what is allowed for it."""
    import mpmath

    worst = 0.0
    with mpmath.workdps(50):
        for _, rng in rounds("calibrate", options, options.calibrate):
            given = cases.problem(rng, 45)
            K, _ = cases.gram_long(given.kernel, given.X, given.parameters)
            Kc = center(K)
            Kc = (Kc + Kc.T) / 2
            exact = mpmath.matrix(len(Kc), len(Kc))
            for i, row in enumerate(Kc):
                for j, x in enumerate(row):
                    high = float(x)
                    exact[i, j] = mpmath.mpf(high) + mpmath.mpf(float(x - np.longdouble(high)))
            true = np.array(sorted((float(x) for x in mpmath.eigsy(exact, eigvals_only=True)), reverse=True))
            narrow = np.asarray(Kc, dtype=np.float64)
            allowed = cases.UNIT * (np.linalg.norm(narrow) + 20 * given.reference.size)
            if allowed > 0:
                worst = max(worst, float(np.max(np.abs(given.reference.values - true)) / allowed))
    print(f"reference: {options.calibrate} problems against mpmath, largest error {worst:.2f} of what is allowed")


def attack_problems(options, deadline):
    tallies = defaultdict(Tally)
    with cases.folder() as folder:
        for case, rng in rounds("kpca", options, options.problems, deadline):
            given = cases.problem(rng, options.largest)
            if not given.reference.size > 1e-13 * given.reference.norm_K:
                continue  # constant: nothing but rounding is left
            projected = int(rng.integers(0, 12))
            for i, (label, keywords) in enumerate(cases.routes(given)):
                tally, where = tallies[label], f"case {case} {label}: {given.name}"
                try:
                    outcome = cases.run(given, **keywords)
                    if outcome.refused:
                        tally.refuse(outcome.refused)
                        continue
                    tally.measure(outcome.model, given.reference, given.tol)
                    tally.check(where, cases.all_checks(given, outcome, folder if i == projected else None))
                except Exception:
                    tally.fail(where)
    report(tallies)


def attack_clusters(options):
    for method in ("krylov", "auto"):
        found = Counter()
        for case, rng in rounds("clusters", options, options.clusters):
            result = cases.attack_cluster(rng, method)
            found[result] += 1
            if result not in ("right", "warned"):
                print(f"BROKEN cluster case {case} {method}: {result}", flush=True)
        print(f"clusters, {method}: {dict(found)}")


def attack_products(options):
    tallies = defaultdict(Tally)
    for label, attack in (("gram", cases.attack_gram), ("features", cases.attack_features)):
        for case, rng in rounds(label, options, options.products):
            try:
                tallies[label].check(f"{label} case {case}", attack(rng))
            except Exception:
                tallies[label].fail(f"{label} case {case}")
    report(tallies)


def attack_ranges(options):
    """Rows and parameters over 600 decades: an answer that holds, or a refusal in words."""
    tallies, at_once = defaultdict(Tally), 0
    for number, rng in rounds("ranges", options, options.ranges):
        case = ranges.range_case(rng)
        if case is None:
            at_once += 1
            continue
        for label, refusal, found in [*ranges.run_components(case), *ranges.run_gram(case, rng)]:
            if refusal:
                tallies[label].refuse(refusal)
            tallies[label].check(f"range case {number} {label}: {case.name}", found)
    print(f"ranges: {options.ranges} cases, {at_once} refused or beyond longdouble when the kernel was made")
    report(tallies)


def main():
    options = command.options(
        __doc__,
        problems=2000,
        clusters=500,
        products=1000,
        ranges=3000,
        calibrate=20,
        largest=1500,
        seed=0,
        first=0,
        minutes=np.inf,
    )
    print(f"numpy {np.__version__}, scipy {scipy.__version__}; seeds: [crc32(part), {options.seed}, case]")
    begun = time.perf_counter()
    for part, task in (
        ("reference", lambda: calibrate(options)),
        ("problems", lambda: attack_problems(options, begun + 60 * options.minutes)),
        ("clusters", lambda: attack_clusters(options)),
        ("products", lambda: attack_products(options)),
        ("ranges", lambda: attack_ranges(options)),
    ):
        before = time.perf_counter()
        task()
        print(f"{part}: {time.perf_counter() - before:.0f} s", flush=True)


if __name__ == "__main__":
    main()

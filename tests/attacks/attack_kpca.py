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
import traceback
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import scipy.linalg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import attack_cases as cases
import command
import range_cases as ranges
from reference import center

from fastkpca.errors import CertificateWarning, ComponentsWarning


def generator(label, seed, case):
    return np.random.default_rng([zlib.crc32(label.encode()), seed, case])


def calibrate(seed, problems):
    """Largest error of the reference's rounding to float64 and of LAPACK, in units of what is allowed for it."""
    import mpmath

    worst = 0.0
    with mpmath.workdps(50):
        for case in range(problems):
            rng = generator("calibrate", seed, case)
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
    print(f"reference: {problems} problems against mpmath, largest error {worst:.2f} of what is allowed for it")


class Tally:
    """What a route did over all problems."""

    def __init__(self):
        self.width, self.error, self.tol = [], [], []
        self.checks, self.broken, self.refused = Counter(), Counter(), Counter()
        self.worst = defaultdict(lambda: -np.inf)
        self.certificate = self.components = self.probabilistic = self.exact_counts = self.counts = 0

    def add(self, given, outcome):
        model, exact = outcome.model, given.reference
        low, high = model.eigenvalue_bounds.T
        self.width.append(float((high - low).max()) / exact.size)
        self.error.append(float(np.abs(model.eigenvalues - exact.values[: len(low)]).max()) / exact.size)
        self.tol.append(given.tol)
        self.certificate += CertificateWarning in outcome.categories
        self.components += ComponentsWarning in outcome.categories
        self.probabilistic += model.bound_kind == "probabilistic"
        if isinstance(given.c, float) and not outcome.categories:
            fewest, most = cases.exact_count(given)
            self.counts += 1
            self.exact_counts += fewest <= model.n_components <= most

    def report(self, label):
        width, error, tol = (np.array(x) for x in (self.width, self.error, self.tol))
        print(f"{label}: {len(width)} answered, {sum(self.refused.values())} refused, {dict(self.broken)} broken")
        if len(width):
            known = error > 1e-13
            done = width <= tol
            ratio = width[known] / error[known]
            within = width[known & done] / error[known & done]
            print(
                f"   width / true error: median {np.median(ratio) if len(ratio) else 0:.3g} (errors above 1e-13), "
                f"of those within tol {np.median(within) if len(within) else 0:.3g}; median width "
                f"{np.median(width):.1e}; within tol {np.mean(done):.1%}; CertificateWarning {self.certificate}, "
                f"ComponentsWarning {self.components}, probabilistic {self.probabilistic}; "
                f"fraction: exact count {self.exact_counts} of {self.counts} without a warning"
            )
        for what, count in self.checks.items():
            print(f"   {what}: {count} checks, {self.broken[what]} broken, worst excess {self.worst[what]:.1e}")
        for text, count in self.refused.most_common(4):
            print(f"   refused {count}: {text}")


def attack_problems(options, deadline):
    tallies = defaultdict(Tally)
    done = 0
    with cases.folder() as folder:
        for case in range(options.first, options.first + options.problems):
            if time.perf_counter() > deadline:
                print(f"out of time at problem {case}")
                break
            rng = generator("kpca", options.seed, case)
            given = cases.problem(rng, options.largest)
            if not given.reference.size > 1e-13 * given.reference.norm_K:
                continue  # constant: nothing but rounding is left
            done += 1
            projected = int(rng.integers(0, 12))
            for i, (label, keywords) in enumerate(cases.routes(given)):
                tally = tallies[label]
                try:
                    outcome = cases.run(given, **keywords)
                    if outcome.refused:
                        tally.refused[outcome.refused[:70]] += 1
                        continue
                    tally.add(given, outcome)
                    found = list(cases.all_checks(given, outcome, folder if i == projected else None))
                except Exception as error:
                    tally.broken[type(error).__name__] += 1
                    print(f"FAILED case {case} {label}: {given.name}\n{traceback.format_exc(limit=-3)}", flush=True)
                    continue
                for what, excess in found:
                    tally.checks[what] += 1
                    tally.worst[what] = max(tally.worst[what], excess)
                    if not excess <= 0:
                        tally.broken[what] += 1
                        print(f"BROKEN case {case} {label}: {what} by {excess:.2e}: {given.name}", flush=True)
    print(f"{done} problems")
    for label, tally in tallies.items():
        tally.report(label)


def attack_clusters(options):
    for method in ("krylov", "auto"):
        found = Counter()
        for case in range(options.clusters):
            result = cases.attack_cluster(generator("clusters", options.seed, case), method)
            found[result] += 1
            if result not in ("right", "warned"):
                print(f"BROKEN cluster case {case} {method}: {result}", flush=True)
        print(f"clusters, {method}: {dict(found)}")


def attack_products(options):
    for label, attack in (("gram", cases.attack_gram), ("features", cases.attack_features)):
        checks, broken, worst = Counter(), Counter(), defaultdict(lambda: -np.inf)
        for case in range(options.products):
            try:
                for what, excess in attack(generator(label, options.seed, case)):
                    checks[what] += 1
                    worst[what] = max(worst[what], excess)
                    if not excess <= 0:
                        broken[what] += 1
                        if broken[what] <= 10:
                            print(f"BROKEN {label} case {case}: {what} by {excess:.2e}", flush=True)
            except Exception:
                broken["exception"] += 1
                print(f"FAILED {label} case {case}\n{traceback.format_exc(limit=-3)}", flush=True)
        for what in checks:
            print(f"{label}: {what}: {checks[what]} checks, {broken[what]} broken, worst excess {worst[what]:.1e}")
        if broken["exception"]:
            print(f"{label}: {broken['exception']} exceptions")


def attack_ranges(options):
    """Rows and parameters over 600 decades: an answer that holds, or a refusal in words."""
    answered, refused, checks, broken = Counter(), Counter(), Counter(), Counter()
    at_once = 0
    for number in range(options.first, options.first + options.ranges):
        rng = generator("ranges", options.seed, number)
        case = ranges.range_case(rng)
        if case is None:
            at_once += 1
            continue
        for label, refusal, found in [*ranges.run_components(case), *ranges.run_gram(case, rng)]:
            (refused if refusal else answered)[label] += 1
            for what, excess in found:
                checks[what] += 1
                if not excess <= 0:
                    broken[what] += 1
                    print(f"BROKEN range case {number} {label}: {what} by {excess:.2e}: {case.name}", flush=True)
    print(f"ranges: {options.ranges} cases, {at_once} refused or beyond longdouble when the kernel was made")
    for label in sorted({*answered, *refused}):
        print(f"   {label}: {answered[label]} answered, {refused[label]} refused")
    for what in checks:
        print(f"   {what}: {checks[what]} checks, {broken[what]} broken")


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
        ("reference", lambda: calibrate(options.seed, options.calibrate)),
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

"""Attack models that add up, and weights: every interval of a union must contain the exact number.

    python tests/attacks/attack_merge.py [--unions 2000] [--weights 1000] [--seed 0] [--first 0]

Shards of very different sizes (one row, and all but a few), equal rows, far and drifting shards, float32 and float64
mixed, weights from 1e-12 to 1e12 and zero, every kind of feature map, merged in random order by kpca_merge and
kpca_update with models that were stored between. The reference is the dense eigenproblem of the union in extended
precision. tests/attacks/test_attack_merge.py runs a fraction of the same cases; tests/support/merge_cases.py has the
problems and the checks. Needs kernels_contrib.
"""

from __future__ import annotations

import re
import sys
import time
import traceback
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import attack_cases
import command
import merge_cases as cases


def generator(label, seed, case):
    return np.random.default_rng([zlib.crc32(label.encode()), seed, case])


def plain(text):
    """A refusal without its numbers."""
    return re.sub(r"[0-9][0-9.e+-]*", "#", text)[:150]


class Tally:
    """What became of the cases of one kind."""

    def __init__(self):
        self.answered, self.refused, self.checked, self.broken = 0, Counter(), Counter(), Counter()
        self.worst = defaultdict(lambda: -np.inf)
        self.ratio = []

    def add(self, label, given, model):
        self.answered += 1
        exact, c = given.exact, len(model.eigenvalues)
        true = np.zeros(c)
        true[: len(exact.values)] = exact.values[:c]
        width, error = np.ptp(model.eigenvalue_bounds, axis=1).max(), np.abs(model.eigenvalues - true).max()
        if error > 1e-13 * exact.size:
            self.ratio.append(width / error)
        for what, excess in cases.checks(given, model):
            self.checked[what] += 1
            self.worst[what] = max(self.worst[what], excess)
            if not excess <= 0:
                self.broken[what] += 1
                print(f"BROKEN {label}: {what} by {excess:.2e}: {given.name}", flush=True)

    def report(self, label):
        middle = f", width / error {np.median(self.ratio):.3g}" if self.ratio else ""
        print(f"{label}: {self.answered} answered, {sum(self.refused.values())} refused{middle}")
        for what, count in self.checked.items():
            print(f"   {what}: {count} checks, {self.broken[what]} broken, worst excess {self.worst[what]:.1e}")
        for text, count in self.refused.most_common(6):
            print(f"   refused {count}: {text}")


def attack_unions(options, deadline):
    tallies = defaultdict(Tally)
    with attack_cases.folder() as folder:
        for case in range(options.first, options.first + options.unions):
            if time.perf_counter() > deadline:
                print(f"out of time at union {case}")
                break
            rng = generator("merge", options.seed, case)
            given = cases.union(rng, options.largest)
            if not given.exact.size > 1e-13 * given.exact.norm_K:
                continue
            label = f"{type(given.kernel).__name__} {given.features}"
            try:
                model, refused = cases.run(cases.merged, rng, given, folder)
                if refused:
                    tallies[label].refused[plain(refused)] += 1
                    continue
                tallies[label].add(f"union {case}", given, model)
            except Exception:
                tallies[label].broken["exception"] += 1
                print(f"FAILED union {case}: {given.name}\n{traceback.format_exc(limit=-4)}", flush=True)
    for label, tally in sorted(tallies.items()):
        tally.report(label)
    return sum(sum(tally.broken.values()) for tally in tallies.values())


def attack_weights(options, deadline):
    tallies = defaultdict(Tally)
    for case in range(options.first, options.first + options.weights):
        if time.perf_counter() > deadline:
            print(f"out of time at weights {case}")
            break
        given = cases.weighted_problem(generator("weights", options.seed, case), options.largest)
        if not given.exact.size > 1e-13 * given.exact.norm_K:
            continue
        w = given.weights[0]
        whole = np.array_equal(w, np.rint(w)) and w.sum() <= 1000
        for route, keywords in cases.weighted_routes(given):
            for repeated in (False, True) if whole else (False,):
                label = f"{route.split()[0]}{', repeated rows' if repeated else ''}"
                try:
                    model, refused = cases.run(cases.fit_weighted, given, keywords, repeated)
                    if refused:
                        tallies[label].refused[plain(refused)] += 1
                        continue
                    seen = given if not repeated else cases.repeated(given)
                    tallies[label].add(f"weights {case} {label}", seen, model)
                except Exception:
                    tallies[label].broken["exception"] += 1
                    print(f"FAILED weights {case} {label}: {given.name}\n{traceback.format_exc(limit=-4)}", flush=True)
    for label, tally in sorted(tallies.items()):
        tally.report(label)
    return sum(sum(tally.broken.values()) for tally in tallies.values())


def main():
    options = command.options(__doc__, unions=2000, weights=1000, largest=1500, seed=0, first=0, minutes=np.inf)
    deadline = time.perf_counter() + 60 * options.minutes
    broken = attack_unions(options, deadline) + attack_weights(options, deadline)
    print(f"{broken} broken")
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()

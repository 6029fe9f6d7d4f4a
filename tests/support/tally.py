"""What the cases of an attack came to, by kind: for the scripts that run attacks at full scale."""

from __future__ import annotations

import re
import time
import traceback
import zlib
from collections import Counter, defaultdict

import numpy as np


def rounds(label, options, count, deadline=np.inf):
    """(number, generator) of each case, until time is out."""
    for case in range(options.first, options.first + count):
        if time.perf_counter() > deadline:
            print(f"out of time at {label} {case}")
            return
        yield case, np.random.default_rng([zlib.crc32(label.encode()), options.seed, case])


class Shares:
    """Of several families of problems: how many bounds that may fail do."""

    def __init__(self, seed):
        self.seed, self.worst = seed, 0.0

    def take(self, name, count, number, attack):
        """``attack(rng, case)``: (whether a bound is missed; whether one may fail, or its ratio to what it bounds)."""
        begun = time.perf_counter()
        found = [attack(np.random.default_rng([self.seed, number, case]), case) for case in range(count)]
        missed, bounds = np.array(found, dtype=float).reshape(-1, 2).T
        bounds = bounds[bounds > 0]
        share, seconds = missed.sum() / max(len(bounds), 1), time.perf_counter() - begun
        self.worst = max(self.worst, share)
        print(
            f"{name:28} {len(bounds)} of {count} may fail, {missed.sum():.0f} missed ({share:.3%}), "
            f"median {np.median(bounds) if len(bounds) else 0:.2f}, {seconds:.0f} s",
            flush=True,
        )


class Tally:
    """Of one kind: answers, refusals, and promises with how far they were missed."""

    def __init__(self):
        self.answered, self.refused, self.checks, self.broken = 0, Counter(), Counter(), Counter()
        self.worst = defaultdict(lambda: -np.inf)
        self.widths = []

    def refuse(self, text):
        self.refused[re.sub(r"[0-9][0-9.e+-]*", "#", text)[:150]] += 1

    def check(self, where, found):
        """``found``: (promise, excess) of an answer; a promise is broken where the excess is above zero."""
        self.answered += 1
        for what, excess in found:
            self.checks[what] += 1
            self.worst[what] = max(self.worst[what], excess)
            if not excess <= 0:
                self.broken[what] += 1
                print(f"BROKEN {where}: {what} by {excess:.2e}", flush=True)

    def measure(self, model, exact, tol):
        """How wide the intervals are beside the errors."""
        true = np.zeros(max(model.n_components, len(exact.values)))
        true[: len(exact.values)] = exact.values
        width = np.ptp(model.eigenvalue_bounds, axis=1).max() / exact.size
        self.widths.append((width, np.abs(model.eigenvalues - true[: model.n_components]).max() / exact.size, tol))

    def fail(self, where):
        self.broken["exception"] += 1
        print(f"FAILED {where}\n{traceback.format_exc(limit=-4)}", flush=True)

    def report(self, label):
        print(f"{label}: {self.answered} answered, {self.refused.total()} refused, {dict(self.broken)} broken")
        if self.widths:
            width, error, tol = np.array(self.widths).T
            known = np.isfinite(width) & (error > 1e-13)
            ratio = np.median((width / error)[known]) if known.any() else 0.0
            print(f"   width / true error: median {ratio:.3g} (errors > 1e-13); within tol {np.mean(width <= tol):.0%}")
        for what, count in self.checks.items():
            print(f"   {what}: {count} checks, {self.broken[what]} broken, worst excess {self.worst[what]:.1e}")
        for text, count in self.refused.most_common(6):
            print(f"   refused {count}: {text}")


def report(tallies):
    """Prints all of them; how many promises were broken."""
    for label, tally in sorted(tallies.items()):
        tally.report(label)
    return sum(tally.broken.total() for tally in tallies.values())

"""Attacks: random cases with promises that must hold, and what these came to, by kind of answer.

An attack is a generator function of a random generator and ``asked`` (``largest``, ``folder``, ``failure``). It yields
(kind of answer, text of the case, found): ``found`` is None before an attempt, the text of a refusal, or (promise,
excess) of each promise of an answer. A promise is broken where its excess is above zero. The promise MAY_FAIL alone is
counted: it may be broken (excess 1) in as large a share of the answers as ``failure``. Whatever an attack raises is a
fault.
"""

from __future__ import annotations

import re
import time
import traceback
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

MAY_FAIL = "what is probable alone"


@dataclass(frozen=True)
class Attack:
    """``run``, how many cases there are at full scale and in the tests at least, and how large they are in both.

    Of the tests: the share of the cases that is answered, the share of MAY_FAIL that may be broken, and what has to be
    seen among the kinds of answers and the promises.
    """

    run: Callable[[np.random.Generator, Any], Iterator[tuple[str, str, Any]]]
    count: int
    least: int = 3
    largest: tuple[int, int] = (0, 0)
    answered: float = 0.6
    failing: float = 0.05
    seen: tuple[str, ...] = ()


def generators(name: str, seed: int, cases: range) -> Iterator[tuple[int, np.random.Generator]]:
    """(number, generator) of each case."""
    for case in cases:
        yield case, np.random.default_rng([zlib.crc32(name.encode()), seed, case])


class Tally:
    """Of one kind: answers, refusals, and promises with how far they were missed."""

    def __init__(self):
        self.answered, self.refused, self.checks, self.broken = 0, Counter(), Counter(), Counter()
        self.worst, self.missed, self.texts = defaultdict(lambda: -np.inf), 0, []

    def take(self, where, found):
        if isinstance(found, str):
            self.refused[re.sub(r"[0-9][0-9.e+-]*", "#", found)[:150]] += 1
            return
        self.answered += 1
        for what, excess in found:
            self.checks[what] += 1
            self.worst[what] = max(self.worst[what], excess)
            if what == MAY_FAIL:
                self.missed += excess
            elif not excess <= 0:
                self.breach(what, f"BROKEN {where}: {what} by {excess:.2e}")

    def breach(self, what, text):
        self.broken[what] += 1
        self.texts.append(text)
        print(text, flush=True)

    def report(self, label):
        print(f"{label}: {self.answered} answered, {self.refused.total()} refused, {dict(self.broken)} broken")
        for what, count in self.checks.items():
            broken = self.missed if what == MAY_FAIL else self.broken[what]
            print(f"   {what}: {count} checks, {broken} broken, worst excess {self.worst[what]:.1e}")
        for text, count in self.refused.most_common(6):
            print(f"   refused {count}: {text}")


def run(attack, cases, asked, deadline=np.inf):
    """Tallies by kind of answer, of the cases (number, generator)."""
    tallies = defaultdict(Tally)
    for case, rng in cases:
        kind, where = "before any answer", f"case {case}"
        if time.perf_counter() > deadline:
            print(f"out of time at case {case}")
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for kind, text, found in attack.run(rng, asked):
                    where = f"case {case} {kind}: {text}"
                    if found is not None:
                        tallies[kind].take(where, found)
        except Exception:
            tallies[kind].breach("exception", f"FAILED {where}\n{traceback.format_exc(limit=-4)}")
    return tallies

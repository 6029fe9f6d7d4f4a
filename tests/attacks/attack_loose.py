"""Attack the sampled bound: at delta = 0.05 at most 5 % of the problems of any family may break it.

    python tests/attacks/attack_loose.py [--problems 20000] [--calls 20000] [--failure 0.05] [--seed 0] [--routes 200]
        [--second 2000] [--moved]

First the bound alone, then kpca with few features and that failure_probability, then --routes calls of each other route
whose bounds rest on random numbers, then --second calls with intervals of second order. With --moved pivots go to means
of rows, also where the rows are few.

tests/attacks/test_attack_loose.py runs a fraction; tests/support/loose_cases.py and second_order_calls.py have the
families.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command
import loose_cases as cases
import narrow_cases
import pytest
import second_order_calls
from tally import Shares

from fastkpca.fit import offers
from fastkpca.solve.proofs import Factorisation


def second_order(rng, family, case, failure):
    """kpca with intervals of second order: eigenvalues and angles."""
    with pytest.MonkeyPatch.context() as patch:
        return second_order_calls.misses(family(rng), case, failure, patch)


def narrow(rng, case, failure):
    """Exact products of a narrow Gaussian, whose bounds come from random blocks."""
    missed, model = narrow_cases.broken(narrow_cases.narrow_problem(rng, int(rng.integers(600, 1200))), case, failure)
    return missed, model.failure_probability > 0


ROUTES = {
    "pivots of many rows": lambda rng, case, failure: cases.many_misses(cases.many_rows(rng), case, failure),
    "moments": cases.moment_misses,
    "narrow": narrow,
}


def main():
    given = command.options(
        __doc__, problems=20000, calls=20000, failure=0.05, seed=0, routes=200, second=2000, moved=False
    )
    if given.moved:
        offers.MEANS_FROM = 0
    shares, failure = Shares(given.seed), given.failure
    for i, (name, family) in enumerate(cases.FAMILIES.items()):
        shares.take(name, given.problems, i, lambda rng, _, f=family: cases.bound_misses(rng, f(rng), failure))
    for i, (name, family) in enumerate(cases.CALLS.items()):
        shares.take(
            name,
            given.calls // len(cases.CALLS),
            100 + i,
            lambda rng, case, f=family: cases.call_misses(f(rng, 3000 if case % 500 == 0 else 120), case, failure),
        )
    Factorisation.price = lambda *_: float("inf")  # of few rows all entries prove it for certain
    for name, attack in ROUTES.items():
        shares.take(name, given.routes, 200, lambda rng, case, a=attack: a(rng, case, failure))
    families = second_order_calls.FAMILIES
    for i, (name, family) in enumerate(families.items()):
        attack = lambda rng, case, f=family: second_order(rng, f, case, failure)  # noqa: E731
        shares.take(name, given.second // len(families), 300 + i, attack)
    if shares.worst > failure:
        sys.exit(f"the bound fails more often than promised: {shares.worst}")


if __name__ == "__main__":
    main()

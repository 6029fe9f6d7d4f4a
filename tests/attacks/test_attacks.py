"""A fraction of every attack (attack.py), and of the reference that most of them compare with."""

from types import SimpleNamespace

import attack_cases
import merge_cases
import numpy as np
import pytest
from exact_kernels import exact_values
from tally import MAY_FAIL, generators, run

ATTACKS = pytest.importorskip("attack").ATTACKS  # which needs what reads rows
pytestmark = pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than float64")


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_is_broken(name, attack, tmp_path):
    given = ATTACKS[name]
    count = attack.count(given.count, given.least)
    asked = SimpleNamespace(largest=given.largest[attack.fraction >= 0.5], folder=tmp_path, failure=0.05)
    tallies = run(given, generators(name, 1, range(count)), asked)
    assert not [text for tally in tallies.values() for text in tally.texts]
    assert sum(tally.answered for tally in tallies.values()) >= given.answered * count
    missed, probable = (sum(x) for x in zip(*((tally.missed, tally.checks[MAY_FAIL]) for tally in tallies.values())))
    # what chance adds with so few problems
    assert missed <= given.failing * probable + (given.failing > 0.01) * 4 * np.sqrt(given.failing * probable)
    kinds = [
        *(kind for kind, tally in tallies.items() if tally.answered),
        *(x for t in tallies.values() for x in t.checks),
    ]
    assert not [what for what in given.seen if not any(what in kind for kind in kinds)]


@pytest.mark.parametrize("case", range(12))
def test_the_reference_errs_by_less_than_it_says(case):
    """Against 60 digits."""
    _, rng = next(generators("reference", 0, range(case, case + 1)))
    given = merge_cases.union(rng, 40, weighted=False)
    X = np.vstack([part.astype(np.float64) for part in given.shards])[:40]
    K, error = exact_values(given.kernel, X, centred=True)
    found, true = attack_cases.spectrum(K, error), merge_cases.exact_spectrum(given.kernel, X, np.ones(len(X)))
    assert np.abs(found.values - true.values).max() <= found.error + true.error
    assert abs(found.trace - true.trace) <= found.trace_error + true.trace_error

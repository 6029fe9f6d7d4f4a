"""A fraction of attack_merge.py: unions of shards, and weighted rows, keep what their intervals promise."""

from __future__ import annotations

import merge_cases as cases


def kept(given, model):
    for what, excess in cases.checks(given, model):
        assert excess <= 0, f"{what} by {excess:.2e}: {given.name}"


def attacked(given):
    return given.exact.size > 1e-13 * given.exact.norm_K


def test_unions_of_random_shards(attack, tmp_path):
    answered, count = 0, attack.count(2000, least=40)
    for case in range(count):
        rng = attack.rng("merge", case)
        given = cases.union(rng, largest=1500 if attack.fraction >= 0.5 else 100)
        if attacked(given):
            model, _ = cases.run(cases.merged, rng, given, tmp_path)
            if model is not None:
                answered += 1
                kept(given, model)
    assert answered > 0.6 * count


def test_random_weights_on_every_route(attack):
    answered, count = 0, attack.count(1000, least=15)
    for case in range(count):
        given = cases.weighted_problem(attack.rng("weights", case), largest=1500 if attack.fraction >= 0.5 else 80)
        if attacked(given):
            for _, keywords in cases.weighted_routes(given):
                model, _ = cases.run(cases.fit_weighted, given, keywords)
                if model is not None:
                    answered += 1
                    kept(given, model)
    assert answered > 2 * count

"""Trees of models that grow, are merged and subtracted: a fraction of the attack (grown_models.py)."""

import warnings

import grown_models


def test_every_interval_of_grown_models_holds(attack):
    tally = grown_models.new_tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in range(attack.count(500, least=8)):
            broken = grown_models.tree(attack.rng("grown models", case), tally)[1]
            assert not broken, "\n".join(broken)
    assert tally["grown"] > 0 and tally["intervals"] > tally["calls"] - tally["refused"]

"""Random input through every public call, a few hundred calls of the attack."""

from functools import partial

import fuzz_calls as fuzz


def test_every_call_answers_or_refuses_in_words(attack):
    _, broken = fuzz.run(partial(fuzz.drawn_calls, calls=attack.count(20000), seed=0))
    assert not broken, "\n\n".join(broken)


def test_every_argument_takes_or_refuses_every_hostile_value(attack):
    outcomes, broken = fuzz.run(partial(fuzz.swept_calls, part=7, parts=round(3 / attack.fraction)))
    assert not broken, "\n\n".join(broken)
    assert outcomes.total() > 300

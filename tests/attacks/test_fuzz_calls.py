"""Random input through every public call, a few hundred calls of the attack."""

import fuzz_calls as fuzz


def test_every_call_answers_or_refuses_in_words(attack):
    _, broken = fuzz.run(attack.count(20000), seed=0)
    assert not broken, "\n\n".join(broken)

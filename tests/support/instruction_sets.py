"""The instruction sets of compiled loops: those that this processor and this build have, each for one test."""

from __future__ import annotations

import pytest


def available(module) -> list[str]:
    """What ``module.use_instruction_set`` takes here, from the plainest on."""
    before, found = module.INSTRUCTION_SET, []
    for name in ("baseline", "avx2", "avx512"):
        try:
            found.append(module.use_instruction_set(name))
        except ValueError:
            continue
    module.use_instruction_set(before)
    return found


def each_instruction_set(module):
    """A fixture: the test runs once on each, and the one before is set again."""

    @pytest.fixture(params=available(module))
    def isa(request):
        before = module.INSTRUCTION_SET
        yield module.use_instruction_set(request.param)
        module.use_instruction_set(before)

    return isa

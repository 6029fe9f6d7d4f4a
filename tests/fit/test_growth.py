"""What narrows intervals the soonest: steps, their widths and prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastkpca.fit.growth import AIM, Prices, State

PRICES = Prices(20_000, 1e-9, 1e-10, 0.4, 0.01)


def state(**changes):
    theta = 0.5 / np.arange(1.0, 31.0)
    return replace(State(500, theta, 0.01, 1.0, 0.01, 0.001, 10, 4096, 1e-7), **changes)


def test_a_wide_interval_takes_rows_and_a_narrow_one_a_pass():
    widths = (0.1, 0.03, 0.02, 5e-3)
    steps = [state().cheapest(PRICES, width) for width in widths]
    for step, width in zip(steps, widths):
        assert step.width <= AIM * width
    assert steps[0].rows == 0 < steps[1].rows <= steps[2].rows < 20_000 == steps[3].rows
    assert np.all(np.diff([x.seconds for x in steps]) >= 0)  # a loose tolerance never costs more
    assert state().cheapest(PRICES, 1e-9) is None

"""What narrows intervals the soonest: steps, their widths and prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastkpca.fit.growth import AIM, Prices, State, best_within, cheapest, cheapest_map

PRICES = Prices(20_000, 1e-9, 1e-10, 0.4, 0.01)


def state(**changes):
    theta = 0.5 / np.arange(1.0, 31.0)
    return replace(State(500, theta, 0.01, 1.0, 0.01, 0.001, 10, 4096, 1e-7), **changes)


def test_a_wide_interval_takes_rows_and_a_narrow_one_a_pass():
    widths = (0.1, 0.05, 0.02, 5e-3)
    steps = [cheapest(state(), PRICES, width, 500) for width in widths]
    for step, width in zip(steps, widths):
        assert step.width <= AIM * width
    assert steps[0].rows == 0 < steps[1].rows <= steps[2].rows < 20_000 == steps[3].rows
    assert np.all(np.diff([x.seconds for x in steps]) >= 0)  # a loose tolerance never costs more
    assert cheapest(state(), PRICES, 1e-9, 500) is None


def test_as_many_vectors_as_the_gap_beyond_them_asks_for():
    theta = np.append(0.5 / np.arange(1.0, 11.0), np.full(20, 1e-3))
    wide, narrow = cheapest(state(theta=theta), PRICES, 0.01, 500), cheapest(state(), PRICES, 0.01, 500)
    assert 0 < wide.vectors < narrow.vectors <= 30 and wide.seconds < narrow.seconds
    assert cheapest(state(theta=theta[:11], beyond=1e-3), PRICES, 0.01, 500).vectors == 11
    assert cheapest(state(known=0.001), PRICES, 0.01, 500).vectors == 0


def test_more_pivots_where_nothing_else_gets_there():
    step = cheapest(state(c=0), PRICES, 0.03, 8000)  # no rows to be had
    assert step.features > 500 and step.rows == 0
    assert cheapest(state(c=0), PRICES, 0.03, 500) is None
    assert cheapest(state(), PRICES, 5e-4, 8000).features > 500


def test_the_narrowest_at_a_price():
    for seconds in (1e-3, 0.05, 0.3, 5.0):
        step = best_within(state(), PRICES, seconds)
        assert step.seconds <= seconds
    widths = [best_within(state(), PRICES, x).width for x in (1e-3, 0.05, 0.3, 5.0)]
    assert np.all(np.diff(widths) < 0)
    assert best_within(state(trace=0.0), PRICES, 1.0).width == 0.0


def test_a_bound_that_is_known_costs_nothing():
    known = state(known=0.011)
    step = cheapest(known, PRICES, 0.02, 500)
    assert step.draws == step.rows == 0 and step.seconds == 0.0


def test_the_best_of_several_maps():
    states = [
        state(features=m, trace=(500 / m) ** 0.5, share=0.01 * (500 / m) ** 0.8, moved=0.001 * (500 / m) ** 1.3)
        for m in (100, 500, 2000, 8000)
    ]
    loose, tight = (cheapest_map(states, PRICES, width) for width in (0.03, 3e-4))
    assert loose.features < tight.features and loose.seconds < tight.seconds
    assert loose.rows > 0

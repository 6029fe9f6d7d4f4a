"""Intervals of a model or a certificate: they hold the eigenvalues, and are as narrow as was asked for."""

import numpy as np


def width(found):
    """The widest interval, over the first eigenvalue."""
    return float(np.ptp(found.eigenvalue_bounds, axis=1).max() / found.eigenvalues[0])


def hold(found, true, slack=0.0, tol=None):
    """Every interval holds its eigenvalue, to ``slack``, and is at most ``tol`` times the first eigenvalue wide."""
    low, high = found.eigenvalue_bounds.T
    true = np.asarray(true)[: len(low)]
    outside = np.maximum(low[: len(true)] - true, true - high[: len(true)]).max()
    assert outside <= slack, f"an eigenvalue lies {outside:.3g} outside its interval"
    assert tol is None or np.max(high - low) <= tol * true[0], "an interval is wider than was asked for"


def meet(one, other):
    """The intervals of two answers to one question overlap."""
    (low, high), (least, most) = one.eigenvalue_bounds.T, other.eigenvalue_bounds.T
    assert (low <= most).all() and (least <= high).all(), "intervals that should overlap do not"

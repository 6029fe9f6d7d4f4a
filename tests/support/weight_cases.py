"""Models of weighted rows: references in long double, and random cases; used by tests and the attack on weights."""

from __future__ import annotations

import pickle
import warnings

import attack_spe as spe
import numpy as np
from data import weights_of

import fastkpca as fk

exact_spe = spe.exact_spe


def attacked(rng):
    """Whether the case was answered; AssertionError where a promise is broken."""
    name, parameters, options, X, new, c = spe.case(rng)
    w, kind = weights_of(rng, len(X))
    text = f"{name} {parameters} {options} {X.dtype} N={len(X)} c={c} weights: {kind}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = fk.kpca(X, name, c, n_threads=1, sample_weight=w, **options, **parameters)
            _, interval = fk.kpca_spe(model, new, bounds=True, n_threads=1)
        except (ValueError, fk.errors.NotConvergedError):
            return False
        again = pickle.loads(pickle.dumps(model))
        state = fk.KPCAModel.from_state(*model.state(), plugins=True)
        for other in (again, state):
            assert np.array_equal(fk.kpca_spe(other, new, bounds=True, n_threads=1)[1], interval), text
        assert not np.isnan(interval).any() and (interval[:, 0] <= interval[:, 1]).all(), text
        exact, error = exact_spe(model, name, parameters, X, new, w)
        low, high = interval.astype(np.longdouble).T
        outside = np.maximum(low - exact, exact - high) > error
        assert not outside.any(), f"{text}: {int(outside.sum())} rows lie outside"
        limits = fk.kpca_limits(model, new, t2="chi2", spe="box", n_threads=1)
        assert np.isfinite([limits.t2, limits.spe]).all(), text
    return True

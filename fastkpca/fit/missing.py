"""Missing values in the rows that a model is made of: filled by the model, which is made of the filled rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.monitoring.fill import kpca_fill
from ..model.result import KPCAModel, of_spe
from ..rows.convert import as_rows
from ..rows.values import complete

MOST_ROUNDS = 20
AGREEING_STEP = 0.01
"""Standard deviations of a column by which no filled value moves any more."""


def check_columns(missing: np.ndarray) -> None:
    """Raise ValueError where a column lacks all values."""
    if missing.all(axis=0).any():
        raise ValueError(f"column {int(np.argmax(missing.all(axis=0)))} has no value at all; leave it out")


def fit_and_fill(X: Any, fit: Callable[..., KPCAModel], **last: Any) -> KPCAModel:
    """Model of rows whose missing values it fills itself, by ``fit`` with the options ``last``; ``info["filled"]`` says
    how many values and rounds that took.

    From medians on, ``fit`` makes a model, and the model fills the missing values, until these stay where they are:
    for the linear kernel, the iterative algorithm of Wiberg, Computation of principal components when data are missing,
    COMPSTAT 1976.
    """
    rows = as_rows(X, missing=True)
    if complete(rows).all():
        return fit(X, **last)
    X = rows.all()
    missing = np.isnan(X)
    check_columns(missing)
    filled = np.where(missing, np.nanmedian(X, axis=0), X)
    spread, some = np.nanstd(X, axis=0), missing.any(axis=1)
    spread[spread == 0] = 1.0
    done, moved = 0, np.inf
    while moved > AGREEING_STEP and done < MOST_ROUNDS:
        model = fit(filled)
        if model.kernel.is_linear and of_spe(model).n_components >= model.n_features:
            raise ValueError(
                f"all {model.n_features} components of the linear kernel fit any value, so that nothing says what a "
                "missing one was; give fewer components"
            )
        before = filled[some]
        filled[some] = kpca_fill(model, X[some], train=filled)
        moved, done = float((np.abs(filled[some] - before) / spread).max(initial=0.0)), done + 1
    text = f"{missing.sum()} missing values in {some.sum()} of {len(X)} rows, in {done} rounds"
    if moved > AGREEING_STEP:
        text += f", the last of which moved one by {moved:.2g} standard deviations still"
    model = fit(filled, **last)
    model.info["filled"] = text
    return model

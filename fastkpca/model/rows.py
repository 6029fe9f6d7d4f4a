"""Check and conversion of rows that a model was not made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import guarded
from ..rows.columns import check_same_columns
from ..rows.convert import as_rows, bind_rows
from ..rows.values import check_finite, check_weights
from ..rows.view import Rows
from .projector import NewRows
from .result import KPCAModel, check_model


def float_type(*types: np.dtype) -> np.dtype:
    """The type of a result: float32 where all that it is computed from is float32, else float64."""
    return np.dtype(np.float32 if all(x == np.float32 for x in types) else np.float64)


def new_rows(
    model: Any,
    X: Any,
    *,
    name: str = "X",
    purpose: str = "kpca_project",
    sample_weight: Any = None,
    finite: bool = True,
    missing: bool = False,
) -> NewRows:
    """Rows that a model was not made of, with checks of their type, columns, names, weights and shift.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        For a precomputed kernel the (m, N) matrix between new and training rows.
    name, purpose : str
        The argument's name, and the function that takes it; for the texts of errors.
    sample_weight : array_like (m,), optional
    finite : bool
        Whether to check for NaN and infinity here. False: a later pass does.
    missing : bool
        Whether NaN stands for a value to be filled in, in a data frame too.

    Raises
    ------
    TypeError, ValueError
        As ``as_rows``; or the columns are not those of the training rows.
    """
    model = check_model(model)
    unbound = guarded(model.kernel)
    kernel, X = bind_rows(unbound, X, range(model.n_samples))
    rows = as_rows(X, name=name, purpose=purpose, missing=missing)
    if kernel is unbound:  # else the rows are not coordinates
        check_same_columns(rows, model.n_features, model.feature_names, name=name)
    if finite and not missing:
        check_finite(rows, name=name, purpose=purpose)
    if sample_weight is not None:
        rows = rows.weighted(check_weights(sample_weight, rows.n_samples, fit=False))
    # without a shift, what float64 would round is refused
    shift = None if kernel.translation is None and model.scale is None else model.shift
    return NewRows(kernel, rows.framed(shift, model.scale), float_type(rows.dtype, model.dtype))


def counted(model: KPCAModel, rows: Rows) -> tuple[Rows, np.ndarray | None]:
    """(those of the training rows that count, with their weights; their numbers, None where all count)."""
    return rows.weighted(model.sample_weight).present()


def known_rows(model: KPCAModel, train: Any, purpose: str) -> Rows | None:
    """The rows ``train``; where that is None, training rows that count, or landmarks; None where there are none."""
    if train is not None:
        return new_rows(model, train, name="train", purpose=purpose).rows
    held = model.projector.landmarks
    if held is None or not model.projector.grows_with_n:
        return None if held is None else Rows(held)
    return counted(model, Rows(held))[0]


def rows_of(model: KPCAModel, X: Any, *, purpose: str, sample_weight: Any) -> NewRows:
    """The rows X with their weights; where X is None, the training rows with those of the fit."""
    if X is not None:
        return new_rows(model, X, purpose=purpose, sample_weight=sample_weight)
    if sample_weight is not None:
        raise ValueError("sample_weight is of the rows X, and none are given; give both or neither")
    return training_rows(model, purpose)


def training_rows(model: KPCAModel, purpose: str, which: str = "the rows that it was fitted on") -> NewRows:
    """Rows that the model was made of, those that count, with their weights; ValueError where it holds none.

    ``purpose``: the function that needs them; ``which``: what rows to give it instead.
    """
    if not model.projector.grows_with_n or model.projector.landmarks is None:
        raise ValueError(
            f"{purpose} needs rows, and this model is a feature map, which holds no training rows; give "
            f"{purpose}(model, X) {which}"
        )
    rows, _ = counted(model, Rows(model.projector.landmarks))
    return NewRows(guarded(model.kernel), rows, np.dtype(np.float64))

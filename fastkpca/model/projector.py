"""Arguments and results of projectors. A model projects rows through features (``FeatureProjector``) or training rows
(``SampleProjector``), and asks the same of either."""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

import numpy as np

from ..base.progress import Progress
from ..base.protocol import Kernel
from ..rows.view import Rows


class RunOptions(TypedDict, total=False):
    """Options of a pass over rows, which every overload of a function has."""

    n_threads: int | None
    progress: bool | Progress


class NewRows(NamedTuple):
    """Rows that a model was not made of, ready for its projector.

    Attributes
    ----------
    kernel : Kernel
        Compares them with the training rows.
    rows : Rows
        In the model's coordinates (shifted).
    dtype : dtype
        Type of results: float32 where both these rows and the model are float32.
    """

    kernel: Kernel
    rows: Rows
    dtype: np.dtype


class SquaredErrors(NamedTuple):
    """Scores (m, c) and SPE (m,) of some rows, and intervals (m, 2) around their SPE."""

    scores: np.ndarray
    spe: np.ndarray
    interval: np.ndarray


def scores_of(projector: Any, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
    """The scores of the rows by a projector, (m, c) in float64."""
    found = np.empty((rows.n_samples, projector.n_components))
    projector.project(kernel, rows, found, n_threads, progress)
    return found


def finite(values: np.ndarray, name: str, dtype: Any = np.float64, first: int = 0) -> np.ndarray:
    """These in the type that is returned; ValueError names the first row, counted from ``first``, where that is not a
    finite number."""
    with np.errstate(over="ignore"):
        result = values.astype(dtype, copy=False)
    if not np.isfinite(result).all():
        row = first + int(np.argwhere(~np.isfinite(result))[0, 0])
        raise ValueError(
            f"{name} is not finite in {result.dtype} (first at row {row}): kernel values are too large there; scale X "
            "as the training rows were, or leave that row out"
        )
    return result

"""What projectors take and return. A model projects rows through features (``FeatureProjector``) or training rows
(``SampleProjector``), and asks the same of either."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base.protocol import Kernel
from ..rows.view import Rows

__all__ = ["NewRows", "SquaredErrors", "scores_of"]


class NewRows(NamedTuple):
    """Rows that a model was not made of, ready for its projector.

    Attributes
    ----------
    kernel : Kernel
        Compares them with the training rows.
    rows : Rows
        In the model's coordinates (shifted).
    dtype : dtype
        Of results: float32 where both these rows and the model are float32.
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

"""What a model asks of the way in which it projects rows: through features, or through its training rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from ..base.protocol import Kernel
from ..rows.view import Rows

__all__ = ["NewRows", "Projector", "SquaredErrors"]


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


class Projector:
    """Holds the components w_j, and the weighted mean of the training rows' images, which is the model's centre.

    Attributes
    ----------
    grows_with_n : bool
        Whether it holds the training rows.
    coeff : ndarray (N, c) or None
        Coefficients of the components in the images of the training rows, where it holds these.
    weights : ndarray (N,) or None
        Of the training rows that it holds; None: each counts once.
    """

    grows_with_n: bool
    coeff: np.ndarray | None
    weights: np.ndarray | None

    @property
    def n_components(self) -> int:
        raise NotImplementedError

    @property
    def landmarks(self) -> np.ndarray | None:
        """Points (m, d), after the shift, whose images components and mean are sums of; None: there are none."""
        raise NotImplementedError

    def expansion(self) -> np.ndarray:
        """Components and mean as sums over the images of the landmarks: shape (m, c + 1), float64."""
        raise NotImplementedError

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        raise NotImplementedError

    def formula(self) -> dict[str, Any]:
        """What ``docs/fastkpca_project.m`` projects by in MATLAB; ValueError where it cannot."""
        raise NotImplementedError

    def leading(self, signs: np.ndarray) -> Self:
        """The first ``len(signs)`` components, each times its sign."""
        raise NotImplementedError

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        """Write the scores (m, c) of the rows into ``out``."""
        raise NotImplementedError

    def scores(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        """The scores of the rows, (m, c) in float64."""
        scores = np.empty((rows.n_samples, self.n_components))
        self.project(kernel, rows, scores, n_threads, progress)
        return scores

    def products(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        """<w_j, phi(x)> for each component, then <mean, phi(x)>: shape (m, c + 1)."""
        raise NotImplementedError

    @property
    def tile_rows(self) -> int:
        """Rows of a tile of new rows, by shapes alone."""
        raise NotImplementedError

    def gradients(self, kernel: Kernel) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Function (X, steps) -> derivatives of the scores of a tile (n, d) by its columns: shape (n, c, d).

        ``steps`` (n, d) are those of central differences, where kernel or map do not know their derivative.
        """
        raise NotImplementedError

    def of_the_mean(self) -> tuple[np.ndarray, float]:
        """(<w_j, mean> for each component, |mean|^2)."""
        raise NotImplementedError

    def squared_errors(
        self, model: Any, given: NewRows, diagonal: np.ndarray | None, n_threads: int, progress: Any, bounds: bool
    ) -> SquaredErrors:
        """Squared prediction errors, and intervals that allow for rounding and for what the map leaves out.

        Through features, the error has two parts: the part of phi(x) outside the components, and what the map itself
        leaves out. Through training rows it is k~(x, x) - |z|^2.

        Parameters
        ----------
        model : KPCAModel
            The model of this projector.
        diagonal : ndarray (m,), optional
            k(x, x) of each row; None: the kernel computes it.
        bounds : bool
            False: the interval may be of length zero.
        """
        raise NotImplementedError

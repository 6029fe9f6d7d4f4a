"""What a model asks of the way in which it projects rows: through features, or through its training rows."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from ..base.protocol import Kernel
from ..rows.view import Rows

__all__ = ["NewRows", "Projector", "SquaredErrors"]


class NewRows(NamedTuple):
    """Rows that a model was not made of, as it takes them.

    Attributes
    ----------
    kernel : Kernel
        That compares them with the training rows.
    rows : Rows
        In the model's coordinates (shifted).
    dtype : dtype
        Of what is computed of them: float32 where both these rows and those of the model are.
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
    """Knows the components w_j and the weighted mean of the training rows' images, which is the model's centre.

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

    def check_weights(self) -> None:
        """Raise ValueError where the training rows had weights that are not known any more."""

    def without_map(self) -> tuple[Any, tuple[dict, dict[str, np.ndarray]] | None]:
        """For pickle: (this projector without its feature map, the map's state); (itself, None) where there is none."""
        return self, None

    def through_features(self) -> Any:
        """This projector where it is a FeatureProjector, else None."""
        return None

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        raise NotImplementedError

    def formula(self) -> dict[str, Any]:
        """What ``docs/fastkpca_project.m`` projects by in MATLAB; ValueError where it cannot."""
        raise NotImplementedError

    def leading(self, signs: np.ndarray) -> Self:
        """The first ``len(signs)`` components, each times its sign."""
        raise NotImplementedError

    def recentred(self, column_means: np.ndarray) -> Self:
        """New rows are centred by these means of kernel values; only where these are what it centres by."""
        return self

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        """Write the scores (m, c) of the rows into ``out``."""
        raise NotImplementedError

    def products(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        """<w_j, phi(x)> for each component, then <mean, phi(x)>: shape (m, c + 1)."""
        raise NotImplementedError

    def of_the_mean(self) -> tuple[np.ndarray, float]:
        """(<w_j, mean> for each component, |mean|^2)."""
        raise NotImplementedError

    def squared_errors(
        self, model: Any, given: NewRows, diagonal: np.ndarray | None, n_threads: int, progress: Any, bounds: bool
    ) -> SquaredErrors:
        """Squared prediction errors, and how far rounding and the map can put them off.

        What the components leave out of a row is, through features, the rest of phi(x) and what the map itself leaves
        out; through training rows it is k~(x, x) - |z|^2.

        Parameters
        ----------
        model : KPCAModel
            To which this projector belongs.
        diagonal : ndarray (m,), optional
            k(x, x) of each row; None: the kernel knows it.
        bounds : bool
            False: the interval may be of length zero.
        """
        raise NotImplementedError

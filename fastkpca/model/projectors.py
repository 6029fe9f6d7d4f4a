"""How a model projects rows: through features, or through its training rows.

A FeatureProjector holds D x c numbers whatever N was; a SampleProjector holds the training rows and says so. Both know
the weighted mean of the training rows' images, which is the centre of the model: ``products`` and ``of_the_mean``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Kernel
from ..maps.passes import apply
from ..products.exact import ExactSummation
from ..rows.sinks import Sink
from ..rows.view import Rows

__all__ = ["FeatureProjector", "SampleProjector"]


@dataclass(frozen=True, eq=False)
class FeatureProjector:
    """Projects through a feature map: (phi(x) - mean)' W. Its size does not depend on the number of training rows.

    Attributes
    ----------
    map : FeatureMap
    axes : ndarray (D, c)
        W: orthonormal columns.
    mean : ndarray (D,)
    """

    map: FeatureMap
    axes: np.ndarray
    mean: np.ndarray
    grows_with_n = False
    weights = None  # of rows that it holds: it has none

    @property
    def n_components(self) -> int:
        return int(self.axes.shape[1])

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        header, arrays = self.map.state()
        arrays = {f"map.{name}": array for name, array in arrays.items()}
        return {"map": header}, arrays | {"axes": self.axes, "mean": self.mean}

    def map_state(self) -> tuple[dict, dict[str, np.ndarray]] | None:
        """(header, arrays) of the feature map; None for one from outside that has none."""
        try:
            return self.map.state()
        except NotImplementedError:
            return None

    def through_features(self) -> FeatureProjector | None:
        """This projector, where it has a feature map."""
        return self

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        constant, _ = self.of_the_mean()
        apply(self.map, rows, self.axes, n_threads, constant=constant, out=out, progress=progress, stage="scores")

    def products(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        """<w_j, phi(x)> for each component, then <mean, phi(x)>: shape (m, c + 1)."""
        columns = np.column_stack([self.axes, self.mean])
        return np.asarray(apply(self.map, rows, columns, n_threads, progress=progress, stage="scores"))

    def of_the_mean(self) -> tuple[np.ndarray, float]:
        """(<w_j, mean> for each component, |mean|^2)."""
        return self.mean @ self.axes, float(self.mean @ self.mean)


@dataclass(frozen=True, eq=False)
class SampleProjector:
    """Projects through the training rows: (k(x, X) - column means)' coeff. Its size grows with their number.

    Attributes
    ----------
    X : ndarray (N, d)
        Training rows, after the shift.
    coeff : ndarray (N, c)
    column_means : ndarray (N,)
        Of the Gram matrix of the training rows; with weights, weighted means.
    weights : ndarray (N,) or None
        Of the training rows; None: each counts once. Empty: they had weights, and the model's file does not hold them.
    """

    X: np.ndarray
    coeff: np.ndarray
    column_means: np.ndarray
    weights: np.ndarray | None = None
    grows_with_n = True

    @property
    def n_components(self) -> int:
        return int(self.coeff.shape[1])

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        return {}, {"X": self.X, "coeff": self.coeff, "column_means": self.column_means}

    def through_features(self) -> FeatureProjector | None:
        return None

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        constant = self.column_means @ self.coeff
        sink = Sink(out)
        for part, _, found in self._tiles(kernel, rows, self.coeff, n_threads):
            sink.write(found - constant)
            if progress is not None:
                progress("scores", part.stop, rows.n_samples)
        sink.close()

    def products(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        """<w_j, phi(x)> for each component, then <mean, phi(x)>: shape (m, c + 1)."""
        found = np.empty((rows.n_samples, self.coeff.shape[1] + 1))
        for part, _, product in self.tiles_of_products(kernel, rows, n_threads):
            found[part] = product
            if progress is not None:
                progress("scores", part.stop, rows.n_samples)
        return found

    def tiles_of_products(
        self, kernel: Kernel, rows: Rows, n_threads: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """(which rows, these rows, their ``products``), one tile after the other."""
        return self._tiles(kernel, rows, self.expansion(), n_threads)

    def of_the_mean(self) -> tuple[np.ndarray, float]:
        """(<w_j, mean> for each component, |mean|^2)."""
        found = np.asarray(self.column_means, dtype=np.float64) @ self.expansion()
        return found[:-1], float(found[-1])

    def shares(self) -> np.ndarray:
        """The part of each training row in the mean, shape (N,): its weight over the sum of the weights."""
        n = len(self.X)
        if self.weights is None:
            return np.full(n, 1.0 / n)
        if len(self.weights) != n:
            raise ValueError(
                "this model was made of weighted rows, and its file does not hold their weights, which are needed "
                "here; fit it again (kpca_project and kpca_t2 do without them)"
            )
        return self.weights / self.weights.sum()

    def expansion(self) -> np.ndarray:
        """Components and mean as sums over the images of the training rows: shape (N, c + 1), float64."""
        coeff, shares = np.asarray(self.coeff, dtype=np.float64), self.shares()
        # the coefficients of a component sum to zero in exact numbers, but not in those of float32
        return np.column_stack([coeff - np.outer(shares, coeff.sum(axis=0)), shares])

    def _tiles(
        self, kernel: Kernel, rows: Rows, columns: np.ndarray, n_threads: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        # K(new, train) @ columns, block by block: it never exists for all rows at once
        columns = np.ascontiguousarray(columns, dtype=np.float64)
        step, train, n = parallel.tile_rows(64), Rows(self.X), rows.n_samples
        for start in range(0, n, step):
            part = slice(start, min(n, start + step))
            X = rows.tile(part.start, part.stop)
            yield part, X, ExactSummation(kernel, Rows(X), train, n_threads=n_threads).matmat(columns)

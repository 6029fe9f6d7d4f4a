"""Projection through a feature map: its size does not depend on the number of training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.caching import cached_property
from ..base.protocol import FeatureMap, Kernel
from ..base.rounding import EPS, rounding_factor
from ..maps.passes import Applied, applied, apply, evaluate, map_tile_rows
from ..rows.view import Rows
from .projector import NewRows, SquaredErrors


@dataclass(frozen=True, eq=False)
class FeatureProjector:
    """Projects through a feature map: (phi(x) - mean)' W. Its size does not depend on the number of training rows.

    It holds the components w_j, and the weighted mean of the training rows' images, which is the model's centre. What
    it answers, ``SampleProjector`` does too.

    Attributes
    ----------
    grows_with_n : bool
        Whether it holds the training rows, coefficients ``coeff`` (N, c) in their images, and their ``weights`` (N,).
    map : FeatureMap
    axes : ndarray (D, c)
        W: columns that are orthonormal, or about that, where eigenvalues and scores are of second order.
    mean : ndarray (D,)
        Mean of the features of the training rows; with weights, their weighted mean.
    """

    map: FeatureMap
    axes: np.ndarray
    mean: np.ndarray
    grows_with_n = False
    coeff = None
    weights = None

    def __reduce__(self) -> tuple:
        """Without what is computed once and kept."""
        return FeatureProjector, (self.map, self.axes, self.mean)

    @property
    def n_components(self) -> int:
        return int(self.axes.shape[1])

    @cached_property
    def duals(self) -> np.ndarray:
        """W (W'W)^(-1): W where that is orthonormal. Scores z are those of mean + duals z."""
        gram = self.axes.T @ self.axes
        if np.abs(gram - np.eye(len(gram))).max(initial=0.0) <= 1e-9:
            return self.axes
        return np.linalg.solve(gram, self.axes.T).T

    @property
    def landmarks(self) -> np.ndarray | None:
        """Points (m, d), after the shift, whose images components and mean are sums of; None: there are none."""
        return self.map.landmarks

    def expansion(self) -> np.ndarray:
        """Components and mean as sums over the images of the landmarks: shape (m, c + 1), float64."""
        return self.map.landmark_weights(np.column_stack([self.duals, self.mean]))

    def map_state(self) -> tuple[dict, dict[str, np.ndarray]] | None:
        """(header, arrays) of the feature map; None for one from outside that has none."""
        try:
            return self.map.state()
        except NotImplementedError:
            return None

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        header, arrays = self.map.state()
        arrays = {f"map.{name}": array for name, array in arrays.items()}
        return {"map": header}, arrays | {"axes": self.axes, "mean": self.mean}

    def formula(self) -> dict[str, Any]:
        """Arrays for the projection by ``docs/fastkpca_project.m`` in MATLAB; ValueError where it cannot project."""
        formula = self.map.formula()
        if formula is None:
            raise ValueError(
                f"the feature map {type(self.map).__name__} has no formula for MATLAB; "
                "fit with features='pivots', method='krylov' or method='dense' to export the model"
            )
        return {"kind": "features", "map": formula, "axes": self.axes, "mean": self.mean[None, :]}

    def leading(self, signs: np.ndarray) -> FeatureProjector:
        """The first ``len(signs)`` components, each times its sign."""
        return replace(self, axes=np.ascontiguousarray(self.axes[:, : len(signs)] * signs))

    @cached_property
    def _prepared(self) -> tuple[Applied, np.ndarray]:
        """For calls with few rows each: what depends on the axes alone."""
        return applied(self.map, self.axes), self.of_the_mean()[0]

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        """Write the scores (m, c) of the rows into ``out``."""
        values, constant = self._prepared
        evaluate(values, rows, n_threads, constant=constant, out=out, progress=progress, stage="scores")

    def products(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        """<w_j, phi(x)> for each component, then <mean, phi(x)>: shape (m, c + 1)."""
        columns = np.column_stack([self.axes, self.mean])
        return np.asarray(apply(self.map, rows, columns, n_threads, progress=progress, stage="scores"))

    @property
    def tile_rows(self) -> int:
        """Rows of a tile of new rows, by shapes alone."""
        return map_tile_rows(self.map)

    def gradients(self, kernel: Kernel) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Function (X, steps) -> derivatives of the scores of a tile (n, d) by its columns: shape (n, c, d).

        ``steps`` (n, d) are those of central differences, where kernel or map do not know their derivative.
        """
        return self.map.gradients(self.axes)

    def of_the_mean(self) -> tuple[np.ndarray, float]:
        """(<w_j, mean> for each component, |mean|^2)."""
        return self.mean @ self.axes, float(self.mean @ self.mean)

    @property
    def mean_in_span(self) -> np.ndarray:
        """Coefficients (c,) of the projection of the mean on the span of the components: (W'W)^(-1) W' mean."""
        return self.mean @ self.duals

    def squared_errors(
        self, model: Any, given: NewRows, diagonal: np.ndarray | None, n_threads: int, progress: Any, bounds: bool
    ) -> SquaredErrors:
        """Squared prediction errors, and intervals that allow for rounding and for the map's residual.

        Through features, the error has two parts: the part of phi(x) outside the components, and the residual of the
        map. Through training rows, with orthonormal components, it is k~(x, x) - |z|^2.

        Parameters
        ----------
        model : KPCAModel
            The model of this projector.
        diagonal : ndarray (m,), optional
            k(x, x) of each row; None: the kernel computes it.
        bounds : bool
            False: the interval may be of length zero.
        """
        kernel, rows = given.kernel, given.rows
        n, D = rows.n_samples, self.map.n_features
        delta = self.map.rounding + rounding_factor(max(D, model.n_samples)) * EPS
        # a map with a transform has too many features to form: cancellation, and no lower bound on its residual
        transform = self.map.tile_rows is not None
        if transform:
            products = self.products(kernel, rows, n_threads, progress)
            z, along_mean = products[:, :-1] - self.of_the_mean()[0], products[:, -1]
            step = map_tile_rows(self.map)
        else:
            z, along_mean = np.empty((n, self.n_components)), None
            step = parallel.tile_rows(D)
        parts = np.empty((5, n))

        def task(i: int) -> None:
            tile = slice(i * step, min(n, (i + 1) * step))
            X = rows.tile(tile.start, tile.stop)
            k = kernel.diagonal(X) if diagonal is None else diagonal[tile]
            if along_mean is None:
                z[tile], *of_tile = self._formed(X, k, delta)
            else:
                of_tile = self._transformed(X, k, z[tile], along_mean[tile])
            parts[:, tile] = [*of_tile, self.map.outside_error(X)]

        parallel.each(task, -(-n // step), n_threads=n_threads, progress=progress, stage="spe")
        within, outside, surely, squares, outside_error = parts
        # the mean has the rounding of the features that it is the mean of, which may be much larger than it is
        size = np.sqrt(squares) + float(np.sqrt(self._length**2 + max(model.total_variance_bounds[1], 0.0)))
        if transform:
            slack = (4.0 * delta + 8.0 * self.map.transform_eps) * size**2
        else:  # |r|^2 of an r that is off by this much
            error = delta * size
            slack = 4.0 * np.sqrt(within) * error + 4.0 * error**2
        slack += 4.0 * self.map.defect + 2.0 * outside_error
        train = np.sqrt(model.mean_residual) if model.center else 0.0
        if not model._added:
            high = within + (np.sqrt(outside) + train) ** 2 + slack
            low = np.maximum(within + np.maximum(np.sqrt(surely) - train, 0.0) ** 2 - slack, 0.0)
        else:  # the mean lacks features that were added later: what it lacks is not at right angles to the others
            high = (np.sqrt(within + outside) + train) ** 2 + slack
            low = np.maximum(np.maximum(np.sqrt(within + surely) - train, 0.0) ** 2 - slack, 0.0)
        return SquaredErrors(z, within + outside, np.stack([low, high], axis=1))

    def orthonormal_scores(
        self, model: Any, given: NewRows, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores along an orthonormal basis Q of the axes, for the leading ones a basis of their span.

        Returns
        -------
        scores : ndarray (m, c)
            Q'(phi(x) - mean), from the scores ``z`` = W'(phi(x) - mean).
        error : ndarray (m,)
            Bound on the length of the error of a row's scores.
        skewness : ndarray (c,)
            Bound on |G - I|, G the inner products of the first 1, ..., c vectors of the basis.
        """
        X, D = given.rows.all(), self.map.n_features
        R = np.asarray(np.linalg.qr(self.axes, mode="r"))
        delta = self.map.rounding + rounding_factor(max(D, model.n_samples)) * EPS
        if self.map.tile_rows is not None:
            delta += self.map.transform_eps
        size = np.sqrt(np.maximum(given.kernel.diagonal(X), 0.0)) + self._length
        # errors of kernel values act on squares
        entries = np.sqrt(4.0 * self.map.defect + 2.0 * self.map.outside_error(X))
        return np.linalg.solve(R.T, z.T).T, 4.0 * delta * size + entries, np.zeros(len(R))

    @property
    def _length(self) -> float:
        return float(np.sqrt(self.mean @ self.mean))

    # Parts of a tile X with k = k(x, x): |r|^2 of what the components leave in the space of the features, an upper and
    # a lower bound on the map's residual of k(x, x), and |phi(x)|^2.

    def _formed(self, X: np.ndarray, k: np.ndarray, delta: float) -> tuple[np.ndarray, ...]:
        """Scores, and the parts, from the features."""
        Phi = self.map.features(X)
        outside = self.map.residual(X, Phi)
        squares = np.einsum("ij,ij->i", Phi, Phi)
        surely = np.clip(k - squares * (1.0 + 2.0 * delta) - 8.0 * EPS * k, 0.0, outside)
        Phi = Phi - self.mean
        z = Phi @ self.axes
        Phi -= z @ self.duals.T
        return z, np.einsum("ij,ij->i", Phi, Phi), outside, surely, squares

    def _transformed(self, X: np.ndarray, k: np.ndarray, z: np.ndarray, along_mean: np.ndarray) -> list[np.ndarray]:
        """The parts, from the scores and the products with the mean."""
        outside = np.minimum(self.map.residual(X), k)
        squares = k - outside
        centred = squares - 2.0 * along_mean + self._length**2
        within = np.maximum(centred - np.einsum("ij,ij->i", z, z), 0.0)
        return [within, outside, np.zeros(len(X)), squares]

"""Projection through the training rows: its size grows with their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.checks import Randomness
from ..base.protocol import Kernel
from ..base.rounding import EPS, rounding_factor
from ..products.exact import ExactSummation
from ..rows.sinks import Sink
from ..rows.summary import summarize
from ..rows.view import Rows
from .projector import NewRows, SquaredErrors


@dataclass(frozen=True, eq=False)
class SampleProjector:
    """Projects through the training rows: (k(x, X) - column means)' coeff. Its size grows with their number.

    Its methods are those of ``FeatureProjector``, where their results are described.

    Attributes
    ----------
    X : ndarray (N, d)
        Training rows, after the shift.
    coeff : ndarray (N, c)
        In float64 for rows of any type: of a small eigenvalue they are large, and their products with K cancel.
    column_means : ndarray (N,)
        Column means of the Gram matrix of the training rows; with weights, weighted means.
    weights : ndarray (N,) or None
        Weights of the training rows; None: each counts once.
    center : bool
        Whether the model is centred; if not, ``column_means`` are zero, and so is the mean of feature space.
    """

    X: np.ndarray
    coeff: np.ndarray
    column_means: np.ndarray
    weights: np.ndarray | None = None
    center: bool = True
    grows_with_n = True

    @property
    def n_components(self) -> int:
        return int(self.coeff.shape[1])

    @property
    def landmarks(self) -> np.ndarray:
        return self.X

    def expansion(self) -> np.ndarray:
        coeff, shares = self.coeff, self.shares()
        # the coefficients of a component sum to zero in exact numbers
        return np.column_stack([coeff - np.outer(shares, coeff.sum(axis=0)), shares])

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        return {}, {"X": self.X, "coeff": self.coeff, "column_means": self.column_means}

    def formula(self) -> dict[str, Any]:
        return {"kind": "samples", "X": self.X, "coeff": self.coeff, "column_means": self.column_means[None, :]}

    def leading(self, signs: np.ndarray) -> SampleProjector:
        return replace(self, coeff=np.ascontiguousarray(self.coeff[:, : len(signs)] * signs))

    @property
    def tile_rows(self) -> int:
        return parallel.tile_rows(64)

    def gradients(self, kernel: Kernel) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        coeff = self.coeff

        def gradients(X: np.ndarray, steps: np.ndarray) -> np.ndarray:
            total = np.zeros((len(X), self.n_components, X.shape[1]))
            step = parallel.tile_rows(self.tile_rows)
            for start in range(0, len(self.X), step):
                Y = np.ascontiguousarray(self.X[start : start + step], dtype=np.float64)
                sums = kernel.gradient_sums(X, Y, kernel.block(X, Y), steps)
                total += sums(None, coeff[start : start + step])
            return total

        return gradients

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        constant = self.column_means @ self.coeff
        sink = Sink(out)
        for _, _, products in self._tiles(kernel, rows, self.coeff, n_threads, progress):
            sink.write(products - constant)
        sink.close()

    def products(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        products = np.empty((rows.n_samples, self.n_components + 1))
        for tile, _, values in self._tiles(kernel, rows, self.expansion(), n_threads, progress):
            products[tile] = values
        return products

    def _tiles(
        self, kernel: Kernel, rows: Rows, columns: np.ndarray, n_threads: int, progress: Any, stage: str = "scores"
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """(which rows, these rows, k(rows, X) columns), tile by tile: the matrix never exists for all rows at once."""
        columns = np.ascontiguousarray(columns, dtype=np.float64)
        step, train, n = parallel.tile_rows(64), Rows(self.X), rows.n_samples
        for start, X in rows.tiles(step):
            tile = slice(start, start + len(X))
            yield tile, X, ExactSummation(kernel, Rows(X), train, n_threads=n_threads).matmat(columns)
            if progress is not None:
                progress(stage, tile.stop, n)

    def of_the_mean(self) -> tuple[np.ndarray, float]:
        products = np.asarray(self.column_means, dtype=np.float64) @ self.expansion()
        return products[:-1], float(products[-1])

    @property
    def mean_in_span(self) -> np.ndarray:
        return self.of_the_mean()[0]

    def shares(self) -> np.ndarray:
        """The share of each training row in the mean, shape (N,): its weight over the sum of the weights."""
        if not self.center:
            return np.zeros(len(self.X))
        if self.weights is None:
            return np.full(len(self.X), 1.0 / len(self.X))
        return self.weights / self.weights.sum()

    def squared_errors(
        self, model: Any, given: NewRows, diagonal: np.ndarray | None, n_threads: int, progress: Any, bounds: bool
    ) -> SquaredErrors:
        kernel, rows = given.kernel, given.rows
        n = rows.n_samples
        constant, grand = self.of_the_mean()
        z, centred, diagonals = np.empty((n, self.n_components)), np.empty(n), np.empty(n)
        for tile, X, products in self._tiles(kernel, rows, self.expansion(), n_threads, progress, "spe"):
            z[tile] = products[:, :-1] - constant
            diagonals[tile] = kernel.diagonal(X) if diagonal is None else diagonal[tile]
            centred[tile] = diagonals[tile] - 2.0 * products[:, -1] + grand
        spe = centred - np.einsum("ij,ij->i", z, z)
        if kernel.positive_semidefinite:
            spe = np.maximum(spe, 0.0)
        interval = np.stack([spe, spe], axis=1)
        if bounds:
            of_kernel, of_scores = self._rounding(model, given, z, diagonals)
            interval = np.stack([spe - of_kernel - of_scores, spe + of_kernel + of_scores], axis=1)
            if kernel.positive_semidefinite:  # at most the value without any component, and at least zero
                interval[:, 1] = np.minimum(interval[:, 1], np.maximum(centred, 0.0) + of_kernel)
                interval = np.maximum(interval, 0.0)
        return SquaredErrors(z, spe, interval)

    def _rounding(
        self, model: Any, given: NewRows, z: np.ndarray, diagonals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the error of k~(x, x) and of |z|^2, by rounding and by the error of the components: (m,) each."""
        off_z, of_kernel, skewness = self._errors_of_scores(model, given, diagonals)
        off = float(skewness[-1])
        of_scores = 2.0 * np.einsum("ij,ij->i", np.abs(z), off_z) + np.einsum("ij,ij->i", off_z, off_z)
        if off >= 1.0:  # of scores of zero, too
            return of_kernel, np.full(len(z), np.inf)
        return of_kernel, of_scores + np.einsum("ij,ij->i", z, z) * (off / (1.0 - off))

    def orthonormal_scores(
        self, model: Any, given: NewRows, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        off_z, _, skewness = self._errors_of_scores(model, given, given.kernel.diagonal(given.rows.all()))
        return z, np.sqrt(np.einsum("ij,ij->i", off_z, off_z)), skewness

    def _errors_of_scores(
        self, model: Any, given: NewRows, diagonals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bounds on the rounding of scores (m, c) and of k~(x, x) (m,); and on |G - I|, G the inner products of the
        first 1, ..., c components (c,)."""
        coeff, N = self.expansion()[:, :-1], len(self.X)
        # with weights, the eigenvectors are those of W^(1/2) Kc W^(1/2): coeff = W^(1/2) roots
        roots = coeff if self.weights is None else _over_roots(coeff, self.weights)
        entry = self._error_of_entries(model, given, diagonals)
        # column means by an approximate product have its error, which is bounded for the weighted matrix as a whole
        product = float(model.info.get("product_error", 0.0)) * N / model.count
        reach = np.abs(coeff).sum(axis=0)
        reach_of_means = reach
        if self.weights is not None:
            reach_of_means = np.sqrt(model.count * np.einsum("ij,ij->j", roots, roots))
        of_kernel = 4.0 * (entry + product) + 4.0 * EPS * np.abs(diagonals)
        off_z = np.multiply.outer(entry, reach) + product * reach_of_means
        # components are orthonormal as far as V' Kc V is diagonal, for which the lower ends of the intervals allow
        too_large = np.maximum.accumulate(np.maximum(model.eigenvalues - model.eigenvalue_bounds[:, 0], 0.0))
        return off_z, of_kernel, too_large / np.minimum.accumulate(model.eigenvalues)

    def _error_of_entries(self, model: Any, given: NewRows, diagonals: np.ndarray) -> np.ndarray:
        """Bound on the error of a kernel value of each row, alone or in a sum."""
        kernel, error, largest = given.kernel, 0.0, np.abs(diagonals)
        of_means = float(np.abs(self.column_means).max())
        if kernel.by_number:
            largest = largest + of_means
        else:
            rows, scale = given.rows.weighted(None), False if model.scale is None else model.scale
            _, data = summarize(rows, shift=True, shift_by=model.shift, scale=scale, randomness=Randomness(0))
            _, train = summarize(Rows(self.X), shift=False, randomness=Randomness(0))
            larger = max((data, train), key=lambda x: x.radius)
            error = kernel.entry_error(larger, np.dtype(np.float64)) or 0.0
            largest = np.sqrt(largest * float(np.abs(kernel.diagonal(self.X)).max()))
        return error + EPS * rounding_factor(len(self.X)) * np.maximum(largest, of_means)


def _over_roots(coeff: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients over the square roots of the weights; rows of weight zero have none."""
    return np.divide(coeff, np.sqrt(weights)[:, None], out=np.zeros_like(coeff), where=weights[:, None] > 0)

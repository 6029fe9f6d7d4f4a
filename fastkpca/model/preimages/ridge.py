"""Kernel ridge regression from scores back to rows, for pre-images: learned once, evaluated at any scores.

Bakir, Weston & Schoelkopf, Learning to find pre-images, NIPS 2003. The regression is on the pivoted-Cholesky features
of a Gaussian kernel on the scores. So it needs one pass over the rows and D x (D + d) numbers, never N x N; where D is
the number of rows, it is kernel ridge regression itself.

Width and regularisation are those that predict rows best that were left out (Allen 1974: the regression without a row
follows from that with it). A row is left out with its whole weight and with its copies: with a copy left in, the
regression that follows every row exactly would seem best. Generalised cross-validation (Golub, Heath & Wahba 1979) has
the mean of all leverages in place of each, and one pair of copies among many rows is enough to mislead it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ...base import parallel
from ...base.checks import Randomness
from ...base.differences import DIFFERENCE
from ...base.protocol import LARGEST
from ...base.rounding import EPS
from ...kernels.gaussian import Gaussian, median_distance
from ...maps.choosing import pivot_map
from ...maps.passes import apply, feature_moments, map_tile_rows
from ...maps.pivots import PivotMap
from ...rows.summary import sample_index
from ...rows.view import Rows

MAX_FEATURES = 1024
"""Pivots of the regression at most."""
PIVOT_TOL, LEAST_ALPHA = float(np.square(DIFFERENCE)), float(np.sqrt(EPS))
"""Largest residual trace of the pivots, and the least ridge over the sum of the weights, 400 times as much: below it
the rows that follow depend on the choice of the pivots."""
WIDTHS = (1.0, 2.0, 4.0, 8.0)
"""Multiples of the median heuristic's sigma that are tried: with a quarter of the pivots, on as many rows as there may
be pivots of the regression."""
NEAR = 1e-3
"""Rows are copies where their scores are so near, over the median distance: a solver's error parts them too."""
SKETCH = 64
"""Random combinations of columns that stand for more columns where rows are left out."""


@dataclass(frozen=True)
class Ridge:
    """x = size (mean_x + (phi((z - origin) / unit) - mean_phi) weights).

    Attributes
    ----------
    map : PivotMap, or None
        None: all scores are alike, and every row is the mean.
    sigma : float
        The width of the kernel on scores over ``unit``.
    """

    map: PivotMap | None
    weights: np.ndarray
    mean_phi: np.ndarray
    mean_x: np.ndarray
    sigma: float = 0.0
    origin: np.ndarray | float = 0.0
    unit: float = 1.0
    size: float = 1.0

    def predict(self, Z: np.ndarray, n_threads: int = 1, progress: parallel.Progress | None = None) -> np.ndarray:
        """Rows for scores Z (m, c): (m, d)."""
        if self.map is None:
            return np.tile(self.size * self.mean_x, (len(Z), 1))
        constant = self.mean_phi @ self.weights - self.mean_x
        with np.errstate(over="ignore"):
            scores = Rows(np.clip((Z - self.origin) / self.unit, -LARGEST, LARGEST))  # far is far
            options = {"constant": constant, "progress": progress, "stage": "pre-images"}
            return self.size * apply(self.map, scores, self.weights, n_threads, **options)


class _Held(NamedTuple):
    """Scores (k, c) of the rows that are left out in turn, and what the error of each counts."""

    scores: np.ndarray
    counts: np.ndarray


def fit_ridge(
    scores: np.ndarray,
    rows: Rows,
    *,
    alpha: float | None = None,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
) -> Ridge:
    """Learn rows from their scores.

    Parameters
    ----------
    scores : ndarray (N, c)
    rows : Rows (N, d)
        Their weights, where they have some, are those of the squared errors; all of them positive.
    alpha : float, optional
        Regularisation: what |f|^2 is multiplied by in sum |x - f(z)|^2 + alpha |f|^2; by default what predicts rows
        best that are left out.
    """
    n = rows.n_samples
    largest = 1.0 if rows.weights is None else float(rows.weights.max())
    weights = np.ones(n) if rows.weights is None else np.asarray(rows.weights, dtype=np.float64) / largest
    alpha, total = None if alpha is None else alpha / largest, float(weights.sum())
    largest_value = _over_tiles(rows, lambda start, stop: np.abs(rows.tile(start, stop)).max(), np.maximum, n_threads)
    size = float(largest_value) or 1.0
    rows = rows.weighted(weights).framed(
        rows.shift, size * (np.ones(rows.n_features) if rows.scale is None else rows.scale)
    )
    few = np.arange(n) if n <= MAX_FEATURES else sample_index(rows, total, Randomness(0), MAX_FEATURES)
    few = few[weights[few] > EPS]  # scores of what weighs less are rounding
    counts = weights[few] if n <= MAX_FEATURES else np.ones(len(few))
    sample = np.asarray(scores[few], dtype=np.float64)
    origin = (sample.min(axis=0) + sample.max(axis=0)) / 2.0  # copies move it no more than weights do, nor the unit
    unit = float(np.abs(sample - origin).max())
    if unit > 0.0:
        sample = (sample - origin) / unit
        median = median_distance(sample[np.unique(_near(sample, sample, NEAR**2).argmax(axis=1))])
        sample, unit = sample / median, unit * median
        kept, copy_of = np.unique(_near(sample, sample).argmax(axis=1), return_inverse=True)
    else:
        kept = few[:1]
    if len(kept) == 1:
        return Ridge(None, np.zeros((0, 0)), np.zeros(0), _mean(rows, n_threads), size=size)
    held = _Held(sample[kept], np.bincount(copy_of, counts))
    shares = (copy_of == np.arange(len(kept))[:, None]) * (counts / held.counts[copy_of])
    trial = held.counts * (total / held.counts.sum())
    known, targets = Rows(held.scores, weights=trial), Rows(shares @ rows.take(few), weights=trial)
    heuristic = median_distance(held.scores) / np.sqrt(2.0)
    widths = [factor * heuristic for factor in WIDTHS]
    errors = [_solve(known, targets, sigma, MAX_FEATURES // 4, held, alpha)[1] for sigma in widths]
    every = Rows(np.ascontiguousarray((scores - origin) / unit, dtype=np.float64), weights=weights)
    sigma = widths[int(np.argmin(errors))]
    found, _ = _solve(every, rows, sigma, MAX_FEATURES, held, alpha, n_threads, progress)
    return replace(found, origin=origin, unit=unit, size=size)


def _near(Z: np.ndarray, others: np.ndarray, reach: float = NEAR) -> np.ndarray:
    """True for pairs of scores no farther apart than ``reach`` and rounding: (m, k)."""
    squares = np.einsum("ij,ij->i", Z, Z)[:, None] + np.einsum("ij,ij->i", others, others)
    return squares - 2.0 * (Z @ others.T) <= reach**2 + 8.0 * EPS * squares


def _over_tiles(rows: Rows, of: Callable[[int, int], Any], join: Callable[[Any, Any], Any], n_threads: int) -> Any:
    """Sums over the rows from ``start`` to ``stop``, joined over all rows."""
    n, step = rows.n_samples, rows.step
    return parallel.tree_reduce(
        lambda i: of(i * step, min(n, (i + 1) * step)), -(-n // step), join, n_threads=n_threads
    )


def _mean(rows: Rows, n_threads: int) -> np.ndarray:
    weights = np.asarray(rows.weights)
    shares = weights / weights.sum()
    return np.asarray(_over_tiles(rows, lambda i, j: shares[i:j] @ rows.tile(i, j), np.add, n_threads))


def _solve(
    scores: Rows,
    rows: Rows,
    sigma: float,
    max_features: int,
    held: _Held,
    alpha: float | None,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
) -> tuple[Ridge, float]:
    """The regression with the given alpha, or with the best, and its squared error of rows that are left out."""
    feature_map = pivot_map(
        Gaussian(sigma=sigma),
        scores,
        tol=PIVOT_TOL,
        max_features=min(max_features, len(scores)),
        rng=np.random.default_rng(0),
        sample_rows=4096,
        entry_error=0.0,
    )
    n, D, step = len(scores), feature_map.n_features, map_tile_rows(feature_map)
    n_tiles = -(-n // step)
    span = step * max(1, -(-n_tiles // 16))  # few tasks: each holds (D + k) x d numbers
    moments = feature_moments(feature_map, scores, n_threads=n_threads, progress=progress)
    mean_phi, mean_x, row_weights = moments.mean.copy(), _mean(rows, n_threads), np.asarray(rows.weights)

    def task(i: int) -> np.ndarray:
        sums = np.zeros((D + len(held.scores), rows.n_features + 1))
        for start in range(i * span, min(n, (i + 1) * span), step):
            stop = min(n, start + step)
            Z, X = scores.tile(start, stop), rows.tile(start, stop) - mean_x
            weighted = row_weights[start:stop, None] * np.column_stack([X, np.ones(len(X))])
            sums[:D] += (feature_map.features(Z) - mean_phi).T @ weighted
            sums[D:] += _near(held.scores, Z) @ weighted
        return sums

    sums = parallel.tree_reduce(task, -(-n // span), np.add, n_threads=n_threads, progress=progress, stage="regression")
    second = moments.dense()
    assert second is not None
    eigenvalues, axes = scipy.linalg.eigh(second)
    total = float(row_weights.sum())
    eigenvalues = np.maximum(eigenvalues, EPS * total)  # features are at most 1, and what is smaller is their rounding
    along = axes.T @ sums[:D, :-1]
    held_features = (feature_map.features(held.scores) - mean_phi) @ axes
    alpha, error = _left_out(eigenvalues, along, held_features, sums[D:], held.counts, total, alpha)
    weights = axes @ (along / (eigenvalues + alpha)[:, None])
    return Ridge(feature_map, weights, mean_phi, mean_x, sigma), error


def _left_out(
    eigenvalues: np.ndarray,
    along: np.ndarray,
    features: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    total: float,
    alpha: float | None,
) -> tuple[float, float]:
    """(alpha, its squared error of rows that are left out with their copies): the best alpha, where none is given.

    ``along`` are the sums of features times rows, and ``features`` the features of the held-out rows, both along the
    eigenvectors. ``sums`` are the sums of the rows of each held-out group and, last, of their weights.
    """
    weights = sums[:, -1]
    targets = sums[:, :-1] / weights[:, None]
    if targets.shape[1] > SKETCH:
        sketch = np.random.default_rng(0).standard_normal((targets.shape[1], SKETCH))
        targets, along = targets @ sketch, along @ sketch
    sizes, least = np.einsum("ij,ij->i", targets, targets), float(np.sqrt(EPS))

    def error(a: float) -> float:
        shrunk = features / (eigenvalues + a)
        off = targets - shrunk @ along
        left = 1.0 - weights * (1.0 / total + np.einsum("ij,ij->i", shrunk, features))
        squares = np.einsum("ij,ij->i", off, off) / np.maximum(left, least) ** 2
        # where what is left of a row in its own prediction is rounding: the mean
        return float(counts @ np.where(left > least, squares, sizes))

    if alpha is None:
        alpha = float(min(np.geomspace(LEAST_ALPHA * total, 10.0 * total, 21), key=error))
    return alpha, error(alpha)

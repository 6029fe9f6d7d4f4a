"""Kernel ridge regression from scores back to rows, for pre-images: learned once, evaluated at any scores.

Bakir, Weston & Schoelkopf, Learning to find pre-images, NIPS 2003. The regression is on the pivoted-Cholesky features
of a Gaussian kernel on the scores. So it needs one pass over the rows and D x (D + d) numbers, never N x N; where D is
the number of rows, it is kernel ridge regression itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..base import parallel
from ..base.checks import Randomness
from ..kernels.gaussian import Gaussian, median_distance
from ..maps.passes import apply, feature_moments, map_tile_rows
from ..maps.pivots import PivotMap, pivot_map
from ..rows.summary import sample_index
from ..rows.view import Rows

__all__ = ["Ridge", "fit_ridge"]

MAX_FEATURES = 1024
PIVOT_TOL = 1e-11
WIDTHS = (1.0, 2.0, 4.0, 8.0)
"""Multiples of the median heuristic's sigma that are tried, on a sample."""
TRIAL_ROWS, TRIAL_FEATURES = 1024, 256


@dataclass(frozen=True)
class Ridge:
    """x = mean_x + (phi(z) - mean_phi) weights.

    Attributes
    ----------
    map : PivotMap, or None
        None: all scores are alike, and every row is the mean.
    alpha, sigma : float
        What |f|^2 is multiplied by in sum |x - f(z)|^2 + alpha |f|^2, and the width of the kernel on scores.
    """

    map: PivotMap | None
    weights: np.ndarray
    mean_phi: np.ndarray
    mean_x: np.ndarray
    alpha: float
    sigma: float

    def predict(self, Z: np.ndarray, n_threads: int = 1, progress: parallel.Progress | None = None) -> np.ndarray:
        """Rows for scores Z (m, c): (m, d)."""
        if self.map is None:
            return np.tile(self.mean_x, (len(Z), 1))
        constant = self.mean_phi @ self.weights - self.mean_x
        return apply(
            self.map, Rows(Z), self.weights, n_threads, constant=constant, progress=progress, stage="pre-images"
        )


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
        Regularisation; by default what generalised cross-validation finds best (Golub, Heath & Wahba 1979).
    """
    few = sample_index(rows, _count(rows), Randomness(0), TRIAL_ROWS)
    sample, targets = np.ascontiguousarray(scores[few], dtype=np.float64), rows.take(few)
    if not (sample != sample[0]).any():
        return Ridge(None, np.zeros((0, 0)), np.zeros(0), _mean(rows, n_threads), 0.0, 0.0)
    heuristic = median_distance(sample) / np.sqrt(2.0)
    widths = [factor * heuristic for factor in WIDTHS]
    trials = [_solve(Rows(sample), Rows(targets), sigma, TRIAL_FEATURES, alpha, 1)[1] for sigma in widths]
    sigma = widths[int(np.argmin(trials))]
    return _solve(Rows(scores, weights=rows.weights), rows, sigma, MAX_FEATURES, alpha, n_threads, progress)[0]


def _count(rows: Rows) -> float:
    """Number of rows, or the sum of their weights."""
    return float(rows.n_samples if rows.weights is None else rows.weights.sum())


def _mean(rows: Rows, n_threads: int) -> np.ndarray:
    n, step = rows.n_samples, rows.step

    def task(i: int) -> np.ndarray:
        start, stop = i * step, min(n, (i + 1) * step)
        X, w = rows.tile(start, stop), rows.tile_weights(start, stop)
        return X.sum(axis=0) if w is None else w @ X

    return np.asarray(parallel.tree_reduce(task, -(-n // step), np.add, n_threads=n_threads)) / _count(rows)


def _solve(
    scores: Rows,
    rows: Rows,
    sigma: float,
    max_features: int,
    alpha: float | None,
    n_threads: int,
    progress: parallel.Progress | None = None,
) -> tuple[Ridge, float]:
    """The regression, and its score by generalised cross-validation (of the given alpha, or of the best)."""
    feature_map = pivot_map(
        Gaussian(sigma=sigma),
        scores,
        tol=PIVOT_TOL,
        max_features=min(max_features, len(scores)),
        rng=np.random.default_rng(0),
        sample_rows=4096,
        entry_error=0.0,
    )
    n, step = len(scores), map_tile_rows(feature_map)
    n_tiles = -(-n // step)
    span = step * max(1, -(-n_tiles // 16))  # few tasks: each holds D x d numbers
    moments = feature_moments(feature_map, scores, n_threads=n_threads, progress=progress)
    mean_phi, mean_x = moments.mean.copy(), _mean(rows, n_threads)
    squares = np.zeros(-(-n // span))

    def task(i: int) -> np.ndarray:
        total = np.zeros((feature_map.n_features, rows.n_features))
        for start in range(i * span, min(n, (i + 1) * span), step):
            stop = min(n, start + step)
            X, w = rows.tile(start, stop) - mean_x, rows.tile_weights(start, stop)
            weighted = X if w is None else w[:, None] * X
            squares[i] += float(np.einsum("ij,ij->", X, weighted))
            total += (feature_map.features(scores.tile(start, stop)) - mean_phi).T @ weighted
        return total

    cross = parallel.tree_reduce(task, len(squares), np.add, n_threads=n_threads, progress=progress, stage="regression")
    second = moments.dense()
    assert second is not None
    eigenvalues, axes = scipy.linalg.eigh(second)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    along = axes.T @ cross
    power, total = np.einsum("ij,ij->i", along, along), float(squares.sum())
    count = max(_count(rows), float(n))  # small weights do not make the rows fewer
    alpha, score = _validated(eigenvalues, power, total, count, alpha)
    weights = axes @ (along / (eigenvalues + alpha)[:, None])
    return Ridge(feature_map, weights, mean_phi, mean_x, alpha, sigma), score


def _validated(
    eigenvalues: np.ndarray, power: np.ndarray, total: float, count: float, alpha: float | None
) -> tuple[float, float]:
    """(alpha, its score by generalised cross-validation): the best alpha, where none is given.

    ``power`` is the squared size of the rows along each eigenvector, ``total`` that of the rows.
    """

    def score(a: float) -> float:
        left = max(total - float(power @ ((eigenvalues + 2.0 * a) / (eigenvalues + a) ** 2)), 1e-14 * total)
        freedom = 1.0 + float((eigenvalues / (eigenvalues + a)).sum())
        return count * left / (count - freedom) ** 2 if freedom < count else np.inf

    if alpha is None:
        alpha = float(min(np.logspace(-12, 1, 53) * float(eigenvalues[-1]), key=score))
    return alpha, score(alpha)

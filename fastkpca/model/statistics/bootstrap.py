"""Moments of the scores of groups of rows, and what they become where groups are drawn again with replacement."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.sparse is loaded where it is used first

from ...base import parallel
from ...base.rounding import EPS
from ...rows.view import Pass, Rows
from ..projector import NewRows

GROUPS = 1024
"""Rows up to which single rows are drawn; of more rows this number of random groups is made, and groups are drawn."""


class Sums(NamedTuple):
    """Sums over the rows of each of G groups, with their weights; z are scores, phi the image about the mean.

    Attributes
    ----------
    weight : ndarray (G,)
    scores : ndarray (G, k)
    products : ndarray (G, k, k)
        Sums of z z'.
    squares : ndarray (G,)
        Sums of |phi|^2.
    beside : ndarray (k,)
        Sum over all groups of z^2 (|phi|^2 - |z|^2).
    outside : ndarray ()
        Sum over all groups of |phi|^2 - |z|^2.
    """

    weight: np.ndarray
    scores: np.ndarray
    products: np.ndarray
    squares: np.ndarray
    beside: np.ndarray
    outside: np.ndarray

    @classmethod
    def zeros(cls, groups: int, k: int) -> Sums:
        shapes = [(groups,), (groups, k), (groups, k, k), (groups,), (k,), ()]
        return cls(*(np.zeros(shape) for shape in shapes))

    def plus(self, other: Sums) -> Sums:
        return Sums(*map(np.add, self, other))

    def add(self, errors: Any, share: np.ndarray, row: np.ndarray, group: np.ndarray) -> None:
        """Add copies of the rows of a tile (their numbers in it), each with its share of the row's weight."""
        G, k = self.scores.shape
        weights = scipy.sparse.csr_array((share[row], (group, row)), shape=(G, len(share)))
        z, beyond = errors.scores[:, :k], errors.scores[:, k:]
        rest = errors.spe + np.einsum("ij,ij->i", beyond, beyond)
        total = weights.sum(axis=0)
        self.weight[...] += weights.sum(axis=1)
        self.scores[...] += weights @ z
        self.products[...] += (weights @ (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)).reshape(G, k, k)
        self.squares[...] += weights @ (rest + np.einsum("ij,ij->i", z, z))
        self.beside[...] += (total * rest) @ z**2
        self.outside[...] += total @ rest


def score_pass(model: Any, given: NewRows, k: int, seed: int) -> Pass:
    """The pass whose result is the `Sums` of the first k scores of the model."""
    rows, kernel, projector = given.rows, given.kernel, model.projector
    counts = np.ones(rows.n_samples, dtype=np.intp) if rows.weights is None else np.ceil(rows.weights).astype(np.intp)
    copies = int(counts.sum())
    groups, span = min(copies, GROUPS), rows.step
    first = np.concatenate([[0], np.cumsum(counts)]) if copies <= GROUPS else None
    del counts

    def task(rows: Rows, i: int) -> Sums:
        begin, end = i * span, min(rows.n_samples, (i + 1) * span)
        w = rows.tile_weights(begin, end)
        w = np.ones(end - begin) if w is None else w
        counts = np.ceil(w).astype(np.intp)
        share = w / np.maximum(counts, 1)
        ends = np.concatenate([[0], np.cumsum(counts)])
        if first is None:  # each group gets as many, at random
            rng = np.random.default_rng((seed, i))
            group = (rng.permutation(ends[-1]) + rng.integers(groups)) % groups
        else:
            group = first[begin] + np.arange(ends[-1])
        total = Sums.zeros(groups, k)
        for start in range(0, end - begin, projector.tile_rows):
            parallel.checkpoint()
            stop = min(end - begin, start + projector.tile_rows)
            tile = NewRows(kernel, Rows(rows.tile(begin + start, begin + stop)), np.dtype(np.float64))
            errors = projector.squared_errors(model, tile, None, 1, None, False)
            row = np.repeat(np.arange(stop - start), counts[start:stop])
            total.add(errors, share[start:stop], row, group[ends[start] : ends[stop]])
        return total

    return Pass("uncertainty", task, span, Sums.plus, alone=not kernel.thread_safe)


class Statistics(NamedTuple):
    """Statistics of b resamples.

    Attributes
    ----------
    parameters, errors : ndarray (b, 3, k)
        Logarithm of the eigenvalue, log-odds of the share of the variance, and of the cumulative share; and their
        standard errors.
    axes : ndarray (b, k, k)
        Eigenvectors as columns, in the coordinates of the scores.
    """

    parameters: np.ndarray
    errors: np.ndarray
    axes: np.ndarray


class Sample:
    """The groups of the sample, and its own eigenvalues and axes within the span of the components.

    ``center``: whether moments are about the mean of the scores, or about zero.
    """

    def __init__(self, sums: Sums, center: bool):
        self.sums, self.center = sums, center
        self.single = len(sums.weight) < GROUPS
        self._least = 0.0
        estimate = self._decomposed(np.ones((1, len(sums.weight))))
        self.values, self.axes = estimate[2], estimate[3][0]
        # of a resample without the rows that vary: its logarithm is far away, and its square is no zero
        self._least = float(np.finfo(np.float64).tiny) ** 0.25 * float(self.values[0, 0])
        self.n = float(sums.weight.sum())

    def _decomposed(self, W: np.ndarray) -> tuple[np.ndarray, ...]:
        """(counts, means, eigenvalues, eigenvectors) where group g is taken W_bg times."""
        count, scores, products = self.sums.weight, self.sums.scores, self.sums.products
        k = scores.shape[1]
        n = W @ count
        mean = W @ scores / n[:, None] * self.center
        C = (W @ products.reshape(len(count), -1)).reshape(-1, k, k) / n[:, None, None]
        values, axes = np.linalg.eigh(C - mean[:, :, None] * mean[:, None, :])
        values = values[:, ::-1]
        return n, mean, np.maximum(values, np.maximum(EPS * values[:, :1], self._least)), axes[:, :, ::-1]

    def statistics(self, W: np.ndarray) -> Statistics:
        """Parameters where group g is taken W_bg times, and their standard errors by the influence of the groups."""
        count = self.sums.weight
        n, mean, values, axes = self._decomposed(W)
        k = values.shape[1]
        size = np.einsum("ij,ij->i", mean, mean)
        total = np.maximum(W @ self.sums.squares / n - size, values.sum(axis=1))
        # the influence of a group, to first order, on each eigenvalue and on the total
        influence = np.empty((len(W), len(count), k + 1))
        self._squares_along(axes, mean, influence[:, :, :k])
        influence[:, :, :k] -= count[:, None] * values[:, None, :]
        influence[:, :, k] = (
            self.sums.squares - 2.0 * mean @ self.sums.scores.T + np.multiply.outer(size - total, count)
        )
        covariance = influence.transpose(0, 2, 1) @ (influence * W[:, :, None]) / (n**2)[:, None, None]
        cumulative = np.cumsum(values, axis=1)
        of_cumulative = np.cumsum(np.cumsum(covariance[:, :k, :k], axis=1), axis=2)
        with_total = covariance[:, :k, k]
        relative = [
            (values, np.diagonal(covariance, axis1=1, axis2=2)[:, :k], with_total),
            (cumulative, np.diagonal(of_cumulative, axis1=1, axis2=2), np.cumsum(with_total, axis=1)),
        ]
        parameters, errors = np.empty((2, len(W), 3, k))
        parameters[:, 0], errors[:, 0] = np.log(values), np.sqrt(relative[0][1]) / values
        T = total[:, None]
        for i, (value, variance, together) in enumerate(relative, start=1):
            # log s = log lambda - log T; d logit(s) = d log(s) / (1 - s)
            square = variance / value**2 - 2.0 * together / (value * T) + (covariance[:, k, k] / total**2)[:, None]
            rest = np.maximum(1.0 - value / T, EPS)
            parameters[:, i], errors[:, i] = np.log(value / T / rest), np.sqrt(np.maximum(square, 0.0)) / rest
        return Statistics(parameters, np.maximum(errors, EPS), axes)

    def _squares_along(self, axes: np.ndarray, mean: np.ndarray, out: np.ndarray) -> None:
        """Sums over each group of the squared scores along new axes, about a new mean: into ``out`` (b, G, k)."""
        count, scores, products = self.sums.weight, self.sums.scores, self.sums.products
        k = scores.shape[1]
        centre = (mean[:, None, :] @ axes)[:, 0]
        if self.single:
            np.matmul(scores / count[:, None], axes, out=out)
            out -= centre[:, None, :]
            out *= out
            out *= count[:, None]
            return
        turned = (products.reshape(-1, k) @ axes).reshape(len(axes), -1, k, k)
        np.einsum("bgik,bik->bgk", turned, axes, out=out)
        out -= 2.0 * (scores @ axes) * centre[:, None, :]
        out += count[:, None] * centre[:, None, :] ** 2

    @property
    def latent(self) -> np.ndarray:
        """Variances of the components, as ``KPCAModel.latent``."""
        return self.values[0] * (self.n / (self.n - self.center))

    # The variance outside the components is known in sum only. Its largest eigenvalue is at most that sum, and at most
    # the smallest of the components.

    @property
    def _largest_outside(self) -> float:
        return min(float(self.values[0, -1]), float(self.sums.outside) / self.n)

    def outside_bias(self) -> np.ndarray:
        """Mean change of each parameter by the variance outside the components: (3, k), to first order.

        sum_k E[z_j^2 z_k^2] / (lambda_j - lambda_k) / N, with half of the largest possible lambda_k for all.
        """
        values, total = self.values[0], float(self.sums.squares.sum()) / self.n
        added = self.sums.beside / self.n / self.n / (values - 0.5 * self._largest_outside)
        cumulative = np.cumsum(values)
        rest = [np.maximum(1.0 - x / total, EPS) for x in (values, cumulative)]
        by_log = np.minimum(added / values, 0.5)
        return np.stack([by_log, by_log / rest[0], np.minimum(np.cumsum(added) / cumulative, 0.5) / rest[1]])

    def outside_turn(self) -> np.ndarray:
        """Bound on the expected squared sine of the angle by which sampling turns each component outwards, (k,)."""
        gap = self.values[0] - self._largest_outside
        moved = self.sums.beside / self.n / self.n
        some = moved > EPS * self.values[0] ** 2
        return np.where(some, moved / np.where(gap > 0.0, gap, 1.0) ** 2 + np.where(gap > 0.0, 0.0, np.inf), 0.0)


def resampled(sample: Sample, times: int, seed: int, n_threads: int, progress: parallel.Progress | None) -> Statistics:
    """The statistics of b resamples."""
    groups, k = sample.sums.scores.shape
    together = parallel.tile_rows(groups * (k + 1) * (1 if sample.single else k), least=1)

    def task(i: int) -> Statistics:
        size = min(together, times - i * together)
        rng = np.random.default_rng((seed, i))
        return sample.statistics(rng.multinomial(groups, np.full(groups, 1.0 / groups), size=size).astype(np.float64))

    n_tasks = -(-times // together)
    parts = parallel.run(task, n_tasks, n_threads=n_threads, progress=progress, stage="bootstrap")
    return Statistics(*(np.concatenate(arrays) for arrays in zip(*parts)))

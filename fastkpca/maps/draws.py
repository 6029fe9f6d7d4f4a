"""Random rows, drawn in proportion to their residual, and the residual matrix K - Phi Phi' of these rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..base import parallel
from ..base.protocol import FeatureMap, Kernel
from ..base.rounding import UNIT, UNIT32, rounding_factor
from ..base.stored import Record
from ..rows.view import Rows

DRAWS = 4096
"""Rows drawn in a pass."""
RESERVOIR_ROWS = 2048
"""Rows that a model of a stream keeps: a bound from them is log(1 / failure) / 2048 of the residual trace, at least."""

JOIN_SEED = int.from_bytes(b"join", "big")
"""Stream of the random numbers by which reservoirs are joined, independent of that by which rows are drawn."""


@dataclass(frozen=True)
class Draws:
    """Row numbers drawn independently, with replacement, each in proportion to its residual.

    Attributes
    ----------
    first : int
        Number of the first task that saw the rows; in a reservoir the number of joins behind it. A seed, which makes
        the random numbers of a join different from those of the joins before.
    total : float
        Sum of the residuals of all rows seen.
    index : ndarray (s,), int
    residual : ndarray (s,)
        Residuals of the rows drawn, times their weight.
    """

    first: int
    total: float
    index: np.ndarray
    residual: np.ndarray

    def only(self, which: slice) -> Draws:
        """Some of the draws: independent of the others."""
        return replace(self, index=self.index[which], residual=self.residual[which])

    def join(self, other: Draws, seed: int) -> Draws:
        """Draws from the rows of both: slot by slot one or the other, in proportion to what either stands for. They
        stay independent, and the memory does not grow with the rows."""
        total = self.total + other.total
        random = np.random.default_rng([seed, self.first, other.first]).random(len(self.index))
        take = random * total < other.total
        index = np.where(take, other.index, self.index)
        return Draws(self.first, total, index, np.where(take, other.residual, self.residual))


@dataclass(frozen=True)
class Reservoir:
    """Rows drawn in proportion to their residual, as `Draws`, with all that features which are added later need.

    Attributes
    ----------
    draws : Draws
        ``index`` counts the rows below.
    rows : ndarray (s, d)
    residual : ndarray (s,)
        Residual of each row with the map at the time it was drawn, without weights.
    """

    draws: Draws
    rows: np.ndarray
    residual: np.ndarray

    @classmethod
    def of(cls, draws: Draws | None, rows: Rows) -> Reservoir | None:
        """Reservoir of the rows of a pass; None where they come in order only, or their residuals are not known."""
        if draws is None or rows.sequential:
            return None
        first = draws.only(slice(RESERVOIR_ROWS))
        residual = first.residual
        if rows.weights is not None:
            weights = np.asarray(rows.weights[first.index], dtype=np.float64)
            residual = np.divide(residual, weights, out=np.zeros_like(residual), where=weights > 0.0)
        s = len(first.index)
        return cls(replace(first, first=0, index=np.arange(s)), rows.take(first.index), residual)

    def join(self, other: Reservoir | None) -> Reservoir | None:
        """Reservoir of the rows of both; None where one is not known."""
        s = len(self.rows)
        if other is None or len(other.rows) != s:
            return None
        draws = self.draws.join(replace(other.draws, index=other.draws.index + s), JOIN_SEED)
        pairs = (self.rows, other.rows), (self.residual, other.residual)
        rows, residual = (np.concatenate(pair)[draws.index] for pair in pairs)
        # more than in either: with the random numbers of an earlier join, one part would take the slots of another
        joins = self.draws.first + other.draws.first + 1
        return Reservoir(replace(draws, first=joins, index=np.arange(s)), rows, residual)

    def scaled(self, factor: float) -> Reservoir:
        """The draws with the weight of every row multiplied."""
        draws = replace(self.draws, total=self.draws.total * factor, residual=self.draws.residual * factor)
        return replace(self, draws=draws)

    def features(self, feature_map: FeatureMap, first: int) -> np.ndarray:
        """The features from ``first`` on, which the rows lack, over the root of their residual: of length at most 1."""
        Phi = feature_map.features(self.rows)[:, first:]
        roots = np.sqrt(self.residual)[:, None]
        return np.divide(Phi, roots, out=np.zeros(Phi.shape), where=roots > 0.0)

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        header = {"first": self.draws.first, "total": self.draws.total}
        arrays = {"rows": self.rows, "drawn": self.draws.residual, "residual": self.residual}
        return header, arrays


def read_reservoir(record: Record, n_columns: int) -> Reservoir | None:
    """The reservoir in a model file, each value checked; None where the model has none."""
    if "reservoir" not in record.header:
        return None
    own = Record(record.get("reservoir"), record.arrays_under("reservoir."), "the reservoir")
    rows = own.array("rows", (None, n_columns))
    s = len(rows)
    drawn, residual = (own.array(name, (s,)) for name in ("drawn", "residual"))
    first, total = own.whole("first", least=0, most=1 << 62), own.number("total", least=0.0)
    own.refuse_the_rest()
    if min(drawn.min(initial=0.0), residual.min(initial=0.0)) < 0.0:
        raise own.refuse("a residual is negative")
    return Reservoir(Draws(first, total, np.arange(s), drawn), rows, residual)


def drawn_among(
    residuals: Sequence[np.ndarray | None], numbers: Sequence[np.ndarray], task: int, n_draws: int, seed: int
) -> Draws | None:
    """Draws among the rows of one task, given tile by tile; None where the residuals of a tile are not known."""
    known = [x for x in residuals if x is not None]
    if len(known) < len(residuals):
        return None
    residual = np.concatenate(known) if known else np.zeros(0)
    cumulative = np.cumsum(residual)
    total = float(cumulative[-1]) if len(cumulative) else 0.0
    if not total > 0.0:
        return Draws(task, 0.0, np.zeros(n_draws, dtype=np.intp), np.zeros(n_draws))
    random = np.random.default_rng([seed, task]).random(n_draws)
    at = np.minimum(np.searchsorted(cumulative, random * total, side="right"), len(residual) - 1)
    return Draws(task, total, np.concatenate(numbers)[at], residual[at])


def scaled_residuals(
    kernel: Kernel,
    feature_map: FeatureMap,
    X: np.ndarray,
    residual: np.ndarray,
    counts: np.ndarray,
    entry_error: float,
    n_threads: int = 1,
) -> tuple[np.ndarray, float]:
    """The matrix sqrt(c_i c_j / (r_i r_j)) (k(x_i, x_j) - phi(x_i).phi(x_j)), float32, and a bound on its error's norm.

    Parameters
    ----------
    kernel, feature_map
    X : ndarray (m, d)
    residual, counts : ndarray (m,)
        r > 0 and c.
    entry_error : float
        Bound on the error of a kernel value.

    Notes
    -----
    The error, with t = sum c_i k(x_i, x_i) / r_i and e = sum c_i / r_i, the squared norms of scaled features and of
    scaled ones: features that are computed twice differ (by ``rounding``, or by what the map's defect says of its
    triangular solves). What is not semidefinite is bounded by ``defect_norm``; products of D terms round; so do kernel
    values, and the matrix when it is stored, whose norm is at most its trace sum c_i.
    """
    m, scale = len(X), np.sqrt(counts / residual)
    parts = parallel.shares(m, 0.5 * m * feature_map.n_features**2)
    features = parallel.run(lambda i: feature_map.features(X[parts[i]]), len(parts), n_threads=n_threads)
    Phi = np.concatenate(list(features))
    matrix = np.empty((m, m), dtype=np.float32)
    step = parallel.tile_rows(m)
    starts = range(0, m, step)[::-1]  # the longest first

    def task(i: int) -> None:
        start = starts[i]
        stop = min(m, start + step)
        strip = kernel.block(X[start:stop], X[:stop]) - Phi[start:stop] @ Phi[:stop].T
        strip *= scale[start:stop, None]
        strip *= scale[:stop]
        matrix[start:stop, :stop] = strip
        matrix[:start, start:stop] = strip[:, :start].T

    parallel.each(task, len(starts), n_threads=n_threads)
    ones = float((counts / residual).sum())
    trace = 1.01 * float(kernel.diagonal(X) @ (counts / residual))
    defect = feature_map.defect_norm(ones, trace)
    displaced = 4.0 * (feature_map.rounding * np.sqrt(trace) + np.sqrt(defect))
    error = 2.0 * np.sqrt(trace) * displaced + displaced**2 + defect
    error += (2.0 * rounding_factor(feature_map.n_features) + 8.0) * UNIT * trace + entry_error * ones
    return matrix, float(error + 1.01 * UNIT32 * counts.sum())

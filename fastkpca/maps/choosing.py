"""Pivots, chosen among candidates by randomly pivoted Cholesky, and added where all rows have most of the residual.

They are drawn in proportion to the residual diagonal (Chen, Epperly, Tropp, Webber 2025, doi:10.1002/cpa.22234), in
blocks with rejection. That leaves their distribution as it is and makes the work BLAS 3 (Epperly, Tropp, Webber 2024,
arXiv:2410.03969).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import pivots as _core
from ..base import parallel
from ..base.protocol import FeatureMap, Kernel
from ..base.rounding import UNIT
from ..rows.summary import SAMPLE_ROWS
from ..rows.view import Pass, Rows
from .draws import DRAWS, Draws, drawn_among
from .pivots import PivotMap, diagonal_of, values_of

__all__ = [
    "SAMPLE_ROWS",
    "Candidates",
    "Selection",
    "candidates_for",
    "check_kernel",
    "features_of",
    "pivot_map",
    "random_pivots",
    "refined",
    "residual_draws",
    "second_round",
    "selected",
]

PROPOSED_PIVOTS = 128
"""Most pivots proposed at once: enough for BLAS 3, few enough that rejection (b^3 / 3 flops, one thread) is cheap."""
CANDIDATE_ROWS_PER_PIVOT = 4
"""Rows, for each pivot, that are enough to choose pivots among."""
SURE_DRAWS = 8.0
"""A row expected this often among independent draws is missed once in three thousand times."""


@dataclass
class Selection:
    """Numbers of the pivots, the judged residual trace after each, whether nothing but rounding is left, and features.

    The features (k, n) are those of all candidates.
    """

    index: np.ndarray
    trace: np.ndarray
    exhausted: bool
    features: np.ndarray


@dataclass
class Candidates:
    """Rows that pivots are drawn from, and the number of rows that they represent.

    Attributes
    ----------
    rows : ndarray (n, d)
    diagonal, weights : ndarray (n,)
        k(x, x), and what a row's residual counts.
    shares : ndarray (n,), optional
        Where a row stands for rows that are not here: for how many draws; 0: for itself alone.
    features : ndarray (k, n), optional
        Features that are already taken.
    """

    rows: np.ndarray
    diagonal: np.ndarray
    weights: np.ndarray
    shares: np.ndarray | None = None
    features: np.ndarray | None = None


class _Judgement:
    """The residual trace of all rows, as the candidates tell it.

    Estimated from the rows that are not pivots, scaled up, plus two standard errors, where the rows are a sample (the
    residuals of pivots are zero and tell nothing of other rows).
    """

    def __init__(self, candidates: Candidates):
        n, weights = len(candidates.rows), candidates.weights
        self.shares = np.zeros(n) if candidates.shares is None else candidates.shares.astype(np.float64)
        self.weights, self.all_shares = weights, float(self.shares.sum())
        self.parts = np.stack([weights * (self.shares == 0.0), weights * (self.shares > 0.0)], axis=1)

    def after(self, picked: np.ndarray, residual: np.ndarray, of_each: np.ndarray, of_rows: np.ndarray) -> np.ndarray:
        """After each of the pivots ``picked``, for the sums of their squared features: what is beyond the target can
        then be dropped. ``residual`` is that before them."""
        sums = np.maximum(residual @ self.parts - np.cumsum(of_each, axis=0), 0.0)
        judged: np.ndarray = sums[:, 0]
        if self.all_shares:
            left = self.shares.sum() - np.cumsum(self.shares[picked])
            self.shares[picked] = 0.0
            ahead = np.maximum(residual - of_rows, 0.0)
            margin = 1.0 + 2.0 * _relative_error(self.weights * ahead, self.shares)
            judged = judged + sums[:, 1] * np.where(left > 0.0, margin * self.all_shares / np.maximum(left, 1.0), 1.0)
        return judged


def selected(
    kernel: Kernel,
    candidates: Candidates,
    target: float,
    max_pivots: int,
    rng: np.random.Generator,
    entry_error: float = 0.0,
    n_threads: int = 1,
) -> Selection:
    """Draw pivots from the candidates until sum(weights * residual) <= target.

    ``trace`` of the selection records the judgement after 0, 1, 2, ... pivots.
    """
    S, weights, start = candidates.rows, candidates.weights, candidates.features
    n = len(S)
    done = 0 if start is None else len(start)
    F = np.empty((done + min(max_pivots, 2 * PROPOSED_PIVOTS), n))
    residual = candidates.diagonal.copy()
    if start is not None:
        F[:done] = start
        residual = np.maximum(residual - np.einsum("ij,ij->j", start, start), 0.0)
    floor = 16 * UNIT * candidates.diagonal + 2.0 * entry_error  # below it a residual is noise
    judgement, trace = _Judgement(candidates), [float(weights @ residual)]
    chosen: list[np.ndarray] = []
    count = 0
    while trace[-1] > target and count < max_pivots:
        k = done + count
        size = min(n, max_pivots - count, max(64, min(PROPOSED_PIVOTS, k // 2)))
        proposed = _proposed(np.where(residual > floor, weights * residual, 0.0), size, rng)
        if not len(proposed):
            break
        if k + size > len(F):
            F = np.concatenate([F[:k], np.empty((min(max(k, PROPOSED_PIVOTS), done + max_pivots - k), n))])
        accepted, new = _features_of_accepted(kernel, S, F, k, proposed, rng.random(size), floor, n_threads)
        if len(accepted) == 0:  # residuals that were rounding: strike them out, and end when none is left
            residual[proposed] = 0.0
            continue
        of_each, of_rows = _squares(new, judgement.parts, n_threads)
        judged = judgement.after(accepted, residual, of_each, of_rows)
        reached = np.flatnonzero(judged <= target)
        m = int(reached[0]) + 1 if len(reached) else len(accepted)
        residual = np.maximum(residual - (of_rows if m == len(new) else (new[:m] ** 2).sum(axis=0)), 0.0)
        residual[accepted[:m]] = 0.0
        chosen.append(accepted[:m])
        trace.extend(judged[:m])
        count += m
    index = np.concatenate(chosen) if chosen else np.empty(0, dtype=np.intp)
    exhausted = trace[-1] > target and count < max_pivots
    return Selection(index, np.asarray(trace), exhausted, F[: done + count])


def _proposed(weights: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers drawn in proportion to the weights; none where all weights are zero."""
    cumulative = np.cumsum(weights)
    if not cumulative[-1] > 0.0:
        return np.empty(0, dtype=np.intp)
    drawn = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return np.minimum(drawn, len(weights) - 1)


def _features_of_accepted(
    kernel: Kernel,
    S: np.ndarray,
    F: np.ndarray,
    k: int,
    proposed: np.ndarray,
    draws: np.ndarray,
    floor: np.ndarray,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """(which of the proposed rows of S are accepted as pivots, their features of all rows), after the first k of F.

    The features are written behind these.
    """
    F_proposed = np.ascontiguousarray(F[:k, proposed].T)
    S_proposed = S[proposed]
    H = values_of(kernel, S_proposed, S_proposed)
    H -= F_proposed @ F_proposed.T
    accepted, L = _core.accept(H, draws, floor[proposed])
    if len(accepted) == 0:
        return proposed[:0], np.empty((0, len(S)))
    new = F[k : k + len(accepted)]
    features_of(kernel, S_proposed[accepted], L, S, n_threads, new, F[:k], F_proposed[accepted])
    return proposed[accepted], new


def _squares(new: np.ndarray, parts: np.ndarray, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squared features (k, n): over the rows with both weights of ``parts`` (n, 2), and for each row."""
    of_rows = np.empty(new.shape[1])
    pieces = parallel.shares(len(of_rows), parallel.FLOPS_PER_NUMBER * new.size)

    def task(i: int) -> np.ndarray:
        squares = new[:, pieces[i]] ** 2
        squares.sum(axis=0, out=of_rows[pieces[i]])
        return np.asarray(squares @ parts[pieces[i]])

    return parallel.tree_reduce(task, len(pieces), np.add, n_threads=n_threads), of_rows


def features_of(
    kernel: Kernel,
    pivots: np.ndarray,
    L: np.ndarray,
    S: np.ndarray,
    n_threads: int,
    out: np.ndarray,
    F: np.ndarray | None = None,
    F_pivots: np.ndarray | None = None,
) -> None:
    """Features that the pivots add to the rows of S after features F, if any: L^-1 (k(pivots, S) - F_pivots F)."""
    done = np.empty((0, len(S))) if F is None else F
    coefficients = np.empty((len(pivots), 0)) if F_pivots is None else np.ascontiguousarray(F_pivots)
    parts = parallel.shares(len(S), len(S) * len(pivots) * (parallel.FLOPS_PER_NUMBER + len(done) + len(pivots) / 2))

    def task(i: int) -> None:
        new = values_of(kernel, pivots, S[parts[i]])
        _core.project_out(new, done[:, parts[i]], coefficients)
        _core.solve(L, new)
        out[:, parts[i]] = new

    parallel.each(task, len(parts), n_threads=n_threads)


def _relative_error(values: np.ndarray, shares: np.ndarray) -> float:
    """Standard error of the sum of ``values`` over the sum, for rows that stand for ``shares`` draws (0: left out)."""
    kept = shares > 0.0
    values, shares = values[kept], shares[kept]
    count, total = float(shares.sum()), float(values.sum())
    if count < 2.0 or not total > 0.0:
        return 0.0
    mean = total / count
    return float(np.sqrt(shares @ (values / shares - mean) ** 2)) / total


def check_kernel(kernel: Kernel, diagonal: np.ndarray) -> None:
    if not kernel.positive_semidefinite:
        raise ValueError(f"pivoted Cholesky needs a positive semidefinite kernel, and {kernel!r} does not declare it")
    if not (np.isfinite(diagonal).all() and (diagonal >= 0.0).all()):
        raise kernel.refusal("declares itself positive semidefinite but has negative or infinite k(x, x)")


def pivot_map(
    kernel: Kernel,
    sample_or_rows: np.ndarray | Rows,
    *,
    tol: float,
    max_features: int,
    rng: np.random.Generator,
    n_samples: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
    entry_error: float | None = None,
    n_threads: int = 1,
) -> PivotMap:
    """Feature map of randomly pivoted Cholesky with predicted residual trace over trace at most ``tol``.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite.
    sample_or_rows : ndarray (n, d) or Rows
        Where pivots are drawn from: a sample (``Summary.sample``), or rows of which at most ``sample_rows`` are taken.
    tol : float
        Residual trace over trace.
    max_features : int
    rng : numpy.random.Generator
    n_samples : int, optional
        How many rows the sample stands for; by default it is all there is. Where it stands for more, the prediction
        leaves the pivots themselves out and adds two standard errors.
    entry_error : float, optional
        ``Kernel.entry_error`` of the data; None: the certificate is of the values that ``block`` returns.

    Returns
    -------
    PivotMap
        ``reached`` is False where ``max_features`` pivots did not suffice, or where what is left is rounding;
        ``predicted`` says what was reached.
    """
    if isinstance(sample_or_rows, Rows):
        n_samples = sample_or_rows.n_samples
        if n_samples > sample_rows:
            index = np.sort(rng.choice(n_samples, sample_rows, replace=False))
            S = sample_or_rows.take(index)
        else:
            S = sample_or_rows.all()
    else:
        S = np.ascontiguousarray(sample_or_rows, dtype=np.float64)
    n = len(S)
    diagonal = diagonal_of(kernel, S)
    check_kernel(kernel, diagonal)
    trace = float(diagonal.sum())
    shares = np.ones(n) if n_samples is not None and n_samples > n else None
    error = entry_error or 0.0
    candidates = Candidates(S, diagonal, np.ones(n), shares)
    selection = selected(kernel, candidates, tol * trace, max_features, rng, error, n_threads)
    pivots, judged = S[selection.index], float(selection.trace[-1])
    del selection  # its features take as much memory as what follows
    return PivotMap(kernel, pivots, entry_error=error)._judge(judged, trace, n, tol)


def candidates_for(count: int, n: int) -> int:
    """Number of candidate rows for m pivots among n: all of a few thousand, so that no far row is missed; a quarter of
    more rows, where these are enough to choose well."""
    return n if n <= SAMPLE_ROWS else max(CANDIDATE_ROWS_PER_PIVOT * count, n // 4)


def random_pivots(
    kernel: Kernel,
    S: np.ndarray,
    count: int,
    rng: np.random.Generator,
    entry_error: float = 0.0,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Numbers of ``count`` rows of S by randomly pivoted Cholesky; fewer where nothing but rounding is left."""
    diagonal = diagonal_of(kernel, S)
    check_kernel(kernel, diagonal)
    weights = np.ones(len(S)) if weights is None else weights
    return selected(kernel, Candidates(S, diagonal, weights), 0.0, count, rng, entry_error).index


def second_round(
    old: PivotMap,
    rows: Rows,
    *,
    tol: float,
    max_features: int,
    rng: np.random.Generator,
    seen: tuple[float, Draws] | None = None,
    n_draws: int = DRAWS,
    nested: bool = False,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
) -> tuple[PivotMap, float]:
    """The map with pivots added where the residual of all rows lies.

    Pivots drawn on a sample miss a small far cluster. Here rows are drawn from all of them in proportion to their
    residual under ``old``. Pivoting goes on among these, weighted so that the sum it stops on estimates the
    residual trace of all rows. That takes one pass; ``seen`` is what one has found already: the trace of K, and the
    draws. ``nested``: the first features stay those of ``old``, so that moments of other rows can still be used.

    Returns
    -------
    PivotMap
        ``old`` itself where its residual over all rows is already at most ``tol``.
    float
        Residual trace over trace of ``old`` over all rows, exact up to rounding.
    """
    trace, draws = seen or residual_draws(old, rows, rng, n_draws=n_draws, n_threads=n_threads, progress=progress)
    total, n_draws = draws.total, len(draws.index)
    before = total / trace if trace > 0.0 else 0.0
    if before <= tol or old.n_features >= max_features:
        return old, before
    index, position, counts = np.unique(draws.index, return_index=True, return_counts=True)
    S = rows.take(index)
    expected = draws.residual[position] * (n_draws / total)
    # rows that were all but sure to be drawn stand for themselves, the others for those that were not
    known = expected >= SURE_DRAWS
    weights = np.where(known, 1.0, counts / expected)
    if rows.weights is not None:
        weights *= np.asarray(rows.weights[index], dtype=np.float64)
    start = np.ascontiguousarray(old.features(S).T)
    shares = np.where(known, 0.0, counts)
    candidates = Candidates(S, diagonal_of(old.kernel, S), weights, shares, start)
    error = old.entry_error
    selection = selected(old.kernel, candidates, tol * trace, max_features - old.n_features, rng, error, n_threads)
    if not len(selection.index):
        return old, before
    added = S[selection.index]
    if nested:
        new = old.extended(added)
    else:
        new = PivotMap(old.kernel, np.concatenate([old.pivots, added]), entry_error=old.entry_error)
    total_rows = rows.n_samples if rows.weights is None else float(np.sum(rows.weights, dtype=np.float64))
    new._judge(float(selection.trace[-1]), trace, total_rows, tol)
    return new, before


def refined(feature_map: FeatureMap, rows: Rows, **options: Any) -> FeatureMap:
    """A map with pivots added where these rows have most of the residual, as ``second_round`` does; the map itself
    where that is not of pivots."""
    return second_round(feature_map, rows, **options)[0] if isinstance(feature_map, PivotMap) else feature_map


def residual_draws(
    feature_map: PivotMap,
    rows: Rows,
    rng: np.random.Generator,
    *,
    n_draws: int = DRAWS,
    each: Callable[[slice, np.ndarray], None] | None = None,
    n_threads: int = 1,
    progress: parallel.Progress | None = None,
) -> tuple[float, Draws]:
    """The trace of K, and rows drawn in proportion to their residual.

    ``each`` is called with the features of every tile, in any order.
    """
    seed = int(rng.integers(2**63))
    step = parallel.tile_rows(max(feature_map.n_features, rows.n_features))
    n = rows.n_samples

    def task(rows: Rows, i: int) -> tuple[float, Draws]:
        start, stop = i * step, min(n, (i + 1) * step)
        X = np.ascontiguousarray(rows.tile(start, stop), dtype=np.float64)
        Phi = feature_map.features(X)
        if each is not None:
            each(slice(start, stop), Phi)
        residual, diagonal = feature_map.residual(X, Phi), diagonal_of(feature_map.kernel, X)
        w = rows.tile_weights(start, stop)
        if w is not None:
            residual, diagonal = np.where(w > 0, w * residual, 0.0), np.where(w > 0, w * diagonal, 0.0)
        draws = drawn_among([residual], [np.arange(start, stop)], i, n_draws, seed)
        assert draws is not None
        return float(diagonal.sum()), draws

    n_threads = n_threads if feature_map.kernel.thread_safe else 1
    over = Pass(
        "residual of the pivots",
        task,
        step,
        lambda a, b: (a[0] + b[0], a[1].join(b[1], seed)),
        alone=not feature_map.kernel.thread_safe,
    )
    trace, draws = rows.reduce(over, n_threads=n_threads, progress=progress)
    return trace, draws

"""The number of pivots that a tolerance needs, estimated from pivots on a small sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse.linalg

from ..base import parallel
from ..base.protocol import Kernel, Summary
from .choosing import Candidates, Selection, check_kernel, features_of, selected
from .pivots import diagonal_of, values_of

MIN_PROBED_ROWS = 65
"""Rows that tell something of the residual's largest eigenvalue."""


@dataclass(frozen=True)
class RankProbe:
    """Estimate of the rank at any tolerance, from pivots on a small sample.

    Attributes
    ----------
    curve : ndarray
        Predicted residual trace over trace after 0, 1, 2, ... pivots.
    exhausted : bool
        The residual after the last pivot of the curve is rounding alone.
    held_out : tuple of (int, float, float)
        After m pivots, on rows that they were not chosen from: m, residual trace over trace, and an estimate of
        the largest eigenvalue of the residual, over its trace.
    of_fewer : tuple of ndarray
        The same curve on a quarter of the sample, and on half of it: more rows need more pivots.
    doublings : float
        Binary logarithm of the number of all rows over those of the sample.
    """

    curve: np.ndarray
    exhausted: bool
    held_out: tuple[tuple[int, float, float], ...] = ()
    of_fewer: tuple[np.ndarray, ...] = ()
    doublings: float = 0.0

    def rank(self, tol: float) -> float:
        """Number of pivots predicted for ``tol``; beyond the curve extrapolated, inf where it does not fall."""
        of_curve = float(np.ceil(self._rank_of_sample(tol) * self._growth(tol)))
        if not self.held_out:
            return of_curve
        ranks = np.geomspace(1.0, 1e5, 400)
        enough = np.flatnonzero(self.held_out_residual(ranks) <= tol)
        held_out = float(np.ceil(ranks[enough[0]])) if len(enough) else np.inf
        return max(min(held_out, float(np.ceil(of_curve + self._far_rows(tol)))), of_curve)

    def _far_rows(self, tol: float) -> float:
        """Pivots that bring what is left of other rows to ``tol``, where it is that of a few far ones.

        Each takes the largest eigenvalue's share of what is left. There are more such rows than in the sample, as there
        are more rows. Without them, pivots for rows with heavy tails are predicted 3 to 100 times too cheap.
        """
        _, left, share = self.held_out[1]
        if not 0.0 < tol < left or not share < 1.0:
            return 0.0 if left <= tol else np.inf
        return 2.0**self.doublings * np.log(left / tol) / -np.log1p(-share)

    def _growth(self, tol: float) -> float:
        """Pivots for all rows over those for the sample.

        Each doubling of the rows adds about the same number as the one before, on rows with tails, or a part of it, on
        rows in a box, whose numbers of pivots have a limit.
        """
        reached = max(tol, *(float(x[-1]) for x in (self.curve, *self.of_fewer)))
        if len(self.of_fewer) < 2 or not 0.0 < reached < 1.0:
            return 1.0
        quarter, half, whole = (int(np.count_nonzero(x > reached)) for x in (*self.of_fewer, self.curve))
        added, before = max(whole - half, 0), max(half - quarter, 1)
        doublings = np.arange(1.0, self.doublings + 1.0)
        return 1.0 + added / max(whole, 1) * float(np.sum(min(added / before, 1.0) ** doublings))

    def _rank_of_sample(self, tol: float) -> float:
        below = np.flatnonzero(self.curve <= tol)
        if len(below):
            return float(below[0])
        last = len(self.curve) - 1
        if self.exhausted:
            return float(last)
        slope, power = self._tail()
        if not (slope > 0.0 and tol > 0.0):
            return float("inf")
        fall = (np.log(self.curve[last]) - np.log(tol)) / slope
        with np.errstate(over="ignore"):
            growth = np.exp(fall) if power < 1e-3 else (1.0 + power * fall) ** (1.0 / power)
        return float(np.ceil(last * growth))

    def residual(self, rank: np.ndarray) -> np.ndarray:
        """Predicted residual trace over trace after m pivots."""
        last = len(self.curve) - 1
        within = self.curve[np.minimum(rank, last).astype(np.intp)]
        slope, power = self._tail()
        if self.exhausted or not slope > 0.0:
            return within
        growth = np.maximum(rank, last) / last
        fall = np.log(growth) if power < 1e-3 else (growth**power - 1.0) / power
        return np.where(rank <= last, within, self.curve[last] * np.exp(-slope * fall))

    def held_out_residual(self, rank: np.ndarray) -> np.ndarray:
        """``residual``, of rows that the pivots were not chosen from: these have more, the more pivots there are.

        After the end of the curve it lies between two extrapolations: by the power of the rank by which these rows'
        residual fell before, which is mostly too little, and as the curve, which is mostly too much.
        """
        (k0, t0, _), (k1, t1, _) = self.held_out
        if not self.curve[k1] > 0.0:
            return np.minimum(self.residual(rank) + t1, 1.0)
        more0, more1 = t0 / self.curve[k0], t1 / self.curve[k1]
        power = max(np.log(more1 / more0) / np.log(k1 / k0), 0.0)
        more = max(more1, 1.0) * (np.minimum(np.maximum(rank, 1.0), k1) / k1) ** power
        within = self.residual(np.minimum(rank, k1)) * np.maximum(more, 1.0)
        beyond = np.maximum(rank, k1) / k1
        with np.errstate(divide="ignore"):
            of_curve = np.log(self.residual(np.maximum(rank, k1)) / self.curve[k1])
        slope = max(np.log(t0 / t1) / np.log(k1 / k0), 0.0)
        return np.minimum(within * np.exp(0.25 * of_curve - 0.75 * slope * np.log(beyond)), 1.0)

    def largest_share(self, rank: np.ndarray, n: np.ndarray) -> np.ndarray:
        """The largest eigenvalue of the residual of m pivots, over its trace, on n rows drawn by residual."""
        (k0, _, x0), (k1, _, x1) = self.held_out
        power = np.clip(np.log(x0 / x1) / np.log(k1 / k0), 0.0, 1.0)  # it falls as a power of their number
        return np.minimum((np.sqrt(x1 * (k1 / np.maximum(rank, 1.0)) ** power) + np.sqrt(1.0 / n)) ** 2, 1.0)

    def _tail(self) -> tuple[float, float]:
        """The slope of -log t over log k at the end of the curve, and p: log t = a - b k^p goes on from there.

        p is between 0 (algebraic decay) and 1 (exponential), by the slopes in the last two thirds of the curve. A slope
        of zero: it does not fall, or the curve is too short.
        """
        last = len(self.curve) - 1
        if last < 6 or not self.curve[last] > 0.0:
            return 0.0, 0.0
        k0, k1 = last // 3, (2 * last) // 3
        t0, t1, t2 = (np.log(self.curve[k]) for k in (k0, k1, last))
        early = (t0 - t1) / np.log(k1 / k0)
        late = (t1 - t2) / np.log(last / k1)
        if not late > 0.0:
            return 0.0, 0.0
        power = np.log(late / early) / np.log(np.sqrt(last / k0)) if early > 0.0 else 0.0
        power = min(1.0, max(0.0, float(power)))
        # at the end of the curve, not at the middle of its last third
        return float(late * np.sqrt(last / k1) ** power), power


def probe_rank(
    kernel: Kernel,
    summary: Summary,
    tol: float,
    rng: np.random.Generator,
    *,
    max_probe: int = 256,
    sample_rows: int = 1024,
    held_out: bool = False,
    n_threads: int = 1,
) -> RankProbe:
    """Pivots to ``tol``, at most ``max_probe`` of them, on ``sample_rows`` rows of the sample.

    ``held_out``: compute their residual on other rows, too.
    """
    S, others = summary.sample, summary.sample[:0]
    if len(S) > sample_rows:
        chosen = np.sort(rng.choice(len(S), sample_rows, replace=False))
        S, others = S[chosen], np.delete(S, chosen, axis=0)
    n = len(S)
    diagonal = diagonal_of(kernel, S)
    check_kernel(kernel, diagonal)
    trace = float(diagonal.sum())
    shares = np.ones(n) if summary.n_samples > n else None
    candidates = Candidates(S, diagonal, np.ones(n), shares)
    selection = selected(kernel, candidates, tol * trace, min(max_probe, n), rng, n_threads=n_threads)
    curve = selection.trace / trace if trace > 0.0 else np.zeros(1)
    parts = (4, 2) if shares is not None and n >= 4 else ()
    fewer = [_curve(kernel, np.ascontiguousarray(S[::part]), tol, max_probe, n_threads) for part in parts]
    if len(others) < n // 2:
        others = np.delete(S, selection.index, axis=0)
    spread = np.linspace(0, len(others) - 1, min(n, len(others))).astype(np.intp)
    of_held_out = _held_out_residuals(kernel, S, others[spread], selection, rng, n_threads) if held_out else ()
    doublings = float(np.log2(summary.n_samples / n))
    return RankProbe(curve, selection.exhausted, of_held_out, tuple(fewer), doublings)


def _curve(kernel: Kernel, S: np.ndarray, tol: float, max_probe: int, n_threads: int) -> np.ndarray:
    """Residual trace over trace after 0, 1, 2, ... pivots."""
    diagonal, n = diagonal_of(kernel, S), len(S)
    trace = float(diagonal.sum())
    if not trace > 0.0:
        return np.zeros(1)
    candidates = Candidates(S, diagonal, np.ones(n), None)
    rng = np.random.default_rng(0)
    return selected(kernel, candidates, tol * trace, min(max_probe, n), rng, n_threads=n_threads).trace / trace


def _corrected_fraction(share: float, n: int) -> float:
    """The share of all rows, of that of a sample of n: for a flat spectrum it is that much larger (Marchenko and Pastur
    1967), for one large eigenvalue less so."""
    return max(float(np.sqrt(share)) - float(np.sqrt(1.0 / n)), 0.0) ** 2


def _held_out_residuals(
    kernel: Kernel,
    S: np.ndarray,
    others: np.ndarray,
    selection: Selection,
    rng: np.random.Generator,
    n_threads: int,
) -> tuple[tuple[int, float, float], ...]:
    """``RankProbe.held_out`` after half of the pivots, and after all, on ``others``, half of which are drawn again in
    proportion to their residual."""
    k, n, diagonal = len(selection.index), len(others), diagonal_of(kernel, others)
    if k < 8 or n < MIN_PROBED_ROWS:
        return ()
    # the features of the pivots themselves are the factor of their matrix
    factor = np.ascontiguousarray(selection.features[:, selection.index].T)
    F = np.empty((k, n))
    features_of(kernel, S[selection.index], factor, others, n_threads, F)
    drawn = []
    for rank in (k // 2, k):
        residual = np.maximum(diagonal - np.einsum("ij,ij->j", F[:rank], F[:rank]), 0.0)
        left = float(residual.sum())
        if not left > 1e-12 * diagonal.sum():
            return ()
        index, counts = np.unique(rng.choice(n, n // 2, p=residual / left), return_counts=True)
        drawn.append((rank, left, residual, index, counts))

    def task(i: int) -> tuple[int, float, float]:
        rank, left, residual, index, counts = drawn[i]
        few = np.ascontiguousarray(F[:rank, index])
        scale = np.sqrt(counts / residual[index])
        G = (values_of(kernel, others[index], others[index]) - few.T @ few) * scale[:, None] * scale
        share = _largest_eigenvalue(G) / counts.sum()
        return rank, left / float(diagonal.sum()), max(_corrected_fraction(share, n // 2), 0.1 / n)

    return tuple(parallel.run(task, len(drawn), n_threads=n_threads))


def _largest_eigenvalue(G: np.ndarray) -> float:
    """From below, by Lanczos's method, and closer than the rows tell."""
    if len(G) < 32:
        return float(np.linalg.eigvalsh(G)[-1])
    few = {"k": 1, "which": "LA", "tol": 1.0 / len(G), "v0": np.sqrt(G.diagonal()), "return_eigenvectors": False}
    with parallel.blas_threads():
        return float(scipy.sparse.linalg.eigsh(G, **few)[0])

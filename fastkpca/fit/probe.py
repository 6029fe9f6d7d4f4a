"""Probes of a few rows, before a route is chosen: how fast the eigenvalues fall, and how many pivots are needed."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.linalg import lapack

from ..base import parallel
from ..base.caching import cached_property
from ..base.protocol import Kernel, Summary
from ..base.rounding import UNIT
from ..maps.probe import RankProbe, probe_rank
from ..products.rates import RATE, eigen_seconds, pivots_cost, value_seconds
from ..rows.summary import spread_rows
from .problem import Problem

SIZES = ((64, 0), (192, 64), (192, 128), (384, 256), (384, 512))
"""Sizes of the probes, in their order: rows whose eigenvalues are computed, and pivots."""
ROWS_PER_PIVOT = 4
"""Rows that the pivots of a probe are chosen from, for each pivot."""
FIRST_WITH_PIVOTS = next(i for i, (_, pivots) in enumerate(SIZES) if pivots)
COST_FACTOR = 4.0
"""Factor by which a further probe, or the run, may change the predicted cost of a feature map (``random_set.py``)."""
EQUAL_FRACTION = 0.125
"""Leading eigenvalues of about the same size, over the rows of a probe, from which on these rows alone spread them."""


@dataclass(frozen=True, eq=False)
class SpectrumProbe:
    """Estimates from a probe of a few rows of the sample, before anything is run.

    Attributes
    ----------
    shares : ndarray
        Estimates of lambda_1 >= lambda_2 >= ... over tr K.
    pivots : RankProbe or None
        Pivots needed for a residual trace; None where none were chosen, or the kernel is not semidefinite.
    level : int
        Number of probes so far, so that ``SIZES[level]`` is the next one; 0: nothing is known.
    negative : float
        Root of the sum of squares of the negative eigenvalues, over tr K.
    n_samples : int
        Number of all rows.
    mean : float
        Mean of k(x, x) of the rows whose eigenvalues are computed.
    values : ndarray or None
        Kernel values of these rows, of a semidefinite kernel, where no pivots were chosen.
    equal : float
        Estimated number of about equal leading eigenvalues; ``size`` is their size over tr K (``_equal``).
    """

    shares: np.ndarray
    pivots: RankProbe | None
    level: int = 0
    negative: float = 0.0
    n_samples: int = 1
    mean: float = 1.0
    values: np.ndarray | None = None
    equal: float = 1.0
    size: float = 0.0

    def share(self, i: int) -> float:
        """lambda_i / tr K, i = 1, 2, ...; 0 from the first one that the probe did not resolve."""
        return float(self.shares[i - 1]) if i <= len(self.shares) else 0.0

    @cached_property
    def residual_of_rows(self) -> float:
        """Mean residual of a row by all other rows of the probe, over tr K / n; infinite where that is not known."""
        return inf if self.values is None else _residual_of_rows(self.values)

    @cached_property
    def first(self) -> float:
        """lambda_1 / tr K of all rows. Where m eigenvalues are about as large, a sample overrates the first."""
        values = self.spectrum[0]
        if self._equal:
            return float(values[0])
        m = np.count_nonzero(values > 0.5 * values[0])
        return float(values[0]) / (1.0 + np.sqrt(m / len(self.shares)) if m > 1 else 1.0) ** 2

    def leading(self, count: int) -> tuple[np.ndarray, float, float]:
        """lambda_1, ..., lambda_count over tr K of all rows, and the sums of those behind and of their squares.

        The unresolved eigenvalues fall by one factor, as far as they lie above ``least``, so that the sum of all is the
        trace.
        """
        (shares, beyond), least, n = self.spectrum, self.least, self.n_samples
        more, above = max(count - len(shares), 0), max(float(shares[-1]) - least, 0.0)
        left = max(n * beyond - max(n - len(shares), 0) * least, 0.0)
        fading = above / (left + above) if above else 1.0  # (of a factor next to 1, the difference would be none)
        factor = 1.0 - fading
        falling = above * factor ** np.arange(1, more + 1)
        last, rest = (float(falling[-1]) if more else above), max(n - max(count, len(shares)), 0)
        sums = [last * factor / fading, last**2 * factor**2 / (fading * (1.0 + factor))] if above else [left, 0.0]
        behind = rest * least + sums[0], rest * least**2 + 2.0 * least * sums[0] + sums[1]
        return np.append(shares, least + falling)[:count], *behind

    def count_of(self, fraction: float) -> int:
        """Estimated number of eigenvalues that sum up to this fraction of the trace."""
        shares, behind, _ = self.leading(self.n_samples - 1)
        sums = np.cumsum(shares)
        return int(np.searchsorted(sums, fraction * (sums[-1] + behind))) + 1

    @property
    def least(self) -> float:
        """Estimate of lambda_(n-1) / tr K of n rows, the smallest after centring, which falls with n."""
        s = len(self.shares)
        return min(float(self.shares[-2]) * s / self.n_samples, self.spectrum[1]) if s > 8 else 0.0

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, float]:
        """The resolved eigenvalues of all n rows over the trace, and the size of each unresolved one.

        A part of the trace spreads over more and more directions as n grows (all of it, for a narrow kernel). It adds
        1/s of itself to each of the s shares of a sample, but only 1/n to each of all n.
        """
        s, n = len(self.shares), self.n_samples
        half = (s + 1) // 2
        spread = s * float(self.shares[half : s - 1].mean()) if s > 8 else 0.0
        found = np.maximum(self.shares[:half] - spread * (1 / s - 1 / n), spread / n)
        if not (m := self._equal):
            return found, spread / n
        # behind the equal ones the others as the rows show them; where these are too few for that, all the same
        beyond = spread / n if m < half else (1.0 - m * self.size) / n
        found = np.append(self.size * _spread(m, n), np.append(found[m:], beyond))
        return np.minimum.accumulate(found), beyond

    @property
    def _equal(self) -> int:
        """Number of leading eigenvalues that are about equal, where a sample of so few rows spreads them; else 0."""
        m = round(min(self.equal, self.n_samples / 2.0))
        return m if m > EQUAL_FRACTION * len(self.shares) and m * self.size < 1.0 else 0


NO_PROBE = SpectrumProbe(np.zeros(1), None)
"""Probe of no rows, before the first one."""


def probe_cost(kernel: Kernel, data: Summary, level: int, *, held_out: bool = False) -> tuple[float, float]:
    """Predicted seconds and bytes of the probe of size ``SIZES[level]``, infinite where there is none; ``held_out`` as
    in ``probed``."""
    sample = len(data.sample)
    if level >= len(SIZES) or (level and sample <= ROWS_PER_PIVOT * SIZES[level - 1][1]):
        return inf, inf
    (rows, pivots), value = SIZES[level], value_seconds(kernel, data.n_features)
    seconds = RATE.look + rows**2 * value + eigen_seconds(rows, 0)
    n, k = min(ROWS_PER_PIVOT * pivots, sample), min(pivots, sample)
    if kernel.positive_semidefinite and pivots:
        # of all of the sample, of half of it and of a quarter; held-out rows take about the same time again
        parts = (
            pivots_cost(pivots, RATE.features * value, 1.0, candidates=ROWS_PER_PIVOT * pivots // x) for x in (1, 2, 4)
        )
        seconds += (2.0 if held_out else 1.0) * sum(x.setup_flops for x in parts) / RATE.features
    copies = 2.0 * data.sample.size if k else 0.0
    features = 3.0 * k * n  # as they grow, with new ones, or these and those of the held-out rows
    drawn = 0.4 * n if held_out and k else 0.0  # different ones of n / 2 drawn: 0.394 n where all are as likely
    numbers = copies + features + 2.0 * (k * drawn + 3.0 * drawn**2) + 5.0 * rows**2  # two at a time
    return seconds, 8.0 * numbers


def probed(
    kernel: Kernel,
    data: Summary,
    level: int,
    residual: float = 1e-12,
    *,
    spectrum: bool = True,
    held_out: bool = False,
    n_threads: int = 1,
) -> SpectrumProbe:
    """Probe of some hundred rows of the sample (``SIZES[level]``).

    Parameters
    ----------
    residual : float
        Residual trace over trace at which no more pivots are chosen.
    spectrum : bool
        Eigenvalues of the rows are wanted too; they take half of the time.
    held_out : bool
        The residual of the pivots is also computed on rows that they were not chosen from.
    """
    (n_rows, n_pivots), semidefinite = SIZES[level], kernel.positive_semidefinite
    few = spread_rows(data.sample, n_rows)

    def of_rows() -> tuple[np.ndarray, tuple[float, float], np.ndarray | None]:
        if not spectrum:
            return np.zeros(0), (1.0, 0.0), None
        K = np.ascontiguousarray(kernel.block(few, few), dtype=np.float64)
        return *_shares(K), K if semidefinite and not n_pivots else None

    def of_pivots() -> RankProbe | None:
        if not (semidefinite and n_pivots):
            return None
        return probe_rank(
            kernel,
            data,
            residual,
            np.random.default_rng(0),
            max_probe=n_pivots,
            sample_rows=ROWS_PER_PIVOT * n_pivots,
            held_out=held_out,
            n_threads=n_threads,
        )

    pivots, (shares, equal, values) = parallel.side_by_side(of_pivots, of_rows, n_threads=n_threads)
    positive = np.maximum(shares, 0.0)
    if semidefinite and not n_pivots:
        pivots = _probe_of_spectrum(positive, len(few))
    negative = 0.0 if semidefinite else float(np.linalg.norm(np.minimum(shares, 0.0)))
    mean = float(kernel.diagonal(few).mean())
    return SpectrumProbe(
        positive, pivots, level + 1, negative, data.n_samples, mean, values, *(equal if semidefinite else ())
    )


def components_expected(problem: Problem, probe: SpectrumProbe = NO_PROBE) -> int:
    """Number of components to count seconds for: of a fraction of the variance the expected number."""
    c, wanted, n = problem.target.c, problem.target.n_components, problem.data.n_samples
    if wanted is not None:
        return wanted
    if c is None or not (probe.level and probe.spectrum[0][0] > 0.0):
        return min(50, n)
    return min(probe.count_of(c), problem.rank)


def components_held(problem: Problem, probe: SpectrumProbe = NO_PROBE) -> int:
    """Number of components to count memory for: of a fraction of the variance the expected number, and some more."""
    c, wanted, n = problem.target.c, problem.target.n_components, problem.data.n_samples
    if c is None or wanted is not None:
        return n if wanted is None else wanted
    total = float(probe.shares.sum())
    expected = float(np.searchsorted(np.cumsum(probe.shares) / total, c)) + 1 if total > 0.0 else 0.0
    return min(n, max(50, int(1.3 * expected) + 10))


def _probe_of_spectrum(shares: np.ndarray, n_rows: int) -> RankProbe:
    """As if pivots were as good as eigenvectors: what is left after k of them are the other eigenvalues."""
    left = np.append(1.0, np.cumsum(shares[::-1])[::-1][1:])
    few = int(np.count_nonzero(left > 1e-12)) + 1
    return RankProbe(left[: min(few, n_rows // 2 + 1)], exhausted=few <= n_rows // 2)


def _shares(K: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """The eigenvalues of the centred matrix over the trace of K; and `_equal`."""
    trace, means = float(K.trace()), K.sum(axis=1) / len(K)
    K = K - means
    K -= (means - means.sum() / len(K))[:, None]
    if not (trace > 0.0 and np.isfinite(K).all()):
        return np.zeros(1), (1.0, 0.0)
    return np.linalg.eigvalsh((K + K.T) / 2)[::-1] / trace, _equal(K, trace)


def _equal(K: np.ndarray, trace: float) -> tuple[float, float]:
    """(number, size over the trace) of equal eigenvalues with the same sums of squares and of cubes as those of all
    rows.

    Means of K_ij^2 and of K_ij K_jl K_li over distinct rows are unbiased, however few these are: the eigenvalues
    of s rows spread m equal ones from (1 - sqrt(m / s))^2 to (1 + sqrt(m / s))^2 of themselves (Marchenko and Pastur).
    """
    s, K = len(K), K / (trace / len(K))
    K.flat[:: s + 1] = 0.0
    square, cube = float(np.vdot(K, K)) / max(s * (s - 1), 1), float(np.vdot(K @ K, K)) / max(s * (s - 1) * (s - 2), 1)
    return (square**3 / cube**2, cube / square) if square > 0.0 and cube > 0.0 else (1.0, 0.0)


def _spread(m: int, n: int) -> np.ndarray:
    """m equal eigenvalues as n rows spread them, descending, over their mean: quantiles of a semicircle, about."""
    angles = np.linspace(0.0, np.pi, 256)
    x = np.cos(np.interp((np.arange(m) + 0.5) / m, (angles - 0.5 * np.sin(2.0 * angles)) / np.pi, angles))
    values = (1.0 + np.sqrt(m / n) * x) ** 2
    return np.asarray(values / values.mean())


def _residual_of_rows(K: np.ndarray) -> float:
    """Residual of each row by all others, 1 / (K^-1)_ii, over the trace; above rounding."""
    n, trace = len(K), float(K.trace())
    factor, failed = lapack.dpotrf(K + n * UNIT * trace * np.eye(n))
    if failed or not trace > 0.0:
        return inf
    inverse, _ = lapack.dpotri(factor)
    return float(np.sum(1.0 / inverse.diagonal())) / trace

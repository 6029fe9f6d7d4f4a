"""An upper bound on the largest eigenvalue of a matrix of which only the diagonal and a sample of rows are known.

R is semidefinite, n x n (the residual E of a feature map), and r_i >= R_ii are known for every row. Let T = sum r_i.
Draw s row numbers independently, with replacement, i with probability r_i / T, by random numbers that R does not depend
on. Let G be the s x s matrix of R_ij / sqrt(r_i r_j) of the rows drawn, and x = lambda_max(G) / s. Then with
probability at least 1 - delta

    lambda_max(R) <= T U(x),    U(x) = max { q in [x, 1] : s kl(x, q) <= log(1 / delta) },
    kl(x, q) = x log(x / q) + (1 - x) log((1 - x) / (1 - q)).

Proof. R = B B' with rows b_i, and |b_i|^2 = R_ii <= r_i. Let u_i = b_i / sqrt(r_i), so that |u_i| <= 1. With i drawn
as above A = E[u_i u_i'] = sum_i (r_i / T) b_i b_i' / r_i = B'B / T. Its largest eigenvalue is q = lambda_max(R) / T.
Let v be its eigenvector, |v| = 1. The numbers z_k = <u_k, v>^2 of the s draws are independent and lie in [0, 1], their
mean is q. Their average z is at most the largest eigenvalue of (1 / s) sum u_k u_k', which is x: that matrix and G / s
have the same non-zero eigenvalues. If T U(x) < lambda_max(R), then U(z) <= U(x) < q (U increases), which says z < q and
s kl(z, q) > log(1 / delta). By Chernoff's bound in Hoeffding's form (J. Am. Stat. Assoc. 58, 1963, theorem 1, for
variables in [0, 1]) Pr[z <= y] <= exp(-s kl(y, q)) for y <= q, and kl(., q) falls on [0, q]: the probability of that is
at most delta.

There is no factor for the dimension and no assumption on the spectrum. What follows from the proof:

- r_i may be any upper bounds of the diagonal: their rounding is added to them, and nothing is lost.
- An error of G is added to x, divided by s: U increases.
- A row that is drawn m times may stand in G once, times m: the non-zero eigenvalues stay what they are.
- With weights w_i the matrix is W^(1/2) R W^(1/2), so r_i becomes w_i r_i, and G stays what it is.
- For a projection P (centring, say) lambda_max(P R P) <= lambda_max(R).
- The map has to be fixed before the rows are drawn. Where the outcome decides whether another map is tried, every try
  has its own draws, and the probabilities of all tries add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..base.protocol import FeatureMap, Kernel
from ..base.rounding import UNIT, rounding_factor
from ..maps.draws import DRAWS, Draws, scaled_residuals
from ..products.rates import RATE
from ..rows.view import Rows
from .beyond import largest_eigenvalue_bound
from .certificate import Bound

FEWEST = DRAWS // 8
"""Rows drawn at least; more are multiples of it."""
SMALLEST = float(np.sqrt(np.finfo(np.float64).tiny))
"""Residuals are divided by, and what is below this may overflow."""
KERNEL_FLOPS = RATE.squares / RATE.blocks
"""Cost of a kernel value and its scaling, without the product of features, in flops of second moments."""


@dataclass(frozen=True)
class ScaledSample:
    """The matrix G of the rows that were drawn.

    Attributes
    ----------
    gram : ndarray (m, m)
        sqrt(c_k c_l / (r_k r_l)) R_kl for the m different rows drawn, row k drawn c_k times. Overwritten by nobody.
    draws : int
        s, the sum of the c_k.
    error : float
        Bound on the norm of the error of ``gram``.
    index, scale : ndarray (m,)
        Numbers of these rows, and sqrt(c_k / r_k).
    total : float
        T, of all rows.
    """

    gram: np.ndarray
    draws: int
    error: float
    index: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    scale: np.ndarray = field(default_factory=lambda: np.empty(0))
    total: float = np.inf

    def moved(self, vectors: np.ndarray) -> np.ndarray:
        """Estimate of V'RV from the rows (m, k) of V; with weights, the rows are without the roots of the weights.

        Without bias: the mean over all pairs of different draws of v_i R_ij v_j' / (p_i p_j), p_i = r_i / T.
        """
        U = (self.total * self.scale)[:, None] * vectors
        return np.asarray((U.T @ (self.gram @ U) - U.T @ U) / (self.draws * (self.draws - 1.0)))


def upper_share(share: np.ndarray | float, draws: np.ndarray | int, failure: float) -> np.ndarray:
    """U(x): the largest q with draws * kl(share, q) <= log(1 / failure), rounded up.

    Parameters
    ----------
    share : array_like
        x in [0, 1], or above, which says nothing: then 1.
    draws : array_like of int
        At least 1.
    failure : float
        delta, 0 < delta < 1.
    """
    x = np.clip(np.asarray(share, dtype=np.float64), 0.0, 1.0)
    allowed = np.log(1.0 / failure) / np.asarray(draws, dtype=np.float64)
    x, allowed = np.broadcast_arrays(x, allowed)
    rest = 1.0 - x
    with np.errstate(divide="ignore", invalid="ignore"):
        # two bounds: kl(x, q) >= (q - x)^2 / (2 q), and kl(x, q) >= x log x + (1 - x) log((1 - x) / (1 - q))
        near = x + allowed + np.sqrt(allowed * (allowed + 2.0 * x))
        far = x - rest * np.expm1((np.where(x > 0.0, x * np.log(x), 0.0) - allowed) / rest)
        q = np.where(rest > 0.0, np.minimum(np.minimum(near, far), 1.0), 1.0)
        for _ in range(60):  # Newton's steps: kl is convex, so none goes beyond the root
            step = (_divergence(x, q) - allowed) * (q * (1.0 - q) / (q - x))
            step = np.where((q < 1.0) & (step > 0.0), step, 0.0)
            q = q - step
            if not (step > 1e-10 * q).any():
                break
    return np.minimum(q * (1.0 + 1e-9), 1.0)


def _divergence(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """kl(x, q) for 0 <= x <= q <= 1, of which little cancels where q is near x or both are near 0."""
    apart, rest = q - x, 1.0 - x
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = np.where(x > 0.0, x * np.log1p(apart / x), 0.0)
        second = np.where(x < 1.0, rest * np.log1p(-apart / rest), 0.0)
    return np.asarray(-first - second)


def sampled_bound(total: float, sample: ScaledSample, failure: float) -> Bound:
    """T U(x) for T = ``total``, which fails with probability ``failure``; T itself, for certain, where that is as good.

    Parameters
    ----------
    total : float
        Sum of the upper bounds r_i of the diagonal.
    sample : ScaledSample
    failure : float
    """
    share = (largest_eigenvalue_bound(sample.gram) + sample.error) / sample.draws
    bound = total * float(upper_share(share, sample.draws, failure))
    return Bound(bound, "sampled", failure) if bound < total else Bound(total, "trace")


def residual_sample(
    feature_map: FeatureMap,
    kernel: Kernel,
    rows: Rows,
    residual_trace: float,
    draws: Draws,
    *,
    count: int,
    entry_error: float,
    n_threads: int = 1,
) -> ScaledSample | None:
    """Scaled residual matrix G of the rows drawn; None where a residual is too small to divide by.

    Parameters
    ----------
    feature_map, kernel, rows
    residual_trace : float
        Residual trace of the map over the rows.
    draws : Draws
        From a pass with the map over the rows.
    count : int
        How many to use: the first ones, so that their number must not depend on which rows they are.
    entry_error : float
        Bound on the error of a kernel value.
    n_threads : int
        Threads for the matrix of the rows drawn; bits do not depend on it.
    """
    index, position, counts = np.unique(draws.index[:count], return_index=True, return_counts=True)
    residual = draws.residual[position]
    if not residual.min() > SMALLEST:
        return None
    if rows.weights is not None:
        residual = residual / np.asarray(rows.weights[index], dtype=np.float64)
    X, times = rows.take(index), counts.astype(float)
    gram, error = scaled_residuals(kernel, feature_map, X, residual, times, entry_error, n_threads)
    total = max(draws.total, residual_trace) * (1.0 + 2.0 * rounding_factor(rows.n_samples) * UNIT)
    return ScaledSample(gram, int(counts.sum()), error, index, np.sqrt(times / residual), total)


def residual_bound(
    feature_map: FeatureMap,
    kernel: Kernel,
    rows: Rows,
    residual_trace: float,
    draws: Draws,
    *,
    count: int,
    entry_error: float,
    failure: float,
) -> Bound:
    """Bound on the largest eigenvalue of the residual of a feature map, from `residual_sample`.

    ``failure``: probability with which it may fail.
    """
    sample = residual_sample(feature_map, kernel, rows, residual_trace, draws, count=count, entry_error=entry_error)
    return Bound(residual_trace, "trace") if sample is None else sampled_bound(sample.total, sample, failure)


def draws_needed(share: float, failure: float) -> int:
    """Number of draws that decide whether the largest eigenvalue is below this share of the trace; 0: more than DRAWS.

    Enough to prove it where the truth is half of that share; DRAWS where even those prove less.
    """
    if not upper_share(0.0, DRAWS, failure) < share:
        return 0
    return draws_for(0.5 * share, share, failure) or DRAWS


def draws_for(expected: float, wanted: float, failure: float) -> int:
    """Number of draws that prove the share ``wanted`` of the largest eigenvalue where it is ``expected``; 0: more than
    DRAWS."""
    counts = np.arange(FEWEST, DRAWS + 1, FEWEST)
    enough = upper_share(np.full(len(counts), expected), counts, failure) <= wanted
    return int(counts[enough][0]) if enough.any() else 0


def draws_worth(n: int, n_features: int) -> int:
    """Largest number of draws whose bound costs at most a quarter of the pass over n rows; at least FEWEST."""
    counts = np.arange(DRAWS, 0, -FEWEST)
    affordable = bound_flops(counts, n_features) <= 0.25 * 2.0 * n * float(n_features) ** 2
    return int(counts[affordable][0]) if affordable.any() else FEWEST


def bound_flops(draws: np.ndarray | float, n_features: np.ndarray | float) -> np.ndarray:
    """Flops of the residual matrix of a sample, and of the bound on its largest eigenvalue."""
    count = np.asarray(draws, dtype=np.float64)
    return np.asarray(count**2 * (n_features + KERNEL_FLOPS) + count**3 / 3.0)

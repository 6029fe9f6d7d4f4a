"""Upper bounds on all eigenvalues from a Krylov space that began with a random block.

A is symmetric and positive semidefinite of order n, Omega (n x b) has independent standard normal entries, and
theta_1 >= theta_2 >= ... are the Ritz values of A on a space that contains Omega, A Omega, ..., A^(k-1) Omega. For i
<= b let U_1 hold eigenvectors of lambda_1 .. lambda_i and Omega_1 = U_1' Omega. Only one event is random: that for
every i

    |Omega| |Omega_1^+| <= C_i.                                                                                   (1)

**Coarse bound.** Let p be the Chebyshev polynomial T_(k-1) moved to [0, (1 - e) lambda_i], so |p| <= 1 there, and p
grows beyond. The columns of p(A) Omega Omega_1^+ p(Lambda_1)^(-1) lie in the space. They are U_1 + Z + W, where Z is in
the span of eigenvectors with eigenvalues between (1 - e) lambda_i and lambda_i, and W in that of the eigenvectors
below. Here |W| <= s = C_i / T_(k-1)((1 + e) / (1 - e)). The Rayleigh quotient of any vector in their span is at least
min(1 - e, 1 / (1 + s^2)) lambda_i, and so is theta_i (Courant and Fischer). With e such that both are equal,
lambda_i <= theta_i / (1 - e).

**Fine bound.** Let gamma >= lambda_(j+1), such as the coarse bound. Move p to [0, gamma], and let Omega_1, U_1 and
Lambda_1 be those for i = j. The columns of p(A) Omega Omega_1^+ p(Lambda_1)^(-1) are then U_1 + W. The first i <= j
columns of W have a norm of at most s = C_j / T_(k-1)(2 lambda_i / gamma - 1). Hence lambda_i <= (1 + s^2) theta_i: far
closer where there is a gap.

Neither rests on gaps, and no eigenvalue that is repeated, or close to another, can hide: the bounds count it.

|Omega| is computed. For Omega_1, normal and i x b, Pr[|Omega_1^+| >= t] <= (e sqrt(b) / ((b - i + 1) t))^(b - i + 1)
/ sqrt(2 pi (b - i + 1)) (Z. Chen and J. J. Dongarra, SIAM J. Matrix Anal. Appl. 27, 2005). The failure probability is
divided among i = 1 .. b. It does not grow with the number of passes or of evaluations of the bounds: (1) speaks of
Omega alone.
"""

from __future__ import annotations

import numpy as np

from ..base.rounding import UNIT
from .certificate import NO_BOUND, Bound, RitzBlock
from .complement import gap_bound


class GaussianStart:
    """The random block that a Krylov space began with, and upper ends for the eigenvalues.

    Parameters
    ----------
    block : ndarray (n, b)
        Standard normal entries, independent of A, or their projection on a subspace that A leaves invariant.
    failure : float
        Probability with which (1) may fail for any i.
    """

    def __init__(self, block: np.ndarray, failure: float):
        b = block.shape[1]
        self.columns = b
        gram = block.T @ block
        norm = float(np.sqrt(np.linalg.eigvalsh(gram)[-1] * (1.0 + 1e-8)))
        spare = b - np.arange(b)  # b - i + 1
        inverse = np.e * np.sqrt(b) / spare * (b / (failure * np.sqrt(2.0 * np.pi * spare))) ** (1.0 / spare)
        self._log_constant = np.log(norm) + np.log(inverse)

    def eigenvalue_bounds(self, theta: np.ndarray, steps: int, error: float) -> np.ndarray:
        """Upper bounds on the min(b, m) largest eigenvalues.

        Parameters
        ----------
        theta : ndarray (m,)
            Ritz values, descending.
        steps : int
            k: the space contains Omega .. A^(k-1) Omega.
        error : float
            The space belongs to a matrix within this of A in norm, A is semidefinite up to this, and the Ritz values
            are within this of those of A.
        """
        b = min(self.columns, len(theta))
        if steps < 2:
            return np.full(b, np.inf)
        logs = self._log_constant[:b]
        # of that matrix moved up until it is semidefinite
        values = np.maximum(theta[:b] + 4.0 * error, 0.0) * (1.0 + 8.0 * UNIT)
        coarse = values / (1.0 - _relative_gap(logs, steps - 1))
        upper = coarse.copy()
        for j in range(1, b):
            gamma = coarse[j]
            # (a Ritz value bounds its eigenvalue from below)
            x = 2.0 * theta[:j] / gamma - 1.0 if gamma > 0 and np.isfinite(gamma) else np.ones(j)
            logs_of_s = np.minimum(logs[j - 1] - _log_chebyshev(np.maximum(x, 1.0), steps - 1), 300.0)
            upper[:j] = np.minimum(upper[:j], values[:j] * (1.0 + np.exp(2.0 * logs_of_s)))
        return np.minimum.accumulate(upper)


def _log_chebyshev(x: np.ndarray, degree: int) -> np.ndarray:
    """log T_degree(x) for x >= 1."""
    angle = degree * np.arccosh(x)
    return angle + np.log1p(np.exp(-2.0 * angle)) - np.log(2.0)


def _relative_gap(log_constants: np.ndarray, degree: int) -> np.ndarray:
    """The smallest e with C / T_degree((1 + e) / (1 - e)) <= sqrt(e / (1 - e)), from above; 1 where there is none."""
    low, high = np.zeros(len(log_constants)), np.ones(len(log_constants))
    for _ in range(50):
        e = (low + high) / 2
        enough = _log_chebyshev((1 + e) / (1 - e), degree) >= log_constants + 0.5 * np.log((1 - e) / e)
        low, high = np.where(enough, low, e), np.where(enough, e, high)
    return high


def separated(upper: np.ndarray, ritz: RitzBlock, c: int, failure: float) -> tuple[RitzBlock, Bound]:
    """The first Ritz vectors, c + 1 at least, and a bound beyond them from upper ends of the eigenvalues themselves.

    At most p eigenvalues exceed ``upper[p]``. If p Ritz values lie above it, the inertia of A - upper[p] I and its
    Schur complement give P A P <= upper[p] + |R_p|^2 / (theta_p - upper[p]) (`complement.gap_bound`). The smallest of
    these bounds over all p is taken; without any such gap it is upper[0], the bound on A itself. Further vectors would
    not lower the upper bounds of the first ones, by interlacing."""
    if not len(upper) or not np.isfinite(upper[0]):
        return ritz, NO_BOUND
    bounds, errors = [Bound(float(upper[0]), "start", failure)], ritz.errors
    if errors is not None:
        theta = ritz.theta - errors.compression
        norms = np.sqrt(np.cumsum(np.maximum(np.diag(ritz.residual_gram), 0.0))) * (1.0 + 1e-8) + errors.residual
        bounds += [
            gap_bound(float(upper[p]), float(norms[p - 1]), float(theta[p - 1]), failure)
            if theta[p - 1] > upper[p]
            else NO_BOUND
            for p in range(1, min(len(upper), len(theta) + 1))
        ]
    p = min(range(len(bounds)), key=lambda p: bounds[p].mu)
    return ritz.leading(max(p, c + 1)), bounds[p]

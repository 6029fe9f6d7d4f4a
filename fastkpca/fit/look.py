"""A look at a few rows, before a route is chosen: how fast the eigenvalues fall, and how many pivots are needed."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..base import parallel
from ..base.caching import cached_property
from ..base.lapack import eigenvalues
from ..base.protocol import Kernel, Summary
from ..maps.pivots import RankProbe, probe_rank
from ..products.vectors import row_sums

__all__ = ["LARGER_LOOK", "MANY", "NOTHING_SEEN", "Glance", "Look", "look_at", "look_at_first"]


SMALL_LOOK = 192
"""Rows, of which all eigenvalues are found in a millisecond."""
GLANCE = 128
"""Rows whose kernel values are seen in a fifth of that."""


LARGER_LOOK = 8192
"""Rows from which on a look takes twice as many of them."""
MANY = 1 << 15
"""Rows from which on a look may cost twice as much: a tenth more features cost more."""


@dataclass(frozen=True)
class Look:
    """What a look at a few rows of the sample tells before anything is run.

    Attributes
    ----------
    shares : ndarray
        Estimates of lambda_1 >= lambda_2 >= ... over tr K.
    probe : RankProbe or None
        Pivots needed for a residual trace; None where the kernel is not semidefinite.
    """

    shares: np.ndarray
    probe: RankProbe | None

    def share(self, i: int) -> float:
        """lambda_i / tr K, i = 1, 2, ...; 0 beyond what the look resolved."""
        return float(self.shares[i - 1]) if i <= len(self.shares) else 0.0

    def first(self, n: int) -> float:
        """lambda_1 / tr K of n rows. Where m eigenvalues are about as large, a sample of s rows overrates the first."""
        values = self.spectrum(n)[0]
        m = np.count_nonzero(values > 0.5 * values[0])
        return float(values[0]) / (1.0 + np.sqrt(m / len(self.shares)) if m > 1 else 1.0) ** 2

    def expected(self, i: int, n: int) -> float:
        """lambda_i / tr K of n rows."""
        shares, beyond = self.spectrum(n)
        return float(shares[i - 1]) if i <= len(shares) else beyond

    def least(self, n: int) -> float:
        """About lambda_(n-1) / tr K of n rows, the last that centring leaves: not below that, as it falls with n."""
        s = len(self.shares)
        return min(float(self.shares[-2]) * s / n, self.spectrum(n)[1]) if s > 8 else 0.0

    def spectrum(self, n: int) -> tuple[np.ndarray, float]:
        """The shares of n rows, as many as the look resolved, and the size of each beyond them.

        What of the trace is spread over ever more directions, as the rows grow in number (all of it, for a narrow
        kernel), adds 1/s of itself to each share of s rows, and only 1/n to one of n.
        """
        s = len(self.shares)
        half = (s + 1) // 2
        spread = s * float(self.shares[half : s - 1].mean()) if s > 8 else 0.0
        return np.maximum(self.shares[:half] - spread * (1 / s - 1 / n), spread / n), spread / n


NOTHING_SEEN = Look(np.zeros(1), None)


class Glance:
    """The kernel values of a few rows of the sample: what they tell takes a tenth of a look's time."""

    def __init__(self, kernel: Kernel, data: Summary, count: int = GLANCE):
        K, trace = _centred(kernel, data, count)
        usable = trace > 0.0 and bool(np.isfinite(K).all())
        self._K: np.ndarray = K if usable else K[:0]
        self._trace = trace

    def first_share(self) -> float:
        """lambda_1 / tr K from below, by a few steps of the power method; 0 where nothing is known."""
        K = self._K
        if not len(K):
            return 0.0
        image = K[:, int(K.diagonal().argmax())]
        for _ in range(7):
            length = sqrt(image @ image)
            if not length > 0.0:
                return 0.0
            v = image / length
            image = K @ v
        return float(v @ image) / self._trace

    def excess(self, n: int) -> float:
        """About how many times too large these rows make lambda_1 / tr K of n rows: the more eigenvalues are about as
        large as the first, the larger."""
        return (1.0 + sqrt(self.participating(n) / (2.0 * max(len(self._K), 1)))) ** 2

    @cached_property
    def look(self) -> Look:
        """All eigenvalues of these rows; none where nothing is known."""
        if not len(self._K):
            return NOTHING_SEEN
        with parallel.blas_threads():
            return Look(eigenvalues(self._K)[::-1] / self._trace, None)

    def resolves(self, c: int, share: float) -> bool:
        """Whether the c-th eigenvalue is at least this share of the first; False where nothing is known."""
        return self.look.share(c) > share * self.look.share(1)

    def participating(self, n: int) -> float:
        """How many eigenvalues share the trace: its square over the sum of their squares, for n rows.

        n where the spectrum is flat, a handful where it falls fast. The mean square beside the diagonal does not depend
        on the number of rows.
        """
        m = len(self._K)
        size = float(np.diagonal(self._K).mean()) if m > 1 else 0.0
        if not size > 0.0:
            return np.inf
        K = self._K / size  # values whose squares leave the range of float64 are refused later
        diagonal = np.diagonal(K)
        squares = float(np.vdot(K, K)) - float(diagonal @ diagonal)
        return 1.0 / (1.0 / n + squares / (m * (m - 1)))


def look_at(
    kernel: Kernel,
    data: Summary,
    residual: float = 1e-12,
    *,
    pivots: bool = True,
    shares: bool = True,
    beside: bool = False,
    n_threads: int = 1,
) -> Look:
    """A few milliseconds with some hundred rows of the sample; half of them for the ``shares``."""
    few = data.n_samples < LARGER_LOOK  # a look that costs less than what it decides about
    sizes = (128, 512) if few else (256, 1024)
    if beside and data.n_samples >= MANY:
        sizes = (512, 2048)

    def probe() -> RankProbe | None:
        if not (kernel.positive_semidefinite and pivots):
            return None
        return probe_rank(
            kernel,
            data,
            residual,
            np.random.default_rng(0),
            max_probe=sizes[0],
            sample_rows=sizes[1],
            beside=beside,
            n_threads=n_threads,
        )

    def spectrum() -> np.ndarray:
        return _shares(kernel, data) if shares else np.zeros(0)

    of_pivots, of_rows = parallel.side_by_side(probe, spectrum, n_threads=n_threads)
    return Look(of_rows, of_pivots)


def look_at_first(kernel: Kernel, data: Summary) -> Look:
    """The share of the first eigenvalue alone, from below, of the rows of a look: it takes a fifth of its time."""
    return Look(np.array([Glance(kernel, data, _rows_of_look(data)).first_share()]), None)


def _rows_of_look(data: Summary) -> int:
    return SMALL_LOOK if data.n_samples < LARGER_LOOK else 2 * SMALL_LOOK


def _shares(kernel: Kernel, data: Summary) -> np.ndarray:
    K, trace = _centred(kernel, data, _rows_of_look(data))
    with parallel.blas_threads():  # for so few rows a second thread does nothing but wait, on a busy machine a second
        values = eigenvalues((K + K.T) / 2)[::-1] if np.isfinite(K).all() else np.zeros(1)
    return np.maximum(values, 0.0) / trace if trace > 0 else np.zeros(1)


def _centred(kernel: Kernel, data: Summary, count: int) -> tuple[np.ndarray, float]:
    """The centred Gram matrix of so many rows of the sample, and its trace before it was centred."""
    X = data.sample[np.linspace(0, len(data.sample) - 1, min(count, len(data.sample))).astype(np.intp)]
    K = np.ascontiguousarray(kernel.block(X, X), dtype=np.float64)
    trace = float(K.trace())
    means = row_sums(K)[0] / len(K)
    K = K - means
    K -= (means - means.sum() / len(K))[:, None]
    return K, trace

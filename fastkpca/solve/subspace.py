"""Leading eigenpairs of a small, cheap semidefinite operator, with intervals: block Lanczos, the whole basis kept.

For second moments that exist only as products (``features.fourier``). Unlike ``krylov`` nothing here is a pass over
data: a product takes a fraction of a millisecond, so blocks are narrow, and what must not cost is the bookkeeping.

That no eigenvalue was missed follows from, in this order: the traces (sum and sum of squares of the eigenvalues that
the whole Krylov space leaves over), a Cholesky factorisation of t I - P C P where C is small enough to be formed, and
else randomly started Lanczos on the complement, with a stated probability (``certificate.mu_lanczos``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ..base.rounding import UNIT, rounding_factor
from .beyond import FAILURE, deterministic_bound, exploration_bound, formed_bound
from .certificate import NO_BOUND, Bound, Certificate, MatrixInfo, RitzBlock, ritz_certificate

__all__ = ["Leading", "Solver", "leading_pairs"]

FORMED = 3000  # order up to which a Cholesky factorisation is worth it
BLOCK = 6
EXPLORE = 4  # random columns of an exploration
MOST = 640  # columns of the space, where memory allows them
WIDE = 20000  # order from which a pass over the basis costs more than a few columns too many
DEFAULT_MEMORY = 2 << 30


@dataclass(frozen=True)
class Leading:
    """Ritz pairs of the operator; ``certificate`` is of its eigenvalues, residual_norms those of the pairs.

    Attributes
    ----------
    values : ndarray (k,)
    vectors : ndarray (n, k)
    certificate : Certificate
        Of all k; ``wanted`` of them were asked for, one more says how far the last is from the rest.
    wanted : int
    residual : float
        |C V - V diag(values)|_2, rounding included.
    steps : int
        Products with a block.
    columns : int
        Columns multiplied, all together.
    """

    values: np.ndarray
    vectors: np.ndarray
    certificate: Certificate
    wanted: int
    residual: float
    steps: int
    columns: int


def leading_pairs(
    matmat: Callable[[np.ndarray], np.ndarray],
    n: int,
    c: int,
    *,
    tol: float,
    trace: float,
    norm: float,
    product_error: float,
    indefinite: float = 0.0,
    fraction: float | None = None,
    total: float = 0.0,
    start: np.ndarray | None = None,
    form: Callable[[], np.ndarray] | None = None,
    memory_limit: float | None = None,
    rng: np.random.Generator | int = 0,
) -> Leading:
    """The c largest eigenvalues of a symmetric semidefinite C (n x n), intervals at most tol * theta_1 wide.

    Parameters
    ----------
    matmat : callable
        U (n, k) -> C U.
    n, c : int
    tol : float
    trace, norm : float
        tr C; upper bound on |C|_F.
    product_error : float
        Bound on |computed C u - C u| / |u|.
    indefinite : float
        Distance (in norm) to a semidefinite matrix whose trace and mean it shares.
    fraction, total : float
        Instead of c (which then is where to begin): as many as carry this fraction of ``total``.
    start : ndarray (n, k), optional
        First block.
    form : callable, optional
        C itself, where that can be paid.
    memory_limit : float, optional
        Bytes.
    rng : numpy.random.Generator or int
    """
    room = DEFAULT_MEMORY if memory_limit is None else memory_limit
    limit = min(MOST, int(0.5 * room / (8.0 * n)))
    solver = Solver(
        matmat, n, c, tol, trace, norm, product_error, indefinite, fraction, total, form, max(limit, c + 4 * BLOCK)
    )
    return solver.run(start, np.random.default_rng(rng))


@dataclass
class Solver:
    matmat: Callable[[np.ndarray], np.ndarray]
    n: int
    c: int
    tol: float
    trace: float
    norm: float
    product_error: float
    indefinite: float
    fraction: float | None
    total: float
    form: Callable[[], np.ndarray] | None
    limit: int

    def begin(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.limit = min(self.limit, self.n)
        self.steps = self.m = self.explorations = 0
        self.Q = np.empty((self.n, min(self.limit, 96)), order="F")
        self.T = np.empty((0, 0))

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Ritz values, descending, and their vectors in the basis."""
        return _eigh(self.T)

    def run(self, start: np.ndarray | None, rng: np.random.Generator) -> Leading:
        n = self.n
        self.begin(rng)
        block = min(BLOCK if n < WIDE else 2 * BLOCK, n)
        X = self.rng.standard_normal((n, block)) if start is None else start
        found: Certificate | None = None
        looked = 0
        while True:
            X = self._append(self._orthonormal(X))
            room = min(self.limit, n) - self.m
            if self.m < 0.04 * self.m + looked and room >= block:
                continue  # a look at a long recurrence costs as much as many of its steps
            looked = self.m
            theta, Y = _eigh(self.T)
            c = self._wanted(theta)
            if self.m < c + 2 and room >= block:
                continue
            outside = X.T @ X
            residuals = self._residuals(Y, outside, min(c, self.m))
            mu = self._mu_guess(theta)
            ready, settled = self._judge(theta, residuals, c, mu)
            if ready or room < block:
                found = self._certify(theta, Y, outside, c)
                if room < block or self._narrow(found, theta, c):
                    break
                found = None
            elif settled and not self._traces_will_do(theta, c, mu):
                break
        found = self._certify(theta, Y, outside, c) if found is None else found
        for attempt in range(4):
            if self._narrow(found, theta, c):
                break
            if attempt:
                # the rest of the spectrum reaches up closer than was hoped for: a longer recurrence, and once more
                enough = min(self.limit - block, self.m + max(4 * block, self.m // 2))
                if self.m > enough:
                    break
                while self.m <= enough:
                    X = self._append(self._orthonormal(X))
                theta, Y = _eigh(self.T)
                c, outside = self._wanted(theta), X.T @ X
            other = self._other_mu(theta, Y, outside, c)
            found = other if other is not None and (attempt or other.width < found.width) else found
        kept = min(c + 1, self.m)
        V = np.ascontiguousarray(self.Q[:, : self.m] @ Y[:, :kept])
        c = min(c, self.m)
        # the recurrence knows these residuals; computed ones don't rest on it
        R = self.matmat(V[:, :c]) - V[:, :c] * theta[:c]
        residual = float(np.linalg.norm(R)) + self.product_error * np.sqrt(c)
        return Leading(theta[:kept].copy(), V, found, c, residual, self.steps, self.m)

    def _orthonormal(self, X: np.ndarray) -> np.ndarray:
        """Orthonormal columns from ones that are orthogonal to the basis up to rounding; random for those that vanish.

        Twice is enough (Kahan), the first time is behind. A column below 1e-10 of its length counts as none.
        """
        Q = self.Q[:, : self.m]
        X = X / np.maximum(np.sqrt(np.einsum("ij,ij->j", X, X)), 1e-300)
        X, r = np.linalg.qr(X)
        for _ in range(3):
            small = np.abs(np.diag(r)) < 1e-10
            if small.any():
                X[:, small] = self.rng.standard_normal((self.n, int(small.sum()))) / np.sqrt(self.n)
            X = X - Q @ (Q.T @ X)
            X, r = np.linalg.qr(X)
            if not small.any() and np.abs(np.diag(r)).min() > 0.5:
                break
        return X

    def _append(self, X: np.ndarray) -> np.ndarray:
        """The basis grows by X; what of C X lies outside of the basis is returned."""
        m, b = self.m, X.shape[1]
        if m + b > self.Q.shape[1]:
            grown = np.empty((self.n, min(max(2 * self.Q.shape[1], m + b), max(self.limit, m + b))), order="F")
            grown[:, :m] = self.Q[:, :m]
            self.Q = grown
        image = self.matmat(X)
        self.steps += 1
        self.Q[:, m : m + b] = X
        self.m = m + b
        Q = self.Q[:, : self.m]
        border = Q.T @ image
        T = np.empty((self.m, self.m))
        T[:m, :m] = self.T
        T[:, m:] = border
        T[m:, :m] = border[:m].T
        T[m:, m:] = (border[m:] + border[m:].T) / 2
        self.T = T
        return image - Q @ border

    def _wanted(self, theta: np.ndarray) -> int:
        if self.fraction is None:
            return self.c
        share = np.cumsum(np.maximum(theta, 0.0)) / self.total
        enough = np.flatnonzero(share >= self.fraction)
        return int(enough[0]) + 1 if len(enough) else self.m + 1

    def _residuals(self, Y: np.ndarray, outside: np.ndarray, c: int) -> np.ndarray:
        """Squares of the residuals' norms: C Q - Q T is what the last block's image has outside the basis."""
        last = Y[-len(outside) :, :c]
        return np.einsum("ij,ij->j", last, outside @ last)

    def _mu_guess(self, theta: np.ndarray) -> float:
        """What the traces leave over; the residual's share of the sum of squares is not counted."""
        by_sum = max(self.trace - float(theta.sum()), 0.0)
        return min(by_sum, float(np.sqrt(max(self.norm**2 - float(theta @ theta), 0.0))))

    def _judge(self, theta: np.ndarray, residuals: np.ndarray, c: int, mu: float) -> tuple[bool, bool]:
        """Whether the intervals would be narrow with this mu; and with the best that one could hope for."""
        if len(residuals) < c or not theta[0] > 0:
            return False, False
        aim = 0.7 * self.tol * theta[0]
        hope = 0.7 * max(theta[c - 1], 0.0)
        gaps = theta[:c] - mu
        ready = bool(gaps.min() > 0 and (residuals / np.maximum(gaps, 1e-300)).max() <= aim)
        settled = bool((residuals / np.maximum(theta[:c] - hope, 1e-300)).max() <= aim)
        return ready, settled

    def _traces_will_do(self, theta: np.ndarray, c: int, mu: float) -> bool:
        """Will a few more columns bring what the traces leave over below the last eigenvalue?

        A column takes at most about theta_c from the sum, and its square from the sum of squares. The rest of the
        space holds smaller ones, so the count is an estimate from below; three times it, and the columns that are
        there once more, must do.
        """
        last = 0.8 * max(theta[c - 1], 1e-300)
        left = min(
            max(self.trace - float(theta.sum()) - last, 0.0) / last,
            max(self.norm**2 - float(theta @ theta) - last**2, 0.0) / last**2,
        )
        # where a column is dear, a proof may cost as much again as the vectors did, and not several times as much
        return self.m + 3.0 * left <= min(self.limit, self.n, 2 * self.m + (400 if self.n < WIDE else 100))

    def _block(self, theta: np.ndarray, Y: np.ndarray, outside: np.ndarray) -> RitzBlock:
        """What the certificate needs, from the recurrence.

        C Q - Q T has its last block's columns, known, and else what orthonormalising took for nothing: at most 1e-10
        of an image. In T, products Q_i' (C Q_j) stand for their transposes: two more product errors a column.
        """
        Q = self.Q[:, : self.m]
        last = Y[-len(outside) :]
        rest = 1e-20 * self.m * self.norm**2
        return RitzBlock(
            compression=np.diag(theta),
            gram=Y.T @ (Q.T @ Q) @ Y,
            residual_gram=1.001 * (last.T @ outside @ last) + 1001.0 * rest * np.eye(self.m),
            n=self.n,
            product_error=3.0 * np.sqrt(self.m) * self.product_error + 16.0 * self.m * UNIT * self.norm,
        )

    def _certify(self, theta: np.ndarray, Y: np.ndarray, outside: np.ndarray, c: int) -> Certificate:
        # the trace form is of the semidefinite matrix nearby: each of m + 2 quantities differs by ``indefinite``
        error = 8.0 * rounding_factor(self.n) * UNIT * self.trace + (self.m + 4.0) * self.indefinite
        ritz, matrix = self._block(theta, Y, outside), MatrixInfo((self.trace, error), self.norm)
        return ritz_certificate(ritz, min(c + 1, self.m), matrix, deterministic_bound(ritz, matrix))

    def _narrow(self, found: Certificate, theta: np.ndarray, c: int) -> bool:
        ends = found.eigenvalue_bounds[:c]
        return bool(len(ends) >= c and (ends[:, 1] - ends[:, 0]).max() <= self.tol * theta[0])

    def _other_mu(self, theta: np.ndarray, Y: np.ndarray, outside: np.ndarray, c: int) -> Certificate | None:
        ritz = self._block(theta, Y, outside)
        if self.form is not None and self.n <= FORMED:
            slack = 64.0 * (rounding_factor(self.n) + np.sqrt(self.m)) * UNIT * self.norm
            slack += 4.0 * np.sqrt(self.n) * self.product_error
            bound = formed_bound(self.form(), self.Q[:, : self.m], slack, 0.8 * theta[c - 1])
        else:
            bound = self._explore(theta, c)
            if bound is NO_BOUND:
                return None
            # the last of several attempts was chosen by what the others said: any may be the one that fails
            bound = replace(bound, failure_probability=self.explorations * FAILURE)
        return ritz_certificate(ritz, min(c + 1, self.m), outside=bound)

    def _explore(self, theta: np.ndarray, c: int, share: float = 0.85, most: int = 60) -> Bound:
        """Randomly started block Lanczos on the complement of the basis, which stays as it is.

        Until its bound is below ``share`` of the c-th Ritz value, or that is out of reach; ``most`` steps.
        """
        m, b = self.m, min(EXPLORE, self.n - self.m)
        if b < 1:
            return NO_BOUND
        self.explorations += 1
        Q = self.Q[:, :m]
        basis = np.empty((self.n, 0), order="F")
        T = np.empty((0, 0))
        X = self.rng.standard_normal((self.n, b))
        best = NO_BOUND
        for k in range(1, most + 1):
            for _ in range(2):
                X = X - Q @ (Q.T @ X)
                X = X - basis @ (basis.T @ X)
                X = np.linalg.qr(X)[0]
            image = self.matmat(X)
            self.steps += 1
            image -= Q @ (Q.T @ image)
            basis = np.asfortranarray(np.hstack([basis, X]))
            border = basis.T @ image
            old = len(T)
            grown = np.empty((old + b, old + b))
            grown[:old, :old] = T
            grown[:, old:] = border
            grown[old:, :old] = border[:old].T
            T = grown
            X = image
            largest = max(float(np.linalg.eigvalsh((T + T.T) / 2)[-1]), 0.0)
            slack = 4.0 * np.sqrt(b * k) * self.product_error + 64.0 * rounding_factor(self.n) * UNIT * self.norm
            lowest = -self.indefinite - self.product_error
            now = exploration_bound(largest + slack, order=self.n - m, steps=k, starts=b, lowest=lowest, stops=most)
            best = min(best, now, key=lambda bound: bound.mu)
            if best.mu < share * theta[c - 1] or (k > 8 and largest > (0.97 if share < 0.86 else share) * theta[c - 1]):
                break
            if basis.shape[1] + b > self.n - m:
                break
        return best


def _eigh(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = scipy.linalg.eigh(T, check_finite=False)
    return values[::-1], vectors[:, ::-1]

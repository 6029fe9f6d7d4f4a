"""Leading eigenpairs of a large operator that has a small copy of itself: two levels, with intervals.

The modes of ``features.fourier`` have weights that fall by nine orders, yet what the leading eigenvectors have in the
light ones is little, and follows from the rest. With A = [[A1, B'], [B, A2]], A1 the heavy modes and A2 the light:

- Search. The heavy modes are a few percent of all, so a block Lanczos there costs next to nothing. Its vectors start a
  block Davidson iteration on A: a residual r is corrected by r / theta where the modes are light, since A2 is far below
  theta, and by conjugate gradients with theta - A1 where they are heavy. A handful of products a vector are enough.
- Proof. A semidefinite, lambda_(p+1)(A) <= lambda_(p+1)(A1) + lambda_1(A2) (Aronszajn's inequality; Bhatia, Matrix
  Analysis, section III.2 for its relatives): that no eigenvalue was missed is shown on the heavy modes alone. If so at
  most p eigenvalues of A lie above beta, and V (p columns) has Ritz values theta_i > beta and residual R, then by the
  inertia of A - beta I and its Schur complement P A P <= beta + |R|^2 / (theta_p - beta) on the complement of V.

p is c or somewhat more: where the spectrum has a gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.rounding import UNIT
from .beyond import FAILURE, gap_bound
from .certificate import RitzBlock, ritz_certificate, upper_ends
from .conjugate_gradients import conjugate_gradients
from .subspace import Leading, Solver

__all__ = ["nested_pairs"]

SHARE = 2e-4
"""Heavy modes have weights from 1 down to this, or less where that does not prove enough."""
LEAST = 4000
"""Features from which two levels pay."""
MOST_HEAVY = 0.4
"""Share of the modes from which the heavy ones are no longer few."""
ROUNDS = 8
BLOCK = 6
HOPE = 0.9
"""The search goes on until what it left would do no harm below this times lambda_(p+1); then that is proved."""
STEPS = 24
"""Block steps of such a proof at most."""
INNER = 12
"""Steps of conjugate gradients at most."""


def nested_pairs(operator: Any, c: int, *, tol: float, rng: np.random.Generator | int = 0) -> Leading | None:
    """The c largest eigenvalues, intervals at most tol * theta_1 wide; None where two levels don't get there.

    Parameters
    ----------
    operator : Moments
        With ``matmat``, ``product_error``, ``indefinite``, ``norm``, and ``heavy(share)``, which returns (the operator
        of the heavy modes, their numbers, a bound on the norm of the operator of the others).
    c : int
    tol : float
    rng : numpy.random.Generator or int
    """
    n = operator.map.n_features
    if n < LEAST:
        return None
    rng = np.random.default_rng(rng)
    share, proofs = SHARE, 0
    for _ in range(3):
        heaviest = operator.heavy(share)
        if heaviest is None:
            return None
        small, kept, left = heaviest
        if len(kept) > MOST_HEAVY * n or len(kept) < 8 * c + 100:
            return None
        search = _Heavy(small, c, rng)
        found = search.run(left)
        proofs += search.proofs
        if found is not None:
            return _Refined(operator, kept, search, found + left + operator.indefinite, c, tol, proofs * FAILURE).run()
        share *= min(0.3, search.gap / (5.0 * left))
    return None


class _Heavy:
    """Block Lanczos on the heavy modes: p, Ritz vectors, and a bound on lambda_(p+1)."""

    def __init__(self, operator: Any, c: int, rng: np.random.Generator):
        self.operator, self.c, self.gap, self.proofs = operator, c, 0.0, 0
        self.solver = Solver(
            operator.matmat,
            operator.n_features,
            c,
            0.0,
            operator.trace,
            operator.norm,
            operator.product_error,
            operator.indefinite,
            None,
            0.0,
            None,
            640,
        )
        self.solver.begin(rng)

    def run(self, left: float) -> float | None:
        """The bound; None where the light modes, up to ``left``, would fill the gap, or the search was too long."""
        solver = self.solver
        X = solver.rng.standard_normal((solver.n, BLOCK))
        least = 3.0 * self.c + 20.0
        while solver.m + BLOCK <= solver.limit:
            X = solver._append(solver._orthonormal(X))
            if solver.m < least:
                continue
            least = 1.06 * solver.m
            theta, Y = solver.pairs()
            if not theta[0] > 0:
                return None
            outside = X.T @ X
            # a gap farther on must be worth the products with the columns before it
            gaps = theta[self.c - 1 : 2 * self.c + 6] - theta[self.c : 2 * self.c + 7]
            p = self.c + int(np.argmax(gaps / (1.0 + 0.1 * np.arange(len(gaps)))))
            self.gap = gap = float(gaps[p - self.c])
            if np.sqrt(solver._residuals(Y, outside, p).max()) > 0.3 * gap:
                continue
            if gap < 3.0 * left:
                return None
            # the proof must find what is outside of the basis below HOPE theta_p: would that do?
            L = np.linalg.qr(X, mode="r") @ Y[-BLOCK:]
            if upper_ends(np.diag(theta), L, HOPE * theta[p])[p] > theta[p] + 0.25 * gap:
                continue
            beta = self._proved(theta, Y, outside, p)
            if beta + left <= theta[p - 1] - 0.1 * gap:
                self._keep(theta, Y, outside, p)
                return beta
            least = 1.3 * solver.m
        return None

    def _proved(self, theta: np.ndarray, Y: np.ndarray, outside: np.ndarray, p: int) -> float:
        """An upper bound on lambda_(p+1) of the heavy modes; each call fails with probability FAILURE."""
        self.proofs += 1
        bound = self.solver._explore(theta, p + 1, HOPE, STEPS)
        if not np.isfinite(bound.mu):
            return np.inf
        proof = ritz_certificate(self.solver._block(theta, Y, outside), p + 1, outside=bound)
        return float(proof.eigenvalue_bounds[p, 1])

    def _keep(self, theta: np.ndarray, Y: np.ndarray, outside: np.ndarray, p: int) -> None:
        solver = self.solver
        self.p, self.theta = p, theta
        # what the corrections deflate: vectors that are eigenvectors well enough
        residuals = np.sqrt(solver._residuals(Y, outside, len(theta)))
        good = int(np.argmax(residuals > 0.05 * theta[0])) or len(theta)
        good = max(p + 1, min(good, 8 * p))
        self.vectors = np.ascontiguousarray(solver.Q[:, : solver.m] @ Y[:, :good])
        self.steps, self.columns = solver.steps, solver.m
        solver.Q = np.empty((solver.n, 0))

    def correct(self, R: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """About (theta - A1)^-1 R, without what lies in the first p vectors."""
        Y, p = self.vectors, self.p
        values = self.theta[: Y.shape[1]]
        along = Y.T @ R
        R = R - Y @ along
        gaps = theta - values[p:, None]
        along = along[p:] / np.maximum(gaps, 1e-3 * theta[0])

        def shifted(D: np.ndarray) -> np.ndarray:
            """(theta - A1) D on the complement of the vectors."""
            image = theta * D - self.operator.matmat(D)
            image -= Y @ (Y.T @ image)
            return image

        goal = 1e-2 * np.sqrt(np.einsum("ij,ij->j", R, R))
        X = conjugate_gradients(shifted, R, goal=goal, most_steps=INNER).solution
        return X + Y[:, p:] @ along


class _Refined:
    """Block Davidson on all modes, from the vectors of the heavy ones."""

    def __init__(
        self, operator: Any, kept: np.ndarray, search: _Heavy, beta: float, c: int, tol: float, failure: float
    ):
        self.operator, self.kept, self.search = operator, kept, search
        self.beta, self.c, self.tol, self.failure = beta, c, tol, failure
        self.n = operator.map.n_features
        self.steps, self.columns = search.steps, search.columns

    def _product(self, V: np.ndarray) -> np.ndarray:
        self.steps += 1
        self.columns += V.shape[1]
        return self.operator.matmat(V)

    def run(self) -> Leading | None:
        p, c, beta = self.search.p, self.c, self.beta
        V = np.zeros((self.n, p + 1), order="F")
        V[self.kept] = self.search.vectors[:, : p + 1]
        V = np.linalg.qr(V)[0]
        images = self._product(V)
        for _ in range(ROUNDS):
            theta, S = _largest(V.T @ images, p + 1)
            if not theta[p - 1] > beta:
                return None
            X, Y = V @ S, images @ S
            R = Y - X * theta
            squares = np.einsum("ij,ij->j", R, R)
            rho = float(np.linalg.norm(R[:, :p], 2)) ** 2
            mu = beta + rho / (theta[p - 1] - beta)
            aim = 0.4 * self.tol * theta[0]
            gaps = np.maximum(theta - mu, 0.1 * (theta[p - 1] - beta))
            wide = squares / gaps
            # beyond the c-th they only have to keep mu where it is
            active = np.flatnonzero(
                np.where(np.arange(p + 1) < c, wide > aim / c, squares > 0.1 * (theta[p - 1] - beta) ** 2)[:p]
            )
            if wide[:c].sum() <= aim and rho <= 0.25 * (theta[p - 1] - beta) ** 2:
                active = active[:0]
            if len(active) == 0:
                break
            T = R[:, active] / theta[active]
            T[self.kept] = self.search.correct(np.ascontiguousarray(R[self.kept][:, active]), theta[active])
            T /= np.maximum(np.linalg.norm(T, axis=0), 1e-300)
            for _ in range(2):
                T -= V @ (V.T @ T)
                T = np.linalg.qr(T)[0]
            V = np.hstack([V, T])
            images = np.hstack([images, self._product(T)])
        return self._certified(X)

    def _certified(self, X: np.ndarray) -> Leading | None:
        p, c = self.search.p, self.c
        X = np.linalg.qr(X)[0]
        Y = self._product(X)
        H = X.T @ Y
        theta, S = _largest(H, p + 1)
        X, Y = X @ S, Y @ S
        R = Y - X * theta
        # a rotation of the images is a product of p + 1 terms each
        error = np.sqrt(p + 1.0) * self.operator.product_error + 16.0 * (p + 1) * UNIT * self.operator.norm
        rho = float(np.linalg.norm(R[:, :p], 2)) * (1.0 + 1e-6) + error
        low = theta[p - 1] - error - 1e-12 * theta[0]
        if not low > self.beta:
            return None
        ritz = RitzBlock(X.T @ Y, X.T @ X, R.T @ R, self.n, error)
        found = ritz_certificate(ritz, min(c + 1, p + 1), outside=gap_bound(self.beta, rho, low, self.failure))
        ends = found.eigenvalue_bounds[:c]
        if (ends[:, 1] - ends[:, 0]).max() > self.tol * theta[0]:
            return None
        residual = float(np.linalg.norm(R[:, :c])) + error
        kept = c + 1
        return Leading(
            theta[:kept].copy(), np.ascontiguousarray(X[:, :kept]), found, c, residual, self.steps, self.columns
        )


def _largest(H: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    return values[::-1][:k], vectors[:, ::-1][:, :k]

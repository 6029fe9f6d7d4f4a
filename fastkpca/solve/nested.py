"""Leading eigenpairs of a large operator that has a small copy of itself: two levels, with intervals.

The modes of ``maps.fourier`` have weights that fall by nine orders, but the part of the leading
eigenvectors in the light ones is small, and follows from that in the heavy ones. With A = [[A1, B'], [B, A2]], A1 the
heavy modes and A2 the light:

- Search. The heavy modes are a few percent of all, so a block Lanczos there costs very little. Its vectors start a
  block Davidson iteration on A: a residual r is corrected by r / theta where the modes are light, since A2 is far below
  theta, and by conjugate gradients with theta - A1 where they are heavy. A handful of products a vector are enough.
- Proof. A semidefinite, lambda_(p+1)(A) <= lambda_(p+1)(A1) + lambda_1(A2) (Aronszajn's inequality; Bhatia, Matrix
  Analysis, section III.2 for its relatives): that no eigenvalue was missed is shown on the heavy modes alone. If so at
  most p eigenvalues of A lie above beta, and V (p columns) has Ritz values theta_i > beta and residual R, then by the
  inertia of A - beta I and its Schur complement P A P <= beta + |R|^2 / (theta_p - beta) on the complement of V.

p is c or somewhat more: where the spectrum has a gap.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.protocol import OperatorMoments
from ..base.rounding import UNIT
from .basis import Basis
from .beyond import failure_of_attempt, gap_bound
from .certificate import ritz_certificate, upper_ends
from .conjugate_gradients import conjugate_gradients
from .lanczos import BLOCK, Lanczos, LeadingPairs, SymmetricOperator
from .task import SolverTarget

__all__ = ["nested_pairs", "pairs_above"]

SHARE = 2e-4
"""Heavy modes have weights from 1 down to this; or down to less, where the bound is then still too large."""
LEAST = 4000
"""Fewest features for which two levels pay."""
MOST_HEAVY = 0.4
"""Largest share of heavy modes with which two levels pay."""
ROUNDS = 8
HEAVY_COLUMNS = 640
"""Of the space of the heavy modes."""
HOPE = 0.9
"""The search goes on until eigenvalues outside its space would do no harm if they were below HOPE lambda_(p+1); that
they are is then proved."""
STEPS = 24
"""Block steps of such a proof, at most."""
INNER = 12
"""Steps of conjugate gradients at most."""


def nested_pairs(
    moments: OperatorMoments, target: SolverTarget, rng: np.random.Generator | int = 0
) -> LeadingPairs | None:
    """The largest eigenvalues, intervals at most tol * theta_1 wide; None where two levels don't get there.

    Parameters
    ----------
    moments : OperatorMoments
        With ``heavy``: without weights there are no two levels.
    target : SolverTarget
        A number of eigenvalues, not a fraction.
    rng : numpy.random.Generator or int
    """
    n, c = moments.map.n_features, target.c
    if n < LEAST:
        return None
    rng = np.random.default_rng(rng)
    share, proofs = SHARE, 0
    for _ in range(3):
        heavy = moments.heavy(share)
        if heavy is None:
            return None
        modes, kept, light_norm = heavy
        if len(kept) > MOST_HEAVY * n or len(kept) < 8 * c + 100:
            return None
        operator = SymmetricOperator(
            modes.matmat, modes.n_features, modes.trace, modes.norm, modes.product_error, modes.indefinite
        )
        search = _HeavySearch(operator, target, rng, proofs)
        beta = search.run(light_norm)
        proofs = search.proofs
        if beta is not None:
            beta += light_norm + moments.indefinite
            return _Refined(moments, kept, search, target).run(beta, target.failure)
        share *= min(0.3, search.gap / (5.0 * light_norm))
    return None


class _HeavySearch:
    """Block Lanczos on the heavy modes: p, Ritz vectors, and a bound on lambda_(p+1)."""

    def __init__(self, operator: SymmetricOperator, target: SolverTarget, rng: np.random.Generator, proofs: int):
        self.operator, self.c, self.rng, self.gap = operator, target.c, rng, 0.0
        self.failure = target.failure
        self.proofs = proofs
        """How many were tried in this run, those of other searches included."""
        self.lanczos = Lanczos(operator, HEAVY_COLUMNS, rng)

    def run(self, light_norm: float) -> float | None:
        """The bound; None if the light modes (norm at most ``light_norm``) could fill the gap, or the steps run out."""
        lanczos = self.lanczos
        least = 3.0 * self.c + 20.0
        while lanczos.room >= BLOCK:
            if lanczos.size:
                lanczos.step()
            else:
                lanczos.start(BLOCK)
            if lanczos.size < least:
                continue
            least = 1.06 * lanczos.size
            theta, Y = lanczos.basis.ritz()
            if not theta[0] > 0:
                return None
            p = self._widest_gap(theta)
            gap = self.gap
            if np.sqrt(lanczos.residual_squares(Y[:, :p]).max()) > 0.3 * gap:
                continue
            if gap < 3.0 * light_norm:
                return None
            # the proof must find what is outside of the basis below HOPE theta_p: would that do?
            L = np.linalg.qr(lanczos.next, mode="r") @ Y[-lanczos.next.shape[1] :]
            if upper_ends(np.diag(theta), L, HOPE * theta[p])[p] > theta[p] + 0.25 * gap:
                continue
            beta = self._proved(theta, Y, p)
            if beta + light_norm <= theta[p - 1] - 0.1 * gap:
                self._keep(theta, Y, p)
                return beta
            least = 1.3 * lanczos.size
        return None

    def _widest_gap(self, theta: np.ndarray) -> int:
        """The number of eigenvalues above it; a later gap has to be wider, since it needs more columns."""
        gaps = theta[self.c - 1 : 2 * self.c + 6] - theta[self.c : 2 * self.c + 7]
        number = int(np.argmax(gaps / (1.0 + 0.1 * np.arange(len(gaps)))))
        self.gap = float(gaps[number])
        return self.c + number

    def _proved(self, theta: np.ndarray, Y: np.ndarray, p: int) -> float:
        """An upper bound on lambda_(p+1) of the heavy modes; all calls of a run share one failure."""
        failure = failure_of_attempt(self.failure, self.proofs)
        self.proofs += 1
        bound = self.lanczos.explored_bound(theta[p], failure, share=HOPE, give_up=HOPE, most_steps=STEPS)
        if not np.isfinite(bound.mu):
            return np.inf
        certificate = ritz_certificate(self.lanczos.ritz_block(theta, Y), p + 1, outside=bound)
        return float(certificate.eigenvalue_bounds[p, 1])

    def _keep(self, theta: np.ndarray, Y: np.ndarray, p: int) -> None:
        lanczos = self.lanczos
        self.p, self.theta = p, theta
        # what the corrections deflate: vectors that are eigenvectors well enough
        residuals = np.sqrt(lanczos.residual_squares(Y))
        good = int(np.argmax(residuals > 0.05 * theta[0])) or len(theta)
        good = max(p + 1, min(good, 8 * p))
        self.vectors = np.ascontiguousarray(lanczos.basis.vectors(Y[:, :good]))
        self.steps, self.columns = lanczos.steps, lanczos.size
        del self.lanczos  # the next basis needs its memory

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

    def __init__(self, moments: OperatorMoments, kept: np.ndarray, search: _HeavySearch, target: SolverTarget):
        self.moments, self.kept, self.search = moments, kept, search
        self.c, self.tol = target.c, target.tol
        self.n = moments.map.n_features
        self.steps, self.columns = search.steps, search.columns
        self.rng = search.rng

    def _new_basis(self, V: np.ndarray) -> Basis:
        basis = Basis(self.n, self.rng, keeps_images=True)
        self._append(basis, V)
        return basis

    def _append(self, basis: Basis, V: np.ndarray) -> None:
        V = basis.orthonormal(V)
        self.steps += 1
        self.columns += V.shape[1]
        basis.append(V, self.moments.matmat(V))

    def run(self, beta: float, failure: float) -> LeadingPairs | None:
        """``beta`` is above all but p eigenvalues, except with probability ``failure``."""
        p = self.search.p
        V = np.zeros((self.n, p + 1), order="F")
        V[self.kept] = self.search.vectors[:, : p + 1]
        basis = self._new_basis(V)
        for _ in range(ROUNDS):
            theta, Y = _first(basis.ritz(), p + 1)
            if not theta[p - 1] > beta:
                return None
            R = basis.residuals(theta, Y)
            active = self._unfinished(theta, R, beta)
            if len(active) == 0:
                break
            T = R[:, active] / theta[active]
            T[self.kept] = self.search.correct(np.ascontiguousarray(R[self.kept][:, active]), theta[active])
            self._append(basis, T)
        # a rotation of the images is a product of p + 1 terms each
        error = np.sqrt(p + 1.0) * self.moments.product_error + 16.0 * (p + 1) * UNIT * self.moments.norm
        basis = self._new_basis(basis.vectors(Y))
        pairs = pairs_above(basis, p, SolverTarget(self.c, self.tol), beta, failure, error)
        return None if pairs is None else replace(pairs, steps=self.steps, columns=self.columns)

    def _unfinished(self, theta: np.ndarray, R: np.ndarray, beta: float) -> np.ndarray:
        """Indices of the vectors that still have to be corrected."""
        p, c = self.search.p, self.c
        squares = np.einsum("ij,ij->j", R, R)
        rho = float(np.linalg.norm(R[:, :p], 2)) ** 2
        mu = beta + rho / (theta[p - 1] - beta)
        goal = 0.4 * self.tol * theta[0]
        widths = squares / np.maximum(theta - mu, 0.1 * (theta[p - 1] - beta))
        if widths[:c].sum() <= goal and rho <= 0.25 * (theta[p - 1] - beta) ** 2:
            return np.empty(0, dtype=np.intp)
        # beyond the c-th they only have to keep mu where it is
        wide = np.where(np.arange(p + 1) < c, widths > goal / c, squares > 0.1 * (theta[p - 1] - beta) ** 2)
        return np.flatnonzero(wide[:p])


def pairs_above(
    basis: Basis, p: int, target: SolverTarget, beta: float, failure: float, error: float
) -> LeadingPairs | None:
    """Those of A, of which at most p eigenvalues lie above ``beta``, in a basis of p + 1 columns and their images.

    None where that does not make intervals narrow enough.

    Parameters
    ----------
    basis : Basis
        Of approximate eigenvectors, with images.
    p : int
        At least the number wanted.
    target : SolverTarget
    beta, failure : float
        The bound fails with probability ``failure``.
    error : float
        Bound on the error of the images, in Frobenius norm.
    """
    c, (theta, Y) = target.c, basis.ritz()
    R = basis.residuals(theta, Y)
    rho = float(np.linalg.norm(R[:, :p], 2)) * (1.0 + 1e-6) + error
    low = theta[p - 1] - error - 1e-12 * theta[0]
    if not low > beta:
        return None
    ritz = basis.ritz_block(Y, R, error)
    certificate = ritz_certificate(ritz, c + 1, outside=gap_bound(beta, rho, low, failure))
    ends = certificate.eigenvalue_bounds[:c]
    if (ends[:, 1] - ends[:, 0]).max() > target.tol * theta[0]:
        return None
    residual = float(np.linalg.norm(R[:, :c])) + error
    vectors = np.ascontiguousarray(basis.vectors(Y)[:, : c + 1])
    return LeadingPairs(theta[: c + 1].copy(), vectors, certificate, c, residual, 1, p + 1)


def _first(pairs: tuple[np.ndarray, np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
    theta, Y = pairs
    return theta[:k], Y[:, :k]

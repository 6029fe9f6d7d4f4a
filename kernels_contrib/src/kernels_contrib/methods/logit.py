"""Truncated Newton for logistic models, in the function space of a kernel: one product a step of its inner iteration.

A function is a pair (coefficients, values at the rows). Functions that the rows span are made by ``lift``: from
numbers r at the rows to sum_i r_i k(x_i, .), whose values are K r. The gradient is lift(p - z) + lambda f. The Hessian
is f -> lift(W f) + lambda f with W = diag(p) - p p' at each row. Both are in the inner product of the kernel's own
space. There the matrix of conjugate gradients is K^(1/2) W K^(1/2) + lambda I, so that K's condition number is not
squared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from fastkpca.base.rounding import EPS
from fastkpca.methods import conjugate_gradients

Lift = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Logit:
    """``weights`` are what ``lift`` made them of; ``gradient`` is relative to the first."""

    weights: np.ndarray
    intercept: np.ndarray
    probability: np.ndarray
    log_likelihood: float
    gradient: float
    iterations: int
    lifts: int

    @property
    def info(self) -> dict[str, Any]:
        return {"iterations": self.iterations, "gradient": float(self.gradient)}


def lift_through(Phi: Any) -> Lift:
    """``lift`` for K = Phi Phi', a matrix or a linear operator; coefficients are those of the features."""

    def lift(R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = Phi.T @ R
        return weights, Phi @ weights

    return lift


def _probability(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(probabilities, log of the normaliser at each row); a single column is the log odds of two classes."""
    if logits.shape[1] == 1:
        return expit(logits), np.logaddexp(0.0, logits[:, 0])
    largest = logits.max(axis=1, keepdims=True)
    values = np.exp(logits - largest)
    total = values.sum(axis=1, keepdims=True)
    return values / total, (largest + np.log(total))[:, 0]


def _curvature(p: np.ndarray, V: np.ndarray) -> np.ndarray:
    """W V, row by row."""
    if p.shape[1] == 1:
        return p * (1.0 - p) * V
    return p * (V - np.sum(p * V, axis=1, keepdims=True))


def fit_logit(
    target: np.ndarray,
    strength: float,
    *,
    lift: Lift,
    tol: float,
    max_iterations: int,
    plain: bool = False,
    sample_weight: np.ndarray | None = None,
) -> Logit:
    """Minimise -log-likelihood + strength/2 |f|^2.

    Parameters
    ----------
    target : ndarray (N, k)
        Indicators: of the second of two classes (k = 1), or of each class.
    strength : float
        Positive; with ``plain`` it may be zero.
    lift : callable
        R (N, k) -> (coefficients, values at the rows) of sum_i R_i k(x_i, .).
    tol : float
        Norm of the gradient, relative to the first, to stop at.
    max_iterations : int
        Most Newton steps.
    plain : bool
        Coefficients are coordinates with the ordinary inner product (features), rather than numbers at the rows with
        the inner product of K.
    sample_weight : ndarray (N,), optional
        Weight of each row's term of the log-likelihood.
    """
    problem = _Problem(target, strength, lift, plain, sample_weight)
    f = problem.start()
    cost, p = problem.cost(f)
    first, iterations = 0.0, 0
    lowest = flattest = np.inf
    while True:
        slope = problem.slope(f, p)
        size = np.sqrt(max(problem.inner(slope, slope), 0.0))
        first = first or size or 1.0
        gradient = size / first
        if gradient <= tol or iterations >= max_iterations or (cost >= lowest and gradient >= flattest):
            break  # the last: steps within rounding, which would go on for ever
        lowest, flattest = min(lowest, cost), min(flattest, gradient)
        step = problem.newton_step(p, slope, min(0.1, np.sqrt(gradient)))
        better = problem.shortened(f, step, cost, problem.inner(slope, step))
        if better is None:
            break
        f, cost, p = better
        iterations += 1
    coefficients, _, intercept = problem.parts(f)
    return Logit(coefficients, intercept, p, problem.likelihood(f)[0], gradient, iterations, problem.lifts)


class _Problem:
    """Cost, slope and Newton's steps. A function is an array: coefficients, values at the rows, and the intercept."""

    def __init__(self, target: np.ndarray, strength: float, lift: Lift, plain: bool, sample_weight: np.ndarray | None):
        self.target, self.strength, self.plain = target, strength, plain
        self.weights = (np.ones(len(target)) if sample_weight is None else sample_weight)[:, None]
        self._lift, self.lifts = lift, 0

    def lift(self, R: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """The function of these coefficients at the rows, and an intercept."""
        self.lifts += 1
        return np.vstack([*self._lift(R), intercept])

    def parts(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        end = len(f) - len(self.target) - 1
        return f[:end], f[end:-1], f[-1]

    def inner(self, f: np.ndarray, g: np.ndarray) -> float:
        # the intercept is an ordinary coordinate; without penalty it is scaled to weigh as a row does
        coefficients, (own, values, intercept) = self.parts(f)[0], self.parts(g)
        return float(np.sum(coefficients * (own if self.plain else values)) + f[-1] @ intercept)

    def start(self) -> np.ndarray:
        """Zero, with the intercept that gives each class its share."""
        share = np.clip(np.sum(self.weights * self.target, axis=0) / self.weights.sum(), 1e-12, None)
        logs = np.log(share)
        intercept = np.log(share / (1.0 - share)) if len(share) == 1 else logs - logs.mean()
        return self.lift(np.zeros_like(self.target), intercept)

    def likelihood(self, f: np.ndarray) -> tuple[float, np.ndarray]:
        """(its logarithm, probabilities at the rows)."""
        logits = self.parts(f)[1] + f[-1]
        p, normaliser = _probability(logits)
        return float(np.sum(self.weights * self.target * logits) - self.weights[:, 0] @ normaliser), p

    def cost(self, f: np.ndarray) -> tuple[float, np.ndarray]:
        """(what is minimised, probabilities at the rows)."""
        likelihood, p = self.likelihood(f)
        return -likelihood + 0.5 * self.strength * (self.inner(f, f) - float(f[-1] @ f[-1])), p

    def slope(self, f: np.ndarray, p: np.ndarray) -> np.ndarray:
        R = self.weights * (p - self.target)
        slope = self._with_penalty(R, f)
        # of an intercept that is right, the rounding: it would be all that a kernel near zero has to show
        slope[-1] = np.where(np.abs(slope[-1]) > 8 * EPS * np.abs(R).sum(axis=0), slope[-1], 0.0)
        return slope

    def _with_penalty(self, R: np.ndarray, f: np.ndarray) -> np.ndarray:
        """lift(R) + strength f, and the intercept's sum of R."""
        k = R.shape[1]
        if k > 1:
            # an equal change of all classes has no effect: its rounding errors have no curvature to divide by
            R = R - (R @ np.full(k, 1.0 / k))[:, None]
        sums = R.sum(axis=0)
        result = self.lift(R, sums - sums.mean() if k > 1 else sums)
        result[:-1] += self.strength * f[:-1]
        return result

    def newton_step(self, p: np.ndarray, slope: np.ndarray, accuracy: float) -> np.ndarray:
        """Hessian step = -slope by conjugate gradients, until the residual is ``accuracy`` of it."""

        def hessian(column: np.ndarray) -> np.ndarray:
            f = column.reshape(slope.shape)
            curved = self.weights * _curvature(p, self.parts(f)[1] + f[-1])
            return self._with_penalty(curved, f).reshape(-1, 1)

        def products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
            return np.array([self.inner(A.reshape(slope.shape), B.reshape(slope.shape))])

        target = -slope.reshape(-1, 1)
        goal = accuracy * np.sqrt(products(target, target))
        step = conjugate_gradients(hessian, target, goal=goal, most_steps=500, inner=products).solution
        return (step if step.any() else target).reshape(slope.shape)

    def shortened(
        self, f: np.ndarray, step: np.ndarray, cost: float, descent: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """(f + length step, its cost, its probabilities), halved until the cost falls enough; or None."""
        length = 1.0
        for _ in range(40):
            trial = f + length * step
            new, p = self.cost(trial)
            if new <= cost + 1e-4 * length * descent or (length == 1.0 and abs(new - cost) <= 1e-14 * abs(cost)):
                return trial, new, p
            length *= 0.5
        return None

"""Truncated Newton for logistic models, in the function space of a kernel: one product a step of its inner iteration.

A function is a pair (coefficients, values at the rows). Functions that the rows span are made by ``lift``: from
numbers r at the rows to sum_i r_i k(x_i, .), whose values are K r. The gradient is lift(p - z) + lambda f, the Hessian
f -> lift(W f) + lambda f with W = diag(p) - p p' at each row, both in the inner product of the kernel's own space, in
which conjugate gradients see (K^(1/2) W K^(1/2) + lambda I): never the square of K's condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fastkpca.solve.conjugate_gradients import conjugate_gradients

__all__ = ["Logit", "fit_logit"]

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


def _probability(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(probabilities, log of the normaliser at each row); a single column is the log odds of two classes."""
    if logits.shape[1] == 1:
        size = np.abs(logits)
        small = np.exp(-size)
        one = 1.0 / (1.0 + small)
        return np.where(logits >= 0, one, small * one), np.maximum(logits[:, 0], 0.0) + np.log1p(small[:, 0])
    top = logits.max(axis=1, keepdims=True)
    values = np.exp(logits - top)
    total = values.sum(axis=1, keepdims=True)
    return values / total, (top + np.log(total))[:, 0]


def _curvature(p: np.ndarray, V: np.ndarray) -> np.ndarray:
    """W V, row by row."""
    if p.shape[1] == 1:
        return p * (1.0 - p) * V
    return p * (V - np.sum(p * V, axis=1, keepdims=True))


def fit_logit(target: np.ndarray, strength: float, *, lift: Lift, tol: float, most: int, plain: bool = False) -> Logit:
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
    most : int
        Newton steps.
    plain : bool
        Coefficients are coordinates with the ordinary inner product (features), rather than numbers at the rows with
        the inner product of K.
    """
    k = target.shape[1]
    lifts = 0

    def lifted(R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal lifts
        lifts += 1
        return lift(R)

    def inner(a: tuple, b: tuple) -> float:
        # the third part is the intercept, an ordinary coordinate; without penalty it is scaled to weigh as a row does
        return float(np.sum(a[0] * (b[0] if plain else b[1])) + a[2] @ b[2])

    def value(logits: np.ndarray, f: tuple) -> tuple[float, np.ndarray, np.ndarray]:
        p, normaliser = _probability(logits)
        likelihood = float(np.sum(target * logits) - normaliser.sum())
        return -likelihood + 0.5 * strength * (inner(f, f) - float(f[2] @ f[2])), p, normaliser

    start = lifted(np.zeros_like(target))
    zero = np.zeros(k)
    f = (np.zeros_like(start[0]), np.zeros_like(start[1]), zero)
    share = np.clip(target.mean(axis=0), 1e-12, None)
    f = (f[0], f[1], np.log(share / (1.0 - share)) if k == 1 else np.log(share) - np.log(share).mean())
    cost, p, _ = value(f[1] + f[2], f)
    first, gradient, iterations = 0.0, np.inf, 0
    while True:
        pulled = lifted(p - target)
        slope = (
            pulled[0] + strength * f[0],
            pulled[1] + strength * f[1],
            (p - target).sum(axis=0),
        )
        size = np.sqrt(max(inner(slope, slope), 0.0))
        first = first or size or 1.0
        gradient = size / first
        if gradient <= tol or iterations >= most:
            break
        step = _newton(p, slope, strength, lifted, inner, min(0.1, np.sqrt(gradient)))
        descent = inner(slope, step)
        length, improved = 1.0, False
        for _ in range(40):
            trial = tuple(a + length * b for a, b in zip(f, step))
            new, new_p, _ = value(trial[1] + trial[2], trial)
            if new <= cost + 1e-4 * length * descent or (length == 1.0 and abs(new - cost) <= 1e-14 * abs(cost)):
                improved = True
                break
            length *= 0.5
        if not improved:
            break
        f, cost, p = trial, new, new_p
        iterations += 1
    _, p, normaliser = value(f[1] + f[2], f)
    likelihood = float(np.sum(target * (f[1] + f[2])) - normaliser.sum())
    return Logit(f[0], f[2], p, likelihood, gradient, iterations, lifts)


def _newton(p: np.ndarray, slope: tuple, strength: float, lift: Lift, inner: Callable, accuracy: float) -> tuple:
    """Hessian step = -slope by conjugate gradients, until the residual is ``accuracy`` of it."""
    shapes = [part.shape for part in slope]
    ends = np.cumsum([part.size for part in slope])[:-1]

    def parts(column: np.ndarray) -> tuple:
        return tuple(x.reshape(shape) for x, shape in zip(np.split(column[:, 0], ends), shapes))

    def column(f: tuple) -> np.ndarray:
        return np.concatenate([part.ravel() for part in f])[:, None]

    def hessian(V: np.ndarray) -> np.ndarray:
        d = parts(V)
        bent = _curvature(p, d[1] + d[2])
        image = lift(bent)
        return column((image[0] + strength * d[0], image[1] + strength * d[1], bent.sum(axis=0)))

    def products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.array([inner(parts(A), parts(B))])

    target = -column(slope)
    goal = accuracy * np.sqrt(products(target, target))
    step = conjugate_gradients(hessian, target, goal=goal, most_steps=500, inner=products).solution
    return parts(step if step.any() else target)

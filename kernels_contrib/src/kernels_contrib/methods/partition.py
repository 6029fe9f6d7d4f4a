"""Clusterings into k parts: how they are found among points, and what is proved about all others.

Rows have images phi_i and weights w_i > 0, W in sum; phi_i is measured from their weighted mean. Let A be the centred,
weighted kernel matrix sqrt(w_i w_j) phi_i.phi_j, with trace T and eigenvalues lambda_1 >= lambda_2 >= ... For a
clustering C into k parts let Y have the columns sqrt(w_i / w(C_j)) for i in C_j, 0 elsewhere. They are orthonormal, and
sqrt(w / W), which A maps to zero, is in their span. So Q = Y Y' = P + sqrt(w) sqrt(w)' / W with a projection P of rank
k - 1, and

    cost(C) = sum_j sum_(i in C_j) w_i |phi_i - mean of C_j|^2 = T - tr(P A).

**Any cost** (Zha, Ding, Gu, He, Simon 2001; Ding, He 2004). tr(P A) is at most the sum of the k - 1 largest eigenvalues
(Ky Fan), so that cost(C) >= T - (lambda_1 + ... + lambda_(k-1)) =: least. With fewer parts it costs no less.

**Any other that is as good.** For a second clustering C' with Q' and P', cost(C') <= cost(C) says tr(P'A) >= tr(P A).
For every mu > 0, tr(P'(A - mu P)) is at most S(mu), the sum of the k - 1 largest eigenvalues of A - mu P, so that

    eps := k - 1 - (tr(P A) - S(mu)) / mu >= k - 1 - tr(P'P) = k - tr(Q'Q) = k - sum_ij a_ij b_ij,
    a_ij = m_ij / w(C_i),   b_ij = m_ij / w(C'_j),   m_ij = w(C_i and C'_j).

mu is free: the smallest eps counts. A is known from above: let U have q orthonormal columns, R = (I - U U') A U, and
x'Ax <= beyond |x|^2 for all x with U'x = 0. For every rho > 0, 2 x'R y <= |R y|^2 / rho + rho |x|^2, so with rho = |R|

    A <= U (U'A U + rho I) U' + (beyond + rho) (I - U U'),    beyond <= lambda_1 + ... + lambda_(q+1) - tr(U'A U),

the latter by Ky Fan again. So S(mu) takes the eigenvalues of a matrix of order q + k, on the span of U and Y, and
beyond + rho as often as needed.

(That a bound on eps bounds how many rows differ is Meila 2006, 2018; the constants are derived here.) Let eps < 1/2. In
row i sum_j a_ij b_ij <= max_j b_ij, as the a_ij sum to one, so max_j b_ij >= 1 - eps_i with sum eps_i <= eps. Each of
these maxima is above 1/2, so each is in a column of its own: number the columns such that it is b_ii. Likewise sum_j
(1 - max_i a_ij) <= eps, with a maximum above 1/2 in each column, and a row of its own for each. These are the same
pairs. For suppose that column j had its maximum in row i != j. Then a_ij > 1/2 and b_ij <= 1 - b_jj. Row i would fall
short of 1 by at least a_ij b_jj > b_jj / 2, and row j by at least 1 - b_jj: together 1 - b_jj / 2 >= 1/2 > eps. Let
a_ii = 1 - alpha_i, b_ii = 1 - beta_i, alpha = sum alpha_i <= eps, beta = sum beta_i <= eps. Off the diagonal sum a_ij
b_ij <= (sum a_ij) (sum b_ij) = alpha beta, and sum alpha_i beta_i <= alpha beta, so

    eps >= k - sum (1 - alpha_i) (1 - beta_i) - alpha beta >= alpha + beta - 2 alpha beta.

The weight t W that is in other parts of C' than its own is sum w(C_i) alpha_i = sum w(C'_i) beta_i. With p the largest
share w(C_i) / W, no part of C' has a larger share than p + t; so alpha >= t / p and beta >= t / (p + t). The right side
grows with alpha and with beta, both below 1/2. With x = t / p this is eps >= (2 x - x^2) / (1 + x), which grows in x up
to 1/2, so

    t <= p x,    x = (2 - eps - sqrt((2 - eps)^2 - 4 eps)) / 2    (eps / 2 and a little; 1/2 at eps = 1/2).

For 1/2 <= eps < 1 the first step is left, for the columns: sum_j (1 - max_i a_ij) <= eps < 1, and two of these maxima
are never in one row, whose sum is one. So they match the parts, t W <= sum w(C_i) (1 - a_ij) <= p W eps: t <= p eps.
A bound of 1 - 1 / k or more is void: the mean over all matchings of any two clusterings reaches that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar

from .products import DRAFT_ROWS

Product: TypeAlias = Callable[[np.ndarray], np.ndarray]

N_STARTS = 10
"""Starts of k-means among points, of which the best goes on: scikit-learn's number before 1.4."""


def share_that_may_differ(eps: float, largest: float) -> float:
    """The bound t at the end of the proof; 1.0 where it is none. ``largest`` is p."""
    if not eps < 1.0:
        return 1.0
    x = (2.0 - eps - np.sqrt((2.0 - eps) ** 2 - 4.0 * eps)) / 2.0 if eps < 0.5 else eps
    return float(largest * x)


@dataclass(frozen=True)
class Frame:
    """The centred kernel matrix A from above: on orthonormal columns U, and outside their span.

    Attributes
    ----------
    U : ndarray (N, q)
    within : ndarray (q, q)
        U'A U + rho I.
    beyond : float
        Bound on the complement, at least 0.
    """

    U: np.ndarray
    within: np.ndarray
    beyond: float

    def leading_sum(self, along: np.ndarray, outside: np.ndarray, mu: float) -> float:
        """S(mu) for k - 1 eigenvalues: ``along`` is U'Y, and rest'rest = Y'Y - Y'U U'Y, with Y off sqrt(w)."""
        (q, k), direction = along.shape, np.vstack([along, outside])
        matrix = -mu * direction @ direction.T
        matrix[:q, :q] += self.within
        matrix[q:, q:] += self.beyond * np.eye(k)
        values = np.maximum(np.linalg.eigvalsh(matrix)[::-1], self.beyond)
        return float(values[: k - 1].sum())


def frame(points: np.ndarray, weights: np.ndarray, product: Product, upper: np.ndarray, error: float) -> Frame:
    """A from above on the span of leading components.

    Parameters
    ----------
    points : ndarray (N, q)
        Coordinates of the rows along the components.
    weights : ndarray (N,)
    product : function
        A U.
    upper : ndarray (at least q + 1,)
        Upper ends of the eigenvalues.
    error : float
        Error of a column of A U.
    """
    U = np.linalg.qr(np.sqrt(weights)[:, None] * points)[0]
    q = U.shape[1]
    AU, error = product(U), np.sqrt(q) * error
    inner = U.T @ AU
    inner = (inner + inner.T) / 2
    rho = float(np.linalg.norm(AU - U @ inner, 2)) + error
    beyond = max(float(upper[: q + 1].sum() - np.trace(inner)) + q * error, 0.0)
    return Frame(U, inner + (rho + error) * np.eye(q), beyond + rho)


def _least_eps(frame: Frame, labels: np.ndarray, weights: np.ndarray, sizes: np.ndarray, between: float) -> float:
    """The smallest eps over mu; ``between`` is the lower end of tr(P A)."""
    k, roots = len(sizes), np.sqrt(sizes)
    along = means(frame.U / np.sqrt(np.where(weights > 0.0, weights, 1.0))[:, None], labels, weights, k).T * roots
    values, vectors = np.linalg.eigh(np.eye(k) - np.outer(roots, roots) / sizes.sum() - along.T @ along)
    outside = (vectors * np.sqrt(np.maximum(values, 0.0))).T

    def eps(log_mu: float) -> float:
        mu = np.exp(log_mu)
        return k - 1 - (between - frame.leading_sum(along, outside, mu)) / mu

    scale = np.log(max(float(frame.within.max()), 1e-300))
    grid = scale + np.linspace(-7.0, 7.0, 29)
    best = grid[int(np.argmin([eps(x) for x in grid]))]
    found = minimize_scalar(eps, bounds=(best - 0.5, best + 0.5), method="bounded", options={"xatol": 1e-3})
    return max(float(found.fun), 0.0)


def certificate(
    remainder: float,
    costs: tuple[float, float],
    bounds: np.ndarray,
    clustering: tuple[np.ndarray, np.ndarray, np.ndarray],
    frame: Frame,
    between: float,
    floor: float = 0.0,
) -> dict[str, Any]:
    """The certificate of a clustering into k parts: fields of a ``Grouping``, labels and sizes among them.

    Parameters
    ----------
    remainder : float
        Lower end of T less the k - 1 largest eigenvalues.
    costs : tuple of float
        Ends of the cost of this clustering.
    bounds : ndarray (2, 2)
        Intervals around the eigenvalues k - 1 and k; of no matter for one part.
    clustering : labels (N,), weights (N,), sizes (k,)
    frame : Frame
    between : float
        Lower end of tr(P'A) for every C' that costs no more, that of C among them.
    floor : float
        Lower bound on every cost: negative where A has a negative part, as from rounding.
    """
    labels, weights, sizes = clustering
    least = min(max(remainder, floor), costs[1])
    gap, differing = np.zeros(2), 0.0
    if len(sizes) > 1:  # else there is no other
        gap = np.array([bounds[0, 0] - bounds[1, 1], bounds[0, 1] - bounds[1, 0]])
        eps = _least_eps(frame, labels, weights, sizes, between)
        differing = share_that_may_differ(eps, float(sizes.max() / sizes.sum()))
        differing = differing if differing < 1.0 - 1.0 / len(sizes) else 1.0
    fields = {"cost_bounds": np.array(costs), "least_cost": least, "differing": differing, "gap": gap}
    return fields | {"sizes": sizes, "labels": labels}


def indicators(labels: np.ndarray, weights: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(B, sizes): column j of B (N, k) gives the mean of part j less that of all rows, sizes (k,) its weight."""
    sizes = np.bincount(labels, weights, minlength=k)
    B = np.repeat(-weights[:, None] / weights.sum(), k, axis=1)
    B[np.arange(len(labels)), labels] += weights / sizes[labels]
    return B, sizes


def filled(labels: np.ndarray, squares: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """The labels with a row in each part that has none of positive weight: the rows farthest from their centres."""
    labels = labels.copy()
    far = iter(np.argsort(squares * weights)[::-1])
    sizes = np.bincount(labels[weights > 0.0], minlength=k)
    for part in np.flatnonzero(sizes == 0):
        row = next(row for row in far if sizes[labels[row]] > 1)
        sizes[labels[row]] -= 1
        labels[row] = part
    return labels


def means(Z: np.ndarray, labels: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """Means (k, q) of the parts among the points Z (N, q)."""
    sums = np.stack([np.bincount(labels, weights * column, minlength=k) for column in Z.T], axis=1)
    return sums / np.bincount(labels, weights, minlength=k)[:, None]


def nearest(Z: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number of the nearest centre for each row of Z, and its squared distance."""
    values = Z @ (-2.0 * centres.T) + np.einsum("ij,ij->i", centres, centres)
    labels = np.argmin(values, axis=1)
    squares = np.einsum("ij,ij->i", Z, Z) + values[np.arange(len(Z)), labels]
    return labels, np.maximum(squares, 0.0)


def _seeds(Z: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ (Arthur, Vassilvitskii 2007), the best of a few trials for each centre."""
    centres = Z[[rng.choice(len(Z), p=weights / weights.sum())]]
    squares = nearest(Z, centres)[1]
    trials = 2 + int(np.log(k))
    # rows whose images are the same differ by rounding
    least = 1e-13 * max(float(np.einsum("ij,ij->i", Z, Z).max()), 1e-300)
    while len(centres) < k:
        chances = weights * np.where(squares > least, squares, 0.0)
        if not chances.sum() > 0.0:
            raise ValueError(
                f"the rows have only {len(centres)} different images under this kernel, fewer than {k} groups; take a "
                "smaller k, or check X"
            )
        found = []
        for row in rng.choice(len(Z), size=trials, p=chances / chances.sum()):
            closer = np.minimum(squares, nearest(Z, Z[[row]])[1])
            found.append((float(weights @ closer), int(row), closer))
        _, row, squares = min(found, key=lambda x: x[:2])
        centres = np.vstack([centres, Z[row]])
    return centres


def _lloyd(Z: np.ndarray, weights: np.ndarray, centres: np.ndarray) -> tuple[float, np.ndarray]:
    """(cost, labels) where Lloyd's algorithm ends; a part that gets empty begins anew at the row farthest from all."""
    k, before = len(centres), np.inf
    while True:  # each step but the last gains something, and there are not endlessly many partitions
        labels, squares = nearest(Z, centres)
        cost = float(weights @ squares)
        if not cost < before:
            return cost, labels
        before = cost
        labels = filled(labels, squares, weights, k)
        centres = means(Z, labels, weights, k)


def partition(Z: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Labels (N,) of k groups among the points Z (N, q): k-means++ and Lloyd's algorithm, the best of some starts.

    Raises
    ------
    ValueError
        There are fewer than k different points.
    """
    n = len(Z)
    if n <= DRAFT_ROWS:
        return min((_lloyd(Z, weights, _seeds(Z, weights, k, rng)) for _ in range(N_STARTS)), key=lambda x: x[0])[1]
    some = np.sort(rng.choice(n, DRAFT_ROWS, replace=False, p=weights / weights.sum()))
    ones = np.ones(DRAFT_ROWS)
    try:  # rows drawn by weight count once
        centres = means(Z[some], partition(Z[some], ones, k, rng), ones, k)
    except ValueError:  # too few different points: all of them may have more
        centres = _seeds(Z, weights, k, rng)
    return _lloyd(Z, weights, centres)[1]

"""Intervals of second order: the residual R of a feature map moves an eigenvalue by v' R v and terms of order |R|^2.

K = Phi Phi' + R, R semidefinite, |R| <= nu (docs/theory.md calls it E; here E is the expectation). G = H Phi Phi' H has
the eigenvalues theta_1 >= theta_2 >= ..., and V its first k eigenvectors. In this module A is not the centred matrix,
which is Kc: let B = H R H and, k x k, A = V' B V, which is V' R V because H V = V. Without centring H = I; with weights
w the matrices are W^(1/2) K W^(1/2) and W^(1/2) R W^(1/2). In the basis (V, complement)

    Kc = [ Theta + A   C'    ]     G_2 <= theta_(k+1) I,     B = [ A  C' ]     0 <= B <= nu I,
         [ C           G_2+D ]                                   [ C  D  ]

so that lambda_j(Theta + A) <= lambda_j(Kc) (Cauchy's interlacing).

**A known, and C'C** (a pass computes Kc V, and C'C is the Gram matrix of the residuals of its Ritz vectors). D <= nu I,
so the complement of V has no eigenvalue above mu = theta_(k+1) + nu, and `certificate.ritz_certificate` gives the
intervals (`OfMap`). The bound C'C <= A (nu I - A), used below, is weaker: it gave four to ten times wider intervals on
real rows.

**A bounded from above by X, C not known.** By Schur's complement of nu I - B >= 0, D <= nu I - C (nu I - A)^(-1) C'.
From B^2 <= nu B follows C'C <= A (nu I - A). For tau > mu, Kc and Theta + A + C' (tau I - G_2 - D)^(-1) C have the same
number of eigenvalues above tau (Sylvester). With g = tau - mu, N = C'C and W = (nu I - A)^(-1) the last term is at most

    C' (g I + C W C')^(-1) C = (g N^(-1) + W)^(-1) <= A (nu I - A) (g I + A)^(-1),

as it increases with N (where something is singular, add a little and let it vanish). A + A (nu I - A) (g I + A)^(-1) =
(g + nu) (I - g (g I + A)^(-1)) increases with A: X may take A's place. Where an eigenvalue x of X is above nu,
x (nu - x) is below 0 and is dropped. Therefore

    lambda_j(Kc) <= max(mu, lambda_j [ Theta + X   S      ]),     S^2 = the positive part of X (nu I - X).
                                     [ S           mu - X ]

No end is worse than theta_j or theta_j + nu (Weyl). (X must not be cut off at nu: A <= X and A <= nu I do not say that
A is at most X so cut off.)

**A from a sample of rows.** r_i >= R_ii are known for every row. Row i is drawn with probability p_i, independently of
the others, after map, V, r, p and the numbers below are fixed; of the rows drawn y_i' = e_i' R V are computed. A is the
sum of X_i = sym(v_i y_i'), v_i' the rows of V. Let T be the sum of X_i / p_i over the rows drawn, and M that of
(1 - p_i) X_i^2 / p_i^2. Let L >= |X_i| / p_i wherever p_i < 1. For any eta > 0 with z = eta L < 1, with probability at
least 1 - k e^(-l)

    T - A <= eta phi(z) M + (l / eta) I,     phi(z) = (-log(1 - z) - z) / z^2,

and the same for A - T. A row with p_i = 1 is certain and adds no error: S = N is the pass.

Proof. Lemma: E exp(x (b - p) - phi(z) x^2 (1 - p) b) <= 1 where b is 1 with probability p, else 0, and |x| <= z < 1.
That is x - (1 - p) phi x^2 <= log(1 + (exp(p x) - 1) / p). At x = 0 both sides are 0. For x > 0 the derivative of the
right side is p / (1 - (1 - p) exp(-p x)). As exp(-p x) >= 1 - p x, it is at least 1 / (1 + (1 - p) x) >= 1 - (1 - p) x,
and phi >= 1/2. For x < 0 the right side is log(1 - int_0^|x| exp(-p s) ds), which is concave in p. It is x at p = 1,
and log(1 + x) >= x - phi x^2 for p -> 0, as (x - log(1 + x)) / x^2 falls with x (Fan, Grama and Liu, Electron. J.
Probab. 20, 2015). So it is at least the mean of these two with weights p and 1 - p. Now take for x the eigenvalues of
eta X_i / p_i. All terms are functions of X_i, so

    E exp(eta X_i (b_i / p_i - 1) - eta^2 phi (1 - p_i) b_i X_i^2 / p_i^2) <= I.

By Lieb's theorem (Tropp, Found. Comput. Math. 12, 2012, lemma 3.4) the mean of tr exp of the sum over i is at
most tr exp(0) = k, and the claim follows by Markov's inequality. It is an empirical Bernstein inequality, as those of
Wang and Ramdas (2024), for rows that are drawn or not. It bounds A as a matrix: each direction has its own error.

- The same for Z A Z, Z any fixed positive diagonal matrix: |Z y_i|^2 <= r_i |Z A Z|, so that L = sqrt(|Z A Z|) times
  the largest |Z v_i| sqrt(r_i) / p_i. For each eigenvalue there is one Z, z_i^2 = 1 / (1 + |theta_i - theta_j| / s):
  the error of A in direction i may be 1 + |theta_i - theta_j| / s times that in direction j, where it does not matter,
  since there is a gap. What counts is the error of a number then, not of a matrix. And one Z = I, for angles.
- k is the trace of exp(0). With exp(-H), H = -log Z^2, it is tr Z^2 instead, and (l I + H) / eta replaces l / eta.
- beta = |Z A Z| is not known. As beta <= F(beta), F(b) = |Z T Z + (error for b)|, and F increases, any b >= beta may be
  replaced by F(b), from b = nu on.
- eta must not depend on the sample. There are `ETA_GRID` of them, and two sides, for each Z; l has the logarithm of
  their number, and then all hold at once: the best one is taken.
- An error of y_i adds |Z v_i| |error| / p_i, of each row drawn.

**Rounding.** The computed V is not quite orthonormal and G V not quite V Theta. Let S = V'V, |S - I| <= delta <= 1/4,
and F = G V - V Theta, |F| <= f. For the orthonormal V_o = V S^(-1/2), V_o' G V_o differs from Theta by at most
3 delta theta_1 + 1.5 f, and its coupling with the complement is at most 1.2 f. Ky Fan's theorem for k + 1 eigenvalues
bounds G_2. V_o' B V_o is within 3 delta nu of V' B V. All of that is `Leading.error`, which is added at both
ends (Weyl).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.rounding import UNIT, rounding_factor
from .certificate import (
    Bound,
    Certificate,
    Eigenpairs,
    FeatureSums,
    RitzBlock,
    angle_bounds,
    cluster_labels,
    feature_certificate,
    ritz_certificate,
)
from .certifier import Certifier, Proof

ETA_GRID = 0.95 * 2.0 ** (np.arange(-10, 10) / 3.0)
"""eta, over 1 / L for |Z A Z| = nu: from sqrt(2 l / S), the least that pays, to 1 / L where |Z A Z| is nu / 60."""
ERROR_FACTOR = 1.15
"""Factor on the predicted error, which assumes rows of equal influence; on real rows the ratio is .9 to 1.3
(``benchmarks/speed/loose.py``)."""
MIN_PROBABILITY = float(np.sqrt(UNIT))
"""Probability below which no row is drawn: random numbers are multiples of 2^-53."""


@dataclass(frozen=True)
class Leading:
    """Leading eigenpairs of a feature map, and bounds on its residual R.

    Attributes
    ----------
    theta : ndarray (k,)
        Leading eigenvalues of the map's centred Gram matrix, descending, above 0.
    beyond : float
        The next one.
    norm : Bound
        Bound nu on |R|.
    error : float
        Rounding, added at both ends.
    first : Certificate
        Intervals of first order, for at least k + 1 eigenvalues: theta_j to theta_j + nu.
    product_error : float
        Error of Q Theta^(1/2) in place of Phi' V.
    """

    theta: np.ndarray
    beyond: float
    norm: Bound
    error: float
    first: Certificate
    product_error: float = 0.0

    @property
    def mu(self) -> float:
        """Bound on the eigenvalues of the centred matrix beyond the k vectors."""
        return self.beyond + self.norm.mu


@dataclass(frozen=True)
class Sampling:
    """Plan of the draws: the rows' probabilities and all numbers that have to be fixed before.

    Attributes
    ----------
    scales : ndarray (c + 1, k)
        The diagonals of Z, the last one 1.
    probabilities : ndarray (n,)
        Each row is drawn with its own, independently.
    reach : ndarray (c + 1,)
        max |Z v_i| sqrt(r_i) / p_i over the rows with p_i < 1; 0 where there are none.
    failure : float
        Probability with which a bound on A fails.
    """

    scales: np.ndarray
    probabilities: np.ndarray
    reach: np.ndarray
    failure: float

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Numbers of the rows drawn, ascending. Once: a second draw needs a failure of its own."""
        return np.flatnonzero(rng.random(len(self.probabilities)) < self.probabilities)


def leading_of_map(
    values: np.ndarray,
    c: int,
    gram: np.ndarray,
    sums: FeatureSums,
    unit: float = UNIT,
    n_features: int | None = None,
) -> Leading:
    """`Leading` of a map with the eigenvalues ``values``, for vectors H Phi Q Theta^(-1/2).

    Parameters
    ----------
    values : ndarray (D,), or at least min(D, k + 1) of them
        As of `feature_certificate`.
    c : int
        How many intervals will be wanted, at most k where not all values are given.
    gram : ndarray (k, k)
        V'V as computed. Where the map's rank is less than k, those vectors count whose eigenvalue is above 1e-8 of the
        first.
    sums : FeatureSums
    unit : float
        Unit roundoff of the vectors as they are stored.
    n_features : int, optional
        D, where fewer values are given.
    """
    D = n_features or len(values)
    k = int(np.count_nonzero(values[: len(gram)] > np.sqrt(UNIT) * max(values[:1], default=0.0)))
    first = feature_certificate(values, max(k, c) + 1, sums)
    norm, theta, beyond = sums.left_out, values[:k], float(max(values[k], 0.0)) if k < len(values) else 0.0
    if k == 0:
        return Leading(theta, beyond, norm, first.rounding, first)
    side, size = first.rounding, float(theta[0]) + first.rounding
    delta = float(np.linalg.norm(gram[:k, :k] - np.eye(k))) + np.sqrt(k) * rounding_factor(sums.n) * UNIT
    # of V = X Q Theta^(-1/2) + (rounding), X = H Phi: X'X Q = Q Theta within `side`, so G V = V Theta within f
    vectors = (rounding_factor(D) + 8.0) * UNIT * np.sqrt(k * sums.kernel_trace / theta[-1]) + np.sqrt(k) * unit
    f = (1.0 + np.sqrt(size / theta[-1])) * side + 2.0 * size * vectors
    error = (k + 1) * (side + 3.0 * delta * size + 1.5 * f) + 1.2 * f + (3.0 * delta + 2.0 * vectors) * norm.mu
    of_products = side / np.sqrt(theta[-1]) + np.sqrt(sums.kernel_trace) * vectors
    return Leading(theta, beyond, norm, float(error) if delta <= 0.25 else np.inf, first, float(of_products))


def outside_leading(leading: Leading) -> Bound:
    """Bound on the eigenvalues of the centred matrix on the complement of the map's k vectors, or of a larger space."""
    return Bound(leading.mu + leading.error, leading.norm.form, leading.norm.failure_probability)


class OfMap(Proof):
    """Bound mu = theta_(k+1) + nu of a feature map, for a run of products that starts with the map's k vectors."""

    def __init__(self, leading: Leading):
        self.leading = leading

    def certificate(self, run: Certifier) -> Certificate:
        return certificate_of_pass(self.leading, run.block, run.c)


def certificate_of_pass(leading: Leading, ritz: RitzBlock, c: int) -> Certificate:
    """Certificate after a pass: the intersection of the intervals of both orders. In float32 the ``product_error`` has
    that of float32 entries."""
    found = ritz_certificate(ritz, len(ritz.theta), outside=outside_leading(leading))
    if ritz.errors is None:
        return leading.first.first(c)
    error = found.rounding + ritz.errors.residual
    return _certificate(leading, ritz.theta, ritz.residual_gram, found.eigenvalue_bounds, c, error, 0.0)


def known_certificate(leading: Leading, c: int, A: np.ndarray, error: float = 0.0) -> Eigenpairs:
    """Eigenpairs on the span of V, in its coordinates, from A = V' R V alone, within ``error``.

    `OfMap` is better where the products are there.
    """
    k = len(leading.theta)
    return _second_order(leading, c, A, error * np.eye(k), np.tile([-np.inf, np.inf], (k, 1)), 0.0)


def row_weights(vectors: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """|v_i| sqrt(r_i): how much a row may matter."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors) * residual))


def inclusion(weights: np.ndarray, count: int) -> np.ndarray:
    """Probabilities in proportion to the weights, but at most 1, that add up to ``count`` at most."""
    falling = np.sort(weights)[::-1]
    tail = falling[::-1].cumsum()[::-1]
    certain = np.arange(len(weights))
    # h rows with probability 1, such that no other row gets a probability above 1
    enough = np.flatnonzero((certain < count) & ((count - certain) * falling <= tail))
    if count >= np.count_nonzero(weights) or not len(enough):
        return (weights > 0).astype(float)
    h = int(enough[0])
    return np.where(weights > 0, np.clip((count - h) * (weights / tail[h]), MIN_PROBABILITY, 1.0), 0.0)


def sampling(
    leading: Leading, c: int, vectors: np.ndarray, residual: np.ndarray, count: int, failure: float
) -> Sampling:
    """The draws of about ``count`` rows that serve the first c eigenvalues best.

    Parameters
    ----------
    leading : Leading
    c : int
    vectors : ndarray (n, k)
        All rows of V.
    residual : ndarray (n,)
        r_i, upper bounds of the diagonal of R.
    count : int
    failure : float
    """
    theta = leading.theta
    k, norm = len(theta), leading.norm.mu
    c, vectors = min(c, k), vectors[:, :k]
    # the error in other directions may grow with the gap, but stay below it
    sizes, n = (np.full((1, 1), norm), norm, np.full((1, 1), norm)), len(residual)
    expected = float(expected_error(np.array([min(count, n)]), n, c, float(residual.sum()), sizes, failure)[0, 0])
    scale = max(min(max(expected, 1e-3 * norm), norm), 1e-12 * float(theta[:1].sum()))
    squares = 1.0 / (1.0 + np.abs(theta[:c, None] - theta) / scale)
    weights = row_weights(vectors * np.sqrt(squares.max(axis=0, initial=0.0)), residual)
    probabilities = inclusion(weights, count)
    scales = np.sqrt(np.vstack([squares, np.ones(k)]))
    open_ = np.flatnonzero((probabilities > 0) & (probabilities < 1))
    reach = np.zeros(c + 1)
    if len(open_):
        lengths = np.sqrt(vectors[open_] ** 2 @ (scales**2).T)
        reach = (lengths * (np.sqrt(residual[open_]) / probabilities[open_])[:, None]).max(axis=0)
    return Sampling(scales, probabilities, reach, failure)


def sampled_certificate(
    leading: Leading,
    c: int,
    plan: Sampling,
    index: np.ndarray,
    vectors: np.ndarray,
    rows: np.ndarray,
    row_error: np.ndarray | float = 0.0,
) -> Eigenpairs:
    """Eigenpairs on the span of V, in its coordinates, from sampled rows of R V.

    Parameters
    ----------
    leading : Leading
    c : int
        As of ``plan``.
    plan : Sampling
    index : ndarray (s,)
        The rows drawn.
    vectors, rows : ndarray (s, k)
        v_i and y_i = K_i V - phi_i' (Phi' V) of these rows.
    row_error : ndarray (s,) or float
        Bound on the norm of the error of a y_i.
    """
    theta, norm = leading.theta, leading.norm.mu
    k = len(theta)
    if k == 0 or not norm > 0.0:
        return known_certificate(leading, c, np.zeros((k, k)))
    p = plan.probabilities[index][:, None]
    v, y = vectors[:, :k], rows[:, :k]
    A = (v / p).T @ y
    A = (A + A.T) / 2
    y_error = row_error + rounding_factor(len(index)) * UNIT * np.linalg.norm(y, axis=1)
    ell = _logarithm(len(plan.scales) - 1, plan.failure)
    ends = np.tile([-np.inf, np.inf], (k, 1))
    B = np.zeros((k, k))
    for j, (scale, reach) in enumerate(zip(plan.scales, plan.reach)):
        M, more = _variance(v * scale / p, y * scale, 1.0 - p, y_error)
        outer = np.outer(scale, scale)
        ZAZ = A * outer
        squares = scale * scale
        ells = ell + np.log(squares.sum()) - np.log(squares)
        rates, b = ETA_GRID / max(reach * np.sqrt(norm), 1e-280), norm

        for _ in range(30):  # b, from nu downwards
            z = (rates * (reach * np.sqrt(b)))[:, None, None]
            usable = rates[z[:, 0, 0] < 1.0][:, None, None]
            found = usable * _phi(z[: len(usable)]) * M + np.diag(ells) / usable + more * np.eye(k)
            if reach == 0.0:  # no row was left to chance
                found = more * np.eye(k)[None]
            last, b = b, min(b, max(float(np.linalg.eigvalsh(ZAZ + found)[:, -1].min()), 0.0))
            if not b < 0.99 * last:
                break
        flat = j == len(plan.scales) - 1
        B = found[np.argmin(np.linalg.eigvalsh(found)[:, -1] if flat else found[:, j, j])] / outer
        if not flat:
            low, high = _ends(leading, A, B)
            ends[j] = low[j], high[j]
    return _second_order(leading, c, A, B, ends, plan.failure)


def expected_error(
    counts: np.ndarray, n: int, c: int, trace: float, sizes: tuple[np.ndarray, float, np.ndarray], failure: float
) -> np.ndarray:
    """Predicted error of v'Rv from each number of sampled rows, where all rows have equal weight.

    Parameters
    ----------
    counts : ndarray (s,)
    n, c : int
    trace : float
        Upper bound on tr R.
    sizes : (ndarray (b, 1), float, ndarray (b, 1))
        About |A|, |R|, and bounds on the latter.
    failure : float

    Returns
    -------
    ndarray (b, s)
    """
    size, norm, bound = sizes
    bound = np.maximum(bound, 1e-280)
    rates, ell = ETA_GRID[::2], _logarithm(c, failure)
    variance, root = norm * size * (c / n) * (n - counts) / counts, np.sqrt(max(c * trace, 1e-280)) / counts
    b = np.broadcast_to(bound, (len(bound), len(counts)))
    for _ in range(5):  # beta, from nu downwards
        reach = root * np.sqrt(b)
        z = (rates * np.sqrt(b / bound)[..., None]).clip(max=0.95)
        errors = z * _phi(z) * (variance / reach)[..., None] + ell * reach[..., None] / z
        error = ERROR_FACTOR * np.maximum(errors.min(axis=-1), 0.0)
        b = np.minimum(b, size + error)
    return np.asarray(error)


def expected_width(
    theta: np.ndarray, beyond: float, norm: np.ndarray, size: np.ndarray, errors: np.ndarray
) -> np.ndarray:
    """Predicted width of the widest interval, where A is about ``size`` times I, within each error.

    Parameters
    ----------
    theta : ndarray (c,)
    beyond : float
        The map's next eigenvalue.
    norm : ndarray (b, 1)
        Bounds on |R|.
    size : ndarray (b, 1)
    errors : ndarray (b, s)

    Returns
    -------
    ndarray (b, s)
    """
    norm, size, errors = norm[..., None], size[..., None], errors[..., None]
    x, mu = np.minimum(size + errors, norm), beyond + norm
    root = np.hypot((theta - mu) / 2.0 + x, np.sqrt(x * (norm - x)))
    high = np.minimum(np.maximum((theta + mu) / 2.0 + root, mu), theta + norm)
    return np.asarray((high - theta - np.maximum(size - errors, 0.0)).max(axis=-1, initial=0.0))


def expected_width_of_pass(
    theta: np.ndarray, beyond: float, norm: np.ndarray, size: np.ndarray, largest: float
) -> np.ndarray:
    """Predicted width after a pass, (b, 1); ``largest`` is about |R|, so that C'C is at most A (|R| - A)."""
    half, squares = (theta + size - beyond - norm) / 2.0, size * np.maximum(largest - size, 0.1 * largest)
    above = np.hypot(half, np.sqrt(squares)) - half
    return np.asarray(np.minimum(above, norm).max(axis=-1, initial=0.0, keepdims=True))


def _logarithm(c: int, failure: float) -> float:
    """l, but for log tr Z^2, with which all the bounds on A fail together with this probability at most."""
    return float(np.log(2.0 * (c + 1) * len(ETA_GRID) / failure))


def _phi(z: np.ndarray) -> np.ndarray:
    """(-log(1 - z) - z) / z^2, or for small z a little more, for that cancels."""
    large = np.maximum(z, 1e-3)
    return np.where(z < 1e-3, 0.5 + z / 3.0 + z * z, (-np.log1p(-large) - large) / large**2)


def _variance(
    v: np.ndarray, y: np.ndarray, open_: np.ndarray, row_error: np.ndarray | float
) -> tuple[np.ndarray, float]:
    """M >= sum (1 - p_i) sym(v_i y_i')^2 for v_i already divided by p_i, and what errors of y_i add to the bound on A.

    4 sym(v y')^2 = |v|^2 y y' + |y|^2 v v' + v'y (v y' + y v'). With an error e of y it is at most
    1.01 times that and 101 sym(v e')^2 <= 101 |v|^2 |e|^2.
    """
    vv, yy, vy = (np.einsum("ij,ij->i", a, b)[:, None] for a, b in ((v, v), (y, y), (v, y)))
    weight = open_ / 4.0
    cross = (v * (weight * vy)).T @ y
    M = (y * (weight * vv)).T @ y + (v * (weight * yy)).T @ v + cross + cross.T
    lengths = np.sqrt(vv[:, 0])
    M = 1.01 * (M + M.T) / 2 + 101.0 * float((open_[:, 0] * (lengths * row_error) ** 2).sum()) * np.eye(v.shape[1])
    return M, float((lengths * row_error).sum())


def _ends(leading: Leading, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of k eigenvalues where A is known within B, without `Leading.error`."""
    Theta, norm, mu = np.diag(leading.theta), leading.norm.mu, leading.mu
    low = np.linalg.eigvalsh(Theta + A - B)[::-1]
    x, Q = np.linalg.eigh(A + B)
    x = np.maximum(x, 0.0)
    S = (Q * np.sqrt(np.maximum(x * (norm - x), 0.0))) @ Q.T
    X = (Q * x) @ Q.T
    high = np.linalg.eigvalsh(np.block([[Theta + X, S], [S, mu * np.eye(len(x)) - X]]))[::-1][: len(x)]
    return low, np.maximum(high, mu)


def _second_order(
    leading: Leading, c: int, A: np.ndarray, B: np.ndarray, ends: np.ndarray, failure: float
) -> Eigenpairs:
    """Intervals from -B <= A' - A <= B for the true A', and tighter ones for some eigenvalues.

    Intervals and vectors are those of first order where the intervals would not be narrower.
    """
    k = len(leading.theta)
    values, rotation = (x[..., ::-1] for x in np.linalg.eigh(np.diag(leading.theta) + A))
    low, high = _ends(leading, A, B)
    ends = np.column_stack([np.maximum(ends[:, 0], low), np.minimum(ends[:, 1], high)])
    ends += np.array([-1.0, 1.0]) * leading.error
    # of V x: |(A' - A) x|^2 within V, and x' C'C x <= nu x' A' x beyond
    inside = float(np.linalg.eigvalsh(B).max(initial=0.0))
    gram = leading.norm.mu * (rotation.T @ (A + B) @ rotation) + inside**2 * np.eye(k)
    found = _certificate(leading, values, gram, ends, c, leading.error, failure)
    if not found.width < leading.first.first(c).width:
        values, rotation, found = leading.theta, np.eye(k), leading.first.first(c)
    values = np.append(values, np.zeros(max(c - k, 0)))[:c]
    return Eigenpairs(np.clip(values, *found.eigenvalue_bounds.T), rotation[:, :c], found)


def _certificate(
    leading: Leading,
    values: np.ndarray,
    gram: np.ndarray,
    ends: np.ndarray,
    c: int,
    error: float,
    failure: float,
) -> Certificate:
    """Intersection of the intervals of both orders, for vectors with these Ritz values and this R'R."""
    first = leading.first.eigenvalue_bounds
    m = min(len(first), max(len(values), c))
    bounds, k = first[:m].copy(), min(len(values), m)
    bounds[:k, 0] = np.maximum(bounds[:k, 0], ends[:k, 0])
    bounds[:k, 1] = np.minimum(bounds[:k, 1], ends[:k, 1])
    # an eigenvalue is no smaller than the next
    bounds[:, 0] = np.maximum.accumulate(bounds[::-1, 0])[::-1]
    bounds[:, 1] = np.maximum(np.minimum.accumulate(bounds[:, 1]), bounds[:, 0])
    theta, squares = np.zeros(m), np.diag(np.full(m, np.inf))
    theta[:k], squares[:k, :k] = values[:k], gram[:k, :k]
    return Certificate(
        eigenvalue_bounds=bounds[:c],
        angle_bounds=angle_bounds(theta, squares, bounds, c, error),
        clusters=cluster_labels(bounds)[:c],
        outside=outside_leading(leading),
        rounding=float(error),
        failure_probability=leading.first.failure_probability + failure,
    )

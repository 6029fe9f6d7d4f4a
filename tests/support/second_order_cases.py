"""Problems for intervals of second order: a feature map's part with known eigenvectors, and what it leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from dense_products import centered
from tally import MAY_FAIL

from fastkpca.solve import second_order as so
from fastkpca.solve.certificate import Bound, FeatureSums, RitzBlock, product_error

UNIT, UNIT32 = 2.0**-53, 2.0**-24


@dataclass(frozen=True)
class Problem:
    """K = Phi Phi' + B B', c eigenvalues wanted from k vectors."""

    Phi: np.ndarray
    B: np.ndarray
    c: int
    k: int
    center: bool = True

    @property
    def n(self):
        return len(self.Phi)

    @property
    def R(self):
        return self.B @ self.B.T

    def cut(self, K):
        return np.asarray(centered(K)) if self.center else K

    @property
    def true(self):
        return np.linalg.eigvalsh(self.cut(self.Phi @ self.Phi.T + self.R))[::-1]

    def leading(self, slack=1.0, form="trace", failure=0.0):
        """What the solver knows: (Leading, V)."""
        H = self.Phi - self.Phi.mean(axis=0) * self.center
        values, Q = (x[..., ::-1] for x in np.linalg.eigh(H.T @ H))
        V = H @ Q[:, : self.k] / np.sqrt(np.maximum(values[: self.k], 1e-300))
        R = self.R
        trace = float(np.trace(R)) * (1.0 + 1e-12)
        largest = float(np.linalg.eigvalsh(R)[-1]) * slack * (1.0 + 1e-9) + 1e-300
        sums = FeatureSums(
            self.n,
            trace=float((H**2).sum()),
            residual_trace=trace,
            kernel_trace=float((self.Phi**2).sum()) + trace,
            residual=Bound(min(largest, trace), form, failure),
        )
        found = so.leading_of_map(values, self.c, V.T @ V, sums)
        return found, V[:, : len(found.theta)]


def _vectors(rng, n, k, spread=0.0, center=True):
    """Orthonormal columns that add up to 0, some rows far heavier than others where ``spread`` is large."""
    X = rng.standard_normal((n, k)) * 10.0 ** (spread * rng.standard_normal(n))[:, None]
    return np.linalg.qr(X - X.mean(axis=0) * center)[0]


def _size(rng):
    return int(np.exp(rng.uniform(np.log(60), np.log(300))))


def _made(rng, V, B, gap=None, ties=False):
    """With a spectrum whose gaps are large or small beside |B B'|."""
    D = V.shape[1]
    c = int(rng.integers(1, max(2, D // 2)))
    k = int(rng.integers(c, D + 1))
    largest = float(np.linalg.norm(B, 2)) ** 2
    gap = 10.0 ** rng.uniform(-1, 2) if gap is None else gap
    theta = largest * gap * np.cumsum(rng.exponential(size=D))[::-1] + largest * 10.0 ** rng.uniform(-2, 1)
    if ties:
        theta[max(c - 1, 0) : k + 1] = theta[min(k, D - 1)]
    return Problem(V * np.sqrt(theta), B, c, k)


def decaying(rng):
    n, q = _size(rng), int(rng.integers(1, 12))
    B = rng.standard_normal((n, q)) * np.arange(1.0, q + 1) ** -rng.uniform(0, 3)
    return _made(rng, _vectors(rng, n, int(rng.integers(2, 9))), B)


def hidden_rows(rng):
    """Against the estimator: R V is all in a few rows with small r_i; the others have directions of their own."""
    n = _size(rng)
    V = _vectors(rng, n, int(rng.integers(2, 7)), rng.choice([0.0, 0.3]))
    few = rng.permutation(n)[: max(1, int(n * rng.uniform(0.01, 0.1)))]
    B = np.zeros((n, n + 1))
    B[np.arange(n), 1 + np.arange(n)] = 1.0
    B[few] = 0.0
    B[few, 0] = np.sign(V[few, 0]) * 10.0 ** rng.uniform(-1.5, 0)
    return _made(rng, V, B, gap=10.0 ** rng.uniform(1, 3))


def small_vectors(rng):
    """Against the estimator: V is nearly 0 in the rows that R couples, where R V is large."""
    n = _size(rng)
    k = int(rng.integers(2, 7))
    X = rng.standard_normal((n, k))
    coupled = rng.random(n) < rng.uniform(0.02, 0.4)
    X[coupled] *= 10.0 ** -rng.uniform(1, 4)
    V = np.linalg.qr(X - X.mean(axis=0))[0]
    B = np.zeros((n, 2))
    B[coupled, 0] = np.where(rng.random() < 0.5, np.sign(V[coupled, 0]), 1.0)
    B[~coupled, 1] = 0.1 * rng.standard_normal(int((~coupled).sum()))
    B[0, 1] += 0.1
    return _made(rng, V, B)


def three_rows(rng):
    """All that is left out is in three rows that are equal."""
    n = _size(rng)
    B = np.zeros((n, 2))
    B[rng.permutation(n)[:3], 0] = 1.0
    B[:, 1] = rng.choice([0.0, 10.0 ** rng.uniform(-3, 0)]) * rng.standard_normal(n)
    return _made(rng, _vectors(rng, n, int(rng.integers(1, 7)), rng.choice([0.0, 0.3])), B)


def ties(rng):
    """Eigenvalues of the map that are equal across c and across k."""
    n, q = _size(rng), int(rng.integers(1, 30))
    B = rng.standard_normal((n, q)) * 10.0 ** -rng.uniform(0, 2, q)
    return _made(rng, _vectors(rng, n, int(rng.integers(3, 9))), B, ties=True)


def heavy_rows(rng):
    """Sizes of the rows over many powers of ten, of V and of R."""
    n, q = _size(rng), int(rng.integers(1, 6))
    B = rng.standard_normal((n, q)) * 10.0 ** (rng.uniform(0.3, 1.2) * rng.standard_normal(n))[:, None]
    return _made(rng, _vectors(rng, n, int(rng.integers(1, 7)), rng.uniform(0, 1)), B)


def rare(rng):
    """Each row adds all it can to v'Rv, or nothing: the rare ones may be missed."""
    n = _size(rng)
    V = _vectors(rng, n, int(rng.integers(1, 4)))
    B = np.zeros((n, n + 1))
    yes = rng.random(n) < 10.0 ** rng.uniform(-1.7, 0)
    yes[0] = True
    B[yes, 0] = np.sign(V[yes, 0])
    B[~yes, 1 + np.flatnonzero(~yes)] = 1.0
    return _made(rng, V, B, gap=10.0 ** rng.uniform(1, 3))


def copies(rng):
    """Few different rows."""
    n, groups = _size(rng), int(rng.integers(3, 15))
    B = (rng.standard_normal((groups, 4)) * 10.0 ** rng.uniform(-2, 0, 4))[rng.integers(0, groups, n)]
    return _made(rng, _vectors(rng, n, int(rng.integers(1, 7))), B)


FAMILIES = (decaying, hidden_rows, small_vectors, three_rows, ties, heavy_rows, rare, copies)


def missed(bounds, true, size):
    """Whether an eigenvalue lies outside; the reference errs by a few units of rounding."""
    slack = 2e-14 * size
    return not ((true[: len(bounds)] >= bounds[:, 0] - slack) & (true[: len(bounds)] <= bounds[:, 1] + slack)).all()


def sampled(rng, problem, failure, count=None):
    """One sample: (Eigenpairs, Leading)."""
    leading, V = problem.leading(10.0 ** rng.uniform(0, 0.7))
    r = np.maximum(np.einsum("ij,ij->i", problem.B, problem.B), 0.0) * (1.0 + 1e-12)
    if rng.random() < 0.3:
        r = r * rng.uniform(1.0, 2.0, len(r))
    count = int(np.exp(rng.uniform(np.log(3), np.log(problem.n)))) if count is None else count
    plan = so.sampling(leading, problem.c, V, r, count, failure)
    index = plan.draw(rng)
    rows = problem.R[index] @ V
    return so.sampled_certificate(leading, problem.c, plan, index, V[index], rows, 1e-14), leading


def samples(rng, asked, family):
    """The attack on sampled intervals."""
    problem = family(rng)
    found, leading = sampled(rng, problem, asked.failure)
    true, first = problem.true, leading.first.first(problem.c)
    wrong = missed(found.certificate.eigenvalue_bounds, true, true[0])
    narrower = "narrower" if found.certificate.width < 0.9 * first.width else "as wide"
    yield f"{family.__name__}, {narrower}", "", [(MAY_FAIL, float(wrong))]


def passed(problem, single, slack=1.0):
    """(Certificate, Leading) of a pass, whose kernel values and sums may be of float32."""
    leading, V = problem.leading(slack)
    n, k = V.shape
    K = problem.Phi @ problem.Phi.T + problem.R
    norm = float(np.linalg.norm(K)) * 1.001
    Q = np.linalg.qr(V)[0]
    image, eta = problem.cut(K) @ Q, 4.0 * product_error(n, k, norm)
    if single:
        image = (K.astype(np.float32) @ Q.astype(np.float32)).astype(float)
        image = image - image.mean(axis=0) if problem.center else image
        eta += 4.0 * np.sqrt(k) * (5.0 * np.sqrt(n) + 10.0) * UNIT32 * norm
    T = Q.T @ image
    turn = np.linalg.eigh((T + T.T) / 2)[1][:, ::-1]
    Q, image = Q @ turn, image @ turn
    compression = Q.T @ image
    residual = image - Q * np.diag(compression)
    ritz = RitzBlock(compression, Q.T @ Q, residual.T @ residual, n, eta)
    return so.OfMap(leading).certificate(SimpleNamespace(block=ritz, c=problem.c)), leading, Q


def known(problem, slack=1.0):
    """From V'RV alone: (Eigenpairs, Leading, V)."""
    leading, V = problem.leading(slack)
    return so.known_certificate(leading, problem.c, V.T @ (problem.R @ V), 1e-14 * leading.norm.mu), leading, V


def passes(rng, asked, family):
    """The attack on intervals of a pass, and of V'RV, which never miss."""
    problem, slack = family(rng), 10.0 ** rng.uniform(0, 1)
    true, found = problem.true, []
    for single in (False, True):
        certificate, leading, _ = passed(problem, single, slack)
        found.append(("a pass", float(missed(certificate.eigenvalue_bounds, true, true[0]))))
        found.append(("no wider", certificate.width - leading.first.first(problem.c).width))
    certificate = known(problem, slack)[0].certificate
    yield family.__name__, "", [*found, ("V'RV", float(missed(certificate.eigenvalue_bounds, true, true[0])))]

"""Tests of two samples and of independence, kernel CCA, PLS and ridge regression: textbook formulas on dense matrices.

Each ``check_...`` takes a generator and raises AssertionError where a promise is broken.
"""

import numpy as np
import scipy.linalg
from kernels_contrib.cca import kernel_cca
from kernels_contrib.hsic import hsic_test
from kernels_contrib.mmd import mmd_test
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge
from reference import center, gram
from tally import MAY_FAIL

import fastkpca as fk

KERNELS = {
    "gaussian": lambda rng: {"sigma": float(10 ** rng.uniform(-0.5, 0.7))},
    "linear": lambda rng: {},
    "polynomial": lambda rng: {"degree": int(rng.integers(2, 4)), "offset": 1.0},
}


def gaussian(sigma):
    return fk.get_kernel("gaussian", sigma=sigma)


def kernel_of(rng):
    name = str(rng.choice(list(KERNELS)))
    return name, KERNELS[name](rng)


def rows_of(rng, n, d):
    """Normal, on a grid (with equal rows), or in groups that are far apart."""
    kind = str(rng.choice(["normal", "grid", "groups"]))
    X = rng.standard_normal((n, d))
    if kind == "grid":
        X = np.round(X)
    if kind == "groups":
        X = X / 4 + 2.0 * rng.integers(-1, 2, (n, 1))
    return X


# Textbook formulas -------------------------------------------------------------------------------------------------


def mmd(K, in_x, weights=None, *, unbiased=False):
    """Equations 3 and 5 of Gretton and others 2012, with weights: sums over pairs."""
    w = np.ones(len(K)) if weights is None else weights
    a, b = w * in_x, w * ~in_x

    def mean(u, v, same):
        pairs = np.outer(u, v)
        if same and unbiased:
            np.fill_diagonal(pairs, 0.0)
        return (pairs * K).sum() / pairs.sum()

    return mean(a, a, True) + mean(b, b, True) - 2 * mean(a, b, False)


def hsic(K, L, *, unbiased=False):
    """Gretton and others 2008; equation 5 of Song and others 2012."""
    n = len(K)
    if not unbiased:
        return np.trace(center(K) @ center(L)) / n**2
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    one = np.ones(n)
    middle = (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2)) - 2 / (n - 2) * (one @ K @ L @ one)
    return (np.trace(K @ L) + middle) / (n * (n - 3))


def weighted_hsic(K, L, w):
    w = w / w.sum()
    H = np.eye(len(w)) - w  # H' centres by the weighted mean
    return float(np.sum((H @ K @ H.T) * (H @ L @ H.T) * np.outer(w, w)))


def correlations(K, L, e, d, w):
    """Square roots of the eigenvalues of K (K + e)^-1 L (L + d)^-1, of rows weighted w (sum one)."""
    H = np.sqrt(w)[:, None] * (np.eye(len(w)) - w)
    K, L = H @ K @ H.T, H @ L @ H.T
    one = np.eye(len(w))
    product = scipy.linalg.solve(K + e * one, K, assume_a="pos") @ scipy.linalg.solve(L + d * one, L, assume_a="pos")
    return np.sqrt(np.maximum(np.sort(scipy.linalg.eigvals(product).real)[::-1], 0.0))


def nipals(K, Y, c, steps=20000):
    """Kernel partial least squares as Rosipal and Trejo write it: fitted values (N, k) of centred targets."""
    K, left = center(K), Y - Y.mean(axis=0)
    T, U, first, total = [], [], center(K), left.copy()
    for _ in range(c):
        u = left[:, np.argmax(np.sum(left**2, axis=0))].copy()
        u /= np.linalg.norm(u)
        for _ in range(steps):
            t = K @ u
            t /= np.linalg.norm(t)
            v = left @ (left.T @ t)
            v /= np.linalg.norm(v)
            if np.linalg.norm(v - u) < 1e-15:
                break
            u = v
        T.append(t)
        U.append(u)
        P = np.eye(len(K)) - np.outer(t, t)
        K, left = P @ K @ P, P @ left
    T, U = np.array(T).T, np.array(U).T
    return first @ U @ np.linalg.solve(T.T @ first @ U, T.T @ total)


# Checks ------------------------------------------------------------------------------------------------------------


def check_mmd(rng):
    n, m, d = int(rng.integers(2, 60)), int(rng.integers(2, 60)), int(rng.integers(1, 5))
    n += 2 * (n + m < 4)
    X, Y = rows_of(rng, n, d), rows_of(rng, m, d) + rng.choice([0.0, 0.5])
    (name, parameters), unbiased = kernel_of(rng), bool(rng.integers(2))
    weights = (rng.integers(1, 4, n).astype(float), rng.random(m) + 0.1) if rng.random() < 0.3 else None
    method = str(rng.choice(["gram", "features"]))
    found = mmd_test(
        X, Y, name, unbiased=unbiased, sample_weight=weights, method=method, permutations=19, rng=7, **parameters
    )
    K, w = gram(name, np.vstack([X, Y]), **parameters), None if weights is None else np.concatenate(weights)
    labels, again = np.arange(n + m) < n, np.random.default_rng(7)
    orders = [labels, *(again.permutation(labels) for _ in range(19))]
    exact = np.array([mmd(K, L, w, unbiased=unbiased) for L in orders])
    values, errors = np.append(found.statistic, found.null), np.append(found.error, found.null_error)
    rounding = 1e-13 * np.abs(K).max() * (n + m)
    assert (np.abs(values - exact) <= errors + rounding).all(), (name, parameters, method, values - exact, errors)
    if method == "gram":
        np.testing.assert_allclose(values, exact, rtol=1e-8, atol=1e-8 * np.abs(K).max())
    low, high = found.p_interval
    same = [(L == labels).all() or (L != labels).all() for L in orders[1:]]
    sure = np.sum((exact[1:] > exact[0] + rounding) | same)
    maybe = np.sum((exact[1:] >= exact[0] - rounding) | same)
    assert low <= (1 + maybe) / 20 and high >= (1 + sure) / 20


def check_hsic(rng):
    n = int(rng.integers(4, 70))
    X = rows_of(rng, n, int(rng.integers(1, 4)))
    Y = rows_of(rng, n, 1) + rng.choice([0.0, 1.0]) * X[:, :1] ** 2
    (name, parameters), unbiased = kernel_of(rng), bool(rng.integers(2))
    w = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 and not unbiased else None
    K, L = gram(name, X, **parameters), gram(name, Y, **parameters)
    found = hsic_test(X, Y, name, unbiased=unbiased, sample_weight=w, permutations=19, rng=5, **parameters)
    again = np.random.default_rng(5)
    orders = [np.arange(n), *(again.permutation(n) for _ in range(19))]
    if w is None:
        exact = np.array([hsic(K, L[np.ix_(p, p)], unbiased=unbiased) for p in orders])
    else:
        exact = np.array([weighted_hsic(K, L[np.ix_(p, p)], w) for p in orders])
    values, errors = np.append(found.statistic, found.null), np.append(found.error, found.null_error)
    size = np.abs(K).max() * np.abs(L).max()
    assert (np.abs(values - exact) <= errors + 1e-13 * size).all(), (name, parameters, values - exact, errors)


def check_cca(rng):
    n = int(rng.integers(6, 70))
    X = rows_of(rng, n, int(rng.integers(1, 4)))
    Y = X[:, :1] ** 2 + rng.standard_normal((n, 1)) * rng.choice([0.1, 1.0])
    name, parameters = kernel_of(rng)
    w = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None
    tol = float(rng.choice([1e-12, 1e-6, 1e-3]))
    found = kernel_cca(
        X, Y, name, regularization=float(10 ** rng.uniform(-3, 0)), sample_weight=w, tol=tol, **parameters
    )
    share = np.full(n, 1 / n) if w is None else w / w.sum()
    K, L = gram(name, X, **parameters), gram(name, Y, **parameters)
    exact = correlations(K, L, found.x.penalty, found.y.penalty, share)[0]
    low, high = found.correlation_bounds[0]
    assert low - 1e-9 <= exact <= high + 1e-9, (name, parameters, tol, low, exact, high)
    if tol == 1e-12:
        np.testing.assert_allclose(found.correlations[0], exact, atol=1e-8)
    a, b = found.x.project(X), found.y.project(Y)
    np.testing.assert_allclose(share @ a, 0.0, atol=1e-8)
    np.testing.assert_allclose(share @ (a * b), found.correlations, atol=1e-7)


def check_pls(rng):
    n, k, c = int(rng.integers(8, 60)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, 3))
    Y = rng.standard_normal((n, k)) + X[:, :1] ** 2
    name, parameters = kernel_of(rng)
    method = str(rng.choice(["gram", "features"]))
    found = kernel_pls(X, Y, name, c, method=method, tol=1e-11, **parameters)
    exact = nipals(gram(name, X, **parameters), Y, c) + Y.mean(axis=0)
    np.testing.assert_allclose(found.predict(X), exact, atol=1e-8 * np.abs(Y).max())
    np.testing.assert_allclose(found.project(X), found.score, atol=1e-8 * np.abs(found.score).max())
    np.testing.assert_allclose(found.score.T @ found.score / n, np.eye(c), atol=1e-10)


def check_ridge(rng):
    n, k = int(rng.integers(2, 90)), int(rng.integers(1, 3))
    X, new = rows_of(rng, n, 3), rows_of(rng, 20, 3)
    Y = rng.standard_normal((n, k)) * 10.0 ** rng.integers(-3, 4)
    name, parameters = kernel_of(rng)
    method = str(rng.choice(["gram", "features"]))
    mu = float(10 ** rng.uniform(-4, 2)) * gram(name, X, **parameters).diagonal().max()
    w = rng.random(n) + 0.01 if rng.random() < 0.4 else None
    weights = np.ones(n) if w is None or w.sum() <= 1 else w
    tol = float(rng.choice([1e-4, 1e-11]))
    found = kernel_ridge(
        X, Y, name, regularization=mu, method=method, tol=tol, features_tol=1e-9,
        sample_weight=None if weights.min() == 1 else weights, **parameters,
    )  # fmt: skip
    K = gram(name, X, **parameters)
    root = np.sqrt(weights)[:, None]
    exact = root * scipy.linalg.solve(root * K * root.T + mu * np.eye(n), root * Y, assume_a="pos")
    there = gram(name, new, X, **parameters)
    off = np.abs(found.predict(new) - there @ exact)
    bounds = found.error(new)
    slack = 1e-14 * (np.abs(there) @ np.abs(exact)) * np.linalg.cond(root * K * root.T + mu * np.eye(n))
    assert (off <= bounds + slack).all(), (name, parameters, method, (off / bounds).max())
    if tol == 1e-11 and method == "gram":
        np.testing.assert_allclose(
            found.predict(new), there @ exact, atol=1e-8 * np.abs(Y).max() * max(1, np.abs(there).max() / K.max())
        )


CHECKS = (check_mmd, check_hsic, check_cca, check_pls, check_ridge)


def methods(rng, asked, family):
    """The attack: one problem."""
    family(rng)
    yield family.__name__, "", []


def levels(rng, asked):
    """Of equal distributions and independent views, each test rejects five in a hundred."""
    X, Y, seed = rng.standard_normal((20, 2)), rng.standard_normal((15, 2)), int(rng.integers(1 << 30))
    options = {"permutations": 99, "rng": seed, "n_threads": 1}
    for what, found in (
        ("mmd", mmd_test(X, Y, sigma=1.0, **options)),
        ("mmd of three widths", mmd_test(X, Y, [gaussian(s) for s in (0.5, 1.0, 2.0)], **options)),
        ("hsic", hsic_test(X[:15], Y, sigma=1.0, **options)),
    ):
        yield what, "", [(MAY_FAIL, float(found.p_value <= 0.05))]

"""Errors and bounds that methods state, against the same numbers in more digits, under offsets, scales and weights.

Rows lie on a dyadic grid, so that an offset is added without rounding: what depends on the centred kernel matrix alone
must be the same with and without it. Each ``check_...`` yields (promise, excess).
"""

import clustering_cases
import mpmath
import numpy as np
from exact_kernels import LONG, Multiple, exact_values
from kernels_contrib.cca import kernel_cca
from kernels_contrib.clustering import kernel_kmeans
from kernels_contrib.components import kernel_pcr
from kernels_contrib.diffusion import diffusion_map, spectral_clustering
from kernels_contrib.hsic import hsic_test
from kernels_contrib.klda import klda
from kernels_contrib.mmd import mmd_test
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge

import fastkpca as fk

OFFSETS = (0.0, 2.0**7, 2.0**14, 2.0**20, 2.0**27)


def on_grid(rng, n, d):
    return np.round(rng.standard_normal((n, d)) * 1024) / 1024


def random_kernel(rng, size, *names):
    """A kernel whose values vary over differences of so large a size."""
    name = str(rng.choice(names))
    if name == "gaussian":
        return fk.get_kernel(name, sigma=size * float(10 ** rng.uniform(-0.3, 1.5)))
    if name == "polynomial":
        return fk.get_kernel(name, degree=2, scale=size**-2, offset=1.0)
    return fk.get_kernel(name)


def setting(rng):
    """(scale of the rows, offset of the columns): powers of two."""
    scale = 2.0 ** int(rng.choice([-60, -20, 0, 0, 20, 60]))
    return scale, scale * float(rng.choice(OFFSETS))


def weights_of(rng, n, share=0.5):
    return rng.random(n) + 0.1 if rng.random() < share else None


def exact_gram(kernel, X):
    """K in long double, but for a function of each row alone, which centring takes away: it would take the digits."""
    A = X.astype(LONG)
    if kernel.translation is not None:
        return exact_values(kernel, A - A[0])[0]
    with mpmath.workdps(60):
        K = exact_values(kernel, X, arithmetic=Multiple)[0]
        K = K - K[:1] - K[:, :1] + K[0, 0]
        high = K.astype(np.float64)
        return high.astype(LONG) + (K - Multiple.numbers(high)).astype(np.float64)


def long_weights(w, n):
    w = np.ones(n, dtype=LONG) if w is None else w.astype(LONG)
    return w / w.sum()


def centred(K, s):
    H = np.eye(len(s), dtype=LONG) - s
    return H @ K @ H.T


def excess(values, exact, error, size):
    """How far values are off beyond their error, over their size; what the reference may be off is left aside."""
    off = np.abs(np.asarray(values, dtype=LONG) - exact) - error
    return float(np.max(off / max(float(size), 1e-300))) - 1e-17


def interval_excess(found, exact, same):
    """Whether the p-value of exact statistics is in the interval; ties to within a long double count as either."""
    slack = 1e-17 * np.abs(exact).max()
    sure = np.sum((exact[1:] > exact[0] + slack) | same)
    maybe = np.sum((exact[1:] >= exact[0] - slack) | same)
    low, high = (x * len(exact) - 1 for x in found.p_interval)
    return float(max(low - maybe, sure - high)) - 1e-6


def check_hsic(rng):
    n, (scale, offset), (other, away) = int(rng.integers(5, 40)), setting(rng), setting(rng)
    Z = on_grid(rng, n, int(rng.integers(1, 4)))
    X, Y = scale * Z + offset, other * np.round(Z[:, :1] + on_grid(rng, n, 1) * 4) + away
    kernel, kernel_y = (random_kernel(rng, x, "linear", "gaussian", "polynomial") for x in (scale, other))
    unbiased = bool(rng.random() < 0.3)
    w = None if unbiased else weights_of(rng, n)
    yield f"{kernel} {kernel_y} n={n} {scale=} {offset=} {other=} {away=} {unbiased=} weights={w is not None}"
    found = hsic_test(X, Y, kernel, kernel_y, unbiased=unbiased, sample_weight=w, permutations=19, rng=5)
    again, s = np.random.default_rng(5), long_weights(w, n)
    K, L = exact_gram(kernel, X), exact_gram(kernel_y, Y)
    orders = [np.arange(n), *(again.permutation(n) for _ in range(19))]
    size = float(np.trace(centred(K, s)) * np.trace(centred(L, long_weights(None, n)))) / n**2
    if unbiased:
        exact = [_song(K, L[np.ix_(p, p)]) for p in orders]
    else:
        left = centred(K, s) * np.outer(s, s)
        exact = [np.sum(left * centred(L, s)[np.ix_(p, p)]) if w is None else _weighted(left, L, p, s) for p in orders]
    exact = np.array(exact)
    errors = np.append(found.error, found.null_error)
    yield "error", excess(np.append(found.statistic, found.null), exact, errors, size)
    same = np.array([np.array_equal(p, orders[0]) for p in orders[1:]])
    yield "p_interval", interval_excess(found, exact, same)


def _weighted(left, L, order, s):
    return np.sum(left * L[np.ix_(order, order)])  # the left factor is centred by the weights


def _song(K, L):
    """Equation 5 of Song and others 2012, of matrices that were centred first: it does not change."""
    n, s = len(K), long_weights(None, len(K))
    K, L = centred(K, s), centred(L, s)
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    middle = K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 * np.sum(K.sum(axis=0) * L.sum(axis=0)) / (n - 2)
    return (np.sum(K * L) + middle) / (n * (n - 3))


def check_mmd(rng):
    n, m, (scale, offset) = int(rng.integers(3, 25)), int(rng.integers(3, 25)), setting(rng)
    d, unbiased = int(rng.integers(1, 4)), bool(rng.integers(2))
    Z = np.vstack([on_grid(rng, n, d), on_grid(rng, m, d) + rng.choice([0.0, 0.5])])
    Z = scale * Z + offset
    kernel, method = (
        random_kernel(rng, scale, "linear", "gaussian", "polynomial"),
        str(rng.choice(["gram", "features"])),
    )
    weights = (rng.random(n) + 0.1, rng.random(m) + 0.1) if rng.random() < 0.4 else None
    yield f"{kernel} {method} n={n} m={m} {scale=} {offset=} {unbiased=} weights={weights is not None}"
    found = mmd_test(
        Z[:n], Z[n:], kernel, method=method, unbiased=unbiased, sample_weight=weights, permutations=19, rng=5
    )
    # of weighted pairs of different rows, a function of one row that K gains is not nothing
    K = exact_values(kernel, Z.astype(LONG))[0] if unbiased and weights is not None else exact_gram(kernel, Z)
    w = np.ones(n + m, dtype=LONG) if weights is None else np.concatenate(weights).astype(LONG)
    labels, again = np.arange(n + m) < n, np.random.default_rng(5)
    orders = [labels, *(again.permutation(labels) for _ in range(19))]
    exact = np.array([_mmd(K, L, w, unbiased) for L in orders])
    size = float(np.trace(centred(K, w / w.sum()))) / (n + m)
    errors = np.append(found.error, found.null_error)
    yield f"error, {method}", excess(np.append(found.statistic, found.null), exact, errors, size)
    same = np.array([(L == labels).all() or (L != labels).all() for L in orders[1:]])
    yield "p_interval", interval_excess(found, exact, same)


def _mmd(K, in_x, w, unbiased):
    a, b = (np.where(x, w, 0) / w[x].sum() for x in (in_x, ~in_x))
    value = (a - b) @ K @ (a - b)
    if unbiased:
        value += sum((s @ s * (s @ K @ s) - s**2 @ np.diag(K)) / (1 - s @ s) for s in (a, b))
    return value


def check_cca(rng):
    n, (scale, offset), (other, away) = int(rng.integers(6, 13)), setting(rng), setting(rng)
    Z = on_grid(rng, n, 2)
    X, Y = scale * Z + offset, other * (np.round(Z[:, :1] * 2) + on_grid(rng, n, 1)) + away
    kernel, kernel_y = (random_kernel(rng, x, "linear", "gaussian") for x in (scale, other))
    w, tol = weights_of(rng, n), float(rng.choice([1e-12, 1e-6, 1e-2]))
    yield f"{kernel} {kernel_y} n={n} {scale=} {offset=} {other=} {away=} {tol=} weights={w is not None}"
    strength = float(10 ** rng.uniform(-4, 0))
    found = kernel_cca(X, Y, kernel, kernel_y=kernel_y, sample_weight=w, tol=tol, regularization=strength)
    s = long_weights(w, n)
    K, L = (centred(exact_gram(k, rows), s) for k, rows in ((kernel, X), (kernel_y, Y)))
    with mpmath.workdps(40):
        exact = _correlation(K, L, found.x.penalty, found.y.penalty, s)
    low, high = found.correlation_bounds[0]
    yield "correlation_bounds", max(low - exact, exact - high) - 1e-17


def _correlation(K, L, e, d, s):
    def matrix(A):
        return mpmath.matrix([[mpmath.mpf(float(x)) + mpmath.mpf(float(x - LONG(float(x)))) for x in row] for row in A])

    root = np.sqrt(np.outer(s, s))
    one, (K, L) = mpmath.eye(len(s)), (matrix(A * root) for A in (K, L))
    # K (K + e)^-1 and the root of L (L + d)^-1 by eigenvectors: the product is similar to a symmetric matrix
    values, Q = mpmath.eigsy(L)
    values = [mpmath.sqrt(max(x, 0) / (max(x, 0) + d)) for x in values]
    half = Q * mpmath.diag(values) * Q.T
    middle = half * (one - e * mpmath.inverse(K + e * one)) * half
    return float(mpmath.sqrt(max(mpmath.eigsy((middle + middle.T) / 2, eigvals_only=True))))


def check_kmeans(rng):
    n, k, (scale, offset) = int(rng.integers(4, 9)), int(rng.integers(2, 4)), setting(rng)
    Z = on_grid(rng, n, 2) + 4.0 * rng.integers(0, 2, (n, 1))
    X = scale * Z + offset
    kernel, method = random_kernel(rng, scale, "linear", "gaussian"), str(rng.choice(["gram", "features"]))
    w = weights_of(rng, n)
    yield f"{kernel} {method} n={n} {k=} {scale=} {offset=} weights={w is not None}"
    found = kernel_kmeans(X, kernel, k, method=method, sample_weight=w)
    weights = np.ones(n) if w is None else w
    K = centred(exact_gram(kernel, X), long_weights(w, n))
    total, (low, high) = weights @ np.diag(K), found.cost_bounds
    costs = total - clustering_cases.between_costs(K, weights.astype(LONG), clustering_cases.every_clustering(n, k), k)
    own = total - clustering_cases.between_costs(K, weights.astype(LONG), found.labels[None], k)[0]
    yield f"cost_bounds, {method}", float(max(low - own, own - high) / total) - 1e-17
    yield "least_cost", float((found.least_cost - costs.min()) / total) - 1e-17


def check_walks(rng):
    n, (scale, offset) = int(rng.integers(5, 13)), setting(rng)
    X = scale * on_grid(rng, n, 2) + offset
    kernel = fk.get_kernel("gaussian", sigma=scale * float(10 ** rng.uniform(-0.3, 0.5)))
    w, alpha = weights_of(rng, n), float(rng.choice([0.0, 1.0]))
    yield f"{kernel} n={n} {scale=} {offset=} {alpha=} weights={w is not None}"
    if alpha:
        found = diffusion_map(X, kernel, 2, alpha=alpha, sample_weight=w)
    else:
        found = spectral_clustering(X, kernel, 2, sample_weight=w)
    K, a = exact_gram(kernel, X), np.ones(n, dtype=LONG) if w is None else w.astype(LONG)
    start = a / (K @ a) ** alpha
    sums = K @ start
    N = np.sqrt(np.outer(start / sums, start / sums)) * K
    with mpmath.workdps(40):
        values = mpmath.eigsy(mpmath.matrix([[mpmath.mpf(str(x)) for x in row] for row in N]), eigvals_only=True)
        exact = np.array(sorted(map(float, values), reverse=True))[: len(found.eigenvalues)]
    low, high = found.eigenvalue_bounds.T
    yield "eigenvalue_bounds", float(np.maximum(low - exact, exact - high).max()) - 2e-16
    if not alpha:
        parts = [found.labels == j for j in range(2)]
        cut = 2 - sum(start[x] @ K[np.ix_(x, x)] @ start[x] / (start[x] @ sums[x]) for x in parts)
        yield "cut", float(max(found.cost_bounds[0] - cut, cut - found.cost_bounds[1])) - 1e-17


def check_ridge(rng):
    n, (scale, offset), k = int(rng.integers(3, 14)), setting(rng), int(rng.integers(1, 3))
    X, new = (scale * on_grid(rng, m, 2) + offset for m in (n, 6))
    kernel = random_kernel(rng, scale, "linear", "gaussian", "polynomial")
    method, w = str(rng.choice(["gram", "features"])), weights_of(rng, n)
    Y = rng.standard_normal((n, k)) * 10.0 ** int(rng.integers(-3, 4))
    K, there = fk.gram(X, kernel)[:], fk.gram(new, kernel, X)[:]
    mu = float(10 ** rng.uniform(-6, 1)) * float(K.diagonal().mean())
    yield f"{kernel} {method} n={n} {scale=} {offset=} {mu=} weights={w is not None}"
    w = w if w is None or w.sum() > 1 else None
    found = kernel_ridge(X, Y, kernel, regularization=mu, method=method, sample_weight=w, features_tol=1e-9)
    weights = np.ones(n) if w is None else w
    with mpmath.workdps(50):
        number = Multiple.numbers
        system = number(K) + np.diag(number(np.full(n, mu)) / number(weights))
        exact = mpmath.lu_solve(mpmath.matrix(system.tolist()), mpmath.matrix(Y.tolist())) if k == 1 else None
        if exact is None:
            inverse = mpmath.inverse(mpmath.matrix(system.tolist()))
            exact = inverse * mpmath.matrix(Y.tolist())
        values = np.array((mpmath.matrix(there.tolist()) * exact).tolist(), dtype=object).astype(LONG)
    yield f"error, {method}", excess(found.predict(new), values, found.error(new), np.abs(values).max())


def check_offsets(rng):
    """What depends on the centred matrix alone is that of the rows without the offset, whatever the method."""
    n, (scale, _) = int(rng.integers(40, 120)), setting(rng)
    offset = scale * float(rng.choice(OFFSETS[1:]))
    Z = scale * on_grid(rng, n, 3)
    t = Z[:, 2] / scale + 0.1 * rng.standard_normal(n)
    kernel, method = random_kernel(rng, scale, "linear", "gaussian"), str(rng.choice(["auto", "gram", "features"]))
    yield f"{kernel} {method} n={n} {scale=} {offset=}"
    mu = 1e-3 * scale**2 if type(kernel).__name__ == "Linear" else 1e-3
    found = {
        "pls": lambda X: kernel_pls(X, t, kernel, 2, method=method).predict(X[:5]),
        "pcr": lambda X: kernel_pcr(X, t, kernel, 2).predict(X[:5]),
        "klda": lambda X: klda(X, t > 0, kernel, method=method, penalty="norm", regularization=mu).project(X[:5]),
        "kmeans": lambda X: kernel_kmeans(X, kernel, 2, method=method).labels,
        "cca": lambda X: kernel_cca(X, t[:, None], kernel, kernel_y="linear").correlations,
        "hsic": lambda X: hsic_test(X, t[:, None], kernel, "linear", permutations=9).p_value,
        "mmd": lambda X: mmd_test(X[: n // 2], X[n // 2 :], kernel, method=method, permutations=9).p_value,
    }
    for name, fit in found.items():
        here, there = np.asarray(fit(Z)), np.asarray(fit(Z + offset))
        yield name, float(np.abs(here - there).max() / max(np.abs(here).max(), 1e-300)) - 1e-5


def as_given(rng, kernel, X):
    """The matrix of a kernel in float64, at times of few digits: in the place of rows it is itself what is exact."""
    K = exact_values(kernel, X.astype(LONG))[0].astype(np.float64)
    unit = 2.0 ** np.round(np.log2(np.abs(K).max()) - rng.choice([15, 25, 60, 60]))
    return np.round(K / unit) * unit


def spread_below(K, s):
    """How far the lowest eigenvalue of a weighted matrix lies below zero."""
    return -float(np.linalg.eigvalsh((K * np.sqrt(np.outer(s, s))).astype(np.float64))[0])


def check_given(rng):
    """Matrices in the place of rows, indefinite by the rounding of their entries."""
    n, (scale, offset), name = int(rng.integers(6, 13)), setting(rng), str(rng.choice(["hsic", "mmd", "cca", "kmeans"]))
    Z = on_grid(rng, n, int(rng.integers(1, 4)))
    rows, others = scale * Z + offset, np.round(Z[:, :1] * 2) + on_grid(rng, n, 1)
    kernel = random_kernel(rng, scale, "linear", "gaussian", "polynomial")
    G, F, w = as_given(rng, kernel, rows), as_given(rng, fk.get_kernel("gaussian", sigma=3.0), others), None
    K, L = G.astype(LONG), F.astype(LONG)
    if name in ("cca", "kmeans"):
        w = weights_of(rng, n)
    tol, s, orders, again = float(rng.choice([1e-12, 1e-6, 1e-3])), long_weights(w, n), [np.arange(n)], None
    unbiased = bool(rng.random() < 0.5)
    yield f"{name} {kernel} n={n} {scale=} {offset=} {tol=} {unbiased=} weights={w is not None}"
    given, again = {"kernel": "precomputed", "tol": tol}, np.random.default_rng(5)
    if name == "hsic":
        found = hsic_test(G, F, unbiased=unbiased, permutations=19, rng=5, **given)
        orders += [again.permutation(n) for _ in range(19)]
        left, right = centred(K, s), centred(L, s)
        exact = [_song(K, L[np.ix_(p, p)]) if unbiased else np.sum(left * right[np.ix_(p, p)]) / n**2 for p in orders]
        same = np.array([np.array_equal(p, orders[0]) for p in orders[1:]])
        size = float(np.trace(left) * np.trace(right)) / n**2
    elif name == "mmd":
        found = mmd_test(G[: n // 2], G[n // 2 :], unbiased=unbiased, permutations=19, rng=5, **given)
        labels = np.arange(n) < n // 2
        orders = [labels, *(again.permutation(labels) for _ in range(19))]
        exact = [_mmd(K, x, np.ones(n, dtype=LONG), unbiased) for x in orders]
        same, size = np.array([(x == labels).all() or (x != labels).all() for x in orders[1:]]), np.trace(K) / n
    elif name == "cca":
        found = kernel_cca(G, F, sample_weight=w, regularization=float(10 ** rng.uniform(-2, 0)), **given)
        K, L = centred(K, s), centred(L, s)
        low, high = found.correlation_bounds[0]
        penalties = found.x.penalty, found.y.penalty
        if all(2 * spread_below(A, s) < e for A, e in zip((K, L), penalties)):  # else there is no exact one
            with mpmath.workdps(40):
                exact = _correlation(K, L, *penalties, s)
            yield "correlation_bounds", max(low - exact, exact - high) - 1e-17
        else:
            yield "correlation_bounds, none", 1.0 - (high - low)
        return
    else:
        found = kernel_kmeans(G, "precomputed", 2, sample_weight=w)
        a = np.ones(n, dtype=LONG) if w is None else w.astype(LONG)
        total = a @ np.diag(centred(K, s))
        own = total - clustering_cases.between_costs(centred(K, s), a, found.labels[None], 2)[0]
        costs = total - clustering_cases.between_costs(centred(K, s), a, clustering_cases.every_clustering(n, 2), 2)
        low, high = found.cost_bounds
        size = a @ np.diag(K)
        yield "cost_bounds", float(max(low - own, own - high) / size) - 1e-17
        yield "least_cost", float((found.least_cost - costs.min()) / size) - 1e-17
        return
    errors = np.append(found.error, found.null_error)
    yield "error", excess(np.append(found.statistic, found.null), np.array(exact), errors, size)
    yield "p_interval", interval_excess(found, np.array(exact), same)


CHECKS = (check_hsic, check_mmd, check_cca, check_kmeans, check_walks, check_ridge, check_offsets, check_given)


def rounding(rng, asked, family):
    """The attack: one problem."""
    steps = family(rng)
    text, name = next(steps), family.__name__.removeprefix("check_")
    yield name, text, None
    try:
        yield name, text, list(steps)
    except ValueError as error:
        yield name, text, str(error)

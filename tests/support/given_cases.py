"""Vectors of every quality for ``fastkpca.certify``: whatever they are, the intervals hold the exact eigenvalues.

Families of vectors, by name: "exact" ones of a dense eigensolver; "noisy" ones, to eight or three digits, or rounded to
float32; "wrong" ones; "dependent" and "unsorted" ones; and those that lack an eigenvector ("missing"). Rows of nine
kinds, kernels of both packages, weights, centred or not, matrices.

The reference is a dense eigensolver's, of kernel values in long double where a formula of the tests has them, and of
the kernel's own values elsewhere.
"""

from functools import partial
from importlib import import_module
from unittest import mock

import numpy as np
from attack_cases import ROWS as FEW_ROWS
from attack_cases import spectrum
from data import rows, weights_of
from exact_kernels import LONG, exact_values
from option_cases import simple
from tally import MAY_FAIL

import fastkpca as fk
from fastkpca.solve.proofs import Factorisation

module = import_module("fastkpca.fit.certify")
MAX_FEATURES = module.MAX_FEATURES
UNIT = 2.0**-53
ROWS = ("normal", *FEW_ROWS)
OWN_VALUES = (fk.get_kernel("anova", sigma=1.0), fk.get_kernel("chi_squared", gamma=0.3), fk.get_kernel("intersection"))
"""Kernels for which the tests have no formula."""


def exact(V, rng):
    return V


def noisy(V, rng):
    """The noise of a column is so large as the column, times the level; or the columns are rounded to float32."""
    level = float(rng.choice([1e-3, 1e-8, 0.0]))
    if not level:
        return V.astype(np.float32)
    return V + level * rng.standard_normal(V.shape) / np.sqrt(len(V))


def wrong(V, rng):
    kind = rng.integers(3)
    if kind == 0:
        return rng.standard_normal(V.shape)
    if kind == 1:
        return np.eye(*V.shape)
    return V[rng.permutation(len(V))]


def dependent(V, rng):
    more = V @ rng.standard_normal((V.shape[1], int(rng.integers(1, 4))))
    every = np.hstack([more, V, np.ones((len(V), 1)), np.zeros((len(V), 1))])
    return every[:, rng.permutation(every.shape[1])]


def unsorted(V, rng):
    """In any order, of any length and sign."""
    sizes = 10.0 ** rng.uniform(-100, 100, V.shape[1]) * rng.choice([-1.0, 1.0], V.shape[1])
    return (V * sizes)[:, rng.permutation(V.shape[1])]


def missing(V, rng):
    """Without the largest one, or without another one."""
    k = V.shape[1]
    return V[:, np.arange(k) != (0 if rng.random() < 0.7 else rng.integers(k))]


FAMILIES = (exact, noisy, wrong, dependent, unsorted, missing)


def kernel_and_values(rng, X, center):
    """(kernel, the rows as it takes them, its values, bound on their errors)."""
    d = X.shape[1]
    if d > 1 and rng.random() < 0.15:
        kernel, X = OWN_VALUES[rng.integers(len(OWN_VALUES))], np.abs(X)
        K = kernel.block(X, X)
        return kernel, X, K, 1e-13 * float(np.abs(K).max())
    kernel = simple(rng, d, semidefinite=rng.random() < 0.8)
    if rng.random() < 0.1:
        nu, length = float(rng.choice([0.5, 1.5, 2.5])), float(10.0 ** rng.uniform(-1, 1))
        kernel = fk.get_kernel("matern", nu=nu, length_scale=length)
    K, error = exact_values(kernel, X, centred=center)
    return kernel, X, K, error


def flat(rng, asked):
    """The attack where no map tells anything, and the fit that follows is one whose bounds are probable."""
    n, d = int(rng.integers(100, 3 * asked.largest)), int(rng.integers(2, 9))
    X = rows(rng, str(rng.choice(["normal", "uniform", "clustered", "duplicates"])), n, d)
    sigma = float(np.std(X) * 10.0 ** rng.uniform(-1.0, 0.5)) or 1.0
    K = exact_values(fk.get_kernel("gaussian", sigma=sigma), X, centred=True)
    true = spectrum(*K)
    k = int(rng.integers(1, 6))
    V = (exact, noisy, missing, wrong)[rng.integers(4)](true.vectors[:, : k + 1].copy(), rng)
    tol, text = 10.0 ** rng.uniform(-4, -0.5), f"{sigma=} {n=} {d=} {k=}"
    fit = partial(fk.kpca, method=str(rng.choice(["krylov", "features"])))
    with (
        mock.patch.object(module, "MAX_FEATURES", 0),
        mock.patch.object(module, "kpca", fit),
        mock.patch.object(Factorisation, "cost", lambda *_: np.inf),
    ):
        found = fk.certify(X, "gaussian", V, sigma=sigma, tol=tol, failure_probability=asked.failure, n_threads=1,
                           rng=int(rng.integers(1000)))  # fmt: skip
    yield found.bound_kind, text, [*checked(found, true, True, rng, V, None, K[0])]


def sampled(rng, asked):
    """The attack where rows are drawn in place of the pass."""
    family = FAMILIES[rng.integers(len(FAMILIES))]
    yield from certified(rng, asked, family, draws=int(np.exp(rng.uniform(np.log(20), np.log(4096)))))


def certified(rng, asked, family, draws=None):
    """The attack: one problem, and vectors of one family."""
    n, d = int(np.exp(rng.uniform(np.log(12), np.log(asked.largest)))), int(rng.integers(1, 7))
    kind, center = str(rng.choice(ROWS)), bool(rng.random() < 0.7)
    X = rows(rng, kind, n, d)
    w, weighing = (None, "no") if rng.random() < 0.7 else weights_of(rng, n)
    kernel, X, K, error = kernel_and_values(rng, X, center and w is None)
    options = {"center": center, "sample_weight": w}
    if not np.isfinite(K).all() or float(np.abs(K).max()) > 1e100:
        return
    if rng.random() < 0.1:
        K = np.asarray(K, dtype=np.float64)
        semidefinite = bool(kernel.positive_semidefinite)
        kernel, X, error, options = "precomputed", (K + K.T) / 2, 0.0, options | {"semidefinite": semidefinite}
        K = X
    true = spectrum(np.asarray(K, dtype=LONG), error, None if w is None else np.asarray(w), center)
    if true.is_constant or not true.values[0] > 0:
        return
    k = int(rng.integers(1, min(12, max(len(true.values) // 2, 1)) + 1))
    V = family(true.vectors[:, :k].copy(), rng)
    if not V.shape[1]:
        return
    there = np.ones(n, bool) if w is None else np.asarray(w) > 0
    columns = 1.0 + rng.standard_normal((n, V.shape[1]))  # what rows of weight zero have does not count
    columns[there] = V if w is None else V / np.sqrt(np.asarray(w, dtype=np.float64)[there, None])
    if rng.random() > 0.5:
        options["tol"] = 10.0 ** rng.uniform(-8, -1)
    certain = rng.random() < 0.3 and draws is None
    options |= {"guaranteed": True} if certain else {"failure_probability": asked.failure, "rows": draws}
    asking = {key: options.get(key) for key in ("tol", "guaranteed", "rows")}
    text = f"{kernel} {kind} n={n} d={d} k={k} {center=} weights={weighing} {asking}"
    yield family.__name__, text, None
    features = MAX_FEATURES if rng.random() < 0.4 else int(rng.integers(0, 40))  # a map that tells less
    try:
        with mock.patch.object(module, "MAX_FEATURES", features):
            found = fk.certify(X, kernel, columns, n_threads=1, rng=int(rng.integers(1000)), **options)
    except (ValueError, TypeError, MemoryError) as refusal:
        yield family.__name__, text, f"{type(refusal).__name__}: {refusal}"
        return
    kind = f"{family.__name__}, {found.bound_kind}{', sampled' * found.sampled}"
    yield kind, text, [*checked(found, true, center, rng, columns, w, K)]


def checked(found, true, center, rng, columns, w, K):
    certain = found.bound_kind == "guaranteed"
    low, high = found.eigenvalue_bounds.astype(LONG).T
    values = np.zeros(max(len(true.values), len(low)), dtype=LONG)
    values[: len(true.values)] = true.values
    outside = np.maximum(low - values[: len(low)], values[: len(low)] - high).max()
    worst = [true.excess(outside - true.error)]
    # numbers of eigenvalues above a value between two of them
    j = int(rng.integers(min(len(values) - 1, 3 * len(low)))) if len(values) > 1 else 0
    t = float(values[j] + values[min(j + 1, len(values) - 1)]) / 2
    least, most = found.count_above(t)
    sure, maybe = (int(np.count_nonzero(values > t + s * true.error)) for s in (1, -1))
    worst.append(float(max(least - maybe, sure - most)))
    yield ("intervals and counts", max(worst)) if certain else (MAY_FAIL, float(max(worst) > 0))
    ritz = (found.ritz_values.astype(LONG) - values[: len(low)]).max()
    yield "Ritz values", true.excess(ritz - true.error) - 1e-9 * float(true.norm_K / max(true.size, true.error))
    if w is None:
        for what, excess in _of_vectors(found, true, center, columns, K):
            yield (what, excess) if certain else (MAY_FAIL, float(excess > 0))


def _of_vectors(found, true, center, columns, K):
    """Ritz values and vectors by another computation: how many eigenvalues they miss, and the sine between each vector
    and the true subspace of its cluster."""
    V = columns.astype(np.float64)
    V = V / np.abs(V).max(axis=0, initial=1e-300)
    V = V - V.mean(axis=0) * center
    Q, sizes, _ = np.linalg.svd(V / np.maximum(np.linalg.norm(V, axis=0), 1e-300), full_matrices=False)
    if sizes[0] > 0 and np.any((sizes < 1e-6 * sizes[0]) & (sizes > 1e-13 * sizes[0])):
        return
    Q = Q[:, sizes > 1e-6 * sizes[0]]
    if Q.shape[1] != found.rank:
        return
    A = np.asarray(K, dtype=np.float64)
    if center:
        A = A - A.mean(axis=0)
        A = A - A.mean(axis=1)[:, None]
    theta, Y = np.linalg.eigh(Q.T @ A @ Q)
    theta, U = theta[::-1], Q @ Y[:, ::-1]
    t = 0.999 * float(theta[-1])
    if min(np.abs(np.append(theta, true.values.astype(float)) - t)) > 1e-9 * true.norm_K + true.error:
        missing = int(np.count_nonzero(true.values > t) - np.count_nonzero(theta > t))
        least, most = found.missed_above(t)
        yield "missed", float(max(least - missing, missing - most))
    for j in range(found.rank):
        label, bound = found.vector_clusters[j], float(np.sin(found.angle_bounds[j]))
        gap = min(np.abs(theta[j] - np.delete(theta, j)), default=np.inf)
        if label < 0 or bound >= 1.0 or gap < 1e-6 * abs(theta[0]):
            continue
        mine = np.flatnonzero(found.clusters == label)
        last = mine[-1]
        if label == found.clusters[-1]:  # the cluster may go on beyond the intervals that are returned
            lowest = found.eigenvalue_bounds[mine, 0].min() - 2 * np.ptp(found.eigenvalue_bounds[mine], axis=1).max()
            last = max(last, int(np.count_nonzero(true.values >= lowest)) - 1)
        first, last = mine[0], last
        vectors = true.vectors[:, first : last + 1]
        sine = np.linalg.norm(U[:, j] - vectors @ (vectors.T @ U[:, j]))
        apart = [abs(float(true.values[first - 1] - true.values[first]))] if first else []
        apart += [abs(float(true.values[last] - true.values[last + 1]))] if last + 1 < len(true.values) else []
        gaps = 1 / max(min(apart, default=np.inf), 1e-300) + 1 / max(gap, 1e-300)
        own = 1e-9 + 4 * float(true.error + 1e-13 * true.norm_K) * gaps
        yield "angles", float(sine - bound - own) if own < 0.1 else -1.0

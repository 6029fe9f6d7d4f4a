"""Matrices in the place of rows, as they come from users, and dense references of what is made of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn.kernel_approximation
from kernels_contrib.diffusion import neighbor_graph
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import kneighbors_graph

N, NEW = 48, 7
RNG = np.random.default_rng(0)
GROUP = np.arange(N) % 3
X = RNG.standard_normal((N, 3)) + 3.0 * np.eye(3)[GROUP]
Z = RNG.standard_normal((NEW, 3)) + 1.0
LABELS, T = GROUP > 0, np.sin(X[:, 0]) + 0.1 * X[:, 1]
VIEW = X[:, :1] ** 2
H = np.eye(N) - 1.0 / N


def gaussian(A, B):
    return np.exp(-((A[:, None] - B) ** 2).sum(-1) / 8.0)


def distances(A, B):
    return np.sqrt(((A[:, None] - B) ** 2).sum(-1))


K, K_NEW, L = gaussian(X, X), gaussian(Z, X), gaussian(VIEW, VIEW)
COUNTS, COUNTS_NEW = ((np.abs(np.rint(A)) + 1).astype(int) for A in (X, Z))
NOISE = 1e-16 * RNG.standard_normal((N, N))
NEAREST = kneighbors_graph(X, 8, include_self=True)
WEIGHTS = np.triu(RNG.random((N, N)) < 0.3, 1) * RNG.random((N, N))

# Matrices: (as given, the matrix between new and training rows, what is wrong with it: "" nothing) --------------------
MATRICES = {
    "dense": (K, K_NEW, ""),
    "Fortran": (np.asfortranarray(K), np.asfortranarray(K_NEW), ""),
    "strided": (np.repeat(K, 2, axis=1)[:, ::2], np.repeat(K_NEW, 2, axis=1)[:, ::2], ""),
    "read-only": (np.frombuffer(K.tobytes()).reshape(N, N), K_NEW, ""),
    "nested lists": (K.tolist(), K_NEW.tolist(), ""),
    "float32": (K.astype(np.float32), K_NEW.astype(np.float32), ""),
    "float32 kept as float64": (K.astype(np.float32).astype(float), K_NEW.astype(np.float32).astype(float), ""),
    "six decimals": (K.round(6), K_NEW.round(6), ""),
    "three decimals": (K.round(3), K_NEW.round(3), ""),
    "whole numbers": (COUNTS @ COUNTS.T, COUNTS_NEW @ COUNTS.T, ""),
    "asymmetric by rounding": (K + NOISE, K_NEW, ""),
    "data frame": (pd.DataFrame(K), pd.DataFrame(K_NEW), ""),
    "named data frame": (
        pd.DataFrame(K, columns=[f"r{i}" for i in range(N)]),
        pd.DataFrame(K_NEW, columns=[f"r{i}" for i in range(N)]),
        "",
    ),
    **{
        f"{form.__name__}": (form(np.where(K > 0.05, K, 0.0) + 2.0 * np.eye(N)), form(K_NEW * (K_NEW > 0.05)), "")
        for form in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix)
    },
    "neighbours, symmetrised": ((NEAREST + NEAREST.T) / 2, neighbor_graph(Z, 8, X), "indefinite"),
    "neighbours": (NEAREST, neighbor_graph(Z, 8, X), "asymmetric"),
    "adjacency": (WEIGHTS + WEIGHTS.T, RNG.random((NEW, N)), "indefinite"),
    "truth values": ((WEIGHTS + WEIGHTS.T > 0) | np.eye(N, dtype=bool), RNG.random((NEW, N)), "indefinite"),
    "indefinite": (K + 0.3 * (WEIGHTS + WEIGHTS.T), K_NEW, "indefinite"),
    "negative values": (np.tanh(X @ X.T - 1.0), np.tanh(Z @ X.T - 1.0), "negative"),
    "distances": (distances(X, X), distances(Z, X), "distances"),
    "squared distances": (distances(X, X) ** 2, distances(Z, X) ** 2, "distances"),
    "asymmetric": (K + np.eye(N, k=1), K_NEW, "asymmetric"),
    "NaN": (np.where(np.eye(N, k=3) + np.eye(N, k=-3) > 0, np.nan, K), K_NEW, "NaN"),
    "NaN in a frame": (pd.DataFrame(np.where(np.eye(N) > 0, np.nan, K)), K_NEW, "NaN"),
    "infinity": (np.where(np.eye(N) > 0, np.inf, K), K_NEW, "NaN"),
    "not square": (K[:, :-1], K_NEW, "shape"),
    "one dimension": (K[0], K_NEW, "shape"),
    "words": (np.where(np.eye(N) > 0, "one", K.astype(str)), K_NEW, "words"),
}
# References ----------------------------------------------------------------------------------------------------------


def dense(M):
    return np.asarray(M.toarray() if sp.issparse(M) else M, dtype=np.float64)


def leading(A, c):
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return values[: -c - 1 : -1], vectors[:, : -c - 1 : -1]


def close(found, expected, tol=1e-6):
    scale = max(float(np.abs(expected).max()), 1e-12)
    np.testing.assert_allclose(found, expected, atol=tol * scale, rtol=0)


def within(bounds, values, slack=1e-9):
    values = np.asarray(values)
    slack = slack * max(1.0, float(np.abs(values).max()))
    assert (bounds[..., 0] <= values + slack).all() and (values <= bounds[..., 1] + slack).all(), (bounds, values)


def components(M, new, c):
    """Scores of the training and the new rows, but for their signs."""
    values, vectors = leading(H @ M @ H, c)
    centred = new - new.mean(axis=1, keepdims=True) - M.mean(axis=0) + M.mean()
    return vectors * np.sqrt(values), centred @ vectors / np.sqrt(values)


def of_kpca(M, new, model, project):
    values, _ = leading(H @ M @ H, 2)
    within(model.eigenvalue_bounds, values)
    close(np.abs(project(new)), np.abs(components(M, dense(new), 2)[1]), 1e-4)


def cluster_cost(M, labels):
    E = np.eye(labels.max() + 1)[labels]
    return np.trace(M) - np.trace(E.T @ M @ E / E.sum(axis=0))


def of_kmeans(M, new, model, predict):
    labels = model.labels
    within(model.cost_bounds, cluster_cost(M, labels))
    assert model.least_cost <= np.trace(H @ M @ H) - leading(H @ M @ H, 2)[0].sum() + 1e-9 * np.trace(M)
    E = np.eye(3)[labels]
    means = E / E.sum(axis=0)
    far = np.einsum("ij,ij->j", means, M @ means) - 2.0 * dense(new) @ means
    chosen, found = np.sort(far, axis=1), far[np.arange(NEW), predict(new)]
    close(found, chosen[:, 0], 1e-6)


def of_walk(M, model):
    roots = np.sqrt(M.sum(axis=1))
    within(model.eigenvalue_bounds, leading(M / np.outer(roots, roots), len(model.eigenvalues))[0])


def of_spectral(M, new, model, predict):
    of_walk(M, model)
    E = np.eye(3)[model.labels]
    volumes = E.T @ M.sum(axis=1)
    within(model.cost_bounds, 3 - np.sum(np.diag(E.T @ M @ E) / volumes))
    assert np.asarray(predict(new)).shape == (NEW,)
    assert (predict(M) == model.labels).mean() > 0.9


def of_diffusion(M, new, model, project):
    densities = M.sum(axis=1)
    of_walk(M / np.outer(densities, densities), model)
    close(project(M), model.coordinates, 1e-5)


def of_logistic(M, new, predict):
    """f(x) = sum_j (label_j - probability_j) k(x_j, x) + intercept, the probabilities those of scikit-learn."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    reference = LogisticRegression(C=1.0, tol=1e-12, max_iter=100000).fit(features, LABELS)
    coefficients = LABELS - reference.predict_proba(features)[:, 1]
    close(predict(new)[:, 1], expit(dense(new) @ coefficients + reference.intercept_), 1e-4)


def of_ridge(M, new, predict):
    close(predict(new), dense(new) @ np.linalg.solve(M + 0.5 * np.eye(N), T), 1e-3)


def of_pls(M, new, predict):
    """The first component: t = H M H y."""
    C, y = H @ M @ H, T - T.mean()
    t = C @ y
    centred = dense(new) - dense(new).mean(axis=1, keepdims=True) - M.mean(axis=0) + M.mean()
    close(predict(new), T.mean() + (centred @ y) * (t @ y) / (t @ t), 1e-4)


def of_discriminant(M, new, model, project):
    """Two classes: (N + mu I)^-1 (m_1 - m_0), N the scatter within."""
    mu = 1e-3 * (np.mean(np.diag(M)) or 1.0) ** 2
    within_ = sum(
        M[:, LABELS == g] @ (np.eye(n) - 1 / n) @ M[LABELS == g] for g in (0, 1) if (n := (LABELS == g).sum())
    )
    difference = M[:, LABELS].mean(axis=1) - M[:, ~LABELS].mean(axis=1)
    direction = np.linalg.solve(within_ + mu * np.eye(N), difference)
    centred = (dense(new) - M.mean(axis=0)) @ direction
    found = project(new)[:, 0]
    close(found / np.abs(found).max(), centred / np.abs(centred).max(), 1e-3)


def of_hsic(M, test):
    assert abs(test.statistic[0] - np.trace(M @ H @ L @ H) / N**2) <= test.error[0] + 1e-12


def of_mmd(M, test):
    s = np.where(np.arange(N) < 20, 1 / 20, -1 / 28)
    assert abs(test.statistic[0] - s @ M @ s) <= test.error[0] + 1e-12


def of_cca(M, new, model, project):
    C, D = H @ M @ H, H @ L @ H
    penalties = (C, model.x.penalty), (D, model.y.penalty)
    parts = [np.linalg.solve(A + N * penalty * np.eye(N), A) for A, penalty in penalties]
    largest = np.sqrt(np.linalg.eigvals(parts[0] @ parts[1]).real.max())
    within(model.correlation_bounds[:1], [largest], 1e-8)
    assert np.isfinite(project(new)).all()


def of_nystroem(M, new, estimator):
    reference = sklearn.kernel_approximation.Nystroem(kernel="precomputed", n_components=N, random_state=0).fit(M)
    found = estimator.transform(new) @ estimator.transform(dense(new)).T
    expected = reference.transform(dense(new)) @ reference.transform(dense(new)).T
    if np.linalg.cond(M) < 1e8:
        close(found, expected, 1e-4)
    close(estimator.transform(dense(new)), estimator.transform(new), 1e-4)

"""References that share no code with the package: kernel matrices by scipy's distances, eigenvalues by dense LAPACK."""

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist


def gram(name, X, Y=None, **p):
    X = np.asarray(X, dtype=np.float64)
    Y = X if Y is None else np.asarray(Y, dtype=np.float64)
    if name == "linear":
        return X @ Y.T
    if name == "polynomial":
        return (p.get("scale", 1.0) * (X @ Y.T) + p.get("offset", 1.0)) ** p.get("degree", 3)
    if name == "gaussian":
        return np.exp(-cdist(X, Y, "sqeuclidean") / (2 * p["sigma"] ** 2))
    if name == "tanh":
        return np.tanh(p.get("scale", 1.0) * (X @ Y.T) + p.get("offset", 0.0))
    raise ValueError(name)


def long_squares(X, Y):
    """Squared distances in longdouble, by differences and not by GEMM: of the rows, not of their rounding."""
    squares = np.zeros((len(X), len(Y)), dtype=np.longdouble)
    for x, y in zip(X.T.astype(np.longdouble), Y.T.astype(np.longdouble), strict=True):
        squares += (x[:, None] - y[None, :]) ** 2
    return squares


def long_gaussian(X, Y, sigma):
    return np.exp(-long_squares(X, Y) / (2 * np.longdouble(sigma) ** 2))


def lagrange(s, z):
    """Values at s of the polynomials that are one at one of the nodes z and zero at the others."""
    L = np.ones((len(s), len(z)), dtype=np.longdouble)
    for k in range(len(z)):
        for j in set(range(len(z))) - {k}:
            L[:, k] *= (s - z[j]) / (z[k] - z[j])
    return L


def center(K):
    """H K H, in the precision of K."""
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


def eigh(K):
    """Eigenvalues (descending) and vectors of the centred matrix."""
    values, vectors = scipy.linalg.eigh(center(K).astype(np.float64))
    return values[::-1], vectors[:, ::-1]


def with_eigenvalues(rng, values, *, centred=False):
    """A symmetric matrix with these eigenvalues; ``centred``: and the eigenvalue zero of a constant vector."""
    means = int(centred)
    n = len(values) + means
    Q = np.linalg.qr(np.hstack([np.ones((n, means)), rng.standard_normal((n, n - means))]))[0][:, means:]
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


def dense_top(X, c):
    """The largest eigenvalues of the centred matrix of the Gaussian of width one."""
    K = center(np.exp(-0.5 * cdist(X, X, "sqeuclidean")))
    return scipy.linalg.eigvalsh(K, subset_by_index=[len(X) - c, len(X) - 1])[::-1]


def standardise(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)

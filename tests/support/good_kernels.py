"""Kernels that keep the contract, for tests to break in one way each."""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from fastkpca.kernels import Cost, FeatureMap, Kernel, Offer, Summation


class Scaled(Kernel):
    """scale x.y"""

    api_version = 1
    positive_semidefinite = True
    parameters = {"scale": 1.0}

    def block(self, X, Y):
        return self.scale * (X @ Y.T)


class Plain(Kernel):
    """exp(-|x - y|^2 / (2 sigma^2)), with nothing to make it faster."""

    api_version = 1
    positive_semidefinite = True
    translation = "kernel"
    parameters = {"sigma": None}
    aliases = {"width": ("sigma", float)}

    def __init_subclass__(cls, version=1, **options):
        super().__init_subclass__(**options)
        if version is not None:
            cls.api_version = version

    def resolve(self, data):
        return self if self.sigma is not None else type(self)(sigma=max(1.5, 0.5 * data.radius))

    def block(self, X, Y):
        return np.exp(-cdist(X, Y, "sqeuclidean") / (2 * self.sigma**2)).astype(X.dtype)

    def diagonal(self, X):
        return np.ones(len(X))

    def entry_error(self, data, dtype):
        return (data.n_features + 8) * float(np.finfo(dtype).eps) + 2.5e-16 * data.radius / self.sigma


class Cauchy(Kernel):
    """1 / (1 + |x - y|^2): nothing but ``block``."""

    api_version = 1
    positive_semidefinite = True
    translation = "kernel"

    def block(self, X, Y):
        return 1 / (1 + sum((X[:, None, f] - Y[None, :, f]) ** 2 for f in range(X.shape[1])))


class GoodMap(FeatureMap):
    def __init__(self, points, sigma):
        self.points, self.sigma = np.ascontiguousarray(points), sigma
        K = np.exp(-cdist(self.points, self.points, "sqeuclidean") / (2 * sigma**2))
        self.factor = np.linalg.cholesky(K + 1e-9 * np.eye(len(K)))
        self.n_features = len(K)
        self.rounding = 1e-9

    def features(self, X):
        K = np.exp(-cdist(self.points, X, "sqeuclidean") / (2 * self.sigma**2))
        return solve_triangular(self.factor, K, lower=True).T

    def residual(self, X, Phi=None):
        Phi = self.features(X) if Phi is None else Phi
        return np.maximum(1.0 - np.einsum("ij,ij->i", Phi, Phi), 0.0) + 1e-12

    def state(self):
        return {"map": "good", "sigma": self.sigma}, {"points": self.points}


class GoodProduct(Summation):
    error_bound = 1e-13

    def __init__(self, sigma, X, Y=None):
        self.K = np.exp(-cdist(X.all(), (X if Y is None else Y).all(), "sqeuclidean") / (2 * sigma**2))
        self.symmetric = Y is None
        self.shape = self.K.shape

    def matmat(self, U):
        return self.K @ U

    def rmatmat(self, U):
        return self.K.T @ U


class WithOffers(Plain):
    """The same with a feature map and a product of its own, both called "good"."""

    map_class = GoodMap
    product_class = GoodProduct

    def feature_maps(self, data, tol, max_features):
        offer = Offer("good", Cost(30, residual=tol), lambda sample: self.map_class(sample[:30], self.sigma))
        return [offer] if max_features >= 30 else []

    def feature_map_from_state(self, header, arrays):
        return self.map_class(arrays["points"], header["sigma"])

    def summations(self, data_x, data_y, tol):
        if tol is not None and tol < 1e-13:
            return ()
        return [Offer("good", Cost(0), lambda X, Y=None: self.product_class(self.sigma, X, Y))]


class Good(WithOffers):
    """The same with a compiled tile: everything that a kernel may offer."""

    def compiled_tile(self):
        return "gaussian", {"sigma": self.sigma}

"""Kernels whose claims contradict their values, each in one way, and the true eigenvalues of those values."""

import numpy as np
from good_kernels import Good, GoodMap, GoodProduct, Plain, WithOffers
from scipy.spatial.distance import cdist

import fastkpca as fk
from fastkpca.kernels import Gaussian

X = np.random.default_rng(3).standard_normal((700, 3))
X[123] = 4.0  # some of the kernels are wrong at this row, and at no other


def is_rare(X):
    return X[:, 0] > 1.6


def is_last(X):
    return X[:, 0] > 3.6


class Own(Plain):
    """No ``entry_error``: the bounds are about the values of ``block``."""

    def entry_error(self, data, dtype):
        return None


class Anywhere(Own):
    """The same without a shift of the rows."""

    translation = None


def broken(base, **members):
    return type("Broken", (base,), {"api_version": 1, "parameters": base.parameters, **members})


def diagonals():
    """Diagonals that are not those of ``block``."""
    ways = {
        "half": lambda self, X: np.full(len(X), 0.5),
        "twice": lambda self, X: np.full(len(X), 2.0),
        "nearly": lambda self, X: np.full(len(X), 0.999),
        "nearly, above": lambda self, X: np.full(len(X), 1.0 + 1e-5),
        "barely": lambda self, X: np.full(len(X), 1.0 - 1e-8),
        "zero": lambda self, X: np.zeros(len(X)),
        "negative": lambda self, X: -np.ones(len(X)),
        "of rare rows": lambda self, X: np.where(is_rare(X), 0.3, 1.0),
        "of one row": lambda self, X: np.where(is_last(X), 0.01, 1.0),
        "of large tiles": lambda self, X: np.full(len(X), 1.0 if len(X) < 200 else 0.6),
        "of a row": lambda self, X: np.arange(len(X)) / len(X),
    }
    for name, way in ways.items():
        for base in (Plain, Own, Anywhere):
            yield f"diagonal: {name}, {base.__name__}", broken(base, diagonal=way)


def minus(part):
    return lambda self, X, Y: Plain.block(self, X, Y) - part(self, X, Y)


def indefinite():
    """Kernels that are not semidefinite."""

    def wide(self, X, Y):
        return 0.5 * np.exp(-cdist(X, Y, "sqeuclidean") / 60)

    ways = {
        "a distance": lambda self, X, Y: -cdist(X, Y),
        "a difference": minus(wide),
        "little": minus(lambda self, X, Y: 0.02 * wide(self, X, Y)),
        "very little": minus(lambda self, X, Y: 1e-4 * wide(self, X, Y)),
        "of rare rows": minus(lambda self, X, Y: 0.9 * np.outer(is_rare(X), is_rare(Y))),
        "of one row": minus(lambda self, X, Y: 0.7 * np.outer(is_last(X), is_last(Y))),
        "tanh": lambda self, X, Y: np.tanh(X @ Y.T + 0.1),
        "a box": lambda self, X, Y: (cdist(X, Y) < 1.5).astype(float),
    }
    for name, way in ways.items():

        def diagonal(self, X, way=way):
            return np.array([way(self, x[None], x[None])[0, 0] for x in X])

        yield f"indefinite: {name}", broken(Anywhere, block=way, diagonal=diagonal)
        yield f"indefinite: {name}, diagonal of ones", broken(Anywhere, block=way)


def translations():
    """Kernels that do change with a shift."""

    def quadratic(self, X, Y):
        return (1.0 + 0.1 * X @ Y.T) ** 2

    def square(self, X):
        return (1.0 + 0.1 * np.einsum("ij,ij->i", X, X)) ** 2

    for claim in ("kernel", "centered"):
        yield f"translation: {claim}", broken(Own, block=quadratic, diagonal=square, translation=claim)


def inherited():
    """Another ``block`` under the members of the Gaussian."""

    def wider(self, X, Y):
        return np.exp(-cdist(X, Y) / self.sigma)

    def higher(self, X, Y):
        return 1.5 * Gaussian.block(self, X, Y)

    yield "inherited: wider", broken(Gaussian, block=wider)
    yield "inherited: higher", broken(Gaussian, block=higher)
    yield "inherited: compiled tile", broken(Good, block=lambda self, X, Y: Plain.block(self, X, Y) ** 2)
    yield "value bound", broken(Plain, value_bound=lambda self, data: 0.1)


def offers():
    """Maps and products that contradict the kernel."""
    maps = {
        "residual": {"residual": lambda self, X, Phi=None: 0.1 * GoodMap.residual(self, X, Phi)},
        "no residual": {"residual": lambda self, X, Phi=None: np.zeros(len(X))},
        "too large": {"features": lambda self, X: 1.1 * GoodMap.features(self, X)},
        "other rows": {"features": lambda self, X: GoodMap.features(self, np.where(is_rare(X)[:, None], 2 * X, X))},
        "turned": {"features": lambda self, X: GoodMap.features(self, X) * (1 + 0.3 * np.sin(9 * X[:, :1]))},
    }
    for name, members in maps.items():
        yield f"map: {name}", broken(WithOffers, map_class=type("Map", (GoodMap,), members))
    products = {
        "scaled": {"matmat": lambda self, U: (1 + 1e-4) * (self.K @ U)},
        "truncated": {"matmat": lambda self, U: np.where(self.K > 0.01, self.K, 0.0) @ U},
        "without a diagonal": {"matmat": lambda self, U: self.K @ U - U},
        "noise": {"matmat": lambda self, U: self.K @ U + 1e-5 * np.sin(1e3 * (self.K @ U))},
        "of many columns": {"matmat": lambda self, U: self.K @ U * (1.0 if U.shape[1] < 3 else 0.97)},
    }
    for name, members in products.items():
        yield f"product: {name}", broken(WithOffers, product_class=type("Product", (GoodProduct,), members))


KERNELS = dict((*diagonals(), *indefinite(), *translations(), *inherited(), *offers()))

ROUTES = {
    "dense": {"method": "dense"},
    "krylov, loose": {"method": "krylov", "tol": 1e-2},
    "krylov, tight": {"method": "krylov", "tol": 1e-8},
    "guaranteed": {"method": "krylov", "tol": 1e-3, "guaranteed": True},
    "fraction": {"method": "krylov", "tol": 1e-3, "c": 0.6},
    "pivots, loose": {"features": "pivots", "tol": 1e-2},
    "pivots, tight": {"features": "pivots", "tol": 1e-6},
    "auto": {"tol": 1e-3},
    "budget": {"max_features": 60},
    "weights": {"tol": 1e-3, "sample_weight": np.linspace(0.5, 2.0, len(X))},
    "uncentred": {"tol": 1e-3, "center": False},
    "own map": {"features": "good", "tol": 0.5},
    "own product": {"products": "good", "method": "krylov", "tol": 1e-2},
}


def truth(kernel, c, sample_weight=None, center=True):
    """The first eigenvalues of the matrix of the kernel's own values; of its symmetric part."""
    K = kernel.block(X, X)
    w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    K = (K + K.T) / 2
    H = np.eye(len(X)) - (np.outer(np.ones(len(X)), w) / w.sum() if center else 0.0)
    A = np.sqrt(w)[:, None] * (H @ K @ H.T) * np.sqrt(w)
    return np.linalg.eigvalsh(A)[::-1][:c]


def fit(cls, route):
    """(the model, true eigenvalues) of a kernel with sigma = 1.5 by a route."""
    options = dict(ROUTES[route])
    c = options.pop("c", 3)
    kernel = cls(sigma=1.5)
    model = fk.kpca(X, kernel, c, rng=0, return_scores=False, n_threads=1, **options)
    about = {name: options[name] for name in ("sample_weight", "center") if name in options}
    return model, truth(kernel, model.n_components, **about)


CASES = [
    (name, route)
    for name, cls in KERNELS.items()
    for route in ROUTES
    if "own" not in route or issubclass(cls, WithOffers)
]

from scipy.spatial.distance import cdist

from fastkpca.kernels import Kernel


class Cauchy(Kernel):
    """Cauchy kernel 1 / (1 + |x - y|^2 / scale^2)."""

    api_version = 1
    positive_semidefinite = True
    translation = "kernel"
    parameters = {"scale": 1.0}

    def block(self, X, Y):
        squares = cdist(X, Y, "sqeuclidean") / self.scale**2
        return (1.0 / (1.0 + squares)).astype(X.dtype, copy=False)

"""A kernel matrix held whole, with the interface of the exact summation: for tests and the attack script."""

from types import SimpleNamespace

import numpy as np
import reference

from fastkpca.base.protocol import NormPass, Summation
from fastkpca.products.weighted import Coordinates, Entries
from fastkpca.rows.view import Rows


class DenseProduct(Summation):
    """K as an array; counts the passes over its values."""

    gives_norm = True

    def __init__(self, K, dtype=np.float64):
        self.K = np.asarray(K, dtype=dtype)
        self.shape = self.K.shape
        self.passes = 0

    def matmat(self, U):
        self.passes += 1
        return self.K @ np.asarray(U, dtype=self.K.dtype)

    def pass_with_norm(self, V, row_means, grand_mean):
        self.passes += 1
        M = self.K - row_means[:, None] - row_means[None, :] + grand_mean
        return NormPass(self.K @ V, self.K.sum(axis=1), float(np.sum(M * M)), float(np.sum(self.K * self.K)))


def centered(K):
    """H K H in longdouble, rounded once to float64."""
    return reference.center(np.asarray(K, dtype=np.longdouble)).astype(np.float64)


def entries_of(K, coordinates=None, weights=None):
    """What a solver knows of the entries of K, or of those of weighted rows in its own coordinates."""
    K = np.asarray(K)

    def block(X, Y):  # rows are their numbers
        return K[np.ix_(X[:, 0].astype(int), Y[:, 0].astype(int))]

    rows = Rows(np.arange(len(K), dtype=float)[:, None], weights=weights)
    coordinates = Coordinates(len(K)) if coordinates is None else coordinates
    return Entries(SimpleNamespace(thread_safe=True, block=block), rows, coordinates)

from dataclasses import dataclass

import numpy as np

import fastkpca as fk
from fastkpca.kernels import Kernel
from fastkpca.state import load_state, save_state

KIND = "method_pure:Herd"


@dataclass(frozen=True)
class Herd:
    """A few rows whose mean in the kernel's space is near that of all."""

    kernel: Kernel
    rows: np.ndarray
    numbers: np.ndarray

    def density(self, X):
        """Mean of k(x, row) over the chosen rows."""
        return fk.gram(X, self.kernel, self.rows) @ np.full(len(self.rows), 1 / len(self.rows))

    def save(self, path):
        save_state(path, KIND, vars(self))


def load(path):
    kind, values = load_state(path)
    if kind != KIND:
        raise ValueError(f"{path} holds a {kind!r}, not a {KIND!r}")
    return Herd(**values)


def kernel_herding(X, m, kernel="gaussian", **parameters):
    """The m rows of Chen, Welling and Smola, Super-samples from kernel herding, 2010 (equation 9)."""
    K = fk.gram(X, kernel, **parameters)
    means = K.column_means()
    chosen, total = [], np.zeros(len(means))
    for step in range(m):
        gain = means - total / (step + 1)
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
        total += K[chosen[-1]]
    return Herd(K.kernel, np.array(X[chosen]), np.array(chosen))

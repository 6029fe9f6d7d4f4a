"""The contrast of components, its gradient, and the one feature map that serves all components and rotations.

The y_i are one-dimensional, and there the Gaussian has a map phi of ten to thirty features that misses less of the
kernel than the regularisation hides. So the contrast is one smooth function of the unmixing matrix W:

    y = z W',   C = (1/N) sum_n (phi_n - m)(phi_n - m)',   dJ = <G, dC> = 2/N sum_n <G (phi_n - m), phi'(y_n) dy_n>.

Let O be the off-diagonal blocks of C, and P_i = T_i^2 = p(C_ii) with p(x) = x / (x + e)^2. R has the eigenvalues of
I + P O, which is a smooth function of C; T is not, because of the square roots of eigenvalues near zero. p's divided
difference is (e^2 - ab) / ((a + e)^2 (b + e)^2), free of cancellation, and this gives G without N x N or differences in
W.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

import fastkpca
from fastkpca.base import parallel
from fastkpca.base.rounding import EPS
from fastkpca.kernels import Kernel

from ..limits import HELD

FEW = 2000
"""Rows that decide where a descent starts, and numbers that a map is made from: all of them show later what it misses.
Maps of 4096 numbers take as long, and end at the same contrasts (500 to 20,000 rows)."""


@dataclass(frozen=True)
class Setting:
    """A contrast: its name, the kernel, kappa, and the part of the kernel's trace that the feature map may miss."""

    name: str
    kernel: Kernel
    kappa: float
    tol: float
    n_threads: int = 1

    def contrast(self, Z: np.ndarray, numbers: np.ndarray, share: float = 1.0) -> Contrast:
        """Features of the rows Z, by a map made for these numbers with a residual of at most this fraction of
        ``tol``.
        """
        return Contrast(Z, LineMap(numbers, self.kernel, share * self.tol), self)


def some_numbers(Y: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Entries of Y, at most FEW."""
    y = Y.ravel()
    return y if y.size <= FEW else y[np.sort(generator.choice(y.size, FEW, replace=False))]


class LineMap:
    """phi and phi' of numbers; feature-major."""

    def __init__(self, numbers: np.ndarray, kernel: Kernel, tol: float):
        operator = fastkpca.features(numbers.reshape(-1, 1), kernel, tol=tol, n_threads=1)
        self._map, self._shift = operator.map, float(operator.shift[0])
        self.kernel, self.n_features = operator.kernel, self._map.n_features
        if not self.n_features:
            raise ValueError(
                f"{self.kernel!r} is zero on these components: it sees nothing of them; take another kernel"
            )
        self._step = EPS ** (1 / 3) * self.kernel.get_parameters().get("sigma", 1.0)

    def _rows(self, y: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(y - self._shift).reshape(-1, 1)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """phi, (D, *y.shape)."""
        return np.ascontiguousarray(self._map.features(self._rows(y)).T).reshape(-1, *y.shape)

    def derivative(self, y: np.ndarray) -> np.ndarray:
        """phi', (D, *y.shape), by central differences: of a function on a line, for any map."""
        up = self(y + self._step)
        up -= self(y - self._step)
        up /= 2.0 * self._step
        return up

    def residual(self, y: np.ndarray) -> np.ndarray:
        """k(y, y) - |phi(y)|^2, and k(y, y)."""
        rows = self._rows(y)
        Phi = self._map.features(rows)
        missed = self._map.residual(rows, Phi)
        return np.stack([missed, missed + np.einsum("ij,ij->i", Phi, Phi)]).reshape(2, *y.shape)


class Contrast:
    """J(W) for y = Z W', and dJ/dW. Sums go over tiles in order: they are the same with any number of threads."""

    def __init__(self, Z: np.ndarray, line_map: LineMap, setting: Setting):
        self.Z, self.map, self.setting = Z, line_map, setting
        self.n, self.c = Z.shape
        width = self.c * line_map.n_features
        most = math.isqrt(HELD // 32)  # four dense matrices of this order are held at once
        if width > most:
            raise ValueError(
                f"{self.c} components of {line_map.n_features} features each are {width}, too many for dense matrices "
                f"of that order (at most {most}); lower c, or raise tol or the kernel's length scale"
            )
        self._tile = parallel.tile_rows(width)

    def _tiles(self, W: np.ndarray, task: Callable[[np.ndarray, np.ndarray], Any]) -> Iterator[Any]:
        """task(rows of Z, their components (c, n)) of each tile, in order."""

        def run(i: int) -> Any:
            Z = self.Z[i * self._tile : (i + 1) * self._tile]
            return task(Z, np.ascontiguousarray(W @ Z.T))

        return parallel.run(run, -(-self.n // self._tile), n_threads=self.setting.n_threads)

    def value(self, W: np.ndarray) -> tuple[float, tuple]:
        """J, and what its gradient needs."""
        D, c = self.map.n_features, self.c

        def moments(_: Any, Y: np.ndarray) -> tuple:
            Phi = self.map(Y).reshape(D * c, -1)  # row a c + i: feature a of component i
            tile_mean = Phi.mean(axis=1)
            Phi -= tile_mean[:, None]
            return Phi.shape[1], tile_mean, Phi @ Phi.T

        count, mean, second = 0, np.zeros(D * c), np.zeros((D * c, D * c))
        for n, tile_mean, part in self._tiles(W, moments):
            # each tile about its blocks mean (Chan, Golub & LeVeque 1983), so that nothing cancels
            count += n
            step = tile_mean - mean
            second += part
            if count > n:
                second += np.outer(step, step * ((count - n) * n / count))
            mean += step * (n / count)
        C = (second / self.n).reshape(D, c, D, c).transpose(1, 0, 3, 2)
        value, G = _value_and_slope(C, self.setting.kappa, self.setting.name)
        return value, (G, mean)

    def gradient(self, W: np.ndarray, state: tuple) -> np.ndarray:
        """dJ/dW, (c, c)."""
        D, c = self.map.n_features, self.c
        slope, mean = state
        G = np.ascontiguousarray(slope().transpose(1, 0, 3, 2)).reshape(D * c, D * c)

        def part(Z: np.ndarray, Y: np.ndarray) -> np.ndarray:
            weights = G @ (self.map(Y).reshape(D * c, -1) - mean[:, None])
            weights *= self.map.derivative(Y).reshape(D * c, -1)
            return weights.reshape(D, c, -1).sum(axis=0) @ Z

        return sum(self._tiles(W, part), np.zeros((c, c))) * (2.0 / self.n)

    def residual(self, W: np.ndarray) -> float:
        """Residual trace over trace at W."""
        parts = self._tiles(W, lambda _, Y: self.map.residual(Y).reshape(2, -1).sum(axis=1))
        missed, whole = sum(parts, np.zeros(2))
        return float(missed / whole)

    def planes(self, y: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """The generalised variance of two components y (2, N), turned by each angle."""
        values = parallel.run(lambda i: self._plane(y, angles[i]), len(angles), n_threads=self.setting.n_threads)
        return np.array(list(values))

    def _plane(self, y: np.ndarray, angle: float) -> float:
        D, cos, sin = self.map.n_features, np.cos(angle), np.sin(angle)
        Phi = self.map(np.stack([cos * y[0] + sin * y[1], cos * y[1] - sin * y[0]]))  # (D, 2, N)
        Phi -= Phi.mean(axis=2, keepdims=True)
        Phi = Phi.transpose(1, 0, 2).reshape(2 * D, -1)
        C = (Phi @ Phi.T) / Phi.shape[1]
        return _value_and_slope(C.reshape(2, D, 2, D), self.setting.kappa, "kgv")[0]


def _value_and_slope(C: np.ndarray, kappa: float, name: str) -> tuple[float, Any]:
    """The contrast of covariances C (c, D, c, D), and a function that returns G = dJ/dC in the same shape."""
    c, D = C.shape[:2]
    blocks = np.arange(c)
    e = 0.5 * kappa
    values, vectors = np.linalg.eigh(C[blocks, :, blocks, :])
    values = np.maximum(values, 0.0)
    # all in the blocks' blocks eigenvectors: a rotation, which no contrast sees
    B = np.matmul(vectors.transpose(0, 2, 1)[:, None], np.matmul(C.transpose(0, 2, 1, 3), vectors[None]))  # c, c, D, D
    B[blocks, blocks] = 0.0
    O = np.ascontiguousarray(B.transpose(0, 2, 1, 3)).reshape(c * D, c * D)
    t = (np.sqrt(values) / (values + e)).ravel()
    R = O * t
    R *= t[:, None]
    R.flat[:: c * D + 1] += 1.0
    if name == "kgv":
        factor, failed = scipy.linalg.lapack.dpotrf(R, lower=True)
        diagonal = np.diagonal(factor)
        least = -1.0 if failed else float(diagonal.min()) ** 2
    else:
        smallest, vector = scipy.linalg.eigh(R, subset_by_index=[0, 0], check_finite=False)
        least = float(smallest[0])
    if least < 1e-12:
        raise ValueError(
            f"regularization={kappa:g} is too small for these values of the kernel: canonical correlations come within "
            "rounding of one; raise it, or scale the kernel to k(y, y) = 1"
        )
    value = -float(np.log(diagonal).sum()) if name == "kgv" else -0.5 * math.log(least)

    def slope() -> np.ndarray:
        if name == "kgv":
            # Q = T R^-1 T; G_ij = -Q_ij / 2, and (O Q O)_ii / 2 for P_i
            Q = scipy.linalg.cho_solve((factor, True), np.diag(t), check_finite=False) * t[:, None]
            across = -0.5 * Q
            inner = 0.5 * np.matmul((O @ Q).reshape(c, D, c * D), O.reshape(c * D, c, D).transpose(1, 0, 2))
        else:
            # q = T v: d(least) = q' dO q + (O q)' dP (O q) / (least - 1)
            q = t * vector[:, 0]
            across = (-0.5 / least) * np.outer(q, q)
            r = (O @ q).reshape(c, D)
            inner = (0.5 / (least * max(1.0 - least, 1e-300))) * (r[:, :, None] * r[:, None, :])
        G = across.reshape(c, D, c, D).transpose(0, 2, 1, 3).copy()
        a, b = values[:, :, None], values[:, None, :]
        G[blocks, blocks] = inner * ((e * e - a * b) / ((a + e) * (b + e)) ** 2)
        G = np.matmul(vectors[:, None], np.matmul(G, vectors.transpose(0, 2, 1)[None]))
        return G.transpose(0, 2, 1, 3)

    return value, slope

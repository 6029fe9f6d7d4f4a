"""The matrix beyond a basis, entry by entry, and bounds on its largest eigenvalue.

A is the centred matrix, V (n x m) the basis or a part of it and P = I - V V'. In the coordinates of the rows
A = (I - b b') M (I - b b'), where M is the kernel matrix of the weighted rows and b the unit vector that centring takes
off. With b as one more column of V, with the columns A v - V (V' A v) / 2 in Z, and M b - b (b' M b) / 2 for b,

    P A P = M - V Z' - Z V',

so an entry takes a kernel value and two inner products, and the diagonal costs nothing: the passes have brought Z.

``factorised_bound``    P A P <= t I, where a Cholesky factorisation of t I - P A P succeeds: in float32, all entries
``sampled_bound``       from rows drawn in proportion to the diagonal, with a probability (`sampled`)
"""

from __future__ import annotations

from math import frexp

import numpy as np

from ..base import parallel
from ..base.rounding import UNIT, UNIT32, factorisation_error, rounding_factor
from ..products.factorisation import is_positive_definite, room_for_triangle
from ..products.weighted import Entries
from . import sampled
from .basis import symmetric
from .certificate import NO_BOUND, Bound

__all__ = ["Rest"]

STRIP = 512


class Rest:
    """P A P for some Ritz vectors.

    Parameters
    ----------
    entries : Entries
    V, images : ndarray (n, m)
        Orthonormal columns, and A V.
    row_means : ndarray (n,)
        Of K, in the solver's coordinates, within the error of the images.
    error : float
        `certificate.product_error` of the images, bounds the error of the entries too.
    """

    PRODUCT_ERRORS = 8.0
    """Times the error of the images: that of P A P is more."""

    def __init__(self, entries: Entries, V: np.ndarray, images: np.ndarray, row_means: np.ndarray, error: float):
        self.entries, n, m = entries, *V.shape
        root = np.full((n, 1), 1.0 / np.sqrt(n))
        means = np.sqrt(n) * row_means[:, None]
        T, grand = symmetric(V.T @ images), float(row_means.sum())
        self.V = entries.coordinates.at_rows(np.hstack([V, root]))
        self.Z = entries.coordinates.at_rows(np.hstack([images - V @ (T / 2), means - root * (grand / 2)]))
        size = float(np.linalg.norm(T)) + float(np.linalg.norm(means)) + float(np.linalg.norm(self.Z[:, -1]))
        orthogonality = float(np.linalg.norm(V.T @ V - np.eye(m))) + (m + 1) * rounding_factor(n) * UNIT
        rounding = 8.0 * (orthogonality + rounding_factor(n) * UNIT * np.sqrt(m + 1)) * size
        self.error = self.PRODUCT_ERRORS * error + rounding
        """Bound on the norm of the error of P A P, and on that of a row of it."""

    # from all entries ----------------------------------------------------------------------------------------

    def factorised_bound(self, wanted: float) -> Bound:
        """``wanted``, where that is proved to be a bound; else none.

        Success of the factorisation proves P A P <= t I up to its backward error (``factorisation_error``), with u of
        float32. Entries that are stored in float32 err by u times their size: in a unit near ``wanted``, in which those
        that are not far below it are neither too small nor too large for float32.
        """
        n, unit = len(self.V), 2.0 ** frexp(wanted)[1]
        S = room_for_triangle(n)  # -P A P, the lower triangle
        bands = self.entries.bands
        left, right = np.hstack([self.V, self.Z]), np.hstack([self.Z, self.V])

        def task(number: int) -> float:
            I, J = bands[number]
            tile = self.entries.block(number)
            tile -= left[I] @ right[J].T
            np.multiply(tile.T, -1.0 / unit, out=S[J, I], casting="same_kind")
            squares = float(np.vdot(tile, tile))
            return squares if I == J else 2.0 * squares

        squares = sum(parallel.run(task, len(bands), n_threads=self.entries.n_threads, stage="rest"))
        largest = float(np.abs(S.diagonal()).max()) * unit
        stored = 1.01 * UNIT32 * (float(np.sqrt(squares)) + wanted)
        t = wanted - factorisation_error(n, UNIT32) * (wanted + largest) - stored - self.error
        S.flat[:: n + 1] += np.float32(t / unit)
        proved = t > 0.0 and is_positive_definite(S, self.entries.n_threads)
        return Bound(wanted, "cholesky") if proved else NO_BOUND

    # from a sample of rows -----------------------------------------------------------------------------------

    def diagonal_bounds(self) -> np.ndarray:
        """Upper bounds on the diagonal of P A P, for a semidefinite kernel: above 0."""
        diagonal = self.entries.diagonal - 2.0 * np.einsum("ij,ij->i", self.V, self.Z)
        return np.asarray(np.maximum(diagonal, 0.0) + self.error)

    def sampled_bound(self, diagonal: np.ndarray, draws: int, rng: np.random.Generator, failure: float) -> Bound:
        """From so many rows, drawn in proportion to ``diagonal``, upper bounds on that of P A P (`sampled`)."""
        cumulative = np.cumsum(diagonal)
        total = float(cumulative[-1])
        drawn = np.searchsorted(cumulative, rng.random(draws) * total, side="right")
        index, counts = np.unique(np.minimum(drawn, len(diagonal) - 1), return_counts=True)
        scale = np.sqrt(counts / diagonal[index])
        V, Z = self.V[index] * scale[:, None], self.Z[index] * scale[:, None]
        gram = np.empty((len(index), len(index)), dtype=np.float32)
        for start in range(0, len(index), STRIP):
            I = slice(start, min(len(index), start + STRIP))
            strip = self.entries.among(index[I], index[: I.stop])
            strip *= scale[I, None]
            strip *= scale[: I.stop]
            strip -= V[I] @ Z[: I.stop].T
            strip -= Z[I] @ V[: I.stop].T
            gram[I, : I.stop] = strip
            gram[: I.start, I] = strip[:, : I.start].T
        error = self.error * float(scale.max()) ** 2 + 1.01 * UNIT32 * draws
        total *= 1.0 + 2.0 * rounding_factor(len(diagonal)) * UNIT
        return sampled.sampled_bound(total, sampled.ScaledSample(gram, draws, error), failure)

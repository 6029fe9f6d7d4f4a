"""The matrix beyond some Ritz vectors, entry by entry, and a proof that its largest eigenvalue is below a bound.

A is the centred matrix, V (n x m) the Ritz vectors and P = I - V V'. In the coordinates of the rows
A = (I - b b') M (I - b b'), where M is the kernel matrix of the weighted rows. The unit vector b is the one that
centring projects out. With b as one more column of V, with the columns A v - V (V' A v) / 2 in Z, and
M b - b (b' M b) / 2 for b,

    P A P = M - V Z' - Z V',

so an entry takes a kernel value and two inner products.
"""

from __future__ import annotations

from math import frexp

import numpy as np

from ..base import parallel
from ..base.rounding import UNIT, UNIT32, rounding_factor
from ..products.weighted import Entries
from .basis import symmetric
from .certificate import NO_BOUND, Bound
from .complement import is_below


class DeflatedMatrix:
    """P A P for some Ritz vectors.

    Parameters
    ----------
    entries : Entries
    V, images : ndarray (n, m)
        Orthonormal columns, and A V.
    row_means : ndarray (n,)
        Row means of K, in the solver's coordinates, within the error of the images.
    error : float
        `certificate.product_error` of the images, bounds the error of the entries too.
    """

    PRODUCT_ERRORS = 8.0
    """Bound on the error of P A P over that of the images, without rounding."""

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

    def factorised_bound(self, wanted: float) -> Bound:
        """``wanted``, where that is proved to be a bound; else none.

        By a factorisation in float32 (`complement.is_below`). Entries that are stored err by u times their size: in a
        unit near ``wanted``, in which those that are not far below it are neither too small nor too large.
        """
        n, unit = len(self.V), 2.0 ** frexp(wanted)[1]
        S = np.empty((n, n), dtype=np.float32, order="F")  # -P A P, the lower triangle
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
        stored = 1.01 * UNIT32 * (float(np.sqrt(squares)) + wanted)
        proved = is_below(S, wanted / unit, (stored + self.error) / unit)
        return Bound(wanted, "cholesky") if proved else NO_BOUND

"""Gaussian products through a non-uniform FFT each way (finufft): K U ~ type 2 (w * type 1 (U)).

The error of an entry of the kernel matrix is at most the sum of

- the tail: the weights of the modes that are left out;
- the images: kernel values between a row and the periodic copies of another;
- the errors of the two transforms: type 1 errs by eta_m sum |u| in mode m, type 2 by eta_m |w_m t_m|, and
  sum_m w_m eta_m is far below the largest eta_m.

Columns go in pairs, as the real and the imaginary part of one complex transform, each divided by its sum |u| before:
otherwise a large column's error would drown a small one's value. A pair then errs by up to twice what one column does.
For one set of rows the computed operator is symmetric up to that error, since type 2 is the adjoint of type 1.
"""

from __future__ import annotations

from math import exp, log, pi, prod, sqrt

import numpy as np

from ..base import parallel
from ..base.protocol import Cost, Offer, Summary, Summation
from ..base.rounding import UNIT
from ..maps import transforms
from ..maps.fourier import BoxModes, gaussian_box_modes, gaussian_images
from ..rows.view import Rows
from .two_sided import TwoSidedSummation, joint_box
from .vectors import columns_of

__all__ = ["FourierSummation", "fourier_offer"]

LARGEST = 1 << 26
"""Most complex numbers of the transform's own grid, 2^d times the modes: 1 GB, as other products may take."""
COLUMNS_TOGETHER = 16
PAIR = 2.0
"""sum |u + i v| over sum |u| = sum |v|, at most."""


class FourierSummation(TwoSidedSummation):
    """Products with the Gaussian kernel matrix by finufft.

    Parameters
    ----------
    box : ndarray (2, d)
        Holds the rows of both sets.
    sigma, tol : float
    rows_x, rows_y : Rows
        Targets and sources; rows_y None: the same rows.
    n_threads : int
        Pairs of columns run side by side; results do not depend on it.

    Raises
    ------
    ImportError
        finufft is not installed.
    ValueError
        ``tol`` is below what rounding allows.
    """

    def __init__(
        self, box: np.ndarray, sigma: float, tol: float, rows_x: Rows, rows_y: Rows | None = None, *, n_threads: int = 1
    ):
        if not transforms.has_finufft():
            raise ImportError("products through Fourier modes need finufft; pip install 'fastkpca[nufft]'")
        self.n_threads = n_threads
        self.period, modes, self.error_bound, self.eps = _plan(box, sigma, tol)
        if self.error_bound > tol:
            raise ValueError(f"tol={tol:.2g} is out of reach for this box and sigma; {self.error_bound:.2g} is reached")
        self._weights = modes.weights()
        self._centre = np.mean(box, axis=0)
        self._set_sides(rows_x, rows_y)

    def _prepared(self, rows: Rows) -> np.ndarray:
        """Phases (d, n)."""
        P = np.array(rows.all().T, order="C")
        P -= self._centre[:, None]
        P *= (2.0 * pi / self.period)[:, None]
        return np.clip(P, -pi, pi, out=P)

    def _multiply(self, U: np.ndarray, targets: np.ndarray, sources: np.ndarray) -> np.ndarray:
        U = columns_of(U, sources.shape[1])
        result = np.empty((targets.shape[1], U.shape[1]))
        # in memory as many columns together as keep the spectra small; by shape alone
        step = int(min(COLUMNS_TOGETHER, 2 * max(1, (1 << 22) // self._weights.size)))

        def task(i: int) -> None:
            part = slice(i * step, (i + 1) * step)
            size = np.abs(U[:, part]).sum(axis=0)
            scaled = U[:, part] / np.where(size == 0.0, 1.0, size)
            result[:, part] = transforms.convolve(targets, sources, scaled, self._weights, self.eps)
            result[:, part] *= size  # a column of zeros stays one, whatever its neighbour leaves in it

        parallel.each(task, -(-U.shape[1] // step), n_threads=self.n_threads)
        return result


def _plan(box: np.ndarray, sigma: float, tol: float) -> tuple[np.ndarray, BoxModes, float, float]:
    """(periods, modes, bound on the error of an entry, eps of the transforms)."""
    sides = np.asarray(box[1] - box[0], dtype=np.float64)
    d = len(sides)
    gap = sigma * sqrt(2.0 * log(4.0 * d / (0.03 * tol)))
    periods = sides + gap
    modes = gaussian_box_modes(periods, sigma, 0.07 * tol / d)
    images = sum(gaussian_images(r, p, sigma) for r, p in zip(sides, periods))
    images = images * exp(images)  # prod (1 + a) - 1 <= a exp(a), a the sum
    rounding = d * (6.0 * modes.exponent + 24.0) * UNIT * modes.total
    safety = transforms.WEIGHTED_SAFETY
    eps = max(0.89 * tol / (PAIR * 2.0 * safety * max(modes.total, 0.5)), transforms.SMALLEST_EPS)
    transform_error = transforms.error_bound(modes.half, eps, safety)
    bound = modes.tail + images + rounding + PAIR * 2.0 * modes.total * (1.0 + 1e-3) * transform_error
    return periods, modes, bound, eps


def fourier_offer(data_x: Summary, data_y: Summary, sigma: float, tol: float) -> Offer | None:
    """The offer of `FourierSummation`; None without finufft, beyond d = 3, for too many modes, or a tol out of reach.

    Both summaries are of rows with one shift.
    """
    d = data_x.n_features
    if d > 3 or not 0.0 < tol < 1.0 or not transforms.has_finufft():
        return None
    box = joint_box(data_x, data_y)
    sides = box[1] - box[0]
    # before the weights are made: as many as that?
    rough = np.prod((sides + 8.0 * sigma) / sigma * sqrt(log(1.0 / tol) + 3.0))
    if not rough < 4 * LARGEST:
        return None
    _, modes, bound, eps = _plan(box, sigma, tol)
    D = prod(map(len, modes.axes))
    if D > LARGEST >> d or bound > tol:
        return None
    once, row = transforms.finufft_cost(modes.half, eps)
    column = 0.6 * row
    n_x, n_y = data_x.n_samples, data_y.n_samples
    share = n_y / max(1, n_x)
    pair = column * (1.0 + share)  # type 2 at a target, type 1 at a source; a pair of columns costs as much as one
    cost = Cost(
        row_flops=pair * 2.0,
        column_flops=pair,
        setup_flops=2.0 * once,
        memory=16.0 * D * (2.0**d + 3.0) * min(COLUMNS_TOGETHER, 4) + 8.0 * d * (n_x + n_y),
        residual=bound,
    )

    def build(X: Rows, Y: Rows | None = None) -> Summation:
        return FourierSummation(box, sigma, tol, X, Y)

    return Offer("fourier", cost, build)

"""The search for pre-images: where each descent starts, and which of its ends is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy  # scipy.spatial is loaded where it is used first

from ...base import parallel
from ...base.caching import cached_property
from ...base.protocol import Kernel
from ...kernels.gaussian import median_distance
from ...rows.view import Rows
from ..result import KPCAModel
from ..shared_map import feature_projector
from .descent import Descent, Target, descend, map_target, rows_target

STARTS = 3
"""Known rows with the nearest scores from which a descent may start."""
MAX_TREE_COLUMNS = 40
"""Columns up to which a tree finds the nearest scores faster than all distances do (measured: between 32 and 64)."""


@dataclass(frozen=True)
class Known:
    """Rows, shifted, and their scores; of the training rows those that count, with their weights."""

    rows: Rows
    scores: np.ndarray

    @cached_property
    def _scaled(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The scores over the largest of them, so that no square overflows, their squared lengths, and that."""
        largest = float(np.abs(self.scores).max()) or 1.0
        points = self.scores / largest
        return points, np.einsum("ij,ij->i", points, points), largest

    @cached_property
    def _tree(self) -> Any:
        return scipy.spatial.cKDTree(self._scaled[0])

    def nearest(self, z: np.ndarray) -> np.ndarray:
        """Numbers of the rows with the nearest scores, (STARTS, b) or fewer."""
        points, squares, largest = self._scaled
        far = np.sqrt(np.finfo(np.float64).max) / z.shape[1]
        z, count = np.clip(z / largest, -far, far), min(STARTS, len(points))
        if z.shape[1] <= MAX_TREE_COLUMNS:
            return self._tree.query(z, np.arange(1, 1 + count))[1].T
        step, found = parallel.tile_rows(len(points), least=1), []
        for start in range(0, len(z), step):
            distances = squares - 2.0 * z[start : start + step] @ points.T  # less the length of z, which all have
            found.append(np.argpartition(distances, count - 1, axis=1)[:, :count])
        return np.concatenate(found).T


class Search:
    """Descents to the rows whose images are nearest to points of feature space, in blocks of points."""

    def __init__(
        self, model: KPCAModel, kernel: Kernel, known: Known | None, start: Rows | None, tol: float, max_iter: int
    ):
        self.known, self.start, self.max_iter = known, start, max_iter
        self.model, self.d = model, model.n_features
        self.sigma = kernel.fixed_point_width()
        length = _length(known, start) if self.sigma is None else float(self.sigma)
        self.target, size = _targets(model, kernel, length)
        self.block = parallel.tile_rows(self.d * size)  # points that are searched for together
        self.descend = partial(descend, sigma=self.sigma, length=length, tol=tol, max_iter=max_iter)

    def run(self, Z: np.ndarray, n_threads: int, progress: parallel.Progress | None) -> tuple[np.ndarray, str]:
        """(rows for the scores Z, what to warn of)."""
        m, step = len(Z), self.block
        result = np.empty((m, self.d))

        def task(i: int) -> tuple[int, int]:
            block = slice(i * step, min(m, (i + 1) * step))
            end = self._block(Z[block], None if self.start is None else self.start.tile(block.start, block.stop))
            result[block] = end.x
            return int((~end.converged).sum()), int((end.converged & ~end.arrived(self.sigma)).sum())

        tasks = parallel.run(task, -(-m // step), n_threads=n_threads, progress=progress, stage="pre-images")
        lost, far = (int(x) for x in np.sum([(0, 0), *tasks], axis=0))
        warnings = []
        if lost:
            warnings.append(f"{lost} of {m} did not converge in {self.max_iter} steps; a larger max_iter or tol helps")
        if far:
            warnings.append(
                f"for {far} of {m} no row is nearer to what the scores stand for than rows far away are; give start= "
                "or train= (training rows), or fit with a larger sigma"
            )
        return self.model.in_units_of_rows(result), "; ".join(warnings)

    @np.errstate(all="ignore")  # a step to where values are not finite is not taken
    def _block(self, z: np.ndarray, start: np.ndarray | None) -> Descent:
        """From the best of the starts of each point, and from the others where that fails."""
        target = self.target(z)
        starts = _starts(target, z, self.known, start, self.d)
        end = self.descend(target, starts[0], np.arange(len(z)))
        for other in starts[1:]:
            lost = np.flatnonzero(~end.arrived(self.sigma))
            if not len(lost):
                break
            end.better(self.descend(target, other[lost], lost), lost)
        return end


def _length(known: Known | None, start: Rows | None) -> float:
    """The length on which a kernel of unknown width changes: how far rows are apart."""
    rows = start if known is None else known.rows
    sample = np.zeros((1, 1)) if rows is None else rows.tile(0, min(512, len(rows)))
    if len(sample) > 1 and (sample != sample[0]).any():
        return median_distance(sample)
    return max(float(np.abs(sample).max()), 1.0)


def _targets(model: KPCAModel, kernel: Kernel, length: float) -> tuple[Callable[[np.ndarray], Target], int]:
    """(P of a block of scores, of how many terms): sums over the images of the landmarks, or vectors of features."""
    landmarks = model.projector.landmarks
    if landmarks is not None:
        expansion = model.projector.expansion()
        left, base = np.ascontiguousarray(expansion[:, :-1]), expansion[:, -1]
        return lambda z: rows_target(kernel, landmarks, left, base, z, length), len(left)
    features = feature_projector(model)
    target = lambda z: map_target(kernel, features.map, features.mean + z @ features.duals.T, length)  # noqa: E731
    return target, features.map.n_features


def _starts(target: Target, z: np.ndarray, known: Known | None, start: np.ndarray | None, d: int) -> list[np.ndarray]:
    """Arrays (b, d) to start from, the best first; before them the given start, where f is more than rounding there."""
    every = np.arange(len(z))
    if known is None:
        starts = [np.zeros((len(z), d))]
    else:
        near = known.nearest(z)
        rows = np.stack([known.rows.take(index) for index in near])
        order = np.argsort([target(candidate, every).objective for candidate in rows], axis=0, kind="stable")
        starts = [np.ascontiguousarray(rows[best, every]) for best in order]
    return starts if start is None else [_visible(target, start, starts[0]), *starts]


def _visible(target: Target, start: np.ndarray, other: np.ndarray) -> np.ndarray:
    """``start``, but ``other`` where ``start`` is so far away that f is only rounding there."""
    values = target(start, np.arange(len(start)))
    visible = np.isfinite(values.objective) & (np.abs(values.inner) > values.floor)
    return np.where(visible[:, None], start, other)

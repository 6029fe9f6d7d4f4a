"""Gaussian features by multi-index, the heaviest first: exp(-|x-y|^2/2) = sum_alpha phi_alpha(x) phi_alpha(y).

With lengths in units of sigma, x measured from a centre in any orthonormal axes,
phi_alpha(x) = prod_i h_(alpha_i)(x_i), h_k(x) = exp(-x^2/2) x^k / sqrt(k!); phi_alpha(x)^2 is a product of Poisson
probabilities, and sums to one over all alpha. All terms are semidefinite, so for *any* set of indices K - Phi Phi' is
semidefinite and its diagonal is 1 - |phi(x)|^2. In principal axes the mass of real data sits on few indices.

Rounding, u the unit roundoff (tests compare it with longdouble and mpmath):

- h_k: (12 + 3 k) u relative, by recurrence from k = 0, or for |x| > 8 from the largest term (Loader 2000), plus terms
  that are negligible wherever they are large. A feature: eta = u (d + 8 + sum_i (13 + 3 max alpha_i)) relative.
- Computed coordinates are those of points displaced by delta: an exactly semidefinite kernel of other points, whose
  entries differ by at most max |d/dt exp(-t^2/2)| |delta_i - delta_j| <= 1.22 max |delta|.
- ``defect`` is the sum of the latter and 2 eta; ``residual`` adds 2 eta |phi|^2 and the error of |phi|^2 itself, which
  is summed in blocks: (66 + D / 64) u rather than D u.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from .._core import ranked as _core
from ..base.protocol import Cost, FeatureMap, Kernel, Summary
from ..base.rounding import UNIT
from ..base.stored import Record
from .monomial import monomials, same_columns

__all__ = ["RankedMap", "least_ranked", "ranked_map"]

TABLE_ENTRIES = 1 << 22
"""Most numbers in the mass tables of a search (32 MB): orders of all coordinates together, times points."""
MOST_ORDERS = 1 << 14
"""Most orders of all coordinates together, for each of which a map makes a table of every tile (16 MB)."""
ROUNDED = 1e-20
"""Of the mean mass, below which it is rounding."""
MAX_WORK = 2.0**29
"""Most multiplications of one search: a few tenths of a second."""


class RankedMap(FeatureMap):
    """phi_alpha(x) for a set of multi-indices; K - Phi Phi' is positive semidefinite up to ``defect``.

    Parameters
    ----------
    sigma : float
        Of exp(-|x - y|^2 / (2 sigma^2)).
    centre : ndarray (d,)
        In the coordinates of the tiles (shifted ones).
    axes : ndarray (d, d)
        Orthonormal columns.
    indices : ndarray (D, d) of int
        Distinct multi-indices, entry i for axis i, in lexicographic order.
    radius : float
        Bound on |x - centre| for the rows for which ``defect`` is to hold.
    """

    kind = "ranked"

    def __init__(self, sigma: float, centre: np.ndarray, axes: np.ndarray, indices: np.ndarray, radius: float):
        self.sigma = float(sigma)
        self.centre = np.ascontiguousarray(centre, dtype=np.float64)
        self.axes = np.ascontiguousarray(axes, dtype=np.float64)
        self.indices = np.ascontiguousarray(indices, dtype=np.intc)
        self.radius = float(radius)
        self.predicted = float("nan")
        self.reached = True
        self.lightest = 0.0
        D, d = self.indices.shape
        self.n_features = D
        orders = self.indices.max(axis=0) if D else np.zeros(d, dtype=np.intc)
        # axes on which every entry is zero share one factor exp(-|x|^2/2)
        self._active = np.flatnonzero(orders > 0)
        self._passive = np.flatnonzero(orders == 0)
        self._orders = orders[self._active].astype(np.intp)
        self._trie = np.ascontiguousarray(self.indices[:, self._active])
        differs = self._trie[1:] != self._trie[:-1]
        self._shared = np.zeros(D, dtype=np.intc)
        if D > 1:
            self._shared[1:] = np.where(differs.any(axis=1), differs.argmax(axis=1), 0)
        self._eta = UNIT * (d + 8.0 + float((13.0 + 3.0 * orders[self._active]).sum()))
        # beyond this radius every feature is below the unit roundoff, and where the point lies does not matter
        reach = np.sqrt(float((orders + 10.0 * np.sqrt(orders) + 80.0).sum()))
        displaced = (d + 4.0) * np.sqrt(d) * UNIT * min(reach, self.radius / self.sigma)
        skew = float(np.linalg.norm(self.axes.T @ self.axes - np.eye(d)))
        self.defect = 1.22 * displaced + skew + 2.0 * self._eta

    def features(self, X: np.ndarray) -> np.ndarray:
        """phi of a tile, (n, D), column-major, float32 for a float32 tile, else float64."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        z = (self.axes.T / self.sigma) @ (np.asarray(X, dtype=np.float64) - self.centre).T
        with np.errstate(under="ignore", over="ignore"):
            base = np.exp(-0.5 * np.einsum("ij,ij->j", z[self._passive], z[self._passive]))
        tile = np.empty((self.n_features, len(X)), dtype=dtype)
        active = np.ascontiguousarray(z[self._active])
        _core.evaluate(active, base, self._trie, self._shared, self._orders, tile)
        return tile.T

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        """1 - |phi(x)|^2, (n,), float64, and all that rounding can have hidden: an upper bound."""
        if Phi is None:
            Phi = self.features(X)
        tile = Phi.T if Phi.flags.f_contiguous else np.ascontiguousarray(Phi.T)
        square = _core.squared_norms(tile)
        relative = 2.0 * self._eta + UNIT * (68.0 + self.n_features / 64.0)
        if Phi.dtype == np.float32:
            relative += 2.0 * (len(self._active) + 3.0) * 2.0**-24
        error = relative * square + UNIT * (2.0 + 8.0 * len(self._active))
        return np.maximum(1.0 - square, 0.0) + error

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        farthest = data.radius + float(np.linalg.norm(self.centre))
        if farthest <= self.radius:
            return self
        wide = RankedMap(self.sigma, self.centre, self.axes, self.indices, farthest)
        wide.predicted, wide.reached = self.predicted, self.reached
        return wide

    def formula(self) -> dict[str, Any]:
        weights = np.ones(len(self.indices))
        return monomials(self.centre, self.axes / self.sigma, self.indices, weights, gaussian=True)

    def is_of_gaussian(self, sigma: float) -> bool:
        return self.sigma == sigma

    @classmethod
    def stored_size(cls, record: Record, n_columns: int) -> int:
        d = same_columns(record, len(record.array("centre", (None,))), n_columns)
        return len(record.array("indices", (None, d), kind="i"))

    def cost(self) -> Cost:
        """The cost of forming these features; the search for the set is already paid."""
        D, d = self.indices.shape
        products = float((len(self._active) - self._shared).sum())
        row = 2.0 * d * d + 4.0 * float((self._orders + 10).sum()) + products + 2.0 * D
        return Cost(n_features=D, row_flops=row, memory=8.0 * D * (d + 2.0), residual=self.predicted)

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        header = {
            "map": self.kind,
            "sigma": self.sigma,
            "radius": self.radius,
            "reached": self.reached,
            "predicted": self.predicted if np.isfinite(self.predicted) else None,
        }
        return header, {"centre": self.centre, "axes": self.axes, "indices": self.indices}

    @classmethod
    def from_state(cls, header: dict, arrays: dict[str, np.ndarray]) -> RankedMap:
        """The map that ``state`` described."""
        record = Record(header, arrays, "the ranked feature map")
        record.keys(("map", "sigma", "radius", "reached", "predicted"))
        record.names(("centre", "axes", "indices"))
        centre = record.array("centre", (None,))
        d = len(centre)
        axes, indices = record.array("axes", (d, d)), record.array("indices", (None, d), kind="i", least=0)
        if not np.abs(axes.T @ axes - np.eye(d)).max(initial=0.0) < 1e-8:
            raise record.refuse("its axes are not orthonormal")
        # tables of h_k up to the highest order are made for each tile
        if indices.size and int(indices.max(axis=0).sum(dtype=np.int64)) > max(32 * d, MOST_ORDERS) + d:
            raise record.refuse("its indices are out of range")
        differs = indices[1:] != indices[:-1]
        first = differs.argmax(axis=1) if d else np.zeros(0, dtype=np.intp)
        step = np.take_along_axis(indices[1:], first[:, None], axis=1) > np.take_along_axis(
            indices[:-1], first[:, None], axis=1
        )
        if not step.all():
            raise record.refuse("its indices are not in order, or one occurs twice")
        self = cls(record.number("sigma", above=0.0), centre, axes, indices, record.number("radius", least=0.0))
        self.reached = record.flag("reached")
        self.predicted = float("nan") if header["predicted"] is None else record.number("predicted", least=0.0)
        return self


def least_ranked(summary: Summary, sigma: float, tol: float, rows: int = 256) -> float:
    """A lower bound, over a few rows, on the features that any ranked set needs: cheap enough to rule it out.

    No index has more mean mass than the mean over x of prod_i max_k exp(-x_i^2) x_i^(2k) / k!, so (1 - tol) of the
    trace needs at least (1 - tol) over that many.
    """
    sample = summary.sample[np.linspace(0, len(summary.sample) - 1, min(rows, len(summary.sample))).astype(np.intp)]
    assert summary.covariance is not None
    axes = np.linalg.eigh(summary.covariance)[1]
    squares = (((sample - summary.mean) @ axes) / sigma) ** 2
    mode = np.floor(squares)
    largest = np.exp(np.sum(scipy.special.xlogy(mode, squares) - squares - scipy.special.gammaln(mode + 1), axis=1))
    return (1.0 - tol) / max(float(largest.mean()), 1e-300)


def ranked_map(
    summary: Summary,
    sigma: float,
    *,
    tol: float,
    max_features: int,
    max_work: float = MAX_WORK,
    lightest: float = 0.0,
) -> RankedMap:
    """The fewest multi-indices in principal axes with residual trace over trace at most ``tol``.

    Parameters
    ----------
    summary : Summary
    sigma : float
    tol : float
        Judged on ``summary.sample``; where that is not all rows, one standard error is added (two would double the
        features of data with heavy tails).
    max_features : int
    max_work : float
        Most multiplications of one search for the set (a few are made); a small number keeps a plan cheap where there
        is no hope.
    lightest : float
        That of a map of other rows of the same data: the search then begins near its end. Where it reaches ``tol`` it
        finds the same set.

    Returns
    -------
    RankedMap
        ``lightest`` is the least mean mass of its indices.
        ``reached`` is False where ``max_features`` indices or ``max_work`` did not suffice (those found are then the
        heaviest);
        ``predicted`` is the residual trace over trace that the sample predicts.
    """
    sample = summary.sample
    # the mean and the principal axes: medians and robust axes were tried and needed 0 to 30 % more on real data
    centre = summary.mean
    # ascending: prefixes of the trie then have few distinct values, and nearly all products are features
    _, axes = scipy.linalg.eigh(summary.covariance)
    radius = summary.radius + float(np.linalg.norm(centre))
    search = _Search((axes.T / sigma) @ (sample - centre).T, tol, max_work, lightest)
    target = tol
    for _ in range(8):
        indices, complete = search.heaviest(target, max_features)
        feature_map = RankedMap(sigma, centre, axes, indices, radius)
        parts = np.array_split(sample, 1 + len(sample) // 512)
        residual = np.concatenate([feature_map.residual(part) for part in parts])
        predicted = float(residual.mean())
        if summary.n_samples > len(sample) > 1:
            predicted += float(residual.std() / np.sqrt(len(sample)))
        feature_map.predicted, feature_map.lightest = predicted, search.lightest
        feature_map.reached = predicted <= tol
        if feature_map.reached or not complete:
            break
        target *= min(0.95, max(0.1, 0.95 * tol / predicted))
    return feature_map


class _Search:
    """The heaviest multi-indices, by mean mass over some points z (d, n) in units of sigma."""

    def __init__(self, z: np.ndarray, tol: float, max_work: float, lightest: float):
        self._max_work = max_work
        d, n = z.shape
        # orders beyond which next to nothing lies, but for a share of the points that tol allows to be lost
        far = np.quantile(z * z, max(0.0, 1.0 - tol / (4 * d)), axis=1)
        need = np.ceil(far + 10.0 * np.sqrt(far) + 30.0)
        most = total = max(32.0 * d, min(MOST_ORDERS, TABLE_ENTRIES / max(1, n)))
        while np.minimum(need, most).sum() > total:
            most *= 0.9
        self._masses = [_core.one_dimensional(np.ascontiguousarray(x), int(min(k, most))) ** 2 for x, k in zip(z, need)]
        self._means = [mass.mean(axis=1) for mass in self._masses]
        # the largest set that the tables can hold
        self._within = float(np.prod([mass.sum(axis=0) for mass in self._masses], axis=0).mean())
        self._threshold, self._near_end = 0.25, max(0.5 * lightest, ROUNDED) if lightest else 0.0
        self.lightest = 0.0
        self._refused = 0.0  # the largest threshold with too many indices, or too much work
        self._indices = np.zeros((0, d), dtype=np.intc)
        self._weights = np.zeros(0)

    def _above(self, threshold: float, max_leaves: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Indices with mass of at least ``threshold``, lexicographic, and their masses; None if there are too many."""
        # an order whose mean mass on its own axis is too small is in no index that is heavy enough
        orders = [np.flatnonzero(mean >= threshold) for mean in self._means]
        first = np.concatenate([[0], np.cumsum([len(k) for k in orders])]).astype(np.intp)
        mass = np.concatenate([table[k] for table, k in zip(self._masses, orders)])
        heaviest = _core.search(mass, first, threshold, max_leaves, self._max_work)
        if heaviest is None:
            return None
        numbers, weights = heaviest
        indices = np.empty_like(numbers)
        for i, k in enumerate(orders):
            indices[:, i] = k[numbers[:, i]]
        return indices, weights

    def heaviest(self, target: float, max_features: int) -> tuple[np.ndarray, bool]:
        """(the fewest indices that leave out at most ``target``, True), or (the heaviest of them, False)."""
        while self._weights.sum() < 1.0 - target and len(self._weights) < max_features:
            near_end, self._near_end = self._near_end, 0.0
            trial = near_end or self._threshold / 8.0
            if self._refused > 0.0:
                trial = np.sqrt(self._threshold * self._refused)
                if self._threshold < 1.5 * self._refused or self._within < 1.0 - target:
                    break
            if trial < ROUNDED:
                break
            heaviest = self._above(trial, 4 * max_features + 1024)
            if heaviest is None:
                self._refused = 0.0 if near_end else trial
            else:
                self._threshold = trial
                self._indices, self._weights = heaviest
        order = np.argsort(-self._weights, kind="stable")
        enough = int(np.searchsorted(np.cumsum(self._weights[order]), 1.0 - target)) + 1
        kept = np.sort(order[: min(enough, max_features)])
        self.lightest = float(self._weights[kept].min(initial=1.0))
        return self._indices[kept], enough <= min(max_features, len(order))

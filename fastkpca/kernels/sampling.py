"""The claims of a kernel from outside, checked once on a few of the user's rows.

The sample is random: what it finds is wrong, but what it does not find may still be wrong (docs/kernels.md). It reads
no more than 1 % of the values that an exact product needs.
"""

from __future__ import annotations

import numpy as np

from ..base.protocol import FeatureMap, Kernel, Summary
from ..base.rounding import EPS
from . import contract
from .watch import Watch

__all__ = ["SampledClaims"]

SAMPLE_ROWS = 64
ROWS_PER_SAMPLE = 14
"""A sample of m = N / 14 rows: m^2 + 2 m/3 2m/3 + (m/3)^2 < 1.6 m^2 < 0.8 % of N^2 values, and m of the diagonal."""
ROWS_PER_MAP_SAMPLE = 50
UNKNOWN = 1e-6
"""Error of a kernel value, over the largest, that is allowed for where the kernel states none."""


class SampledClaims:
    """Checks the claims about values when it is made; its tile then serves the feature maps that are built.

    Parameters
    ----------
    kernel : Kernel
        The guard, so that each call is checked for itself.
    watch : Watch
    data : Summary
    """

    def __init__(self, kernel: Kernel, watch: Watch, data: Summary):
        self.kernel, self.inner, self.watch = kernel, kernel.unguarded(), watch
        size = max(2, min(SAMPLE_ROWS, data.n_samples // ROWS_PER_SAMPLE, len(data.sample)))
        index = np.random.default_rng(0).choice(len(data.sample), min(size, len(data.sample)), replace=False)
        self.n_samples = data.n_samples
        self.rows = np.ascontiguousarray(data.sample[index])
        self.values = kernel.block(self.rows, self.rows)
        self.largest = float(np.abs(self.values).max(initial=0.0))
        error = kernel.entry_error(data, np.dtype(np.float64))
        self.error = UNKNOWN * self.largest if error is None else error + 8 * EPS * self.largest
        if len(self.rows) > 1:
            self._hold_block()
            self._hold_diagonal_and_sign()
        self._hold_translation()
        self._hold_compiled_tile()

    def hold_map(self, feature_map: FeatureMap, owner: FeatureMap) -> None:
        """K - Phi Phi' is semidefinite up to the defect, its diagonal at most the residual; products agree.

        ``owner`` is the map that an error names: ``feature_map`` itself, or the one that it guards.
        """
        m = max(2, min(len(self.rows), self.n_samples // ROWS_PER_MAP_SAMPLE))
        S, K = self.rows[:m], self.values[:m, :m]
        Phi, residual = feature_map.features(S), feature_map.residual(S)
        rng = np.random.default_rng(1)
        C, U = rng.standard_normal((Phi.shape[1], 1)), rng.standard_normal((len(S), 1))
        for finding in (
            contract.features_stay_below_kernel(feature_map, Phi, K, self.error),
            contract.residual_is_an_upper_bound(feature_map, Phi, residual, K.diagonal(), self.error),
            *contract.map_products_are_of_features(feature_map, S, Phi, U, C),
        ):
            if finding.broken:
                self.watch.refuse(owner, finding.method, (S,), finding.observed, finding.needed)

    def _hold(self, finding: contract.Finding, *tiles: np.ndarray) -> None:
        if finding.broken:
            self.watch.refuse(self.inner, finding.method, tiles, finding.observed, finding.needed)

    def _loose_error(self, largest: float) -> float:
        """For values that come another way than through the same ``block`` on the same rows."""
        return self.error + 0.5 * UNKNOWN * largest

    def _hold_block(self) -> None:
        """Symmetry, within a tile and across two."""
        K, S = self.values, self.rows
        h = -(-len(S) // 3)  # tiles of unequal sides: one that is transposed shows
        upper, lower = self.kernel.block(S[:h], S[h:]), self.kernel.block(S[h:], S[:h])
        if np.shares_memory(upper, lower):
            needed = "each call returns a new array"
            self.watch.refuse(self.inner, "block", (S, S), "returns the same memory in two calls", needed)
        self._hold(contract.block_is_symmetric(K, self.error), S, S)
        for part, whole in ((upper, K[:h, h:]), (lower, K[h:, :h])):
            self._hold(contract.value_of_two_rows_alone(part, whole, self.error), S[:h], S[h:])

    def _hold_diagonal_and_sign(self) -> None:
        K, S = self.values, self.rows
        if type(self.inner).diagonal is not Kernel.diagonal:
            self._hold(contract.diagonal_is_that_of_block(self.kernel.diagonal(S), K, self.error), S)
        if self.kernel.positive_semidefinite:
            self._hold(contract.block_is_semidefinite(K, len(S) * (self.error + 4 * EPS * self.largest)), S, S)

    def _hold_translation(self) -> None:
        """For one shift, as long as the rows are."""
        kind, h = self.kernel.translation, -(-len(self.rows) // 3)
        if kind is None or h < 2:
            return
        S = self.rows[:h]
        shift = float(np.sqrt(np.mean(S * S))) or 1.0
        away = self.kernel.block(S + shift, S + shift)
        allowed = 2 * self._loose_error(max(self.largest, float(np.abs(away).max())))
        self._hold(contract.shift_changes_nothing(self.values[:h, :h], away, kind, shift, allowed), S, S)

    def _hold_compiled_tile(self) -> None:
        check, error = contract.compiled_tile_is_block, self._loose_error(self.largest)
        finding = self.watch.call(self.inner, "compiled_tile", lambda: check(self.inner, self.rows, self.values, error))
        if finding is not None:
            self._hold(finding, self.rows, self.rows)

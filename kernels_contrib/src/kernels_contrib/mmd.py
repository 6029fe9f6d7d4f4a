"""The kernel two-sample test: maximum mean discrepancy of all pairs of rows, to a stated error.

Gretton and others, A kernel two-sample test, JMLR 13, 2012: with s_i = 1/n for the rows of X and -1/m for those of Y,

    MMD^2 (biased, equation 5)    = |mean of phi over X - mean of phi over Y|^2 = s' K s,
    MMD^2 (unbiased, equation 3)  = s' K s + sum over both groups of (a'a a' K a - a' diag(K) a) / (1 - a'a),

a the part of |s| of one group, which sums to one. Labels that are permuted are other columns s of one product with K.
K is never formed; |error of (K s)_i| <= e sum |s_j| is that of ``fastkpca.gram``, and |s' K s| is off by at most 4 e.
Through a feature map K = Phi Phi' + E with E positive semidefinite, 0 <= s' E s <= |s|^2 tr E. Several kernels are
tested together by their largest standardised statistic (``permutation``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import fastkpca as fk
from fastkpca.base.rounding import EPS
from fastkpca.methods import (
    Rows,
    as_rows,
    check_choice,
    check_columns_of,
    check_draws,
    check_finite,
    check_flag,
    check_rng,
    check_weights,
)

from .limits import HELD_BYTES
from .methods.options import METHODS, FitOptions
from .methods.permutation import PermutationTest, need_rows, test_of
from .methods.products import (
    DRAFT_ROWS,
    MAX_FEATURES,
    for_lengths,
    is_matrix,
    need_semidefinite,
    products_for,
    quick_gram,
)
from .methods.threads import one_blas_thread

__all__ = ["PermutationTest", "mmd_test"]


@one_blas_thread
def mmd_test(
    X: Any,
    Y: Any,
    kernel: Any = "gaussian",
    *,
    unbiased: bool = False,
    permutations: int = 199,
    sample_weight: Any = None,
    method: str = "auto",
    tol: float = 1e-9,
    max_features: int | None = None,
    n_threads: int | None = None,
    rng: Any = 0,
    **kernel_parameters: Any,
) -> PermutationTest:
    """Test whether two groups of rows come from one distribution, by their maximum mean discrepancy.

    Parameters
    ----------
    X, Y : array_like (n, d), (m, d)
        The groups; also rows on disk and Dask collections, of which means of features are taken. For
        ``kernel="precomputed"`` the rows (n, n + m) and (m, n + m) of the Gram matrix K of both: ``K[:n]`` and
        ``K[n:]``.
    kernel : str, Kernel, object with ``block``, or callable, or a list of these
        Positive semidefinite. Several kernels, as one of several widths, are tested together.
    unbiased : bool
        Omit the pairs of a row with itself.
    permutations : int
        Number of random permutations of the labels, a million at most.
    sample_weight : pair of array_like (n,) and (m,), optional
        Weights of the rows of X and Y, which stay with their rows when labels are permuted. The means of the groups are
        weighted; a group's weights need not sum to that of the other.
    method : {"auto", "gram", "features"}
        Products with the kernel matrix, or means of features; "auto" takes products where the rows are in memory.
    tol : float
        Error of the products over the largest k(x, x) to aim at, where rounding allows it. With features: residual
        trace over centred trace, on the rows that the map is chosen on, where ``max_features`` allow it.
    max_features : int, optional
        Of means of features, 2048 by default; products with the kernel matrix have none.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
        Random numbers for the permutations.
    **kernel_parameters

    Returns
    -------
    PermutationTest
        ``p_value``, ``p_interval``, ``statistic``, ``error``, ``null``.

    Raises
    ------
    ValueError, TypeError
        A group has fewer than 2 rows, both together fewer than 4, or their columns differ; the kernel is not positive
        semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from kernels_contrib.mmd import mmd_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((300, 2)), rng.standard_normal((200, 2)) + 0.5
    >>> mmd_test(X, Y).p_value
    0.005
    """
    unbiased = check_flag(unbiased, "unbiased")
    permutations = check_draws(permutations, "permutations")
    # the weighted means of all pairs of different rows alone change with a function of one row that the kernel gains
    center = not (unbiased and sample_weight is not None)
    check_choice(method, "method", METHODS)
    several = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    if not several:
        raise ValueError("kernel is an empty list; give at least one")
    of_matrix = any(map(is_matrix, several))
    if of_matrix:
        _check_matrix(X, Y, method, len(several))
    groups = _groups(X, Y)
    weights = _weights(sample_weight, groups)
    held = all(group.in_memory for group in groups) and sum(map(_bytes, groups)) <= HELD_BYTES
    if not held and method == "gram":
        raise ValueError("method='gram' needs both groups in memory; leave it out, or load a sample of the rows")
    form = _Products if of_matrix or (held and method != "features") else _Means
    if form is _Products and max_features is not None:
        instead = "" if of_matrix else ", or give method='features'"
        raise ValueError(f"max_features={max_features} is of features, and products are taken here; drop it{instead}")
    most = MAX_FEATURES if form is _Means and max_features is None else max_features
    options = FitOptions(None, kernel_parameters, method, tol, most, n_threads, center=center)
    forms = [form(groups, weights, replace(options, kernel=one)) for one in several]
    labels = np.arange(len(weights)) < groups[0].n_samples
    found, changed = [], []
    for L in _blocks(labels, permutations, check_rng(rng), max(1, HELD_BYTES // (form.bytes_of_label * len(labels)))):
        found.append([_statistics(x, L, weights, unbiased) for x in forms])
        changed.append((L != labels[:, None]).sum(axis=0))
    values, errors = np.moveaxis(np.concatenate(found, axis=-1), 0, -1)
    moved = np.concatenate(changed)[1:]
    return test_of(
        values,
        errors,
        # every label changed: the groups have exchanged their names
        (moved == 0) | (moved == len(labels)),
        name=f"MMD^2, {'un' * unbiased}biased",
        kernels=tuple(x.kernel.unbound() for x in forms),
        n_samples=len(labels),
        info=forms[0].info | {"rows_of_x": groups[0].n_samples},
    )


def _check_matrix(X: Any, Y: Any, method: str, n_kernels: int) -> None:
    """Raise ValueError where X and Y are not the rows of one kernel matrix, or something else takes part."""
    if n_kernels > 1:
        raise ValueError(
            "a precomputed matrix is not tested together with other kernels; give kernel='precomputed' alone"
        )
    if method == "features":
        raise ValueError("method='features' needs rows, and X and Y are those of a matrix; take method='gram'")
    n, m = (as_rows(part, name=name, purpose="mmd_test") for part, name in ((X, "X"), (Y, "Y")))
    if not n.n_features == m.n_features == len(n) + len(m):
        raise ValueError(
            f"X and Y have the shapes {(len(n), n.n_features)} and {(len(m), m.n_features)}; with kernel="
            f"'precomputed' give X = K[:{len(n)}] and Y = K[{len(n)}:] of the matrix K of all {len(n) + len(m)} "
            "rows, those of X first"
        )


def _groups(X: Any, Y: Any) -> list[Rows]:
    groups = []
    for rows, name in ((X, "X"), (Y, "Y")):
        groups.append(as_rows(rows, name=name, at_least=2, purpose="mmd_test"))
        check_finite(groups[-1], name=name, purpose="mmd_test")
    check_columns_of(groups[1], groups[0], name="Y")
    need_rows(sum(map(len, groups)), "mmd_test", "X with Y")
    return groups


def _named(rows: Any, groups: list[Rows]) -> Rows:
    """Rows of both groups, whose columns have the names that those of one group have."""
    return Rows(rows, named=groups[0].named or groups[1].named)


def _weights(given: Any, groups: list[Rows]) -> np.ndarray:
    if given is None:
        return np.ones(sum(group.n_samples for group in groups))
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise TypeError(f"sample_weight is {type(given).__name__}; give a pair, (weights of X, weights of Y)")
    named = zip(given, groups, ("X", "Y"))
    parts = [check_weights(part, len(group), f"sample_weight of {name}", fit=False) for part, group, name in named]
    weights = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
    if not (weights > 0).all():
        raise ValueError(f"sample_weight is zero at row {int(np.argmin(weights))} of X with Y; drop such rows")
    return weights


def _bytes(rows: Rows) -> int:
    return int(rows.source.data.nbytes if sp.issparse(rows.source) else rows.source.nbytes)


def _blocks(labels: np.ndarray, permutations: int, rng: np.random.Generator, width: int) -> Iterator[np.ndarray]:
    """Truth values (N, b) of being in X: the labels as they are, and those of the permutations, at most ``width``."""
    for start in range(0, 1 + permutations, width):
        block = np.empty((len(labels), min(width, 1 + permutations - start)), dtype=bool)
        for k in range(block.shape[1]):
            block[:, k] = labels if start + k == 0 else rng.permutation(labels)
        yield block


def _statistics(
    x: _Products | _Means, L: np.ndarray, weights: np.ndarray, unbiased: bool
) -> tuple[np.ndarray, np.ndarray]:
    """MMD^2 for each column of labels, and bounds on the errors."""
    A, A2 = weights @ L, weights**2 @ L
    B, B2 = weights @ ~L, weights**2 @ ~L
    values, crossed, rounding = x.squares(L, weights, A, B)
    half = x.missed * (A2 / A**2 + B2 / B**2) / 2
    statistic, errors = values + half, rounding + half
    if unbiased:
        # the mean of a group is that of all plus a multiple of the difference s
        for away, member, total, squared in ((B, L, A, A2), (-A, ~L, B, B2)):
            share = away / (A + B)
            own = x.mean_square + 2 * share * crossed + share**2 * values
            pairs = total**2 - squared
            statistic = statistic + (squared * own - (weights**2 * x.diagonal) @ member) / pairs
            errors = errors + squared * (9 * rounding + x.missed * squared / total**2) / pairs
    return statistic, errors


class _Products:
    """s' K s by products with the kernel matrix of both groups."""

    missed = 0.0  # of the trace of K

    bytes_of_label = 24  # the label, s, K s, and numpy's temporary arrays

    def __init__(self, groups: list[Rows], weights: np.ndarray, options: FitOptions):
        parts = [group.source if group.in_memory else group.source[0 : len(group)] for group in groups]
        options = for_lengths(options, len(weights), "mmd_test")
        Z = sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.concatenate(parts)
        given: dict[str, Any] = {"tol": options.tol, "n_threads": options.n_threads, **options.parameters}
        center = options.center and not sp.issparse(Z)
        gram = quick_gram(_named(Z, groups), options.kernel, center=center, **given)
        self.kernel = gram.kernel
        need_semidefinite(self.kernel, "mmd_test")
        self.diagonal = gram.diagonal()
        self._scale = float(self.diagonal.max())
        self._gram = gram
        self.info = {"method": "gram", "products": gram.products, "error_bound": gram.error_bound}
        self._mean = gram @ (weights / weights.sum())
        self.mean_square = float(self._mean @ weights / weights.sum())

    def squares(self, L: np.ndarray, weights: np.ndarray, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, ...]:
        """s' K s, c' K s, and a bound on the error of both, without the residual of the map.

        The columns of s are weights / A where L, and - weights / B elsewhere; c are the shares of all rows.
        """
        S = weights[:, None] * np.where(L, 1.0 / A, -1.0 / B)
        product = self._gram @ S
        # |s| sums to 2; the sums of weights are exact where these are all one
        rounding = 4 * self._gram.error_bound + 2 * EPS * len(S) * np.abs(product).max(axis=0)
        rounding += 16 * EPS * self._scale * (len(S) if (weights != 1).any() else 1)
        return np.einsum("ij,ij->j", S, product), self._mean @ S, rounding


class _Means:
    """s' K s by means of features, tile by tile, so that the rows may lie anywhere."""

    missed = 0.0

    bytes_of_label = 2

    def __init__(self, groups: list[Rows], weights: np.ndarray, options: FitOptions):
        some = np.random.default_rng(0)
        chosen = [np.sort(some.choice(len(group), min(DRAFT_ROWS, len(group)), replace=False)) for group in groups]
        sample = _named(np.concatenate([group.loaded().take(rows) for group, rows in zip(groups, chosen)]), groups)
        self.kernel = fk.gram(sample, options.kernel, products="exact", **options.parameters).kernel
        need_semidefinite(self.kernel, "mmd_test")
        options = replace(options, kernel=self.kernel.unbound(), parameters={}, method="features")
        try:
            features = products_for(sample, options).features
        except ValueError:  # none reaches tol
            features = fk.features(
                sample, self.kernel.unbound(), max_features=options.max_features, center=options.center
            )
        self._map = features.map
        self._groups = [group.shifted(features.shift) for group in groups]
        self.diagonal = np.empty(len(weights))
        mean = 0.0
        for part, Phi, tile in self._tiles():
            missed = self._map.residual(tile, Phi)
            self.missed += float(missed.sum())
            self.diagonal[part] = np.einsum("ij,ij->i", Phi, Phi) + missed
            mean = mean + weights[part] @ Phi
        self._mean = np.asarray(mean) / weights.sum()
        self.mean_square = float(self._mean @ self._mean)
        self.info = {"method": "features", "n_features": self._map.n_features, "residual_trace": self.missed}

    def _tiles(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """(where, features, rows) of each tile."""
        first = 0
        for group in self._groups:
            for start, tile in group.tiles(DRAFT_ROWS):
                yield slice(first + start, first + start + len(tile)), self._map.features(tile), tile
            first += len(group)

    def squares(self, L: np.ndarray, weights: np.ndarray, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, ...]:
        """As that of ``_Products``."""
        difference = np.zeros((self._map.n_features, L.shape[1]))
        for part, Phi, _ in self._tiles():
            difference += Phi.T @ (weights[part, None] * np.where(L[part], 1.0 / A, -1.0 / B))
        values = np.einsum("ij,ij->j", difference, difference)
        scale = float(self.diagonal.max())
        # of the features, of which |s| sums to 2, and of their sums
        off = (2 * self._map.rounding + 4 * EPS * len(L)) * np.sqrt(scale)
        rounding = off * (2 * np.sqrt(values) + off) + 4 * (self._map.defect + EPS * self._map.n_features * scale)
        return values, self._mean @ difference, rounding

"""Importance of the variables for a component: the change of the scores with each column of X.

Both methods give numbers in one unit, that of a component's variance. For a linear kernel both are the squared
loading times the column's variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import parallel
from ...base.checks import check_choice, check_rng
from ...base.differences import DIFFERENCE_STEP
from ...base.progress import Progress
from ...base.protocol import Kernel
from ...base.rounding import EPS
from ...rows.columns import column_labels
from ...rows.summary import SAMPLE_ROWS
from ...rows.view import Pass, Rows
from ..notebook import html_table
from ..projector import scores_of
from ..reading import Projector
from ..result import KPCAModel, check_model
from ..rows import rows_of

STABLE_FRACTION = 0.9
"""A sign is stable where the derivative has it in so large a share of the rows."""
MAX_PRINTED = 12
"""Largest number of columns and of components in the printed table of a result."""


@dataclass(frozen=True, eq=False, repr=False)
class Importance:
    """Importance of each column of X for the scores of each component.

    Attributes
    ----------
    importance : ndarray (c, d)
        In the unit of a component's variance: compare the columns within a row. A column that is constant has 0.
    method : str
        "gradient" or "permutation".
    spread : ndarray (d,)
        Standard deviation of each column over the rows (divided by N, as ``numpy.std``).
    squared_gradients : ndarray (c, d) or None
        Mean over the rows of the squared derivative of a score by a column, in the units of X: for a linear kernel the
        squared loadings. None for "permutation", as the next two.
    mean_gradients : ndarray (c, d) or None
        Mean of the derivative.
    positive : ndarray (c, d) or None
        Share of the rows in which the derivative is positive.
    standard_errors : ndarray (c, d) or None
        Standard errors of the importance, by the spread among the rows; None for "gradient".
    n_samples : int
        Rows that were evaluated.
    feature_names : tuple of str or None
        Names of the columns, as the model has them.
    """

    importance: np.ndarray
    method: str
    spread: np.ndarray
    squared_gradients: np.ndarray | None
    mean_gradients: np.ndarray | None
    positive: np.ndarray | None
    standard_errors: np.ndarray | None
    n_samples: int
    feature_names: tuple[str, ...] | None

    @property
    def share(self) -> np.ndarray:
        """The importance of each column in a component, over the sum of that row: shape (c, d)."""
        total = self.importance.sum(axis=1, keepdims=True)
        return self.importance / np.where(total > 0.0, total, 1.0)

    @property
    def sign(self) -> np.ndarray:
        """1 or -1 where the derivative is positive, or negative, in at least nine of ten rows; else 0: shape (c, d)."""
        if self.positive is None or self.mean_gradients is None:
            raise ValueError("a permutation shows no sign; kpca_importance(..., method='gradient') does")
        stable = np.maximum(self.positive, 1.0 - self.positive) >= STABLE_FRACTION
        return np.where(stable & (self.mean_gradients != 0.0), np.sign(self.mean_gradients), 0.0).astype(np.intp)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; "column 0" and so on where there are none."""
        return column_labels(self.feature_names, len(self.spread))

    def ranking(self, component: int | None = 0) -> np.ndarray:
        """Numbers of the columns, the most important first, shape (d,): for one component; None: for the sum of all."""
        values = self.importance.sum(axis=0) if component is None else self.importance[component]
        return np.argsort(-values, kind="stable")

    def __repr__(self) -> str:
        header, *lines = self._table()
        width = max(9, *(len(line[0]) for line in lines))
        c, d = self.importance.shape
        text = [f"Importance by {self.method}: {c} components, {d} columns, {self.n_samples} rows"]
        for name, *cells in (("share (%)", *(f"{x}  " for x in header[1:])), *lines):
            text.append((f"{name:<{width}}" + "".join(f"{cell:>8}" for cell in cells)).rstrip())
        text += [self._left_out(), self._key()]
        return "\n".join(filter(None, text))

    def _repr_html_(self) -> str:
        """The importance in a notebook: shares by column and component."""
        header, *lines = self._table()
        key = self._key() or "of a component"
        facts = [("method", self.method), ("rows", str(self.n_samples)), ("share in %", key)]
        return html_table("Importance of columns", facts, header, lines, self._left_out())

    def _table(self) -> list[tuple[str, ...]]:
        """A header, then the most important columns of the first component: share and sign in each component."""
        components = range(min(len(self.importance), MAX_PRINTED))
        signs = np.zeros(self.importance.shape, np.intp) if self.positive is None else self.sign
        lines = [("column", *(f"PC{j + 1}" for j in components))]
        for i in self.ranking()[:MAX_PRINTED]:
            cells = (f"{100.0 * self.share[j, i]:.1f} {' +-'[signs[j, i]]}" for j in components)
            lines.append((self.names[i], *cells))
        return lines

    def _left_out(self) -> str:
        c, d = self.importance.shape
        left = [(c - MAX_PRINTED, "component"), (d - MAX_PRINTED, "column")]
        texts = [f"{count} more {word}{'s' * (count > 1)}" for count, word in left if count > 0]
        return f"and {' and '.join(texts)}" if texts else ""

    def _key(self) -> str:
        if self.positive is None:
            return ""
        return "+ and -: the score rises, or falls, with the column in nine of ten rows"


def kpca_importance(
    model: KPCAModel,
    X: Any = None,
    *,
    method: str = "gradient",
    sample_weight: Any = None,
    rng: Any = 0,
    n_threads: int | None = None,
    progress: bool | Progress = False,
) -> Importance:
    r"""Importance of each variable for each component of a model.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d), optional
        Rows at which importance is measured, as for ``kpca_project``: best the training rows. By default those, where
        the model holds them.
    method : {"gradient", "permutation"}
        "gradient": mean squared derivative of the score times the column's variance. "permutation": half the mean
        squared change of the score when the column takes its value from another row, drawn at random; it needs no
        derivative, and sees jumps and far moves.
    sample_weight : array_like (m,), optional
        Weights of the rows X. The training rows of a model have the weights that they were fitted with.
    rng : int, Generator, SeedSequence or None
        For "permutation".
    n_threads : int, optional
        Default: all processors. Results do not depend on it.
    progress : bool or callable

    Returns
    -------
    Importance

    Raises
    ------
    ValueError, TypeError
        The model holds no rows and none are given; the kernel has no columns (a precomputed matrix); there are fewer
        than two rows, or no column varies; or as ``kpca_project``.

    Notes
    -----
    Importance of column p for component j, by "gradient" and by "permutation", s_p being the column's standard
    deviation (with ``sample_weight`` the means are weighted):

    .. math::

        s_p^2 \; \frac1N \sum_i \left(\frac{\partial z_j}{\partial x_p}(x_i)\right)^2, \qquad
        \frac12 \; \frac1N \sum_i \left(z_j(x_i) - z_j(x_i')\right)^2,

    where x_i' is the row x_i with the p-th value of a random row. For a linear kernel both are s_p^2 times the squared
    loading (the second up to the draw). The second is Jansen's
    estimate of a total Sobol' index, times the variance of the score, where columns are independent. Derivatives of
    kernels are exact where the kernel knows them (``Kernel.gradient_weights``), also in sums and products; elsewhere
    they are central differences. They are of the scores that ``kpca_project`` returns. It takes one pass over the rows;
    a permutation projects them d + 1 times.

    Columns that go together share their importance: each of two equal columns gets only a part of what one alone would
    have. Columns of different units are compared fairly by either method, but the kernel has seen them as
    they were.

    Sobol' & Kucherenko, Derivative based global sensitivity measures and their link with global sensitivity indices,
    Mathematics and Computers in Simulation 2009. Jansen, Analysis of variance designs for model output, Computer
    Physics Communications 1999. Gradients of kernel PCA: Briscik, Dillies & Dejean, Improvement of variables
    interpretability in kernel PCA, BMC Bioinformatics 2023.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) * [3.0, 1.0, 0.1]
    >>> which = fk.kpca_importance(fk.kpca(X, "gaussian", 2, sigma=5.0), X)
    >>> which.ranking().tolist()
    [0, 1, 2]
    """
    check_choice(method, "method", ("gradient", "permutation"))
    generator = check_rng(rng)
    model = check_model(model)
    if not model.kernel.takes_points:
        raise ValueError(
            f"{model.kernel!r} has no columns whose importance could be told: what it is given are not rows of "
            "coordinates; fit with a kernel on the rows themselves"
        )
    given = rows_of(model, X, purpose="kpca_importance", sample_weight=sample_weight)
    if given.rows.n_samples < 2:
        raise ValueError(
            "importance needs the spread of the columns, and there is one row; give at least two "
            "(kpca_contributions says which columns make one row unusual)"
        )
    threads = parallel.threads_for(given.kernel, n_threads)
    if method == "gradient":
        over = _gradient_pass(model.projector, given.kernel, given.rows)
    else:
        over = _permutation_pass(model.projector, given.kernel, given.rows, generator)
    with parallel.reporter(progress) as report, parallel.blas_threads():
        sums: _Sums = given.rows.reduce(over, n_threads=threads, progress=report)
    return _importance(model, sums, method, given.rows)


_Sums = tuple[np.ndarray, ...]
"""Sums over rows about a centre: weight, sums and sums of squares by column, and sums (k, c, d) over the scores."""


def _importance(model: KPCAModel, sums: _Sums, method: str, rows: Rows) -> Importance:
    weight, n = float(sums[0]), rows.n_samples
    if not np.isfinite(sums[2]).all():
        raise ValueError("the squares of X leave the range of float64; scale X as the training rows were")
    mean, squares = sums[1] / weight, sums[2] / weight
    variance = squares - mean**2
    # a mean of equal numbers is one of them up to rounding
    constant = variance <= (8.0 * EPS * (_centre(rows) + mean)) ** 2
    if constant.all():
        raise ValueError("no column of X varies: all rows are equal, and nothing can be told from them")
    spread = np.sqrt(np.where(constant, 0.0, variance))
    first, second, third = sums[3] / weight
    unit = np.ones(len(spread)) if model.scale is None else model.scale  # the sums are in the model's coordinates
    spread = spread * unit
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        if method == "gradient":
            first, second = first / unit, second / unit**2
            found = (second * spread**2, method, spread, second, first, third, None)
        else:
            error = np.sqrt(np.maximum(second - first**2, 0.0) / n)
            found = (first, method, spread, None, None, None, error)
    if not (np.isfinite(sums[3]).all() and np.isfinite(found[0]).all()):
        raise ValueError("the scores change too fast to be measured on these rows; scale X as the training rows were")
    if not found[0].any():
        raise ValueError(
            "the scores of these rows do not change with any column: the rows lie far from those that the model was "
            "fitted on; give rows on the same scale (in a pipeline: pipeline[:-1].transform(X))"
        )
    return Importance(*found, n, model.feature_names)


def _sample(rows: Rows) -> np.ndarray:
    """The first rows: which columns vary there, and how much."""
    return rows.tile(0, min(SAMPLE_ROWS, rows.n_samples))


def _centre(rows: Rows) -> np.ndarray:
    return _sample(rows).mean(axis=0)


def _pass(projector: Projector, rows: Rows, kernel: Kernel, sums_of_tile: Callable[..., np.ndarray]) -> Pass:
    """The pass whose tasks add up ``sums_of_tile(X, weights, number of the tile)``."""
    span = min(projector.tile_rows, parallel.tile_rows(projector.n_components * rows.n_features, entries=1 << 21))
    centre = _centre(rows)

    def task(rows: Rows, i: int) -> _Sums:
        start, stop = i * span, min(rows.n_samples, (i + 1) * span)
        X, w = rows.tile(start, stop), rows.tile_weights(start, stop)
        w = np.ones(len(X)) if w is None else w
        with np.errstate(over="ignore", invalid="ignore"):  # named where the sums are complete
            return w.sum(), w @ (X - centre), w @ (X - centre) ** 2, sums_of_tile(X, w, i)

    def joined(one: _Sums, other: _Sums) -> _Sums:
        return tuple(map(np.add, one, other))

    return Pass("importance", task, span, joined, alone=not kernel.thread_safe)


def _gradient_pass(projector: Projector, kernel: Kernel, rows: Rows) -> Pass:
    gradients, lengths = projector.gradients(kernel), _lengths(rows)

    def sums(X: np.ndarray, w: np.ndarray, _: int) -> np.ndarray:
        G = gradients(X, DIFFERENCE_STEP * np.maximum(lengths, EPS * np.abs(X)))
        return np.stack([np.tensordot(w, part, 1) for part in (G, G**2, G > 0.0)])

    return _pass(projector, rows, kernel, sums)


def _lengths(rows: Rows) -> np.ndarray:
    """Over which a function that does not know its derivative may change, by column: the spread of the first rows."""
    sample = _sample(rows)
    with np.errstate(over="ignore", invalid="ignore"):  # named where the sums are complete
        spread = sample.std(axis=0)
    largest = float(spread.max()) or float(np.abs(sample).max()) or 1.0
    return np.where(spread > 0.0, spread, largest)


def _permutation_pass(projector: Projector, kernel: Kernel, rows: Rows, rng: np.random.Generator) -> Pass:
    n, w, share = rows.n_samples, rows.weights, None
    if w is not None:
        share = np.asarray(w, dtype=np.float64) / np.max(w)
        share /= share.sum()
    count = min(n, SAMPLE_ROWS) if w is None else SAMPLE_ROWS
    numbers = np.sort(rng.choice(n, count, replace=w is not None, p=share))
    donors, seed = rows.take(numbers), int(rng.integers(2**63))

    def scores(X: np.ndarray) -> np.ndarray:
        return scores_of(projector, kernel, Rows(X), 1)

    def sums(X: np.ndarray, w: np.ndarray, i: int) -> np.ndarray:
        of_tile, before = np.random.default_rng((seed, i)), scores(X)
        total = np.zeros((3, before.shape[1], X.shape[1]))
        for column in range(X.shape[1]):
            moved = X.copy()
            moved[:, column] = donors[of_tile.integers(len(donors), size=len(X)), column]
            half = 0.5 * (scores(moved) - before) ** 2
            total[0, :, column], total[1, :, column] = w @ half, w @ half**2
        return total

    return _pass(projector, rows, kernel, sums)

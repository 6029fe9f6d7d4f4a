"""Choice of kernel, parameters and number of components, by measures on rows that the components were not made of.

Each kernel gets one set of features for all the rows. Every fold, every half and every number of components is then
solved from second moments of these features, D x D numbers, without further kernel values.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel
from ..base.checks import Randomness, check_choice, check_count, check_flag, check_rng
from ..base.lapack import largest_eigenpairs
from ..base.process_memory import DEFAULT_MEMORY
from ..base.rounding import EPS
from ..errors import ComponentsWarning, PreimageWarning, silenced
from ..kernels import Kernel, given_kernel
from ..model.preimages.preimage import kpca_preimage
from ..model.result import KPCAModel, leading
from ..model.selection import LARGER_IS_BETTER, MEASURES, Selection
from ..model.shared_map import feature_projector
from ..products.operators import FeatureOperator
from ..rows.columns import warn_of_ranges
from ..rows.convert import as_rows
from ..rows.sources import FileSource
from ..rows.summary import summarize
from ..rows.values import check_finite
from ..rows.view import Rows
from .gram import features, gram
from .kpca import kpca

GRID_FACTORS = 2.0 ** np.arange(-3.0, 3.0, 0.5)
"""Grid of a parameter that has a heuristic, as multiples of the heuristic's value."""
MAP_FEATURES = 200
"""Features for each kernel; more where c needs them. The residual of the map is counted in the error."""
N_HALVINGS = 4
"""Random halvings of the rows over which "stability" is averaged."""
MIN_VARIANCE_RATIO = 1e-6
"""Components with less variance, relative to the first, are left out: ``kpca`` does not resolve them by default."""
PREIMAGE_ROWS = 50
"""Rows of each fold that get a pre-image, at most: each one takes a search."""


def kpca_select(
    X: Any,
    kernels: Any = "gaussian",
    c: Any = 10,
    *,
    y: Any = None,
    classifier: Any = None,
    criterion: str | None = None,
    folds: int = 5,
    standardize: bool | None = None,
    max_features: int | None = None,
    max_rows: int = 10_000,
    n_threads: int | None = None,
    rng: Any = 0,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Selection:
    """Choose kernel, parameters and number of components by measures on rows that were left out.

    Parameters
    ----------
    X : array_like (N, d)
        Rows in memory.
    kernels : str, Kernel, sequence of these, or dict
        The candidates. A name stands for a grid where the kernel has a parameter that ``kpca`` takes from the data, as
        sigma of "gaussian": 12 values, from 1/8 to 5.7 times the median heuristic. A dict holds a grid of one's own, as
        in ``{"gaussian": {"sigma": [0.5, 1, 2]}, "polynomial": {"degree": [2, 3]}}``.
    c : int or sequence of int
        Numbers of components; a component whose variance is below 1e-6 of the first one's does not count.
    y : array_like (N,), optional
        Labels, for the criterion "score".
    classifier : object, optional
        With ``fit(Z, y)`` and ``score(Z, y)``, larger being better: any of scikit-learn, best with a scaler before it.
        A fresh copy of it learns from the scores of each fold's training rows. Needs ``y``. By default ridge regression
        (penalty 1) of each class's indicator on scores of variance one, the largest of which wins; its score is the
        share of rows whose class it finds.
    criterion : {"score", "preimage", "reconstruction", "stability"}, optional
        The measure that decides (see Notes). Default: "score" where labels are given; else "preimage" where c is
        smaller than d; else "reconstruction".
    folds : int
    standardize : bool, optional
        True divides each column by its standard deviation over all rows, as ``kpca`` does: give it to ``kpca`` too.
        None is False, with a warning where the columns have wildly different ranges.
    max_features : int, optional
        Features for each kernel: by default 200, or three times the largest c. The residual of the map counts as error.
    max_rows : int
        Largest number of rows used. If N is larger, this number of rows is drawn at random; more would take longer and
        seldom change the choice.
    n_threads : int, optional
    rng : int, Generator, SeedSequence or None
        Random numbers for the folds and halves, and for the rows that are drawn.
    progress : bool or callable

    Returns
    -------
    Selection
        ``kernel`` and ``c`` are the choice, for ``kpca(X, s.kernel, s.c)``, with ``standardize=True`` where the choice
        was made with it; ``table`` has every candidate;
        ``fastkpca.plot.selection`` draws it.

    Raises
    ------
    ValueError, TypeError
        For wrong input, and where the criterion cannot decide between the candidates; the text says which can.

    Notes
    -----
    - "score": what the classifier reaches on rows left out. It compares anything with anything, for this purpose.
    - "preimage": squared distance between rows left out and the pre-images of their projections, over their variance.
      It is in units of X, so it compares kernels, for denoising and compression (Alam and Fukumizu 2014). Only for c
      smaller than d: else a large sigma, which is linear PCA, gives every row back. It knows nothing of classes.
    - "reconstruction": SPE of rows left out over their variance in feature space. It compares numbers of components of
      one kernel only: each kernel has a feature space of its own. For any data, a few components hold nearly all of the
      variance there once sigma is large.
    - "stability": |V1' V2|^2 / c for the components V1, V2 of two random halves of the rows; 1 is the same subspace. It
      says which components are noise. As a choice it would take a small c and a large sigma, so it too decides only
      within one kernel.

    Choice: the smallest c with which some kernel is worse than the best candidate by at most one standard error, and
    the best kernel with this c; of equals, the middle one from narrow to wide. The standard error is that of the
    difference to the best, fold by fold: both were measured on the same rows. Those in the table are of the mean over
    folds. Folds share rows, so all of them are too small rather than too large.

    Alam & Fukumizu, Hyperparameter selection in kernel principal component analysis, Journal of Computer Science 2014;
    Breiman, Friedman, Olshen & Stone, Classification and regression trees, 1984, for the rule of one standard error.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, np.pi, 300)
    >>> X = np.column_stack([np.cos(t), np.sin(t), t]) + 0.05 * rng.standard_normal((300, 3))
    >>> choice = fk.kpca_select(X, "gaussian", c=[1, 2])
    >>> choice.criterion, choice.c
    ('preimage', 2)
    >>> model = fk.kpca(X, choice.kernel, choice.c)
    """
    rows = _rows(X)
    names = rows.names
    generator = check_rng(rng)
    labels = _labels(y, classifier, rows.n_samples)
    rows, labels = _drawn(rows, labels, check_count(max_rows, "max_rows", 4), generator)
    numbers = _numbers_of_components(c, rows.n_samples, check_count(folds, "folds", 2))
    candidates = _given(kernels, names)
    rows = _scaled(rows, standardize, candidates, names)
    candidates = _resolved(candidates, rows, n_threads)
    criterion = _criterion(criterion, candidates, max(numbers), rows.n_features, labels is not None)
    size = max(MAP_FEATURES, 3 * max(numbers)) if max_features is None else check_count(max_features, "max_features")
    fold, half = _folds(labels, rows.n_samples, folds, generator), _halves(rows.n_samples, generator)
    size = min(max(size, max(numbers)), rows.n_samples)
    task = _Task(rows, numbers, fold, half, labels, classifier, size, n_threads)
    criteria = ["reconstruction", "stability"]
    criteria += ["preimage"] * (criterion == "preimage") + ["score"] * (labels is not None)
    measured = []
    with parallel.reporter(progress) as report:
        for i, kernel in enumerate(candidates):
            measured.append(task.measure(kernel, criteria))
            if report is not None:
                report("kernels", i + 1, len(candidates))
    tables = {x: np.array([m[x] for m in measured]) for x in criteria}
    return replace(_selection(candidates, numbers, criterion, tables), standardized=bool(standardize))


# The input


def _rows(X: Any) -> Rows:
    rows = as_rows(X, at_least=4, purpose="kpca_select")
    if isinstance(rows.source, FileSource) and rows.n_samples * rows.source.row_bytes <= DEFAULT_MEMORY:
        rows = Rows(rows.source[:])  # an array that is a view of a memory map
    if not rows.in_memory:
        raise TypeError("kpca_select takes rows that are in memory; give a sample of these, as in X[index]")
    check_finite(rows, purpose="kpca_select")
    return rows


def _drawn(
    rows: Rows, labels: np.ndarray | None, most: int, rng: np.random.Generator
) -> tuple[Rows, np.ndarray | None]:
    """Rows drawn without replacement, in their order, with their labels; all where there are no more."""
    if rows.n_samples <= most:
        return rows, labels
    index = np.sort(rng.choice(rows.n_samples, most, replace=False))
    return Rows(rows.take(index)), None if labels is None else labels[index]


def _numbers_of_components(c: Any, n: int, folds: int) -> list[int]:
    numbers = sorted({check_count(x, "c") for x in np.atleast_1d(np.asarray(c, dtype=object))})
    if not numbers:
        raise ValueError("c is empty; give numbers of components, as in c=[2, 5, 10]")
    largest, half = numbers[-1], n // 2
    if largest > half - 1:
        raise ValueError(
            f"c is {largest}, and half of the {n} rows gives at most {half - 1} components, which stability compares; "
            f"give c of at most {half - 1}, or more rows"
        )
    if folds > n or n // folds < largest:
        raise ValueError(
            f"folds={folds} of {n} rows have {n // folds} rows each, fewer than c={largest}; give at most "
            f"folds={n // largest}, or a smaller c"
        )
    return numbers


def _labels(y: Any, classifier: Any, n: int) -> np.ndarray | None:
    if y is None:
        if classifier is not None:
            raise ValueError("classifier= learns labels: give y=, one for each row, too")
        return None
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}; give one label for each of the {n} rows")
    missing = [value is None or value != value for value in labels.tolist()]
    if any(missing):
        raise ValueError(f"y has no label for row {missing.index(True)}; drop such rows, from X too")
    if classifier is None and labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise ValueError(
            "y holds fractions, and the default classifier tells classes apart; give classifier=, an object with "
            "fit(Z, y) and score(Z, y), as a regression of scikit-learn"
        )
    match classifier:
        case None:
            return labels
        case type():
            raise TypeError(f"classifier is the class {classifier.__name__}; give an object of it: add parentheses")
        case object(fit=_, score=_):
            return labels
    raise TypeError(f"classifier is {classifier!r}; give an object with fit(Z, y) and score(Z, y)")


class _Ridge:
    """The default classifier: ridge regression of the indicator of each class, as scikit-learn's RidgeClassifier."""

    def fit(self, Z: np.ndarray, y: np.ndarray) -> None:
        self.classes, index = np.unique(y, return_inverse=True)
        targets = np.eye(len(self.classes))[index]
        self.means, self.mean, spread = targets.mean(axis=0), Z.mean(axis=0), Z.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        Z = self._scaled(Z)
        self.weights = np.linalg.solve(Z.T @ Z + np.eye(Z.shape[1]), Z.T @ (targets - self.means))

    def _scaled(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray((Z - self.mean) / self.spread)

    def score(self, Z: np.ndarray, y: np.ndarray) -> float:
        found = self.classes[np.argmax(self._scaled(Z) @ self.weights + self.means, axis=1)]
        return float(np.mean(found == y))


def _scaled(rows: Rows, standardize: bool | None, kernels: list[Kernel], names: tuple[str, ...] | None) -> Rows:
    """The rows, or copies with mean 0 and standard deviation 1 in each column, as ``kpca(standardize=True)`` sees them.

    With ``standardize=None`` a warning names columns of very different ranges.
    """
    if standardize is not None and not check_flag(standardize, "standardize"):
        return rows
    scaled, data = summarize(rows, shift=True, randomness=Randomness(0), scale=bool(standardize), any_size=True)
    if standardize is None:
        warn_of_ranges(min(kernels, key=lambda kernel: kernel.scales_columns), data, names)
        return rows
    return as_rows(scaled.take(np.arange(rows.n_samples)), at_least=4, purpose="kpca_select")


def _given(kernels: Any, names: tuple[str, ...] | None) -> list[Kernel]:
    """The kernels as the user gave them, with their columns by number."""
    match kernels:
        case {**grids}:
            named = [(name, values) for name, grid in grids.items() for values in _grid(name, grid)]
        case memoryview():  # a sequence, but one of two dimensions has no first element
            named = [(kernels, {})]
        case [*several]:
            named = [(kernel, {}) for kernel in several]
        case _:
            named = [(kernels, {})]
    given = [given_kernel(kernel, values, kpca_select) for kernel, values in named]
    for kernel in given:
        if kernel.by_number:
            raise ValueError("kpca_select needs the rows: a precomputed kernel matrix leaves nothing to choose")
        if not kernel.positive_semidefinite:
            raise ValueError(
                f"{kernel!r} does not declare itself positive semidefinite, so the squared lengths in its feature "
                "space that kpca_select measures may be negative; leave it out"
            )
    if not given:
        raise ValueError("kernels is empty; give names or kernels, as in kernels=['gaussian', 'linear']")
    return given if names is None else [kernel.numbered(names) for kernel in given]


def _resolved(given: list[Kernel], rows: Rows, n_threads: int | None) -> list[Kernel]:
    """Each kernel with every parameter, or the grid of kernels that it stands for; each candidate once."""
    candidates: list[Kernel] = []
    for kernel in given:
        candidates += [x for x in _around(kernel, rows.source, n_threads) if x not in candidates]
    return candidates


def _grid(name: Any, grid: Any) -> list[dict[str, Any]]:
    """Every combination of the values in ``grid``, a dict of sequences."""
    match grid:
        case {**lists}:
            values = [np.atleast_1d(np.asarray(x, dtype=object)) for x in lists.values()]
            return [dict(zip(map(str, lists), combination)) for combination in product(*values)]
    raise TypeError(f"kernels[{name!r}] is {grid!r}; give a dict of lists, as in {{'sigma': [0.5, 1.0]}}")


def _around(kernel: Kernel, X: Any, n_threads: int | None) -> list[Kernel]:
    """This kernel; a grid of it where it takes a positive parameter from the data."""
    resolved = gram(X, kernel, n_threads=n_threads).kernel.unguarded()
    before, after = kernel.get_parameters(), resolved.get_parameters()
    free = [name for name in after if before[name] is None and np.isscalar(after[name]) and after[name] > 0]
    if not free:
        return [resolved]
    return [type(resolved)(**after | {name: float(after[name] * w) for name in free}) for w in GRID_FACTORS]


def _criterion(criterion: str | None, candidates: list[Kernel], c: int, d: int, labelled: bool) -> str:
    several = len(candidates) > 1
    if criterion is None:
        criterion = "score" if labelled else "preimage" if c < d else "reconstruction"
    check_choice(criterion, "criterion", MEASURES)
    if criterion == "score" and not labelled:
        raise ValueError("criterion='score' needs labels; give y=")
    if criterion == "preimage" and c >= d:
        raise ValueError(
            f"criterion='preimage' needs c smaller than the {d} columns, and c is {c}: with as many components as "
            "columns a large sigma gives every row back, whatever the data are; give a smaller c, or y="
        )
    if several and criterion in ("reconstruction", "stability"):
        raise ValueError(
            f"{criterion!r} compares numbers of components of one kernel, and here are {len(candidates)} kernels: each "
            "has a feature space of its own, and the flattest always wins; give one kernel with its parameters, as in "
            "get_kernel('gaussian', sigma=1.0), or y= for criterion='score', or c smaller than the number of columns "
            "for criterion='preimage'"
        )
    return criterion


# The folds and the halves


def _folds(labels: np.ndarray | None, n: int, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Folds of equal size; with labels every class is dealt out evenly."""
    order = rng.permutation(n)
    if labels is not None:
        order = order[np.argsort(np.unique(labels, return_inverse=True)[1][order], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % folds
    return fold


def _halves(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.permutation(n) < n // 2 for _ in range(N_HALVINGS)])


# The measures


class _Components(NamedTuple):
    """Mean (D,) of some rows' features, and their leading components (D, c) with as many columns as carry variance."""

    mean: np.ndarray
    axes: np.ndarray


@dataclass(frozen=True)
class _Task:
    """Inputs that all kernels share: ``fold`` (N,) of each row, and its ``half`` (halvings, N) in each halving."""

    rows: Rows
    numbers: list[int]
    fold: np.ndarray
    half: np.ndarray
    labels: np.ndarray | None
    classifier: Any
    max_features: int
    n_threads: int | None

    def measure(self, kernel: Kernel, names: list[str]) -> dict[str, np.ndarray]:
        """Each of these measures by number of components and fold (for "stability": halving)."""
        model = self._model(kernel) if "preimage" in names else None
        operator = self._features(kernel, model)
        with parallel.blas_threads():
            Phi = operator @ np.eye(operator.shape[1])
            held = [self.fold == i for i in range(int(self.fold.max()) + 1)]
            parts = [_components_of(Phi[~rows], self.numbers[-1]) for rows in held]
            halves = [self._overlaps(Phi, half) for half in self.half]
        diagonal = gram(self.rows.source, kernel, n_threads=self.n_threads).diagonal()
        left_out = np.maximum(diagonal - (Phi**2).sum(axis=1), 0.0)
        measured = {
            "stability": halves,
            "reconstruction": [self._left(Phi[x], left_out[x], part) for x, part in zip(held, parts)],
        }
        if "score" in names:
            measured["score"] = [self._scores(Phi, x, part) for x, part in zip(held, parts)]
        if model is not None:
            measured["preimage"] = [self._preimages(model, Phi, x, part) for x, part in zip(held, parts)]
        return {name: np.array(values).T for name, values in measured.items()}

    def _model(self, kernel: Kernel) -> KPCAModel:
        """A model on a feature map, in which the components of a fold can take the place of its own."""
        with silenced(ComponentsWarning):
            return kpca(
                self.rows.source,
                kernel,
                self.numbers[-1],
                max_features=self.max_features,
                n_threads=self.n_threads,
                return_scores=False,
                standardize=False,
            )

    def _features(self, kernel: Kernel, model: KPCAModel | None) -> FeatureOperator:
        if model is None:
            return features(self.rows.source, kernel, max_features=self.max_features, n_threads=self.n_threads)
        rows = self.rows.shifted(None if kernel.translation is None else model.shift)
        return FeatureOperator(
            model.kernel, feature_projector(model).map, rows, parallel.threads_for(kernel, self.n_threads)
        )

    def _by_number(self, part: _Components, measure: Callable[[int], float]) -> np.ndarray:
        """``measure(c)`` for each number of components; nan where there are fewer."""
        return np.array([measure(c) if c <= part.axes.shape[1] else np.nan for c in self.numbers])

    def _overlaps(self, Phi: np.ndarray, half: np.ndarray) -> np.ndarray:
        first, second = (_components_of(Phi[rows], self.numbers[-1]) for rows in (half, ~half))
        cosines = first.axes.T @ second.axes
        fewer = min(first, second, key=lambda part: part.axes.shape[1])
        return self._by_number(fewer, lambda c: float((cosines[:c, :c] ** 2).sum()) / c)

    def _left(self, Phi: np.ndarray, left_out: np.ndarray, part: _Components) -> np.ndarray:
        """SPE of rows over their variance."""
        explained = ((Phi - part.mean) @ part.axes) ** 2
        total = float(((Phi - part.mean) ** 2).sum() + left_out.sum())
        return self._by_number(part, lambda c: 1.0 - float(explained[:, :c].sum()) / total if total > 0 else np.nan)

    def _scores(self, Phi: np.ndarray, held: np.ndarray, part: _Components) -> np.ndarray:
        labels, Z = self.labels, (Phi - part.mean) @ part.axes
        assert labels is not None

        def score(c: int) -> float:
            learner = _Ridge() if self.classifier is None else copy.deepcopy(self.classifier)
            learner.fit(Z[~held, :c], labels[~held])
            value = float(learner.score(Z[held, :c], labels[held]))
            if not np.isfinite(value):
                raise ValueError(f"the score of the classifier is {value} with c={c}; score(Z, y) must return a number")
            return value

        return self._by_number(part, score)

    def _preimages(self, model: KPCAModel, Phi: np.ndarray, held: np.ndarray, part: _Components) -> np.ndarray:
        """Squared distance of rows from the pre-images of their projections, over that from the mean."""
        number = np.flatnonzero(held)[:PREIMAGE_ROWS]
        test, train = self.rows.take(number), self.rows.take(np.flatnonzero(~held))
        mean = train.mean(axis=0)
        unit = float(np.abs(test - mean).max()) or 1.0  # squares of numbers about 1 stay within float64
        variance = float((((test - mean) / unit) ** 2).sum())
        of_fold = replace(model, projector=replace(feature_projector(model), mean=part.mean, axes=part.axes))
        Z = (Phi[number] - part.mean) @ part.axes

        def error(c: int) -> float:
            if c > model.n_components or not variance > 0:
                return float("nan")
            with silenced(PreimageWarning):
                found = kpca_preimage(leading(of_fold, np.ones(c)), Z[:, :c], train=train, n_threads=self.n_threads)
            return float((((found - test) / unit) ** 2).sum()) / variance

        return self._by_number(part, error)


def _components_of(Phi: np.ndarray, c: int) -> _Components:
    """Mean and leading components of features, those that ``kpca`` would find with its default ``tol``."""
    mean = Phi.mean(axis=0)
    centred = Phi - mean
    D = Phi.shape[1]
    values, axes = largest_eigenpairs(centred.T @ centred, min(c, D))
    present = values > max(MIN_VARIANCE_RATIO * float(values[0]), D * EPS * float(mean @ mean) * len(Phi))
    return _Components(mean, axes[:, present])


# The choice


def _selection(
    candidates: list[Kernel], numbers: list[int], criterion: str, measured: dict[str, np.ndarray]
) -> Selection:
    """``measured`` has the shape (kernels, numbers, folds)."""
    n_rows = len(candidates) * len(numbers)
    columns = {
        "kernel": np.repeat(np.arange(len(candidates)), len(numbers)),
        "c": np.tile(np.array(numbers), len(candidates)),
    }
    known = [kernel.get_parameters() for kernel in candidates]
    for name in dict.fromkeys(x for parameters in known for x in parameters):
        settings = [parameters.get(name) for parameters in known]
        if all(x is None or (np.isscalar(x) and np.isreal(x)) for x in settings):
            columns[name] = np.repeat([np.nan if x is None else float(x) for x in settings], len(numbers))
    for name, values in measured.items():
        table = values.reshape(n_rows, -1)
        columns[name] = table.mean(axis=1)
        columns[name + "_se"] = table.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
    losses = measured[criterion].reshape(n_rows, -1) * (-1 if criterion in LARGER_IS_BETTER else 1)
    best, chosen = _choice(losses, columns["c"], columns["reconstruction"])
    return Selection(
        kernel=candidates[columns["kernel"][chosen]],
        c=int(columns["c"][chosen]),
        criterion=criterion,
        columns=columns,
        candidates=tuple(candidates),
        best_row=best,
        chosen_row=chosen,
    )


def _choice(losses: np.ndarray, c: np.ndarray, left: np.ndarray) -> tuple[int, int]:
    """(Best candidate, best one of the smallest c within one standard error of it), from losses by candidate and fold.

    Ties are broken by the order of ``left``, their SPE: the middle one from wide to narrow kernels.
    """
    mean = losses.mean(axis=1)
    if np.isnan(mean).all():
        raise ValueError(
            f"no kernel gives as many as {int(c.min())} components on every fold: their kernel matrices have a smaller "
            "rank; give a smaller c, or other kernels"
        )
    best = int(np.nanargmin(mean))
    apart = losses - losses[best]
    within = apart.mean(axis=1) <= apart.std(axis=1, ddof=1) / np.sqrt(apart.shape[1])
    fewest = np.where(c == c[within].min(), mean, np.inf)
    equal = np.flatnonzero(fewest <= np.nanmin(fewest) + 1e-12)
    return best, int(equal[np.argsort(left[equal])][(len(equal) - 1) // 2])

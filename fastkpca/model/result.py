"""What kpca returns: a frozen result that unpacks in MATLAB's order, its projectors, and its one way in for new rows.

A FeatureProjector holds D x c numbers whatever N was; a SampleProjector holds the training rows and says so. Both know
the weighted mean of the training rows' images, which is the centre of the model: ``products`` and ``of_the_mean``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..base import files, parallel
from ..base.protocol import FeatureMap, Kernel, Moments
from ..base.stored import Record, refusing
from ..errors import ModelFileError, ScoresNotKeptError
from ..kernels import guarded, kernel_from_state, kernel_state
from ..maps.passes import apply
from ..maps.stored import restored, stored_size
from ..products.exact import ExactSummation
from ..rows import validate
from ..rows.sources import Sink
from ..rows.view import Rows
from .plan import Plan

__all__ = [
    "FeatureProjector",
    "KPCAModel",
    "NewRows",
    "SampleProjector",
    "check_model",
    "load",
    "new_rows",
    "restore_map",
    "save",
]


@dataclass(frozen=True, eq=False)
class FeatureProjector:
    """Projects through a feature map: (phi(x) - mean)' W. Its size does not depend on the number of training rows.

    Attributes
    ----------
    map : FeatureMap
    axes : ndarray (D, c)
        W: orthonormal columns.
    mean : ndarray (D,)
    """

    map: FeatureMap
    axes: np.ndarray
    mean: np.ndarray
    grows_with_n = False

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        constant, _ = self.of_the_mean()
        apply(self.map, rows, self.axes, n_threads, constant=constant, out=out, progress=progress, stage="scores")

    def products(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        """<w_j, phi(x)> for each component, then <mean, phi(x)>: shape (m, c + 1)."""
        columns = np.column_stack([self.axes, self.mean])
        return np.asarray(apply(self.map, rows, columns, n_threads, progress=progress, stage="scores"))

    def of_the_mean(self) -> tuple[np.ndarray, float]:
        """(<w_j, mean> for each component, |mean|^2)."""
        return self.mean @ self.axes, float(self.mean @ self.mean)


@dataclass(frozen=True, eq=False)
class SampleProjector:
    """Projects through the training rows: (k(x, X) - column means)' coeff. Its size grows with their number.

    Attributes
    ----------
    X : ndarray (N, d)
        Training rows, after the shift.
    coeff : ndarray (N, c)
    column_means : ndarray (N,)
        Of the Gram matrix of the training rows; with weights, weighted means.
    weights : ndarray (N,) or None
        Of the training rows; None: each counts once. Empty: they had weights, and the model's file does not hold them.
    """

    X: np.ndarray
    coeff: np.ndarray
    column_means: np.ndarray
    weights: np.ndarray | None = None
    grows_with_n = True

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        constant = self.column_means @ self.coeff
        sink = Sink(out)
        for part, _, found in self._tiles(kernel, rows, self.coeff, n_threads):
            sink.write(found - constant)
            if progress is not None:
                progress("scores", part.stop, rows.n_samples)
        sink.close()

    def products(self, kernel: Kernel, rows: Rows, n_threads: int, progress: Any = None) -> np.ndarray:
        """<w_j, phi(x)> for each component, then <mean, phi(x)>: shape (m, c + 1)."""
        found = np.empty((rows.n_samples, self.coeff.shape[1] + 1))
        for part, _, product in self.tiles_of_products(kernel, rows, n_threads):
            found[part] = product
            if progress is not None:
                progress("scores", part.stop, rows.n_samples)
        return found

    def tiles_of_products(
        self, kernel: Kernel, rows: Rows, n_threads: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """(which rows, these rows, their ``products``), one tile after the other."""
        return self._tiles(kernel, rows, self.expansion(), n_threads)

    def of_the_mean(self) -> tuple[np.ndarray, float]:
        """(<w_j, mean> for each component, |mean|^2)."""
        found = np.asarray(self.column_means, dtype=np.float64) @ self.expansion()
        return found[:-1], float(found[-1])

    def shares(self) -> np.ndarray:
        """The part of each training row in the mean, shape (N,): its weight over the sum of the weights."""
        n = len(self.X)
        if self.weights is None:
            return np.full(n, 1.0 / n)
        if len(self.weights) != n:
            raise ValueError(
                "this model was made of weighted rows, and its file does not hold their weights, which are needed "
                "here; fit it again (kpca_project and kpca_t2 do without them)"
            )
        return self.weights / self.weights.sum()

    def expansion(self) -> np.ndarray:
        """Components and mean as sums over the images of the training rows: shape (N, c + 1), float64."""
        coeff, shares = np.asarray(self.coeff, dtype=np.float64), self.shares()
        # the coefficients of a component sum to zero in exact numbers, but not in those of float32
        return np.column_stack([coeff - np.outer(shares, coeff.sum(axis=0)), shares])

    def _tiles(
        self, kernel: Kernel, rows: Rows, columns: np.ndarray, n_threads: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        # K(new, train) @ columns, block by block: it never exists for all rows at once
        columns = np.ascontiguousarray(columns, dtype=np.float64)
        step, train, n = parallel.tile_rows(64), Rows(self.X), rows.n_samples
        for start in range(0, n, step):
            part = slice(start, min(n, start + step))
            X = rows.tile(part.start, part.stop)
            yield part, X, ExactSummation(kernel, Rows(X), train, n_threads=n_threads).matmat(columns)


@dataclass(frozen=True, eq=False, repr=False)
class KPCAModel:
    """A fitted kernel PCA. Unpacks as ``coeff, score, latent, tsquared, explained = model``.

    Attributes
    ----------
    eigenvalues : ndarray (c,), float64
        Of the centred Gram matrix, descending.
    eigenvalue_bounds : ndarray (c, 2), float64
        An interval around each eigenvalue.
    bound_kind : str
        "guaranteed" or "probabilistic".
    failure_probability : float
        Probability, over the random numbers that were drawn, with which an interval does not hold; 0.0 where
        ``bound_kind`` is "guaranteed".
    angle_bounds : ndarray (c,)
        Bound on the angle (radians) between the computed and the true invariant subspace of each cluster.
    clusters : ndarray (c,), int
        Eigenvalues with one label cannot be told apart within their bounds.
    total_variance : float
        tr(Kc) / (N - 1). Where a truncated feature map was used without an exact pass this is the upper end of
        ``total_variance_bounds``, so ``explained`` is then a lower bound.
    total_variance_bounds : tuple of float
    kernel : Kernel
        With every parameter resolved.
    plan : Plan
        What was chosen, and why.
    info : dict
        What really happened: method, seconds, passes, n_features, ...
    n_samples, n_features : int
        Of the training rows.
    feature_names : tuple of str or None
        Names of their columns, where they came as a data frame that has such. Frames that are projected must have the
        same ones in the same order.
    sample_weight : ndarray (N,) or None
        Weights of the training rows, where there were any and the model holds these rows or their scores.
    weight_sum : float or None
        Their sum, which takes the place of N in the variances.
    """

    eigenvalues: np.ndarray
    eigenvalue_bounds: np.ndarray
    bound_kind: str
    angle_bounds: np.ndarray
    clusters: np.ndarray
    total_variance: float
    total_variance_bounds: tuple[float, float]
    kernel: Kernel
    plan: Plan
    info: dict[str, Any]
    n_samples: int
    n_features: int
    shift: np.ndarray
    dtype: np.dtype
    projector: FeatureProjector | SampleProjector
    _score: np.ndarray | None = field(default=None)
    sample_weight: np.ndarray | None = field(default=None)
    feature_names: tuple[str, ...] | None = None
    weight_sum: float | None = None
    failure_probability: float = 0.0
    _moments: Moments | None = field(default=None)

    @property
    def n_components(self) -> int:
        return len(self.eigenvalues)

    @property
    def count(self) -> float:
        """N, the number of training rows; with weights their sum."""
        return float(self.n_samples) if self.weight_sum is None else self.weight_sum

    @property
    def latent(self) -> np.ndarray:
        """Variances of the components, eigenvalues / (N - 1), shape (c,); with weights N is their sum."""
        return self.eigenvalues / (self.count - 1)

    @property
    def mean_residual(self) -> float:
        """Mean over the training rows of what the feature map leaves out of k(x, x); zero without a feature map."""
        return max(float(self.info.get("residual_trace", 0.0)), 0.0) / self.count

    @property
    def explained(self) -> np.ndarray:
        """Percent of the total variance that each component explains, shape (c,): of the whole trace.

        For a kernel that is not positive semidefinite: possibly above 100 in sum, nan where the trace is not positive.
        """
        if not self.total_variance > 0:
            return np.full(self.n_components, np.nan)
        return 100.0 * self.latent / self.total_variance

    @property
    def score(self) -> np.ndarray:
        """Projections of the training rows, shape (N, c).

        Raises
        ------
        ScoresNotKeptError
            The model was made with ``return_scores=False``, or loaded from a file that does not hold them.
        """
        if self._score is None:
            raise ScoresNotKeptError(
                "this model does not hold the scores of its training rows; kpca_project(model, X) computes them "
                "(kpca(..., return_scores=True) and save(..., scores=True) keep them)"
            )
        return self._score

    @cached_property
    def coeff(self) -> np.ndarray:
        """alpha, shape (N, c): score = Kc @ coeff; score / eigenvalues."""
        if isinstance(self.projector, SampleProjector):
            return self.projector.coeff
        coeff = self.score / self.eigenvalues
        # the sum over columns is zero already, but for what a map's transforms err by over a small eigenvalue
        if self.sample_weight is None:
            coeff = coeff - coeff.mean(axis=0)
        else:
            w = np.asarray(self.sample_weight, dtype=np.float64)[:, None]
            coeff = w * (coeff - (w * coeff).sum(axis=0) / w.sum())
        return coeff.astype(self.score.dtype, copy=False)

    @cached_property
    def tsquared(self) -> np.ndarray:
        """Hotelling's T^2 of the training rows over the kept components, shape (N,)."""
        return np.sum(self.score**2 / self.latent, axis=1)

    @property
    def bounds_text(self) -> str:
        """``bound_kind`` for a text, with the probability where there is one."""
        failing = f" (failure probability {self.failure_probability:.2g})" if self.failure_probability else ""
        return self.bound_kind + failing

    def __iter__(self) -> Iterator[np.ndarray]:
        yield from (self.coeff, self.score, self.latent, self.tsquared, self.explained)

    def __repr__(self) -> str:
        grows = ", model grows with n_samples" if self.projector.grows_with_n else ""
        width = float(np.max(self.eigenvalue_bounds[:, 1] - self.eigenvalue_bounds[:, 0]) / self.eigenvalues[0])
        share = self.explained.sum()  # means nothing where negative eigenvalues weigh in the trace
        explaining = f" explaining {share:.4g} %" if share < 100.1 else ""
        return (
            f"<KPCAModel: {self.kernel!r}, {self.n_components} components{explaining}, "
            f"n_samples={self.n_samples}, n_features={self.n_features}, method={self.plan.method!r}, "
            f"{self.bounds_text} intervals within {width:.1e} of the largest eigenvalue{grows}>"
        )

    def __reduce__(self) -> tuple:
        """For pickle and copy: feature maps go by their state, and the plan without the functions of its offers."""
        parts = {x.name: getattr(self, x.name) for x in fields(self)} | {"plan": None}
        state = None
        if isinstance(self.projector, FeatureProjector):
            try:
                state = self.projector.map.state()
            except NotImplementedError:  # of a kernel from outside: by itself then
                pass
            else:
                parts["projector"] = replace(self.projector, map=None)  # type: ignore[arg-type]
                parts["_moments"] = None if self._moments is None else self._moments.state()
        return _unpickled, (parts, self.plan.state(), state)

    def state(self, *, scores: bool = False) -> tuple[dict, dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        header: dict[str, Any] = {
            "kernel": kernel_state(self.kernel),
            "bound_kind": self.bound_kind,
            "failure_probability": self.failure_probability,
            "total_variance_bounds": list(self.total_variance_bounds),
            "total_variance": self.total_variance,
            "plan": self.plan.state(),
            "info": self.info,
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "dtype": self.dtype.name,
        }
        if self.weight_sum is not None:
            header["weight_sum"] = self.weight_sum
        if self.feature_names is not None:
            header["feature_names"] = list(self.feature_names)
        arrays = {
            "eigenvalues": self.eigenvalues,
            "eigenvalue_bounds": self.eigenvalue_bounds,
            "angle_bounds": self.angle_bounds,
            "clusters": self.clusters,
            "shift": self.shift,
        }
        if isinstance(self.projector, FeatureProjector):
            map_header, map_arrays = self.projector.map.state()
            header["map"] = map_header
            arrays |= {f"map.{name}": array for name, array in map_arrays.items()}
            arrays |= {"axes": self.projector.axes, "mean": self.projector.mean}
        else:
            arrays |= {
                "X": self.projector.X,
                "coeff": self.projector.coeff,
                "column_means": self.projector.column_means,
            }
        if self._moments is not None:
            header["moments"], own = self._moments.state()
            arrays |= {f"moments.{name}": array for name, array in own.items()}
        if scores:
            arrays["score"] = np.asarray(self.score)
        if self.sample_weight is not None and (scores or self.projector.grows_with_n):
            arrays["sample_weight"] = np.asarray(self.sample_weight, dtype=np.float64)
        return header, arrays

    @classmethod
    def from_state(
        cls, header: Any, arrays: dict[str, np.ndarray], *, plugins: bool | str | Collection[str] = False
    ) -> KPCAModel:
        """The model that ``state`` described, all of it checked (ModelFileError); ``plugins`` as for ``load``."""
        own = Record(header, arrays)
        own.keys(_KEYS, _OPTIONAL_KEYS)
        n, d = own.whole("n_samples", least=2, most=1 << 62), own.whole("n_features", least=1, most=1 << 62)
        dtype = np.dtype(own.text("dtype", ("float32", "float64")))
        shift = own.array("shift", (d,))
        eigenvalues = own.array("eigenvalues", (None,))
        c = len(eigenvalues)
        if not (1 <= c <= n and (np.diff(eigenvalues) <= 0).all() and eigenvalues[-1] > 0):
            raise own.refuse(f"its {c} eigenvalues of {n} rows are not positive and descending")
        bounds = own.array("eigenvalue_bounds", (c, 2), infinite=True)
        slack = 1e-9 * eigenvalues[0]
        if not (bounds[:, 0] <= bounds[:, 1]).all():
            raise own.refuse("an interval's ends are in the wrong order")
        if not ((bounds[:, 0] <= eigenvalues + slack) & (eigenvalues <= bounds[:, 1] + slack)).all():
            raise own.refuse("an eigenvalue lies outside its interval")
        angles = own.array("angle_bounds", (c,), least=0.0)
        if angles.max() > 1.5708:
            raise own.refuse("an angle is larger than a right one")
        clusters = own.array("clusters", (c,), kind="i", least=0)
        if clusters[0] != 0 or not np.isin(np.diff(clusters), (0, 1)).all():
            raise own.refuse("its clusters are not numbered one after the other")
        high = own.number("total_variance")
        ends = dict(enumerate(own.list("total_variance_bounds", 2)))
        total = Record({"low": ends[0], "high": ends[1]}, {}, "the total variance")
        if not total.number("low") <= total.number("high") == high:
            raise own.refuse("the ends of its total variance are in the wrong order")
        weight_sum = own.number("weight_sum", above=1.0) if "weight_sum" in own.header else None
        weights = _restore_weights(own, n, weight_sum)
        score = own.array("score", (n, c)) if "score" in own.arrays else None
        if score is not None and score.dtype != dtype:
            raise own.refuse(f"its scores are {score.dtype}, the model is {dtype}")
        kind = own.text("bound_kind", ("guaranteed", "probabilistic"))
        model = cls(
            eigenvalues=eigenvalues,
            eigenvalue_bounds=bounds,
            bound_kind=kind,
            failure_probability=_restore_failure_probability(own, kind),
            angle_bounds=angles,
            clusters=clusters,
            total_variance=high,
            total_variance_bounds=(total.number("low"), high),
            kernel=(kernel := kernel_from_state(own.get("kernel"), plugins=plugins)),
            plan=Plan.from_state(own.get("plan")),
            info=_checked_info(own.get("info")),
            n_samples=n,
            n_features=d,
            shift=shift,
            dtype=dtype,
            projector=(projector := _restore_projector(own, kernel, n, d, c, weights)),
            _score=score,
            sample_weight=weights,
            weight_sum=weight_sum,
            feature_names=_restore_names(own, d),
            _moments=_restore_moments(own, projector),
        )
        _try(model)
        return model


_KEYS = (
    "kernel",
    "bound_kind",
    "total_variance_bounds",
    "total_variance",
    "plan",
    "info",
    "n_samples",
    "n_features",
    "dtype",
)
_OPTIONAL_KEYS = ("failure_probability", "map", "moments", "weight_sum", "feature_names")
_ARRAYS = ("eigenvalues", "eigenvalue_bounds", "angle_bounds", "clusters", "shift")


def _restore_failure_probability(own: Record, kind: str) -> float:
    if "failure_probability" not in own.header:  # files without it: up to four searches, each failing with 1e-6
        return 0.0 if kind == "guaranteed" else 4e-6
    probability = own.number("failure_probability")
    if not (probability == 0.0 if kind == "guaranteed" else 0.0 < probability < 1.0):
        raise own.refuse(f"its intervals are {kind}, with a failure probability of {probability!r}")
    return probability


def _restore_names(own: Record, d: int) -> tuple[str, ...] | None:
    if "feature_names" not in own.header:
        return None
    names = own.list("feature_names", d)
    if not all(isinstance(name, str) for name in names):
        raise own.refuse("the names of its columns are not all strings")
    return tuple(names)


def _restore_weights(own: Record, n: int, weight_sum: float | None) -> np.ndarray | None:
    if "sample_weight" not in own.arrays:
        return None
    weights = own.array("sample_weight", (n,), least=0.0)
    if weight_sum is None or not abs(float(weights.sum()) - weight_sum) <= 1e-9 * weight_sum:
        raise own.refuse(f"the sum of its weights is {float(weights.sum()):.9g}, and it states {weight_sum}")
    return weights


def _restore_projector(
    own: Record, kernel: Kernel, n: int, d: int, c: int, weights: np.ndarray | None
) -> FeatureProjector | SampleProjector:
    if "map" not in own.header:
        own.names((*_ARRAYS, "X", "coeff", "column_means"), ("score", "sample_weight"))
        X, coeff, means = own.array("X", (n, d)), own.array("coeff", (n, c)), own.array("column_means", (n,))
        # orthonormal vectors over sqrt(eigenvalue), but for their means, which were taken away
        norms = np.sqrt(np.einsum("ij,ij->j", coeff, coeff, dtype=np.float64) * own.arrays["eigenvalues"])
        if not norms.max() < 1.01 and "weight_sum" not in own.header:
            raise own.refuse("its coefficients are too large for its eigenvalues")
        if weights is None and "weight_sum" in own.header:  # files of models without scores left them out once
            weights = np.empty(0)
        return SampleProjector(X, coeff, means, weights)
    arrays = {name[4:]: array for name, array in own.arrays.items() if name.startswith("map.")}
    moments = [name for name in own.arrays if name.startswith("moments.")] if "moments" in own.header else []
    own.names((*_ARRAYS, "axes", "mean", *(f"map.{name}" for name in arrays), *moments), ("score", "sample_weight"))
    axes = own.array("axes", (None, c))
    mean = own.array("mean", (len(axes),))
    if not np.abs(axes.T @ axes - np.eye(c)).max() < 1e-6:
        raise own.refuse("its axes are not orthonormal")
    return FeatureProjector(restore_map(kernel, own.get("map"), arrays, n_features=len(axes), n_columns=d), axes, mean)


def _restore_moments(own: Record, projector: FeatureProjector | SampleProjector) -> Moments | None:
    if "moments" not in own.header:
        return None
    if not isinstance(projector, FeatureProjector):
        raise own.refuse("it has moments and no feature map")
    arrays = {name[8:]: array for name, array in own.arrays.items() if name.startswith("moments.")}
    found = Record(own.get("moments"), arrays, "the moments")
    found.keys(("count", "residual_trace"))
    count = found.number("count", above=0.0)
    found.number("residual_trace", least=0.0)
    if abs(count - own.header.get("weight_sum", own.header["n_samples"])) > 1e-9 * count:
        raise found.refuse(f"they are of {count:.9g} rows, the model of {own.header['n_samples']}")
    D = projector.map.n_features
    # of the size of what is in the file, before anything of that size is made
    if "scatter" in arrays:
        found.array("scatter", (D, D))
    with refusing("the moments"):
        return projector.map.new_moments().restore(dict(found.header), arrays)


def restore_map(
    kernel: Kernel, header: Any, arrays: dict[str, np.ndarray], *, n_features: int, n_columns: int
) -> FeatureMap:
    """The feature map of a model file, with as many features and for rows of as many columns as the model has.

    Both are compared before anything of that size is made. Raises ModelFileError.
    """
    own = Record(header, arrays, "the feature map")
    size = stored_size(header, arrays, n_columns, n_features)
    if size is not None and size != n_features:
        raise own.refuse(f"it has {size} features, the model {n_features}")
    with refusing("the feature map"):
        found = restored(guarded(kernel), dict(own.header), arrays)
        if found.n_features != n_features:
            raise own.refuse(f"it has {found.n_features} features, the model {n_features}")
    return found


def _checked_info(info: Any) -> dict:
    own = Record(info, {}, "what the model says of its making")
    for key, value in own.header.items():
        if isinstance(value, dict) or (isinstance(value, list) and not _numbers(value)):
            raise own.refuse(f"{key[:60]} is neither a value nor a list of numbers")
    if "seconds" in own.header:
        own.number("seconds", least=0.0)
    return dict(own.header)


def _numbers(value: Any) -> bool:
    """Numbers, or lists of them, as in a history of (pass, width)."""
    return all(map(_numbers, value)) if isinstance(value, list) else type(value) in (int, float)


def _try(model: KPCAModel) -> None:
    """Project one row: what fits together by type and shape may still not work, and here is where that is told."""
    own = guarded(model.kernel)
    if model.kernel.by_number:  # its rows are numbers of rows, and the matrix is not in the file
        rows = model.projector.X if isinstance(model.projector, SampleProjector) else np.empty((0, 1))
        if len(rows) == 0 or not np.array_equal(rows, np.arange(float(len(rows)))[:, None]) or model.shift.any():
            raise ModelFileError("the rows of a precomputed kernel's model are not their numbers")
        return
    if not model.kernel.takes_points:
        return  # what they stand for is not in the file
    if isinstance(model.projector, SampleProjector):
        row = model.projector.X[:1]
    else:
        landmarks = model.projector.map.landmarks
        row = np.zeros((1, model.n_features)) if landmarks is None else landmarks[:1]
    out = np.empty((1, model.n_components), dtype=model.dtype)
    with refusing("the model"):
        model.projector.project(own, Rows(np.array(row, dtype=np.float64)), out, 1)
    if not np.isfinite(out).all():
        raise ModelFileError("the model does not project rows to finite scores: its kernel, map and weights do not fit")


def _unpickled(parts: dict, plan: dict, state: tuple[dict, dict[str, np.ndarray]] | None) -> KPCAModel:
    projector = parts["projector"]
    if state is not None:
        own = restore_map(parts["kernel"], *state, n_features=len(projector.axes), n_columns=parts["n_features"])
        projector = replace(projector, map=own)
        if parts["_moments"] is not None:
            parts = parts | {"_moments": own.new_moments().restore(*parts["_moments"])}
    return KPCAModel(**parts | {"plan": Plan.from_state(plan), "projector": projector})


def save(model: KPCAModel, path: Any, *, overwrite: bool = False, scores: bool = False) -> None:
    """Write a model to a file: JSON and raw arrays under one checksum, never pickle.

    Parameters
    ----------
    model : KPCAModel
    path : str or Path
    overwrite : bool
        False: an existing file is left alone and FileExistsError raised.
    scores : bool
        Keep the scores of the training rows too; the file then grows with their number.

    Raises
    ------
    ValueError
        The kernel has no registered name under which ``load`` could find it; or the name ends in ".mat", which
        ``export_mat`` is for.
    ScoresNotKeptError
        ``scores=True`` for a model that does not hold them.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> fk.save(fk.kpca(X, "polynomial", 2, degree=2), "rows.kpca")
    >>> fk.load("rows.kpca").n_components
    2
    """
    check_model(model)
    if str(path).lower().endswith(".mat"):
        raise ValueError(
            f"{str(path)!r} is named as a file of MATLAB's, and save writes fastkpca's own format: export_mat(model, "
            f"{str(path)!r}) writes one for MATLAB; for load give another name, as in 'model.kpca'"
        )
    header, arrays = model.state(scores=scores)
    try:
        files.write(path, header, arrays, overwrite=overwrite)
    except FileExistsError as error:
        raise FileExistsError(f"{error}; save(..., overwrite=True) replaces it") from None


def load(path: Any, *, plugins: bool | str | Collection[str] = False) -> KPCAModel:
    """Read a model that ``save`` wrote.

    Nothing in a file is executed, and nothing that it names is imported unless ``plugins`` allows it.

    Parameters
    ----------
    path : str or Path
    plugins : bool, str or collection of str, default False
        Kernels of which other distributions may be imported: none; any that is installed (True); or those named, as in
        ``plugins=["fastkpca-kernels-contrib"]`` or, for one kernel, ``["fastkpca-kernels-contrib:matern"]``. Kernels
        that you registered in this session need no permission.

    Returns
    -------
    KPCAModel

    Raises
    ------
    ModelFileError
        The file is truncated, altered, of an unknown version, or no model; what it says does not fit together; or its
        kernel is not allowed, or not installed here: the text says which one, of which distribution and version.
    FileNotFoundError

    Warns
    -----
    PluginWarning
        The kernel's distribution is installed in another version than the one that wrote the file.
    """
    header, arrays = files.read(path)
    try:
        return KPCAModel.from_state(header, arrays, plugins=plugins)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def check_model(model: Any) -> None:
    """Raise TypeError unless ``model`` is a KPCAModel; an estimator of ``fastkpca.sklearn`` holds one as ``model_``."""
    if isinstance(model, KPCAModel):
        return
    if isinstance(getattr(model, "model_", None), KPCAModel):
        hint = "give its attribute model_, which is what kpca() returned"
    elif isinstance(model, type) or hasattr(model, "get_params"):
        hint = "fit an estimator of fastkpca.sklearn first, and give its attribute model_"
    else:
        hint = "give what kpca() or load() returned"
    raise TypeError(f"model is of type {type(model).__name__}; {hint}")


class NewRows(NamedTuple):
    """Rows as a model takes them.

    Attributes
    ----------
    kernel : Kernel
        That compares them with the training rows.
    rows : Rows
        In the model's coordinates (shifted).
    dtype : dtype
        Of what is computed of them: float32 where both these rows and those of the model are.
    """

    kernel: Kernel
    rows: Rows
    dtype: np.dtype


def new_rows(
    model: Any,
    X: Any,
    *,
    name: str = "X",
    purpose: str = "kpca_project",
    sample_weight: Any = None,
    finite: bool = True,
) -> NewRows:
    """The one way in for rows that a model was not made of: their type, columns, names, weights and shift.

    Parameters
    ----------
    model : KPCAModel
    X : array_like (m, d)
        For a precomputed kernel the (m, N) matrix between new and training rows.
    name, purpose : str
        What the user knows them as, and the function that needs them; for the texts of errors.
    sample_weight : array_like (m,), optional
    finite : bool
        Whether to look for NaN and infinity. False: a later pass does.

    Raises
    ------
    TypeError, ValueError
        As ``validate.as_rows``; or the columns are not those of the training rows.
    """
    check_model(model)
    own = guarded(model.kernel)
    kernel, X = own.bind(X, range(model.n_samples))
    rows = validate.as_rows(X, name=name, purpose=purpose)
    if kernel is own:  # else the rows are not coordinates
        validate.check_columns(model.n_features, rows.n_features, name=name)
        validate.check_names(model.feature_names, X, name=name)
    if finite:
        validate.check_finite(rows, name=name, purpose=purpose)
    if sample_weight is not None:
        rows = rows.weighted(validate.check_weights(sample_weight, rows.n_samples, fit=False))
    single = rows.dtype == np.float32 and model.dtype == np.float32
    shift = None if kernel.translation is None else model.shift  # without one, what float64 would round is refused
    return NewRows(kernel, rows.shifted(shift), np.dtype(np.float32 if single else np.float64))

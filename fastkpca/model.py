"""What kpca returns: a frozen result that unpacks in MATLAB's order, and its projectors.

A FeatureProjector holds D x c numbers whatever N was; a SampleProjector holds the training rows and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from . import execute, files
from ._plan import Plan
from .errors import ModelFileError, ScoresNotKeptError
from .features.passes import apply
from .features.pivots import PivotMap
from .kernels import guarded, kernel_from_state, kernel_state
from .protocol import FeatureMap, Kernel, Moments
from .rows import Rows
from .sources import Sink
from .summation.exact import ExactSummation

__all__ = ["FeatureProjector", "KPCAModel", "SampleProjector", "load", "restore_map", "save"]


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
        constant = self.mean @ self.axes
        apply(self.map, rows, self.axes, n_threads, constant=constant, out=out, progress=progress, stage="scores")


@dataclass(frozen=True, eq=False)
class SampleProjector:
    """Projects through the training rows: (k(x, X) - column means)' coeff. Its size grows with their number.

    Attributes
    ----------
    X : ndarray (N, d)
        Training rows, after the shift.
    coeff : ndarray (N, c)
    column_means : ndarray (N,)
        Of the Gram matrix of the training rows.
    """

    X: np.ndarray
    coeff: np.ndarray
    column_means: np.ndarray
    grows_with_n = True

    def project(self, kernel: Kernel, rows: Rows, out: Any, n_threads: int, progress: Any = None) -> None:
        # blocks of rows: K(new, train) @ coeff never exists for all of them at once
        step = execute.tile_rows(64)
        train = Rows(self.X)
        constant = self.column_means @ self.coeff
        n = rows.n_samples
        sink = Sink(out)
        for start in range(0, n, step):
            stop = min(n, start + step)
            block = Rows(rows.tile(start, stop))
            product = ExactSummation(kernel, block, train, n_threads=n_threads)
            sink.write(product.matmat(np.ascontiguousarray(self.coeff, dtype=np.float64)) - constant)
            if progress is not None:
                progress("scores", stop, n)
        sink.close()


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
    sample_weight : ndarray (N,) or None
        Weights of the training rows, where there were any and the scores are kept.
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
    info: dict
    n_samples: int
    n_features: int
    shift: np.ndarray
    dtype: np.dtype
    projector: FeatureProjector | SampleProjector
    _score: np.ndarray | None = field(default=None)
    sample_weight: np.ndarray | None = field(default=None)
    weight_sum: float | None = None
    _moments: Moments | None = field(default=None)

    @property
    def n_components(self) -> int:
        return len(self.eigenvalues)

    @property
    def latent(self) -> np.ndarray:
        """Variances of the components, eigenvalues / (N - 1), shape (c,); with weights N is their sum."""
        return self.eigenvalues / ((self.n_samples if self.weight_sum is None else self.weight_sum) - 1)

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
            f"{self.bound_kind} intervals within {width:.1e} of the largest eigenvalue{grows}>"
        )

    def state(self, *, scores: bool = False) -> tuple[dict, dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        header: dict[str, Any] = {
            "kernel": kernel_state(self.kernel),
            "bound_kind": self.bound_kind,
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
            if self.sample_weight is not None:
                arrays["sample_weight"] = np.asarray(self.sample_weight, dtype=np.float64)
        return header, arrays

    @classmethod
    def from_state(cls, header: dict, arrays: dict[str, np.ndarray]) -> KPCAModel:
        """The model that ``state`` described; a header or arrays that do not fit raise ModelFileError."""
        try:
            kernel = kernel_from_state(header["kernel"])
            projector: FeatureProjector | SampleProjector
            if "map" in header:
                own = {name[4:]: array for name, array in arrays.items() if name.startswith("map.")}
                projector = FeatureProjector(
                    restore_map(guarded(kernel), header["map"], own), arrays["axes"], arrays["mean"]
                )
            else:
                projector = SampleProjector(arrays["X"], arrays["coeff"], arrays["column_means"])
            moments = None
            if "moments" in header and isinstance(projector, FeatureProjector):
                own = {name[8:]: array for name, array in arrays.items() if name.startswith("moments.")}
                moments = projector.map.new_moments().restore(header["moments"], own)
            low, high = header["total_variance_bounds"]
            model = cls(
                eigenvalues=arrays["eigenvalues"],
                eigenvalue_bounds=arrays["eigenvalue_bounds"],
                bound_kind=header["bound_kind"],
                angle_bounds=arrays["angle_bounds"],
                clusters=arrays["clusters"],
                total_variance=header["total_variance"],
                total_variance_bounds=(low, high),
                kernel=kernel,
                plan=Plan.from_state(header["plan"]),
                info=header["info"],
                n_samples=header["n_samples"],
                n_features=header["n_features"],
                shift=arrays["shift"],
                dtype=np.dtype(header["dtype"]),
                projector=projector,
                _score=arrays.get("score"),
                sample_weight=arrays.get("sample_weight"),
                weight_sum=header.get("weight_sum"),
                _moments=moments,
            )
        except (KeyError, TypeError) as error:
            raise ModelFileError(
                f"the file is a fastkpca file but not a model: {error!r} is missing or wrong"
            ) from error
        return model


def restore_map(kernel: Kernel, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
    """The map that ``FeatureMap.state`` described."""
    if header["map"] == "pivots":  # the core's own, for any kernel
        return PivotMap.from_state(kernel, header, arrays)
    return kernel.feature_map_from_state(header, arrays)


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
        The kernel has no registered name under which ``load`` could find it.
    ScoresNotKeptError
        ``scores=True`` for a model that does not hold them.
    """
    if not isinstance(model, KPCAModel):
        raise TypeError(f"model is a {type(model).__name__}; give what kpca() returned")
    header, arrays = model.state(scores=scores)
    try:
        files.write(path, header, arrays, overwrite=overwrite)
    except FileExistsError as error:
        raise FileExistsError(f"{error}; save(..., overwrite=True) replaces it") from None


def load(path: Any) -> KPCAModel:
    """Read a model that ``save`` wrote.

    Raises
    ------
    ModelFileError
        The file is truncated, altered, of an unknown version, or no model.
    UnknownKernelError
        Its kernel is not installed here.
    """
    return KPCAModel.from_state(*files.read(path))

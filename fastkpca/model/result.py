"""The result of kpca: frozen, unpacks in MATLAB's order; its file, and its pickle."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import files, parallel
from ..base.caching import cached_property
from ..base.checks import check_flag
from ..base.protocol import Moments
from ..base.spelling import did_you_mean
from ..base.stored import Record, refusing
from ..errors import ModelFileError, ScoresNotKeptError
from ..kernels import Kernel, guarded, kernel_from_state, kernel_state
from ..maps.draws import Reservoir, read_reservoir
from ..rows.view import Rows
from . import reading
from .limits import Limits, read_limits
from .notebook import Reported, html_table
from .plan import Plan
from .reading import Projector

NAMES_OF_OTHERS = {
    "fastkpca.kpca_project(model, X)": ("transform", "predict", "project"),
    "fastkpca.kpca_preimage(model, Z)": ("inverse_transform",),
    "fastkpca.kpca(X, kernel, c)": ("fit",),
    "fastkpca.save(model, path)": ("save",),
    "fastkpca.plot.scores(model)": ("plot",),
    "model.score": ("scores", "x_transformed", "rotated", "embedding"),
    "model.explained / 100": ("explained_variance_ratio",),
    "model.latent": ("explained_variance",),
    "model.coeff": ("eigenvectors", "dual_coef", "alphas", "pcv"),
    "model.coeff times the rows, for the linear kernel: (X - X.mean(axis=0)).T @ model.coeff, shape (d, c); other "
    "kernels have no loadings": ("components", "loadings", "rotation"),
    "model.eigenvalues": ("lambdas", "eig"),
    "model.plan.method": ("method",),
    "model.kernel.sigma (parameters are those of model.kernel)": ("sigma",),
    "model.info (its entry 'tol')": ("tol",),
    "model.feature_names": ("columns", "feature_names_in"),
    "model.n_features": ("n_features_in",),
    "model.shift": ("mean", "mu"),
    "model.tsquared (of new rows: fastkpca.kpca_t2(model, X))": ("t2",),
    "fastkpca.kpca_spe(model, X)": ("spe", "q"),
}
OTHER_NAMES = {name: here for here, names in NAMES_OF_OTHERS.items() for name in names}
"""Names of the attributes of a model in scikit-learn, R and MATLAB, in small letters and without the underscore at
the end.
"""
PLAIN = (
    "bound_kind",
    "failure_probability",
    "total_variance",
    "total_variance_bounds",
    "info",
    "n_samples",
    "n_features",
    "weight_sum",
    "center",
    "feature_names",
    "_left_out",
    "_added",
)
"""Attributes that the header of a model's file holds unchanged."""
SPECTRUM = ("eigenvalues", "eigenvalue_bounds", "angle_bounds", "clusters")
"""A model's own arrays with an entry for each component, all but the first as the certificate has them. To add one,
compute it there, name it here, make it a field of ``KPCAModel``, and check it in ``_read_spectrum``."""
ARRAYS = (*SPECTRUM, "shift", "scale")
"""Arrays of a model's file, apart from those of the projector, the moments and the limits."""


@dataclass(frozen=True, eq=False, repr=False)
class KPCAModel(Reported):
    """A fitted kernel PCA. Unpacks as ``coeff, score, latent, tsquared, explained = model``.

    Attributes
    ----------
    eigenvalues : ndarray (c,), float64
        Eigenvalues of the centred Gram matrix (with ``center=False`` of the Gram matrix), descending.
    eigenvalue_bounds : ndarray (c, 2), float64
        An interval around each eigenvalue.
    bound_kind : str
        "guaranteed" or "probabilistic".
    failure_probability : float
        Bound on the probability, over the random numbers drawn, that an interval does not hold; 0.0 where
        ``bound_kind`` is "guaranteed".
    angle_bounds : ndarray (c,)
        Bound on the angle (radians) between the computed and the true invariant subspace of each cluster.
        The last cluster may contain more eigenvalues than were returned. Its angle is then to the larger subspace of
        all of them.
    clusters : ndarray (c,), int
        Eigenvalues with one label cannot be told apart within their bounds.
    total_variance : float
        tr(Kc) / (N - 1). Where a truncated feature map was used without an exact pass this is the upper end of
        ``total_variance_bounds``, so ``explained`` is then a lower bound.
    total_variance_bounds : tuple of float
    kernel : Kernel
        With every parameter resolved.
    plan : Plan
        What was run, and why.
    info : dict
        How the fit went: method, seconds, passes, n_features, ...
    n_samples, n_features : int
        Number of training rows and of their columns.
    feature_names : tuple of str or None
        Names of the columns, where the rows were a data frame with names. Frames that are projected must have the same
        names in the same order.
    sample_weight : ndarray (N,) or None
        Weights of the training rows, where these had weights and the model holds the rows or their scores.
    weight_sum : float or None
        The sum of the weights, which takes the place of N in the variances.
    center : bool
        Whether the Gram matrix was centred. If not, the eigenvalues are those of the Gram matrix itself, and N takes
        the place of N - 1 in the variances.
    scale : ndarray (d,) or None
        What the columns were divided by, after ``shift`` was subtracted; None: by nothing.
    spe_components : int or None
        Number of leading components that SPE is measured from: the distance from their span, while T^2 is the size in
        all components; None: from all components.
    limits : Limits or None
        Control limits that the model keeps, in its file too: those given to ``with_limits``.
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
    projector: Projector
    _score: np.ndarray | None = field(default=None)
    sample_weight: np.ndarray | None = field(default=None)
    feature_names: tuple[str, ...] | None = None
    weight_sum: float | None = None
    failure_probability: float = 0.0
    center: bool = True
    scale: np.ndarray | None = None
    _moments: Moments | None = field(default=None)
    _left_out: tuple[float, float] | None = field(default=None)
    """Bound on the largest eigenvalue of the feature map's residual, and its failure probability."""
    _added: tuple[tuple[int, float], ...] = ()
    """Blocks of features that were added after rows had been read, and are zero for these: the number of the first one,
    and a bound on the largest eigenvalue of the moment of what these rows lack (``fit.merge.cross_error``)."""
    _reservoir: Reservoir | None = field(default=None, repr=False)
    """Rows that bound what the others lack of features that are added later."""
    limits: Limits | None = None
    spe_components: int | None = None

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
        return self.eigenvalues / (self.count - self.center)

    @property
    def lags(self) -> int:
        """Number of rows before each one whose columns are further columns of it: ``kpca_baseline(X, lags=2)``."""
        return int(self.info.get("lags", 0))

    def with_limits(self, limits: Limits) -> KPCAModel:
        """The same model, which keeps these limits of ``kpca_limits``; with None it keeps none."""
        if not isinstance(limits, Limits | None):
            raise TypeError(f"limits is of type {type(limits).__name__}; give what kpca_limits(model, X) returned")
        columns = None if limits is None or limits.quantiles is None else limits.quantiles.shape[1]
        if columns not in (None, self.n_features):
            raise ValueError(f"the limits are of rows of {columns} columns, the model of {self.n_features}")
        return replace(self, limits=limits)

    def in_units_of_rows(self, X: np.ndarray) -> np.ndarray:
        """Rows in the model's coordinates, as the user's rows are: scaled and shifted back."""
        return (X if self.scale is None else X * self.scale) + self.shift

    @property
    def mean_residual(self) -> float:
        """Mean of the feature map's residual k(x, x) - |phi(x)|^2 over the training rows; zero without a map."""
        return max(float(self.info.get("residual_trace", 0.0)), 0.0) / self.count

    @property
    def explained(self) -> np.ndarray:
        """Percent of the total variance (the whole trace) that each component explains, shape (c,).

        Negative eigenvalues of a kernel that does not declare itself positive semidefinite reduce the trace: the sum
        may exceed 100, and a share of 60 may be one of 30 of the positive part. nan where the trace is not positive.
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
        if self.projector.coeff is not None:
            return self.projector.coeff.astype(self.dtype, copy=False)
        coeff = self.score / self.eigenvalues
        w = 1.0 if self.sample_weight is None else np.asarray(self.sample_weight, dtype=np.float64)[:, None]
        if self.center:  # columns sum to zero, but for the error of a map's transforms divided by a small eigenvalue
            coeff = coeff - (w * coeff).sum(axis=0) / self.count
        return (w * coeff).astype(self.score.dtype, copy=False)

    @cached_property
    def tsquared(self) -> np.ndarray:
        """Hotelling's T^2 of the training rows over the kept components, shape (N,)."""
        return np.sum(self.score.astype(np.float64, copy=False) ** 2 / self.latent, axis=1)

    @property
    def bounds_text(self) -> str:
        """``bound_kind`` as text, with the failure probability where there is one, and whether intervals are of second
        order (``info["residual_rows"]``)."""
        order = "second-order " if "residual_rows" in self.info else ""
        failing = f" (failure probability {self.failure_probability:.2g})" if self.failure_probability else ""
        return order + self.bound_kind + failing

    @property
    def explained_of(self) -> str:
        """Name of the total that ``explained`` is a fraction of."""
        return "the variance" if self.kernel.positive_semidefinite else "a trace that negative eigenvalues may reduce"

    def __iter__(self) -> Iterator[np.ndarray]:
        yield from (self.coeff, self.score, self.latent, self.tsquared, self.explained)

    def __repr__(self) -> str:
        grows = ", model grows with n_samples" if self.projector.grows_with_n else ""
        of_what = "" if self.kernel.positive_semidefinite else f" of {self.explained_of}"
        explaining = f" explaining {self.explained.sum():.4g} %{of_what}" if self.total_variance > 0 else ""
        how = ", not centred" * (not self.center) + ", standardized columns" * (self.scale is not None)
        return (
            f"<KPCAModel: {self.kernel!r}{how}, {self.n_components} components{explaining}, "
            f"n_samples={self.n_samples}, n_features={self.n_features}, method={self.plan.method!r}, "
            f"{self.bounds_text} intervals within {widest_interval(self):.1e} of the largest eigenvalue{grows}>"
        )

    if not TYPE_CHECKING:  # a type checker then still finds wrong names

        def __getattr__(self, name: str) -> Any:
            """The error for a name that is not there says what other libraries' names are called here."""
            if name in vars(type(self)):  # a property that raised AttributeError: its own error counts
                return object.__getattribute__(self, name)
            text = f"a KPCAModel has no attribute {name!r}"
            if name.startswith("__"):
                raise AttributeError(text)
            here = OTHER_NAMES.get(name.removesuffix("_").lower())
            near = did_you_mean(name, [x for x in dir(type(self)) if not x.startswith("_")] + list(vars(self)))
            raise AttributeError(f"{text}; here it is {here}" if here else f"{text}{near and f'; {near}'}")

    def _repr_html_(self) -> str:
        """The model in a notebook: what it is, and its components."""
        heads, lines = component_table(self, digits=6)
        more = f"and {len(lines) - 10} more" if len(lines) > 10 else ""
        return html_table("Kernel PCA", facts(self).items(), heads, lines[:10], more)

    def __reduce__(self) -> tuple:
        """For pickle and copy: the plan loses the functions of its offers."""
        parts = {x.name: vars(self)[x.name] for x in fields(self)}
        return _unpickled, (parts | {"plan": None}, self.plan.state())

    def state(self, *, scores: bool = False) -> tuple[dict, dict[str, np.ndarray]]:
        """(header, arrays) for the model file."""
        check_flag(scores, "scores")
        plain = {name.lstrip("_"): vars(self)[name] for name in PLAIN}
        header = {name: list(x) if isinstance(x, tuple) else x for name, x in plain.items()}
        header |= {"kernel": kernel_state(self.kernel), "plan": self.plan.state(), "dtype": self.dtype.name}
        arrays = {name: vars(self)[name] for name in ARRAYS if vars(self)[name] is not None}
        of_projector, arrays_of_projector = self.projector.state()
        header |= of_projector
        arrays |= arrays_of_projector
        if self.spe_components is not None:
            header["spe_components"] = self.spe_components
        for name, part in (("moments", self._moments), ("limits", self.limits), ("reservoir", self._reservoir)):
            if part is not None:
                header[name], of_part = part.state()
                arrays |= {f"{name}.{key}": array for key, array in of_part.items()}
        if scores:
            arrays["score"] = np.asarray(self.score)
        if self.sample_weight is not None and (scores or self.projector.grows_with_n):
            arrays["sample_weight"] = np.asarray(self.sample_weight, dtype=np.float64)
        return header, arrays

    @classmethod
    def from_state(
        cls, header: Any, arrays: dict[str, np.ndarray], *, plugins: bool | str | Collection[str] = False
    ) -> KPCAModel:
        """The model that ``state`` described; each value is checked (ModelFileError). ``plugins`` as for ``load``."""
        record = Record(header, arrays)
        n, d = record.whole("n_samples", least=2, most=1 << 62), record.whole("n_features", least=1, most=1 << 62)
        dtype = np.dtype(record.text("dtype", ("float32", "float64")))
        spectrum = _read_spectrum(record, n)
        c = len(spectrum["eigenvalues"])
        weight_sum, weights = reading.read_weights(record, n)
        kernel = kernel_from_state(record.get("kernel"), plugins=plugins)
        center = record.flag("center")
        projector = reading.read_projector(record, kernel, (n, d, c), weights, center=center)
        model = cls(
            **spectrum,
            **reading.read_kind(record),
            **reading.read_total_variance(record),
            kernel=kernel,
            plan=Plan.from_state(record.get("plan")),
            info=reading.read_info(record.get("info")),
            n_samples=n,
            n_features=d,
            shift=record.array("shift", (d,)),
            dtype=dtype,
            projector=projector,
            _score=reading.read_score(record, n, c, dtype),
            sample_weight=weights,
            weight_sum=weight_sum,
            feature_names=record.strings("feature_names", d),
            center=center,
            scale=record.array_or_none("scale", (d,), least=np.finfo(np.float64).tiny),
            _moments=reading.read_moments(record, projector),
            _left_out=reading.read_left_out(record),
            _added=reading.read_added(record, projector),
            _reservoir=read_reservoir(record, d),
            limits=read_limits(record, d),
            spe_components=record.whole("spe_components", least=1, most=c) if "spe_components" in header else None,
        )
        record.refuse_the_rest()
        _try(model)
        return model


def _read_spectrum(record: Record, n: int) -> dict[str, Any]:
    """Eigenvalues of n rows, their intervals, angles and clusters."""
    eigenvalues = record.array("eigenvalues", (None,))
    c = len(eigenvalues)
    if not (1 <= c <= n and (np.diff(eigenvalues) <= 0).all() and eigenvalues[-1] > 0):
        raise record.refuse(f"its {c} eigenvalues of {n} rows are not positive and descending")
    bounds = record.array("eigenvalue_bounds", (c, 2), infinite=True)
    slack = 1e-9 * eigenvalues[0]
    if not (bounds[:, 0] <= bounds[:, 1]).all():
        raise record.refuse("an interval's ends are in the wrong order")
    if not ((bounds[:, 0] <= eigenvalues + slack) & (eigenvalues <= bounds[:, 1] + slack)).all():
        raise record.refuse("an eigenvalue lies outside its interval")
    angles = record.array("angle_bounds", (c,), least=0.0)
    if angles.max() > 1.5708:
        raise record.refuse("an angle is larger than a right angle")
    clusters = record.array("clusters", (c,), kind="i", least=0)
    if clusters[0] != 0 or not np.isin(np.diff(clusters), (0, 1)).all():
        raise record.refuse("its clusters are not numbered one after the other")
    return {name: record.arrays[name] for name in SPECTRUM}


def _try(model: KPCAModel) -> None:
    """Project one row: a model whose parts fit by type and shape may still not work (ModelFileError)."""
    landmarks = model.projector.landmarks
    if model.kernel.by_number:  # its rows are numbers of rows, and the matrix is not in the file
        numbers = np.arange(float(model.n_samples))[:, None]
        held = model.projector.grows_with_n and landmarks is not None and np.array_equal(landmarks, numbers)
        if not held or model.shift.any():
            raise ModelFileError("the rows of a precomputed kernel's model are not their numbers")
        if model.kernel.knows_diagonal:  # of objects, which are in the file
            with refusing("the model"):
                model.kernel.block(numbers[-1:], numbers[-1:])
        return
    if not model.kernel.takes_points:
        return  # what its rows stand for is not in the file
    row = np.zeros((1, model.n_features)) if landmarks is None else landmarks[:1]
    out = np.empty((1, model.n_components), dtype=model.dtype)
    with refusing("the model"), parallel.blas_threads():  # what is prepared here keeps the bits of one thread
        model.projector.project(guarded(model.kernel), Rows(np.array(row, dtype=np.float64)), out, 1)
    if not np.isfinite(out).all():
        raise ModelFileError("the model does not project rows to finite scores: its kernel, map and weights do not fit")


def _unpickled(parts: dict, plan: dict) -> KPCAModel:
    return KPCAModel(**parts | {"plan": Plan.from_state(plan)})


def widest_interval(model: KPCAModel, c: int | None = None) -> float:
    """The width of the widest interval, of the first c, over the largest eigenvalue."""
    return float(np.ptp(model.eigenvalue_bounds[:c], axis=1).max() / model.eigenvalues[0])


def facts(model: KPCAModel) -> dict[str, str]:
    """Description of a model and of the accuracy of its eigenvalues, for the command line and notebooks."""
    low, high = model.total_variance_bounds
    explained = "not defined: negative eigenvalues outweigh the others"
    if model.total_variance > 0:
        # where the total variance is an interval, explained refers to its upper end
        least = "at least " * (low < high * (1 - 1e-9))
        explained = f"{least}{model.explained.sum():.3f} % of {model.explained_of}"
    return {
        "kernel": repr(model.kernel),
        "method": model.plan.method,
        "rows": str(model.n_samples),
        "columns": str(model.n_features),
        "components": str(model.n_components),
        **{name: model.info[name] for name in ("chosen", "filled") if name in model.info},
        "explained": explained,
        **({} if model.limits is None else {"limits": str(model.limits)}),
        "intervals": f"{model.bounds_text}, at most {widest_interval(model):.1e} of the largest eigenvalue wide",
    }


def component_table(model: KPCAModel, digits: int) -> tuple[list[str], list[tuple[str, ...]]]:
    """(heads of the columns, the cells of each component): what the command line and a notebook show."""
    low, high = model.eigenvalue_bounds.T
    columns = {"eigenvalue": model.eigenvalues, "lower end": low, "upper end": high}
    cells = {"PC": [str(i + 1) for i in range(model.n_components)]}
    cells |= {head: [f"{value:.{digits}g}" for value in values] for head, values in columns.items()}
    cells["explained"] = [f"{percent:.3f} %" if np.isfinite(percent) else "unknown" for percent in model.explained]
    return list(cells), list(zip(*cells.values()))


def leading(model: KPCAModel, signs: np.ndarray) -> KPCAModel:
    """The model of the first ``len(signs)`` components, each times its sign."""
    c = len(signs)
    return replace(
        model,
        **{name: vars(model)[name][:c] for name in SPECTRUM},
        projector=model.projector.leading(signs),
        _score=None if model._score is None else model._score[:, :c] * signs,
        limits=None,
        spe_components=None,
    )


def of_spe(model: KPCAModel) -> KPCAModel:
    """The model of the components that SPE is measured from."""
    b = model.spe_components
    return model if b in (None, model.n_components) else leading(model, np.ones(b))


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
        The kernel has no registered name under which ``load`` could find it; or ``path`` ends in ".mat", which is for
        ``export_mat``.
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
    model = check_model(model)
    if str(path).lower().endswith(".mat"):
        raise ValueError(
            f"{str(path)!r} has the ending of MATLAB's files, and save writes fastkpca's own format: export_mat(model, "
            f"{str(path)!r}) writes a file for MATLAB; for load give another name, as in 'model.kpca'"
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
        The distributions whose kernels may be imported: none; any that is installed (True); or those named, as in
        ``plugins=["fastkpca-kernels-contrib"]`` or, for one kernel, ``["fastkpca-kernels-contrib:matern"]``. Kernels
        that you registered in this session need no permission.

    Returns
    -------
    KPCAModel

    Raises
    ------
    ModelFileError
        The file is truncated, altered, of an unknown version, or no model; its values contradict each other; or its
        kernel is not allowed, or not installed here: the text names it, with its distribution and version.
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


def check_model(model: Any, name: str = "model") -> KPCAModel:
    """The model that is given, or that of a fitted estimator of fastkpca.sklearn; TypeError where it is neither."""
    found = model
    if not isinstance(model, KPCAModel):
        with contextlib.suppress(AttributeError):
            found = model.model_
    if not isinstance(found, KPCAModel):
        raise TypeError(
            f"{name} is of type {type(model).__name__}; give what kpca() or load() returned, or a fitted estimator of "
            "fastkpca.sklearn (of a pipeline that step, as in pipeline[-1])"
        )
    return found

"""The contract between the core and every kernel, built in or from outside.

The core speaks to kernels in *tiles*, never in pairs of points. A tile ``X`` is a C-contiguous array of shape
(n, d), float64 unless the method says otherwise, rows are observations, and ``Summary.shift`` has already been
subtracted from it in float64 where ``Kernel.translation`` allows that. Tiles are read-only to the kernel.

One idea carries the library: a feature map phi with

    K = Phi Phi' + (positive semidefinite) + (entries at most ``defect`` in size),

computed tile by tile, and the trace of what it misses known at every point (``FeatureMap.residual``). A kernel that
has only ``block`` already works at any size; one that offers feature maps (``Kernel.feature_maps``) or fast products
(``Kernel.summations``) gets faster without the core changing.

This module imports the compiled second moments, ``base.rounding``, ``base.differences`` and ``errors``.
API_VERSION is 1: frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from .._core import moments as _moments
from .._core.arrays import contiguous
from ..base.rounding import EPS, UNIT, rounding_factor
from ..errors import KernelParameterError
from .caching import cached_property
from .checks import as_float
from .differences import central_difference
from .spelling import did_you_mean

API_VERSION = 1

GradientSums: TypeAlias = Callable[[np.ndarray | None, np.ndarray], np.ndarray]
"""(R, A) -> sum_j R_ij A_jk grad k(x_i, y_j), the gradient with respect to x_i: (n, k, d). R None: all ones."""

MAX_ABS_VALUE = 1e140
MIN_ABS_VALUE = float(np.reciprocal(MAX_ABS_VALUE))
"""The range of what is squared: the rows (the largest coordinate, after the shift), lengths, and kernel values.
Squares, and N^2 of them, then stay within float64, with 28 digits above the smallest number."""


@dataclass(frozen=True)
class Summary:
    """Facts about the rows from one pass over them; kernels plan with these.

    Attributes
    ----------
    n_samples, n_features : int
    dtype : numpy.dtype
        Type of the rows as given (tiles are float64 all the same).
    shift : ndarray (n_features,), float64
        What the core subtracts from every row; zero where the kernel does not allow a shift.
    box : ndarray (2, n_features)
        Smallest and largest value of each coordinate, after the shift.
    radius : float
        Largest Euclidean norm of a row, after the shift.
    mean : ndarray (n_features,)
        After the shift (so zero up to rounding where the shift is the mean).
    sample : ndarray (at most 4096, n_features)
        Rows drawn without replacement by the seeded generator, after the shift, in row order.
    sample_index : ndarray (len(sample),), int
        Their row numbers.
    other_radius : float, optional
        Of the two sides of a rectangular product this summary is that of the rows farther from the origin, and
        ``other_radius`` the radius of the others; None: the rows with themselves.
    feature_names : tuple of str, optional
        Names of the columns, where they are known.
    """

    n_samples: int
    n_features: int
    dtype: np.dtype
    shift: np.ndarray
    box: np.ndarray
    radius: float
    mean: np.ndarray
    sample: np.ndarray
    sample_index: np.ndarray
    other_radius: float | None = None
    feature_names: tuple[str, ...] | None = None

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the sample (n_features, n_features), divided by its number of rows; made when asked for."""
        centred = self.sample - self.sample.mean(axis=0)
        return np.asarray(centred.T @ centred / max(len(centred), 1))

    @property
    def largest_inner(self) -> float:
        """Bound on |x.y|: ``radius`` squared, or the product of the radii of the two sides."""
        other = self.radius if self.other_radius is None else self.other_radius
        with np.errstate(over="ignore"):
            return float(np.float64(self.radius) * other)


BLAS_FLOPS = 1.0 / 9.0
"""A flop of BLAS on matrices, in those that a ``Cost`` counts in."""


@dataclass(frozen=True)
class Cost:
    """Cost of an offer in counts of operations and bytes; the plan turns counts into predicted seconds.

    Attributes
    ----------
    n_features : int
        D of a feature map, 0 for a summation.
    row_flops : float
        Floating-point operations to form the features of one row, or for one row of a product with one column.
    setup_flops : float
        Flops spent once, before the first row.
    memory : float
        Bytes at the peak, without the rows themselves; of a feature map also without those that every map takes (tiles,
        and the D x D moments where it forms them).
    residual : float
        Predicted residual trace over trace (feature map) or error bound (summation); 0 for an exact one.
    column_flops : float, optional
        Flops of one row for each further column of a product, where they are fewer than ``row_flops`` (a kernel value
        or a weight is evaluated once and multiplies every column); None: as ``row_flops``.
    moment_flops : float, optional
        Flops of one row for the second moment, of a map that does not form it as a D x D matrix. ``row_flops`` are then
        those of a row of a product with one column. None: D^2.
    product_flops, moment_size : float
        For a map with ``moment_flops``: flops of a product of its second moment with one column, and the order of that
        moment, where it is less than D.
    quick_flops : float, optional
        Flops that ``quick_moments`` add for a row, as flops of compiled loops, of a map that has them. None: D^2.
    column_memory : float
        Bytes of a product for each column that it multiplies at once, without the columns and their product: where
        memory is short it is given few at a time.
    rounding : float
        Predicted error of an eigenvalue over the trace, of a feature map, by the rounding of its transforms, products
        or factors; it comes on top of ``residual``.

    Flops are such that a few 1e9 of them take a second on one thread: what vectorises badly counts for more, and those
    of BLAS for less (``BLAS_FLOPS``).
    """

    n_features: int = 0
    row_flops: float = 0.0
    setup_flops: float = 0.0
    memory: float = 0.0
    residual: float = 0.0
    column_flops: float | None = None
    moment_flops: float | None = None
    product_flops: float = 0.0
    moment_size: float = 0.0
    quick_flops: float | None = None
    column_memory: float = 0.0
    rounding: float = 0.0


@dataclass(frozen=True)
class Offer:
    """A feature map or a summation that a kernel could build, and what it would cost; the plan builds one.

    ``build(sample)`` returns a FeatureMap (``sample`` is Summary.sample), ``build(X, Y=None)`` a Summation.
    """

    name: str
    cost: Cost
    build: Callable[..., Any] = field(repr=False, compare=False)

    @classmethod
    def made(cls, name: str, feature_map: FeatureMap) -> Offer:
        """Facts of a map that is made already."""
        D = feature_map.n_features
        dense = type(feature_map).new_moments is FeatureMap.new_moments
        cost = Cost(n_features=D, row_flops=2.0 * D, moment_flops=None if dense else 2.0 * D)
        return cls(name, cost, lambda _: feature_map)


class Kernel:
    """A kernel k(x, y) and its parameters. ``block`` alone is a kernel; all other methods make it faster or safer.

    The interface of kernels to the core; authors subclass ``fastkpca.kernels.Kernel``, which adds sums and products of
    them.

    Subclasses name their parameters in ``parameters`` (name -> default, None where ``resolve`` fills it in from the
    data) and other spellings in ``aliases`` (spelling -> (parameter, conversion of the value)). The constructor takes
    them by keyword, refuses two spellings of one parameter, sets attributes, and calls ``check``.

    Equality, hash and repr follow from the parameters. Kernels are immutable once made.
    """

    api_version: ClassVar[int | None] = None
    """Plugins write the literal 1 (an inherited value would always match)."""
    if TYPE_CHECKING:  # a class may declare each as an attribute or as a property

        @property
        def positive_semidefinite(self) -> bool: ...
        @property
        def translation(self) -> str | None: ...
        @property
        def nonnegative(self) -> bool: ...
        @property
        def scales_rows(self) -> bool: ...
        @property
        def scales_columns(self) -> bool: ...
        @property
        def thread_safe(self) -> bool: ...
        @property
        def by_number(self) -> bool: ...
        @property
        def takes_objects(self) -> bool: ...
        @property
        def knows_diagonal(self) -> bool: ...
        @property
        def is_linear(self) -> bool: ...

    else:
        positive_semidefinite = False
        translation = None
        """"kernel" if k(x+s, y+s) = k(x, y); "centered" if that holds only after centring (linear); else None."""
        nonnegative = False
        """True: k(x, y) >= 0 for all rows, so that |phi(x) - phi(y)|^2 <= k(x, x) + k(y, y)."""
        scales_rows = False
        """True: rows may be of any size, the kernel scales them itself; else X must lie between MIN_ABS_VALUE and
        MAX_ABS_VALUE."""
        scales_columns = False
        """True: each column has a scale of its own in the kernel, so that their ranges may differ."""
        thread_safe = True
        """False makes the core call this kernel from one thread only."""
        by_number = False
        """True: rows are numbers: of the rows of a matrix, or of objects in a list."""
        takes_objects = False
        """True: X is a list of objects (strings, graphs, sets), and ``block`` is called with two lists of them."""
        knows_diagonal = True
        """False: k(x, x) of new rows is not known."""
        is_linear = False
        """True: k(x, y) = x.y, so that feature space is the space of the rows."""
    below_zero: float = 0.0
    """Semidefinite is k with this added to each k(x, x): of a matrix whose entries are rounded. No part of
    ``entry_error``."""
    parameters: ClassVar[Mapping[str, Any]] = {}
    aliases: ClassVar[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {}
    width_parameter: ClassVar[str | None] = None
    """The parameter w, positive and without a limit of its own, of which k is a function of (x - y) / w alone: users
    may then give one number for each column, and the core divides the columns by them. None: there is none."""
    stored_maps: ClassVar[tuple[Any, ...]] = ()
    """Classes of fastkpca's own feature maps that a model file may hold for this kernel. A new built-in map takes three
    steps: give its class a ``kind``; write ``stored_size(record, n_columns)`` and ``from_state(header, arrays)``; add
    the class here, in each kernel that offers it. Maps of plugins need none of this."""

    def __init__(self, *positional: Any, **parameters: Any):
        if positional:
            name = next(iter(self.parameters), None)
            way = f"parameters are given by name, as in {type(self).__name__}({name}={positional[0]!r})"
            raise TypeError(f"{type(self).__name__}: {way if name else 'it has no parameters'}")
        values = dict(self.parameters)
        spelled: dict[str, str] = {}
        for given, value in parameters.items():
            name, convert = self.aliases.get(given, (given, None))
            if name not in self.parameters:
                known = [*self.parameters, *self.aliases]
                similar = did_you_mean(given, known, limit=1)
                raise TypeError(
                    f"{type(self).__name__} has no parameter {given!r}; {similar}{' ' * bool(similar)}it takes: "
                    f"{', '.join(known) or 'none'}"
                )
            if value is None:
                continue
            if name in spelled:
                raise TypeError(
                    f"{type(self).__name__}: {spelled[name]!r} and {given!r} are two spellings of one parameter; "
                    "give only one of them"
                )
            spelled[name] = given
            values[name] = convert(value) if convert is not None else value
        self.__dict__.update(values)
        self.check()
        self._check_width(spelled)

    def _check_width(self, spelled: dict[str, str]) -> None:
        """Refuse a width that is no positive number, also where ``check`` passes: rows are divided by it."""
        name = self.width_parameter
        if name is None or (value := self.__dict__.get(name)) is None:
            return
        if not 0.0 < (as_float(value) or 0.0) < np.inf:
            given = spelled.get(name, name)
            label = f"{type(self).__name__}: {name} is {value!r}" + f" (from {given})" * (given != name)
            raise KernelParameterError(f"{label}; give a positive number, or one for each column")

    def check(self) -> None:
        """Raise ``fastkpca.errors.KernelParameterError`` for a parameter out of range, and normalise types."""

    def resolve(self, data: Summary) -> Kernel:
        """This kernel with every parameter that is None filled in from the data (median heuristic and the like)."""
        return self

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """k(x_i, y_j) for two tiles: shape (len(X), len(Y)), dtype of X, a new array. The only required method."""
        raise NotImplementedError(f"{type(self).__name__} must define block(X, Y)")

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """k(x_i, x_i), shape (len(X),)."""
        step = 64
        parts = [np.diagonal(self.block(X[i : i + step], X[i : i + step])) for i in range(0, len(X), step)]
        return np.concatenate(parts) if parts else np.empty(0)

    @property
    def without_maps(self) -> str:
        """Reason why no feature map can take the place of its rows, as the end of "the kernel ..."; empty where one
        can."""
        if not self.positive_semidefinite:
            return "is not positive semidefinite"
        return "does not take rows of numbers" if self.by_number else ""

    def unguarded(self) -> Kernel:
        """The kernel itself, where this is the guard around one from outside."""
        return self

    def refusal(self, fault: str) -> Exception:
        """The error of values that contradict what the kernel says; of the class that a part of it has for that."""
        of_parts = {type(part.refusal(fault)) for part in self.map_parts()} - {ValueError}
        return next(iter(of_parts), ValueError)(f"{self!r} {fault}")

    def unbound(self) -> Any:
        """The kernel that a model keeps: this one without the data that ``bind`` attached."""
        return self

    def over_parts(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        """The same combination of function(part) for each kernel that this one is made of; itself where of none."""
        return self

    def numbered(self, names: tuple[str, ...]) -> Kernel:
        """This kernel with columns by number where it has them by name; ``names`` are those of the columns of X."""
        return self.over_parts(lambda part: part.numbered(names))

    def map_columns(self, n_columns: int) -> int:
        """Number of the columns that the maps of ``map_parts`` use."""
        return n_columns

    def map_parts(self) -> tuple[Kernel, ...]:
        """The kernels of the parts of its feature maps, where these are made of the maps of other kernels."""
        return ()

    def compiled_tile(self) -> tuple[str, dict[str, Any]] | None:
        """(name, parameters) of the core's compiled tile that equals ``block``; None: values come from ``block``."""
        return None

    def gradient_weights(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray) -> np.ndarray | None:
        """Numbers s_ij, shape (len(X), len(Y)), that give the gradient of k(x_i, y_j) with respect to x_i.

        The gradient is s_ij (y_j - x_i) where ``translation`` is "kernel" (k depends on the distance), and s_ij y_j
        elsewhere (k depends on x.y). K is ``block(X, Y)``. None: not known; differences take its place.
        """
        return None

    def gradient_sums(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray, steps: np.ndarray) -> GradientSums:
        """Gradients of sums of kernel values, for a tile X (n, d) of rows and all Y (m, d).

        By ``gradient_weights``; where these are not known, by central differences with ``steps`` (n, d). K is
        ``block(X, Y)``. A kernel that is made of others hands on what they know.
        """
        slopes = self.gradient_weights(X, Y, K)

        def by_weights(R: np.ndarray | None, A: np.ndarray) -> np.ndarray:
            W = slopes if R is None else slopes * R
            columns = A * Y if A.shape[1] == 1 else (A[:, :, None] * Y[:, None, :]).reshape(len(Y), -1)
            sums = (W @ columns).reshape(len(X), A.shape[1], -1)
            if self.translation == "kernel":
                sums -= (W @ A)[:, :, None] * X[:, None, :]
            return sums

        def by_differences(R: np.ndarray | None, A: np.ndarray) -> np.ndarray:
            sums = np.empty((len(X), A.shape[1], X.shape[1]))
            for column in range(X.shape[1]):
                D = central_difference(lambda at: self.block(at, Y), X, column, steps[:, column])
                sums[:, :, column] = (D if R is None else D * R) @ A
            return sums

        return by_differences if slopes is None else by_weights

    def fixed_point_width(self) -> float | None:
        """sigma, where k(x, y) = exp(-|x - y|^2 / (2 sigma^2)): pre-images are then fixed points. Else None."""
        return None

    @property
    def takes_points(self) -> bool:
        """True if rows are points of coordinates: no ``bind`` makes something else of them."""
        return type(self).bind is Kernel.bind

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        """Bound on |computed - k| for the entries that ``block`` returns in ``dtype``.

        None: unknown, and the certificate is then about the values that ``block`` returned.
        """
        return None

    def value_bound(self, data: Summary) -> float | None:
        """Bound on |k(x, y)| over all rows within ``data.radius`` of the origin; None: unknown.

        ``data.largest_inner`` gives the closer bound for a rectangular product where k is a function of x.y.

        Known without help for semidefinite kernels that depend on x - y alone, where it is k(x, x). Sums and products
        need it for their ``entry_error``, products for feature maps.
        """
        if not (self.positive_semidefinite and self.translation == "kernel"):
            return None
        error = self.entry_error(data, np.dtype(np.float64))
        return float(np.max(self.diagonal(data.sample[:1]))) * (1 + 1e-12) + (error or 0.0)

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Iterable[Offer]:
        """Offers of feature maps of at most ``max_features`` features, residual trace over trace at most ``tol``.

        A generator need not get to its end, as in ``summations``.

        ``tol`` = 0 asks for maps that leave nothing out (``Cost.residual`` = 0). Kernels from outside need not know
        that: they are asked with a positive ``tol``, down to 2^-53, and only such offers of theirs are taken then.
        """
        return ()

    def coarse(self, data: Summary, tol: float) -> Offer | None:
        """Products with a matrix B in which values near zero are left out, so that they take little time; K >= B >= 0.

        To search by, for intervals of this tol. Kernels from outside are not asked.
        """
        return None

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Iterable[Offer]:
        """Offers of products with error at most ``tol`` * sum_j |u_j| in each entry.

        ``tol=None`` asks for exact products. Their ``error_bound`` is rounding: at most (1e-10 + 8 n u) times the
        largest kernel value (``value_bound``), for sums of n terms, and twice ``entry_error``. Without ``value_bound``
        any finite bound is accepted.

        A generator need not get to its end: the plan stops asking once an offer is so cheap that planning another
        would cost more. So the ones that are cheap to plan come first.
        """
        return ()

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        """The feature map that ``FeatureMap.state`` described, as read from a model file."""
        raise NotImplementedError(f"{type(self).__name__} has no feature maps of its own to restore")

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        """Hook for kernels whose input is not rows of coordinates: (kernel, rows) to work with instead.

        ``bind(K)`` before fitting, ``bind(K_new, train_rows)`` before projecting. A precomputed matrix becomes a
        kernel on row indices here, and a list of objects too (``takes_objects``); every other kernel leaves its input
        alone.
        """
        return self, X

    def on_lists(self, A: list, B: list) -> Any:
        """The values between two lists of objects, as its author's code returns them."""
        return self.block(cast(Any, A), cast(Any, B))

    def listed(self) -> tuple[Kernel, list] | None:
        """(the kernel without the list of objects that ``bind`` gave it, this list); None: it was given none."""
        return None

    def _label(self) -> str:
        """Name of the code that computes its values, for errors."""
        return f"{type(self).__name__}.block"

    def get_parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.parameters}

    def __repr__(self) -> str:
        inner = ", ".join(f"{k}={v!r}" for k, v in self.get_parameters().items())
        return f"{type(self).__name__}({inner})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel) or type(self) is not type(other):
            return False
        return self.get_parameters() == other.get_parameters()

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))


def refuse_farther(data: Summary, radius: float) -> None:
    """ValueError where rows lie farther from the shift than those that a map was made for."""
    if data.radius > radius * (1 + 1e-12):
        raise ValueError(
            f"rows lie up to {data.radius:.6g} from the shift of the model, whose own lie up to {radius:.6g}, and the "
            "bounds of its feature map hold up to there only; make the first model from rows that span the range, or "
            "with features='pivots'"
        )


class FeatureMap:
    """phi with k(x, y) = phi(x).phi(y) + (positive semidefinite) + (entries at most ``defect``).

    Immutable and re-entrant: several threads call it at once, each with its own tile.
    """

    n_features: int = 0
    """D."""
    defect: float = 0.0
    """Bound on the entries of K - Phi Phi' that are not positive semidefinite."""
    rounding: float = 64 * EPS
    """Bound on |computed phi(x) - phi(x)| / |phi(x)| in float64."""
    anywhere: bool = False
    """True if ``residual`` and ``defect`` hold for every row, however far from the rows of the fit: later rows may then
    share the map (``like=``, ``kpca_update``)."""
    tile_rows: int | None = None
    """Rows of a tile, for a map whose cost per tile does not depend on the number of rows in it (a fast transform);
    None: the number that keeps a tile of features in cache. A whole number that depends on shapes and parameters
    alone."""
    chunked: bool = False
    """True if ``accumulate`` and ``apply`` hold the features of a few rows at a time, never those of a whole tile."""
    transform_eps: float = 0.0
    """Relative accuracy of ``accumulate`` and ``apply`` where a fast transform takes the place of the features."""
    if TYPE_CHECKING:  # a class may declare each as an attribute or as a property

        @property
        def thread_safe(self) -> bool: ...
        @property
        def landmarks(self) -> np.ndarray | None: ...

    else:
        thread_safe = True
        """False: called from one thread only, as a kernel that is not thread-safe."""
        landmarks = None
        """Rows (m, d) whose kernel values are all that phi is made of: b.phi(x) = sum_i w_i k(landmark_i, x), with the
        weights w of ``landmark_weights``. None: there are no such rows."""

    def features(self, X: np.ndarray) -> np.ndarray:
        """phi of a tile, shape (n, D), dtype of X; a new array, which the caller may overwrite.

        Column-major (the transpose of a feature-major tile) is the fastest for what follows.
        """
        raise NotImplementedError

    def residual(self, X: np.ndarray, Phi: np.ndarray | None = None) -> np.ndarray:
        """k(x, x) - |phi(x)|^2 for a tile, shape (n,), never negative, its own rounding included: an upper bound.

        It is about the exact phi; how far the computed one may be from that is ``rounding``.

        ``Phi`` is ``features(X)`` where the caller has it.
        """
        return np.zeros(len(X))

    def defect_norm(self, n: float, trace: float) -> float:
        """Bound on the norm and the trace of the part of K - Phi Phi' that is not semidefinite, for n rows and tr K."""
        return n * self.defect

    def outside_error(self, X: np.ndarray) -> np.ndarray:
        """Bounds (n,) for the rows x of the tile X that lie outside the region of the fit, and any row y of the fit.

        They bound the part of |k(x, y) - phi(x).phi(y)| beyond ``residual`` and ``defect``; zero for rows inside the
        region.

        Leave it at zero only if ``defect`` holds for every x. ``features`` may return any finite values for a row
        outside, also zeros, as long as this bound and ``residual`` are true for it.
        """
        return np.zeros(len(X))

    def landmark_weights(self, B: np.ndarray) -> np.ndarray:
        """Weights of the kernel values of ``landmarks`` for vectors of features B (D, k): shape (m, k)."""
        raise NotImplementedError(f"{type(self).__name__} has no landmarks")

    def widened(self, kernel: Kernel, data: Summary, radius: float) -> FeatureMap:
        """A map with the same features whose ``rounding`` and ``defect`` are also true for the rows of ``data``.

        Parameters
        ----------
        kernel : Kernel
        data : Summary
        radius : float
            Largest distance from the shift of the rows that the map has seen so far.

        Raises
        ------
        ValueError
            There is no such map.
        """
        if not self.anywhere:
            refuse_farther(data, radius)
        return self

    def formula(self) -> dict[str, Any] | None:
        """The description that ``docs/fastkpca_project.m`` evaluates in MATLAB; None: there is no formula."""
        return None

    def accumulate(self, X: np.ndarray, U: np.ndarray) -> np.ndarray:
        """Phi' U for a tile and a block of vectors U (n, k): shape (D, k)."""
        return self.features(X).T @ U

    def apply(self, X: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Phi C for a tile and coefficients C (D, k): shape (n, k)."""
        return self.features(X) @ C

    def applied(self, C: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """``apply`` with these coefficients, of many tiles: what depends on C alone may be done once."""
        return lambda X: self.apply(X, C)

    def quick_columns(self, C: np.ndarray) -> int:
        """Number of the first columns of C for which ``applied`` needs no features; all where it never does less."""
        return C.shape[1]

    def gradients(self, C: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Function (X, steps) -> the gradients of phi(x).c_k at the rows of a tile, for coefficients C (D, k):
        shape (n, k, d). By central differences with ``steps`` (n, d); a map that knows its derivative overrides it."""

        def differences(X: np.ndarray, steps: np.ndarray) -> np.ndarray:
            columns = [
                central_difference(lambda at: self.features(at) @ C, X, column, steps[:, column])
                for column in range(X.shape[1])
            ]
            return np.stack(columns, axis=2)

        return differences

    def new_moments(self) -> Moments:
        """An empty accumulator for ``Moments.update``."""
        return Moments(self)

    def quick_moments(self) -> Moments | None:
        """One for rows without weights that is cheaper and errs by more (``Moments.error``); None: there is none."""
        return None

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(JSON header, arrays) from which ``Kernel.feature_map_from_state`` makes this map again."""
        raise NotImplementedError(f"{type(self).__name__} cannot be written to a model file")


class Moments:
    """Count, mean and centred second moment of the features, accumulated tile by tile in float64.

    Each tile is centred by its own mean and merged (Chan, Golub, LeVeque 1983): the uncentred moment minus N m m'
    would lose N |m|^2 / lambda_1 times the roundoff. Dense by default; a map with structure overrides this class.

    Attributes
    ----------
    count : float
        Number of rows, or sum of weights.
    mean : ndarray (D,)
    trace : float
        Trace of the *centred* second moment sum_i (phi_i - mean)(phi_i - mean)'.
    residual_trace : float
        Sum over the rows of ``FeatureMap.residual``.
    indefinite : float
        How far from zero an eigenvalue of the second moment may lie by its error alone; 0: by rounding alone.
    error : float
        Bound on the norm, and on the trace, of the second moment's error beyond the rounding of centred sums.
    """

    if TYPE_CHECKING:

        @property
        def indefinite(self) -> float: ...
        @property
        def error(self) -> float: ...

    else:
        indefinite = error = 0.0

    def __init__(self, feature_map: FeatureMap):
        self.map = feature_map
        self.count = 0.0
        self._mean = np.zeros((2, feature_map.n_features))  # unevaluated sums of a high and a low part
        self.residual_trace = 0.0
        # lower triangle (row-major) of the centred second moment; the upper one is not touched
        self._scatter = np.zeros((feature_map.n_features, feature_map.n_features))

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray | None:
        """Add a tile of rows, with non-negative weights where given; returns ``FeatureMap.residual`` of the rows, or
        None where it is not computed row by row.
        """
        X = contiguous(X, np.float64)
        return self.add(X, self.map.features(X), weights)

    def add(self, X: np.ndarray, Phi: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """``update`` of a dense second moment where the features (float64) are known."""
        residual = self.map.residual(X, Phi)
        self.residual_trace += float(residual.sum() if weights is None else residual @ weights)
        tile = contiguous(Phi.T)  # no copy where features() was column-major
        self.count = _moments.update(tile, weights, self.count, self._mean, self._scatter)
        return residual

    def merge(self, other: Moments) -> Moments:
        """Add the rows of another accumulator of the same map; returns self."""
        self.count = _moments.merge(self.count, self._mean, self._scatter, other.count, other._mean, other._scatter)
        self.residual_trace += other.residual_trace
        if other.error:
            vars(self)["error"] = self.error + other.error
        return self

    # Dense second moments only, for models of streams.

    def scale(self, factor: float) -> Moments:
        """Multiply the weight of every row; returns self."""
        self.count *= factor
        self._scatter *= factor
        self.residual_trace *= factor
        vars(self)["error"] = self.error * factor
        return self

    def widened(self, feature_map: FeatureMap) -> Moments:
        """These moments for a map with more features behind those of this one, which are zero for these rows."""
        wide, D = feature_map.new_moments(), self.map.n_features
        wide.count, wide.residual_trace = self.count, self.residual_trace
        vars(wide)["error"] = self.error
        wide._mean[:, :D], wide._scatter[:D, :D] = self._mean, self._scatter
        return wide

    def without(self, part: Moments, n_rows: int) -> Moments:
        """The moments of the other rows, where ``part`` are those of some; their error by cancellation is bounded.

        ``n_rows``: rows of these moments, whose weights may add up to any number.
        """
        moments = self.map.new_moments()
        n, m = self.count - part.count, part.count
        size = float(np.linalg.norm(self.mean) + np.linalg.norm(part.mean))
        step = (self.mean - part.mean) * (self.count / n)  # from the mean of the part to that of the others
        distance = float(np.linalg.norm(step)) + UNIT * size * self.count / n
        moments.count, moments._mean[0] = n, part.mean + step
        moments._scatter = np.tril(self._scatter - part._scatter - (n * m / self.count) * np.outer(step, step))
        scale = self.trace + part.trace + m * distance * (distance + 4.0 * size * self.count / n)
        slack = rounding_factor(n_rows + 1) * EPS
        vars(moments)["error"] = self.error + part.error + slack * scale
        moments.residual_trace = max(self.residual_trace - part.residual_trace, 0.0) + slack * self.residual_trace
        return moments

    @property
    def mean(self) -> np.ndarray:
        return self._mean[0]

    @property
    def trace(self) -> float:
        return float(np.trace(self._scatter))

    def dense(self) -> np.ndarray | None:
        """The centred second moment (D, D), symmetric: the sum over the rows, and divided by ``count`` the covariance;
        None where a subclass holds it only as an operator."""
        C = self._scatter.copy()
        for i in range(1, len(C)):  # mirrored in place: a second copy may be more than memory holds
            C[:i, i] = C[i, :i]
        return C

    def matmat(self, C: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Centred second moment times C (D, k); the same bits at any number of threads."""
        return self.dense() @ C

    def operator(self) -> OperatorMoments | None:
        """The second moment as an operator; None where it is held as a matrix (``dense``)."""
        return None

    def state(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(JSON header, arrays) that ``restore`` takes; a subclass with arrays of its own overrides both."""
        header = {"count": self.count, "residual_trace": self.residual_trace, "error": self.error}
        return header, {"mean": self._mean, "scatter": np.tril(self._scatter)}

    def restore(self, header: dict, arrays: dict[str, np.ndarray]) -> Moments:
        """Become what ``state`` described, an accumulator of the same map; returns self."""
        self.count, self.residual_trace = float(header["count"]), float(header["residual_trace"])
        if header.get("error"):
            vars(self)["error"] = float(header["error"])
        mean, scatter = (np.array(arrays[name], dtype=np.float64, order="C") for name in ("mean", "scatter"))
        if mean.shape != self._mean.shape or scatter.shape != self._scatter.shape:
            raise ValueError(
                f"moments of shape {mean.shape} and {scatter.shape} are not of {self.map.n_features} features"
            )
        self._mean, self._scatter = mean, scatter
        return self


class OperatorMoments(Moments):
    """Moments whose second moment is multiplied with and never formed, because D is large."""

    @property
    def norm(self) -> float:
        """Upper bound on the Frobenius norm of the centred second moment."""
        raise NotImplementedError

    @property
    def product_error(self) -> float:
        """Bound on |computed C u - C u|_2 / |u|_2 by rounding."""
        raise NotImplementedError

    def dense(self) -> np.ndarray | None:
        return None

    def form(self) -> np.ndarray:
        """The centred second moment (D, D), symmetric, formed at any size."""
        C = self.matmat(np.eye(self.map.n_features))
        return np.ascontiguousarray((C + C.T) / 2)

    def operator(self) -> OperatorMoments | None:
        return self

    def compressed(self, n_threads: int) -> Any:
        """`maps.toeplitz.Compressed`: the centred second moment in few directions; None where it needs too many."""
        return None


class NormPass(NamedTuple):
    """Sums of one pass over the values of a symmetric kernel matrix.

    Attributes
    ----------
    product : ndarray (N, k)
        K V.
    row_sums : ndarray (N,)
        K 1.
    centred_square : float
        sum_ij (K_ij - r_i - r_j + g)^2 for the given row means r and grand mean g: an upper bound on |H K H|_F^2, as H
        K H = H (K - r 1' - 1 r' + g 1 1') H and H is a projection. For the exact means the two are equal. A sum of
        squares of rounded differences: its relative error is a small multiple of the unit roundoff, and each difference
        carries the rounding of |K_ij| + |r_i| + |r_j| + |g|.
    square : float
        |K|_F^2, which the rounding of K V scales with.
    """

    product: np.ndarray
    row_sums: np.ndarray
    centred_square: float
    square: float


class Summation:
    """Products with the kernel matrix of two sets of rows (or of one set with itself).

    ``error_bound``: |error of entry (i, k)| <= error_bound * sum_j |u_jk|. State every error of your algorithm, its
    rounding included. The rounding of kernel values and of a sum of n terms is added to it; counting a part twice does
    no harm. So 0.0 is for products that err by no more.
    ``symmetric``: matmat and rmatmat are the same operator; where not, the eigensolver uses (S + S') / 2.
    ``n_threads``: of the products that follow; the core sets it, and products have the same bits at any number.
    ``gives_norm``: whether there is ``pass_with_norm``, which a product that evaluates every kernel value can give.
    """

    error_bound: float = 0.0
    symmetric: bool = True
    n_threads: int = 1
    gives_norm: bool = False
    shape: tuple[int, int]

    def matmat(self, U: np.ndarray) -> np.ndarray:
        """K U, shape (shape[0], k)."""
        raise NotImplementedError

    def rmatmat(self, U: np.ndarray) -> np.ndarray:
        """K' U, shape (shape[1], k)."""
        if self.symmetric:
            return self.matmat(U)
        raise NotImplementedError

    def pass_with_norm(self, V: np.ndarray, row_means: np.ndarray, grand_mean: float) -> NormPass:
        """K V, K 1, and the squared Frobenius norm about approximate row means, in one pass (square case).

        Parameters
        ----------
        V : ndarray (N, k)
        row_means : ndarray (N,)
            Of K, approximately; the closer, the tighter ``NormPass.centred_square``.
        grand_mean : float
            Their mean, approximately.
        """
        raise NotImplementedError(f"{type(self).__name__} has no norm of its matrix: gives_norm is False")

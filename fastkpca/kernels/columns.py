"""Kernels on some columns of the rows, and with a width for each column.

Both are k(Tx, Ty) for a T that takes columns and divides them by widths: rows are transformed at the door, and the
kernel within, its maps and its products see nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..base.near import with_near
from ..base.protocol import FeatureMap, GradientSums, Kernel, Offer, Summary, Summation
from ..base.stored import Record
from ..errors import KernelParameterError
from ..maps.combined import ColumnMap, parts_of
from ..products.exact import ExactSummation
from ..rows.summary import of_columns
from ..rows.view import Columns, Rows
from .combined import Combination, check_part, tiles_cost
from .registry import get_kernel

__all__ = ["ColumnKernel", "on_columns", "with_widths"]

SHOWN = 12
"""Columns or widths that are printed one by one."""


def on_columns(kernel: Any, columns: Any, **parameters: Any) -> Kernel:
    """A kernel that sees some columns of the rows only.

    Kernels on groups of columns add up and multiply like any others: ``on_columns("gaussian", first) + 0.5 *
    on_columns("linear", second)``. Groups may overlap, and columns in no group count in nothing.

    Parameters
    ----------
    kernel : str, Kernel, object with ``block``, or callable
    columns : int, str, or sequence of these, or array of bool (d,)
        Numbers of columns, from zero; or their names, where the rows are a data frame, an Arrow table or a file with
        names. Each at most once.
    **parameters
        Of the kernel. What is left out is found on these columns (the median heuristic).

    Returns
    -------
    ColumnKernel

    Raises
    ------
    TypeError, KernelParameterError
        There are no columns, or one comes twice; numbers and names are mixed. Names that the rows do not have, and
        numbers beyond them, are found when the kernel is used.

    Examples
    --------
    >>> import numpy as np, fastkpca as fk
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> kernel = fk.on_columns("gaussian", [0, 1, 2]) + 0.5 * fk.on_columns("linear", [3, 4])
    >>> fk.kpca(X, kernel, 2).score.shape
    (200, 2)
    """
    made = ColumnKernel(kernel=get_kernel(kernel, **parameters), columns=_checked(columns))
    mask = np.asarray(columns, dtype=object)
    if mask.ndim == 1 and np.asarray(mask[0]).dtype.kind == "b":
        made.__dict__["mask_length"] = len(mask)
    return made


def with_widths(cls: type[Kernel], given: str, parameters: dict[str, Any]) -> Kernel:
    """The kernel with a width for each column; ``given``: how the user has spelled the width."""
    name = cls.width_parameter
    assert name is not None
    widths = []
    for j, value in enumerate(np.asarray(parameters[given]).tolist()):
        try:
            widths.append(cls(**parameters | {given: value}).get_parameters()[name])
        except KernelParameterError as error:
            raise KernelParameterError(f"{error} (number {j} of {given})") from error
    if not widths or np.ma.is_masked(parameters[given]):
        found = "has masked entries" if widths else "is empty"
        raise KernelParameterError(f"{given} {found}; give one number, or one for each column")
    others = {key: value for key, value in parameters.items() if key != given}
    return ColumnKernel(kernel=cls(**others, **{name: 1.0}), widths=tuple(widths))


class ColumnKernel(Combination):
    """k(x, y) of some columns of the rows, each over a width of its own; made by ``on_columns``, or by ``sigma=[...]``.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int or str, optional
        As for ``on_columns``. Default: all, in their order.
    widths : sequence of float, optional
        One for each of these columns. Default: all 1.
    """

    parameters = {"kernel": None, "columns": (), "widths": ()}
    scales_columns = True

    kernel: Kernel
    columns: tuple[Any, ...]
    widths: tuple[float, ...]
    mask_length: int | None = None

    def check(self) -> None:
        check_part(self.kernel)
        if self.kernel.takes_objects:
            raise KernelParameterError(f"{self.kernel!r} is a kernel on objects, which have no columns")
        widths = tuple(float(x) for x in self.widths)
        if not all(0.0 < x < np.inf for x in widths):
            raise KernelParameterError(f"widths is {self.widths!r}; give one positive number for each column")
        columns = () if self.columns == () else _checked(self.columns)
        if columns and widths and len(columns) != len(widths):
            raise KernelParameterError(f"there are {len(columns)} columns and {len(widths)} widths; give one for each")
        self.__dict__.update(columns=columns, widths=widths, parts=(self.kernel,))

    def with_parts(self, parts: tuple[Kernel, ...]) -> Kernel:
        made = super().with_parts(parts)
        made.__dict__["kernel"] = parts[0]
        return made

    @property
    def translation(self) -> str | None:
        return self.kernel.translation

    @property
    def _view(self) -> Columns:
        if any(isinstance(x, str) for x in self.columns):
            raise KernelParameterError(
                f"{self!r} takes columns by name, and these are known only with rows that have names: kpca, gram and "
                "features of a data frame"
            )
        return Columns(self.columns or None, self.widths or None)

    def resolve(self, data: Summary) -> Kernel:
        d = data.n_features
        if self.widths and not self.columns and len(self.widths) != d:
            raise KernelParameterError(
                f"{self!r} has {len(self.widths)} widths, and X has {d} columns; give one for each"
            )
        made = self._on_numbers(d, data.feature_names)
        return made.over_parts(lambda part: part.resolve(of_columns(data, made._view)))

    def numbered(self, names: tuple[str, ...]) -> Kernel:
        made = self._on_numbers(len(names), names)
        within = tuple(names[j] for j in made.columns) or names
        return made.over_parts(lambda part: part.numbered(within))

    def _on_numbers(self, d: int, names: tuple[str, ...] | None) -> ColumnKernel:
        if self.mask_length not in (None, d):
            raise KernelParameterError(
                f"columns is a mask of {self.mask_length} columns, and X has {d}; give a truth value for each"
            )
        numbers = tuple(_number(x, d, names) for x in self.columns)
        if len(set(numbers)) < len(numbers):
            raise KernelParameterError(f"{self!r} has a column twice; give each once")
        made = cast(ColumnKernel, self.with_parts(self.parts))
        made.__dict__["columns"] = numbers
        return made

    def bind(self, X: Any, Y: Any = None) -> tuple[Kernel, Any]:
        return self, X  # rows of numbers, which have columns: no list of objects

    def map_columns(self, n_columns: int) -> int:
        return self._view.count(n_columns)

    def block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return self.kernel.block(self._view.of(X), self._view.of(Y))

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        return self.kernel.diagonal(self._view.of(X))

    def gradient_sums(self, X: np.ndarray, Y: np.ndarray, K: np.ndarray, steps: np.ndarray) -> GradientSums:
        view, d = self._view, X.shape[1]
        sums = self.kernel.gradient_sums(view.of(X), view.of(Y), K, view.of(steps))
        return lambda R, A: view.gradient(sums(R, A), d)

    def entry_error(self, data: Summary, dtype: np.dtype) -> float | None:
        data = of_columns(data, self._view)
        if self.widths:
            # dividing moves a row by at most u R, as subtracting the shift did: as much as if R were twice as large
            if self.kernel.translation != "kernel":
                return None
            other = None if data.other_radius is None else 2.0 * data.other_radius
            data = replace(data, radius=2.0 * data.radius, other_radius=other)
        return self.kernel.entry_error(data, dtype)

    def value_bound(self, data: Summary) -> float | None:
        return self.kernel.value_bound(of_columns(data, self._view))

    def feature_maps(self, data: Summary, tol: float, max_features: int) -> Sequence[Offer]:
        view, within = self._view, of_columns(data, self._view)

        def on_them(offer: Offer) -> Offer:
            def build(sample: np.ndarray) -> FeatureMap:
                rows = within.sample if sample is data.sample else view.of(sample)
                return ColumnMap(offer.build(rows), view, within.radius)

            return Offer(offer.name, replace(offer.cost, row_flops=offer.cost.row_flops + within.n_features), build)

        return [on_them(offer) for offer in self.kernel.feature_maps(within, tol, max_features)]

    def summations(self, data_x: Summary, data_y: Summary, tol: float | None) -> Iterable[Offer]:
        view = self._view
        within_x = of_columns(data_x, view)
        within_y = within_x if data_y is data_x else of_columns(data_y, view)

        def on_them(offer: Offer) -> Offer:
            def build(X: Rows, Y: Rows | None = None) -> Summation:
                return offer.build(X.of_columns(view), None if Y is None else Y.of_columns(view))

            return Offer(offer.name, offer.cost, build)

        for offer in self.kernel.summations(within_x, within_y, tol):
            yield on_them(offer)
        # tiles of this kernel itself come from ``block``, and give the norm that an indefinite kernel needs
        if self.positive_semidefinite and self.kernel.compiled_tile() is not None:
            cost = tiles_cost(self.kernel, within_x, within_y)
            yield on_them(Offer("tiles", cost, lambda X, Y=None: ExactSummation(self.kernel, X, Y)))

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        record = Record(header, arrays, "the feature map on columns")
        record.keys(("map", "parts", "radius"))
        record.text("map", (ColumnMap.kind,))
        record.list("parts", 1)
        [state] = parts_of(header, arrays)
        radius = record.number("radius", least=0.0)
        return ColumnMap(self.kernel.feature_map_from_state(*state), self._view, radius)

    def __repr__(self) -> str:
        inner = repr(self.kernel)
        if self.widths:
            name = self.kernel.unguarded().width_parameter
            values = {key: repr(value) for key, value in self.kernel.get_parameters().items()}
            values[name or "widths"] = _listed(self.widths)
            inner = f"{type(self.kernel.unguarded()).__name__}({', '.join(f'{k}={v}' for k, v in values.items())})"
        return f"on_columns({inner}, {_listed(self.columns)})" if self.columns else inner


def _checked(columns: Any) -> tuple[Any, ...]:
    """Numbers or names of columns: all of one sort, each once."""
    need = "give either whole numbers of columns, as in [0, 1], or names, as in ['height', 'width']"
    given = np.asarray(columns, dtype=object)
    listed: Any = given.ravel().tolist() if given.ndim < 2 else None
    kinds = {np.asarray(x).dtype.kind if np.ndim(x) == 0 else "O" for x in listed or ()}
    if kinds == {"b"}:
        listed = np.flatnonzero(listed).tolist()
    if not listed:
        raise KernelParameterError(f"columns is {columns!r}, which is no column; {need}")
    if kinds != {"U"}:
        if kinds != {"b"} and not kinds <= {"i", "u"}:
            raise TypeError(f"columns is {columns!r}; {need}")
        listed = [int(x) for x in listed]
        if min(listed) < 0:
            raise KernelParameterError(f"columns has {min(listed)}; numbers of columns begin with 0")
    twice = [x for x in dict.fromkeys(listed) if listed.count(x) > 1]
    if twice:
        raise KernelParameterError(f"columns has {twice[0]!r} twice; give each column once")
    return tuple(listed)


def _number(column: Any, d: int, names: tuple[str, ...] | None) -> int:
    """The number of a column of rows that have d columns, of these names."""
    if not isinstance(column, str):
        if column >= d:
            raise KernelParameterError(f"on_columns: there is no column {column}, X has columns 0 to {d - 1}")
        return int(column)
    if names is None:
        raise KernelParameterError(
            f"on_columns: column {column!r} is taken by name, and the columns of X have none; give a data frame, or "
            "numbers of columns"
        )
    if column not in names:
        raise KernelParameterError(with_near(f"on_columns: X has no column {column!r}", column, names))
    return names.index(column)


def _listed(items: tuple[Any, ...]) -> str:
    if len(items) <= SHOWN:
        return repr(list(items))
    return f"[{items[0]!r}, {items[1]!r}, ..., {items[-1]!r}] ({len(items)} of them)"

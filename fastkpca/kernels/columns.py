"""The rules of kernels on some columns of the rows, and with a width for each column.

Both are k(Tx, Ty) for a T that takes columns and divides them by widths: rows are transformed at the door, and the
kernel within, its maps and its products see nothing else.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..base.protocol import FeatureMap, GradientSums, Kernel, Offer, Summary, Summation
from ..base.spelling import with_suggestion
from ..errors import KernelParameterError
from ..maps.combined import ColumnMap
from ..rows.summary import of_columns
from ..rows.view import Columns, Rows
from .combined import Combination, check_part, with_tiles


class OnColumns(Combination):
    """The rules of k(x, y) of some columns of the rows, each over a width of its own."""

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
        columns = () if self.columns == () else listed_columns(self.columns)
        if columns and widths and len(columns) != len(widths):
            raise KernelParameterError(f"there are {len(columns)} columns and {len(widths)} widths; give one for each")
        self.__dict__.update(columns=columns, widths=widths, parts=(self.kernel,))

    @property
    def _view(self) -> Columns:
        if any(isinstance(x, str) for x in self.columns):
            raise KernelParameterError(
                f"{self!r} takes columns by name, and these are known only with rows that have names: kpca, gram and "
                "features of a data frame"
            )
        return Columns(self.columns or None, self.widths or None)

    def resolve(self, data: Summary) -> Any:
        d = data.n_features
        if self.widths and not self.columns and len(self.widths) != d:
            raise KernelParameterError(
                f"{self!r} has {len(self.widths)} widths, and X has {d} columns; give one for each"
            )
        made = self._on_numbers(d, data.feature_names)
        return made.over_parts(lambda part: part.resolve(of_columns(data, made._view)))

    def numbered(self, names: tuple[str, ...]) -> Any:
        made = self._on_numbers(len(names), names)
        within = tuple(names[j] for j in made.columns) or names
        return made.over_parts(lambda part: part.numbered(within))

    def _on_numbers(self, d: int, names: tuple[str, ...] | None) -> OnColumns:
        if self.mask_length not in (None, d):
            raise KernelParameterError(
                f"columns is a mask of {self.mask_length} columns, and X has {d}; give a truth value for each"
            )
        numbers = tuple(_number(x, d, names) for x in self.columns)
        made = cast(OnColumns, self.with_parts(self.parts))
        made.__dict__["columns"] = numbers
        return made

    def bind(self, X: Any, Y: Any = None) -> tuple[Any, Any]:
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

        return map(on_them, with_tiles(self.kernel, within_x, within_y, tol))

    def feature_map_from_state(self, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
        record, [part] = self._parts_from_state(header, arrays, ColumnMap.kind, "radius")
        return ColumnMap(part, self._view, record.number("radius", least=0.0))

    def __repr__(self) -> str:
        inner = repr(self.kernel)
        if self.widths:
            name = self.kernel.unguarded().width_parameter
            values = {key: repr(value) for key, value in self.kernel.get_parameters().items()}
            values[name or "widths"] = _listed(self.widths)
            inner = f"{type(self.kernel.unguarded()).__name__}({', '.join(f'{k}={v}' for k, v in values.items())})"
        return f"on_columns({inner}, {_listed(self.columns)})" if self.columns else inner


def listed_columns(columns: Any) -> tuple[Any, ...]:
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
        raise KernelParameterError(with_suggestion(f"on_columns: X has no column {column!r}", column, names))
    return names.index(column)


def _listed(items: tuple[Any, ...]) -> str:
    shown = reprlib.repr(list(items))
    return f"{shown} ({len(items)} of them)" if shown.endswith("...]") else shown

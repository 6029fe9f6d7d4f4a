"""Columns of new rows against those that a model was fitted on: their number, names and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..base.protocol import Kernel, Summary
from ..errors import ScalesWarning, warn_caller
from .view import Rows

WIDE = 1000.0
"""Ratio of the ranges of two columns above which there is a warning."""


def check_columns(n_features: int, n_columns: int, name: str = "X", others: str = "the model was fitted on") -> None:
    """Raise ValueError unless new rows have as many columns as those of the ``others``."""
    if n_columns != n_features:
        hint = f"; {name} may be transposed" if n_columns == 1 else ""
        raise ValueError(
            f"{name} has {n_columns} column{'s' * (n_columns != 1)}, {others} {n_features}; "
            f"give the same columns in the same order{hint}"
        )


def check_same_columns(
    rows: Rows, n_features: int, names: tuple[str, ...] | None, *, name: str = "X", like: Rows | None = None
) -> None:
    """Raise ValueError unless rows have the columns, by number and by name, of the rows that they are compared with.

    Rows without names, and those compared with rows without, are taken as they come.

    Parameters
    ----------
    rows : Rows
        From ``as_rows``, which knows their names.
    n_features : int
    names : tuple of str or None
        Names of the columns of a model's training rows.
    name : str
        What the caller's user knows the rows as.
    like : Rows, optional
        What they are compared with where that is the user's X, and not what a model was fitted on.
    """
    if None not in (names, rows.names) and names != rows.names:  # which says more than numbers of columns
        _refuse_names(rows, names, name, like)
    check_columns(n_features, rows.n_features, name, "the model was fitted on" if like is None else "X has")


def check_columns_of(rows: Rows, X: Rows, *, name: str) -> None:
    """``check_same_columns`` of second rows, an argument ``name``, with the rows X of the same call."""
    check_same_columns(rows, X.n_features, X.names, name=name, like=X)


def _refuse_names(rows: Rows, expected: Any, name: str, like: Rows | None) -> NoReturn:
    names: Any = rows.names
    listing = "model.feature_names" if like is None else like.named.listed.format("X")
    take = f"take {rows.named.taken.format(name, listing)}"
    if sorted(names) == sorted(expected):
        first = next(i for i, (a, b) in enumerate(zip(names, expected)) if a != b)
        where = "the columns that the model was fitted on" if like is None else "the columns of X"
        raise ValueError(
            f"{name} has {where} in another order (first at column {first}: "
            f"{names[first]!r}, {'fitted on' if like is None else 'in X'} {expected[first]!r}); {take}"
        )
    missing = [x for x in expected if x not in names]
    others = [x for x in names if x not in expected]
    text = [f"lacks {listed(map(repr, missing))}"] * bool(missing)
    text += [f"has {listed(map(repr, others))} besides"] * bool(others)
    advice = f"give all {len(expected)}" if missing else take
    raise ValueError(
        f"{name} {' and '.join(text) or 'repeats columns'}: {'the model was fitted on' if like is None else 'X has'} "
        f"other columns; {advice}, or rows without names where these are the same columns"
    )


def warn_of_ranges(kernel: Kernel, data: Summary, names: tuple[str, ...] | None) -> None:
    """Warn where the ranges of the columns differ by more than ``WIDE``: the widest then decide alone."""
    if kernel.scales_columns or not kernel.takes_points:
        return
    with np.errstate(over="ignore"):
        ranges = data.box[1] - data.box[0]
        if not ranges.max() > WIDE * ranges.min():  # nearly always
            return
    varies = (ranges > 0) & np.isfinite(ranges)
    sizes = ranges[varies]
    if len(sizes) < 2 or (widest := sizes.max()) <= WIDE * sizes.min():
        return
    small = [repr(names[j]) if names else str(j) for j in np.flatnonzero(varies) if WIDE * ranges[j] < widest]
    first = int(np.argmax(np.where(np.isfinite(ranges), ranges, 0.0)))
    warn_caller(
        f"the columns of X have wildly different ranges: that of column {repr(names[first]) if names else first} is "
        f"{widest:.3g}, and less than a thousandth of that is the range of column {listed(small)}, so that the small "
        f"ones hardly count in {kernel!r}, unless it weighs columns itself; standardize=True scales all columns alike "
        "(standardize=False leaves them as they are, and says nothing)",
        ScalesWarning,
    )


def column_labels(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names of all columns; "column 0" and so on where there are none."""
    return tuple(names) if names else tuple(f"column {i}" for i in range(count))


def listed(items: Iterable[str], limit: int = 5, separator: str = ", ") -> str:
    """The first of these texts, and how many more there are."""
    texts = list(items)
    return separator.join(texts[:limit]) + (f" and {len(texts) - limit} more" if len(texts) > limit else "")

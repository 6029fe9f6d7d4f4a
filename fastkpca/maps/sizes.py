"""How many features a stored map has, by what the file says of it: known before anything of that size is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.stored import Record
from ..errors import ModelFileError
from .combined import parts_of
from .monomial import polynomial_size, taylor_size

__all__ = ["stored_size"]

MOST_DEGREE, MOST_ORDER = 64, 2001


def stored_size(
    header: Any, arrays: Mapping[str, np.ndarray], n_columns: int, most: int, what: str = "the feature map"
) -> int | None:
    """D of a map of fastkpca's own; None for one that a kernel from outside brings, under another name, or has as part.

    Raises ModelFileError where the description of an own map does not say, is of one for other rows than those of
    ``n_columns`` columns, or says that it, or a part of it, has more than ``most`` features.
    """
    size = _stored_size(header, arrays, n_columns, most, what)
    if size is not None and size > most:
        raise ModelFileError(f"{what}: it has {size} features, the model {most}")
    return size


def _stored_size(header: Any, arrays: Mapping[str, np.ndarray], n_columns: int, most: int, what: str) -> int | None:
    own = Record(header, arrays, what)

    def columns(d: int) -> int:
        if d != n_columns:
            raise own.refuse(f"it is for rows of {d} columns, the model's have {n_columns}")
        return d

    match own.header.get("map"):
        case "polynomial":
            d, degree = columns(own.whole("d", least=1, most=1 << 31)), own.whole("degree", least=1, most=MOST_DEGREE)
            return polynomial_size(d, degree, own.number("offset", least=0.0))
        case "taylor":
            d, order = columns(own.whole("d", least=1, most=1 << 31)), own.whole("order", least=0, most=MOST_ORDER)
            return taylor_size(d, order)
        case "ranked":
            return len(own.array("indices", (None, columns(len(own.array("centre", (None,))))), kind="i"))
        case "pivots":
            return len(own.array("pivots", (None, n_columns)))
        case "fourier":
            columns(own.array("box", (2, None)).shape[1])
            return int(own.array("weights", (None,) * n_columns).size)
        case "scaled" | "sum" | "tensor" as word:
            parts = enumerate(parts_of(dict(own.header), dict(arrays)))
            sizes = [stored_size(*part, n_columns, most, f"part {i} of {what}") for i, part in parts]
            known = [size for size in sizes if size is not None]
            if word == "tensor" and 0 in known:  # it would hide the sizes of the others
                raise own.refuse("a part of a product has no features")
            total = sum(known) if word == "sum" else math.prod(known)
            if total > most:  # parts of unknown size make it no smaller
                raise own.refuse(f"its parts have {total} features together, the model {most}")
            return total if len(known) == len(sizes) else None
    return None

"""Maps in model files: how many features one has, known before anything of that size is made; and the map itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..base.protocol import FeatureMap, Kernel
from ..base.stored import Record
from ..errors import ModelFileError
from .combined import ColumnMap, ScaledMap, SumMap, TensorMap, parts_of
from .pivots import PivotMap

COMBINED = {cls.kind: cls for cls in (ColumnMap, ScaledMap, SumMap, TensorMap)}


def restored(kernel: Kernel, header: dict, arrays: dict[str, np.ndarray]) -> FeatureMap:
    """The map of a kernel that ``FeatureMap.state`` described. Pivots are the core's own, for any kernel."""
    if header.get("map") == PivotMap.kind:
        return PivotMap.from_state(kernel, header, arrays)
    return kernel.feature_map_from_state(header, arrays)


def map_of_kernel(
    kernel: Kernel, header: dict, arrays: dict[str, np.ndarray], is_of_kernel: Callable[[Any], bool]
) -> FeatureMap:
    """A map of a kernel's ``stored_maps``, refused where it is none of this very kernel."""
    record = Record(header, arrays, "the feature map")
    classes = {cls.kind: cls for cls in kernel.stored_maps}
    feature_map = classes[record.text("map", tuple(classes))].from_state(header, arrays)
    if not is_of_kernel(feature_map):
        raise record.refuse(f"it is not one of {kernel!r}")
    return feature_map


def stored_size(
    kernel: Kernel,
    header: Any,
    arrays: Mapping[str, np.ndarray],
    n_columns: int,
    most: int,
    what: str = "the feature map",
) -> int | None:
    """D of a map of fastkpca's own; None for one that a kernel from outside brings, under another name, or has as part.

    Raises ModelFileError for a built-in map whose description lacks these numbers, whose rows do not have ``n_columns``
    columns, or which has, itself or in a part, more than ``most`` features.
    """
    record = Record(header, arrays, what)
    kind = record.header.get("map")
    if not isinstance(kind, str):
        return None
    classes = {cls.kind: cls for cls in (PivotMap, *kernel.stored_maps)}
    if kind in COMBINED:
        size = _size_of_parts(kernel, record, n_columns, most, what)
    else:
        size = classes[kind].stored_size(record, n_columns) if kind in classes else None
    if size is not None and size > most:
        raise ModelFileError(f"{what}: it has {size} features, the model {most}")
    return size


def _size_of_parts(kernel: Kernel, record: Record, n_columns: int, most: int, what: str) -> int | None:
    cls = COMBINED[record.header["map"]]
    parts = parts_of(dict(record.header), dict(record.arrays))
    # another number of parts than the kernel's is refused when they are made
    sizes = [
        stored_size(part_kernel, *part, kernel.map_columns(n_columns), most, f"part {i} of {what}")
        for i, (part_kernel, part) in enumerate(zip(kernel.map_parts(), parts))
    ]
    known = [size for size in sizes if size is not None]
    if cls is TensorMap and 0 in known:  # it would hide the sizes of the others
        raise record.refuse("a part of a product has no features")
    total = cls.joined_size(known)
    if total > most:  # parts of unknown size make it no smaller
        raise record.refuse(f"its parts have {total} features together, the model {most}")
    return total if len(known) == len(sizes) else None

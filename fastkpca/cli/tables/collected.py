"""Numbers that come block by block and are kept: in memory, or where they are many in a nameless file."""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any

import numpy as np

from ...errors import DataFileError
from ...rows.foreign import mapped_part
from ...rows.sources import PAGE_CACHE_BYTES, FileSource


class CollectedBytes:
    """Bytes of an array, one block after the other; used in a ``with`` statement. ``name`` is what errors call it."""

    def __init__(self, name: str):
        self._name = name
        self._file = tempfile.SpooledTemporaryFile(PAGE_CACHE_BYTES)  # noqa: SIM115 (closed at the end of the with statement)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, block: Any) -> None:
        try:
            self._file.write(block)
        except OSError as error:
            raise DataFileError(
                f"{self._name}: its numbers do not fit into {tempfile.gettempdir()} ({error.strerror}); "
                "name a folder with more room in the variable TMPDIR"
            ) from error

    def array(self, shape: tuple[int, ...], dtype: Any, order: Any = "C") -> np.ndarray | FileSource:
        """All of them: an array, or a source that reads the file, which lives as long as the source."""
        self._file.seek(0)
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size <= PAGE_CACHE_BYTES or len(shape) != 2:
            rows = np.empty(shape, dtype, order)
            self._file.readinto(rows.reshape(-1, order="A").view(np.uint8).data)
            return rows
        mapped: np.memmap = np.memmap(self._file, dtype, "r", shape=shape, order=order)
        part = mapped_part(mapped, self._name)
        return FileSource(self._name, mapped, part, os.dup(self._file.fileno()))


class CollectedRows(CollectedBytes):
    """Blocks of ``n_columns`` columns of float64, one under the other."""

    def __init__(self, n_columns: int, name: str):
        super().__init__(name)
        self._width, self._n = n_columns, 0

    def append(self, block: np.ndarray) -> None:
        self._n += len(block)
        super().append(np.ascontiguousarray(block, dtype=np.float64).data)

    def rows(self) -> np.ndarray | FileSource:
        """All of them, as ``array``."""
        return self.array((self._n, self._width), np.float64)

"""Rows that come block by block and are kept: in memory, or where they are many in a nameless file."""

from __future__ import annotations

import os
import tempfile

import numpy as np

from ..errors import DataFileError
from .foreign import mapped_part
from .sources import KEPT, FileSource


class CollectedRows:
    """Blocks of float64 rows, one under the other; used in a ``with`` statement.

    Parameters
    ----------
    n_columns : int
    name : str
        What errors call the rows.
    """

    def __init__(self, n_columns: int, name: str):
        self._name, self._width, self._n = name, n_columns, 0
        self._file = tempfile.SpooledTemporaryFile(KEPT)  # noqa: SIM115 (closed at the end of the with statement)

    def __enter__(self) -> CollectedRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, block: np.ndarray) -> None:
        self._n += len(block)
        try:
            self._file.write(np.ascontiguousarray(block, dtype=np.float64).data)
        except OSError as error:
            raise DataFileError(
                f"{self._name}: its numbers do not fit into {tempfile.gettempdir()} ({error.strerror}); "
                "name a folder with more room in the variable TMPDIR"
            ) from error

    def rows(self) -> np.ndarray | FileSource:
        """All of them: an array, or a source that reads the file, which lives as long as the source."""
        shape = (self._n, self._width)
        self._file.seek(0)
        if 8 * self._n * self._width <= KEPT:
            rows = np.empty(shape)
            self._file.readinto(rows.data)
            return rows
        mapped: np.memmap = np.memmap(self._file, np.float64, "r", shape=shape)
        part = mapped_part(mapped, self._name)
        return FileSource(self._name, mapped, part, os.dup(self._file.fileno()))

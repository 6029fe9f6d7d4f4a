"""Rows that come block by block and are kept: in memory, or where they are many in a nameless file."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

from ..errors import DataFileError
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
        self._name, self._width = name, n_columns
        self._n = 0
        self._parts: list[np.ndarray] = []
        self._file: Any = None

    def __enter__(self) -> CollectedRows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, block: np.ndarray) -> None:
        self._n += len(block)
        if self._file is None:
            self._parts.append(block)
            if self._n * self._width * 8 > KEPT:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed at the end of the with statement)
                while self._parts:
                    self._write(self._parts.pop(0))
        else:
            self._write(block)

    def rows(self) -> np.ndarray | FileSource:
        """All of them: an array, or a source that reads the file, which lives as long as the source."""
        shape = (self._n, self._width)
        if self._file is None:
            return np.concatenate([np.empty((0, self._width)), *self._parts], out=np.empty(shape))
        self._file.flush()
        mapped = np.memmap(self._file, np.float64, "r", shape=shape)
        return FileSource(self._name, mapped, os.dup(self._file.fileno()), 0)

    def _write(self, block: np.ndarray) -> None:
        try:
            self._file.write(np.ascontiguousarray(block, dtype=np.float64).data)
        except OSError as error:
            raise DataFileError(
                f"{self._name}: its numbers do not fit into {tempfile.gettempdir()} ({error.strerror}); "
                "name a folder with more room in the variable TMPDIR"
            ) from error

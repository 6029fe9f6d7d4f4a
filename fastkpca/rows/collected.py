"""Rows that come block by block and are kept: in memory, or where they are many in a nameless file."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

from ..errors import DataFileError
from .sources import KEPT_SEQUENTIAL, FileSource

__all__ = ["CollectedRows"]


class CollectedRows:
    """Blocks of float64 rows, one under the other; used in a ``with`` statement.

    Parameters
    ----------
    n_columns : int
    name : str
        What errors call the rows.
    """

    def __init__(self, n_columns: int, name: str):
        self._name = name
        self._n = 0
        self._X = np.empty((0, n_columns))
        self._file: Any = None

    def __enter__(self) -> CollectedRows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, block: np.ndarray) -> None:
        n, d = self._n + len(block), self._X.shape[1]
        if self._file is None and n * d * 8 > KEPT_SEQUENTIAL:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed at the end of the with statement)
            self._write(self._X[: self._n])
            self._X = np.empty((0, d))
        if self._file is not None:
            self._write(block)
        else:
            if n > len(self._X):  # in place, so that little more memory is needed than the rows take
                self._X.resize((max(n, len(self._X) * 5 // 4), d), refcheck=False)
            self._X[self._n : n] = block
        self._n = n

    def rows(self) -> np.ndarray | FileSource:
        """All of them: an array, or a source that reads the file, which lives as long as the source."""
        shape = (self._n, self._X.shape[1])
        if self._file is None:
            self._X.resize(shape, refcheck=False)
            return self._X
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

"""Targets of scores: memory maps with their bytes on disk, and datasets that are written in order."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import numpy as np

from .foreign import mapped_part
from .sources import whole_chunks

SCORES_AT_ONCE = 1 << 28
"""Bytes of scores that wait in memory until they are written; of Dask's blocks one at least."""


def reserve(handle: int, start: int, size: int, name: str) -> None:
    """Allocate these bytes of an open file on disk; they keep their values.

    A new file that is mapped takes no space on disk until its pages are written. Where the disk is full by then, the
    system ends the process (SIGBUS); here it is an OSError that names the file.
    """
    if size == 0 or sys.platform != "linux":
        return
    try:
        os.posix_fallocate(handle, start, size)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):  # not on this file system
            return
        reason = os.strerror(error.errno or 0)
        raise OSError(error.errno, f"{reason} for {size / 1e6:.3g} MB of scores", name) from None


def reserve_map(out: Any) -> None:
    """``reserve`` for an array that is a view of a memory map of a file; nothing for any other.

    Raises
    ------
    DataChangedError
        The file has been cut short: to write into it would end the process.
    """
    part = mapped_part(out, "out")
    if part is None or part.path is None or part.private:
        return
    try:
        handle = os.open(part.path, os.O_RDWR)
    except OSError:  # deleted: the map still holds it
        return
    try:
        if os.fstat(handle).st_size >= part.high:  # else another file of that name by now
            reserve(handle, part.low, part.high - part.low, str(part.path))
    finally:
        os.close(handle)


class Sink:
    """Rows written in order into a dataset that can be assigned to by slice (h5py, zarr), whole chunks at a time.

    Columns that it has beyond those of the rows are zeros.
    """

    def __init__(self, out: Any):
        self._out, self._start, self._held = out, 0, 0
        self._parts: list[np.ndarray] = []
        self._rows = whole_chunks(out)

    def write(self, part: np.ndarray) -> None:
        """The next rows."""
        self._parts.append(part)
        self._held += len(part)
        while self._held >= self._rows:
            self._flush(self._rows)

    def close(self) -> None:
        if self._held:
            self._flush(self._held)

    def _flush(self, rows: int) -> None:
        held = self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts)
        with np.errstate(over="ignore"):  # refused where the scores are checked
            now = held[:rows].astype(self._out.dtype, copy=False)
        if now.shape[1] < self._out.shape[1]:
            now = np.pad(now, ((0, 0), (0, self._out.shape[1] - now.shape[1])))
        self._out[self._start : self._start + rows] = now
        self._start, self._held, self._parts = self._start + rows, self._held - rows, [held[rows:]]

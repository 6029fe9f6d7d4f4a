"""Arrays in .npy, .npz and MATLAB files (up to version 7), by name; for the command line.

.npz and .mat files answer two questions: ``shapes`` and ``load``.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from tokenize import TokenError
from typing import Any

import numpy as np
import scipy  # scipy.io is loaded where it is used first
import scipy.sparse as sp

from ..errors import DataFileError

__all__ = ["Mat", "Npz", "data_file_errors", "read_npy"]

_NUMERIC = {"double", "single", "logical", "sparse", *(np.dtype(code).name for code in "bBhHiIlL")}
"""MATLAB's classes of real numbers."""


@contextmanager
def data_file_errors(name: str, errors: tuple[type[Exception], ...], what: str) -> Iterator[None]:
    """Turns these errors of a reader into a DataFileError that names the file, and says what is wrong with it."""
    try:
        yield
    except (DataFileError, FileNotFoundError, PermissionError, MemoryError):
        raise
    except errors as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataFileError(f"{name} {what}: {reason}") from error


def read_npy(path: str | os.PathLike) -> np.ndarray:
    # the header is a Python literal, and numpy's reader of it fails as Python's does
    errors = (ValueError, EOFError, OSError, OverflowError, TypeError, SyntaxError, TokenError)
    with data_file_errors(str(path), errors, "cannot be read"):
        return np.load(path, mmap_mode="r", allow_pickle=False)


class Npz:
    """The arrays of an .npz file, looked at by their headers alone."""

    errors = (ValueError, EOFError, OSError, KeyError, zlib.error, zipfile.BadZipFile, NotImplementedError)
    has_vectors = True

    def __init__(self, path: str | os.PathLike, name: str):
        self.path, self.name = path, name

    def shapes(self) -> dict[str, tuple[int, ...]]:
        result = {}
        refusing = data_file_errors(self.name, self.errors, "is not a readable .npz file")
        with refusing, zipfile.ZipFile(self.path) as archive:
            members = archive.infolist()
            names = [member.filename.removesuffix(".npy") for member in members]
            name, count = Counter(names).most_common(1)[0] if names else ("", 0)
            if count > 1:
                raise ValueError(f"it has several members called {name!r}")
            for name, member in zip(names, members):
                if member.filename == name:
                    continue
                with archive.open(member) as file:
                    version = np.lib.format.read_magic(file)
                    known = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                    if version not in known:
                        raise ValueError(f"{member.filename} has version {version}")
                    shape, _, dtype = known[version](file)
                    end = file.tell() + math.prod(shape) * dtype.itemsize
                if end > member.file_size:
                    raise ValueError(f"{member.filename} has {member.file_size} bytes, too few for its shape {shape}")
                if dtype.kind in "biuf":
                    result[name] = shape
        return result

    def load(self, var: str) -> Any:
        with np.load(self.path, allow_pickle=False) as archive:
            try:
                return archive[var]
            except MemoryError as error:
                raise DataFileError(
                    f"{self.name}: the array {var!r} does not fit into memory ({error}); write it into an .npy file, "
                    "which is read as it is needed"
                ) from None


class Mat:
    """The arrays of a MATLAB file up to version 7."""

    errors = (Exception,)  # the reader of damaged files fails in ways that it does not list
    has_vectors = False

    def __init__(self, path: str | os.PathLike, name: str):
        self.path, self.name = path, name

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each array of real numbers."""
        with data_file_errors(self.name, self.errors, "is not a readable MATLAB file"):
            try:
                listed = scipy.io.whosmat(self.path, appendmat=False)
            except NotImplementedError:
                raise DataFileError(
                    f"{self.name} calls itself a MATLAB v7.3 file, and is no HDF5 file behind that; "
                    "in MATLAB write it anew with save('name.mat', 'X', '-v7.3')"
                ) from None
        return {name: shape for name, shape, kind in listed if kind in _NUMERIC}

    def load(self, var: str) -> Any:
        """The array of that name."""
        value = scipy.io.loadmat(self.path, appendmat=False, variable_names=[var])[var]
        if not sp.issparse(value):
            return value
        value.check_format(full_check=True)  # before compiled loops follow its indices
        return value.tocsr()

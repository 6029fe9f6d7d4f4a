"""Arrays in .npy, .npz and MATLAB files (up to version 7), by name; for the command line.

.npz and .mat files answer two questions: ``shapes`` and ``load``.
"""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...base.room import DEFAULT_MEMORY
from ...errors import DataFileError
from ...rows.foreign import file_source
from ...rows.sources import KEPT
from . import readmat
from .collected import CollectedBytes

MAX_HEADER_BYTES = 1 << 14
"""Bytes of an array's header in an .npz file: numpy takes 10,000."""


@contextmanager
def data_file_errors(name: str, what: str, errors: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """Turns errors of a reader into a DataFileError that names the file, and says what is wrong with it. Those of
    libraries, on damaged files, are of all kinds."""
    try:
        yield
    except (DataFileError, FileNotFoundError, PermissionError, MemoryError):
        raise
    except errors as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataFileError(f"{name} {what}: {reason}") from error


class Npz:
    """The arrays of an .npz file, known by their headers alone."""

    has_vectors = True

    def __init__(self, path: str | os.PathLike, name: str):
        self.path, self.name = path, name

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: shape for name, (_, shape, _, dtype, _) in self._headers().items() if dtype.kind in "biuf"}

    def _headers(self) -> dict[str, tuple[zipfile.ZipInfo, tuple[int, ...], bool, np.dtype, int]]:
        """Arrays by name: member, shape, True for column by column, type, and offset of the numbers in the member."""
        result = {}
        with data_file_errors(self.name, "is not a readable .npz file"), zipfile.ZipFile(self.path) as archive:
            members = archive.infolist()
            names = [member.filename.removesuffix(".npy") for member in members]
            name, count = Counter(names).most_common(1)[0] if names else ("", 0)
            if count > 1:
                raise ValueError(f"it has several members called {name!r}")
            for name, member in zip(names, members):
                if member.filename == name:
                    continue
                with archive.open(member) as packed:
                    file = io.BytesIO(packed.read(MAX_HEADER_BYTES))  # a header may state any length of itself
                version = np.lib.format.read_magic(file)
                known = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                if version not in known:
                    raise ValueError(f"{member.filename} has version {version}")
                shape, by_column, dtype = known[version](file)
                if file.tell() + math.prod(shape) * dtype.itemsize > member.file_size:
                    raise ValueError(f"{member.filename} has {member.file_size} bytes, too few for its shape {shape}")
                result[name] = member, shape, by_column, dtype, file.tell()
        return result

    def load(self, var: str) -> Any:
        """The array of that name; where it is large a source, which reads a file without a name."""
        member, shape, by_column, dtype, start = self._headers()[var]
        with zipfile.ZipFile(self.path) as archive, archive.open(member) as packed, CollectedBytes(self.name) as file:
            packed.read(start)
            while block := packed.read(1 << 20):
                file.append(block)
            return file.array(shape, dtype, "F" if by_column else "C")


class Mat:
    """The arrays of a MATLAB file up to version 7, read by a process of its own: see ``readmat``."""

    has_vectors = False

    def __init__(self, path: str | os.PathLike, name: str, memory: float | None = None):
        self.path, self.name = path, name
        self._memory = int(DEFAULT_MEMORY if memory is None else memory)

    def _ask(self, what: str, *arguments: str) -> dict[str, Any]:
        """Answer of the reader process; a DataFileError that begins with ``what`` if it fails, dies or does not end."""
        size = os.path.getsize(self.path)
        limit = 60.0 + size / 1e6
        # with the modules of this process, which the working folder and Python's own options could otherwise change
        start = "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop(1)); del sys.argv[0]; "
        start += "runpy.run_path(sys.argv[0], run_name='__main__')"
        command = [sys.executable, "-c", start, json.dumps([p for p in sys.path if isinstance(p, str)])]
        command += [readmat.__file__, str(self._memory), os.fspath(self.path), *arguments]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise DataFileError(f"{self.name} {what}: its {size} bytes took more than {limit:.0f} seconds") from None
        if done.returncode:
            raise DataFileError(f"{self.name} {what}: scipy's reader does not survive it, so the file is damaged")
        answer = json.loads(done.stdout)
        if answer.get("memory"):
            raise DataFileError(
                f"{self.name} takes more than {self._memory / 1e6:.3g} MB to read; in MATLAB write it anew with "
                "save('name.mat', 'X', '-v7.3'), which is read as it is needed, or raise --memory-limit"
            )
        if "error" not in answer or "v73" not in answer:
            return answer
        if answer["v73"]:
            raise DataFileError(
                f"{self.name} calls itself a MATLAB v7.3 file, and is no HDF5 file behind that; "
                "in MATLAB write it anew with save('name.mat', 'X', '-v7.3')"
            )
        raise DataFileError(f"{self.name} {what}: {answer['error']}")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(shape) for name, shape in self._ask("is not a readable MATLAB file").items()}

    def load(self, var: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            self._ask(f"has a variable {var!r} that cannot be read", var, folder)
            dense = os.path.join(folder, "array.npy")
            if not os.path.exists(dense):
                return sp.load_npz(os.path.join(folder, "array.npz"))
            mapped = np.load(dense, mmap_mode="r", allow_pickle=False)
            source = file_source(mapped, self.name)  # which keeps the file
            return np.array(mapped) if source is None or mapped.nbytes <= KEPT else source

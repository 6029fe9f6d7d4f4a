"""Arrays in .npy, .npz and MATLAB files (up to version 7), by name; for the command line.

.npz and .mat files answer two questions: ``shapes`` and ``load``.
"""

from __future__ import annotations

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

from ..errors import DataFileError
from . import readmat


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
    """The arrays of an .npz file, looked at by their headers alone."""

    has_vectors = True

    def __init__(self, path: str | os.PathLike, name: str):
        self.path, self.name = path, name

    def shapes(self) -> dict[str, tuple[int, ...]]:
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
    """The arrays of a MATLAB file up to version 7, read by a process of its own: see ``readmat``."""

    has_vectors = False

    def __init__(self, path: str | os.PathLike, name: str):
        self.path, self.name = path, name

    def _ask(self, what: str, *arguments: str) -> dict[str, Any]:
        """What the reader answers; a DataFileError that begins with ``what`` where it fails, dies or does not end."""
        size = os.path.getsize(self.path)
        limit = 60.0 + size / 1e6
        # with the same modules as here, whatever folder this is and whatever options Python was started with
        start = "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop(1)); del sys.argv[0]; "
        start += "runpy.run_path(sys.argv[0], run_name='__main__')"
        command = [sys.executable, "-c", start, json.dumps([p for p in sys.path if isinstance(p, str)])]
        command += [readmat.__file__, os.fspath(self.path), *arguments]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise DataFileError(f"{self.name} {what}: its {size} bytes took more than {limit:.0f} seconds") from None
        if done.returncode:
            raise DataFileError(f"{self.name} {what}: scipy's reader does not survive it, so the file is damaged")
        answer = json.loads(done.stdout)
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
            if os.path.exists(dense):
                return np.load(dense, allow_pickle=False)
            return sp.load_npz(os.path.join(folder, "array.npz"))

"""Tables in files that are read as they are needed, never whole: HDF5 (MATLAB v7.3 too), zarr, Parquet; for the
command line.

HDF5 and zarr hold arrays by name, as .npz and .mat files do, and answer the same two questions: ``shapes`` and
``load``. A Parquet file, or a folder of them, is one table with named columns. Their libraries are imported here alone,
and only for such a file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...base.process_memory import DEFAULT_MEMORY
from ...errors import DataFileError
from ...rows.foreign import arrow_batches, arrow_types, from_arrow
from ...rows.sources import ChunkedSource, Source
from . import readmat
from .archives import data_file_errors
from .sheets import library


def kind_of_folder(path: str | os.PathLike) -> str:
    """ "zarr", "parquet", or "" for any other folder."""
    folder = Path(path)
    if any((folder / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup")):
        return "zarr"
    return "parquet" if next(folder.rglob("*.parquet"), None) is not None else ""


class _Transposed:
    """A dataset whose columns are the rows that are meant: MATLAB stores arrays column by column."""

    def __init__(self, data: Any):
        self._data = data
        self.shape, self.dtype = data.shape[::-1], data.dtype
        self.chunks = None if data.chunks is None else data.chunks[::-1]
        self.is_virtual, self.external = data.is_virtual, data.external

    def __getitem__(self, rows: Any) -> np.ndarray:
        return (self._data[:, rows] if isinstance(rows, slice) else self._data[()]).T


class _Datasets:
    """Arrays by their paths in a file.

    ``has_vectors``: some may have one dimension; in MATLAB all have two.
    """

    def __init__(self, name: str, datasets: dict[str, Any], has_vectors: bool = True, memory: float | None = None):
        self.name, self.has_vectors = name, has_vectors
        self._memory = DEFAULT_MEMORY if memory is None else memory
        self._datasets = {path: data for path, data in datasets.items() if _is_numbers(data)}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each array of real numbers."""
        return {path: tuple(data.shape) for path, data in self._datasets.items()}

    def load(self, var: str) -> Source | np.ndarray:
        """The array of that path: as a source of rows where it has two dimensions, else it is read."""
        data = self._datasets[var]
        if getattr(data, "is_virtual", False) or getattr(data, "external", None):
            raise DataFileError(
                f"{self.name}: the numbers of {var!r} lie in other files that it names, which are not read; copy them "
                "into one file by h5py, or give its dataset to fastkpca.kpca"
            )
        chunk = math.prod(getattr(data, "chunks", None) or (0,)) * np.dtype(data.dtype).itemsize
        if chunk > self._memory / 4:  # a library makes all of it of what may be a few bytes of the file
            raise DataFileError(
                f"{self.name}: a chunk of {var!r} takes {chunk / 1e6:.3g} MB, more than a quarter of the "
                f"{self._memory / 1e6:.3g} MB that may be taken; write it anew in smaller chunks, or raise "
                "--memory-limit"
            )
        if len(data.shape) != 2 or 0 in data.shape:
            return np.asarray(data[()])

        def rows(start: int, stop: int) -> np.ndarray:
            with data_file_errors(self.name, f"has rows that cannot be read ({start} to {stop - 1})"):
                return data[start:stop]

        return ChunkedSource(self.name, data, rows)


class Hdf5(_Datasets):
    """The arrays of an HDF5 file, by their paths in it; of a MATLAB v7.3 file, as MATLAB shows them."""

    def __init__(self, path: str | os.PathLike, name: str, matlab: bool, memory: float | None = None):
        h5py = library("h5py", name, "a MATLAB v7.3 file (HDF5)" if matlab else "an HDF5 file")
        datasets: dict[str, Any] = {}
        sparse: list[str] = []

        def visit(path: str, data: Any) -> None:
            if not matlab:
                if isinstance(data, h5py.Dataset):
                    datasets[path] = data
                return
            known, label = data.attrs, path.replace("/", ".")
            if "MATLAB_sparse" in known:
                sparse.append(label)
            words = known.get("MATLAB_class", b"double").decode() not in readmat.NUMERIC_CLASSES
            no_array = path.startswith("#") or "MATLAB_empty" in known or words or label.rpartition(".")[0] in sparse
            if isinstance(data, h5py.Dataset) and not no_array:
                datasets[label] = _Transposed(data)

        with data_file_errors(name, "is not a readable HDF5 file"):
            self._file = h5py.File(path, "r")
            self._file.visititems(visit)
            if sparse and not datasets:
                raise DataFileError(
                    f"{name} holds the sparse matrix {sparse[0]!r}, which is not read from a MATLAB v7.3 file; save it "
                    "with '-v7', or as full numbers"
                )
            super().__init__(name, datasets, not matlab, memory)


class Zarr(_Datasets):
    """The arrays of a zarr store, by their paths in it; the path of one that is an array itself is its name."""

    def __init__(self, path: str | os.PathLike, name: str, memory: float | None = None):
        zarr = library("zarr", name, "a zarr store")
        with data_file_errors(name, "is not a readable zarr store"):
            top = zarr.open(os.fspath(path), mode="r")
            inside = [(Path(path).stem, top)] if isinstance(top, zarr.Array) else top.members(max_depth=None)
            super().__init__(name, {path: data for path, data in inside if isinstance(data, zarr.Array)}, memory=memory)


def _is_numbers(data: Any) -> bool:
    return bool(data.shape) and np.dtype(data.dtype).kind in "fiub"


class Parquet:
    """A Parquet or Arrow file, or a folder of Parquet files: its columns, and blocks of rows of some of these."""

    def __init__(self, path: str | os.PathLike, name: str, kind: str = "parquet"):
        called = {"parquet": "Parquet", "ipc": "Arrow"}[kind]
        datasets = library("pyarrow.dataset", name, f"an {called} file" if kind == "ipc" else "a Parquet file")
        self.name = name
        if any("\udc80" <= letter <= "\udcff" for letter in os.fspath(path)):
            raise DataFileError(f"{name}: Parquet files are read by a name of UTF-8, which this is not; rename it")
        with data_file_errors(name, f"is not a readable {called} file"):
            self._dataset = datasets.dataset(os.fspath(path), format=kind, partitioning="hive")
        self.names: list[str] = self._dataset.schema.names
        self.shape = (self._dataset.count_rows(), len(self.names))

    def not_numeric(self, columns: list[int]) -> list[tuple[int, str]]:
        """Which of these are no columns of real numbers, and what they are."""
        types = list(arrow_types(self._dataset.schema))
        return [(i, types[i][1]) for i in columns if not types[i][2]]

    def rows(self, columns: list[int]) -> Callable[[], Iterator[Any]]:
        """Blocks of rows, from the first on each time that it is called, without names: the caller maps those."""
        names = [self.names[i] for i in columns]
        return lambda: (from_arrow(batch, self.name) for batch in arrow_batches(self._dataset, names))

    def column(self, i: int) -> np.ndarray:
        """One column, whole: numbers, or strings."""
        values = self._dataset.to_table(columns=[self.names[i]]).column(0).to_numpy()
        return values if values.dtype.kind in "biuf" else values.astype(str)

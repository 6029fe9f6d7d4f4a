"""Scores into files (csv, npy), for the command line."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ...base import parallel
from ...base.atomic import atomic
from ...errors import DataFileError
from ...rows.sinks import SCORES_AT_ONCE, reserve

Identifiers = tuple[str, np.ndarray]
"""Names of the rows, and the name of that column."""


def score_place(path: str | os.PathLike) -> Callable[[tuple[int, ...], np.dtype], np.ndarray]:
    """For ``kpca(out=)``: where scores wait until they are written to ``path``, in memory or, where they are many, in a
    nameless file beside it."""

    def place(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if shape[0] * shape[1] * dtype.itemsize <= SCORES_AT_ONCE:
            return np.empty(shape, dtype)
        folder = Path(path).resolve().parent
        with tempfile.TemporaryFile(dir=folder) as file:
            reserve(file.fileno(), 0, shape[0] * shape[1] * dtype.itemsize, f"{folder}{os.sep}")
            return np.memmap(file, dtype, "w+", shape=shape)  # which keeps the file

    return place


def among_all(scores: np.ndarray, kept: np.ndarray | None, path: str | os.PathLike) -> np.ndarray:
    """Scores of the rows that were ``kept`` (None: all), with rows of NaN in the places of the others."""
    if kept is None:
        return scores
    every = score_place(path)((len(kept), scores.shape[1]), scores.dtype)
    every[...] = np.nan
    every[kept] = scores
    return every


def write_scores_csv(file: TextIO, scores: np.ndarray, identifiers: Identifiers | None = None) -> None:
    """Scores as csv with the header PC1, PC2, ...: as many digits as bring back the same number. Identifiers of the
    rows come first. Rows of NaN have empty fields."""
    if identifiers is not None and len(identifiers[1]) != len(scores):
        raise ValueError(f"there are {len(identifiers[1])} identifiers for {len(scores)} rows")
    head = [f"PC{i + 1}" for i in range(scores.shape[1])]
    file.write(",".join(head if identifiers is None else [_cell(identifiers[0]), *head]) + "\n")
    step = parallel.tile_rows(len(head))
    for start in range(0, len(scores), step):
        part = scores[start : start + step]
        if part.dtype == np.float64:
            rows = [",".join(map(repr, row)) for row in part.tolist()]
        else:  # the shortest digits of a float32 are not those of the same number as float64
            rows = [",".join(row) for row in part.astype(str).tolist()]
        for i in np.flatnonzero(np.isnan(part[:, 0])):
            rows[i] = "," * (len(head) - 1) or '""'  # of a row that was left out: not a blank line, which readers skip
        if identifiers is not None:
            rows = [f"{_cell(x)},{row}" for x, row in zip(identifiers[1][start : start + step].tolist(), rows)]
        file.write("\n".join(rows) + "\n")


def _cell(value: Any) -> str:
    """One field of csv; whole numbers without a fraction."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(x in text for x in ',"\r\n') else text


def score_writer(path: str | os.PathLike, *, with_identifiers: bool = False) -> Callable[..., None]:
    """The function (scores, overwrite, identifiers=None) that writes scores to ``path``, in the format its ending says.

    Raises
    ------
    DataFileError
        The ending is none of .csv, .csv.gz and .npy, or it is .npy and there are identifiers to write.
    """
    name = str(path).lower()

    def as_npy(scores: np.ndarray, overwrite: bool, identifiers: Identifiers | None = None) -> None:
        with atomic(path, overwrite=overwrite) as file:
            # not write_array: numpy says nothing of what a full disk does not take at the end
            scores = np.ascontiguousarray(scores)
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(scores))
            file.write(scores.data)

    def as_csv(scores: np.ndarray, overwrite: bool, identifiers: Identifiers | None = None) -> None:
        with atomic(path, overwrite=overwrite) as file:
            packed = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if name.endswith(".gz") else None
            text = io.TextIOWrapper(packed or file, encoding="utf-8", newline="\n", write_through=True)
            write_scores_csv(text, scores, identifiers)
            text.flush()
            text.detach()
            if packed is not None:
                packed.close()

    if name.endswith(".npy") and with_identifiers:
        raise DataFileError(f"--id writes a column beside the scores, which {str(path)!r} cannot hold; write .csv")
    if name.endswith(".npy"):
        return as_npy
    if name.endswith((".csv", ".csv.gz")):
        return as_csv
    raise DataFileError(f"scores are written as .csv, .csv.gz or .npy, which {str(path)!r} does not end with")

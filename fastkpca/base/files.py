"""Model files: a JSON header and raw arrays under one checksum.

Layout, all numbers little-endian::

    bytes 0..7     magic, b"FASTKPCA"
          8..11    format version, uint32
          12..15   length of the JSON header, uint32 (padded by spaces so that it ends on a 64-byte boundary)
          16..23   size of the whole file, uint64 (so that a truncated file can be told from an altered one)
          24..     JSON: {"header": ..., "arrays": [{"name", "dtype", "shape", "offset", "nbytes"}, ...]}
          ...      the arrays in table order, C order, each on the next 64-byte boundary, zeros between
          last 32  SHA-256 over everything before

Nothing in a file is ever executed (no pickle), and no size it states is believed before it was compared with the size
of the file. The layout has one valid form, so arrays cannot overlap, lie outside or leave room for anything else.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from ..errors import ModelFileError
from .atomic import atomic

MAGIC = b"FASTKPCA"
VERSION = 1
"""Of the format that is written, and the only one that is read."""

_PREFIX = struct.Struct("<8sIIQ")
_DIGEST = hashlib.sha256().digest_size
_ALIGN = 64
"""Bytes, of which the place of an array is a multiple: a line of the cache."""
MOST_HEADER = 1 << 22
"""Bytes of JSON; Python objects take up to some 25 times as much as the text that describes them."""
_MAX_DEPTH = 100
"""Of nested lists and objects, far below where the JSON reader of any Python version gives up; and dimensions that are
looked at, of which numpy takes fewer."""
_DTYPES = {
    np.dtype(code).newbyteorder("<").str: np.dtype(code).newbyteorder("<")
    for code in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
}
# JSON has no NaN and no infinity: they are written as {"$float": "nan"}
_NON_FINITE = "$float"
_NON_FINITE_VALUES = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def write(
    path: str | os.PathLike, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, overwrite: bool = False
) -> None:
    """Write a model file; it appears complete or not at all.

    Parameters
    ----------
    path : str or path-like
    header : mapping
        Of strings to None, bool, int, float, str, lists and mappings of these. Floats come back bit for bit (NaN and
        infinities too), tuples as lists, numpy scalars as Python numbers. Keys may not begin with ``$``.
    arrays : mapping of str to ndarray
        Booleans, integers, floats up to 64 bits and complex numbers up to 128; any memory order and byte order.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    TypeError, ValueError
        The header or an array holds what the format does not: named in the text. Nothing is written.
    FileExistsError, FileNotFoundError, OSError
        As ``check_target``.
    """
    plain = {name: _storable(name, array) for name, array in arrays.items()}
    # the offsets depend on the length of the JSON that states them: offsets relative to the first array break the knot
    table, end = _layout((name, array.dtype.str, array.shape) for name, array in plain.items())
    content = {"header": _encode(header, "header"), "arrays": table}
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    text += b" " * (_aligned(_PREFIX.size + len(text)) - _PREFIX.size - len(text))
    if len(text) > MOST_HEADER:
        raise ValueError(f"the header takes {len(text)} bytes, more than {MOST_HEADER}; put its contents into arrays")
    size = _PREFIX.size + len(text) + end + _DIGEST

    with atomic(path, overwrite=overwrite) as file:
        digest = hashlib.sha256()

        def put(data: Any) -> int:
            digest.update(data)
            return file.write(data)

        put(_PREFIX.pack(MAGIC, VERSION, len(text), size))
        put(text)
        written = 0
        for array in plain.values():
            written += put(b"\0" * (_aligned(written) - written))
            written += put(array.reshape(-1).view(np.uint8).data)
        file.write(digest.digest())


def read(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(header, arrays) of a model file; the arrays are new and writable, in the byte order of this machine.

    Raises
    ------
    ModelFileError
        Not a model file, of an unknown version, truncated, altered, or describing what it cannot hold.
    FileNotFoundError
    TypeError
        ``path`` is no path; a file descriptor is none.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path is {path!r}; give the name of a file, as a string or a Path")
    name = str(path)
    with open(path, "rb", opener=_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{name} is a pipe or a device; give the name of a model file")
        size = status.st_size
        header_length = _read_prefix(file, size, name)
        # numpy allocates no more than the file is long
        data = np.empty(size, dtype=np.uint8)
        file.seek(0)
        if file.readinto(data.data) != size:
            raise ModelFileError(f"{name}: the file became shorter while it was read")
    # before the JSON is looked at: an altered file is then called altered, whatever the alteration made of it
    if hashlib.sha256(data[:-_DIGEST].data).digest() != data[-_DIGEST:].tobytes():
        raise ModelFileError(f"{name} is altered: its checksum does not match its contents")
    start = _PREFIX.size + header_length
    header, table = _parse(data[_PREFIX.size : start].tobytes(), name)
    _check_layout(table, size - _DIGEST - start, name)
    arrays = {entry["name"]: _array(data[start:], entry, name) for entry in table}
    return header, arrays


def _without_waiting(path: str, flags: int) -> int:
    """``os.open`` that does not wait until somebody writes into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN


def _layout(arrays: Iterable[tuple[str, str, Sequence[int]]]) -> tuple[list[dict[str, Any]], int]:
    """(the one valid table of arrays with these names, types and shapes, where the last of them ends)."""
    table: list[dict[str, Any]] = []
    end = 0
    for name, dtype, shape in arrays:
        offset, nbytes = _aligned(end), math.prod(shape) * _DTYPES[dtype].itemsize
        table.append({"name": name, "dtype": dtype, "shape": list(shape), "offset": offset, "nbytes": nbytes})
        end = offset + nbytes
    return table, end


def _array(data: np.ndarray, entry: dict[str, Any], name: str) -> np.ndarray:
    raw = data[entry["offset"] : entry["offset"] + entry["nbytes"]]
    if entry["dtype"] == "|b1" and raw.max(initial=0) > 1:
        raise ModelFileError(f"{name}: array {entry['name']!r} holds bytes that are not booleans")
    array = raw.view(_DTYPES[entry["dtype"]])
    try:
        array = array.reshape(entry["shape"])
    except ValueError as error:  # an empty array of endless dimensions
        raise ModelFileError(f"{name}: array {entry['name']!r} has an impossible shape: {error}") from None
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _storable(name: str, array: Any) -> np.ndarray:
    if not isinstance(name, str):
        raise TypeError(f"array names are strings, not {name!r}")
    if np.ma.isMaskedArray(array):
        raise TypeError(f"array {name!r} is a masked array; the file has no place for a mask")
    array = np.asarray(array)
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in _DTYPES:
        raise TypeError(f"array {name!r} has dtype {array.dtype}; the file holds {', '.join(_DTYPES)}")
    return np.asarray(array, dtype=_DTYPES[dtype.str], order="C")


def _encode(value: Any, place: str, depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError(f"the header is nested more than {_MAX_DEPTH} deep")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_NON_FINITE: repr(value)}
    if isinstance(value, (list, tuple)):
        return [_encode(item, f"{place}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise TypeError(f"{place} has the key {key!r}; keys are strings that do not begin with '$'")
        return {key: _encode(item, f"{place}[{key!r}]", depth + 1) for key, item in value.items()}
    raise TypeError(f"{place} is a {type(value).__name__}, which a header cannot hold; arrays go beside the header")


def _of_matlab(prefix: bytes) -> str:
    if not prefix.startswith((b"MATLAB", b"\x89HDF")):
        return ""
    return (
        "; it looks like a .mat or HDF5 file: what export_mat wrote is for MATLAB and is not read back "
        "(fastkpca.save keeps a model), and data are read by scipy.io.loadmat, or h5py from v7.3 on"
    )


def _read_prefix(file: BinaryIO, size: int, name: str) -> int:
    prefix = file.read(_PREFIX.size)
    if prefix[: len(MAGIC)] != MAGIC[: len(prefix)] or not prefix:
        raise ModelFileError(f"{name} is not a fastkpca model file{_of_matlab(prefix)}")
    if len(prefix) < _PREFIX.size:
        raise ModelFileError(f"{name} is truncated: {size} bytes are not even a header")
    _, version, header_length, stated = _PREFIX.unpack(prefix)
    if version != VERSION:
        raise ModelFileError(
            f"{name} has format version {version}, this fastkpca reads version {VERSION}; "
            "the file is altered, or written by a newer fastkpca"
        )
    if stated != size:
        word = "truncated" if size < stated else "altered (something was appended)"
        raise ModelFileError(f"{name} is {word}: it has {size} bytes where its header says {stated}")
    if header_length > min(MOST_HEADER, size - _PREFIX.size - _DIGEST) or (_PREFIX.size + header_length) % _ALIGN:
        raise ModelFileError(f"{name} is altered: a header of {header_length} bytes is impossible in {size} bytes")
    return header_length


def _parse(text: bytes, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    def pairs(items: list[tuple[str, Any]]) -> Any:
        result = dict(items)
        if len(result) != len(items):
            raise ValueError("a key occurs twice")
        if _NON_FINITE in result:
            if len(result) != 1 or result[_NON_FINITE] not in _NON_FINITE_VALUES:
                raise ValueError(f"a malformed {_NON_FINITE}")
            return _NON_FINITE_VALUES[result[_NON_FINITE]]
        return result

    try:
        content = json.loads(text.decode("utf-8"), object_pairs_hook=pairs)
        _encode(content, "header")  # refused where the writer refuses it: nested so deep that what follows may fail
    except (ValueError, TypeError, RecursionError) as error:  # TypeError: an unhashable $float
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelFileError(f"{name}: the header is not valid JSON: {reason}") from None
    if not isinstance(content, dict) or set(content) != {"header", "arrays"}:
        raise ModelFileError(f"{name}: the header does not consist of 'header' and 'arrays'")
    header, table = content["header"], content["arrays"]
    if not isinstance(header, dict) or not isinstance(table, list):
        raise ModelFileError(f"{name}: 'header' must be an object and 'arrays' a list")
    return header, table


def _check_layout(table: list[Any], size: int, name: str) -> None:
    """Every array exactly where, and as large as, the one valid layout has it."""
    for i, entry in enumerate(table):
        if not isinstance(entry, dict) or set(entry) != {"name", "dtype", "shape", "offset", "nbytes"}:
            raise ModelFileError(f"{name}: entry {i} of the array table does not have the five fields it needs")
        label, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
        if not isinstance(label, str):
            raise ModelFileError(f"{name}: the name of array {i} is not a string")
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise ModelFileError(f"{name}: array {label!r} has dtype {dtype!r}; allowed are {', '.join(_DTYPES)}")
        if not isinstance(shape, list) or len(shape) > _MAX_DEPTH:
            raise ModelFileError(f"{name}: the shape of array {label!r} is no short list")
        if not all(type(n) is int and n >= 0 for n in shape):
            raise ModelFileError(
                f"{name}: array {label!r} has the shape {shape}, of other than whole numbers from 0 on"
            )
    names = [entry["name"] for entry in table]
    if len(set(names)) < len(names):
        raise ModelFileError(f"{name}: two arrays have one name, among {', '.join(names)[:200]}")
    expected, end = _layout((entry["name"], entry["dtype"], entry["shape"]) for entry in table)
    for found, due in zip(table, expected):
        places = [f"{entry['nbytes']!r} bytes at {entry['offset']!r}" for entry in (found, due)]
        if places[0] != places[1]:
            raise ModelFileError(
                f"{name}: array {due['name']!r} has {places[0]}; where arrays neither overlap nor go astray it has "
                f"{places[1]}"
            )
    if end != size:
        raise ModelFileError(f"{name}: its arrays take {end} bytes, and there are {size} for them")

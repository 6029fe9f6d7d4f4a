"""Model files: a JSON header and raw arrays under one checksum.

Layout, all numbers little-endian::

    bytes 0..7     magic, b"FASTKPCA"
          8..11    format version, uint32
          12..15   length of the JSON header, uint32 (padded by spaces so that it ends on a 64-byte boundary)
          16..23   size of the whole file, uint64 (so that a truncated file can be told from an altered one)
          24..     JSON: {"header": ..., "arrays": [[name, dtype, shape], ...]}, with NaN, Infinity and -Infinity
          ...      the arrays in table order, C order, each on the next 64-byte boundary, zeros between
          last 32  SHA-256 over everything before

Nothing in a file is ever executed (no pickle), and no size it states is believed before it was compared with the size
of the file. Types and shapes alone say where arrays are: they cannot overlap, lie outside or leave space for anything
else. The JSON has one valid form, the writer's: the reader writes it again and compares.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from ..errors import ModelFileError
from .atomic import atomic

MAGIC = b"FASTKPCA"
VERSION = 1
"""Version of the format that is written, and the only one that is read."""

_PREFIX = struct.Struct("<8sIIQ")
_DIGEST = hashlib.sha256().digest_size
_ALIGN = 64
"""Bytes, of which the place of an array is a multiple: a line of the cache."""
MOST_HEADER = 1 << 22
"""Bytes of JSON; Python objects take up to some 25 times as much as the text that describes them."""
_MAX_DEPTH = 100
"""Depth of nested lists and objects, far below where the JSON reader of any Python version stops; and dimensions of an
array, of which numpy takes fewer."""
_DTYPES = {
    np.dtype(code).newbyteorder("<").str: np.dtype(code).newbyteorder("<")
    for code in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
}
_Table = list[list[Any]]
"""Name, type and shape of each array."""


def write(
    path: str | os.PathLike, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, overwrite: bool = False
) -> None:
    """Write a model file; it appears complete or not at all.

    Parameters
    ----------
    path : str or path-like
    header : mapping
        Mapping of strings to None, bool, int, float, str, lists and mappings of these. Floats come back bit for bit
        (NaN and infinities too), tuples as lists, numpy scalars as Python numbers.
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
    text = _text(header, [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()])
    if len(text) > MOST_HEADER:
        raise ValueError(f"the header takes {len(text)} bytes, more than {MOST_HEADER}; put its contents into arrays")
    padding, end = [], _PREFIX.size + len(text)
    for array in plain.values():
        padding.append(b"\0" * (_aligned(end) - end))
        end = _aligned(end) + array.nbytes

    with atomic(path, overwrite=overwrite) as file:
        digest = hashlib.sha256()

        def put(data: Any) -> None:
            digest.update(data)
            file.write(data)

        put(_PREFIX.pack(MAGIC, VERSION, len(text), end + _DIGEST))
        put(text)
        for zeros, array in zip(padding, plain.values()):
            put(zeros)
            put(array.reshape(-1).view(np.uint8).data)
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
    # before the JSON is parsed: an altered file is then called altered even where the alteration broke its JSON
    if hashlib.sha256(data[:-_DIGEST].data).digest() != data[-_DIGEST:].tobytes():
        raise ModelFileError(f"{name} is altered: its checksum does not match its contents")
    start, end = _PREFIX.size + header_length, size - _DIGEST
    header, table = _parse(data[_PREFIX.size : start].tobytes(), name)
    places: list[slice] = []
    at = start
    for _, dtype, shape in table:
        places.append(slice(_aligned(at), at := _aligned(at) + math.prod(shape) * _DTYPES[dtype].itemsize))
    if at != end:
        raise ModelFileError(f"{name}: its arrays take {at - start} bytes, and there are {end - start} for them")
    return header, {entry[0]: _array(data[place], entry, name) for place, entry in zip(places, table)}


def _without_waiting(path: str, flags: int) -> int:
    """``os.open`` that does not wait until somebody writes into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN


def _array(raw: np.ndarray, entry: list[Any], name: str) -> np.ndarray:
    label, dtype, shape = entry
    if dtype == "|b1" and raw.max(initial=0) > 1:
        raise ModelFileError(f"{name}: array {label!r} holds bytes that are not booleans")
    try:
        array = raw.view(_DTYPES[dtype]).reshape(shape)
    except ValueError as error:  # an empty array of endless dimensions
        raise ModelFileError(f"{name}: array {label!r} has an impossible shape: {error}") from None
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


def _text(header: Any, table: _Table) -> bytes:
    """The JSON, and spaces up to where the first array begins."""
    content = {"header": _plain(header, "header"), "arrays": table}
    text = json.dumps(content, separators=(",", ":")).encode("ascii")
    return text.ljust(_aligned(_PREFIX.size + len(text)) - _PREFIX.size)


def _plain(value: Any, place: str, depth: int = 0) -> Any:
    """A header's value as JSON has it, and as it is read again."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"the header is nested more than {_MAX_DEPTH} deep")
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, str, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{place}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        if others := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"{place} has the key {others[0]!r}; keys are strings")
        return {key: _plain(item, f"{place}[{key!r}]", depth + 1) for key, item in value.items()}
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
    if header_length > min(MOST_HEADER, size - _PREFIX.size - _DIGEST):
        raise ModelFileError(f"{name} is altered: a header of {header_length} bytes is impossible in {size} bytes")
    return header_length


def _parse(text: bytes, name: str) -> tuple[dict[str, Any], _Table]:
    try:
        content = json.loads(text)
        header, table = map(content.get, ("header", "arrays")) if isinstance(content, dict) else (None, None)
        if not (isinstance(header, dict) and isinstance(table, list)) or _text(header, table) != text:
            raise ValueError("it is not written as fastkpca writes it")
        if wrong := [entry for entry in table if not _is_description(entry)]:
            raise ValueError(f"{wrong[0]!r:.200} are not name, type and shape of an array")
        if len({entry[0] for entry in table}) < len(table):
            raise ValueError("two arrays have one name")
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{name}: its header is damaged ({error})") from None
    return header, table


def _is_description(entry: Any) -> bool:
    match entry:
        case [str(), str(dtype), [*shape]]:
            return dtype in _DTYPES and len(shape) <= _MAX_DEPTH and all(type(n) is int and n >= 0 for n in shape)
    return False

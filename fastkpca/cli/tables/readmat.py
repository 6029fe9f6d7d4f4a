"""The reader of MATLAB files up to version 7, run as a program of its own by ``tables``.

scipy's reader does not survive every damaged file: it reads beyond its buffers. Here it takes nothing else with it.

    python readmat.py BYTES FILE                   the arrays of real numbers and their shapes, as JSON
    python readmat.py BYTES FILE VARIABLE FOLDER   one of them, into FOLDER: array.npy, or array.npz where it is sparse

BYTES is the memory that an array may take. What goes wrong is told as JSON too: {"error": text, "v73": whether the file
calls itself one of version 7.3, "memory": whether it takes more}.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

WHOLE = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
NUMERIC = {"double", "single", "logical", "sparse", *WHOLE}

EMPTY_ROWS, EMPTY_ROWS_A_VALUE = 100_000, 100
"""Rows of a sparse matrix of which nearly all are empty: a file that says more is damaged."""


def fields_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of real numbers in a struct, and in structs in it, by their names as MATLAB writes them: data.X."""
    for field in (value.dtype.names or ()) if value.size == 1 else ():
        inner = value[field].flat[0]
        if getattr(inner.dtype, "names", None):
            yield from fields_of(f"{name}.{field}", inner)
        elif inner.dtype.kind in "biuf":
            yield f"{name}.{field}", inner


def limit_memory(size: int) -> None:
    """Limit the memory of this process, where the system can: for the arrays that are read, once more for their copy as
    it is written, and some memory for Python."""
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        most = taken + 2 * size + (64 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main(size: str, path: str, variable: str | None = None, folder: str = "") -> dict[str, Any]:
    import scipy.io
    import scipy.sparse  # before memory is limited

    limit_memory(int(size))
    if variable is None:
        listed = scipy.io.whosmat(path, appendmat=False)
        shapes = {name: [int(n) for n in shape] for name, shape, kind in listed if kind in NUMERIC}
        structs = [name for name, _, kind in listed if kind == "struct"]
        held = scipy.io.loadmat(path, appendmat=False, variable_names=structs) if structs else {}
        fields = (x for name in structs for x in fields_of(name, held[name]))
        return shapes | {name: list(array.shape) for name, array in fields}
    import numpy as np
    import scipy.sparse as sp

    name = variable.partition(".")[0]
    value = scipy.io.loadmat(path, appendmat=False, variable_names=[name])[name]
    value = value if name == variable else dict(fields_of(name, value))[variable]
    if sp.issparse(value):
        most = max(EMPTY_ROWS, EMPTY_ROWS_A_VALUE * value.nnz)
        if max(value.shape) > most:  # zeros of that number are allocated, even for a small file
            raise ValueError(f"it calls itself {value.shape[0]} x {value.shape[1]} and holds {value.nnz} values")
        value = value.tocsc()  # version 4 lists rows, columns and values
        value.check_format(full_check=True)
        sp.save_npz(os.path.join(folder, "array.npz"), value.tocsr())
    else:
        np.save(os.path.join(folder, "array.npy"), value, allow_pickle=False)
    return {}


if __name__ == "__main__":
    try:
        answer = main(*sys.argv[1:])
    except Exception as error:  # on damaged files the reader raises errors that it does not document
        text = " ".join(str(error).split())
        answer = {
            "error": text or type(error).__name__,
            "v73": isinstance(error, NotImplementedError),
            "memory": isinstance(error, MemoryError),
        }
    print(json.dumps(answer))

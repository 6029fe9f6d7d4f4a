"""The reader of MATLAB files up to version 7, run as a program of its own by ``tables``.

scipy's reader does not survive every damaged file: it reads beyond its buffers. Here it takes nothing else with it.

    python readmat.py FILE                     the arrays of real numbers and their shapes, as JSON
    python readmat.py FILE VARIABLE FOLDER     one of them, into FOLDER: array.npy, or array.npz where it is sparse

What goes wrong is told as JSON too: {"error": text, "v73": whether the file calls itself one of version 7.3}.
"""

import json
import os
import sys
from typing import Any

WHOLE = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
NUMERIC = {"double", "single", "logical", "sparse", *WHOLE}

EMPTY_ROWS, EMPTY_ROWS_A_VALUE = 100_000, 100
"""Rows of a sparse matrix of which nearly all are empty: a file that says more is damaged."""


def main(path: str, variable: str | None = None, folder: str = "") -> dict[str, Any]:
    import scipy.io

    if variable is None:
        listed = scipy.io.whosmat(path, appendmat=False)
        return {name: [int(n) for n in shape] for name, shape, kind in listed if kind in NUMERIC}
    import numpy as np
    import scipy.sparse as sp

    value = scipy.io.loadmat(path, appendmat=False, variable_names=[variable])[variable]
    if sp.issparse(value):
        most = max(EMPTY_ROWS, EMPTY_ROWS_A_VALUE * value.nnz)
        if max(value.shape) > most:  # an array of so many zeros is made of it, whatever the size of the file
            raise ValueError(f"it calls itself {value.shape[0]} x {value.shape[1]} and holds {value.nnz} values")
        value.check_format(full_check=True)
        sp.save_npz(os.path.join(folder, "array.npz"), value.tocsr())
    else:
        np.save(os.path.join(folder, "array.npy"), value, allow_pickle=False)
    return {}


if __name__ == "__main__":
    try:
        answer = main(*sys.argv[1:])
    except Exception as error:  # the reader of damaged files fails in ways that it does not list
        text = " ".join(str(error).split())
        answer = {"error": text or type(error).__name__, "v73": isinstance(error, NotImplementedError)}
    print(json.dumps(answer))

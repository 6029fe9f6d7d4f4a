"""Arrays as the compiled loops read them."""

from __future__ import annotations

from typing import Any

import numpy as np


def contiguous(X: Any, dtype: Any = None) -> np.ndarray:
    """A C-contiguous and aligned array of this type; X itself where it is all of that.

    Numbers at odd bytes (a field of a structured array, a buffer from elsewhere) are undefined behaviour in C.
    """
    X = np.ascontiguousarray(X, dtype=dtype)
    return X if X.flags.aligned else X.copy()

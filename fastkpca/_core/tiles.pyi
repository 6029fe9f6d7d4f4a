from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]
_Tile = npt.NDArray[np.floating[Any]]

INSTRUCTION_SET: str
DIRECT: int
LINE: int
EXPONENT_ERROR: float
EXPONENT_ERROR_SINGLE: float

def use_instruction_set(name: str | None = None) -> str: ...
def block(kind: str, parameters: Mapping[str, Any], X: _Tile, Y: _Tile) -> _Tile: ...
def kept_entries(n: int, m: int, same: bool) -> int: ...
def kept_block(kept: _Reals, n: int, m: int, same: bool) -> _Reals: ...

# K Uy, K' Ux and two sums; None for what was not asked for
def product(
    kind: str,
    parameters: Mapping[str, Any],
    X: _Reals,
    Y: _Reals | None,
    Ux: _Reals | None,
    Uy: _Reals | None,
    single: bool = False,
    rx: _Reals | None = None,
    ry: _Reals | None = None,
    g: float = 0.0,
    kept: _Tile | None = None,
    known: bool = False,
    rounded: npt.NDArray[np.float32] | None = None,
    shift: float = 0.0,
) -> tuple[Any, Any, Any]: ...

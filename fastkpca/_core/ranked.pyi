from typing import Any

import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int32]
_Sizes = npt.NDArray[np.intp]

def one_dimensional(x: _Reals, order: int) -> _Reals: ...
def search(
    mass: _Reals, first: _Sizes, threshold: float, max_leaves: int, max_work: float
) -> tuple[_Ints, _Reals] | None: ...

# float32 or float64 tiles
def evaluate(
    z: _Reals, base: _Reals, indices: _Ints, shared: _Ints, orders: _Sizes, tile: npt.NDArray[np.floating[Any]]
) -> None: ...
def squared_norms(tile: npt.NDArray[np.floating[Any]]) -> _Reals: ...

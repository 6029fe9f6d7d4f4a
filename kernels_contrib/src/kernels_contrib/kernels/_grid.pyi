from typing import Any

import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]
_Longs = npt.NDArray[np.int64]

def spread(grid: _Reals, points: tuple[Any, ...], scale: _Reals, corner: _Longs, within: _Reals, u: _Reals) -> None: ...
def gather(grid: _Reals, points: tuple[Any, ...], scale: _Reals, corner: _Longs, within: _Reals, v: _Reals) -> None: ...

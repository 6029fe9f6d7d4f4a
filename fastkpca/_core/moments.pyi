import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]

def update(tile: _Reals, weights: _Reals | None, count: float, mean: _Reals, scatter: _Reals) -> float: ...
def merge(
    count: float, mean: _Reals, scatter: _Reals, extra: float, extra_mean: _Reals, extra_scatter: _Reals
) -> float: ...

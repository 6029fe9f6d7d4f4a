import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]
_Singles = npt.NDArray[np.float32]

def row_sums(K: _Reals) -> tuple[_Reals, float]: ...
def centre_single(K: _Reals, scale: float, h: _Singles) -> _Singles: ...

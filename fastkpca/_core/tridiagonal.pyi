import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]

def largest_eigenvalues(d: _Reals, e: _Reals, c: int) -> _Reals: ...

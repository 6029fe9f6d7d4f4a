import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]

COLUMNS: int

def product(
    starts: npt.NDArray[np.intp],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    B: _Reals,
    first: int,
    end: int,
    out: _Reals,
) -> None: ...

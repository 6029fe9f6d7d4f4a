import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]
_Longs = npt.NDArray[np.int64]

TERMS: int

def windows(points: _Reals, width: float) -> tuple[_Reals, _Longs]: ...
def sweep(
    C: _Reals,
    scale: float,
    anchors: _Reals,
    xs: _Reals,
    x_at: _Reals,
    x_decay: _Reals,
    x_window: _Longs,
    ys: _Reals,
    y_at: _Reals,
    y_grow: _Reals,
    y_window: _Longs,
    backward: bool,
    U: _Reals,
    V: _Reals,
) -> None: ...

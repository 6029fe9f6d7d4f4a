import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]

DIRECT: int
FARTHEST: float
TERMS: int

class Profile:
    def __init__(
        self,
        scale: float,
        linear: float = 0.0,
        square: float = 0.0,
        *,
        largest: float = 1000.0,
        table: _Reals | None = None,
        lowest: float = 0.0,
        pieces_an_octave: int = 4,
    ) -> None: ...
    def __call__(self, r: npt.ArrayLike) -> _Reals: ...
    def apply(self, values: _Reals) -> None: ...

def distances(X: npt.ArrayLike, Y: npt.ArrayLike, *, squares: bool = False, city_block: bool = False) -> _Reals: ...

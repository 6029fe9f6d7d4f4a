import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]

DIRECT: int
FARTHEST: float
KINDS: dict[str, int]
TERMS: int
WIDE_TERMS: int

class Profile:
    def __init__(
        self,
        kind: str,
        scale: tuple[float, ...],
        *,
        order: float = 0.0,
        largest: float = 1000.0,
        table: _Reals | None = None,
        lowest: float = 0.0,
        pieces_an_octave: int = 4,
    ) -> None: ...
    def __call__(self, r: npt.ArrayLike) -> _Reals: ...
    def apply(self, values: _Reals) -> None: ...

def distances(X: npt.ArrayLike, Y: npt.ArrayLike, *, squares: bool = False, city_block: bool = False) -> _Reals: ...

class NearPairs:
    @property
    def source_order(self) -> npt.NDArray[np.intp]: ...
    def __init__(self, profile: Profile, wide: _Reals | None, sources: _Reals, cut: float, most_cells: int) -> None: ...
    def cell_numbers(self, points: _Reals) -> npt.NDArray[np.int64]: ...
    def add(self, targets: _Reals, U: _Reals, V: _Reals, begin: int, end: int) -> None: ...

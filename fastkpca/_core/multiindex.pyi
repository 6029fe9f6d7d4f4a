from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Real = TypeVar("_Real", np.float32, np.float64)
_Ints = npt.NDArray[np.int32]

def table(d: int, degree: int) -> tuple[_Ints, _Ints, _Ints, npt.NDArray[np.int64]]: ...

class Expansion:
    @property
    def d(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def skip(self) -> int: ...
    @property
    def gaussian(self) -> bool: ...
    def __init__(
        self,
        d: int,
        parent: npt.ArrayLike,
        coordinate: npt.ArrayLike,
        factor: npt.ArrayLike,
        skip: int = 0,
        gaussian: bool = False,
    ) -> None: ...
    def features(self, X: npt.NDArray[_Real]) -> npt.NDArray[_Real]: ...
    def accumulate(self, X: npt.NDArray[_Real], U: npt.NDArray[_Real]) -> npt.NDArray[_Real]: ...
    def evaluate(self, X: npt.NDArray[_Real], A: npt.NDArray[_Real]) -> npt.NDArray[_Real]: ...

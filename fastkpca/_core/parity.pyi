import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

_Reals = npt.NDArray[np.float64]

INSTRUCTION_SET: str

def use_instruction_set(name: str | None = None) -> str: ...

@disjoint_base
class ParityMatrix:
    even: _Reals
    odd: _Reals
    def __init__(self, even: _Reals, odd: _Reals, n: int, periodic: bool = False) -> None: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def expand(self, values: _Reals, axis: int, out: _Reals | None = None) -> _Reals: ...
    def fold(self, values: _Reals, axis: int, out: _Reals | None = None) -> _Reals: ...
    def weigh(self, values: _Reals, weights: _Reals) -> _Reals: ...

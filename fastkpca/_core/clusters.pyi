from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Reals = npt.NDArray[np.float64]
_Sizes = npt.NDArray[np.intp]
_Ints = npt.NDArray[np.int32]

def bisect(
    rows: _Reals, leaf: int
) -> tuple[_Reals, _Sizes, _Sizes, _Sizes, _Sizes, _Reals, _Reals, _Reals, _Reals]: ...
def expansion_error(p: int, a: float, b: float, D: float, delta: float) -> float: ...

class Tree:
    @property
    def start(self) -> _Sizes: ...
    @property
    def stop(self) -> _Sizes: ...
    @property
    def left(self) -> _Sizes: ...
    @property
    def centre(self) -> _Reals: ...
    @property
    def low(self) -> _Reals: ...
    @property
    def high(self) -> _Reals: ...
    @property
    def radius(self) -> _Reals: ...
    def __init__(
        self, start: _Sizes, stop: _Sizes, left: _Sizes, centre: _Reals, low: _Reals, high: _Reals, radius: _Reals
    ) -> None: ...

def treatments(
    x: Tree,
    y: Tree,
    sigma: float,
    tol: float,
    terms: _Reals,
    costs: _Reals,
    *,
    dropped: float = 0.0,
    scale_x: float = 1.0,
    scale_y: float = 1.0,
    most: int = 16777216,
    roots: Sequence[int] | _Sizes | None = None,
) -> tuple[_Sizes | None, float, float]: ...

class Expansions:
    @property
    def d(self) -> int: ...
    @property
    def q(self) -> int: ...
    def __init__(
        self, d: int, axes: _Reals | None, sigma: float, parent: _Ints, coordinate: _Ints, exponent: _Ints
    ) -> None: ...
    def accumulate(
        self,
        rows: _Reals,
        centre: _Reals,
        partners: _Reals,
        terms: _Sizes,
        weight: _Reals,
        U: _Reals,
        G: _Reals,
        offset: _Sizes,
    ) -> None: ...
    def evaluate(
        self, rows: _Reals, centre: _Reals, partners: _Reals, terms: _Sizes, G: _Reals, offset: _Sizes, k: int
    ) -> _Reals: ...

def gather(rows: _Reals, start: _Sizes, stop: _Sizes) -> _Reals: ...
def add(V: _Reals, part: _Reals, start: _Sizes, stop: _Sizes) -> None: ...

from typing import Any

import numpy as np
import numpy.typing as npt

from . import boxes as boxes
from . import moments as moments
from . import multiindex as multiindex
from . import pivots as pivots
from . import sparse as sparse
from . import tiles as tiles
from . import truncation as truncation

def contiguous(X: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> np.ndarray[Any, Any]: ...

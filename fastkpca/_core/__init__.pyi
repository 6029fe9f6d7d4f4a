from . import arrays as arrays
from . import boxes as boxes
from . import moments as moments
from . import multiindex as multiindex
from . import pivots as pivots
from . import sparse as sparse
from . import tiles as tiles
from . import truncation as truncation

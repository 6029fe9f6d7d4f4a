from . import boxes as boxes
from . import clusters as clusters
from . import moments as moments
from . import multiindex as multiindex
from . import pivots as pivots
from . import ranked as ranked
from . import tiles as tiles
from . import truncation as truncation

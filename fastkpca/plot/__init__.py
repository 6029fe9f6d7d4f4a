"""Pictures of a model and of a plan; they need matplotlib (``pip install fastkpca[plot]``), imported on the first call.

Nothing here opens a window or touches pyplot: figures are drawn on the axes given, or on a new figure for the caller to
show or save. Every function returns the axes.

==============  ==================================================================================
``_figure``     axes, colours, labels, writing files
``_scores``     the rows in two or three components
``_contours``   a component over the plane of two inputs
``_scree``      eigenvalues with their intervals, and how much of the variance they explain
``_monitor``    control charts: T^2 and SPE row by row, under their limits
``_runs``       what was asked and what was reached: tolerances, passes, the plan's candidates
==============  ==================================================================================
"""

from ._contours import contours
from ._figure import require_matplotlib, save
from ._monitor import monitor
from ._runs import accuracy, candidates, convergence
from ._scores import scores
from ._scree import scree

__all__ = [
    "accuracy",
    "candidates",
    "contours",
    "convergence",
    "monitor",
    "require_matplotlib",
    "save",
    "scores",
    "scree",
]

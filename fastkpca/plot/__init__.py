"""Pictures of a model and of a plan; they need matplotlib (``pip install fastkpca[plot]``), imported on the first call.

Nothing here opens a window or uses pyplot: pictures are drawn on the given axes, or on a new figure, which the caller
shows or saves. Every function returns the axes.

==============  ==================================================================================
``_figure``     axes, colours, labels, files
``_scores``     the rows in two or three components
``_contours``   a component over the plane of two inputs
``_scree``      eigenvalues with their intervals, and the share of the variance that they explain
``_selection``  what ``kpca_select`` measured, and its choice
``_importance`` which columns drive a component: bars, and arrows over the scores
``_monitor``    control charts of T^2 and SPE, one against the other, and the columns behind an alarm
``_report``     a page about a model, or about new rows under its limits
``_runs``       the accuracy asked for and the one reached, the passes, the candidates of the plan
==============  ==================================================================================
"""

from ._contours import contours
from ._figure import require_matplotlib, save
from ._importance import biplot, importance
from ._monitor import contributions, influence, monitor
from ._report import report
from ._runs import accuracy, candidates, convergence
from ._scores import scores
from ._scree import scree
from ._selection import selection

__all__ = [
    "accuracy",
    "biplot",
    "candidates",
    "contours",
    "contributions",
    "convergence",
    "importance",
    "influence",
    "monitor",
    "report",
    "require_matplotlib",
    "save",
    "scores",
    "scree",
    "selection",
]

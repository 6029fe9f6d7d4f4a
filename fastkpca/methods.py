"""Tools for authors of methods, next to ``gram``, ``features`` and ``kpca``: rows, arguments, systems, files.

==============================  ============================================================================
``as_rows``, ``Rows``           rows of a user's data (arrays, sparse, frames, files), tile by tile
``check_finite``                refuses NaN and infinity by row and column
``check_weights``               weights of the rows, finite and not negative
``check_columns``               refuses new rows with another number of columns than those of the fit
``check_same_columns``          the same with their names, which ``as_rows`` keeps; ``check_columns_of``: of second rows
``holds_more``                  whether a type has more digits than float64
``nearest_and_rest``            numbers of such a type as the sum of two float64
``as_float``, ``check_choice``  arguments, refused in words; also ``check_count``, ``check_draws``, ``check_flag``,
                                ``check_list``, ``check_numbers``, ``check_rng``, ``check_share``; ``Randomness``, a
                                seed or a generator
``apply``                       Phi C over all rows, for a feature map and its coefficients
``feature_moments``             the moments of a map's features over all rows
``conjugate_gradients``         several right sides at once: a start or a direction
``solve_to_residual``           the same until the residual of the solution itself is small
``Record``, ``refusing``        values of a model file, each checked when it is taken (``fastkpca.state`` writes them)
==============================  ============================================================================

Loops over tiles are in ``fastkpca.base.parallel``, units for bounds in ``fastkpca.base.rounding``: public for
authors of kernels and methods alike.
"""

from .base.checks import (
    Randomness,
    as_float,
    check_choice,
    check_count,
    check_draws,
    check_flag,
    check_list,
    check_numbers,
    check_rng,
    check_share,
)
from .base.stored import Record, refusing
from .maps.passes import apply, feature_moments
from .rows.columns import check_columns, check_columns_of, check_same_columns
from .rows.convert import as_rows
from .rows.sources import nearest_and_rest
from .rows.values import check_finite, check_weights
from .rows.view import Rows, holds_more
from .solve.conjugate_gradients import Iterated, conjugate_gradients, solve_to_residual

__all__ = [
    "Iterated",
    "Randomness",
    "Record",
    "Rows",
    "apply",
    "as_float",
    "as_rows",
    "check_choice",
    "check_columns",
    "check_columns_of",
    "check_count",
    "check_draws",
    "check_finite",
    "check_flag",
    "check_list",
    "check_numbers",
    "check_rng",
    "check_same_columns",
    "check_share",
    "check_weights",
    "conjugate_gradients",
    "feature_moments",
    "holds_more",
    "nearest_and_rest",
    "refusing",
    "solve_to_residual",
]

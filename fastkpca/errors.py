"""The errors and warnings that are fastkpca's own; bad input raises ValueError or TypeError.

Every text says what was found, what is needed, and how to get there.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "CertificateWarning",
    "ComponentsWarning",
    "DataChangedError",
    "DataFileError",
    "DistancesWarning",
    "DriftWarning",
    "HealthWarning",
    "KernelContractError",
    "KernelParameterError",
    "LimitsWarning",
    "LoadedWarning",
    "ModelFileError",
    "NoRouteError",
    "NoVarianceError",
    "NotConvergedError",
    "PluginError",
    "PluginWarning",
    "PreimageWarning",
    "ScalesWarning",
    "ScoresNotKeptError",
    "SlowRouteWarning",
    "UnknownKernelError",
    "UnknownMethodError",
    "warn_caller",
]

PASSED_OVER = frozenset({"fastkpca", "kernels_contrib", "sklearn", "joblib"})
"""Packages whose frames are not the caller's line: our own, and those that call an estimator for its user."""

_silenced: ContextVar[tuple[type[Warning], ...]] = ContextVar("silenced", default=())


def rounded_up(number: float) -> str:
    """Two significant digits that are never below the number: for a text that says "at most"."""
    text = f"{number:.2g}"
    if not math.isfinite(number) or float(text) >= number:
        return text
    digit = 10.0 ** (math.floor(math.log10(abs(number))) - 1)
    return f"{float(text) + digit:.2g}"


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, and point at the line of the user's program that called fastkpca, however deep below it this is.

    For methods of other distributions too. Where a thread was started with a function of fastkpca's itself there is no
    such line, and the warning points at the one that warns.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    if issubclass(category, _silenced.get()):
        return
    innermost = frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_OVER:
        if frame.f_back is None:  # a thread whose target is a function of ours
            frame = innermost
            break
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<string>"),  # None would not be shown
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


@contextmanager
def silenced(*categories: type[Warning]) -> Iterator[None]:
    """Within the block ``warn_caller`` says nothing of these: in this thread only, unlike ``catch_warnings``."""
    token = _silenced.set((*_silenced.get(), *categories))
    try:
        yield
    finally:
        _silenced.reset(token)


class UnknownKernelError(ValueError):
    """No kernel of that name is registered; the text names near matches and the call that lists them."""


class UnknownMethodError(ValueError):
    """No method of that name is registered; the text names near matches and the call that lists them."""


class KernelParameterError(ValueError):
    """A kernel parameter is missing, out of range, or given under two spellings."""


class PluginError(RuntimeError):
    """A kernel from outside fastkpca failed; the text names plugin, distribution and call, the cause is chained."""


class KernelContractError(PluginError, ValueError):
    """A kernel from outside breaks its contract: a wrong shape or type, NaN, asymmetry, a claim that does not hold."""


class NotConvergedError(RuntimeError):
    """Nothing usable was reached within the limits; ``partial`` carries what was, or is None."""

    def __init__(self, message: str, partial: object | None = None):
        super().__init__(message)
        self.partial = partial


class ModelFileError(ValueError):
    """A file is not a fastkpca model, or it is truncated, altered or of an unknown version."""


class DataChangedError(ValueError):
    """Rows that are read several times are not the same each time: other values, fewer or more of them."""


class DataFileError(ValueError):
    """A data file cannot be read as a table of numbers."""


class ScoresNotKeptError(AttributeError):
    """The scores of the training rows were not kept with the model."""


class CertificateWarning(UserWarning):
    """The eigenvalue intervals are wider than ``tol`` asks for; the text says what was reached and what would help."""


class ComponentsWarning(UserWarning):
    """Fewer components than asked for carry variance, so fewer are returned."""


class DistancesWarning(UserWarning):
    """A matrix that is given in place of rows has the form of distances between rows, not of values of a kernel."""


class HealthWarning(UserWarning):
    """Columns, or the times of the rows, say more about a sensor or a file than about the process; the text names
    them."""


class DriftWarning(UserWarning):
    """A model that is updated explains much less of the last rows than of the first; the text says how much, and what
    helps."""


class LimitsWarning(UserWarning):
    """Control limits are exceeded more often than asked for; the text says why, and what rows would help."""


class LoadedWarning(UserWarning):
    """Rows of a Dask collection are loaded into this process; the text says how large they are, and what does not."""


class PluginWarning(UserWarning):
    """Something that another distribution claims is ignored; the text names the distribution and the claim."""


class PreimageWarning(UserWarning):
    """Some pre-images are not where an iteration ends, but the best that was found; the text says what would help."""


class ScalesWarning(HealthWarning):
    """Columns have wildly different ranges, so that some hardly count; the text names them and says what helps."""


class SlowRouteWarning(UserWarning):
    """The work asked for is predicted to take long, and a few components in place of all, or a looser ``tol``, would
    take a small part of that time."""


class NoRouteError(ValueError):
    """No route fits the memory limit or the task; the text names the obstacle of each candidate and what helps."""


class NoVarianceError(ValueError):
    """The centred Gram matrix is zero to rounding, or negative; no eigenvalue is above ``bound``."""

    def __init__(self, message: str, bound: float):
        super().__init__(message, bound)
        self.bound = bound

    def __str__(self) -> str:
        return str(self.args[0])

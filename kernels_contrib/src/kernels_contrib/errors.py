"""Warnings of the methods."""

from typing import Any

from fastkpca.errors import ComponentsWarning, warn_caller

__all__ = ["AccuracyWarning", "warn_fewer", "warn_stopped"]


class AccuracyWarning(UserWarning):
    """An iteration stopped short of ``tol``; the text says what was reached and what would help."""


def warn_stopped(steps: int, residual: float, tol: float) -> None:
    """Say that conjugate gradients stopped short of ``tol``."""
    warn_caller(
        f"conjugate gradients stopped after {steps} steps at a relative residual of {residual:.2g}, tol is {tol:.2g}; "
        "a larger regularization converges sooner, max_iterations allows more steps, a larger tol asks for less",
        AccuracyWarning,
    )


def warn_fewer(what: str, asked: Any, returned: int, reason: str) -> None:
    """Say that there are fewer directions, components or coordinates than were asked for."""
    warn_caller(f"{asked} {what} asked for, {returned} returned: {reason}", ComponentsWarning)

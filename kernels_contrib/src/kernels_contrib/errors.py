"""Warnings of the methods."""

__all__ = ["AccuracyWarning"]


class AccuracyWarning(UserWarning):
    """An iteration stopped short of ``tol``; the text says what was reached and what would help."""

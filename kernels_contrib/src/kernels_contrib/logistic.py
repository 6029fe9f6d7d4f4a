"""Kernel logistic regression."""

from .methods.logistic import LogisticModel, kernel_logistic, logistic_predict, logistic_probability

__all__ = ["LogisticModel", "kernel_logistic", "logistic_predict", "logistic_probability"]

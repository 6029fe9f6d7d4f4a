"""Regression and logistic regression on kernel principal components."""

from .methods.components import RegressionModel, kernel_pc_logistic, kernel_pcr, pcr_predict

__all__ = ["RegressionModel", "kernel_pc_logistic", "kernel_pcr", "pcr_predict"]

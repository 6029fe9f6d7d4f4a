"""The kernel perceptron."""

from .methods.perceptron import PerceptronModel, kernel_perceptron, perceptron_decision, perceptron_predict

__all__ = ["PerceptronModel", "kernel_perceptron", "perceptron_decision", "perceptron_predict"]

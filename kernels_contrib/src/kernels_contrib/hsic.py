"""The kernel independence test."""

from .methods.hsic import PermutationTest, hsic_test

__all__ = ["PermutationTest", "hsic_test"]

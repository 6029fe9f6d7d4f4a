"""The kernel two-sample test."""

from .methods.mmd import PermutationTest, mmd_test

__all__ = ["PermutationTest", "mmd_test"]

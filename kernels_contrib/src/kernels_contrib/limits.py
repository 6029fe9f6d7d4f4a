"""Limits shared by kernels and methods."""

MAX_SCALED_DISTANCE = 1e100
"""Largest numbers whose powers stay within float64: rows farther out, in units of the length, have exact products
only.
"""
HELD_BYTES = 512 << 20
"""Bytes up to which a large array is held: an (N, D) matrix of features, dense moments, the grid of a product."""

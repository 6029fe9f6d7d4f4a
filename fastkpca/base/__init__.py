"""The lowest layer, which every other package may import.

Here live the protocol of kernels and feature maps, threads and sums in a fixed order, products of tall matrices,
progress, the limit on the address space, bounds on rounding, checks of single arguments, the file container, and
plugins. Nothing here depends on a kernel, on the source of rows, or on
eigenvalues; nothing here imports another package but ``_core`` and ``errors``.
"""

"""Ground floor: what every other room may use.

Here live the protocol of kernels and feature maps, threads and sums in a fixed order, products of tall matrices,
progress, the limit on the address space, bounds on rounding, checks of single arguments, the file container, and
plugins. Nothing here knows a kernel, where rows come from, or an eigenvalue; nothing here imports another room but
``_core`` and ``errors``.
"""

"""Ground floor: what every other room may use, and what knows nothing of kernels, rows or eigenvalues.

Here live the protocol of kernels and feature maps, threads and fixed-order sums, the file container, checked values
from files, and names that other distributions bring. Nothing here imports another room but ``_core`` and ``errors``.
"""

"""Products with a kernel matrix that is never formed.

=============  ===============================================================================
``exact``      tiles of kernel values, each used for both halves of a symmetric matrix
``matrix``     the whole kernel matrix in memory, for small N
``combined``   of sums and scalings, from the products of their parts
``vectors``    the vectors that products are given
``expansion``  through a feature map: two passes over rows and nothing over pairs of them
=============  ===============================================================================
"""

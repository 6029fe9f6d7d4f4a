"""Feature maps: phi with K = Phi Phi' + (positive semidefinite), tile by tile.

============  =========================================================================================
``combined``  of sums, scalings and products of kernels, from the maps of their parts
``monomial``  the compress operator's monomials: exact for polynomials, truncated for the Gaussian
``pivots``    randomly pivoted Cholesky, for any positive semidefinite kernel
``ranked``    the Gaussian's multi-indices, heaviest over the data first
``passes``    a pass over all rows with any map: products and moments
============  =========================================================================================
"""

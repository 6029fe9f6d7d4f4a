"""Compiled loops: arrays in, arrays out; no validation and no policy.

===============  ==========================================================================
``arrays``       arrays as the loops read them
``boxes``        Chebyshev nodes in a grid of boxes: points sorted, spread onto nodes, read off them; loops in C
``multiindex``   the compress operator: graded multi-index tables and monomials along a tile
``moments``      centred second moments of feature tiles (BLAS 3), and their merging
``pivots``       pivoted Cholesky: rejection in a block, factor and solve, residual diagonals
``sparse``       products of a sparse matrix with a few columns
``tiles``        exact tiles of the four built-in kernels and the products with them; loops in C
``truncation``   error bounds of the truncated Gaussian expansion, and the order from them
===============  ==========================================================================

A *tile* of points is held feature-major, shape (n_features, n_points): each step of a recurrence is then
one vector operation along the points.
"""

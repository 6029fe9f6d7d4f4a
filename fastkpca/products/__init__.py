"""Products with a kernel matrix that is never formed.

Each method of multiplication has its file, with the bound on its error. ``operators`` are what ``gram`` and
``features`` return, ``rates`` what one thread does in a second, ``vectors`` checks what is multiplied,
``factorisation`` whether a matrix is positive definite. ``fit`` chooses among them, not this package. No kernel is
known by name but the Gaussian, for which the fast methods are.

=============  ===============================================================================
``exact``      tiles of kernel values, each used for both halves of a symmetric matrix
``matrix``     the whole kernel matrix in memory, for LAPACK
``implicit``   all of them with one kernel matrix, and what is known of it, for a solver
``weighted``   of weighted rows, transformed (by a reflection) so that ordinary centring can be used
``combined``   of sums and scalings, from the products of their parts
``expansion``  through a feature map: two passes over rows and nothing over pairs of them
``grid``       through Chebyshev nodes in boxes; ``grid_plan`` chooses these
``clusters``   pairs of far clusters skipped, near pairs exact
``truncated``  the values that are not near zero, in a sparse matrix
``blocks``     tiles from ``Kernel.block``, and how they are walked over
=============  ===============================================================================
"""

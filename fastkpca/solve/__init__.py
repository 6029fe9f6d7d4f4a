"""Eigenvalues and linear systems, with bounds on their errors.

==================================  ==================================================================================
``certificate``                     intervals around eigenvalues, from Ritz pairs and a bound on the other eigenvalues
``beyond``                          bounds on the eigenvalues outside a subspace
``random_start``, ``sampled``       bounds from how a Krylov space began, and from a sample of the rows
``basis``                           the orthonormal basis that every iteration grows
``target``, ``costs``               what a solver is asked for and may spend; the costs of block Krylov
``krylov``                          block Krylov on the centred kernel matrix (``centred``), from a first block
                                    (``start``): ``search`` in float32, ``proof`` in float64, ``flat`` from a random one
``lanczos``, ``nested``             the same for small operators, and for those with a small copy of themselves
``moments``                         components from second moments of features
``conjugate_gradients``, ``ridge``  linear systems
==================================  ==================================================================================

Everything here works on kernels, products and moments that it is given: it chooses no route, reads no file and knows
no model.
"""

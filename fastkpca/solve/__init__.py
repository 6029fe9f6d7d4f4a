"""Eigenvalues and linear systems, with bounds on their errors. Begin with ``certificate``, then ``krylov``.

==================================  ==================================================================================
``certificate``                     intervals around eigenvalues, from Ritz pairs and a bound on the other eigenvalues
``beyond``                          upper bounds on the eigenvalues that a basis has not found
``random_start``                    the same from the random block that a Krylov space began with
``sampled``                         the same from a sample of the rows
``filtered``                        the same from polynomials of the matrix times random columns
``rest``                            the same from the entries of the matrix beyond a basis
``second_order``                    intervals from a feature map and a pass, or sampled rows, of what it leaves out
``basis``                           the orthonormal basis that every iteration grows
``task``                            what a solver is given: a target, a budget and a matrix
``costs``                           what the steps of block Krylov cost
``krylov``                          block Krylov on the centred kernel matrix: the steps below, in order
``start``                           its first block, from a feature map of a few pivots
``centred``                         products with the centred matrix, and its trace and norm
``outlook``                         guesses about its next passes, to plan by
``search``                          its passes in float32
``exact_passes``                    its passes in float64, with intervals after each
``narrow``                          where few kernel values are not near zero: narrow blocks of Lanczos on these
``flat``                            its passes from a random block, for spectra that fall slowly
``lanczos``                         block Lanczos for small, cheap operators
``nested``                          two levels, for operators with a small copy of themselves
``moments``                         components from second moments of features
``powers``                          the largest eigenvalues of a small matrix in memory, from products in float32
``conjugate_gradients``             linear systems with several right sides
``ridge``                           linear systems of kernel ridge regression
==================================  ==================================================================================

Everything here works on kernels, products and moments that it is given: it chooses no route, reads no file and knows
no model.
"""

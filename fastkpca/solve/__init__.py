"""Eigenvalues and linear systems, with bounds on their errors. Begin with ``certificate``, then ``eigen``.

==================================  ==================================================================================
``certificate``                     intervals around eigenvalues, from Ritz pairs and a bound on the other eigenvalues
``eigen``                           the loop: multiply a block, append it, check convergence
``certifier``                       intervals for products with a known error, and the choice of a proof
``proofs``                          bounds on the complement of a basis, each with its predicted cost
``operators``                       what is multiplied by: the centred kernel matrix, in float64 and float32; moments
``basis``                           the orthonormal basis, Ritz pairs, and bounds on the matrix outside the basis
``block_krylov``                    the loop on the centred kernel matrix
``near``                            its float32 phase on a truncated (sparse) kernel matrix
``small``                           the largest eigenvalues of a small stored matrix, from products in float32
``moments``                         the loop on second moments of features; components from these
``beyond``                          upper bounds on the eigenvalues that a basis has not found
``random_start``                    the same from the random block that a Krylov space began with
``filtered``                        the same from polynomials of a matrix, times random columns
``rest``                            the same from the entries of the matrix beyond a basis
``sampled``                         the same from a sample of the rows
``second_order``                    intervals from a feature map, and a pass over its residual or sampled rows of it
``given``                           intervals from vectors that the user gives, by one pass and a feature map
``task``                            input of a solver in addition to a matrix: a target and a budget
``costs``                           predicted seconds and memory of the steps of block Krylov
``conjugate_gradients``             linear systems with several right sides
``ridge``                           linear systems of kernel ridge regression
==================================  ==================================================================================

Everything here works on kernels, products and moments that it is given: it chooses no route, reads no file and knows
no model.
"""

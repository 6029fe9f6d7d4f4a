"""Eigenvalues and linear systems, with bounds on their errors. Begin with ``certificate``, then ``eigen``.

==================================  ==================================================================================
``certificate``                     intervals around eigenvalues, from Ritz pairs and a bound on the other eigenvalues
``eigen``                           the loop: multiply a block, append it, ask whether that is enough
``certifier``                       the judge of products whose error is known: intervals, and what proof is taken
``proofs``                          proofs that no eigenvalue outside of a basis is large, each with its price
``operators``                       what is multiplied by: the centred kernel matrix, in float64 and float32; moments
``basis``                           the orthonormal basis, and what is known of the matrix on it and outside of it
``block_krylov``                    the loop on the centred kernel matrix
``near``                            its search where few kernel values are not near zero
``small``                           the largest eigenvalues of a small matrix that is held, from products in float32
``moments``                         the loop on second moments of features; components from these
``beyond``                          upper bounds on the eigenvalues that a basis has not found
``random_start``                    the same from the random block that a Krylov space began with
``filtered``                        the same from polynomials of a matrix, times random columns
``rest``                            the same from the entries of the matrix beyond a basis
``sampled``                         the same from a sample of the rows
``second_order``                    intervals from a feature map and a pass, or sampled rows, of what it leaves out
``given``                           intervals from vectors of others, by one pass and a feature map
``task``                            what a solver is given beside a matrix: a target and a budget
``costs``                           what the steps of block Krylov cost
``conjugate_gradients``             linear systems with several right sides
``ridge``                           linear systems of kernel ridge regression
==================================  ==================================================================================

Everything here works on kernels, products and moments that it is given: it chooses no route, reads no file and knows
no model.
"""

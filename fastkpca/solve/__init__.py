"""Eigenvalues and linear systems, and how far off they can be.

``certificate`` makes intervals of Ritz pairs and of one of the bounds in ``beyond``; ``basis`` is what block Krylov
(``krylov``: ``search`` in float32, ``proof`` in float64, ``flat`` from a random block), ``lanczos`` and ``nested``
grow; ``random_start`` bounds eigenvalues by how a Krylov space began; ``moments`` goes from second moments to
components; ``ridge`` and the kernel methods outside use ``conjugate_gradients``. Everything here works on operators
and moments that it is handed: it chooses no route, reads no file and knows no model.
"""

"""Eigenvalues and linear systems, and how far off they can be.

``certificate`` makes intervals of Ritz pairs and of one of the bounds in ``beyond``; ``basis`` is what block Krylov
(``search``, ``krylov``), ``lanczos`` and ``nested`` grow; ``moments`` goes from second moments to components; ``ridge``
and the kernel methods outside use ``conjugate_gradients``. Everything here works on operators and moments that it is
handed: it chooses no route, reads no file and knows no model.
"""

"""Feature maps: phi with K = Phi Phi' + (positive semidefinite), tile by tile.

Each map lives in a file with its rounding, its bounds, its state and its formula for MATLAB. A map knows a tile of
rows and the protocol. Nothing here chooses a map, solves for eigenvalues, or knows a kernel by name.

====================  =========================================================================================
``combined``          of sums, scalings and products of kernels, from the maps of their parts
``monomial``          all monomials up to a degree (docs/theory.md, "compress operator"). Users write
                      features="monomial"; in model files their ``kind`` is "taylor" (Gaussian) or "polynomial"
``monomial_moments``  their second moments, from fewer sums
``pivots``            randomly pivoted Cholesky, for any positive semidefinite kernel: the map
``choosing``          the same: how pivots are chosen; ``probe`` how many a tolerance needs
``fourier``           Fourier features on a periodic box, whose second moment is never formed
``compressed``        the few directions that a box of rows has among them
``toeplitz``          the second moment and its products, axis by axis
``transforms``        sums of waves from and to points
``passes``            a pass over all rows with any map
``draws``             random rows that a pass draws by their residuals
``uncentred``         second moments about zero, from centred ones
``stored``            maps in model files
====================  =========================================================================================
"""

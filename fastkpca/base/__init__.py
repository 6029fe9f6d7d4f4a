"""The lowest layer, which every other package may import.

==================  ========================================================================================
``protocol``        the contract between the core and kernels, feature maps, products and their moments
``parallel``        loops over tiles and tasks, and sums in a fixed order; ``workers`` are its threads
``blas``            one cap on the threads of BLAS for the process, and forks
``tall``            products and orthonormal columns of tall-skinny arrays
``lapack``          the largest eigenvalues of a matrix in memory
``rounding``        unit roundoff of float64 and float32, and bounds on rounded sums
``confidence``      confidence bounds on means of bounded numbers
``differences``     derivatives by central differences
``checks``          checks of single arguments; ``spelling`` suggests names
``files``           model files: a JSON header and raw arrays under one checksum
``stored``          the values of a model file, each checked when it is taken
``atomic``          files that appear complete or not at all
``plugins``         names that other distributions bring: entry points, read lazily; ``described`` is their metadata
``methods``         methods of other distributions by name
``progress``        progress of long work
``process_memory``  free address space under RLIMIT_AS
``caching``         properties that are computed once
==================  ========================================================================================

Nothing here depends on a kernel, on the source of rows, or on eigenvalues. Of the other packages, only ``_core`` and
``errors``          are imported.
"""

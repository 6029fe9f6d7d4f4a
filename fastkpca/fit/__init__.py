"""From rows to a model: check, plan, run routes until one meets ``tol``. Begin with ``kpca``, which shows the steps.

======================================  ==============================================================================
``kpca``, ``pca``, ``merge``            the public functions: fit, fit linear PCA, join fitted models
``gram``                                `gram()` and `features()`: matrices as SciPy LinearOperators
``certify``                             `certify()`: intervals from vectors that another program has found
``select``                              `kpca_select()`: parameters by cross-validation
``stream``, ``population``, ``missing`` updates, intervals of the population, rows with gaps
``baseline``                            a model with limits for monitoring
``problem``, ``target``                 the checked input; components, tolerance and failure probability asked for
``probe``                               probes of a few rows: spectrum, and number of pivots
``planning``                            candidates of all routes, and the choice: the cheapest of known cost
``routes``                              the run: candidates in the order of their cost, until one meets ``tol``
``dense``                               LAPACK on the whole matrix: its estimate, and its run
``krylov``, ``convergence``             products with the matrix: estimate and run; passes predicted from a spectrum
``product_choice``                      which of a kernel's products with K serve a tolerance, and their costs
``feature_estimate``, ``offers``        feature maps: predicted cost; what a kernel offers, and maps of pivots
``feature_route``                       feature maps: the run, a pass with the map, and refinements until ``tol``
``growth``, ``narrowing``               the cheapest refinement of a map's intervals; rows of its residual, or a pass
``components``                          components from the moments of a feature map
``footprint``                           bytes that all routes need
``solution``                            what every route returns, and the steps that routes share
======================================  ==============================================================================

The computations are in the packages below; here they are chosen and put together.

Files that an addition touches:

- A refinement of a feature map's intervals: its predicted seconds and widths in ``growth`` (`State`), which chooses the
  cheapest, and its run in ``feature_route`` (`_Run.after`).
- A bound on the complement of a basis: a `Proof` with ``cost`` and ``certificate`` in ``solve.proofs``, named where
  ``solve.block_krylov`` or ``solve.moments`` list theirs. The eigensolver takes the cheapest that suffices.
- A kernel: a module with a class whose only required method is ``block``, and its name in ``kernels.registry``, or in
  the entry points of another distribution. Feature maps and products that it offers (``feature_maps``,
  ``summations``) state their costs, and the plan compares them without a change here.
- A route: a module with ``estimate`` and ``run``, as ``dense``, named in ``planning`` (`_estimates`) and ``routes``.
"""

"""From rows to a model: check, plan, run routes until the intervals are as narrow as ``tol``. Begin with ``kpca``.

======================================  ==============================================================================
``kpca``, ``pca``, ``merge``            the public functions: fit, fit linear PCA, join fitted models
``gram``                                `gram()` and `features()`: matrices as SciPy LinearOperators
``certify``                             `certify()`: intervals from vectors that another program has found
``problem``, ``target``                 the checked input; components, tolerance and failure probability asked for
``planning``                            predicts the time and memory of each route, and chooses the cheapest
``candidates``, ``offers``              methods with their predicted costs; those of feature maps
``routes``                              runs them in the order of their costs, until the intervals reach ``tol``
``look``, ``footprint``                 the spectrum probe on a few rows, and the bytes of each step
``product_choice``                      which of a kernel's products with K serve a tolerance, and their costs
``dense``, ``krylov``                   two routes: LAPACK, and products with the kernel matrix
``feature_route``                       the third: a pass with a feature map, and steps that tighten its intervals
``growth``, ``narrowing``               the cheapest such step; intervals from sampled rows of the map's residual
``components``                          components from the moments of a feature map
``select``                              `kpca_select()`: parameters by cross-validation
``solution``                            what every route returns, and the steps that routes share
======================================  ==============================================================================

The computations are in the layers below; here they are chosen and put together.
"""

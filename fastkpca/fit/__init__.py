"""From rows to a model: check, plan, run routes until one is narrow enough. Begin with ``kpca``, which shows the steps.

======================================  ==============================================================================
``kpca``, ``pca``, ``merge``            the public functions: fit, fit linear PCA, join fitted models
``gram``                                `gram()` and `features()`: matrices as SciPy LinearOperators
``certify``                             `certify()`: intervals from vectors that another program has found
``problem``, ``target``                 what is to be solved, checked; and what is asked of its components
``planning``                            predicts the time and memory of each route, and chooses the cheapest
``candidates``, ``offers``              the ways that may be taken, with their prices; those of feature maps
``routes``                              runs them in the order of their prices, until one is narrow enough
``look``, ``footprint``                 a look at a few rows for it, and the bytes of each step
``product_choice``                      which of a kernel's products with K serve a tolerance, and their costs
``dense``, ``krylov``                   two routes: LAPACK, and products with the kernel matrix
``feature_route``                       the third: a pass with a feature map, and what narrows its intervals
``growth``, ``narrowing``               what narrows the intervals of a map the soonest; from rows of what it leaves out
``components``                          components from the moments of a feature map
``select``                              `kpca_select()`: parameters by cross-validation
``solution``                            what every route returns, and the steps that routes share
======================================  ==============================================================================

The computations are in the rooms below; here they are chosen and put together.
"""

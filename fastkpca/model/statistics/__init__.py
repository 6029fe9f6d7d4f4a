"""Statistics of a fitted model.

===============  ================================================================================================
``uncertainty``  standard errors of eigenvalues, and angles between subspaces
``bootstrap``    resampled rows
``importance``   importance of the columns
===============  ================================================================================================
"""

"""Statistics of a fitted model: its uncertainty as a sample of a population, and the importance of the columns.

===============  ================================================================================================
``uncertainty``  standard errors of eigenvalues, and angles between subspaces
``bootstrap``    resampled rows
``importance``   importance of the columns
===============  ================================================================================================
"""

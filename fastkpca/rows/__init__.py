"""Where rows come from: one view over arrays, sparse matrices and sources that are not in memory, read tile by tile.

Here live checks and conversion of what a user passes as data, the summary of the rows, Dask, and tables in files. No
kernel is evaluated here and nothing is decided about the method.
"""

"""Where rows come from: one view over arrays, sparse matrices and sources that are not in memory, read tile by tile.

Here live conversion and checks of a user's data, the summary of the rows, sources and Dask, adapters to objects of
other libraries (``foreign``), tables in files, and places for scores. No kernel is evaluated here, and nothing is
decided about the method.
"""

"""Rows of data: one view over arrays, sparse matrices, frames and sources that are not in memory, read tile by tile.

=============  ==================================================================================================
``convert``    rows from what a user gives: the checks, and the errors that say what was found and what is needed
``values``     checks of the values: NaN and infinity, weights, the array for a result
``columns``    columns of new rows against those of the fit: number, names, ranges
``view``       ``Rows``: tiles in float64, shifted and scaled, of any object that holds rows
``summary``    one pass over the rows: box, mean, radius, and a sample
``sources``    rows that are not in memory, page by page, with a checksum of each page
``foreign``    objects of other libraries: frames, queries, Arrow tables, datasets, memory maps, iterables
``dask``       Dask collections: each pass over the rows is a graph of tasks
``lags``       earlier rows as further columns
``times``      times from a column of words or dates, and the gaps between them
``sinks``      output arrays: memory maps, datasets of HDF5 and zarr
=============  ==================================================================================================

No kernel is evaluated here, and nothing is decided about the method.
"""

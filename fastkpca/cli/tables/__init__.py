"""Tables of the command line: files in, scores out.

read        a table of numbers from a file of any kind; rows that are left out
text        csv and other text: format, reading by pandas, what is wrong with a file
cells       numbers, words and missing values in the cells of text
sheets      spreadsheets and databases, read as text is
archives    arrays by name in .npz and MATLAB files (readmat runs in a process of its own)
lazyfiles   HDF5, zarr and Parquet, read as they are needed
selection   columns that the user asks for
collected   numbers that come block by block, in memory or in a file without a name
write       scores into .csv, .xlsx and .npy
"""

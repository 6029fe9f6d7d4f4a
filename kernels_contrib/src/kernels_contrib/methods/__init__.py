"""The methods, one a file, and what they share: options, labels, products with K, functions of new rows, files."""

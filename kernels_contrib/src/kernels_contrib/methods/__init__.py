"""What the methods share: options, labels, products with K, functions of new rows, values of files."""

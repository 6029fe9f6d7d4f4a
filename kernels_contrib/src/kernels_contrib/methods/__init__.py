"""Code shared by the methods: options, labels, products with K, functions of new rows, values of files."""

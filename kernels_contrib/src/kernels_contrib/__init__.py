"""Kernels for fastkpca from outside: each is found by its name through the entry-point group ``fastkpca.kernels``."""

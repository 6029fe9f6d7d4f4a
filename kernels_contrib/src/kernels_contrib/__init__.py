"""Kernels and methods for fastkpca from outside, found through the entry points ``fastkpca.kernels`` and
``fastkpca.methods``.

Each module here, such as ``kernels_contrib.klda``, is a kernel or a method and holds its public names. The folders hold
what they share:

    kernels/   distances, profiles, mixtures of Gaussians, products on a line and near pairs with a grid
    methods/   options, labels, products with K, functions of new rows, values of files
"""

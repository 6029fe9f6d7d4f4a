"""Kernels and methods for fastkpca from outside, found through the entry points ``fastkpca.kernels`` and
``fastkpca.methods``.

    kernels/   cosine, Laplacian, Matérn and rational quadratic kernels, and their fast products
    methods/   discriminants, perceptron, logistic regression, regression on components, independent components

The modules beside these folders, such as ``kernels_contrib.klda``, hold the public names.
"""

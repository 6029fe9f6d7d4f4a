"""Fast kernel principal component analysis, with certified eigenvalues.

A newcomer's map (each layer imports only what stands below it; tests/test_layers.py holds the imports to it)::

    6  __init__, cli, plot                 faces: wording and shapes for one kind of user each
    5  _kpca, _gram, model                 the story: validate, resolve, plan, solve, certify, return
    4  _plan, moments, krylov, certificate what runs and what it costs; one pass; eigenvalues; intervals
    3  operators, kernels/                 Gram and feature matrices as LinearOperators; kernels and their registry
    2  features/, summation/               feature maps; products
    1  protocol, rows, execute, files, errors, validate
    0  _core/*.pyx                         compiled loops: arrays in, arrays out
"""

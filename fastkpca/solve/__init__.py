"""Eigenvalues and linear systems, and how far off they can be: block Krylov, Lanczos, moments, ridge, the certificate.

Everything here works on operators and moments that it is handed. It chooses no route, reads no file and knows no model.
"""

"""Pre-images: rows whose features are closest to given components.

============  ===================================================================================================
``preimage``  `kpca_preimage` and `kpca_denoise`
``search``    search from several starts, for a Gaussian kernel and for any other
``descent``   descent along the gradient
``ridge``     kernel ridge regression from scores to rows
============  ===================================================================================================
"""

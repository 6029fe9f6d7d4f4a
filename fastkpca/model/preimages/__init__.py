"""Pre-images: rows x whose image phi(x) is near P = mean + sum_j z_j w_j, for scores z and components w_j.

============  ===================================================================================================
``preimage``  `kpca_preimage` and `kpca_denoise`
``search``    search from several starts, for a Gaussian kernel and for any other
``descent``   descent along the gradient
``ridge``     kernel ridge regression from scores to rows
============  ===================================================================================================
"""

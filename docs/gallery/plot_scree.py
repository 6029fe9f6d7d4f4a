"""
Eigenvalues with certified intervals
====================================

Each eigenvalue comes with an interval that contains the true one. Usually it is far narrower than a mark in a picture;
where the work was limited it is wide.
"""

# %%
# Digits to the default tolerance: the intervals cannot be seen, and the legend says how wide they are.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import fastkpca as fk
from fastkpca import plot
from fastkpca.errors import CertificateWarning

X, _ = load_digits(return_X_y=True)
model = fk.kpca(X, "gaussian", 30)

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
plot.scree(model, ax, cumulative=True)
plt.show()

# %%
# Now a feature map of pivoted Cholesky, forced, and with less memory than the tolerance needs. The result
# comes with a warning and wider intervals: they reach upwards by the residual trace of the map. The band around the
# cumulative percentage shows the uncertainty of eigenvalues and total variance.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", CertificateWarning)
    rough = fk.kpca(X, "gaussian", 30, features="pivots", memory_limit="42MB")
print(rough)

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
plot.scree(rough, ax, cumulative=True)
plt.show()

# %%
# Every interval contains the eigenvalue that the good model knows to many digits.

low, high = rough.eigenvalue_bounds.T
inside = (low <= model.eigenvalue_bounds[:, 1]) & (model.eigenvalue_bounds[:, 0] <= high)
assert inside.all()
print(f"widest interval: {np.max(high - low) / model.eigenvalues[0]:.2g} of the largest eigenvalue")

# %%
# When not to believe it: these intervals are about the eigenvalues of this matrix, and say nothing about other rows:
# :doc:`how sure are they? <plot_uncertainty>` does. And a bend in a scree plot is no proof that a component is real.

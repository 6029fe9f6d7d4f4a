"""
How many components are real, and how sure are they?
====================================================

The intervals of a model are about the eigenvalues of these very rows. What other rows would have given is another
question, and the scree plot shows both answers.
"""

# %%
# Wines again. The caps of the numerical intervals cannot be told apart from the marks: the eigenvalues of this matrix
# are known to many digits. The broad bars are confidence intervals for the population that the 178 wines came from.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import fastkpca as fk
from fastkpca import plot

data = load_wine().data
X = (data - data.mean(axis=0)) / data.std(axis=0)
model = fk.kpca(X, "gaussian", 10, sigma=6.0)
sure = fk.kpca_uncertainty(model, X)
print(sure)

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
plot.scree(model, ax, uncertainty=sure)
plt.show()

# %%
# The dashed line is what columns reach by chance when each is permuted on its own. The components above it, from the
# first on, are more than chance; bars of the others are paler. Where bars of neighbours overlap, the components may be
# mixed in another sample: the angle between the space of the first j components and that of the population is at most
# this, in degrees.

for j in range(5):
    told = "separated" if sure.separated[j] else "not separated from its neighbours"
    print(f"components 1 to {j + 1}: {np.degrees(sure.angles[j]):5.1f} degrees; component {j + 1} is {told}")
print(f"{sure.n_significant} components exceed permuted columns")

# %%
# More rows make the bars shorter, as one over the square root of their number; the numerical intervals stay as they
# are. Here the same population at 200 and at 20000 rows.

rng = np.random.default_rng(0)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=False)
for ax, n in zip(axes, (200, 20000)):
    rows = rng.standard_normal((n, 6)) * np.sqrt([8.0, 4.0, 2.0, 1.0, 0.5, 0.25])
    fitted = fk.kpca(rows, "linear", 6)
    plot.scree(fitted, ax, uncertainty=fk.kpca_uncertainty(fitted, rows, n_permutations=0))
    ax.set_title(f"{n} rows", y=1.18)
plt.show()

# %%
# When not to believe it: where two eigenvalues of the population are nearly equal (a component that is not separated),
# where a kernel that is not bounded meets outliers, and where rows depend on each other, as repeats or time series do:
# then the bars are too short. They take sigma as known, too. The permutation sees no structure inside a single column.

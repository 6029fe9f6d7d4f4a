"""
Which variables drive a component
=================================

Thirteen measurements of wines from three growers. Bars show which of them the first component depends on; arrows show
where a wine moves when a measurement grows.
"""

# %%
# The columns have different units, so they are brought to one scale first. Then a Gaussian kernel, and the mean squared
# derivative of each score by each column.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import fastkpca as fk
from fastkpca import plot

wine = load_wine(as_frame=True)
X = (wine.data - wine.data.mean()) / wine.data.std(ddof=0)
X = X.rename(columns={"od280/od315_of_diluted_wines": "od280/od315"})
X.columns = [name.replace("_", " ") for name in X.columns]
model = fk.kpca(X, "gaussian", 4)
which = fk.kpca_importance(model, X)
print(which)

fig, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
for j, ax in enumerate(axes):
    plot.importance(which, ax=ax, component=j)
plt.show()

# %%
# The first component is about phenols, of which flavanoids say most, and about hue and malic acid, which go against
# each other. The second is about colour and alcohol. Both are read at once in a biplot. The arrows are mean gradients:
# a column whose effect changes its direction from wine to wine (a grey bar above) has a short arrow.

fig, ax = plt.subplots(figsize=(7.6, 5.4), layout="constrained")
growers = np.array(["grower 1", "grower 2", "grower 3"])[wine.target]
plot.biplot(model, which, ax, labels=growers)
plt.show()

# %%
# The check that needs no derivative: each column takes its values from other wines, drawn at random. Where both methods
# agree, as here, the scores hardly bend within the spread of a column.

permuted = fk.kpca_importance(model, X, method="permutation")
fig, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
plot.importance(permuted, ax=ax)
plt.show()

both = np.corrcoef(which.share[0], permuted.share[0])[0, 1]
print(f"correlation of the two for the first component: {both:.3f}")
assert both > 0.95

# %%
# When not to believe it: importance is about the scores, and a column that moves them need not matter to anything else.
# Columns that go together, as the phenols do, share what one of them would have alone. Components with nearly equal
# eigenvalues may turn into one another with other wines, and their bars with them: add the bars of both up.

"""
Model size against the number of rows
=====================================

A model from a feature map has the size of the map, for any number of rows. On the other routes the model holds the
training rows.
"""

# %%
# Points in the unit cube, five components, a polynomial kernel (an exact feature map) and a narrow Gaussian on the
# krylov route. Sizes are those of the saved files. For the Gaussian with sigma = 1 the plan takes another map for many
# rows, which is larger and faster: the model grows where the map changes, and not between.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fastkpca as fk

rng = np.random.default_rng(0)


def size(model) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.kpca"
        fk.save(model, path)
        return path.stat().st_size


few, many = (1_000, 3_000, 10_000), (1_000, 10_000, 100_000, 1_000_000)
features = [size(fk.kpca(rng.random((n, 3)), "polynomial", 5, degree=3, return_scores=False)) for n in many]
gaussian = [size(fk.kpca(rng.random((n, 3)), "gaussian", 5, sigma=1.0, return_scores=False)) for n in many]
krylov = [size(fk.kpca(rng.random((n, 10)), "gaussian", 5, method="krylov", tol=1e-3)) for n in few]

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.loglog(few, np.array(krylov) / 1e6, "s--", label="krylov, Gaussian, d = 10")
ax.loglog(many, np.array(gaussian) / 1e6, "o-", label="features, Gaussian, sigma = 1, d = 3")
ax.loglog(many, np.array(features) / 1e6, "^-", label="features, polynomial of degree 3, d = 3")
ax.set_xlabel("training rows")
ax.set_ylabel("model file (MB)")
ax.grid(color="0.92", linewidth=0.6)
fig.legend(loc="outside upper center", frameon=False)
plt.show()

"""
How good is my Nystroem?
========================

Features of Nystroem's method come with a bound on what they miss. Here it is beside the truth, which takes the whole
kernel matrix.
"""

# %%
# The true error is the largest eigenvalue of K - Z Z', where Z holds the features of all rows. ``residual_norm_`` is at
# least that, but for one case in two million. The trace needs no sample, but is much larger.

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
from sklearn.datasets import load_digits, load_wine

import fastkpca as fk
from fastkpca.sklearn import Nystroem

digits = load_digits().data[::2]
wine = load_wine().data
wine = (wine - wine.mean(axis=0)) / wine.std(axis=0)
rng = np.random.default_rng(0)
clusters = np.vstack([rng.standard_normal((700, 3)), 8.0 + 0.5 * rng.standard_normal((60, 3))])
problems = [
    ("digits, 64 columns", digits, 25.0, [10, 20, 50, 100, 200, 400]),
    ("wine, 13 columns", wine, 4.0, [5, 10, 20, 40, 80, 160]),
    ("two clusters, 3 columns", clusters, 1.5, [5, 10, 20, 40, 80, 160]),
]

fig, axes = plt.subplots(1, 3, figsize=(9, 4.2), layout="constrained")
for ax, (title, X, sigma, counts) in zip(axes, problems):
    K = fk.gram(X, "gaussian", sigma=sigma) @ np.eye(len(X))
    n = len(X) - 1
    largest = scipy.linalg.eigvalsh(K, subset_by_index=[n, n])[0]
    curves = []
    for count in counts:
        nystroem = Nystroem("gaussian", kernel_params={"sigma": sigma}, n_components=count, random_state=0)
        Z = nystroem.fit_transform(X)
        error = scipy.linalg.eigvalsh(K - Z @ Z.T, subset_by_index=[n, n])[0]
        assert error <= nystroem.residual_norm_ + 1e-13 * largest  # slack of the reference
        curves.append([nystroem.residual_trace_, nystroem.residual_norm_, error])
    curves = np.maximum(np.array(curves) / largest, 1e-14)
    for values, style, label in zip(curves.T, (":", "o-", "s--"), ("trace", "bound", "true error")):
        ax.loglog(counts, values, style, label=label)
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel("number of landmarks, D")
axes[0].set_ylabel("of the largest eigenvalue of K")
axes[0].legend()
plt.show()

# %%
# The bound follows the true error down, at a distance that the size of the sample sets: a sample of s rows cannot tell
# less than about 15 / s of the trace. With few rows, as here, a larger sample costs as much as the matrix.

"""
Clustering with a certificate
=============================

Groups of handwritten digits, and what is proved about every other grouping. The images are the 8 x 8 digits
that scikit-learn ships.
"""

# %%
# **Two digits**, zeros and ones, without their labels. Kernel k-means finds two groups, and the certificate says how
# much better any other clustering could be, and how different one that is as good.

import matplotlib.pyplot as plt
import numpy as np
from kernels_contrib.clustering import kernel_kmeans
from kernels_contrib.diffusion import diffusion_map, spectral_clustering
from sklearn.datasets import load_digits

COLOURS = np.array(["#3f90da", "#e76300", "#7a21dd", "#9c9ca1"])

X, digit = load_digits(n_class=2, return_X_y=True)
model = kernel_kmeans(X, "gaussian", 2)
print(model.verdict)
print(f"as the labels: {max(np.mean(model.labels == digit), np.mean(model.labels != digit)):.1%} of the rows")

# %%
# **When does it say something?** The same digits with noise: as the groups melt into one another, more rows may be
# grouped otherwise at the same cost, and at some noise nothing is proved about them any more.

noises = np.arange(0.0, 17.0)
rng = np.random.default_rng(0)
found = [kernel_kmeans(X + noise * rng.standard_normal(X.shape), "gaussian", 2) for noise in noises]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(noises, [100 * m.above_least for m in found], "o-", color=COLOURS[0], label="cost above the best, at most")
differing = np.array([100 * m.differing if m.differing < 1 else np.nan for m in found])
ax.plot(noises, differing, "^-", color=COLOURS[1], label="rows that may be grouped otherwise, at most")
for i, noise in enumerate(noises[np.isnan(differing)]):
    ax.axvspan(noise - 0.5, noise + 0.5, color="0.93", label=None if i else "nothing is proved about the rows")
ax.set_xlabel("standard deviation of the noise (pixels are from 0 to 16)")
ax.set_ylabel("percent")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **The walk between the rows.** Eigenvalues of the random walk on three digits: their intervals prove that the gap
# after the second is the largest of those for two groups or more. So two groups come out where no number is asked for,
# the zeros and the other digits, and the certificate is about these two. With three the digits come out, too, but
# others may cost as little. A diffusion map draws them.

X, digit = load_digits(n_class=3, return_X_y=True)
print(spectral_clustering(X, "gaussian", sigma=20.0))
walk = spectral_clustering(X, "gaussian", 3, sigma=20.0)
print(walk)
right_digit = sum(np.bincount(digit[walk.labels == i]).max() for i in range(3))
print(f"in the group of their digit: {right_digit / len(X):.1%} of the rows")
coordinates = diffusion_map(X, "gaussian", 2, sigma=20.0, alpha=0.0).coordinates
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
order = np.arange(1, len(walk.eigenvalues) + 1)
left.plot(order, walk.eigenvalues, "o", color=COLOURS[0])
gap = (2.5, walk.eigenvalues[1:3].mean())
left.annotate("largest gap\nafter the first", gap, (3.2, 0.85), arrowprops={"arrowstyle": "->"})
left.set_xlabel("eigenvalue of the walk")
left.set_xticks(order)
for group in range(walk.n_groups):
    rows = walk.labels == group
    name = np.bincount(digit[rows]).argmax()
    right.plot(*coordinates[rows].T, ".", color=COLOURS[group % 4], markersize=4, label=f"mostly {name}")
right.set_xlabel("diffusion coordinate 1")
right.set_ylabel("diffusion coordinate 2")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# When not to believe it: a certificate is about the *cost*, for this kernel and this number of groups. Whether groups
# of low cost mean anything is not its business.

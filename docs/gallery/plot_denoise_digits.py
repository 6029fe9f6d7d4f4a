"""
Denoising digits
================

Kernel PCA removes noise from images: project the noisy image on the components, which contain little of the noise, and
find an image whose projection is near that, its *pre-image*. The digits are those of scikit-learn, 8 x 8 pixels each,
and the idea is that of Mika et al. (1998).
"""

# %%
# Digits, and noise
# -----------------
# The components are made of clean digits; others, which no model has seen, get normally distributed noise as large as a
# third of the range of a pixel.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fastkpca as fk

X, y = load_digits(return_X_y=True)
X = X / 16
train, clean, _, labels = train_test_split(X, y, test_size=300, stratify=y, random_state=0)
rng = np.random.default_rng(0)
noisy = clean + 0.33 * rng.standard_normal(clean.shape)


def error(images):
    """Squared distance to the clean image, on average."""
    return np.mean(np.sum((images - clean) ** 2, axis=1))


# %%
# How many components
# -------------------
# With few components the digit is lost, with many the noise stays. Linear PCA is the linear kernel, whose pre-images
# are exact; those of the Gaussian kernel are found by the fixed-point iteration, from the noisy image. Its sigma is
# about the length of the noise, 0.33 times the square root of 64: with a much smaller one, all digits are equally far
# from a noisy image.

sigma = 3.0
counts = [2, 4, 8, 16, 24, 32, 48, 64, 128, 256, 512]
linear, gaussian = {}, {}
for c in counts:
    if c < 64:
        model = fk.kpca(train, "linear", c)
        linear[c] = fk.kpca_denoise(model, noisy)
    model = fk.kpca(train, "gaussian", c, sigma=sigma, method="dense")
    gaussian[c] = fk.kpca_denoise(model, noisy)

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, found in (("linear PCA", linear), ("kernel PCA", gaussian)):
    ax.plot(list(found), [error(images) for images in found.values()], "o-", label=name)
ax.axhline(error(noisy), color="0.5", linestyle="--", label="noisy")
ax.set(xscale="log", xlabel="components", ylabel="mean squared distance to the clean image", ylim=(0, None))
ax.set_xticks(counts, [str(c) for c in counts])
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()

# %%
# The images
# ----------
# Linear PCA must use few components, which do not give a digit's shape: more of them would bring back the noise.
# Pre-images of the Gaussian kernel look like digits with many more components.

best = [min(found, key=lambda c, found=found: error(found[c])) for found in (linear, gaussian)]
rows = {
    "clean": clean,
    "noisy": noisy,
    f"linear PCA\n{best[0]} components": linear[best[0]],
    f"kernel PCA\n{best[1]} components": gaussian[best[1]],
}
shown = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
fig, axes = plt.subplots(len(rows), 10, figsize=(8, 3.6), layout="constrained")
for line, (name, images) in zip(axes, rows.items()):
    for ax, i in zip(line, shown):
        ax.imshow(images[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()

# %%
# In numbers:

for name, images in rows.items():
    print(f"{' '.join(name.split()):28} {error(images):6.2f}")

"""
Eigenfaces and kernel eigenfaces
================================

The components of pictures are pictures. A linear component is one itself; a kernel component shows in the pre-images
of points that move along it.
"""

# %%
# Drawn faces of 40 x 32 pixels, each with its own width, eyes, nose, mouth and light. (For photographs of people,
# ``benchmarks/reproduce/faces.py`` and ``yale.py`` run a published comparison of recognition rates.)

import matplotlib.pyplot as plt
import numpy as np

import fastkpca as fk

HEIGHT, WIDTH = 40, 32
y, x = np.meshgrid(np.linspace(-1.25, 1.25, HEIGHT), np.linspace(-1, 1, WIDTH), indexing="ij")


def spot(cx, cy, rx, ry):
    return np.exp(-(((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2))


def face(rng):
    wide, gaze, smile, light, turn = rng.normal(0, [0.05, 0.05, 0.12, 0.5, 0.12])
    head = 1 / (1 + np.exp(14 * (((x - 0.3 * turn) / (0.72 + wide)) ** 2 + (y / 1.05) ** 2 - 1)))
    picture = head * (0.75 + 0.25 * np.tanh(2 * light) * x)
    for side in (-1, 1):
        eye = 0.3 * side + turn
        picture -= head * (0.5 * spot(eye, -0.25, 0.13, 0.07) + 0.2 * spot(eye + gaze, -0.47, 0.18, 0.05))
    picture -= head * 0.2 * spot(1.3 * turn, 0.1, 0.06, 0.2)
    bend = 0.55 + smile * ((x - turn) / 0.3) ** 2 * -1
    picture -= head * 0.45 * np.exp(-(((y - bend) / 0.06) ** 2)) * np.exp(-(((x - turn) / 0.3) ** 4))
    return picture.ravel() + 0.02 * rng.standard_normal(HEIGHT * WIDTH)


rng = np.random.default_rng(0)
X = np.array([face(rng) for _ in range(600)])
X_new = np.array([face(rng) for _ in range(6)])


def show(axes, pictures, signed=False):
    for ax, picture in zip(axes, pictures):
        size = np.abs(picture).max()
        limits = {"vmin": -size, "vmax": size, "cmap": "RdBu_r"} if signed else {"vmin": 0, "vmax": 1, "cmap": "gray"}
        ax.imshow(picture.reshape(HEIGHT, WIDTH), **limits)
        ax.set(xticks=[], yticks=[])


linear = fk.pca(X, 30)
mean = X.mean(axis=0)
eigenfaces = ((X - mean).T @ linear.coeff).T
fig, axes = plt.subplots(2, 6, figsize=(9, 4.6), layout="constrained")
show(axes[0], X)
show(axes[1], eigenfaces[:6], signed=True)
for ax, percent in zip(axes[1], linear.explained):
    ax.set_title(f"{percent:.1f} %", fontsize="small")
axes[0, 0].set_ylabel("faces")
axes[1, 0].set_ylabel("eigenfaces")
plt.show()

# %%
# Along a linear component pictures are blended, and far out they are no faces any more. Along a component of the
# Gaussian kernel the pre-images stay near the faces that there are: the head grows wider, or turns with eyes, nose and
# mouth. From left to right: the mean, plus -3 to 3 standard deviations of one component.

kernel = fk.kpca(X, "gaussian", 30)
steps = np.linspace(-3, 3, 7)
fig, axes = plt.subplots(4, 7, figsize=(9, 6.8), layout="constrained")
for j in range(2):
    along = np.outer(steps * np.sqrt(linear.latent[j]), eigenfaces[j] / np.linalg.norm(eigenfaces[j]))
    show(axes[j], mean + along)
    Z = np.zeros((7, 30))
    Z[:, j] = steps * np.sqrt(kernel.latent[j])
    show(axes[2 + j], fk.kpca_preimage(kernel, Z, train=X))
    axes[j, 0].set_ylabel(f"PC{j + 1}")
    axes[2 + j, 0].set_ylabel(f"kernel PC{j + 1}")
plt.show()

# %%
# New faces from 30 components: of the linear kernel, and by pre-images of the Gaussian kernel. Below each its squared
# error, relative to that of the mean face. The linear components are a little nearer: they minimise this very error,
# and a kernel component spends part of its variance on what no picture shows.

fig, axes = plt.subplots(3, 6, figsize=(9, 6.6), layout="constrained")
show(axes[0], X_new)
for row, model, name in ((axes[1], linear, "linear"), (axes[2], kernel, "kernel")):
    back = fk.kpca_preimage(model, fk.kpca_project(model, X_new), train=X)
    show(row, back)
    for ax, picture, given in zip(row, back, X_new):
        error = ((picture - given) ** 2).sum() / ((given - mean) ** 2).sum()
        ax.set_xlabel(f"{100 * error:.0f} %", fontsize="small")
    row[0].set_ylabel(name)
axes[0, 0].set_ylabel("new faces")
plt.show()

# %%
# When not to believe the pictures: a pre-image is the face whose image is nearest to a point of feature space, and that
# point need not be the image of any face. Far out along a component the pre-image stops at the last faces there are.

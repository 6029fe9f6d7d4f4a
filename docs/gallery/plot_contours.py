"""
Components as functions: contours over two inputs
=================================================

A kernel component is a function of the inputs. Its contours show which rows it distinguishes: all points on one
line have the same score.
"""

# %%
# Three blobs, the example of Schölkopf, Smola and Müller (1998). With a Gaussian of about the blobs' own width the
# first two components separate the blobs, the next ones split each of them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine, make_circles

import fastkpca as fk
from fastkpca import plot

rng = np.random.default_rng(0)
centres = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
blobs = np.vstack([rng.normal(centre, 0.1, (60, 2)) for centre in centres])
model = fk.kpca(blobs, "gaussian", 6, sigma=0.22)

fig, axes = plt.subplots(3, 2, figsize=(8.5, 9.5), layout="constrained")
plot.contours(model, blobs, axes, component=range(6))
plt.show()

# %%
# Two rings, which no linear component separates. The first two components vary with the angle, as the linear ones
# would; the third is large on the inner ring and small on the outer one.

rings, ring = make_circles(500, factor=0.35, noise=0.06, random_state=0)
names = np.array(["outer", "inner"])[ring]
model = fk.kpca(rings, "gaussian", 3, sigma=0.6)

fig, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
plot.contours(model, rings, axes, component=[0, 1, 2], labels=names)
plt.show()

# %%
# The rings in components 1 and 3: now a straight line does.

fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
plot.scores(model, names, ax, components=(0, 2))
plt.show()

# %%
# With more than two inputs the others are held at their means, or at the values given as ``at``. Wine has thirteen,
# standardised here because they have unlike units.

wine = load_wine(as_frame=True)
frame = (wine.data - wine.data.mean()) / wine.data.std()
model = fk.kpca(frame, "gaussian", 2)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot.contours(
    model, frame, axes, component=[0, 1], inputs=("flavanoids", "color_intensity"),
    labels=wine.target_names[wine.target],
)  # fmt: skip
plt.show()

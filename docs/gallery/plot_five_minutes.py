"""
Five minutes with handwritten digits
====================================

Fit, draw, project new rows, keep the model.
"""

# %%
# 1797 images of 8 x 8 pixels. The last 297 stand for rows that come later.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import fastkpca as fk
from fastkpca import plot

X, digit = load_digits(return_X_y=True)
model = fk.kpca(X[:1500], "gaussian", 10)
print(model)

# %%
# The bandwidth came from the median heuristic, and every eigenvalue has an interval around it that is guaranteed to
# contain the true one, to one millionth of the largest (``tol=1e-6``, the default). The rows in the first two
# components:

fig, ax = plt.subplots(figsize=(7.5, 5.5), layout="constrained")
plot.scores(model, digit[:1500], ax, label_name="digit")
plt.show()

# %%
# Eigenvalues, and how much of the variance in feature space the components explain:

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
plot.scree(model, ax)
plt.show()

# %%
# New rows are projected with the numbers of the old ones. Here the hollow marks are 297 new rows:

scores = fk.kpca_project(model, X[1500:])
fig, ax = plt.subplots(figsize=(7.5, 5.5), layout="constrained")
plot.scores(model, digit[:1500], ax, label_name="digit", new=scores, new_labels=digit[1500:])
plt.show()

# %%
# Three components at once:

fig = plt.figure(figsize=(8, 6), layout="constrained")
plot.scores(model, digit[:1500], fig.add_subplot(projection="3d"), components=(0, 1, 2))
plt.show()

# %%
# The plan: the candidate that ran, the others, and their predicted costs:

print(model.plan)
fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
plot.candidates(model, ax)
plt.show()

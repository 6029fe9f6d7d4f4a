"""
Convergence: widths of intervals, pass by pass
==============================================

Block Krylov on exact products takes over if no feature map reaches the tolerance. Its cost is that of passes over
the N x N kernel matrix; after each pass in float64 the width of the intervals is known.
"""

# %%
# The search runs in float32, at half the price. Its marks are hollow: they are estimates, not bounds. Solid marks are
# widths of intervals. With so few rows the kernel values are computed once, and all passes read them from memory.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import fastkpca as fk
from fastkpca import plot

X, _ = load_digits(return_X_y=True)
fig, axes = plt.subplots(1, 3, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, tol in zip(axes, (1e-4, 1e-8, 1e-11)):
    model = fk.kpca(X, "gaussian", 10, method="krylov", tol=tol)
    plot.convergence(model, ax)
    ax.label_outer()
    ax.get_legend().remove()
    ax.set_title(f"tol = {tol:g}: {model.info['widths'][-1][0]} passes", fontsize="medium")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
plt.show()

# %%
# More components at one tolerance need about as many passes, because the block grows with them:

fig, axes = plt.subplots(1, 3, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, c in zip(axes, (2, 20, 60)):
    model = fk.kpca(X, "gaussian", c, method="krylov", tol=1e-8)
    plot.convergence(model, ax)
    ax.label_outer()
    ax.get_legend().remove()
    ax.set_title(f"{c} components: {model.info['widths'][-1][0]} passes", fontsize="medium")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
plt.show()

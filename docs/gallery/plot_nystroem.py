"""
How good is my Nystroem?
========================

Features of Nystroem's method come with a bound on what they miss, and the eigenvalues with an interval of second
order, for any landmarks. Here they are compared with the true errors, which take the whole kernel matrix.
"""

# %%
# The landmarks are those of a fitted ``Nystroem`` of scikit-learn. Z holds its features of all rows, and K is the
# kernel matrix. ``residual_trace_`` is the sum of all eigenvalues of K - Z Z', ``residual_norm_`` bounds the largest:
# no eigenvalue moves by more. ``kpca`` measures how far the three leading ones move, and returns better eigenvalues:
# the width of their intervals may be far below the error of the features.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
from sklearn import kernel_approximation
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
styles = {
    "trace": "C0:",
    "bound from a sample": "C1o-",
    "interval of second order": "C2s-",
    "true error of the features": "C3--",
    "true error of second order": "C4-.",
}

fig, axes = plt.subplots(1, 3, figsize=(10, 4.4), layout="constrained", sharey=True)
for ax, (title, X, sigma, counts) in zip(axes, problems):
    K = fk.gram(X, "gaussian", sigma=sigma).centered() @ np.eye(len(X))
    n = len(X) - 1
    exact = scipy.linalg.eigvalsh(K, subset_by_index=[n - 2, n])[::-1]
    curves = []
    for count in counts:
        theirs = kernel_approximation.Nystroem(gamma=0.5 / sigma**2, n_components=count, random_state=0).fit(X)
        nystroem = Nystroem(**theirs.get_params(), landmarks=theirs.component_indices_).fit(X)
        Z = nystroem.transform(X)
        of_features = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False)[:3] ** 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fk.errors.CertificateWarning)  # few landmarks do not reach 1e-4
            model = nystroem.kpca(X, 3, tol=1e-4)
        low, high = model.eigenvalue_bounds.T
        slack = 1e-12 * exact[0]  # of the reference
        assert (low <= exact + slack).all() and (exact <= high + slack).all()
        assert (exact - of_features <= nystroem.residual_norm_ + slack).all()
        curves.append([nystroem.residual_trace_, nystroem.residual_norm_, (high - low).max()])
        curves[-1] += [(exact - of_features).max(), np.abs(exact - model.eigenvalues).max()]
    curves = np.maximum(np.array(curves) / exact[0], 1e-13)
    for values, (label, style) in zip(curves.T, styles.items()):
        ax.loglog(counts, values, style, label=label)
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel("number of landmarks, D")
axes[0].set_ylabel("of the largest eigenvalue of K")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize="small")
plt.show()

# %%
# The bound from a sample follows the true error down, at a distance that the size of the sample sets: a sample of s
# rows cannot tell less than about 15 / s of the trace. The interval of second order lies close above the true error of
# the eigenvalues that come with it, unless the norm of the landmarks' residual exceeds the gap after the third
# eigenvalue.

"""
Two groups, two views
=====================

Were two groups of rows drawn from one distribution? Do two sets of columns have anything to do with each other, and
what? Tests and regressions of ``kernels_contrib`` answer with the kernel's products, without its matrix.
"""

# %%
# scikit-learn's handwritten digits come in the order in which they were written. If every part of the file were a
# sample of the same handwriting, the first and the last half of one digit would differ by no more than two random
# halves do. The test permutes the labels of the halves, all permutations in one product with the kernel matrix.

import matplotlib.pyplot as plt
import numpy as np
from kernels_contrib.cca import kernel_cca
from kernels_contrib.hsic import hsic_test
from kernels_contrib.mmd import mmd_test
from kernels_contrib.pls import kernel_pls
from kernels_contrib.ridge import kernel_ridge
from sklearn.datasets import load_diabetes, load_digits

images, digit = load_digits(return_X_y=True)
threes = images[digit == 3]
half = len(threes) // 2
mixed = np.random.default_rng(0).permutation(threes)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharex=True)
for ax, rows, title in zip(axes, (threes, mixed), ("first and last half of the threes", "two random halves")):
    test = mmd_test(rows[:half], rows[half:], unbiased=True, permutations=999)
    print(test)
    ax.hist(1e3 * test.null[:, 0], bins=30, color="#a9c8e8", label="labels permuted")
    ax.axvline(1e3 * test.statistic[0], color="#bd1f01", label=f"as they are: p = {test.p_value:.3f}")
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel("squared mean discrepancy, in thousandths")
    ax.legend(fontsize="small")
plt.show()

# %%
# The hands changed in the course of the data. (Rows at random are a fair sample; the first rows of a file often are
# not.)
#
# Two views: of 442 patients there are body measures (age, sex, weight, blood pressure) and six of their blood serum.
# They are not independent, and kernel CCA finds the functions of each that agree best. The regularisation decides how
# wild the functions may be; permutations show the correlation that functions of 442 independent pairs would reach.

patients, disease = load_diabetes(return_X_y=True)
patients = patients / patients.std(axis=0)
body, serum = patients[:, :4], patients[:, 4:]
print(hsic_test(body, serum))
agree = kernel_cca(body, serum, c=2, regularization=0.1, permutations=199, tol=1e-4)
print(agree)

# %%
# Progress of the disease after a year, predicted from all ten columns. Partial least squares needs few components,
# since it chooses those that vary with the target. Ridge regression keeps all of them, and penalises. Left the two
# views, right the regressions.

train, test = np.arange(442) % 3 > 0, np.arange(442) % 3 == 0
counts = np.arange(1, 13)


def left_over(model):
    off = model.predict(patients[test]) - disease[test]
    return np.mean(off**2) / disease[test].var()


wide = 2 * kernel_ridge(patients[train], disease[train]).kernel.sigma
errors = [left_over(kernel_pls(patients[train], disease[train], c=int(c), sigma=wide)) for c in counts]
centre = disease[train].mean()
ridge = kernel_ridge(patients[train], disease[train] - centre, sigma=wide, regularization=0.3)
off = ridge.predict(patients[test]) + centre - disease[test]
print(f"ridge regression: {np.mean(off**2) / disease[test].var():.3f} of the variance left")
print(f"predictions within {ridge.error(patients[test]).max():.1e} of the exact solution's")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
points = left.scatter(agree.x.project(body)[:, 0], agree.y.project(serum)[:, 0], 12, c=body[:, 2], cmap="viridis")
left.set_xlabel("function of the body")
left.set_ylabel("function of the blood")
left.set_title(f"regularised correlation {agree.correlations[0]:.2f}, p = {agree.p_value:.3f}", fontsize="medium")
fig.colorbar(points, ax=left, label="body mass index, standardised")
right.plot(counts, errors, "o-", color="#3f90da", label="partial least squares")
right.axhline(np.mean(off**2) / disease[test].var(), color="#bd1f01", label="ridge regression")
right.set_xlabel("components")
right.set_ylabel("variance left on new rows, as a share")
right.legend(fontsize="small")
plt.show()

"""Numbers at odd bytes reach kernels, maps and products as aligned arrays; the bits are those of aligned ones."""

import numpy as np
import pytest

import fastkpca as fk
from fastkpca._core.arrays import contiguous
from fastkpca.kernels import Kernel
from fastkpca.rows.convert import as_rows

X = np.random.default_rng(0).standard_normal((300, 4))


def odd(A):
    """A copy whose numbers begin at an odd byte."""
    A = np.asarray(A)
    raw = np.empty(A.nbytes + 1, np.uint8)
    B = raw[1:].view(A.dtype).reshape(A.shape)
    B[...] = A
    assert A.size == 0 or not B.flags.aligned
    return B


def field(A):
    table = np.zeros(len(A), [("key", "i1"), ("x", A.dtype, A.shape[1:])])
    table["x"] = A
    return table["x"]


class Watching(Kernel):
    """Refuses rows that compiled loops could not read."""

    api_version = 1
    positive_semidefinite = True

    def block(self, A, B):
        assert A.flags.aligned and B.flags.aligned and A.flags.c_contiguous and B.flags.c_contiguous
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("make", [odd, field])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", ">f8"])
def test_rows_and_landmarks(make, dtype):
    rows = make((4 * X).astype(dtype))
    model = fk.kpca(rows, Watching(), 2, landmarks=make(rows[::20]))
    fk.kpca_project(model, make(np.array(rows[:9])))
    fk.kpca_spe(model, make(np.array(rows[:9])))
    assert as_rows(rows).tile(3, 50).flags.aligned and as_rows(rows).shifted(np.zeros(4)).tile(3, 50).flags.aligned


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "gaussian", "tanh"])
def test_results_are_those_of_aligned_numbers(kernel):
    w, U = np.arange(300.0) % 4, np.random.default_rng(1).standard_normal((300, 3))
    models = [fk.kpca(make(X), kernel, 2, sample_weight=make(w)) for make in (np.array, odd, field)]
    products = [fk.gram(make(X), kernel) @ make(U) for make in (np.array, odd, field)]
    blocks = [models[0].kernel.block(make(X), make(X[:7])) for make in (np.array, odd)]
    scores = [fk.kpca_project(models[0], make(X[:50])) for make in (np.array, odd, field)]
    for found in ([m.score for m in models], products, blocks, scores):
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)


def test_what_is_right_already_is_not_copied():
    for A in (X, X[5:], X[:, :1].copy(), np.empty((0, 3))):
        assert contiguous(A) is A and contiguous(A, np.float64) is A
    for A in (odd(X), X[::2], X.T, X.astype("f4"), X.astype(">f8")):
        made = contiguous(A, np.float64)
        assert made.flags.aligned and made.flags.c_contiguous and made.dtype == np.float64
        np.testing.assert_array_equal(made, A)

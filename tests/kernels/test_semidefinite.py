"""A precomputed matrix that is declared semidefinite: checked, and its intervals certain."""

import intervals
import numpy as np
import pytest
import reference

import fastkpca as fk
from fastkpca.kernels import precomputed


def gaussian_matrix(n=400, d=5, sigma=2.0):
    return reference.gram("gaussian", np.random.default_rng(0).standard_normal((n, d)), sigma=sigma)


def test_intervals_are_certain():
    """That they hold, also after a file, is attacked: tests/support/option_cases.py."""
    K = gaussian_matrix(800, 10, 4.0)
    declared, plain = (fk.kpca(K, "precomputed", 3, semidefinite=x, method="krylov", tol=1e-6) for x in (True, False))
    assert declared.bound_kind == "guaranteed" and declared.info["matrix_passes"] <= plain.info["matrix_passes"]
    assert intervals.width(declared) <= 1e-6
    assert [repr(x.kernel) for x in (declared, plain)] == [f"Precomputed(semidefinite={x})" for x in (True, False)]
    assert fk.kpca(K, "precomputed", 0.5, semidefinite=True, tol=1e-6).explained.sum() >= 50.0


def test_what_is_only_rounded_passes():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((300, 4))
    K = Z @ Z.T - 1e-12 * np.eye(300)  # of rank 4
    lowest, bound = np.linalg.eigvalsh(K)[0], fk.get_kernel("precomputed", semidefinite=True).bind(K)[0]
    assert 0.9e-12 < -lowest <= bound.below_zero  # so intervals hold for a semidefinite matrix, too
    fk.kpca(K, "precomputed", 2, semidefinite=True)
    fk.kpca(K + 1e-14 * rng.standard_normal((300, 300)), "precomputed", 2, semidefinite=True)
    fk.kpca(K.astype(np.float32), "precomputed", 2, semidefinite=True, tol=1e-2)
    fk.kpca(np.rint(Z * 3).astype(int) @ np.rint(Z * 3).astype(int).T, "precomputed", 2, semidefinite=True)


@pytest.mark.filterwarnings("ignore::fastkpca.errors.CertificateWarning")  # of the trace, which is N times as far off
@pytest.mark.parametrize("method", ["dense", "krylov"])
@pytest.mark.parametrize("size", [1e-8, 1e-5, 1e-3])
def test_a_negative_part_as_of_rounding_is_counted(size, method):
    K, H = gaussian_matrix(), np.eye(400) - 1 / 400
    values, vectors = np.linalg.eigh(K)
    noise = np.random.default_rng(1).uniform(-size, size, K.shape)
    for A in (K - (size + values[0]) * np.outer(vectors[:, 0], vectors[:, 0]), K + (noise + noise.T) / 2):
        below = fk.get_kernel("precomputed", semidefinite=True).bind(A)[0].below_zero
        assert -np.linalg.eigvalsh(A)[0] <= below <= 100 * size
        model = fk.kpca(A, "precomputed", 3, semidefinite=True, method=method, tol=0.5)
        found = np.linalg.eigvalsh(H @ A @ H)[:-4:-1]
        assert (model.eigenvalue_bounds[:, 0] <= found).all() and (found <= model.eigenvalue_bounds[:, 1]).all()
        assert model.bound_kind == "guaranteed"
        assert method == "krylov" or intervals.width(model) <= 1e-11  # LAPACK's need no semidefinite matrix


def test_zero_is_semidefinite():
    assert fk.get_kernel("precomputed", semidefinite=True).bind(np.zeros((5, 5)))[0].below_zero == 0.0


@pytest.mark.parametrize("size", [0.1, 3.0])
def test_what_is_indefinite_is_refused(size):
    K = gaussian_matrix()
    v = np.linalg.eigh(K)[1][:, 0]
    with pytest.raises(ValueError, match=r"is not positive semidefinite: it has an eigenvalue below -\d"):
        fk.kpca(K - (size + np.linalg.eigvalsh(K)[0]) * np.outer(v, v), "precomputed", 2, semidefinite=True)


def test_of_many_rows_some_are_checked(monkeypatch):
    monkeypatch.setattr(precomputed, "MOST_PROVED", 50)
    fk.kpca(gaussian_matrix(), "precomputed", 2, semidefinite=True)
    D = np.random.default_rng(0).standard_normal((400, 2))
    with pytest.raises(
        ValueError, match="matrix of 50 of the rows is not positive semidefinite: it has an eigenvalue below"
    ):
        fk.kpca(np.abs(D @ D.T) ** 0.5 * np.sign(D @ D.T) - np.eye(400), "precomputed", 2, semidefinite=True)


def test_bad_input():
    K = gaussian_matrix(50)
    with pytest.raises(ValueError, match="does not take rows of numbers"):
        fk.kpca(K, "precomputed", 2, semidefinite=True, method="features")
    with pytest.raises(ValueError, match="does not take rows of numbers, so no feature map"):
        fk.features(K, "precomputed", semidefinite=True)
    with pytest.raises(ValueError, match="does not take rows of numbers, so it has"):
        fk.kpca(K, "precomputed", 2, semidefinite=True, max_features=10)

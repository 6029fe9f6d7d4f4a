"""Rows, parameters and values over all decades of float64: a true interval, or a refusal that says why."""

import numpy as np
import pytest
from data import look
from quiet import silent

import fastkpca as fk
from fastkpca.errors import KernelParameterError, rounded_up
from fastkpca.solve import certificate, complement


@pytest.mark.parametrize("size", [1e-158, 1e-300, 1e150, 1e300])
@pytest.mark.parametrize("kernel, p", [("linear", {}), ("gaussian", {"sigma": 1.0}), ("polynomial", {"offset": 1.0})])
def test_rows_whose_squares_leave_float64_are_refused(kernel, p, size):
    X = size * np.random.default_rng(0).random((20, 3))
    for method in ("auto", "dense", "features", "krylov"):
        with pytest.raises(ValueError, match="largest number in X.* its square leaves the range of float64"):
            fk.kpca(X, kernel, 2, method=method, **p)
    for call in (fk.gram, fk.features):
        with pytest.raises(ValueError, match="largest number in X.* its square leaves the range of float64"):
            call(X, kernel, **p)


@pytest.mark.parametrize(
    "kernel, name", [("gaussian", "sigma"), ("matern", "length_scale"), ("rational_quadratic", "length_scale")]
)
@pytest.mark.parametrize("length", [1e-158, 1e200])
def test_lengths_whose_squares_leave_float64_are_refused(kernel, name, length):
    if kernel != "gaussian":
        pytest.importorskip("kernels_contrib")
    with pytest.raises(KernelParameterError, match=f"{name} is .* give a number from 1e-140 to 1e"):
        fk.get_kernel(kernel, **{name: length})


@pytest.mark.parametrize("scale", [1.0, 1e20, 1e200])
def test_the_error_of_tanh_is_bounded_as_its_values_are(scale):
    X = np.random.default_rng(0).standard_normal((10, 2))
    _, data = look(X, shift=False)
    assert fk.get_kernel("tanh", scale=scale).entry_error(data, np.dtype(np.float64)) <= 2.0
    assert np.isfinite(silent(fk.kpca, X, "tanh", 1, scale=scale, method="krylov").eigenvalue_bounds).all()


@pytest.mark.parametrize("size", [1e155, 1e200, 1e300, np.inf])
def test_certificates_of_huge_numbers_say_that_nothing_is_known(size):
    values = np.array([3.0, 2.0, 1.0, 0.5])
    found = certificate.dense_certificate(values, 2, n=10, norm=1.0, entry_error=size)
    assert not np.isfinite(found.eigenvalue_bounds).any() and (found.angle_bounds == np.pi / 2).all()
    found = certificate.feature_certificate(values, 2, certificate.FeatureSums(10, 6.5, size, 10.0))
    assert (found.angle_bounds == np.pi / 2).all() and (found.eigenvalue_bounds[:, 1] >= size).all()
    assert complement.largest_eigenvalue_bound(np.diag([size, np.inf])) == np.inf
    matrix = certificate.MatrixInfo((7.0, 1e-15), size)
    known = certificate.RitzBlock(np.diag(values), np.eye(4), np.eye(4), 10, 1e-15)
    assert complement.frobenius_bound(known, matrix).mu == np.inf

    def certified(residual_gram):
        ritz = certificate.RitzBlock(np.diag(values), np.eye(4), residual_gram, 10, 1e-15)
        return certificate.ritz_certificate(ritz, 2, matrix, complement.deterministic_bound(ritz, matrix))

    found = certified(1e-30 * np.eye(4))
    assert (found.eigenvalue_bounds[:, 1] >= values[:2]).all() and np.isfinite(found.eigenvalue_bounds).all()
    found = certified(np.full((4, 4), np.inf))
    assert (found.angle_bounds == np.pi / 2).all() and not np.isnan(found.eigenvalue_bounds).any()


@pytest.mark.parametrize(
    "number, text", [(10.34, "11"), (10.0, "10"), (1.2e-9, "1.2e-09"), (1.21e-9, "1.3e-09"), (99.9, "1e+02")]
)
def test_at_most_is_never_below_the_number(number, text):
    assert rounded_up(number) == text
    assert float(text) >= number


def test_float32_rows_whose_scores_would_overflow_are_refused():
    X = np.random.default_rng(0).standard_normal((10, 2)).astype(np.float32)
    with pytest.raises(ValueError, match="X is float32: scores and coefficients would leave the range of float32"):
        fk.kpca(X, 1e90 * fk.get_kernel("linear"), 1)


@pytest.mark.parametrize("size", [1e76, 1e130])
def test_huge_rows_of_many_columns_are_refused_in_words(size):
    """Values whose squares overflow are looked at before they are refused."""
    X = size * np.random.default_rng(0).standard_normal((400, 60))
    with pytest.raises(ValueError, match="nothing is known of its eigenvalues"):
        fk.kpca(X, "linear", 10)

"""The intervals contain what they claim: against exact inertia, mpmath, dense references, and random attacks."""

import intervals
import mpmath
import numpy as np
import pytest
from dense_products import centered
from reference import with_eigenvalues

from fastkpca.solve import certificate as cert
from fastkpca.solve import complement
from fastkpca.solve.basis import Basis

UNIT = np.finfo(np.float64).eps / 2


def ritz(A, V):
    """Ritz coordinates of span(V): (V rotated, V'Y, V'V, R'R)."""
    Y = np.linalg.eigh(V.T @ A @ V)[1][:, ::-1]
    V = V @ Y
    W = A @ V
    compression = V.T @ W
    R = W - V * np.diag(compression)
    return V, compression, V.T @ V, R.T @ R


def certified(compression, gram, residual_gram, c, *, n, product_error, trace=None, other=cert.NO_BOUND):
    ritz = cert.RitzBlock(compression, gram, residual_gram, n, product_error)
    matrix = cert.MatrixInfo(trace)
    outside = min(other, complement.deterministic_bound(ritz, matrix), key=lambda bound: bound.mu)
    return cert.ritz_certificate(ritz, c, matrix, outside)


def true_mu(A, V):
    Q = np.linalg.qr(V)[0]
    P = np.eye(len(A)) - Q @ Q.T
    return float(np.linalg.eigvalsh(P @ A @ P)[-1])


@pytest.mark.parametrize("m", [1, 3, 12])
def test_upper_ends_are_the_roots_of_the_inertia_equation(attack, m):
    """hi_i is the smallest tau > mu with lambda_i(T + L'L / (tau - mu)) <= tau: found here by bisection."""
    rng = attack.rng("inertia", m)
    theta = np.sort(rng.random(m))[::-1] + 1
    L = rng.standard_normal((m, m)) * 10.0 ** rng.uniform(-4, 0, m)
    mu = 0.9
    found = cert.upper_ends(np.diag(theta), L, mu)
    for i in range(m):
        low, high = mu, 1e4
        for _ in range(200):
            tau = (low + high) / 2
            value = np.linalg.eigvalsh(np.diag(theta) + L.T @ L / (tau - mu))[::-1][i]
            low, high = (tau, high) if value > tau else (low, tau)
        assert found[i] == pytest.approx(high, rel=1e-11)


def test_every_mu_bounds_the_rest_of_the_spectrum(attack):
    for case in range(attack.count(1000)):
        rng = attack.rng("mu", case)
        n, m, D = int(rng.integers(5, 60)), int(rng.integers(1, 5)), int(rng.integers(1, 30))
        X = rng.standard_normal((n, D)) * 10.0 ** rng.uniform(-2, 0, D)
        X -= X.mean(axis=0)
        E = with_eigenvalues(rng, 10.0 ** rng.uniform(-6, -1) * rng.random(n))
        H = np.eye(n) - 1 / n
        E = H @ E @ H
        A = X @ X.T + E
        V = np.linalg.qr(H @ rng.standard_normal((n, m)))[0]
        V, *products = ritz(A, V)
        block, size = cert.RitzBlock(*products, n, 1e-15 * np.linalg.norm(A)), float(np.linalg.norm(A))
        whole = cert.MatrixInfo((float(np.trace(A)), 1e-14 * size), size)
        for bound in (complement.trace_bound(block, whole), complement.frobenius_bound(block, whole)):
            assert true_mu(A, V) - 1e-13 * size <= bound.mu < np.inf


def test_the_frobenius_bound_takes_residuals_from_below():
    """Of images that the span holds but for a little, only the size of that is kept: residuals have two bounds."""
    lost = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, b = int(rng.integers(40, 120)), int(rng.integers(2, 30))
        values = 10.0 ** (-rng.uniform(0.2, 2.0) * np.arange(n))
        A = with_eigenvalues(rng, values)
        size, basis = float(np.linalg.norm(A)), Basis(n, rng)
        X = basis.orthonormal(rng.standard_normal((n, b)))
        for _ in range(4):
            basis.append(X, A @ X)
            pairs = basis.ritz()
            block = basis.ritz_block(pairs, 1e-15 * size, size)
            V = basis.vectors(pairs.Y)
            squares = np.sum((A @ V - V * pairs.theta) ** 2, axis=0)
            rounding = (1e-14 * size) ** 2
            assert block.least_squares.sum() <= squares.sum() * (1 + 1e-8) + len(squares) * rounding
            assert np.all(squares <= block.residual_gram.diagonal() * (1 + 1e-8) + rounding)
            bound = complement.frobenius_bound(block, cert.MatrixInfo((float(np.trace(A)), 1e-14 * size), size))
            assert bound.mu >= true_mu(A, V) - 1e-15 * size
            lost += basis.lost > 0.0
            if basis.free_columns < b:
                break
            X = basis.next_block(pairs, b)
    assert lost > 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [40, 200, 400])
def test_largest_eigenvalue_bound_is_proved_and_close(n, dtype):
    """Of any rank."""
    decay = 10.0 ** -np.arange(n, dtype=float)
    for seed, values in enumerate((decay, np.random.default_rng(n).standard_normal(n), 0.9 * (np.arange(n) < 20))):
        rng = np.random.default_rng([n, seed])
        S = with_eigenvalues(rng, values).astype(dtype)
        bound = complement.largest_eigenvalue_bound(S)
        exact = np.linalg.eigvalsh(S.astype(np.float64))[-1]  # of float32 it errs by more
        assert exact * (1.0 - n * np.finfo(np.float64).eps) <= bound <= 1.25 * np.max(values)
    assert complement.largest_eigenvalue_bound(-np.eye(n, dtype=dtype)) >= 0
    assert complement.largest_eigenvalue_bound(np.zeros((0, 0))) == 0
    assert complement.is_below(-np.eye(n), 1.05) and not complement.is_below(-np.eye(n), 1.05, error=0.1)


@pytest.mark.parametrize("spread", [1e-12, 1e-6, 1e-3, 0.05])
def test_columns_far_from_orthonormal(spread):
    rng = np.random.default_rng(5)
    n, m = 80, 10
    A = with_eigenvalues(rng, np.exp(-0.3 * np.arange(n)))
    reference = np.linalg.eigvalsh(A)[::-1]
    V = np.linalg.eigh(A)[1][:, ::-1][:, :m] + 1e-4 * rng.standard_normal((n, m))
    V = np.linalg.qr(V)[0] @ (np.eye(m) + spread * rng.uniform(-1, 1, (m, m)))
    W = A @ V
    theta = np.diag(V.T @ W) / np.diag(V.T @ V)
    order = np.argsort(-theta)
    V, W, theta = V[:, order], W[:, order], theta[order]
    R = W - V * theta
    # Ritz values of the skewed columns: the compression must be V'Y with theta on its diagonal for the formulas
    compression = V.T @ W
    np.fill_diagonal(compression, theta)
    found = certified(compression, V.T @ V, R.T @ R, 5, n=n, product_error=1e-13, trace=(float(np.trace(A)), 1e-13))
    intervals.hold(found, reference)


@pytest.mark.parametrize("lean", [0.9, 0.4])
def test_columns_not_orthonormal_at_all_prove_nothing_but_the_trace(lean):
    A = np.diag([4.0, 1.0, 0.5])
    V = np.array([[1.0, lean], [0.0, 1.0 - lean], [0.0, 0.0]])
    found = certified(V.T @ A @ V, V.T @ V, np.eye(2), 2, n=3, product_error=0.0, trace=(5.5, 0.0))
    np.testing.assert_array_equal(found.eigenvalue_bounds, [[0.0, 5.5], [0.0, 2.75]])
    found = certified(V.T @ A @ V, V.T @ V, np.eye(2), 2, n=3, product_error=np.inf)
    assert np.all(np.isinf(found.eigenvalue_bounds))


def test_small_residuals_survive_beside_large_ones():
    """A residual of 1e-9 beside one of 1: the interval of the first stays 1e-18 / gap wide, and is still right."""
    n = 60
    A = with_eigenvalues(np.random.default_rng(8), np.concatenate([[10.0, 3.0], np.linspace(1, 0, n - 2)]))
    values, Q = (x[..., ::-1] for x in np.linalg.eigh(A))
    V, *products = ritz(A, np.linalg.qr(Q[:, :2] + Q[:, [30, 20]] * [1e-9, 0.7])[0])
    known = cert.Bound(true_mu(A, V) + 1e-13, "known")
    found = certified(*products, 2, n=n, product_error=0.0, trace=(float(values.sum()), 1e-13), other=known)
    intervals.hold(found, values)
    width = np.diff(found.eigenvalue_bounds)[:, 0]
    assert width[0] < 1e-11 < 1e-2 < width[1]


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_rounding_against_mpmath(offset):
    """|K| up to 1e8 times |Kc|: the products' rounding, not the residuals, makes the width; 40 digits decide."""
    rng = np.random.default_rng(11)
    n, m = 14, 4
    K = with_eigenvalues(rng, np.exp(-np.arange(n, dtype=float))) + offset
    K = (K + K.T) / 2
    with mpmath.workdps(40):
        M = mpmath.matrix(K.tolist())
        H = mpmath.eye(n) - mpmath.ones(n) / n
        exact = mpmath.eigsy(H * M * H, eigvals_only=True)
        reference = np.array(sorted((float(v) for v in exact), reverse=True))
    V = np.linalg.eigh(centered(K))[1][:, ::-1][:, :m]
    V = np.linalg.qr(V - V.mean(axis=0))[0]
    W = K @ V
    W -= W.mean(axis=0)
    V = V @ np.linalg.eigh((V.T @ W + W.T @ V) / 2)[1][:, ::-1]
    W = K @ V
    W -= W.mean(axis=0)
    theta = np.diag(V.T @ W)
    R = W - V * theta
    norm = float(np.linalg.norm(K))
    eta = cert.product_error(n, m, norm)
    trace = float(np.trace(K) - K.sum() / n), eta + cert.rounding_factor(n) * UNIT * float(np.trace(np.abs(K)))
    found = certified(V.T @ W, V.T @ V, R.T @ R, 3, n=n, product_error=eta, trace=trace)
    intervals.hold(found, reference)
    computed = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values = np.linalg.eigvalsh((computed + computed.T) / 2)[::-1]
    dense = cert.dense_certificate(values, 3, n=n, norm=norm)
    assert np.all(np.abs(values[:3] - reference[:3]) <= np.diff(dense.eigenvalue_bounds)[:, 0] / 2)
    assert dense.width <= 1e-13 * norm


def test_errors_of_entries_count_once_a_pass_also_for_fewer_columns_than_passes():
    """Sixteen passes of one column each, and one vector of their span: all passes err in its image the same way."""
    n, passes, e = 64, 16, 1e-9
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((n, passes)))[0]
    s, C = np.sign(rng.standard_normal((n, 1))), np.full((passes, 1), 1.0 / np.sqrt(passes))
    errors = np.hstack([e * s @ np.sign(v)[None] @ v[:, None] for v in V.T])
    assert 0.5 * np.sqrt(passes) * n * e < np.linalg.norm(errors @ C) <= cert.product_error(n, 1, 0.0, e, passes=passes)
    assert np.linalg.norm(errors) <= cert.product_error(n, passes, 0.0, e, passes=passes)


def test_clusters_and_angles():
    bounds = np.array([[9.0, 10.0], [8.0, 9.5], [5.0, 6.0], [4.9, 5.0], [1.0, 1.1]])
    np.testing.assert_array_equal(cert.cluster_labels(bounds), [0, 0, 1, 1, 2])
    theta = bounds.mean(axis=1)
    angles = cert.angle_bounds(theta, 0.01 * np.eye(5), bounds, 5, 0.0)
    # first cluster: residual 0.1, next upper end 6, smallest Ritz value 8.75
    assert angles[0] == angles[1] == pytest.approx(np.arcsin(0.1 / 2.75), rel=1e-6)
    # second cluster: above it 8 - 5.5, below it 4.95 - 1.1
    assert angles[2] == angles[3] == pytest.approx(np.arcsin(0.1 / 2.5), rel=1e-6)
    assert angles[4] == np.pi / 2  # nothing bounds what comes after the last
    # a cluster that goes on beyond c is judged against what lies beyond the whole of it
    assert cert.angle_bounds(theta, 0.01 * np.eye(5), bounds, 3, 0.0)[2] == pytest.approx(
        np.arcsin(0.1 / 2.5), rel=1e-6
    )


def test_angles_of_ritz_vectors_of_any_quality(attack):
    """The angle between each cluster's returned vectors and its eigenvectors, from a dense reference."""
    claims = 0
    for case in range(attack.count(4000, least=300)):
        rng = attack.rng("ritz angles", case)
        n = int(rng.integers(5, 20))
        m = int(rng.integers(2, n))
        c = int(rng.integers(1, m + 1))
        A = with_eigenvalues(rng, 10.0 ** rng.uniform(-3, 0, n))
        vectors = np.linalg.eigh(A)[1][:, ::-1]
        # every vector has its own error: the next eigenvalue may be known badly
        V = np.linalg.qr(vectors[:, :m] + rng.standard_normal((n, m)) * 10.0 ** rng.uniform(-3, 0, m))[0]
        V, compression, gram, residual_gram = ritz(A, V)
        block = cert.RitzBlock(compression, gram, residual_gram, n, 1e-14)
        outside = cert.Bound(true_mu(A, V) + 1e-13, "exact")
        found = cert.ritz_certificate(block, c, outside=outside)
        clusters = cert.ritz_certificate(block, m, outside=outside).clusters  # the last one may go on beyond c
        for label in np.unique(found.clusters):
            mine, members = np.flatnonzero(found.clusters == label), np.flatnonzero(clusters == label)
            bound = float(np.sin(found.angle_bounds[mine[0]]))
            true = vectors[:, members]
            sine = np.linalg.norm(V[:, mine] - true @ (true.T @ V[:, mine]), 2)
            assert sine <= bound + 1e-9
            claims += bound < 1.0
    assert claims > 100  # else nothing was tested


def test_tightening_keeps_the_tighter_ends_and_the_failure_probability():
    first = cert.dense_certificate(np.array([3.0, 1.0]), 2, n=2, norm=1e13)
    second = cert.dense_certificate(np.array([3.0, 1.0]), 2, n=2, norm=3.0)
    both = first.tightened(second.eigenvalue_bounds[:, 1])
    np.testing.assert_array_equal(both.eigenvalue_bounds[:, 1], second.eigenvalue_bounds[:, 1])
    np.testing.assert_array_equal(both.eigenvalue_bounds[:, 0], first.eigenvalue_bounds[:, 0])
    # never below the lower end, and for as many as are given
    crossed = second.tightened(np.array([0.0]))
    assert crossed.eigenvalue_bounds[0, 1] == crossed.eigenvalue_bounds[0, 0]
    np.testing.assert_array_equal(crossed.eigenvalue_bounds[1], second.eigenvalue_bounds[1])
    weak = cert.replace(second, failure_probability=1e-6)
    assert weak.bound_kind == "probabilistic" and second.bound_kind == "guaranteed"
    assert weak.tightened(first.eigenvalue_bounds[:, 1]).failure_probability == 1e-6


@pytest.mark.parametrize("residual", [1e-9, 1e-4, 1e-2, 0.3])
def test_an_error_of_the_images_beside_small_residuals_costs_little_more_than_its_square(residual):
    """(|R| + e)^2 / gap at least, whichever of the two is larger; any rotation of F beside R has to be covered."""
    error, m = 1e-3, 6
    factor = cert._residual_factor(residual**2 * np.eye(m), 100, error)
    sharp = (residual + error) ** 2
    assert sharp <= np.linalg.eigvalsh(factor.T @ factor)[-1] <= 2.1 * sharp + 1e-10
    rng = np.random.default_rng(0)
    for _ in range(20):
        R = residual * np.linalg.qr(rng.standard_normal((100, m)))[0]
        F = error * np.linalg.qr(rng.standard_normal((100, m)))[0]
        gap = factor.T @ factor - (R + F).T @ (R + F)
        assert np.linalg.eigvalsh(gap)[0] >= -1e-15

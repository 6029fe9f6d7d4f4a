"""Bounds on the complement of given vectors from a feature map: against the dense complement, in all their forms."""

from collections import Counter

import numpy as np
import pytest
from dense_products import DenseProduct
from reference import center, with_eigenvalues

from fastkpca.products.implicit import KernelMatrix
from fastkpca.solve import given
from fastkpca.solve.certificate import Bound
from fastkpca.solve.complement import deterministic_bound


def problem(rng):
    """(K, features, tr E, given vectors): K = Phi Phi' + E, of eigenvalues that fall fast or slowly."""
    n, D, k = int(rng.integers(20, 90)), int(rng.integers(3, 40)), int(rng.integers(1, 6))
    features = rng.standard_normal((n, D)) * np.arange(1.0, D + 1) ** -rng.uniform(0, 2) + rng.uniform(0, 3)
    E = with_eigenvalues(rng, 10.0 ** rng.uniform(-8, 1) * rng.random(n) ** rng.uniform(1, 8))
    K = features @ features.T + E
    vectors = np.linalg.eigh(center(K))[1][:, ::-1][:, :k]
    V = vectors + 10.0 ** rng.uniform(-8, 0.5) * rng.standard_normal((n, k)) / np.sqrt(n)
    return K, features, float(np.trace(E)), given.independent(V)


def result(K, V, known):
    matrix = KernelMatrix(DenseProduct(K), None, float(np.trace(K)), True)
    return given.certify_vectors(matrix, V, known)


def test_mu_bounds_the_complement_and_is_no_worse_than_trace_and_norm(attack):
    forms, gains = Counter(), []
    for case in range(attack.count(2000)):
        rng = attack.rng("given", case)
        K, features, left, V = problem(rng)
        size = float(np.linalg.norm(K))
        rounding = 1e-14 * float(np.linalg.norm(features))
        known = given.MapColumns(features, left * (1 + 1e-12) + 1e-13 * size, rounding, 0.0)
        found = result(K, V, known)
        Q = np.linalg.qr(V)[0]
        P = np.eye(len(K)) - Q @ Q.T
        rest = np.linalg.eigvalsh(P @ center(K) @ P)[::-1]
        more = len(found.block.theta) - V.shape[1]  # that were multiplied too: none of the others is larger
        assert found.beyond >= rest[more] - 1e-9 * rest[0] - 1e-12 * size
        forms[found.certificate.outside.form] += 1
        gains.append(deterministic_bound(found.block, found.matrix).mu / found.beyond)
        values = np.linalg.eigvalsh(center(K))[::-1]
        low, high = found.certificate.eigenvalue_bounds.T
        assert (low <= values[: len(low)] + 1e-12 * size).all() and (values[: len(low)] <= high + 1e-12 * size).all()
    assert min(gains) >= 1.0 and max(gains) > 3.0
    assert set(forms) == {"trace", "frobenius"}


@pytest.mark.parametrize("entries", [0.0, 1e-3])
def test_what_is_not_semidefinite_widens_the_bound(entries):
    rng = np.random.default_rng(3)
    K, features, left, V = problem(rng)
    noise = entries * rng.choice([-1.0, 1.0], K.shape)
    K = K + (noise + noise.T) / 2
    known = given.MapColumns(features, left * (1 + 1e-12), 1e-13, len(K) * entries)
    found = result(K, V, known)
    Q = np.linalg.qr(V)[0]
    P = np.eye(len(K)) - Q @ Q.T
    rest = np.linalg.eigvalsh(P @ center(K) @ P)[::-1][len(found.block.theta) - V.shape[1]]
    assert found.beyond >= rest


def test_a_map_and_a_bound_on_the_rest_without_a_pass(attack):
    """Intervals, Ritz values, residuals and the complement of the map, against dense ones."""
    for case in range(attack.count(1000)):
        rng = attack.rng("without a pass", case)
        K, features, left, V = problem(rng)
        A, size = center(K), float(np.linalg.norm(K))
        slack = 1e-12 * size
        nu = float(np.linalg.eigvalsh(K - features @ features.T)[-1])
        known = given.MapColumns(features, left + slack, 1e-14 * float(np.linalg.norm(features)), 0.0)
        found = given.certify_by_map(known, V, Bound(max(nu, 0.0) + slack, "sampled", 1e-6))
        values = np.linalg.eigvalsh(A)[::-1]
        low, high = found.certificate.eigenvalue_bounds.T
        assert (low <= values[: len(low)] + slack).all() and (values[: len(low)] <= high + slack).all()
        theta, Y = np.linalg.eigh(V.T @ A @ V)
        theta, U = theta[::-1], V @ Y[:, ::-1]
        assert (np.abs(found.own.theta + found.left_out / 2 - theta) <= found.left_out / 2 + slack).all()
        residuals = np.linalg.norm(A @ U - U * theta, axis=0)
        assert (residuals <= np.sqrt(found.own.residual_gram.diagonal()) + slack).all()
        span = np.linalg.qr(features - features.mean(axis=0))[0]
        P = center(np.eye(len(K)) - span @ span.T)
        assert np.linalg.eigvalsh(P @ A @ P)[-1] <= found.beyond + slack


def test_independent_columns_span_the_centred_ones():
    rng = np.random.default_rng(0)
    V = rng.standard_normal((50, 3)) + 5.0
    many = np.hstack([V * [1e-150, 1.0, 1e150], V @ rng.standard_normal((3, 2)), np.ones((50, 1)), np.zeros((50, 2))])
    Q = given.independent(many)
    assert Q.shape == (50, 3) and np.abs(Q.sum(axis=0)).max() < 1e-12
    assert np.abs(Q.T @ Q - np.eye(3)).max() < 1e-14
    H = V - V.mean(axis=0)
    assert np.linalg.norm(H - Q @ (Q.T @ H)) < 1e-12 * np.linalg.norm(H)

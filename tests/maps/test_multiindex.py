"""The compress operator and the expansions built on it, against binomials, longdouble sums and the identity itself."""

from math import comb

import numpy as np
import pytest

from fastkpca._core import multiindex
from fastkpca.maps.monomial import PolynomialMap, TaylorMap, taylor_size

EPS = np.finfo(np.float64).eps
LONG = np.longdouble


def compress(d, k):
    """An expansion that holds comp(x^k) alone."""
    parent, coordinate, exponent, start = multiindex.table(d, k)
    degree = np.repeat(np.arange(k + 1), np.diff(start))
    factor = np.ones(len(parent))
    factor[1:] = np.sqrt(degree[1:] / exponent[1:])
    return multiindex.Expansion(d, parent, coordinate, factor, int(start[k]))


@pytest.mark.parametrize("d", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_table_lists_every_multi_index_once_in_graded_order(d, degree):
    parent, coordinate, exponent, start = multiindex.table(d, degree)
    assert list(start) == [0] + [comb(d + k, k) for k in range(degree + 1)]
    alphas = np.zeros((len(parent), d), dtype=int)
    for j in range(1, len(parent)):
        assert parent[j] < j
        alphas[j] = alphas[parent[j]]
        alphas[j, coordinate[j]] += 1
        assert exponent[j] == alphas[j, coordinate[j]]
    assert len({tuple(a) for a in alphas}) == len(parent)
    for k in range(degree + 1):
        assert (alphas[start[k] : start[k + 1]].sum(axis=1) == k).all()


def test_compress_identity(attack):
    """comp(x).comp(y) = (x.y)^k to a few ulp of (|x| |y|)^k, d = 1..20, k = 0..10."""
    most = 20_100_000 if attack.fraction >= 1 else 60_000
    checked = 0
    for d in range(1, 21):
        for k in range(11):
            if comb(d + k, k) > most:
                continue
            rng = attack.rng("identity", 100 * d + k)
            x, y = rng.standard_normal((2, 1, d))
            x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
            operator = compress(d, k)
            assert operator.n_features == comb(d + k - 1, k)
            ours = np.sum(operator.features(x)[:, 0].astype(LONG) * operator.features(y)[:, 0].astype(LONG))
            exact = np.sum(x.astype(LONG) * y.astype(LONG)) ** k
            assert abs(ours - exact) <= (2 * k + 1) * EPS, (d, k)
            checked += 1
    assert checked >= 150


@pytest.mark.parametrize("dtype, ulp", [(np.float64, EPS), (np.float32, np.finfo(np.float32).eps)])
@pytest.mark.parametrize("n", [1, 127, 128, 129, 300])
def test_accumulate_and_evaluate_against_longdouble(dtype, ulp, n, attack):
    """A_k = sum_j u_j binom(p,k) c^(p-k) comp(x_j^k), and the product through it, against direct sums."""
    rng = attack.rng("A_k", n)
    d, p, c = 4, 5, 0.7
    X, U = rng.uniform(-1, 1, (n, d)).astype(dtype), rng.standard_normal((n, 3)).astype(dtype)
    phi = PolynomialMap(d, p, 1.0, c)
    A = phi.accumulate(X, U)
    assert A.dtype == dtype
    first = 0
    for k in range(p + 1):
        rows = slice(first, first + comb(d + k - 1, k))
        first = rows.stop
        comp = compress(d, k).features(X.astype(np.float64)).astype(LONG)
        weight = LONG(comb(p, k)) * LONG(c) ** (p - k)
        A_k = weight * (comp @ U.astype(LONG))
        size = weight * (np.abs(comp) @ np.abs(U).astype(LONG)) + LONG(1e-30)
        # the map splits the weight evenly between both sides: A_k is its accumulation times sqrt(weight)
        assert (np.abs(np.sqrt(weight) * A[rows].astype(LONG) - A_k) <= 40 * ulp * size).all()
    V = phi.apply(X, A)
    direct = (X.astype(LONG) @ X.astype(LONG).T + LONG(c)) ** p
    size = (np.abs(X).astype(LONG) @ np.abs(X).astype(LONG).T + LONG(c)) ** p @ np.abs(U).astype(LONG)
    assert (np.abs(V.astype(LONG) - direct @ U.astype(LONG)) <= (n + 60) * ulp * size).all()


@pytest.mark.parametrize("order", [0, 1, 2, 7, 15])
def test_taylor_map_leaves_out_a_positive_semidefinite_rest(order, attack):
    rng = attack.rng("taylor", order)
    X = rng.standard_normal((60, 2)) + 3.0
    phi = TaylorMap(2, 1.3, order, np.array([3.0, 2.5]))
    assert phi.n_features == taylor_size(2, order)
    Phi = phi.features(X)
    squares = ((X[:, None].astype(LONG) - X[None].astype(LONG)) ** 2).sum(axis=2)
    K = np.exp(-squares / (2 * LONG(1.3) ** 2))
    rest = (K - Phi.astype(LONG) @ Phi.astype(LONG).T).astype(np.float64)
    assert np.linalg.eigvalsh(rest).min() >= -60 * 40 * EPS
    residual = phi.residual(X)
    assert (residual >= np.diag(rest) - 40 * EPS).all()
    np.testing.assert_allclose(residual, np.diag(rest), atol=1e-13)


def test_shapes_that_do_not_fit_are_refused():
    operator = compress(3, 2)
    with pytest.raises(ValueError, match="U has 4 rows for a tile of 5"):
        operator.accumulate(np.zeros((5, 3)), np.zeros((4, 1)))
    with pytest.raises(ValueError, match="A has 5 rows for 6 features"):
        operator.evaluate(np.zeros((5, 3)), np.zeros((5, 1)))

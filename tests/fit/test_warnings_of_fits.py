"""What a fit says of its components: fewer than asked for, or with wide intervals; nothing else, and on every route."""

import warnings

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import CertificateWarning, ComponentsWarning, NotConvergedError


def said(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return call(), {w.category: str(w.message) for w in caught}


def check(model, words, wanted, tol):
    """``wanted``: components, or None; ``tol``: None where intervals may be of any width."""
    if wanted is not None:
        assert (model.n_components < wanted) == (ComponentsWarning in words), (model.n_components, words)
    width = float(np.ptp(model.eigenvalue_bounds, axis=1).max() / model.eigenvalues[0])
    assert (tol is not None and width > tol) == (CertificateWarning in words), (width, tol, words)
    if CertificateWarning in words:
        assert f"widest of {model.n_components} intervals" in words[CertificateWarning]


@pytest.mark.parametrize("options", [{"max_features": 7}, {"landmarks": np.arange(7)}, {"method": "dense"}])
def test_components_that_intervals_of_second_order_lack(options):
    X = np.random.default_rng(0).standard_normal((200, 2))
    model, words = said(lambda: fk.kpca(X, "gaussian", 7, sigma=30.0, **options))
    check(model, words, 7, 1e-6 if "method" in options else None)


@pytest.mark.parametrize("n", [300, 700])
def test_negative_eigenvalues_have_no_interval_in_the_model(n):
    A = np.random.default_rng(3).standard_normal((n, n))
    model, words = said(lambda: fk.kpca((A + A.T) / 2, "precomputed", n - 1, method="krylov", tol=0.03))
    check(model, words, n - 1, 0.03)
    assert list(words) == [ComponentsWarning]


def random_fit(seed):
    """None, or what was checked of a small fit on any route."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 160)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 2, d)
    if rng.random() < 0.3:
        X = X[rng.integers(0, max(n // 4, 2), n)]  # repeated rows: a low rank
    name = rng.choice(["gaussian", "polynomial", "linear", "tanh", "precomputed"])
    p = {
        "gaussian": {"sigma": float(10.0 ** rng.uniform(-1, 2))},
        "polynomial": {"degree": int(rng.integers(2, 4)), "offset": 1.0},
        "linear": {},
        "tanh": {"scale": float(10.0 ** rng.uniform(-2, 0)), "offset": 0.5},
        "precomputed": {},
    }[name]
    tol = None if rng.random() < 0.3 else float(10.0 ** rng.uniform(-13, -1))
    c = int(rng.integers(1, n))
    options = {"tol": tol, "center": bool(rng.random() < 0.8), "guaranteed": bool(rng.random() < 0.3)}
    if name == "precomputed":
        A = rng.standard_normal((n, n))
        X, d = (A + A.T) / 2 if rng.random() < 0.5 else X @ X.T, n
    routes = ["auto", "dense", "krylov", "features", "max_features", "landmarks", "update"]
    route = rng.choice(routes[: 3 if name == "precomputed" else None])
    m = int(rng.integers(1, n))
    if route == "max_features":
        options["max_features"] = m
        c = min(c, m)
    elif route == "landmarks":
        options["landmarks"] = rng.choice(n, m, replace=False)
        c = min(c, m)
    elif route == "krylov":
        options |= {"method": "krylov", "max_passes": int(rng.integers(1, 8))}
    elif route != "update":
        options["method"] = route
    if rng.random() < 0.2 and name != "precomputed":
        options["sample_weight"] = rng.integers(0, 3, n) + 0.5
    required = tol or (1e-6 if route not in ("max_features", "landmarks") else None)
    try:
        if route == "update":
            cut, wanted = max(n // 2, 2), min(c, max(n // 2, 2))
            first, _ = said(lambda: fk.kpca(X[:cut], name, wanted, keep_moments=True, tol=tol, **p))
            model, words = said(lambda: fk.kpca_update(first, X[cut:], c=c, tol=required))
        else:
            model, words = said(lambda: fk.kpca(X, name, c, standardize=False, **options, **p))
    except (ValueError, NotConvergedError):  # no route, no variance, an option that the kernel has no use for
        return None
    check(model, words, c, required)
    return route, name, *sorted(w.__name__ for w in words)


@pytest.mark.parametrize("part", range(3))
def test_words_and_numbers_agree(part):
    assert sum(random_fit(seed) is not None for seed in range(40 * part, 40 * part + 40)) > 15


@pytest.mark.slow
def test_words_and_numbers_agree_in_two_thousand_fits():
    assert sum(random_fit(seed) is not None for seed in range(1000, 3000)) > 1000


@pytest.mark.parametrize("weights", [None, np.arange(2500) + 1.0])
def test_products_whose_run_nothing_is_expected_to_prove(weights):
    """No seconds are predicted, and no other way is left."""
    X = np.random.default_rng(0).standard_normal((2500, 1))
    options = {"sigma": 1e-4, "products": "clusters", "guaranteed": True, "max_passes": 1, "sample_weight": weights}
    assert fk.plan(X, "gaussian", 5, **{k: v for k, v in options.items() if k != "max_passes"}).method == "krylov"
    model, words = said(lambda: fk.kpca(X, "gaussian", 5, **options))
    check(model, words, 5, 1e-6)
    assert CertificateWarning in words and model.bound_kind == "guaranteed"

"""Every door that takes a kernel takes the matrix of one: doors times matrices, against dense references.

The doors are found by introspection, so that a new one has to say here what it needs of a matrix: "products" (any that
is symmetric), "lengths" (positive semidefinite up to rounding), "similarities" (no negative entries); or that it takes
none. The same table is in docs/methods.md.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import warnings
from pathlib import Path

import kernels_contrib.sklearn
import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
from clustering_cases import between_costs, every_clustering
from kernels_contrib.storage import load, save
from matrix_cases import (
    K_NEW,
    LABELS,
    MATRICES,
    NEW,
    VIEW,
    H,
    K,
    L,
    N,
    T,
    X,
    Z,
    close,
    components,
    dense,
    leading,
    of_cca,
    of_diffusion,
    of_discriminant,
    of_hsic,
    of_kmeans,
    of_kpca,
    of_logistic,
    of_mmd,
    of_nystroem,
    of_pls,
    of_ridge,
    of_spectral,
    within,
)
from sklearn.linear_model import LogisticRegression

import fastkpca as fk
import fastkpca.sklearn
from fastkpca.errors import CertificateWarning, DistancesWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::fastkpca.errors.ComponentsWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning"),  # arrays after a frame
]

WRONG = {
    "asymmetric": r"is not symmetric: .* use \(K \+ K.T\) / 2",
    "NaN": "contains NaN|contains infinity",
    "shape": r"must be square|square matrix|1D array|has shape \(48,\)|two dimensions|and Y = K\[|of training rows",
    "words": "number|str|float|real",
}


# Doors: what each needs of a matrix, and a call that holds its result against a reference ----------------------------


def method(name):
    return fk.get_method(name)


def gram_door(M, new):
    U = np.random.default_rng(1).standard_normal((N, 2))
    close(fk.gram(M, "precomputed") @ U, dense(M) @ U, 1e-6)


def kpca_door(M, new):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # of float32
        model = fk.kpca(M, "precomputed", 2)
    of_kpca(dense(M), new, model, lambda rows: fk.kpca_project(model, rows))


def certify_door(M, new):
    V = np.random.default_rng(2).standard_normal((N, 2))
    found = fk.certify(M, "precomputed", V)
    centred = dense(M) - dense(M).mean(axis=0)
    values = np.linalg.eigvalsh(centred - centred.mean(axis=1)[:, None])[::-1][:2]
    low, high = found.eigenvalue_bounds.T
    slack = 1e-5 * values[0]  # float32
    assert np.all(low - slack <= values) and np.all(values <= high + slack)


def plan_door(M, new):
    assert fk.plan(M, "precomputed", 2).method


def kpca_estimator(M, new):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        found = fastkpca.sklearn.KernelPCA(2, kernel="precomputed").fit(M)
    A = (dense(M) + dense(M).T) / 2
    within(found.eigenvalue_bounds_, leading(H @ A @ H, 2)[0], 1e-6)
    if np.array_equal(A, dense(M)):
        close(np.abs(found.transform(new)), np.abs(components(A, dense(new), 2)[1]), 1e-3)


def pcr_door(M, new):
    model = method("kernel_pcr")(M, T, "precomputed", 2)
    train, other = components(dense(M), dense(new), 2)
    expected = T.mean() + other @ np.linalg.lstsq(train, T - T.mean(), rcond=None)[0]
    close(model.predict(new), expected, 1e-3)


def pc_logistic_door(M, new):
    model = method("kernel_pc_logistic")(M, LABELS, "precomputed", 2, regularization=1.0)
    train, other = components(dense(M), dense(new), 2)
    unit = train.std(axis=0, ddof=1)
    reference = LogisticRegression(C=1.0, tol=1e-12, max_iter=10000).fit(train / unit, LABELS)
    close(model.probability(new), reference.predict_proba(other / unit), 3e-3)


def perceptron_door(M, new):
    model = method("kernel_perceptron")(M, LABELS, "precomputed", max_epochs=3)
    A, y, alpha = dense(M), np.where(LABELS, 1.0, -1.0), np.zeros(N)
    for _ in range(3):
        for i in range(N):
            if y[i] * (A[i] @ alpha) <= 0:
                alpha[i] += y[i]
    if "float32" not in str(M.dtype if hasattr(M, "dtype") else ""):
        np.testing.assert_array_equal(model.predict(dense(new)), dense(new) @ alpha > 0)
    assert len(model.predict(new)) == NEW


def fisherfaces_door(M, new):
    model = method("kernel_fisherfaces")(M, LABELS, "precomputed", components=3, tol=1e-3)
    train, other = components(dense(M), dense(new), 3)
    scatter = sum(np.cov(train[LABELS == g].T, bias=True) * np.sum(LABELS == g) for g in (0, 1))
    direction = np.linalg.solve(scatter, train[LABELS].mean(axis=0) - train[~LABELS].mean(axis=0))
    found, expected = model.project(new)[:, 0], other @ direction
    close(found / np.abs(found).max(), expected / np.abs(expected).max(), 1e-2)


def kbda_door(M, new):
    model = method("kbda")(M, LABELS, "precomputed", 1)
    A = dense(M)
    mu = 1e-3 * (np.mean(np.diag(A)) or 1.0) ** 2
    origin = A[:, LABELS].mean(axis=1, keepdims=True)
    held, spread = A[:, LABELS] - origin, A[:, ~LABELS] - origin
    values = scipy.linalg.eigh(spread @ spread.T, held @ held.T + mu * np.eye(N), eigvals_only=True)
    close(model.quotients[:1], values[-1:], 1e-3)
    assert np.isfinite(model.project(new)).all()


def kmeans_door(M, new):
    model = method("kernel_kmeans")(M, "precomputed", 3)
    of_kmeans(dense(M), new, model, model.predict)


def spectral_door(M, new):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        model = method("spectral_clustering")(M, "precomputed", 3)
    of_spectral(dense(M), new, model, model.predict)


def diffusion_door(M, new):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        model = method("diffusion_map")(M, "precomputed", 2)
    of_diffusion(dense(M), new, model, model.project)


def logistic_door(M, new):
    of_logistic(dense(M), new, method("kernel_logistic")(M, LABELS, "precomputed").probability)


def klda_door(M, new):
    model = method("klda")(M, LABELS, "precomputed")
    of_discriminant(dense(M), new, model, model.project)


def cca_door(M, new):
    model = method("kernel_cca")(M, L, "precomputed")
    of_cca(dense(M), new, model, model.x.project)


def mmd_door(M, new):
    given = M.tocsr() if sp.issparse(M) else np.asarray(M) if isinstance(M, list) else M
    parts = (given.iloc[:20], given.iloc[20:]) if isinstance(given, pd.DataFrame) else (given[:20], given[20:])
    of_mmd(dense(M), method("mmd_test")(*parts, "precomputed", permutations=19))


def of_estimator(cls, check, *fit, **parameters):
    def call(M, new):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            found = cls(kernel="precomputed", **parameters).fit(M, *fit)
        check(dense(M), new, found)

    return call


ours = kernels_contrib.sklearn
DOORS = {
    "kpca": ("products", kpca_door),
    "gram": ("products", gram_door),
    "certify": ("products", certify_door),
    "plan": ("products", plan_door),
    "diffusion_map": ("similarities", diffusion_door),
    "hsic_test": (
        "lengths",
        lambda M, new: of_hsic(dense(M), method("hsic_test")(M, L, "precomputed", permutations=9)),
    ),
    "kbda": ("products", kbda_door),
    "kernel_cca": ("lengths", cca_door),
    "kernel_fisherfaces": ("products", fisherfaces_door),
    "kernel_kmeans": ("lengths", kmeans_door),
    "kernel_logistic": ("lengths", logistic_door),
    "kernel_pc_logistic": ("products", pc_logistic_door),
    "kernel_pcr": ("products", pcr_door),
    "kernel_perceptron": ("products", perceptron_door),
    "kernel_pls": (
        "lengths",
        lambda M, new: of_pls(dense(M), new, method("kernel_pls")(M, T, "precomputed", 1).predict),
    ),
    "kernel_ridge": (
        "lengths",
        lambda M, new: of_ridge(dense(M), new, method("kernel_ridge")(M, T, "precomputed", regularization=0.5).predict),
    ),
    "klda": ("products", klda_door),
    "mmd_test": ("lengths", mmd_door),
    "spectral_clustering": ("similarities", spectral_door),
    "KernelPCA": ("products", kpca_estimator),
    "Nystroem": ("products", of_estimator(fastkpca.sklearn.Nystroem, of_nystroem, n_components=N)),
    "KLDA": (
        "products",
        of_estimator(ours.KLDA, lambda M, new, e: of_discriminant(M, new, e.model_, e.transform), LABELS),
    ),
    "KernelCCA": (
        "lengths",
        of_estimator(
            ours.KernelCCA,
            lambda M, new, e: of_cca(M, new, e.model_, e.transform),
            VIEW,
            kernel_y=fk.get_kernel("gaussian", sigma=2.0),
        ),
    ),
    "KernelKMeans": (
        "lengths",
        of_estimator(ours.KernelKMeans, lambda M, new, e: of_kmeans(M, new, e.model_, e.predict), n_clusters=3),
    ),
    "KernelLogisticRegression": (
        "lengths",
        of_estimator(ours.KernelLogisticRegression, lambda M, new, e: of_logistic(M, new, e.predict_proba), LABELS),
    ),
    "KernelPLSRegression": (
        "lengths",
        of_estimator(ours.KernelPLSRegression, lambda M, new, e: of_pls(M, new, e.predict), T, n_components=1),
    ),
    "KernelRidge": (
        "lengths",
        of_estimator(ours.KernelRidge, lambda M, new, e: of_ridge(M, new, e.predict), T, alpha=0.5),
    ),
    "SpectralClustering": (
        "similarities",
        of_estimator(ours.SpectralClustering, lambda M, new, e: of_spectral(M, new, e.model_, e.predict), n_clusters=3),
    ),
}
CLOSED = {
    "features": lambda: fk.features(K, "precomputed"),
    "kpca_baseline": lambda: fk.kpca_baseline(K, "precomputed"),
    "kica": lambda: method("kica")(K, "precomputed"),
    "KernelPCANovelty": lambda: fastkpca.sklearn.KernelPCANovelty(kernel="precomputed").fit(K),
}


def found_doors():
    takes_kernel = {
        name
        for name in fk.__all__
        if inspect.isfunction(f := getattr(fk, name)) and {"X", "kernel"} <= set(inspect.signature(f).parameters)
    }
    estimators = {
        name
        for module in (fastkpca.sklearn, kernels_contrib.sklearn)
        for name in module.__all__
        if hasattr(cls := getattr(module, name), "fit") and "kernel" in inspect.signature(cls).parameters
    }
    return takes_kernel | {entry.name for entry in fk.list_methods()} | estimators


def test_every_door_is_here():
    assert found_doors() == {*DOORS, *CLOSED}


@pytest.mark.parametrize("name", CLOSED)
def test_doors_that_take_no_matrix_say_so(name):
    with pytest.raises(ValueError, match="use gram|give it the rows|a precomputed matrix does not hold"):
        CLOSED[name]()


def test_the_page_says_so():
    """docs/methods.md, where there is one: the tables of what each door needs, and of what becomes of a matrix."""
    page = Path(__file__).parents[2] / "docs" / "methods.md"
    if not page.exists():
        pytest.skip("no documentation here")
    section = page.read_text(encoding="utf-8").split("## A matrix in the place of rows")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    needs = {
        row[0]: set(re.findall(r"`(\w+)`", row[2])) for row in rows if row[0] in ("products", "lengths", "similarities")
    }
    assert needs == {need: {name for name in DOORS if DOORS[name][0] == need} for need in needs}
    assert set(re.findall(r"`(\w+)`", next(row[2] for row in rows if row[0] == "rows"))) == set(CLOSED)
    kinds = {"semidefinite": "", "indefinite": "indefinite", "with negative": "negative", "distances": "distances"}
    words = {"works": "taken", "warns": "taken, with a `DistancesWarning`"}
    for start, wrong in [*kinds.items(), ("not symmetric", "shape")]:
        cells = next(row[1:] for row in rows if row[0].startswith(start))
        for need, cell in zip(rows[next(i for i, row in enumerate(rows) if row[0] == "matrix")][1:], cells):
            assert cell == words.get(expected(need, wrong, "kpca"), "refused"), (start, need)


def expected(need, wrong, name):
    """How a call of a door ends: "works", "warns", or the text of the error."""
    if wrong in ("NaN", "shape", "words"):
        return WRONG[wrong]
    if wrong == "asymmetric":
        return "works" if name == "KernelPCA" else WRONG[wrong]  # as scikit-learn: its symmetric part
    if need == "lengths" and wrong:
        return "is not positive semidefinite.*take its semidefinite part"
    if need == "similarities" and wrong == "negative":
        return "negative values"
    return "warns" if wrong == "distances" else "works"


@pytest.mark.parametrize("given", MATRICES)
@pytest.mark.parametrize("name", DOORS)
def test_each_door_takes_each_matrix_or_says_why_not(name, given):
    (need, call), (M, new, wrong) = DOORS[name], MATRICES[given]
    ends = expected(need, wrong, name)
    if ends == "works":
        call(M, new)
    elif ends == "warns":
        warned = pytest.warns(DistancesWarning, match="zero diagonal")
        with warned, contextlib.suppress(ValueError, AssertionError):  # its values mean little
            call(M, new)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DistancesWarning)
            with pytest.raises((ValueError, TypeError), match=ends) as error:
                call(M, new)
        advised = follow(str(error.value), M)
        if advised is not None:
            call(advised, new)


def follow(text, M):
    """The matrix that an error advises, made as it says; None where it does not."""
    names = {"np": np, "K": M, "D": M}
    if "use (K + K.T) / 2" in text:
        names["K"] = eval("(K + K.T) / 2", names)
        return None if np.linalg.eigvalsh(dense(names["K"]))[0] < -0.01 else names["K"]
    if "semidefinite part, " in text:
        exec(re.search(r"semidefinite part, (.*?); of distances", text)[1], names)
        return names["K"]
    return None


def test_the_advice_for_distances_works():
    D = MATRICES["distances"][0]
    with pytest.warns(DistancesWarning) as warned:
        fk.gram(D, "precomputed")
    for text in (str(warned[0].message), _error(lambda: method("kernel_kmeans")(D, "precomputed", 3))):
        made = eval(re.search(r"take K = (.*?), which is semidefinite", text)[1], {"np": np, "D": D})
        kmeans_door(made, K_NEW)


def _error(call):
    with warnings.catch_warnings(), pytest.raises(ValueError) as error:
        warnings.simplefilter("ignore", DistancesWarning)
        call()
    return str(error.value)


def test_what_a_matrix_does_not_hold_is_given_beside_it():
    pca = fastkpca.sklearn.KernelPCA(2, kernel="precomputed").fit(K)
    names = {"fastkpca": fk, "estimator": pca, "X": K_NEW, "d": np.ones(NEW), "Z": pca.transform(K_NEW), "rows": X}
    advice = re.search(r"-fastkpca.kpca_spe\(.*?\)", _error(lambda: pca.score_samples(K_NEW)))[0]
    close(eval(advice, names), -fk.kpca_spe(fk.kpca(X, c=2, sigma=2.0), Z), 1e-6)
    with pytest.raises(AttributeError) as error:
        pca.inverse_transform(pca.transform(K_NEW))
    advice = re.search(r"fastkpca.kpca_preimage\(.*?\)", str(error.value))[0]
    assert eval(advice, names).shape == (NEW, 3)


def test_many_rows_have_to_be_declared(monkeypatch):
    monkeypatch.setattr("kernels_contrib.methods.products.MAX_PROVED_ROWS", N - 1)
    for call in (
        lambda **o: method("kernel_kmeans")(K, "precomputed", 3, **o),
        lambda **o: ours.KernelKMeans(3, kernel="precomputed", kernel_params=o).fit(K),
    ):
        advice = _error(call)
        assert "semidefinite=True" in advice and "kernel_params={'semidefinite': True}" in advice
        call(semidefinite=True)


# New rows: the matrix between them and the training rows --------------------------------------------------------------


def fitted(name):
    """What a door makes of the dense matrix: a model, or a fitted estimator."""
    for module in (fastkpca.sklearn, kernels_contrib.sklearn):
        if name in module.__all__:
            made = getattr(module, name)(kernel="precomputed")
            return made.set_params(**{"n_components": 20} if name == "Nystroem" else {}).fit(K, LABELS)
    if name == "kpca":
        return fk.kpca(K, "precomputed", 2)
    call, first = method(name), {"y": LABELS, "positive": LABELS, "t": T, "Y": L}
    second = list(inspect.signature(call).parameters)[1]
    model = call(K, *([first[second]] if second in first else []), "precomputed")
    return model.x if name == "kernel_cca" else model


def answering(name):
    """The methods of the result of a door that take new rows."""
    result = fitted(name)
    if name == "kpca":
        return {"kpca_project": lambda rows: fk.kpca_project(result, rows)}
    calls = {x: getattr(result, x) for x in dir(result) if not x.startswith(("_", "fit", "partial", "set_", "get_"))}
    calls = {
        x: call for x, call in calls.items() if inspect.ismethod(call) and "X" in inspect.signature(call).parameters
    }
    return {
        x: call
        for x, call in calls.items()
        if x not in ("score", "score_samples", "error", "kpca", "inverse_transform", "coordinates_of")
    }


WITHOUT_NEW_ROWS = {"certify", "gram", "plan", "hsic_test", "mmd_test"}
FORMS = (
    sp.csr_array,
    sp.coo_matrix,
    pd.DataFrame,
    np.asfortranarray,
    lambda A: A.tolist(),
    lambda A: A.astype(np.float32),
)
BAD = {
    "too few columns": K_NEW[:, :-1],
    "transposed": K_NEW.T,
    "NaN": np.where(np.arange(N) == 3, np.nan, K_NEW),
    "sparse NaN": sp.csr_array(np.where(np.arange(N) == 3, np.nan, K_NEW)),
    "one row": K_NEW[0],
    "no rows": K_NEW[:0],
    "words": np.full((2, N), "one"),
}
REFUSED = (
    "one column for each of the 48 training rows|is expecting 48 features|contains NaN|[Ee]xpected 2D array|two "
    "dimensions|no rows|0 sample|number|[cC]onvert|real"
)


@pytest.mark.parametrize("name", sorted(set(DOORS) - WITHOUT_NEW_ROWS))
def test_new_rows_are_the_matrix_between_them_and_the_training_rows(name):
    calls = answering(name)
    assert calls
    for call in calls.values():
        expected = call(K_NEW)
        assert len(expected) == NEW
        for form in FORMS:
            found = call(form(K_NEW))
            if expected.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
            else:
                assert (found == expected).mean() > 0.8  # one on the border may change with float32
        for bad in BAD.values():
            with pytest.raises((ValueError, TypeError), match=REFUSED):
                call(bad)


def test_a_clustering_of_a_rounded_matrix_may_cost_less_than_nothing(tmp_path):
    """And then no bound on its cost is zero."""
    far = np.round(np.random.default_rng(3).standard_normal((8, 2)) * 64) / 64 + 2.0**14
    M = np.round(far @ far.T / 2.0**13) * 2.0**13
    model = method("kernel_kmeans")(M, "precomputed", 2)
    save(model, tmp_path / "model")
    centring, w = np.eye(8) - 1 / 8, np.ones(8)
    A = centring @ M @ centring
    costs = np.trace(A) - between_costs(A, w, every_clustering(8, 2), 2)
    assert costs.min() < 0.0
    assert model.least_cost <= costs.min()
    assert load(tmp_path / "model").least_cost == model.least_cost

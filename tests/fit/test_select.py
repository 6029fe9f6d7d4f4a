"""``kpca_select``: its measures against separate fits of every fold, its rule, its refusals."""

import sys

import numpy as np
import pytest
from scipy.linalg import subspace_angles

import fastkpca as fk
from fastkpca.errors import ScalesWarning
from fastkpca.fit import select
from fastkpca.kernels import get_kernel

C = [1, 2, 4]


class NearestMean:
    """A classifier that counts how often it is asked to learn."""

    def fit(self, Z, y):
        assert not hasattr(self, "labels"), "every fold needs a fresh one"
        self.labels = np.unique(y)
        self.means = np.array([Z[y == label].mean(axis=0) for label in self.labels])
        return self

    def score(self, Z, y):
        nearest = ((Z[:, None] - self.means) ** 2).sum(axis=2).argmin(axis=1)
        return np.mean(self.labels[nearest] == y)


@pytest.fixture
def rings():
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=70)
    t = rng.uniform(0, 2 * np.pi, 70)
    X = np.column_stack([np.cos(t), np.sin(t), t, t**2, 0 * t]) * (1 + y)[:, None]
    return X + 0.1 * rng.standard_normal(X.shape), np.array(["in", "out"])[y]


def folds_of(y, n, folds=5):
    return select._folds(y, n, folds, np.random.default_rng(0))


def test_measures_are_those_of_a_separate_dense_fit_of_every_fold(rings):
    X, y = rings
    kernel = get_kernel("gaussian", sigma=1.3)
    chosen = fk.kpca_select(X, kernel, C, y=y, classifier=NearestMean())
    fold = folds_of(y, len(X))
    left, scores = np.empty((2, 5, 3))
    for i in range(5):
        train, held = X[fold != i], X[fold == i]
        for k, c in enumerate(C):
            model = fk.kpca(train, kernel, c, method="dense")
            Z = fk.kpca_project(model, held)
            spe = fk.kpca_spe(model, held)
            total = fk.kpca_spe(model, held) + (Z**2).sum(axis=1)
            left[i, k] = spe.sum() / total.sum()
            scores[i, k] = NearestMean().fit(model.score, y[fold != i]).score(Z, y[fold == i])
    np.testing.assert_allclose(chosen.columns["reconstruction"], left.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(chosen.columns["reconstruction_se"], left.std(axis=0, ddof=1) / 5**0.5, rtol=1e-6)
    np.testing.assert_allclose(chosen.columns["score"], scores.mean(axis=0), rtol=1e-12)


def test_stability_is_that_of_the_components_in_the_kernels_own_space(rings):
    X, _ = rings
    # the linear kernel: components are directions of the columns, which SVD finds
    chosen = fk.kpca_select(X, "linear", [1, 3])
    rng = np.random.default_rng(0)
    select._folds(None, len(X), 5, rng)
    found = []
    for half in select._halves(len(X), rng):
        V1, V2 = (np.linalg.svd(rows - rows.mean(axis=0))[2] for rows in (X[half], X[~half]))
        found.append([np.mean(np.cos(subspace_angles(V1[:c].T, V2[:c].T)) ** 2) for c in (1, 3)])
    np.testing.assert_allclose(chosen.columns["stability"], np.mean(found, axis=0), rtol=1e-9)


def test_preimages_are_those_of_a_separate_fit(rings):
    X, _ = rings
    kernel = get_kernel("gaussian", sigma=2.5)
    chosen = fk.kpca_select(X, kernel, [2, 4])
    fold, errors = folds_of(None, len(X)), np.empty((5, 2))
    for i in range(5):
        train, held = X[fold != i], X[fold == i]
        for k, c in enumerate((2, 4)):
            model = fk.kpca(train, kernel, c, method="dense")
            x = fk.kpca_preimage(model, fk.kpca_project(model, held), train=train)
            errors[i, k] = ((x - held) ** 2).sum() / ((held - train.mean(axis=0)) ** 2).sum()
    assert chosen.criterion == "preimage"
    np.testing.assert_allclose(chosen.columns["preimage"], errors.mean(axis=0), rtol=1e-4)


def test_fewer_features_count_what_they_leave_out(rings):
    X, _ = rings
    kernel = get_kernel("gaussian", sigma=0.3)  # needs many features
    few = fk.kpca_select(X, kernel, 4, criterion="reconstruction", max_features=20).columns["reconstruction"]
    exact = fk.kpca_select(X, kernel, 4, criterion="reconstruction").columns["reconstruction"]
    assert np.all(exact < few) and np.all(few < 1)


@pytest.mark.parametrize("name", ["polynomial", "cosine"])
def test_other_kernels(rings, name):
    X, _ = rings
    chosen = fk.kpca_select(X, name, [1, 2])
    assert chosen.criterion == "preimage" and np.isfinite(chosen.columns["preimage"]).all()
    assert len(chosen.candidates) == 1


def test_the_rule_takes_the_fewest_components_within_one_standard_error_of_the_difference():
    # rows: c = 1, 2, 3; row 2 is best; row 1 is worse by 0.1 +- 0.1 over the folds, row 0 by 1
    noise = np.array([0.0, 5.0, -5.0, 2.0])
    wiggle = np.array([-0.2, 0.2, 0.2, -0.2])
    losses = np.array([1.0 + noise, 0.1 + wiggle + noise, 0.0 + noise])
    c = np.array([1, 2, 3])
    left = np.array([0.3, 0.2, 0.1])
    assert select._choice(losses, c, left) == (2, 1)
    losses[1] += 0.1  # 0.2 is beyond the standard error of 0.23 / 2
    assert select._choice(losses, c, left) == (2, 2)
    # of the kernels with that c the best one, although another is within the standard error too; nan never
    several = np.array([0.11 + wiggle, 0.1 + wiggle, np.zeros(4), np.full(4, np.nan)])
    assert select._choice(several, np.array([2, 2, 3, 1]), np.ones(4)) == (2, 1)
    # of equals the middle one
    equal = np.array([noise, noise, noise, noise + 1])
    assert select._choice(equal, np.array([2, 2, 2, 2]), np.array([0.2, 0.1, 0.9, 0.5]))[1] == 0


def test_labels_find_a_width_where_the_median_of_distances_does_not():
    rng = np.random.default_rng(2)
    y, far = rng.integers(2, size=(2, 400))
    t = rng.uniform(0, 2 * np.pi, 400)
    X = (1 + y)[:, None] * np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * rng.standard_normal((400, 2))
    X[:, 0] += 100.0 * far  # two groups of two rings each: the median of distances is that of the groups
    widths = {"gaussian": {"sigma": 50 * 2.0 ** np.arange(-8, 1)}}
    chosen = fk.kpca_select(X, widths, [2, 4, 8], y=y, classifier=NearestMean())
    assert chosen.kernel.sigma < 10
    of_median = np.nanmax(chosen.columns["score"][chosen.columns["sigma"] == 50])
    assert chosen.columns["score"][chosen.chosen_row] > of_median + 0.2


def test_grids_combine_and_the_table_has_their_parameters(rings):
    X, _ = rings
    chosen = fk.kpca_select(
        X, {"polynomial": {"degree": [2, 3], "offset": [0.0, 1.0]}, "gaussian": {"sigma": [1.0, 2.0]}}, [1, 2]
    )
    assert len(chosen.candidates) == 6 and chosen.parameters == ["degree", "scale", "offset", "sigma"]
    table = chosen.table
    assert len(table) == 12 and list(table.columns[:2]) == ["kernel", "c"]
    assert table.chosen.sum() == 1 and table.kernel[chosen.chosen_row] == repr(chosen.kernel)
    assert np.isnan(table.sigma[:8]).all() and table.c[chosen.chosen_row] == chosen.c
    model = fk.kpca(X, chosen.kernel, chosen.c)
    assert model.n_components == chosen.c
    assert repr(chosen.kernel) in repr(chosen)


def test_without_pandas_the_table_is_a_record_array(rings, monkeypatch):
    X, _ = rings
    chosen = fk.kpca_select(X, "linear", [1, 2])
    frame = chosen.table
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = chosen.table
    assert list(table.dtype.names) == list(frame.columns)
    for name in frame.columns:
        assert list(table[name]) == list(frame[name])


def test_columns_of_a_kernel_by_name(rings):
    pandas = pytest.importorskip("pandas")
    X, _ = rings
    frame = pandas.DataFrame(X, columns=list("abcde"))
    by_name, by_number = (fk.on_columns("gaussian", columns) for columns in (["a", "b"], [0, 1]))
    chosen = fk.kpca_select(frame, [by_name, "linear"], [1, 2])
    expected = fk.kpca_select(X, [by_number, "linear"], [1, 2])
    np.testing.assert_array_equal(chosen.columns["preimage"], expected.columns["preimage"])
    assert fk.kpca(frame, chosen.kernel, chosen.c).n_components == chosen.c


def test_standardize_is_that_of_kpca_and_wildly_different_ranges_are_told(rings):
    pandas = pytest.importorskip("pandas")
    units = np.array([1e-4, 1.0, 50.0, 2.0, 3e3])
    frame = pandas.DataFrame(rings[0] * units + 7 * units, columns=list("abcde"))
    kernels = [fk.on_columns("gaussian", ["a", "c"]), "gaussian", fk.get_kernel("polynomial", degree=2)]
    chosen = fk.kpca_select(frame, kernels, [1, 2], standardize=True)
    by_hand = fk.kpca_select((frame - frame.mean()) / frame.std(), kernels, [1, 2])
    for name in ("reconstruction", "stability", "sigma"):
        np.testing.assert_allclose(chosen.columns[name], by_hand.columns[name], rtol=1e-9, atol=1e-12)
    # a pre-image is searched for until it moves little: rounding decides when
    np.testing.assert_allclose(chosen.columns["preimage"], by_hand.columns["preimage"], rtol=1e-5)
    assert chosen.standardized and "standardized columns, c=" in repr(chosen)
    assert not by_hand.standardized and "standardized" not in repr(by_hand)
    own = fk.kpca(frame, "gaussian", 1, standardize=True).kernel.sigma
    assert np.isclose(chosen.columns["sigma"], own).any()
    with pytest.warns(ScalesWarning, match="column 'e' is .*range of column 'a', .* hardly count") as caught:
        fk.kpca_select(frame, "gaussian", 1)
    assert len(caught) == 1 and caught[0].filename == __file__
    fk.kpca_select(frame, "gaussian", 1, standardize=False)


def test_threads_and_seed_decide_nothing_and_something(rings):
    X, widths = rings[0], {"gaussian": {"sigma": [0.5, 2.0]}}
    one, two = (fk.kpca_select(X, widths, C, n_threads=n, max_features=30).columns for n in (1, 2))
    assert all(np.array_equal(one[name], two[name], equal_nan=True) for name in one)
    other = fk.kpca_select(X, widths, C, rng=1, max_features=30).columns
    assert not np.array_equal(one["preimage"], other["preimage"])
    assert fk.kpca_select(X, widths, C, rng=np.random.default_rng(1)).columns["c"][0] == 1


def test_a_kernel_of_small_rank_has_nan_and_is_not_chosen(rings):
    X, _ = rings
    chosen = fk.kpca_select(X[:, :2], ["linear", "gaussian"], 4, y=rings[1], classifier=NearestMean())
    assert np.isnan(chosen.columns["score"][0]) and chosen.kernel.sigma > 0
    with pytest.raises(ValueError, match=r"no kernel gives as many as 4 components on every fold.*smaller c"):
        fk.kpca_select(X[:, :2], "linear", 4)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"c": 35}, ValueError, r"c is 35, and half of the 70 rows gives at most 34.*at most 34"),
        ({"c": 10, "folds": 10}, ValueError, r"folds=10 of 70 rows have 7 rows each, fewer than c=10.*folds=7"),
        ({"folds": 1}, ValueError, "folds is 1; give a whole number, 2 or more"),
        ({"c": []}, ValueError, "c is empty"),
        ({"c": 0}, ValueError, "c is 0"),
        ({"c": 0.9}, TypeError, "c is 0.9"),
        ({"c": [2, "3"]}, TypeError, "c is '3'"),
        ({"kernels": []}, ValueError, "kernels is empty"),
        ({"kernels": "gausian"}, ValueError, "gaussian"),
        ({"kernels": {"gaussian": [1, 2]}}, TypeError, r"kernels\['gaussian'\] is \[1, 2\]; give a dict of lists"),
        ({"kernels": {"gaussian": {"sigm": [1]}}}, TypeError, "sigma"),
        ({"kernels": ["tanh"]}, ValueError, "does not declare itself positive semidefinite"),
        ({"kernels": "precomputed"}, ValueError, "leaves nothing to choose"),
        ({"criterion": "score"}, ValueError, "needs labels"),
        ({"criterion": "pre-image"}, ValueError, "preimage"),
        ({"criterion": "preimage", "c": 5}, ValueError, "smaller than the 5 columns, and c is 5"),
        ({"c": 5}, ValueError, r"compares numbers of components of one kernel, and here are 12"),
        ({"criterion": "stability"}, ValueError, r"the flattest always wins"),
        ({"classifier": NearestMean()}, ValueError, "give y=, one for each row"),
        ({"y": [0.5, 1.25] * 35}, ValueError, "y holds fractions, and the default classifier"),
        ({"y": [0, 1], "classifier": NearestMean()}, ValueError, r"y has shape \(2,\)"),
        ({"y": [0, 1] * 35, "classifier": NearestMean}, TypeError, "is the class NearestMean; give an object"),
        ({"y": [0, 1] * 35, "classifier": np.mean}, TypeError, "fit"),
        ({"y": [0, 1] * 34 + [0, np.nan], "classifier": NearestMean()}, ValueError, "y has no label for row 69"),
        ({"y": ["a", None] * 35, "classifier": NearestMean()}, ValueError, "y has no label for row 1"),
        ({"max_features": 0}, ValueError, "max_features is 0"),
        ({"X": iter([[1.0]])}, TypeError, "can be read once"),
        ({"X": [np.eye(3), np.eye(3)].__iter__}, TypeError, "in memory; give a sample"),
        ({"X": np.full((70, 5), np.nan)}, ValueError, "NaN"),
        ({"X": np.ones((70, 5))}, ValueError, "all rows of X are equal"),
    ],
)
def test_bad_input_is_told_in_words(rings, change, error, text):
    arguments = {"X": rings[0], "kernels": "gaussian", "c": 2} | change
    with pytest.raises(error, match=text):
        fk.kpca_select(**arguments)


def test_kernels_that_see_nothing_in_common_have_equal_eigenvalues():
    X = 1e3 * np.random.default_rng(0).standard_normal((40, 4))
    choice = fk.kpca_select(X, {"gaussian": {"sigma": [1.0, 100.0, 200.0]}}, 1, folds=40, criterion="preimage")
    assert (choice.columns["reconstruction"] > 0.9).all()


def test_a_classifier_whose_score_is_no_number():
    class NoNumber(NearestMean):
        def score(self, Z, y):
            return np.nan

    X = np.random.default_rng(0).standard_normal((40, 3))
    with pytest.raises(ValueError, match="score of the classifier is nan with c=1"):
        fk.kpca_select(X, "linear", 1, y=np.arange(40) % 2, classifier=NoNumber())


def test_of_many_rows_some_are_drawn_with_their_labels():
    rng = np.random.default_rng(3)
    X, seen = rng.standard_normal((500, 3)), []
    y = (X[:, 0] > 0).astype(int)

    class Classifier:
        def fit(self, Z, labels):
            seen.append((len(Z), int(labels.sum())))
            return self

        def score(self, Z, labels):
            return 0.5

    options = {"c": [2], "y": y, "folds": 2, "rng": 1}
    fk.kpca_select(X, fk.get_kernel("gaussian", sigma=2.0), classifier=Classifier(), max_rows=120, **options)
    assert {n for n, _ in seen} == {60}
    drawn = np.sort(np.random.default_rng(1).choice(500, 120, replace=False))
    few = fk.kpca_select(X, "gaussian", c=[2], max_rows=120, rng=1)
    generator = np.random.default_rng(1)
    generator.choice(500, 120, replace=False)
    assert few.kernel == fk.kpca_select(X[drawn], "gaussian", c=[2], rng=generator).kernel


def test_a_choice_at_the_end_of_its_grid_is_told():
    rng = np.random.default_rng(0)
    flat = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 5)) + 0.01 * rng.standard_normal((300, 5))
    choice = fk.kpca_select(flat, {"gaussian": {"sigma": [0.5, 1.0, 4.0]}}, c=[1, 2])
    assert choice.edges == ("largest sigma",)  # two linear components hold all
    assert "it has the largest sigma of the grid" in repr(choice)
    t = rng.uniform(0, 2 * np.pi, 300)
    ring = np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t)]) + 0.05 * rng.standard_normal((300, 3))
    inside = fk.kpca_select(ring, {"gaussian": {"sigma": [0.01, 0.7, 1.0, 300.0]}}, c=[1, 2])
    assert inside.edges == () and "grid" not in repr(inside)


def test_labels_alone_are_enough():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(0).standard_normal((150, 3))
    y = np.array(["low", "middle", "high"])[np.digitize((X**2).sum(axis=1), [1.5, 3.5])]
    asked = {"c": [2, 6, 10], "y": y, "rng": 1}
    own = fk.kpca_select(X, "gaussian", **asked)
    theirs = fk.kpca_select(X, "gaussian", **asked, classifier=make_pipeline(StandardScaler(), RidgeClassifier()))
    np.testing.assert_allclose(own.columns["score"], theirs.columns["score"], atol=1e-12)
    assert repr(own.kernel) == repr(theirs.kernel) and own.c == theirs.c
    chance = max(np.unique(y, return_counts=True)[1]) / len(y)
    assert own.columns["score"].max() > chance + 0.2

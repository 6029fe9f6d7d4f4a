"""Estimators of fastkpca.sklearn pass scikit-learn's own tests, and its checks, and take the same parameters."""

from __future__ import annotations

import pytest
import their_tests

pytest.importorskip("sklearn")

from sklearn import decomposition, kernel_approximation
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastkpca.sklearn import KernelPCA, KernelPCANovelty, Nystroem


@pytest.mark.parametrize(
    ("module", "name", "tests", "words", "least", "ignored"),
    [
        # their perceptrons warn that they stop early; ours must not warn
        ("decomposition", "KernelPCA", "decomposition.tests.test_kernel_pca", "", 20,
         [":sklearn.exceptions.ConvergenceWarning"]),
        # more landmarks than rows are a warning, there and here; some tests may want an array library that is not here
        ("kernel_approximation", "Nystroem", "tests.test_kernel_approximation", "ystroem", 7,
         ["n_components:UserWarning", ":pytest.PytestRemovedIn10Warning"]),
    ],
)  # fmt: skip
def test_their_own_test_file_with_the_class_replaced(tmp_path, module, name, tests, words, least, ignored):
    asked = f"sklearn.{module}", name, f"sklearn.{tests}"
    passed, every = their_tests.passed(tmp_path, *asked, *ignored, words=words)
    assert passed >= least and (words or passed == every)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::fastkpca.errors.LimitsWarning")
@pytest.mark.filterwarnings("ignore:n_components:UserWarning")
@parametrize_with_checks(
    [
        KernelPCA(),
        KernelPCA(n_components=1, kernel="sigmoid"),
        KernelPCA(n_components=2, kernel="gaussian", tol=1e-6),
        KernelPCANovelty(),
        KernelPCANovelty(2, contamination=0.1, statistic="both"),
        Nystroem(),
        Nystroem(n_components=1, kernel="sigmoid"),
    ]
)
def test_their_checks_of_estimators(estimator, check):
    drawn = isinstance(estimator, Nystroem) or getattr(estimator, "contamination", None) == "auto"
    if drawn and check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("rows are left out, or landmarks, by chance: tests/sklearn/test_weights.py has what is equal")
    check(estimator)


@pytest.mark.parametrize(
    ("ours", "theirs", "more"),
    [
        (
            KernelPCA,
            decomposition.KernelPCA,
            {"method", "memory_limit", "max_features", "failure_probability", "forget", "verbose"},
        ),
        (Nystroem, kernel_approximation.Nystroem, {"selection", "failure_probability", "landmarks", "verbose"}),
    ],
)
def test_every_parameter_of_theirs_with_its_default_and_every_attribute(ours, theirs, more):
    own, known = ours().get_params(), theirs().get_params()
    assert known.items() <= own.items() and set(own) - set(known) == more
    given = {"fit_inverse_transform": True} if ours is KernelPCA else {}  # ours has inverse_transform only then
    X = load_iris().data
    own, known = (set(dir(cls(n_components=2, **given).fit(X))) for cls in (ours, theirs))
    assert known - own <= {x for x in known if x.startswith("_")}

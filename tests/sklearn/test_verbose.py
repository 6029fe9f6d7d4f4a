"""``verbose`` prints the lines of the log of a fit, and of no other."""

from __future__ import annotations

import logging
from threading import Barrier, Thread

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone

from fastkpca.sklearn import KernelPCA, KernelPCANovelty, Nystroem

X = np.random.default_rng(0).standard_normal((300, 4))


@pytest.mark.parametrize(
    ("estimator", "word"),
    [
        (KernelPCA(3, kernel="rbf"), "LAPACK"),
        (KernelPCA(3, kernel="rbf", method="krylov"), "pass 1"),
        (KernelPCANovelty(3), "predicted"),
        (Nystroem(n_components=20), "20 landmarks of 300 rows"),
    ],
)
@pytest.mark.parametrize("call", ["fit", "fit_transform"])
def test_a_line_for_each_step_of_a_fit(capsys, estimator, word, call):
    if not hasattr(estimator, call):
        call = "fit"
    logger = logging.getLogger("fastkpca")
    before = logger.level, list(logger.handlers)
    quiet = getattr(clone(estimator), call)(X)
    assert capsys.readouterr().out == ""
    told = getattr(clone(estimator).set_params(verbose=1), call)(X)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[fastkpca] ") for line in lines) and any(word in line for line in lines)
    if isinstance(estimator, KernelPCA):  # one model: nothing is printed twice
        assert len(lines) == len(set(lines))
    assert (logger.level, list(logger.handlers)) == before
    if call == "fit_transform":
        np.testing.assert_array_equal(quiet, told)


def test_the_first_rows_of_partial_fit_and_those_that_follow(capsys):
    pca = KernelPCA(3, kernel="poly", degree=2, verbose=1).partial_fit(X[:200])
    assert "features" in capsys.readouterr().out
    pca.set_params(verbose=0).partial_fit(X[200:])
    assert capsys.readouterr().out == ""


def test_an_error_ends_the_lines_and_a_wrong_value_is_refused(capsys):
    with pytest.raises(ValueError, match="NaN"):
        KernelPCA(verbose=2).fit(np.full((5, 2), np.nan))
    with pytest.raises(ValueError, match="verbose"):
        KernelPCA(verbose=-1).fit(X)
    with pytest.raises(ValueError, match="verbose"):
        KernelPCA(verbose="yes").fit(X)
    capsys.readouterr()
    KernelPCA(3).fit(X)
    assert capsys.readouterr().out == "" and not logging.getLogger("fastkpca").isEnabledFor(logging.INFO)


def test_fits_of_other_threads_stay_silent(capsys):
    together = Barrier(2)

    def fit(verbose, c):
        for _ in range(5):
            together.wait()
            KernelPCA(c, kernel="rbf", eigen_solver="dense", verbose=verbose).fit(X)

    threads = [Thread(target=fit, args=given) for given in ((1, 3), (0, 4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = capsys.readouterr().out.splitlines()
    KernelPCA(3, kernel="rbf", eigen_solver="dense", verbose=1).fit(X)
    assert lines == 5 * capsys.readouterr().out.splitlines()

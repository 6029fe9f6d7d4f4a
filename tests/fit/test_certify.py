"""``certify``: intervals from vectors of any quality, against a dense eigensolver; what is refused."""

import numpy as np
import pytest
from reference import center, eigh, gram
from scipy.sparse.linalg import eigsh

import fastkpca as fk
from fastkpca.errors import CertificateWarning

SIGMA = 2.0


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((400, 3))


@pytest.fixture(scope="module")
def spectrum(rows):
    return eigh(gram("gaussian", rows, sigma=SIGMA))


def holds(found, values):
    low, high = found.eigenvalue_bounds.T
    slack = 1e-12 * values[0]
    return bool((low <= values[: len(low)] + slack).all() and (values[: len(low)] <= high + slack).all())


def test_vectors_of_arpack_need_one_pass(rows, spectrum):
    """Intervals are no wider than those of kpca at the same tol."""
    K = fk.gram(rows, "gaussian", sigma=SIGMA).centered()
    V = eigsh(K, 6, v0=np.random.default_rng(1).standard_normal(len(rows)))[1]
    found = fk.certify(rows, "gaussian", V, sigma=SIGMA)
    model = fk.kpca(rows, "gaussian", 6, sigma=SIGMA, tol=1e-8)
    low, high = model.eigenvalue_bounds.T
    assert not found.fitted and found.bound_kind == "guaranteed" and holds(found, spectrum[0])
    assert found.width <= float(np.max(high - low) / low[0])
    assert found.missed_above(0.999 * spectrum[0][5]) == (0, 0) and found.count_above(0.999 * spectrum[0][5]) == (6, 6)
    assert found.angle_bounds.max() < 1e-8 and (found.residuals < 1e-12 * spectrum[0][0]).all()
    assert str(found).count("\n") == 9 and "missed: 0" in str(found)


@pytest.mark.parametrize("noise", [1e-3, 1e-6])
def test_noise_widens_intervals_by_its_square(rows, spectrum, noise):
    values, vectors = spectrum
    V = vectors[:, :4] + noise * np.random.default_rng(2).standard_normal((len(rows), 4)) / np.sqrt(len(rows))
    found = fk.certify(rows, "gaussian", V, sigma=SIGMA)
    assert holds(found, values) and found.width < 10 * noise**2 + 1e-11


@pytest.mark.parametrize("lacks", range(3))
def test_what_the_vectors_miss_is_counted(rows, spectrum, lacks):
    """The missing eigenvalue is shown by the map beyond the vectors, and the others keep their small angles."""
    values, vectors = spectrum
    V = np.delete(vectors[:, :4], lacks, axis=1)
    found = fk.certify(rows, "gaussian", V, sigma=SIGMA)
    assert holds(found, values) and found.missed_above(0.99 * values[3]) == (1, 1)
    assert found.missed_above(1.01 * values[lacks])[0] == 0
    others = np.delete(np.arange(4), lacks)
    assert found.vector_clusters.tolist() == np.where(others < 3, others, -1).tolist()
    assert found.angle_bounds[found.vector_clusters >= 0].max() < 1e-6


def test_dependent_columns_count_once(rows, spectrum):
    values, vectors = spectrum
    V = np.hstack([vectors[:, 2::-1] * [1e-100, -1.0, 1e100], vectors[:, :3], np.ones((len(rows), 1))])
    found = fk.certify(rows, "gaussian", V, sigma=SIGMA)
    assert (found.n_vectors, found.rank) == (7, 3) and holds(found, values) and found.width < 1e-11


def test_wrong_vectors_give_wide_intervals_that_hold(rows, spectrum):
    V = np.random.default_rng(3).standard_normal((len(rows), 3))
    found = fk.certify(rows[:, :], "gaussian", V, sigma=0.05)
    values = eigh(gram("gaussian", rows, sigma=0.05))[0]
    assert holds(found, values) and found.width > 1.0
    assert (found.angle_bounds == np.pi / 2).all() and found.missed_above(values[5])[1] >= 6


def test_a_fit_follows_where_a_tolerance_asks_for_more():
    """Of a flat spectrum trace and norm say nothing. The intervals are no wider than those of kpca at the same tol."""
    X = np.random.default_rng(4).standard_normal((1500, 8))
    values, vectors = eigh(gram("gaussian", X, sigma=1.0))
    V = vectors[:, :3]
    one = fk.certify(X, "gaussian", V, sigma=1.0)
    assert not one.fitted and one.width > 1e-2 and holds(one, values)
    model = fk.kpca(X, "gaussian", 4, sigma=1.0, tol=1e-3)
    some = fk.certify(X, "gaussian", V, sigma=1.0, tol=1e-3)
    assert some.fitted and holds(some, values)
    assert some.width <= float(np.ptp(model.eigenvalue_bounds[:3], axis=1).max() / model.eigenvalues[0])
    assert some.missed_above(0.999 * values[2]) == (0, 0) and "and a fit" in str(some)
    with pytest.warns(CertificateWarning, match="the widest of 3 intervals .* a larger tol"):
        fk.certify(X, "gaussian", V, sigma=1.0, tol=1e-14)


def test_sampled_rows_in_place_of_the_pass():
    """Wider intervals that hold, with half of the failure probability, and the eigenvalue that the vectors miss."""
    X = np.random.default_rng(4).standard_normal((1500, 3)) * [2.0, 1.0, 0.5]
    values, vectors = eigh(gram("gaussian", X, sigma=1.5))
    found, more = (fk.certify(X, "gaussian", vectors[:, :3], sigma=1.5, rows=rows) for rows in (50, 1000))
    assert found.sampled and more.sampled and holds(found, values) and holds(more, values)
    assert more.width < found.width < 0.2 and "sampled rows" in str(found)
    assert found.bound_kind == "probabilistic" and found.failure_probability == 0.5e-6
    assert (found.ritz_values <= values[:3]).all() and (values[:3] <= found.ritz_values + found.ritz_error).all()
    without = fk.certify(X, "gaussian", vectors[:, 1:4], sigma=1.5, rows=1000)
    assert without.missed_above(1.2 * values[1]) == (1, 1) and without.vector_clusters[0] > without.clusters[0]


def test_the_pass_follows_where_sampled_rows_prove_too_little():
    X = np.random.default_rng(4).standard_normal((1500, 3))
    values, vectors = eigh(gram("gaussian", X, sigma=1.5))
    for tol, sampled in ((0.1, True), (1e-9, False)):
        found = fk.certify(X, "gaussian", vectors[:, :3], sigma=1.5, rows=1000, tol=tol)
        assert found.sampled == sampled and found.width <= tol and holds(found, values)
    assert not fk.certify(X, "tanh", vectors[:, :3], rows=1000).sampled  # without a map
    flat = np.random.default_rng(4).standard_normal((1500, 8))
    values, vectors = eigh(gram("gaussian", flat, sigma=1.0))
    found = fk.certify(flat, "gaussian", vectors[:, :3], sigma=1.0, rows=100, tol=1e-2, failure_probability=1e-3)
    assert found.fitted and not found.sampled and found.failure_probability <= 1e-3 and holds(found, values)


def test_a_number_of_rows_is_refused(rows, spectrum):
    for wanted, text in ((0, "rows is 0"), (5000, "4096 at most")):
        with pytest.raises(ValueError, match=text):
            fk.certify(rows, "gaussian", spectrum[1][:, :3], sigma=SIGMA, rows=wanted)
    with pytest.raises(ValueError, match="leave one of them out"):
        fk.certify(rows, "gaussian", spectrum[1][:, :3], sigma=SIGMA, rows=10, guaranteed=True)


def test_a_map_of_more_features_than_the_matrix_has_ranks():
    """What is left of the second feature by centring is rounding, of equal entries: no vector may come of it."""
    X = np.random.default_rng(0).standard_normal((29, 1))
    exact = float(((X - X.mean()) ** 2).sum())
    for k in range(1, 12):
        found = fk.certify(X, "polynomial", np.eye(29, k), degree=1, offset=3.0)
        assert holds(found, np.array([exact, *np.zeros(27)])) and found.width < 1e-9


def test_vectors_from_the_random_numbers_that_certify_draws():
    """They are drawn after the vectors: no vectors can be made that they overlook."""
    X = np.random.default_rng(4).standard_normal((1500, 8))
    values = eigh(gram("gaussian", X, sigma=1.0))[0]
    V = np.random.default_rng(7).standard_normal((len(X), 20))
    found = fk.certify(X, "gaussian", V[:, :3], sigma=1.0, tol=1e-2, rng=7)
    assert holds(found, values)


def test_weights_count_rows_several_times(rows):
    X, w = rows[:60], np.arange(60) % 4
    again = np.repeat(np.arange(60), w)
    values, vectors = eigh(gram("gaussian", X[again], sigma=SIGMA))
    V = np.full((60, 3), 7.0)  # rows of weight zero do not count
    V[again] = vectors[:, :3]
    found = fk.certify(X, "gaussian", V, sample_weight=w, sigma=SIGMA)
    assert holds(found, values) and found.width < 1e-11


def test_the_matrix_as_it_is(rows):
    K = gram("gaussian", rows, sigma=SIGMA)
    values, vectors = np.linalg.eigh(K)
    found = fk.certify(K, "precomputed", vectors[:, -3:], center=False)
    assert holds(found, values[::-1]) and found.width < 1e-11 and not found.center
    whole = fk.certify(K, "precomputed", vectors, center=False)
    assert whole.rank == len(K) and whole.count_above(0.5) == (np.count_nonzero(values > 0.5),) * 2


def test_of_an_indefinite_kernel_the_norm_bounds_the_others(rows):
    K = gram("tanh", rows, scale=0.3, offset=-1.0)
    values, vectors = eigh(K)
    found = fk.certify(rows, "tanh", vectors[:, :2], scale=0.3, offset=-1.0)
    assert holds(found, values)
    negative = fk.certify(-center(K), "precomputed", vectors[:, -2:])
    assert holds(negative, -values[::-1])


@pytest.mark.parametrize("solver", ["arpack", "randomized", "dense"])
@pytest.mark.parametrize(
    "options",
    [{"kernel": "rbf", "gamma": 0.1}, {"kernel": "rbf"}, {"kernel": "poly", "degree": 2}, {"kernel": "linear"}],
)
def test_a_fitted_object_of_scikit_learn(rows, solver, options):
    fitted = pytest.importorskip("sklearn.decomposition").KernelPCA(2, eigen_solver=solver, **options).fit(rows)
    found = fk.certify(rows, V=fitted)
    assert np.allclose(found.ritz_values, fitted.eigenvalues_, rtol=1e-6) and found.width < 1e-6
    assert holds(found, fitted.eigenvalues_) or solver == "randomized"
    with pytest.raises(ValueError, match="V= brings its kernel"):
        fk.certify(rows, "gaussian" if options["kernel"] == "linear" else "linear", fitted)


def test_a_model(rows):
    for options in ({}, {"standardize": True}, {"center": False}, {"sample_weight": np.arange(400) % 3}):
        model = fk.kpca(rows * [1.0, 1.0, 30.0], "gaussian", 3, sigma=SIGMA, tol=1e-9, **options)
        found = fk.certify(rows * [1.0, 1.0, 30.0], V=model)
        assert np.allclose(found.ritz_values, model.eigenvalues, rtol=1e-8)
        assert found.kernel == model.kernel and found.center == model.center


@pytest.mark.parametrize(
    ("vectors", "error", "text"),
    [
        (None, TypeError, "certify needs V"),
        (np.full((400, 2), np.nan), ValueError, "NaN or infinity .first at row 0, column 0"),
        (np.ones((2, 400)), ValueError, "give V.T"),
        (np.ones((399, 2)), ValueError, "V has 399 rows, and X has 400"),
        (np.ones((400, 2)), ValueError, "constant, which centring makes zero"),
        (np.zeros((400, 2)), ValueError, "constant"),
        (np.ones((400, 0)), ValueError, "no columns"),
        (np.ones((400, 1)) + 1j, TypeError, "complex"),
        ("vectors.npy", TypeError, "V is"),
    ],
)
def test_refused(rows, vectors, error, text):
    with pytest.raises(error, match=text):
        fk.certify(rows, "gaussian", vectors, sigma=SIGMA)


def test_a_fitted_object_of_a_function_is_refused(rows):
    fitted = pytest.importorskip("sklearn.decomposition").KernelPCA(2, kernel=np.dot).fit(rows[:50])
    with pytest.raises(TypeError, match="V.eigenvectors_ as V"):
        fk.certify(rows[:50], V=fitted)
    with pytest.raises(TypeError, match="fit it before"):
        fk.certify(rows[:50], V=type(fitted)(2))
    with pytest.raises(ValueError, match="give a number"):
        fk.certify(rows[:50], "linear", fitted.eigenvectors_).count_above("many")


@pytest.mark.parametrize("door", ["memmap", "blocks", "csr", "dask", "frame", "h5py", "float32", "dask vectors"])
def test_rows_from_anywhere(rows, spectrum, tmp_path, door):
    """The same intervals from every kind of source, to the rounding of other tiles."""
    values, vectors = spectrum
    X, V = rows, vectors[:, :3]
    if door == "memmap":
        np.save(tmp_path / "x.npy", X)
        X = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif door == "blocks":
        X = lambda: iter([rows[:150], rows[150:]])  # noqa: E731
    elif door == "csr":
        X = pytest.importorskip("scipy.sparse").csr_matrix(rows)
    elif door == "dask":
        X = pytest.importorskip("dask.array").from_array(rows, chunks=(90, 3))
    elif door == "frame":
        X = pytest.importorskip("pandas").DataFrame(rows)
    elif door == "h5py":
        file = pytest.importorskip("h5py").File(tmp_path / "x.h5", "w")
        X = file.create_dataset("x", data=rows)
    elif door == "float32":
        X = rows.astype(np.float32)
        values = eigh(gram("gaussian", X, sigma=SIGMA))[0]
    elif door == "dask vectors":
        V = pytest.importorskip("dask.array").from_array(V, chunks=(100, 3))
    found = fk.certify(X, "gaussian", V, sigma=SIGMA, n_threads=2)
    assert holds(found, values) and found.width < 1e-9
    again = fk.certify(X, "gaussian", V, sigma=SIGMA, tol=1e-12 if door == "blocks" else None, n_threads=1)
    assert np.allclose(found.eigenvalue_bounds, again.eigenvalue_bounds, rtol=1e-10)
    quick = fk.certify(X, "gaussian", V, sigma=SIGMA, rows=20)
    assert quick.sampled and holds(quick, values) and quick.width < 0.5


@pytest.mark.parametrize("draws", [None, 100])
def test_bits_do_not_depend_on_threads(rows, spectrum, draws):
    one, two = (fk.certify(rows, "gaussian", spectrum[1][:, :3], sigma=SIGMA, rows=draws, n_threads=n) for n in (1, 2))
    assert np.array_equal(one.eigenvalue_bounds, two.eigenvalue_bounds)
    assert np.array_equal(one.angle_bounds, two.angle_bounds)


@pytest.mark.parametrize("draws", [None, 20])
@pytest.mark.parametrize("factor", [1e-90, 1e90])
def test_values_whose_squares_leave_float64_are_refused(rows, factor, draws):
    """The squared residuals of the vectors would be zero, or infinite."""
    with pytest.raises(ValueError, match="scale X or the kernel"):
        fk.certify(rows * factor, "linear", rows, rows=draws)

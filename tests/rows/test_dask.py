"""Dask: equal bits on every scheduler, at any number of workers, and when one of them dies."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time

import numpy as np
import pytest

import fastkpca as fk
from fastkpca.errors import DataChangedError, ScoresNotKeptError
from fastkpca.maps.fourier import FourierMap
from fastkpca.rows import dask as _dask

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
cloudpickle = pytest.importorskip("cloudpickle")

# older Dask warns where a scheduler is named while a client is there, as these tests do on purpose
pytestmark = pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler:UserWarning")

N, D = 60000, 3
X = np.random.default_rng(0).standard_normal((N, D)) * [2.0, 1.0, 0.5] + [5.0, -3.0, 100.0]
FAR = X[:40000].copy()  # with a few far rows, most of which a sample misses: pivots need a second round
FAR[20000:20040, 0] += 40.0 * np.arange(1, 41)

ROUTES = {
    "monomial": (X, {"kernel": "polynomial", "c": 4, "degree": 3}),
    "taylor": (X, {"kernel": "gaussian", "c": 3, "sigma": 20.0, "features": "monomial"}),
    "pivots": (FAR, {"kernel": "gaussian", "c": 3, "sigma": 6.0, "features": "pivots", "tol": 9e-5}),
    "fourier": (X[:, :1], {"kernel": "gaussian", "c": 3, "sigma": 1.0, "features": "fourier"}),
    "krylov": (X[:3000], {"kernel": "gaussian", "c": 3, "products": "exact"}),
    "dense": (X[:400], {"kernel": "gaussian", "c": 3, "method": "dense"}),
    "one kernel value at a time": (X[:2000], {"kernel": lambda A, B: (1.0 + A @ B.T) ** 2, "c": 2, "method": "krylov"}),
}


def chunked(X, rows=None, columns=-1):
    return da.from_array(X, chunks=(rows or -(-len(X) // 5), columns))


def arrays(model):
    projector = model.projector
    own = (
        [projector.X, projector.coeff, projector.column_means]
        if projector.grows_with_n
        else [projector.axes, projector.mean]
    )
    return [model.eigenvalues, model.eigenvalue_bounds, model.angle_bounds, model.shift, *own]


def promised(model):
    """Error of a score of Fourier features, which few rows and many evaluate by other nodes; 0 of other models."""
    map = getattr(model.projector, "map", None)
    if not isinstance(map, FourierMap):
        return 0.0
    return map.eps * np.sqrt(map.total) * np.linalg.norm(model.projector.axes, axis=0).max()


def same(a, b, scores=False):
    """Equal bits of the models; of the scores where the chunks are the same, else to rounding and what is promised."""
    for x, y in zip(arrays(a), arrays(b), strict=True):
        np.testing.assert_array_equal(x, y)
    x, y = np.asarray(a.score), np.asarray(b.score)
    if scores:
        np.testing.assert_array_equal(x, y)
    np.testing.assert_allclose(x, y, rtol=1e-9, atol=max(1e-9 * np.abs(y).max(), 2.0 * promised(b)))
    return True


@pytest.fixture(scope="module")
def local():
    """What the local route makes of each."""
    return {name: fk.kpca(X, **arguments) for name, (X, arguments) in ROUTES.items()}


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set(
            {
                "distributed.admin.log-format": "",
                "distributed.logging.distributed": "critical",
                # where the machine is busy a worker takes longer than 15 s to come back, and would be forgotten
                "distributed.deploy.lost-worker-timeout": "1 hour",
            }
        ),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield cluster, client


def scaled(cluster, client, n):
    """{address: process} of the workers, once there are n and all of them answer: one that retires, or was killed a
    moment ago, may be listed still."""
    cluster.scale(n)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if len(client.scheduler_info(n_workers=-1)["workers"]) == n:
            found = client.run(os.getpid, on_error="return")
            if len(found) == n and all(isinstance(pid, int) for pid in found.values()):
                return found
        time.sleep(0.02)
    raise TimeoutError(f"no {n} workers within a minute")


@pytest.fixture(autouse=True)
def limit():
    """What waits for a cluster ends, with the stacks of all threads."""
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


# Equal bits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROUTES)
def test_the_bits_of_the_local_route(name, local):
    rows, arguments = ROUTES[name]
    for scheduler, size, columns in (("synchronous", None, -1), ("threads", 1999, 1)):
        with dask.config.set(scheduler=scheduler):
            model = fk.kpca(chunked(rows, size, columns), **arguments)
            assert isinstance(model.score, da.Array)
            assert same(model, local[name])
            assert model.plan.method == local[name].plan.method


def test_uneven_empty_and_single_chunks(local):
    rows, arguments = ROUTES["monomial"]
    sizes = (0, 1, 16384, 7, N - 16384 - 8 - 100, 0, 100)
    model = fk.kpca(da.from_array(rows, chunks=(sizes, -1)), **arguments)
    assert np.array_equal(model.eigenvalue_bounds, local["monomial"].eigenvalue_bounds)
    np.testing.assert_allclose(np.asarray(model.score), local["monomial"].score, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(("workers", "names"), [(1, ["pivots", "krylov"]), (3, ["dense", "pivots"])])
def test_a_cluster_of_any_size(cluster, local, workers, names):
    """Of two workers, with all other routes, below: there one dies."""
    scaled(*cluster, workers)
    for name in names:
        rows, arguments = ROUTES[name]
        assert same(fk.kpca(chunked(rows), **arguments), local[name])


@pytest.mark.parametrize("name", ROUTES)
def test_what_a_worker_has_used_goes_to_another(local, name):
    """With what it has computed once and keeps: where that cannot be sent, the scheduler waits for ever."""
    fk.kpca_project(local[name], ROUTES[name][0][:3000])
    again = cloudpickle.loads(cloudpickle.dumps(local[name].projector))
    assert again.n_components == local[name].projector.n_components


def test_many_features_differ_by_rounding_alone():
    """Beyond 256 features the local route takes fewer tasks, for memory; Dask's are by the rows alone all the same."""
    arguments = {"kernel": "polynomial", "c": 3, "degree": 10, "features": "monomial"}
    rows = X / [2.0, 1.0, 0.5] - [2.5, -3.0, 200.0]
    one, two, three = (fk.kpca(x, **arguments) for x in (chunked(rows), chunked(rows, 1234), rows))
    assert one.info["n_features"] > 256
    assert np.array_equal(one.eigenvalue_bounds, two.eigenvalue_bounds)
    np.testing.assert_allclose(one.eigenvalues, three.eigenvalues, rtol=1e-13)


def test_rows_that_one_worker_alone_can_read(cluster, local):
    """Annotations of the user's tasks hold: files on the disk of one machine, say."""
    place = sorted(scaled(*cluster, 2))[0]

    def read(block):
        assert distributed.get_worker().address == place
        return block

    with dask.annotate(workers=[place], allow_other_workers=False):
        rows = chunked(X).map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    model = fk.kpca(rows, **ROUTES["monomial"][1])
    np.testing.assert_array_equal(model.eigenvalue_bounds, local["monomial"].eigenvalue_bounds)


def frame_of(X):
    return dd.from_pandas(pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]), npartitions=4)


def blocks_of(futures, X):
    step = -(-len(X) // len(futures))
    shapes = [(len(X[i : i + step]), X.shape[1]) for i in range(0, len(X), step)]
    return da.concatenate([da.from_delayed(f, s, float) for f, s in zip(futures, shapes, strict=True)])


def parts_of(X):
    return np.array_split(X, range(-(-len(X) // 4), len(X), -(-len(X) // 4)))


def bare(client, X):
    """An array whose graph is futures and a chunk that is a task."""
    parts = parts_of(X)
    graph = {("bare", i, 0): part for i, part in enumerate(client.scatter(parts[:-1], hash=False))}
    graph["bare", len(parts) - 1, 0] = (np.asarray, parts[-1])
    return da.Array(graph, "bare", (tuple(map(len, parts)), X.shape[1:]), dtype=float)


def annotated(client, X):
    place = sorted(client.scheduler_info(n_workers=-1)["workers"])[0]
    with dask.annotate(workers=[place], allow_other_workers=True):
        return (chunked(X) + 0.0).persist(optimize_graph=False)


STORED = {
    "persisted": lambda client, X: chunked(X).persist(),
    "persisted in small chunks": lambda client, X: chunked(X, -(-len(X) // 13)).persist(),
    "persisted in columns": lambda client, X: chunked(X, None, 1).persist(),
    "a step after": lambda client, X: chunked(X).persist() + 0.0,
    "rechunked": lambda client, X: chunked(X).persist().rechunk((len(X) // 3, -1)),
    "rows of it": lambda client, X: chunked(np.concatenate([X, X])).persist()[: len(X)],
    "lengths not known": lambda client, X: (lambda x: x[x[:, 0] == x[:, 0]])(chunked(X).persist()),
    "one half persisted": lambda client, X: da.concatenate(
        [chunked(X[: len(X) // 2]).persist(), chunked(X[len(X) // 2 :])]
    ),
    "submitted": lambda client, X: blocks_of([client.submit(np.asarray, p, pure=False) for p in parts_of(X)], X),
    "scattered": lambda client, X: blocks_of(client.scatter(parts_of(X), hash=False), X),
    "scattered as one array": lambda client, X: da.from_array(client.scatter(X, hash=False).result(), chunks=9999),
    "frame": lambda client, X: frame_of(X).persist(),
    "a step after a frame": lambda client, X: frame_of(X).persist() + 0.0,
    "array of a frame": lambda client, X: frame_of(X).to_dask_array(lengths=True).persist(),
    "scattered, and a task": bare,
    "annotated": annotated,
}


@pytest.mark.parametrize("kind", STORED)
def test_rows_that_the_workers_store(cluster, local, kind):
    scaled(*cluster, 2)
    for name in ("monomial", "krylov"):
        rows, arguments = ROUTES[name]
        given = STORED[kind](cluster[1], rows)
        assert same(fk.kpca(given, **arguments), local[name])
        z = fk.kpca_project(local[name], given)
        assert isinstance(z, da.Array)
        np.testing.assert_allclose(z.compute(), np.asarray(local[name].score), rtol=1e-9, atol=1e-9)


def test_products_of_the_gram_matrix():
    rows, U = X[:3000], np.random.default_rng(2).standard_normal((3000, 2))
    here, there = (fk.gram(x, "gaussian", sigma=2.0) for x in (rows, chunked(rows, 700)))
    assert np.array_equal(here @ U, there @ U)
    assert np.array_equal(here.centered() @ U, there.centered() @ U)
    F = fk.features(chunked(rows, 700), "polynomial", degree=2)
    np.testing.assert_array_equal(F.T @ U, fk.features(rows, "polynomial", degree=2).T @ U)


def test_krylov_with_more_rows_than_bands(monkeypatch):
    rows, arguments = ROUTES["krylov"]
    monkeypatch.setattr(_dask, "MOST_BANDS", 2)  # as of 70000 rows
    one, two = (fk.kpca(chunked(rows, n), **arguments) for n in (3000, 700))
    assert same(one, two)
    np.testing.assert_allclose(one.eigenvalues, fk.kpca(rows, **arguments).eigenvalues, rtol=1e-12)


# Deaths --------------------------------------------------------------------------------------------------------------


class Killer(distributed.SchedulerPlugin):
    """Kills the worker that has just finished, or begun, the first task of a stage."""

    name = "killer"

    def __init__(self, scheduler, stage, finish, pids):
        self.scheduler, self.stage, self.finish, self.pids = scheduler, f"fastkpca-{stage}-", finish, pids
        self.killed = []

    def transition(self, key, start, finish, *args, **kwargs):
        if self.killed or finish != self.finish or not str(key).lstrip("('").startswith(self.stage):
            return
        task = self.scheduler.tasks[key]
        worker = task.processing_on if finish == "processing" else next(iter(task.who_has))
        pid = self.pids.get(worker.address)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)


@pytest.mark.parametrize(
    ("stage", "finish", "name", "stored"),
    [
        ("summary", "memory", "monomial", False),
        ("summary", "memory", "pivots", True),
        ("moments-sum", "processing", "fourier", False),
        ("sample", "memory", "pivots", False),
        ("product", "memory", "krylov", False),
        ("product", "memory", "krylov", True),
        ("scores", "memory", "monomial", False),
    ],
)
def test_a_worker_dies(cluster, local, stage, finish, name, stored):
    """Persisted rows that were on it are computed again."""
    cluster, client = cluster
    pids = scaled(cluster, client, 2)
    killer = Killer(cluster.scheduler, stage, finish, pids)
    cluster.scheduler.add_plugin(killer)
    try:
        rows, arguments = ROUTES[name]
        given = chunked(rows).persist() if stored else chunked(rows)
        distributed.wait(given)
        model = fk.kpca(given, **arguments)
        assert same(model, local[name])
        z = fk.kpca_project(model, given)
        # scores of Fourier features depend on the chunks up to a hundredth of tol (docs/dask.md)
        apart = 1e-8 if name == "fourier" else 1e-9
        np.testing.assert_allclose(z.compute(), np.asarray(local[name].score), rtol=1e-9, atol=apart)
    finally:
        cluster.scheduler.remove_plugin("killer")
    assert len(killer.killed) == 1


@pytest.mark.slow
def test_two_hundred_fits(cluster, local):
    """Schedulers, chunks, rows that the workers store or not, and workers that are killed."""
    cluster, client = cluster
    rng = np.random.default_rng(0)
    names, kinds, killed = list(ROUTES), [None, *(kind for kind in STORED if "scattered" not in kind)], 0
    for _ in range(200):
        faulthandler.dump_traceback_later(600, exit=True)  # for each fit
        name, scheduler = rng.choice(names), rng.choice(["synchronous", "threads", "cluster", "cluster"])
        rows, arguments = ROUTES[name]
        if scheduler != "cluster":
            given = chunked(rows, int(rng.integers(len(rows) // 50, len(rows) + 1)), int(rng.integers(1, 4)))
            with dask.config.set(scheduler=scheduler):
                assert same(fk.kpca(given, **arguments), local[name])
            continue
        pids = scaled(cluster, client, 2)
        stage = rng.choice(
            ["summary", "moments", "rows", "band"] if name != "krylov" else ["summary", "product", "band"]
        )
        killer = Killer(cluster.scheduler, stage, "memory", pids if rng.random() < 0.7 else {})
        kind = kinds[rng.integers(len(kinds))]
        given = STORED[kind](client, rows) if kind else chunked(rows, int(rng.integers(len(rows) // 50, len(rows) + 1)))
        distributed.wait(given)
        cluster.scheduler.add_plugin(killer)
        try:
            assert same(fk.kpca(given, **arguments), local[name])
        finally:
            cluster.scheduler.remove_plugin("killer")
        killed += len(killer.killed)
    assert killed > 20


# Scores --------------------------------------------------------------------------------------------------------------


def test_scores_are_lazy_and_the_model_unpacks(local):
    rows, arguments = ROUTES["monomial"]
    model = fk.kpca(chunked(rows, 7000), **arguments)
    coeff, score, latent, tsquared, _ = model
    assert score.chunks == ((*[7000] * 8, 4000), (4,))
    other = local["monomial"]
    np.testing.assert_allclose(coeff.compute(), other.coeff, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(tsquared.compute(), other.tsquared, rtol=1e-9)
    assert np.array_equal(latent, other.latent)
    with pytest.raises(ScoresNotKeptError):
        fk.kpca(chunked(rows), return_scores=False, **arguments).score  # noqa: B018


def test_scores_of_new_rows(local):
    for name in ("monomial", "krylov"):
        rows = X[:5000].astype(np.float32)
        expected = fk.kpca_project(local[name], rows)
        found = fk.kpca_project(local[name], chunked(rows, 999))
        assert found.dtype == expected.dtype and found.chunks[0][0] == 999
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-9)


def test_scores_written_as_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(_dask, "SCORES_AT_ONCE", 1 << 18)
    rows, arguments = ROUTES["monomial"]
    out = np.memmap(tmp_path / "scores", dtype=np.float64, mode="w+", shape=(N, 4))
    model = fk.kpca(chunked(rows), out=out, **arguments)
    again = np.empty((N, 4))
    assert fk.kpca_project(model, chunked(rows, 777), out=again) is again
    expected = fk.kpca_project(model, rows)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(again, expected, rtol=1e-12, atol=1e-9)
    zarr = pytest.importorskip("zarr")
    z = zarr.create_array(tmp_path / "scores.zarr", shape=(N, 4), chunks=(1000, 2), dtype=np.float64)
    fk.kpca_project(model, chunked(rows, 777), out=z)
    np.testing.assert_allclose(z[:], expected, rtol=1e-12, atol=1e-9)


def test_models_of_dask_rows_are_saved_and_merged(tmp_path):
    arguments = {"kernel": "polynomial", "c": 3, "degree": 2, "offset": 1.0}
    first = fk.kpca(chunked(X[:20000]), keep_moments=True, **arguments)
    fk.save(first, tmp_path / "m.kpca", scores=True)
    assert np.array_equal(fk.load(tmp_path / "m.kpca").score, first.score.compute())
    model = fk.kpca_update(first, chunked(X[20000:]))
    like = fk.kpca(chunked(X[20000:]), like=first, keep_moments=True)
    np.testing.assert_allclose(fk.kpca_merge(first, like).eigenvalues, model.eigenvalues, rtol=1e-13)
    np.testing.assert_allclose(model.eigenvalues, fk.kpca(X, **arguments).eigenvalues, rtol=1e-9)


@pytest.mark.parametrize(("name", "least"), [("monomial", 1), ("pivots", 0), ("krylov", 0)])
def test_weights(name, least):
    rows, arguments = ROUTES[name]
    w = np.random.default_rng(1).integers(least, 3, len(rows)).astype(float)
    model = fk.kpca(chunked(rows, 4999), sample_weight=w, **arguments)
    assert np.array_equal(model.eigenvalue_bounds, fk.kpca(rows, sample_weight=w, **arguments).eigenvalue_bounds)


# What is given -------------------------------------------------------------------------------------------------------


def test_frames_and_lengths_that_are_not_known(local):
    arguments = ROUTES["monomial"][1]
    frame = pd.DataFrame(X, columns=list("abc"))
    model = fk.kpca(dd.from_pandas(frame, npartitions=4), **arguments)
    assert same(model, local["monomial"])
    frame = frame.astype({"a": "Float64"})
    assert same(fk.kpca(dd.from_pandas(frame, npartitions=3), **arguments), local["monomial"])
    unknown = chunked(X)[chunked(X)[:, 0] > 5.0]
    model = fk.kpca(unknown, **arguments)
    assert same(model, fk.kpca(X[X[:, 0] > 5.0], **arguments))
    assert np.isnan(unknown.shape[0])  # the user's own is as it was


def test_a_block_is_made_once_in_a_pass():
    counts = []

    def part(i):
        counts.append(i)
        return X[i << 14 : (i + 1) << 14]

    def made(rows):
        counts.clear()
        model = fk.kpca(rows, "polynomial", 2, degree=2, return_scores=False)
        assert np.array_equal(model.eigenvalue_bounds, expected.eigenvalue_bounds)
        return [counts.count(i) for i in range(3)]

    expected = fk.kpca(X[: 3 << 14], "polynomial", 2, degree=2)
    with dask.config.set(scheduler="synchronous"):
        blocks = [dask.delayed(part)(i) for i in range(3)]
        rows = da.concatenate([da.from_delayed(b, (1 << 14, D), float) for b in blocks])
        assert made(rows) == [2, 2, 2]  # summary, moments
        assert made(rows.rechunk((5000, -1))) == [2, 2, 2]
        kept = rows.persist()
        assert made(kept) == [0, 0, 0]
        both = da.concatenate([rows, rows])[: 3 << 14]
        assert made(both) == [2, 2, 2]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "cluster"])
def test_nan_is_placed(scheduler, request, local):
    bad = X.copy()
    bad[51234, 1] = np.inf
    bad[33333, 2] = np.nan
    if scheduler == "cluster":
        request.getfixturevalue("cluster")
    with dask.config.set({} if scheduler == "cluster" else {"scheduler": scheduler}):
        with pytest.raises(ValueError, match=r"X contains NaN \(first at row 33333, column 2\)"):
            fk.kpca(chunked(bad, 10000), "polynomial", 2, degree=2)
        lazy = fk.kpca_project(local["monomial"], chunked(bad, 10000))
        with pytest.raises(ValueError, match=r"X contains NaN \(first at row 33333, column 2\)"):
            lazy[30000:40000].compute()


def test_what_is_no_table_of_numbers(local):
    def refused(rows, error, text):
        for call in (lambda: fk.kpca(rows, "gaussian", 2), lambda: fk.kpca_project(local["monomial"], rows)):
            with pytest.raises(error, match=text):
                call()

    def explode(block):
        raise AssertionError("computed")

    nothing = chunked(X).map_blocks(explode, dtype=float, meta=np.empty((0, 0)))
    refused(nothing[:, 0], ValueError, r"X has shape \(60000,\); .*needs two dimensions")
    refused(nothing[:, :, None], ValueError, "X has 3 dimensions")
    refused(nothing[:0], ValueError, "X has no rows")
    refused(nothing.astype(complex), TypeError, "X is complex")
    refused(dd.from_pandas(pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}), npartitions=1), TypeError, "column 'a'")
    refused(dd.from_pandas(pd.Series([1.0, 2.0]), npartitions=1), TypeError, "X is a Dask series")
    refused(dask.delayed(X), TypeError, "X is a dask Delayed; give a Dask array or data frame")
    with pytest.raises(ValueError, match="X has 2 columns, the model was fitted on 3"):
        fk.kpca_project(local["monomial"], nothing[:, :2])
    with pytest.raises(TypeError, match="a Dask array can't be written to"):
        fk.kpca(chunked(X), "polynomial", 2, degree=2, out=chunked(X[:, :2]))


@pytest.mark.parametrize("error", [OSError("the disk is gone"), KeyboardInterrupt("ctrl-c")])
def test_an_error_of_the_users_own_graph_comes_through(error):
    """A user's interrupt too: it is no failed task."""

    def broken(block):
        raise error

    rows = chunked(X).map_blocks(broken, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(type(error), match=str(error)), dask.config.set(scheduler="synchronous"):
        fk.kpca(rows, "polynomial", 2, degree=2)


class Alone(fk.kernels.Kernel):
    """Not to be called twice at once."""

    api_version = 1
    positive_semidefinite = True
    thread_safe = False
    inside = threading.Lock()

    def block(self, X, Y):
        assert self.inside.acquire(blocking=False)
        try:
            time.sleep(1e-3)
            return (1.0 + X @ Y.T) ** 2
        finally:
            self.inside.release()


@pytest.mark.parametrize("method", ["features", "krylov"])
def test_a_kernel_that_is_not_thread_safe(method):
    rows = X[:3000] - X.mean(axis=0)
    with dask.config.set(scheduler="threads", num_workers=4):
        model = fk.kpca(chunked(rows, 100), Alone(), 2, method=method, tol=1e-3)
    np.testing.assert_allclose(model.eigenvalues, fk.kpca(rows, "polynomial", 2, degree=2).eigenvalues, rtol=1e-3)


def test_rows_are_read_whole_only_where_the_plan_says_so():
    """Moments of many rows: no task is given more than its share."""
    most = []

    def watch(block):
        most.append(len(block))
        return block

    rows = da.from_array(X, chunks=(4000, -1))
    with dask.config.set(scheduler="synchronous"):
        fk.kpca(rows.map_blocks(watch, dtype=float, meta=np.empty((0, 0))), "polynomial", 2, degree=2)
        assert max(most) == 4000
        assert "loads all rows" in str(fk.plan(rows[:2000], "gaussian", 2, sigma=1.0, method="krylov"))
        with pytest.raises(ValueError, match="memory_limit"):
            fk.kpca(rows, "gaussian", 2, method="dense", memory_limit="100MB")


def test_dashboards_and_progress_see_the_stages():
    from dask.callbacks import Callback

    seen, calls = set(), []
    names = Callback(posttask=lambda key, *_: seen.add("-".join(str(key).split("-")[:2])))
    with names, dask.config.set(scheduler="threads"):
        fk.kpca(chunked(X), progress=lambda *x: calls.append(x), **ROUTES["taylor"][1])
    assert {"fastkpca-summary", "fastkpca-radius", "fastkpca-moments"} <= seen
    assert ("moments", 1, 1) in calls


class Fickle:
    """Rows that are others from the ``after``-th reading of a chunk on: all, or some, or they change places."""

    def __init__(self, after, change="all"):
        self.after, self.change, self.calls, self.lock = after, change, {}, threading.Lock()
        blocks = [dask.delayed(self, pure=False)(i) for i in range(5)]
        self.rows = da.concatenate([da.from_delayed(block, (1000, 3), float) for block in blocks])

    def __call__(self, i):
        with self.lock:
            self.calls[i] = self.calls.get(i, 0) + 1
        rows = np.random.default_rng(i).standard_normal((1000, 3))
        if i == 3 and self.calls[i] > self.after:
            some = np.arange(700, 700 + _dask.CHECKSUM_STRIDE)
            part = {"all": np.arange(1000), "some": some}.get(self.change, [0, 128])
            other = np.random.default_rng(99).standard_normal((len(part), 3))
            rows[part] = rows[part[::-1]] if self.change == "places" else other
        return rows


@pytest.mark.parametrize(
    ("after", "change", "options"),
    [
        (1, "all", {"kernel": "polynomial", "degree": 2, "method": "features"}),
        (1, "some", {"kernel": "gaussian", "sigma": 2.0, "method": "krylov"}),
        (3, "places", {"kernel": "gaussian", "sigma": 2.0, "method": "krylov", "tol": 1e-10}),
        (1, "places", {"kernel": "gaussian", "sigma": 2.0, "method": "dense", "c": 2}),
    ],
)
def test_rows_that_change_from_pass_to_pass(after, change, options):
    fickle = Fickle(after, change)
    with dask.config.set(scheduler="threads"), pytest.raises(DataChangedError, match=r"rows 3000 to 3999 .*persist"):
        fk.kpca(fickle.rows, **({"c": 3} | options))
    assert fickle.calls[3] > after


def test_rows_that_change_before_their_scores_are_computed():
    fickle = Fickle(10**9)
    with dask.config.set(scheduler="threads"):
        model = fk.kpca(fickle.rows, "polynomial", 3, degree=2, method="features")
        assert model.score.compute().shape == (5000, 3)
        fickle.after = 0
        with pytest.raises(DataChangedError, match="rows 3000 to 3999"):
            model.score.compute()
        assert fk.kpca_project(model, fickle.rows).compute().shape == (5000, 3)  # other rows may be what they are


@pytest.mark.parametrize(
    ("change", "at"), [(lambda x: x[:-1], 1), (lambda x: np.vstack([x, x[:1]]), 2), (lambda x: x[:, :2], 1)]
)
def test_a_chunk_that_changes_its_shape(change, at):
    """In a later pass, or where the scores are computed: the last row is none that the checksum watches."""
    changed = threading.Event()
    blocks = [
        dask.delayed(lambda i: change(X[:1000]) if i == at and changed.is_set() else X[:1000])(i) for i in range(3)
    ]
    rows = da.concatenate([da.from_delayed(block, (1000, 3), float) for block in blocks])
    with dask.config.set(scheduler="threads"):
        model = fk.kpca(rows, "polynomial", 2, degree=2)
        changed.set()
        with pytest.raises(DataChangedError, match=r"a chunk of X has shape .* and \(1000, 3\) by its chunks"):
            model.score.compute()
        with pytest.raises(DataChangedError, match=r"a chunk of X has shape"):
            fk.kpca(rows, "polynomial", 2, degree=2)

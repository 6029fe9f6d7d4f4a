"""Costs, and the choice among what the kernel offers, explained in words. Runs nothing but a look at the sample.

Predictions are counts (flops, kernel values, bytes) over the rates of ``_rates``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.protocol import Cost, FeatureMap, Kernel, Offer, Summary
from ..errors import NoRouteError, with_near
from ..maps.pivots import RankProbe, pivot_map, probe_rank
from ..model.plan import Candidate, Plan, readable_size
from ..products.rates import (
    EIGEN_RATE,
    FEATURE_RATE,
    GEMM_RATE,
    KERNEL_FLOPS,
    OVERHEAD,
    ROW_RATE,
    SYRK_RATE,
    entry_rate,
    is_compiled,
)
from ..rows.view import Rows
from ..solve.costs import basis_bytes, default_block_size, least_columns, ritz_seconds
from ..solve.moments import takes_all
from . import footprint
from .product_choice import LEAST_COLUMNS, Product, products_for

__all__ = [
    "MAX_FEATURES",
    "krylov_room",
    "look_at",
    "make_plan",
    "most_pivots",
    "offers_of_maps",
    "plan_for_map",
    "small_offers",
]

KRYLOV_OVERHEAD = 15e-3
KRYLOV_DOUBLE = 1.5  # passes in float64; those before are a search in float32, twice as fast
KRYLOV_EXPLORING = 8.0  # further ones, in float64, where no deterministic bound on the rest is in sight
KRYLOV_PRODUCT_SHARE = 2e-3  # of tol, for the error of approximate products: it enters twice, times sqrt(columns)

DEFAULT_MEMORY = 2 << 30
KEPT_MATRIX = 64 << 20
"""Bytes up to which the krylov route holds K itself."""
MAX_FEATURES = 8192
MORE_THAN_ROWS = 2048
"""Features that a map may have where the rows are fewer: their D x D moment takes half a second at most."""


@dataclass(frozen=True)
class Look:
    """What a look at a few rows of the sample tells before anything is run.

    Attributes
    ----------
    shares : ndarray
        Estimates of lambda_1 >= lambda_2 >= ... over tr K.
    probe : RankProbe or None
        Pivots needed for a residual trace; None where the kernel is not semidefinite.
    """

    shares: np.ndarray
    probe: RankProbe | None

    def share(self, i: int) -> float:
        """lambda_i / tr K, i = 1, 2, ...; 0 beyond what the look resolved."""
        return float(self.shares[i - 1]) if i <= len(self.shares) else 0.0

    def spectrum(self, n: int) -> tuple[np.ndarray, float]:
        """The shares of n rows, as many as the look resolved, and the size of each beyond them.

        What of the trace is spread over ever more directions, as the rows grow in number (all of it, for a narrow
        kernel), adds 1/s of itself to each share of s rows, and only 1/n to one of n.
        """
        s = len(self.shares)
        half = (s + 1) // 2
        spread = s * float(self.shares[half : s - 1].mean()) if s > 8 else 0.0
        return np.maximum(self.shares[:half] - spread * (1 / s - 1 / n), spread / n), spread / n


def look_at(
    kernel: Kernel, data: Summary, residual: float = 1e-12, *, pivots: bool = True, shares: bool = True
) -> Look:
    """A few milliseconds with some hundred rows of the sample; half of them for the ``shares``."""
    few = data.n_samples < 8192  # a look that costs less than what it decides about
    probe = None
    if kernel.positive_semidefinite and pivots:
        sizes = (128, 512) if few else (256, 1024)
        probe = probe_rank(kernel, data, residual, np.random.default_rng(0), max_probe=sizes[0], sample_rows=sizes[1])
    return Look(_shares(kernel, data, few) if shares else np.zeros(0), probe)


def _shares(kernel: Kernel, data: Summary, few: bool) -> np.ndarray:
    X = data.sample[np.linspace(0, len(data.sample) - 1, min(192 if few else 384, len(data.sample))).astype(np.intp)]
    K = np.array(kernel.block(X, X), dtype=np.float64)
    trace = float(np.trace(K))
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    with parallel.blas_threads():  # for so few rows a second thread does nothing but wait, on a busy machine a second
        values = np.linalg.eigvalsh((K + K.T) / 2)[::-1] if np.isfinite(K).all() else np.zeros(1)
    return np.maximum(values, 0.0) / trace if trace > 0 else np.zeros(1)


def make_plan(
    kernel: Kernel,
    data: Summary,
    rows: Rows,
    c: int | float | None,
    *,
    tol: float,
    method: str = "auto",
    features: str = "auto",
    products: str = "auto",
    memory_limit: int | None = None,
    keep_scores: bool = True,
) -> Plan:
    """Choose among dense, features and krylov.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    data : Summary
    rows : Rows
        Only handed on to offers that draw more of them than the sample holds; nothing is read here.
    c : int, float or None
    tol : float
        Width of an eigenvalue's interval over the largest eigenvalue.
    method, features, products : str
        "auto", or the name to force.
    memory_limit : int, optional
        Bytes.
    keep_scores : bool
        Whether the scores are to be held in memory.

    Raises
    ------
    ValueError
        No route fits; the text names the obstacle of each.
    """
    limit = DEFAULT_MEMORY if memory_limit is None else memory_limit
    k = c if isinstance(c, int) else min(50, data.n_samples)
    # of a kernel's own map by name, and no other route, the look at pivots would tell nothing
    look = look_at(kernel, data, pivots=method != "features" or features in ("auto", "pivots"))
    candidates = []
    if method in ("auto", "dense"):
        candidates.append(dense_candidate(data, rows, c, limit))
    if method in ("auto", "krylov"):
        candidates += _krylov_candidates(kernel, look, data, rows, c, k, tol, limit, products)
    if method in ("auto", "features") and kernel.positive_semidefinite:
        others = [x.seconds for x in candidates if not x.obstacle]
        candidates += _feature_candidates(
            kernel,
            data,
            rows,
            look,
            c,
            k,
            tol,
            limit,
            features,
            others,
            forced=method == "features",
            scores=keep_scores,
        )
    found = _choose(candidates, method, data.n_samples, c)
    if rows.sequential and found.method != "features":
        size = readable_size(_rows_size(rows, data))
        found = replace(found, reason=f"{found.reason}; loads all rows ({size}), which come in order only")
    return found


def most_pivots(data: Summary, rows: Rows, c: int | float | None, memory_limit: float | None, keep_scores: bool) -> int:
    """To which a map of pivots may grow within the limit."""
    limit = DEFAULT_MEMORY if memory_limit is None else memory_limit
    most, scores = min(MAX_FEATURES, data.n_samples), _score_bytes(rows, data, keep_scores)
    return footprint.largest_map(data, rows, _to_hold(c, data, None), limit, most, pivots=True, scores=scores)[0]


def _to_hold(c: int | float | None, data: Summary, look: Look | None) -> int:
    """Components to count memory for; of a fraction as many as a look lets expect, and some more."""
    if c is None or isinstance(c, int):
        return data.n_samples if c is None else c
    found = 0.0
    if look is not None and len(look.shares) and look.shares.sum() > 0:
        found = float(np.searchsorted(np.cumsum(look.shares) / look.shares.sum(), c)) + 1
    return min(data.n_samples, max(50, int(1.3 * found) + 10))


def plan_for_map(
    feature_map: FeatureMap,
    name: str,
    data: Summary,
    rows: Rows,
    c: int | float | None,
    *,
    memory_limit: int | None,
    keep_scores: bool,
) -> Plan:
    """The plan where the feature map is given."""
    limit = DEFAULT_MEMORY if memory_limit is None else memory_limit
    D = feature_map.n_features
    dense = type(feature_map).new_moments is FeatureMap.new_moments
    offer = Offer(
        name, Cost(n_features=D, row_flops=2.0 * D, moment_flops=None if dense else 2.0 * D), lambda _: feature_map
    )
    k = c if isinstance(c, int) else min(50, data.n_samples)
    found = _feature_candidate(offer, data, rows, k, _to_hold(c, data, None), limit, keep_scores)
    plan = _choose([found], "features", data.n_samples, c)
    return replace(plan, reason="the feature map of the model given as like")


def _rows_size(rows: Rows, data: Summary) -> float:
    """Bytes of the rows where they have to be loaded for random access."""
    return float(data.n_samples * data.n_features * rows.dtype.itemsize) if rows.sequential else 0.0


def dense_candidate(data: Summary, rows: Rows, c: int | float | None, limit: float) -> Candidate:
    n, few = data.n_samples, isinstance(c, int) and not takes_all(data.n_samples, c)
    seconds = n * n / 2 / entry_rate(data.n_features) + n * n / ROW_RATE
    seconds += (4 / 3 if few else 6) * float(n) ** 3 / EIGEN_RATE + OVERHEAD
    memory = footprint.dense_bytes(data, rows, c)
    return Candidate("dense", "LAPACK", seconds, memory, obstacle=_too_much(memory, limit))


def _feature_candidates(
    kernel: Kernel,
    data: Summary,
    rows: Rows,
    look: Look,
    c: int | float | None,
    k: int,
    tol: float,
    limit: float,
    name: str,
    others: list[float],
    *,
    forced: bool,
    scores: bool,
) -> list[Candidate]:
    n = data.n_samples
    hold, each = _to_hold(c, data, look), _score_bytes(rows, data, scores)
    surely, _ = footprint.largest_map(data, rows, hold, limit, MAX_FEATURES, pivots=False, scores=each)
    # scores that don't fit are an obstacle of their own
    _, largest = footprint.largest_map(data, rows, hold, limit, MAX_FEATURES, pivots=False, scores=0.0)
    pivots = most_pivots(data, rows, c, limit, scores)
    residual = min(0.5 * tol * look.share(1), 1.0)
    # a moment held as an operator costs neither n D^2 nor D^3: cheap to look for, and what it costs limits the others
    held = [
        x
        for x in ([] if name == "pivots" else kernel.feature_maps(data, residual, 1))
        if x.cost.moment_flops is not None and name in ("auto", x.name)
    ]
    others = others + [_feature_seconds(x, data, k) for x in held if x.cost.memory <= limit]
    if others and not forced and name == "auto":
        # a map whose second moment alone costs more than another whole route is not worth looking for
        largest = min(largest, int(np.sqrt(min(others) * SYRK_RATE / n)) + 1)
        pivots = min(pivots, largest)
    offers: list[Offer] = held if name != "auto" else []
    while not offers:
        # how many features a map has is not always known before it is made: first those that fit in any case
        offers = offers_of_maps(kernel, data, rows, look, residual, min(surely, largest), name, most=pivots)
        if not offers and surely < largest:
            offers = offers_of_maps(kernel, data, rows, look, residual, largest, name, most=pivots)
        if offers or not forced or residual >= 1.0:
            break
        # asked for: the best that fits, and the interval says how good that is
        residual = min(max(10 * residual, 1e-15), 1.0)
    if not offers:
        text = f"no map reaches tol={tol:g} within {largest} features"
        if name != "auto":
            known = sorted({"pivots", *(x.name for x in kernel.feature_maps(data, 1.0, largest))} - {name})
            text = f"there is no map of this name within {largest} features, but {' and '.join(map(repr, known))}"
            text = with_near(text, name, known)
        return [Candidate("features", name if name != "auto" else "any", 0.0, 0.0, obstacle=text)]
    found = [_feature_candidate(offer, data, rows, k, hold, limit, scores) for offer in offers]
    return [replace(x, obstacle=x.obstacle or _too_many(x.offer, n)) for x in found]


def _too_many(offer: Any, n: int) -> str:
    """Why a map with a second moment of its own size is not for so few rows; empty where it is."""
    D = offer.cost.n_features
    if offer.cost.moment_flops is not None or D <= max(n, MORE_THAN_ROWS):
        return ""
    return f"has {D} features, and {n} rows have {n - 1} components at most: method='dense' takes the {n} x {n} matrix"


def _feature_candidate(
    offer: Offer, data: Summary, rows: Rows, k: int, hold: int, limit: float, scores: bool
) -> Candidate:
    """``k`` components count for its seconds, ``hold`` for its memory."""
    D = offer.cost.n_features
    each = _score_bytes(rows, data, scores)
    more: dict[str, Any] = {
        "own": offer.cost.memory,
        "dense": offer.cost.moment_flops is None,
        "pivots": offer.name == "pivots",
    }
    without, memory = (footprint.map_bytes(data, rows, D, hold, scores=size, **more) for size in (0.0, each))
    obstacle = _too_much(memory, limit)
    if obstacle and without <= limit:
        held = readable_size(each * min(hold, D))
        obstacle += f", of which scores are {held}: return_scores=False, or out=, does without"
    return Candidate("features", offer.name, _feature_seconds(offer, data, k), memory, D, obstacle, offer)


def _score_bytes(rows: Rows, data: Summary, kept: bool) -> float:
    """Of the scores of one component, where they are kept in memory."""
    return (4.0 if rows.dtype == np.float32 else 8.0) * data.n_samples if kept else 0.0


def _feature_seconds(offer: Offer, data: Summary, k: int) -> float:
    n, d, D = data.n_samples, data.n_features, offer.cost.n_features
    if offer.cost.moment_flops is not None:
        seconds = n * ((offer.cost.moment_flops + k * offer.cost.row_flops) / FEATURE_RATE + 4 * d / ROW_RATE)
        return seconds + offer.cost.setup_flops / GEMM_RATE + OVERHEAD
    form = offer.cost.row_flops / FEATURE_RATE
    seconds = n * (2 * form + D * D / SYRK_RATE + 2.0 * D * k / GEMM_RATE + 4 * d / ROW_RATE)
    return seconds + offer.cost.setup_flops / GEMM_RATE + 4 / 3 * float(D) ** 3 / EIGEN_RATE + OVERHEAD


def offers_of_maps(
    kernel: Kernel,
    data: Summary,
    rows: Rows,
    look: Look,
    residual: float,
    largest: int,
    name: str = "auto",
    *,
    most: int | None = None,
) -> list[Offer]:
    """What the kernel offers, and pivoted Cholesky, which works for any positive semidefinite kernel."""
    most = largest if most is None else most
    if name not in ("auto", "pivots"):
        return [x for x in kernel.feature_maps(data, residual, largest) if x.name == name]
    assert look.probe is not None
    cost = look.probe.cost(residual, kernel_flops=data.n_features + KERNEL_FLOPS)
    # a map with more features than pivots needs pays only where forming them is cheaper: up to twice as many
    enough = min(largest, 2 * cost.n_features + 1000)
    offers = [] if name == "pivots" else list(kernel.feature_maps(data, residual, enough))
    if cost.n_features <= most:
        offers.append(_pivots(kernel, data, rows, cost, residual, most))
    return offers


def _pivots(kernel: Kernel, data: Summary, rows: Rows, cost: Cost, residual: float, largest: int) -> Offer:
    def build(sample: np.ndarray) -> FeatureMap:
        # judged on rows that are not pivots: several of these for each pivot
        # (a row of weight zero may lie where the bounds of the others don't hold: the sample has none)
        more = 4 * cost.n_features > len(sample) and rows.weights is None
        return pivot_map(
            kernel,
            rows if more else sample,
            tol=0.9 * residual,  # its own rounding comes on top
            max_features=largest,
            rng=np.random.default_rng(0),
            n_samples=data.n_samples,
            sample_rows=max(4 * cost.n_features, len(sample)),
            entry_error=kernel.entry_error(data, np.dtype(np.float64)),
        )

    return Offer("pivots", cost, build)


def small_offers(kernel: Kernel, data: Summary, rows: Rows, residual: float, largest: int) -> list[Offer]:
    """Pivots without a look, for few rows of one coordinate: methods on projections ask for these hundreds of times.

    On a line the spectrum of a translation-invariant kernel falls fast, no other map has fewer features, and choosing
    the pivots among all rows costs less than a look at some of them.
    """
    if data.n_features > 1 or data.n_samples > len(data.sample) or kernel.translation != "kernel":
        return []
    return [_pivots(kernel, data, rows, Cost(data.n_samples), residual, largest)]


def start_features(look: Look, data: Summary, k: int, pass_seconds: float) -> int:
    """Pivots of the map that a Krylov run starts from.

    Few, so that its pass over rows costs a fraction of one over pairs; more where these would prove that nothing of
    the size of lambda_k was left out (residual trace at most 0.4 lambda_k), at the price of a pass or two over pairs.
    """
    if look.probe is None:
        return 0
    n = data.n_samples
    few = min(1000.0, max(2.0 * k, 2.0 * np.sqrt(n)))
    if look.probe.curve[min(int(few), len(look.probe.curve) - 1)] > 0.5:
        return 0  # most of the trace would be left out: random columns start as well, and cost nothing
    enough = look.probe.rank(0.4 * look.share(k)) if look.share(k) > 0 else np.inf
    worth = np.sqrt(1.5 * pass_seconds * SYRK_RATE / (3.0 * n))
    return int(min(1.2 * enough if 1.2 * enough <= worth else few, n // 4, MAX_FEATURES))


def _krylov_candidates(
    kernel: Kernel,
    look: Look,
    data: Summary,
    rows: Rows,
    c: int | float | None,
    k: int,
    tol: float,
    limit: float,
    name: str,
) -> list[Candidate]:
    """Block Krylov on exact products, and on each approximate one that is accurate enough for ``tol``."""
    n = data.n_samples
    block = k + 10
    # an error of at most e in each entry moves an eigenvalue by at most n e
    size = float(kernel.diagonal(data.sample).mean())
    allowed = KRYLOV_PRODUCT_SHARE * tol * look.share(1) * size
    found = []
    for product in products_for(
        kernel, data, data, allowed if allowed > 0 else None, square=True, columns=block, name=name
    ):
        exact = product.name == "exact"
        search, double = _passes(look, n, k, tol, trace=kernel.positive_semidefinite, norm=exact)
        seconds = product.seconds(search / (2 if exact else 1) + double) + KRYLOV_OVERHEAD
        seconds += _rayleigh_ritz_seconds(n, default_block_size(n, k), k, search, double)
        D = start_features(look, data, k, product.once)
        seconds += 3.0 * n * D * D / SYRK_RATE
        kept = _kept_matrix(kernel, n) if exact else 0.0

        def needed(D: int, product: Product = product) -> float:
            return footprint.krylov_bytes(data, rows, k, D, product.least_memory)

        while D and needed(D) > limit:  # a start is worth having, and can be done without
            D //= 2
        memory = needed(D)
        if kept and memory + kept <= limit:
            memory, product = memory + kept, replace(product, memory=product.memory + kept)
        obstacle = _too_much(memory, limit)
        if c is None:
            obstacle = "all components need the dense route or an exact feature map"
        elif not isinstance(c, int) and look.probe is None:
            obstacle = "a fraction of the variance needs a positive semidefinite kernel, or the dense route"
        elif k >= (present := n if rows.weights is None else np.count_nonzero(rows.weights)):
            obstacle = f"finds at most {present - 1} components"
        found.append(Candidate("krylov", product.name, seconds, memory, D, obstacle, product))
    return found


def _passes(look: Look, n: int, k: int, tol: float, *, trace: bool, norm: bool) -> tuple[float, float]:
    """Passes of a krylov run that the look predicts: of its search, and in float64.

    A block of b columns gains a factor exp(2 acosh(2 lambda_k / lambda_(b+1) - 1)) a pass (Chebyshev). What remains is
    to be proved less than lambda_k: by its trace, or its norm, which exact products measure; where neither will do
    within the columns that the solver keeps, a random exploration follows.
    """
    shares, beyond = look.spectrum(n)
    b = default_block_size(n, k)
    last, after = (float(shares[i - 1]) if i <= len(shares) else beyond for i in (k, b + 1))
    if not last > 0.0:
        return 2.5, KRYLOV_DOUBLE  # nothing is known
    gain = 2.0 * math.acosh(max(2.0 * last / max(after, 1e-3 * last) - 1.0, 1.02))
    passes = 1.0 + max(math.log(last / (float(shares[0]) * tol)), 1.0) / gain
    kept = min(max(8 * k, k + 60), n - 1)
    left, rest = shares[kept:], max(n - max(kept, len(shares)), 0)
    mu = min(
        float(left.sum()) + beyond * rest if trace else np.inf,
        math.sqrt(float(left @ left) + beyond**2 * rest) if norm else np.inf,
    )
    exploring = 0.0 if mu <= 0.7 * last else KRYLOV_EXPLORING
    return min(max(passes - KRYLOV_DOUBLE, 1.0), 18.0), KRYLOV_DOUBLE + exploring


def _rayleigh_ritz_seconds(n: int, block: int, k: int, search: float, double: float) -> float:
    """Of a krylov run: on the space of the search, then on the columns that are kept of it and each block added."""
    most = min(n - 1, max(640, k + 16 * block))
    found = min(block * search, most)
    seconds = 6.0 * n * found**2 / GEMM_RATE
    columns = min(found, max(8.0 * k, k + 60.0)) + block
    for i in range(math.ceil(double)):
        seconds += min(double - i, 1.0) * ritz_seconds(n, min(columns + i * block, most))
    return seconds


def _kept_matrix(kernel: Kernel, n: int) -> float:
    """Bytes of K where it is worth holding: its values come from ``block``, in Python, and are dear; the compiled tiles
    are made again in each pass, in less time than a matrix of float64 takes to read."""
    size = 8.0 * n * n
    return size if size <= KEPT_MATRIX and not is_compiled(kernel) else 0.0


def krylov_room(data: Summary, rows: Rows, way: Candidate, c: int, memory_limit: float | None) -> tuple[float, int]:
    """(bytes for the basis, columns that an approximate product multiplies at once): what the limit leaves for them."""
    limit = DEFAULT_MEMORY if memory_limit is None else memory_limit
    product = way.offer
    assert isinstance(product, Product)
    n = data.n_samples
    block = default_block_size(n, c)
    least = basis_bytes(n, least_columns(n, c, block), block)
    spare = max(0.0, limit - footprint.krylov_bytes(data, rows, c, way.n_features, product.least_memory))
    columns = LEAST_COLUMNS
    if product.column_memory:  # half of it, as far as a block of columns goes
        columns += int(min(max(0, 2 * block - columns), 0.5 * spare / product.column_memory))
        spare -= (columns - LEAST_COLUMNS) * product.column_memory
    return least + spare / (2.0 if rows.weights is not None else 1.0), columns


def _too_much(memory: float, limit: float) -> str:
    return f"needs {readable_size(memory)}, the limit is {readable_size(limit)}" if memory > limit else ""


def _choose(candidates: list[Candidate], method: str, n: int, c: object) -> Plan:
    possible = [x for x in candidates if not x.obstacle]
    if not possible and not candidates:
        raise ValueError(
            f"method={method!r} is not possible: the kernel is not positive semidefinite, so it has no feature map; "
            "take method='auto'"
        )
    if not possible:
        reasons = "; ".join(f"{x.label}: {x.obstacle}" for x in candidates)
        what = "no route fits" if method == "auto" else f"method={method!r} is not possible"
        raise NoRouteError(
            f"{what} for {n} rows and c={c!r} ({reasons}); raise memory_limit or tol, ask for fewer components, or "
            "take another method"
        )
    best = min(possible, key=lambda x: x.seconds)
    others = [x for x in possible if x is not best]
    if method != "auto" and not others:
        reason = "asked for"
    elif not others:
        reason = "the only route that fits"
    else:
        second = min(others, key=lambda x: x.seconds)
        reason = f"predicted {best.seconds:.2g} s, against {second.seconds:.2g} s for {second.label}"
    return Plan(best.method, best.name, reason, tuple(candidates))

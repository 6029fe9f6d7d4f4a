"""The candidates for a problem, with their predicted seconds and bytes: LAPACK, feature maps, block Krylov.

Predictions are counts (flops, kernel values, bytes) over the rates of ``products.rates``. Quantities that no probe of
a few rows has measured yet are taken for the best: predicted costs are then lower bounds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ..base.lapack import takes_all
from ..base.protocol import Cost, Offer
from ..base.spelling import with_suggestion
from ..maps.toeplitz import DENSE
from ..model.plan import Candidate, RunSettings, readable_size
from ..products.exact import kept_bytes
from ..products.near import PROBE_ROWS
from ..products.rates import RATE, eigen_seconds, is_compiled, takes_blas, value_seconds
from ..solve.beyond import BELOW, lanczos_steps
from ..solve.block_krylov import SPARE
from ..solve.costs import (
    MOST_COLUMNS,
    basis_bytes,
    default_block_size,
    factorising_seconds,
    least_columns,
    look_seconds,
    rest_bytes,
    step_seconds,
    usual_columns,
)
from ..solve.filtered import NARROWEST
from ..solve.moments import narrow_block
from ..solve.near import near_seconds
from ..solve.proofs import EXPLORING_PASSES, SPACE
from ..solve.small import seconds_of_small
from . import footprint
from .dense import takes_products
from .growth import prices_of
from .krylov import most_passes, start_seconds
from .look import NOTHING_SEEN, PROBE_FRACTION, SpectrumProbe
from .narrowing import MORE_VECTORS, vectors_bytes
from .offers import MAX_FEATURES, PivotOffer, of_at_most, offers_of_maps, offers_within, pivot_count
from .problem import Problem
from .product_choice import ProductCandidate, products_for

LAST = 1.5
"""Passes in float64; those before are in float32, twice as fast."""
UNPROVED = 1.25
"""Factor on the seconds of a run that trace and norm will not prove: another candidate may replace it."""
PRODUCT_SHARE = 2e-3
"""Fraction of tol for the error of approximate products: it enters twice, times the root of the columns."""
SMALL = 2048
"""Rows up to which compiled kernel values are held in float64, in any number of columns, and features that a map may
have where the rows are fewer."""
SMALL_MATRIX = 64 << 20
"""Bytes up to which K itself is held, of a kernel without compiled tiles."""
NO_MORE = 1e-9
"""Residual trace over trace below which more pivots cost more than they gain, at any budget: down to 1e-11, say,
took 1.5 times as long for smooth kernels."""


# LAPACK ------------------------------------------------------------------------------------------------------


def dense_candidate(problem: Problem) -> Candidate:
    wanted, n = problem.target.n_components, problem.data.n_samples
    few = wanted if wanted is not None and not takes_all(n, wanted) else None
    seconds = n * n * (0.5 * value_seconds(problem.kernel, problem.data.n_features) + 1.0 / RATE.rows) + RATE.fit
    lapack = eigen_seconds(n, few)
    seconds += min(lapack, seconds_of_small(n, wanted or n)) if takes_products(problem) else lapack
    memory = footprint.dense_bytes(problem.data, problem.rows, wanted)
    return Candidate("dense", "LAPACK", seconds, memory, obstacle=_too_much(memory, problem.budget.memory))


# feature maps ------------------------------------------------------------------------------------------------


def feature_candidates(problem: Problem, look: SpectrumProbe, most_seconds: float) -> list[Candidate]:
    """The feature maps for ``tol``, none of which costs more than another route."""
    kernel, target = problem.kernel, problem.target
    if kernel.without_maps:
        return []
    if not target.tol_is_required and target.features in ("auto", "pivots"):
        assert target.max_features is not None
        threads, hold = problem.budget.n_threads, components_held(problem, None)
        offers = offers_within(
            kernel, problem.data, problem.rows, NO_MORE, target.max_features, target.features, threads
        )
        pivots = _largest_map(problem, hold, pivots=True)
        return [feature_candidate(problem, x, hold, pivots=pivots) for x in offers]
    name, most = target.features, MAX_FEATURES
    if name == "auto" and target.method != "features":
        most = min(most, _features_within(most_seconds, problem.data.n_samples))
    offers = [x for x in kernel.feature_maps(problem.data, 0.0, most) if x.cost.residual == 0.0]
    offers = of_at_most([x for x in offers if name in ("auto", x.name)], target.max_features)
    if target.free:
        offers = [x for x in offers if _feature_seconds(problem, x, look) <= most_seconds]
    hold = components_held(problem, look)
    # where nothing was asked for, what does not fit is a candidate with an obstacle
    largest = most if target.free else _largest_map(problem, hold, most, pivots=False)
    pivots = 0 if look.probe is None else _largest_map(problem, hold, pivots=True)
    offers = [x for x in offers if x.cost.moment_flops is not None or x.cost.n_features <= largest]
    if offers and target.forced:
        pass  # nothing could follow a map that misses tol
    elif look.level and (look.share(1) > 0.0 or target.method == "features"):
        known = {x.name for x in offers}
        offers += [x for x in _truncated(problem, look, largest, pivots, most_seconds) if x.name not in known]
    if not offers:
        return [_no_map(problem, largest)] if target.method == "features" and look.level else []
    return [feature_candidate(problem, x, hold, look, pivots) for x in offers]


def _truncated(problem: Problem, look: SpectrumProbe, largest: int, pivots: int, most_seconds: float) -> list[Offer]:
    target, data, kernel = problem.target, problem.data, problem.kernel
    residual = _residual_allowed(target.tol, look.share(1), look.first)
    if target.free and 0.0 < residual < 1.0 and data.n_features == 1:
        # on a line the order is the number of features, and the search for one in the thousands takes milliseconds
        held = [x for x in kernel.feature_maps(data, residual, 1) if x.cost.moment_flops is not None]
        prices = [_feature_seconds(problem, x, look) for x in held if not _misses_by_rounding(x)]
        largest = min([largest, *(_features_within(x, data.n_samples) for x in prices)])
    pivots = min(pivots, largest)
    while True:
        offers = offers_of_maps(
            kernel,
            data,
            problem.rows,
            look,
            residual,
            largest,
            target.features,
            most=pivots,
            count=pivot_count(problem, look, residual, most_seconds),
            seconds=(lambda x: _feature_seconds(problem, x, look)) if target.free else None,
            n_threads=problem.budget.n_threads,
        )
        if problem.keeps_moments and target.features == "auto":
            # moments that are no matrix belong to the box of these rows: what will be merged or updated takes any rows
            offers = [x for x in offers if x.cost.moment_flops is None] or offers
        offers = of_at_most(offers, target.max_features)
        fit = [x for x in offers if not _too_many(x, data.n_samples, target.features)]
        if fit or target.method != "features" or residual >= 1.0:
            return offers
        # asked for: the best that fits, and the interval says how good that is
        residual = min(max(10.0 * residual, 1e-15), 1.0)


def _residual_allowed(tol: float, share: float, first: float) -> float:
    """Residual trace over trace that a map may have: ``share`` is lambda_1 / tr K of a few rows, ``first`` that of all.

    The residual of a map and the errors of its transforms may take half of tol; the other half allows for an
    overestimated fraction.
    """
    return min(0.5 * tol * min(share, first), 1.0)


def _no_map(problem: Problem, largest: int) -> Candidate:
    name = problem.target.features
    if name == "auto":
        text = f"no map reaches tol={problem.target.tol:g} within {largest} features"
        return Candidate("features", "any", 0.0, 0.0, obstacle=text)
    # some maps are offered for a loose tolerance only, others (fourier) for one below 1
    most = max(largest, MAX_FEATURES)
    offers = [x for tol in (1.0, 0.1) for x in problem.kernel.feature_maps(problem.data, tol, most)]
    known = sorted({"pivots", *(x.name for x in offers)})
    if name not in known:
        names = ", ".join(map(repr, known))
        text = f"features={name!r}: {problem.kernel!r} has no map of this name on these rows; it has {names}"
        raise ValueError(with_suggestion(text, name, known))
    return Candidate("features", name, 0.0, 0.0, obstacle=f"needs more than {largest} features")


def _too_many(offer: Offer, n: int, forced: str) -> str:
    """Why a map with a second moment of its own size is not for so few rows; empty where it is."""
    D = offer.cost.n_features
    if offer.cost.moment_flops is not None or D <= max(n, SMALL):
        return ""
    without = "" if forced == "auto" else f"leave features={forced!r} out, and "
    return f"has {D} features, and {n} rows have {n - 1} components at most: {without}method='dense' takes the matrix"


def feature_candidate(
    problem: Problem, offer: Offer, hold: int, look: SpectrumProbe = NOTHING_SEEN, pivots: int = 0
) -> Candidate:
    """A map with its predicted cost, and memory for c components; ``pivots``: the number of pivots that fit."""
    D, limit, each = offer.cost.n_features, problem.budget.memory, _score_bytes(problem)

    def needed(scores: float) -> float:
        return footprint.map_bytes(
            problem.data,
            problem.rows,
            D,
            hold,
            map_memory=offer.cost.memory,
            dense=offer.cost.moment_flops is None,
            pivots=offer.name == "pivots",
            scores=scores,
        )

    memory = needed(each)
    of_rest = offer.rows if isinstance(offer, PivotOffer) else 0
    memory += vectors_bytes(problem.data.n_samples, hold + MORE_VECTORS) if of_rest else 0.0
    obstacle = _too_much(memory, limit)
    if obstacle and needed(0.0) <= limit:
        held = readable_size(each * min(hold, D))
        obstacle += f", of which scores are {held}: return_scores=False, or out=, does without"
    obstacle = _too_many(offer, problem.data.n_samples, problem.target.features) or obstacle
    seconds = _feature_seconds(problem, offer, look)
    if of_rest:
        seconds += prices_of(problem).some_or_all(of_rest, hold + MORE_VECTORS, hold)
    fewest = min(problem.target.n_components or 1, problem.rank)
    if isinstance(offer, PivotOffer) and pivots < fewest and not obstacle:
        obstacle = f"{readable_size(limit)} have room for {pivots} pivots, and c asks for {fewest} at least"
    left = RunSettings(features=pivots, rows=of_rest)
    return Candidate(
        "features",
        offer.name,
        seconds,
        memory,
        D,
        obstacle,
        offer,
        left,
        misses=_misses_by_rounding(offer),
    )


def _misses_by_rounding(offer: Offer) -> bool:
    """True if the rounding of its transforms and products alone exceeds its permitted residual."""
    return offer.cost.rounding > offer.cost.residual > 0.0


def _features_within(seconds: float, n: int) -> int:
    """Features whose second moment costs as much: of a map with more the moment alone costs more than another route."""
    return int(min(np.sqrt(seconds * RATE.squares / n), MAX_FEATURES)) + 1


def _largest_map(problem: Problem, hold: int, most: int = MAX_FEATURES, *, pivots: bool) -> int:
    """Number of features of a map that fit into memory; with the scores, where it may get more ``pivots``."""
    scores = _score_bytes(problem) if pivots else 0.0
    most = most if problem.target.max_features is None else min(most, problem.target.max_features)
    most = min(most, problem.data.n_samples) if pivots else most
    return footprint.largest_map(
        problem.data, problem.rows, hold, problem.budget.memory, most, pivots=pivots, scores=scores
    )


def components_held(problem: Problem, look: SpectrumProbe | None) -> int:
    """Number of components to count memory for; of a fraction the expected number, and some more."""
    c, wanted, n = problem.target.c, problem.target.n_components, problem.data.n_samples
    if c is None or wanted is not None:
        return n if wanted is None else wanted
    expected = 0.0
    if look is not None and len(look.shares) and look.shares.sum() > 0:
        expected = float(np.searchsorted(np.cumsum(look.shares) / look.shares.sum(), c)) + 1
    return min(n, max(50, int(1.3 * expected) + 10))


def _components_timed(problem: Problem, look: SpectrumProbe = NOTHING_SEEN) -> int:
    """Number of components to count seconds for; of a fraction the expected number."""
    c, wanted, n = problem.target.c, problem.target.n_components, problem.data.n_samples
    if wanted is not None:
        return wanted
    if c is None or not (look.level and look.spectrum[0][0] > 0.0):
        return min(50, n)
    return min(look.count_of(c), problem.rank)


def _score_bytes(problem: Problem) -> float:
    """Bytes of the scores of one component, where they are kept in memory."""
    return float(problem.dtype.itemsize) * problem.data.n_samples if problem.keeps_scores else 0.0


def _feature_seconds(problem: Problem, offer: Offer, look: SpectrumProbe) -> float:
    n, d, D = problem.data.n_samples, problem.data.n_features, offer.cost.n_features
    k = _components_timed(problem, look)
    if offer.cost.moment_flops is not None:
        seconds = n * ((offer.cost.moment_flops + k * offer.cost.row_flops) / RATE.features + 4 * d / RATE.rows)
        seconds += offer.cost.setup_flops / RATE.features + RATE.fit
        return seconds + _iterated_seconds(problem, offer.cost, look)
    quick = offer.cost.quick_flops if problem.takes_quick_moments else None
    moment = D * D / RATE.squares if quick is None else quick / RATE.products
    form = offer.cost.row_flops / RATE.features
    seconds = n * (2.0 * form + moment + 2.0 * D * k / RATE.multiplications + 4 * d / RATE.rows)
    return seconds + offer.cost.setup_flops / RATE.features + eigen_seconds(D, k) + RATE.fit


def _iterated_seconds(problem: Problem, cost: Cost, look: SpectrumProbe) -> float:
    """Predicted seconds of the eigenvectors of a second moment that is stored as an operator."""
    size, k = int(cost.moment_size or cost.n_features), _components_timed(problem, look)
    if size <= DENSE:  # is formed
        return size * cost.product_flops / RATE.features + eigen_seconds(size, k)
    block = narrow_block(size)
    most = max(MOST_COLUMNS, k + 4 * block) // block  # no more fit into memory
    expected = _expected(problem, look, block, most, norm=True)
    passes = max(min(x.search + (0.0 if x.proved else x.exploring) for x in expected), k / block + 2.0)
    passes = min(passes, float(most))
    columns = min(passes * block, size)
    algebra = passes * (step_seconds(size, 0.5 * columns, block) + look_seconds(0.7 * columns))
    return passes * (block * cost.product_flops / RATE.features) + algebra


# block Krylov ------------------------------------------------------------------------------------------------


class Expected(NamedTuple):
    """Predicted work of a run of block Krylov.

    Attributes
    ----------
    search : float
        Passes of the search.
    columns : float
        Of the basis in the end.
    proved : bool
        Trace or norm prove that nothing was missed.
    exploring : float
        Passes of an exploration that proves it otherwise.
    """

    search: float
    columns: float
    proved: bool = True
    exploring: float = EXPLORING_PASSES


def krylov_candidates(
    problem: Problem, look: SpectrumProbe, most_seconds: float, *, every: bool = False
) -> list[Candidate]:
    """Block Krylov on exact products, and on each approximate one that is accurate enough for ``tol``.

    Approximate ones take time to plan: they are left out where no product costs enough for that, or ``most_seconds``,
    those of another route, are less than the seconds of block Krylov without its products; with ``every`` they are not.
    """
    kernel, data, target = problem.kernel, problem.data, problem.target
    named = target.products not in ("auto", "exact")
    if named and not look.level:
        return []  # the error that they may have follows from the largest eigenvalue
    exact = _exact_products(problem)
    candidate = _krylov_candidate(problem, look, exact, None)
    near = None
    if exact.seconds(LAST) < most_seconds:  # for anything in place of the search
        near = _near_offer(problem, look, candidate.seconds)
    candidate = candidate if near is None else _krylov_candidate(problem, look, exact, near)
    if not named and not every:
        free = replace(exact, name="free", setup=0.0, once=0.0)
        dear = data.n_samples > SMALL or not is_compiled(kernel)
        worth = target.products == "auto" and look.share(1) > 0.0 and dear
        if not (worth and _krylov_candidate(problem, look, free, near).seconds < most_seconds):
            return [candidate]
    # an error of at most e in each entry moves an eigenvalue by at most n e
    share = min(look.share(1), look.first)
    allowed = PRODUCT_SHARE * target.tol * share * look.mean
    # computed kernel values err in exact products, too
    allowed = max(allowed, 2.0 * problem.entry_error)
    ways = products_for(
        kernel,
        data,
        data,
        allowed if allowed > 0 else None,
        square=True,
        columns=_components_timed(problem) + SPARE,  # they begin with a random block
        name=target.products,
        every=every,
        reason=f": an error of e in each kernel value moves an eigenvalue by up to N e, and this is "
        f"{PRODUCT_SHARE:g} of tol times the largest eigenvalue over N",
    )
    return [candidate if way.name == "exact" else _krylov_candidate(problem, look, way, near) for way in ways]


def _near_offer(problem: Problem, look: SpectrumProbe, seconds: float) -> Offer | None:
    """Products with the truncated matrix for the float32 phase, where block Krylov uses them and a probe costs little
    compared with ``seconds``."""
    target, n = problem.target, problem.data.n_samples
    wanted = target.n_components is not None and target.failure_probability > 0.0 and look.share(1) > 0.0
    if not wanted or n <= SMALL or not problem.kernel.positive_semidefinite or problem.rows.distributed:
        return None
    if PROBE_ROWS * problem.data.sample.size / RATE.rows > PROBE_FRACTION * seconds:
        return None
    return problem.kernel.coarse(problem.data, target.tol)


def _calls(passes: float) -> float:
    """Seconds of a run with so many passes of the search that no count shows."""
    return RATE.a_pass * (passes + LAST + 1.0)


def _exact_products(problem: Problem) -> ProductCandidate:
    return products_for(
        problem.kernel,
        problem.data,
        problem.data,
        None,
        square=True,
        columns=_components_timed(problem) + 10,
        name="exact",
    )[0]


def _krylov_candidate(problem: Problem, look: SpectrumProbe, way: ProductCandidate, near: Offer | None) -> Candidate:
    kernel, data, limit = problem.kernel, problem.data, problem.budget.memory
    n, exact, compiled = data.n_samples, way.name == "exact", is_compiled(kernel)
    k = _components_timed(problem)  # a run whose basis is full of too few components ends, and says so
    in_memory = _way_in_memory(problem, way, k) if exact else None
    way = in_memory or way
    held = in_memory is not None and compiled
    block = default_block_size(n, k, held=held)
    memory = footprint.krylov_bytes(data, problem.rows, k, way.memory(block))
    obstacle = _krylov_obstacle(problem, k) or _too_much(memory, limit)
    values = _values_kept(problem, memory, held=in_memory is not None) if exact else 0.0
    extra = 0.0 if in_memory is not None else values
    values = values if memory + extra <= limit else 0.0
    # a pass in float32 takes half as long, and over values that it keeps the first one alone makes these
    single = 0.5 if exact and (held or in_memory is None) else 1.0
    later = min(single * way.once, 2.0 * n * n * block / RATE.multiplications)

    def seconds_of(expected: Expected) -> float:
        makes = 1.0 if values and in_memory is None else expected.search
        seconds = way.seconds(single * makes + LAST) + (expected.search - makes) * later
        seconds += _algebra_seconds(problem, way, block, expected) + _calls(expected.search)
        if (exact or expected.proved) and not problem.rows.distributed:
            seconds += start_seconds(problem, block)
        return seconds * (1.0 if expected.proved else UNPROVED)

    most = most_passes(problem, in_memory=in_memory is not None)
    runs = [(seconds_of(x), x) for x in _expected(problem, look, block, most, norm=exact)]
    seconds, expected = min(runs, key=itemgetter(0))
    memory += min(extra, values)
    searching = np.inf if near is None or in_memory is not None else near_seconds(near.cost, n, k)
    beside = memory - values + (0.0 if near is None else near.cost.memory)
    searched = None
    if near is not None and LAST * way.once + way.setup + searching < seconds and beside <= limit:
        seconds, memory, values, searched = LAST * way.once + way.setup + searching, beside, 0.0, near
    left = _krylov_room(problem, way, k, memory)
    left = replace(left, values=values, near=searched, proved=look.level > 0 and expected.proved)
    return Candidate("krylov", way.name, seconds, memory, 0, obstacle, way, left)


def _krylov_obstacle(problem: Problem, k: int) -> str:
    """The reason why block Krylov cannot solve the problem at any memory, if any."""
    if problem.target.c is None:
        return "all components need the dense route or an exact feature map"
    if problem.target.n_components is None and not problem.kernel.positive_semidefinite:
        return "a fraction of the variance needs a positive semidefinite kernel, or the dense route"
    return f"finds at most {problem.rank} components" if k > problem.rank else ""


def _expected(problem: Problem, look: SpectrumProbe, block: int, passes: int, *, norm: bool) -> list[Expected]:
    """Predicted runs with blocks of ``block`` columns, in at most ``passes`` passes; ``norm``: products are exact,
    and measure the norm.
    """
    target, k = problem.target, _components_timed(problem, look)
    trace = problem.kernel.positive_semidefinite
    return _expected_of(look, k, block, passes, target.tol, target.failure_probability, trace=trace, norm=norm)


@lru_cache(maxsize=4)  # candidates differ in what a pass costs
def _expected_of(
    look: SpectrumProbe, k: int, block: int, passes: int, tol: float, failure: float, *, trace: bool, norm: bool
) -> list[Expected]:
    """The complement of the search is to be proved less than lambda_k: by its trace, or its norm, which exact products
    measure, after some more passes; or otherwise, as soon as the vectors have converged."""
    if not (look.level and look.spectrum[0][0] > 0.0):
        return [Expected(1.0, (1.0 + LAST) * block)]  # nothing is known
    n = look.n_samples
    most = min(n - 1, max(MOST_COLUMNS, k + 16 * block))
    shares, *behind = look.leading(most)
    first, after = float(shares[0]), float(shares[min(max(block, k), most - 1)])
    last = max(float(shares[min(k, most) - 1]), tol * first)  # of smaller ones a bound as wide as that will do
    # mu beyond the first columns, 1, 2, ...: sums from the smallest do not cancel
    by_trace, squares = (np.append(np.cumsum(x[:0:-1])[::-1], 0.0) + y for x, y in zip((shares, shares**2), behind))
    by_trace = by_trace if trace else np.full(most, np.inf)
    mu = np.minimum(by_trace, np.sqrt(squares + look.below**2)) if norm else by_trace
    low = np.flatnonzero(mu <= BELOW * last)
    converging = _converging(look, last, block, passes, tol)
    if shares[min(int(converging * block), most) - 1] > (1.0 - NARROWEST) * last:
        converging = float(passes)  # without a gap nothing proves that the vectors are those of the largest
    exploring = lanczos_steps(n, block, failure, 1.0 - after / (last + tol * first))
    exploring = max(exploring, EXPLORING_PASSES)
    ways = [(converging, False)]
    if len(low):
        ways.append((max(converging, SPACE * max(low[0] + 1, k) / block), True))
    return [Expected(min(x, float(passes)), min(x * block, most), proved, exploring) for x, proved in ways]


def _converging(look: SpectrumProbe, last: float, block: int, passes: int, tol: float) -> float:
    """Passes, of so many at most, after which the error of lambda_k, ``last``, is tol lambda_1.

    A block of b columns gains a factor exp(2 acosh(1 + 2 (lambda_k - lambda_(b+1)) / (lambda_(b+1) - lambda_n))) a pass
    (Chebyshev), of which a quarter counts. A random one begins with n / b times what it has of each vector. The longer
    the run, the more eigenvalues beyond the block it finds as well: two passes for each further block of them.
    """
    more = np.arange(passes // 2 + 1)  # further blocks
    shares, *_ = look.leading(min((len(more) + 1) * block, look.n_samples - 1))
    wanted = max(math.log(4.0 * look.n_samples / block * last / (float(shares[0]) * tol)), 1.0)
    after = shares[np.minimum((more + 1) * block, len(shares) - 1)]
    fall = np.maximum(last - after, 1e-12 * last) / np.maximum(after - look.least, 1e-3 * last)
    return float(np.min(1.0 + 2.0 * more + wanted / np.maximum(2.0 * np.arccosh(1.0 + 2.0 * fall), 1e-6)))


def _algebra_seconds(problem: Problem, way: ProductCandidate, block: int, expected: Expected) -> float:
    """Seconds of Rayleigh-Ritz in the search and after it, and of the bound on the complement.

    That bound is an exploration, or a factorisation of the complement, where trace and norm do not suffice.
    """
    n, steps, columns = problem.data.n_samples, max(expected.search, 1.0), expected.columns
    # the columns grow from one block to all
    seconds = steps * (step_seconds(n, 0.5 * columns, block) + 0.25 * look_seconds(columns, certified=False))
    kept = columns if expected.proved else min(2.0 * block, columns)  # the wanted vectors, and their residuals
    seconds += LAST * (step_seconds(n, kept, int(kept)) / 2.0 + look_seconds(kept))
    if expected.proved:
        return seconds
    passes, mean = expected.exploring, kept + 0.5 * expected.exploring * block
    exploring = passes * (way.once + step_seconds(n, mean, block) + look_seconds(min(mean, MOST_COLUMNS)))
    factorises = way.name == "exact" and rest_bytes(n, int(columns)) <= problem.budget.memory
    return seconds + (min(exploring, factorising_seconds(n, 2 * block, way.once)) if factorises else exploring)


def _way_in_memory(problem: Problem, way: ProductCandidate, k: int) -> ProductCandidate | None:
    """Exact products with a stored K; None where that saves no time, or does not fit.

    Of kernels without compiled tiles, whose values come from ``block``, in Python, a small K always is. Of compiled
    tiles half of K is, where the rows are few, or where their many columns make a value expensive.
    """
    kernel, n = problem.kernel, problem.data.n_samples
    d, compiled = problem.data.n_features, is_compiled(kernel)
    columns = default_block_size(n, k, held=compiled)
    once = 2.0 * n * n * columns / RATE.multiplications
    worth = n <= SMALL or takes_blas(d) if compiled else 8.0 * n * n <= SMALL_MATRIX
    size = kept_bytes(problem.kernel, n, d, 8 + 4) + 8.0 * n * d  # with those of a search; and all rows, shifted
    if not compiled:
        once += 8.0 * n * n / RATE.reads
    cost = replace(way.cost, memory=way.cost.memory + size)
    way_in_memory = replace(way, cost=cost, setup=way.setup + way.once + size / RATE.reads, once=once)
    memory = footprint.krylov_bytes(problem.data, problem.rows, k, way_in_memory.memory(columns))
    # with a basis that holds a bound on the complement: stored values without one save time, and lose the interval
    fits = memory + basis_bytes(n, usual_columns(n, k, columns), columns) <= problem.budget.memory
    return way_in_memory if worth and fits else None


def _values_kept(problem: Problem, memory: float, *, held: bool) -> float:
    """Bytes of the values of a search in float32, in addition to those of the run, where storing them saves time; else
    0.

    ``held``: True if the values are stored in float64, and these in addition.
    """
    n, d, compiled = problem.data.n_samples, problem.data.n_features, is_compiled(problem.kernel)
    # compiled tiles make a value of few columns of X again in less time than it takes to read
    worth = held or takes_blas(d) or not compiled
    size = kept_bytes(problem.kernel, n, d, 4) + (0.0 if held else 8.0 * n * d)
    here = held or not problem.rows.distributed  # other values of distributed rows are made where these are
    fits = held or memory + size <= problem.budget.memory
    return size if worth and here and fits else 0.0


def _krylov_room(problem: Problem, way: ProductCandidate, k: int, memory: float) -> RunSettings:
    """Bytes within the limit for the basis."""
    n = problem.data.n_samples
    block = default_block_size(n, k)
    least = basis_bytes(n, least_columns(n, k, block), block)
    spare = max(0.0, problem.budget.memory - memory)
    basis = least + spare / (2.0 if problem.rows.weights is not None else 1.0)
    return RunSettings(basis=basis, pass_seconds=way.once)


def _too_much(memory: float, limit: float) -> str:
    return f"needs {readable_size(memory)}, the limit is {readable_size(limit)}" if memory > limit else ""

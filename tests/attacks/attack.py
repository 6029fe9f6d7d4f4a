"""Attack every promise with random problems: an interval must hold the exact number, a call answer or refuse in words.

    python tests/attacks/attack.py [--only NAME ...] [--share 1] [--seed 0] [--first 0] [--minutes 10] [--failure 0.05]

Full scale, as in the default, takes hours; --share 0.1 runs a tenth of the cases, --only those attacks whose names hold
one of the words. test_attacks.py runs a fraction; the problems, their exact references and the checks are in
tests/support. Case 7 of seed 0 alone: --first 7 --cases 1. Needs kernels_contrib, scikit-learn, h5py, zarr, pyarrow,
pandas and dask.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import attack_cases
import certificate_cases
import clustering_cases
import command
import given_cases
import loose_cases
import merge_cases
import method_cases
import option_cases
import preimage_cases
import product_cases
import range_cases
import rounding_cases
import second_order_calls
import second_order_cases
import source_cases
import spe_cases
from tally import MAY_FAIL, Attack, generators, run

ATTACKS = {
    "kpca": Attack(
        attack_cases.every_route, 2000, 50, (200, 1500),
        seen=("dense", "krylov", "auto", "features monomial", "features pivots", "trace", "angles", "count",
              "too few for the fraction", "projection", "coefficients sum to zero", "the same bits from a file"),
    ),
    "clusters, krylov": Attack(partial(attack_cases.cluster, method="krylov"), 500, 10, (200, 400)),
    "clusters, auto": Attack(partial(attack_cases.cluster, method="auto"), 500, 10, (200, 400)),
    "features": Attack(attack_cases.feature_matrix, 1000, 25, answered=0.4),
    "certificate": Attack(
        certificate_cases.every_route, 2000, 25, (250, 1500), seen=("dense", "krylov", "angles")
    ),
    "clusters, certificate": Attack(certificate_cases.cluster, 500, 10),
    "ranges": Attack(range_cases.decades, 3000, 60, seen=("dense", "krylov", "auto", "features pivots")),
    "products": Attack(product_cases.product, 5000, 120, (150, 8000), seen=("expansion", "grid", "clusters", "exact")),
    "merge": Attack(merge_cases.unions, 2000, 40, (100, 1500)),
    "spe": Attack(spe_cases.spe, 2000, 60),
    "spe, weights": Attack(partial(spe_cases.spe, weighted=True), 2000, 30),
    "pre-images": Attack(preimage_cases.preimages, 50, 1),
    "sources": Attack(source_cases.changing_rows, 3000, 60, (600, 4000), seen=("right", "found")),
    "clustering, features": Attack(partial(clustering_cases.kmeans, method="features"), 5000),
    "clustering, gram": Attack(partial(clustering_cases.kmeans, method="gram"), 5000),
    "spectral clustering, dense": Attack(partial(clustering_cases.spectral, method="dense"), 5000),
    "spectral clustering, auto": Attack(partial(clustering_cases.spectral, method="auto"), 5000),
    "level of tests": Attack(method_cases.levels, 5000, 40),
    "pivots of many rows": Attack(loose_cases.many, 50, 1),
    "moments": Attack(loose_cases.moments, 100, 2),
    "narrow": Attack(loose_cases.narrow, 100, 2),
}  # fmt: skip


def families(label, attack, functions, count, least, **more):
    """One attack for each family of problems."""
    return {f"{label}, {f.__name__}": Attack(partial(attack, family=f), count, least, **more) for f in functions}


ATTACKS |= families("options", option_cases.attacked, option_cases.FAMILIES, 2000, 40, answered=0.1)
ATTACKS |= families("methods", method_cases.methods, method_cases.CHECKS, 500, 25)
ATTACKS |= families("rounding", rounding_cases.rounding, rounding_cases.CHECKS, 2000, 25, answered=0.7)
ATTACKS |= families(
    "certify", given_cases.certified, given_cases.FAMILIES, 3000, 40, largest=(100, 150), seen=("guaranteed", "counts")
)
ATTACKS["certify, flat"] = Attack(
    given_cases.flat, 2000, 60, (100, 150), failing=0.01, seen=("guaranteed", "probabilistic")
)
ATTACKS["certify, sampled"] = Attack(
    given_cases.sampled, 2000, 100, (200, 600), failing=0.01, seen=("guaranteed, sampled", "probabilistic, sampled")
)
ATTACKS |= families("sampled bound", loose_cases.bounds, loose_cases.FAMILIES, 20000, 1000, seen=(MAY_FAIL,))
rare = {"failing": 0.01}
ATTACKS |= families(
    "few features", second_order_calls.calls, second_order_calls.FAMILIES, 2000, 40,
    seen=("first order", "second order", MAY_FAIL), **rare,
)  # fmt: skip
ATTACKS |= families(
    "samples", second_order_cases.samples, second_order_cases.FAMILIES, 2500, 40, seen=("narrower",), **rare
)
ATTACKS |= families("passes", second_order_cases.passes, second_order_cases.FAMILIES, 250, 8)


def main():
    asked = command.options(
        __doc__, only=[""], share=1.0, cases=0, seed=0, first=0, minutes=np.inf, failure=0.05, largest=0
    )
    deadline, broken = time.perf_counter() + 60 * asked.minutes, 0
    for word in asked.only:
        if not any(word in name for name in ATTACKS):
            raise SystemExit(f"no attack has {word!r} in its name; there are {', '.join(ATTACKS)}")
    print(f"numpy {np.__version__}; seeds: [crc32(name), {asked.seed}, case]")
    with tempfile.TemporaryDirectory(prefix="fastkpca-attack-") as folder:
        for name, attack in ATTACKS.items():
            if not any(word in name for word in asked.only):
                continue
            count, begun = asked.cases or max(1, round(asked.share * attack.count)), time.perf_counter()
            given = SimpleNamespace(largest=asked.largest or attack.largest[1], folder=folder, failure=asked.failure)
            cases = generators(name, asked.seed, range(asked.first, asked.first + count))
            tallies = run(attack, cases, given, deadline)
            print(f"--- {name}: {count} cases, {time.perf_counter() - begun:.0f} s", flush=True)
            for kind, tally in sorted(tallies.items()):
                tally.report(kind)
                too_many = tally.missed > asked.failure * tally.checks[MAY_FAIL]
                broken += tally.broken.total() + too_many
    print(f"{broken} broken")
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()

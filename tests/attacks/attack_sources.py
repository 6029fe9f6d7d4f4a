"""Attack the sources of rows: any source, chunks, type, target; and rows that change while they are read.

    python tests/attacks/attack_sources.py [--cases 3000] [--seed 0] [--first 0]

Every outcome has to be the bits of the model of the array, before or after the change, or an error that says what is
wrong; a case that takes more than ten minutes is a hang, and ends the run with the stacks of all threads.
tests/attacks/test_attack_sources.py runs a fraction of the same cases. Needs h5py, zarr, pyarrow and pandas.
"""

from __future__ import annotations

import faulthandler
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import command
import source_cases as cases
from tally import rounds


def main():
    options = command.options(__doc__, cases=3000, largest=2000, seed=0, first=0, minutes=np.inf)
    outcomes, broken = defaultdict(Counter), 0
    deadline = time.perf_counter() + 60 * options.minutes
    for number, rng in rounds("sources", options, options.cases, deadline):
        faulthandler.dump_traceback_later(600, exit=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome, text = cases.case(rng, folder, options.largest)
                outcomes[" ".join(text.split()[:1])][outcome] += 1
            except Exception:
                broken += 1
                print(f"BROKEN case {number}\n{traceback.format_exc(limit=-4)}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    for kind, found in sorted(outcomes.items()):
        print(f"{kind}: {', '.join(f'{what} {count}' for what, count in sorted(found.items()))}")
    print(f"{sum(sum(found.values()) for found in outcomes.values())} cases, {broken} broken")
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()

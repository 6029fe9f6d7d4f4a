"""What became slower from one version to the next: two results of ``benchmarks/speed/peers.py --json``, case by case.

Each version's time is divided by that of a peer measured in the same run, so that two machines can be compared.
Processor seconds; a ratio above 1 in the last column is a loss.

    python benchmarks/compare.py benchmarks/results/0.1.0.json benchmarks/results/0.2.0.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

OURS = "fastkpca"


def times(path: Path) -> dict[str, dict[str, float]]:
    """Processor seconds by case and peer."""
    table: dict[str, dict[str, float]] = {}
    for entry in json.loads(path.read_text()):
        if entry.get("processor"):
            table.setdefault(entry["case"], {})[entry["peer"]] = entry["processor"]
    return table


def changes(old: dict[str, dict[str, float]], new: dict[str, dict[str, float]]) -> dict[str, float]:
    """Our time in the new file over that in the old one, where the median peer has kept its speed."""
    ratios = {}
    for case in sorted(old.keys() & new.keys()):
        peers = (old[case].keys() & new[case].keys()) - {OURS}
        if OURS in old[case] and OURS in new[case] and peers:
            machine = median(new[case][peer] / old[case][peer] for peer in peers)
            ratios[case] = new[case][OURS] / old[case][OURS] / machine
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args()
    old, new = times(options.old), times(options.new)
    for case, ratio in changes(old, new).items():
        print(f"{case:60} {old[case][OURS]:10.3f} s {new[case][OURS]:10.3f} s {ratio:6.2f}")


if __name__ == "__main__":
    main()

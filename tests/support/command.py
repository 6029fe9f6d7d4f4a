"""The command line of an attack: one option for each default."""

from __future__ import annotations

import argparse
from typing import Any


def options(description: str, **defaults: Any) -> argparse.Namespace:
    """What was asked for. A default says of which type an option is: True or False is a flag, a list takes several."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        if isinstance(default, bool):
            parser.add_argument(f"--{name}", action="store_true")
            continue
        several = isinstance(default, list)
        kind = type(default[0]) if several and default else str if several else type(default)
        parser.add_argument(f"--{name}", type=kind, default=default, **({"nargs": "+"} if several else {}))
    return parser.parse_args()

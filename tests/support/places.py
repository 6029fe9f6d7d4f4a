"""Where the sources, the installed package and the real data sets lie."""

from __future__ import annotations

import json
import os
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FASTKPCA_DATA", ROOT.parent / "shared" / "data"))  # there or not


def is_editable() -> bool:
    """Is the source tree itself what is installed?"""
    text = metadata.distribution("fastkpca").read_text("direct_url.json")
    return bool(text) and json.loads(text).get("dir_info", {}).get("editable", False)

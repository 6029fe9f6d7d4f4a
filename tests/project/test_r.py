"""The blocks in R of docs/from_kernlab.md run, and kernlab finds what we find."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from places import ROOT

PAGE = (ROOT / "docs" / "from_kernlab.md").read_text(encoding="utf-8")
NUMPY_2 = (1, 39)  # the first version of reticulate that takes it


def run(*arguments, **options):
    environment = {**os.environ, "RETICULATE_PYTHON": sys.executable}
    return subprocess.run(["Rscript", *arguments], capture_output=True, text=True, env=environment, **options)


def versions():
    """Of reticulate and kernlab."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    found = run("-e", 'for (p in c("reticulate", "kernlab")) cat(as.character(packageVersion(p)), "")')
    if found.returncode:
        pytest.skip("R has not both packages, reticulate and kernlab")
    return [tuple(map(int, re.split(r"[.-]", text))) for text in found.stdout.split()]


def test_the_blocks_in_r_run_and_agree_with_kernlab(tmp_path):
    reticulate, _ = versions()
    if reticulate < NUMPY_2 and int(np.__version__.partition(".")[0]) >= 2:
        pytest.skip(f"reticulate {'.'.join(map(str, reticulate))} takes NumPy 1 alone, here is {np.__version__}")
    blocks = re.findall(r"^```r\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    script = tmp_path / "page.R"
    script.write_text("\n".join(blocks), encoding="utf-8")
    ran = run(str(script), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "<KPCAModel: Gaussian(sigma=1.58" in ran.stdout
    assert (tmp_path / "iris.pdf").stat().st_size > 1000 and (tmp_path / "iris.kpca").is_file()

"""The blocks in R of docs/from_kernlab.md run, and kernlab finds what we find."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from places import ROOT

PAGE = (ROOT / "docs" / "from_kernlab.md").read_text(encoding="utf-8")
# the first version of reticulate that takes NumPy 2 is 1.39
NEEDED = """
for (p in c("reticulate", "kernlab")) if (!requireNamespace(p, quietly = TRUE)) quit(status = 77)
if (packageVersion("reticulate") < "1.39") quit(status = 77)
"""


def test_the_blocks_in_r_run_and_agree_with_kernlab(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    blocks = re.findall(r"^```r\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    (tmp_path / "page.R").write_text("\n".join([NEEDED, *blocks]), encoding="utf-8")
    environment = {**os.environ, "RETICULATE_PYTHON": sys.executable}
    ran = subprocess.run(["Rscript", "page.R"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    if ran.returncode == 77:
        pytest.skip("R has not both packages, reticulate of 1.39 or later and kernlab")
    assert ran.returncode == 0, ran.stderr
    assert "<KPCAModel: Gaussian(sigma=1.58" in ran.stdout
    assert (tmp_path / "iris.pdf").stat().st_size > 1000 and (tmp_path / "iris.kpca").is_file()

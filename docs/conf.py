"""The documentation site: sphinx-build -W -n docs build/html. Nothing is fetched; figures are made by docs/gallery."""

from __future__ import annotations

import os
import warnings
from importlib import metadata

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small figures, and others are at work

project = "fastkpca"
author = "The fastkpca developers"
version = release = metadata.version("fastkpca")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["examples", "gallery", "_build"]
nitpicky = True
highlight_language = "text"

# Pages are Markdown that reads as well where it is kept; formulas are plain text, so that no page needs a network.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # types stand in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_validation_checks = {
    "GL01",  # text begins on the wrong line
    "GL03",  # double blank lines
    "GL06",  # a section that does not exist
    "GL07",  # sections in the wrong order
    "GL08",  # no docstring
    "SS01",  # no summary
    "PR01",  # parameters not documented
    "PR02",  # documented, and not there
    "PR03",  # in the wrong order
    "PR04",  # no type
    "RT01",  # returns not documented
    "YD01",  # yields not documented
}
# Classes list their attributes instead of their constructor's parameters, and methods say theirs in a line.
numpydoc_validation_exclude = {r"\.[A-Z]\w*(\.|$)"}

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # a time on the builder's machine means nothing
    "within_subsection_order": "ExampleTitleSortKey",
    "plot_gallery": True,
}
suppress_warnings = ["config.cache"]
warnings.filterwarnings("ignore", category=UserWarning, message=".*non-interactive.*")

html_theme = "furo"
html_title = f"fastkpca {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"


def escape_bars(app, what, name, obj, options, lines: list[str]) -> None:
    """|x| in a docstring is a norm, not a substitution; code and literal blocks are left alone."""
    literal: int | None = None
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if literal is None and not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[i] = "``".join(parts)
        if literal is None and line.rstrip().endswith("::"):
            literal = indent


def setup(app) -> None:
    app.connect("autodoc-process-docstring", escape_bars, priority=100)  # before numpydoc

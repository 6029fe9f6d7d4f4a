"""The documentation site: sphinx-build -W -n docs build/html. Nothing is fetched; figures are made by docs/gallery."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import sys
import warnings
from importlib import metadata
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small figures, and others are at work

sys.path.insert(0, str(Path(__file__).parent))  # gallery_order

project = "fastkpca"
author = "The fastkpca developers"
version = release = metadata.version("fastkpca")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # carries MathJax in itself: no page loads anything from a network
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["examples", "gallery", "_build"]
nitpicky = True
highlight_language = "text"
smartquotes = False  # a prime in a formula is no apostrophe

# Pages are Markdown that reads as well where it is kept.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_dmath_double_inline = False
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
    "write_computation_times": False,
    "min_reported_time": 1e9,  # a time on the builder's machine means nothing
    "within_subsection_order": "gallery_order.Order",
    "plot_gallery": True,
    "thumbnail_size": (800, 560),
}
# Pages of one kind are listed by pattern (docs/index.md), also while there is none.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(lambda record: "glob pattern" not in str(record.msg))
warnings.filterwarnings("ignore", category=UserWarning, message=".*non-interactive.*")

html_theme = "furo"
html_title = f"fastkpca {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"


def name_escaped(text: str) -> str:
    return re.sub(r"\b([A-Za-z]\w*)_(?!\w)", r"\1\\_", text)


def escape(app, what, name, obj, options, lines: list[str]) -> None:
    """|x| in a docstring is a norm and eigenvalues_ a name, neither is a reference; code and formulas stay."""
    literal: int | None = None
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if literal is None and line.lstrip().startswith(".. math::"):
            literal = indent
        if literal is None and not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            # numpydoc sees to the names of attributes, before the colon
            begin = line.find(" : ") if re.fullmatch(r"[\w, ]+( : .*)?", line.strip()) else 0
            if len(parts) == 1 and begin > 0:
                parts = [parts[0][:begin] + name_escaped(parts[0][begin:])]
            elif begin == 0:
                parts[::2] = [name_escaped(part) for part in parts[::2]]
            lines[i] = "``".join(parts)
        if literal is None and line.rstrip().endswith("::"):
            literal = indent


def leave_out_constructor(app, what, name, obj, options, signature, return_annotation):
    """Results are made by functions, not by their users: attributes say what they hold."""
    if what == "class" and dataclasses.is_dataclass(obj) and not name.startswith("fastkpca.kernels"):
        return "", None
    return None


def setup(app) -> None:
    app.connect("autodoc-process-docstring", escape, priority=100)  # before numpydoc
    app.connect("autodoc-process-signature", leave_out_constructor)

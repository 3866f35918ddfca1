"""Settings of the documentation site: `python -m sphinx -W -c docs . build/site` makes it, from the whole repository.

The source folder is the repository itself, so that links between its pages are right in both places.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils.nodes import Text, document, literal_block
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from api_pages import MARK, entries, prose  # noqa: E402 - found by the line above

from symad.version import __version__ as release  # noqa: E402

project = "symad"
author = copyright = "the symad authors"
version = release
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md", "examples/lessons/README.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md",
]  # fmt: skip
exclude_patterns = [".*", "build", "dist", "symad", "codegen", "tests", "benchmarks"]
html_theme = "furo"
html_title = f"symad {release}"
html_static_path: list[str] = []
html_additional_pages = {"index": "start.html"}  # the first page stands in the folder docs
templates_path = ["site"]
html_show_copyright = html_show_sourcelink = html_copy_source = False
html_theme_options = {"navigation_with_keys": False}
highlight_language = "none"  # what names no language is a diagram or a formula
default_role = "py:obj"  # code, with a link where it is the name of something public
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the prose says what is taken; the stubs of the package are for editors and checkers
toc_object_entries_show_parents = "hide"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]


def with_entries(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the entries of a group of public names in the place of the block that names it."""
    source[0] = MARK.sub(lambda mark: entries(*mark.groups()), source[0])


def plain(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Escape what is markup to Sphinx, and prose to us, in a docstring."""
    lines[:] = prose(lines)


def without_last_blanks(app: Sphinx, page: document) -> None:
    """Drop the blank line that ends the sessions in the pages, which would be drawn."""
    for block in page.findall(literal_block):
        block.rawsource = block.astext().rstrip()
        block.children[:] = [Text(block.rawsource)]


def setup(app: Sphinx) -> None:
    """Connect all of them with Sphinx."""
    app.connect("source-read", with_entries)
    app.connect("autodoc-process-docstring", plain)
    app.connect("doctree-read", without_last_blanks)

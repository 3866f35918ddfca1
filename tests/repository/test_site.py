"""The documentation site: every public name is in it, and it is built without a warning, whole, offline."""

from __future__ import annotations

import importlib.util
import re
import runpy
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
API: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "api_pages.py"))
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
PACKAGES = ("symad", "codegen")
INSTALLED = all(importlib.util.find_spec(name) for name in ("sphinx", "furo", "myst_parser"))


@pytest.mark.quick
@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_one_group(package: str) -> None:
    listed = Counter(name for names in API["groups"](package).values() for name in names)
    assert {name: count for name, count in listed.items() if count > 1} == {}
    assert sorted(listed) == import_module(package).__all__


@pytest.mark.quick
def test_every_group_has_a_page() -> None:
    marks = [mark for page in PAGES for mark in API["MARK"].findall(page.read_text(encoding="utf-8"))]
    groups = [(package, group) for package in PACKAGES for group in API["groups"](package)]
    assert sorted(marks) == sorted(groups)
    assert len(groups) > 12


@pytest.mark.quick
def test_every_page_is_in_the_contents() -> None:
    """A page of docs has a line in the contents of `docs/index.md`, or of the index of its folder."""
    docs, listed = ROOT / "docs", {ROOT / "docs" / "index.md"}
    for index in docs.rglob("index.md"):
        for contents in re.findall(r"^```\{toctree\}\n(.*?)^```", index.read_text(encoding="utf-8"), re.M | re.S):
            names = re.findall(r"(?:^|<)([\w./-]+)>?$", contents, re.MULTILINE)
            listed |= {(index.parent / f"{name}.md").resolve() for name in names}
    assert sorted(set(docs.rglob("*.md")) - listed) == []


def test_entries_are_of_all_kinds() -> None:
    entry = API["entry"]
    assert entry("symad", "grad") == [".. autofunction:: symad.grad"]
    assert entry("symad", "Kernel")[0] == ".. autoclass:: symad.Kernel"
    assert entry("symad", "__version__") == [".. autodata:: symad.__version__"]
    assert entry("symad", "errors")[0] == ".. automodule:: symad.errors"
    assert entry("codegen", "Kernel")[-1] == "   The same as :py:class:`symad.Kernel`."
    assert entry("codegen", "ArgumentError")[-1] == "   The same as :py:class:`symad.errors.ArgumentError`."
    assert entry("symad", "results")[0] == ".. automodule:: symad.results"


def test_prose_is_escaped_and_code_is_not() -> None:
    lines = ["`*args` of f(*x) and y_", ">>> a * b", "x_", "", "2 |x|"]
    assert API["prose"](lines) == ["`*args` of f(\\*x) and y\\_", ">>> a * b", "x_", "", "2 \\|x\\|"]


def built(folder: Path) -> dict[Path, str]:
    """Build the site by the command of CONTRIBUTING.md into another folder, and return the text of its pages."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\.venv/bin/(python -m sphinx .*)$", page, re.MULTILINE)
    assert shown == ["python -m sphinx -W -c docs . build/site"]
    command = [sys.executable, *shown[0].split()[1:-1], "-q", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return {path.resolve(): path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}


@pytest.mark.skipif(not INSTALLED, reason="the site is built with the extra docs: pip install 'symad[docs]'")
def test_the_site_is_whole(tmp_path: Path) -> None:
    """One test, so that the site is built once."""
    pages = built(tmp_path)
    every_link_leads_to_a_place_of_the_site(pages)
    nothing_is_loaded_from_elsewhere(pages)
    every_public_name_has_an_entry(pages)


def every_link_leads_to_a_place_of_the_site(pages: dict[Path, str]) -> None:
    """Follow all links that stay on the site, to their anchors."""
    assert len(pages) > 50
    places = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    astray, followed = [], 0
    for path, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            target, _, place = unquote(link.split("?")[0]).partition("#")
            if not re.match(r"\w+:", target):
                file = (path.parent / target).resolve() if target else path
                astray += [(path.name, link)] if not file.exists() or (place and place not in places[file]) else []
                followed += 1
    assert astray == []
    assert followed > 5000


def nothing_is_loaded_from_elsewhere(pages: dict[Path, str]) -> None:
    """Look at what a page loads by itself."""
    loaded = r'<(?:script|img|iframe|source)[^>]* src="([^"]*)"|<link[^>]* href="([^"]*)"'
    files = {name for text in pages.values() for names in re.findall(loaded, text) for name in names if name}
    assert len(files) > 5
    assert [name for name in files if re.match(r"(\w+:)?//", name)] == []


def every_public_name_has_an_entry(pages: dict[Path, str]) -> None:
    """Look for the anchors of all public names in the reference."""
    reference = "".join(text for path, text in pages.items() if path.parent.name == "reference")
    shown = [f"{package}.{name}" for package in PACKAGES for name in import_module(package).__all__]
    missing = [name for name in shown if f'id="{name}"' not in reference and f'id="module-{name}"' not in reference]
    same = re.findall(r"<p>The same as <a [^>]*#symad\.(?:errors\.)?(\w+)", reference)
    assert sorted(missing) == sorted(f"codegen.{name}" for name in same)  # these refer to what symad shows
    assert len(same) == 5

"""The sessions of the pages in docs run as they are shown; those of a page share one session, top to bottom."""

from __future__ import annotations

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.exported import needs_compiler

PAGES = sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXTRAS = {"batch": ("dask", "cluster"), "jax": ("jax", "jax"), "torch": ("torch", "torch"),
          "pytensor": ("pytensor", "pytensor")}  # fmt: skip
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def sessions(page: Path) -> list[str]:
    """Return the interactive sessions of a page."""
    return [block for block in FENCE.findall(page.read_text(encoding="utf-8")) if ">>>" in block]


def case(page: Path) -> object:
    """A page as a case of the test; the one about C needs a compiler of C, others a package."""
    marks = [needs_compiler] if page.stem == "export" else []
    if page.stem in EXTRAS:
        package, extra = EXTRAS[page.stem]
        marks.append(pytest.mark.skipif(find_spec(package) is None, reason=f"pip install -e '.[{extra}]'"))
    return pytest.param(page, id=page.stem, marks=marks)


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # which PyTorch calls itself
@pytest.mark.parametrize("page", [case(page) for page in PAGES if sessions(page)])
def test_sessions(page: Path) -> None:
    test = doctest.DocTestParser().get_doctest("\n\n".join(sessions(page)), {}, page.name, str(page), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)


def test_there_are_sessions() -> None:
    assert "sympy" in [page.stem for page in PAGES if sessions(page)]

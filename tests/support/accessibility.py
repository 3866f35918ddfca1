"""What axe-core finds wrong with a page in the browser for who cannot see it, cannot see it well, or has no pointer."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.support.browser import Page

LISTED = """axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.flatMap((violation) =>
  violation.nodes.map((node) => [violation.impact, violation.id, node.target.join(' '),
    node.any.concat(node.all, node.none).map((check) => check.message).join('; ').slice(0, 200)])))"""


@cache
def axe() -> str:
    """Return the script of axe-core, which a package carries; an error where it is not installed (the extra `test`)."""
    found = find_spec("axe_playwright_python")
    assert found is not None, "axe-playwright-python is not installed: pip install -e '.[test]'"
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Page) -> list[list[str]]:
    """Return what is wrong with a page: how grave it is, the rule, the element, the reason."""
    if not page.run("typeof axe === 'object'"):
        page.run(axe() + "; 0")
    found: list[list[str]] = page.run(LISTED)
    return found

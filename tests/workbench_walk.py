"""A walk through the workbench in a real browser: a picture of each pane, and how soon the panes are there.

python -m tests.workbench_walk FOLDER
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.support.browser import Browser, Page
from tests.support.workbench import started

FORMULA = "exp(x*sin(x))"
SIZES = {"desktop": (1280, 800), "phone": (390, 844), "projector": (1280, 720)}
COUNTS = (10, 100, 1000)  # operations of a formula


def formula(operations: int) -> str:
    """Return a formula of about so many operations."""
    return "+".join(f"{k}x^{k + 1}" for k in range(2, 2 + max(1, operations // 3)))


def typed(page: Page, text: str) -> None:
    """Type a formula, and wait for all panes."""
    page.type("#text", text)
    page.wait(f"document.body.dataset.shown === {json.dumps('formula:' + text)}", 120)


def walk(folder: Path) -> None:
    """Write the pictures, and print the times from the end of typing to each pane in milliseconds."""
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser, started() as bench:
        page = browser.page(bench.address)
        page.wait("document.querySelectorAll('.pane').length === 9")
        typed(page, FORMULA)
        for name, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                page.prefers(color_scheme=scheme)
                page.size(width, height)
                page.picture(folder / f"{name}-{scheme}.png", whole=True)
        page.prefers(color_scheme="light")
        page.size(*SIZES["desktop"])
        page.size(1280, 1180)
        page.click("[data-pane=program] .columns section:last-child tr:nth-child(3)")
        page.mouse("move", 2, 2)
        page.run("document.activeElement.blur(); scrollTo(0, 930)")
        page.picture(folder / "linked.png")
        page.press("Escape")
        page.size(*SIZES["desktop"])
        for pane in page.run("[...document.querySelectorAll('.pane')].map((e) => e.dataset.pane)"):
            page.run(f"document.querySelector('[data-pane={pane}]').scrollIntoView({{block: 'center'}})")
            page.picture(folder / f"pane-{pane}.png")
        times(page)


def times(page: Page) -> None:
    """Print the times of all panes for formulas of several sizes, the best of three."""
    each = "[...document.querySelectorAll('.pane')].map((e) => [e.dataset.pane, e.dataset.milliseconds])"
    script = f"Object.fromEntries({each})"
    for count in COUNTS:
        best: dict[str, int] = {}
        for _ in range(3):
            typed(page, "x")
            typed(page, formula(count))
            for pane, taken in page.run(script).items():
                best[pane] = min(best.get(pane, 10**9), int(taken))
        print(f"{count:5} operations:", ", ".join(f"{pane} {taken} ms" for pane, taken in best.items()))


if __name__ == "__main__":
    made = Path(sys.argv[1])
    made.mkdir(parents=True, exist_ok=True)
    walk(made)

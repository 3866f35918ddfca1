"""The pages of four expansions in the style of a book, on three screens: a desktop, a phone, a projector.

python -m tests.book_pages docs/pictures
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import symad as sa
from symad.display.shown import Shown
from tests.support.browser import Browser
from tests.support.pictures import pack

SCREENS = {"": (1280, 800, False), "_phone": (390, 844, False), "_projector": (1280, 720, True)}


def expansions() -> dict[str, Shown]:
    """Return what the pages show."""
    return {
        "book_cube": sa.expand("x^3", "x", ["v", "w"]),
        "book_exp_x_sin_x": sa.expand("exp(x sin x)", "x", ["v"]),
        "book_sin_xy": sa.expand("sin(x y)", ["x", "y"], [["v_1", "v_2"]]),
        "book_quotient": sa.expand("x/(1 + x^2)", "x", ["v"]),
    }


def take(folder: Path) -> None:
    """Write a picture of each page on each screen, and print how large it is."""
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        for name, shown in expansions().items():
            for screen, (width, height, big) in SCREENS.items():
                path = shown.save(Path(profile) / f"{name}{screen}.html", big=big)
                page = browser.page(path.as_uri(), width, height)
                page.wait("document.readyState === 'complete' && document.querySelector('main')")
                picture = page.picture(folder / f"{name}{screen}.png")
                print(picture.name, pack(picture), "bytes", flush=True)
                page.send("Page.close")


if __name__ == "__main__":
    made = Path(sys.argv[1])
    made.mkdir(parents=True, exist_ok=True)
    take(made)

"""A class of 100: 50 right answers in many notations, 50 wrong ones (25 different, each in two notations).

`python -m tests.support.class_answers FOLDER` writes them, with the question, for `symad grade`.
"""

from __future__ import annotations

import sys
from pathlib import Path

DERIVATIVE = "x^2 sin(3x)"  # 2x sin(3x) + 3x^2 cos(3x)

_FORMS = [
    "2x sin(3x) + 3x^2 cos(3x)",
    "2x sin 3x + 3x^2 cos 3x",
    "2*x*sin(3*x) + 3*x**2*cos(3*x)",
    "f'(x) = 2x sin(3x) + x^2 cos(3x) * 3",
    "y' = 2x sin 3x + 3x² cos 3x",
    "y′ = 2x·sin(3x) + 3x²·cos(3x)",
    "dy/dx = 2x sin(3x) + 3x^2 cos(3x)",
    "\\frac{dy}{dx} = 2x\\sin(3x) + 3x^{2}\\cos(3x)",
    "2x\\sin 3x + 3x^{2}\\cos 3x",
    "$2x\\sin\\left(3x\\right) + 3x^2\\cos\\left(3x\\right)$",
    "x(2 sin(3x) + 3x cos(3x))",
    "x (2 sin 3x + 3x cos 3x)",
    "D f = 2x sin(3x) + 3x^2 cos(3x)",
    "(x^2)' sin(3x) + x^2 (sin(3x))' = 2x sin(3x) + 3x^2 cos(3x)",
    "f'(x) = (x^2)' sin 3x + x^2 (sin 3x)'\n= 2x sin 3x + 3x^2 cos 3x",
    "2x sin(3x) + 3x^2 cos(3x).",
    "2x sin(3x) + 3x^2 cos(3x) (product rule)",
    "= 2x sin(3x) + 3x^2 cos(3x) [product and chain rule]",
    "2,0x sin(3x) + 3,0x^2 cos(3x)",
    "3x² cos(3x) + 2x sin(3x)",
    "d/dx (x^2 sin(3x)) = 2x sin(3x) + 3x^2 cos(3x)",
    "\\frac{d}{dx}\\left(x^2\\sin(3x)\\right) = 2x\\sin(3x) + 3x^2\\cos(3x)",
    "f'(x) = 2x sin(3x)\n + 3x^2 cos(3x)",
    "x^2 (2 sin(3x)/x + 3 cos(3x))",
    "⇒ y' = 2x sin 3x + 3x^2 cos 3x",
]
RIGHT = [*_FORMS, *(f"f(x) = x^2 sin(3x)\nf'(x) = {form.partition('=')[2] or form}" if "=" not in form else form
                    for form in _FORMS)]  # fmt: skip

WRONG = {  # each with the kind of mistake that has to be among those named; "" where none is
    "2x cos(3x)": "",
    "6x cos(3x)": "product rule",
    "2x sin(3x) + x^2 cos(3x)": "chain rule",
    "2x sin 3x + x² cos 3x": "chain rule",
    "y' = 2x sin(3x) + x^2 cos(3x)": "chain rule",
    "2x sin(3x) - 3x^2 cos(3x)": "wrong sign",
    "f'(x) = 2x sin(3x) − 3x² cos 3x": "product rule",
    "2x sin(3x)": "product rule",
    "3x^2 cos(3x)": "product rule",
    "x sin(3x) + 3x^2 cos(3x)": "power rule",
    "2x^2 sin(3x) + 3x^2 cos(3x)": "power rule",
    "2x^3 sin(3x) + 3x^2 cos(3x)": "power rule",
    "2x sin(3x) + 9x^2 cos(3x)": "double-counted",
    "2x sin(3x) + 3x^2 sin(3x)": "outer derivative",
    "-(2x sin(3x) + 3x^2 cos(3x))": "wrong sign",
    "4x sin(3x) + 6x^2 cos(3x)": "double-counted",
    "x^2 sin(3x)": "not differentiated",
    "2 sin(3x) + 12x cos(3x) - 9x^2 sin(3x)": "wrong order",
    "2x sin(3x) + 3x^2 cos(x)": "wrong place",
    "2x sin(3x) + 3x^2 cos(3)": "wrong place",
    "2x sin(3x) + x^2 cos(3)": "wrong place",
    "2x + 3 cos(3x)": "product rule",
    "2x sin(3x) · 3x^2 cos(3x)": "product rule",
    "f'(x) = (x^2)' (sin(3x))' = 6x cos(3x)": "product rule",
    "f'(x) = (x^2)' sin(3x) + x^2 (sin(3x))'\n= 2x sin(3x) + x^2 cos(3x)": "chain rule",
}


def answers() -> list[tuple[str, str]]:
    """Return 50 right and 50 wrong answers with the names of those who wrote them."""
    wrong = [*WRONG, *(text.replace("f'(x) =", "dy/dx =") if "=" in text else f"dy/dx = {text}" for text in WRONG)]
    named = [(f"right {number:02d}", text) for number, text in enumerate(RIGHT, 1)]
    return named + [(f"wrong {number:02d}", text) for number, text in enumerate(wrong, 1)]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    (folder / "q.toml").write_text(f'title = "Product and chain rule"\nformula = "{DERIVATIVE}"\npoints = 4\n')
    for name, text in answers():
        (folder / "answers" / f"{name}.txt").write_text(text, encoding="utf-8")

"""Two classes of 100 with known marks: one question in many notations, and six questions in five notations each.

`python -m tests.support.class_answers FOLDER` writes them there, runs `symad grade`, and prints the marks by notation.
"""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from symad.cli import main

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


NOTATIONS = ("text", "LaTeX", "unicode", "workbench", "several lines")
# questions, and the answers in each notation: two right ones, two wrong ones
QUESTIONS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    'formula = "x^n"\nvariables = ["x"]': (
        ("nx^{n-1}", "f'(x) = n x^(n-1)", "x^{n-1}", "nx^n"),
        (r"f'(x) = n\cdot x^{n-1}", r"\frac{n x^{n}}{x}", r"(n-1)x^{n-1}", r"\frac{d}{dx}x^n = \frac{x^{n+1}}{n+1}"),
        ("n·xⁿ⁻¹", "y′ = nxⁿ⁻¹", "xⁿ⁻¹", "n·xⁿ"),
        ("n*x**(n - 1)", "n*x**n/x", "x**(n - 1)", "n*x**n"),
        ("y = x^n\ny' = n x^{n-1}", "f'(x) = n x^n / x\n= n x^{n-1}",
         "y = x^n\ny' = n x^n", "y' = n x^{n-1}\n= x^{n-1}"),
    ),
    'formula = "x^2 sin(3x)"': (
        ("2x sin(3x) + 3x^2 cos(3x)", "x(2sin 3x + 3x cos 3x)", "2x sin(3x) + x^2 cos(3x)", "6x cos(3x)"),
        (r"2x\sin(3x)+3x^{2}\cos(3x)", r"\frac{dy}{dx} = x\left(2\sin 3x + 3x\cos 3x\right)",
         r"2x\sin 3x - 3x^2\cos 3x", r"2x\cdot 3\cos(3x)"),
        ("2x·sin(3x) + 3x²·cos(3x)", "y′ = x(2 sin 3x + 3x cos 3x)", "2x·sin(3x) − 3x²·cos(3x)", "2x·sin 3x"),
        ("2*x*sin(3*x) + 3*x**2*cos(3*x)", "x*(2*sin(3*x) + 3*x*cos(3*x))", "2*x*sin(3*x) + x**2*cos(3*x)",
         "2*x*cos(3*x)"),
        ("u = x^2, v = sin(3x)\nu' = 2x, v' = 3cos(3x)\ny' = 2x sin(3x) + 3x^2 cos(3x)",
         "f'(x) = (x^2)' sin 3x + x^2 (sin 3x)'\n= 2x sin 3x + 3x^2 cos 3x",
         "u = x^2, v = sin(3x)\nu' = 2x, v' = cos(3x)\ny' = 2x sin(3x) + x^2 cos(3x)",
         "f'(x) = 2x sin 3x + 3x^2 cos 3x\n= 5x^3 sin 3x cos 3x"),
    ),
    'formula = "(x^2+1)/(x-1)"': (
        ("(2x(x-1) - (x^2+1))/(x-1)^2", "1 - 2/(x-1)^2", "(2x(x-1) + (x^2+1))/(x-1)^2", "2x"),
        (r"\frac{2x(x-1)-(x^2+1)}{(x-1)^2}", r"\dfrac{x^2-2x-1}{\left(x-1\right)^{2}}",
         r"\frac{2x(x-1)-(x^2+1)}{x-1}", r"\frac{2x}{1}"),
        ("(x² − 2x − 1)/(x − 1)²", "1 − 2·(x−1)⁻²", "(x² + 2x − 1)/(x − 1)²", "2x/(x−1)²"),
        ("(x**2 - 2*x - 1)/(x - 1)**2", "2*x/(x - 1) - (x**2 + 1)/(x - 1)**2", "2*x/(x - 1) + (x**2 + 1)/(x - 1)**2",
         "(x**2 - 2*x - 1)/(x - 1)"),
        ("f'(x) = (2x(x-1) - (x^2+1))/(x-1)^2\n= (x^2 - 2x - 1)/(x-1)^2", "y' =\n(x^2 - 2x - 1)/(x-1)^2",
         "f'(x) = (2x(x-1) - (x^2+1))/(x-1)^2\n= (x^2 - 2x + 1)/(x-1)^2",
         "u = x^2+1, v = x-1\nu' = 2x, v' = 1\ny' = 2x/1"),
    ),
    'formula = "e^{x^2}"\norder = 2': (
        ("(4x^2 + 2)e^{x^2}", "f''(x) = 2e^{x^2} + 4x^2 e^{x^2}", "4x^2 e^{x^2}", "2x e^{x^2}"),
        (r"\frac{d^2y}{dx^2} = \left(4x^2+2\right)e^{x^2}", r"2\mathrm{e}^{x^{2}}(1+2x^{2})",
         r"2e^{x^2}+2xe^{x^2}", r"e^{x^2}"),
        ("(4x² + 2)·exp(x²)", "y″ = 2·exp(x²)·(1 + 2x²)", "4x²·exp(x²)", "2·exp(x²)"),
        ("(4*x**2 + 2)*exp(x**2)", "2*exp(x**2) + 4*x**2*exp(x**2)", "4*x**2*exp(x**2)", "2*x*exp(x**2)"),
        ("f'(x) = 2x e^{x^2}\nf''(x) = 2e^{x^2} + 2x·2x e^{x^2}\n= (4x^2+2) e^{x^2}",
         "y' = 2xe^{x^2}\ny'' = (2 + 4x^2)e^{x^2}",
         "y' = 2x e^{x^2}\ny'' = 2e^{x^2} + 2x e^{x^2}", "f'(x) = e^{x^2}\nf''(x) = e^{x^2}"),
    ),
    'formula = "x^3"\ndirections = ["v", "w"]': (
        ("x^3 + 3x^2 v e1 + 3x^2 w e2 + 6xvw e1 e2", "x^3 + 3x^2 (v eps_1 + w eps_2) + 6x v w eps_1 eps_2",
         "x^3 + 3x^2 v e1 + 3x^2 w e2", "x^3 + 3x^2 v e1 + 3x^2 w e2 + 3xvw e1 e2"),
        (r"x^3+3x^2v\varepsilon_1+3x^2w\varepsilon_2+6xvw\varepsilon_1\varepsilon_2",
         r"x^{3}+3x^{2}\left(v\epsilon_1+w\epsilon_2\right)+6xvw\epsilon_1\epsilon_2",
         r"x^3+3x^2v\varepsilon_1+3x^2w\varepsilon_2+12xvw\varepsilon_1\varepsilon_2", r"x^3+3x^2(v+w)\varepsilon_1"),
        ("x³ + 3x²v ε₁ + 3x²w ε₂ + 6xvw ε₁ε₂", "x³ + 3x²(vε₁ + wε₂) + 6xvw·ε₁·ε₂", "x³ + 3x²v ε₁ + 3x²w ε₂ + xvw ε₁ε₂",
         "x³ + 3x²v ε₁ + 3x²v ε₂ + 6xvw ε₁ε₂"),
        ("x**3 + 3*x**2*v*eps_1 + 3*x**2*w*eps_2 + 6*x*v*w*eps_1*eps_2",
         "x**3 + 3*x**2*(v*eps_1 + w*eps_2) + 6*v*w*x*eps_1*eps_2",
         "x**3 + 3*x**2*v*eps_1 + 3*x**2*w*eps_2", "x**3 + 2*x**2*v*eps_1 + 2*x**2*w*eps_2 + 6*x*v*w*eps_1*eps_2"),
        ("(x + vε₁ + wε₂)^3\n= x^3 + 3x^2(vε₁ + wε₂) + 3x(vε₁ + wε₂)^2\n= x^3 + 3x^2 v ε₁ + 3x^2 w ε₂ + 6xvw ε₁ε₂",
         "x^3 + 3x^2 v ε₁\n + 3x^2 w ε₂ + 6xvw ε₁ε₂", "(x + vε₁ + wε₂)^3\n= x^3 + 3x^2 v ε₁ + 3x^2 w ε₂",
         "x^3 + 3x^2 v ε₁\n + 3x^2 w ε₂ + 3xvw ε₁ε₂"),
    ),
    'formula = "x^2 + y^2 = 25"': (
        ("y' = -x/y", "dy/dx = -2x/(2y)", "y' = x/y", "2x + 2y = 0"),
        (r"\frac{dy}{dx} = -\frac{x}{y}", r"y' = \frac{-x}{y}",
         r"\frac{dy}{dx}=-\frac{y}{x}", r"2x+2\frac{dy}{dx}=0"),
        ("y′ = −x/y", "y′ = −x·y⁻¹", "y′ = −y/x", "2x + y·y′ = 0"),
        ("-x/y", "-(2*x)/(2*y)", "x/y", "-2*x"),
        ("2x + 2y y' = 0\ny' = -x/y", "2x + 2y dy/dx = 0\n2y dy/dx = -2x\ndy/dx = -x/y",
         "2x + 2y = 0\ny' = -x/y", "2x + 2y y' = 0\ny' = x/y"),
    ),
}  # fmt: skip


def class_in_notations() -> Iterator[tuple[str, list[tuple[str, str, bool]]]]:
    """Yield questions with the answers of 100 pupils: name (with the notation), answer, whether it is right."""
    for place, (question, answers_in) in enumerate(QUESTIONS.items()):
        rows = []
        for pupil in range(100):
            notation, which = pupil % len(NOTATIONS), (pupil // len(NOTATIONS) + place) % 4
            rows.append((f"{NOTATIONS[notation]} {pupil:02d}", answers_in[notation][which], which < 2))
        yield question, rows


def graded(folder: Path, question: str, rows: list[tuple[str, str]]) -> dict[str, str]:
    """Write a question and answers to a folder, run `symad grade` and return the verdicts by name."""
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    (folder / "q.toml").write_text(question + "\n", encoding="utf-8")
    for name, text in rows:
        (folder / "answers" / f"{name}.txt").write_text(text, encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        main(["grade", str(folder / "answers"), "--question", str(folder / "q.toml"), "--out", str(folder / "m.csv")])
    with (folder / "m.csv").open(encoding="utf-8-sig", newline="") as table:
        return {row["name"]: row["verdict"] for row in csv.DictReader(table)}


def table_of_marks(folder: Path) -> str:
    """Return the marks of both classes by notation, compared with those known beforehand."""
    known = {name: name.startswith("right") for name, _ in answers()}
    first = f'title = "Product and chain rule"\nformula = "{DERIVATIVE}"\npoints = 4'
    of_one = graded(folder / "one", first, answers())
    others = [name for name, verdict in of_one.items() if verdict != ("right" if known[name] else "wrong")]
    lines = [f"One question, 100 answers: {dict(Counter(of_one.values()))}; other than known: {others or 0}"]
    marks, different = Counter[tuple[str, str]](), list[str]()
    for place, (question, rows) in enumerate(class_in_notations()):
        verdicts = graded(folder / str(place), question, [(name, text) for name, text, _ in rows])
        for name, text, is_right in rows:
            notation, said = name[:-3], verdicts[name]
            marks[notation, said] += 1
            expected = "right" if is_right else "wrong"
            if (
                said != expected
                and (row := f"  {question!r}: {text!r} is {expected}, and was marked {said}") not in different
            ):
                different.append(row)
    lines.append(f"Six questions, 100 pupils, 600 answers; other than known: {len(different)}")
    lines.append(f"{'notation':15}{'known right':>12}{'right':>7}{'wrong':>7}{'asked':>7}")
    for notation in NOTATIONS:
        right, wrong = marks[notation, "right"], marks[notation, "wrong"]
        lines.append(f"{notation:15}{60:12}{right:7}{wrong:7}{120 - right - wrong:7}")
    return "\n".join([*lines, *different])


if __name__ == "__main__":
    print(table_of_marks(Path(sys.argv[1])))

"""Questions and right answers in the notations that people use: how many of them are read, and found right.

`python -m tests.support.notation_pairs` counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from symad.classroom.answers.answer_check import check_derivative, check_expansion
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.errors import ArgumentError


class Pair(NamedTuple):
    """A question and a right answer to it; with directions it asks for an expansion."""

    question: str
    answer: str
    directions: tuple[str, ...] = ()
    order: int = 1


ONE, TWO = ("v",), ("v", "w")
PAIRS = [
    Pair("sin x", "cos x"),
    Pair("sin 2x", "2 cos 2x"),
    Pair("sin^2 x", "2 sin x cos x"),
    Pair("sin² x", "sin 2x"),
    Pair("cos x", "f'(x) = -sin x"),
    Pair("cos^3 x", "−3 cos² x sin x"),
    Pair("tan x", "1/cos^2 x"),
    Pair("tan x", "1 + tan² x"),
    Pair("ln x", "1/x"),
    Pair("x ln x", "ln x + 1"),
    Pair("ln |x|", "1/x"),
    Pair("ln 3x", "y' = 1/x"),
    Pair("exp(x sin x)", "exp(x sin x)(sin x + x cos x)"),
    Pair("e^(x sin x)", "e^(x sin x) (sin x + x cos x)"),
    Pair("e^{-x^2}", "-2x e^{-x^2}"),
    Pair("e^(-x²)", "−2x·e^(−x²)"),
    Pair("x sin x", "sin x + x cos x"),
    Pair("x² sin x", "2x sin x + x² cos x"),
    Pair("\\sin\\left(x^{2}\\right)", "2x\\cos\\left(x^{2}\\right)"),
    Pair("\\frac{x}{1+x^2}", "\\frac{1-x^2}{(1+x^2)^2}"),
    Pair("\\frac{1}{x}", "-\\frac{1}{x^{2}}"),
    Pair("\\sqrt{x}", "\\frac{1}{2\\sqrt{x}}"),
    Pair("\\sqrt{1+x^2}", "\\frac{x}{\\sqrt{1+x^2}}"),
    Pair("\\sqrt[3]{x}", "\\frac{1}{3} x^{-\\frac{2}{3}}"),
    Pair("\\ln x", "\\frac{d}{dx} \\ln x = \\frac1x"),
    Pair("$x^2 \\cdot e^{x}$", "$2x \\cdot e^{x} + x^2 \\cdot e^{x}$"),
    Pair("x^3", "\\frac{d}{dx}x^3 = 3x^2"),
    Pair("\\sin^2 x", "2 \\sin x \\cos x"),
    Pair("\\arctan x", "\\frac{1}{1+x^2}"),
    Pair("\\mathrm{e}^{2x}", "2\\,\\mathrm{e}^{2x}"),
    Pair("√x", "1/(2√x)"),
    Pair("√(1+x²)", "x/√(1+x²)"),
    Pair("|x|", "x/|x|"),
    Pair("|x|", "sgn x"),
    Pair("½x²", "x"),
    Pair("x⁻¹", "−x⁻²"),
    Pair("2·x³ − 4×x", "6·x² − 4"),
    Pair("π x²", "2πx"),
    Pair("3,5x^2,5", "8,75x^1,5"),
    Pair("0,5x^2 + 1,5x", "x + 1,5"),
    Pair("x^3", "f'(x) = 3x^2"),
    Pair("x^3", "y' = 3x²"),
    Pair("x^3", "y′ = 3x²"),
    Pair("x^3", "dy/dx = 3x^2"),
    Pair("x^3", "\\frac{dy}{dx} = 3x^2"),
    Pair("x^3", "df/dx = 3x^2"),
    Pair("sin x", "d/dx sin x = cos x"),
    Pair("x^3", "D f = 3x^2"),
    Pair("x^2 sin x", "(x^2)' sin x + x^2 (sin x)' = 2x sin x + x^2 cos x"),
    Pair("x^3", "f''(x) = 6x", (), 2),
    Pair("x^3", "y'' = 6x", (), 2),
    Pair("x^3", "d²y/dx² = 6x", (), 2),
    Pair("x^3", "\\frac{d^2 y}{dx^2} = 6x", (), 2),
    Pair("g(h(x))", "g'(h(x)) h'(x)"),
    Pair("f(x) g(x)", "f'(x) g(x) + f(x) g'(x)"),
    Pair("log_2 x", "1/(x ln 2)"),
    Pair("log_2(x)", "1/(x ln(2))"),
    Pair("log_{10} x", "1/(x ln 10)"),
    Pair("x^5/5!", "x^4/4!"),
    Pair("x^3", "3x^2."),
    Pair("x^3", "3x^2 (power rule)"),
    Pair("x sin x", "sin x + x cos x [product rule]"),
    Pair("x^3", "3x^{2}"),
    Pair("f(x) = x^3", "f'(x) = 3x^2"),
    Pair("y = x^3", "y' = 3x^2"),
    Pair("eˣ", "eˣ"),
    Pair("x^3", "x^3 + 3x^2 v e1", ONE),
    Pair("x^3", "x^3 + 3x^2 v e_1", ONE),
    Pair("x^3", "x³ + 3x²v ε1", ONE),
    Pair("x^3", "x³ + 3x²v ε₁", ONE),
    Pair("x^3", "x^3 + 3x^2 v eps1", ONE),
    Pair("x^3", "x^3 + 3x^2 v epsilon1", ONE),
    Pair("x^3", "x^3 + 3x^2 v epsilon_1", ONE),
    Pair("x^3", "x^3 + 3x^2 v \\varepsilon_1", ONE),
    Pair("x^3", "x^3 + 3x^2 v ε + O(ε²)", ONE),
    Pair("x^3", "x^3 + 3x^2 v \\epsilon + \\mathcal{O}(\\epsilon^2)", ONE),
    Pair("x^3", "x³ + 3x²v ε₁ + 3x²w ε₂ + 6xvw ε₁ε₂", TWO),
    Pair("x^2", "x^{2} + 2xv\\varepsilon_{1} + 2xw\\varepsilon_{2} + 2vw\\varepsilon_{1}\\varepsilon_{2}", TWO),
    Pair("sin x", "sin x + v cos(x) ε₁ + w cos(x) ε₂ − v w sin(x) ε₁ε₂", TWO),
    Pair("sin x", "sin(x) + cos(x) v ε + O(ε^2)", ONE),
    Pair("\\sin x", "f(x + v\\varepsilon) = \\sin x + v\\cos(x)\\,\\varepsilon", ONE),
    Pair("1/x", "1/x − (v/x²) ε₁", ONE),
    Pair("e^x", "e^x + e^x v ε₁ + e^x w ε₂ + e^x v w ε₁ε₂.", TWO),
]  # fmt: skip


def checked(pair: Pair) -> CheckedAnswer:
    """Return a pair's answer, checked."""
    if pair.directions:
        return check_expansion(pair.answer, pair.question, "x", list(pair.directions))
    return check_derivative(pair.answer, pair.question, "x", order=pair.order)


def refused() -> Iterator[tuple[Pair, str]]:
    """Yield the pairs that are not read or not found right, with what is said of them."""
    for pair in PAIRS:
        try:
            found = checked(pair)
        except ArgumentError as error:
            yield pair, str(error).splitlines()[0]
        else:
            if not found.right:
                yield pair, f"not found right: {', '.join(map(str, found.mistakes))}"


if __name__ == "__main__":
    lines = [f"{pair.question}   ->   {pair.answer}: {said}" for pair, said in refused()]
    print("\n".join([*lines, f"{len(PAIRS) - len(lines)} of {len(PAIRS)} pairs are read and found right"]))

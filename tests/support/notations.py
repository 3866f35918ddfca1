"""Notations of formulas, each beside what it says in SymPy's notation; lines of answers; what has two readings."""

from __future__ import annotations

from typing import NamedTuple

NAMES = ["x", "y", "v", "w", "n", "a", "ε_1", "ε_2"]


class Answer(NamedTuple):
    """A line that is a right answer to a question; with directions the question asks for an expansion."""

    question: str
    line: str
    directions: tuple[str, ...] = ()
    order: int = 1
    epsilons: tuple[str, ...] = ()


FORMULAS: dict[str, dict[str, str]] = {
    "Products, powers, numbers": {
        "2x": "2*x",
        "2(x+1)(x-1)": "2*(x + 1)*(x - 1)",
        "2[x + 1]^2": "2*(x + 1)**2",
        "xy": "x*y",
        "3x^2 v": "3*x**2*v",
        "1/2 x": "x/2",
        "e^-x^2": "exp(-x**2)",
        "0.1 x": "x/10",
        "3,5x^2,5": "Rational(7, 2)*x**Rational(5, 2)",
        "sin(0,5x)": "sin(x/2)",
        "x^{10}": "x**10",
        "f(x) = x^3": "x**3",
        "y = x^3": "x**3",
        "5!": "120",
        "x^3/3!": "x**3/6",
        "(n+1)!": "factorial(n + 1)",
        "cos(x).": "cos(x)",
    },
    "Signs": {
        "x² + x³": "x**2 + x**3",
        "x⁻¹": "1/x",
        "xⁿ": "x**n",
        "e⁻ˣ": "exp(-x)",
        "2·x × y ⋅ v": "2*x*y*v",
        "x − 1": "x - 1",
        "x ÷ 2": "x/2",
        "½x²": "x**2/2",
        "¾": "Rational(3, 4)",
        "2πx": "2*pi*x",
        "√x": "sqrt(x)",
        "√(1+x²)": "sqrt(1 + x**2)",
        "√2/2": "sqrt(2)/2",
        "2√x √y": "2*sqrt(x)*sqrt(y)",
        "∛x": "cbrt(x)",
        "|x|": "Abs(x)",
        "x/|x|": "x/Abs(x)",
        "2|x||y|": "2*Abs(x)*Abs(y)",
        "||x| − 1|": "Abs(Abs(x) - 1)",
        "ln |x|": "log(Abs(x))",
        "sgn x": "sign(x)",
    },
    "Functions": {
        "sin x": "sin(x)",
        "sin 2x": "sin(2*x)",
        "sin 2πx": "sin(2*pi*x)",
        "sin -x": "sin(-x)",
        "sin x^2": "sin(x**2)",
        "sin xy": "sin(x*y)",
        "2 sin x cos x": "2*sin(x)*cos(x)",
        "sin x · cos x": "sin(x)*cos(x)",
        "sin x / cos x": "sin(x)/cos(x)",
        "sin^2 x": "sin(x)**2",
        "cos² 2x": "cos(2*x)**2",
        "ln x": "log(x)",
        "ln cos x": "log(cos(x))",
        "exp -x": "exp(-x)",
        "exp(x sin x)": "exp(x*sin(x))",
        "x sin x + cos x": "x*sin(x) + cos(x)",
        "log x": "log(x)",
        "log_2 x": "log2(x)",
        "log₂(x)": "log2(x)",
        "log_10 x": "log10(x)",
        "log_{10} x": "log10(x)",
        "log_a(x)": "log(x)/log(a)",
        "log(x, 2)": "log(x)/log(2)",
        "arctan x": "atan(x)",
        "tg(x) + ctg(x)": "tan(x) + cot(x)",
    },
    "LaTeX": {
        "\\frac{x}{1+x^2}": "x/(1 + x**2)",
        "\\frac12 x": "x/2",
        "\\dfrac{1}{2\\sqrt{x}}": "1/(2*sqrt(x))",
        "\\sqrt[3]{x}": "cbrt(x)",
        "\\sqrt[4]{x}": "x**Rational(1, 4)",
        "\\sin\\left(x^{2}\\right)": "sin(x**2)",
        "\\sin^{2} x \\cos x": "sin(x)**2*cos(x)",
        "x^{2} \\cdot \\mathrm{e}^{-x}": "x**2*exp(-x)",
        "2\\,x \\times \\pi": "2*x*pi",
        "3x^{2}v\\varepsilon_{1}": "3*x**2*v*ε_1",
        "\\varepsilon_1 \\varepsilon_2": "ε_1*ε_2",
        "\\left|x\\right|": "Abs(x)",
        "\\lvert x \\rvert": "Abs(x)",
        "\\operatorname{sgn} x": "sign(x)",
        "\\log_{2} x": "log2(x)",
        "\\arctan x": "atan(x)",
        "$x^2$": "x**2",
        "\\(x^2\\)": "x**2",
        "x^2 \\text{ by the rule}": "x**2",
    },
    "Derivatives": {
        "\\frac{d}{dx} \\sin x": "cos(x)",
        "\\frac{d}{dx}\\left(x^2 + x\\right)": "2*x + 1",
        "\\frac{\\partial}{\\partial x} (x y)": "y",
        "d/dx sin x": "cos(x)",
        "d/dx [x^2 + x]": "2*x + 1",
        "d²/dx² x^3": "6*x",
        "d/dx x^2 + d/dx x^3": "2*x + 3*x**2",
        "∂/∂x (x y)": "y",
        "(x^2)'": "2*x",
        "(x^2)' sin x + x^2 (sin x)'": "2*x*sin(x) + x**2*cos(x)",
        "(x^3)''": "6*x",
        "sin'(x)": "cos(x)",
        "g(h(x))": "g(h(x))",
        "f'(x)": "Derivative(f(x), x)",
        "g'(h(x)) h'(x)": "Derivative(g(h(x)), x)",
        "f^{(4)}(x) f'(x)": "Derivative(f(x), (x, 4))*Derivative(f(x), x)",
        "f^{\\prime}(x)": "Derivative(f(x), x)",
    },
}

ONE, TWO = ("v",), ("v", "w")
ANSWERS = [
    Answer("x^3", "f'(x) = 3x^2"),
    Answer("x^3", "y' = 3x²"),
    Answer("x^3", "y′(x) = 3x²"),
    Answer("x^3", "dy/dx = 3x^2"),
    Answer("x^3", "df/dx = 3x^2"),
    Answer("x^3", "\\frac{dy}{dx} = 3x^2"),
    Answer("x^3", "d²y/dx² = 6x", order=2),
    Answer("x^3", "D f = 3x^2"),
    Answer("x^3", "⇒ y' = 3x^2"),
    Answer("sin x", "d/dx sin x = cos x"),
    Answer("sin x", "\\frac{d}{dx} \\sin x = \\cos x"),
    Answer("x^2 sin x", "(x^2)' sin x + x^2 (sin x)' = 2x sin x + x^2 cos x"),
    Answer("g(h(x))", "g'(h(x)) h'(x)"),
    Answer("x^3", "3x^2 (power rule)"),
    Answer("x^3", "= 3x^2 [by the power rule]."),
    Answer("x^3", "&= 3x^2 \\\\"),
    Answer("3,5x^2", "f'(x) = 7,0x"),
    *[Answer("x^2", f"x^2 + 2x v {one}", ONE) for one in
      ("e1", "e_1", "ε1", "ε₁", "eps1", "eps_1", "epsilon1", "epsilon_1", "\\varepsilon_1", "ε", "eps")],
    Answer("x^2", "x^2 + 2x v η", ONE, epsilons=("η",)),
    Answer("x y", "x y + y v d1 + y w d2", TWO, epsilons=("d1", "d2")),
    Answer("x^2", "x^2 + 2x v ε + O(ε²)", ONE),
    Answer("x^2", "x^2 + 2x v \\epsilon + \\mathcal{O}(\\epsilon^2)", ONE),
    Answer("x^2", "x² + 2xv ε₁", ONE),
]  # fmt: skip

ASKED_BACK = [
    "sin x y", "sin 2 x", "sin x (x+1)", "sin x/2", "cos x · 2", "sin x e^x", "ln 2 sin x", "exp x sin x", "sin^-1 x",
    "1/2x", "1/2 x/y v", "v/x² ε_1", "x3", "2x4", "√2x", "√x/2", "√x²", "2½", "|x|y|n|", "x^n!", "n!!", "lg x", "tg x",
    "d/dx x^2 + x", "d/dx x · sin x", "d/dx (x+1)(x+2)", "(x y)'", "g(x+1)", "u(2x)", "3,5 max(x, 1)", "xyz t tz",
    "uz", "x ± 1", "x_1^∞", "\\int x", "{x}", "y'", "x = y", "0.5.2", "sinx", "xsin(x)", "f'(x) = x",
]  # fmt: skip

"""Formulas that people type: what is read, what is refused and where, and that nothing is ever executed."""

from __future__ import annotations

import random

import pytest
import sympy as sp

from codegen.heads import expit, log1p
from symad.classroom.formulas.read import read_formula
from symad.classroom.formulas.tokens import LENGTH_LIMIT, TOKEN_LIMIT
from symad.derivatives.level import Epsilon
from symad.display.mathematics import text_of
from symad.errors import ArgumentError, NotationWarning

x, v, w, eps_1, eps_2 = sp.symbols("x v w eps_1 eps_2")
f, g = sp.Function("f"), sp.Function("g")
NAMES = [x, v, w, eps_1, eps_2, f]

READ = {
    "2x": 2 * x,
    "3x^2 v": 3 * x**2 * v,
    "x sin(x)": x * sp.sin(x),
    "2(x+1)(x-1)": sp.Mul(2, x + 1, x - 1),
    "x(x+1)": x * (x + 1),
    "v w": v * w,
    "2xv": 2 * x * v,
    "eps_1 eps_2": eps_1 * eps_2,
    "ε₁ε_2x": eps_1 * eps_2 * x,
    "eps1*epsilon_2 + ϵ1 ε₂": 2 * eps_1 * eps_2,
    "2 · x × v − 1": 2 * x * v - 1,
    "x² + x³ + x⁻¹ + x¹²": x**2 + x**3 + 1 / x + x**12,
    "-x^2": -(x**2),
    "x^-2": x**-2,
    "2^3^2": sp.Integer(512),
    "e^-x^2": sp.exp(-(x**2)),
    "1/2 x": x / 2,
    "1/2*x": x / 2,
    "v/(2(x+1))": sp.Mul(sp.S.Half, v, 1 / (x + 1)),
    "x*-v": -x * v,
    "--x": x,
    "0.1 x": x / 10,
    "1e-3": sp.Rational(1, 1000),
    ".5": sp.Rational(1, 2),
    "sin^2(x)": sp.sin(x) ** 2,
    "(sin(x))²": sp.sin(x) ** 2,
    "sin'(x)": sp.cos(x),
    "tan''(x)": sp.tan(x).diff(x, 2),
    "arctan(x) + ln(x) + abs(x)": sp.atan(x) + sp.log(x) + sp.Abs(x),
    "atan2(x, v) + max(x, v, 1)": sp.atan2(x, v) + sp.Max(x, v, 1),
    "log1p(x) expit(x)": log1p(x) * expit(x),
    "pi e": sp.pi * sp.E,
    "π": sp.pi,
    "f(x)": f(x),
    "f'(x) v": f(x).diff(x) * v,
    "f’’(x)[v, w]": f(x).diff(x, 2) * v * w,
    "f''(x)v²/2": f(x).diff(x, 2) * v**2 / 2,
    "f(x)(x+1)": f(x) * (x + 1),
    "f^(4)(x) v": f(x).diff(x, 4) * v,
    "2∂₁f(x, v)∂_2∂₂f(x, v)": 2 * f(x, v).diff(x) * f(x, v).diff(v, 2),
}


@pytest.mark.parametrize("text", READ)
def test_is_read(text: str) -> None:
    assert read_formula(text, NAMES, others=False) == READ[text]


REFUSED = {
    "": (1, "empty"),
    "  ": (3, "empty"),
    "__import__('os').system('ls')": (1, "a name begins with a letter"),
    "exec('x')": (1, "'exec'"),
    "open(x)": (1, "'open'"),
    "x.__class__": (2, "no attributes"),
    "sin.func": (4, "no attributes"),
    "lambda: x": (7, "':'"),
    "(lambda x: x)(2)": (10, "':'"),
    "lambda x": (1, "'lambda'"),
    "[x for x in v]": (4, "'for'"),
    "f'{x}'": (3, "'{'"),
    'f"x"': (1, "without an argument"),
    "`x`": (1, "'`'"),
    "x;v": (2, "';'"),
    "x\0": (2, "\\x00"),
    "x = v": (3, "equation"),
    "x, v": (2, "commas"),
    "x if x else v": (3, "'if'"),
    "2 3": (3, "* between"),
    "x 2": (3, "* between"),
    "(x+1)2": (6, "two readings"),
    "1/2x": (4, "parentheses"),
    "x / 2 v": (7, "parentheses"),
    "x y": (3, "stands for nothing"),
    "xq": (1, "stands for nothing"),
    "log(x, 0)": (1, "cannot be computed"),
    "x + ωt": (5, "stands for nothing"),
    "sint": (1, "write sin(t)"),
    "arcfoo x": (1, "a function or a factor"),
    "sin^-2(x)": (4, "inverse"),
    "sin(x, v)": (1, "2 arguments"),
    "sin(": (5, "the end"),
    "sin(x": (4, "never closed"),
    "x)": (2, "open it"),
    "f": (1, "without an argument"),
    "f'[v]": (1, "f'(x)[v]"),
    "f'(x)[v, w]": (6, "1 directions"),
    "f''''''''''''(x)": (2, "primes"),
    "x'": (2, "no term"),
    "f^4(x)": (1, "for a derivative"),
    "f^(99)(x)": (1, "for a derivative"),
    "f^(x": (1, "for a derivative"),
    "∂₁x": (3, "declared function"),
    "∂₃f(x)": (3, "from 1"),
    "∂₀f(x)": (3, "from 1"),
    "∂₁⁻²f(x)": (5, "from 1"),
    "∂₁⁹⁹⁹f(x)": (6, "from 1"),
    "∂f(x)": (1, "PARTIAL"),
    "f'(x, v)": (1, "∂₁f(x, y)"),
    "0x10": (2, "after the number"),
    "1..2": (3, "after the number"),
    "1_000": (2, "begins with a letter"),
    "хv": (1, "CYRILLIC"),
    "Αv": (1, "GREEK CAPITAL"),
    "1/0": (2, "zero"),
    "v/(x - x)": (2, "zero"),
    "0**-1": (2, "zero"),
    "0^0": (2, "0**0"),
    "log(0)": (1, "finite"),
    "9**9**9": (2, "exponent"),
    "x**10**9": (2, "exponent"),
    "x^-5000": (2, "exponent"),
    "2**(2**(2**(2**9)))": (6, "exponent"),
    "3^999.5": (2, "large"),
    "(2^900)^900": (8, "power"),
    "(2^900 x)^900": (10, "power"),
    "2^(1000.5)": (2, "exponent"),
    "10^300*10^300": (1, "large"),
    "1e400": (1, "large"),
    "1e-999999999": (1, "large"),
    "9" * 400: (1, "long"),
    "factorial(10**9)": (1, "argument"),
    "gamma(1e6)": (1, "argument"),
    "polygamma(0, 10^9)": (1, "argument"),
    "exp(exp(exp(9)))": (5, "argument"),
    "cosh(10^9)": (1, "argument"),
    "floor(exp(600))": (1, "computed"),
    "max(sqrt(-2), 1)": (1, "computed"),
    "(" * 500 + "x" + ")" * 500: (42, "too deep"),
    "2**" * 500 + "x": (124, "too deep"),
    "sin(" * 500 + "x" + ")" * 500: (165, "too deep"),
    "x" * (LENGTH_LIMIT + 1): (LENGTH_LIMIT + 1, "characters"),
    "x+" * (TOKEN_LIMIT // 2) + "x+x": (TOKEN_LIMIT + 1, "too many words"),
    "x" * 3000: (1, "stands for nothing"),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:30]))
def test_is_refused_with_its_column(text: str) -> None:
    column, words = {**REFUSED, **WITHOUT_NAMES}[text]
    with pytest.raises(ArgumentError) as caught:
        read_formula(text, NAMES, others=False)
    message, shown, caret = str(caught.value).splitlines()
    assert message.startswith(f"formula, column {column}:"), message
    assert words in message
    assert len(shown) < 80
    if column <= len(text) and text[column - 1].isprintable():
        assert shown[len(caret) - 1] == text[column - 1]


WITHOUT_NAMES = {
    "\\frac{1}{x": (9, "never closed"),
    "\\frac{x}{(1+x}^2)": (10, "never closed in its braces"),
    "\\frac{x}{1+x)^2}": (13, "close what was opened in the braces"),
    "\\frac1e-3": (6, "in braces"),
    "\\frac{1}": (1, "without its argument"),
    "\\foo x": (1, "not read"),
    "\\": (1, "no part"),
    "x}": (2, "'}'"),
    "{x}": (1, "'{'"),
    "x$v": (2, "'$'"),
    "\\sqrt[3{x}": (1, "never closed"),
    "x_{": (3, "never closed"),
    "\\varepsilon_12": (13, "write _{12}"),
    "|x": (1, "the other one"),
    "||": (1, "the other one"),
    "x|": (2, "the other one"),
    "1/|x": (3, "the other one"),
    "x!!": (2, "double factorial"),
    "d^2/dx v": (1, "of order 2 above and 1 below"),
    "d/dx": (1, "the name 'd'"),
    "(x v)'": (6, "two readings"),
    "log_0 x": (1, "base 0"),
    "3,5,2": (4, "','"),
    "3,5 + max(x, 1)": (1, "decimal comma"),
    "max(3,5) + 3,5": (12, "decimal comma"),
    "\\frac{" * 60 + "x" + "}" * 60: (246, "too deep"),
    "|x|+" * 21 + "x": (81, "so many bars"),
}


@pytest.mark.parametrize("text", WITHOUT_NAMES, ids=lambda text: repr(text[:30]))
def test_new_notations_are_refused_with_their_column(text: str) -> None:
    test_is_refused_with_its_column(text)


@pytest.mark.parametrize("text", [None, 3, b"x", ["x"]])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(ArgumentError, match="as a formula"):
        read_formula(text)  # type: ignore[arg-type]


def test_other_names_are_symbols_unless_they_may_mean_something_else() -> None:
    assert read_formula("rate*x + λ₀ + x1", "x") == sp.Symbol("rate") * x + sp.Symbol("lambda_0") + sp.Symbol("x1")
    for text in ("uz", "mk", "oo", "I", "nan", "import", "mint x", "sinu", "x2", "t3", "rate x"):
        with pytest.raises(ArgumentError, match=r"declare|two readings"):
            read_formula(text, "x t")


@pytest.mark.parametrize(("text", "names"), [("kx^2", "x"), ("ωt", "t"), ("xyz", "x")])
def test_a_product_that_nobody_declared_is_read_with_a_note(text: str, names: str) -> None:
    with pytest.warns(NotationWarning, match="is read as .*: a product"):
        product = read_formula(text, names)
    assert len(product.free_symbols) == len(text.partition("^")[0])


def test_a_power_stands_on_one_letter_of_a_word() -> None:
    n, x, y = sp.symbols("n x y")
    assert read_formula("nx^{n-1}", [n, x]) == n * x ** (n - 1)
    assert read_formula("4πx²", [x]) == 4 * sp.pi * x**2
    assert read_formula("2xy^2", [x, y]) == 2 * x * y**2
    assert read_formula("nx^2", [sp.Symbol("nx")]) == sp.Symbol("nx") ** 2
    with pytest.raises(ArgumentError, match=r"write nx or n·x"):
        read_formula("nx^2", [sp.Symbol("nx"), n, x])


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("text", ["2 + h(x+1)", "x F(2)", "u(2x)", "x k(t)", "φ(0)", "h(2x", "g(x) + g"])
def test_a_letter_that_may_be_a_function_is_no_factor(text: str, others: bool) -> None:
    with pytest.raises(ArgumentError, match=r"declare a function \(--functions"):
        read_formula(text, "x t", others=others)


def test_letters_before_a_parenthesis_are_factors_where_nobody_means_a_function() -> None:
    a, b, t, u = sp.symbols("a b t u")
    assert read_formula("a(b + x) x(x + 1)") == a * (b + x) * x * (x + 1)
    assert read_formula("k(2 - t)") == sp.Symbol("k") * (2 - t)
    assert read_formula("x(t) + u(x + 1)", [x, t, u]) == x * t + u * (x + 1)
    assert read_formula("g*(x) + g (x)") == 2 * sp.Symbol("g") * x


def test_declared_names_come_first() -> None:
    e, gamma, sine = sp.symbols("e gamma sine")
    assert read_formula("e gamma", [e, gamma]) == e * gamma
    assert read_formula("sin(2)", {"sin": sine}) == 2 * sine
    assert read_formula("c x", {"c": 3, "x": x}) == 3 * x
    a = sp.Symbol("a", positive=True)
    assert read_formula("a x", [a, x]) == a * x
    assert read_formula("x_1 + x₁ + x1", ["x1"]) == 3 * sp.Symbol("x1")
    assert read_formula("f'[v]", NAMES, point=x) == f(x).diff(x) * v
    assert read_formula("f'(2x)", NAMES) == f(2 * x).diff(x) / 2
    with pytest.raises(ArgumentError, match="as a name"):
        read_formula("x", [x + 1])
    with pytest.raises(ArgumentError, match="stands for"):
        read_formula("x", {"x": object()})


ORDINARY = [
    x**2 * sp.sin(x) - v / (2 * (x + 1)),
    sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi),
    sp.sqrt(x**2 + v**2) ** -3,
    sp.Rational(1, 3) * x ** sp.Rational(2, 3) - sp.log(sp.Abs(x)) / 7,
    eps_1 * eps_2 * f(x).subs(x, v) + 2 * w * (x + 1) * (v - 1),
    sp.atan2(x, v) * sp.Max(x, w) - sp.erf(x) ** 2 * sp.gamma(v),
    sp.sinh(x) / sp.cosh(v) + sp.E * sp.pi**x,
    -(x + 1) * (v - 2) / (w * (x - v) ** 2),
    (sp.sin(x) + 1) ** (x + v),
    f(f(x**2) * x).diff(x, 2) + f(x).diff(x, 5) ** 2,
    g(x * v, v).diff(x) + g(x, v).diff(x, v, v) * g(x, x).diff(x),
    Epsilon.of_level(1) * Epsilon.of_level(2) * x**2,
]


@pytest.mark.parametrize("expression", ORDINARY, ids=str)
def test_round_trip(expression: sp.Expr) -> None:
    names = [*NAMES[:3], f, g, Epsilon.of_level(1), Epsilon.of_level(2)]
    names = [*NAMES, g] if expression.has(eps_1) else names
    assert read_formula(text_of(expression), names) == expression


def pieces(source: random.Random) -> str:
    """Return a formula-like text: words that mean something, in any order."""
    words = ["x", "v", "f", "sin", "exp", "gamma", "floor", "max", "1", "2.5", "9", "1000", "170", "e", "pi", "+", "-"]
    words += ["*", "/", "**", "^", "(", ")", "(", ")", "[", "]", ",", "'", "²", "⁻¹", " ", "ε₁", "eps_2", "sqrt", "0"]
    words += [
        "∂₁",
        "∂₂²",
        "f^(2)",
        "log",
        "cosh",
        "abs",
        "min",
        "tan",
        "polygamma",
        "(x)",
        "(9)",
        "(2)",
        "(1/7)",
        "LambertW",
    ]
    return "".join(source.choice(words) for _ in range(source.randrange(1, 25)))


@pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")
@pytest.mark.parametrize("seed", range(4))
def test_any_text_is_read_or_refused(seed: int) -> None:
    source = random.Random(seed)
    letters = "".join(map(chr, range(256))) + "αεπ₁²′√хΑ\u200b\ud800\U0001f600"
    read = 0
    for _ in range(500):
        for text in (pieces(source), "".join(source.choices(letters, k=source.randrange(40)))):
            try:
                assert isinstance(read_formula(text, NAMES), sp.Expr)
                read += 1
            except ArgumentError:
                continue
    assert read > 15


@pytest.mark.parametrize("word", ["\ud800", "f\x00"])
def test_names_that_no_function_can_have_are_refused(word: str) -> None:
    with pytest.raises(ArgumentError, match="as the name of a function"):
        read_formula("x^2", ["x", f"{word}(x)"])


def test_what_cannot_be_seen_is_shown_by_its_number_in_messages() -> None:
    with pytest.raises(ArgumentError, match=r"known are \\x1b\[31m") as caught:
        read_formula("x^2", [sp.Symbol("\x1b[31m")], others=False)
    assert "\x1b" not in str(caught.value)

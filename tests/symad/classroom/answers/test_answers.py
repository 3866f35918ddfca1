"""check_expansion and check_derivative: right and wrong answers of pupils, and the line, term and mistake named."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import sympy as sp

from symad.classroom.answers import answer_problem
from symad.classroom.answers.answer_check import check_derivative, check_expansion
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.answers.answer_problem import derivative_problem, expansion_problem
from symad.classroom.answers.mistakes import wrong_coefficients
from symad.classroom.equality.equality import agreement
from symad.classroom.expansion.expand import expand
from symad.classroom.grading.question import Question
from symad.derivatives.level import Epsilon
from symad.display.mathematics import text_of
from symad.errors import ArgumentError, InvariantError

x, y, v, w = sp.symbols("x y v w", real=True)
one, two = Epsilon.of_level(1), Epsilon.of_level(2)
ONE, TWO = ["v"], ["v", "w"]
f, g = sp.Function("f"), sp.Function("g")


def square(number: Any) -> Any:
    return number * number


@dataclass(frozen=True)
class Pupil:
    """An answer, the function and the directions; the line, term and mistakes to be named (none: it is right)."""

    mine: Any
    of: Any
    directions: Any = None
    line: int | None = None
    term: sp.Expr | None = None
    kinds: tuple[str, ...] = ()
    x: Any = "x"
    order: int = 1
    finished: bool = True

    def checked(self) -> CheckedAnswer:
        if self.directions is None:
            return check_derivative(self.mine, self.of, self.x, order=self.order)
        return check_expansion(self.mine, self.of, self.x, self.directions)


CUBE = "= x^3 + 3x^2 v eps_1 + 3x^2 w eps_2"
SINE = "sin(x^2) + 2x cos(x^2) v eps_1 + 2x cos(x^2) w eps_2"

RIGHT = {
    "two levels": Pupil(CUBE + " + 6x v w eps_1 eps_2", "x**3", TWO),
    "chain of steps": Pupil("f(x + v eps) = (x + v ε₁)^3\n= x³ + 3x²v ε + 3x v² ε² + v³ ε³\n= x³ + 3x²v ε", "x^3", ONE),
    "factored": Pupil("x^2 (x + 3 v eps_1 + 3 w eps_2) + 6 v w x eps_1 eps_2", "x^3", TWO),
    "nested pairs": Pupil("(x^3 + 3x^2 v eps_1) + (3x^2 w + 6x v w eps_1) eps_2", "x^3", TWO),
    "not multiplied out": Pupil("(x + v eps_1 + w eps_2)^3", "x^3", TWO, finished=False),
    "inside of a sine": Pupil("= sin(x^2 + 2x v eps_1)", "sin(x^2)", ONE, finished=False),
    "double angle": Pupil("f'(x) = 2 sin(x) cos(x) = sin(2x)", "sin(x)^2"),
    "tangent": Pupil(["1 + tan(x)^2", "sec(x)^2", "1/cos(x)^2"], "tan(x)"),
    "side calculation": Pupil(f"f'(x) = 2x cos(x^2)\nf''(x) = 2cos(x^2) - 4x^2 sin(x^2)\n{SINE}"
                              " + (2 cos(x^2) - 4x^2 sin(x^2)) v w eps_1 eps_2", "sin(x^2)", TWO),
    "logarithms": Pupil("1/x + 1/(1+x)", "log(x + x^2)"),
    "logistic": Pupil("= 1/(2 + exp(x) + exp(-x))  # symmetric", "1/(1 + exp(-x))"),
    "a table": Pupil({1: "x y", "eps_1": "y v + x w"}, "x*y", [["v", "w"]], x=["x", "y"]),
    "expressions": Pupil([x**3 + 3 * x**2 * v * one + 3 * x**2 * w * two + 6 * x * v * w * one * two], "x^3", TWO),
    "numbers": Pupil("8 + 12 eps_1 + 24 eps_2 + 24 eps_1 eps_2", lambda x: x**3, [1, 2], x=2.0),
    "undefined": Pupil("f(x + v eps) = f(x) + f'(x) v eps", f(x), ONE, x=x),
    "chain rule itself": Pupil("f(g(x)) + f'(g(x)) g'(x) v eps", f(g(x)), ONE, x=x),
    "moved along x": Pupil("x^2 + 2x^2 eps_1 + 2x^2 eps_2 + 2x^2 eps_1 eps_2", "x^2", ["x", "x"]),
    "a point named like the variable": Pupil("(x+1)^2 + 2(x+1) v eps", square, ONE, x=x + 1),
    "derivative at such a point": Pupil("f'(x+1) = 2(x+1)", lambda x: x * x, x=x + 1),
    "f of f": Pupil("f'(f(x)) = 2 f(x) = 2x^2\nf'(x) = 2x", "x^2"),
    "kink that does not show": Pupil("(0 + v eps) abs(0 + v eps) = 0", "x abs(x)", ONE, x={"x": 0}),
    "still any f": Pupil("f(x + v eps) = f(x) + f'(x) v eps", "x^3", ONE, finished=False),
    "steps": Pupil("sign(x) + floor(x)", "abs(x) + x*floor(x)"),
    "nothing bends": Pupil("0", "abs(x) + max(x, 1)", order=2),
    "over several lines": Pupil("= x^3 + 3x^2 v eps_1\n  + 3x^2 w eps_2  # so far\n  + 6x v (\n w eps_1) *\n eps_2 =\n"
                                " x^3 + 3x^2 (v eps_1 + w eps_2) + 6x v w eps_1 eps_2", "x^3", TWO),
    "side calculation over two lines": Pupil("f'(x) = x cos(x^2) + x cos(x^2)\n= 2x cos(x^2)\n"
                                              "f(x + v eps) = f(x) + f'(x) v eps\n= sin(x^2) + 2x cos(x^2) v eps",
                                              "sin(x^2)", ONE),
    "a function with a name": Pupil("square(x) = x^2\nf'(x) = 2x\nsquare'(x) = x + x", square, x=x),
    "a parameter epsilon": Pupil("4 epsilon x + 4 epsilon v eps_1", "4*epsilon*x", ONE),
    "third derivative": Pupil("f'(x) = 4x^3\nf''(x) = 12x^2\nf'''(x) = 24x", "x^4", order=3),
    "two-level direction": Pupil("x^2 + 2x v eps_1 + 2x w eps_2 + (2v w + 2x u) eps_1 eps_2", "x^2",
                                 {(1,): "v", (2,): "w", (1, 2): "u"}),
}  # fmt: skip

WRONG = {
    "mixed term dropped": Pupil(CUBE, "x^3", TWO, 1, one * two, ("dropped mixed term",)),
    "term dropped": Pupil("x^2 + 2x v eps_1", "x^2", TWO, 1, two, ("dropped term",)),
    "mixed term twice": Pupil(CUBE + " + 12x v w eps_1 eps_2", "x^3", TWO, 1, one * two, ("double-counted",)),
    "mixed term halved": Pupil(CUBE + " + 3x v w eps_1 eps_2", "x^3", TWO, 1, one * two, ("factorial", "power rule")),
    "product of terms": Pupil(CUBE + " + 9x^4 v w eps_1 eps_2", "x^3", TWO, 1, one * two, ("product of terms",)),
    "levels exchanged": Pupil("x^3 + 3x^2 w eps_1 + 3x^2 v eps_2", "x^3", TWO, 1, one, ("confused levels",)),
    "direction of one level twice": Pupil(CUBE + " + 6x v² ε₁ε₂", "x^3", TWO, 1, one * two, ("confused levels",)),
    "one epsilon for all": Pupil("x^3 + 3x^2(v + w) eps + 6x v w eps^2", "x^3", TWO, 1, sp.Symbol("epsilon"),
                                 ("confused levels",)),
    "square kept": Pupil("(x + v eps)^3\n= x^3 + 3x^2 v eps + 3x v^2 eps^2", "x^3", ONE, 2,
                         sp.Pow(one, 2, evaluate=False), ("squared epsilon",)),
    "square read as epsilon": Pupil("x^3 + (3x^2 v + 3x v^2) eps", "x^3", ONE, 1, one, ("squared epsilon",)),
    "middle line": Pupil("(x + v eps)^2\n= x^2 + x v eps\n= x^2 + 2x v eps", "x^2", ONE, 2, one, ("algebra",)),
    "last line": Pupil("= 2 + 2 +\n\n1 # 5\n= 6", "5", ONE, 4, sp.S.One, ("algebra",)),
    "inner derivative forgotten": Pupil("= sin(x^2) + cos(x^2) v eps", "sin(x^2)", ONE, 1, one, ("chain rule",)),
    "inner derivative in the mixed term": Pupil(
        f"f'(x) = 2x cos(x^2)\n{SINE} + (2cos(x^2) - 2x sin(x^2)) v w eps_1 eps_2", "sin(x^2)", TWO, 2, one * two,
        ("chain rule",)),
    "side calculation": Pupil("f'(x) = cos(x^2)\nsin(x^2) + 2x cos(x^2) v eps", "sin(x^2)", ONE, 1, None,
                              ("chain rule",)),
    "general line": Pupil("= f(x) + f''(x) v eps\n= x^3 + 6x v eps", "x^3", ONE, 1, one, ("wrong order",)),
    "second line of a side calculation": Pupil("f'(x) = 2x cos(x^2)\n= 2 cos(x^2)", "sin(x^2)", ONE, 2, None,
                                               ("algebra",)),
    "second line": Pupil("f'(x) = 1/(1 + x^2) * 2x\n= 2/(1 + x^2)", "log(1 + x^2)", None, 2, "first", ("algebra",)),
    "inner logarithm": Pupil("1/(1 + x^2)", "log(1 + x^2)", None, 1, "first", ("chain rule",)),
    "sign of cosine": Pupil("f'(x) = sin(x)", "cos(x)", None, 1, "first", ("wrong sign", "integrated")),
    "product of derivatives": Pupil("3x^2 cos(x)", "x^3 sin(x)", None, 1, "first", ("product rule",)),
    "half of the product rule": Pupil("3x^2 sin(x)", "x^3 sin(x)", None, 1, "first", ("product rule",)),
    "quotient upside down": Pupil("(sin(x) - x cos(x))/x^2", "sin(x)/x", None, 1, "first",
                                  ("quotient rule", "wrong sign")),
    "denominator not squared": Pupil("(x cos(x) - sin(x))/x", "sin(x)/x", None, 1, "first", ("quotient rule",)),
    "exponent in front": Pupil("x^2", "x^3", None, 1, "first", ("power rule",)),
    "exponent stays": Pupil("3x^3", "x^3", None, 1, "first", ("power rule",)),
    "exponential as power": Pupil("x exp(x-1)", "exp(x)", None, 1, "first", ("power rule",)),
    "wrong place": Pupil("2x cos(2x)", "sin(x^2)", None, 1, "first", ("wrong place",)),
    "constant kept": Pupil("3x^2 + 5", "x^3 + 5", None, 1, "first", ("constant",)),
    "constant factor lost": Pupil("cos(x)", "7 sin(x)", None, 1, "first", ("constant",)),
    "wrong order": Pupil("6x", "x^3", None, 1, "first", ("wrong order",)),
    "undefined at the wrong place": Pupil("f(g(x)) + f'(x) g'(x) v eps", f(g(x)), ONE, 1, one, ("wrong place",), x=x),
    "division by epsilon": Pupil("x^2 + 2x v eps + sin(eps v)/eps - v", "x^2", ONE, 1, sp.S.One,
                                 ("division by epsilon",)),
    "value missing": Pupil({"eps_1": "2x v"}, "x^2", ONE, 1, sp.S.One, ("dropped term",)),
    "no value": Pupil("1/x", "x^2", None, 1, "first", ("no value",), x={"x": 0}),
    "absolute value of an epsilon": Pupil("x + v eps + abs(eps)", "x", ONE, 1, one, ("no derivative",)),
    "root of an epsilon": Pupil("x + v eps + eps^1.5", "x", ONE, 1, one, ("no derivative",)),
    "one side of a kink": Pupil("-1", "abs(x - 9)", None, 1, "first", ("wrong place",)),
    "rounded": Pupil("0.3", "x/3", None, 1, "first", ("rounded",)),
    "numbers": Pupil("8 + 6 eps", "x^3", [1], 1, one, ("power rule",), x={"x": 2}),
    "vector": Pupil("x y + y v eps", "x*y", [["v", "w"]], 1, one, ("product rule",), x=["x", "y"]),
    "a table without the mixed term": Pupil({"1": "x^2", "eps_1": "2x v", "eps_2": "2x w"}, "x^2", TWO, 1, one * two,
                                            ("dropped mixed term",)),
    "factor missing": Pupil("y exp(x) + exp(x) eps", "y*exp(x)", [[1, 0]], 1, one, ("direction",), x=["x", "y"]),
    "factor missing in one term": Pupil("x^2 y + 2x v eps + x^2 w eps", "x^2 y", [["v", "w"]], 1, one,
                                        ("missing factor",), x=["x", "y"]),
    "a high power": Pupil("e x^1000 + 170x", "gamma(x)", None, 1, "first", ()),
    "high powers below": Pupil("(x^1000 + a)/(x^999 + 2a + 1)", "x^2 + a", None, 1, "first", ()),
    "nothing known": Pupil("x + 17 sin(x)", "x^2", None, 1, "first", ()),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_answer(name: str) -> None:
    pupil = RIGHT[name]
    answer = pupil.checked()
    assert answer.right is True, (answer.term, answer.written, answer.expected)
    assert answer.finished is pupil.finished
    assert answer.line is answer.term is None
    assert not answer.mistakes


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answer_with_its_line_term_and_mistakes(name: str) -> None:
    pupil = WRONG[name]
    answer = pupil.checked()
    term = sp.Derivative(f(x), x) if pupil.term == "first" else pupil.term
    assert answer.right is False
    assert answer.line is not None
    assert (answer.line.number, answer.term) == (pupil.line, term)
    assert tuple(mistake.kind for mistake in answer.mistakes) == pupil.kinds
    if answer.written is not None:
        assert answer.expected is not None
        assert agreement(answer.written, answer.expected).equal is not True
    assert answer.text(100)


@pytest.mark.parametrize("text", ["x**3*sin(x)", "exp(x)/x", "sin(x**2)", "log(1 + x**2) + 5"])
def test_every_wrong_derivation_is_called_wrong_and_named(text: str) -> None:
    problem = derivative_problem(text, "x", 1)
    made = [wrong for wrong in wrong_coefficients(problem, (1,)) if not wrong.value.has(sp.nan, sp.zoo)]
    wrongs = {wrong.value: wrong.kind for wrong in made if agreement(wrong.value, problem.truth[1,]).equal is False}
    assert len(wrongs) > 9
    for value, kind in wrongs.items():
        answer = check_derivative(text_of(value), text, "x")
        assert answer.right is False
        assert answer.mistakes, kind


@pytest.mark.parametrize("text", ["x**3*sin(x)", "exp(2*x)/x", "tan(x**2)", "log(1 + x**2) + 5", "cosh(x)**2"])
@pytest.mark.parametrize("form", [sp.expand, sp.factor, sp.together, lambda e: e.rewrite(sp.exp), sp.trigsimp])
def test_every_form_of_the_right_answer_is_right(text: str, form: Any) -> None:
    truth = derivative_problem(text, "x", 1).truth[1,]
    assert check_derivative([form(truth)], text, "x").right is True


def test_the_place_of_a_mistake_is_named() -> None:
    answer = check_derivative("cos(x^2) + 3 cos(3x)", "sin(x^2) + sin(3x)", "x")
    assert [str(mistake) for mistake in answer.mistakes] == [
        "chain rule: You left out 2x, the inner derivative of sin(x²)"
    ]
    twice = check_derivative("cos(x^2) + cos(3x)", "sin(x^2) + sin(3x)", "x")
    assert [mistake.kind for mistake in twice.mistakes] == ["chain rule"]


def test_what_cannot_be_decided_is_not_called_right() -> None:
    answer = check_derivative("0", "sqrt(-1 - x^2)", "x")
    assert answer.right is None
    assert answer.line == (1, "0")
    assert "cannot be decided" in answer.text(100)
    known = check_derivative("-x/sqrt(-1 - x^2)", "sqrt(-1 - x^2)", "x")
    assert known.right is True


def test_only_the_left_side_is_no_answer() -> None:
    answer = check_expansion("f(x + v eps)", "x^3", "x", ONE)
    assert answer.right is False
    assert [mistake.kind for mistake in answer.mistakes] == ["unfinished"]
    assert check_derivative("f(x) = x^3", "x^3", "x").right is False


HOSTILE = [
    "__import__('os').system('ls')", "x.__class__", "(lambda: 1)()", "[x for x in v]", "f'{x}'", "9**9**9**9",
    "x**10**9", "(" * 300 + "x" + ")" * 300, "exec('1')", "x;x", "2**(2**(2**(2**(2**9))))", "`x`", "x\0",
    "x" * 10**6, "= = x", "x =", "z", "", "# nothing", "\n" * 500,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_hostile_text_is_refused(text: str) -> None:
    for mine in (text, [text], {"1": text}, {text: "1"}):
        with pytest.raises(ArgumentError):
            check_expansion(mine, "x^3", "x", ONE)


@pytest.mark.parametrize("sign", ["x", "(", "\n", " ", "x^2\n", ","])
def test_a_question_or_an_answer_of_a_million_characters_is_refused(sign: str) -> None:
    text = (sign * 10**6)[: 10**6]
    for question, x in (("x y", ["x", "y"]), ("x^2", "x"), ("x^T A x", "x")):
        with pytest.raises(ArgumentError):
            check_derivative(text, question, x)
    for question in (text, [text, "x"]):
        with pytest.raises(ArgumentError, match="characters"):
            check_derivative("2x", question, "x")


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("type object", ([object()], "x", "x", ONE)),
        ("symbol q", ([sp.Symbol("q")], "x", "x", ONE)),
        ("32 terms", ("x", "x", "x", ["v"] * 5)),
        ("200 lines", ("x\n" * 200, "x", "x", ONE)),
        ("2 results", ("x", lambda x: [x, x], 1.0, [1])),
        ("of 2 arguments", ("f(x, x) = x", "x", "x", ONE)),
        ("the term", ({"eps_1 x": "x"}, "x", "x", ONE)),
        ("without a derivative", ("0", "abs(x)", {"x": 0}, ONE)),
        ("without a derivative", ("0", "x + floor(x)", {"x": 2}, ONE)),
        ("without a derivative", ("0", "sqrt(x)", {"x": 0}, ONE)),
        ("twice", ({"1": "x", "eps_1": "v", (1,): "v"}, "x", "x", ONE)),
        ("without epsilons", ({"1": "x + v eps_1"}, "x", "x", ONE)),
        ("rounded", ("x", lambda x: np.pi * x, x, ONE)),
        ("rounded", ("x", lambda x: x ** (1 / 3), x, ONE)),
        ("different symbols", ("x", sp.Symbol("x", positive=True) ** 2, sp.Symbol("x"), ONE)),
        ("rename it", ("x", "x + eps_1", "x", ONE)),
        ("the term", ({"eps_1^2": "x"}, "x", "x", ONE)),
    ],
)
def test_what_is_no_question_is_refused(words: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ArgumentError, match=words):
        check_expansion(*arguments)


@pytest.mark.parametrize(("f", "order"), [("x*y", 1), ("x", 0), ("x", 7), ("x", True)])
def test_what_is_no_derivative_is_refused(f: str, order: int) -> None:
    with pytest.raises(ArgumentError):
        check_derivative("1", f, ["x", "y"] if "y" in f else "x", order=order)


FUNCTIONS = ["x**3*y", "sin(x*y)/x", "exp(x*sin(y))", "log(1 + x**2*y**2)", "sqrt(x**2 + y**2)", "x**y", "atan2(x, y)"]


@pytest.mark.parametrize("text", FUNCTIONS)
def test_coefficients_are_those_of_sympy_and_of_expand(text: str) -> None:
    """By substituting epsilons and differentiating in them, and by nested forward mode."""
    problem = expansion_problem(text, ["x", "y"], [["v", "w"], ["w", 2]], None)
    moved = problem.formula.subs(dict(zip(problem.symbols, problem.moved, strict=True)), simultaneous=True)
    by_series = problem.coefficients(moved)
    expansion = expand(text, ["x", "y"], [["v", "w"], ["w", 2]])
    for levels in problem.terms:
        assert agreement(problem.truth[levels], by_series[levels]).equal
        found = sp.sympify(expansion.coefficient(*levels))
        renamed = {symbol: sp.Symbol(symbol.name, real=True) for symbol in found.free_symbols}
        assert agreement(problem.truth[levels], found.xreplace(renamed)).equal


@pytest.mark.parametrize("name", ["mixed term twice", "quotient upside down", "nothing known"])
def test_an_answer_is_shown_in_every_form(name: str) -> None:
    answer = WRONG[name].checked()
    assert "✗ wrong" in answer.text(90)
    assert "wrong" in answer.latex()
    ElementTree.fromstring(answer.html())


@pytest.mark.parametrize(
    ("mine", "order", "right"),
    [
        ("y' = 3x^2", 1, True),
        ("dy/dx = 3 x^2", 1, True),
        ("f' = x^2 + x^2 + x^2 = 3x^2", 1, True),
        ("y'' = 6x", 2, True),
        ("y' = 3x^2\ny'' = 6x", 2, True),
        ("dy/dx = 3x", 1, False),
        ("y'' = 3x^2", 2, False),
    ],
)
def test_derivatives_by_the_letters_of_textbooks(mine: str, order: int, right: bool) -> None:
    assert check_derivative(mine, "x^3", "x", order=order).right is right


@pytest.mark.parametrize("mine", ["dy/dt = 3x^2", "z' = 3x^2 z"])
def test_letters_that_stand_for_nothing_are_refused(mine: str) -> None:
    with pytest.raises(ArgumentError, match="line 1"):
        check_derivative(mine, "x^3", "x")


@pytest.mark.parametrize(
    ("formula", "answer"),
    [
        ("(x+1)^2 (x+2)^3 / (x+3)", "(x+1)^2 (x+2)^3/(x+3) * (2/(x+1) + 3/(x+2) - 1/(x+3))"),
        ("(x+1)^2 (x+2)^3 / (x+3)", "(x+1) (x+2)^2 (4x^2 + 19x + 19)/(x+3)^2"),
        ("(x^2+1)^3/(x-1)^4", "(x^2+1)^3/(x-1)^4 * (6x/(x^2+1) - 4/(x-1))"),
        ("arctan((1+x)/(1-x))", "1/(1+x^2)"),
    ],
)
def test_right_answers_in_another_form_are_right(formula: str, answer: str) -> None:
    assert check_derivative(answer, formula, "x")


def test_the_truth_value_of_an_answer_is_its_verdict() -> None:
    assert check_derivative("2x", "x^2", "x")
    assert not check_derivative("x", "x^2", "x")
    assert not check_expansion("x^2 + x v ε", "x^2", "x", ["v"])


def test_a_wrong_answer_is_shown_a_point_where_it_differs() -> None:
    answer = check_derivative("3x", "x^2", "x")
    assert answer.witness is not None
    assert "At x = 2 yours is 6, and the right one is 4." in answer.text(100)


@pytest.mark.parametrize("letter", ["θ", "α", "λ", "φ", "ω", "ε", "σ", "μ", "β", "ψ", "Ω"])
def test_a_greek_variable_is_differentiated(letter: str) -> None:
    assert check_derivative(f"2{letter}", f"{letter}^2", letter)
    assert not check_derivative("0", f"{letter}^2", letter)
    word = sp.Symbol(unicodedata.name(letter).split()[-1].lower()).name
    if letter != "Ω":
        assert check_derivative(f"2{letter}", f"{letter}^2", "lambda" if letter == "λ" else word)


def test_a_variable_that_does_not_occur_is_an_error() -> None:
    with pytest.raises(ArgumentError, match=r"the variable 't': it does not occur in the formula; name one of theta"):
        check_derivative("cos θ", "sin θ", "t")
    with pytest.raises(ArgumentError, match="stands for nothing here"):
        expand("sin θ", "t", ["v"])
    with pytest.raises(ArgumentError, match="does not occur"):
        Question("sin θ", ("t",)).problem()
    assert Question("sin θ", ("θ",)).checked("cos θ")
    assert check_derivative("0", "π^2", "x")
    assert str(expand("sin θ", "θ", ["v"]).coefficient(1)) == "v*cos(theta)"


def test_a_wrong_answer_to_a_piecewise_question_is_wrong() -> None:
    signed = sp.Piecewise((x**2, x > 0), (-(x**2), True))
    joined = sp.Piecewise((x**2, x < 1), (2 * x - 1, True))
    assert check_derivative("2|x|", signed, x)
    assert not check_derivative("2x", signed, x)
    assert not check_derivative("3x", joined, x)
    assert "At x = " in check_derivative("3x", joined, x).text(100)


def test_the_right_coefficients_are_checked_when_a_question_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    right = answer_problem.along
    monkeypatch.setattr(answer_problem, "along", lambda *parts: 2 * right(*parts))
    with pytest.raises(InvariantError, match="does not hold"):
        derivative_problem("x^2", "x", 1)


@pytest.mark.parametrize(
    ("formula", "answer", "digits", "right"),
    [
        ("x/3", "0.333", 2, True),
        ("x/3", "≈ 0.3333", 2, True),
        ("x/3", "0.34", 2, False),
        ("x/3", "0.3", 2, False),
        ("x/3", "0.3", 1, True),
        ("x/3", "0.333", 0, False),
        ("x/3", "0.333", 4, False),
        ("x^3/9", "0.333x^2", 2, True),
        ("3x^2", "6.1x", 2, False),
        ("3x^2", "6.04x", 2, False),
        ("3x^2", "6.0x", 2, True),
        ("sqrt(2) x", "1.41", 2, True),
        ("x^pi", "3.14x^2.14", 2, True),
        ("x^pi", "3.14x^2.24", 2, False),
        ("0.5x^2", "1.0x", 0, True),
    ],
)
def test_decimal_numbers_are_right_where_they_are_rounded_properly(
    formula: str, answer: str, digits: int, right: bool
) -> None:
    assert check_derivative(answer, formula, "x", digits=digits).right is right


def test_decimal_numbers_at_a_point_and_in_expansions() -> None:
    assert check_derivative("0.540302", "sin x", {"x": 1})
    assert check_derivative("0.54", "sin x", {"x": 1})
    assert not check_derivative("0.9998", "sin x", {"x": 1})
    assert check_expansion("0.84 + 0.54 v ε", "sin x", {"x": 1}, ["v"])
    assert not check_expansion("0.84 + 0.55 v ε", "sin x", {"x": 1}, ["v"])
    assert "up to the rounding of decimal numbers" in check_derivative("0.54", "sin x", {"x": 1}).text(120)


@pytest.mark.parametrize(
    ("formula", "at", "order", "answer", "right"),
    [
        ("e^x", 0, 3, "1 + ε + ε²/2 + ε³/6", True),
        ("e^x", 0, 3, "1 + ε + ε²/2 + ε³/6 + O(ε^4)", True),
        ("e^x", 0, 3, "1 + ε + ε²/2 + ε³/3", False),
        ("e^x", 0, 3, "1 + ε + ε²/2", False),
        ("e^x", 0, 3, "1 + x + x^2/2 + x^3/6 + O(x^4)", True),
        ("e^x", 0, 2, "1 + x + x^2", False),
        ("sqrt(1+x)", 0, 2, "1 + ε/2 - ε^2/8", True),
        ("ln x", 1, 2, "(x-1) - (x-1)^2/2 + O((x-1)^3)", True),
        ("e^x", 0, 2, "1 + ε1 + ε2 + ε1ε2", True),
    ],
)
def test_a_taylor_polynomial_in_one_name_is_an_answer(
    formula: str, at: int, order: int, answer: str, right: bool
) -> None:
    assert check_expansion(answer, formula, {"x": at}, 1, order=order).right is right


def test_a_remainder_of_a_taylor_polynomial_that_swallows_a_term_is_refused() -> None:
    with pytest.raises(ArgumentError, match="remainder"):
        check_expansion("1 + x + O(x^2)", "e^x", {"x": 0}, 1, order=2)


@pytest.mark.parametrize(
    ("formula", "answer"),
    [
        ("x^2", "(x + vε)^2\n= x^2 + 2xvε + v^2ε^2\nε^2 = 0\n= x^2 + 2xvε"),
        ("x^2", "x^2 + 2xvε, since ε² = 0"),
        ("x^2", "x^2 + 2xvε (ε² = 0)"),
        ("1/x", "1/x - v/x² ε"),
    ],
)
def test_the_rule_of_epsilon_is_no_step(formula: str, answer: str) -> None:
    assert check_expansion(answer, formula, "x", ONE)


@pytest.mark.parametrize(
    ("formula", "answer"),
    [
        ("x^2", "Answer: 2x"),
        ("x^2", "\\boxed{2x}"),
        ("x^2", "2x;"),
        ("x^2", "dy = 2x dx"),
        ("x^2 y", "∂f/∂x = 2xy"),
        ("x^2 y", "f_x = 2xy"),
        ("x^2", "thus y' = 2x, where x is real"),
        ("x^2", "2x, x ∈ ℝ"),
        ("ln x", "1/x for x > 0"),
        ("|x|", "\\begin{cases} 1 & x>0 \\\\ -1 & x<0 \\end{cases}"),
        ("x^2 sin x", "u = x^2, v = sin x\nu' = 2x, v' = cos x\nf'(x) = u'v + uv' = 2x sin x + x^2 cos x"),
        ("(x^2+1)^3", "u = x^2+1\ny = u^3\ndy/du = 3u^2\ndu/dx = 2x\ndy/dx = dy/du · du/dx = 6x(x^2+1)^2"),
        ("f(x)g(x)", "f'g + fg'"),
        ("x^x", "ln y = x ln x\ny'/y = ln x + 1\ny' = x^x (ln x + 1)"),
        ("4.9 x^2", "v(x) = s'(x) = 9.8x"),
        ("tan^-1(x)", "1/(1+x^2)"),
        ("x 2^x", "2^x + x 2^x ln 2"),
    ],
)
@pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")
def test_ordinary_notation_around_an_answer_is_read(formula: str, answer: str) -> None:
    assert check_derivative(answer, formula, "x")


@pytest.mark.parametrize(
    ("formula", "answer"),
    [
        ("f(x)g(x)", "f'g'"),
        ("|x|", "\\begin{cases} 1 & x>0 \\\\ 1 & x<0 \\end{cases}"),
        ("x^2 sin x", "u = x^2, v = sin x\nu' = 2x, v' = cos x\nu'v' = 2x cos x"),
        ("x^2 sin x", "u = x^2, v = sin x\nu' = x, v' = cos x\nu'v + uv' = 2x sin x + x^2 cos x"),
        ("x^x", "ln y = x ln x\ny'/y = ln x\ny' = x^x ln x"),
        ("(x^2+1)^3", "u = x^2+1\ndy/du = 3u^3"),
    ],
)
def test_wrong_answers_in_ordinary_notation_are_wrong(formula: str, answer: str) -> None:
    assert check_derivative(answer, formula, "x").right is False


def test_a_constant_of_integration_is_named() -> None:
    answer = check_derivative("2x + C", "x^2", "x")
    assert [mistake.kind for mistake in answer.mistakes] == ["constant of integration"]


def test_an_answer_under_a_condition_is_not_called_wrong() -> None:
    assert check_derivative("1 for x > 0", "|x|", "x").right is None


def test_the_exponent_minus_one_is_asked_back_where_the_answer_hangs_on_it() -> None:
    with pytest.raises(ArgumentError, match="two readings"):
        check_derivative("cos x sin^{-1} x", "ln(sin x)", "x")


DIAGNOSED = [
    ("tan x", "sec x tan x", "derivative of another function"),
    ("sec x", "sec^2 x", "derivative of another function"),
    ("arcsin x", "-cos x/sin^2 x", "derivative of another function"),
    ("1/(1+x^2)", "1/(2x)", "quotient rule"),
    ("log_2 x", "1/x", "logarithm"),
    ("π^2", "2π", "constant"),
    ("e^2 x", "2e x + e^2", "constant"),
    ("e^{x^2}", "x^2 e^{x^2-1}", "power rule"),
    ("x^x", "x^x", "power rule"),
    ("x^2 y", "x^2", "wrong variable"),
    ("x^2 y + y^3", "2xy + 3y^2", "wrong variable"),
    ("|x|", "1", "absolute value"),
    ("|x^2-1|", "2x", "absolute value"),
    ("(x+1)^2 (x+2)^3", "2/(x+1) + 3/(x+2)", "logarithmic differentiation"),
    ("x^2 sin x", "2x cos x", "product rule"),
    ("(3x+2)^5", "5(3x+2)^4", "chain rule"),
    ("x^4 - 2x^3", "2x^3 - 6x^2", ""),
]


@pytest.mark.parametrize(("formula", "answer", "kind"), DIAGNOSED)
def test_a_mistake_is_named_first_or_none_is(formula: str, answer: str, kind: str) -> None:
    found = check_derivative(answer, formula, "x")
    assert found.right is False
    assert (found.mistakes[0].kind if found.mistakes else "") == kind


@pytest.mark.parametrize(
    ("formula", "answer", "kind"),
    [
        ("f(g(x))", "f''(g(x)) g''(x)", "chain rule"),
        ("f(g(x))", "f''(g(x)) g'(x)^2", "chain rule"),
        ("sin(3x)", "-3 sin 3x", "chain rule"),
        ("x sin x", "-x sin x", "product rule"),
        ("ln x", "1/x", "wrong order"),
    ],
)
def test_a_mistake_with_a_second_derivative_is_named_first(formula: str, answer: str, kind: str) -> None:
    assert check_derivative(answer, formula, "x", order=2).mistakes[0].kind == kind


def test_a_slip_of_algebra_is_called_that_and_marked_once() -> None:
    answer = check_derivative("f'(x) = 2x e^x + x^2 e^x\n= 3x^3 e^x\n= 3 e^x x^3", "x^2 e^x", "x")
    assert answer.line is not None
    assert answer.line.number == 2
    assert [mistake.kind for mistake in answer.mistakes] == ["algebra"]
    assert "follows from the line before" in answer.text(100)
    freshman = check_derivative("y = x^2 + 1\ny' = 2x", "(x+1)^2", "x")
    assert str(freshman.mistakes[0]) == "algebra: You took (x + 1)² term by term, but it is not x² + 1"


def test_the_right_answer_can_be_withheld() -> None:
    for reveal, shown in (("always", True), ("after", False), ("never", False)):
        page = check_derivative("7x", "x^3", "x", reveal=reveal).text(100)  # type: ignore[arg-type]
        assert ("it is" in page) is shown
        assert ("3x²" in page) is shown
        assert ("the right one is 12" in page) is shown
    with pytest.raises(ArgumentError, match="reveal='later'"):
        check_derivative("3x", "x^3", "x", reveal="later")  # type: ignore[arg-type]


def test_latex_is_shown_beside_what_was_understood() -> None:
    page = check_derivative("\\frac{x}{2} + \\frac{x}{2}", "x^2/2", "x").text(120)
    assert "understood as" in page
    assert "understood as" not in check_derivative("x", "x^2/2", "x").text(120)


@pytest.mark.parametrize(
    ("answer", "order", "right", "finished"),
    [
        ("∇f = (2xy, x^2 + 3y^2)", 1, True, True),
        ("\\begin{pmatrix} 2xy \\\\ x^2+3y^2 \\end{pmatrix}", 1, True, True),
        ("f_x = 2xy\nf_y = x^2 + 3y^2", 1, True, True),
        ("f_x = 2xy, f_y = x^2 + 3y^2", 1, True, True),
        ("f_x = 2xy", 1, True, False),
        ("∂f/∂x = 2xy\n∂f/∂y = x^2", 1, False, True),
        ("(2xy, x^2)", 1, False, True),
        ("H = [[2y, 2x],[2x, 6y]]", 2, True, True),
        ("H = [[2y, 2x],[2x, 6x]]", 2, False, True),
        ("f_{xy} = 2x", 2, True, False),
        ("f_{xy} = 2y", 2, False, True),
    ],
)
def test_gradients_and_hessians(answer: str, order: int, right: bool, finished: bool) -> None:
    found = check_derivative(answer, "x^2 y + y^3", ["x", "y"], order=order)
    assert (found.right, found.finished) == (right, finished)


@pytest.mark.parametrize("answer", ["(2xy)", "2xy", "g = (1, 2)", "(1, 2, 3)", ""])
def test_what_is_no_gradient_is_refused(answer: str) -> None:
    with pytest.raises(ArgumentError, match=r"vector|entries|left side|empty"):
        check_derivative(answer, "x^2 y", ["x", "y"])


def test_a_gradient_at_a_point() -> None:
    assert check_derivative("(12, 4)", "x^2 y", {"x": 2, "y": 3})
    assert not check_derivative("(12, 5)", "x^2 y", {"x": 2, "y": 3})


@pytest.mark.parametrize(
    ("formula", "answer"),
    [
        ("x^3", "The derivative is 3x^2"),
        ("x^3", "3x^2 by the power rule"),
        ("4.9x^2", "9.8x m/s"),
        ("1/f(x)", "-f'/f^2"),
        ("ke^{-kx}", "-k^2e^{-kx}"),
        ("x^x", "x^x = e^{x ln x}\nf'(x) = e^{x ln x}(ln x + 1) = x^x(ln x+1)"),
    ],
)
@pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")
def test_words_units_and_rewritten_functions_around_an_answer(formula: str, answer: str) -> None:
    assert check_derivative(answer, formula, "x")


@pytest.mark.parametrize("answer", ["sin x + v cos x ε", "sin x + cos x v ε", "sin x + cos x vε", "sin x + v cos(x) ε"])
def test_an_epsilon_is_no_part_of_an_argument_without_parentheses(answer: str) -> None:
    assert check_expansion(answer, "sin x", "x", ONE)


@pytest.mark.parametrize(
    ("equation", "answer", "right", "finished"),
    [
        ("x^2 + y^2 = 25", "dy/dx = -x/y", True, True),
        ("x^2 + y^2 = 25", "x^2 + y^2 = 25\n2x + 2y y' = 0\ny' = -x/y", True, True),
        ("x^2 + y^2 = 25", "d/dx(x^2) + d/dx(y^2) = 0", True, False),
        ("x^2 + y^2 = 25", "2x + 2y dy/dx = 0", True, False),
        ("x^2 + x y + y^3 = 1", "2x + y + x y' + 3y^2 y' = 0", True, False),
        ("x^2 + x y + y^3 = 1", "2x + x y' + 3y^2 y' = 0", False, True),
        ("x y = 1", "dy/dx = -y/x = -1/x^2", True, True),
        ("x y = 1", "dy/dx = 1/x^2", False, True),
        ("x^2 + y^2 = 25", "2x + 2y = 0", False, True),
        ("y^2 = x", "y' = 1/(2√x)", None, True),  # where y > 0
    ],
)
def test_implicit_differentiation(equation: str, answer: str, right: bool | None, finished: bool) -> None:
    found = check_derivative(answer, equation, "x")
    assert (found.right, found.finished) == (right, finished)


@pytest.mark.parametrize(
    ("answer", "right", "finished"),
    [
        ("(f(x+h) - f(x))/h = 3x^2 + 3xh + h^2", True, False),
        ("(f(x+h) - f(x))/h = 3x^2 + 3xh", False, True),
        ("(f(x+h) - f(x))/h = ((x+h)^3 - x^3)/h = 3x^2 + 3xh + h^2\nf'(x) = 3x^2", True, True),
    ],
)
def test_a_difference_quotient_is_read(answer: str, right: bool, finished: bool) -> None:
    found = check_derivative(answer, "x^3", "x")
    assert (found.right, found.finished) == (right, finished)


@pytest.mark.parametrize(("answer", "formula"), [("6.1x", "3x^2"), ("0.9cos(x)", "sin(x)"), ("6.04x", "3x^2")])
def test_a_wrong_number_is_not_called_rounded(answer: str, formula: str) -> None:
    assert check_derivative(answer, formula, "x").mistakes == ()


def test_a_number_with_too_few_digits_is_called_rounded() -> None:
    assert str(check_derivative("0.33", "x/3", "x", digits=3).mistakes[0]) == (
        "rounded: You rounded too much: give 3 significant digits or more"
    )
    assert str(check_derivative("0.33", "x/3", "x", digits=0).mistakes[0]) == (
        "rounded: You rounded too much: write the number exactly"
    )


def test_a_direction_with_the_name_of_the_variable_is_shown() -> None:
    assert "Level 2" in expand("2x cos(x^2)", "x", ["v", "x"]).text(100)


@pytest.mark.parametrize(
    ("formula", "answer"),
    [
        ("f(x)^3", "3f^2(x) f'(x)"),
        ("f(x)^3", "3f²(x) f'(x)"),
        ("1/f(x)", "-f^{-2}(x) f'(x)"),
        ("x^x", "y' = y("),
    ],
)
def test_a_function_with_a_power_before_a_parenthesis_is_asked_back(formula: str, answer: str) -> None:
    with pytest.raises(ArgumentError, match=r"before its argument|before a parenthesis|the end of the formula"):
        check_derivative(answer, formula, "x")


@pytest.mark.parametrize(("formula", "answer"), [("f(x)^3", "3f^2 f'"), ("1/f(x)", "-f' f^{-2}")])
def test_a_power_of_a_function_without_its_argument_is_read(formula: str, answer: str) -> None:
    assert check_derivative(answer, formula, "x")


def test_a_taylor_polynomial_of_order_five() -> None:
    assert check_expansion("x - x³/6 + x⁵/120", "sin x", {"x": 0}, 1, order=5)
    assert not check_expansion("x - x³/6 + x⁵/60", "sin x", {"x": 0}, 1, order=5)
    assert check_expansion("1 - x + x^2 - …", "1/(1+x)", {"x": 0}, 1, order=2)
    assert check_expansion("9+6ε, so f'(3) = 6", "x^2", {"x": 3}, ["1"])

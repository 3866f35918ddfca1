"""`steps`: the derivative of a function of calculus, rule by rule, as a textbook or a blackboard has it.

A derivative at a point, and why there is none, come from difference quotients, which share no code with the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import sympy as sp

from codegen.records import dataclass
from symad.classroom.answers.answer_problem import real
from symad.classroom.derivation.derivation_lines import DerivationLine, Detail
from symad.classroom.derivation.derivation_sections import DerivationQuestion, Derived, Section, asked
from symad.classroom.derivation.tidying import in_book_order
from symad.classroom.equality.slopes import put, slope_at
from symad.classroom.equality.turns import turns
from symad.classroom.expansion.displayed import Definitions, check_equality
from symad.classroom.formulas.read import read_formula
from symad.derivatives.application import check_choice
from symad.display.document import Block, Document, Formula, Heading, Inline, Paragraph
from symad.display.notation import Nothing
from symad.display.shown import Shown
from symad.errors import InvariantError
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal

_MOST_ORDERS = {"function": 6, "several": 2, "equation": 4, "curve": 3, "matrix": 1}
_MOST_DEGREE = 4  # of polynomials whose roots are looked at

Prose = tuple[Inline, ...]


def kinks(question: DerivationQuestion) -> Iterator[Prose]:
    """Yield the points at which f is defined and has no derivative, with the reason."""
    if question.kind != "function" or question.constants or question.formulas[0].has(sp.floor, sp.ceiling):
        return
    (f,), (x,), places = question.formulas, question.variables, set[sp.Expr]()
    for zero in turns([f]):
        if zero.is_polynomial(x) and 0 < sp.degree(zero, x) <= _MOST_DEGREE:
            places |= {root for root in sp.roots(zero, x) if root.is_real}
    powers = [power for power in f.atoms(sp.Pow) if power.exp.has(x)]  # x^x begins at 0
    places -= {place for place in places if any(power.base.subs(x, place) == 0 for power in powers)}
    for place in sorted(places, key=float):
        slope, why = slope_at(f, x, place)
        if slope is None and "not defined" not in why:
            yield (_primed(question, 1, place), f" does not exist: {why}")


def _primed(question: DerivationQuestion, order: int, place: sp.Expr) -> sp.Basic:
    (x,) = question.variables
    return sp.Subs(sp.Derivative(sp.Function(question.name)(x), (x, order)), x, place)


def value_at(question: DerivationQuestion, sections: tuple[Section, ...], order: int, at: Any) -> tuple[Any, Prose]:
    """Return the value of the derivative at a point (None if it does not exist there), and how it is said."""
    point, last = _point(question, at), sections[-1]
    value, where = put(question.with_y(last.result), point), ", ".join(f"{x} = {place}" for x, place in point.items())
    if question.kind == "function":
        ((x, place),), name = point.items(), _primed(question, order, *point.values())
        if place.is_number and not question.constants:
            slope, why = slope_at(sections[-2].result if order > 1 else question.formulas[0], x, place)
            if slope is None:
                return None, (name, f" does not exist: {why}")
            value = value if _is_number(value) else slope
            if abs(sp.N(value - slope)) > 1e-4 * (1 + abs(slope)):
                raise InvariantError("a derivative that is not the slope", where=f"{where}: {value} and {slope}")
        else:
            check_equality(last.meaning, value, Definitions("", (), None, point))
        return value, (name, " = ", value)
    sides = [put(question.with_y(f), point) for f in question.formulas]
    if question.kind == "equation" and sp.simplify(sides[0] - sides[1]) != 0:
        why = f"the sides are {sides[0]} and {sides[1]} there"
        raise refusal(f"the point {where}", why, "give a point of the curve")
    if not (_is_number(value) or question.constants):
        return None, (f"At {where} there is no derivative",)
    if last.meaning is not None:
        check_equality(last.meaning, value, Definitions("", (), None, point))
    return value, (f"At {where}: ", last.left, " = ", value)


def _is_number(value: Any) -> bool:
    parts = value if isinstance(value, sp.Tuple | sp.MatrixBase) else [value]
    return all(part.is_finite and part.is_real for part in parts)


def _point(question: DerivationQuestion, at: Any) -> dict[Any, sp.Expr]:
    """Return a point as exact values of the variables."""
    names = [*question.variables, *([question.dependent] if question.dependent is not None else [])]
    given = {str(name): value for name, value in at.items()} if isinstance(at, Mapping) else {}
    values = list(map(given.get, map(str, names))) if given else list(at) if isinstance(at, list | tuple) else [at]
    if len(values) != len(names) or None in values:
        raise refusal(f"at={at!r}", do=f"give a value for {', '.join(map(str, names))}")
    return {name: real(read_formula(v) if isinstance(v, str) else v) for name, v in zip(names, values, strict=True)}


@dataclass(frozen=True, eq=False, repr=False)
class Derivation(Shown):
    """The derivation of a derivative: sections of lines, each line with its rule. `print` shows it.

    `value` is the derivative at the point that was asked for; None if there is no point, or no derivative at it.
    """

    question: DerivationQuestion
    sections: tuple[Section, ...]
    value: Any
    notes: tuple[Prose, ...]

    @property
    def lines(self) -> tuple[DerivationLine, ...]:
        """All lines: each has `rule`, `before`, `after`, `condition` and `text`."""
        return tuple(line for section in self.sections for line in section.lines)

    @property
    def result(self) -> Any:
        """The derivative as a SymPy expression; a tuple for a gradient, a matrix for a Hessian."""
        return self.question.with_y(self.sections[-1].result)

    @property
    def title(self) -> str:
        return "Derivative, step by step"

    def document(self) -> Document:
        """Return the question, the lines, and the results."""
        blocks: list[Block] = [Heading(self.title, 1), *self._question()]
        for section in self.sections:
            blocks += [Heading(section.heading)] if section.heading and len(self.sections) > 1 else []
            blocks += map(self._formula, section.lines)
            if not any(section.left == line.before for line in section.lines):
                blocks.append(Formula(self.question.with_y(section.shown), self.question.with_y(section.left)))
        return (*blocks, *(Paragraph(tuple(map(self.question.with_y, note))) for note in self.notes))

    def _question(self) -> Iterator[Block]:
        question = self.question
        if question.kind == "equation":
            left, right = map(self.question.with_y, question.formulas)
            yield Formula(right, left, f"{question.dependent} depends on {question.variables[0]}")
        if question.kind == "matrix":
            return
        for letter, f in zip("xy" if question.kind == "curve" else question.name, question.formulas, strict=False):
            if question.kind != "equation":
                yield Formula(in_book_order(f), sp.Function(letter)(*question.variables))
        if constants := ", ".join(map(str, question.constants)):
            yield Paragraph(f"{constants}: constant")

    def _formula(self, line: DerivationLine) -> Block:
        condition = () if line.condition is sp.true else ("; for ", line.condition)
        reason = tuple(self.question.with_y(part) for part in (*line.reason, *condition))
        left = self.question.with_y(line.before) if line.starts else Nothing()
        return Formula(self.question.with_y(line.after), left, reason)


@public_api
def steps(f: Any, x: Any, *, order: int = 1, at: Any = None, along: Any = None, detail: Detail = "short") -> Derivation:
    """Return the derivative of f in x, line by line, each with its rule, as a textbook writes it.

    f is a formula in a string, a SymPy expression, or a function of one argument; x is a symbol or its name. With a
    list of symbols, f is differentiated in each (the gradient), with order=2 the Hessian follows, with `along` the
    derivative in a direction, taken as it is written: "(3, 4)/5" has the length 1. An equation such as
    "x^2 + y^2 = 25" gives y' where y depends on x, and a pair (x(t), y(t)) with "t" the slope of the curve. Formulas of
    matrices, such as "x^T A x" or "log det X", are derived by differentials. `at` is a point at which the derivative is
    evaluated, or is said not to exist. `detail="full"` gives every rule its own line.

    ArgumentError for what cannot be read, RuleError for a function without a derivative, LimitError for a formula that
    nobody would differentiate by hand.

    >>> print(steps("x^2 sin x", "x"))
    Derivative, step by step
    <BLANKLINE>
      f(x) = x²·sin(x)
      d/dx[x²·sin(x)] = d/dx[x²]·sin(x) + x²·d/dx[sin(x)]    [product rule: u = x², v = sin(x)]
       = 2x·sin(x) + x²·cos(x)    [power rule; sine]
       = x·(x·cos(x) + 2sin(x))    [common factors]
      f′(x) = x·(x·cos(x) + 2sin(x))
    >>> steps("|x - 1|", "x", at=3).value, steps("x^2 y", ["x", "y"], along="(3, 4)/5", at={"x": 2, "y": 1}).value
    (1, 28/5)
    >>> print(steps("x^T A x", "x").lines[-1].text)
    ∇f = (A + Aᵀ) x    [read off: df = (∇f)ᵀ dx]
    """
    check_choice("detail", detail, get_args(Detail))
    question = asked(f, x, along)
    most = _MOST_ORDERS[question.kind]
    if isinstance(order, bool) or order not in range(1, most + 1):
        raise refusal(f"order={order!r}", do=f"give an integer from 1 to {most}")
    if at is not None and question.kind == "matrix":
        raise refusal("a point of a formula of matrices", do="leave at out: the result is a formula")
    derived = Derived(question, order, detail)
    unchecked = "Not checked with numbers: no point was found at which all functions have known real values"
    notes: list[Prose] = [] if derived.is_checked else [(unchecked,)]
    absent = [x for x in question.variables if not any(part.has(x) for part in question.formulas)]
    notes += [(f"{x} does not occur in {question.name}: the derivative is 0",) for x in absent]
    notes += [(note,) for note in question.differentials.notes] if question.differentials is not None else []
    if question.direction and sp.simplify(length := sp.sqrt(sum(entry**2 for entry in question.direction))) != 1:
        notes.append(("v is taken as it is; its length is ", length))
    value, said = (None, ()) if at is None else value_at(question, derived.sections, order, at)
    notes += dict.fromkeys([*kinks(question), *([said] if said else [])])
    return Derivation(question, derived.sections, value, tuple(notes))

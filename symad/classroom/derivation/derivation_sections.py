"""What is to be differentiated, and the sections of its derivation; every displayed equality is checked.

A question is a function of one or several variables, an equation, or a parametric curve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, pairwise, product
from typing import Any, Literal

import sympy as sp
from mpmath import mp
from sympy.core.function import AppliedUndef

from codegen.records import dataclass
from symad.classroom.answers.answer_problem import asked_formula
from symad.classroom.answers.asked import Asked
from symad.classroom.answers.implicit_problem import ImplicitProblem, is_equation, parts_of_equation
from symad.classroom.derivation.derivation_lines import DerivationLine, Detail, derived, tidied_lines
from symad.classroom.derivation.tidying import WAYS, cost, evaluated, in_book_order
from symad.classroom.equality.independent_values import DIGITS, UnknownValueError
from symad.classroom.expansion.displayed import Definitions, check_equality
from symad.classroom.formulas.given import names_in
from symad.classroom.formulas.read import read_formula
from symad.classroom.matrix_calculus.differentials import Differentials
from symad.classroom.matrix_calculus.matrix_formulas import is_of_matrices
from symad.display.mathematics import signs_of
from symad.display.notation import RAISED, Nothing, Pending, WrittenProduct, WrittenSum, counted
from symad.errors import LimitError
from symad.tracing.calling.user_place import refusal

_PLACES = [sp.Rational(text) for text in "17/10 -23/10 2/5 -1/2 39/10 28/5 -47/10 1/15 37/3 -12 26/25 47".split()]  # noqa: SIM905
_AGREED = mp.mpf(10) ** -36  # of slopes with 50 and with 100 digits
_INVERSE = re.compile(r"[A-Z]\s*(?:\^\s*[({]?\s*-\s*1|⁻¹)")
_POINTS = 3  # at which a line is checked
MOST_OPERATIONS = 150
_MOST_VARIABLES = 6

Kind = Literal["function", "several", "equation", "curve", "matrix"]


@dataclass(frozen=True)
class DerivationQuestion:
    """The kind of a question, its formulas (f; both sides of an equation; x(t) and y(t)), and its variables.

    `dependent` is the y of an equation. In its formulas y is a function of x. `direction` is that of a directional
    derivative; `differentials` derive a formula of matrices.
    """

    kind: Kind
    formulas: tuple[sp.Expr, ...]
    variables: tuple[sp.Symbol, ...]
    dependent: sp.Symbol | None = None
    direction: tuple[sp.Expr, ...] = ()
    differentials: Differentials | None = None

    @property
    def name(self) -> str:
        """A name for the function that the formulas do not use."""
        used = {part.func.__name__ for f in self.formulas for part in f.atoms(AppliedUndef)}
        used |= {symbol.name for f in (*self.formulas, *self.variables) for symbol in f.free_symbols}
        return next(name for name in "fFhGHKLPQR" if name not in used)

    @property
    def constants(self) -> list[sp.Symbol]:
        """The other letters."""
        letters: set[sp.Symbol] = set().union(*(f.free_symbols for f in self.formulas))
        return sorted(letters - {*self.variables, self.dependent}, key=str)

    def with_y(self, part: Any) -> Any:
        """Return a formula with y and y' in place of y(x) and y'(x)."""
        if self.dependent is None or not isinstance(part, sp.Basic):
            return part
        y = self.y_of_x
        primes = {
            sp.Derivative(y, (*self.variables, k)): sp.Symbol(f"{self.dependent}{k * chr(39)}") for k in range(1, 6)
        }
        return part.xreplace({**primes, y: self.dependent})

    @property
    def y_of_x(self) -> sp.Expr:
        """The dependent symbol of an equation as a function."""
        return sp.Function(str(self.dependent), real=True)(*self.variables)


def asked(f: Any, x: Any, along: Any = None) -> DerivationQuestion:
    """Return a question from what a user gives; LimitError for one that nobody would answer by hand."""
    question = _asked(f, x)
    if along is not None and question.kind != "several":
        do = "name several variables: ['x', 'y'], or --variables x y"
        raise refusal(f"a direction, {along!r:.40}, for a derivative in one variable", do=do)
    if along is not None:
        question = replace(question, direction=tuple(Asked(along=along).direction(len(question.variables))))
    operations = sum(int(sp.count_ops(formula)) for formula in question.formulas)
    if operations > MOST_OPERATIONS or len(question.variables) > _MOST_VARIABLES:
        what = f"a derivation of {operations} operations in {counted(len(question.variables), 'variable')}"
        do = f"give a formula of at most {MOST_OPERATIONS} in {_MOST_VARIABLES}, or use sa.derivative"
        raise LimitError(what, do=do)
    return question


def _asked(f: Any, x: Any) -> DerivationQuestion:
    if is_of_matrices(f, x, f"d{x}" if _INVERSE.search(str(f)) else ""):
        differentials = Differentials(f, x)
        return DerivationQuestion("matrix", (differentials.f,), (differentials.x,), differentials=differentials)
    is_one = isinstance(x, str | sp.Symbol)
    if is_one and (isinstance(f, sp.Equality) or is_equation(f, x)):
        left, right, variable, dependent = parts_of_equation(f, x)
        y = DerivationQuestion("equation", (), (variable,), dependent).y_of_x
        sides = tuple(side.xreplace({dependent: y}) for side in (left, right))
        return DerivationQuestion("equation", sides, (variable,), dependent)
    if isinstance(f, list | tuple):
        if len(f) != 2 or not is_one:
            raise refusal(f"{len(f)} formulas", do="give one formula, or a curve as a pair (x(t), y(t)) and t")
        parts = [_formula(part, x) for part in f]
        return DerivationQuestion("curve", tuple(part for part, _ in parts), parts[0][1])
    formula, variables = _formula(f, x)
    return DerivationQuestion("function" if len(variables) == 1 else "several", (formula,), variables)


def _formula(f: Any, x: Any) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    f = read_formula(f, names_in(x)) if isinstance(f, str) else sp.sympify(f) if isinstance(f, int | float) else f
    names = {symbol.name for symbol in getattr(f, "free_symbols", ())}
    if isinstance(x, str) and x.isidentifier() and x not in names:
        x = sp.Symbol(x, real=True)  # which does not occur, or is the argument of a function
    formula, variables, values, _, _ = asked_formula(f, x)
    if values:
        raise refusal("a point as x", "a derivation is that of a formula", "give symbols, and at= for a point")
    return formula, variables


Meanings = Mapping[Any, sp.Basic]


@dataclass(frozen=True)
class Section:
    """A part of a derivation: its heading, its lines, a name for what it gives, and that.

    `meaning` is the name in pending derivatives; an equation gives no meaning to y'.
    """

    heading: str
    lines: tuple[DerivationLine, ...]
    left: sp.Basic
    result: Any
    meaning: sp.Basic | None = None

    @property
    def shown(self) -> sp.Basic:
        """The result in the order of its last line."""
        if self.lines and self.lines[-1].rule in ("simplified", *dict(WAYS)):
            return self.lines[-1].after
        last = evaluated(self.lines[-1].after, ordered=True) if self.lines else self.result
        return in_book_order(last if evaluated(last) == self.result else self.result)


class Derived:
    """The sections of a derivation of some order, and whether numbers confirmed all their lines."""

    def __init__(self, question: DerivationQuestion, order: int, detail: Detail) -> None:
        self.question, self.detail, self.is_checked = question, detail, True
        self.points = [] if question.kind == "matrix" else list(_points(question))
        kinds = {"function": self._function, "several": self._several, "equation": self._equation,
                 "curve": self._curve, "matrix": self._matrix}  # fmt: skip
        self.sections = tuple(kinds[question.kind](order))

    def _derived(self, f: Any, x: Any, heading: str, left: sp.Basic | None = None, tidy: bool = True) -> Section:
        """Return the section of the derivative of f in one variable."""
        pending = Pending(in_book_order(f), x, *([sp.true] if self.question.kind == "several" else []))
        lines = derived(pending, self.detail, tidy)
        self._check(lines)
        return Section(heading, tuple(lines), left or pending, evaluated(lines[-1].after), pending)

    def _check(self, lines: Sequence[DerivationLine], meanings: Meanings = {}) -> None:  # noqa: B006 - never changed
        """Raise InvariantError for a line that does not hold."""
        for line in lines:
            definitions = [Definitions("", (), None, {**at, **meanings}) for at in self.points]
            confirmed = [check_equality(line.before, line.after, where) for where in definitions]  # at every point
            self.is_checked &= any(confirmed)

    def _function(self, order: int) -> Iterator[Section]:
        (f,), (x,) = self.question.formulas, self.question.variables
        for k in range(1, order + 1):
            left = sp.Derivative(sp.Function(self.question.name)(x), (x, k))
            section = self._derived(f, x, "" if order == 1 else _ordinal(k), left)
            yield section
            f = section.shown

    def _several(self, order: int) -> Iterator[Section]:
        """Yield the partial derivatives and the gradient, then those of second order and the Hessian."""
        (f,), variables, name = self.question.formulas, self.question.variables, self.question.name
        parts: dict[tuple[sp.Symbol, ...], Section] = {}
        for count in range(1, order + 1):
            for chosen in combinations_with_replacement(variables, count):
                letter = f"{name}_{''.join(map(str, chosen))}"
                before = parts[chosen[:-1]].result if count > 1 else f
                parts[chosen] = self._derived(before, chosen[-1], letter, sp.Symbol(letter))
                yield parts[chosen]
            pairs = [tuple(sorted(key, key=variables.index)) for key in product(variables, repeat=count)]
            values, meanings = zip(*((parts[pair].result, parts[pair].meaning) for pair in pairs), strict=True)
            if count == 1:
                yield Section("Gradient", (), sp.Symbol(f"∇{name}"), sp.Tuple(*values), sp.Tuple(*meanings))
            else:
                square, meaning = (sp.ImmutableMatrix(len(variables), len(variables), m) for m in (values, meanings))
                yield Section("Hessian", (), sp.Symbol("H"), square, meaning)
        if direction := self.question.direction:
            yield self._along(direction, [parts[variable,] for variable in variables])

    def _along(self, direction: Sequence[sp.Expr], parts: Sequence[Section]) -> Section:
        """Return the section of the derivative along a direction v, ∇f·v."""
        products = [
            WrittenSum(*(WrittenProduct(entry, part) for entry, part in zip(direction, of_parts, strict=True)))
            for of_parts in ([part.meaning for part in parts], [part.shown for part in parts])
        ]
        reason = f"∇{self.question.name}·v with v = ({', '.join(map(signs_of, direction))})"
        lines = _steps([*products, *tidied_lines(evaluated(products[1]))], [reason], starts=True)
        self._check(lines)
        left = sp.Symbol(f"D_v{self.question.name}")
        return Section("Directional derivative", lines, left, evaluated(lines[-1].after), products[0])

    def _matrix(self, order: int) -> Iterator[Section]:
        """Yield the derivation by differentials, which has checked its lines."""
        differentials = self.question.differentials
        assert differentials is not None
        lines, before = list[DerivationLine](), differentials.f
        for line in differentials.lines:
            starts, reason = not isinstance(line.left, Nothing), str(line.reason)
            left = line.left if starts and line.left is not None else before
            lines.append(DerivationLine(reason, left, line.right, (reason,) * bool(reason), starts=starts))
            before = line.right
        yield Section("", tuple(lines), lines[-1].before, differentials.result)

    def _equation(self, order: int) -> Iterator[Section]:
        """Yield both sides differentiated, the equation solved for y', and each higher order along the curve."""
        (x,), y, function = self.question.variables, self.question.dependent, self.question.y_of_x
        prime = sp.Derivative(function, x)
        left, right = (
            self._derived(f, x, heading, tidy=False)
            for heading, f in zip(("Left side", "Right side"), self.question.formulas, strict=True)
        )
        yield from (left, right)
        difference = sp.expand(left.result - right.result)
        factor, rest = sp.factor(difference.coeff(prime, 1)), evaluated(-difference.coeff(prime, 0))
        factor, rest = (-factor, -rest) if factor.could_extract_minus_sign() else (factor, rest)
        slope = evaluated(tidied_lines(rest / factor)[-1])
        sides = ((left.shown, right.shown), (WrittenProduct(factor, prime), in_book_order(rest)))
        names = ("both sides have equal derivatives", f"solved for {y}′")
        lines = tuple(DerivationLine(n, *pair, (n,), starts=True) for n, pair in zip(names, sides, strict=True))
        self._check(lines, {prime: slope})
        yield Section(f"Solve for {y}′", lines, prime, slope)
        derivative, curve = slope, (self.question.formulas[0] - self.question.formulas[1]).xreplace({function: y})
        for k in range(2, order + 1):
            section = self._derived(derivative, x, _ordinal(k), tidy=False)
            put = section.lines[-1].after.xreplace({prime: in_book_order(slope)})
            forms = [section.lines[-1].after, put, *tidied_lines(evaluated(put))]
            lines = _steps(forms, [f"put in {y}′"])
            self._check(lines, {prime: slope})
            derivative, higher = evaluated(forms[-1]), sp.Derivative(function, (x, k))
            yield Section(section.heading, (*section.lines, *lines), higher, derivative)
            if (on_curve := _by_the_equation(derivative, curve, function, y)) is not None:
                line = DerivationLine("equation", higher, on_curve, ("by the equation of the curve",), starts=True)
                yield Section("", (line,), higher, on_curve)

    def _curve(self, order: int) -> Iterator[Section]:
        """Yield the derivatives of x(t) and y(t), and their quotient; of a higher order, that of the slope in t."""
        (along, up), (t,), name = self.question.formulas, self.question.variables, "the slope of y divided by that of x"
        below = self._derived(along, t, f"x({t})")
        yield below
        for k in range(1, order + 1):
            above = self._derived(up, t, f"y({t})" if k == 1 else f"The slope in {t}")
            yield above
            quotient = WrittenProduct(above.meaning, sp.Pow(below.meaning, -1))
            written = WrittenProduct(above.shown, sp.Pow(below.shown, -1, evaluate=False))
            lines = _steps([quotient, written, *tidied_lines(above.result / below.result)], [name], starts=True)
            self._check(lines)
            mark = "" if k == 1 else str(k).translate(RAISED)
            up = evaluated(lines[-1].after)
            yield Section("Slope" if k == 1 else _ordinal(k), lines, sp.Symbol(f"d{mark}y/dx{mark}"), up, quotient)


def _points(question: DerivationQuestion) -> Iterator[dict[Any, sp.Basic]]:
    """Yield a few points at which all formulas have slopes, on both sides of 0 where there are such."""
    count = 0
    for k in range(len(_PLACES)):
        at = {x: _PLACES[(k + 2 * j) % len(_PLACES)] for j, x in enumerate(question.variables)}
        if count < _POINTS and all(_has_slope(f, question.variables[0], at) for f in question.formulas):
            count += 1
            yield at


def _has_slope(f: sp.Expr, x: sp.Symbol, at: Meanings) -> bool:
    """Whether f has a real slope at a point, and 50 digits are enough for it: e^(e^(e^(e^x))) is too steep for them."""
    slopes = []
    for digits in (DIGITS, 2 * DIGITS):
        with mp.workdps(digits):
            try:
                value, slope = Definitions("", (), f, at).values(0).of(sp.Tuple(f, Pending(f, x)))
            except (UnknownValueError, ArithmeticError, ValueError, TypeError):
                return False
            slopes.append(slope.real)
            if not (value.is_real and slope.is_real) or not mp.isfinite(slope.real):
                return False
    return bool(abs(slopes[0] - slopes[1]) <= _AGREED * (1 + abs(slopes[0])))


def _ordinal(k: int) -> str:
    return f"{('First', 'Second', 'Third')[k - 1] if k < 4 else f'{k}th'} derivative"


def _steps(forms: Sequence[sp.Expr], names: Sequence[str], starts: bool = False) -> tuple[DerivationLine, ...]:
    """Return lines from form to form; those without a name are simplifications."""
    pairs = [(a, b) for a, b in pairwise(forms) if signs_of(a) != signs_of(b)]
    named = [*names, *["simplified"] * len(pairs)]
    return tuple(
        DerivationLine(name, a, b, (name,), starts=starts and not k)
        for k, ((a, b), name) in enumerate(zip(pairs, named, strict=False))
    )


def _by_the_equation(derivative: sp.Expr, curve: sp.Expr, function: sp.Expr, y: sp.Symbol) -> sp.Expr | None:
    """Return a shorter form that is equal on the curve, as points of the curve confirm; else None."""
    (x,), plain = function.args, derivative.xreplace({function: y})
    top, bottom = sp.fraction(sp.together(plain))
    if not (top.is_polynomial(x, y) and curve.is_polynomial(x, y)):
        return None
    forms = [sp.factor(sp.reduced(sp.expand(top), [curve], *letters)[1] / bottom) for letters in ((y, x), (x, y))]
    shortest = min(forms, key=cost)
    problem = ImplicitProblem(curve, (x,), {}, {(1,): [sp.S.One]}, 1, False, name="y", dependent=y)
    is_shorter = cost(shortest) < cost(plain) and problem.agreement(plain, shortest).equal
    return shortest.xreplace({y: function}) if is_shorter else None

"""The sections of a derivation, for each kind of question; every displayed equality is checked when it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, pairwise
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.answers.implicit_problem import ImplicitProblem
from symad.classroom.derivation.derivation_lines import DerivationLine, Detail, derived, tidied_lines
from symad.classroom.derivation.derivation_question import DerivationQuestion
from symad.classroom.derivation.tidying import WAYS, cost, evaluated, in_book_order
from symad.classroom.equality.independent_values import DIGITS, UnknownValueError
from symad.classroom.expansion.displayed import Definitions, check_equality
from symad.display.mathematics import signs_of
from symad.display.notation import RAISED, Pending, WrittenProduct

_PLACES = [sp.Rational(text) for text in "1.7 -2.3 0.41 -0.53 3.9 5.6 -4.7 0.07 12.3 -11.9 1.04 47".split()]
_AGREED = mp.mpf(10) ** -36  # of slopes with 50 and with 100 digits
_POINTS = 3  # at which a line is checked

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
        self.points = list(_points(question))
        kinds = {"function": self._function, "several": self._several, "equation": self._equation, "curve": self._curve}
        self.sections = tuple(kinds[question.kind](order))

    def _derived(
        self, f: sp.Expr, x: sp.Symbol, heading: str, left: sp.Basic | None = None, tidy: bool = True
    ) -> Section:
        """Return the section of the derivative of f in one variable."""
        pending = Pending(in_book_order(f), x, *([sp.true] if self.question.kind == "several" else []))
        lines = derived(pending, self.detail, tidy)
        self._check(lines)
        return Section(heading, tuple(lines), left or pending, evaluated(lines[-1].after), pending)

    def _check(self, lines: Sequence[DerivationLine], meanings: Meanings = {}) -> None:  # noqa: B006 - never changed
        """Raise InvariantError for a line that does not hold."""
        for line in lines:
            definitions = [Definitions("", (), None, {**at, **meanings}) for at in self.points]
            self.is_checked &= any([check_equality(line.before, line.after, where) for where in definitions])

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
            if count == 1:
                gradient, slopes = ([part.result for part in parts.values()], [part.meaning for part in parts.values()])
                yield Section("Gradient", (), sp.Symbol(f"∇{name}"), sp.Tuple(*gradient), sp.Tuple(*slopes))
        if order == 2:
            rows = [[parts[tuple(sorted((x, y), key=variables.index))] for y in variables] for x in variables]
            matrix, slopes = (
                sp.ImmutableMatrix([[getattr(part, name) for part in row] for row in rows])
                for name in ("result", "meaning")
            )
            yield Section("Hessian", (), sp.Symbol("H"), matrix, slopes)

    def _equation(self, order: int) -> Iterator[Section]:
        """Yield both sides differentiated, the equation solved for y', and each higher order along the curve."""
        (x,), y = self.question.variables, self.question.dependent
        function = sp.Function(y.name, real=True)(x)
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
        lines = (
            DerivationLine("both sides", left.shown, right.shown, ("both sides have equal derivatives",), starts=True),
            DerivationLine(
                "solved", WrittenProduct(factor, prime), in_book_order(rest), (f"solved for {y}′",), starts=True
            ),
        )
        self._check(lines, {prime: slope})
        yield Section(f"Solve for {y}′", lines, prime, slope)
        derivative, curve = slope, (self.question.formulas[0] - self.question.formulas[1]).xreplace({function: y})
        for k in range(2, order + 1):
            section = self._derived(derivative, x, _ordinal(k), tidy=False)
            put = section.lines[-1].after.xreplace({prime: in_book_order(slope)})
            forms = [section.lines[-1].after, put, *tidied_lines(evaluated(put))]
            lines = _steps(forms, [f"put in {y}′"])
            self._check(lines, {prime: slope})
            derivative = evaluated(forms[-1])
            higher = sp.Derivative(function, (x, k))
            yield Section(section.heading, (*section.lines, *lines), higher, derivative)
            if (on_curve := _by_the_equation(derivative, curve, function, y)) is not None:
                line = DerivationLine("equation", higher, on_curve, ("by the equation of the curve",), starts=True)
                yield Section("", (line,), higher, on_curve)

    def _curve(self, order: int) -> Iterator[Section]:
        """Yield the derivatives of x(t) and y(t), and their quotient; of a higher order, that of the slope in t."""
        (along, up), (t,) = self.question.formulas, self.question.variables
        below = self._derived(along, t, f"x({t})")
        yield below
        for k in range(1, order + 1):
            above = self._derived(up, t, f"y({t})" if k == 1 else f"The slope in {t}")
            yield above
            quotient = WrittenProduct(above.meaning, sp.Pow(below.meaning, -1))
            written = WrittenProduct(above.shown, sp.Pow(below.shown, -1, evaluate=False))
            lines = _steps(
                [quotient, written, *tidied_lines(above.result / below.result)],
                ["the slope of y divided by that of x"],
                True,
            )
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

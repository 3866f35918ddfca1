"""What is to be differentiated: a function of one or several variables, an equation, or a parametric curve."""

from __future__ import annotations

from typing import Any, Literal

import sympy as sp
from sympy.core.function import AppliedUndef

from codegen.records import dataclass
from symad.classroom.answers.answer_problem import asked_formula, real
from symad.classroom.answers.implicit_problem import is_equation, sides_of
from symad.classroom.formulas.read import read_formula
from symad.errors import LimitError
from symad.tracing.calling.user_place import refusal

MOST_OPERATIONS = 150
_MOST_VARIABLES = 6

Kind = Literal["function", "several", "equation", "curve"]


@dataclass(frozen=True)
class DerivationQuestion:
    """The kind of a question, its formulas (f; both sides of an equation; x(t) and y(t)), and its variables.

    `dependent` is the y of an equation. In its formulas y is a function of x.
    """

    kind: Kind
    formulas: tuple[sp.Expr, ...]
    variables: tuple[sp.Symbol, ...]
    dependent: sp.Symbol | None = None

    @property
    def name(self) -> str:
        """A name for the function that the formulas do not use."""
        used = {part.func.__name__ for f in self.formulas for part in f.atoms(AppliedUndef)}
        used |= {symbol.name for f in self.formulas for symbol in f.free_symbols}
        return next(name for name in ("f", "F", "h", "G", "H", "function") if name not in used)

    @property
    def constants(self) -> list[sp.Symbol]:
        """The other letters."""
        letters: set[sp.Symbol] = set().union(*(f.free_symbols for f in self.formulas)) - set(self.variables)
        return sorted(letters, key=str)


def asked(f: Any, x: Any) -> DerivationQuestion:
    """Return a question from what a user gives.

    >>> asked("x^2 + y^2 = 25", "x").formulas
    (x**2 + y(x)**2, 25)
    >>> asked(("cos t", "sin t"), "t").kind, asked("x y", ["x", "y"]).kind
    ('curve', 'several')
    """
    if isinstance(x, str | sp.Symbol) and isinstance(f, sp.Equality):
        return _equation(real(f.lhs), real(f.rhs), x)
    if is_equation(f, x) and isinstance(x, str | sp.Symbol):
        return _equation(*sides_of(f, x), x)
    if isinstance(f, list | tuple):
        if len(f) != 2 or not isinstance(x, str | sp.Symbol):
            raise refusal(f"{len(f)} formulas", do="give one formula, or a curve as a pair (x(t), y(t)) and t")
        parts = [_formula(part, x) for part in f]
        return _bounded(DerivationQuestion("curve", tuple(part for part, _ in parts), parts[0][1]))
    formula, variables = _formula(f, x)
    if len(variables) > _MOST_VARIABLES:
        raise refusal(f"{len(variables)} variables", do=f"give at most {_MOST_VARIABLES}")
    kind: Kind = "several" if isinstance(x, list | tuple) and len(variables) > 1 else "function"
    return _bounded(DerivationQuestion(kind, (formula,), variables))


def _formula(f: Any, x: Any) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    if callable(f) and not isinstance(f, sp.Basic) and isinstance(x, str):
        x = sp.Symbol(x, real=True)
    if isinstance(f, str):
        f = read_formula(f, [x] if isinstance(x, str | sp.Symbol) else list(x))
    if isinstance(f, int | float):
        f = sp.sympify(f)
    formula, variables, values, _, _ = asked_formula(f, x)
    if values:
        raise refusal("a point as x", why="the derivation is that of a formula", do="give symbols, and at= for a point")
    return formula, variables


def _equation(left: sp.Expr, right: sp.Expr, x: Any) -> DerivationQuestion:
    variable = next((s for s in (left - right).free_symbols if s.name == str(x)), None)
    others = sorted((left - right).free_symbols - {variable}, key=str)
    dependent = next((s for s in others if s.name == "y"), others[0] if len(others) == 1 else None)
    if variable is None or dependent is None:
        raise refusal(f"the equation {left} = {right}", do=f"write an equation in {x} and y")
    function = sp.Function(dependent.name, real=True)(variable)
    sides = tuple(side.xreplace({dependent: function}) for side in (left, right))
    return _bounded(DerivationQuestion("equation", sides, (variable,), dependent))


def _bounded(question: DerivationQuestion) -> DerivationQuestion:
    operations = sum(int(sp.count_ops(formula)) for formula in question.formulas)
    if operations > MOST_OPERATIONS:
        what = f"a derivation for a formula of {operations} operations"
        raise LimitError(what, do=f"give a formula of at most {MOST_OPERATIONS}, or use sa.derivative")
    return question

"""What is to be differentiated: a function of one or several variables, an equation, or a parametric curve."""

from __future__ import annotations

from typing import Any, Literal

import sympy as sp
from sympy.core.function import AppliedUndef

from codegen.records import dataclass
from symad.classroom.answers.answer_problem import asked_formula
from symad.classroom.answers.implicit_problem import is_equation, parts_of_equation
from symad.classroom.formulas.given import names_in
from symad.classroom.formulas.read import read_formula
from symad.display.notation import counted
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
        used |= {symbol.name for f in (*self.formulas, *self.variables) for symbol in f.free_symbols}
        return next(name for name in "fFhGHKLPQR" if name not in used)

    @property
    def constants(self) -> list[sp.Symbol]:
        """The other letters."""
        letters: set[sp.Symbol] = set().union(*(f.free_symbols for f in self.formulas))
        return sorted(letters - {*self.variables, self.dependent}, key=str)


def asked(f: Any, x: Any) -> DerivationQuestion:
    """Return a question from what a user gives; LimitError for one that nobody would answer by hand.

    >>> asked("x^2 + y^2 = 25", "x").formulas
    (x**2 + y(x)**2, 25)
    >>> asked(("cos t", "sin t"), "t").kind, asked("x y", ["x", "y"]).kind
    ('curve', 'several')
    """
    question = _asked(f, x)
    operations = sum(int(sp.count_ops(formula)) for formula in question.formulas)
    if operations > MOST_OPERATIONS or len(question.variables) > _MOST_VARIABLES:
        what = f"a derivation of {operations} operations in {counted(len(question.variables), 'variable')}"
        do = f"give a formula of at most {MOST_OPERATIONS} in {_MOST_VARIABLES}, or use sa.derivative"
        raise LimitError(what, do=do)
    return question


def _asked(f: Any, x: Any) -> DerivationQuestion:
    is_one = isinstance(x, str | sp.Symbol)
    if is_one and (isinstance(f, sp.Equality) or is_equation(f, x)):
        left, right, variable, dependent = parts_of_equation(f, x)
        function = sp.Function(dependent.name, real=True)(variable)
        sides = tuple(side.xreplace({dependent: function}) for side in (left, right))
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

"""`expand`: f(x + eps_1 v + eps_2 w + ...) one level at a time, with the rule behind every line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.ir.program import reachable
from codegen.records import dataclass
from symad.classroom.expansion import epsilon
from symad.classroom.expansion.epsilon import Levels
from symad.classroom.expansion.expansion_levels import by_levels, levelled, seeds
from symad.classroom.expansion.expansion_values import NodeValues, asked_conditions, notes_of
from symad.classroom.expansion.page import document_of, why_no_book
from symad.classroom.expansion.steps import ExpansionStep, Parts
from symad.classroom.formulas.given import Given, given
from symad.derivatives.application import check_choice
from symad.derivatives.level import Epsilon, Level, open_level
from symad.display.document import Document
from symad.display.shown import Shown
from symad.errors import TraceError
from symad.rules.undefined import with_formal_heads
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal, user_place
from symad.tracing.values.node_trees import object_array

_OWN_NAMES = re.compile(r"(eps|epsilon)_\d+")

Detail = Literal["result", "levels", "steps", "all"]
Style = Literal["book", "rules"]

KEPT_LINES = 500  # of each level


@dataclass(frozen=True, eq=False, repr=False)
class Expansion(Parts, Shown):
    """f(x + eps_1 v + ...): the coefficient of every product of epsilons, and its derivation.

    `flat` has a list with one entry for each output. `notes` name the conventions at kinks and the branches taken.
    """

    @cached_property
    def coefficients(self) -> dict[Levels, Any]:
        """The coefficients by their levels: (), (1,), (2,), (1, 2)..., each in the structure of f's result.

        They are floats if all inputs are numbers, else SymPy expressions.
        """
        return {levels: self._filled(row) for levels, row in self.flat.items()}

    def coefficient(self, *levels: int) -> Any:
        """Return the coefficient of the product of some levels' epsilons; without levels, f(x).

        >>> x, v, w = sp.symbols("x v w")
        >>> expand(x**3, x, [v, w]).coefficient(1, 2)
        6*v*w*x
        """
        chosen = tuple(sorted(levels))
        if chosen not in self.coefficients:
            why = f"there are {self.levels} levels, and the square of an epsilon is 0"
            raise refusal(f"the coefficient of levels {levels}", why=why)
        return self.coefficients[chosen]

    @property
    def expanded(self) -> Any:
        """The sum of coefficients times epsilons, as SymPy expressions in the structure of f's result.

        >>> x, v = sp.symbols("x v")
        >>> expand(x**2, x, [v]).expanded
        2*epsilon_1*v*x + x**2
        """
        return self._assembled(epsilon.polynomial)

    @property
    def nested(self) -> Any:
        """The same as pairs of pairs: (a + b eps_1) + (c + d eps_1) eps_2.

        >>> x, v, w = sp.symbols("x v w")
        >>> expand(x**3, x, [v, w]).nested
        (x**3 + 3*v*x**2*epsilon_1) + (3*w*x**2 + 6*v*w*x*epsilon_1)*epsilon_2
        """
        return self._assembled(lambda parts: epsilon.nested(parts, self.levels))

    @cached_property
    def steps(self) -> tuple[ExpansionStep, ...]:
        """Every line of every level with its rule, at most 500 lines per level."""
        return tuple(step for stage in self.lines(KEPT_LINES) for step in stage)

    def taylor(self) -> tuple[Any, ...]:
        """Return the coefficients a_k of f(x + t v) = a_0 + a_1 t + a_2 t**2 + ...; a_k is f^(k)(x)[v, ..., v] / k!.

        ArgumentError when the levels have different directions.

        >>> x = sp.Symbol("x")
        >>> expand(sp.log(x), x, 1, order=3).taylor()
        (log(x), 1/x, -1/(2*x**2), 1/(3*x**3))
        """
        if not self.is_straight:
            why = "its powers of t come from one direction that all levels share"
            what = "a Taylor polynomial of an expansion along different directions"
            raise refusal(what, why, "call expand(f, x, v, order=3)")
        orders = [self.flat[tuple(range(1, k + 1))] for k in range(self.levels + 1)]
        return tuple(self._filled([value / math.factorial(k) for value in row]) for k, row in enumerate(orders))

    @property
    def title(self) -> str:
        return "Expansion of " + self.given.name

    def document(self) -> Document:
        """Return the levels with their lines, the table of coefficients, and the sum."""
        return document_of(self)

    def __repr__(self) -> str:
        return self.text()

    def _assembled(self, assemble: Callable[[dict[Levels, sp.Expr]], sp.Expr]) -> Any:
        count = len(self.result.flat)
        parts = [{levels: sp.sympify(row[k]) for levels, row in self.flat.items()} for k in range(count)]
        return self._filled(list(map(assemble, parts)))

    def _filled(self, flat: Sequence[Any]) -> Any:
        """Return values in the structure of the result: arrays of floats if all are floats, else of objects."""
        leaves, values = [], iter(flat)
        for shape in self.result.shapes:
            part = list(islice(values, math.prod(shape)))
            numeric = all(isinstance(value, float) for value in part)
            array = np.array(part).reshape(shape) if numeric else object_array(part, shape)
            leaves.append(array if shape else part[0])
        return containers.unflatten(self.result.structure, leaves)


@public_api
def expand(
    f: Any, x: Any, directions: Any = None, *, order: int | None = None, detail: Detail = "steps",
    style: Style | None = None,
) -> Expansion:  # fmt: skip
    """Return f(x + eps_1 v + eps_2 w + ...), where every eps squares to 0, one level at a time.

    f is a function and x its argument (a number, an array, a symbol); or f is a SymPy expression or a formula in a
    string, and x its symbol, a list of its symbols (a vector), or a dict {symbol: value}. The functions in it may be
    undefined. `directions` has one direction for each level, each like x; `{(1,): v, (2,): w, (1, 2): u}` moves along
    eps_1 v + eps_2 w + eps_1 eps_2 u. With `order=n`, all n levels have the one direction given, which makes the
    Taylor polynomial. Numbers give numbers, symbols give expressions. `detail` says how much `print` shows: the
    "result", the "levels", the "steps" (long lists folded), or "all". `style="book"` substitutes, multiplies out and
    strikes the squares of epsilons: the default for formulas that a book expands by hand. "rules" has a table of all
    operations with the rule behind each.

    ArgumentError for what does not fit and for more than 10 levels; LimitError for an expression that could not be
    written out; TraceError inside a function that is being traced.

    >>> x, v, w = sp.symbols("x v w")
    >>> expand(x**3, x, [v, w]).coefficients
    {(): x**3, (1,): 3*v*x**2, (2,): 3*w*x**2, (1, 2): 6*v*w*x}
    >>> expand(np.sin, 0.5, [1.0]).coefficient(1)
    0.8775825618903728
    >>> g = sp.Function("g")
    >>> expand(lambda x: sp.exp(g(x)), x, [1]).coefficient(1)
    exp(g(x))*Derivative(g(x), x)
    """
    check_choice("detail", detail, get_args(Detail))
    if style is not None:
        check_choice("style", style, get_args(Style))
    if directions is None:
        subject = "an expansion without a direction"
        raise refusal(subject, do="give one for each level: sa.expand('x^3', 'x', ['v'])")
    if innermost_scope() is not None:
        why = "it shows a derivation, and gives no value that could be differentiated further"
        what, do = "expand inside a function that is being traced", "call it outside, or use jvp"
        raise TraceError(what, where=user_place(), why=why, do=do)
    if isinstance(directions, str) and len(names := directions.split()) > 1 and all(map(str.isidentifier, names)):
        directions = names  # "v w" is two directions, not a product
    problem = given(f, x, parameters=True)
    expansion = _expanded(problem, by_levels(problem.argument, directions, order), detail, style)
    if style == "book" and (why := why_no_book(expansion)):
        raise refusal("an expansion in the style of a book", why=why, do="use style='rules'")
    return expansion


def _expanded(problem: Given, directions: dict[Levels, list[Any]], detail: Detail, style: Style | None) -> Expansion:
    with open_level((problem.argument,)) as level:
        result = level.call(problem.function)
        answers = asked_conditions(level)
        outputs = with_formal_heads(level.scope.graph, result.flat)
        traced = len(level.scope.graph)
        moved = seeds(level, directions)
        _check_symbols(level)
        nodes = levelled(level, outputs, moved, max(levels[-1] for levels in directions))
        atoms = (level.scope.graph.atoms.get(node) for node in reachable(level.scope.graph, level.parameters.flat))
        numeric = not any(isinstance(atom, sp.Symbol) for atom in atoms)
        values = NodeValues(level.scope.graph, traced, level.scope.values, numeric=numeric)
    in_order = epsilon.subsets(len(nodes.stages))
    found_all = iter(values.of([node for levels in in_order for node in nodes.coefficients[levels]]))
    flat = {levels: list(islice(found_all, len(outputs))) for levels in in_order}
    symbols = dict(zip(level.parameters.flat, problem.symbols, strict=True))
    notes = notes_of(values, nodes, symbols, answers)
    return Expansion(
        problem, directions, flat, notes, detail, style, values, nodes, level.parameters, result.refill(outputs)
    )


def _check_symbols(level: Level) -> None:
    for atom in level.scope.graph.atoms.values():
        if isinstance(atom, Epsilon) or (isinstance(atom, sp.Symbol) and _OWN_NAMES.fullmatch(atom.name)):
            why = "expand names its own levels so, and the two could not be told apart"
            raise refusal(f"the symbol {atom} in the function or a direction", why, "rename it")

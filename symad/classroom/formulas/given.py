"""Turn what a user gives as "f and x" into a function and its argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp

from codegen.expressions.sympy_forms import can_be_input
from codegen.expressions.sympy_in import flattened
from codegen.ir.program import reachable
from codegen.records import dataclass
from symad.classroom.formulas.formula_names import plain, symbols_named
from symad.classroom.formulas.read import read_formula
from symad.tracing.calling.function_names import argument_names, name_of
from symad.tracing.calling.user_place import refusal
from symad.tracing.from_sympy import TracedFormula, formula_of
from symad.tracing.trace import symbols_of
from symad.tracing.values.node_trees import object_array
from symad.tracing.values.sympy_symbols import symbols_in

_EXPRESSIONS = (sp.Expr, sp.MatrixBase, sp.NDimArray)
_FORMS = "a symbol, a list of symbols, or a dict {symbol: value}"


@dataclass(frozen=True)
class Given:
    """A function of one argument, that argument, a symbol for each of its numbers, and the function's name."""

    function: Callable[..., Any]
    argument: Any
    symbols: tuple[sp.Basic, ...]
    name: str = "f"
    formula: bool = False  # the symbols come from a formula: they have the user's names


def given(f: Any, x: Any = None, *, parameters: bool = False) -> Given:
    """Return f and x as a function of one argument, and that argument.

    f is a function and x its argument (a number, array, container, SymPy symbol); or f is a SymPy expression (or a
    Matrix, Array or list of them) or a formula in a string, and x a symbol or its name, a list of them (a vector), or
    a dict {symbol: value}. `parameters` lets an expression have further symbols, which stay symbols. ArgumentError
    for everything else, and for names in a string that are not in x.

    >>> x, y = sp.symbols("x y")
    >>> found = given(x * sp.sin(y), {x: 2.0, y: 0.5})
    >>> found.argument, found.symbols, found.function(np.array([1.0, 0.0]))
    (array([2. , 0.5]), (x, y), 0.0)
    >>> given("2x^3", "x").function(2.0)
    16.0
    """
    if x is None:
        raise refusal("no argument x", "a function is looked at somewhere", f"give x: a value, {_FORMS}")
    if _is_formula(f):
        return _formula(_read(f, x), x, parameters)
    if not callable(f):
        what = f"f of type {type(f).__name__}"
        raise refusal(what, "it is neither a function nor a formula", "give f as a lambda, or with symbols")
    return Given(f, x, tuple(symbols_of((x,), argument_names(f, 1))), name_of(f) if name_of(f).isidentifier() else "f")


def _is_formula(f: Any) -> bool:
    if isinstance(f, list | tuple) and f:
        return all(isinstance(part, sp.Basic) or _is_formula(part) for part in f)
    return isinstance(f, (*_EXPRESSIONS, str)) and not isinstance(f, sp.Lambda)


def _read(f: Any, x: Any) -> Any:
    """Return f with its formulas parsed. They know only the names in x."""
    if isinstance(f, list | tuple):
        return [_read(part, x) for part in f]
    return read_formula(f, names_in(x), others=False) if isinstance(f, str) else f


def names_in(x: Any) -> list[Any]:
    """Return the symbols and names in a symbol, a list of symbols, or a dict {symbol: value}.

    >>> names_in("x"), names_in(["x", ["y"]]), names_in({"x": 2.0})
    (['x'], ['x', 'y'], ['x'])
    """
    if isinstance(x, str | sp.Symbol):
        return [x]
    return [name for part in x for name in names_in(part)] if isinstance(x, list | tuple | sp.Tuple | Mapping) else []


def _formula(expression: Any, x: Any, parameters: bool) -> Given:
    """Return an expression as a function of its symbols: of one number, or of a vector of them."""
    values = list(x.values()) if isinstance(x, Mapping) else None
    shape, symbols = _inputs(expression, list(x) if isinstance(x, Mapping) else x)
    if isinstance(x, Mapping) and len(symbols) == 1:
        shape = ()
    inputs = object_array(symbols, shape)
    formula = formula_of([inputs if shape else symbols[0]], expression)
    if not parameters:
        _check_known(formula, symbols)
    if values is None:
        return Given(formula, inputs if shape else symbols[0], symbols, formula=True)
    numeric = all(isinstance(value, int | float | np.number) for value in values)
    vector: Any = np.array(values, dtype=float) if numeric else object_array(values, (len(values),))
    return Given(formula, vector if shape else values[0], symbols, formula=True)


def _inputs(expression: Any, x: Any) -> tuple[tuple[int, ...], tuple[sp.Basic, ...]]:
    """Return the shape of x and its symbols. A name is the expression's symbol of that name."""
    if isinstance(x, list | tuple | str) and not x:
        raise refusal(f"x = {x!r}", "there is no symbol in it", f"give {_FORMS}")
    shape, inputs = flattened(_named(expression, x), "x")
    texts = [name for name in names_in(x) if isinstance(name, str)]
    symbols_named(texts, [s for s in symbols_in(expression) if s not in inputs or plain(s.name) in map(plain, texts)])
    names = {getattr(symbol, "name", None): symbol for symbol in inputs}
    for symbol in symbols_in(expression):
        if names.get(symbol.name, symbol) != symbol:
            why = "the expression has one with other assumptions, which would be a constant"
            raise refusal(f"two different symbols {symbol}", why, "give the same symbol in both")
    for symbol in inputs:
        if not can_be_input(symbol):
            why = "f is an expression, which is looked at in its symbols"
            raise refusal(f"x = {symbol}", why, f"give {_FORMS}")
    if len(set(inputs)) < len(inputs):
        raise refusal(f"x = {x}", "a symbol stands in it twice", "give each symbol once")
    return shape, tuple(inputs)


def _named(expression: Any, x: Any) -> Any:
    """Return x with names replaced by symbols."""
    if isinstance(x, list | tuple):
        return [_named(expression, part) for part in x]
    if not isinstance(x, str):
        return x
    if not plain(x).isidentifier():
        raise refusal(f"x = {x!r}", "it is no name of a symbol", f"give {_FORMS}")
    (symbol,) = symbols_named([x], [other for other in symbols_in(expression) if plain(other.name) == plain(x)])
    return symbol


def _check_known(formula: TracedFormula, inputs: Sequence[sp.Basic]) -> None:
    atoms = (formula.graph.atoms.get(node) for node in reachable(formula.graph, formula.outputs.flat))
    unknown = [atom for atom in atoms if getattr(atom, "is_symbol", False) and atom not in inputs]
    if unknown:
        why = f"it is not in x ({', '.join(map(str, inputs))})"
        raise refusal(f"the symbol {unknown[0]} in the expression", why, f"give x all symbols: {_FORMS}")

"""Read SymPy's special forms as ordinary heads: sums over an index, x[0], functions of time.

`read_form` is asked for every object of an expression: it answers how the object is to be read, or refuses by name
what is no real number (unevaluated integrals, orders, units). Sums and products are written out term by term.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NoReturn

import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.matrices.expressions.matexpr import MatrixElement

from codegen.errors import LoweringError
from codegen.functions.intrinsics import INTRINSICS
from codegen.heads import Alias, NegativeZero, log_argument, tie_share
from codegen.ir.program import Head
from codegen.special_heads import hyp0f1, hyp1f1, hyp2f1

# A head and its operands; without a head the only operand itself, or the object as a leaf.
Form = tuple[Head | None, tuple[sp.Basic, ...]]

TERMS = 100_000  # of one sum or product; SymPy needs some 0.3 ms for each
_NUMBERS = (sp.Symbol, sp.Number, sp.NumberSymbol, sp.logic.boolalg.BooleanAtom, NegativeZero, sp.Idx)


def read_form(expression: sp.Basic) -> Form | None:
    """Return how an object is read where SymPy has a form of its own, None for an ordinary head or atom.

    LoweringError, with advice, for an object without a value as a real number.

    >>> i, x = sp.symbols("i x")
    >>> read_form(sp.Sum(x**i, (i, 1, 3)))
    (<class 'sympy.core.add.Add'>, (x, x**2, x**3))
    >>> read_form(x) is None
    True
    """
    kind = type(expression)
    form = FORMS.get(kind)
    if form is not None:
        return form(expression)
    if not expression.args or issubclass(kind, sp.AtomicExpr):
        if not isinstance(expression, _NUMBERS) and not expression.is_symbol:
            _refuse_atom(expression)
    elif not issubclass(kind, sp.Expr | sp.logic.boolalg.Boolean | sp.Tuple):
        refuse(f"{kind.__name__} {expression}", "it is no real number")
    return None


def can_be_input(expression: Any) -> bool:
    """Whether an expression may stand for an input: a symbol, x[0], A[0, 1], x(t), or a derivative of x(t).

    >>> t = sp.Symbol("t")
    >>> x = sp.Function("x")(t)
    >>> can_be_input(x.diff(t)), can_be_input(x + 1)
    (True, False)
    """
    if isinstance(expression, sp.Derivative):
        return isinstance(expression.expr, AppliedUndef)
    if isinstance(expression, sp.IndexedBase | sp.MatrixSymbol) or is_array_symbol(expression):
        return False
    return isinstance(expression, AppliedUndef) or getattr(expression, "is_symbol", False)


def is_input_head(head: Head) -> bool:
    """Whether expressions with this head and operands can be inputs: x[0], A[0, 1], x(t) or a derivative.

    >>> is_input_head(sp.Indexed), is_input_head(sp.sin)
    (True, False)
    """
    return head in (sp.Indexed, sp.Derivative, MatrixElement) or type(head) is UndefinedFunction


def array_of(value: Any) -> tuple[tuple[int, ...], list[sp.Basic]] | None:
    """Return shape and entries of an array or matrix expression of known shape, None for anything else.

    >>> array_of(sp.MatrixSymbol("A", 1, 2))
    ((1, 2), [A[0, 0], A[0, 1]])
    >>> array_of(sp.IndexedBase("x", shape=(3,)))
    ((3,), [x[0], x[1], x[2]])
    """
    if not (isinstance(value, sp.IndexedBase | sp.MatrixExpr) or is_array_symbol(value)):
        return None
    if value.shape is None or not all(sp.sympify(size).is_Integer for size in value.shape):
        refuse(f"{value} of shape {value.shape}", "its size is not known", "give numbers as its shape")
    shape = tuple(int(size) for size in value.shape)
    array = value.as_explicit() if isinstance(value, sp.MatrixExpr) else value
    return shape, [array[index] for index in product(*map(range, shape))]


def is_array_symbol(value: Any) -> bool:
    """Whether a value is a symbol of SymPy's array expressions, which are not imported where nobody has any."""
    module = sys.modules.get("sympy.tensor.array.expressions")
    return module is not None and isinstance(value, module.ArraySymbol)


def refuse(what: str, why: str, do: str = "") -> NoReturn:
    """Raise the LoweringError for an object that cannot be read."""
    raise LoweringError(what, why=why, do=do or "keep the expression real, made of functions of numbers and symbols")


def _refuse_atom(atom: sp.Basic) -> NoReturn:
    if atom in (sp.I, sp.zoo):
        refuse(f"the complex number {atom}", "only real functions are differentiated")
    refuse(f"{type(atom).__name__} {atom}", "it is no real number")


def _not_evaluated(do: str) -> Callable[[sp.Basic], NoReturn]:
    return lambda e: refuse(f"the unevaluated {type(e).__name__} {e}", "it is no function of numbers", do)


def _derivative(expression: sp.Derivative) -> Form | None:
    if expression.expr.atoms(AppliedUndef):
        return None  # of an undefined function: an input, or a constant that stays
    return _not_evaluated("write expression.doit()")(expression)


def _complex_root(root: sp.CRootOf) -> Form:
    if not root.is_real:
        refuse(f"the complex number {root}", "only real functions are differentiated")
    return None, ()


def _matrix_scalar(expression: sp.Basic) -> Form:
    """A trace or determinant, written out."""
    (matrix,) = expression.args
    if array_of(matrix) is None:
        refuse(f"{type(expression).__name__} {expression}", "its matrix is not known")
    return None, (expression.func(matrix.as_explicit()).doit(),)


def _matrix_element(element: sp.Basic) -> NoReturn:
    refuse(f"{element}", "it is no input", f"pass the matrix {element.args[0]} in, or write the entries out")


def _sum(expression: sp.Sum) -> Form:
    terms, sign = _terms(expression)
    return _joined(sp.Add, [-term for term in terms] if sign < 0 else list(terms), sp.S.Zero)


def _product(expression: sp.Product) -> Form:
    factors, sign = _terms(expression)
    return _joined(sp.Mul, [1 / factor for factor in factors] if sign < 0 else list(factors), sp.S.One)


def _joined(head: Head, parts: list[sp.Basic], empty: sp.Basic) -> Form:
    return (head, tuple(parts)) if len(parts) > 1 else (None, (parts[0] if parts else empty,))


def _terms(expression: Any) -> tuple[Iterator[sp.Basic], int]:
    """Return the terms over the outermost index, and -1 where the bounds run backwards (SymPy's convention)."""
    (index, low, high), inner = expression.limits[-1], expression.limits[:-1]
    body = expression.func(expression.function, *inner) if inner else expression.function
    count = _count(expression, low, high) + 1
    if count < 0:  # Karr: the sum from a to b < a - 1 is minus the sum from b + 1 to a - 1
        return _substituted(body, index, [high + 1 + k for k in range(-count)]), -1
    return _substituted(body, index, [low + k for k in range(count)]), 1


def _count(expression: Any, low: sp.Expr, high: sp.Expr) -> int:
    for bound in (low, high):
        if bound.is_infinite:
            refuse(f"{expression}", f"the bound {bound} is infinite", "write expression.doit(), or cut the sum off")
        if not bound.is_number:
            refuse(f"{expression}", f"the bound {bound} is symbolic", "substitute a number for it")
    difference = high - low
    if not difference.is_Integer:
        refuse(f"{expression}", f"the bounds {low} and {high} are no whole number apart")
    if abs(int(difference) + 1) > TERMS:
        refuse(f"{expression}", f"it has more than {TERMS} terms", "write the loop with while_loop, or find a formula")
    return int(difference)


def _substituted(body: sp.Basic, index: sp.Basic, values: list[sp.Basic]) -> Iterator[sp.Basic]:
    """Yield the body with each value for the index; only parts that depend on the index are rebuilt."""
    order = _dependent(body, index)
    for value in values:
        copies: dict[int, sp.Basic] = {}
        for part in order:
            if part == index:
                copies[id(part)] = value
            elif index in getattr(part, "bound_symbols", ()) or isinstance(part, sp.Subs):
                copies[id(part)] = part.subs(index, value)
            else:
                copies[id(part)] = _rebuilt(part.func, [copies.get(id(argument), argument) for argument in part.args])
        yield copies.get(id(body), body)


def _rebuilt(head: Head, arguments: list[sp.Basic]) -> sp.Basic:
    """Return head(*arguments), evaluated only where that matters: looking for sin(n*pi) takes most of SymPy's time."""
    plain = head in INTRINSICS and issubclass(head, sp.Function) and not all(part.is_number for part in arguments)
    return head(*arguments, evaluate=False) if plain else head(*arguments)


def _dependent(body: sp.Basic, index: sp.Basic) -> list[sp.Basic]:
    """Return the parts of an expression that depend on a symbol, operands first, each object once."""
    depends: dict[int, bool] = {}
    order, stack = [], [body]
    while stack:
        part = stack[-1]
        missing = [argument for argument in part.args if id(argument) not in depends]
        if missing:
            stack += missing
            continue
        stack.pop()
        if id(part) not in depends:
            depends[id(part)] = part == index or any(depends[id(argument)] for argument in part.args)
            if depends[id(part)]:
                order.append(part)
    return order


def _logarithm(expression: sp.log) -> Form | None:
    """A logarithm to a base, which SymPy keeps only when it is told not to evaluate."""
    if len(expression.args) == 1:
        return None
    natural, of_base = (sp.log(part, evaluate=False) for part in expression.args)
    return sp.Mul, (natural, sp.Pow(of_base, -1, evaluate=False))


_DOIT = _not_evaluated("write expression.doit()")


def _hypergeometric(expression: Any) -> Form:
    """2F1, 1F1 and 0F1 are SciPy's functions of numbers; others have lists as arguments."""
    upper, lower, u = expression.args
    head = {(2, 1): hyp2f1, (1, 1): hyp1f1, (0, 1): hyp0f1}.get((len(upper), len(lower)))
    if head is None:
        refuse(f"hyper with {len(upper)} and {len(lower)} parameters", "only 2F1, 1F1 and 0F1 have numbers")
    return head, (*upper, *lower, u)


FORMS: dict[type, Callable[[Any], Form | None]] = {
    sp.hyper: _hypergeometric,
    sp.Sum: _sum,
    sp.Product: _product,
    sp.UnevaluatedExpr: lambda e: (None, e.args),
    sp.AlgebraicNumber: lambda e: (None, (e.as_expr(),)),
    sp.CRootOf: _complex_root,
    sp.log: _logarithm,
    sp.Contains: lambda e: (None, (e.args[1].as_relational(e.args[0]),)),
    sp.Trace: _matrix_scalar,
    sp.Determinant: _matrix_scalar,
    MatrixElement: _matrix_element,
    sp.Derivative: _derivative,
    sp.Integral: _DOIT,
    sp.Limit: _DOIT,
    sp.Subs: _DOIT,
    sp.Order: _not_evaluated("write expression.removeO()"),
    sp.Lambda: _not_evaluated("call it with its arguments"),
}


def _choices(pairs: Sequence[tuple[sp.Basic, sp.Basic]], *, evaluate: bool) -> sp.Basic:
    """Return choices; where a condition compares one that may be NaN, which SymPy refuses to, as they are."""
    try:
        return sp.Piecewise(*pairs, evaluate=evaluate)
    except TypeError:
        return sp.Basic.__new__(sp.Piecewise, *[sp.Tuple.__new__(ExprCondPair, *pair) for pair in pairs])


def rebuild(head: Head, arguments: Sequence[sp.Basic], *, evaluate: bool = False) -> sp.Basic:
    """Return a row as SymPy object, unevaluated unless asked (where the head knows `evaluate`); an alias vanishes.

    >>> x = sp.Symbol("x")
    >>> rebuild(sp.Piecewise, [x, x > 0, sp.S.Zero, sp.true]), rebuild(sp.Add, [x, x]), rebuild(Alias, [x])
    (Piecewise((x, x > 0), (0, True)), x + x, x)
    """
    if head in (Alias, log_argument):  # which differ from their operand in numbers only
        return arguments[0]
    if head is tie_share:  # nor this one from its formula
        tied = sp.Eq(*arguments, evaluate=evaluate)
        return _choices([(sp.S.Half, tied), (sp.S.One, sp.true)], evaluate=evaluate)
    if head is sp.Piecewise:
        return _choices(list(zip(arguments[::2], arguments[1::2], strict=True)), evaluate=evaluate)
    if evaluate:
        return head(*arguments)
    try:
        return head(*arguments, evaluate=False)
    except TypeError:
        return head(*arguments)

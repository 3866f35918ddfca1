"""The table of routes to a derivative. A row says when a route applies and how it is built.

Routes through other installed libraries run the traced operations on their own numbers.
"""

from __future__ import annotations

import importlib
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

import codegen
from codegen.evaluation.constant_folding import leaf_constant, to_float
from codegen.evaluation.interpret import Arithmetic, Functions, carry_out
from codegen.heads import Alias
from codegen.ir.program import Head, needed
from codegen.records import dataclass
from symad.classroom.comparison.comparison_problem import (
    Built,
    ComparisonProblem,
    differentiated_by,
    sizes,
    sizes_of_expressions,
)
from symad.classroom.comparison.differences import LEVELS, derivatives, evaluations, extrapolated, spread, standard_step
from symad.compiling.native import compile, compile_trace
from symad.derivatives.interpolation import interpolation_matrix, multi_indices
from symad.errors import LoweringError, NotInstalledError
from symad.tracing.from_sympy import from_sympy
from symad.tracing.trace import trace
from symad.transforms.first_order import derivative, grad, hessian, jacfwd, jacrev
from symad.transforms.higher_order import partials, taylor

SYMBOLIC, AD, NUMERIC, PEER = "symbolic", "AD", "numeric", "other library"
ALL_WORDS = 3  # orders up to which every mix of modes is a route
LONGEST_WORD = 6  # of modes, written out
COMPLEX_STEP = 2.0**-600

Shape = tuple[int, ...]
Transformed = Callable[[Any], Any]


@dataclass(frozen=True)
class Route:
    """A way to compute the derivatives of an order: `build(problem, variant)` for each variant that applies.

    `expected` returns the usual relative error of a truncating route for an order.
    """

    name: str
    family: str
    build: Callable[[ComparisonProblem, Any], Built]
    applies: Callable[[int, Shape], bool] = lambda order, shape: True
    variants: Callable[[int], Sequence[str]] = lambda order: ("",)
    expected: Callable[[int], float] = lambda order: 0.0


def mode_words(order: int) -> list[str]:
    """Return words over {F, R}, outermost mode first: all up to order 3, then pure and alternating ones.

    >>> mode_words(2), mode_words(4)
    (['FF', 'FR', 'RF', 'RR'], ['FFFF', 'RRRR', 'FRFR', 'RFRF'])
    """
    if order <= ALL_WORDS:
        return ["".join(letters) for letters in product("FR", repeat=order)]
    return [(letters * order)[:order] for letters in ("F", "R", "FR", "RF")]


def short_word(word: str) -> str:
    """Return a long word of modes in terms of its repeated part.

    >>> short_word("FRF"), short_word("F" * 12), short_word("FR" * 6 + "F")
    ('FRF', 'F^12', '(FR)^6 F')
    """
    if len(word) <= LONGEST_WORD or set(word) - {"F", "R"}:
        return word
    if len(set(word)) == 1:
        return f"{word[0]}^{len(word)}"
    return f"({word[:2]})^{len(word) // 2} {word[0] if len(word) % 2 else ''}".strip()


def _compiled(problem: ComparisonProblem, transformed: Transformed) -> Built:
    traced = trace(transformed, problem.x)
    size = sizes(traced.graph, traced.outputs.flat)
    return Built(compile_trace(traced, cache=False), size, size.operations, traced)


def _mixed_modes(problem: ComparisonProblem, word: str) -> Built:
    once: dict[str, Callable[..., Transformed]]
    once = {"F": derivative, "R": grad} if problem.scalar else {"F": jacfwd, "R": jacrev}
    return _compiled(problem, reduce(lambda f, letter: once[letter](f), reversed(word), problem.function))


def _hessian(problem: ComparisonProblem, mode: Any) -> Built:
    return _compiled(problem, hessian(problem.function, mode=mode))


def _tensor(problem: ComparisonProblem, mode: Any, **along: Any) -> Built:
    return _compiled(problem, partials(problem.function, problem.order, mode=mode, **along))


def _interpolated(problem: ComparisonProblem, variant: str) -> Built:
    """Taylor coefficients along as many directions as derivatives, and a linear system for these."""
    indices = multi_indices(problem.inputs, problem.order)
    directions = [problem.shaped(np.array(index, dtype=float)) for index in indices]
    matrix = interpolation_matrix(indices)

    def coefficients(x: Any) -> Any:
        return np.stack([taylor(problem.function, (x,), (v,), problem.order)[-1] for v in directions])

    built = _compiled(problem, coefficients)

    def solved(x: Any) -> Any:
        partials = np.linalg.solve(matrix, built.call(x)).tolist()
        return spread(dict(zip(indices, partials, strict=True)), problem.inputs, problem.order)

    return replace(built, call=solved, traced=None)


def _symbolic(problem: ComparisonProblem, lambdify: Callable[..., Any], *, tree: bool) -> Built:
    """`sympy.diff`, whose time counts for each route that uses it, and a function of its expressions."""
    expressions, seconds = problem.by_sympy()
    start = time.perf_counter()
    call = lambdify([problem.symbols], expressions)
    seconds += time.perf_counter() - start
    size = sizes_of_expressions(expressions)
    operations = size.tree_operations if tree else size.operations
    traced = from_sympy([sp.Tuple(*problem.symbols)], expressions)
    return Built(lambda x: call(tuple(np.ravel(x).tolist())), size, operations, traced, seconds)


def _differences(problem: ComparisonProblem, kind: Any, levels: int = 1) -> Built:
    f, order = problem.kernel, problem.order

    def call(x: Any) -> Any:
        flat = np.ravel(np.asarray(x, dtype=float))
        if levels > 1:
            return extrapolated(f.call, flat, order)
        return derivatives(f.call, flat, order, kind, standard_step(kind, order, flat))

    operations = levels * evaluations(problem.inputs, order, kind) * problem.traced.count_ops()
    return Built(call, operations=operations, seconds=f.seconds)


def with_complex_step(problem: ComparisonProblem) -> Callable[[Any, Any], Any]:
    """Return the imaginary part of f(x + ih) / h for each input, as a function of x and the steps."""
    kernel = compile(problem.function, problem.x, dtype="complex128", cache=False)

    def call(x: Any, steps: Any) -> Any:
        flat = np.ravel(np.asarray(x, dtype=complex))
        return np.array([kernel(problem.shaped(flat + 1j * step)).imag for step in np.diag(steps)]) / steps

    return call


def _complex_step(problem: ComparisonProblem, variant: str) -> Built:
    """A step small enough to truncate nothing."""
    call, steps = with_complex_step(problem), np.full(problem.inputs, COMPLEX_STEP)
    return Built(lambda x: call(x, steps), operations=problem.inputs * problem.traced.count_ops())


# The libraries' names for a head; the first one that exists is used. Other heads are refused by name.
SPELLINGS: dict[str, str] = {
    "asin": "arcsin asin", "acos": "arccos acos", "atan": "arctan atan", "asinh": "arcsinh asinh",
    "acosh": "arccosh acosh", "atanh": "arctanh atanh", "Abs": "abs fabs Abs", "Max": "maximum fmax Max",
    "Min": "minimum fmin Min", "atan2": "arctan2 atan2", "hypot": "hypot",
    **{name: name for name in (
        "sin", "cos", "tan", "exp", "log", "sinh", "cosh", "tanh", "log1p", "expm1", "sign", "floor", "ceiling",
        "logaddexp",
    )},
}  # fmt: skip


def library(name: str) -> Any:
    """Return another library; NotInstalledError if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotInstalledError(f"{name} is not installed") from error


def carried_out(problem: ComparisonProblem, inputs: Any, functions: Any) -> Any:
    """Return the function's value on another library's numbers; LoweringError for a head that it lacks.

    >>> from symad.classroom.comparison.comparison_problem import problem_of
    >>> bool(carried_out(problem_of(lambda x: np.sin(x) / x, 2.0, 1, 1.0), [2.0], np) == np.sin(2.0) / 2.0)
    True
    """
    graph, result = problem.traced.graph, problem.traced.outputs.flat[0]
    values = dict(zip(problem.traced.inputs.flat, inputs, strict=True))
    table = Functions(partial(_function, functions=functions))
    carry_out(graph, needed(graph, [result], values), values, Arithmetic(table, table, _number))
    return values[result]


def _number(atom: sp.Basic) -> Any:
    return int(atom) if isinstance(atom, sp.Integer) else to_float(leaf_constant(atom))


def _function(head: Head, functions: Any) -> Callable[..., Any]:
    if head is Alias:
        return lambda value, *others: value
    if head is sp.Add:
        return lambda *values: reduce(operator.add, values)
    if head is sp.Mul:
        return lambda *values: reduce(operator.mul, values)
    if head is sp.Pow:
        return partial(_power, functions)
    for name in SPELLINGS.get(head.__name__, "").split():
        if hasattr(functions, name):
            return getattr(functions, name)  # type: ignore[no-any-return]
    raise LoweringError(f"{head.__name__} in {functions.__name__}", why="there is no counterpart in the table of peers")


def _power(functions: Any, base: Any, exponent: Any) -> Any:
    if isinstance(exponent, int | float) and exponent in (0.5, -1):
        return functions.sqrt(base) if exponent == 0.5 else 1 / base
    return base**exponent


def _jax(problem: ComparisonProblem, variant: str) -> Built:
    """Nested `jax.grad`, or forward over reverse mode, in 64 bits, by `jax.jit`."""
    module, numbers = library("jax"), library("jax.numpy")
    double = module.enable_x64 if hasattr(module, "enable_x64") else library("jax.experimental").enable_x64

    def function(x: Any) -> Any:
        return carried_out(problem, [x] if problem.scalar else list(x.ravel()), numbers)

    derived = module.grad(function)
    for _ in range(problem.order - 1):
        derived = module.grad(derived) if problem.scalar else module.jacfwd(derived)
    kernel = module.jit(derived)

    def call(x: Any) -> Any:
        with double(True):
            return np.asarray(kernel(np.asarray(x, dtype=float)))

    call(problem.x)
    return Built(call)


def _casadi(problem: ComparisonProblem, variant: str) -> Built:
    """Jacobians of Jacobians of SX expressions, on CasADi's virtual machine."""
    module = library("casadi")
    x = module.SX.sym("x", problem.inputs)
    derived = carried_out(problem, module.vertsplit(x), module)
    for _ in range(problem.order):
        derived = module.vec(module.jacobian(derived, x).T)
    kernel = module.Function("derivative", [x], [derived])

    def call(point: Any) -> Any:
        return np.asarray(kernel(np.ravel(point)))

    moves = (module.OP_CONST, module.OP_INPUT, module.OP_OUTPUT)
    return Built(call, operations=sum(kernel.instruction_id(k) not in moves for k in range(kernel.n_instructions())))


def _symengine(problem: ComparisonProblem, variant: str) -> Built:
    """`symengine.diff`, each derivative once, and `Lambdify` with common subexpressions."""
    module = library("symengine")
    symbols = [module.Symbol(symbol.name) for symbol in problem.symbols]
    entries = differentiated_by(module.diff, carried_out(problem, symbols, module), symbols, problem.order)
    kernel = module.Lambdify(symbols, entries, cse=True)
    return Built(lambda x: kernel(np.ravel(x)))


def _truncation(power: int) -> Callable[[int], float]:
    """The error that a difference with that power of its step reaches at the standard step, times 1e4."""
    return lambda order: 1e4 * 2.0 ** (-52 * power / (order + power))


ROUTES: tuple[Route, ...] = (
    Route("sympy.diff, lambdify", SYMBOLIC, lambda problem, _: _symbolic(problem, sp.lambdify, tree=True)),
    Route("sympy.diff, codegen", SYMBOLIC,
          lambda problem, _: _symbolic(problem, partial(codegen.lambdify, modules="native", cache=False), tree=False)),
    Route("AD", AD, _mixed_modes, variants=mode_words),
    Route("AD", AD, _hessian, lambda order, shape: order == 2, lambda order: ("edge", "dyadic")),
    Route("AD tensor", AD, _tensor, lambda order, shape: order > 2 and len(shape) > 0,
          lambda order: ("fwd", "rev", "cross-country")),
    Route("Taylor", AD, lambda problem, _: _tensor(problem, "taylor", along=1),
          lambda order, shape: shape == () and order <= 170),
    Route("interpolation", AD, _interpolated, lambda order, shape: len(shape) > 0),
    Route("differences", NUMERIC, _differences, variants=lambda order: ("forward",), expected=_truncation(1)),
    Route("differences", NUMERIC, _differences, variants=lambda order: ("central",), expected=_truncation(2)),
    Route("Richardson", NUMERIC, lambda problem, _: _differences(problem, "central", LEVELS), expected=_truncation(2)),
    Route("complex step", NUMERIC, _complex_step, lambda order, shape: order == 1),
    Route("JAX", PEER, _jax),
    Route("CasADi", PEER, _casadi),
    Route("SymEngine", PEER, _symengine),
)  # fmt: skip


def routes(order: int, shape: Shape) -> list[tuple[str, str, Route]]:
    """Return `(name, variant, route)` of all routes for an order and a shape, in the order of the table.

    >>> [name for name, _, route in routes(2, ()) if route.family == AD]
    ['AD FF', 'AD FR', 'AD RF', 'AD RR', 'AD edge', 'AD dyadic', 'Taylor']
    """
    return [
        (f"{route.name} {short_word(variant)}".strip(), variant, route)
        for route in ROUTES
        if route.applies(order, shape)
        for variant in route.variants(order)
    ]

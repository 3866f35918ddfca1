"""Routes through other installed libraries, which run the traced operations on their own numbers."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import sympy as sp

from codegen.evaluation.constant_folding import leaf_constant, to_float
from codegen.evaluation.interpret import Arithmetic, Functions, carry_out
from codegen.heads import Alias
from codegen.ir.program import Head, needed
from symad.classroom.comparison.comparison_problem import Built, ComparisonProblem, differentiated_by
from symad.errors import LoweringError, NotInstalledError

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


def jax(problem: ComparisonProblem) -> Built:
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


def casadi(problem: ComparisonProblem) -> Built:
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
    operations = sum(kernel.instruction_id(k) not in moves for k in range(kernel.n_instructions()))
    return Built(call, operations=operations)


def symengine(problem: ComparisonProblem) -> Built:
    """`symengine.diff`, each derivative once, and `Lambdify` with common subexpressions."""
    module = library("symengine")
    symbols = [module.Symbol(symbol.name) for symbol in problem.symbols]
    value = carried_out(problem, symbols, module)
    entries = differentiated_by(module.diff, value, symbols, problem.order)
    kernel = module.Lambdify(symbols, entries, cse=True)
    return Built(lambda x: kernel(np.ravel(x)))

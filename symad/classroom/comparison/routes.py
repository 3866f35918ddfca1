"""The table of routes to a derivative. A row says when a route applies and how it is built."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

import codegen
import symad.classroom.comparison.peers as peers
from codegen.records import dataclass
from symad.classroom.comparison.comparison_problem import Built, ComparisonProblem, sizes, sizes_of_expressions
from symad.classroom.comparison.differences import LEVELS, derivatives, evaluations, extrapolated, spread, standard_step
from symad.compiling.native import compile, compile_trace
from symad.derivatives.interpolation import interpolation_matrix, multi_indices
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
    build: Callable[[ComparisonProblem, str], Built]
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


def _tensor(problem: ComparisonProblem, mode: Any) -> Built:
    return _compiled(problem, partials(problem.function, problem.order, mode=mode))


def _taylor(problem: ComparisonProblem, variant: str) -> Built:
    return _compiled(problem, partials(problem.function, problem.order, along=1, mode="taylor"))


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


def _differences(problem: ComparisonProblem, kind: Any) -> Built:
    f, order = problem.kernel, problem.order

    def call(x: Any) -> Any:
        flat = np.ravel(np.asarray(x, dtype=float))
        return derivatives(f.call, flat, order, kind, standard_step(kind, order, flat))

    operations = evaluations(problem.inputs, order, kind) * problem.traced.count_ops()
    return Built(call, operations=operations, seconds=f.seconds)


def _richardson(problem: ComparisonProblem, variant: str) -> Built:
    f, order = problem.kernel, problem.order
    operations = LEVELS * evaluations(problem.inputs, order, "central") * problem.traced.count_ops()

    def call(x: Any) -> Any:
        return extrapolated(f.call, np.ravel(np.asarray(x, dtype=float)), order)

    return Built(call, operations=operations, seconds=f.seconds)


def with_complex_step(problem: ComparisonProblem) -> Callable[[Any, Any], Any]:
    """Return the imaginary part of f(x + ih) / h for each input, as a function of x and the steps."""
    kernel = compile(problem.function, problem.x, dtype="complex128", cache=False)

    def call(x: Any, steps: Any) -> Any:
        flat = np.ravel(np.asarray(x, dtype=complex))
        values = [kernel(problem.shaped(flat + 1j * step)).imag for step in np.diag(steps)]
        return np.array(values) / steps

    return call


def _complex_step(problem: ComparisonProblem, variant: str) -> Built:
    """A step small enough to truncate nothing."""
    call, steps = with_complex_step(problem), np.full(problem.inputs, COMPLEX_STEP)
    return Built(lambda x: call(x, steps), operations=problem.inputs * problem.traced.count_ops())


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
    Route("Taylor", AD, _taylor, lambda order, shape: shape == () and order <= 170),
    Route("interpolation", AD, _interpolated, lambda order, shape: len(shape) > 0),
    Route("differences", NUMERIC, _differences, variants=lambda order: ("forward",), expected=_truncation(1)),
    Route("differences", NUMERIC, _differences, variants=lambda order: ("central",), expected=_truncation(2)),
    Route("Richardson", NUMERIC, _richardson, expected=_truncation(2)),
    Route("complex step", NUMERIC, _complex_step, lambda order, shape: order == 1),
    Route("JAX", PEER, lambda problem, _: peers.jax(problem)),
    Route("CasADi", PEER, lambda problem, _: peers.casadi(problem)),
    Route("SymEngine", PEER, lambda problem, _: peers.symengine(problem)),
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

"""Integrals by quadrature on numbers, differentiated under the integral sign at every order.

The integral enters the graph as a number with a rule. The integrand is traced at the bounds and at the places of a
Gauss-Kronrod formula, on intervals that are halved until the error is small. The derivative in an operand of the
integrand is the sum of its derivatives at these places, whose error is estimated again; in a bound it is the integrand
there. These are integrals of the same kind, so every order follows.

This is wrong where the integrand jumps at a place that moves. So a condition that depends on the differentiated
operands, and has both answers within the interval, is refused.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import codegen.heads as heads
from codegen.ir.program import needed
from codegen.special_heads import gammasgn
from symad.derivatives.custom import dependencies, differentiated_in
from symad.derivatives.elimination import forward
from symad.derivatives.level import deliver
from symad.derivatives.linear import linearize
from symad.errors import ArgumentError, ConvergenceError, TraceError
from symad.graph.array_values import values_of_nodes
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.tracing.calling.attempts import call
from symad.tracing.calling.function_names import argument_names, name_of
from symad.tracing.calling.scope import Scope, open_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.containers import from_nodes
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.node_trees import Tree, lift, lift_arguments, lift_result, wrap

Function = Callable[..., Any]
Finder = Callable[[Callable[[float], float], float, float], float]
Ends = list[tuple[int, int | None]]  # the alias of each bound, and the integrand there; None at a plain number

# The formula of Gauss and Kronrod with 21 places, of which every second one is of Gauss's with 10.
_PLACES = (
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452, 0.930157491355708226001207180059508,
    0.865063366688984510732096688423493, 0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784, 0.294392862701460198131126603103866,
    0.14887433898163121088482600112972, 0.0,
)  # fmt: skip
_WEIGHTS = (
    0.011694638867371874278064396062192, 0.03255816230796472747881897245939, 0.05475589657435199603138130024458,
    0.07503967481091995276704314091619, 0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109831074, 0.134709217311473325928054001771707, 0.142775938577060080797094273138717,
    0.147739104901338491374841515972068, 0.149445554002916905664936468389821,
)  # fmt: skip
_GAUSS = (
    0.066671344308688137593568809893332, 0.149451349150580593145776339657697, 0.219086362515982043995534934228163,
    0.269266719309996355091226921569469, 0.295524224714752870173892994651338,
)  # fmt: skip
_INTERVALS = 400
_CLOSE = 1e-11  # how far the two formulas may differ for the integrand, relative to its absolute value's integral
_ENOUGH = 1e-6  # and for its derivatives; the error of the better formula is far smaller
_AGREES = 1e-6  # this integral with the caller's

JUMPS = {  # heads that may jump
    sp.Piecewise, sp.sign, sp.floor, sp.ceiling, sp.frac, sp.Mod, sp.Heaviside, heads.rint, heads.trunc, heads.fmod,
    heads.copysign, gammasgn,
}  # fmt: skip


def integral(f: Function, a: Any, b: Any, args: tuple[Any, ...], find: Finder, points: Sequence[float] = ()) -> Any:
    """Return the integral of f(t, *args) over t from a to b, whose value `find(g, a, b)` finds for plain numbers."""
    with open_scope() as scope:
        arguments = lift_arguments(scope, args, argument_names(f, len(args) + 1)[1:])
        ends = [int(nodes_of(end, scope)) for end in (a, b)]
        node = _Integrand(scope, f, arguments, ends).integrated(find, points)
        return deliver(scope, Tree(lift(scope, 0.0, [""]).structure, [np.array(node, dtype=np.int64)]))


class _Integrand:
    """An integrand, traced at places between two bounds."""

    def __init__(self, scope: Scope, f: Function, arguments: Tree, ends: list[int]) -> None:
        self.scope, self.f, self.arguments, self.ends = scope, f, arguments, ends
        self.watch = _Answers(scope)
        self.nodes: dict[float, int] = {}
        self.low, self.high = (float(value) for value in values_of_nodes(scope.graph, ends, scope.values))

    def at(self, t: Any) -> int:
        """Return the node of the integrand at a plain number, or at a traced one."""
        value = call(self.f, lambda: (t, *wrap(self.scope, self.arguments)))
        result = lift_result(self.scope, value, name_of(self.f)).flat
        if len(result) != 1:
            raise ArgumentError(
                f"the integrand {name_of(self.f)} returned {len(result)} numbers", where=user_place(), do="return one"
            )
        return result[0]

    def value(self, t: float) -> float:
        """Return the number at a place, and keep the node."""
        if t not in self.nodes:
            self.nodes[t] = self.watch.heard(lambda: self.at(t))
        return float(self.watch.numbers([self.nodes[t]])[0])

    def integrated(self, find: Finder, points: Sequence[float]) -> int:
        """Return the node of the integral."""
        graph = self.scope.graph
        value = float(find(self.value, self.low, self.high))
        places, weights, gauss = _refined(self.value, self.low, self.high, points)
        numbers = np.array([self.value(t) for t in places])
        size = float(np.abs(weights) @ np.abs(numbers))
        if not abs(weights @ numbers - value) <= _AGREES * size + 1e-300:
            _not_exact(name_of(self.f), abs(weights @ numbers - value))
        active = differentiated_in(self.scope, self.arguments)
        self.watch.check_asked(list(self.nodes.values()), active, name_of(self.f))
        at_ends: Ends = []
        for end in self.ends:
            place = graph.alias(end)
            is_number = end in graph.atoms
            at_ends.append((place, None if is_number else self.at(from_nodes(np.array(place), self.scope))))
        nodes = [self.nodes[t] for t in places]
        operands = operands_of(graph, nodes, at_ends, active)
        family = _OnNumbers(self.watch, name_of(self.f), operands, weights, gauss)
        return family.node_of(graph.number(value), graph.number(1), nodes, at_ends)


def operands_of(graph: Graph, nodes: Sequence[int], at_ends: Ends, active: set[int]) -> list[int]:
    """Return what an integrand depends on, at the places and at the bounds, but for the places themselves."""
    present = [node for _, node in at_ends if node is not None]
    return sorted(dependencies(graph, [*nodes, *present], active, elements=True) - {place for place, _ in at_ends})


class Integrals(ABC):
    """What all derivatives of an integral share, which are integrals again: the operands, and how to integrate."""

    graph: Graph
    operands: list[int]

    @abstractmethod
    def check(self, nodes: list[int]) -> None:
        """Refuse an integrand that jumps at a place that depends on the operands."""

    @abstractmethod
    def summed(self, integrands: list[list[int]]) -> tuple[list[int], int]:
        """Return the nodes of integrals, each of an integrand at the places, and that of a factor of derivatives."""

    def node_of(self, value: int, factor: int, nodes: list[int], at_ends: Ends) -> int:
        """Return the node of an integral, from its value and the integrand's nodes at the places and the bounds.

        The factor multiplies its derivatives.
        """
        rule = _IntegralRule(self, factor, nodes, at_ends)
        bounds = [place for place, node in at_ends if node is not None]
        return self.graph.ruled(value, [*self.operands, *bounds], rule.partial)


class _IntegralRule:
    """The derivatives of an integral: integrals of derivatives, and the integrand at the bounds."""

    def __init__(self, family: Integrals, factor: int, nodes: list[int], at_ends: Ends) -> None:
        self.family, self.factor, self.nodes, self.at_ends = family, factor, nodes, at_ends
        self.at_bounds = [(k, node) for k, (_, node) in enumerate(at_ends) if node is not None]
        self.inner: dict[int, int] | None = None

    def partial(self, position: int) -> int | None:
        """Return the derivative of the integral in an operand."""
        count = len(self.family.operands)
        if position >= count:
            build, (k, node) = Builder(self.family.graph), self.at_bounds[position - count]
            return build.mul(node if k else build.neg(node), self.factor)
        if self.inner is None:
            self.inner = self._derivatives()
        return self.inner.get(position)

    def _derivatives(self) -> dict[int, int]:
        """Return the derivatives in all operands that the integrand depends on, computed at once."""
        family, build, count = self.family, Builder(self.family.graph), len(self.nodes)
        family.check(self.nodes)
        outputs = [*self.nodes, *[node for _, node in self.at_bounds]]
        inputs = [*family.operands, *[self.at_ends[k][0] for k, _ in self.at_bounds]]
        entries = forward(build, linearize(build, outputs, inputs))
        columns = {
            k: [entries.get((row, k), build.zero) for row in range(len(outputs))] for k in range(len(family.operands))
        }
        columns = {k: column for k, column in columns.items() if any(node != build.zero for node in column)}
        if not columns:
            return {}
        values, factor = family.summed([column[:count] for column in columns.values()])
        derivatives: dict[int, int] = {}
        for (k, column), value in zip(columns.items(), values, strict=True):
            last = iter(column[count:])
            ends = [(place, None if node is None else next(last)) for place, node in self.at_ends]
            derivatives[k] = build.mul(family.node_of(value, factor, column[:count], ends), self.factor)
        return derivatives


class _OnNumbers(Integrals):
    """Integrals by a formula whose places are fixed."""

    def __init__(self, watch: _Answers, name: str, operands: list[int], weights: Any, gauss: Any) -> None:
        self.graph, self.watch, self.name, self.operands = watch.graph, watch, name, operands
        self.weights, self.gauss = weights, gauss

    def check(self, nodes: list[int]) -> None:
        self.watch.check_choices(nodes, set(self.operands), self.name)

    def summed(self, integrands: list[list[int]]) -> tuple[list[int], int]:
        """Return the integrals, whose errors are small enough."""
        sums: list[int] = []
        for nodes in integrands:
            numbers = self.watch.numbers(nodes)
            value, size = float(self.weights @ numbers), float(np.abs(self.weights) @ np.abs(numbers))
            if not abs(self.gauss @ numbers - value) <= _ENOUGH * size + 1e-300:
                _not_exact(f"a derivative of {self.name}", abs(self.gauss @ numbers - value))
            sums.append(self.graph.number(value))
        return sums, self.graph.number(1)


def _refined(f: Callable[[float], float], low: float, high: float, points: Sequence[float]) -> tuple[Any, Any, Any]:
    """Return places, the weights of Gauss and Kronrod, and those of Gauss, on intervals that are small enough."""
    finite = math.isfinite(low) and math.isfinite(high)
    edges = sorted({low, high, *points})
    if not finite:
        edges = [-1.0 if math.isinf(low) else 0.0, 1.0 if math.isinf(high) else 0.0]
    waiting: list[tuple[float, float, tuple[float, float]]] = [(edges[0], edges[1], (low, high))]
    if finite:
        waiting = [(0.0, 1.0, piece) for piece in pairwise(edges)]
    done, total = list[Any](), 0.0
    places_and_weights = formula()
    while waiting:
        left, right, piece = waiting.pop()
        middle, half = (left + right) / 2, (right - left) / 2
        inner = middle + half * places_and_weights[0]
        places, stretch = unfolded(inner, *piece, (math.isinf(piece[0]), math.isinf(piece[1])))
        numbers = np.array([f(t) for t in places.tolist()])
        weights, gauss = (half * part * stretch for part in places_and_weights[1:])
        total = max(total, float(np.abs(weights) @ np.abs(numbers)))
        is_last = len(done) + len(waiting) >= _INTERVALS or half < 1e-12 * abs(middle)
        if is_last or abs((weights - gauss) @ numbers) <= _CLOSE * total:
            done.append((places, weights, gauss))
        else:
            waiting += [(left, middle, piece), (middle, right, piece)]
    sign = -1.0 if low > high else 1.0
    places, weights, gauss = (np.concatenate(part) for part in zip(*done, strict=True))
    return places.tolist(), sign * weights, sign * gauss


def unfolded(s: Any, low: Any, high: Any, infinite: tuple[bool, bool]) -> tuple[Any, Any]:
    """Return the places of an interval that places of a finite one stand for, and how much wider it is.

    A finite interval is mapped from [0, 1] with places that crowd at the ends: a root there, and its derivative, become
    smooth.
    """
    match infinite:
        case True, True:
            return s / (1 - s * s), (1 + s * s) / (1 - s * s) ** 2
        case False, True:
            return low + s / (1 - s), 1 / (1 - s) ** 2
        case True, False:
            return high + s / (1 + s), 1 / (1 + s) ** 2
    return low + (high - low) * smoothed(s)[0], (high - low) * smoothed(s)[1]


def smoothed(u: Any) -> tuple[Any, Any]:
    """Return u**2 (3 - 2 u), and its derivative, which is 0 at 0 and 1."""
    return u * u * (3 - 2 * u), 6 * u * (1 - u)


def formula() -> tuple[Any, Any, Any]:
    """Return the places between -1 and 1, and the weights of Gauss and Kronrod, and of Gauss."""
    places, weights = np.array(_PLACES), np.array(_WEIGHTS)
    gauss = np.zeros(11)
    gauss[1:11:2] = _GAUSS
    halves = zip((-1.0, 1.0, 1.0), (places, weights, gauss), strict=True)
    whole = [np.concatenate([sign * part, part[-2::-1]]) for sign, part in halves]
    return whole[0], whole[1], whole[2]


def _not_exact(name: str, error: float) -> NoReturn:
    raise ConvergenceError(
        f"the integral of {name} is not known well enough",
        where=user_place(),
        why=f"two formulas differ by {error:.3g}",
        do="split the interval where the integrand is not smooth (points=), or substitute the variable",
    )


class _Questions(list[Any]):
    """Questions that an integrand asks of numbers; `passed` are those of integrals inside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: list[Any] = []


class _Answers:
    """Questions that an integrand asks about numbers at each place, and the choices in its result."""

    def __init__(self, scope: Scope) -> None:
        self.scope, self.graph, self.asked = scope, scope.graph, list[list[Any]]()

    def heard(self, run: Callable[[], int]) -> int:
        """Run a function, record its questions, and return its result."""
        arrays, heard = self.graph.arrays, _Questions()
        before, arrays.asked = arrays.asked, heard
        try:
            return run()
        finally:
            arrays.asked = before
            self.asked.append(list(heard))
            _pass_on(before, [*heard, *heard.passed])

    def numbers(self, nodes: list[int]) -> NDArray[np.float64]:
        """Return the values of nodes; an outer integral does not record this question."""
        arrays = self.graph.arrays
        before, arrays.asked = arrays.asked, (None if arrays.asked is None else [])
        try:
            return np.array(values_of_nodes(self.graph, nodes, self.scope.values), dtype=np.float64)
        finally:
            asked, arrays.asked = arrays.asked, before
            _pass_on(before, asked or [])

    def check_asked(self, met: list[int], reached: set[int], name: str) -> None:
        """Refuse an integrand whose code goes other ways at a place which depends on the operands."""
        ways: set[Any] = set()
        for node, heard in zip(met, self.asked, strict=True):
            asked = [(np.ravel(of), answer) for of, _, answer in heard if self._depends(of, reached)]
            used = set(needed(self.graph, [node], ())) if asked else set()
            if any(answer.dtype != bool and not used.issuperset(of.tolist()) for of, answer in asked):
                refuse_moving_choice(name)  # it went on with a number, as int(x) does
            ways.add(tuple([answer.tobytes() for _, answer in asked if answer.dtype == bool]))
        if len(ways) > 1:
            refuse_moving_choice(name)

    def check_choices(self, nodes: list[int], reached: set[int], name: str) -> None:
        """Raise an error where the integrand chooses at a place that depends on the operands."""
        if len({tuple(self._choices([node], reached)) for node in nodes}) > 1:
            refuse_moving_choice(name)

    def _choices(self, nodes: list[int], reached: set[int]) -> list[Any]:
        """Return the choices in the nodes whose conditions depend on the operands."""
        choices: list[Any] = []
        for node in needed(self.graph, nodes, ()):
            head, operands = self.graph.heads[node], self.graph.operands[node]
            conditions = list(operands[1::2] if head is sp.Piecewise else operands) if head in JUMPS else []
            if conditions and self._depends(np.array(conditions), reached):
                choices.append((head, tuple(_decided(head, self.numbers([node, *conditions])))))
        return choices

    def _depends(self, nodes: Any, reached: set[int]) -> bool:
        return bool(dependencies(self.graph, np.ravel(nodes).tolist(), reached, elements=True))


def _pass_on(before: list[Any] | None, asked: list[Any]) -> None:
    """Pass questions to an outer integral, which records them without judging them."""
    if isinstance(before, _Questions):
        before.passed += asked
    elif before is not None:
        before += asked


def _decided(head: Any, values: NDArray[np.float64]) -> list[float]:
    """Return which way a choice went: its conditions, or its value if that is piecewise constant."""
    value, *operands = [float(number) for number in values]
    if head is sp.Piecewise:
        return operands
    return [float(np.floor(operands[0] / operands[1]))] if head is sp.Mod else [value]


def refuse_moving_choice(name: str) -> NoReturn:
    raise TraceError(
        f"the integrand {name} changes its formula at a place that depends on what is differentiated",
        where=user_place(),
        why="the derivative of such an integral has a term for that place",
        do="split the integral there: quad(f, a, place) and quad(g, place, b), whose bounds have derivatives",
    )

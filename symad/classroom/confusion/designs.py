"""Read the numbers of each design: dual numbers, symbols, a tape, symad's traced values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import sympy as sp

from codegen.evaluation.interpret import evaluate
from symad.classroom.confusion import naive
from symad.classroom.confusion.watched_runs import SPACE, Design, Opened
from symad.derivatives.level import Epsilon
from symad.derivatives.linear import linearize
from symad.display.document import Cell, Inline, Marked
from symad.graph.builder import Builder
from symad.tracing.values.scalar import Scalar
from symad.transforms.first_order import derivative, grad

Term = tuple[float, tuple[int, ...]]  # a coefficient, and the numbers of the epsilons that it stands at


class _DualNumbers(Design):
    """Designs on dual numbers. A slope is the coefficient of an epsilon, by the design's own extraction."""

    def epsilons(self, tags: Sequence[int]) -> Marked:
        return epsilons([tag + 1 for tag in tags])

    def shown(self, number: Any, opened: Sequence[Opened]) -> Cell:
        return self._polynomial(number)

    def _polynomial(self, number: Any) -> tuple[Inline, ...]:
        """Return a number multiplied out, unless two parts share an epsilon: their product would vanish."""
        terms = list(_terms(number))
        if all(len(set(tags)) == len(tags) for _, tags in terms):
            return polynomial(terms, self.epsilons)
        parts = [self._polynomial(part) for part in (number.primal, number.tangent)]
        left, right = (("(", *part, ")") if len(part) > 1 else part for part in parts)
        return (*left, f" +{SPACE}", *(() if right == ("1",) else (*right, SPACE)), self.epsilons([number.tag]))

    def seen(self, number: Any, opened: Sequence[Opened]) -> tuple[float, float]:
        slope = naive.tangent(number, opened[-1].parameter.number.tag) if opened else 0.0
        return naive.primal(number), naive.primal(slope)


class Tagless(_DualNumbers):
    """All levels share one epsilon."""

    name: str = "no tag"
    leaves_out: str = "All levels use one and the same epsilon."
    operator = naive.tagless

    def epsilons(self, tags: Sequence[int]) -> Marked:
        return Marked(sp.Symbol("epsilon"), "epsilon")


class SharedTag(_DualNumbers):
    """Each derivative has one tag, shared by all uses of a returned function."""

    name: str = "shared tag"
    leaves_out: str = "One epsilon for all uses of a derivative that is a function."
    operator = naive.shared_tag


class NoAlias(Design):
    """Symbolic differentiation. An argument that is a variable is its own parameter."""

    name: str = "no alias"
    leaves_out: str = "An argument that is a variable is taken as the parameter."
    operator = naive.no_alias

    def shown(self, number: Any, opened: Sequence[Opened]) -> Cell:
        if not isinstance(number, sp.Basic):
            return f"{number:.6g}"
        whole = {value: sp.Integer(value) for value in number.atoms(sp.Float) if float(value).is_integer()}
        names = {level.parameter.number: level.parameter.name for level in reversed(opened)}
        return number.xreplace({**whole, **names})

    def seen(self, number: Any, opened: Sequence[Opened]) -> tuple[float, float]:
        value = sp.sympify(number)
        slope = sp.diff(value, opened[-1].parameter.number) if opened else sp.S.Zero
        for level in reversed(opened):
            value, slope = (part.subs(level.parameter.number, level.argument) for part in (value, slope))
        return float(value), float(slope)


class OneTape(Design):
    """Reverse mode with one tape for all levels."""

    name: str = "one tape"
    leaves_out: str = "Levels share a tape, its adjoints and its switch: the inner one empties it."
    operator = naive.one_tape

    def shown(self, number: Any, opened: Sequence[Opened]) -> Cell:
        text = f"{number.value if isinstance(number, naive.Variable) else number:.6g}"
        left = (level.parameter for level in opened if level.parameter.number.adjoint)
        notes = (part for kept in left for part in (f", adjoint {kept.number.adjoint:.6g} on ", kept.name))
        slope = self.seen(number, opened)[1] if opened else None
        seen = () if slope is None else (f", slope {slope:.6g} in ", opened[-1].parameter.name)
        return (text, *seen, *notes)

    def seen(self, number: Any, opened: Sequence[Opened]) -> tuple[float, float]:
        if not isinstance(number, naive.Variable):
            return float(number), 0.0
        adjoints = {id(number): 1.0}  # the adjoints of a sweep from here, computed apart from the tape
        for output, inputs in reversed(number.tape.operations):
            for variable, partial in inputs:
                adjoints[id(variable)] = adjoints.get(id(variable), 0.0) + adjoints.get(id(output), 0.0) * partial
        return number.value, adjoints.get(id(opened[-1].parameter.number), 0.0) if opened else 0.0


class Right(Design):
    """symad's own transforms: forward mode at each level, or reverse mode."""

    leaves_out = ""

    def __init__(self, reverse: bool = False) -> None:
        transform = grad if reverse else derivative
        self.name = "right, in reverse mode" if reverse else "right"
        self.derivative: naive.Derivative = lambda f, a: transform(f)(a)

    def function(self, name: str, number: Any) -> Any:
        return getattr(np, name)(number)

    def shown(self, number: Any, opened: Sequence[Opened]) -> Cell:
        return polynomial(_coefficients(number, opened), epsilons)

    def seen(self, number: Any, opened: Sequence[Opened]) -> tuple[float, float]:
        coefficients = {levels: coefficient for coefficient, levels in _coefficients(number, opened)}
        return coefficients[()], coefficients.get((len(opened),), 0.0)


def epsilons(levels: Sequence[int]) -> Marked:
    """Return the product of the epsilons of levels, marked as such."""
    product = sp.Mul(*map(Epsilon.of_level, levels))
    return Marked(product, "epsilon", levels[0] if len(levels) == 1 else 0)


def polynomial(terms: Sequence[Term], symbol: Callable[[Sequence[int]], Inline]) -> tuple[Inline, ...]:
    r"""Return a polynomial in epsilons as text and symbols, in the order of levels, without zeros.

    >>> polynomial([(2.0, ()), (-1.0, (1,)), (3.0, (1, 2))], lambda levels: f"e{levels}")
    ('2', ' -\xa0', 'e(1,)', ' +\xa0', '3\xa0', 'e(1, 2)')
    """
    shown = list[Inline]()
    for coefficient, levels in sorted(terms, key=lambda term: (len(term[1]), term[1])):
        if coefficient or not levels:
            sign = "-" if coefficient < 0 else "+" * bool(shown)
            shown.append(f" {sign}{SPACE}" if shown else sign)
            if abs(coefficient) != 1 or not levels:
                shown.append(f"{abs(coefficient):.6g}" + SPACE * bool(levels))
            shown.extend([symbol(levels)] if levels else [])
    return tuple(part for part in shown if part != "")


def _terms(number: Any, tags: tuple[int, ...] = ()) -> Iterator[Term]:
    """Yield the terms of a multiplied-out dual number."""
    if isinstance(number, naive.Dual):
        yield from _terms(number.primal, tags)
        yield from _terms(number.tangent, (number.tag, *tags))
    else:
        yield float(number), tags


def _coefficients(number: Any, opened: Sequence[Opened]) -> list[Term]:
    """Return a traced value's coefficients in the open levels' epsilons: derivatives in their aliases."""
    if not isinstance(number, Scalar):
        return [(float(number), ())]
    graph, build = number.scope.graph, Builder(number.scope.graph)
    node_of: dict[tuple[int, ...], int] = {(): number.node}
    for level in range(len(opened), 0, -1):  # the innermost first: the levels around it see through its alias
        alias = opened[level - 1].parameter.number.node
        for levels, node in list(node_of.items()):
            (slope,) = linearize(build, [node], [alias]).apply(build, [build.one])
            if slope is not None:
                node_of[level, *levels] = slope
    values = evaluate(graph, list(node_of.values()), number.scope.values)
    return [(float(value), levels) for value, levels in zip(values, node_of, strict=True)]

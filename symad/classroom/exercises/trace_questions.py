"""Traces by hand: a row for each operation with its value and its tangent, or its value and its adjoint.

A wrong table has one slip in one local derivative, and everything after it follows from that: `check_trace` has to find
just this row wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np
from mpmath import mp

from symad.classroom.answers.answer_problem import Reveal
from symad.classroom.answers.trace_answers import CheckedTrace, check_trace
from symad.classroom.exercises.practice_questions import PracticeQuestion, WrongAnswer
from symad.classroom.exercises.topics import Draw, Topic
from symad.classroom.explanation.explain import explain, explained_gradient, formula_at_point
from symad.classroom.explanation.explanation_document import Explanation
from symad.classroom.explanation.explanation_lines import CarriedLine, LocalDerivative, VariableLine
from symad.display.document import Document
from symad.display.mathematics import signs_of
from symad.transforms.linear_transforms import jvp

_VARIABLE = re.compile(r"(?<![a-z])x\d?")
_POINTS = (1, 2, 3)
_DIRECTIONS = {1: ((1,),), 2: ((1, 0), (0, 1), (1, 1), (1, 2))}
_VISIBLE = mp.mpf(10) ** -3  # relative: a slip that changes less could be rounding
Edge = tuple[int, int]  # of a trace: a line and its operand


class TraceQuestion(PracticeQuestion):
    """A formula at a point, traced forward along a direction or in reverse."""

    def __init__(self, topic: Topic, level: int, draw: Draw) -> None:
        super().__init__(topic, level, draw)
        self.mode: Any = topic.kind
        self.variables = sorted(set(_VARIABLE.findall(self.f)))
        self.point = {name: draw.of(_POINTS) for name in self.variables}
        self.direction = draw.of(_DIRECTIONS[len(self.variables)])

    @cached_property
    def explanation(self) -> Explanation:
        if self.mode == "reverse":
            return explained_gradient(self.f, (), dict(self.point))
        formula, argument = formula_at_point(self.f, (), dict(self.point))
        along: Any = np.array(self.direction) if np.ndim(argument) else self.direction[0]

        def pushforward(x: Any) -> Any:
            return jvp(formula.function, (x,), (along,))[1]

        return explain(pushforward, formula.argument, at=(argument,)).named(formula.symbols, "f")

    @cached_property
    def values(self) -> dict[int, VariableLine]:
        lines = (line for stage in self.explanation.stages for line in stage.lines)
        return {line.node: line for line in lines if isinstance(line, VariableLine)}

    @cached_property
    def carried(self) -> list[CarriedLine]:
        return [line for stage in self.explanation.stages for line in stage.lines if isinstance(line, CarriedLine)]

    def _slopes(self, slip: Mapping[Edge, Any]) -> dict[int, Any]:
        """Return tangents or adjoints by line, with other numbers for the local derivatives that a slip concerns."""
        slopes: dict[int, Any] = {}
        for line in self.carried:
            slopes[line.node] = slopes.get(line.node, 0) if line.terms else line.number
            for term in line.terms:
                other = term.operand if self.mode == "forward" else term.line
                slopes[line.node] += slip.get((term.line, term.operand), term.number) * slopes.get(other, 0)
        return slopes

    def _table(self, slip: Mapping[Edge, Any]) -> str:
        slopes, rows = self._slopes(slip), [(line.name, f"{float(line.number):.6g}") for line in self.values.values()]
        if self.mode == "forward":
            return "\n".join(f"{name} | {value} | {float(slopes.get(node, 0)):.6g}"
                             for node, (name, value) in zip(self.values, rows, strict=True))  # fmt: skip
        bars = ((f"{self.values[node].name}bar", f"{float(slope):.6g}") for node, slope in slopes.items())
        return "\n".join(f"{name} | {number}" for name, number in (*rows, *bars))

    @property
    def answer(self) -> str:
        return self._table({})

    def check(self, mine: Any, reveal: Reveal) -> CheckedTrace:
        direction = self.direction if self.mode == "forward" else None
        checked = check_trace(mine, self.f, at=dict(self.point), mode=self.mode, direction=direction)
        if reveal == "always" or (reveal == "after" and checked.right):
            return checked
        return replace(checked, rows=tuple(replace(row, expected=()) for row in checked.rows))

    def mistaken(self) -> Iterator[WrongAnswer]:
        turns = [self.draw.shuffled([*self._slips(line, term)]) for line in self.carried for term in line.terms]
        for row in zip_longest(*self.draw.shuffled(turns)):
            for node, words, slip in filter(None, row):
                wrong, right = self._slopes(slip)[node], self._slopes({})[node]
                if abs(wrong - right) > _VISIBLE * abs(right):
                    yield WrongAnswer(self._table(slip), f"{self.values[node].name}: {words}")

    def _slips(self, line: CarriedLine, term: LocalDerivative) -> Iterator[tuple[int, str, dict[Edge, Any]]]:
        """Yield the slips in a part of a tangent or an adjoint: where, in words, and the numbers that they put."""
        edge, (whole, operand) = (term.line, term.operand), (self.values[n].name for n in (term.line, term.operand))
        about = f"∂{whole}/∂{operand} = {signs_of(term.expression)}"
        yield line.node, f"You have the wrong sign of {about}", {edge: -term.number}
        if term.number != 1:
            yield line.node, f"You left out the factor {about}", {edge: mp.mpf(1)}
        if len(line.terms) > 1:
            yield line.node, f"You left out the part of {operand}", {edge: mp.mpf(0)}
        if line.before and self.mode == "reverse":
            of_node = (term for other in self.carried if other.node == line.node for term in other.terms)
            words = f"You overwrote the adjoint of {operand}, but its parts are added"
            yield line.node, words, {(t.line, t.operand): mp.mpf(0) for t in of_node if t not in line.terms}

    def confirms(self, wrong: WrongAnswer) -> bool:
        """Whether the check finds just the row of the slip wrong; later rows follow from it."""
        rows = self.checked(wrong.text).rows
        return [row.line for row in rows if row.verdict in ("wrong", "missing")] == [wrong.diagnosis.partition(":")[0]]

    def hints(self) -> list[str]:
        named = [line for line in self.values.values() if line.symbol != line.expression]
        lines, carried = ([f"{line.name} = {signs_of(line.expression)}" for line in of] for of in (named, self.carried))
        return [self.topic.hint, f"The lines: {'; '.join(lines)}", *carried]

    def worked(self) -> Document:
        return self.explanation.document()[1:]

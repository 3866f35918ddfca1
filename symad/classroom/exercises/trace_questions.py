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
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp

from symad.classroom.answers.answer_problem import Reveal
from symad.classroom.answers.trace_answers import CheckedTrace, check_trace
from symad.classroom.exercises.practice_questions import PracticeQuestion, WrongAnswer
from symad.classroom.exercises.topics import Draw, Topic
from symad.classroom.explanation.explain import Explanation, explain, explained_gradient
from symad.classroom.explanation.explanation_lines import CarriedLine, LocalDerivative, VariableLine
from symad.classroom.explanation.shown_point import formula_at_point
from symad.display.document import Document
from symad.display.mathematics import signs_of
from symad.transforms.linear_transforms import jvp

_VARIABLE = re.compile(r"(?<![a-z])x\d?")
_POINTS = (1, 2, 3)
_DIRECTIONS = {1: ((1,),), 2: ((1, 0), (0, 1), (1, 1), (1, 2))}
_VISIBLE = mp.mpf(10) ** -3  # relative: a slip that changes less could be rounding


class Slip(NamedTuple):
    """Another number for the local derivative of a line in an operand; or its factor, or the parts before, are lost."""

    edge: tuple[int, int]
    number: Any
    is_multiplied: bool = True
    is_added: bool = True


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
    def values(self) -> list[VariableLine]:
        return [line for stage in self.explanation.stages for line in stage.lines if isinstance(line, VariableLine)]

    @cached_property
    def _names(self) -> dict[int, str]:
        return {line.node: line.name for line in self.values}

    @cached_property
    def carried(self) -> list[CarriedLine]:
        return [line for stage in self.explanation.stages for line in stage.lines if isinstance(line, CarriedLine)]

    def _slopes(self, slip: Slip | None = None) -> dict[int, Any]:
        """Return tangents or adjoints by line, with a slip in one of them."""
        slopes: dict[int, Any] = {}
        for line in self.carried:
            parts = [] if line.terms else [line.number]
            for term in line.terms:
                factor = slopes.get(term.operand if self.mode == "forward" else term.line, mp.mpf(0))
                if slip is None or slip.edge != (term.line, term.operand):
                    parts.append(term.number * factor)
                else:
                    parts.append(slip.number * (factor if slip.is_multiplied else 1))
                    slopes.update({} if slip.is_added else {line.node: mp.mpf(0)})
            slopes[line.node] = slopes.get(line.node, mp.mpf(0)) + mp.fsum(parts)
        return slopes

    def _table(self, slopes: Mapping[int, Any]) -> str:
        names = self._names
        values = {line.node: _digits(line.number) for line in self.values}
        if self.mode == "forward":
            return "\n".join(f"{names[n]} | {values[n]} | {_digits(slopes.get(n, 0))}" for n in names)
        order = dict.fromkeys(line.node for line in self.carried)
        rows = [f"{names[n]} | {values[n]}" for n in names]
        return "\n".join([*rows, *(f"{names[n]}bar | {_digits(slopes[n])}" for n in order)])

    @property
    def answer(self) -> str:
        return self._table(self._slopes())

    def check(self, mine: Any, reveal: Reveal) -> CheckedTrace:
        direction = self.direction if self.mode == "forward" else None
        checked = check_trace(mine, self.f, at=dict(self.point), mode=self.mode, direction=direction)
        if reveal == "always" or (reveal == "after" and checked.right):
            return checked
        return replace(checked, rows=tuple(replace(row, expected=()) for row in checked.rows))

    def mistaken(self) -> Iterator[WrongAnswer]:
        right, names = self._slopes(), self._names
        edges = [(line, term) for line in self.carried for term in line.terms]
        turns = [self.draw.shuffled([(line.node, *slip) for slip in self._slips(line, term)]) for line, term in edges]
        rows = [row for turn in zip_longest(*self.draw.shuffled(turns)) for row in turn if row is not None]
        for node, words, slip in rows:
            slopes = self._slopes(slip)
            if abs(slopes[node] - right[node]) > _VISIBLE * abs(right[node]):
                yield WrongAnswer(self._table(slopes), f"{names[node]}: {words}")

    def _slips(self, line: CarriedLine, term: LocalDerivative) -> list[tuple[str, Slip]]:
        """Return the slips in a part of a tangent or an adjoint, in words."""
        names, edge = self._names, (term.line, term.operand)
        about = f"∂{names[term.line]}/∂{names[term.operand]} = {signs_of(term.expression)}"
        before = f"tangent of {names[term.operand]}" if self.mode == "forward" else f"adjoint of {names[term.line]}"
        slips = [(f"You have the wrong sign of {about}", Slip(edge, -term.number))]
        if term.number != 1:
            slips.append((f"You left out the factor {about}", Slip(edge, mp.mpf(1))))
        slips.append((f"You did not multiply by the {before}", Slip(edge, term.number, is_multiplied=False)))
        if self.mode == "reverse" and line.before:
            words = f"You overwrote the adjoint of {names[line.node]}, but its parts are added"
            slips = [(words, Slip(edge, term.number, is_added=False))]
        elif len(line.terms) > 1:
            slips.append((f"You left out the part of {names[term.operand]}", Slip(edge, mp.mpf(0))))
        return slips

    def confirms(self, wrong: WrongAnswer) -> bool:
        """Whether the check finds just the row of the slip wrong; later rows follow from it."""
        rows = self.check(wrong.text, "always").rows
        return [row.line for row in rows if row.verdict in ("wrong", "missing")] == [wrong.diagnosis.partition(":")[0]]

    def hints(self) -> list[str]:
        lines = [f"{line.name} = {signs_of(line.expression)}" for line in self.values if line.symbol != line.expression]
        carried = [f"{line.name} = {signs_of(line.expression)}" for line in self.carried]
        return [self.topic.hint, f"The lines: {'; '.join(lines)}", *carried]

    def worked(self) -> Document:
        return self.explanation.document()[1:]


def _digits(number: Any) -> str:
    return f"{float(number):.6g}"

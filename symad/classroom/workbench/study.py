"""Everything computed for one question, once: function, derivative, trace, links, kernel."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from codegen import Kernel
from codegen.records import dataclass
from symad.classroom.explanation.explain import Explanation, explain
from symad.classroom.workbench.links import Links
from symad.classroom.workbench.questions import TRANSFORMS, Function, Question, Subject, subject_of
from symad.classroom.workbench.titles import TITLES
from symad.compiling.native import carry_out
from symad.compiling.planning import plan

MOST_LEVELS = 4  # of an expansion on the page


@dataclass(frozen=True)
class Study:
    """The subject of a question and everything derived from it. Each part is computed on first use."""

    question: Question
    file: str = ""
    allow_code: bool = False

    @cached_property
    def subject(self) -> Subject:
        return subject_of(self.question, self.file, self.allow_code)

    @property
    def order(self) -> int:
        """Number of levels that the transform opens."""
        return TRANSFORMS[self.question.transform].levels or self.question.order

    @cached_property
    def transformed(self) -> Function:
        """The chosen derivative as a function."""
        subject = self.subject

        def f(argument_0: Any) -> Any:  # an automatic name: the page shows the variables instead
            return subject.function(argument_0)

        f.__name__ = subject.name
        return TRANSFORMS[self.question.transform].take(f, subject.numbers, self.question.order)

    @cached_property
    def explanation(self) -> Explanation:
        """The explanation of the derivative. Its inputs have the user's names."""
        subject = self.subject
        explanation = explain(self.transformed, subject.numbers, detail="all")
        return explanation.named(subject.symbols, f"{TITLES[self.question.transform]} of {subject.name}")

    @cached_property
    def links(self) -> Links:
        """The links between the panes."""
        return Links(self.explanation, self.subject.flat)

    @cached_property
    def kernel(self) -> Kernel:
        """The derivative compiled by LLVM, whose IR is displayed."""
        return carry_out(plan(self.transformed, self.subject.numbers), tier="llvm")

    def directions(self) -> list[Any]:
        """Return a direction for each level of the expansion: v, w, ... for each number of the argument."""
        shape = np.shape(self.subject.argument)
        taken = {str(symbol) for symbol in self.subject.symbols}
        letters = [letter for letter in "vwuzstabcd" if letter not in taken]
        straight = self.question.transform == "derivative"
        count = min(self.order, MOST_LEVELS)
        return [_direction(letters[0] if straight else letter, shape) for letter in letters[:count]]


def _direction(letter: str, shape: tuple[int, ...]) -> Any:
    if not shape:
        return sp.Symbol(letter, real=True)
    size = int(np.prod(shape))
    parts = [sp.Symbol(f"{letter}_{k}", real=True) for k in range(1, size + 1)]
    return np.array(parts, dtype=object).reshape(shape)

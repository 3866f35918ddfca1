"""Taylor polynomials with the remainder of Lagrange: f^(n+1)(ξ)/(n+1)! (x - a)^(n+1), or with a + θ(x - a) for ξ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sympy as sp

from codegen.records import dataclass
from symad.classroom.answers.answer_page import AnswerLine, CheckedAnswer
from symad.classroom.answers.answer_problem import AnswerProblem, expansion_problem, of_kind
from symad.classroom.answers.asked import Asked
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.equality.equality import agreement
from symad.classroom.expansion.epsilon import Levels
from symad.classroom.formulas.read import reading
from symad.tracing.calling.user_place import refusal

PLACES = {name: sp.Symbol(name, real=True) for name in ("xi", "theta", "c", "z", "zeta")}  # between a and x
_BETWEEN = tuple(PLACES.values())
_REMAINDER = re.compile(
    r"\s*(?:\|)?R(?:_?\{?[0-9n₀-₉]\}?)?\s*(?:\(\s*\w\s*\))?\s*=(?P<value>[^=<>≤≥]+)(?:=(?P<more>[^=<>≤≥]+))?"
)
_RANGE = re.compile(
    r"[,;]?\s*(?:with|where|mit|avec|for|für)?\s*(?:some\s+)?(?:-?[\w.]+\s*[<≤]\s*)?(?:ξ|\\xi|θ|\\theta|c|z|ζ)\s*(?:[<≤∈]|\\in|between|zwischen).*$"
)


@dataclass(frozen=True)
class TaylorProblem(AnswerProblem):
    """A Taylor polynomial. Terms with ξ are the remainder, and no part of the polynomial."""

    @property
    def own_names(self) -> dict[str, sp.Symbol]:
        return {**PLACES, "ξ": PLACES["xi"], "θ": PLACES["theta"]}

    def coefficients(self, expression: sp.Expr) -> dict[Levels, sp.Expr]:
        return super().coefficients(sp.Add(*(term for term in sp.Add.make_args(expression) if not term.has(*_BETWEEN))))

    def remainders(self, place: sp.Symbol, step: sp.Expr) -> Iterator[tuple[str, sp.Expr]]:
        """Yield the remainder at a place, then wrong ones with what is wrong; step is x - a."""
        (x,), order = self.symbols, self.count + 1
        a = self.value(x)
        between = a + place * step if place == PLACES["theta"] else place
        slopes = [sp.diff(self.formula, x, k) for k in range(order + 2)]

        def term(k: int, at: sp.Expr, below: int, power: int) -> sp.Expr:
            return slopes[k].subs(x, at) / sp.factorial(below) * step**power

        yield "", term(order, between, order, order)
        if slopes[order].subs(x, a) == 0:  # the polynomial is that of the next order too
            yield "", term(order + 1, between, order + 1, order + 1)
        yield f"You did not divide by {order}!", term(order, between, 0, order)
        yield f"You divided by {order - 1}!, and not by {order}!", term(order, between, order - 1, order)
        yield (
            "You took the derivative of the order of the polynomial: the remainder has the next one",
            term(order - 1, between, order - 1, order - 1),
        )
        yield "You took the derivative of one order too few", term(order - 1, between, order, order)
        yield (
            "The power of x - a is that of the polynomial, and not the next one",
            term(order, between, order, order - 1),
        )


def taylor_check(f: Any, x: Any, asked: Asked, check: Callable[..., CheckedAnswer]) -> Callable[[Any], CheckedAnswer]:
    """Return the check of a Taylor polynomial about the point in x, with or without its remainder."""
    if not isinstance(x, Mapping) or len(x) != 1:
        raise refusal("a Taylor polynomial without a point", do='give one, as {"x": 0}')
    problem = expansion_problem(f, x, [1], asked.order, None, asked.digits, asked.reveal)
    taylor = of_kind(TaylorProblem, problem)
    (symbol,) = taylor.symbols
    plain = sp.Symbol(symbol.name, real=True)

    def checked(mine: Any) -> CheckedAnswer:
        remainders: list[tuple[int, str, sp.Expr]] = []
        if isinstance(mine, str):
            lines = [_RANGE.sub("", line) for line in mine.splitlines()]
            for number, line in enumerate(lines, 1):
                for match in _REMAINDER.finditer(line) if "R" in line else ():
                    names = {**taylor.own_names, symbol.name: plain}
                    for text in filter(None, (match["value"], match["more"])):
                        remainders.append((number, match[0], reading(text.strip(" .;,$"), names).expression))
            mine = "\n".join(re.sub(r"[,;\s]*$", "", _REMAINDER.sub("", line)) for line in lines)
        answer = check(mine, taylor)
        step = plain - taylor.value(symbol)
        along = {epsilon: sp.S.Zero if k else step for k, epsilon in enumerate(taylor.epsilons)}
        for judged in answer.steps if answer.right else ():
            terms = [term for term in sp.Add.make_args(judged.step.expression) if term.has(*_BETWEEN)]
            if terms:
                remainders.append((judged.step.line, judged.step.text, sp.Add(*terms).subs(along)))
        last = answer.steps[-1].step
        rest = sp.Add(*(term for term in sp.Add.make_args(last.expression) if not term.has(*_BETWEEN))).subs(along)
        if answer.right and rest.is_polynomial(plain) and sp.degree(rest, plain) > taylor.count:
            words = (f"The polynomial of degree {taylor.count} has no term of a higher degree",)
            return replace(
                answer, right=False, line=AnswerLine(last.line, last.text), mistakes=(Mistake("degree", words),)
            )
        for number, text, written in remainders if answer.right else ():
            if (what := _wrong_remainder(taylor, written, step)) is not None:
                mistakes = (Mistake("remainder", (what,)),) if what else ()
                return replace(answer, right=False, line=AnswerLine(number, text), mistakes=mistakes)
        return replace(answer, finished=bool(rest.is_polynomial(plain))) if answer.right else answer

    return checked


def _wrong_remainder(problem: TaylorProblem, written: sp.Expr, step: sp.Expr) -> str | None:
    """Return what is wrong with a remainder, "" if no usual mistake leads there; None if it is right."""
    places = [place for place in _BETWEEN if written.has(place)]
    if len(places) > 1:
        raise refusal("two places in one remainder", do="write one ξ between the point and x")
    for words, expression in problem.remainders(places[0] if places else PLACES["xi"], step):
        if agreement(expression, written):
            return words or None
    at_point = next(problem.remainders(PLACES["xi"], step))[1].subs(PLACES["xi"], problem.value(problem.symbols[0]))
    return "Its derivative is taken at the point, and not at a ξ between" if agreement(at_point, written) else ""

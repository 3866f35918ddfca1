"""The lines of a derivation: pending derivatives are taken rule by rule, then the result is tidied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import sympy as sp

from codegen.records import dataclass
from symad.classroom.derivation.textbook_rules import AppliedRule, applied
from symad.classroom.derivation.tidying import evaluated, in_book_order, tidied
from symad.display.document import Inline, inlines
from symad.display.mathematics import signs_of
from symad.display.notation import Pending, WrittenProduct, WrittenSum
from symad.errors import LimitError

Detail = Literal["short", "full"]
MOST_LINES = 150
_REASONS = 2  # of a line, that say what their parts are
_TERMWISE = ("sum rule", "constant factor")
_SILENT = (*_TERMWISE, "constant rule", "identity")  # beside other rules


@dataclass(frozen=True)
class DerivationLine:
    """A step of a derivation: `before` = `after` by a rule, where the condition holds.

    `starts` says that the line writes its left side; others continue the line before.
    """

    rule: str
    before: sp.Expr
    after: sp.Expr
    reason: tuple[Inline, ...] = ()
    condition: sp.Basic = sp.true
    starts: bool = False

    @property
    def text(self) -> str:
        """The line as text."""
        reason = "".join(part if isinstance(part, str) else signs_of(part) for part in inlines(self.reason))
        return f"{signs_of(self.before)} = {signs_of(self.after)}" + (f"    [{reason}]" if reason else "")


def derived(pending: Pending, detail: Detail, tidy: bool = True) -> list[DerivationLine]:
    """Return the lines from d/dx[f] to the derivative, which is tidied unless it is put into an equation."""
    lines: list[DerivationLine] = []
    line: sp.Expr = pending
    while waiting := _pending_in(line):
        steps: list[AppliedRule] = []
        if detail == "full":
            steps.append(applied(waiting[0]))
            after = line.xreplace({waiting[0]: steps[0].line})
        else:
            after = line.xreplace({part: _in_one_line(part, steps) for part in waiting})
        condition = sp.And(*(step.condition for step in steps))
        lines.append(DerivationLine(_rules(steps), line, after, _reason(steps), condition, not lines))
        if len(lines) > MOST_LINES:
            raise LimitError(f"a derivation of more than {MOST_LINES} lines", do='use detail="short"')
        line = after
    return lines + list(_tidied(line, tidy))


def _tidied(line: sp.Expr, tidy: bool) -> Iterator[DerivationLine]:
    in_order = evaluated(line, ordered=True)
    for name, expression in [("simplified", in_order), *(tidied(evaluated(line)) if tidy else ())]:
        after = in_book_order(expression)
        if sorted(signs_of(after)) != sorted(signs_of(line)):  # another order alone is no step
            yield DerivationLine(name, line, after, (name,))
            line = after


def tidied_lines(expression: sp.Expr) -> list[sp.Expr]:
    """Return the forms of an expression on the way to its tidied one."""
    forms = [in_book_order(form) for form in [expression, *(form for _, form in tidied(expression))]]
    return list({signs_of(form): form for form in forms}.values())


def _pending_in(line: sp.Expr) -> list[Pending]:
    """Return the distinct pending derivatives of a line, from left to right."""
    waiting: list[Pending] = []
    walk = sp.preorder_traversal(line)
    for part in walk:
        if isinstance(part, Pending):
            waiting.append(part)
            walk.skip()
    return list(dict.fromkeys(waiting))


def _in_one_line(pending: Pending, steps: list[AppliedRule]) -> sp.Expr:
    """Return a derivative as a person writes it in one line, and collect the rules.

    Sums and constant factors go term by term, and inner derivatives of a chain that are read off are written at once.
    """
    step = applied(pending)
    steps.append(step)
    parts = {part: part for part in _pending_in(step.line)}
    for part in parts:
        if step.rule in _TERMWISE:
            parts[part] = _in_one_line(part, steps)
        elif step.rule == "chain rule":
            inner: list[AppliedRule] = []
            slope = _in_one_line(part, inner)
            if all(not rule.line.has(Pending) or rule.rule in _TERMWISE for rule in inner):
                parts[part] = evaluated(slope, ordered=True)
    (first, *_) = [*parts.values(), None]
    if step.rule == "constant factor" and not first.has(Pending, WrittenProduct, WrittenSum):
        return step.parts[0] * first
    return step.line.xreplace(parts)


def _rules(steps: list[AppliedRule]) -> str:
    names = list(dict.fromkeys(step.rule for step in steps))
    return ", ".join([name for name in names if name not in _SILENT] or names[:1])


def _reason(steps: list[AppliedRule]) -> tuple[Inline, ...]:
    said = [step for step in steps if step.rule not in _SILENT]
    if sum(bool(step.parts) for step in said) > _REASONS or not said:
        return (_rules(steps),)
    reasons: dict[tuple[Inline, ...], None] = dict.fromkeys(step.reason for step in said)
    return tuple(part for k, reason in enumerate(reasons) for part in (("; ", *reason) if k else reason))

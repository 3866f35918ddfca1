"""Consequential marks: points for rule, result and form, and an error is counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symad.classroom.answers.answer_page import CheckedAnswer, Judged

PARTS = ("rule", "result", "form")
_NO_RULE = frozenset(["algebra", "rounded", "constant of integration", "unit of angle", "layout", "degree"])


def shares(checked: CheckedAnswer) -> Mapping[str, float]:
    """Return what part of the points for rule, result and form an answer earns, from 0 to 1.

    The rule is right if a line of the derivative is, or if no rule of differentiation is to blame; the result if it is
    right, or follows from a line with a wrong rule; the form if nothing is left to carry out. Of several entries it is
    the mean.
    """
    if checked.parts and not checked.right and all(checked.parts):  # only the layout is another one
        return {"rule": 1.0, "result": 1.0, "form": 0.0}
    if checked.parts:
        entries = [dict.fromkeys(PARTS, 0.0) if part is None else shares(part) for part in checked.parts]
        return {name: sum(entry[name] for entry in entries) / len(entries) for name in PARTS}
    if checked.right:
        return {"rule": 1.0, "result": 1.0, "form": float(checked.finished)}
    steps = [judged for judged in checked.steps if not (judged.step.restated or judged.step.defines)]
    first = next((k for k, judged in enumerate(steps) if not judged.right), len(steps))
    before = any(not judged.step.is_left for judged in steps[:first])
    kinds = {mistake.kind for mistake in checked.mistakes}
    rule = before or (bool(kinds) and kinds <= _NO_RULE) or any(judged.carried for judged in steps[first : first + 1])
    wrong, after = steps[first : first + 1], steps[first + 1 :]
    problem = checked.problem
    works_on = problem.count > 1 or problem.dependent_name or (problem.at and _is_general(wrong, checked))
    result = bool(after and works_on) and not before and all(judged.carried for judged in after)
    result = result or any(judged.carried for judged in wrong)
    done = bool(steps) and not (steps[-1].step.derives or steps[-1].step.named)
    return {"rule": float(rule), "result": float(result), "form": float(done and (rule or result))}


def _is_general(steps: Sequence[Judged], checked: CheckedAnswer) -> bool:
    """Whether a step has the variable, whose value is put in afterwards."""
    return any(symbol.name in judged.step.text for judged in steps for symbol in checked.problem.symbols)

"""Piecewise formulas as LaTeX writes them: the rows of a cases environment, each a value and its condition."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import sympy as sp

from symad.classroom.formulas.tokens import refuse

CONDITION_WORDS = r"\b(?:if|for|when|für|falls|wenn|pour|si)\b"  # before a condition, in English, German and French
OTHERWISE_WORDS = "(?:otherwise|else|sonst|sinon)"
_CASES = re.compile(  # an array behind an open brace is one, too
    r"((?:\\left\s*)?\\\{\s*)?\\begin\s*\{(?P<name>d?cases|(?(1)array))\}(?:\s*\{[lcr| ]*\})?(?P<rows>.*?)"
    r"\\end\s*\{(?P=name)\}(?:\s*\\right\s*\.)?",
    re.DOTALL,
)
_WORDS = re.compile(r"\\text\s*\{([^{}]*)\}|\\(?:quad|,|;)")
_SIGNS = {"<=": r"≤|\\leq?(?![a-z])", ">=": r"≥|\\geq?(?![a-z])", "<": r"\\lt(?![a-z])", ">": r"\\gt(?![a-z])"}
# all numbers, or all but single ones
_EVERYWHERE = re.compile(
    r"(?:ℝ|\\mathbb\s*\{?R\}?|\bR)\s*(?:$|\\setminus|\\\s*[{]|\\backslash)|\breal|\breell|\bréel|≠|\\neq?(?![a-z])"
)
_INTERVAL = re.compile(r"(\w+)\s*(?:∈|\\in(?![a-z])|\bin\b)\s*[(\[]\s*([^,;]+?)\s*[,;]\s*([^,;]+?)\s*[)\]]")
_COMPARISONS = {"<": sp.Lt, "<=": sp.Le, ">": sp.Gt, ">=": sp.Ge}


def as_cases(text: str) -> str:
    """Return a text in which every piecewise formula is an environment of cases."""
    return _CASES.sub(r"\\begin{cases}\g<rows>\\end{cases}", text)


def cases_of(text: str) -> list[tuple[str, str]] | None:
    r"""Return values and conditions of a piecewise formula; None for any other text.

    >>> cases_of(r"\begin{cases} 1 & x>0 \\ -1 & \text{if } x<0 \end{cases}")
    [('1', 'x>0'), ('-1', 'x<0')]
    """
    match = _CASES.search(text)
    if match is None or text[: match.start()].strip(" $") or text[match.end() :].strip(" .;,$"):
        return None
    rows = [row.split("&") for row in match["rows"].split("\\\\") if row.strip()]
    if any(len(row) != 2 for row in rows):
        return None
    return [(value.strip(" ,"), _without_words(condition)) for value, condition in rows]


def _without_words(condition: str) -> str:
    """Return a condition with plain signs and without words."""
    for sign, written in _SIGNS.items():
        condition = re.sub(written, sign, condition)
    condition = _WORDS.sub(lambda part: part[1] or "", condition)
    return re.sub(CONDITION_WORDS, "", condition).strip(" ,.")


def condition_of(text: str, read: Callable[[str], sp.Expr]) -> Any:
    """Return the condition beside a formula as inequalities; None for any other text.

    >>> [condition_of(text, sp.sympify) for text in ("for 0 < x ≤ 1", "x ∈ (0, ∞)", "x ∈ ℝ", "in the plane")]
    [(x <= 1) & (0 < x), x > 0, True, None]
    """
    condition = _without_words(text.strip(" ,;:"))
    if _EVERYWHERE.search(condition):
        return sp.true
    if (interval := _INTERVAL.search(condition)) is not None:
        bounds = [None if "∞" in side or "infty" in side else read(side) for side in interval.groups()[1:]]
        name = read(interval[1])
        sides = zip(bounds, (sp.Gt, sp.Lt), strict=True)
        return sp.And(*(compare(name, bound) for bound, compare in sides if bound is not None))
    condition = condition.strip("()")
    return _condition(text, condition, read) if re.search("[<>]", condition) else None


def piecewise(text: str, cases: list[tuple[str, str]], read: Callable[[str], sp.Expr]) -> sp.Expr:
    """Return a piecewise formula; a condition compares formulas, or is a word such as "otherwise"."""
    return sp.Piecewise(*((read(value), _condition(text, condition, read)) for value, condition in cases))


def _condition(text: str, condition: str, read: Callable[[str], sp.Expr]) -> Any:
    if re.fullmatch(OTHERWISE_WORDS, condition):
        return sp.true
    if condition.count("=") == 1 and not re.search("[<>]", condition):
        return sp.Eq(*map(read, condition.split("=")))
    sides, signs = re.split("[<>]=?", condition), re.findall("[<>]=?", condition)
    if not 1 <= len(signs) <= 2:
        refuse(text, 0, f"the case {condition!r}", "write x > 0, 0 < x < 1 or otherwise")
    values = list(map(read, sides))
    return reduce(sp.And, (_COMPARISONS[sign](*pair) for sign, *pair in zip(signs, values, values[1:], strict=False)))

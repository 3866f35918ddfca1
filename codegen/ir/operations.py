"""One table of primitive operations: the kind of a result, and how LLVM and C write it; comparisons also on numbers.

All writers of text read it: of rows (`codegen.emission.emit`, also in loops and for a GPU; `codegen.machine.exports`)
and of formulas on lanes. In a text {0}, {1}... are operands; {n}, {w}, {t} are the types of numbers, words (the bits of
numbers) and truth values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from codegen.ir.machine_rows import OPPOSITES, Row


class Operation(NamedTuple):
    """An operation in LLVM and in C, "" where a writer has more than a text for it, and the kind of its result."""

    llvm: str
    c: str
    result: Literal["number", "truth", "word", "wide"] = "number"


# Comparisons of floats, columns and rationals, by their names in LLVM, and how C writes them.
HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "oeq": operator.eq, "olt": operator.lt, "ole": operator.le, "ogt": operator.gt, "oge": operator.ge,
    "une": operator.ne, "ord": lambda a, b: (a == a) & (b == b),
}  # fmt: skip
_SIGNS = {"oeq": "{0} == {1}", "olt": "{0} < {1}", "ole": "{0} <= {1}", "ogt": "{0} > {1}", "oge": "{0} >= {1}",
          "une": "{0} != {1}", "one": "{0} < {1} || {0} > {1}", "ord": "!isunordered({0}, {1})",
          "uno": "isunordered({0}, {1})"}  # fmt: skip
_OF_WORDS = {"iadd": "+", "imul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>"}
OPERATIONS = {
    **{
        name: Operation(f"f{name} {{n}} {{0}},{{1}}", f"{{0}} {sign} {{1}}")
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"))
    },
    "neg": Operation("fneg {n} {0}", "-{0}"),
    "select": Operation("select {t} {0},{n} {1},{n} {2}", "{0} ? {1} : {2}"),
    **{
        name: Operation(f"fcmp {name} {{n}} {{0}},{{1}}", _SIGNS.get(name) or f"!({_SIGNS[opposite]})", "truth")
        for name, opposite in OPPOSITES.items()
    },
    "not": Operation("xor {t} {0},{true}", "!{0}", "truth"),
    **{  # gcc 12 takes hours for long chains of & and |
        f"truths {name}": Operation(f"{name} {{t}} {{0}},{{1}}", text, "truth")
        for name, text in (("and", "{0} ? {1} : 0"), ("or", "{0} ? 1 : {1}"), ("xor", "{0} ^ {1}"))
    },
    "number": Operation("uitofp {t} {0} to {n}", "({n}){0}"),
    "of_word": Operation("sitofp {w} {0} to {n}", "{0} >> 63 ? -({n})(0 - {0}) : ({n}){0}"),
    "bits": Operation("bitcast {n} {0} to {w}", "", "word"),
    "of_bits": Operation("bitcast {w} {0} to {n}", ""),
    **{
        name: Operation(f"{name.removeprefix('i')} {{w}} {{0}},{{1}}", f"{{0}} {sign} {{1}}", "word")
        for name, sign in _OF_WORDS.items()
    },
    "funnel": Operation("", "{2} ? ({0} << {2}) | ({1} >> (64 - {2})) : {0}", "word"),
    "equal": Operation("icmp eq {w} {0},{1}", "{0} == {1}", "truth"),
    "above": Operation("icmp ugt {w} {0},{1}", "{0} > {1}", "truth"),
    "widen": Operation("zext {w} {0} to i128", "", "wide"),
    "narrow": Operation("trunc i128 {0} to {w}", "", "word"),
    "mul_wide": Operation("mul i128 {0},{1}", "", "wide"),
    "add_wide": Operation("add i128 {0},{1}", "", "wide"),
    "upper": Operation("lshr i128 {0},64", "", "wide"),
}
# Functions that are exact, or rounded once: LLVM's intrinsics are functions of C.
EXACT = {"abs": "fabs"} | {name: name for name in ("fma", "copysign", "floor", "ceil", "trunc", "rint", "sqrt")}
# Fused operations: which operands get the other sign, of a product of the first two and a third.
NEGATED: dict[str, tuple[int, ...]] = {"fma": (), "fms": (2,), "fnma": (0,), "fnms": (0, 2)}


def in_table(row: Row) -> tuple[str, tuple[int, ...]]:
    """Return the operation of a row and its operands.

    >>> in_table(("compare", "olt", 3, 4)), in_table(("logic", "or", 5, 6)), in_table(("neg", 0))
    (('olt', (3, 4)), ('truths or', (5, 6)), ('neg', (0,)))
    """
    if row[0] in ("compare", "logic", "call"):
        return f"truths {row[1]}" if row[0] == "logic" else row[1], row[2:]
    return row[0], row[1:]

"""C99 source of lane functions, one static function each, with the bits of kernels.

The formulas are those of `codegen.functions.lane_table`, written for one number. Words are unsigned, and a product of
two words is a pair of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from codegen.functions.lane_formats import DOUBLE, SINGLE
from codegen.functions.lane_table import FORMULAS
from codegen.functions.lane_values import LaneOperationWriter, LaneValue
from codegen.ir.operations import EXACT, OPERATIONS

BITS = """
static inline {word} {prefix}_bits_{size}_({scalar} x)
{{
    {word} w;
    memcpy(&w, &x, sizeof w);
    return w;
}}
"""
OF_BITS = """
static inline {scalar} {prefix}_of_bits_{size}_({word} w)
{{
    {scalar} x;
    memcpy(&x, &w, sizeof x);
    return x;
}}
"""
UPPER = """
/* the upper word of a product */
static inline uint64_t {prefix}_upper_(uint64_t a, uint64_t b)
{{
    uint64_t low = (a & 0xffffffff) * (b & 0xffffffff), first = (a >> 32) * (b & 0xffffffff) + (low >> 32);
    uint64_t second = (a & 0xffffffff) * (b >> 32) + (first & 0xffffffff);
    return (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
}}
"""
# The sign of -fma(a, b, c), with copysign: gcc joins a plain minus to one instruction, whose zero has the other sign
OTHER_SIGN = "signbit({0}) ? ({1})1 : ({1})-1"
NAME = re.compile(r"\bv\d+\b")


class SourceWriter(LaneOperationWriter):
    """Writes C statements; `helpers` are the functions and tables that they need."""

    prefix: str
    scalar: str

    def __init__(self, prefix: str, scalar: str, operands: int, number: Callable[[float, str], str]) -> None:
        self.prefix, self.scalar, self._number = prefix, scalar, number
        self.format = SINGLE if scalar == "float" else DOUBLE
        self.word_type: str = f"uint{self.format.bits}_t"
        self.operands: list[LaneValue] = [LaneValue(self, f"x{k}") for k in range(operands)]
        self.lines: list[str] = []
        self.helpers: dict[str, str] = {}
        self.pairs: dict[str, tuple[str, str]] = {}  # of words: upper and lower
        self.fused: set[str] = set()  # results of multiply-adds

    def number(self, value: float) -> str:
        return self._number(value, self.scalar)

    def word(self, value: int) -> str:
        return f"UINT{self.format.bits}_C({value % 2**self.format.bits:#x})"

    def put(self, operation: str, operands: Sequence[str]) -> str:
        if operation == "neg" and operands[0] in self.fused:
            operation, operands = "copysign", [operands[0], OTHER_SIGN.format(operands[0], self.scalar)]
        if operation in EXACT:
            name = EXACT[operation] + "f" * (self.scalar == "float")
            result = self.write(self.scalar, f"{name}({', '.join(operands)})")
            self.fused |= {result} if operation == "fma" else set()
            return result
        _, text, kind = OPERATIONS[operation]
        if operation in ("bits", "of_bits"):
            name = self.helper(f"{operation}_{self.format.bits}", BITS if operation == "bits" else OF_BITS)
            text = f"{name}({{0}})"
        if text:
            types = {"number": self.scalar, "truth": "int", "word": self.word_type}
            return self.write(types[kind], text.format(*operands, n=self.scalar))
        return self.wide(operation, operands)

    def wide(self, operation: str, operands: Sequence[str]) -> str:
        """Write an operation on pairs of words."""
        first, *others = operands
        if operation == "narrow":
            return self.pairs[first][1]
        upper, lower = self.pairs.get(first, ("0", first))
        if operation == "upper":
            upper, lower = "0", upper
        elif operation == "mul_wide":
            other = self.pairs[others[0]][1]
            multiplied = self.helper("upper", UPPER)
            upper = self.write("uint64_t", f"{multiplied}({lower}, {other})")
            lower = self.write("uint64_t", f"{lower} * {other}")
        elif operation == "add_wide":
            total = self.write("uint64_t", f"{lower} + {self.pairs[others[0]][1]}")
            upper = self.write("uint64_t", f"{upper} + {self.pairs[others[0]][0]} + ({total} < {lower})")
            lower = total
        name = f"pair {len(self.pairs)}"
        self.pairs[name] = upper, lower
        return name

    def entry(self, name: str, table: Sequence[int], place: str) -> str:
        stored = f"{self.prefix}_{name.rpartition('.')[2]}_"
        words = ",\n".join(f"    {self.word(entry)}" for entry in table)
        self.helpers[stored] = f"\nstatic const uint64_t {stored}[{len(table)}] = {{\n{words},\n}};\n"
        return self.write("uint64_t", f"{stored}[{place}]")

    def helper(self, name: str, text: str) -> str:
        """Return the name of a helper, which is written once."""
        full_name = f"{self.prefix}_{name}_"
        size, word = self.format.bits, self.word_type
        self.helpers[full_name] = text.format(prefix=self.prefix, scalar=self.scalar, word=word, size=size)
        return full_name

    def write(self, kind: str, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"    const {kind} {name} = {text};")
        return name

    def function(self, name: str, end: Sequence[str]) -> dict[str, str]:
        """Return the needed texts, and then a function of the lines written so far and this end."""
        parameters = ", ".join(f"{self.scalar} {operand.text}" for operand in self.operands)
        lines = [f"\nstatic {self.scalar} {name}({parameters})", "{", *self.used(end), "}", ""]
        return {**self.helpers, name: "\n".join(lines)}

    def used(self, end: Sequence[str]) -> list[str]:
        """The statements whose values are used: of sine and cosine one may not be, and compilers warn."""
        kept, needed = list(end), {name for line in end for name in NAME.findall(line)}
        for line in reversed(self.lines):
            name, *read = NAME.findall(line)
            if name in needed:
                kept.insert(0, line)
                needed.update(read)
        return kept


def own_function(
    function: str, prefix: str, scalar: str, number: Callable[[float, str], str]
) -> tuple[str, dict[str, str]]:
    """Return the name of a function that has a formula, and all texts that it needs, in order.

    `number` writes a constant of a type.

    >>> name, texts = own_function("log", "f", "double", lambda value, scalar: value.hex())
    >>> name, list(texts)
    ('f_own_log_', ['f_bits_64_', 'f_of_bits_64_', 'f_hard_log_', 'f_own_log_'])
    """
    formula, plain = FORMULAS[function], function.removeprefix("llvm.").removesuffix(".f64")
    name, texts = f"{prefix}_own_{plain}_", dict[str, str]()
    writer = SourceWriter(prefix, scalar, formula.operands, number)
    end = [f"    return {formula.formula(*writer.operands).text};"]
    if formula.hard is not None:
        kind = "double" if formula.hard.alone else scalar
        hard = SourceWriter(prefix, kind, formula.operands, number)
        value = formula.hard.formula(*hard.operands).text
        texts |= hard.function(f"{prefix}_hard_{plain}_", [f"    return {value};"])
        arguments = ", ".join(operand.text for operand in writer.operands)
        asked = f"({scalar}){prefix}_hard_{plain}_({arguments})"
        end.insert(0, f"    if ({formula.hard.test(*writer.operands).text}) return {asked};")
    return name, {**texts, **writer.function(name, end)}

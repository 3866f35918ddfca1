"""Label boxes: the operation, its constant operands, counts and short names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import sympy as sp

from codegen.ir.program import Head
from symad.classroom.drawing.svg import shortened
from symad.display.mathematics import text_of
from symad.display.notation import LOWERED, RAISED

PLACE = "□"  # an operand with its own box
LONGEST = 22  # letters of a label

_SIGNS: dict[Head, str] = {
    sp.Add: "+", sp.Mul: "×", sp.And: "∧", sp.Or: "∨", sp.Not: "¬", sp.Max: "max", sp.Min: "min", sp.Eq: "=",
    sp.Ne: "≠", sp.StrictLessThan: "<", sp.LessThan: "≤", sp.StrictGreaterThan: ">", sp.GreaterThan: "≥",
    sp.Piecewise: "cases", sp.ITE: "cases", sp.Abs: "|□|",
}  # fmt: skip
_NUMBERS: dict[sp.Basic, str] = {sp.pi: "π", sp.E: "e", sp.oo: "∞", -sp.oo: "−∞", sp.true: "true", sp.false: "false"}
_POWERS = {"2": "□²", "3": "□³", "-1": "1/□", "-2": "1/□²", "1/2": "√□", "-1/2": "1/√□"}


def operation_label(head: Head, constants: Sequence[sp.Basic | None]) -> str:
    """Return the text on the box of an operation. `constants` has None for operands that are no constants.

    >>> [operation_label(sp.Mul, c) for c in ([None, None], [sp.Integer(2), None], [sp.Integer(-1), None])]
    ['×', '2 ×', '−']
    >>> operation_label(sp.Pow, [None, sp.Integer(2)]), operation_label(sp.besselj, [sp.Integer(0), None])
    ('□²', 'besselj(0, □)')
    """
    texts = [None if constant is None else number_label(constant) for constant in constants]
    known = [text for text in texts if text is not None]
    if head is sp.Pow and known:
        return _power(texts)
    if head is sp.Mul and known == ["−1"] and len(texts) == 2:
        return "−"
    sign = _SIGNS.get(head)
    if head is sp.Mul and known:
        return shortened(f"{' '.join(known)} ×", LONGEST)
    if head is sp.Add and known:
        return shortened(" ".join(f"− {text[1:]}" if text.startswith("−") else f"+ {text}" for text in known), LONGEST)
    if sign is not None and (not known or sign == "cases"):
        return sign
    if sign is not None and len(texts) == 2 and sign not in ("max", "min"):
        return shortened(f"{texts[0] or PLACE} {sign} {texts[1] or PLACE}", LONGEST)
    name = sign or head.__name__
    return shortened(f"{name}({', '.join(text or PLACE for text in texts)})" if known else name, LONGEST)


def number_label(constant: sp.Basic) -> str:
    """Return a constant in few letters. The tooltip has its exact value.

    >>> [number_label(value) for value in (sp.Integer(-2), sp.Rational(1, 3), sp.Float(0.123456789), sp.pi)]
    ['−2', '1/3', '0.12346', 'π']
    """
    if constant in _NUMBERS:
        return _NUMBERS[constant]
    if isinstance(constant, sp.Rational) and max(abs(constant.p), constant.q) >= 10**12:
        size = count_label(abs(constant.p)) + (f"/({count_label(constant.q)})" if constant.q > 1 else "")
        return ("−" if constant.p < 0 else "") + size
    text = f"{float(constant):.5g}" if isinstance(constant, sp.Float) and abs(constant) < 1e300 else text_of(constant)
    return shortened(text.replace("-", "−"), 12)


def count_label(count: int) -> str:
    """Return a count for readers: digits in groups of three, a power of ten if it is huge.

    >>> count_label(1234567), count_label(3**1000)
    ('1 234 567', '≈ 1.32·10⁴⁷⁷')
    """
    if count < 10**9:
        return f"{count:,}".replace(",", " ")
    exponent = math.floor(math.log10(count))
    leading = count / 10**exponent if exponent < 300 else 10 ** (math.log10(count) - exponent)
    return f"≈ {leading:.2f}·10{str(exponent).translate(RAISED)}"


def symbol_label(name: str) -> str:
    """Return the name of an input, with its index as a subscript.

    >>> symbol_label("x_12"), symbol_label("w_0_1"), symbol_label("speed")
    ('x₁₂', 'w₀,₁', 'speed')
    """
    stem, *indices = name.split("_")
    if stem and indices and all(index.isdecimal() and index.isascii() for index in indices):
        name = stem + ",".join(indices).translate(LOWERED)
    return shortened(name, LONGEST)


def _power(texts: Sequence[str | None]) -> str:
    base, exponent = texts
    if base is not None:
        return f"{base}^{exponent or PLACE}"
    plain = str(exponent).replace("−", "-")
    return _POWERS.get(plain, f"□^({exponent})" if "/" in plain else f"□^{exponent}")

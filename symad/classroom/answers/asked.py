"""What a question asks of a formula: which derivative, along which direction, in which layout."""

from __future__ import annotations

from typing import Any, Literal, get_args

import sympy as sp

from codegen.records import dataclass
from symad.classroom.answers.answer_problem import DIGITS, MOST_ORDER, Reveal
from symad.classroom.answers.vector_texts import joined, parts_of, vector_parts
from symad.classroom.formulas.formula_names import plain
from symad.classroom.formulas.read import named_left, read_formula
from symad.tracing.calling.user_place import refusal

Layout = Literal["numerator", "denominator", "either"]


@dataclass(frozen=True)
class Asked:
    """Which derivative is asked for.

    `order` is a number, "n" for a formula in n, or the names of variables for a mixed partial derivative. `along` is a
    direction, taken as it is written, and `taylor` asks for the polynomial about the point. `layout` says what becomes
    of a transposed answer: None asks back.
    """

    order: Any = 1
    along: Any = None
    taylor: bool = False
    layout: Layout | None = None
    digits: int = DIGITS
    reveal: Reveal = "always"

    def __post_init__(self) -> None:
        if self.layout is not None and self.layout not in get_args(Layout):
            raise refusal(f"layout={self.layout!r}", do=f"use one of {', '.join(map(repr, get_args(Layout)))}")
        if not isinstance(self.taylor, bool):
            raise refusal(f"taylor={self.taylor!r}", do="give True or False")
        if self.taylor and (self.along is not None or not isinstance(self.order, int)):
            raise refusal("a Taylor polynomial with along or a mixed order", do="give its degree as order")
        if self.along is not None and self.order != 1:
            raise refusal(f"order={self.order!r} along a direction", do="ask for the first derivative")
        object.__setattr__(self, "order", tuple(self.order) if isinstance(self.order, list) else self.order)

    def places(self, symbols: tuple[sp.Symbol, ...]) -> tuple[int, ...]:
        """Return the variables of a mixed partial derivative by their numbers, sorted."""
        names = [plain(symbol.name) for symbol in symbols]
        asked = [plain(str(name)) for name in self.order]
        if not 1 <= len(asked) <= MOST_ORDER or not set(asked) <= set(names):
            do = f"name 1 to {MOST_ORDER} of the variables {', '.join(names)}, such as ({names[0]!r}, {names[-1]!r})"
            raise refusal(f"order={self.order!r}", do=do)
        return tuple(sorted(map(names.index, asked)))

    def direction(self, count: int) -> list[sp.Expr]:
        """Return the entries of the direction; none without one."""
        if self.along is None:
            return []
        entries = vector_parts(self.along, count) if isinstance(self.along, str) else self.along
        parts = [read_formula(part) if isinstance(part, str) else sp.sympify(part) for part in entries or ()]
        if len(parts) != count or all(part == 0 for part in parts):
            raise refusal(f"along={self.along!r}", do=f"give {count} numbers, not all 0, such as {(3, 4, 0)[:count]}")
        return parts


def components_of(f: Any) -> list[Any]:
    """Return the components of a vector function, and a single formula as the only one.

    >>> components_of("r(t) = (cos t, sin t)"), components_of(["x y", "x + y"]), components_of("x^2")
    (['cos t', 'sin t'], ['x y', 'x + y'], ['x^2'])
    """
    if isinstance(f, sp.MatrixBase | sp.Tuple | list | tuple):
        if not (parts := list(f)):
            raise refusal("a vector function without components", do='give formulas, such as ["x y", "x + y"]')
        return parts
    if not isinstance(f, str):
        return [f]
    text = joined(f)
    left = named_left(text)
    text = text[left.end() if left else 0 :].strip(" $.")
    parts = parts_of(text[1:-1], ",;") if text[:1] in "([⟨" and text[-1:] in ")]⟩" else []
    is_whole = len(parts_of(text, ",;")) == 1 and all(part.count("(") == part.count(")") for part in parts)
    return [part.strip() for part in parts] if is_whole and len(parts) > 1 else [f]

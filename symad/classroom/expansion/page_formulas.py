"""Formulas that only expansion pages have: f''(x)[v, w], and functions of several names."""

from __future__ import annotations

from typing import Any

import sympy as sp


class Along(sp.Expr):  # type: ignore[misc]
    """A derivative along directions, f''(x)[v, w]: a name, an order, the point, the directions."""

    def _sympystr(self, printer: Any) -> str:
        return self._joined(printer, "({})", "[{}]", "^({})")

    def _latex(self, printer: Any) -> str:
        return self._joined(printer, r"\left({}\right)", r"\left[{}\right]", r"^{{({})}}")

    def _joined(self, printer: Any, point: str, directions: str, high: str) -> str:
        name, order, at, *along = self.args
        marks = "'" * int(order) if order < 4 else high.format(order)
        listed = directions.format(", ".join(map(printer._print, along))) if along else ""
        return f"{printer._print(name)}{marks}{point.format(printer._print(at))}{listed}"


class Listed(sp.Expr):  # type: ignore[misc]
    """The arguments of a function of several names: x, y."""

    def _sympystr(self, printer: Any) -> str:
        return ", ".join(map(printer._print, self.args))

    _latex = _sympystr

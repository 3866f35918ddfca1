"""Values of the formulas in the prose of lessons, by arithmetic of their own: the LaTeX is read here, not by symad.

Epsilons are nilpotent matrices. What carries a d, a dot or a bar is a derivative by a complex step, taken of programs
that are written down here; so each equality compares two computations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

STEP = 1e-30
_RULES = [
    (r"\\(?:,|;|!)", " "), (r"\\tfrac12", "(1/2)"), (r"\\cdot|\\dots", " "), (r"\{\\mathsf T\}", "T"),
    (r"\\langle(.*?),(.*?)\\rangle", r"inner((\1),(\2))"), (r"\\lVert(.*?)\\rVert\^2", r"square(\1)"),
    (r"\^\{-T\}", "^{-1}^T"), (r"\\log\s*\\det\s*([A-Z])", r"logdet(\1)"), (r"\\mathrm\{tr\}", "tr"),
    (r"\\mathrm\{d\}\s*logdet\(A\)", " dlogdet "), (r"\\mathrm\{d\}\(A\^\{-1\}\)", " dinvA "),
    (r"\\mathrm\{d\}\(AX\)", " dAX "), (r"\\mathrm\{d\}\(a\^\{-1\}\)", " dinva "),
    (r"\\mathrm\{d\}\s*([A-Za-z])", r" d\1 "), (r"\\(dot|bar)\s*([A-Za-z])", r" \1\2 "), (r"e_\{k\+1\}'", " ek1p "),
    (r"e_k'", " ekp "), (r"e_\{k\+1\}", " ek1 "), (r"e_k", " ek "), (r"\\varepsilon_?([12])?", r" eps\1 "),
    (r"([A-Za-z])''", r" \1pp "), (r"([A-Za-z])'", r" \1p "), (r"\\phi_([xy])", r" phi\1 "), (r"g_([xy])", r" g\1 "),
    (r"\\(sin|cos|tanh|sqrt|Phi|phi)", r" \1 "), (r"\^T", "**T"), (r"\^\{-1\}", "**inv"),
    (r"\^\{([^{}]*)\}", r"**(\1)"),
    (r"\^(\w)", r"**\1"), (r"[{}]", lambda brace: "(" if brace[0] == "{" else ")"),
]  # fmt: skip
_TOKEN = re.compile(r"\s*(\*\*|\d+|[A-Za-z]\w*|[-+*/(),])")


class Formula:
    """One side of an equality, read from left to right with the usual precedence, as values of the names."""

    def __init__(self, latex: str, values: Mapping[str, Any]) -> None:
        for pattern, written in _RULES:
            latex = re.sub(pattern, written, latex)
        self.values, self.place = values, 0
        self.tokens = [part for token in _TOKEN.findall(latex) for part in self._parted(token)]

    def _parted(self, token: str) -> list[str]:
        """Return a word as it is known, or as its letters: ac is a times c."""
        return [token] if token in ("T", "inv", *self.values) or not token[0].isalpha() else list(token)

    def value(self) -> Any:
        """Return the value of the whole side."""
        found = self._sum()
        assert self.place == len(self.tokens), (self.tokens, self.place)
        return found

    def _take(self, *texts: str) -> str:
        if self.place < len(self.tokens) and self.tokens[self.place] in texts:
            self.place += 1
            return self.tokens[self.place - 1]
        return ""

    def _sum(self) -> Any:
        found = -self._product() if self._take("-") else self._product()
        while sign := self._take("+", "-"):
            if self.place == len(self.tokens):  # + ..., which falls away
                break
            other = self._product()
            found = found + other if sign == "+" else found - other
        return found

    def _product(self) -> Any:
        found = self._power()
        while self.place < len(self.tokens) and self.tokens[self.place] not in ("+", "-", ")", ","):
            if self._take("/"):
                found = times(found, inverse(self._power()))
            else:
                self._take("*")
                found = times(found, self._power())
        return found

    def _power(self) -> Any:
        found = self._atom()
        while self._take("**"):
            if self._take("T"):
                found = found.T
            elif self._take("inv"):
                found = inverse(found)
            else:
                exponent = int(self._atom().real.flat[0] if self.values.get("number") else self._atom())
                found = np.linalg.matrix_power(found, exponent) if np.ndim(found) == 2 else found**exponent
        return found

    def _atom(self) -> Any:
        token = self.tokens[self.place]
        self.place += 1
        if token == "(":
            found = self._sum()
            assert self._take(")"), self.tokens
            return found
        if token.isdigit():
            return self.values.get("number", float)(int(token))
        found = self.values[token]
        if not callable(found):
            return found
        if not self._take("("):
            return found(self._power())
        arguments = [self._sum()]
        while self._take(","):
            arguments.append(self._sum())
        assert self._take(")"), self.tokens
        return found(*arguments)


def inverse(value: Any) -> Any:
    """Return the inverse of a matrix, or of a number."""
    return np.linalg.inv(value) if np.ndim(value) == 2 else 1 / value


def times(left: Any, right: Any) -> Any:
    """Return a product, of matrices where both are."""
    return left @ right if np.ndim(left) and np.ndim(right) else left * right


def differs(latex: str, values: Mapping[str, Any]) -> float:
    """Return by how much the sides of an equality differ at most."""
    sides = [Formula(side, values).value() for side in latex.split("=")]
    return max(float(np.max(np.abs(np.asarray(one) - np.asarray(other)))) for one, other in pairwise(sides))


def along(program: Callable[..., Any], at: list[Any], moved: list[Any]) -> Any:
    """Return the derivative of a program along a direction, by a complex step."""
    return np.imag(program(*(value + 1j * STEP * part for value, part in zip(at, moved, strict=True)))) / STEP


def _scalar(value: float) -> Any:
    return value * np.eye(4)


_draw = np.random.default_rng(7)
_nilpotent = np.array([[0.0, 1.0], [0.0, 0.0]])
DUAL: dict[str, Any] = {
    "number": _scalar, "eps": np.kron(_nilpotent, np.eye(2)), "eps1": np.kron(_nilpotent, np.eye(2)),
    "eps2": np.kron(np.eye(2), _nilpotent), **{name: _scalar(_draw.uniform(1, 2)) for name in "abcdxv"},
    "f": lambda at: at @ at @ at + at, "fp": lambda at: 3 * at @ at + np.eye(4), "fpp": lambda at: 6 * at,
}  # fmt: skip
DUAL["h"] = DUAL["v"] @ DUAL["eps"]
CONFUSED = DUAL | {"x": np.eye(4) + DUAL["eps"], "y": np.eye(4) + DUAL["eps"]}


def reverse() -> dict[str, Any]:
    """Return values of a = sin x, b = a x, with tangents by complex steps and cotangents by transposing those."""
    x, dotx, barb = 1.3, 0.7, 1.9
    a, dota = np.sin(x), along(np.sin, [x], [dotx])
    dotb = along(lambda x: np.sin(x) * x, [x], [dotx])
    by_a = along(lambda a: a * x, [a], [1.0])
    barx = barb * along(lambda x: np.sin(x) * x, [x], [1.0])
    names = {"x": x, "a": a, "dotx": dotx, "dota": dota, "dotb": dotb, "barb": barb, "bara": barb * by_a, "barx": barx}
    return names | {"sin": np.sin, "cos": np.cos}


def storeys() -> dict[str, Any]:
    """Return values of two storeys of e <- sin(e) e."""
    ek, ekp = 0.8, 1.7
    return {"ek": ek, "ekp": ekp, "ek1": np.sin(ek) * ek, "ek1p": along(lambda e: np.sin(e) * e, [ek], [ekp]),
            "sin": np.sin, "cos": np.cos}  # fmt: skip


def implicit(residual: Callable[[Any, Any], Any], x: float, y: float) -> dict[str, Any]:
    """Return values at a point of a curve, its slope by differences of roots that Newton's method finds."""

    def root(x: float, y: float) -> float:
        for _ in range(60):
            y -= residual(x, y) / along(lambda y: residual(x, y), [y], [1.0])
        return y

    y = root(x, y)
    slope = (root(x + 1e-5, y) - root(x - 1e-5, y)) / 2e-5
    gx, gy = (along(residual, [x, y], direction) for direction in ([1.0, 0.0], [0.0, 1.0]))
    return {"x": x, "y": y, "yp": slope, "gx": gx, "gy": gy, "phix": -gx, "phiy": 1 - gy,
            "sqrt": np.sqrt, "cos": np.cos, "phi": lambda x, y: y - residual(x, y), "g": residual(x, y)}  # fmt: skip


def pulled(program: Callable[[Any], Any], at: Any, cotangent: Any) -> Any:
    """Return the cotangent of an argument, entry by entry."""
    units = np.eye(at.size).reshape(at.size, *at.shape)
    entries = [np.sum(cotangent * along(program, [at], [unit])) for unit in units]
    return np.array(entries).reshape(at.shape)


NAMES = ["X", "Y", "U", "V", "dX", "barY", "b", "db", "barx"]


def matrices() -> dict[str, Any]:
    """Return random matrices, their differentials, and the cotangents of a product and of a network's layer."""
    n = 3
    value: dict[str, Any] = {name: _draw.normal(size=(n, n)) for name in NAMES}
    L, dL = (np.tril(_draw.normal(size=(n, n))) + 3 * np.eye(n) for _ in range(2))
    A = L @ L.T
    dA = along(lambda m: m @ m.T, [L], [dL])
    H = np.tanh(value["X"] @ value["U"])
    barZ = pulled(lambda m: (m - value["Y"]) ** 2, H @ value["V"], np.ones((n, n)))
    value |= {"A": A, "dA": dA, "L": L, "dL": dL, "H": H, "I": np.eye(n), "tr": np.trace, "barZ": barZ,
              "inner": lambda one, other: np.sum(one * other),
              "Phi": lambda m: np.tril(m) - np.diag(np.diag(m)) / 2,
              "barX": pulled(lambda m: A @ m, value["X"], value["barY"]),
              "barA": pulled(lambda m: m @ value["X"], A, value["barY"]),
              "barV": pulled(lambda m: H @ m, value["V"], barZ), "barH": pulled(lambda m: m @ value["V"], H, barZ),
              "S": np.linalg.inv(L) @ dA @ np.linalg.inv(L).T}  # fmt: skip
    value["dAX"] = along(lambda m, n: m @ n, [A, value["X"]], [dA, value["dX"]])
    value["dinvA"] = along(np.linalg.inv, [A], [dA])
    value["dlogdet"] = along(lambda m: np.log(np.linalg.det(m)), [A], [dA])
    return value


def solved() -> dict[str, Any]:
    """Return a linear system with its tangents and cotangents."""
    value = matrices()
    A, b, barx = value["A"], value["b"][:, :1], value["barx"][:, :1]
    dx = along(np.linalg.solve, [A, b], [value["dA"], value["db"][:, :1]])
    return value | {"x": np.linalg.solve(A, b), "b": b, "db": value["db"][:, :1], "dx": dx, "barx": barx,
                    "barb": pulled(lambda b: np.linalg.solve(A, b), b, barx),
                    "barA": pulled(lambda m: np.linalg.solve(m, b), A, barx)}  # fmt: skip

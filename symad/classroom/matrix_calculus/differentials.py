"""Derivatives of formulas of matrices by differentials: d(X⁻¹) = -X⁻¹ dX X⁻¹, then the gradient is read off.

Every line is checked at random matrices by `matrix_values`, which knows no rule of differentials.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import sympy as sp
from mpmath import mp

from symad.classroom.matrix_calculus.matrix_formulas import NUMBER, ONES, MatrixFormula, groups, repeated
from symad.classroom.matrix_calculus.matrix_values import DIGITS, PLANS, are_equal, change, random_values, value_of
from symad.display.document import Formula
from symad.display.notation import Norm, Nothing, NumberOf, Trace, Transposed
from symad.errors import InvariantError, RuleError
from symad.tracing.calling.user_place import refusal

_I, _DIAG = sp.Symbol("I", commutative=False), sp.Function("diag")
Differential = Callable[[Any], Any]
_RULES: dict[str, tuple[str, Callable[[Differential, Any, Any], Any]]] = {  # of part(u), by its name: reason, d part
    "Trace": ("the trace is linear", lambda d, part, u: Trace(d(u))),
    "Determinant": ("d det X = det X tr(X⁻¹ dX)", lambda d, part, u: part * Trace(u**-1 * d(u))),
    "Total": ("", lambda d, part, u: Transposed(ONES) * d(u)),
    "inverse": ("d(X⁻¹) = -X⁻¹ dX X⁻¹", lambda d, part, u: -part * d(u) * part),
    "log Determinant": ("d log det X = tr(X⁻¹ dX)", lambda d, part, u: Trace(u.args[0] ** -1 * d(u.args[0]))),
    "log softmax": (
        "d log s = du - 1 sᵀ du with s = softmax(u), 1: a column of ones",
        lambda d, part, u: d(u.args[0]) - ONES * Transposed(u) * d(u.args[0]),
    ),
    "softmax": (
        "d s = (diag(s) - s sᵀ) du with s = softmax(u)",
        lambda d, part, u: (_DIAG(part) - part * Transposed(part)) * d(u),
    ),
    "exp": ("in each entry", lambda d, part, u: _DIAG(part) * d(u)),
    "log": ("in each entry", lambda d, part, u: _DIAG(u) ** -1 * d(u)),
    "sin": ("in each entry", lambda d, part, u: _DIAG(sp.cos(u)) * d(u)),
    "cos": ("in each entry", lambda d, part, u: -_DIAG(sp.sin(u)) * d(u)),
}


class Differentials(MatrixFormula):
    """The derivation of a derivative by differentials, its result, and what it is called: ∇f, J or df."""

    def __init__(self, text: str, x: str) -> None:
        super().__init__(text, x)
        self.reasons = dict[str, None]()
        self.df, self.name = (sp.Symbol("df", commutative=False) for _ in "fd")
        self.is_column = self.shapes.of(self.x, "")[1] == "1"
        if not self.f.has(self.x):
            raise refusal(f"the derivative in {x} of a formula without it", do=f"write a formula of {x}")
        self.lines: tuple[Formula, ...] = tuple(self._lines())
        self.result = self.lines[-1].right
        self._check()

    @property
    def notes(self) -> list[str]:
        """The shapes of the letters, the conditions and the layout."""
        sizes = sorted({size for name in self.names for size in self.shapes.letter(name)} - {"1"})
        short = dict(zip(sizes, "mnpqrk", strict=False)) | {"1": "1"}
        said = [f"{name}: {' × '.join(short.get(size, size) for size in self.shapes.letter(name))}"
                + (f", {self.said[name]}" if name in self.said else "")
                for name in sorted(self.names - {self.dx.name, "I"}) if self.shapes.letter(name) != NUMBER]  # fmt: skip
        if self.name == self.df:
            layout = f"The result is the differential: it is linear in {self.dx.name}."
        elif self.is_number:
            layout = f"Layout: the gradient has the shape of {self.x.name}; in the other layout it is transposed."
        else:
            layout = "Layout: a row for each entry of f; in the other layout the Jacobian is transposed."
        return [f"Shapes: {'; '.join(said)}.", layout]

    def _lines(self) -> Iterator[Formula]:
        start = self.f.replace(lambda part: part.is_Pow and part.exp == 2 and isinstance(part.base, Norm), self._square)
        yield Formula(self.f, sp.Symbol("f", commutative=False))
        if start != self.f:
            yield Formula(start, Nothing(), "‖u‖² = uᵀu")
        first = self._d(start)
        yield Formula(first, self.df, "; ".join(self.reasons) or "d is linear")
        terms = list(self._terms(first))
        if not (self.is_number or (self.shape[1] == "1" and self.is_column)):
            if sp.Add(*terms) != first:
                yield Formula(sp.Add(*terms), Nothing(), "multiplied out")
            return
        fronts = [self._front(term) for term in terms]
        moved, whole = sp.Add(*map(self._with_dx, fronts)), self._with_dx(sp.Add(*fronts))
        is_turned = first.has(Transposed(self.dx))
        how = "transposed and " * is_turned + "in cyclic order inside the trace"
        if self.is_column:
            how = "a number is its own transpose" if is_turned else "multiplied out"
        if moved != first:
            yield Formula(moved, Nothing(), how)
        if moved.is_Add:
            yield Formula(whole, Nothing(), "collected")
        self.name = sp.Symbol("∇f" if self.is_number else "J", commutative=False)
        by = "J {}" if not self.is_number else "(∇f)ᵀ {}" if self.is_column else "tr((∇f)ᵀ {})"
        total = sp.Add(*map(self.transposed, fronts)) if self.is_number else sp.Add(*fronts)
        yield Formula(_collected(total).replace(sp.Mul, _of_ones), self.name, f"read off: df = {by.format(self.dx)}")

    def _square(self, part: sp.Expr) -> sp.Expr:
        return self._inner(part.base.args[0], part.base.args[0])

    def _inner(self, u: sp.Expr, v: sp.Expr) -> sp.Expr:
        """Return the inner product of two columns or matrices."""
        product = self.transposed(u) * v
        return product if self.shapes.of(u, "")[1] == "1" else Trace(product)

    def _d(self, part: sp.Expr) -> sp.Expr:
        """Return the differential of a formula, and keep the reasons."""
        if not part.has(self.x):
            return sp.S.Zero
        if part == self.x:
            return self.dx
        if part.is_Add:
            return sp.Add(*map(self._d, part.args))
        is_number = not part.is_Mul and self.shapes.of(part.args[0], "") == NUMBER
        if part.is_Mul or (part.is_Pow and not is_number and part.exp.is_Integer and part.exp > 0):
            factors = [base for factor in sp.Mul.make_args(part) for base in repeated(factor)]
            if sum(factor.has(self.x) for factor in factors) > 1:
                self.reasons["product rule: d(UV) = dU V + U dV"] = None
            return sp.Add(*(sp.Mul(*factors[:k], self._d(u), *factors[k + 1 :]) for k, u in enumerate(factors)))
        u, name = part.args[0], part.func.__name__
        if isinstance(part, Transposed):
            return self.transposed(self._d(u))
        if isinstance(part, Norm):
            self.reasons["d‖u‖ = uᵀ du/‖u‖"] = None
            return self._inner(u, self._d(u)) / part
        name = f"log {u.func.__name__}" if name == "log" and f"log {u.func.__name__}" in _RULES else name
        if is_number and not name.startswith("log "):
            self.reasons["chain rule"] = None
            letter = sp.Dummy("u", positive=True)
            return part.xreplace({u: letter}).diff(letter).subs(letter, self._scalar(u)) * self._d(u)
        name = "inverse" if part.is_Pow and part.exp == -1 else name
        if name not in _RULES:
            do = "give a formula of products, traces, inverses, determinants"
            raise RuleError(f"the differential of {part}", do=do)
        reason, rule = _RULES[name]
        self.reasons |= {reason: None} if reason else {}
        return rule(self._d, part, u)

    def _scalar(self, part: sp.Expr) -> sp.Expr:
        """Return a number that is made of matrices as a factor that commutes."""
        if part.is_Mul and part.args[1:] == (ONES,) and self.said.get(str(self.transposed(part.args[0]))) == "sum 1":
            return sp.S.One
        return part if part.is_commutative else NumberOf(part)

    def transposed(self, part: sp.Expr) -> sp.Expr:
        """Return the transpose of a formula, carried out as far as its letters."""
        if part.is_commutative or part.func.__name__ == "diag" or self.said.get(str(part)) == "symmetric":
            return part
        if part.is_Add and part.has(self.dx):
            return sp.Add(*map(self.transposed, part.args))
        if part.is_Mul:
            return sp.Mul(*map(self.transposed, reversed(part.args)))
        if isinstance(part, Transposed):
            return part.args[0]
        if part.is_Pow and (part.exp != -1 or not part.base.is_Symbol or self.said.get(str(part.base)) == "symmetric"):
            return self.transposed(part.base) ** part.exp
        return part if part == _I else Transposed(part)

    def _terms(self, part: sp.Expr) -> Iterator[sp.Expr]:
        """Yield the terms of a differential, each with one dx. Other sums stay whole."""
        if part.is_Add:
            for term in part.args:
                yield from self._terms(term)
        elif isinstance(part, Trace):
            yield from (self._traced(term) for term in self._terms(part.args[0]))
        elif part.is_Mul and part.has(self.dx):
            place = next(k for k, factor in enumerate(part.args) if factor.has(self.dx))
            before, after = part.args[:place], part.args[place + 1 :]
            inner = list(self._terms(part.args[place])) if part.args[place].args else [part.args[place]]
            for term in inner:
                whole = sp.Mul(*before, term, *after)
                yield from self._terms(whole) if len(inner) > 1 else (whole,)
        else:
            yield part

    def _traced(self, term: sp.Expr) -> sp.Expr:
        number, factors = term.args_cnc()
        return sp.Mul(*number) * Trace(sp.Mul(*factors))

    def _front(self, term: sp.Expr) -> sp.Expr:
        """Return M where a term is M dx or tr(M dX)."""
        numbers, rest, moving = list[sp.Expr](), list[sp.Expr](), list[sp.Expr]()
        for group in groups([base for factor in sp.Mul.make_args(term) for base in repeated(factor)], self.shapes):
            product = sp.Mul(*group)
            if product.has(self.dx):
                moving = group
            elif self.shapes.of(product, "") == NUMBER:
                numbers.append(self._scalar(product))
            else:
                rest += group
        if isinstance(moving[0], Trace):
            moving = [base for factor in sp.Mul.make_args(moving[0].args[0]) for base in repeated(factor)]
        place = next(k for k, factor in enumerate(moving) if factor.has(self.dx))
        front = sp.Mul(*moving[place + 1 :]) * sp.Mul(*moving[:place])
        front = front if moving[place] == self.dx else self.transposed(front)
        return sp.Mul(*numbers, *rest, _I if front == 1 and not rest else front)

    def _with_dx(self, front: sp.Expr) -> sp.Expr:
        number, factors = front.args_cnc() if front.is_Mul else ([], [front])
        is_chain = self.is_column or not self.is_number
        return front * self.dx if is_chain else sp.Mul(*number) * Trace(sp.Mul(*factors) * self.dx)

    def _check(self) -> None:
        """Raise InvariantError for a line that does not hold at random matrices of one of several sizes."""
        for line in self.lines:
            self.shapes.of(line.right, str(line.reason))  # that of a column of ones
        plans = 0
        for plan in PLANS:
            with contextlib.suppress(ZeroDivisionError), mp.workdps(DIGITS):
                values = random_values(self.names | {ONES.name}, self.shapes, plan, self.said)
                step = values[self.dx.name]
                known = change(self.f, values, self.x.name, step)
                before = value_of(self.f, values, "f")
                for line in self.lines:
                    after = value_of(line.right, values, "a line")
                    before = before if line.left in (Nothing(), sp.Symbol("f", commutative=False)) else known
                    if line.left == self.name != self.df and self.is_number:
                        after = mp.fsum(a * b for a, b in zip(after, step, strict=True))
                    elif line.left == self.name != self.df:
                        after *= step
                    if not are_equal(after, before):
                        what = f"{line.left} = {line.right}"[:80]
                        do = "please report it with the formula: this is a defect of symad"
                        raise InvariantError("a displayed equality of matrices that does not hold", where=what, do=do)
                plans += 1
        if not plans:
            do = "write one whose determinants are not 0"
            raise refusal("a formula without values at random matrices", do=do)


def _of_ones(*factors: sp.Expr) -> sp.Expr:
    """Return a product in which diag(u) times a column of ones is u."""
    is_of_ones = len(factors) > 1 and factors[-1] == ONES and factors[-2].func.__name__ == "diag"
    return sp.Mul(*factors[:-2], factors[-2].args[0]) if is_of_ones else sp.Mul(*factors)


def _collected(total: sp.Expr) -> sp.Expr:
    """Return a sum with common factors on the right, then on the left, taken out: (A + Aᵀ) x."""
    for side in (slice(-1, None), slice(0, 1)):
        by_factor: dict[Any, list[Any]] = {}
        for term in sp.Add.make_args(total):
            numbers, factors = term.args_cnc()
            factors = [base for factor in factors for base in repeated(factor)]
            by_factor.setdefault(tuple(factors[side]), []).append((numbers, factors))
        total = sp.Add(*(_with_common(factor, terms, side) for (factor, *_), terms in by_factor.items()))
    return total


def _with_common(common: sp.Expr, terms: list[Any], side: slice) -> sp.Expr:
    if len(terms) == 1 or any(len(factors) == 1 for _, factors in terms):
        return sp.Add(*(sp.Mul(*numbers, *factors) for numbers, factors in terms))
    rest = slice(None, -1) if side.start else slice(1, None)
    same = set.intersection(*(set(numbers) for numbers, _ in terms))
    inner = sp.Add(*(sp.Mul(*(n for n in numbers if n not in same), *factors[rest]) for numbers, factors in terms))
    return sp.Mul(*same) * (inner * common if side.start else common * inner)

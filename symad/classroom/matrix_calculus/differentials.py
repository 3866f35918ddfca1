"""Derivatives of formulas of matrices by differentials: d(X⁻¹) = -X⁻¹ dX X⁻¹, then the gradient is read off.

Every line is checked at random matrices by `matrix_values`, which knows no rule of differentials.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.matrix_calculus.matrix_formulas import (
    NUMBER,
    ONES,
    MatrixFormula,
    groups,
    repeated,
)
from symad.classroom.matrix_calculus.matrix_values import DIGITS, PLANS, are_equal, change, random_values, value_of
from symad.display.notation import Determinant, Norm, NumberOf, Total, Trace, Transposed
from symad.errors import InvariantError, RuleError
from symad.tracing.calling.user_place import refusal

_IN_EACH_ENTRY = {  # slopes of functions in each entry, as matrices in front of du
    sp.exp: lambda u: sp.Function("diag")(sp.exp(u)),
    sp.log: lambda u: sp.Function("diag")(u) ** -1,
    sp.sin: lambda u: sp.Function("diag")(sp.cos(u)),
    sp.cos: lambda u: -sp.Function("diag")(sp.sin(u)),
}
_RULES = {
    "product": "product rule: d(UV) = dU V + U dV", "inverse": "d(X⁻¹) = -X⁻¹ dX X⁻¹",
    "determinant": "d det X = det X tr(X⁻¹ dX)", "log det": "d log det X = tr(X⁻¹ dX)", "chain": "chain rule",
    "norm": "d‖u‖ = uᵀ du/‖u‖", "trace": "the trace is linear", "entries": "in each entry",
    "softmax": "d s = (diag(s) - s sᵀ) du with s = softmax(u)",
    "log softmax": "d log s = du - 1 sᵀ du with s = softmax(u), 1: a column of ones",
}  # fmt: skip


@dataclass(frozen=True)
class DifferentialLine:
    """A line of the derivation; `before` is f, df, the line before, or the result's name."""

    before: sp.Expr
    after: sp.Expr
    reason: str
    starts: bool = False


class Differentials(MatrixFormula):
    """The derivation of a derivative by differentials, its result, and what it is called."""

    def __init__(self, text: str, x: str) -> None:
        super().__init__(text, x)
        self.rules, self.df = dict[str, None](), sp.Symbol("df", commutative=False)
        if not self.f.has(self.x):
            raise refusal(f"the derivative in {x} of a formula without it", do=f"write a formula of {x}")
        self.result: sp.Expr = sp.S.Zero
        self.name = self.df
        self.lines: tuple[DifferentialLine, ...] = tuple(self._lines())
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

    def _lines(self) -> Iterator[DifferentialLine]:
        start = self.f.replace(lambda part: part.is_Pow and part.exp == 2 and isinstance(part.base, Norm), self._square)
        name = sp.Symbol("f", commutative=False)
        yield DifferentialLine(name, self.f, "", True)
        if start != self.f:
            yield DifferentialLine(self.f, start, "‖u‖² = uᵀu" if start.has(Transposed) else "")
        first = self._d(start)
        terms = [term for term in self._terms(first) if term != 0]
        reasons = "; ".join(_RULES[rule] for rule in self.rules) or "d is linear"
        yield DifferentialLine(self.df, first, reasons, True)
        flat = sp.Add(*terms)
        if not (self.is_number or (self.shape[1] == "1" and self.shapes.of(self.x, "")[1] == "1")):
            if flat != first:
                yield DifferentialLine(first, flat, "multiplied out")
            self.result = flat
            return
        fronts = [self._front(term) for term in terms]
        ahead = [self._with_dx(front) for front in fronts]
        moved = sp.Add(*ahead)
        if moved != first:
            is_column = self.shapes.of(self.x, "")[1] == "1"
            turned = "a number is its own transpose" if is_column else "transposed and in cyclic order inside the trace"
            yield DifferentialLine(first, moved, turned if moved != flat else "multiplied out")
        if len(moved.args if moved.is_Add else [moved]) > 1:
            whole = self._with_dx(sp.Add(*fronts))
            yield DifferentialLine(moved, whole, "collected")
        self.name = sp.Symbol("∇f" if self.is_number else "J", commutative=False)
        fronts = [self.transposed(front) for front in fronts] if self.is_number else fronts
        self.result = _collected(sp.Add(*fronts)).replace(sp.Mul, _of_ones)
        by = "df = J dx" if not self.is_number else "df = (∇f)ᵀ dx" if self.x.name.islower() else "df = tr((∇f)ᵀ dX)"
        by = by.replace("dx", self.dx.name).replace("dX", self.dx.name)
        yield DifferentialLine(self.name, self.result, f"read off: {by}", True)

    def _square(self, part: sp.Expr) -> sp.Expr:
        (u,) = part.base.args
        product = self.transposed(u) * u
        return product if self.shapes.of(u, "")[1] == "1" else Trace(product)

    def _use(self, rule: str) -> None:
        self.rules[rule] = None

    def _d(self, part: sp.Expr) -> sp.Expr:
        """Return the differential of a formula."""
        if not part.has(self.x):
            return sp.S.Zero
        if part == self.x:
            return self.dx
        if part.is_Add:
            return sp.Add(*map(self._d, part.args))
        if part.is_Mul:
            factors = [base for factor in part.args for base in repeated(factor)]
            if sum(factor.has(self.x) for factor in factors) > 1:
                self._use("product")
            return sp.Add(*(sp.Mul(*factors[:k], self._d(u), *factors[k + 1 :]) for k, u in enumerate(factors)))
        (u, *_), is_number = part.args, self.shapes.of(part.args[0], "") == NUMBER
        if part.is_Pow:
            return self._power(part, is_number)
        if isinstance(part, Transposed):
            return self.transposed(self._d(u))
        if isinstance(part, Trace):
            self._use("trace")
            return Trace(self._d(u))
        if isinstance(part, Determinant):
            self._use("determinant")
            return part * Trace(u**-1 * self._d(u))
        if isinstance(part, Norm):
            self._use("norm")
            product = self.transposed(u) * self._d(u)
            return (product if self.shapes.of(u, "")[1] == "1" else Trace(product)) / part
        if isinstance(part, Total):
            return Transposed(ONES) * self._d(u)
        return self._of_function(part, u, is_number)

    def _power(self, part: sp.Pow, is_number: bool) -> sp.Expr:
        base, exponent = part.args
        if is_number:
            self._use("chain")
            return exponent * self._scalar(base) ** (exponent - 1) * self._d(base)
        if exponent == -1:
            self._use("inverse")
            return -part * self._d(base) * part
        if not exponent.is_Integer or exponent < 1:
            raise RuleError(f"the differential of {part}", do="write it with products and inverses")
        self._use("product")
        return sp.Add(*(base**k * self._d(base) * base ** (exponent - 1 - k) for k in range(int(exponent))))

    def _of_function(self, part: sp.Expr, u: sp.Expr, is_number: bool) -> sp.Expr:
        name, inner = part.func.__name__, self._d
        if isinstance(part, sp.log) and isinstance(u, Determinant):
            self._use("log det")
            return Trace(u.args[0] ** -1 * inner(u.args[0]))
        if is_number:
            self._use("chain")
            letter = sp.Dummy("u", real=True)
            return part.func(letter).diff(letter).subs(letter, self._scalar(u)) * inner(u)
        if isinstance(part, sp.log) and u.func.__name__ == "softmax":
            self._use("log softmax")
            return inner(u.args[0]) - ONES * Transposed(u) * inner(u.args[0])
        if name == "softmax":
            self._use("softmax")
            return (sp.Function("diag")(part) - part * Transposed(part)) * inner(u)
        if part.func in _IN_EACH_ENTRY and self.shapes.of(u, "")[1] == "1":
            self._use("entries")
            return _IN_EACH_ENTRY[part.func](u) * inner(u)
        raise RuleError(f"the differential of {name}", do="give a formula of products, traces, inverses, determinants")

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
        return part if part.is_Symbol and part.name == "I" else Transposed(part)

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
        factors = [base for factor in (term.args if term.is_Mul else [term]) for base in repeated(factor)]
        numbers, rest, moving = list[sp.Expr](), list[sp.Expr](), list[sp.Expr]()
        is_number_group = False
        for group in groups(factors, self.shapes):
            product = sp.Mul(*group)
            is_number = self.shapes.of(product, "") == NUMBER
            if product.has(self.dx):
                moving, is_number_group = group, is_number
            elif is_number:
                numbers.append(self._scalar(product))
            else:
                rest += group
        if len(moving) == 1 and isinstance(moving[0], Trace):
            inner = self._front_of_trace(moving[0].args[0])
            return sp.Mul(*numbers, inner)
        place = next(k for k, factor in enumerate(moving) if factor.has(self.dx))
        left, right = sp.Mul(*moving[:place]), sp.Mul(*moving[place + 1 :])
        is_turned = moving[place] != self.dx
        if self.is_number:
            front = right * left
            return sp.Mul(*numbers, self.transposed(front) if is_turned else front)
        if is_number_group:
            return sp.Mul(*numbers, *rest, self.transposed(right * left) if is_turned else right * left)
        return sp.Mul(*numbers, left if left != 1 else sp.Symbol("I", commutative=False))

    def _front_of_trace(self, inner: sp.Expr) -> sp.Expr:
        factors = [base for factor in (inner.args if inner.is_Mul else [inner]) for base in repeated(factor)]
        place = next(k for k, factor in enumerate(factors) if factor.has(self.dx))
        front = sp.Mul(*factors[place + 1 :]) * sp.Mul(*factors[:place])
        front = sp.Symbol("I", commutative=False) if front == 1 else front
        return front if factors[place] == self.dx else self.transposed(front)

    def _with_dx(self, front: sp.Expr) -> sp.Expr:
        is_chain = not self.is_number or self.shapes.of(self.x, "")[1] == "1"
        number, factors = front.args_cnc() if front.is_Mul else ([], [front])
        return front * self.dx if is_chain else sp.Mul(*number) * Trace(sp.Mul(*factors) * self.dx)

    def _check(self) -> None:
        """Raise InvariantError for a line that does not hold at random matrices of one of several sizes."""
        for line in self.lines:
            self.shapes.of(line.after, line.reason)  # that of a column of ones
        is_checked = False
        for plan in PLANS:
            with contextlib.suppress(ZeroDivisionError), mp.workdps(DIGITS):
                values = self.values(plan)
                step = values[self.dx.name]
                known = {"f": value_of(self.f, values, "f"), "df": change(self.f, values, self.x.name, step)}
                for line in self.lines:
                    after, before = value_of(line.after, values, "a line"), known["df"]
                    if line.before != self.name or self.name == self.df:
                        before = value_of(line.before, {**values, **known}, "a line")
                    elif self.is_number:
                        after = mp.fsum(a * b for a, b in zip(after, step, strict=True))
                    else:
                        after = after * step
                    if not are_equal(after, before):
                        what = f"{line.before} = {line.after}"[:80]
                        do = "please report it with the formula: this is a defect of symad"
                        raise InvariantError("a displayed equality of matrices that does not hold", where=what, do=do)
                is_checked = True
        if not is_checked:
            raise refusal(
                "a formula without values at random matrices", do="write one with determinants that are not 0"
            )

    def values(self, plan: Sequence[int]) -> dict[str, Any]:
        """Return random values of the letters."""
        return random_values(self.names | {ONES.name}, self.shapes, plan, self.said)


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

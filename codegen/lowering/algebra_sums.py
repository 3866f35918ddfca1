"""Collect like terms in sums, and multiply out products with sums where that saves operations.

A sum is a tree of additions, subtractions, signs and constant factors whose inner nodes have no other use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from codegen.ir.machine_rows import Reference, constant_of, in_range
from codegen.lowering.algebra_rows import Factors, Rebuilder, inner_rows, monomials, multiply
from codegen.lowering.lower import Lowered
from codegen.records import dataclass

Terms: TypeAlias = dict[Factors, float]  # factors: coefficient; () is the constant

SUMS = ("add", "sub")


def collect_terms(lowered: Lowered) -> Lowered:
    """Return the program with like terms of sums collected, and factors that are sums multiplied out where terms merge.

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> expression = sp.Add(3 * x * x, -4 * sp.Add(y, -x * x), evaluate=False)
    >>> program = lower(program_from_sympy([x, y], [expression]))
    >>> sorted(program.count().items()), sorted(collect_terms(program).count().items())
    ([('add', 1), ('mul', 4), ('sub', 1)], [('mul', 3), ('sub', 1)])
    """
    return _Collector(lowered).finish()


def factor_sums(lowered: Lowered) -> Lowered:
    """Return the program with common factors of terms taken out of sums where that saves operations.

    >>> import sympy as sp
    >>> from codegen.lowering.fuse import fuse
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> a, b, c, d, e = sp.symbols("a:e")
    >>> program = lower(program_from_sympy([a, b, c, d, e], [a * b * c + a * d * e]))
    >>> fuse(program).count().total(), fuse(factor_sums(program)).count().total()
    (4, 3)
    """
    return _Factorer(lowered).finish()


@dataclass
class _Sum:
    """A sum: its like terms collected, how many terms were written, and its operations, fused ones once."""

    terms: Terms
    written: int = 0
    operations: int = 0


class _Sums(Rebuilder):
    """Rebuilds sums from their terms where `improve` has better ones."""

    def __init__(self, lowered: Lowered) -> None:
        super().__init__(lowered)
        self.monomials = monomials(lowered)
        self.inner = inner_rows(lowered, self.is_sum)
        self.products: dict[Factors, int] = {}  # rows that have these factors, with coefficient 1, and other uses too
        self.weights = [0] * len(self.rows)  # multiplications in the product of a row, without those of other uses
        for index, row in enumerate(self.rows):
            if row[0] == "mul":
                self.weights[index] = 1 + sum([self.weights[part] for part in row[1:] if self.uses[part] == 1])

    def is_sum(self, index: int) -> bool:
        """Whether a row adds, subtracts, or multiplies by a constant."""
        row = self.rows[index]
        if row[0] == "mul":
            return constant_of(self.rows, row[1]) is not None
        return row[0] in ("add", "sub", "neg")

    def make(self, index: int) -> Reference:
        """Rebuild a row; the root of a sum from better terms, where there are any."""
        improved = None
        if self.is_sum(index) and not self.inner[index] and self.uses[index]:
            improved = self.improve(self.sum_of(index))
        coefficient, factors = self.monomials[index]
        if coefficient == 1 and self.rows[index][0] == "mul" and self.uses[index] > 1:
            self.products.setdefault(factors, index)
        return super().make(index) if improved is None else improved

    def improve(self, written: _Sum) -> Reference | None:
        """Return a better sum, or None."""
        raise NotImplementedError

    def sum_of(self, root: int) -> _Sum:
        """Return the terms of a sum, like ones collected, in the order in which they were written."""
        rows, uses, written = self.rows, self.uses, _Sum({})
        stack = [(root, 1.0)]
        while stack:
            index, scale = stack.pop()
            row = rows[index]
            inside = index == root or self.inner[index]
            if inside and row[0] in SUMS:
                fused = any(rows[part][0] == "mul" and uses[part] == 1 for part in row[1:])
                written.operations += not fused
                stack += [(row[2], scale if row[0] == "add" else -scale), (row[1], scale)]
            elif inside and row[0] == "neg":
                stack.append((row[1], -scale))
            elif inside and row[0] == "mul" and in_range(scale * (constant_of(rows, row[1]) or 0.0)):
                written.operations += 1
                stack.append((row[2], scale * (constant_of(rows, row[1]) or 0.0)))
            else:
                written.operations += self.weights[index] if uses[index] == 1 else 0
                coefficient, factors = self.monomials[index]
                if not in_range(scale * coefficient):
                    coefficient, factors = 1.0, ((index, 1),)
                written.terms[factors] = written.terms.get(factors, 0.0) + scale * coefficient
                written.written += 1
        return written

    def operations(self, terms: Terms) -> int:
        bare = products = 0
        for factors, coefficient in terms.items():
            count = 1 if factors in self.products else sum([abs(exponent) for _, exponent in factors])
            products += max(count - (abs(coefficient) == 1), 0)
            bare += self.is_bare(factors, coefficient)
        return products + max(bare - 1, 0)

    def is_bare(self, factors: Factors, coefficient: float) -> bool:
        """Whether a term is an existing value, or a constant."""
        if not factors or (abs(coefficient) == 1 and factors in self.products):
            return True
        return abs(coefficient) == 1 and len(factors) == 1 and factors[0][1] == 1

    def sum(self, terms: Iterable[tuple[Factors, float]]) -> Reference:
        """Build a sum of terms: a bare one first, the others in order."""
        machine = self.machine
        ordered = sorted(terms, key=lambda term: not self.is_bare(*term))
        values = [self.product(coefficient, factors) for factors, coefficient in ordered]
        first = next((k for k, value in enumerate(values) if value >= 0), 0)
        total = values.pop(first) if values else machine.const(0.0)
        for value in values:
            total = machine.add(total, value)
        return total

    def product(self, coefficient: float, factors: Factors) -> Reference:
        machine, known = self.machine, self.products.get(factors)
        if known is not None:
            return machine.mul(machine.const(coefficient), self.value(known))
        top, bottom = machine.const(coefficient), None
        for factor, exponent in factors:
            power = self.power(self.value(factor), abs(exponent))
            if exponent > 0:
                top = machine.mul(top, power)
            else:
                bottom = power if bottom is None else machine.mul(bottom, power)
        return top if bottom is None else machine.div(top, bottom)


class _Collector(_Sums):
    def __init__(self, lowered: Lowered) -> None:
        super().__init__(lowered)
        self.short: dict[int, Terms | None] = {}

    def improve(self, written: _Sum) -> Reference | None:
        """Like terms were collected, a factor that is a sum is written out, or constants go into coefficients."""
        expanded = self.expanded(written.terms)
        terms = {factors: value for factors, value in (expanded or written.terms).items() if value}
        if expanded is None and len(terms) == written.written and self.operations(terms) >= written.operations:
            return None
        return self.sum(terms.items())

    def expanded(self, terms: Terms) -> Terms | None:
        """Multiply out each factor that is a sum of at most 4 terms, where that does not make more terms."""
        holders: dict[int, list[Factors]] = {}
        for factors in terms:
            for row, exponent in factors:
                if exponent == 1 and self.rows[row][0] in SUMS:
                    holders.setdefault(row, []).append(factors)
        result = dict(terms) if holders else terms
        changed = False
        for factor, held in holders.items():
            if factor not in self.short:
                inner_terms = self.sum_of(factor).terms
                self.short[factor] = inner_terms if len(inner_terms) <= 4 else None
            inside = self.short[factor]
            if inside is not None and _write_out(result, factor, [f for f in held if f in result], inside):
                changed = True
        return result if changed else None


class _Factorer(_Sums):
    def improve(self, written: _Sum) -> Reference | None:
        """Take common factors out of terms, the most common factor first."""
        terms = {factors: value for factors, value in written.terms.items() if value}
        holders: dict[int, list[Factors]] = {}
        for factors in terms:
            for row, exponent in factors:
                if exponent > 0 and factors not in self.products:
                    holders.setdefault(row, []).append(factors)
        groups = []
        for factor, held in sorted(holders.items(), key=lambda item: (-len(item[1]), item[0])):
            members = [factors for factors in held if factors in terms]
            inside = {multiply(factors, ((factor, -1),)): terms[factors] for factors in members}
            together = self.operations({factors: terms[factors] for factors in members})
            if len(members) > 1 and self.operations(inside) + 1 < together:
                groups.append((factor, inside))
                for factors in members:
                    del terms[factors]
        return self.grouped(terms, groups) if groups else None

    def grouped(self, terms: Terms, groups: list[tuple[int, Terms]]) -> Reference:
        machine = self.machine
        products = [machine.mul(self.value(factor), self.sum(inside.items())) for factor, inside in groups]
        total = self.sum(terms.items()) if terms else products.pop(0)
        for product in products:
            total = machine.add(total, product)
        return total


def _write_out(terms: Terms, factor: int, held: list[Factors], inside: Terms) -> bool:
    """Replace a factor by its sum in the terms that have it, unless that makes more terms, or merges none."""
    products: Terms = {}
    for factors in held:
        others = tuple([pair for pair in factors if pair != (factor, 1)])
        for part, scale in inside.items():
            product = multiply(others, part)
            products[product] = products.get(product, 0.0) + terms[factors] * scale
    known = sum(product in terms for product in products)
    merged = len(held) * len(inside) - len(products) + known
    gone = sum(products[product] + terms.get(product, 0.0) == 0 for product in products)
    if not merged or len(products) - known - gone > len(held) or any(product in held for product in products):
        return False
    sums = {product: terms.get(product, 0.0) + value for product, value in products.items()}
    if not all(value == 0 or in_range(value) for value in sums.values()):
        return False
    for factors in held:
        del terms[factors]
    terms.update(sums)
    return True

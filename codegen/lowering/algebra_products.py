"""Collect powers and constants in products; compute common factors and denominators once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from codegen.ir.machine_rows import Reference, Row, is_power_of_two, operands_of
from codegen.lowering.algebra_pairs import Product, share_pairs
from codegen.lowering.algebra_rows import Factors, Monomial, Rebuilder, collected, monomials
from codegen.lowering.lower import Lowered
from codegen.records import dataclass

PRODUCTS = ("mul", "div")
FEWEST_TOGETHER, MOSTLY = 3, 0.75


def share_products(lowered: Lowered) -> Lowered:
    """Return the program with the factors of every product and quotient collected, and common parts shared.

    >>> import sympy as sp
    >>> from codegen.lowering.lower import lower
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y, z, w = sp.symbols("x y z w")
    >>> program = lower(program_from_sympy([x, y, z, w], [x * (y * z), (x * y) * w, y / (x * w), z / (x * w)]))
    >>> sorted(share_products(program).count().items())
    [('div', 1), ('mul', 6)]
    """
    return _Products(lowered).finish()


@dataclass
class _Fraction:
    """A product of factors over another: numbers of the two in the list of products, and their readers."""

    top: int
    bottom: int | None = None
    readers: list[int] = field(default_factory=list)


class _Products(Rebuilder):
    """Rebuilds all products together."""

    def __init__(self, lowered: Lowered) -> None:
        super().__init__(lowered)
        self.monomials = monomials(lowered, apart=True)
        self.fractions: dict[Monomial, _Fraction] = {}  # by factors and the size of the coefficient
        self.constants: dict[float, int] = {}  # coefficient: its new factor
        self.products: list[Product] = []
        self.reciprocals: dict[Factors, int] = {}  # denominator: the new factor of its reciprocal
        self.inverse: dict[int, int] = {}  # new factor: number of the product whose reciprocal it is
        self.fresh = len(self.rows)
        self.merged = {root: self.monomials[root] for root in self._roots()}
        scaled = merge_constants(self.rows, self.merged, self.fresh)
        self.fresh += len(scaled)
        for root in self.merged:
            self.fractions.setdefault(self.size(root), _Fraction(-1)).readers.append(root)
        opaque = {index for index, uses in enumerate(self.uses) if uses and self.is_opaque(index)}
        self.skipped = (
            {index for index, row in enumerate(self.rows) if row[0] in PRODUCTS} - opaque - self.merged.keys()
        )
        self._divide()
        self.pairs = {**scaled, **share_pairs(self.products, self._weights(), self.fresh)}
        self.built: dict[int, Reference] = {}

    def size(self, index: int) -> Monomial:
        """Return the monomial of a row without its sign."""
        coefficient, factors = self.merged[index]
        return abs(coefficient), factors

    def is_opaque(self, index: int) -> bool:
        """Whether a row is a factor itself: no product, or one that is too long."""
        return self.monomials[index][1] == ((index, 1),)

    def _roots(self) -> list[int]:
        """Return the products that are stored, or read by anything but a product."""
        rows, candidates = self.rows, {row for _, _, row in self.lowered.stores}
        for index, uses in enumerate(self.uses):
            if uses and (rows[index][0] not in PRODUCTS or self.is_opaque(index)):
                candidates.update(operands_of(rows[index]))
            elif uses:
                candidates.update([factor for factor, _ in self.monomials[index][1]])
        return [index for index in sorted(candidates) if rows[index][0] in PRODUCTS and not self.is_opaque(index)]

    def _divide(self) -> None:
        """Split factors into numerator and denominator; a denominator of several quotients becomes a reciprocal."""
        bottoms = [
            tuple([(row, -exponent) for row, exponent in factors if exponent < 0]) for _, factors in self.fractions
        ]
        single = Counter([bottom[0][0] for bottom in bottoms if len(bottom) == 1])
        whole = Counter([bottom for bottom in bottoms if len(bottom) > 1])
        for ((coefficient, factors), fraction), bottom in zip(self.fractions.items(), bottoms, strict=True):
            top = {row: exponent for row, exponent in factors if exponent > 0}
            if coefficient != 1:
                top[self.constant(coefficient)] = 1
            if bottom and all(single[row] > 1 for row, _ in bottom):
                top.update({self.reciprocal(((row, 1),)): exponent for row, exponent in bottom})
            elif whole[bottom] > 1:
                top[self.reciprocal(bottom)] = 1
            elif bottom:
                fraction.bottom = self.product(dict(bottom))
            fraction.top = self.product(top)

    def product(self, factors: Product) -> int:
        self.products.append(factors)
        return len(self.products) - 1

    def reciprocal(self, bottom: Factors) -> int:
        """Return the factor of the reciprocal of a denominator."""
        if bottom not in self.reciprocals:
            self.reciprocals[bottom] = self.fresh
            self.inverse[self.fresh] = self.product(dict(bottom))
            self.fresh += 1
        return self.reciprocals[bottom]

    def constant(self, value: float) -> int:
        if value not in self.constants:
            self.constants[value] = self.fresh
            self.values[self.fresh] = self.machine.const(value)
            self.fresh += 1
        return self.constants[value]

    def _weights(self) -> list[tuple[int, int]]:
        """Return the weights for `share_pairs`: further factors, and 0 where an addition fuses with the product."""
        sums = {
            part for index, uses in enumerate(self.uses) if uses and self.rows[index][0] in ("add", "sub")
            for part in operands_of(self.rows[index])
        }  # fmt: skip
        weights = [(0, 1)] * len(self.products)
        for fraction in self.fractions.values():
            alone = len(fraction.readers) == 1 and self.uses[fraction.readers[0]] == 1
            weights[fraction.top] = (int(fraction.bottom is not None), int(not (alone and fraction.readers[0] in sums)))
        return weights

    def make(self, index: int) -> Reference:
        """Rebuild a product from its factors."""
        if self.rows[index][0] not in PRODUCTS or self.is_opaque(index):
            return super().make(index)
        machine = self.machine
        fraction = self.fractions[self.size(index)]
        value = self.built_product(fraction.top)
        if fraction.bottom is not None:
            value = machine.div(value, self.built_product(fraction.bottom))
        return ~value if self.merged[index][0] < 0 else value

    def built_product(self, number: int) -> Reference:
        """Build a product from the list, once."""
        if number not in self.built:
            machine, total = self.machine, self.machine.const(1.0)
            for factor, exponent in sorted(self.products[number].items()):
                total = machine.mul(total, self.power(self.factor(factor), exponent))
            self.built[number] = total
        return self.built[number]

    def factor(self, factor: int) -> Reference:
        """Build a factor: an old row, a pair, or a reciprocal."""
        if factor not in self.values and factor in self.pairs:
            first, second = self.pairs[factor]
            self.values[factor] = self.machine.mul(self.factor(first), self.factor(second))
        elif factor not in self.values and factor in self.inverse:
            unit = self.machine.const(1.0)
            self.values[factor] = self.machine.div(unit, self.built_product(self.inverse[factor]))
        return self.value(factor)


def merge_constants(rows: Sequence[Row], monomial_of: dict[int, Monomial], fresh: int) -> dict[int, tuple[int, int]]:
    """Multiply the constants of each product, in place, except for those that stay with their factor.

    exp(x) that is nearly always multiplied by 1.25 becomes one new factor 1.25*exp(x), where the constants of the other
    factors make every product different. Returns new factor: (constant, factor), numbered from `fresh`.
    """
    present = dict.fromkeys(row for _, factors in monomial_of.values() for row, _ in factors)
    values = {row: abs(value) for row in present if (value := collected(rows, row)) is not None}
    numbers: dict[tuple[int, int], int] = {}
    together = set(_companions(monomial_of, values))
    for root, (coefficient, factors) in monomial_of.items():
        exponents, monomial_of[root] = (
            dict(factors),
            (coefficient, tuple(pair for pair in factors if pair[0] not in values)),
        )
        for pair in _constant_pairs(factors, values):
            if pair in together and all(exponents.get(factor) == 1 for factor in pair):
                for factor in pair:
                    del exponents[factor]
                exponents[numbers.setdefault(pair, fresh + len(numbers))] = 1
                left = [
                    values[factor] if times > 0 else 1 / values[factor]
                    for factor, times in exponents.items() if factor in values for _ in range(abs(times))
                ]  # fmt: skip
                rest = sorted([item for item in exponents.items() if item[0] not in values])
                monomial_of[root] = math.copysign(math.prod(left), coefficient), tuple(rest)
    return {number: pair for pair, number in numbers.items()}


def _constant_pairs(factors: Factors, values: dict[int, float]) -> list[tuple[int, int]]:
    """Return the pairs of a constant that is no power of two, and another factor."""
    single = [row for row, exponent in factors if exponent == 1]
    constants = [row for row in single if not is_power_of_two(values.get(row, 1.0))]
    return [(constant, row) for constant in constants for row in single if row not in values]


def _companions(monomial_of: dict[int, Monomial], values: dict[int, float]) -> list[tuple[int, int]]:
    """Return pairs of a constant and a factor that are nearly always together, in products with different constants."""
    total: Counter[int] = Counter()
    coefficients: dict[tuple[int, int], list[float]] = {}
    for product, factors in monomial_of.values():
        total.update([factor for factor, _ in factors])
        for pair in _constant_pairs(factors, values):
            coefficients.setdefault(pair, []).append(product)
    often = {p: c for p, c in coefficients.items() if len(c) >= max(FEWEST_TOGETHER, MOSTLY * total[p[1]])}
    return [pair for pair, products in often.items() if len(set(products)) >= len(products) / 2]

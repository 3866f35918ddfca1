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
    """Return the program with the factors of every product and quotient collected, and what they share shared.

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
    """A product of factors over another: numbers of the two in the list of products, and who reads it."""

    top: int
    bottom: int | None = None
    readers: list[int] = field(default_factory=list)


class _Products(Rebuilder):
    """Rebuilds all products together."""

    def __init__(self, lowered: Lowered) -> None:
        super().__init__(lowered)
        self.monomials = monomials(lowered, apart=True)
        self.fractions: dict[Monomial, _Fraction] = {}  # by factors and the size of the coefficient
        self.constants: dict[float, int] = {}  # coefficient: the new factor that it is
        self.products: list[Product] = []
        self.reciprocals: dict[Factors, int] = {}  # denominator: the new factor that is one over it
        self.inverse: dict[int, int] = {}  # new factor: number of the product that it is one over
        self.fresh = len(self.rows)
        self.merged = {root: self.monomials[root] for root in self._roots()}
        scaled = merge_constants(self.rows, self.merged, self.fresh)
        self.fresh += len(scaled)
        for root in self.merged:
            self.fractions.setdefault(self.size(root), _Fraction(-1)).readers.append(root)
        self.skipped = {index for index, row in enumerate(self.rows) if row[0] in PRODUCTS} - self._kept()
        self._divide()
        self.made = {**scaled, **share_pairs(self.products, self._weights(), self.fresh)}
        self.built: dict[int, Reference] = {}

    def size(self, index: int) -> Monomial:
        """A row without its sign."""
        coefficient, factors = self.merged[index]
        return abs(coefficient), factors

    def is_opaque(self, index: int) -> bool:
        """Whether a row is not seen through: no product, or one that is too long."""
        return self.monomials[index][1] == ((index, 1),)

    def _roots(self) -> list[int]:
        """Products that are stored, or read by anything but a product."""
        rows, wanted = self.rows, {row for _, _, row in self.lowered.stores}
        for index, uses in enumerate(self.uses):
            if uses and (rows[index][0] not in PRODUCTS or self.is_opaque(index)):
                wanted.update(operands_of(rows[index]))
            elif uses:
                wanted.update([factor for factor, _ in self.monomials[index][1]])
        return [index for index in sorted(wanted) if rows[index][0] in PRODUCTS and not self.is_opaque(index)]

    def _kept(self) -> set[int]:
        """Rows that are built for their own sake."""
        roots = {reader for fraction in self.fractions.values() for reader in fraction.readers}
        return roots | {index for index, uses in enumerate(self.uses) if uses and self.is_opaque(index)}

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
        """Add a product to the list."""
        self.products.append(factors)
        return len(self.products) - 1

    def reciprocal(self, bottom: Factors) -> int:
        """The factor that is one over a denominator."""
        found = self.reciprocals.get(bottom)
        if found is None:
            found = self.reciprocals[bottom] = self.fresh
            self.inverse[found] = self.product(dict(bottom))
            self.fresh += 1
        return found

    def constant(self, value: float) -> int:
        """The factor that is a constant."""
        if value not in self.constants:
            self.constants[value] = self.fresh
            self.values[self.fresh] = self.machine.const(value)
            self.fresh += 1
        return self.constants[value]

    def _weights(self) -> list[tuple[int, int]]:
        """What `share_pairs` has to know: whether a product is multiplied further, and whether an addition takes it."""
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
        """Build a product anew from its factors."""
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
        found = self.values.get(factor)
        if found is not None:
            return found
        machine = self.machine
        if factor in self.made:
            first, second = self.made[factor]
            found = machine.mul(self.factor(first), self.factor(second))
        elif factor in self.inverse:
            found = machine.div(machine.const(1.0), self.built_product(self.inverse[factor]))
        else:
            return self.value(factor)
        self.values[factor] = found
        return found


def merge_constants(rows: Sequence[Row], found: dict[int, Monomial], fresh: int) -> dict[int, tuple[int, int]]:
    """Multiply the constants of each product, in place, but for those that stay with the factor they come with.

    exp(x) that is nearly always multiplied by 1.25 becomes one new factor 1.25*exp(x), where the constants of the other
    factors make every product another one. Returns new factor: (constant, factor), numbered from `fresh`.
    """
    present = dict.fromkeys(row for _, factors in found.values() for row, _ in factors)
    values = {row: abs(value) for row in present if (value := collected(rows, row)) is not None}
    numbers: dict[tuple[int, int], int] = {}
    together = set(_companions(found, values))
    for root, (coefficient, factors) in found.items():
        exponents, found[root] = dict(factors), (coefficient, tuple(pair for pair in factors if pair[0] not in values))
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
                found[root] = math.copysign(math.prod(left), coefficient), tuple(rest)
    return {number: pair for pair, number in numbers.items()}


def _constant_pairs(factors: Factors, values: dict[int, float]) -> list[tuple[int, int]]:
    """Constants that are no powers of two with each of the other factors."""
    constants = [row for row, exponent in factors if exponent == 1 and not is_power_of_two(values.get(row, 1.0))]
    return [
        (constant, row) for constant in constants for row, exponent in factors if exponent == 1 and row not in values
    ]


def _companions(found: dict[int, Monomial], values: dict[int, float]) -> list[tuple[int, int]]:
    """Pairs of a constant and a factor that comes with it nearly always, in products of many different constants."""
    total: Counter[int] = Counter()
    coefficients: dict[tuple[int, int], list[float]] = {}
    for product, factors in found.values():
        total.update([factor for factor, _ in factors])
        for pair in _constant_pairs(factors, values):
            coefficients.setdefault(pair, []).append(product)
    return [
        pair
        for pair, products in coefficients.items()
        if len(products) >= FEWEST_TOGETHER
        and len(products) >= MOSTLY * total[pair[1]]
        and len(set(products)) >= len(products) / 2
    ]

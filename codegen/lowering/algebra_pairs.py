"""Compute the common parts of products and sums once, the most profitable pair first.

This is the extraction of common divisors of two literals of logic synthesis (Brayton and McMullen), and of Breuer's
grouping of subexpressions. Equal savings are decided by the numbers of the factors: the result is always the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import TypeAlias

from codegen.ir.machine_rows import Reference
from codegen.lowering.algebra_rows import Rebuilder, inner_rows
from codegen.lowering.lower import Lowered

Product: TypeAlias = dict[int, int]  # factor: how often
Signs: TypeAlias = dict[int, int]  # term: 1 or -1
Pair: TypeAlias = tuple[int, int]

WIDEST = 8  # of the factors of a longer product, only neighbours are tried as pairs


def share_pairs(products: Sequence[Product], weights: Sequence[tuple[int, int]], fresh: int) -> dict[int, Pair]:
    """Replace pairs of factors that several products share by new factors, in place; return new factor: pair.

    New factors are numbered from `fresh`. `weights[k]` = (further factors of product k, operations that sharing all of
    it saves): 0 where its last multiplication goes into a fused multiply-add.

    >>> products = [{0: 1, 1: 1, 2: 1}, {1: 1, 2: 1, 3: 1}]
    >>> share_pairs(products, [(0, 1), (0, 1)], 10), products
    ({10: (1, 2)}, [{0: 1, 10: 1}, {3: 1, 10: 1}])
    """
    return _PairSharing(products, weights, fresh).run()


def share_signed_pairs(sums: Sequence[Signs], fresh: int) -> dict[int, Pair]:
    """The same for sums: row: sign. The pair (a, b) stands for a + b, (a, ~b) for a - b.

    >>> sums = [{0: 1, 1: 1, 2: 1}, {1: -1, 2: -1, 3: 1}]
    >>> share_signed_pairs(sums, 10), sums
    ({10: (1, 2)}, [{0: 1, 10: 1}, {3: 1, 10: -1}])
    """
    return _SignedSharing(sums, [(0, 1)] * len(sums), fresh).run()


class _PairSharing:
    def __init__(self, products: Sequence[Product], weights: Sequence[tuple[int, int]], fresh: int) -> None:
        self.products, self.weights, self.fresh = products, weights, fresh
        self.holders: dict[Pair, list[int]] = {}
        self.heap: list[tuple[int, Pair]] = []
        self.shared: dict[int, Pair] = {}

    def run(self) -> dict[int, Pair]:
        """Take the best pair until none saves an operation."""
        for number, product in enumerate(self.products):
            for pair in self.pairs(product):
                self.holders.setdefault(pair, []).append(number)
        for pair, holders in self.holders.items():
            self.propose(pair, len(holders))
        while self.heap:
            bound, pair = heapq.heappop(self.heap)
            numbers = dict.fromkeys(self.holders[pair])
            holders = [number for number in numbers if self.times(self.products[number], pair)]
            gain = sum([self.saving(number, pair) for number in holders])
            if gain < -bound:
                self.propose(pair, gain)
            elif gain > 1:
                self.take(pair, holders)
        return self.shared

    def propose(self, pair: Pair, gain: int) -> None:
        if gain > 1:
            heapq.heappush(self.heap, (-gain, pair))

    def take(self, pair: Pair, holders: list[int]) -> None:
        """Replace the pair by a new factor."""
        new, self.fresh = self.fresh, self.fresh + 1
        self.shared[new] = pair
        touched: dict[Pair, list[int]] = {}
        for number in holders:
            product = self.products[number]
            self.replace(product, pair, new)
            for other in self.pairs(product):
                if new in other or ~new in other:
                    touched.setdefault(other, []).append(number)
        for other, numbers in touched.items():
            self.holders[other] = numbers
            self.propose(other, len(numbers))

    def saving(self, number: int, pair: Pair) -> int:
        """Return the operations that the product saves when the pair is computed."""
        product = self.products[number]
        others, last = self.weights[number]
        whole = sum(map(abs, product.values())) == 2 and not others
        return last if whole else self.times(product, pair)

    def times(self, product: Product, pair: Pair) -> int:
        first, second = pair
        if first == second:
            return product.get(first, 0) // 2
        return min(product.get(first, 0), product.get(second, 0))

    def replace(self, product: Product, pair: Pair, new: int) -> None:
        times = self.times(product, pair)
        for factor in pair:
            product[factor] -= times
            if not product[factor]:
                del product[factor]
        product[new] = times

    def pairs(self, product: Product) -> list[Pair]:
        squares = [(factor, factor) for factor in sorted(product) if product[factor] > 1]
        return _neighbours(product) + squares


class _SignedSharing(_PairSharing):
    def times(self, product: Signs, pair: Pair) -> int:
        first, second = pair[0], max(pair[1], ~pair[1])
        together = product.get(first, 0) * product.get(second, 0)
        return int(together == (1 if pair[1] >= 0 else -1))

    def replace(self, product: Signs, pair: Pair, new: int) -> None:
        sign = product.pop(pair[0])
        del product[max(pair[1], ~pair[1])]
        product[new] = sign

    def pairs(self, product: Signs) -> list[Pair]:
        return [(left, right if product[left] == product[right] else ~right) for left, right in _neighbours(product)]


def _neighbours(product: Product) -> list[Pair]:
    """Return all pairs of different factors; of a long product, neighbours only."""
    factors = sorted(product)
    return list(pairwise(factors)) if len(factors) > WIDEST else list(combinations(factors, 2))


SUMS = ("add", "sub", "neg")


def share_sums(lowered: Lowered) -> Lowered:
    """Return the program with a + b computed once for all sums and differences that have it.

    >>> rows = [("input", 0), ("input", 1), ("input", 2), ("add", 0, 1), ("add", 3, 2), ("sub", 0, 2), ("sub", 5, 1)]
    >>> rows += [("neg", 1), ("sub", 7, 2)]
    >>> written = Lowered(rows, [(0, 0, 4), (0, 1, 8)], 9, 0, 0)
    >>> sorted(written.count().items()), sorted(share_sums(written).count().items())
    ([('add', 2), ('neg', 1), ('sub', 1)], [('add', 2), ('neg', 1)])
    """
    return _Subsums(lowered).finish()


class _Subsums(Rebuilder):
    """Rebuilds the sums that share a part; the others stay unchanged."""

    def __init__(self, lowered: Lowered) -> None:
        super().__init__(lowered)
        self.inner = inner_rows(lowered, lambda index: self.rows[index][0] in SUMS)
        sums = [index for index, uses in enumerate(self.uses) if uses and self.rows[index][0] in SUMS]
        roots = [index for index in sums if not self.inner[index]]
        self.sums = {root: terms for root in roots if (terms := self.terms(root)) is not None}
        self.fresh = len(self.rows)
        self.shared = share_signed_pairs(list(self.sums.values()), self.fresh)

    def terms(self, root: int) -> Signs | None:
        """Return the terms of a sum with their signs, None where one occurs twice."""
        signs: Signs = {}
        stack = [(root, 1)]
        while stack:
            index, sign = stack.pop()
            code, *parts = self.rows[index]
            if index != root and not self.inner[index]:
                if index in signs:
                    return None
                signs[index] = sign
            else:
                stack.append((parts[0], -sign if code == "neg" else sign))
                if code != "neg":
                    stack.append((parts[1], sign if code == "add" else -sign))
        return signs

    def make(self, index: int) -> Reference:
        """Build a sum from its parts, if it has any in common with another."""
        terms = self.sums.get(index, {})
        if not any(term >= self.fresh for term in terms):
            return super().make(index)
        self.build([term for term in terms if term >= self.fresh])
        return self.total([(term, terms[term]) for term in sorted(terms)])

    def build(self, parts: list[int]) -> None:
        """Build common parts and the parts that they consist of, in the order of their numbers."""
        needed = set(parts)
        stack = list(parts)
        while stack:
            operands = {max(part, ~part) for part in self.shared[stack.pop()]}
            fresh = [part for part in operands if part >= self.fresh and part not in needed]
            needed.update(fresh)
            stack += fresh
        for part in sorted(needed):
            if part not in self.values:
                first, second = self.shared[part]
                self.values[part] = self.total([(first, 1), (max(second, ~second), 1 if second >= 0 else -1)])

    def total(self, terms: list[tuple[int, int]]) -> Reference:
        """Add values: first a positive one that is no product of single use, which a multiply-add takes."""
        terms = sorted(terms, key=lambda term: (term[1] < 0, self.is_product(term[0])))
        values = [self.value(term) if sign > 0 else ~self.value(term) for term, sign in terms]
        total = values[0]
        for value in values[1:]:
            total = self.machine.add(total, value)
        return total

    def is_product(self, term: int) -> bool:
        return term < self.fresh and self.rows[term][0] == "mul" and self.uses[term] == 1

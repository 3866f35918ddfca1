"""Pairs of factors that several products have in common, found greedily: the pair that saves most comes first.

This is the extraction of common divisors of two literals of logic synthesis (Brayton and McMullen), and of Breuer's
grouping of subexpressions. Equal savings are decided by the numbers of the factors: the result is always the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

Product: TypeAlias = dict[int, int]  # factor: how often
Pair: TypeAlias = tuple[int, int]

WIDEST = 8  # of the factors of a longer product, only neighbours are tried as pairs


def share_pairs(products: Sequence[Product], weights: Sequence[tuple[int, int]], fresh: int) -> dict[int, Pair]:
    """Replace pairs of factors that several products share by new factors, in place; return new factor: pair.

    New factors are numbered from `fresh`. `weights[k]` = (other factors that product k has besides, operations that
    sharing the whole of it saves): 0 where its last multiplication goes into a fused multiply-add.

    >>> products = [{0: 1, 1: 1, 2: 1}, {1: 1, 2: 1, 3: 1}]
    >>> share_pairs(products, [(0, 1), (0, 1)], 10), products
    ({10: (1, 2)}, [{0: 1, 10: 1}, {3: 1, 10: 1}])
    """
    return _Sharing(products, weights, fresh).run()


class _Sharing:
    def __init__(self, products: Sequence[Product], weights: Sequence[tuple[int, int]], fresh: int) -> None:
        self.products, self.weights, self.fresh = products, weights, fresh
        self.holders: dict[Pair, list[int]] = {}
        self.heap: list[tuple[int, Pair]] = []
        self.made: dict[int, Pair] = {}

    def run(self) -> dict[int, Pair]:
        """Take the best pair until none saves an operation."""
        for number, product in enumerate(self.products):
            for pair in _pairs(product):
                self.holders.setdefault(pair, []).append(number)
        for pair, holders in self.holders.items():
            if len(holders) > 1:
                heapq.heappush(self.heap, (-len(holders), pair))
        while self.heap:
            bound, pair = heapq.heappop(self.heap)
            holders = [number for number in dict.fromkeys(self.holders[pair]) if self.has(number, pair)]
            gain = sum([self.saving(number, pair) for number in holders])
            if gain > 1 and gain < -bound:
                heapq.heappush(self.heap, (-gain, pair))
            elif gain > 1:
                self.take(pair, holders)
        return self.made

    def has(self, number: int, pair: Pair) -> bool:
        product = self.products[number]
        first, second = pair
        return product.get(first, 0) > (first == second) and second in product

    def saving(self, number: int, pair: Pair) -> int:
        """Multiplications that the product saves when the pair is at hand."""
        product = self.products[number]
        others, last = self.weights[number]
        times = product[pair[0]] // 2 if pair[0] == pair[1] else min(product[pair[0]], product[pair[1]])
        whole = sum(product.values()) == 2 and not others
        return last if whole else times

    def take(self, pair: Pair, holders: list[int]) -> None:
        """Put a new factor in the place of the pair."""
        new, self.fresh = self.fresh, self.fresh + 1
        self.made[new] = pair
        first, second = pair
        touched: dict[Pair, list[int]] = {}
        for number in holders:
            product = self.products[number]
            times = product[first] // 2 if first == second else min(product[first], product[second])
            for factor in pair:
                product[factor] -= times
                if not product[factor]:
                    del product[factor]
            product[new] = times
            for other in _pairs(product):
                if new in other:
                    touched.setdefault(other, []).append(number)
        for other, numbers in touched.items():
            self.holders[other] = numbers
            if len(numbers) > 1:
                heapq.heappush(self.heap, (-len(numbers), other))


def _pairs(product: Product) -> list[Pair]:
    """Pairs of factors, ascending."""
    factors = sorted(product)
    squares = [(factor, factor) for factor in factors if product[factor] > 1]
    if len(factors) > WIDEST:
        return [*pairwise(factors), *squares]
    return [(left, right) for k, left in enumerate(factors) for right in factors[k + 1 :]] + squares

"""Subsums: what several sums have in common is added once."""

from __future__ import annotations

from codegen.ir.machine_rows import Reference, operands_of
from codegen.lowering.algebra_pairs import Signs, share_signed_pairs
from codegen.lowering.algebra_rows import Rebuilder
from codegen.lowering.lower import Lowered

SUMS = ("add", "sub", "neg")


def share_sums(lowered: Lowered) -> Lowered:
    """Return the program with a + b computed once for all sums, and differences, that have it.

    >>> rows = [("input", 0), ("input", 1), ("input", 2), ("add", 0, 1), ("add", 3, 2), ("sub", 0, 2), ("sub", 5, 1)]
    >>> rows += [("neg", 1), ("sub", 7, 2)]
    >>> written = Lowered(rows, [(0, 0, 4), (0, 1, 8)], 9, 0, 0)
    >>> sorted(written.count().items()), sorted(share_sums(written).count().items())
    ([('add', 2), ('neg', 1), ('sub', 1)], [('add', 2), ('neg', 1)])
    """
    return _Subsums(lowered).finish()


class _Subsums(Rebuilder):
    """Rebuilds the sums that share a part; the others stay as they are."""

    def __init__(self, lowered: Lowered) -> None:
        super().__init__(lowered)
        self.inner = self._inner()
        roots = [
            index for index, uses in enumerate(self.uses)
            if uses and self.rows[index][0] in SUMS and not self.inner[index]
        ]  # fmt: skip
        terms = [self.terms(root) for root in roots]
        self.sums = {root: found for root, found in zip(roots, terms, strict=True) if found is not None}
        self.fresh = len(self.rows)
        self.made = share_signed_pairs(list(self.sums.values()), self.fresh)

    def _inner(self) -> bytearray:
        """Rows that are parts of one sum only."""
        inner = bytearray(len(self.rows))
        for index, row in enumerate(self.rows):
            if self.uses[index] and row[0] in SUMS:
                for part in operands_of(row):
                    inner[part] = self.uses[part] == 1 and self.rows[part][0] in SUMS
        return inner

    def terms(self, root: int) -> Signs | None:
        """Terms of a sum with their signs, None where one occurs twice."""
        found: Signs = {}
        stack = [(root, 1)]
        while stack:
            index, sign = stack.pop()
            code, *parts = self.rows[index]
            if index != root and not self.inner[index]:
                if index in found:
                    return None
                found[index] = sign
            else:
                stack.append((parts[0], -sign if code == "neg" else sign))
                if code != "neg":
                    stack.append((parts[1], sign if code == "add" else -sign))
        return found

    def make(self, index: int) -> Reference:
        """Build a sum from its parts, if it has any in common with another."""
        terms = self.sums.get(index, {})
        if not any(term >= self.fresh for term in terms):
            return super().make(index)
        self.build([term for term in terms if term >= self.fresh])
        return self.total([(term, terms[term]) for term in sorted(terms)])

    def build(self, wanted: list[int]) -> None:
        """Build common parts and the parts that they are made of, first made first."""
        needed = set(wanted)
        stack = list(wanted)
        while stack:
            parts = {max(part, ~part) for part in self.made[stack.pop()]}
            fresh = [part for part in parts if part >= self.fresh and part not in needed]
            needed.update(fresh)
            stack += fresh
        for part in sorted(needed):
            if part not in self.values:
                first, second = self.made[part]
                self.values[part] = self.total([(first, 1), (max(second, ~second), 1 if second >= 0 else -1)])

    def total(self, terms: list[tuple[int, int]]) -> Reference:
        """Add values: first a positive one, and none that goes into a fused multiply-add."""
        terms = sorted(terms, key=lambda term: (term[1] < 0, self.is_product(term[0])))
        values = [self.value(term) if sign > 0 else ~self.value(term) for term, sign in terms]
        total = values[0]
        for value in values[1:]:
            total = self.machine.add(total, value)
        return total

    def is_product(self, term: int) -> bool:
        """Whether a term is a product of single use."""
        return term < self.fresh and self.rows[term][0] == "mul" and self.uses[term] == 1

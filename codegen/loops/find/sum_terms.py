"""Collect the terms of sums, in whatever order they were added.

Ragged sums have terms alike but many lengths, as over the neighbours in a network, or are long. Written out, hardly
two of them are alike, or the body of their loop is long. So they are set apart: loops over all their terms add each
term to its sum, and the sums are leaves for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from codegen.limits import check
from codegen.loops.find.flat_rows import Flags
from codegen.loops.find.row_classes import Classes
from codegen.loops.loop import Nodes
from codegen.records import dataclass

MEMBERS = 8  # nodes of a class that make a loop
WIDE = 8  # terms for each of such sums, from which on a loop over the terms has all sums in its body
LONG = 128  # terms of a sum
SUMS = 16  # that make a family
SHAPES = 4  # different sums in a family
DEAR = 4.0  # cost of a term, in pairs of + and *, so that a single one is set apart with the others
USUAL = 0.6  # part of the terms in sums of one shape, from which on these are a loop, and the others its edges


def ragged_sums(classes: Classes) -> Nodes:
    """Return the sums that are better added up term by term, by loops over all terms of a class."""
    totals, terms = terms_of_sums(classes)
    kinds = classes.of[terms]
    operation = np.array([head is not None for head in classes.heads])
    chosen = operation[classes.of[totals]] & operation[kinds]  # those of the first kind are not yet set apart
    operations = np.bincount(totals[chosen], minlength=len(classes.of))
    everything = np.bincount(totals, minlength=len(classes.of))
    several = chosen & ((operations > 1) | (operations == everything))[totals]  # operations, or nothing else
    family = _families(totals[several], kinds[several], len(classes.of), len(classes.heads))
    order = np.argsort(family, kind="stable")
    parts = np.split(np.nonzero(several)[0][order], np.nonzero(np.diff(family[order]))[0] + 1) if len(order) else []
    ragged = [part for part in parts if _set_apart(totals[part], kinds[part], classes)]
    if not ragged:
        return np.empty(0, dtype=np.int64)
    dear = np.zeros(len(classes.heads), dtype=bool)
    dear[kinds[np.concatenate(ragged)]] = True
    dear &= np.array(classes.weights) >= DEAR
    alone = chosen & ~several & dear[kinds]  # sums with one such term beside terms that are no operations
    return np.unique(totals[np.concatenate([*ragged, np.nonzero(alone)[0]])])


def _set_apart(totals: Nodes, kinds: Nodes, classes: Classes) -> bool:
    """Whether the sums of a family are long, or of many shapes, none of which has most terms."""
    number, terms = len(np.unique(totals)), len(totals)
    if number >= MEMBERS and terms >= LONG * number and terms < WIDE * number**2:
        return True
    _, counts = np.unique(classes.of[totals], return_counts=True)
    many = len(counts) >= max(SHAPES, 2 * len(np.unique(kinds))) and number >= SUMS
    return many and int(counts.max()) < USUAL * terms


def _families(totals: Nodes, kinds: Nodes, sums: int, classes: int) -> Nodes:
    """Return a number for each term that is the same for sums with terms of one class."""
    label_of_class, label_of_sum = np.arange(classes), np.full(sums, classes)
    while True:
        check("comparing sums")
        np.minimum.at(label_of_sum, totals, label_of_class[kinds])
        lower = label_of_class.copy()
        np.minimum.at(lower, kinds, label_of_sum[totals])
        lower = np.minimum(lower, lower[lower])  # halves the distance to the lowest label
        if np.array_equal(lower, label_of_class):
            break
        label_of_class = lower
    labels: Nodes = label_of_class[kinds]
    return labels


def terms_of_sums(classes: Classes) -> tuple[Nodes, Nodes]:
    """Return the terms of all sums that are not part of another one, each with its sum; zeros are left out."""
    is_sum = np.array([head is sp.Add for head in classes.heads])
    is_sum[list(classes.set_apart)] = True
    rows = np.nonzero((classes.of >= 0) & is_sum[classes.of])[0]
    ends = classes.start[rows + 1]
    counts = ends - classes.start[rows]
    owners = np.repeat(rows, counts)
    parts = classes.flat[np.arange(int(counts.sum())) + np.repeat(ends - np.cumsum(counts), counts)]
    is_sum[list(classes.set_apart)] = False
    inner = _inner(classes, owners, parts, is_sum)
    top = np.arange(len(classes.of))
    top[parts[inner]] = owners[inner]
    while not np.array_equal(above := top[top], top):
        top = above
    zero = np.zeros(len(classes.of), dtype=bool)
    zero[list(classes.zeros)] = True
    kept = ~inner & ~zero[parts]
    return top[owners[kept]], parts[kept]


def _inner(classes: Classes, owners: Nodes, parts: Nodes, is_sum: Flags) -> Flags:
    """Return flags of the operands that are sums, used nowhere else; x + 1 is one term.

    But not in (1 + x) + y, where x and y are alike: this is a sum that begins with 1.
    """
    fixed = np.array(classes.constant)[classes.of[parts]]
    fixed[np.isin(parts, list(classes.zeros))] = False
    whole = np.zeros(len(classes.of), dtype=bool)
    whole[owners[fixed]] = True
    inner: Flags = is_sum[classes.of[parts]] & (classes.uses[parts] == 1)
    doubtful = inner & whole[parts]
    inner &= ~doubtful
    doubtful &= classes.start[owners + 1] - classes.start[owners] == 2
    at = np.nonzero(doubtful)[0]
    first = classes.start[owners[at]]
    sibling = classes.flat[first] + classes.flat[first + 1] - parts[at]
    term = classes.flat[classes.start[parts[at]] + 1]
    inner[at] = classes.of[term] == classes.of[sibling]
    return inner


SAMPLE = 200  # rows of a term that are searched for inputs


@dataclass(frozen=True, eq=False)
class Group:
    """Terms of one class in a sum."""

    total: int
    kind: int
    terms: Nodes


def terms_in(classes: Classes, total: int) -> tuple[list[int], list[int]]:
    """Return the terms of a sum, and the sums inside it.

    Inner sums are used nowhere else, and few of their class; or all, where that leaves fewer classes of terms: sums
    of several lengths, over neighbours, are one sum over all pairs.
    """
    terms, inner = flattened(classes, total, deep=False)
    kinds = {int(classes.of[term]) for term in terms}
    if len(kinds) > 1 and any(classes.heads[kind] is sp.Add for kind in kinds):
        deep, more = flattened(classes, total, deep=True)
        if len({int(classes.of[term]) for term in deep if term not in classes.zeros}) < len(kinds):
            return deep, more
    return terms, inner


def flattened(classes: Classes, total: int, *, deep: bool) -> tuple[list[int], list[int]]:
    """Return the terms of a sum, and the sums inside it; all if `deep`, except sums with constants."""
    of, heads, members, uses = classes.of, classes.heads, classes.members, classes.uses
    stack, terms, inner = classes.parts(total), [], []
    while stack:
        node = stack.pop()
        kind = of[node]
        if heads[kind] is sp.Add and uses[node] == 1 and (members[kind] < MEMBERS or (deep and _adds(classes, node))):
            inner.append(node)
            stack += classes.parts(node)
        else:
            terms.append(node)
    return terms, inner


def _adds(classes: Classes, node: int) -> bool:
    """Whether a sum has no constants but 0."""
    return all(part in classes.zeros or not classes.constant[classes.of[part]] for part in classes.parts(node))


def companions(classes: Classes, groups: Sequence[Group]) -> list[list[Group]]:
    """Put groups together that have as many terms, and whose terms (8 samples) read the same inputs."""
    sampled: list[tuple[list[set[int]], list[Group]]] = []
    for group in sorted(groups, key=lambda group: (len(group.terms), group.total, group.kind)):
        check("comparing sums")
        places = np.linspace(0, len(group.terms) - 1, 8).astype(int)
        samples = [_reads_of(classes, term) for term in group.terms[places].tolist()]
        common = set.intersection(*samples)
        samples = [sample - common for sample in samples]
        for others, together in sampled:
            same = len(together[0].terms) == len(group.terms)
            if same and all(sample & other for sample, other in zip(samples, others, strict=True)):
                together.append(group)
                break
        else:
            sampled.append((samples, [group]))
    return [together for _, together in sampled]


def _reads_of(classes: Classes, node: int) -> set[int]:
    """Return the inputs that a node reads; of a large node, some of them."""
    stack, seen, leaves = [node], set[int](), set[int]()
    while stack and len(seen) < SAMPLE:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        kind = classes.of[node]
        if classes.heads[kind] is not None:
            stack += classes.parts(node)
        elif not classes.constant[kind]:
            leaves.add(node)
    return leaves

"""What a sum is made of: its terms, whatever the order in which they were added up, and which of them go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from codegen.loops.find.ragged_sums import MEMBERS
from codegen.loops.find.row_classes import Classes
from codegen.loops.loop import Nodes

SAMPLES = 8  # terms of a class that are looked at, to see what they read
SAMPLE = 200  # rows of such a term


@dataclass(frozen=True, eq=False)
class Group:
    """Terms of one class in a sum."""

    total: int
    kind: int
    terms: Nodes


def terms_in(classes: Classes, total: int) -> tuple[list[int], list[int]]:
    """Return the terms of a sum, and the sums inside it.

    Those are used nowhere else, and few of their class; or any, where that leaves fewer classes of terms: sums
    of several lengths, over the neighbours of this and that, are one sum over all pairs.
    """
    terms, inner = flattened(classes, total, deep=False)
    kinds = {int(classes.of[term]) for term in terms}
    if len(kinds) > 1 and any(classes.heads[kind] is sp.Add for kind in kinds):
        deep, more = flattened(classes, total, deep=True)
        if len({int(classes.of[term]) for term in deep if term not in classes.zeros}) < len(kinds):
            return deep, more
    return terms, inner


def flattened(classes: Classes, total: int, *, deep: bool) -> tuple[list[int], list[int]]:
    """Return the terms of a sum, and the sums inside it, all if `deep`: but x + 1 is no sum then."""
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
    """Put groups together that have as many terms, and whose terms read the same inputs."""
    found: list[tuple[list[set[int]], list[Group]]] = []
    for group in sorted(groups, key=lambda group: (len(group.terms), group.total, group.kind)):
        places = np.linspace(0, len(group.terms) - 1, SAMPLES).astype(int)
        samples = [_reads_of(classes, term) for term in group.terms[places].tolist()]
        common = set.intersection(*samples)
        samples = [sample - common for sample in samples]
        for others, together in found:
            same = len(together[0].terms) == len(group.terms)
            if same and all(one & other for one, other in zip(samples, others, strict=True)):
                together.append(group)
                break
        else:
            found.append((samples, [group]))
    return [together for _, together in found]


def _reads_of(classes: Classes, node: int) -> set[int]:
    """Return inputs that a node reads, of a large one some."""
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

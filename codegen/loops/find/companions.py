"""Companions: loop fusion of values. Loops over the same repetitions become one, where none waits for the other.

So the sine and the cosine of the same angles are computed together, and a sum over what a loop computes is added up
while it is computed. Between nodes, each of which is computed once, it is known exactly what waits for what; whether a
body is worth a nest, and what `loops` tells people, depends on it. Loops that stand between buffers, as derivatives do,
are fused by `codegen.loops.optimise.fusion`, which takes all that a nest stores in a buffer, round by round, for one
thing.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.loops.find.anti_unification import Entry, Template, is_uniform
from codegen.loops.find.row_classes import Classes


def fused(templates: Sequence[Template], classes: Classes) -> list[Template]:
    """Return the templates, those that are read first, with companions in one."""
    found: list[Template] = []
    by_column: dict[tuple[int, int, int, int], list[Template]] = {}
    for template in templates:
        host = next(
            (host for host in _candidates(template, classes, by_column) if _fits(host, template, classes)), None
        )
        if host is None:
            found.append(template)
            host = template
        else:
            _absorb(template, host, classes)
        for entry in _columns(host, classes):
            known = by_column.setdefault(_signature(entry), [])
            if host not in known:
                known.append(host)
    return found


def _columns(template: Template, classes: Classes) -> list[Entry]:
    """What a loop reads that is not the same in all repetitions, and what it stores."""
    slots = template.with_role("slot")
    varied = [entry for entry in slots if not classes.constant[entry.kind] and not is_uniform(entry.nodes)]
    return varied + template.stores


def _signature(entry: Entry) -> tuple[int, int, int, int]:
    return entry.kind, len(entry.nodes), int(entry.nodes[0]), int(entry.nodes[-1])


def _candidates(
    template: Template, classes: Classes, by_column: dict[tuple[int, int, int, int], list[Template]]
) -> list[Template]:
    """Loops that read or store a column that a loop reads, in the same order."""
    found = []
    for entry in template.with_role("slot"):
        for host in by_column.get(_signature(entry), []):
            if host not in found and host.known(entry.kind, entry.nodes) is not None:
                found.append(host)
    return found


def _fits(host: Template, template: Template, classes: Classes) -> bool:
    """Whether two loops can be one: all that is read is there before any of the results is.

    Sums that are added to are there when all loops have run that add to them; so these are of one class.
    """
    read = [entry for entry in template.with_role("slot") if host.known(entry.kind, entry.nodes) is None]
    highest = max([host.highest, *(classes.keys[entry.kind] for entry in read)])
    added = {int(classes.of[targets[0]]) for _, targets in (*host.adds, *template.adds)}
    return len(added) < 2 and highest < min(host.results(classes), template.results(classes))


def _absorb(template: Template, host: Template, classes: Classes) -> None:
    """Move a loop into another one: what that one has already, it does not compute again."""
    moved: dict[Entry, Entry] = {}
    roots = [*(entry for entry, _ in (*template.sums, *template.adds)), *template.stores]
    stack = list(roots)
    while stack:
        entry = stack[-1]
        known = moved.get(entry) or host.known(entry.kind, entry.nodes)
        missing = [part for part in entry.operands if part not in moved] if known is None else []
        if missing:
            stack += missing
            continue
        stack.pop()
        moved[entry] = known or host.add(entry, tuple(moved[part] for part in entry.operands))
    host.highest = max([host.highest, *(classes.keys[entry.kind] for entry in host.with_role("slot"))])
    host.sums += [(moved[entry], node) for entry, node in template.sums]
    host.stores += [moved[entry] for entry in template.stores]
    host.adds += [(moved[entry], targets) for entry, targets in template.adds]
    host.names += template.names

"""The roles of nodes in each level, read from the steps that `symad.derivatives.level` recorded.

A node may have several roles: in reverse mode x * 1 is x, so a primal is the cotangent of another node, and a residual
of a third. Nodes of the user's function are primal to the level around it, as are those that a level wrote on the way
to a residual. Nodes written outside of all levels have no role and are primal too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, Literal, get_args

from codegen.records import dataclass
from symad.derivatives.level import Event, Kind
from symad.derivatives.linear import Linear, Term
from symad.graph.graph import Graph

RoleKind = Literal["primal", "parameter", "residual", "tangent", "cotangent"]
_ORDER: tuple[RoleKind, ...] = get_args(RoleKind)


@dataclass(frozen=True)
class Role:
    """What a node is to one level; levels are counted from the outermost, which is 1."""

    level: int
    kind: RoleKind

    def __str__(self) -> str:
        return f"{self.kind} {self.level}"

    def __lt__(self, other: Role) -> bool:
        return (self.level, _ORDER.index(self.kind)) < (other.level, _ORDER.index(other.kind))


@lru_cache(maxsize=1024)
def _role(level: int, kind: RoleKind) -> Role:
    return Role(level, kind)


@dataclass(frozen=True, eq=False)
class Way:
    """One use of a level's linear map: a pass that carries tangents or cotangents, or an elimination of all nodes.

    `values` are those of each node, `seeds` those at the start, `entries` the results of an elimination.
    """

    name: str
    kind: Kind
    linear: Linear | None
    outputs: tuple[int, ...]  # of the differentiated function
    results: tuple[int, ...]
    seeds: tuple[tuple[int, int], ...] = ()
    values: Mapping[int, Term] = field(default_factory=dict)
    entries: Mapping[tuple[int, ...], int] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What is carried: a sum of dyads needs both."""
        return ("tangent", "cotangent") if self.name == "dyadic" else (self.kind,)


@dataclass(eq=False)
class Opened:
    """One level that a transform opened: its parameters, the function it called, and its results."""

    depth: int
    transform: str
    around: Opened | None
    parameters: tuple[int, ...]
    names: tuple[str, ...]
    made: int  # the first node that is not its function's
    function: str = ""
    results: tuple[int, ...] = ()
    linears: list[Linear] = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)

    @property
    def reverse(self) -> bool:
        """Whether cotangents were carried, so that residuals wait for a sweep in the other direction."""
        return any(way.kind == "cotangent" for way in self.ways)

    def products(self) -> list[int]:
        """Return the nodes that the level hands on: its function's results, residuals, tangents and cotangents."""
        coefficients = [node for linear in self.linears for node in kept_by(linear)]
        return [*self.results, *coefficients, *(node for way in self.ways for node in way.results)]


def kept_by(linear: Linear) -> list[int]:
    """Return the residuals of a linear map, coefficients and guards, once each in the order of the rows."""
    edges = (edge for _, row in linear.rows for edge in row)
    return list(dict.fromkeys(node for edge in edges for node in (edge[0], edge[2]) if node is not None))


class History:
    """The levels that were opened on one graph, and the roles of its nodes."""

    def __init__(self, graph: Graph, events: Iterable[Event]) -> None:
        self.graph = graph
        self.finished: list[Opened] = []  # in the order in which their functions returned
        self._roles: dict[int, tuple[Role, ...]] = {}
        self._derived: set[int] = set()  # nodes that no user wrote
        self._tried: set[Role] = set()  # roles in ways that were tried and not taken
        self._taken: set[Role] = set()
        self._open: list[Opened] = []
        self._residuals: list[int] = []  # of an elimination that is not finished yet
        self._by_parameters: dict[tuple[int, ...], Opened] = {}
        for event in events:
            if event.graph is graph:
                getattr(self, f"_{event.step}")(event, *event.detail)

    def roles(self, node: int) -> tuple[Role, ...]:
        """Return the roles of a node, sorted; none for nodes written outside of all levels."""
        all_roles = tuple(sorted(self._roles.get(node, ())))
        return tuple(role for role in all_roles if role in self._taken or role not in self._tried) or all_roles

    def keep(self, level: Opened, taken: list[Way]) -> None:
        """Forget the ways of a level that were not taken, with their maps and roles."""
        for way in level.ways:
            roles = self._taken if way in taken else self._tried
            roles.update(_role(level.depth, kind) for kind in way.kinds)
        outputs = {way.outputs for way in taken if way.linear is not None}
        if level.ways:
            level.linears = [linear for linear in level.linears if linear.outputs in outputs]
        level.ways = taken

    def is_written(self, node: int) -> bool:
        """Whether a user's function wrote a node, and not a derivative."""
        return node not in self._derived

    def share_roles(self, there: Sequence[int]) -> None:
        """Give nodes without roles those of equal nodes: merging paths writes nodes anew, without aliases."""
        shared: dict[int, tuple[Role, ...]] = {}
        for node, roles in self._roles.items():
            if self.graph.operands[node]:
                before = shared.get(there[node], ())
                shared[there[node]] = (*before, *(r for r in roles if r.kind != "parameter" and r not in before))
        for node, place in enumerate(there):
            if node not in self._roles and shared.get(place):
                self._roles[node] = shared[place]
                self._derived.add(node)

    def _opened(self, event: Event, parameters: Any, names: Sequence[str]) -> None:
        flat = tuple(parameters.flat)
        around = self._open[-1] if self._open else None
        level = Opened(event.level, event.transform, around, flat, tuple(names), event.end)
        self._by_parameters[flat] = level
        self._open.append(level)
        self._mark(flat, event.level, "parameter")

    def _called(self, event: Event, name: str, result: Any) -> None:
        level = self._open[-1]
        level.function, level.results, level.made = name, tuple(result.flat), event.end
        self.finished.append(level)
        self._mark_rest(range(event.start, event.end), event.level, "primal")

    def _closed(self, event: Event) -> None:
        level = self._open.pop()
        if level.ways:  # the rest was made from carried nodes: factors, sums, selects
            self._mark_region(level.made, event.end, level.depth, level.ways[-1].kind, ())

    def _linearized(self, event: Event, linear: Linear) -> None:
        level = self._by_parameters.get(linear.inputs)
        if level is None:
            return  # a rule's own derivative, a way to the residuals of the level that asks for it
        if all(known.outputs != linear.outputs for known in level.linears):
            level.linears.append(linear)
        self._mark(kept_by(linear), event.level, "residual")
        self._mark_rest(range(event.start, event.end), event.level, "primal")
        self._derived.update(range(event.start, event.end))

    def _carried(
        self,
        event: Event,
        linear: Linear,
        values: dict[int, Term],
        carried: list[int | None],
        seeds: Sequence[int | None],
    ) -> None:
        level = self._by_parameters.get(linear.outputs if linear.transposed else linear.inputs)
        if level is None and linear.level:
            return
        kind: Kind = linear.kind
        self._mark((value for value, _ in values.values()), linear.level, kind)
        self._mark_region(event.start, event.end, linear.level, kind, ())
        if level is not None and linear.level:
            began = tuple((node, seed) for node, seed in zip(linear.inputs, seeds, strict=True) if seed is not None)
            results = tuple(node for node in carried if node is not None)
            name = "pullback" if linear.transposed else "pushforward"
            outputs = linear.inputs if linear.transposed else linear.outputs
            level.ways.append(Way(name, kind, linear, outputs, results, began, values))

    def _residual(self, event: Event, node: int) -> None:
        self._residuals.append(node)

    def _eliminated(
        self, event: Event, linear: Linear | None, name: str, kind: Kind, eliminated: Any, *more: Any
    ) -> None:
        residuals = [node for node in self._residuals if node >= event.start] if self._residuals else []
        level = self._owner(event, linear)
        if level is None or (name == "gradients" and linear and linear.outputs not in (level.results, ())):
            return  # a rule's own derivative; its residuals are asked for again by the level
        self._residuals.clear()
        primal: Iterable[int] = ()
        if name == "taylor":
            primal, residuals = eliminated, more[0]
            eliminated = {node: dict(enumerate(series[1:])) for node, series in eliminated.items()}
        if name == "second forward":
            residuals = [node for local in more[0].values() for node in local.values() if node >= event.start]
        self._mark(residuals, level.depth, "residual")
        carried = [term[0] for term in more[0].values()] if name in ("edge", "dyadic") else []
        results = tuple(_values(eliminated))
        self._mark([*carried, *results], level.depth, kind)
        self._mark_region(event.start, event.end, level.depth, kind, [*residuals, *primal])
        if name != "gradients":
            entries = eliminated if results and name in ("fwd", "rev", "cross-country", "edge", "dyadic") else {}
            outputs = tuple(more[1]) if linear is None else linear.outputs
            level.ways.append(Way(name, kind, linear, outputs, results, (), {}, entries))

    def _owner(self, event: Event, linear: Linear | None) -> Opened | None:
        if linear is not None:
            return self._by_parameters.get(linear.outputs if linear.transposed else linear.inputs)
        return self._open[-1] if self._open and self._open[-1].depth == event.level else None

    def _mark_region(self, start: int, end: int, level: int, kind: Kind, residuals: Sequence[int]) -> None:
        """Give a role to nodes of a pass that have none: primal on the way to residuals and guards, else its kind."""
        graph, roles = self.graph, self._roles
        stack = [node for node in residuals if node >= start]
        stack += [node for node in range(start, end) if node not in roles and graph.is_boolean(node)]
        while stack:
            node = stack.pop()
            if node not in roles:
                roles[node] = (_role(level, "primal"),)
            elif node in graph.atoms or roles[node] != (_role(level, "residual"),):
                continue
            stack += [operand for operand in graph.operands[node] if operand >= start and operand not in roles]
        self._mark_rest(range(start, end), level, kind)
        self._derived.update(range(start, end))

    def _mark_rest(self, nodes: Iterable[int], level: int, kind: RoleKind) -> None:
        marks = (_role(level, kind),)
        for node in nodes:
            self._roles.setdefault(node, marks)

    def _mark(self, nodes: Iterable[int], level: int, kind: RoleKind) -> None:
        role, roles = _role(level, kind), self._roles
        for node in nodes:
            before = roles.get(node, ())
            if role not in before:
                roles[node] = (*before, role)


def _values(eliminated: Any) -> list[int]:
    """Return the nodes in the result of an elimination: nodes, terms, or tables of them."""
    stack, nodes = [eliminated], list[int]()
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack += reversed(item.values())
        elif isinstance(item, tuple):
            nodes.append(item[0])
        elif item is not None:
            nodes.append(item)
    return nodes

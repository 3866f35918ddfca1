"""A rolled program as pieces for second derivatives: bodies over inputs whose outputs are added.

A map, or a short sum, that a region reads is written into its body, together with its tables. A long sum, or one that
many repetitions share, is an inner value z: an input of some pieces and the sum of terms of others. A region whose
repetitions read in different ways (at a boundary, say) becomes a piece for each way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import Literal, TypeVar

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.ir.copy_rows import copied, program_over
from codegen.ir.program import reachable
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.strictness import checked
from codegen.ir.tables import Places, distinct
from codegen.loops.optimise.draft import Draft, select
from codegen.loops.optimise.reaching_definitions import FEW_SLOTS, FIXED, MANY_SLOTS, ZERO, ReachingDefinitions, Size
from codegen.loops.optimise.reductions import with_outlined_sums, with_reductions
from codegen.matrices.matrix_loops import has_matrices
from codegen.matrices.product_loops import sums_of_products
from codegen.records import dataclass
from symad.derivatives.loops.activity import infinite_buffers
from symad.derivatives.loops.patterns import is_uniform, reordered, retabled, table_of, uniform
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.finite import is_finite

MOST_PIECES = 64  # of one region
MOST_INNER, MOST_INNER_PACKED = 64, 128  # a dense matrix can be taken by columns, a packed one in no other way
MOST_ROWS = 2**22  # numbers of a matrix of the slopes of many inner values
MOST_TERMS = 64  # of the sums of a product of matrices: a body has an entry for each two of them
FEW_TERMS = 8  # of those of a product with more rows and columns than one, or of a dense matrix
MOST_EXPONENTS = 8  # different constants that are exponents: each has a body of its own

Key = TypeVar("Key")
Role = Literal["active", "fixed", "inner"]


@dataclass(frozen=True, eq=False)
class Slot:
    """A leaf of a piece, and the places it reads: of the differentiated input, of fixed numbers, or of inner values."""

    node: int
    buffer: int
    places: Places
    role: Role

    def part(self, chosen: Places | None) -> Slot:
        """Return the slot in some of the repetitions, by default in all."""
        return self if chosen is None else replace(self, places=uniform(self.places[chosen]))


@dataclass(frozen=True, eq=False)
class Term:
    """A node of a piece that is added to places; `kind` is the kind of the region's result."""

    node: int
    buffer: int
    places: Places
    kind: Literal["store", "add"]

    def part(self, chosen: Places | None) -> Term:
        """Return the term in some of the repetitions, by default in all."""
        return self if chosen is None else replace(self, places=self.places[chosen])


@dataclass(frozen=True, eq=False)
class Piece:
    """A body on a graph of its own."""

    build: Builder
    count: int
    slots: list[Slot]
    terms: list[Term]
    origin: str

    @property
    def inner(self) -> list[Slot]:
        """Those slots that read inner values."""
        return [slot for slot in self.slots if slot.role == "inner"]


@dataclass(eq=False)
class RegionDraft:
    """A region under construction, on the graph of a piece: more slots, and results at places that are chosen later."""

    build: Builder
    count: int
    slots: list[tuple[int, int, Places]]
    results: list[tuple[int, Result]] = field(default_factory=list)
    origin: str = ""

    def slot(self, buffer: int, places: Places) -> int:
        """Return the leaf of a new slot."""
        node = self.build.graph.own_leaf(sp.Symbol(f"s{len(self.slots)}", real=True))
        self.slots.append((node, buffer, places))
        return node

    def result(self, node: int, buffer: int, places: Places, kind: Literal["store", "add"] = "add") -> None:
        """Add a result: the node goes to these places."""
        self.results.append((node, Result(0, buffer, table_of(places), kind)))

    def zeros(self, buffers: Sequence[Buffer], primal: Sequence[int]) -> dict[int, NDArray[np.bool_]]:
        """Return the products with constants that are 0, and in which repetitions they are 0.

        In the nodes that `primal` ones need, these constants are only factors of finite numbers.
        """
        graph, vanishing = self.build.graph, dict[int, NDArray[np.bool_]]()
        for node, buffer, places in self.slots:
            values = buffers[buffer].values
            if values is not None and (vanishes := values[places] == 0).any():
                vanishing[node] = vanishes
        for node in reachable(graph, primal) if vanishing else ():
            parts = graph.operands[node]
            for part in vanishing.keys() & set(parts):
                others = [other for other in parts if other != part]
                if graph.heads[node] is not sp.Mul or not all(is_finite(self.build, other) for other in others):
                    del vanishing[part]
        for node in range(len(graph)) if vanishing else ():
            zeros = [vanishing[part] for part in graph.operands[node] if part in vanishing]
            if zeros and graph.heads[node] is sp.Mul:
                vanishing[node] = np.logical_or.reduce(zeros)
            elif len(zeros) == len(graph.operands[node]) > 0 and graph.heads[node] is sp.Add:
                vanishing[node] = np.logical_and.reduce(zeros)
        return vanishing

    def part(self, chosen: Places) -> RegionDraft:
        """Return a region of some of the repetitions, without results."""
        slots = [(node, buffer, uniform(places[chosen])) for node, buffer, places in self.slots]
        return RegionDraft(self.build, len(chosen), slots, [], self.origin)

    def reorder(self, order: Places) -> None:
        """Put the repetitions into another order."""
        self.slots = [(node, buffer, reordered(places, order)) for node, buffer, places in self.slots]
        self.results = [(node, replace(use, table=retabled(use.table, order))) for node, use in self.results]

    def region(self) -> Region:
        """Return the region, with the slots that its results need."""
        nodes = list(dict.fromkeys(node for node, _ in self.results))
        body, used = program_over(self.build.graph, [slot[0] for slot in self.slots], nodes)
        gathers = tuple(Gather(buffer, table_of(places)) for _, buffer, places in (self.slots[k] for k in used))
        results = tuple(Result(nodes.index(node), r.buffer, r.table, r.kind) for node, r in self.results)
        return Region(body, self.count, gathers, results, origin=self.origin)


def apart(
    piece: Piece,
    draft: RegionDraft,
    buffers: Sequence[Buffer],
    entries: dict[Key, int],
    slots_of: Callable[[Key], list[Places]],
) -> Iterator[tuple[Key, int, RegionDraft, Places | None]]:
    """Yield entries with their region, and with its repetitions if these are not all.

    An entry with a constant factor 0 is left out: it is no entry of the pattern.
    """
    zeros, parts = draft.zeros(buffers, [term.node for term in piece.terms]), dict[bytes, RegionDraft]()
    for key, node in entries.items():
        vanishes = zeros.get(node)
        if vanishes is None or (not vanishes.all() and all(map(is_uniform, slots_of(key)))):
            yield key, node, draft, None
        elif not vanishes.all():
            chosen = np.flatnonzero(~vanishes)
            yield key, node, parts.setdefault(chosen.tobytes(), draft.part(chosen)), chosen


def pieces_of(
    program: RolledProgram,
    wrt: int,
    *,
    packed: bool = False,
    most_inner: int = MOST_INNER,
    most_slots: int = FEW_SLOTS.slots,
    short: Size = FEW_SLOTS,
) -> tuple[RolledProgram, list[Piece], Inner] | None:
    """Return a program of sums and maps, the pieces that compute its outputs in order, and its inner values.

    The program is the given one, with accumulations as sums and bodies cut at outlined sums, which are always inner
    values, as are sums that are not `short`. Slots that read the input `wrt` are active. None for nests and chains, for
    too many ways to read, and for too many inner values, of which a `packed` matrix may have more. Where it has too
    many still, larger bodies are computed again by all that read them, if no piece then has more than `most_slots`
    slots to be differentiated in.
    """
    if (packed or most_inner > MOST_INNER) and has_matrices(program):
        draft = Draft(program)
        draft.steps = [_written(draft, step, packed=packed) for step in program.steps]
        program = select(draft.finished(), range(len(program.outputs)), {})  # later steps are fused with the products
    program = checked(with_reductions(program), "writing accumulations as sums", program)
    regions = [step for step in program.steps if isinstance(step, Region) and step.parallel]
    if len(regions) < len(program.steps):
        return None
    cut, outlined = with_outlined_sums(program, [wrt])
    program = checked(cut, "cutting bodies at outlined sums", program)
    regions = [region for region, _ in regions_of(program.steps)]
    most, infinite = MOST_INNER_PACKED if packed else most_inner, infinite_buffers(program)
    for inlined in (FEW_SLOTS, MANY_SLOTS) if packed else (short,):
        finder = _Finder(program, ReachingDefinitions(program, regions, [wrt], outlined, inlined), most, infinite)
        if all(finder.visit(region) for region in reversed(regions)):
            slots = max((len(parameters_of(piece)) for piece in finder.pieces), default=0)
            if inlined is not MANY_SLOTS or slots <= most_slots:
                return program, finder.pieces[::-1], finder.inner
    return None


def are_many(inner: Inner, *, packed: bool) -> bool:
    """Whether inner values are more than a matrix has as single ones; the output may be one of them."""
    return len(inner) > (MOST_INNER_PACKED if packed else MOST_INNER) + 1


def parameters_of(piece: Piece) -> list[Slot]:
    """Return the slots in which a piece is differentiated."""
    return [slot for slot in piece.slots if slot.role != "fixed"]


def _written(draft: Draft, step: Step, *, packed: bool) -> Step:
    """Return a step; a product of matrices of few terms as a loop of sums in a body.

    A matrix of constants is stored anew where the loop would read it in long steps.
    """
    if not isinstance(step, Region) or step.matrix is None or step.matrix.kind != "product":
        return step
    (number, rows, inner, columns), turned = step.matrix.sizes, step.matrix.transposed
    most = MOST_TERMS if packed and 1 in (rows, columns) else FEW_TERMS
    if number > 1 or inner > most:
        return step
    row, column = (axis.ravel() for axis in np.indices((rows, columns)))
    operands = zip(step.gathers, (row, column), (rows, columns), (turned[0], not turned[1]), strict=True)
    reads = list[Gather]()
    for gather, line, lines, by_terms in operands:
        buffer, first, values = gather.buffer, gather.table.first, draft.buffers[gather.buffer].values
        if not by_terms and values is not None:
            buffer, first = draft.constants(values[gather.table.places()].reshape(lines, inner).T.ravel()), 0
            by_terms = True
        places = [first + (k * lines + line if by_terms else line * inner + k) for k in range(inner)]
        reads += [Gather(buffer, table_of(place)) for place in places]
    return replace(step, body=sums_of_products(1, inner), count=rows * columns, gathers=tuple(reads), matrix=None)


@dataclass(eq=False)
class Inner:
    """Inner values: their buffers and places in the order of their numbers."""

    numbers: dict[int, Places]  # of each buffer, the number at each place, -1 for none
    places: list[tuple[int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.places)

    def note(self, buffer: int, places: Places) -> None:
        """Number the places that have no number yet."""
        new = distinct(places)
        new = new[self.numbers[buffer][new] < 0]
        self.numbers[buffer][new] = len(self.places) + np.arange(len(new))
        self.places += [(buffer, place) for place in new.tolist()]

    def of(self, buffer: int, places: Places) -> Places:
        """Return the numbers of the values at places."""
        return self.numbers[buffer][places]


class _MixedReadsError(Exception):
    """The repetitions of a region read in different ways."""

    def __init__(self, kinds: Places) -> None:
        super().__init__()
        self.kinds = kinds


class _Finder:
    """Visits regions from the last to the first, because the terms of an inner value come before its readers."""

    def __init__(
        self, program: RolledProgram, definitions: ReachingDefinitions, most: int, infinite: Collection[int]
    ) -> None:
        self.program, self.definitions, self.most, self.pieces = program, definitions, most, list[Piece]()
        self.infinite = infinite
        numbers = {number: np.full(program.buffers[number].size, -1) for number in self.definitions.of}
        self.inner = Inner(numbers)

    def visit(self, region: Region) -> bool:
        """Write the pieces of a region; False where there are too many."""
        needed = [self.needed(result) for result in region.results]
        groups = [np.nonzero(group)[0] for group in _by_value([np.array(w) for w in needed], region.count)]
        count = 0
        while groups:
            chosen = groups.pop(0)
            results = [r for r, w in zip(region.results, needed, strict=True) if w[chosen[0]]]
            if not results:
                continue
            try:
                self.pieces.append(_Expander(self.definitions, region, chosen, self.infinite).piece(results))
            except _MixedReadsError as mixed:
                groups += [chosen[group] for group in _by_value([mixed.kinds], len(chosen))]
                continue
            count += 1
            for slot in self.pieces[-1].inner:
                self.inner.note(slot.buffer, slot.places)
            if count + len(groups) > MOST_PIECES or len(self.inner) > self.most:
                return False
        return True

    def needed(self, result: Result) -> Places:
        """Return in which repetitions a result is part of an output or of an inner value."""
        places = result.table.places()
        if self.program.buffers[result.buffer].kind == "output":
            return np.ones(len(places), dtype=np.int64)
        return (self.inner.of(result.buffer, places) >= 0).astype(np.int64)


def _by_value(columns: Sequence[Places], count: int) -> list[Places]:
    """Return masks of the repetitions that have equal values in all columns, by the first one of each."""
    code = np.zeros(count, dtype=np.int64)
    for column in columns:
        if (column != column[0]).any():
            _, numbers = np.unique(column, return_inverse=True)
            _, code = np.unique(code * (numbers.max() + 1) + numbers, return_inverse=True)
    _, first = np.unique(code, return_index=True)
    return [code == code[k] for k in np.sort(first)]


class _Expander:
    """Writes the body of a region for some of its repetitions on a graph, with the bodies of maps that it reads.

    Numbers of `infinite` buffers may be infinite: a constant 0 times one is no structural zero.
    """

    def __init__(
        self, definitions: ReachingDefinitions, region: Region, chosen: Places, infinite: Collection[int]
    ) -> None:
        self.definitions, self.region, self.chosen, self.infinite = definitions, region, chosen, infinite
        self.build = Builder(Graph(lines=False))
        self.slots: dict[tuple[int, bytes], Slot] = {}
        self.maps: dict[tuple[int, bytes], int] = {}

    def piece(self, results: Sequence[Result]) -> Piece:
        """Return the piece with some results."""
        rows = [self.region.body.outputs[result.output].rows[0] for result in results]
        nodes = self.body(self.region, self.chosen, rows)
        terms = [
            Term(node, result.buffer, result.table.places()[self.chosen], "store" if result.kind == "store" else "add")
            for node, result in zip(nodes, results, strict=True)
        ]
        return Piece(self.build, len(self.chosen), list(self.slots.values()), terms, self.region.origin)

    def body(self, region: Region, chosen: Places, rows: Sequence[int]) -> list[int]:
        """Write the rows of a body for some repetitions, and return their nodes."""
        body, nodes = region.body, dict[int, int]()
        powers = {parts[1] for head, parts in zip(body.heads, body.operands, strict=True) if head is sp.Pow}
        for row in reachable(body, rows):
            if row < len(region.gathers):
                gather = region.gathers[row]
                nodes[row] = self.read(gather.buffer, gather.table.places()[chosen], exponent=row in powers)
        return copied(body, rows, self.build.graph, nodes)

    def constant(self, buffer: int, values: NDArray[np.float64], places: Places, *, exponent: bool) -> int:
        """Return the constant that is read; a leaf for different ones, unless they are a few exponents.

        The derivative of x**1 is 1 and its second derivative nothing, where a rule for any exponent has 0 * x**-1.
        """
        read = values[places]
        if (read.view(np.int64) == read[:1].view(np.int64)).all():
            number = float(read[0])
            return self.build.number(int(number) if exponent and number.is_integer() else number)
        different, kinds = np.unique(read, return_inverse=True)
        if exponent and len(different) <= MOST_EXPONENTS:
            raise _MixedReadsError(kinds)
        return self.leaf(buffer, places, "fixed")

    def read(self, buffer: int, places: Places, *, exponent: bool = False) -> int:
        """Return the node that reads places of a buffer."""
        values = self.definitions.program.buffers[buffer].values
        if values is not None:
            return self.constant(buffer, values, places, exponent=exponent)
        if buffer not in self.definitions.of:
            return self.leaf(buffer, places, "active" if buffer in self.definitions.inputs else "fixed")
        kinds = self.definitions.kinds(buffer, places)
        if (kinds != kinds[0]).any():
            raise _MixedReadsError(kinds)
        if kinds[0] == ZERO:
            return self.build.number(0.0)
        if kinds[0] < 0:
            return self.leaf(buffer, places, "fixed" if kinds[0] == FIXED else "inner")
        definition, nodes = self.definitions.made(buffer), list[int]()
        if self.definitions.shared(definition.recipes[int(kinds[0])], places):
            return self.leaf(buffer, places, "inner")
        for position, number in enumerate(definition.recipes[int(kinds[0])]):
            nodes.append(self.written(number, definition.repetitions[definition.begins[places] + position]))
        return self.build.add(nodes[0], nodes[1], *nodes[2:]) if len(nodes) > 1 else nodes[0]

    def written(self, number: int, chosen: Places) -> int:
        """Write the body of a result into its reader; the depth is bounded (see `ReachingDefinitions`)."""
        key = (number, chosen.tobytes())
        if key not in self.maps:
            written = self.definitions.written[number]
            row = written.region.body.outputs[written.result.output].rows[0]
            (self.maps[key],) = self.body(written.region, chosen, [row])
        return self.maps[key]

    def leaf(self, buffer: int, places: Places, role: Role) -> int:
        """Return the leaf of a slot; slots that read the same are one."""
        key = (buffer, places.tobytes())
        if key not in self.slots:
            graph = self.build.graph
            node = graph.own_leaf(sp.Symbol(f"z{len(self.slots)}", real=True))
            node = node if role == "fixed" else graph.alias(node)
            if buffer in self.infinite:
                self.build.finite[node] = False
            self.slots[key] = Slot(node, buffer, uniform(places), role)
        return self.slots[key].node

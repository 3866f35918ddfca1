"""The tapes that four designs of nested reverse mode would record, and where they fail.

symad has no tape: it is the fourth design, which separates the levels before it computes anything. The other three are
derived from the rows of the program's linear maps: a tape has one entry for each operation that a level follows, which
is one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.heads import Alias
from codegen.records import dataclass
from symad.classroom.explanation.explanation_lines import Book
from symad.derivatives.node_roles import Opened
from symad.display.notation import counted
from symad.graph.graph import Graph
from symad.rules.partials import log_modulus


@dataclass(frozen=True)
class Tape:
    """One tape: its owner, its operations, the number of references, and the phase that frees it.

    Phase 0 is the run of the program, phase k the k-th sweep; `grows` has the number of entries after each phase.
    """

    owner: str
    holds: tuple[int, ...]
    refers: int
    freed: int
    grows: tuple[int, ...] = ()

    @property
    def entries(self) -> int:
        """Number of its own entries."""
        return len(self.holds)

    def at(self, phase: int) -> str:
        """Return the state of the tape in a phase, in words."""
        if phase > self.freed:
            return ""
        entries = counted(self.grows[phase] if self.grows else self.entries, "entry")
        return f"{entries}, freed" if phase == self.freed else entries


@dataclass(frozen=True)
class Design:
    """One design of nested tapes, for one program."""

    name: str
    rule: str
    tapes: tuple[Tape, ...]

    @property
    def entries(self) -> int:
        """Number of entries of all tapes."""
        return sum(tape.entries for tape in self.tapes)


@dataclass(frozen=True)
class Failure:
    """A failure of tapes, and the place where it would occur in this program."""

    name: str
    where: str


class Tapes:
    """The tapes that the reverse levels of one program would have, outermost level first.

    `recorded[k]` are the operations that level k follows: the content of a tape of its own.
    """

    book: Book
    chain: list[Opened]

    def __init__(self, book: Book, levels: Sequence[Opened]) -> None:
        self.book, self.chain = book, _longest_chain(levels)
        self.reverse: list[Opened] = [level for level in self.chain if level.reverse]
        self.recorded: list[set[int]] = [followed(book.graph, level) for level in self.reverse]
        sweeps = (f"sweep of level {level.depth}" for level in reversed(self.reverse))
        self.phases: list[str] = ["the program runs", *sweeps]

    @property
    def designs(self) -> tuple[Design, ...]:
        """The four designs. Without reverse levels there are no tapes."""
        count = len(self.reverse)
        independent, hierarchical = [], []
        for k, (level, recorded) in enumerate(zip(self.reverse, self.recorded, strict=True)):
            name, own = f"level {level.depth}", recorded.difference(*self.recorded[k + 1 :])
            independent.append(Tape(name, tuple(sorted(recorded)), 0, count - k))  # its sweep is phase count - k
            hierarchical.append(Tape(name, tuple(sorted(own)), len(recorded) - len(own), count))
        grows = [len(set().union(*self.recorded[k:])) for k in reversed(range(count))]
        everything = tuple(sorted(set().union(*self.recorded)))
        reentrant = [Tape("all levels", everything, 0, count, (*grows, grows[-1]))] if grows else []
        return (
            Design("independent", "each level records all that it follows, for itself", tuple(reversed(independent))),
            Design("hierarchical", "a level records what no inner tape has, and refers to the rest",
                   tuple(reversed(hierarchical))),
            Design("reentrant", "one tape for all levels; a sweep records itself on it", tuple(reentrant)),
            Design("staged", "no tape: each level's program is written before any runs; this is symad", ()),
        )  # fmt: skip

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The four failures, each with the place where it would occur here."""
        if not self.reverse:
            why = "no level is reverse, so there is no tape: tangents travel with the values and are never replayed"
            names = ("tape corruption", "missing gradients", "duplicated gradients", "memory explosion")
            return tuple(Failure(name, why) for name in names)
        return (
            Failure("tape corruption (nested passes overwrite state)", self._corruption()),
            Failure("missing gradients (a tape's life ends too early)", self._missing()),
            Failure("duplicated gradients (a nested replay occurs twice)", self._duplicated()),
            Failure("memory explosion (all levels are kept at once)", self._explosion()),
        )

    @property
    def shared(self) -> list[int]:
        """The operations followed by both the innermost reverse level and the one around it."""
        return sorted(self.recorded[-1] & self.recorded[-2]) if len(self.reverse) > 1 else []

    @property
    def made_inside(self) -> list[int]:
        """The operations of the outermost level that an inner level's derivative wrote."""
        if len(self.chain) < 2 or not self.chain[0].linears:
            return []
        graph, history = self.book.graph, self.book.history
        inner = {level.depth for level in self.chain[1:]}
        own = followed(graph, self.chain[0]).difference(*(followed(graph, level) for level in self.chain[1:]))
        derived = [node for node in own if not history.is_written(node)]
        return sorted(node for node in derived if any(role.level in inner for role in history.roles(node)))

    def _corruption(self) -> str:
        if len(self.reverse) < 2:
            return f"it needs two reverse levels; here only level {self.reverse[0].depth} has cotangents"
        example = self._example(self.shared)
        inner, outer = self.reverse[-1].depth, self.reverse[-2].depth
        return (
            f"{counted(len(self.shared), 'variable')} would have a cotangent at level {inner} and one at level {outer}"
            f"{example}; with one place for both, the sweep of level {outer} adds to what level {inner} left there"
        )

    def _missing(self) -> str:
        first = self.reverse[-1].depth
        if not self.made_inside or self.chain[0] is self.reverse[-1]:
            return (
                f"the tape of level {first} ({counted(len(self.recorded[-1]), 'entry')}) has to live until its "
                "pullback was called for the last time"
            )
        inside = self.made_inside
        return (
            f"level {self.chain[0].depth} follows {counted(len(inside), 'operation')} that the derivative of an inner "
            f"level wrote{self._example(inside)}; where that derivative is not recorded, or its tape is freed first, "
            "they are missing without a word"
        )

    def _duplicated(self) -> str:
        if len(self.reverse) < 2:
            return (
                f"a second call of the pullback of level {self.reverse[0].depth} into places that were not cleared "
                f"would add all {counted(len(self.recorded[0]), 'cotangent')} once more"
            )
        return (
            f"{counted(len(self.shared), 'entry')} would stand on the tapes of both level {self.reverse[-1].depth} and "
            f"level {self.reverse[-2].depth}{self._example(self.shared)}; replayed by both, each counts twice"
        )

    def _explosion(self) -> str:
        pairs = list(zip(self.reverse, self.recorded, strict=True))
        lengths = ", ".join(f"level {level.depth}: {len(recorded)}" for level, recorded in reversed(pairs))
        total = sum(map(len, self.recorded))
        more = f", together {total} if all wait for the outermost sweep" if len(self.reverse) > 1 else ""
        return f"entries of the tapes: {lengths}{more}; one level more would follow all that is there already"

    def _example(self, nodes: Sequence[int]) -> str:
        known = [node for node in nodes if self.book.knows(node)]
        named = [node for node in known if len(self.book.graph.operands[node]) > 1] or known
        return f", {self.book.name(named[0])} for one" if named else ""


def _longest_chain(levels: Sequence[Opened]) -> list[Opened]:
    """Return the deepest level and the levels around it, outermost first."""
    chain: list[Opened] = []
    level = max(levels, key=lambda level: level.depth, default=None)
    while level is not None:
        chain.append(level)
        level = level.around
    return chain[::-1]


def followed(graph: Graph, level: Opened) -> set[int]:
    """Return the operations between a level's parameters and results. Aliases count only if they have a rule.

    The logarithms through which quotients are differentiated are not computed, and are none.
    """
    targets = {target for linear in level.linears for target, _ in linear.rows}
    unseen = (Alias, log_modulus)
    return {node for node in targets if graph.heads[node] not in unseen or node in graph.rules}

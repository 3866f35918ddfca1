"""What is known of a program and its levels: stages, lines, names, what is kept, operations, tapes."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from codegen.heads import Alias
from symad.derivatives.node_roles import Opened, kept_by
from symad.graph.shared_graph import Sharing
from symad.teaching.explanation.explanation_lines import Book, Line
from symad.teaching.explanation.explanation_stages import Stage, Stages
from symad.teaching.explanation.tapes import Tapes, followed


class Explained:
    """The stages of a program, from the innermost level out, and the program that computes the result.

    `lines` has every variable of that program in the order of computation, `results` the names of its results, and
    `stages` what each level did: program, linearized, transposed, and so on. What is printed is folded where it is
    long; these are not.
    """

    def __init__(self, name: str, book: Book, outputs: tuple[int, ...], *, at_numbers: bool) -> None:
        self.name, self.book, self.outputs, self.at_numbers = name, book, outputs, at_numbers
        self.sharing = Sharing(book.graph, book.inputs)
        needed = self._needed()
        if not any(book.graph.heads[node] is Alias for node in needed):
            book.history.share_roles(self.sharing.there)  # paths were merged, without the aliases of levels
        made = Stages(book, self.sharing, book.history, outputs)
        self.levels: tuple[Opened, ...] = tuple(made.levels)
        self.stages: tuple[Stage, ...] = tuple(made.made)
        self._listed = {*made.listed, *needed}
        book.number(self._listed)
        self.lines = tuple(Line(book, node) for node in needed)

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the results: variables, inputs, or numbers."""
        return tuple(self.book.name(node) for node in self.outputs)

    def count(self) -> Counter[str]:
        """Return how many variables of the result's program have each kind of role."""
        kinds = Counter(role.kind for line in self.lines for role in line.roles)
        return kinds + Counter(primal=sum(not line.roles for line in self.lines))

    @cached_property
    def operations(self) -> int:
        """How many operations the result needs, each once: those of equal value on different levels are one."""
        return self.sharing.operations(self.outputs, set())

    @cached_property
    def primal_operations(self) -> int:
        """How many operations the user's own code has, before anything is differentiated."""
        graph, history = self.book.graph, self.book.history
        written = [node for node in self._listed if history.is_written(node) and graph.heads[node] is not Alias]
        places = {self.sharing.there[node] for node in written}
        return sum(bool(self.sharing.plain.operands[place]) for place in places)

    @property
    def tapes(self) -> Tapes:
        """The tapes that other designs of nested reverse mode would record for this program."""
        return Tapes(self.book, self.levels)

    def kept(self, level: Opened) -> list[Line]:
        """Return the values that a level keeps of its program: the variables that its rows multiply by."""
        nodes = dict.fromkeys(node for linear in level.linears for node in kept_by(linear))
        return [
            Line(self.book, node) for node in nodes if node not in self.book.graph.atoms or node in self.book.inputs
        ]

    def body(self, level: Opened) -> set[int]:
        """Return the operations that a level follows: those that depend on its parameters."""
        return followed(self.book.graph, level)

    def not_kept(self, level: Opened) -> list[Line]:
        """Return the variables of a level's program that no row multiplies by."""
        kept = {line.node for line in self.kept(level)}
        return [Line(self.book, node) for node in sorted(self.body(level) - kept)]

    def _needed(self) -> list[int]:
        seen, stack = set[int](), list(self.outputs)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack += self.book.graph.operands[node] if node not in self.book.inputs else ()
        return sorted(node for node in seen if self.book.is_line(node))

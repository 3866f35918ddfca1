"""What an expansion consists of: what its page and its public face both look at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from symad.display.document import Cell
from symad.teaching.expansion.epsilon import Levels
from symad.teaching.expansion.expansion_levels import Levelled, Stage
from symad.teaching.expansion.expansion_values import Values
from symad.teaching.expansion.steps import Step, steps_of
from symad.tracing.calling.given import Given
from symad.tracing.values.node_trees import Tree


@dataclass(frozen=True, eq=False, repr=False)
class Parts:
    """The function, its directions, the coefficients of each output, and the graph behind them."""

    given: Given
    directions: dict[Levels, list[Any]]
    flat: dict[Levels, list[Any]]
    notes: tuple[Cell, ...]
    detail: str
    values: Values = field(repr=False)
    nodes: Levelled = field(repr=False)
    parameters: Tree = field(repr=False)
    result: Tree = field(repr=False)

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.nodes.stages)

    @property
    def is_straight(self) -> bool:
        """Whether all levels have the same direction, as the Taylor polynomial along it needs."""
        first = self.directions[(1,)]
        return all(len(levels) == 1 and parts == first for levels, parts in self.directions.items())

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages without what is needed only in single points, where a convention holds."""
        wanted = [node for row in self.nodes.coefficients.values() for node in row if node is not None]
        needed, resolved = self.values.needed(wanted), self.values.resolved
        return tuple(
            replace(stage, rows=tuple(row for row in stage.rows if row[0] in needed and resolved(row[0]) == row[0]))
            for stage in self.nodes.stages
        )

    def lines(self, most: int) -> list[list[Step]]:
        """Return the lines of each level, at most so many of each; first those that the level has made."""
        symbols = dict(zip(self.parameters.flat, self.given.symbols, strict=True))
        return steps_of(self.values, self.stages, symbols, most)

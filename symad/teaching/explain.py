"""explain: the program that a composition of transforms writes down, every variable with its roles and levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp

from codegen.heads import Alias
from codegen.program import reachable
from symad.derivatives.roles import Role, noting
from symad.graph.sympy_io import rebuild
from symad.tracing.trace import trace


@dataclass(frozen=True)
class Line:
    """One variable: its name, its formula, and its roles; a variable without roles is primal."""

    name: str
    formula: str
    roles: tuple[Role, ...]

    @property
    def marks(self) -> str:
        """The roles in words: "primal", "residual 1, tangent 2"... where the number is the level."""
        return ", ".join(map(str, self.roles)) or "primal"


@dataclass(frozen=True)
class Explanation:
    """The lines of a program in the order of computation, and the names of its results. Printed, it is a table."""

    lines: tuple[Line, ...]
    results: tuple[str, ...]

    def count(self) -> Counter[str]:
        """Return how many variables have each kind of role."""
        kinds = Counter(role.kind for line in self.lines for role in line.roles)
        return kinds + Counter(primal=sum(not line.roles for line in self.lines))

    def __str__(self) -> str:
        names = max((len(line.name) for line in self.lines), default=0)
        formulas = min(60, max((len(line.formula) for line in self.lines), default=0))
        rows = [f"{line.name:>{names}} = {line.formula:<{formulas}}  {line.marks}" for line in self.lines]
        return "\n".join([*rows, f"result: {', '.join(self.results)}"])


def explain(f: Callable[..., Any], *args: Any) -> Explanation:
    """Return the program that f, any composition of transforms, writes down for arguments of these shapes.

    Each variable is marked: a parameter of a level (an alias: equal to its argument, never the same), a tangent or a
    cotangent, a residual (what the linear map of a level keeps of the computation before it), or primal. Levels are
    numbered from the outermost. A variable that is computed once may have several roles.

    >>> import numpy as np
    >>> import symad as sa
    >>> print(explain(sa.grad(lambda x: np.sin(x) * x), 1.0))
    v1 = x        parameter 1, residual 1, cotangent 1
    v2 = sin(v1)  residual 1
    v3 = cos(v1)  residual 1
    v4 = v1*v3    cotangent 1
    v5 = v2 + v4  cotangent 1
    result: v5
    """
    with noting() as notes:
        traced = trace(f, *args)
    graph, shown, lines = traced.graph, dict[int, sp.Basic](), list[Line]()
    for node in reachable(graph, traced.outputs.flat):
        operands = graph.operands[node]
        if not operands:
            shown[node] = graph.atoms[node]
            continue
        parts = [shown[operand] for operand in operands]
        formula = parts[0] if graph.heads[node] is Alias else rebuild(graph.heads[node], parts)
        shown[node] = sp.Symbol(f"v{len(lines) + 1}", real=True)
        lines.append(Line(str(shown[node]), str(formula), tuple(sorted(notes.get((id(graph), node), ())))))
    return Explanation(tuple(lines), tuple(str(shown[node]) for node in traced.outputs.flat))
